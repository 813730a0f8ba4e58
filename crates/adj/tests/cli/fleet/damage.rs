//! Small files of ours that were damaged or are in the way: what is said, and that it goes on.

use super::Repository;
use super::policies::{DONE, WRITE, scenario};
use std::time::{Duration, Instant};

#[test]
fn a_damaged_list_of_ports_holds_nobody_up_and_temporary_files_go_with_their_project() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]);
    let gone = Repository::new("damage-gone", &text, &["t-1"]);
    gone.ok("run --until-idle");
    let temporary = gone.temp("t-1").parent().expect("a folder of all tasks").to_owned();
    assert!(temporary.is_dir());

    gone.ticket("t-2", &[]);
    gone.commit("A ticket");
    gone.write(&gone.state("ports.json"), "{\"t-");
    let began = Instant::now();
    let ran = gone.adj("run --until-idle");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!((ran.code, &gone.task("t-2")["status"]), (0, &"DONE".into()), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(gone.read(&gone.state("ports.json.damaged")), "{\"t-");

    // While the project is there, so are they; another project's fleet removes them when it is gone for a day.
    let other = Repository::new("damage-other", &text, &["t-1"]);
    other.ok("run --until-idle");
    assert!(temporary.is_dir());
    std::fs::remove_dir_all(gone.dir()).expect("it can be removed");
    super::places::last_used_days_ago(&temporary, 2);
    other.ticket("t-2", &[]);
    other.commit("A ticket");
    let running = other.start("run");
    super::background::wait("no temporary files of the project that is gone", || {
        (!temporary.exists()).then_some(())
    });
    running.stop();
    assert!(other.temp("t-1").parent().is_some_and(std::path::Path::is_dir));
}

/// What cannot be made or written is named, with the reason.
#[test]
fn a_file_of_ours_that_cannot_be_written_is_named_with_its_path() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("damage-made", &text, &["t-1"]);
    repository.ok("task add x --id t-2");
    let private = repository.layout().private(&"t-1".parse().expect("a task's name"));
    repository.write(&private, "in the way");
    repository.write(&repository.state("made/t-2/folder"), "in the way");
    let running = repository.start("run");
    running.wait_for(&format!("cannot make `{}`", private.display()));
    running.wait_for(&format!("`{}`", repository.state("made/t-2").display()));
    running.stop();
}
