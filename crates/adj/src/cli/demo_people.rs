//! The person of a sample: looks at the project from a thread of its own, and does what a person would do there, by the same
//! commands.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How often the person looks, and for how long at most.
const LOOK: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(90);

/// What a person does with a sample, one look at a time. True: it has come to its end.
pub type Part = fn(&Person, &mut u32) -> bool;

pub struct Person {
    adj: PathBuf,
    dir: PathBuf,
}

impl Person {
    pub fn new(adj: &Path, dir: &Path) -> Person {
        Person { adj: adj.to_owned(), dir: dir.to_owned() }
    }

    /// Plays its part until that is over or has lasted too long, and then stops the fleet.
    pub fn play(&self, part: Part) {
        let (begun, mut scene) = (Instant::now(), 0);
        while begun.elapsed() < PATIENCE && !part(self, &mut scene) {
            std::thread::sleep(LOOK);
        }
        self.does(&["stop"]);
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.adj);
        command.arg("--project").arg(&self.dir).args(arguments);
        command.env_remove("ADJ_SERVER").env_remove("ADJ_TOKEN").stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Whether it was done. What is refused now may be done at the next look.
    fn does(&self, arguments: &[&str]) -> bool {
        self.command(arguments).stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    fn sees(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).arg("--json").output();
        output.ok().and_then(|output| serde_json::from_slice(&output.stdout).ok()).unwrap_or_default()
    }
}

/// Submits the spec, answers what the architect asks, and waits until all of it has landed.
pub fn of_spec(person: &Person, scene: &mut u32) -> bool {
    if *scene == 0 {
        let path = person.dir.join("spec.md");
        *scene = u32::from(person.does(&["spec", "submit", &path.to_string_lossy(), "--name", "tally"]));
        return false;
    }
    for waiting in person.sees(&["waiting"]).as_array().into_iter().flatten() {
        if let Some(request) = waiting["request"].as_str() {
            person.does(&["answer", request, "0, like the sum; the command says so."]);
        }
    }
    person.sees(&["spec", "show", "tally"])["state"] == "done"
}

/// Opens a room about the work when it is there, listens, speaks once, and decides.
pub fn of_room(person: &Person, scene: &mut u32) -> bool {
    match *scene {
        0 if person.sees(&["task", "show", "ro-1"])["status"] == "REVIEW" => {
            let topic = "Shall we take `tally mean` as it is? What of an empty input?";
            let create =
                ["channel", "create", "mean", "--task", "ro-1", "--topic", topic, "--timeout", "20s"];
            let seated = person.does(&create)
                && person.does(&["channel", "add", "mean", "ben", "--timeout", "2s"])
                && person.does(&["channel", "add", "mean", "anna"])
                && person.does(&["channel", "add", "mean", "carl"]);
            *scene = u32::from(seated);
        }
        1 => {
            let room = person.sees(&["channel", "status", "mean"]);
            let talked = room["rests"] == true && room["messages"].as_u64() >= Some(4);
            if talked && person.does(&["channel", "post", "mean", "Thank you both. I take it."]) {
                *scene = 2;
            }
        }
        2 if person.does(&["review", "ro-1", "--approve"]) => *scene = 3,
        3 => return person.sees(&["task", "show", "ro-1"])["status"] == "DONE",
        _ => {}
    }
    false
}
