//! The architect at work: specs, questions and reviews through the kernel, with an agent that says what a script says.

use super::table::*;
use crate::command::*;
use crate::effect::{Effect, Say, StepStart};
use crate::event::Event;
use crate::invariants::{Invariant, check_commit};
use crate::rooms::Seat;
use crate::specs::{SpecState, Story};
use crate::words::{RequestKind, StepEnding};
use crate::{Actor, Timer};
use machines::names::{AgentName, EffectId, RequestId, ServiceName, SpecId};
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
    a_reply_answers_the_request_that_it_was_started_for_and_no_other,
    what_a_reply_leaves_to_a_person_it_does_not_decide_afterwards,
    a_reply_that_somebody_else_has_ended_decides_nothing,
    an_architect_with_tools_decides_by_them_alone,
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
        self.comes("start_reply", Happened::StepFinished { ending, output, tip: None, tree: None, usage });
    }

    /// By a tool, in the reply that is under way.
    fn answers(&mut self, answer: ArchitectAnswer) -> Result<Reply, Refusal> {
        let reply = self.reply().unwrap_or_else(|| EffectId::new("gone").unwrap());
        self.answers_in(&reply, answer)
    }

    fn answers_in(&mut self, reply: &EffectId, answer: ArchitectAnswer) -> Result<Reply, Refusal> {
        let actor = Actor::Agent { name: name("lead"), role: crate::config::Role::Lead };
        self.table.tell(actor, Ask::ArchitectAnswers { reply: reply.clone(), answer })
    }

    fn reply(&self) -> Option<EffectId> {
        self.table.world.seated(&Seat::Architect)?.reply.clone()
    }

    /// What is known of a request: whose answer it has and of which reply, and how many tries were used up.
    fn known(&self, id: &RequestId) -> (Option<(String, Option<EffectId>)>, u32) {
        let request = &self.table.world.requests[id];
        let answer = request.answer.clone().map(|answer| (answer.by.to_string(), answer.reply));
        (answer, request.tries)
    }

    fn stands(&self) -> &'static str {
        self.table.world.architect.as_ref().map_or("nowhere", |architect| architect.name())
    }

    /// The request that its agent is asked about now.
    fn asked(&self) -> Option<RequestId> {
        self.table.world.effects.values().find_map(|effect| match effect.as_ref() {
            Effect::StartStep {
                of: StepStart::Seat { prompt: Say::Request { request, .. }, .. }, ..
            } => Some(request.clone()),
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

/// What a waiting list needs: a spec that its author is to change.
pub(super) fn one_that_wants_changes() -> Table {
    let mut studio = Studio::new();
    studio.submit(None).unwrap();
    studio.ready();
    studio.answers(ArchitectAnswer::Feedback { text: "Which people?".to_owned() }).unwrap();
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
    let told = |studio: &Studio| studio.table.world.requests[&request].notes.back().unwrap().to_string();
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
    assert_eq!(twice.code, "ALREADY_ANSWERED");
    studio.says("The author is told.");
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
    studio.says("ESCALATE\nthat is for a person");
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
    studio.says("ESCALATE\nwhich people?");
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
    assert!(notes.iter().any(|note| note.text.contains("all of them")), "{notes:?}");
}

/// The settings lose their architect while it speaks, and a person disables its agent: it is ended all the same.
#[test]
fn an_agent_that_is_architect_no_more_is_still_when_a_person_disables_it() {
    let mut studio = Studio::new();
    studio.submit(None).unwrap();
    studio.ready();
    let mut without = (*studio.table.world.config).clone();
    (without.architect, without.fleet.review) = (None, crate::config::Review::Human);
    studio.table.tell(Actor::System, Ask::Configure { config: Box::new(without) }).unwrap();
    assert!(studio.reply().is_some(), "new settings end no reply");
    studio.table.ann(Ask::SwitchAgent { agent: name("lead"), enabled: false, reason: None }).unwrap();
    assert_eq!(studio.reply(), None);
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
    studio.says("I do not know\nESCALATE");
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
        "REPLY_OVER"
    );
    assert_eq!(
        studio.table.world.task(&task("t1")).unwrap().review.approved.as_ref().unwrap().by,
        "human:ann"
    );
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

fn yes() -> ArchitectAnswer {
    ArchitectAnswer::Answer { text: "yes".to_owned() }
}

/// Three questions are queued. The first reply calls its tool twice and talks on; the others are shown to nobody before they
/// have a reply of their own.
#[test]
fn a_reply_answers_the_request_that_it_was_started_for_and_no_other() {
    let crash = |error: &str| Happened::StepFailed {
        error: error.to_owned(),
        why: StepFailure::Failed,
        usage: Usage::default(),
    };
    let says = |ending, output: &str| Happened::StepFinished {
        ending,
        output: output.to_owned(),
        tip: None,
        tree: None,
        usage: Usage::default(),
    };
    let cases = [
        says(StepEnding::NotDone, "I have read it.\n\nAPPROVE"),
        says(StepEnding::NotDone, "Yes."),
        says(StepEnding::OutOfTurns, "and another thing"),
        crash("exit 1"),
    ];
    for last_words in cases {
        let mut studio = at_work();
        let [first, second, third] = ["one?", "two?", "three?"].map(|text| asks(&mut studio, text));
        studio.ready();
        let reply = studio.reply().unwrap();
        studio.answers(yes()).unwrap();
        assert_eq!(studio.known(&first), (Some(("agent:lead".to_owned(), Some(reply.clone()))), 0));
        let again = studio.answers(yes()).unwrap_err();
        let reason =
            format!("this reply has already answered {first}; the next request starts a reply of its own");
        assert_eq!((again.code.as_str(), again.message), ("ALREADY_ANSWERED", reason.clone()));
        // Its workspace is brought up to date, and the second is in hand while the first reply still runs.
        studio.ready();
        assert_eq!(studio.table.world.in_hand().unwrap().id, second);
        assert_eq!(studio.answers(yes()).unwrap_err().message, reason);
        assert_eq!(
            studio.answers(ArchitectAnswer::Approve { note: String::new() }).unwrap_err().message,
            reason
        );
        studio.comes("start_reply", last_words);
        for open in [&second, &third] {
            assert_eq!(studio.known(open), (None, 0), "neither answered nor tried");
            assert!(studio.table.world.requests[open].notes.is_empty());
        }
        assert_eq!(studio.asked(), Some(second.clone()), "it has a reply of its own");
        let late = studio.answers_in(&reply, yes()).unwrap_err();
        assert_eq!(late.code, "REPLY_OVER", "{}", late.message);
        studio.says("this one");
        assert!(studio.known(&second).0.is_some_and(|(_, by)| by.is_some_and(|by| by != reply)));
    }
}

/// A person answers what the reply has left to them while the reply still runs: it has not read that.
#[test]
fn what_a_reply_leaves_to_a_person_it_does_not_decide_afterwards() {
    let nonsense = || ArchitectAnswer::Approve { note: String::new() };
    let escalate = || ArchitectAnswer::CannotAnswer { why: "who pays?".to_owned() };
    for left in [vec![escalate()], vec![nonsense(), nonsense(), nonsense()]] {
        let mut studio = Studio::new();
        studio.submit(None).unwrap();
        studio.ready();
        let id = studio.asked().unwrap();
        for answer in left {
            studio.answers(answer).unwrap();
        }
        assert_eq!(studio.stands(), "ESCALATED");
        studio.table.ann(Ask::AnswerRequest { id: id.clone(), text: "we do".to_owned() }).unwrap();
        assert_eq!(studio.stands(), "REQUEST");
        let feedback = ArchitectAnswer::Feedback { text: "who pays?".to_owned() };
        assert_eq!(studio.answers(feedback).unwrap_err().code, "ALREADY_ANSWERED");
        let first = studio.reply().unwrap();
        studio.says("FEEDBACK\nwho pays?");
        assert_eq!((studio.spec().state, studio.asked()), (SpecState::Submitted, Some(id)));
        assert_ne!(studio.reply().unwrap(), first, "what the person said is shown to another reply");
    }
}

/// A person settles the request, or the fleet stops: what the program says then comes too late.
#[test]
fn a_reply_that_somebody_else_has_ended_decides_nothing() {
    let mut studio = at_work();
    let [first, second] = ["one?", "two?"].map(|text| asks(&mut studio, text));
    studio.ready();
    let reply = studio.reply().unwrap();
    studio.table.ann(Ask::AnswerRequest { id: first, text: "mine".to_owned() }).unwrap();
    assert_eq!(studio.answers_in(&reply, yes()).unwrap_err().code, "REPLY_OVER");
    studio.ready();
    assert_eq!((studio.table.world.in_hand().unwrap().id.clone(), studio.asked()), (second.clone(), None));
    assert_eq!(studio.answers_in(&reply, yes()).unwrap_err().code, "REPLY_OVER");
    studio.comes("end_reply", Happened::StepEnded { usage: Usage::default(), tip: None });
    assert_eq!(studio.asked(), Some(second.clone()));
    assert_eq!(studio.answers_in(&reply, yes()).unwrap_err().code, "REPLY_OVER");
    let before = studio.reply().unwrap();
    studio.says_as(StepEnding::CutOff, "");
    assert_eq!(studio.answers_in(&before, yes()).unwrap_err().code, "REPLY_OVER", "it was cut off");
    assert_eq!(studio.known(&second), (None, 0));
    studio.answers(yes()).unwrap();
    assert!(studio.known(&second).0.is_some());
}

/// Their words are never a decision, also where they look like one; after three replies without a call a person is asked.
#[test]
fn an_architect_with_tools_decides_by_them_alone() {
    let mut studio = Studio::with(|config| {
        let lead = config.agents.get_mut(&name("lead")).unwrap();
        lead.has_tools = true;
    });
    studio.submit(None).unwrap();
    studio.ready();
    let id = studio.asked().unwrap();
    for words in [TWO, "FEEDBACK\nwhich people?"] {
        studio.says(words);
        assert_eq!((studio.stands(), studio.spec().state), ("REQUEST", SpecState::Submitted));
        let told = studio.table.world.requests[&id].notes.back().unwrap().to_string();
        assert_eq!(
            told,
            "no tool was called, and a message decides nothing: call `submit_stories` or `spec_feedback`, or `escalate`"
        );
    }
    studio.says("ESCALATE");
    assert_eq!((studio.stands(), studio.known(&id)), ("ESCALATED", (None, 3)));
    studio.table.ann(Ask::AnswerRequest { id: id.clone(), text: "all of them".to_owned() }).unwrap();
    studio.answers(ArchitectAnswer::Feedback { text: "which people?".to_owned() }).unwrap();
    studio.says("I have sent it back.");
    assert_eq!((studio.stands(), studio.spec().state), ("WAITING", SpecState::NeedsChanges));
}

/// The invariant sees what the rules would have to let through.
#[test]
fn an_answer_of_a_reply_that_was_not_shown_the_request_is_noticed() {
    let mut studio = at_work();
    let [first, second] = ["one?", "two?"].map(|text| asks(&mut studio, text));
    studio.ready();
    let reply = studio.reply().unwrap();
    let before = studio.table.world.clone();
    let is_bound = |before: &crate::World,
                    id: &RequestId,
                    by: &'static str,
                    reply: Option<&EffectId>,
                    tip: &'static str| {
        let mut after = before.clone();
        let request = std::sync::Arc::make_mut(after.requests.get_mut(id).unwrap());
        let (by, text, reply) = (by.into(), "yes".to_owned(), reply.cloned());
        request.answer = Some(crate::world::GivenAnswer { by, at: 0, text, abandoned: false, reply });
        request.tip = Some(tip).filter(|tip| !tip.is_empty()).map(Into::into);
        !check_commit(before, &after).iter().any(|found| found.invariant == Invariant::AnswersAreBound)
    };
    assert!(is_bound(&before, &first, "agent:lead", Some(&reply), ""));
    assert!(is_bound(&before, &first, "human:ann", None, ""));
    assert!(is_bound(&before, &second, "system", None, ""));
    assert!(!is_bound(&before, &second, "agent:lead", Some(&reply), ""), "it was shown the first");
    assert!(!is_bound(&before, &first, "agent:lead", Some(&reply), "tip2"), "it was shown another commit");
    assert!(
        !is_bound(&before, &first, "agent:lead", Some(&EffectId::new("e9").unwrap()), ""),
        "there is no such reply"
    );
    assert!(!is_bound(&before, &first, "human:ann", Some(&reply), ""));
    let mut twice = before;
    let seated = twice.seats.get_mut(&Seat::Architect).unwrap();
    std::sync::Arc::make_mut(seated).decided = Some(second);
    assert!(!is_bound(&twice, &first, "agent:lead", Some(&reply), ""), "it has decided before");
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
    studio.says("is it for this year?\nESCALATE");
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
