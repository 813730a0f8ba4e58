//! The known name that someone probably meant.

/// The nearest of `known`, if it is near enough to have been meant: at most a third of it is different.
pub fn nearest<'a>(meant: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let meant = meant.to_lowercase();
    known
        .into_iter()
        .map(|name| (distance(&meant, &name.to_lowercase()), name))
        .filter(|(distance, name)| distance * 3 <= name.chars().count().max(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Letters to insert, leave out, or change (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood_and_another_word_is_not() {
        let known = ["turn", "worker", "task", "architect", "run"];
        let meant = |name| nearest(name, known);
        assert_eq!(meant("wroker"), Some("worker"));
        assert_eq!(meant("tsk"), Some("task"));
        assert_eq!(meant("Architct"), Some("architect"));
        assert_eq!(meant("channel"), None);
        assert_eq!(meant(""), None);
    }
}
