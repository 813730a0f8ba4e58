//! `adj demo`: a sample repository, its tickets, and a real fleet on it: real git, real processes, real tests. Only the
//! agents play a scenario instead of asking a model; and where a person has a part, a thread plays it.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::demo_people::{self, Part, Person};
use super::project::Project;
use super::ready::read_settings;
use super::run::{self, Ended, Fleet};
use super::serve::ServeOptions;
use super::text::shown;
use super::{Context, Exit, Failure, Globals};
use clap::Args;
use serde::Serialize;

/// Watch a fleet at work on a sample repository: no model, no key
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct Demo {
    /// Directory for the sample repository [default: a new temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Show an architect: it splits a spec into six stories and reviews them
    #[arg(long, conflicts_with = "room")]
    spec: bool,
    /// Show a room: three agents and a person discuss a change and decide
    #[arg(long)]
    room: bool,
    /// Keep the web page of the demo open until Ctrl-C
    #[arg(long)]
    stay: bool,
}

/// What is written out and played.
struct Sample {
    heading: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// What a person does in it.
    person: Option<Part>,
    /// What is worth a look afterwards.
    look: &'static [&'static str],
}

/// The program that all samples are about.
const TALLY: &[(&str, &str)] = &[
    ("README.md", include_str!("../../demo/README.md")),
    ("tally", include_str!("../../demo/tally")),
    ("commands/count", include_str!("../../demo/commands/count")),
    ("tests/run", include_str!("../../demo/tests/run")),
    ("tests/count.test", include_str!("../../demo/tests/count.test")),
];

const SPEC: Sample = Sample {
    heading: "a sample spec in {dir}; architect, coders and person play their parts",
    files: &[
        ("adjutant.toml", include_str!("../../demo/spec/adjutant.toml")),
        ("demo.toml", include_str!("../../demo/spec/demo.toml")),
        ("architect.toml", include_str!("../../demo/spec/architect.toml")),
        ("spec.md", include_str!("../../demo/spec/spec.md")),
    ],
    person: Some(demo_people::of_spec),
    look: &["spec show tally", "requests --all", "architect", "cost"],
};

const ROOM: Sample = Sample {
    heading: "a sample room in {dir}; three agents and a person play their parts",
    files: &[
        ("adjutant.toml", include_str!("../../demo/room/adjutant.toml")),
        ("demo.toml", include_str!("../../demo/room/demo.toml")),
        ("anna.toml", include_str!("../../demo/room/anna.toml")),
        ("ben.toml", include_str!("../../demo/room/ben.toml")),
        ("carl.toml", include_str!("../../demo/room/carl.toml")),
        (".tickets/ro-1.md", include_str!("../../demo/room/ticket.md")),
    ],
    person: Some(demo_people::of_room),
    look: &["channel history mean", "channel status mean", "history ro-1"],
};

const TICKETS: Sample = Sample {
    heading: "a sample repository in {dir}; the agents play a scenario",
    files: FILES,
    person: None,
    look: &["board", "history ta-3", "cost", "verify"],
};

/// What `adj demo --json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'d> {
    #[serde(flatten)]
    ended: run::Document<'d>,
    repository: &'d Path,
    main_is_green: bool,
}

const HELP: &str = "\
Four workers work on nine tickets. The agents are scripted; git, processes, tests and merges are real. One agent writes \
code that fails its tests, one reports DONE without any change, two change the same line, and one is killed in the middle \
of its work. The demo takes about ten seconds. The repository stays for you to inspect.

--spec: the architect splits a spec into six stories with dependencies. It escalates one question to a person, requests \
changes in one review, and continues after one outage of its model.

--room: three agents and a person discuss a change. One agent times out, one crashes, and the person's decision merges it.

On a terminal the demo prints a link to the web page that shows it live. --stay keeps the page open until Ctrl-C.";

/// Nine tickets.
const FILES: &[(&str, &str)] = &[
    ("adjutant.toml", include_str!("../../demo/adjutant.toml")),
    ("demo.toml", include_str!("../../demo/demo.toml")),
    (".tickets/ta-1.md", include_str!("../../demo/tickets/ta-1.md")),
    (".tickets/ta-2.md", include_str!("../../demo/tickets/ta-2.md")),
    (".tickets/ta-3.md", include_str!("../../demo/tickets/ta-3.md")),
    (".tickets/ta-4.md", include_str!("../../demo/tickets/ta-4.md")),
    (".tickets/ta-5.md", include_str!("../../demo/tickets/ta-5.md")),
    (".tickets/ta-6.md", include_str!("../../demo/tickets/ta-6.md")),
    (".tickets/ta-7.md", include_str!("../../demo/tickets/ta-7.md")),
    (".tickets/ta-8.md", include_str!("../../demo/tickets/ta-8.md")),
    (".tickets/ta-9.md", include_str!("../../demo/tickets/ta-9.md")),
];

pub fn run(command: &Demo, context: Context) -> Result<(), Failure> {
    let sample = match (command.spec, command.room) {
        (true, _) => SPEC,
        (_, true) => ROOM,
        _ => TICKETS,
    };
    let dir = make_folder(command.dir.as_deref())?;
    write_sample(&dir, sample.files)?;
    let globals = Globals { project: vec![dir.clone()], server: None, ..context.globals.clone() };
    let project = Project::find(&globals)?;
    let fleet = Fleet {
        heading: sample.heading.replace("{dir}", &shown(&dir)),
        once: false,
        // A person who plays a part ends it.
        until_idle: sample.person.is_none() && !command.stay,
        workers: None,
        in_force: read_settings(project.layout())?,
        // Somebody who sees the link can open it.
        serve: (command.stay || std::io::stdout().is_terminal()).then(ServeOptions::at_any_port),
        open: false,
        notes: Vec::new(),
    };
    let person = sample.person.map(|part| {
        let adj = std::env::current_exe()?;
        let person = Person::new(&adj, &dir);
        Ok::<_, std::io::Error>(std::thread::spawn(move || person.play(part)))
    });
    let person = person.transpose()?;
    let ended = fleet.run(&project, context.out, &globals)?;
    if let Some(person) = person {
        let _ = person.join();
    }
    let landed = git(&dir, &["rev-list", "--first-parent", "--merges", "--count", "main"])?;
    let checked = check(&dir)?;
    if globals.json {
        let document = Document { ended: ended.document(), repository: &dir, main_is_green: checked };
        writeln!(context.out, "{}", super::text::json(&document))?;
    } else {
        let text = summary(&ended, &globals, &dir, landed.trim(), checked, sample.look);
        context.out.write_all(text.as_bytes())?;
    }
    match (ended.left(), checked) {
        (0, true) => Ok(()),
        _ if globals.json => Err(Failure::told(Exit::Failed)),
        (_, false) => Err(Failure::new(Exit::Failed, "main is not green after the demo")),
        (left, _) => Err(Failure::new(Exit::Failed, format!("{left} tasks are not done"))
            .hint(format!("look with `adj --project {} board`", shown(&dir)))),
    }
}

fn make_folder(wanted: Option<&Path>) -> Result<PathBuf, Failure> {
    let failed = |dir: &Path, error: std::io::Error| {
        Failure::new(Exit::Failed, format!("cannot make `{}`: {error}", shown(dir)))
    };
    let dir = match wanted {
        Some(dir) => dir.to_owned(),
        None => std::env::temp_dir().join(format!("adj-demo-{:08x}", base::clock::unique() as u32)),
    };
    std::fs::create_dir_all(&dir).map_err(|error| failed(&dir, error))?;
    let mut entries = std::fs::read_dir(&dir).map_err(|error| failed(&dir, error))?;
    if entries.next().is_some() {
        return Err(Failure::new(Exit::Usage, format!("`{}` is not empty", shown(&dir)))
            .hint("name a new directory, or omit --dir"));
    }
    dir.canonicalize().map_err(|error| failed(&dir, error))
}

fn write_sample(dir: &Path, files: &[(&str, &str)]) -> Result<(), Failure> {
    for (path, text) in TALLY.iter().chain(files) {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(dir))?;
        std::fs::write(path, text)?;
    }
    git(dir, &["init", "--quiet", "--initial-branch=main"])?;
    git(dir, &["add", "--all"])?;
    git(dir, &["commit", "--quiet", "--message=Begin"])?;
    Ok(())
}

/// Git as a stranger would use it: with nobody's settings.
fn git(dir: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Demo", "-c", "user.email=demo@localhost"]).args(arguments);
    command.current_dir(dir).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().map_err(|error| {
        Failure::new(Exit::Unreachable, format!("cannot run git: {error}")).hint("install git 2.38 or newer")
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Failure::new(Exit::Failed, format!("git {} failed: {said}", arguments.join(" "))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The tests, on main as it stands in the checkout.
fn check(dir: &Path) -> Result<bool, Failure> {
    let tests = Command::new("sh").arg("tests/run").current_dir(dir).output()?;
    Ok(tests.status.success())
}

fn summary(ended: &Ended, globals: &Globals, dir: &Path, landed: &str, green: bool, look: &[&str]) -> String {
    let mut text = ended.summary(globals);
    let green = if green { "its tests pass" } else { "its tests FAIL" };
    let merges = if landed == "1" { "1 merge,".to_owned() } else { format!("{landed} merges, each") };
    text += &format!("  {:10}{merges} tested before main moved; {green}\n", "main");
    if !globals.quiet {
        // As it was called: after `make demo`, adj is on nobody's path.
        let adj = std::env::args().next().unwrap_or_else(|| "adj".to_owned());
        let dir = shown(dir);
        text += "\nLook around:\n";
        text += &format!("  git -C {dir} log --graph --oneline\n");
        for command in look {
            text += &format!("  {adj} --project {dir} {command}\n");
        }
        if project::program::which("adj").is_none() {
            text += "To have adj on your path: cargo install --path crates/adj\n";
        }
        text += "In your own repository: adj init && adj run\n";
    }
    text
}
