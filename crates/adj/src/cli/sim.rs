//! `adj sim`: rehearses fleets in the simulator. The rules are the real ones; agents, git, services, people and the
//! clock are played. No project is needed, nothing is stored, and no token is spent.

use super::terminal::{dumb, duration, rounded_dollars, thousands, wrap};
use super::{Context, Exit, Failure};
use clap::Args;
use machines::Wire;
use project::settings::nearest;
use serde::Serialize;
use sim::{self, Covered, Fault, Hits, Plan, Report};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Rehearse a fleet: scripted agents, a virtual clock, and whatever may go wrong
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct Sim {
    /// First seed; a seed gives the same simulation every time
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of simulations, with consecutive seeds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    runs: u64,
    /// Tasks in each simulation
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=200))]
    tasks: u32,
    /// Workers in each simulation
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=26))]
    workers: u32,
    /// Faults to inject: none, passing, all, or a comma-separated list; each seed uses some of them
    #[arg(long, value_name = "FAULTS", default_value = "passing")]
    faults: String,
    /// Inject all of these faults in every simulation
    #[arg(long)]
    exact: bool,
    /// Print every event
    #[arg(long)]
    trace: bool,
    /// Print how often every rule, table row and fault occurred
    #[arg(long)]
    coverage: bool,
}

const HELP: &str = "\
Checks all invariants after every commit, and that the log restores the whole state after every crash. At the end every \
task must be DONE, or wait for a reason that the injected faults explain. At the first failure the command prints how to \
repeat it and exits with 1.

`passing` faults resolve without a person: every task must end as DONE.

Examples:
  adj sim                                  one simulation
  adj sim --runs 1000 --faults all         a thousand, with all kinds of faults
  adj sim --faults conflict,outage --exact --trace";

/// Lives that wait are listed up to here; the others are counted.
const WAITING_MAX: usize = 20;
/// What takes longer than this shows that it goes on.
const PROGRESS_AFTER: Duration = Duration::from_millis(700);

pub fn run(command: &Sim, context: Context) -> Result<(), Failure> {
    let allowed = faults(&command.faults)?;
    if command.seed.checked_add(command.runs - 1).is_none() {
        return Err(Failure::new(Exit::Usage, "--seed plus --runs is larger than the largest seed"));
    }
    let (json, quiet) = (context.globals.json, context.globals.quiet);
    let mut trace: Vec<String> = Vec::new();
    let total = if command.trace {
        let mut total = Total::default();
        for seed in command.seed..=command.last() {
            let mut unwritten = Ok(());
            let report = life(&command.plan(seed, &allowed), &mut |line| {
                if json {
                    trace.push(line.to_owned());
                } else if unwritten.is_ok() {
                    unwritten = writeln!(context.out, "{line}");
                }
            });
            unwritten?;
            total.add(seed, &report);
            if report.failure.is_some() {
                break;
            }
        }
        total
    } else {
        play(command, &allowed, quiet || json)
    };
    if let Some((seed, failure)) = &total.failure {
        let replay = command.plan(*seed, &allowed).command();
        return Err(Failure::new(Exit::Failed, format!("seed {seed} failed: {failure}"))
            .hint(format!("`{replay} --trace` plays it again, line by line")));
    }
    if json {
        let document = total.document(command, &allowed, command.trace.then_some(trace));
        writeln!(context.out, "{}", super::text::json(&document))?;
    } else {
        context.out.write_all(total.text(command, &allowed, quiet).as_bytes())?;
    }
    Ok(())
}

/// The faults as people type them. A wrong one is answered with the nearest.
fn faults(names: &str) -> Result<BTreeSet<Fault>, Failure> {
    if ["", "none", "passing", "all"].contains(&names.trim()) {
        return Fault::list(names).map_err(|error| Failure::new(Exit::Usage, error));
    }
    names
        .split(',')
        .map(|name| {
            Fault::read(name.trim()).ok_or_else(|| {
                let known: Vec<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
                let meant = nearest(name.trim(), known.iter().copied())
                    .map_or(String::new(), |name| format!("did you mean `{name}`? "));
                Failure::new(Exit::Usage, format!("`{}` is not a fault", name.trim().escape_debug()))
                    .hint(format!("{meant}there are none, passing, all, or any of {}", known.join(", ")))
            })
        })
        .collect()
}

impl Sim {
    fn last(&self) -> u64 {
        self.seed + (self.runs - 1)
    }

    fn plan(&self, seed: u64, allowed: &BTreeSet<Fault>) -> Plan {
        match self.exact {
            true => Plan { seed, tasks: self.tasks, workers: self.workers, faults: allowed.clone() },
            false => Plan::of_seed(seed, self.tasks, self.workers, allowed),
        }
    }
}

/// Plays one life. A bug that ends it is a failure like any other, so that its seed is told too.
fn life(plan: &Plan, trace: &mut dyn FnMut(&str)) -> Report {
    let played = std::panic::AssertUnwindSafe(|| sim::run(plan, trace));
    std::panic::catch_unwind(played).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned()));
        Report { failure: Some(said.unwrap_or_else(|| "a panic".to_owned())), ..Report::default() }
    })
}

/// Plays the lives on all cores. Seeds are taken in order, so the lowest that fails is found whoever plays it.
fn play(command: &Sim, allowed: &BTreeSet<Fault>, quiet: bool) -> Total {
    let next = AtomicU64::new(0);
    let played = AtomicU64::new(0);
    // The number of lives that need to be played; a failure lowers it.
    let needed = AtomicU64::new(command.runs);
    let total = Mutex::new(Total::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(64);
    let threads = threads.min(usize::try_from(command.runs).unwrap_or(usize::MAX));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut mine = Total::default();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= needed.load(Ordering::Relaxed) {
                        break;
                    }
                    let seed = command.seed + number;
                    let report = life(&command.plan(seed, allowed), &mut |_| {});
                    if report.failure.is_some() {
                        needed.fetch_min(number, Ordering::Relaxed);
                    }
                    mine.add(seed, &report);
                    played.fetch_add(1, Ordering::Relaxed);
                }
                total.lock().expect("nobody panics with it").merge(mine);
                // Whoever is last ends the wait below at once.
                played.fetch_add(u64::MAX / 2 / threads as u64, Ordering::Relaxed);
            });
        }
        if !quiet && io::stderr().is_terminal() && !dumb() {
            progress(command.runs, &played);
        }
    });
    total.into_inner().expect("nobody panics with it")
}

fn progress(runs: u64, played: &AtomicU64) {
    let begun = Instant::now();
    let mut shown = false;
    loop {
        let count = played.load(Ordering::Relaxed);
        if count >= runs {
            break;
        }
        if begun.elapsed() > PROGRESS_AFTER {
            shown = true;
            let seconds = begun.elapsed().as_secs_f64();
            let rate = count as f64 / seconds;
            let left = if count > 0 { ((runs - count) as f64 / rate) as i64 * 1000 } else { 0 };
            let line = format!(
                "{} of {} simulations, {rate:.0}/s, {} left",
                thousands(count),
                thousands(runs),
                duration(left)
            );
            // A line that cannot be written is not worth an end.
            let _ = write!(io::stderr(), "\r{line}\x1b[K");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    if shown {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

/// What came of all the lives. The same whichever thread played which.
#[derive(Debug, Default)]
struct Total {
    runs: u64,
    tasks: u64,
    done: u64,
    canceled: u64,
    waiting: u64,
    /// The first of those that wait, by seed.
    waits: Vec<(u64, String)>,
    commits: u64,
    events: u64,
    crashes: u64,
    virtual_millis: i64,
    cost: u64,
    digest: u64,
    hits: Hits,
    /// The lowest seed that failed, and how.
    failure: Option<(u64, String)>,
}

/// What `adj sim --json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'t> {
    seed: u64,
    runs: u64,
    tasks_per_run: u32,
    workers: u32,
    faults: Vec<&'static str>,
    exact: bool,
    tasks: Ends,
    first_waits: Vec<Wait<'t>>,
    commits: u64,
    events: u64,
    crashes: u64,
    virtual_millis: i64,
    cost_micros: u64,
    digest: String,
    coverage: Vec<Hit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Vec<String>>,
}

#[derive(Serialize)]
struct Ends {
    total: u64,
    done: u64,
    canceled: u64,
    waiting: u64,
}

#[derive(Serialize)]
struct Wait<'t> {
    seed: u64,
    waits: &'t str,
}

#[derive(Serialize)]
struct Hit {
    kind: &'static str,
    name: String,
    hits: u64,
}

impl Total {
    fn add(&mut self, seed: u64, report: &Report) {
        let failure = report.failure.clone().map(|failure| (seed, failure));
        self.merge(Total {
            runs: 1,
            tasks: u64::from(report.done + report.canceled) + report.waiting.len() as u64,
            done: u64::from(report.done),
            canceled: u64::from(report.canceled),
            waiting: report.waiting.len() as u64,
            waits: report.waiting.iter().map(|wait| (seed, wait.clone())).collect(),
            commits: report.commits,
            events: report.events,
            crashes: report.crashes,
            virtual_millis: report.virtual_millis,
            cost: report.cost,
            digest: report.digest,
            hits: report.hits.clone(),
            failure,
        });
    }

    fn merge(&mut self, other: Total) {
        self.runs += other.runs;
        self.tasks += other.tasks;
        self.done += other.done;
        self.canceled += other.canceled;
        self.waiting += other.waiting;
        self.waits.extend(other.waits);
        self.waits.sort();
        self.waits.truncate(WAITING_MAX);
        self.commits += other.commits;
        self.events += other.events;
        self.crashes += other.crashes;
        self.virtual_millis += other.virtual_millis;
        self.cost += other.cost;
        self.digest = self.digest.wrapping_add(other.digest);
        self.hits.add(&other.hits);
        self.failure = self.failure.take().into_iter().chain(other.failure).min();
    }

    /// What can be hit under these faults, with how often it was.
    fn coverage(&self, allowed: &BTreeSet<Fault>) -> Vec<Covered> {
        let possible = |covered: &Covered| {
            covered.kind != "fault"
                || Fault::read(&covered.name).is_some_and(|fault| allowed.contains(&fault))
        };
        self.hits.coverage().into_iter().filter(possible).collect()
    }

    fn document(&self, command: &Sim, allowed: &BTreeSet<Fault>, trace: Option<Vec<String>>) -> Document<'_> {
        let ends =
            Ends { total: self.tasks, done: self.done, canceled: self.canceled, waiting: self.waiting };
        let hit = |covered: Covered| Hit { kind: covered.kind, name: covered.name, hits: covered.count };
        Document {
            seed: command.seed,
            runs: self.runs,
            tasks_per_run: command.tasks,
            workers: command.workers,
            faults: allowed.iter().map(|fault| fault.name()).collect(),
            exact: command.exact,
            tasks: ends,
            first_waits: self.waits.iter().map(|(seed, waits)| Wait { seed: *seed, waits }).collect(),
            commits: self.commits,
            events: self.events,
            crashes: self.crashes,
            virtual_millis: self.virtual_millis,
            cost_micros: self.cost,
            digest: format!("{:016x}", self.digest),
            coverage: self.coverage(allowed).into_iter().map(hit).collect(),
            trace,
        }
    }

    fn text(&self, command: &Sim, allowed: &BTreeSet<Fault>, quiet: bool) -> String {
        let mut page = Page::default();
        let many = command.runs > 1;
        let (tasks, workers) = (command.tasks, command.workers);
        let size = format!("{} and {}", counted(tasks, "task"), counted(workers, "worker"));
        match many {
            true => page.line(
                "simulated",
                &format!(
                    "{} simulations of a fleet, seeds {} to {}, each with {size}",
                    thousands(self.runs),
                    command.seed,
                    command.last()
                ),
            ),
            false => page.line("simulated", &format!("one fleet, seed {}, {size}", command.seed)),
        }
        let faults = match (many && !command.exact, allowed.len()) {
            (_, 0) => "none".to_owned(),
            (true, count) => format!("each simulation takes some of {count}"),
            (false, _) => {
                let plan = command.plan(command.seed, allowed);
                let names: Vec<_> = plan.faults.iter().map(|fault| fault.name()).collect();
                if names.is_empty() { "none were taken by this seed".to_owned() } else { names.join(", ") }
            }
        };
        page.line("faults", &faults);
        page.text.push('\n');
        let mut ends = format!("{} of {} DONE", thousands(self.done), thousands(self.tasks));
        if self.canceled > 0 {
            let _ = write!(ends, ", {} CANCELED", thousands(self.canceled));
        }
        if self.waiting > 0 {
            let _ = write!(ends, ", {} wait with a cause", thousands(self.waiting));
        }
        page.line("tasks", &ends);
        let shown = if many { 3 } else { WAITING_MAX };
        for (seed, wait) in self.waits.iter().take(shown) {
            let of = if many { format!("seed {seed}: ") } else { String::new() };
            page.line("", &format!("{of}{wait}"));
        }
        if self.waiting > shown as u64 {
            page.line("", &format!("and {} more", thousands(self.waiting - shown as u64)));
        }
        page.line("commits", &format!("{}; every invariant held after each", thousands(self.commits)));
        page.line("events", &thousands(self.events));
        page.line(
            "crashes",
            &match self.crashes {
                0 => "none".to_owned(),
                count => {
                    format!("{}; after each the log folded to what was lost", thousands(count))
                }
            },
        );
        page.line("time", &format!("{}, virtual", duration(self.virtual_millis)));
        page.line("cost", &format!("{}, simulated", rounded_dollars(self.cost)));
        page.line("digest", &format!("{:016x}; the same seeds give the same", self.digest));
        let plan = command.plan(command.seed, allowed);
        let coverage = self.coverage(if many { allowed } else { &plan.faults });
        for kind in ["fault", "rule", "row"] {
            let of: Vec<_> = coverage.iter().filter(|covered| covered.kind == kind).collect();
            page.covered(kind, &of, many, command.coverage);
        }
        if !command.coverage && !quiet && coverage.iter().any(|covered| covered.count == 0) {
            page.text += "\n`--coverage` lists every one of them, and what was never hit.\n";
        }
        page.text
    }
}

fn counted(number: u32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Lines with a name in front.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, name: &str, value: &str) {
        let mut name = name;
        for line in wrap(value, 84) {
            let _ = writeln!(self.text, "{name:11}{line}");
            name = "";
        }
    }

    /// How often each was hit: all of them, or the most and the least hit.
    fn covered(&mut self, kind: &str, of: &[&Covered], many: bool, all: bool) {
        if of.is_empty() {
            return;
        }
        let mut sorted: Vec<_> = of.to_vec();
        sorted.sort_by_key(|covered| std::cmp::Reverse(covered.count));
        let hit = sorted.iter().filter(|covered| covered.count > 0).count();
        let name = |covered: &&&Covered| format!("{} {}", covered.name, thousands(covered.count));
        let list = |some: &mut dyn Iterator<Item = &&Covered>| -> String {
            some.map(|covered| name(&covered)).collect::<Vec<_>>().join(", ")
        };
        self.line(&format!("{kind}s hit"), &format!("{hit} of {}", of.len()));
        if all {
            let width = sorted.first().map_or(0, |covered| thousands(covered.count).len());
            for covered in of {
                let _ =
                    writeln!(self.text, "{:11}{:>width$}  {}", "", thousands(covered.count), covered.name);
            }
        } else if kind == "fault" && !many {
            let hits = list(&mut sorted.iter().filter(|covered| covered.count > 0));
            if !hits.is_empty() {
                self.line("", &hits);
            }
        } else if many {
            self.line("", &format!("most: {}", list(&mut sorted.iter().take(3))));
            let least = &mut sorted.iter().rev().filter(|covered| covered.count > 0).take(3);
            self.line("", &format!("least: {}", list(least)));
            if hit < of.len() {
                let never: Vec<_> = sorted.iter().filter(|c| c.count == 0).map(|c| c.name.as_str()).collect();
                let shown = never.len().min(3);
                let more = if never.len() > shown {
                    format!(" and {} more", never.len() - shown)
                } else {
                    String::new()
                };
                self.line("", &format!("never: {}{more}", never[..shown].join(", ")));
            }
        }
    }
}
