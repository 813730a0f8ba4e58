//! Finds the known name that is nearest to a misspelt one.

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

/// Letters to insert, leave out, change, or swap with the next (optimal string alignment).
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.iter().enumerate() {
        let mut row = vec![line + 1];
        for (column, other) in to.iter().enumerate() {
            let changed = last[column] + usize::from(letter != other);
            let mut least = changed.min(last[column + 1] + 1).min(row[column] + 1);
            if line > 0 && column > 0 && from[line - 1] == *other && *letter == to[column - 1] {
                least = least.min(before[column - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[to.len()]
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
