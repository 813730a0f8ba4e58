//! Steps: an agent's program at work under its keeper, and what it says on its way to the kernel.
//!
//! All that is needed to take a step up again lies in its folder: what was asked for, what was sent to the program,
//! what it printed, how it ended. So a step that is found again is read from its beginning, and what the log has
//! heard already counts once.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use kernel::Effect;
use kernel::command::{CUT_OFF, Happened, StepFailure, Usage};
use machines::Wire;
use machines::names::{AgentName, EffectId, RunId, TaskId, WorkerName};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::{Shared, hooks, kept, place};
use crate::agents::{self, Ended, Input, Order, Reader, Said, Silence};
use crate::files::write_whole;
use crate::git::Published;
use crate::keeper::{self, Connection, Ending, Exit, Found, News, Reason, Spec, Tail};
use crate::log::Fence;
use crate::outbox::Attempt;
use crate::owner::SubmitError;

/// The file in a step's folder that says what it is.
const STEP_FILE: &str = "step.json";
/// Lines that are read before something else gets a turn.
const LINES_AT_ONCE: usize = 256;
/// Until a program's first line: it may be large, and the machine busy.
const START_SILENCE: Duration = Duration::from_secs(2 * 60);
/// How long an agent may take to end its turn when it is interrupted, before its processes are ended.
const INTERRUPT: Duration = Duration::from_secs(10);
/// How long an agent whose step is no longer wanted may take to say what it has cost.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// How long its processes may take to end when they are asked to.
const ENDING: Ending = Ending { interrupt: None, terminate: Duration::from_secs(3) };
/// What the first input is called in the journal, where the adapter gives it no name.
const PROMPT: &str = "prompt";

/// What a step is told from outside.
pub enum Word {
    Answer {
        call: SmolStr,
        allow: bool,
        note: String,
        done: oneshot::Sender<()>,
    },
    /// A person says something; whether the program could hear it is told.
    Tell {
        text: String,
        heard: oneshot::Sender<bool>,
    },
    /// The fleet stops: let the call that is running end, then come to the end of the turn.
    Interrupt,
    /// End the processes; whoever asks is told what was used.
    End(Option<oneshot::Sender<Usage>>),
}

/// What a step's folder says about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepFile {
    pub effect: EffectId,
    pub task: TaskId,
    pub worker: WorkerName,
    pub run: RunId,
    pub agent: AgentName,
    pub adapter: SmolStr,
    /// The turn that the run had reached when the step began.
    pub turn: u32,
    pub started_at: i64,
    /// What the program is told first.
    pub stdin: FirstInput,
    pub order: Order,
}

/// What a program is told first. It is sent once: the journal knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstInput {
    Nothing,
    /// This, and then the end.
    Whole(String),
    Open {
        id: String,
        text: String,
    },
}

impl From<agents::Stdin> for FirstInput {
    fn from(stdin: agents::Stdin) -> FirstInput {
        match stdin {
            agents::Stdin::Null => FirstInput::Nothing,
            agents::Stdin::Whole(text) => FirstInput::Whole(text),
            agents::Stdin::Open(Input { id, text }) => FirstInput::Open { id, text },
        }
    }
}

/// A step that can be looked at: where it lies, and what it is.
#[derive(Clone, Debug)]
pub struct Step {
    pub dir: std::path::PathBuf,
    pub file: StepFile,
}

impl Step {
    /// Reads what a folder says. `None`: it is not a step's.
    pub fn read(dir: &Path) -> Option<Step> {
        let text = std::fs::read(dir.join(STEP_FILE)).ok()?;
        let file = serde_json::from_slice(&text).ok()?;
        Some(Step { dir: dir.to_owned(), file })
    }

    /// A reader of what it printed, that knows what was sent to the program.
    pub fn reader(&self) -> Result<Box<dyn Reader>, String> {
        reader_of(self)
    }
}

/// Makes a step or a gate known before it begins, so that whoever must end it can reach it at every moment.
pub fn register(shared: &Shared, id: &EffectId, effect: &Effect) -> Option<mpsc::UnboundedReceiver<Word>> {
    let ours = matches!(effect, Effect::StartStep { .. } | Effect::RunGate { .. } | Effect::TestMain { .. });
    ours.then(|| {
        let (send, receive) = mpsc::unbounded_channel();
        shared.steps.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), send);
        receive
    })
}

/// Starts a step or takes it up again, and follows it to its end. `None`: there is nothing to tell.
pub async fn carry_out(
    shared: &Arc<Shared>,
    attempt: &Attempt,
    words: mpsc::UnboundedReceiver<Word>,
) -> Result<Option<Happened>, SubmitError> {
    let id = &attempt.id;
    let begun = loop {
        match begin(shared, id, &attempt.effect).await {
            Err(Happened::StepFailed { error, .. }) if shared.waits_for_room(&error).await => {}
            begun => break begun,
        }
    };
    let (step, found) = match begun {
        // Ended before it began; who ended it knows, or it is begun again another time.
        Ok(None) => return Ok(None),
        Ok(Some(begun)) => begun,
        Err(failure) => return Ok(Some(failure)),
    };
    let fence = attempt.fence();
    let mut follower = match Follower::new(shared, &fence, step, words).await {
        Ok(follower) => follower,
        Err(error) => return Ok(Some(failed(error, StepFailure::Failed, Usage::default()))),
    };
    let ended = follower.follow(found).await?;
    if let Gone::Left = ended {
        follower.tell_gone(&failed("", StepFailure::Lost, Usage::default()));
        return Ok(None);
    }
    let task = follower.step.file.task.clone();
    if let Err(error) = hooks::in_tree(shared, "step.after", id.as_str(), &task).await {
        shared.notice(format!("{task}: {error}"));
    }
    let what = follower.outcome(ended).await;
    follower.tell_gone(&what);
    Ok(Some(what))
}

fn failed(error: impl Into<String>, why: StepFailure, usage: Usage) -> Happened {
    Happened::StepFailed { error: error.into(), why, usage }
}

/// Finds the step's processes, or starts them. `None`: what comes before a step was ended, and nothing was started.
async fn begin(
    shared: &Arc<Shared>,
    id: &EffectId,
    effect: &Effect,
) -> Result<Option<(Step, Found)>, Happened> {
    let dir = shared.layout.step(id);
    let fail = |error: String| failed(error, StepFailure::Failed, Usage::default());
    let found = keeper::look(&dir).map_err(|error| fail(error.to_string()))?;
    match (found, Step::read(&dir)) {
        (found @ (Found::Alive(_) | Found::Over(_)), Some(step)) => return Ok(Some((step, found))),
        (Found::Dead, Some(step)) => {
            // Nobody knows how it ended. What it left running must not write into the tree any more.
            let mark = shared.layout.mark(id.as_str());
            let swept = shared.blocking(move || keeper::sweep_strays(&mark)).await;
            swept.map_err(|error| fail(error.to_string()))?;
            let usage = usage_of(&step);
            return Err(failed("the keeper of the step was lost", StepFailure::Lost, usage));
        }
        // Begun, and not even its own file was written: nothing was started.
        _ => {}
    }
    if let Effect::StartStep { task, .. } = effect {
        let over = hooks::in_tree(shared, "step.before", id.as_str(), task).await.map_err(fail)?;
        if !over || !shared.world().effects.contains_key(id) {
            return Ok(None);
        }
    }
    let (file, spec) = prepare(shared, id, effect).await.map_err(fail)?;
    let step = Step { dir: dir.clone(), file };
    let (adj, started) = (shared.adj.clone(), step.clone());
    let start = move || -> Result<Found, String> {
        std::fs::create_dir_all(&dir).map_err(|error| format!("cannot make `{}`: {error}", dir.display()))?;
        let text = serde_json::to_vec(&started.file).expect("a step is plain data");
        write_whole(&dir.join(STEP_FILE), &text)
            .map_err(|error| format!("cannot write to `{}`: {error}", dir.display()))?;
        keeper::start(&adj, &dir, &spec).map_err(|error| error.to_string())
    };
    let found = shared.blocking(start).await.map_err(fail)?;
    Ok(Some((step, found)))
}

/// Says what is to be run: program, prompt, environment, sandbox.
async fn prepare(shared: &Arc<Shared>, id: &EffectId, effect: &Effect) -> Result<(StepFile, Spec), String> {
    let Effect::StartStep { task, worker, run, session, resume, prompt, turns_left } = effect else {
        return Err("bug: this is not a step".to_owned());
    };
    let rules = shared.rules();
    let world = shared.world();
    let known = world.task(task).ok_or_else(|| format!("there is no task `{task}`"))?;
    let place = known.place.as_ref().ok_or_else(|| format!("task `{task}` has no tree"))?;
    let started = world.run(run).ok_or_else(|| format!("there is no run `{run}`"))?;
    let agent = rules
        .settings
        .agents
        .get(&started.agent)
        .ok_or_else(|| format!("there is no agent `{}` in adjutant.toml", started.agent))?;
    let adapter = agents::adapter(agent.adapter.name())
        .ok_or_else(|| format!("bug: the settings know an adapter `{}` that is not there", agent.adapter))?;
    let tree = shared.tree(&place.tree)?;
    let folders = place::Folders::make(&shared.layout, task).map_err(|error| error.to_string())?;
    let main = {
        let (repository, of, tree) = (shared.repository.clone(), task.clone(), place.tree.clone());
        let fresh = shared.blocking(move || {
            repository.refresh_main(&of, &tree)?;
            repository.name_of_main(&of, &tree)
        });
        let fresh = fresh.await;
        fresh.map_err(|error| error.to_string())?
    };
    {
        let (repository, tree) = (shared.repository.clone(), tree.clone());
        let committer = place::committer(&rules, &world, known);
        let named = shared.blocking(move || repository.commit_as(&tree, &committer)).await;
        named.map_err(|error| error.to_string())?;
    }
    let test = super::gate::test_command(&rules.settings, &tree);
    let text = place::prompt(&rules.prompts, known, worker.as_str(), prompt, &main, test);
    let order = Order {
        session: session.clone(),
        resume: *resume,
        prompt: text,
        kind: prompt.into(),
        system: agent.prompt.clone(),
        turns_left: *turns_left,
        model: agent.model.clone(),
        allowed_tools: agent.allowed_tools.as_ref().map(|tools| tools.iter().map(SmolStr::from).collect()),
        tree: tree.clone(),
        private: folders.private.clone(),
        temp: folders.temp.clone(),
        task: task.as_str().into(),
        worker: worker.as_str().into(),
        run: run.as_str().into(),
        step: id.as_str().into(),
        command: agent.command.clone(),
        budget_usd: place::budget_left(&world, known, started),
        adj: shared.adj.clone(),
        project_root: shared.layout.root().to_owned(),
        main: main.to_string(),
    };
    let launch = adapter.launch(&order).map_err(|error| error.to_string())?;
    for directory in &launch.directories {
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("cannot make `{}`: {error}", directory.display()))?;
    }
    for (path, text) in &launch.files {
        write_whole(path, text).map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    }
    let mut env = place::environment(shared, &rules, agent, known, worker, run)?;
    if let Some(token) = shared.keys.as_ref().and_then(|keys| keys.mint(&started.agent, run)) {
        env.push(("ADJ_TOKEN".to_owned(), token));
        env.push(("ADJ_SERVER".to_owned(), format!("unix:{}", shared.layout.socket().display())));
    }
    env.extend(launch.env.iter().cloned());
    let program = launch.argv.first().map_or("", String::as_str);
    let purpose = place::Purpose::Step(agent, program);
    let sandbox = place::sandbox(shared.ground(&rules.settings), &tree, &folders, purpose)?;
    let spec = Spec {
        env: env.into_iter().collect(),
        stdin: match launch.stdin {
            agents::Stdin::Null => keeper::Stdin::Null,
            agents::Stdin::Whole(_) | agents::Stdin::Open(_) => keeper::Stdin::Piped,
        },
        time_limit_seconds: rules.settings.fleet.step_timeout.as_secs_f64(),
        output_bytes_max: rules.settings.limits.output_bytes,
        limits: place::limits(&rules.settings),
        sandbox,
        protocol: Some(launch.protocol.to_owned()),
        hidden: shared.keys.as_ref().map(|keys| keys.hidden()).unwrap_or_default(),
        ..Spec::new(shared.layout.mark(id.as_str()), launch.argv, tree)
    };
    let file = StepFile {
        effect: id.clone(),
        task: task.clone(),
        worker: worker.clone(),
        run: run.clone(),
        agent: started.agent.clone(),
        adapter: adapter.name().into(),
        turn: started.machine.inner().current_turn,
        started_at: crate::clock::now(),
        stdin: launch.stdin.into(),
        order,
    };
    Ok((file, spec))
}

/// Reads a step to where it has got, and tells the kernel.
struct Follower<'a> {
    shared: &'a Arc<Shared>,
    fence: &'a Fence,
    step: Step,
    reader: Box<dyn Reader>,
    words: mpsc::UnboundedReceiver<Word>,
    out: Tail,
    err: Tail,
    turn: u32,
    connection: Option<Connection>,
    /// Where in the output each call was asked that waits for its answer.
    asked: HashMap<SmolStr, u64>,
    /// Where the line that is being read begins.
    at: u64,
    /// Answers that came before the line that asks for them was read.
    early: Vec<Word>,
    /// Who asked for the end, and wants to be told.
    gone: Vec<oneshot::Sender<Usage>>,
    /// The kernel wants to hear of it.
    wanted: bool,
    /// The fleet stops, since then; what is running may end first.
    stopping: Option<Instant>,
    /// The turn was told to end.
    interrupted: Option<Instant>,
    /// The step is not wanted any more; the program was told, and may still name its price.
    unwanted: Option<Instant>,
    /// Its processes were told to end, and why.
    ending: Option<SmolStr>,
    grown_at: Instant,
    /// There is no room for what it prints.
    full: bool,
}

/// The process tree is gone, or was lost.
enum Gone {
    Exit(Exit),
    Lost,
    /// It was told to end, and its keeper writes down how when the disk has room for that: the next fleet hears of it.
    Left,
}

impl<'a> Follower<'a> {
    async fn new(
        shared: &'a Arc<Shared>,
        fence: &'a Fence,
        step: Step,
        words: mpsc::UnboundedReceiver<Word>,
    ) -> Result<Follower<'a>, String> {
        let limit = shared.rules().settings.limits.line_bytes;
        let reader = reader_of(&step)?;
        let journal = keeper::client::journal(&step.dir).map_err(|error| error.to_string())?;
        let interrupted = journal.iter().any(|entry| entry.id == agents::INTERRUPT);
        let open = |path: std::path::PathBuf| {
            let tail =
                Tail::open(&path, 0).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
            Ok::<_, String>(tail.with_line_bytes_max(limit))
        };
        let out = open(keeper::client::out(&step.dir))?;
        let err = open(keeper::client::err(&step.dir))?;
        let turn = step.file.turn;
        Ok(Follower {
            shared,
            fence,
            step,
            reader,
            words,
            out,
            err,
            turn,
            connection: None,
            asked: HashMap::new(),
            at: 0,
            early: Vec::new(),
            gone: Vec::new(),
            wanted: true,
            stopping: None,
            // A process before this one may have told it so, and been gone before it ended.
            interrupted: interrupted.then(Instant::now),
            unwanted: None,
            ending: None,
            grown_at: Instant::now(),
            full: false,
        })
    }

    async fn follow(&mut self, found: Found) -> Result<Gone, SubmitError> {
        if let Found::Over(exit) = found {
            self.read_all().await?;
            return Ok(Gone::Exit(exit));
        }
        match Connection::connect(&self.step.dir).await {
            Ok(connection) => self.connection = Some(connection),
            Err(_) => {
                let found = keeper::look(&self.step.dir);
                self.read_all().await?;
                return Ok(match found {
                    Ok(Found::Over(exit)) => Gone::Exit(exit),
                    _ => Gone::Lost,
                });
            }
        }
        self.send_first().await;
        let mut words_open = true;
        loop {
            let more = self.read_some().await?;
            self.answer_early().await;
            self.stop_when_ready().await;
            if self.full && self.shared.is_stopping() {
                if let Some(connection) = &mut self.connection {
                    let _ = connection.end(ENDING).await;
                }
                return Ok(Gone::Left);
            }
            let patience = match (self.unwanted, self.stopping, self.interrupted, &self.ending) {
                (Some(at), _, _, None) => at + LAST_WORDS,
                (_, _, Some(at), None) => at + INTERRUPT,
                (_, Some(at), None, None) => at + self.stop_timeout(),
                _ => self.grown_at + self.silence_max(),
            };
            let waits_to_stop = self.waits_to_stop();
            let connection = self.connection.as_mut().expect("it was opened");
            tokio::select! {
                biased;
                word = self.words.recv(), if words_open => match word {
                    Some(word) => self.hear(word).await,
                    None => words_open = false,
                },
                news = connection.next() => match news {
                    Some(News::Grown { out, err }) => {
                        self.grown_at = Instant::now();
                        self.out.grown(out);
                        self.err.grown(err);
                        self.full = false;
                    }
                    // The keeper says it at every attempt; once is enough for people.
                    Some(News::Full(what)) if !std::mem::replace(&mut self.full, true) => {
                        let file = &self.step.file;
                        self.shared.notice(format!(
                            "{} {}: what the agent prints cannot be kept, so it waits: {what}",
                            file.worker, file.task
                        ));
                    }
                    Some(News::Exit(exit)) => {
                        self.read_all().await?;
                        return Ok(Gone::Exit(exit));
                    }
                    None | Some(News::Lost) => {
                        self.read_all().await?;
                        let mark = self.shared.layout.mark(self.step.file.effect.as_str());
                        let swept = self.shared.blocking(move || keeper::sweep_strays(&mark)).await;
                        if let Err(error) = swept {
                            self.shared.notice(error.to_string());
                        }
                        return Ok(Gone::Lost);
                    }
                    _ => {}
                },
                () = std::future::ready(()), if more => {}
                // Looked at again at once: what is running is cut off then.
                () = tokio::time::sleep_until(patience), if waits_to_stop => {}
                () = tokio::time::sleep_until(patience), if self.ending.is_none() && !waits_to_stop => {
                    let why = match (self.unwanted, self.interrupted) {
                        (Some(_), _) => "ended",
                        (_, Some(_)) => "interrupted",
                        _ => "silent",
                    };
                    self.end(why).await;
                }
            }
        }
    }

    /// For how long the program may say nothing, as things stand.
    fn silence_max(&self) -> Duration {
        let settings = &self.shared.rules().settings;
        match self.reader.silence() {
            Silence::Starting => START_SILENCE,
            Silence::Waiting => settings.limits.silence,
            // The keeper ends the step before that.
            Silence::Free => settings.fleet.step_timeout * 2,
        }
    }

    /// Reads what there is, but not for ever. True: there is more.
    async fn read_some(&mut self) -> Result<bool, SubmitError> {
        for _ in 0..LINES_AT_ONCE {
            let line = match self.out.next(false) {
                Ok(Some(line)) => line,
                Ok(None) => return self.read_errors().await,
                Err(error) => {
                    self.shared.notice(format!("{}: {error}", self.step.file.effect));
                    return Ok(false);
                }
            };
            self.at = line.start;
            let said = self.reader.line(&line.bytes, !line.is_cut());
            self.take(said).await?;
        }
        Ok(true)
    }

    /// The same of its other output.
    async fn read_errors(&mut self) -> Result<bool, SubmitError> {
        for _ in 0..LINES_AT_ONCE {
            let Ok(Some(line)) = self.err.next(false) else { return Ok(false) };
            let said = self.reader.error_line(&line.bytes);
            self.take(said).await?;
        }
        Ok(true)
    }

    /// Reads to the end; what has no newline at its end is a line too.
    async fn read_all(&mut self) -> Result<(), SubmitError> {
        while let Ok(Some(line)) = self.out.next(true) {
            self.at = line.start;
            let said = self.reader.line(&line.bytes, !line.is_cut());
            self.take(said).await?;
        }
        while let Ok(Some(line)) = self.err.next(true) {
            let said = self.reader.error_line(&line.bytes);
            self.take(said).await?;
        }
        Ok(())
    }

    async fn take(&mut self, said: Vec<Said>) -> Result<(), SubmitError> {
        for said in said {
            let what = match said {
                Said::Turn { calls, output, usage } => {
                    self.turn += 1;
                    Some(Happened::Turn { turn: self.turn, calls, output, usage })
                }
                Said::ToolResult { call, tool, ok, output, millis } => {
                    Some(Happened::ToolResult { call, tool, ok, output, millis })
                }
                Said::Asked { call, tool, argument, input } => {
                    self.asked.insert(call.clone(), self.at);
                    (!self.is_answered(&call)).then_some(Happened::CallAsked {
                        call,
                        tool,
                        argument,
                        input,
                        turn: self.turn,
                    })
                }
                Said::Send(input) => {
                    self.send(input).await;
                    None
                }
                Said::Finish => {
                    if let Some(connection) = &mut self.connection {
                        let _ = connection.close_in().await;
                    }
                    None
                }
                Said::Stop(reason) => {
                    self.end(&reason.to_string()).await;
                    None
                }
                Said::Retry { status, attempt, delay_ms, what } => {
                    let file = &self.step.file;
                    let (what, seconds) = (agents::retry_cause(status, &what), delay_ms.div_ceil(1000));
                    self.shared.notice(format!(
                        "{} {}: {what}; attempt {attempt} follows in {seconds} s",
                        file.worker, file.task
                    ));
                    None
                }
                Said::Notice(text) => {
                    let file = &self.step.file;
                    self.shared.notice(format!("{} {}: {text}", file.worker, file.task));
                    None
                }
                Said::Text(_) => None,
            };
            if let (Some(what), true) = (what, self.wanted) {
                self.wanted = self.shared.tell(self.fence, what).await?;
            }
        }
        Ok(())
    }

    /// The kernel has answered, and the answer waits to be passed on: it must not be asked again.
    fn is_answered(&self, call: &SmolStr) -> bool {
        let world = self.shared.world();
        world.effects.values().any(|effect| {
            matches!(effect.as_ref(), Effect::AnswerCall { step, call: asked, .. }
                if *step == self.step.file.effect && asked == call)
        })
    }

    async fn send(&mut self, input: Input) {
        self.send_as(input, None).await;
    }

    /// Sends, as the answer to the question that was asked there if it is one.
    async fn send_as(&mut self, input: Input, question: Option<u64>) {
        let Some(connection) = &mut self.connection else { return };
        let sent = match question {
            Some(at) => connection.answer(&input.id, &input.text, at).await,
            None => connection.send(&input.id, &input.text).await,
        };
        if let Err(error) = sent {
            self.shared.notice(format!("{}: {error}", self.step.file.effect));
        }
    }

    /// The keeper passes an input on once, however often it is sent.
    async fn send_first(&mut self) {
        match self.step.file.stdin.clone() {
            FirstInput::Nothing => {}
            FirstInput::Open { id, text } => self.send(Input { id, text }).await,
            FirstInput::Whole(text) => {
                self.send(Input { id: PROMPT.to_owned(), text }).await;
                if let Some(connection) = &mut self.connection {
                    // Where the program is gone already, its end says so.
                    let _ = connection.close_in().await;
                }
            }
        }
    }

    async fn hear(&mut self, word: Word) {
        match word {
            Word::Answer { call, allow, note, done } => match self.reader.answer(&call, allow, &note) {
                Some(input) => {
                    let question = self.asked.remove(&call);
                    self.send_as(input, question).await;
                    let _ = done.send(());
                }
                // The line that asks has not been read yet.
                None => self.early.push(Word::Answer { call, allow, note, done }),
            },
            Word::Tell { text, heard } => {
                let input = self.reader.inject(&text);
                let _ = heard.send(input.is_some());
                if let Some(input) = input {
                    self.send(input).await;
                }
            }
            Word::Interrupt => {
                self.stopping.get_or_insert_with(Instant::now);
            }
            Word::End(tell) => {
                let price_wanted = tell.is_some() && self.ending.is_none();
                self.gone.extend(tell);
                if self.interrupted.is_none() && self.gone.is_empty() {
                    self.interrupted = Some(Instant::now());
                }
                // A program that is ended by a signal names no price; one that is interrupted does.
                match self.reader.interrupt().filter(|_| price_wanted) {
                    Some(input) => {
                        self.unwanted = Some(Instant::now());
                        self.send(input).await;
                    }
                    None => self.end("ended").await,
                }
            }
        }
    }

    fn stop_timeout(&self) -> Duration {
        self.shared.rules().settings.fleet.stop_timeout
    }

    /// The fleet stops, and the step has not been told to end.
    fn waits_to_stop(&self) -> bool {
        let told = self.interrupted.is_some() || self.unwanted.is_some() || self.ending.is_some();
        self.stopping.is_some() && !told
    }

    /// Tells the program to end its turn: when no call of it is running, or has been for too long since the fleet stops.
    async fn stop_when_ready(&mut self) {
        let Some(since) = self.stopping.filter(|_| self.waits_to_stop()) else { return };
        if self.reader.is_busy() && since.elapsed() < self.stop_timeout() {
            return;
        }
        self.interrupted = Some(Instant::now());
        let input = self.reader.interrupt();
        match (input, &mut self.connection) {
            (Some(input), _) => self.send(input).await,
            (None, Some(connection)) => drop(connection.interrupt().await),
            (None, None) => {}
        }
    }

    async fn answer_early(&mut self) {
        for word in std::mem::take(&mut self.early) {
            self.hear(word).await;
        }
    }

    async fn end(&mut self, why: &str) {
        if self.ending.is_none() {
            self.ending = Some(why.into());
            if let Some(connection) = &mut self.connection {
                let _ = connection.end(ENDING).await;
            }
        }
    }

    /// What the kernel hears of the end.
    async fn outcome(&mut self, gone: Gone) -> Happened {
        let exit = match gone {
            Gone::Exit(exit) => exit,
            Gone::Lost | Gone::Left => {
                let usage = self.reader.end(&lost()).usage();
                return failed("the keeper of the step was lost", StepFailure::Lost, usage);
            }
        };
        let ended = self.reader.end(&exit_of(&exit));
        let usage = ended.usage();
        // Whatever it says of itself: what it made is taken in first.
        let tip = loop {
            match take_tip(self.shared, &self.step.file.task).await {
                Ok(tip) => break tip,
                Err(error) if self.shared.waits_for_room(&error).await => {}
                Err(error) => return failed(error, StepFailure::Failed, usage),
            }
        };
        let limit = self.shared.rules().settings.fleet.step_timeout.as_secs();
        match (ended, exit.reason) {
            (Ended::Finished { done, output, usage }, _) => {
                Happened::StepFinished { done, output, tip, usage }
            }
            (_, reason @ (Reason::Processes(_) | Reason::Memory(_))) => {
                let passed = place::passed(&reason).unwrap_or_default();
                let error = format!("the agent {passed} and was ended; raise the limit, or have it use less");
                failed(error, StepFailure::Limit, usage)
            }
            (_, Reason::TimedOut) => {
                failed(format!("the step took longer than {limit} s"), StepFailure::TimedOut, usage)
            }
            _ if self.ending.as_deref() == Some("silent") => {
                failed("the agent said nothing for too long", StepFailure::TimedOut, usage)
            }
            // We ended it because the fleet stops: the next step goes on from here.
            (_, Reason::Ended) if self.interrupted.is_some() || self.ending.is_none() => {
                Happened::StepFinished { done: false, output: CUT_OFF.to_owned(), tip, usage }
            }
            (Ended::Failed { .. }, _) if self.interrupted.is_some() => {
                Happened::StepFinished { done: false, output: CUT_OFF.to_owned(), tip, usage }
            }
            (_, Reason::Alone) => failed("the step was alone for too long", StepFailure::Lost, usage),
            (Ended::Failed { error, why, usage }, _) => failed(error, why, usage),
            (Ended::Outage { service_error, resets_at, retry_after, refused, usage }, _) => {
                let agent = &self.step.file.agent;
                let service = self.shared.world().config.service_of(agent);
                // What the service asks for counts only where it is longer than we wait by ourselves.
                let poll = u64::from(self.shared.world().config.limits.health_poll_seconds) * 1000;
                let after = retry_after.filter(|wait| *wait > poll);
                let after = after.and_then(|wait| crate::clock::now().checked_add(i64::try_from(wait).ok()?));
                let error = match refused {
                    true => format!("{service_error}; {}", credentials(self.shared, agent)),
                    false => service_error,
                };
                let error = Some(SmolStr::new(error));
                Happened::Outage { service, resets_at: resets_at.or(after), error, refused, usage }
            }
        }
    }

    fn tell_gone(&mut self, what: &Happened) {
        let usage = match what {
            Happened::StepFinished { usage, .. }
            | Happened::StepFailed { usage, .. }
            | Happened::Outage { usage, .. } => *usage,
            _ => Usage::default(),
        };
        // Whoever comes after the end finds the folder.
        while let Ok(word) = self.words.try_recv() {
            match word {
                Word::End(tell) => self.gone.extend(tell),
                Word::Answer { done, .. } => drop(done.send(())),
                Word::Tell { heard, .. } => drop(heard.send(false)),
                Word::Interrupt => {}
            }
        }
        for tell in self.gone.drain(..) {
            let _ = tell.send(usage);
        }
    }
}

/// How a process ended, in the words of the adapters.
fn exit_of(exit: &Exit) -> agents::Exit {
    let reason = match &exit.reason {
        Reason::Exited => agents::ExitReason::Exited,
        Reason::TimedOut => agents::ExitReason::TimedOut,
        Reason::Ended => agents::ExitReason::Ended,
        Reason::Alone => agents::ExitReason::Alone,
        Reason::OutputLimit => agents::ExitReason::OutputLimit,
        Reason::Processes(_) | Reason::Memory(_) => agents::ExitReason::Ended,
        Reason::CouldNotStart(why) => agents::ExitReason::CouldNotStart(why.clone()),
    };
    agents::Exit { code: exit.code, signal: exit.signal, reason }
}

/// Nobody knows how it ended.
fn lost() -> agents::Exit {
    agents::Exit { code: None, signal: None, reason: agents::ExitReason::Exited }
}

/// A reader of the step's output that knows what was sent to the program.
fn reader_of(step: &Step) -> Result<Box<dyn Reader>, String> {
    let adapter = agents::adapter(&step.file.adapter)
        .ok_or_else(|| format!("there is no adapter `{}`", step.file.adapter))?;
    let mut reader = adapter.reader(&step.file.order);
    for entry in keeper::client::journal(&step.dir).map_err(|error| error.to_string())? {
        reader.sent(&entry.id, &entry.text);
    }
    Ok(reader)
}

/// The variables by which the program of a `claude` agent gets its credentials.
const KEYS: [&str; 3] = ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"];

/// What to do about credentials that a service does not accept, by what is passed on to the agent.
fn credentials(shared: &Shared, agent: &AgentName) -> String {
    let rules = shared.rules();
    let Some(settings) = rules.settings.agents.get(agent) else { return String::new() };
    if settings.adapter.name() != "claude" {
        return format!("see to the credentials of agent `{agent}`");
    }
    let passed: Vec<&str> =
        KEYS.into_iter().filter(|key| settings.env.iter().any(|name| name == key)).collect();
    match (passed.first(), passed.iter().find(|key| std::env::var_os(key).is_some_and(|key| !key.is_empty())))
    {
        (_, Some(set)) => format!("{set} is set, and what it holds is not accepted"),
        (Some(unset), None) => {
            format!(
                "`agents.{agent}.env` passes {unset} on, but it is not set: set it and start `adj run` again"
            )
        }
        (None, None) => format!(
            "pass a key on with `env = [\"ANTHROPIC_API_KEY\"]` in `[agents.{agent}]`, or the token of `claude setup-token` \
             with `env = [\"CLAUDE_CODE_OAUTH_TOKEN\"]`"
        ),
    }
}

/// Brings what stands in the task's tree to us and publishes it. `None`: there is no tree.
pub async fn take_tip(shared: &Arc<Shared>, task: &TaskId) -> Result<Option<SmolStr>, String> {
    let world = shared.world();
    let Some(place) = world.task(task).and_then(|task| task.place.clone()) else { return Ok(None) };
    if !shared.tree(&place.tree)?.exists() {
        return Ok(None);
    }
    let (repository, of) = (shared.repository.clone(), task.clone());
    let (tree, branch) = (place.tree.clone(), place.branch.clone());
    let taken = shared.blocking(move || repository.take_tip(&of, &tree, &branch)).await;
    let taken = taken.map_err(|error| error.to_string())?;
    match &taken.branch {
        Published::As(name) if *name == place.branch => {}
        Published::As(name) => {
            shared
                .notice_once(format!("{task}: a branch of yours is in the way; its branch is called {name}"));
        }
        Published::CheckedOut { name, at } => {
            shared
                .notice_once(format!("{task}: {name} is checked out in {} and was not moved", at.display()));
        }
        Published::MovedByUser { name, .. } => {
            shared.notice_once(format!("{task}: you moved {name}, so it is left as it is"));
        }
        Published::DeletedByUser { name } => {
            shared.notice_once(format!("{task}: you deleted {name}, so it is not made again"));
        }
    }
    Ok(Some(SmolStr::new(taken.tip.as_str())))
}

/// What a step used, by what it printed.
fn usage_of(step: &Step) -> Usage {
    match read_through(step) {
        Some(mut reader) => reader.end(&lost()).usage(),
        // Nobody knows what it cost.
        None => Usage { cost: None, ..Usage::default() },
    }
}

/// Whether the last message of a step says that the work is done.
pub fn said_done(step: &Step) -> bool {
    let ended = read_through(step).map(|mut reader| reader.end(&agents::Exit::code(0)));
    matches!(ended, Some(Ended::Finished { done: true, .. }))
}

/// A reader that has read all that the step printed.
fn read_through(step: &Step) -> Option<Box<dyn Reader>> {
    let mut reader = reader_of(step).ok()?;
    let mut out = Tail::open(&keeper::client::out(&step.dir), 0).ok()?;
    while let Ok(Some(line)) = out.next(true) {
        reader.line(&line.bytes, !line.is_cut());
    }
    Some(reader)
}

/// Ends a step or gate that is no longer wanted, whoever started it, and says when it is gone.
pub async fn end(shared: &Arc<Shared>, task: &TaskId, step: &EffectId) -> Option<Happened> {
    // A hook at its beginning or end is of the step too, and whoever follows the step waits for it.
    if let Err(error) = end_hooks(shared, step).await {
        return Some(Happened::Failed { error });
    }
    let way = shared.steps.lock().unwrap_or_else(PoisonError::into_inner).get(step).cloned();
    let mut usage = None;
    if let Some(way) = way {
        let (send, receive) = oneshot::channel();
        if way.send(Word::End(Some(send))).is_ok() {
            usage = receive.await.ok();
        }
    }
    if let Err(error) = kept::end(shared, step.as_str()).await {
        return Some(Happened::Failed { error });
    }
    let dir = shared.layout.step(step);
    let usage = usage.unwrap_or_else(|| Step::read(&dir).map_or(Usage::default(), |step| usage_of(&step)));
    match take_tip(shared, task).await {
        Ok(tip) => Some(Happened::StepEnded { tip, usage }),
        // The processes are gone, which is what was asked; the tree is looked at again by whoever needs it.
        Err(error) => {
            shared.notice(format!("{task}: {error}"));
            Some(Happened::StepEnded { tip: None, usage })
        }
    }
}

/// Ends every hook that runs for an effect.
async fn end_hooks(shared: &Arc<Shared>, step: &EffectId) -> Result<(), String> {
    let Ok(entries) = std::fs::read_dir(shared.layout.steps()) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.strip_prefix(step.as_str()).is_some_and(|rest| rest.starts_with('.')) {
            kept::end(shared, &name).await?;
        }
    }
    Ok(())
}

pub async fn end_kept(dir: &Path) -> Result<(), String> {
    let mut connection = match Connection::connect(dir).await {
        Ok(connection) => connection,
        // It may have ended in between.
        Err(error) => {
            return match keeper::look(dir) {
                Ok(Found::Over(_)) => Ok(()),
                _ => Err(error.to_string()),
            };
        }
    };
    connection.end(ENDING).await.map_err(|error| error.to_string())?;
    loop {
        match connection.next().await {
            Some(News::Exit(_)) => return Ok(()),
            None | Some(News::Lost) => return Err("its keeper was lost".to_owned()),
            _ => {}
        }
    }
}

/// Passes a decision on to the call that waits for it. Nobody waits any more: then nobody has to be told.
pub async fn answer(
    shared: &Arc<Shared>,
    step: &EffectId,
    call: &SmolStr,
    allow: bool,
    note: &str,
) -> Option<Happened> {
    if let Some(way) = way_to(shared, step).await {
        let (done, told) = oneshot::channel();
        let word = Word::Answer { call: call.clone(), allow, note: note.to_owned(), done };
        if way.send(word).is_ok() {
            let _ = told.await;
        }
    }
    Some(Happened::CallAnswered)
}

/// Says something to an agent at work.
pub async fn tell(shared: &Arc<Shared>, step: &EffectId, text: &str) -> Option<Happened> {
    let mut heard = false;
    if let Some(way) = way_to(shared, step).await {
        let (send, receive) = oneshot::channel();
        if way.send(Word::Tell { text: text.to_owned(), heard: send }).is_ok() {
            heard = receive.await.unwrap_or(false);
        }
    }
    Some(Happened::Told { heard })
}

/// The way to a step that is asked for, as soon as it has been taken up. `None`: it is over.
async fn way_to(shared: &Arc<Shared>, step: &EffectId) -> Option<mpsc::UnboundedSender<Word>> {
    let mut head = shared.handle.follow();
    loop {
        head.borrow_and_update();
        let way = shared.steps.lock().unwrap_or_else(PoisonError::into_inner).get(step).cloned();
        if way.is_some() {
            return way;
        }
        if !shared.world().effects.contains_key(step) || head.changed().await.is_err() {
            return None;
        }
    }
}
