//! `adj channel tail` on a real terminal: somebody reads along, and types.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::background::{keepers, wait};
use super::live::ENTER;
use super::rooms::project;

const BACKSPACE: &str = "\u{7f}";

#[test]
fn what_is_typed_into_a_tail_is_said_its_commands_are_done_and_the_terminal_is_left_as_it_was() {
    let repository = project("typed", &[("anna", "{ listen = 60 }, { say = \"I heard it.\" }")]);
    let fleet = repository.start("run");
    repository.talk(&["channel", "create", "talk", "--topic", "Well?", "--timeout", "10m", "--add", "anna"]);
    wait("anna at work", || (keepers(&repository).len() == 1).then_some(()));
    let mut tail = repository.on_terminal("channel tail talk");
    tail.wait_for("type a message, or /help");
    for (typed, shown) in
        [("/who", " ACTIVE"), ("/tea", "there is no /tea"), ("/skip bob", "agent `bob` is not in `talk`")]
    {
        tail.press(&format!("{typed}{ENTER}"));
        tail.wait_for(shown);
    }
    tail.press(&format!("Andy{BACKSPACE} milk?{ENTER}"));
    tail.wait_for("I heard it.");
    assert_eq!(
        repository.said(),
        ["human:tester: Well?", "human:tester: And milk?", "agent:anna: I heard it."],
        "a line is one message, and a command is none"
    );
    tail.press(&format!("/quit{ENTER}"));
    tail.wait_for("same-terminal");
    assert!(repository.room()["closedAt"].is_null(), "the channel continues");
    fleet.stop();
}
