use super::*;
use crate::machine::step;
use crate::tests::{Script, play};
use crate::wire::Wire;

/// One event of each kind.
pub(crate) fn samples() -> Vec<Event> {
    Kind::ALL.iter().map(|kind| Architect::default().read(&[kind.name()])).collect()
}

impl Script for Architect {
    fn read(&self, words: &[&str]) -> Event {
        match Kind::read(words[0]).unwrap_or_else(|| panic!("no event {}", words[0])) {
            Start => Event::Start,
            RequestArrived => Event::Request {
                id: words.get(1).copied().unwrap_or("r-1").into(),
                request: RequestType::Question,
            },
            ChannelClosed => Event::ChannelClosed,
            WorkspaceReady => Event::WorkspaceReady,
            SetupFailed => Event::SetupFailed { reason: "no mirror".to_owned() },
            StoriesQueued => Event::StoriesQueued,
            NoStoriesLeft => Event::NoStoriesLeft,
            Answered => Event::Answered,
            SpecApproved => Event::SpecApproved,
            MergeSucceeded => Event::MergeSucceeded,
            CannotAnswer => Event::CannotAnswer,
            Abandon => Event::Abandon { reason: "given up".to_owned() },
            HumanAnswer => Event::HumanAnswer,
            Timeout => Event::Timeout,
            Recover => Event::Recover,
            Stay => Event::Stay,
        }
    }

    fn detail(&self) -> String {
        let spec = self.spec_in_work.then_some("with a spec");
        let cause = self.cause.as_ref().map(|cause| format!("because {cause}"));
        [spec.map(str::to_owned), self.request.as_ref().map(|id| format!("on {id}")), cause]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ")
    }
}

#[track_caller]
fn check(state: State, script: &str) {
    play(Architect { state, ..Architect::default() }, script);
}

#[test]
fn a_question_without_a_spec_leads_back_to_waiting() {
    check(
        New,
        "request r-1 -> refused NOT_ALLOWED, allowed [start]
         start -> WAITING []
         request r-1 -> SETUP on r-1 [prepareWorkspace]
         request r-2 -> refused NOT_ALLOWED, allowed [workspace_ready, setup_failed, stay]
         workspace_ready -> REQUEST on r-1 [handleRequest r-1]
         answered -> WAITING [sendAnswer r-1]",
    );
}

/// Stories go out, coders ask, merges release the next ones, until none is left.
#[test]
fn a_spec_is_dispatched_until_no_story_is_left() {
    check(
        Waiting,
        "request s-1 -> SETUP on s-1 [prepareWorkspace]
         workspace_ready -> REQUEST on s-1 [handleRequest s-1]
         spec_approved -> DISPATCHING with a spec [sendAnswer s-1, loadStories s-1]
         stories_queued -> MONITORING with a spec []
         request r-2 -> REQUEST with a spec on r-2 [handleRequest r-2]
         answered -> MONITORING with a spec [sendAnswer r-2]
         request m-3 -> REQUEST with a spec on m-3 [handleRequest m-3]
         merge_succeeded -> DISPATCHING with a spec [sendAnswer m-3]
         no_stories_left -> DONE []",
    );
}

#[test]
fn what_the_architect_cannot_answer_is_asked_of_a_person() {
    check(
        Waiting,
        "request r-1 -> SETUP on r-1 [prepareWorkspace]
         workspace_ready -> REQUEST on r-1 [handleRequest r-1]
         cannot_answer -> ESCALATED on r-1 [askHuman r-1 7200]
         human_answer -> REQUEST on r-1 [handleRequest r-1]
         cannot_answer -> ESCALATED on r-1 [askHuman r-1 7200]
         timeout -> ERROR because no answer in time []",
    );
}

/// The request that wakes it is still to be taken: it then drives WAITING to SETUP.
#[test]
fn a_message_that_wakes_done_or_error_is_not_consumed() {
    for state in [Done, InError] {
        check(
            state,
            "request r-1 -> WAITING [keepRequest]
             request r-1 -> SETUP on r-1 [prepareWorkspace]",
        );
    }
}

#[test]
fn errors_lead_out_only_by_recovery_or_a_request() {
    check(
        Waiting,
        "channel_closed -> ERROR because channel closed []
         channel_closed -> refused NOT_ALLOWED, allowed [request, recover, stay]
         recover -> WAITING []
         request r-1 -> SETUP on r-1 [prepareWorkspace]
         setup_failed -> ERROR because no mirror []
         request r-2 -> WAITING [keepRequest]",
    );
    check(Monitoring, "channel_closed -> ERROR because channel closed []");
    check(
        Request,
        "abandon -> ERROR because given up []
         recover -> WAITING []",
    );
}

/// The edge that the source leaves out on purpose.
#[test]
fn dispatching_has_no_edge_to_error() {
    for event in samples() {
        let dispatching = Architect { state: Dispatching, ..Architect::default() };
        if let Ok(taken) = step(&dispatching, &event) {
            assert_ne!(taken.state.state, InError, "{event:?}");
        }
    }
}

#[test]
fn staying_is_always_valid_and_does_nothing() {
    for state in State::ALL.iter().filter(|state| **state != New) {
        let before = Architect { state: *state, spec_in_work: true, ..Architect::default() };
        let taken = step(&before, &Event::Stay).unwrap();
        assert_eq!((taken.state, taken.effects), (before, Vec::new()));
    }
}

/// The diagram of the source: these edges and no others.
#[test]
fn the_edges_are_the_documents() {
    let mut edges: Vec<String> = TABLE
        .iter()
        .filter(|row| row.from != row.to && row.from != New)
        .map(|row| format!("{} {}", row.from, row.to))
        .collect();
    edges.sort();
    edges.dedup();
    assert_eq!(
        edges,
        [
            "DISPATCHING DONE",
            "DISPATCHING MONITORING",
            "DONE WAITING",
            "ERROR WAITING",
            "ESCALATED ERROR",
            "ESCALATED REQUEST",
            "MONITORING ERROR",
            "MONITORING REQUEST",
            "REQUEST DISPATCHING",
            "REQUEST ERROR",
            "REQUEST ESCALATED",
            "REQUEST MONITORING",
            "REQUEST WAITING",
            "SETUP ERROR",
            "SETUP REQUEST",
            "WAITING ERROR",
            "WAITING SETUP",
        ]
    );
}

#[test]
fn requests_are_of_seven_types() {
    let types: Vec<_> = RequestType::ALL.iter().map(|request| request.name()).collect();
    assert_eq!(types, ["question", "plan", "code", "completion", "budget", "merge", "spec"]);
}

#[test]
fn done_and_error_are_where_the_work_ends() {
    let ends = State::ALL.iter().filter(|state| Architect::meta(**state) == [("terminal", Meta::Is(true))]);
    assert_eq!(ends.map(|state| state.name()).collect::<Vec<_>>(), ["DONE", "ERROR"]);
}
