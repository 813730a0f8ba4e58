//! Marks of stories in the file of their spec: set by the landing, set back by an undo, and by nobody else.

use super::policies::scenario;
use super::{Repository, TESTS};

const LIST: &str = "# Todo\n\n- [ ] Paint it\n- [ ] Dry it\n- [ ] Hang it\n";

/// What an agent does that works on one of the stories, and does this to the list.
fn works(task: &str, ticks: &[&str]) -> String {
    let tick = |line: &&str| {
        format!("{{ replace = \"todo.md\", from = \"- [ ] {line}\", to = \"- [x] {line}\" }}, ")
    };
    let ticks: String = ticks.iter().map(tick).collect();
    format!(
        "[[scenario]]\ntask = \"{task}\"\n[[scenario.step]]\n\
         do = [ {{ write = \"{{task}}.txt\", text = \"work\\n\" }}, {ticks}{{ commit = \"Do {{task}}\" }}, {{ done = true }} ]\n"
    )
}

/// A repository whose list of three stories is on the board, and waits for a person at its reviews.
fn project(name: &str, scenario: &str) -> Repository {
    let repository = Repository::new(&format!("marks-{name}"), scenario, &[]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    repository.write("todo.md", LIST);
    repository.commit("A list");
    repository.ok("spec submit todo.md --yes");
    repository.adj("run --until-idle");
    for task in ["todo-1", "todo-2", "todo-3"] {
        assert_eq!(repository.task(task)["status"], "REVIEW", "{task}");
    }
    repository
}

impl Repository {
    /// The signs of the list on main, one for each story.
    fn signs(&self) -> String {
        let list = self.git("show main:todo.md");
        let boxes = list.lines().filter_map(|line| line.strip_prefix("- ["));
        boxes
            .filter_map(|rest| rest.chars().next())
            .map(|sign| if sign == ' ' { '.' } else { sign })
            .collect()
    }

    /// Approves these, in this order, and lets them land.
    #[track_caller]
    fn land(&self, tasks: &[&str]) -> String {
        for task in tasks {
            self.ok(&format!("review {task} --approve"));
        }
        let ran = self.adj("run --until-idle");
        for task in tasks {
            assert_eq!(self.task(task)["status"], "DONE", "{task}: {}{}", ran.stdout, ran.stderr);
        }
        ran.stdout + &ran.stderr
    }
}

/// Two branches that tick boxes side by side would conflict, and one of them ticks a box that is not its own.
#[test]
fn boxes_that_agents_tick_neither_conflict_nor_count_for_others() {
    let text =
        [works("todo-1", &["Paint it", "Hang it"]), works("todo-2", &["Dry it"]), works("todo-3", &[])];
    let repository = project("agents", &text.concat());
    let said = repository.land(&["todo-1", "todo-2"]);
    assert_eq!(repository.signs(), "xx.", "a box that another story has is left to it: {said}");
    let expected = "todo-1: its agent changed the mark of `- [ ] Hang it` in todo.md; only todo-3 may change it, so it lands unchanged";
    assert!(said.contains(expected), "{said}");
    assert!(!said.contains("todo-2: its agent changed"), "its own is its own: {said}");
    repository.land(&["todo-3"]);
    assert_eq!(repository.signs(), "xxx");
    assert_eq!(repository.git("status --porcelain"), "");
    repository.check_main(TESTS);
}

/// A person's own tick on main is theirs, and an agent's branch that knows nothing of it does not take it away.
#[test]
fn what_a_person_ticked_on_main_stays_ticked() {
    let text = [works("todo-1", &["Paint it"]), works("todo-*", &[])].concat();
    let repository = project("person", &text);
    repository.write("todo.md", &LIST.replace("- [ ] Dry it", "- [x] Dry it"));
    repository.commit("It is dry");
    repository.land(&["todo-1"]);
    assert_eq!(repository.signs(), "xx.");
    repository.land(&["todo-2"]);
    assert_eq!(repository.signs(), "xx.", "what is ticked already is ticked");
}

/// The boxes beside it were ticked since, and one is ticked between the undo and its landing.
#[test]
fn an_undo_sets_the_box_back_whatever_was_ticked_beside_it() {
    let repository = project(
        "undo",
        &scenario(&["{ write = \"{task}.txt\", text = \"work\\n\" }, { commit = \"Do\" }, { done = true }"]),
    );
    repository.land(&["todo-2", "todo-1"]);
    assert_eq!(repository.signs(), "xx.");
    let undone = repository.ok("undo todo-2");
    let undo = undone.split(' ').next().expect("an id").to_owned();
    repository.adj("run --until-idle");
    assert_eq!(
        (repository.task(&undo)["status"].clone(), repository.signs()),
        ("DONE".into(), "x..".to_owned())
    );
    assert!(
        !repository.git_says("cat-file -e main:todo-2.txt")
            && repository.git_says("cat-file -e main:todo-1.txt")
    );
    // Queued behind a landing that ticks the box beside it.
    repository.ok(&format!("undo {undo}"));
    repository.adj("run --until-idle");
    assert_eq!(repository.signs(), "xx.", "what takes an undo back ticks the box again");
    repository.ok("review todo-3 --approve");
    let undone = repository.ok("undo todo-2");
    let undo = undone.split(' ').next().expect("an id").to_owned();
    let ran = repository.adj("run --until-idle");
    assert_eq!(repository.task(&undo)["status"], "DONE", "{}", ran.stdout);
    assert_eq!(repository.signs(), "x.x");
    assert_eq!(repository.git("status --porcelain"), "");
    assert_eq!(repository.adj("verify").code, 0);
}
