//! A stored type changes only while a sample of every version ever written still decodes.

use super::table::*;
use crate::happened::OutcomeKind;
use crate::{Effect, Event, Happened};
use std::collections::{BTreeMap, BTreeSet};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/events.jsonl");

fn samples() -> Vec<(String, String)> {
    let text = include_str!("../../samples/events.jsonl");
    text.lines()
        .map(|line| {
            let (kind, data) = line.split_once('\t').expect("a kind, a tab, and the data");
            (kind.to_owned(), data.to_owned())
        })
        .collect()
}

#[test]
fn every_event_ever_written_can_still_be_read_and_is_written_the_same() {
    for (kind, data) in samples() {
        let event = Event::decode(&kind, &data).unwrap_or_else(|bad| panic!("{bad}: {data}"));
        assert_eq!(event.encode(), data, "{kind}");
    }
}

#[test]
fn there_is_a_sample_of_every_kind_of_event() {
    let there: Vec<_> = samples().into_iter().map(|(kind, _)| kind).collect();
    let missing: Vec<_> =
        Event::KINDS.iter().filter(|kind| !there.iter().any(|known| known == *kind)).collect();
    assert!(missing.is_empty(), "add a line for {missing:?} to {PATH}; what is there is never changed");
}

/// Effects and outcomes, each with its kind: one line of every form that was ever written.
fn effect_samples() -> impl Iterator<Item = (&'static str, &'static str)> {
    let text = include_str!("../../samples/effects.jsonl");
    text.lines().map(|line| line.split_once('\t').expect("a kind, a tab, and the data"))
}

fn is_outcome(data: &str) -> bool {
    data.starts_with("{\"happened\"")
}

/// An outcome in all the forms that the kernel tells apart. The walk sends each to every effect that can come to it.
pub(super) fn outcome_samples() -> Vec<Happened> {
    let read = |data: &str| serde_json::from_str(data).unwrap_or_else(|bad| panic!("{bad}: {data}"));
    effect_samples().map(|(_, data)| data).filter(|data| is_outcome(data)).map(read).collect()
}

/// The outbox of a log holds effects as they were written when they were asked for.
#[test]
fn every_effect_ever_written_can_still_be_read_and_is_written_the_same() {
    let mut there = BTreeSet::new();
    for (kind, data) in effect_samples().filter(|(_, data)| !is_outcome(data)) {
        let effect: Effect = serde_json::from_str(data).unwrap_or_else(|bad| panic!("{bad}: {data}"));
        assert_eq!((effect.kind(), serde_json::to_string(&effect).unwrap().as_str()), (kind, data));
        there.insert(kind);
    }
    let missing: Vec<_> = Effect::KINDS.iter().filter(|kind| !there.contains(*kind)).collect();
    assert!(missing.is_empty(), "add a line for {missing:?} to samples/effects.jsonl");
    let more = r#"{"effect":"save_work","task":"t1","more":1}"#;
    assert!(serde_json::from_str::<Effect>(more).is_err(), "an unknown field is not read over");
}

#[test]
fn every_outcome_ever_written_can_still_be_read_and_is_written_the_same() {
    let mut there = BTreeSet::new();
    for (kind, data) in effect_samples().filter(|(_, data)| is_outcome(data)) {
        let what: Happened = serde_json::from_str(data).unwrap_or_else(|bad| panic!("{bad}: {data}"));
        assert_eq!((what.kind().name(), serde_json::to_string(&what).unwrap().as_str()), (kind, data));
        there.insert(what.kind());
    }
    let missing: Vec<_> = OutcomeKind::ALL.iter().filter(|kind| !there.contains(*kind)).collect();
    assert!(missing.is_empty(), "add a line for {missing:?} to samples/effects.jsonl");
}

#[test]
fn an_event_that_this_version_does_not_know_is_an_error_that_says_so() {
    let bad = Event::decode("task_teleported", "{}").unwrap_err();
    assert_eq!(bad.to_string(), "events of kind `task_teleported` are not known to this version");
    assert!(
        Event::decode("queued", "{\"id\":\"t1\",\"more\":1}").is_err(),
        "an unknown field is not read over"
    );
}

/// A log of before says some things only in a sentence. They are read once, where records are read.
#[test]
fn what_records_of_before_say_in_a_sentence_is_known_by_its_kind() {
    use crate::command::RedBy;
    use crate::words::NoteKind;
    let told =
        |kind: &'static str| samples().into_iter().filter(move |(of, _)| of == kind).map(|(_, data)| data);
    let mut sent_back: Vec<(RedBy, String)> = Vec::new();
    for data in told("sent_back") {
        let Ok(Event::SentBackTo(sent)) = Event::decode("sent_back", &data) else { panic!("{data}") };
        sent_back.push((sent.red_by(), data));
    }
    for (by, data) in sent_back {
        let no_change = data.contains("There is no change");
        let conflicts = data.contains("The merge with main conflicts");
        assert_eq!((by == RedBy::NoChange, by == RedBy::Conflict), (no_change, conflicts), "{data}");
    }
    for data in told("request_noted") {
        let Ok(Event::RequestNoted(noted)) = Event::decode("request_noted", &data) else { panic!("{data}") };
        let note = crate::old_records::note(&noted);
        let shown = match note.text.as_str() {
            "which people?" => (NoteKind::Escalation, "The architect: which people?"),
            "it crashed three times" => (NoteKind::GaveUp, "The architect gave up: it crashed three times"),
            "human:ann: this one" => (NoteKind::Plain, "human:ann: this one"),
            text => panic!("{text}"),
        };
        assert_eq!((note.kind, note.to_string().as_str()), shown);
    }
    let unended = told("channel_said").filter(|data| {
        let Ok(Event::ChannelSaid(said)) = Event::decode("channel_said", data) else { panic!("{data}") };
        said.is_unended()
    });
    let kinds: Vec<String> = unended
        .map(|data| serde_json::from_str::<serde_json::Value>(&data).unwrap()["kind"].to_string())
        .collect();
    assert_eq!(kinds, [r#""log""#, r#""unended""#]);
}

/// Kinds are names in a log that lives forever: two may not be alike.
#[test]
fn no_two_events_share_a_name() {
    let mut seen = BTreeMap::new();
    for kind in Event::KINDS {
        assert_eq!(seen.insert(kind, ()), None, "{kind}");
    }
}

/// The transitions of all machines are logged in one form.
#[test]
fn a_transition_is_logged_with_machine_from_to_and_trigger() {
    let mut table = Table::new(config());
    table.ticket("t1", "open", &[], "x").unwrap();
    let event = Event::TaskMoved(crate::event::TaskMoved {
        id: task("t1"),
        from: machines::task::Status::Inbox,
        to: machines::task::Status::Canceled,
        input: machines::task::Event::Move {
            to: machines::task::Status::Canceled,
            by: machines::task::Sender { id: "ann".into(), role: machines::machine::Role::Human },
            payload: Box::default(),
        },
        on_behalf_of: None,
        at: None,
    });
    let logged = serde_json::to_value(event.transition().unwrap()).unwrap();
    let expected = serde_json::json!({
        "event": "state_transition", "machine": "task", "agentId": "t1",
        "from": "INBOX", "to": "CANCELED", "trigger": "move CANCELED",
    });
    assert_eq!(logged, expected);
}
