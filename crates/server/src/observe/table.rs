//! Every metric: its name, its labels and what it says. The page of `docs/operations.md` is printed from here.
//!
//! A label takes few values, all of them words of ours or names of projects: never an id, a path or an address, of which
//! there are more every day.

/// What is measured, and how.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    pub labels: &'static [&'static str],
    /// In one sentence, without its full stop.
    pub about: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricKind {
    /// Counts up while the server runs.
    Counter,
    /// As it is at the moment of asking.
    Gauge,
    /// Seconds, sorted into these.
    Histogram(&'static [f64]),
}

impl MetricKind {
    #[cfg(test)]
    pub fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram(_) => "histogram",
        }
    }
}

/// What is over in milliseconds where all is well.
const QUICK: MetricKind =
    MetricKind::Histogram(&[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0]);
/// What an agent takes.
const LONG: MetricKind =
    MetricKind::Histogram(&[1.0, 5.0, 15.0, 60.0, 180.0, 600.0, 1_800.0, 3_600.0, 10_800.0]);

pub const TRANSITIONS: Metric = Metric {
    name: "adjutant_transitions_total",
    kind: MetricKind::Counter,
    labels: &["project", "machine", "from", "to"],
    about: "Transitions of the five state machines",
};
pub const REFUSALS: Metric = Metric {
    name: "adjutant_refusals_total",
    kind: MetricKind::Counter,
    labels: &["project", "code"],
    about: "Requests answered with a problem, by its code",
};
pub const REQUESTS: Metric = Metric {
    name: "adjutant_requests_total",
    kind: MetricKind::Counter,
    labels: &["project", "method", "route", "status"],
    about: "Requests answered",
};
pub const REQUEST_SECONDS: Metric = Metric {
    name: "adjutant_request_duration_seconds",
    kind: QUICK,
    labels: &["project", "method", "route"],
    about: "Time from a request's head to its response's head",
};
pub const COMMANDS_WAITING: Metric = Metric {
    name: "adjutant_commands_waiting",
    kind: MetricKind::Gauge,
    labels: &["project"],
    about: "Commands waiting to be decided",
};
pub const MERGE_QUEUE: Metric = Metric {
    name: "adjutant_merge_queue_tasks",
    kind: MetricKind::Gauge,
    labels: &["project"],
    about: "Approved tasks in the merge queue, including the one being merged",
};
pub const TASKS: Metric = Metric {
    name: "adjutant_tasks",
    kind: MetricKind::Gauge,
    labels: &["project", "status"],
    about: "Tasks, by their status",
};
pub const WAITING: Metric = Metric {
    name: "adjutant_waiting",
    kind: MetricKind::Gauge,
    labels: &["project", "kind"],
    about: "Items that wait for a person or a service, as `adj waiting` lists them",
};
pub const LEASES: Metric = Metric {
    name: "adjutant_leases",
    kind: MetricKind::Gauge,
    labels: &["project"],
    about: "Tasks leased by a worker or an outside run",
};
pub const FLEET_RUNNING: Metric = Metric {
    name: "adjutant_fleet_running",
    kind: MetricKind::Gauge,
    labels: &["project"],
    about: "1 while the fleet is running, else 0",
};
pub const STEP_SECONDS: Metric = Metric {
    name: "adjutant_step_duration_seconds",
    kind: LONG,
    labels: &["project", "outcome"],
    about: "Duration of agents' steps: `done`, `more` to do, `failed`, `outage` of a service, or `ended` by someone",
};
pub const COST: Metric = Metric {
    name: "adjutant_cost_dollars",
    kind: MetricKind::Gauge,
    labels: &["project"],
    about: "Cost since the project began",
};
pub const TOKENS: Metric = Metric {
    name: "adjutant_tokens_total",
    kind: MetricKind::Counter,
    labels: &["project", "direction"],
    about: "Model tokens, `input` and `output`",
};
pub const APPEND_SECONDS: Metric = Metric {
    name: "adjutant_log_append_duration_seconds",
    kind: QUICK,
    labels: &["project"],
    about: "Time until a batch of commands is on disk",
};
pub const LOG_BYTES: Metric = Metric {
    name: "adjutant_log_size_bytes",
    kind: MetricKind::Gauge,
    labels: &["project"],
    about: "Size of the log's file",
};
pub const LAG_SECONDS: Metric = Metric {
    name: "adjutant_events_lag_seconds",
    kind: QUICK,
    labels: &["project"],
    about: "Time from the write of a record until followers can receive it",
};
pub const READERS: Metric = Metric {
    name: "adjutant_events_readers",
    kind: MetricKind::Gauge,
    labels: &["project"],
    about: "Connections that follow the log",
};
pub const CONNECTIONS: Metric = Metric {
    name: "adjutant_connections",
    kind: MetricKind::Gauge,
    labels: &["door"],
    about: "Open connections, over `tcp` and over the projects' own `socket`",
};

pub const BUILD: Metric = Metric {
    name: "adjutant_build_info",
    kind: MetricKind::Gauge,
    labels: &["version"],
    about: "Always 1; its label is the running version",
};
pub const CPU_SECONDS: Metric = Metric {
    name: "process_cpu_seconds_total",
    kind: MetricKind::Counter,
    labels: &[],
    about: "Processor time of the server's own process, in whole seconds",
};
pub const RESIDENT_BYTES: Metric = Metric {
    name: "process_resident_memory_bytes",
    kind: MetricKind::Gauge,
    labels: &[],
    about: "Memory of the server's own process",
};
pub const OPEN_FILES: Metric = Metric {
    name: "process_open_fds",
    kind: MetricKind::Gauge,
    labels: &[],
    about: "Open files and connections",
};
pub const OPEN_FILES_MAX: Metric = Metric {
    name: "process_max_fds",
    kind: MetricKind::Gauge,
    labels: &[],
    about: "Limit of open files and connections",
};
pub const START_TIME: Metric = Metric {
    name: "process_start_time_seconds",
    kind: MetricKind::Gauge,
    labels: &[],
    about: "Start time, in seconds since 1970",
};
pub const ANSWER_BYTES: Metric = Metric {
    name: "adjutant_answer_bytes",
    kind: MetricKind::Gauge,
    labels: &[],
    about: "Memory of responses that clients have not read yet",
};

pub const TABLE: &[Metric] = &[
    TRANSITIONS,
    REFUSALS,
    REQUESTS,
    REQUEST_SECONDS,
    COMMANDS_WAITING,
    MERGE_QUEUE,
    TASKS,
    WAITING,
    LEASES,
    FLEET_RUNNING,
    STEP_SECONDS,
    COST,
    TOKENS,
    APPEND_SECONDS,
    LOG_BYTES,
    LAG_SECONDS,
    READERS,
    CONNECTIONS,
    ANSWER_BYTES,
    BUILD,
    CPU_SECONDS,
    RESIDENT_BYTES,
    OPEN_FILES,
    OPEN_FILES_MAX,
    START_TIME,
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fmt::Write;

    const BEGIN: &str = "<!-- metrics: written from `crates/server/src/observe/table.rs` by `ADJ_WRITE_DOCS=1 cargo test --workspace --lib metrics` -->\n";
    const END: &str = "<!-- end of metrics -->";

    fn printed() -> String {
        let mut page = "| metric | kind | labels | |\n| --- | --- | --- | --- |\n".to_owned();
        for Metric { name, kind, labels, about } in TABLE {
            let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
            let _ = writeln!(page, "| `{name}` | {} | {} | {about} |", kind.name(), labels.join(", "));
        }
        page
    }

    #[test]
    fn metrics_are_on_the_page_as_the_table_has_them() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (there, after) = rest.split_once(END).unwrap();
        if std::env::var_os("ADJ_WRITE_DOCS").is_some() {
            std::fs::write(path, format!("{before}{BEGIN}{}{END}{after}", printed())).unwrap();
            return;
        }
        assert_eq!(there, printed(), "ADJ_WRITE_DOCS=1 cargo test --workspace --lib metrics writes it");
    }

    #[test]
    fn names_follow_what_prometheus_expects() {
        let names: BTreeSet<&str> = TABLE.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), TABLE.len(), "each has its own name");
        for Metric { name, kind, .. } in TABLE {
            // What every process has goes by the names that all programs give it.
            assert!(name.starts_with("adjutant_") || name.starts_with("process_"), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == MetricKind::Counter, "{name}");
            assert!(!matches!(kind, MetricKind::Histogram(_)) || name.ends_with("_seconds"), "{name}");
        }
    }
}
