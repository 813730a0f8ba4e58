//! Short texts for people, cut from longer ones.

pub(super) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(120).collect()
}
