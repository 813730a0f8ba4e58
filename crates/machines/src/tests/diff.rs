//! What differs between a printed page or snapshot and its file, for the message of the test that compares them. The
//! tests of the other crates use this file too.

/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;

/// The lines of `old` that are gone (`-`) and of `new` that are added (`+`), with some lines around each change.
pub(crate) fn diff(old: &str, new: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    // `same[i][j]`: how many lines `old[i..]` and `new[j..]` have in common, in their order.
    let mut same = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            same[i][j] = match old[i] == new[j] {
                true => same[i + 1][j + 1] + 1,
                false => same[i + 1][j].max(same[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', i, old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && same[i + 1][j] >= same[i][j + 1]) {
            lines.push(('-', i, old[i]));
            i += 1;
        } else {
            lines.push(('+', i, new[j]));
            j += 1;
        }
    }
    let (mut text, mut shown) = (String::new(), None);
    for (at, (sign, line, content)) in lines.iter().enumerate() {
        let around = &lines[at.saturating_sub(CONTEXT)..lines.len().min(at + CONTEXT + 1)];
        if around.iter().all(|(sign, ..)| *sign == ' ') {
            continue;
        }
        if shown != at.checked_sub(1) || at == 0 {
            text += &format!("@@ line {} @@\n", line + 1);
        }
        shown = Some(at);
        text += &format!("{sign}{content}\n");
    }
    if text.is_empty() { "they differ in line endings only".to_owned() } else { text }
}

#[test]
fn a_diff_shows_each_change_with_the_lines_around_it() {
    let old: Vec<_> = (1..=20).map(|line| line.to_string()).collect();
    let mut new = old.clone();
    new[1] = "two".to_owned();
    new.remove(14);
    assert_eq!(
        diff(&old.join("\n"), &new.join("\n")),
        "@@ line 1 @@\n 1\n-2\n+two\n 3\n 4\n 5\n@@ line 12 @@\n 12\n 13\n 14\n-15\n 16\n 17\n 18\n"
    );
}
