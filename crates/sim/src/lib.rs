//! The simulator: the real kernel on a memory log, with scripted agents, a virtual clock, and faults. It may know the kernel, the
//! log and its outbox driver, and nothing that touches the world. Begin with `life.rs`.
//!
//! One seed is one life of a fleet: tickets come in, workers take them, steps, gates and landings are played, and
//! whatever the seed's plan holds goes wrong on the way. After every commit all invariants hold; after every
//! crash the log folds to the World that was lost; at the end every task is DONE, or waits for a reason that the
//! plan holds. Same seed, same trace, byte for byte.

mod life;
mod people;
mod played;
mod random;
mod rooms;
mod stage;
#[cfg(test)]
mod tests;

use kernel::happened::OutcomeKind;
use machines::wire::Wire;
use std::collections::{BTreeMap, BTreeSet};

pub use life::{run, watch};

machines::wire_enum! {
    /// What can go wrong.
    pub enum Fault {
        CrashAfterAppend = "crash-after-append",
        CrashAfterEffect = "crash-after-effect",
        LostOutcome = "lost-outcome",
        DuplicatedOutcome = "duplicated-outcome",
        LateOutcome = "late-outcome",
        AgentCrash = "agent-crash",
        AgentTimeout = "agent-timeout",
        SessionLost = "session-lost",
        TreeFails = "tree-fails",
        EffectFails = "effect-fails",
        DoneLie = "done-lie",
        RedTests = "red-tests",
        Conflict = "conflict",
        RedMerge = "red-merge",
        MainMovedByOther = "main-moved",
        CheckoutInTheWay = "checkout-in-the-way",
        PullRequest = "pull-request",
        RemoteAway = "remote-away",
        Outage = "outage",
        OutageWithReset = "outage-with-reset",
        LongOutage = "long-outage",
        ClockJump = "clock-jump",
        TicketChanged = "ticket-changed",
        MainRed = "main-red",
        /// Main fails its tests from now on, and nothing tells: it was found green before.
        MainRedUnseen = "main-red-unseen",
        TestsInDoubt = "tests-in-doubt",
        TicketGone = "ticket-gone",
        LowDisk = "low-disk",
        FullDisk = "full-disk",
        HostSleep = "host-sleep",

        AgentCrashesAlways = "agent-crashes-always",
        TestsStayRed = "tests-stay-red",
        TestsNotStarted = "tests-not-started",
        NeverLands = "never-lands",
        KeeperLost = "keeper-lost",
        TreeGone = "tree-gone",
        NoChanges = "no-changes",
        NeverDone = "never-done",
        Loop = "loop",
        ToolFailures = "tool-failures",
        LimitPassed = "limit-passed",
        ToolDenied = "tool-denied",
        RedAction = "red-action",
        FewTurns = "few-turns",
        TightBudget = "tight-budget",
        TightDay = "tight-day",
        ReviewByPerson = "review-by-person",
        OutsideAgent = "outside-agent",
        Cancel = "cancel",
        Kill = "kill",
        OddMoves = "odd-moves",
        TicketClosed = "ticket-closed",
        PersonLate = "person-late",
        PersonNever = "person-never",
        Proposals = "proposals",
        Rooms = "rooms",
        Architect = "architect",
        ConflictIgnored = "conflict-ignored",
        RepeatsItself = "repeats-itself",
    }
}

impl Fault {
    /// Passes by itself: with only such faults every task is DONE without a person.
    pub fn passes(self) -> bool {
        self < Fault::AgentCrashesAlways
    }

    /// The fault as people type it, or what is known instead.
    pub fn list(names: &str) -> Result<BTreeSet<Fault>, String> {
        match names.trim() {
            "none" | "" => return Ok(BTreeSet::new()),
            "passing" => return Ok(Fault::ALL.iter().copied().filter(|fault| fault.passes()).collect()),
            "all" => return Ok(Fault::ALL.iter().copied().collect()),
            _ => {}
        }
        let read = |name: &str| {
            Fault::read(name.trim()).ok_or_else(|| {
                let known: Vec<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
                format!("`{name}` is not a fault; known: none, passing, all, {}", known.join(", "))
            })
        };
        names.split(',').map(read).collect()
    }
}

/// One life to be played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub seed: u64,
    pub tasks: u32,
    pub workers: u32,
    pub faults: BTreeSet<Fault>,
}

impl Plan {
    /// The plan of a seed: which of the faults that are allowed this life has.
    pub fn of_seed(seed: u64, tasks: u32, workers: u32, allowed: &BTreeSet<Fault>) -> Plan {
        let mut random = random::Random::new(seed ^ 0x5eed);
        let density = random.below(4);
        let faults = allowed.iter().copied().filter(|_| random.below(4) < density).collect();
        Plan { seed, tasks, workers, faults }
    }

    /// The command that plays it again.
    pub fn command(&self) -> String {
        let faults: Vec<_> = self.faults.iter().map(|fault| fault.name()).collect();
        let faults = if faults.is_empty() { "none".to_owned() } else { faults.join(",") };
        format!(
            "adj sim --seed {} --tasks {} --workers {} --faults {faults} --exact",
            self.seed, self.tasks, self.workers
        )
    }
}

/// How often each rule, row and fault was hit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    pub rules: BTreeMap<&'static str, u64>,
    pub rows: BTreeMap<(&'static str, usize), u64>,
    pub faults: BTreeMap<&'static str, u64>,
    /// What each kind of effect came to.
    pub outcomes: BTreeMap<(&'static str, OutcomeKind), u64>,
}

impl Hits {
    pub fn add(&mut self, other: &Hits) {
        fn sum<K: Ord + Copy>(into: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
            for (key, count) in from {
                *into.entry(*key).or_default() += count;
            }
        }
        sum(&mut self.rules, &other.rules);
        sum(&mut self.rows, &other.rows);
        sum(&mut self.faults, &other.faults);
        sum(&mut self.outcomes, &other.outcomes);
    }

    /// Rules, rows and faults that were never hit.
    pub fn never(&self) -> Vec<String> {
        let never = self.coverage().into_iter().filter(|covered| covered.count == 0);
        never.map(|covered| format!("{} {}", covered.kind, covered.name)).collect()
    }

    /// What an effect can come to by its row, and never came to. `Failed` is left out: the walk sends it to every effect.
    pub fn outcomes_never(&self) -> Vec<String> {
        let of_rows = kernel::Effect::OUTCOMES.iter();
        let all =
            of_rows.flat_map(|(effect, outcomes)| outcomes.iter().map(move |outcome| (*effect, *outcome)));
        let never = all.filter(|(effect, outcome)| {
            *outcome != OutcomeKind::Failed && !self.outcomes.contains_key(&(*effect, *outcome))
        });
        never.map(|(effect, outcome)| format!("{effect} {}", outcome.name())).collect()
    }

    /// Every rule, every row and every fault, with how often it was hit.
    pub fn coverage(&self) -> Vec<Covered> {
        fn rows<M: machines::Machine>(hits: &Hits, covered: &mut Vec<Covered>) {
            for (index, row) in M::TABLE.iter().enumerate() {
                let guards: Vec<_> = row.guards.iter().map(|guard| guard.name()).collect();
                let (from, event, to) = (row.from.name(), row.event.name(), row.to.name());
                covered.push(Covered {
                    kind: "row",
                    name: format!("{} {from} {event} [{}] → {to}", M::NAME, guards.join(", ")),
                    count: hits.rows.get(&(M::NAME, index)).copied().unwrap_or(0),
                });
            }
        }
        let mut covered = Vec::new();
        for rule in kernel::Rule::ALL {
            let count = self.rules.get(rule.name()).copied().unwrap_or(0);
            covered.push(Covered { kind: "rule", name: rule.name().to_owned(), count });
        }
        rows::<machines::task::Task>(self, &mut covered);
        rows::<machines::worker::Worker>(self, &mut covered);
        rows::<machines::run::Run>(self, &mut covered);
        rows::<machines::turn::Turn>(self, &mut covered);
        rows::<machines::architect::Architect>(self, &mut covered);
        // Staying is always valid and does nothing: there is nobody whom it could be seen by.
        covered.retain(|row| !(row.kind == "row" && row.name.contains(" stay [")));
        for fault in Fault::ALL {
            let count = self.faults.get(fault.name()).copied().unwrap_or(0);
            covered.push(Covered { kind: "fault", name: fault.name().to_owned(), count });
        }
        covered
    }
}

/// A rule, a row or a fault, and how often it was hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Covered {
    pub kind: &'static str,
    pub name: String,
    pub count: u64,
}

/// Something that happened in a life, with the World as it is then.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// Since the life began, in the virtual clock.
    pub at: kernel::Millis,
    pub world: &'a kernel::World,
    pub what: What<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    /// A commit is in the log.
    Committed { events: &'a [kernel::Event], rules: &'a [kernel::Rule] },
    /// A fault of the plan strikes.
    Struck(Fault),
    /// The owner was killed, and the log folded to the World that was lost.
    OwnerKilled,
}

/// How a life ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub tasks: u32,
    pub done: u32,
    pub canceled: u32,
    /// Tasks that wait, each with what it waits for.
    pub waiting: Vec<String>,
    pub commits: u64,
    pub events: u64,
    pub crashes: u64,
    pub virtual_millis: i64,
    pub cost: u64,
    pub hits: Hits,
    /// What must not have happened.
    pub failure: Option<String>,
    /// A digest of the trace: the same for the same plan.
    pub digest: u64,
}
