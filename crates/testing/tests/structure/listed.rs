//! The uses that close a cycle today. The list only shrinks: a use that is gone, or that closes no cycle any more, fails
//! the test until it is removed from here.

/// A use that closes a cycle: the user, the used, and the first name used.
type Use = (&'static str, &'static str, &'static str);

/// The folder, why its cycles are there, and each use that closes one.
pub const LISTED: &[(&str, &str, &[Use])] = &[
    (
        "kernel/src",
        "the machine moves are carried out by rules, and rules move machines; World, commands and events name each other",
        &[
            ("draft.rs", "rules/", "Rule"),
            ("rooms.rs", "world.rs", "Spend"),
            ("rules/", "why/", "fleet_blocker_but_money"),
            ("specs.rs", "world.rs", "Task"),
            ("standstill.rs", "waiting.rs", "About"),
            ("standstill.rs", "world.rs", "World"),
        ],
    ),
    (
        "kernel/src/rules",
        "a rule that ends in another one: the files are cut by subject",
        &[
            ("approval.rs", "outside_runs.rs", "call_decided"),
            ("architect.rs", "approval.rs", "decide"),
            ("architect.rs", "landing.rs", "approve"),
            ("architect.rs", "people.rs", "person_moves"),
            ("architect.rs", "seats.rs", "Said"),
            ("architect.rs", "service.rs", "suspension"),
            ("budgets.rs", "claim.rs", "plan_for"),
            ("landing.rs", "outcome.rs", "describe"),
            ("landing.rs", "people.rs", "canceled"),
            ("landing.rs", "rooms.rs", "task_decided"),
            ("main_tests.rs", "landing.rs", "gate_red"),
            ("next.rs", "requests.rs", "untold_answers"),
            ("next.rs", "service.rs", "held_back"),
            ("next.rs", "step.rs", "budget_reached"),
            ("release.rs", "architect.rs", "budget_asked"),
            ("rooms.rs", "people.rs", "person_moves"),
            ("rooms.rs", "seats.rs", "Said"),
            ("rooms.rs", "service.rs", "suspension"),
            ("service.rs", "presence.rs", "gone"),
            ("step.rs", "fleet.rs", "fill_place"),
            ("step.rs", "service.rs", "Away"),
            ("tickets.rs", "landing.rs", "unqueue"),
            ("tickets.rs", "people.rs", "canceled"),
        ],
    ),
];
