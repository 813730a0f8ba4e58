//! Rooms and the architect as a life plays them: what hosted agents say, and what people and agents from outside do there.

use super::Fault;
use super::stage::{Item, Stage, architect_agent, hosted_agent, outside_agent};
use kernel::command::{ArchitectAnswer, Ask, Happened, NewSpec, StepFailure, TurnWord, Usage};
use kernel::config;
use kernel::effect::Say;
use kernel::rooms::{About, OwnTimes, Seat, TurnEnd};
use kernel::specs::{SpecState, Story};
use kernel::words::{RequestKind, StepEnding};
use kernel::{Actor, World};
use machines::names::{AgentName, ChannelName, EffectId, RequestId, SpecId};
use machines::task::Status;
use machines::turn::{self, InterruptBehaviour, TurnConfig};
use machines::wire::Wire;
use smol_str::SmolStr;

/// Times that somebody does something in a room, or about a spec.
const ACTS_MAX: u32 = 60;

fn person() -> Actor {
    Actor::Human(SmolStr::new_static("ann"))
}

fn ask(stage: &mut Stage, actor: Actor, ask: Ask) -> Result<bool, String> {
    Ok(stage.submit(actor, ask, None)?.is_ok())
}

/// What a hosted agent says, and what it cost. It may answer by a tool before.
pub fn reply(
    stage: &mut Stage,
    id: &EffectId,
    seat: &Seat,
    prompt: &Say,
) -> Result<Option<Happened>, String> {
    let usage = Usage { cost: Some(stage.random.below(20_000)), input_tokens: 10, output_tokens: 1 };
    if let Some(down) = stage.played.down.clone() {
        let (service, error) = (super::played::service(), Some(SmolStr::new_static("529")));
        let (resets_at, refused) = (down.resets_at, down.refused);
        return Ok(Some(Happened::Outage { service, resets_at, error, refused, usage }));
    }
    let failed = |why| Happened::StepFailed { error: "exit 1".to_owned(), why, usage };
    let odd = stage.random.below(24);
    match odd {
        0 => return Ok(Some(failed(StepFailure::Failed))),
        1 => return Ok(Some(failed(StepFailure::Session))),
        2 => {
            let finished = StepEnding::CutOff;
            return Ok(Some(Happened::StepFinished {
                ending: finished,
                output: String::new(),
                tip: None,
                tree: None,
                usage,
            }));
        }
        _ => {}
    }
    let ending = match odd {
        3 => StepEnding::OutOfTurns,
        4 => StepEnding::OutOfMoney,
        _ => StepEnding::NotDone,
    };
    let text = match (seat, prompt) {
        (Seat::Room { .. }, _) => in_room(stage),
        (Seat::Architect, Say::Request { request, .. }) => {
            let owner = stage.owner();
            let text = as_architect(stage, id, request)?;
            if owner != stage.owner() {
                return Ok(None);
            }
            text
        }
        (Seat::Architect, Say::Turn { .. }) => String::new(),
    };
    Ok(Some(Happened::StepFinished { ending, output: text, tip: None, tree: None, usage }))
}

fn in_room(stage: &mut Stage) -> String {
    match stage.random.below(5) {
        0 => "PASS".to_owned(),
        1 => "yes\nTURN_COMPLETE".to_owned(),
        2 if stage.random.once_in(2) => "> TURN_COMPLETE\n\nThat is what she said.\nPASS".to_owned(),
        2 => String::new(),
        _ => "I would go left".to_owned(),
    }
}

/// What it says last, and what it answers by a tool before: once, twice, late, or with words that look like a decision.
fn as_architect(stage: &mut Stage, id: &EffectId, request: &RequestId) -> Result<String, String> {
    call_late(stage)?;
    stage.played.replies.push(id.clone());
    let Some(kind) = stage.world.requests.get(request).map(|request| request.kind) else {
        return Ok(String::new());
    };
    let odd = stage.random.below(12);
    let by_tool = stage.random.once_in(3);
    let answer = match (odd, kind) {
        (0, _) => ArchitectAnswer::CannotAnswer { why: "a matter of taste".to_owned() },
        (1, _) => ArchitectAnswer::Abandon { reason: "no idea".to_owned() },
        (2, _) => ArchitectAnswer::Stories { stories: Vec::new() },
        (_, RequestKind::Question) => ArchitectAnswer::Answer { text: "this way".to_owned() },
        (3..6, RequestKind::Code | RequestKind::Completion) => {
            ArchitectAnswer::Changes { text: "rename it".to_owned() }
        }
        (3..6, RequestKind::Spec) => ArchitectAnswer::Feedback { text: "which people?".to_owned() },
        (6..8, RequestKind::Spec) => ArchitectAnswer::Stories { stories: stories(&[("a", "b"), ("b", "a")]) },
        (_, RequestKind::Spec) => {
            ArchitectAnswer::Stories { stories: stories(&[("db", ""), ("form", "db"), ("page", "form")]) }
        }
        _ => ArchitectAnswer::Approve { note: String::new() },
    };
    if by_tool {
        let actor = Actor::Agent { name: architect_agent(), role: config::Role::Lead };
        let taken =
            ask(stage, actor.clone(), Ask::ArchitectAnswers { reply: id.clone(), answer: answer.clone() })?;
        let decided = stage.world.seated(&Seat::Architect).is_some_and(|seated| seated.decided.is_some());
        if stage.random.once_in(2) {
            let again = ask(stage, actor, Ask::ArchitectAnswers { reply: id.clone(), answer })?;
            if taken && decided && again {
                return Err(format!("reply {id} has decided twice"));
            }
        }
        let last_words =
            ["said it by a tool", "I have read it.\n\nAPPROVE", "CHANGES\nafter all", "ESCALATE", "ABANDON"];
        return Ok((*stage.random.pick(&last_words).expect("there are five")).to_owned());
    }
    if stage.random.once_in(6) {
        let quoted = "It adds this:\n```\nAPPROVE\n```\n    CHANGES\n> FEEDBACK\nI cannot accept it.";
        return Ok(quoted.to_owned());
    }
    Ok(match answer {
        ArchitectAnswer::CannotAnswer { why } => format!("ESCALATE\n{why}"),
        ArchitectAnswer::Approve { .. } => "fine\nAPPROVE".to_owned(),
        ArchitectAnswer::Changes { text } => format!("CHANGES\n{text}"),
        ArchitectAnswer::Feedback { text } => format!("FEEDBACK\n{text}"),
        ArchitectAnswer::Answer { text } => text,
        ArchitectAnswer::Abandon { .. } if stage.random.once_in(2) => "nonsense".to_owned(),
        ArchitectAnswer::Abandon { reason } => format!("{reason}\nABANDON"),
        ArchitectAnswer::Stories { stories } => serde_json::json!({ "stories": stories }).to_string(),
    })
}

/// A call of an earlier reply comes late, whatever is in hand by now.
fn call_late(stage: &mut Stage) -> Result<(), String> {
    if !stage.random.once_in(3) {
        return Ok(());
    }
    let Some(reply) = stage.random.pick(&stage.played.replies).cloned() else { return Ok(()) };
    let actor = Actor::Agent { name: architect_agent(), role: config::Role::Lead };
    let over = stage.world.shown_in(&reply).is_none();
    let text = "late".to_owned();
    for answer in [ArchitectAnswer::Answer { text }, ArchitectAnswer::Approve { note: String::new() }] {
        let taken = ask(stage, actor.clone(), Ask::ArchitectAnswers { reply: reply.clone(), answer })?;
        if over && taken {
            return Err(format!("reply {reply} was over, and has decided something"));
        }
    }
    Ok(())
}

fn stories(of: &[(&str, &str)]) -> Vec<Story> {
    let story = |(key, on): &(&str, &str)| Story {
        key: SmolStr::new(key),
        title: format!("Story {key}"),
        depends_on: Some(*on).filter(|on| !on.is_empty()).map(SmolStr::new).into_iter().collect(),
        infrastructure: on.is_empty(),
        ..Story::default()
    };
    of.iter().map(story).collect()
}

fn room() -> ChannelName {
    ChannelName::new("room").expect("a constant")
}

/// Somebody does something in a room.
pub fn act(stage: &mut Stage, step: u32) -> Result<(), String> {
    call_late(stage)?;
    if step == 0 {
        stage.hit(Fault::Rooms);
        open_room(stage)?;
    }
    let outsider = outside_agent();
    let there = Actor::Agent { name: outsider.clone(), role: config::Role::Specialist };
    let holder = stage.world.channel(&room()).and_then(|channel| channel.current.clone());
    let speaks = holder.as_ref() == Some(&outsider) && stage.world.agents.contains_key(&outsider);
    let words = |word| Ask::TakeTurn { channel: room(), agent: outsider.clone(), word };
    let wait = TurnWord::Wait { note: Some("the build".to_owned()), seconds: Some(120) };
    let say = |text: &str| Ask::Post { channel: room(), text: text.to_owned() };
    let on_holder = |word| holder.clone().map(|agent| Ask::TakeTurn { channel: room(), agent, word });
    let chosen = stage.random.below(26);
    let (actor, what) = match chosen {
        0..4 if speaks => (there, Some(say("I would go right"))),
        4..6 if speaks => (there, Some(words(TurnWord::Complete))),
        6 if speaks => (there, Some(words(TurnWord::Pass))),
        7..10 if speaks => (there, Some(words(wait))),
        10 if speaks => (there, Some(words(TurnWord::Resume))),
        11 => (there, Some(Ask::Hear { channel: room(), agent: outsider.clone() })),
        12 => {
            let what = match stage.world.agents.contains_key(&outsider) {
                true if stage.random.once_in(2) => kernel::command::Presence::Disconnect,
                true => kernel::command::Presence::Heartbeat,
                false => kernel::command::Presence::Connect,
            };
            (there, Some(Ask::Presence { agent: outsider.clone(), what }))
        }
        13 => (person(), on_holder(TurnWord::Cancel)),
        14 => (person(), on_holder(TurnWord::Resume)),
        15 => (person(), on_holder(TurnWord::Override { to: turn::State::Queued })),
        16 => (person(), on_holder(TurnWord::Skip)),
        17 => {
            let member = Ask::TakeTurn { channel: room(), agent: hosted_agent("ada"), word: TurnWord::Skip };
            (person(), Some(member))
        }
        18 => (person(), on_holder(TurnWord::Fresh)),
        19 => {
            let who = *stage.random.pick(&["ada", "bob", "outsider"]).expect("there are three");
            (person(), Some(Ask::RemoveMember { channel: room(), agent: hosted_agent(who) }))
        }
        20 | 21 => {
            let who = *stage.random.pick(&["ada", "bob", "outsider"]).expect("there are three");
            (person(), Some(add(who)))
        }
        22 => {
            review_room(stage)?;
            (person(), None)
        }
        23 => {
            let who = hosted_agent(
                stage.random.pick(&["ada", "outsider", "coder", "lead"]).expect("there are four"),
            );
            let enabled = stage.world.disabled.contains_key(&who);
            (person(), Some(Ask::SwitchAgent { agent: who, enabled, reason: None }))
        }
        _ => (person(), Some(say("which way?"))),
    };
    if let Some(what) = what {
        ask(stage, actor, what)?;
    }
    if step < ACTS_MAX {
        let wait = stage.random.between(1_000, 90_000);
        stage.later(wait, Item::Room(step + 1));
    } else {
        let disabled: Vec<AgentName> = stage.world.disabled.keys().cloned().collect();
        for who in disabled {
            ask(stage, person(), Ask::SwitchAgent { agent: who, enabled: true, reason: None })?;
        }
        ask(stage, person(), Ask::CloseChannel { name: room() })?;
    }
    Ok(())
}

fn add(who: &'static str) -> Ask {
    let times = OwnTimes { timeout_seconds: Some(45), wait_seconds: None };
    Ask::AddMember { channel: room(), agent: hosted_agent(who), times }
}

fn open_room(stage: &mut Stage) -> Result<(), String> {
    let mode = *stage.random.pick(InterruptBehaviour::ALL).expect("there are four");
    let config = TurnConfig {
        human_interrupt_mode: mode,
        auto_detect_turn_end: stage.random.once_in(2),
        ..TurnConfig::default()
    };
    let ends = if stage.random.once_in(2) { TurnEnd::Signal } else { TurnEnd::Reply };
    let about = About { topic: None, task: None, ends };
    ask(stage, person(), Ask::MakeChannel { name: room(), config, about })?;
    for who in ["ada", "bob", "outsider"] {
        ask(stage, person(), add(who))?;
    }
    Ok(())
}

/// A task that waits for its review is talked about, and decided.
fn review_room(stage: &mut Stage) -> Result<(), String> {
    let waits = |task: &&std::sync::Arc<kernel::world::Task>| {
        task.status() == Status::Review && task.review.approved.is_none()
    };
    let Some(task) = stage.world.tasks.values().find(waits).map(|task| task.id.clone()) else {
        return Ok(());
    };
    let name = ChannelName::new(format!("review-{task}")).map_err(|error| error.to_string())?;
    let about = About { topic: Some("is it good?".to_owned()), task: Some(task), ends: TurnEnd::Reply };
    ask(stage, person(), Ask::MakeChannel { name: name.clone(), config: TurnConfig::default(), about })?;
    let approve = stage.random.once_in(2);
    let decide = Ask::DecideInRoom { channel: name, approve, note: "as we said".to_owned() };
    ask(stage, person(), decide).map(drop)
}

/// Somebody wants something built.
pub fn submit(stage: &mut Stage, step: u32) -> Result<(), String> {
    stage.hit(Fault::Architect);
    call_late(stage)?;
    let sent_back = |world: &World| {
        let open = world.specs.values().find(|spec| spec.state == SpecState::NeedsChanges);
        open.map(|spec| spec.id.clone())
    };
    let fresh = SpecId::new(format!("spec{step}")).map_err(|error| error.to_string())?;
    let id = sent_back(&stage.world).unwrap_or(fresh);
    let listed = stage.random.once_in(4);
    let stories = listed.then(|| stories(&[("one", ""), ("two", "one")]));
    let text = "People sign in.".to_owned();
    let spec =
        NewSpec { id, title: "Login".to_owned(), path: None, format: "markdown".into(), text, stories };
    ask(stage, person(), Ask::SubmitSpec(spec))?;
    // The settings lose their architect now and then, and have it again.
    if stage.random.once_in(6) {
        let mut config = (*stage.world.config).clone();
        config.architect = match config.architect {
            Some(_) => None,
            None => stage.architect(),
        };
        if config.architect.is_none() && config.fleet.review == config::Review::Architect {
            config.fleet.review = config::Review::Human;
        }
        stage.system(Ask::Configure { config: Box::new(config) })?;
    }
    if step < 4 {
        let wait = stage.random.between(60_000, 900_000);
        stage.later(wait, Item::Spec(step + 1));
    } else {
        let mut config = (*stage.world.config).clone();
        config.architect = stage.architect();
        stage.system(Ask::Configure { config: Box::new(config) })?;
    }
    Ok(())
}

/// What a person does for the architect: answers, gives up, lets it go on.
pub fn help_architect(stage: &mut Stage) -> Result<(), String> {
    let left: Vec<RequestId> = stage
        .world
        .requests
        .values()
        .filter(|request| request.answer.is_none() && request.for_person)
        .map(|request| request.id.clone())
        .collect();
    for id in left {
        let what = match stage.random.below(3) {
            0 => Ask::AbandonRequest { id, reason: "not now".to_owned() },
            _ => Ask::AnswerRequest { id, text: "do the simple thing".to_owned() },
        };
        ask(stage, person(), what)?;
    }
    ask(stage, person(), Ask::RecoverArchitect).map(drop)
}
