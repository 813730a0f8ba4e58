//! The architect at work: specs, questions and reviews through the kernel, with an agent that says what a script says.

use super::table::*;
use crate::command::*;
use crate::effect::{Effect, Say};
use crate::event::Event;
use crate::specs::{SpecState, Story};
use crate::words::{RequestKind, StepEnding};
use crate::{Actor, Timer};
use machines::names::{AgentName, RequestId, ServiceName, SpecId};
use machines::task::{Payload, Status};
use serde_json::json;

pub(super) const ALL: &[fn()] = &[
    an_architect_that_runs_out_of_turns_has_not_answered_and_is_asked_again,
    a_spec_becomes_stories_and_is_done_when_they_have_landed,
    a_set_of_stories_that_goes_round_is_sent_back_three_times_and_then_to_a_person,
    a_spec_that_is_not_clear_goes_back_to_its_author,
    a_question_is_answered_by_the_architect_or_by_the_person_whom_it_asks,
    what_a_person_answers_while_there_is_no_architect_waits_for_the_next_one,
    nobody_who_answers_in_time_is_an_error_that_keeps_everything,
    the_architect_reviews_the_tip_that_it_was_shown_and_no_other,
    requests_are_served_in_order_of_arrival,
    an_outage_suspends_the_architect_and_its_end_restores_it,
];

struct Studio {
    table: Table,
}

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

impl Studio {
    fn new() -> Studio {
        Studio::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut crate::Config)) -> Studio {
        let mut table = Table::with(|config| {
            let agent = name("lead");
            let of_lead = json!({"service": "model", "role": "lead"});
            config.agents.insert(agent.clone(), serde_json::from_value(of_lead).unwrap());
            config.architect =
                Some(crate::config::Architect { agent, escalation_seconds: 7200, raises_budgets: false });
            config.fleet.review = crate::config::Review::Architect;
            change(config);
        });
        table.ann(Ask::StartFleet { workers: 1 }).unwrap();
        Studio { table }
    }

    fn submit(&mut self, stories: Option<Vec<Story>>) -> Result<Reply, Refusal> {
        self.table.ann(Ask::SubmitSpec(NewSpec {
            id: SpecId::new("login").unwrap(),
            title: "Login".to_owned(),
            path: None,
            format: "markdown".into(),
            text: "People sign in.".to_owned(),
            stories,
        }))
    }

    /// What came of the one effect of this kind.
    fn comes(&mut self, kind: &str, what: Happened) -> Vec<Event> {
        let found = self.table.world.effects.iter().find(|(_, effect)| effect.kind() == kind);
        let effect = found.unwrap_or_else(|| panic!("no {kind} is under way: {}", self.stands())).0.clone();
        self.table.commit(Actor::System, Ask::Outcome(Outcome { effect, what }), None).unwrap().events
    }

    fn ready(&mut self) {
        self.comes("prepare_seat", Happened::TreeReady { tip: "main1".into() });
    }

    fn says(&mut self, text: &str) {
        self.says_as(StepEnding::NotDone, text);
    }

    fn says_as(&mut self, ending: StepEnding, text: &str) {
        let usage = Usage { cost: Some(5), input_tokens: 1, output_tokens: 1 };
        let output = text.to_owned();
        self.comes("start_reply", Happened::StepFinished { ending, output, tip: None, usage });
    }

    fn answers(&mut self, answer: ArchitectAnswer) -> Result<Reply, Refusal> {
        let actor = Actor::Agent { name: name("lead"), role: crate::config::Role::Lead };
        self.table.tell(actor, Ask::ArchitectAnswers { answer })
    }

    fn stands(&self) -> &'static str {
        self.table.world.architect.as_ref().map_or("nowhere", |architect| architect.name())
    }

    /// The request that its agent is asked about now.
    fn asked(&self) -> Option<RequestId> {
        self.table.world.effects.values().find_map(|effect| match effect.as_ref() {
            Effect::StartReply { prompt: Say::Request { request }, .. } => Some(request.clone()),
            _ => None,
        })
    }

    fn spec(&self) -> &crate::specs::Spec {
        &self.table.world.specs[&SpecId::new("login").unwrap()]
    }

    fn rings(&mut self, timer: &Timer) {
        let effect = self.table.world.timers[timer].clone();
        self.table.now = self.table.world.effects[&effect].due().unwrap().max(self.table.now);
        let what = Happened::TimerDue;
        self.table.tell(Actor::System, Ask::Outcome(Outcome { effect, what })).unwrap();
    }

    fn status(&self, id: &str) -> String {
        self.table.world.task(&task(id)).unwrap().status().to_string()
    }
}

/// What a waiting list needs: an architect that stands in ERROR.
pub(super) fn one_that_gave_up() -> Table {
    let mut studio = Studio::new();
    studio.submit(None).unwrap();
    studio.comes("prepare_seat", Happened::TreeFailed { error: "no disk".to_owned() });
    studio.table
}

const TWO: &str = r#"```json
{"stories": [{"key": "form", "title": "The form", "acceptance": ["it has two fields"], "dependsOn": ["db"]},
             {"key": "db", "title": "The table", "infrastructure": true}]}
```"#;

/// What somebody says who is not finished is no answer, whatever it looks like.
#[test]
fn an_architect_that_runs_out_of_turns_has_not_answered_and_is_asked_again() {
    let mut studio = Studio::new();
    studio.submit(None).unwrap();
    studio.ready();
    for tried in 1..=2 {
        studio.says_as(StepEnding::OutOfTurns, TWO);
        assert_eq!((studio.stands(), studio.spec().state), ("REQUEST", SpecState::Submitted));
        let asked = studio.asked().expect("it is asked again");
        assert_eq!(studio.table.world.requests[&asked].tries, tried);
    }
    studio.says_as(StepEnding::OutOfMoney, TWO);
    assert_eq!((studio.stands(), studio.asked()), ("ESCALATED", None), "the third time a person is asked");
}

#[test]
fn a_spec_becomes_stories_and_is_done_when_they_have_landed() {
    let mut studio = Studio::new();
    studio.submit(None).unwrap();
    assert_eq!(studio.stands(), "SETUP");
    studio.ready();
    assert_eq!(studio.stands(), "REQUEST");
    studio.says(TWO);
    assert_eq!((studio.stands(), studio.spec().state), ("MONITORING", SpecState::Approved));
    let form = studio.table.world.task(&task("login-1")).unwrap();
    assert_eq!(form.body, "Acceptance criteria:\n- it has two fields");
    assert_eq!(form.depends_on, [task("login-2")]);
    assert_eq!(
        studio.status("login-2"),
        "IN_PROGRESS",
        "what waits for nothing is begun, infrastructure first"
    );
    let table = std::mem::replace(&mut studio.table, Table::new(config()));
    studio.table = check(table, "tree login-2\nturn login-2\ndone login-2\ngreen login-2");
    assert_eq!(studio.status("login-2"), "REVIEW");
    assert_eq!(studio.stands(), "REQUEST");
    studio.says("it is good\nAPPROVE");
    let table = std::mem::replace(&mut studio.table, Table::new(config()));
    studio.table = check(table, "merge-green login-2\nmain-moved login-2");
    assert_eq!(studio.status("login-2"), "DONE");
    assert_eq!(studio.stands(), "MONITORING");
    assert_eq!(studio.status("login-1"), "IN_PROGRESS", "its landing releases what waited for it");
    let cancel = Payload { reason: None, ..Payload::default() };
    studio.table.move_task(ann(), "login-1", Status::Canceled, cancel).unwrap();
    assert_eq!((studio.stands(), studio.spec().state), ("DONE", SpecState::Done));
    let again = studio.submit(None).unwrap_err();
    assert_eq!(again.code, "EXISTS");
}

#[test]
fn a_set_of_stories_that_goes_round_is_sent_back_three_times_and_then_to_a_person() {
    let mut studio = Studio::new();
    studio.submit(None).unwrap();
    studio.ready();
    let round = r#"{"stories": [{"key": "a", "title": "A", "dependsOn": ["b"]}, {"key": "b", "title": "B", "dependsOn": ["a"]}]}"#;
    studio.says(round);
    let request = studio.asked().unwrap();
    let told = |studio: &Studio| studio.table.world.requests[&request].notes.back().cloned().unwrap();
    assert_eq!(told(&studio), "the dependencies go round: a → b → a");
    let stories: Vec<Story> = serde_json::from_value(json!([])).unwrap();
    let reply = studio.answers(ArchitectAnswer::Stories { stories }).unwrap();
    assert_eq!(reply.code.as_deref(), Some("NOT_ACCEPTED"));
    studio.says("looks fine to me");
    assert_eq!(studio.stands(), "ESCALATED");
    assert!(studio.table.world.tasks.is_empty(), "nothing of it is on the board");
    let text = "leave B out".to_owned();
    studio.table.ann(Ask::AnswerRequest { id: request.clone(), text }).unwrap();
    assert_eq!((studio.stands(), studio.asked()), ("REQUEST", Some(request.clone())));
    assert_eq!(told(&studio), "human:ann: leave B out");
    let out_of_place = studio.answers(ArchitectAnswer::Approve { note: String::new() }).unwrap();
    assert_eq!(out_of_place.code.as_deref(), Some("NOT_ACCEPTED"));
}

#[test]
fn a_spec_that_is_not_clear_goes_back_to_its_author() {
    let mut studio = Studio::new();
    studio.submit(None).unwrap();
    studio.ready();
    studio.answers(ArchitectAnswer::Feedback { text: "Which people?".to_owned() }).unwrap();
    assert_eq!((studio.stands(), studio.spec().state), ("WAITING", SpecState::NeedsChanges));
    let twice = studio.answers(ArchitectAnswer::Feedback { text: "again".to_owned() }).unwrap_err();
    assert_eq!(twice.code, "NOTHING_ASKED");
    studio.submit(None).unwrap();
    assert_eq!((studio.stands(), studio.spec().version), ("SETUP", 2));
    let stories = Studio::new().submit(Some(vec![Story {
        key: "a".into(),
        title: "A".to_owned(),
        ..Story::default()
    }]));
    stories.unwrap();
    let mut alone = Table::new(config());
    let spec = NewSpec {
        id: SpecId::new("x").unwrap(),
        title: "X".to_owned(),
        path: None,
        format: "markdown".into(),
        text: "words".to_owned(),
        stories: None,
    };
    assert_eq!(alone.ann(Ask::SubmitSpec(spec)).unwrap_err().code, "NO_ARCHITECT");
}

fn at_work() -> Studio {
    let mut studio = Studio::new();
    let table = std::mem::replace(&mut studio.table, Table::new(config()));
    studio.table = check(table, "ticket t1\ntree\nturn");
    studio
}

fn asks(studio: &mut Studio, text: &str) -> RequestId {
    let run = machines::names::RunId::new("t1.1").unwrap();
    let actor = Actor::Agent { name: name("coder"), role: crate::config::Role::Specialist };
    let ask =
        Ask::MakeRequest { kind: RequestKind::Question, task: None, run: Some(run), text: text.to_owned() };
    RequestId::new(studio.table.tell(actor, ask).unwrap().id.unwrap()).unwrap()
}

#[test]
fn a_question_is_answered_by_the_architect_or_by_the_person_whom_it_asks() {
    let mut studio = at_work();
    let first = asks(&mut studio, "tabs or spaces?");
    studio.ready();
    studio.says("spaces");
    let given = |studio: &Studio, id: &RequestId| {
        studio.table.world.requests[id].answer.clone().map(|answer| (answer.by.to_string(), answer.text))
    };
    assert_eq!(given(&studio, &first), Some(("agent:lead".to_owned(), "spaces".to_owned())));
    assert_eq!(studio.stands(), "WAITING");
    let second = asks(&mut studio, "may it cost more?");
    studio.ready();
    studio.says("ESCALATE: that is for a person");
    assert_eq!(studio.stands(), "ESCALATED");
    studio.table.ann(Ask::AnswerRequest { id: second.clone(), text: "no".to_owned() }).unwrap();
    assert_eq!(given(&studio, &second), Some(("human:ann".to_owned(), "no".to_owned())));
    assert_eq!(studio.stands(), "WAITING");
    let third = asks(&mut studio, "and now?");
    studio.table.ann(Ask::AnswerRequest { id: third.clone(), text: "go on".to_owned() }).unwrap();
    studio.ready();
    assert_eq!((studio.stands(), studio.asked()), ("WAITING", None), "a person was faster");
}

/// The settings lose their architect while a person is asked: what the person says is kept for the next one, which goes on.
#[test]
fn what_a_person_answers_while_there_is_no_architect_waits_for_the_next_one() {
    let mut studio = Studio::new();
    studio.submit(None).unwrap();
    studio.ready();
    studio.says("ESCALATE: which people?");
    let id = studio.table.world.architect_queue.front().unwrap().clone();
    let with = (*studio.table.world.config).clone();
    let mut without = with.clone();
    (without.architect, without.fleet.review) = (None, crate::config::Review::Human);
    let set = |studio: &mut Studio, config: crate::Config| {
        studio.table.tell(Actor::System, Ask::Configure { config: Box::new(config) }).unwrap();
    };
    set(&mut studio, without);
    studio.table.ann(Ask::AnswerRequest { id: id.clone(), text: "all of them".to_owned() }).unwrap();
    assert_eq!((studio.asked(), studio.spec().state), (None, SpecState::Submitted));
    set(&mut studio, with);
    assert_eq!(studio.asked(), Some(id.clone()), "it goes on with what the person said");
    let notes = &studio.table.world.requests[&id].notes;
    assert!(notes.iter().any(|note| note.contains("all of them")), "{notes:?}");
}

#[test]
fn nobody_who_answers_in_time_is_an_error_that_keeps_everything() {
    let mut studio = at_work();
    let id = asks(&mut studio, "which?");
    studio.ready();
    studio.answers(ArchitectAnswer::CannotAnswer { why: "unclear".to_owned() }).unwrap();
    studio.rings(&Timer::Escalation);
    assert_eq!(studio.stands(), "ERROR");
    assert!(
        studio.table.world.is_open_request(&studio.table.world.requests[&id]),
        "it stays open for a person"
    );
    studio.table.ann(Ask::RecoverArchitect).unwrap();
    assert_eq!(studio.stands(), "WAITING");
    assert_eq!(studio.table.ann(Ask::RecoverArchitect).unwrap_err().code, "NOT_IN_ERROR");
    studio.table.ann(Ask::AnswerRequest { id: id.clone(), text: "this one".to_owned() }).unwrap();
    assert!(studio.table.world.requests[&id].answer.is_some());
    let spec = studio.submit(None).unwrap();
    assert_eq!(spec.id.as_deref(), Some("login"));
    studio.ready();
    studio.says("FEEDBACK");
    studio.says("ESCALATE: I do not know");
    let request = studio.table.world.architect_queue.front().unwrap().clone();
    studio.table.ann(Ask::AbandonRequest { id: request, reason: "not now".to_owned() }).unwrap();
    assert_eq!((studio.stands(), studio.spec().state), ("ERROR", SpecState::NeedsChanges));
    studio.table.ann(Ask::StopFleet).unwrap();
    studio.table.ann(Ask::StartFleet { workers: 1 }).unwrap();
    assert_eq!(studio.stands(), "WAITING");
}

#[test]
fn the_architect_reviews_the_tip_that_it_was_shown_and_no_other() {
    let mut studio = at_work();
    let table = std::mem::replace(&mut studio.table, Table::new(config()));
    studio.table = check(table, "done\ngreen");
    studio.ready();
    let first = studio.asked().unwrap();
    assert_eq!(studio.table.world.requests[&first].kind, RequestKind::Code);
    studio.answers(ArchitectAnswer::Changes { text: "rename it".to_owned() }).unwrap();
    assert_eq!(studio.status("t1"), "IN_PROGRESS");
    assert_eq!(studio.table.world.task(&task("t1")).unwrap().machine.review_cycles, 1);
    let table = std::mem::replace(&mut studio.table, Table::new(config()));
    studio.table = check(table, "tree\nturn\ndone\ngreen");
    // Its first reply is still being ended or over; the second request is another.
    studio.says("whatever");
    studio.ready();
    let second = studio.asked().unwrap();
    assert_ne!(first, second);
    studio.table.ann(Ask::Approve { id: task("t1"), tip: None, note: "mine".to_owned() }).unwrap();
    assert_eq!(
        studio.answers(ArchitectAnswer::Approve { note: String::new() }).unwrap_err().code,
        "NOTHING_ASKED"
    );
    assert_eq!(studio.table.world.task(&task("t1")).unwrap().approved.as_ref().unwrap().by, "human:ann");
}

#[test]
fn requests_are_served_in_order_of_arrival() {
    let mut studio = at_work();
    let first = asks(&mut studio, "one?");
    studio.submit(None).unwrap();
    let second = studio.table.world.architect_queue.back().unwrap().clone();
    studio.ready();
    assert_eq!(studio.asked(), Some(first));
    studio.says("yes");
    studio.ready();
    assert_eq!(studio.asked(), Some(second));
    let crash = Happened::StepFailed {
        error: "exit 1".to_owned(),
        why: StepFailure::Failed,
        usage: Usage::default(),
    };
    for _ in 0..3 {
        studio.comes("start_reply", crash.clone());
    }
    assert_eq!(studio.stands(), "ESCALATED", "an architect that fails asks a person");
}

/// Probed: the architect goes first, and the room follows when it has come through.
#[test]
fn of_the_architect_and_a_room_one_tries_a_service_that_is_away() {
    let mut studio = at_work();
    let room = machines::names::ChannelName::new("room").unwrap();
    let (config, about) = (Default::default(), Default::default());
    studio.table.ann(Ask::MakeChannel { name: room.clone(), config, about }).unwrap();
    let (channel, agent) = (room.clone(), name("coder"));
    studio.table.ann(Ask::AddMember { channel, agent, times: Default::default() }).unwrap();
    studio.table.ann(Ask::Post { channel: room.clone(), text: "well?".to_owned() }).unwrap();
    asks(&mut studio, "one?");
    studio.ready();
    let service = ServiceName::new("model").unwrap();
    let away =
        Happened::Outage { service, resets_at: None, error: None, refused: false, usage: Usage::default() };
    studio.comes("start_reply", away.clone());
    studio.comes("start_reply", away);
    let speak = |studio: &Studio| {
        studio.table.world.effects.values().filter(|effect| effect.kind() == "start_reply").count()
    };
    let turn = |studio: &Studio| studio.table.world.channel(&room).unwrap().state_of(&name("coder")).unwrap();
    assert_eq!(
        (studio.stands(), turn(&studio), speak(&studio)),
        ("SUSPEND", machines::turn::State::Waiting, 0)
    );
    studio.rings(&Timer::HealthPoll);
    studio.comes("check_health", Happened::HealthUnknown);
    assert_eq!(
        (studio.stands(), turn(&studio), speak(&studio)),
        ("REQUEST", machines::turn::State::Waiting, 1)
    );
    studio.says("yes");
    assert_eq!((turn(&studio), speak(&studio)), (machines::turn::State::Active, 1));
}

#[test]
fn an_outage_suspends_the_architect_and_its_end_restores_it() {
    let mut studio = at_work();
    asks(&mut studio, "one?");
    studio.ready();
    let service = ServiceName::new("model").unwrap();
    let away =
        Happened::Outage { service, resets_at: None, error: None, refused: false, usage: Usage::default() };
    studio.comes("start_reply", away.clone());
    assert_eq!(studio.stands(), "SUSPEND");
    studio.rings(&Timer::HealthPoll);
    studio.comes("check_health", Happened::Health { healthy: true });
    assert_eq!(studio.stands(), "REQUEST");
    assert!(studio.asked().is_some(), "what it had in hand is asked again");
    studio.comes("start_reply", away);
    studio.rings(&Timer::ArchitectSuspension);
    assert_eq!(studio.stands(), "ERROR");
    assert_eq!(studio.table.world.architect_queue.len(), 1, "and nothing is lost");
}

/// Why a task waits that waits for the architect, and what a person can do about it.
fn why_not_approved(studio: &Studio) -> (String, Vec<&'static str>) {
    let guards = crate::why::of_task(&studio.table.world, &task("t1"), studio.table.now).unwrap();
    let of = guards.into_iter().find(|guard| guard.guard == crate::words::Condition::Approved).unwrap();
    (of.detail.clone(), of.next.iter().map(crate::choice::Choice::code).collect())
}

/// What kinds of things wait for a person.
fn kinds_waiting(studio: &Studio) -> Vec<crate::waiting::Kind> {
    let list = crate::waiting::waiting(&studio.table.world, &Default::default(), studio.table.now);
    list.iter().map(|item| item.kind).collect()
}

/// A review that the architect leaves to a person waits for that person.
#[test]
fn a_review_that_is_left_to_a_person_is_one_of_those_that_wait() {
    let mut studio = at_work();
    let table = std::mem::replace(&mut studio.table, Table::new(config()));
    studio.table = check(table, "done\ngreen");
    assert_eq!(kinds_waiting(&studio), []);
    studio.ready();
    studio.says("I cannot tell.\nESCALATE");
    let mut kinds = kinds_waiting(&studio);
    kinds.sort();
    assert_eq!(kinds, [crate::waiting::Kind::Review, crate::waiting::Kind::Question]);
}

#[test]
fn a_task_says_where_its_review_stands_with_the_architect() {
    let mut studio = at_work();
    studio.submit(None).unwrap();
    let table = std::mem::replace(&mut studio.table, Table::new(config()));
    studio.table = check(table, "done\ngreen");
    let [spec, review] = [0, 1].map(|place| studio.table.world.architect_queue[place].clone());
    let queued = format!("`{review}` is at place 2 of the architect's queue");
    assert_eq!(why_not_approved(&studio), (queued.clone(), vec!["show_review"]));
    assert_eq!(kinds_waiting(&studio), [], "it is the architect's to decide, and not a person's");
    studio.ready();
    studio.says("ESCALATE: is it for this year?");
    let waits = format!("{queued}, and the architect waits for a person about `{spec}`");
    assert_eq!(why_not_approved(&studio), (waits, vec!["answer_question", "show_review"]));
    studio.rings(&Timer::Escalation);
    let (stopped, next) = why_not_approved(&studio);
    assert!(
        stopped.starts_with(&format!(
            "`{review}` is at place 1 of the architect's queue, and the architect has stopped ("
        )),
        "{stopped}"
    );
    assert_eq!(next, ["recover_architect", "show_review"]);
    let kinds = [crate::waiting::Kind::Architect, crate::waiting::Kind::Question];
    assert_eq!(kinds_waiting(&studio), kinds, "the spec is with a person, and the review is not");
    studio.table.ann(Ask::RecoverArchitect).unwrap();
    studio.ready();
    assert_eq!(why_not_approved(&studio).0, format!("the architect has `{review}` in hand"));
    let service = ServiceName::new("model").unwrap();
    studio.comes(
        "start_reply",
        Happened::Outage { service, resets_at: None, error: None, refused: false, usage: Usage::default() },
    );
    let (suspended, next) = why_not_approved(&studio);
    assert!(suspended.ends_with("and the architect is suspended: model is unavailable"), "{suspended}");
    assert_eq!(next, ["retry_services", "show_review"]);
}
