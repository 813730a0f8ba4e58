//! Reads the output of a step as it grows, and reports it to the kernel.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kernel::Effect;
use kernel::command::{Happened, StepFailure, Usage};
use kernel::words::StepEnding;
use machines::names::AgentName;
use smol_str::SmolStr;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::{FirstInput, Step, StepError, cut_off, failed, reader_of};
use crate::kept_command::STEP_ENDING;
use crate::{Shared, endings, step_commands::StepCommand, tip};
use agents::{self, Ended, Input, Reader, Said, Silence, Spent};
use base::files::FileError;
use log::Fence;
use log::owner::SubmitError;
use log::spoken::{Piece, Words};
use process::keeper::{self, Connection, Exit, Found, News, Reason, Tail};

/// Lines that are read before something else gets a turn.
const LINES_AT_ONCE: usize = 256;
/// Until a program's first line: it may be large, and the machine busy.
const START_SILENCE: Duration = Duration::from_secs(2 * 60);
/// How long an agent may take to end its turn when it is interrupted, before its processes are ended.
const INTERRUPT: Duration = Duration::from_secs(10);
/// How long an agent that has ended its turn by a call may take to come to its own end.
const FINISH: Duration = Duration::from_secs(20);
/// What it is told of every further call meanwhile.
const TURN_IS_OVER: &str = "your turn is over; end your reply";
/// How long an agent whose step is no longer wanted may take to say what it has cost.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// Of what an agent writes, so many bytes wait while the disk is full. The transcript has the rest.
const PIECES_BYTES_MAX: usize = 1 << 20;
/// What the first input is called in the journal, where the adapter gives it no name.
const PROMPT: &str = "prompt";

/// Reads a step to where it has got, and tells the kernel.
pub struct Follower<'a> {
    shared: &'a Arc<Shared>,
    fence: &'a Fence,
    pub step: Step,
    reader: Box<dyn Reader>,
    words: mpsc::UnboundedReceiver<StepCommand>,
    out: Tail,
    err: Tail,
    turn: u32,
    connection: Option<Connection>,
    /// Where in the output each call was asked that waits for its answer.
    asked: HashMap<SmolStr, u64>,
    /// Where the line that is being read begins.
    at: u64,
    spoken: Spoken,
    /// Answers that came before the line that asks for them was read.
    early: Vec<StepCommand>,
    /// Who asked for the end, and wants to be told.
    gone: Vec<oneshot::Sender<Usage>>,
    /// The kernel wants to hear of it.
    wanted: bool,
    /// The fleet stops, since then; what is running may end first.
    stopping: Option<Instant>,
    /// The turn was told to end.
    interrupted: Option<Instant>,
    /// Nothing that it does counts any more, since then; it comes to its own end.
    finishing: Option<Instant>,
    /// The step is not wanted any more; the program was told, and may still name its price.
    unwanted: Option<Instant>,
    /// Its processes were told to end, and why.
    ending: Option<ToldToEnd>,
    grown_at: Instant,
    /// There is no room for what it prints.
    full: bool,
    /// There was none at some time: what failed since then may have failed for that.
    was_full: bool,
}

/// The process tree is gone, or was lost.
pub enum Gone {
    Exit(Exit),
    Lost,
    /// It was told to end, and its keeper writes down how when the disk has room for that: the next fleet hears of it.
    Left,
}

/// Why a step's processes were told to end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ToldToEnd {
    Unwanted,
    /// It did not end its turn in time.
    Interrupted,
    Silent,
    /// What it printed says that it must not go on.
    ByItsReader,
}

impl<'a> Follower<'a> {
    pub async fn new(
        shared: &'a Arc<Shared>,
        fence: &'a Fence,
        step: Step,
        words: mpsc::UnboundedReceiver<StepCommand>,
    ) -> Result<Follower<'a>, StepError> {
        let limit = shared.in_force().settings.limits.line_bytes;
        let reader = reader_of(&step)?;
        let journal = keeper::client::journal(&step.dir)?;
        let interrupted = journal.iter().any(|entry| entry.id == agents::INTERRUPT);
        let open = |path: std::path::PathBuf| {
            let tail = Tail::open(&path, 0).map_err(FileError::at("read", &path))?;
            Ok::<_, StepError>(tail.with_line_bytes_max(limit))
        };
        let out = open(keeper::client::out(&step.dir))?;
        let err = open(keeper::client::err(&step.dir))?;
        let turn = step.file.turn;
        let spoken = Spoken::open(shared, &step);
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
            spoken,
            early: Vec::new(),
            gone: Vec::new(),
            wanted: true,
            stopping: None,
            // A process before this one may have told it so, and been gone before it ended.
            interrupted: interrupted.then(Instant::now),
            finishing: None,
            unwanted: None,
            ending: None,
            grown_at: Instant::now(),
            full: false,
            was_full: false,
        })
    }

    pub async fn follow(&mut self, found: Found) -> Result<Gone, SubmitError> {
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
                    let _ = connection.end(STEP_ENDING).await;
                }
                return Ok(Gone::Left);
            }
            let patience = match (self.unwanted, self.stopping, self.interrupted, &self.ending) {
                (Some(at), _, _, None) => at + LAST_WORDS,
                (_, _, Some(at), None) => at + INTERRUPT,
                (_, Some(at), None, None) => at + self.stop_timeout(),
                _ => match self.finishing.filter(|_| self.ending.is_none()) {
                    Some(at) => at + FINISH,
                    None => self.grown_at + self.silence_max(),
                },
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
                        self.was_full = true;
                        let whose = &self.step.file.is_for;
                        self.shared.notice(format!(
                            "{whose}: its output cannot be stored, so it waits: {what}"
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
                    match (self.unwanted, self.interrupted, self.finishing) {
                        (Some(_), ..) => self.end(ToldToEnd::Unwanted).await,
                        (_, Some(_), _) => self.end(ToldToEnd::Interrupted).await,
                        (.., Some(_)) => self.end_named(true).await,
                        _ => self.end(ToldToEnd::Silent).await,
                    }
                }
            }
        }
    }

    /// For how long the program may say nothing, as things stand.
    fn silence_max(&self) -> Duration {
        let settings = &self.shared.in_force().settings;
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
                Ok(None) => {
                    self.spoken.put_down(self.shared);
                    return self.read_errors().await;
                }
                Err(error) => {
                    self.shared.notice(format!("{}: {error}", self.step.file.effect));
                    return Ok(false);
                }
            };
            self.at = line.start;
            let said = self.reader.line(&line.bytes, !line.is_cut());
            self.pass_on(said).await?;
        }
        self.spoken.put_down(self.shared);
        Ok(true)
    }

    /// The same of its other output.
    async fn read_errors(&mut self) -> Result<bool, SubmitError> {
        for _ in 0..LINES_AT_ONCE {
            let Ok(Some(line)) = self.err.next(false) else { return Ok(false) };
            let said = self.reader.error_line(&line.bytes);
            self.pass_on(said).await?;
        }
        Ok(true)
    }

    /// Reads to the end; what has no newline at its end is a line too.
    async fn read_all(&mut self) -> Result<(), SubmitError> {
        while let Ok(Some(line)) = self.out.next(true) {
            self.at = line.start;
            let said = self.reader.line(&line.bytes, !line.is_cut());
            self.pass_on(said).await?;
        }
        self.spoken.put_down(self.shared);
        while let Ok(Some(line)) = self.err.next(true) {
            let said = self.reader.error_line(&line.bytes);
            self.pass_on(said).await?;
        }
        Ok(())
    }

    async fn pass_on(&mut self, said: Vec<Said>) -> Result<(), SubmitError> {
        for said in said {
            let what = match said {
                Said::Turn { calls, output, usage } => {
                    self.turn += 1;
                    Some(Happened::Turn { turn: self.turn, calls, output, usage })
                }
                Said::ToolResult { call, tool, ok, output, millis } => {
                    Some(Happened::ToolResult { call, tool, ok, output, millis })
                }
                Said::Asked { call, .. } if self.finishing.is_some() => {
                    self.asked.insert(call.clone(), self.at);
                    let (done, _) = oneshot::channel();
                    let note = TURN_IS_OVER.to_owned();
                    self.hear_answer(call, false, note, done).await;
                    None
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
                Said::Stop(_) => {
                    self.end(ToldToEnd::ByItsReader).await;
                    None
                }
                Said::Retry { status, attempt, delay_ms, what } => {
                    let whose = &self.step.file.is_for;
                    let (what, seconds) = (agents::retry_cause(status, &what), delay_ms.div_ceil(1000));
                    self.shared.notice(format!("{whose}: {what}; attempt {attempt} follows in {seconds} s"));
                    None
                }
                Said::Notice(text) => {
                    self.shared.notice(format!("{}: {text}", self.step.file.is_for));
                    None
                }
                Said::Token(text) => {
                    self.spoken.hear(self.at, text);
                    None
                }
                Said::Text(_) => None,
            };
            if let (Some(what), true) = (what, self.wanted) {
                // Readers are given what the agent wrote before they hear what came of it.
                self.spoken.put_down(self.shared);
                self.wanted = self.shared.tell(self.fence, what).await?;
            }
        }
        Ok(())
    }

    /// The kernel has answered, and the answer waits to be passed on: it must not be asked again.
    fn is_answered(&self, call: &SmolStr) -> bool {
        let world = self.shared.world();
        world.effects.values().any(|effect| {
            matches!(effect.as_ref(),
                Effect::AnswerCall { step, call: asked, .. }
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

    async fn hear(&mut self, word: StepCommand) {
        match word {
            StepCommand::Answer { call, allow, note, done } => {
                self.hear_answer(call, allow, note, done).await
            }
            StepCommand::Tell { text, heard } => {
                let input = self.reader.inject(&text);
                let _ = heard.send(input.is_some());
                if let Some(input) = input {
                    self.send(input).await;
                }
            }
            StepCommand::Interrupt => {
                self.stopping.get_or_insert_with(Instant::now);
            }
            StepCommand::Finish(tell) => {
                self.gone.push(tell);
                self.finishing.get_or_insert_with(Instant::now);
            }
            StepCommand::End(tell) => {
                let price_wanted = tell.is_some() && self.ending.is_none();
                self.gone.extend(tell);
                if self.interrupted.is_none() && self.gone.is_empty() {
                    self.interrupted = Some(Instant::now());
                }
                self.end_named(price_wanted).await;
            }
        }
    }

    async fn hear_answer(&mut self, call: SmolStr, allow: bool, note: String, done: oneshot::Sender<()>) {
        match self.reader.answer(&call, allow, &note) {
            Some(input) => {
                // A part of a question that is not decided by it leaves the question open.
                let question = if input.text.is_empty() { None } else { self.asked.remove(&call) };
                self.send_as(input, question).await;
                let _ = done.send(());
            }
            // The line that asks has not been read yet.
            None => self.early.push(StepCommand::Answer { call, allow, note, done }),
        }
    }

    /// A program that is ended by a signal names no price; one that is interrupted does.
    async fn end_named(&mut self, price_wanted: bool) {
        match self.reader.interrupt().filter(|_| price_wanted) {
            Some(input) => {
                self.unwanted = Some(Instant::now());
                self.send(input).await;
            }
            None => self.end(ToldToEnd::Unwanted).await,
        }
    }

    fn stop_timeout(&self) -> Duration {
        self.shared.in_force().settings.fleet.stop_timeout
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

    async fn end(&mut self, why: ToldToEnd) {
        if self.ending.is_none() {
            self.ending = Some(why);
            if let Some(connection) = &mut self.connection {
                let _ = connection.end(STEP_ENDING).await;
            }
        }
    }

    /// What the kernel hears of the end.
    pub async fn outcome(&mut self, gone: Gone) -> Happened {
        let exit = match gone {
            Gone::Exit(exit) => exit,
            Gone::Lost | Gone::Left => {
                let usage = self.reader.end(&Exit::unknown()).usage();
                return failed("the keeper of the step was lost", StepFailure::Lost, usage);
            }
        };
        let ended = self.reader.end(&exit);
        let usage = ended.usage();
        // Whatever it says of itself: what it made is taken in first.
        let tip = loop {
            let Some(task) = self.step.file.is_for.task() else { break None };
            match tip::bring_in(self.shared, task).await {
                Ok(tip) => break tip,
                Err(error) if self.shared.waits_for_room(&error).await => {}
                Err(error) => return failed(error.to_string(), StepFailure::Failed, usage),
            }
        };
        let limit = self.shared.in_force().settings.fleet.step_timeout.as_secs();
        match (ended, exit.reason) {
            (Ended::Finished { done, output, usage }, _) => {
                let ending = if done { StepEnding::Done } else { StepEnding::NotDone };
                let tree = match (self.step.file.is_for.task(), &tip) {
                    (Some(task), Some(tip)) if !done => tip::state_of_tree(self.shared, task, tip).await,
                    _ => None,
                };
                Happened::StepFinished { ending, output, tip, tree, usage }
            }
            (Ended::Spent { what, said, usage }, _) => {
                let ending = match what {
                    Spent::Turns => StepEnding::OutOfTurns,
                    Spent::Money => StepEnding::OutOfMoney,
                };
                Happened::StepFinished { ending, output: said, tip, tree: None, usage }
            }
            (_, reason @ (Reason::Processes(_) | Reason::Memory(_))) => {
                let passed = endings::passed(&reason).unwrap_or_default();
                let error = format!("the agent {passed} and was ended; raise the limit, or have it use less");
                failed(error, StepFailure::Limit, usage)
            }
            (_, Reason::TimedOut) => {
                failed(format!("the step took longer than {limit} s"), StepFailure::TimedOut, usage)
            }
            _ if self.ending == Some(ToldToEnd::Silent) => {
                failed("the agent said nothing for too long", StepFailure::TimedOut, usage)
            }
            // We ended it because the fleet stops: the next step goes on from here.
            (_, Reason::Ended) if self.interrupted.is_some() || self.ending.is_none() => cut_off(tip, usage),
            (Ended::Failed { .. }, _) if self.interrupted.is_some() => cut_off(tip, usage),
            (_, Reason::Alone) => failed("the step was alone for too long", StepFailure::Lost, usage),
            // In a room nothing was done that must be kept: with room on the disk it is said again.
            (Ended::Failed { error, usage, .. }, _)
                if self.step.file.is_for.task().is_none() && (self.was_full || self.shared.has_no_room()) =>
            {
                self.shared.waits_for_room(&error).await;
                cut_off(None, usage)
            }
            (Ended::Failed { error, why, usage }, _) => failed(error, why, usage),
            (Ended::Outage { service_error, resets_at, retry_after, refused, usage }, _) => {
                let agent = &self.step.file.agent;
                let service = self.shared.world().config.service_of(agent);
                // What the service asks for counts only where it is longer than we wait by ourselves.
                let poll = u64::from(self.shared.world().config.limits.health_poll_seconds) * 1000;
                let after = retry_after.filter(|wait| *wait > poll);
                let after = after.and_then(|wait| base::clock::now().checked_add(i64::try_from(wait).ok()?));
                let error = match refused {
                    true => format!("{service_error}; {}", credentials(self.shared, agent)),
                    false => service_error,
                };
                let error = Some(SmolStr::new(error));
                Happened::Outage { service, resets_at: resets_at.or(after), error, refused, usage }
            }
        }
    }

    pub fn tell_gone(&mut self, what: &Happened) {
        let usage = match what {
            Happened::StepFinished { usage, .. }
            | Happened::StepFailed { usage, .. }
            | Happened::Outage { usage, .. } => *usage,
            _ => Usage::default(),
        };
        // Whoever comes after the end finds the folder.
        while let Ok(word) = self.words.try_recv() {
            match word {
                StepCommand::End(tell) => self.gone.extend(tell),
                StepCommand::Finish(tell) => self.gone.push(tell),
                StepCommand::Answer { done, .. } => drop(done.send(())),
                StepCommand::Tell { heard, .. } => drop(heard.send(false)),
                StepCommand::Interrupt => {}
            }
        }
        for tell in self.gone.drain(..) {
            let _ = tell.send(usage);
        }
    }
}

/// Pieces of what the agent writes, on their way to the file of its run.
struct Spoken {
    words: Option<Words>,
    waiting: Vec<Piece>,
    bytes: usize,
    /// The line that brought the last piece, and how many it has brought.
    line: (u64, usize),
}

impl Spoken {
    /// Where the file cannot be opened, readers are given nothing of it: the transcript has it all.
    fn open(shared: &Shared, step: &Step) -> Spoken {
        // What is said in a room is read there.
        let words = step.file.is_for.run().and_then(|run| {
            let words = Words::open(&shared.layout.spoken(), run, &step.file.effect);
            words.inspect_err(|error| not_put_down(shared, error)).ok()
        });
        Spoken { words, waiting: Vec::new(), bytes: 0, line: (0, 0) }
    }

    fn hear(&mut self, at: u64, text: String) {
        if self.line.0 != at {
            self.line = (at, 0);
        }
        let (before, words) = (self.line.1, self.words.as_ref());
        self.line.1 += 1;
        if words.is_some_and(|words| !words.has(at, before)) && self.bytes < PIECES_BYTES_MAX {
            self.bytes += text.len();
            self.waiting.push(Piece { at, text });
        }
    }

    /// Writes down what waits. Where the disk does not take it, it waits on.
    fn put_down(&mut self, shared: &Shared) {
        let Some(words) = self.words.as_mut().filter(|_| !self.waiting.is_empty()) else { return };
        match shared.handle.spoken().add(words, &self.waiting, || shared.world()) {
            Ok(()) => (self.waiting, self.bytes) = (Vec::new(), 0),
            Err(error) => not_put_down(shared, &error),
        }
    }
}

fn not_put_down(shared: &Shared, error: &std::io::Error) {
    shared.notice_once(format!("readers of streams do not see what agents write: {error}"));
}

/// What to do about credentials that a service does not accept, by what is passed on to the agent.
fn credentials(shared: &Shared, agent: &AgentName) -> String {
    let in_force = shared.in_force();
    let Some(settings) = in_force.settings.agents.get(agent) else { return String::new() };
    match settings.adapter.adapter().login() {
        None => format!("see to the credentials of agent `{agent}`"),
        Some(login) => login.refused(agent.as_str(), &settings.env, &project::credentials::is_set),
    }
}
