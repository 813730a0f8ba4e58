//! The order of names for people.

use std::cmp::Ordering;

/// The order in which people expect names with numbers: f2 before f10.
pub fn natural(one: &str, other: &str) -> Ordering {
    /// The digits at the beginning without zeros in front, or one character; and what follows.
    fn part(text: &str) -> Option<(bool, &str, &str)> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match digits {
            0 => {
                let first = text.chars().next()?.len_utf8();
                Some((false, &text[..first], &text[first..]))
            }
            digits => Some((true, text[..digits].trim_start_matches('0'), &text[digits..])),
        }
    }
    let (mut a, mut b) = (one, other);
    loop {
        let order = match (part(a), part(b)) {
            (Some((true, x, after_x)), Some((true, y, after_y))) => {
                (a, b) = (after_x, after_y);
                x.len().cmp(&y.len()).then_with(|| x.cmp(y))
            }
            (Some((_, x, after_x)), Some((_, y, after_y))) => {
                (a, b) = (after_x, after_y);
                x.cmp(y)
            }
            (None, None) => return one.cmp(other),
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
        };
        if order.is_ne() {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_in_names_are_ordered_as_numbers() {
        let mut names = ["f10", "f2", "f1", "e9", "f2a", "f02", "f", "10", "9"];
        names.sort_by(|one, other| super::natural(one, other));
        assert_eq!(names, ["9", "10", "e9", "f", "f1", "f02", "f2", "f2a", "f10"]);
    }
}
