use super::*;
use testing::Folder;

fn step(name: &str) -> EffectId {
    EffectId::new(name).unwrap()
}

fn run() -> RunId {
    RunId::new("c-1.1").unwrap()
}

/// Writes pieces as if each were of a line of its own, the first of them at `at`.
fn put(words: &mut Words, seq: Seq, at: u64, texts: &[&str]) {
    let mut lines = Vec::new();
    for (at, text) in (at..).zip(texts) {
        words.last = behind(words.last, seq);
        let line = Line(words.last.seq, words.last.tick, words.step.clone(), at, *text);
        serde_json::to_writer(&mut lines, &line).unwrap();
        lines.push(b'\n');
    }
    words.append(&lines).unwrap();
}

fn all(folder: &Path, after: TokenPosition) -> Vec<(TokenPosition, String)> {
    between(folder, &run(), after, TokenPosition { seq: Seq::MAX, tick: 0 }, usize::MAX).unwrap().0
}

#[test]
fn reading_goes_on_behind_every_place_with_exactly_what_follows() {
    let folder = Folder::new();
    let mut words = Words::open(&folder.path, &run(), &step("e1")).unwrap();
    // More than one stretch, so that places are looked for.
    let text = "x".repeat(1000);
    for seq in 1..=100 {
        put(&mut words, seq, seq * 10, &[&text, "a\nb", "\u{1b}\"é"]);
    }
    let pieces = all(&folder.path, TokenPosition::default());
    assert_eq!(pieces.len(), 300);
    assert!(pieces.is_sorted_by(|one, next| one.0 < next.0));
    for (index, (place, _)) in pieces.iter().enumerate() {
        assert_eq!(all(&folder.path, *place), pieces[index + 1..], "behind {place:?}");
    }
    let through = TokenPosition { seq: 50, tick: 0 };
    let (before, more) =
        between(&folder.path, &run(), TokenPosition::default(), through, usize::MAX).unwrap();
    assert_eq!((before.len(), more), (49 * 3, false));
    let (some, more) = between(&folder.path, &run(), TokenPosition::default(), through, 1500).unwrap();
    assert_eq!((some.len(), more), (4, true));
}

#[test]
fn a_step_that_is_taken_up_again_adds_only_what_is_missing_and_leaves_no_half_of_a_line() {
    let folder = Folder::new();
    let mut words = Words::open(&folder.path, &run(), &step("e1")).unwrap();
    put(&mut words, 1, 10, &["one", "two"]);
    let mut torn = File::options().append(true).open(folder.path.join("c-1.1")).unwrap();
    torn.write_all(b"[1,2,\"e1\",12,\"thr").unwrap();

    let mut words = Words::open(&folder.path, &run(), &step("e1")).unwrap();
    let had = [(10, 0), (11, 0), (11, 1), (12, 0)].map(|(at, before)| words.has(at, before));
    assert_eq!(had, [true, true, false, false]);
    put(&mut words, 1, 12, &["three"]);
    let texts = all(&folder.path, TokenPosition::default()).into_iter().map(|(_, text)| text);
    assert_eq!(texts.collect::<Vec<_>>(), ["one", "two", "three"]);

    let words = Words::open(&folder.path, &run(), &step("e2")).unwrap();
    assert!(!words.has(0, 0), "another step begins at its own beginning");
}

#[test]
fn places_grow_though_the_clock_was_set_back() {
    let last = TokenPosition { seq: 7, tick: u64::MAX / 2 };
    assert_eq!(behind(last, 3), TokenPosition { seq: 7, tick: u64::MAX / 2 + 1 });
    assert!(behind(last, 8) > behind(last, 3));
}
