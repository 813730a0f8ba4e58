//! Short texts for people, cut from longer ones.

use crate::command::Happened;

pub(super) fn describe(what: &Happened) -> String {
    match what {
        Happened::Failed { error } | Happened::TreeFailed { error } | Happened::TreeUnmet { error } => {
            error.clone()
        }
        other => format!("an answer that does not fit: {other:?}").chars().take(200).collect(),
    }
}

pub(super) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(120).collect()
}
