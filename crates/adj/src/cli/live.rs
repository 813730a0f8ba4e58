//! What the live view of a fleet shows: words and what they mean, made of the API's answer alone. How it is drawn, and how
//! much of it fits, is decided elsewhere.

use super::text::Money;
use api::activity;
use api::format::read_time;
use api::types::overview::{BoardColumn, Column, ForYou, LandingUnderWay, Overview, TestsUnderWay};
use api::types::worker::Worker;
use machines::worker::State;

/// A view of one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveView {
    /// `1 of 9  $0.07`
    pub brief: String,
    /// Without what Ctrl-C does, which only whoever runs the fleet knows.
    pub facts: String,
    pub workers: Vec<WorkerRow>,
    /// What everybody waits for: main's own tests, or the one landing under way.
    pub under_way: Option<String>,
    pub columns: Vec<BoardColumn>,
    pub for_you: Vec<ForYou>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerRow {
    pub name: String,
    pub state: State,
    pub symbol: String,
    pub task: Option<WorkerTask>,
    /// What it does, or waits for.
    pub doing: String,
    pub waits: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerTask {
    pub id: String,
    pub title: String,
}

impl LiveView {
    /// `begun`: when whoever looks began to.
    pub fn new(overview: &Overview, begun: i64) -> LiveView {
        let now = read_time(&overview.at).unwrap_or(begun);
        let money = Money::of(&overview.cost);
        let (done, wanted) = (overview.counts.done, overview.counts.wanted);
        let landing = || overview.landing.as_ref().map(|landing| lands(landing, now));
        LiveView {
            brief: format!("{done} of {wanted}  {}", money.short()),
            facts: format!("{}   {done} of {wanted} done   {}", elapsed((now - begun).max(0)), money.words()),
            workers: overview.workers.iter().map(|worker| row(worker, now)).collect(),
            // Main's own tests hold everybody up: without their command and time the fleet would look dead.
            under_way: overview.main_tests.as_ref().map(|tests| tests_main(tests, now)).or_else(landing),
            columns: overview.columns.clone(),
            for_you: overview.for_you.clone(),
        }
    }
}

/// The heading of a column.
pub fn heading(column: Column) -> &'static str {
    match column {
        Column::Wait => "WAIT",
        Column::Work => "WORK",
        Column::Review => "REVIEW",
        Column::Land => "LAND",
        Column::You => "YOU",
        Column::Done => "DONE",
    }
}

fn row(worker: &Worker, now: i64) -> WorkerRow {
    let Worker { line, whole } = worker;
    let title = whole.as_ref().and_then(|whole| whole.task_title.clone()).unwrap_or_default();
    WorkerRow {
        name: line.name.clone(),
        state: line.status,
        symbol: line.symbol.clone(),
        task: line.task.clone().map(|id| WorkerTask { id, title }),
        doing: activity::words(worker, now),
        waits: whole.as_ref().is_some_and(|whole| whole.activity.waits()),
    }
}

fn tests_main(tests: &TestsUnderWay, now: i64) -> String {
    match (&tests.command, tests.since.as_deref().and_then(read_time)) {
        (Some(command), Some(since)) => format!("testing main  {} s: {command}", seconds(since, now)),
        _ => "testing main".to_owned(),
    }
}

/// The one landing under way: what is done, and for how long.
fn lands(landing: &LandingUnderWay, now: i64) -> String {
    let task = &landing.task;
    if landing.moves {
        return format!("landing {task}  moves main");
    }
    let since = read_time(&landing.since).map(|since| format!(" {} s", seconds(since, now)));
    let command = landing.command.as_ref().map(|command| format!(": {command}"));
    let (since, command) = (since.unwrap_or_default(), command.unwrap_or_default());
    format!("landing {task}  tests of the merge running{since}{command}")
}

fn seconds(since: i64, now: i64) -> i64 {
    (now - since).max(0) / 1000
}

/// A stretch of time as hours, minutes and seconds.
fn elapsed(millis: i64) -> String {
    let seconds = millis / 1000;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
