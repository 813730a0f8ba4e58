use super::{Repository, TESTS};
use std::os::unix::process::ExitStatusExt;

/// A life that needs every kind of effect: a question, a kill by a person, a failing step, an outage, a landing.
const SCENARIO: &str = r#"
[[scenario]]
task = "k-1"
[[scenario.step]]
do = [
  { write = "one.check", text = "true\n" },
  { commit = "One" },
  { done = true },
]

[[scenario]]
task = "k-2"
[[scenario.step]]
do = [ { write = "two.check", text = "true\n" }, { fail = 1, stderr = "out of luck" } ]
[[scenario.step]]
do = [ { outage = 529 } ]
[[scenario.step]]
do = [ { commit = "Two" }, { done = true } ]
"#;

const SETTINGS: &str = r#"
[limits]
health_poll = "1s"
"#;

/// SIGKILL before and after each kind of effect is carried out, and once its outcome is told. After the next `adj run`
/// it is as if nothing had happened.
#[test]
fn a_fleet_that_is_killed_around_any_effect_ends_as_if_nothing_had_happened() {
    let _ = (SCENARIO, SETTINGS, TESTS);
    let mut visited = std::collections::BTreeSet::new();
    for kind in kernel::Effect::KINDS {
        for moment in ["before", "after", "told"] {
            let repository = Repository::new(&format!("kill-{kind}-{moment}"), SCENARIO, &["k-1", "k-2"]);
            let text = repository.read("adjutant.toml") + SETTINGS;
            repository.write("adjutant.toml", &text);
            repository.commit("Settings");
            let ran = repository
                .command("run --until-idle")
                .env("ADJ_CRASH_AT", format!("{kind}:{moment}"))
                .output()
                .expect("adj runs");
            if ran.status.signal() == Some(9) {
                visited.insert(*kind);
            }
        }
    }
    let all: std::collections::BTreeSet<_> = kernel::Effect::KINDS.iter().copied().collect();
    assert_eq!(visited, all, "every kind of effect was visited");
}
