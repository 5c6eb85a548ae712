//! An index that changes while it is searched.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{found, index_of, keys, tool};
use search::{Change, Full, Index, Query};

#[test]
fn what_is_put_is_found_at_once_and_what_is_removed_is_not() {
    let index = Index::new();
    index.put(tool("a", "pdf", "reads")).unwrap();
    assert_eq!(found(&index, "pdf"), ["a"]);
    index.put(tool("a", "csv", "reads")).unwrap();
    assert!(found(&index, "pdf").is_empty());
    assert_eq!(found(&index, "csv"), ["a"]);
    assert!(index.snapshot().contains("a"));
    index.remove("a");
    index.remove("never there");
    assert!(found(&index, "csv").is_empty());
    assert!(index.snapshot().is_empty());
    assert_eq!(index.memory().segments, 0);
}

#[test]
fn of_several_changes_to_one_key_the_last_counts() {
    let index = Index::new();
    let put = |name| Change::Put(tool("a", name, ""));
    index.apply([put("one"), put("two")]).unwrap();
    assert_eq!((found(&index, "one").len(), found(&index, "two").len()), (0, 1));
    index.apply([put("three"), Change::Remove("a".to_owned())]).unwrap();
    assert_eq!(index.snapshot().len(), 0);
    index.apply([Change::Remove("a".to_owned()), put("four")]).unwrap();
    assert_eq!(found(&index, "four"), ["a"]);
}

#[test]
fn a_full_index_refuses_more_and_changes_nothing() {
    let index = Index::with_room_for(2);
    let put = |key: &str| Change::Put(tool(key, "pdf", ""));
    index.apply([put("a"), put("b")]).unwrap();
    assert_eq!(index.apply([put("c"), Change::Put(tool("a", "csv", ""))]), Err(Full { most: 2 }));
    assert_eq!(found(&index, "pdf"), ["a", "b"]);
    assert!(found(&index, "csv").is_empty());
    index.apply([put("c"), Change::Remove("a".to_owned())]).unwrap();
    assert_eq!(found(&index, "pdf"), ["b", "c"]);
    assert!(Full { most: 2 }.to_string().contains('2'));
}

#[test]
fn there_are_never_many_segments_and_compacting_leaves_one() {
    let index = Index::new();
    for n in 0..1_500 {
        index.put(tool(&format!("k{n:04}"), "pdf", &format!("word{}", n % 7))).unwrap();
        assert!(index.memory().segments <= 40, "{:?}", index.memory());
    }
    for n in 0..700 {
        index.remove(&format!("k{n:04}"));
    }
    let query = Query::new("pdf word3").page(0, 1_000);
    let before = index.search(&query);
    assert_eq!(before.total, 800);
    let took = index.memory().total;
    index.compact();
    assert_eq!(index.search(&query), before);
    assert_eq!(index.memory().segments, 1);
    assert!(index.memory().total < took, "what was removed is gone");
    assert_eq!(index.memory().documents, 800);
}

#[test]
fn pages_of_a_snapshot_fit_together_while_the_index_changes() {
    let index = index_of((0..30).map(|n| tool(&format!("k{n:02}"), "pdf", "")));
    let snapshot = index.snapshot();
    let first = snapshot.search(&Query::new("pdf").page(0, 20));
    index.apply((0..30).map(|n| Change::Remove(format!("k{n:02}")))).unwrap();
    let second = snapshot.search(&Query::new("pdf").page(20, 20));
    let all: Vec<_> = keys(&first).into_iter().chain(keys(&second)).collect();
    assert_eq!(all, (0..30).map(|n| format!("k{n:02}")).collect::<Vec<_>>());
    assert_eq!((first.total, second.total), (30, 30));
    assert_eq!(index.search(&Query::new("pdf")).total, 0);
}

#[test]
fn readers_see_all_of_a_change_or_nothing_of_it() {
    let index = Index::new();
    let batch =
        |name: &'static str| (0..10).map(move |n| Change::Put(tool(&n.to_string(), name, "")));
    index.apply(batch("even")).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let snapshot = index.snapshot();
                    let total = |name| snapshot.search(&Query::new(name)).total;
                    assert_eq!((total("even").max(total("odd")), snapshot.len()), (10, 10));
                    assert_eq!(total("even").min(total("odd")), 0);
                }
            });
        }
        for round in 0..200 {
            index.apply(batch(if round % 2 == 0 { "odd" } else { "even" })).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
