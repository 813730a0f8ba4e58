//! What every store must do, whatever it is made of: one function for each promise, run by `conformance!`.
//!
//! A store takes part with a `Specimen`, which can be closed and opened again. A store that lies on a disk also takes part in
//! `damage!`, for what can happen there behind its back.

use std::ops::ControlFlow;

use super::{ForkAsked, LinkRow, Meta, Parts, Phase, Producer, StoreError, SubscriptionRow, Tables};
use crate::lifetime::Lifetime;

/// A store under test.
pub trait Specimen {
    /// Opens the store. What was opened before is closed by then.
    fn parts(&mut self) -> Parts;
}

/// A store under test that somebody with an editor can reach.
pub trait DamageableSpecimen: Specimen {
    /// Changes the data of the last piece of this stream. The store is closed.
    fn edit_data(&mut self, path: &str);
    /// Puts back what was stored before the last transaction. The store is closed.
    fn lose_the_last_transaction(&mut self, work: &mut dyn FnMut(&mut dyn Specimen));
    /// Why the store is taken to be damaged when it is opened.
    fn damage_found(&mut self) -> Option<String>;
}

/// Writes one test for each promise. `$specimen` is an expression that makes an empty store.
macro_rules! conformance {
    ($specimen:expr; $($promise:ident)*) => {
        $(
            #[test]
            fn $promise() {
                crate::storage::conformance::$promise(&mut $specimen);
            }
        )*
    };
    ($specimen:expr) => {
        crate::storage::conformance::conformance! {
            $specimen;
            an_empty_store_has_nothing
            a_stream_comes_back_as_it_was_added
            what_can_change_of_a_stream_changes_and_the_rest_stays
            a_path_is_taken_once
            an_id_is_never_given_twice
            pieces_come_back_in_order_from_any_position
            the_end_of_an_append_is_known
            a_producer_is_known_for_each_stream
            a_removed_stream_leaves_nothing
            forks_are_known
            what_is_due_is_found
            streams_are_found_by_how_their_path_begins
            a_subscription_comes_back_as_it_was_written
            a_removed_subscription_takes_its_links_along
            links_with_something_new_come_first
            links_are_found_by_stream
            a_failed_transaction_counts_for_nothing
            a_transaction_without_room_counts_for_nothing_and_the_next_one_does
            a_transaction_sees_what_it_wrote_and_readers_only_what_is_committed
            a_view_is_of_one_moment
            all_is_there_after_reopening
            a_secret_is_made_once
        }
    };
}
pub(crate) use conformance;

/// The same for stores that lie on a disk.
macro_rules! damage {
    ($specimen:expr; $($promise:ident)*) => {
        $(
            #[test]
            fn $promise() {
                crate::storage::conformance::$promise(&mut $specimen);
            }
        )*
    };
    ($specimen:expr) => {
        crate::storage::conformance::damage! {
            $specimen;
            edited_data_is_never_shown
            a_lost_transaction_is_noticed
        }
    };
}
pub(crate) use damage;

fn write<T>(
    parts: &mut Parts,
    work: impl FnOnce(&mut dyn Tables) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let (mut work, mut done) = (Some(work), None);
    parts.writer.transact(&mut |tables| {
        done = Some(work.take().unwrap()(tables)?);
        Ok(())
    })?;
    Ok(done.unwrap())
}

fn read<T>(parts: &Parts, look: impl FnOnce(&dyn Tables) -> T) -> T {
    let (mut look, mut seen) = (Some(look), None);
    parts.views.view(&mut |tables| seen = Some(look.take().unwrap()(tables))).unwrap();
    seen.unwrap()
}

fn named(path: &str) -> Meta {
    Meta { path: path.to_owned(), content_type: "text/plain".to_owned(), ..Meta::default() }
}

fn add(parts: &mut Parts, meta: &Meta) -> Meta {
    let id = write(parts, |tables| tables.add_stream(meta)).unwrap();
    Meta { id, ..meta.clone() }
}

/// A stream with these pieces; an append ends with each that ends in a full stop.
fn with_pieces(parts: &mut Parts, path: &str, pieces: &[&str]) -> Meta {
    let mut meta = add(parts, &named(path));
    write(parts, |tables| {
        for piece in pieces {
            meta.tail += piece.len() as u64;
            tables.add_chunk(meta.id, meta.tail, piece.ends_with('.'), piece.as_bytes())?;
        }
        tables.set_stream(&meta)
    })
    .unwrap();
    meta
}

fn pieces(tables: &dyn Tables, stream: i64, after: u64) -> Vec<(u64, String)> {
    let mut pieces = Vec::new();
    let visited = tables.chunks(stream, after, &mut |end, data| {
        pieces.push((end, String::from_utf8(data.to_vec()).unwrap()));
        ControlFlow::Continue(())
    });
    visited.unwrap();
    pieces
}

fn subscribed(id: &str) -> SubscriptionRow {
    SubscriptionRow { id: id.to_owned(), config: format!("{{\"{id}\":1}}"), ..SubscriptionRow::default() }
}

fn linked(path: &str, acked: u64) -> LinkRow {
    LinkRow { path: path.to_owned(), acked, matched: true, ..LinkRow::default() }
}

pub(crate) fn an_empty_store_has_nothing(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    read(&parts, |tables| {
        assert_eq!(tables.stream("a"), Ok(None));
        assert_eq!(tables.stream_by_id(1), Ok(None));
        assert_eq!(tables.streams_below(""), Ok(Vec::new()));
        assert_eq!(tables.producer(1, "p"), Ok(None));
        assert_eq!(tables.append_end(1, 0), Ok(None));
        assert_eq!(pieces(tables, 1, 0), []);
        assert_eq!(tables.subscription("s"), Ok(None));
        assert_eq!(tables.subscriptions(), Ok(Vec::new()));
        assert_eq!(tables.links("s", 9), Ok(Vec::new()));
        assert_eq!(tables.due_streams(u64::MAX, 9), Ok(Vec::new()));
        assert_eq!(tables.due_subscriptions(u64::MAX), Ok(Vec::new()));
    });
    assert!(!parts.writer.is_anything_due(u64::MAX));
    assert_eq!(write(&mut parts, |tables| tables.remove_subscription("s")), Ok(false));
}

pub(crate) fn a_stream_comes_back_as_it_was_added(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    let lifetimes = [
        Lifetime::Unlimited,
        Lifetime::Idle(60),
        Lifetime::Until { at: 1_000, text: "1970-01-01T00:00:01Z".into() },
    ];
    for (number, lifetime) in lifetimes.into_iter().enumerate() {
        let fork = ForkAsked { from: "source".into(), anchor: Some(3), sub: 2 };
        let new = Meta {
            lifetime,
            due: Some(5_000),
            tail: 7,
            closed: true,
            seq: Some(b"9".to_vec()),
            closer: Some(Producer { id: "p".into(), epoch: 1, seq: 2 }),
            fork_at: 7,
            fork: Some(fork),
            fork_depth: 3,
            inherits: true,
            ..named(&format!("a/{number}"))
        };
        let added = add(&mut parts, &new);
        read(&parts, |tables| {
            assert_eq!(tables.stream(&new.path), Ok(Some(added.clone())));
            assert_eq!(tables.stream_by_id(added.id), Ok(Some(added)));
        });
    }
    let plain = add(&mut parts, &named("plain"));
    assert_eq!(read(&parts, |tables| tables.stream("plain")), Ok(Some(plain)));
}

pub(crate) fn what_can_change_of_a_stream_changes_and_the_rest_stays(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    let before = add(&mut parts, &Meta { lifetime: Lifetime::Idle(60), due: Some(1), ..named("a") });
    let changed = Meta {
        due: None,
        tail: 9,
        closed: true,
        deleted: true,
        seq: Some(b"s".to_vec()),
        closer: Some(Producer { id: "p".into(), epoch: 0, seq: 1 }),
        ..before.clone()
    };
    let asked = Meta { path: "b".into(), content_type: "x/y".into(), fork_at: 4, ..changed.clone() };
    write(&mut parts, |tables| tables.set_stream(&asked)).unwrap();
    assert_eq!(read(&parts, |tables| tables.stream("a")), Ok(Some(changed)));
    write(&mut parts, |tables| tables.set_stream(&before)).unwrap();
    assert_eq!(read(&parts, |tables| tables.stream("a")), Ok(Some(before)));
}

pub(crate) fn a_path_is_taken_once(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    let first = add(&mut parts, &named("a"));
    assert!(write(&mut parts, |tables| tables.add_stream(&named("a"))).is_err());
    assert_eq!(read(&parts, |tables| tables.stream("a")), Ok(Some(first)));
}

/// Entity tags are made of it.
pub(crate) fn an_id_is_never_given_twice(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    let first = add(&mut parts, &named("a"));
    write(&mut parts, |tables| tables.remove_stream(first.id)).unwrap();
    drop(parts);
    let mut parts = specimen.parts();
    let second = add(&mut parts, &named("a"));
    assert_ne!(first.id, second.id);
}

pub(crate) fn pieces_come_back_in_order_from_any_position(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    let a = with_pieces(&mut parts, "a", &["one", "two.", "three."]);
    let b = with_pieces(&mut parts, "b", &["other."]);
    read(&parts, |tables| {
        let all = [(3, "one".to_owned()), (7, "two.".to_owned()), (13, "three.".to_owned())];
        assert_eq!(pieces(tables, a.id, 0), all);
        assert_eq!(pieces(tables, a.id, 2), all, "a piece is shown whole");
        assert_eq!(pieces(tables, a.id, 3), all[1..]);
        assert_eq!(pieces(tables, a.id, 13), []);
        assert_eq!(pieces(tables, b.id, 0), [(6, "other.".to_owned())]);
        let mut seen = 0;
        let visited = tables.chunks(a.id, 0, &mut |_, _| {
            seen += 1;
            ControlFlow::Break(())
        });
        assert_eq!((visited, seen), (Ok(()), 1));
    });
}

pub(crate) fn the_end_of_an_append_is_known(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    let a = with_pieces(&mut parts, "a", &["one", "two.", "three."]);
    read(&parts, |tables| {
        let ends = [0, 3, 6, 7, 13].map(|after| tables.append_end(a.id, after).unwrap());
        assert_eq!(ends, [Some(7), Some(7), Some(7), Some(13), None]);
    });
}

pub(crate) fn a_producer_is_known_for_each_stream(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    let (a, b) = (add(&mut parts, &named("a")), add(&mut parts, &named("b")));
    let sent = |id: &str, epoch, seq| Producer { id: id.to_owned(), epoch, seq };
    write(&mut parts, |tables| {
        tables.set_producer(a.id, &sent("p", 0, 1))?;
        tables.set_producer(a.id, &sent("p", 0, 2))?;
        tables.set_producer(a.id, &sent("q", 5, 0))?;
        tables.set_producer(b.id, &sent("p", 1, 0))
    })
    .unwrap();
    read(&parts, |tables| {
        assert_eq!(tables.producer(a.id, "p"), Ok(Some((0, 2))));
        assert_eq!(tables.producer(a.id, "q"), Ok(Some((5, 0))));
        assert_eq!(tables.producer(b.id, "p"), Ok(Some((1, 0))));
        assert_eq!(tables.producer(b.id, "q"), Ok(None));
    });
}

pub(crate) fn a_removed_stream_leaves_nothing(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    let (a, b) = (with_pieces(&mut parts, "a", &["x."]), with_pieces(&mut parts, "b", &["y."]));
    write(&mut parts, |tables| {
        tables.set_producer(a.id, &Producer { id: "p".into(), epoch: 0, seq: 0 })?;
        tables.remove_stream(a.id)
    })
    .unwrap();
    read(&parts, |tables| {
        assert_eq!(tables.stream("a"), Ok(None));
        assert_eq!(pieces(tables, a.id, 0), []);
        assert_eq!(tables.producer(a.id, "p"), Ok(None));
        assert_eq!(pieces(tables, b.id, 0).len(), 1);
    });
}

pub(crate) fn forks_are_known(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    let source = add(&mut parts, &named("source"));
    assert_eq!(read(&parts, |tables| tables.has_forks(source.id)), Ok(false));
    let fork = add(&mut parts, &Meta { parent: Some(source.id), ..named("fork") });
    assert_eq!(read(&parts, |tables| tables.has_forks(source.id)), Ok(true));
    write(&mut parts, |tables| tables.remove_stream(fork.id)).unwrap();
    assert_eq!(read(&parts, |tables| tables.has_forks(source.id)), Ok(false));
}

pub(crate) fn what_is_due_is_found(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    let early = add(&mut parts, &Meta { due: Some(10), ..named("early") });
    let late = add(&mut parts, &Meta { due: Some(20), ..named("late") });
    add(&mut parts, &named("never"));
    assert!(!parts.writer.is_anything_due(9));
    assert!(parts.writer.is_anything_due(10));
    read(&parts, |tables| {
        assert_eq!(tables.due_streams(9, 9), Ok(Vec::new()));
        assert_eq!(tables.due_streams(10, 9), Ok(vec![early.id]));
        assert_eq!(tables.due_streams(20, 1).unwrap().len(), 1);
        let mut all = tables.due_streams(20, 9).unwrap();
        all.sort_unstable();
        assert_eq!(all, [early.id, late.id]);
    });

    write(&mut parts, |tables| {
        tables.remove_stream(early.id)?;
        tables.remove_stream(late.id)?;
        tables.add_subscription(&SubscriptionRow { lease_until: Some(30), ..subscribed("leased") })?;
        tables.add_subscription(&SubscriptionRow { next_attempt: Some(40), ..subscribed("again") })?;
        tables.add_subscription(&subscribed("idle"))
    })
    .unwrap();
    assert!(!parts.writer.is_anything_due(29));
    assert!(parts.writer.is_anything_due(30));
    assert_eq!(read(&parts, |tables| tables.due_subscriptions(30)), Ok(vec!["leased".to_owned()]));
    let mut all = read(&parts, |tables| tables.due_subscriptions(40)).unwrap();
    all.sort();
    assert_eq!(all, ["again", "leased"]);
}

pub(crate) fn streams_are_found_by_how_their_path_begins(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    for (path, tail) in [("b", 1), ("a/2", 2), ("a/1", 3), ("ab", 4)] {
        add(&mut parts, &Meta { tail, ..named(path) });
    }
    add(&mut parts, &Meta { deleted: true, ..named("a/3") });
    let below = |prefix| {
        let found = read(&parts, |tables| tables.streams_below(prefix)).unwrap();
        found.into_iter().map(|(path, tail)| format!("{path} {tail}")).collect::<Vec<_>>()
    };
    assert_eq!(below("a/"), ["a/1 3", "a/2 2"]);
    assert_eq!(below("a"), ["a/1 3", "a/2 2", "ab 4"]);
    assert_eq!(below(""), ["a/1 3", "a/2 2", "ab 4", "b 1"]);
    assert_eq!(below("c"), Vec::<String>::new());
}

pub(crate) fn a_subscription_comes_back_as_it_was_written(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    let new = SubscriptionRow { base: "http://here".into(), created: 9, ..subscribed("s") };
    write(&mut parts, |tables| tables.add_subscription(&new)).unwrap();
    assert_eq!(read(&parts, |tables| tables.subscription("s")), Ok(Some(new.clone())));
    for phase in [Phase::Waking, Phase::Leased, Phase::Idle] {
        let changed = SubscriptionRow {
            phase,
            generation: 3,
            wake_id: Some("w".into()),
            holder: Some("h".into()),
            lease_until: Some(100),
            snapshot: vec![("a".into(), 1), ("b".into(), 2)],
            attempts: 4,
            next_attempt: Some(200),
            ..new.clone()
        };
        let asked = SubscriptionRow { config: "{}".into(), base: "x".into(), created: 1, ..changed.clone() };
        write(&mut parts, |tables| tables.set_subscription(&asked)).unwrap();
        assert_eq!(read(&parts, |tables| tables.subscription("s")), Ok(Some(changed)));
    }
    assert!(write(&mut parts, |tables| tables.add_subscription(&new)).is_err());
    let all = read(&parts, |tables| tables.subscriptions()).unwrap();
    assert_eq!(all, [(new.id, new.config)]);
}

pub(crate) fn a_removed_subscription_takes_its_links_along(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    write(&mut parts, |tables| {
        tables.add_subscription(&subscribed("s"))?;
        tables.add_subscription(&subscribed("t"))?;
        tables.set_link("s", &linked("a", 0))?;
        tables.set_link("t", &linked("a", 0))
    })
    .unwrap();
    assert_eq!(write(&mut parts, |tables| tables.remove_subscription("s")), Ok(true));
    read(&parts, |tables| {
        assert_eq!(tables.subscription("s"), Ok(None));
        assert_eq!(tables.link("s", "a"), Ok(None));
        assert_eq!(tables.links_to("a"), Ok(vec![("t".to_owned(), linked("a", 0))]));
    });
}

pub(crate) fn links_with_something_new_come_first(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    for (path, tail) in [("a", 5), ("b", 5), ("c", 5)] {
        add(&mut parts, &Meta { tail, ..named(path) });
    }
    add(&mut parts, &Meta { tail: 5, deleted: true, ..named("deleted") });
    write(&mut parts, |tables| {
        tables.add_subscription(&subscribed("s"))?;
        for (path, acked) in [("a", 5), ("b", 4), ("c", 0), ("deleted", 0), ("none", 3)] {
            tables.set_link("s", &linked(path, acked))?;
        }
        tables.set_link("t", &linked("a", 0))
    })
    .unwrap();
    let links = |most| {
        let links = read(&parts, |tables| tables.links("s", most)).unwrap();
        let shown = links.into_iter().map(|(link, tail)| format!("{} {} {tail:?}", link.path, link.acked));
        shown.collect::<Vec<_>>()
    };
    let all = ["b 4 Some(5)", "c 0 Some(5)", "a 5 Some(5)", "deleted 0 None", "none 3 None"];
    assert_eq!(links(9), all);
    assert_eq!(links(usize::MAX), all);
    assert_eq!(links(1), all[..1]);
}

pub(crate) fn links_are_found_by_stream(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    let explicit = LinkRow { explicit: true, matched: false, ..linked("a", 7) };
    write(&mut parts, |tables| {
        tables.set_link("t", &linked("a", 1))?;
        tables.set_link("s", &linked("a", 2))?;
        tables.set_link("s", &linked("b", 3))?;
        tables.set_link("s", &explicit)
    })
    .unwrap();
    read(&parts, |tables| {
        let to_a = vec![("s".to_owned(), explicit.clone()), ("t".to_owned(), linked("a", 1))];
        assert_eq!(tables.links_to("a"), Ok(to_a));
        assert_eq!(tables.link("s", "a"), Ok(Some(explicit)));
        assert_eq!(tables.link("t", "b"), Ok(None));
    });
    write(&mut parts, |tables| tables.remove_link("s", "a")).unwrap();
    assert_eq!(read(&parts, |tables| tables.links_to("a")).unwrap().len(), 1);
    assert_eq!(read(&parts, |tables| tables.links_to("b")).unwrap().len(), 1);
}

pub(crate) fn a_failed_transaction_counts_for_nothing(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    let kept = with_pieces(&mut parts, "kept", &["x."]);
    let failed: Result<(), _> = write(&mut parts, |tables| {
        tables.add_stream(&named("lost"))?;
        tables.add_chunk(kept.id, 3, true, b"y")?;
        tables.add_subscription(&subscribed("lost"))?;
        Err(StoreError::Failed("as is wanted".into()))
    });
    assert_eq!(failed, Err(StoreError::Failed("as is wanted".into())));
    read(&parts, |tables| {
        assert_eq!(tables.stream("lost"), Ok(None));
        assert_eq!(tables.subscription("lost"), Ok(None));
        assert_eq!(pieces(tables, kept.id, 0).len(), 1);
    });
    add(&mut parts, &named("after"));
    assert!(read(&parts, |tables| tables.stream("after")).unwrap().is_some());
}

pub(crate) fn a_transaction_without_room_counts_for_nothing_and_the_next_one_does(
    specimen: &mut dyn Specimen,
) {
    let mut parts = specimen.parts();
    let a = add(&mut parts, &named("a"));
    write(&mut parts, |tables| tables.leave_no_room()).unwrap();
    let large = vec![b'x'; 256 * 1024];
    let full = write(&mut parts, |tables| {
        tables.add_stream(&named("b"))?;
        (1..=8).try_for_each(|n| tables.add_chunk(a.id, n * large.len() as u64, true, &large))
    });
    assert_eq!(full, Err(StoreError::Full));
    assert_eq!(read(&parts, |tables| tables.stream("b")), Ok(None));
    assert_eq!(read(&parts, |tables| pieces(tables, a.id, 0)), []);
    write(&mut parts, |tables| tables.add_chunk(a.id, large.len() as u64, true, &large)).unwrap();
    assert_eq!(read(&parts, |tables| pieces(tables, a.id, 0)).len(), 1);
}

pub(crate) fn a_transaction_sees_what_it_wrote_and_readers_only_what_is_committed(
    specimen: &mut dyn Specimen,
) {
    let mut parts = specimen.parts();
    let views = parts.views.clone();
    write(&mut parts, |tables| {
        tables.add_stream(&named("a"))?;
        assert!(tables.stream("a")?.is_some());
        views.view(&mut |view| assert_eq!(view.stream("a"), Ok(None)))
    })
    .unwrap();
    assert!(read(&parts, |tables| tables.stream("a")).unwrap().is_some());
}

pub(crate) fn a_view_is_of_one_moment(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    add(&mut parts, &named("a"));
    let Parts { writer, views } = parts;
    let mut parts = Parts { writer, views: views.clone() };
    let viewed = views.view(&mut |view| {
        assert!(view.stream("a").unwrap().is_some());
        add(&mut parts, &named("b"));
        assert_eq!(view.stream("b"), Ok(None));
    });
    viewed.unwrap();
    assert!(read(&parts, |tables| tables.stream("b")).unwrap().is_some());
}

pub(crate) fn all_is_there_after_reopening(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    let a = with_pieces(&mut parts, "a", &["one", "two."]);
    write(&mut parts, |tables| {
        tables.set_producer(a.id, &Producer { id: "p".into(), epoch: 1, seq: 2 })?;
        tables.add_subscription(&subscribed("s"))?;
        tables.set_link("s", &linked("a", 3))
    })
    .unwrap();
    drop(parts);
    let parts = specimen.parts();
    read(&parts, |tables| {
        assert_eq!(tables.stream("a"), Ok(Some(a.clone())));
        assert_eq!(pieces(tables, a.id, 0).len(), 2);
        assert_eq!(tables.producer(a.id, "p"), Ok(Some((1, 2))));
        assert_eq!(tables.subscription("s"), Ok(Some(subscribed("s"))));
        assert_eq!(tables.links("s", 9), Ok(vec![(linked("a", 3), Some(7))]));
    });
}

pub(crate) fn a_secret_is_made_once(specimen: &mut dyn Specimen) {
    let mut parts = specimen.parts();
    assert_eq!(parts.writer.secret("k", &mut || Err("no chance".into())), Err("no chance".into()));
    assert_eq!(parts.writer.secret("k", &mut || Ok(vec![1])), Ok(vec![1]));
    assert_eq!(parts.writer.secret("k", &mut || Ok(vec![2])), Ok(vec![1]));
    assert_eq!(parts.writer.secret("l", &mut || Ok(vec![3])), Ok(vec![3]));
    drop(parts);
    let mut parts = specimen.parts();
    assert_eq!(parts.writer.secret("k", &mut || Ok(vec![4])), Ok(vec![1]));
}

pub(crate) fn edited_data_is_never_shown(specimen: &mut dyn DamageableSpecimen) {
    let mut parts = specimen.parts();
    let a = with_pieces(&mut parts, "a", &["one.", "two."]);
    let b = with_pieces(&mut parts, "b", &["whole."]);
    drop(parts);
    specimen.edit_data("a");
    let parts = specimen.parts();
    read(&parts, |tables| {
        let mut seen = Vec::new();
        let visited = tables.chunks(a.id, 0, &mut |end, _| {
            seen.push(end);
            ControlFlow::Continue(())
        });
        assert!(matches!(visited, Err(StoreError::Damaged(_))), "{visited:?}");
        assert_eq!(seen, [4]);
        assert_eq!(pieces(tables, b.id, 0).len(), 1);
    });
}

pub(crate) fn a_lost_transaction_is_noticed(specimen: &mut dyn DamageableSpecimen) {
    let mut parts = specimen.parts();
    add(&mut parts, &named("a"));
    drop(parts);
    assert_eq!(specimen.damage_found(), None);
    specimen.lose_the_last_transaction(&mut |specimen| {
        add(&mut specimen.parts(), &named("b"));
    });
    let found = specimen.damage_found();
    assert!(found.is_some(), "the transaction is gone, and nobody said so");
}
