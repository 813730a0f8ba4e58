//! Commands on a real terminal. The live view: what waits is answered by keys, without a second terminal.

use super::Repository;
use super::background::wait;
use super::policies::{DONE, WRITE, scenario};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const DOWN: &str = "\u{1b}[B";
pub(super) const ENTER: &str = "\r";
const CTRL_C: &str = "\u{3}";

/// A command on a terminal of its own, with somebody at the keyboard.
pub(super) struct Live<'r> {
    repository: &'r Repository,
    child: Child,
    seen: PathBuf,
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("on the terminal: {:?}", self.text());
        }
        let _ = self.repository.adj("stop --now");
        let _ = self.child.kill();
        let _ = self.child.wait();
        super::background::end_all(self.repository.dir());
        let _ = std::fs::remove_file(&self.seen);
    }
}

impl Repository {
    fn live(&self) -> Live<'_> {
        self.on_terminal("run")
    }

    /// The shell around it says whether the terminal is afterwards as it was.
    pub(super) fn on_terminal(&self, command: &str) -> Live<'_> {
        let seen = self.dir().with_extension("seen");
        let adj = env!("CARGO_BIN_EXE_adj");
        let line = format!(
            "stty rows 40 cols 110; before=$(stty -g); {adj} {command}; test \"$before\" = \"$(stty -g)\" && echo same-terminal"
        );
        let mut command = Command::new("script");
        command.args(["--quiet", "--flush", "--return", "--command", &line]).arg(&seen);
        command.env("TERM", "xterm").env("ADJ_USER", "tester").env_remove("ADJ_TOKEN").env_remove("NO_COLOR");
        command.current_dir(self.dir()).stdin(Stdio::piped()).stdout(Stdio::null());
        Live { repository: self, child: command.spawn().expect("`script` of util-linux runs"), seen }
    }
}

impl Live<'_> {
    pub(super) fn press(&mut self, keys: &str) {
        let stdin = self.child.stdin.as_mut().expect("a keyboard");
        stdin.write_all(keys.as_bytes()).expect("somebody reads it");
        stdin.flush().expect("somebody reads it");
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.seen).unwrap_or_default()).into_owned()
    }

    #[track_caller]
    pub(super) fn wait_for(&self, text: &str) {
        wait(&format!("`{text}` on the terminal"), || self.text().contains(text).then_some(()));
    }

    /// Stops the fleet by Ctrl-C, which the terminal passes on as a key.
    #[track_caller]
    pub(super) fn stop(mut self) {
        self.press(CTRL_C);
        self.wait_for("same-terminal");
    }
}

const ASKS: &str = r#"{ run = "git push --dry-run origin main\necho second > second.txt" }, { commit = "Do" }, { done = true }"#;

#[test]
fn a_key_allows_a_call_once_it_was_shown_whole() {
    let repository = Repository::new("live-allow", &scenario(&[ASKS]), &["t-1"]);
    let mut live = repository.live();
    live.wait_for("Enter open");
    live.press("1");
    live.press(ENTER);
    live.wait_for("    echo second > second.txt");
    live.wait_for("allows it this once");
    assert_eq!(repository.json("approvals").as_array().map(Vec::len), Some(1), "nothing was allowed yet");
    live.press("1");
    live.wait_for("t-1 landed");
    assert_eq!(repository.read("second.txt"), "second\n");
    let decided = repository.ok("approvals --all");
    assert!(decided.contains("approved"), "{decided}");
    live.stop();
}

#[test]
fn an_answer_is_typed_where_it_needs_words() {
    let repository =
        Repository::new("live-words", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1", "t-2"]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    let mut live = repository.live();
    wait("two reviews", || {
        (repository.json("task ls --status REVIEW").as_array().map(Vec::len) == Some(2)).then_some(())
    });
    live.wait_for("Enter open");
    // Who was ready first stands first.
    let waiting = repository.json("waiting");
    let place = waiting.as_array().and_then(|list| list.iter().position(|item| item["task"] == "t-2"));
    (0..=place.expect("it waits")).for_each(|_| live.press(DOWN));
    live.press(ENTER);
    live.wait_for("$ adj review t-2");
    live.press("3");
    live.wait_for("Enter send");
    live.press("Shorter names, please");
    live.press(ENTER);
    let said = wait("the words with the task", || {
        let shown = repository.ok("task show t-2");
        shown.contains("Shorter names, please").then_some(shown)
    });
    assert!(said.contains("human:tester"), "{said}");
    assert_eq!(repository.task("t-1")["status"], "REVIEW");
    live.stop();
}
