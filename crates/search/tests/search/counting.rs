//! How many of what is found have each value.

use crate::common::{index_of, tool};
use search::{Change, Facet, FacetCount, Query};

/// So many tools: every second is written in Rust, every third in Go too, all are of one of five tags.
fn index() -> search::Index {
    index_of((0..300).map(|n| {
        let mut entry = tool(&format!("k{n}"), "reader", if n < 100 { "pdf" } else { "text" });
        for (facet, value, has) in [
            (Facet::Language, "Rust", n % 2 == 0),
            (Facet::Language, "Go", n % 3 == 0),
            (Facet::Platform, "linux", n % 50 == 7),
        ] {
            if has {
                entry = entry.facet(facet, value).unwrap();
            }
        }
        entry.facet(Facet::Tag, &format!("t{}", n % 5)).unwrap()
    }))
}

fn told(counts: &[FacetCount]) -> Vec<(&str, usize)> {
    counts.iter().map(|count| (count.value.as_str(), count.count)).collect()
}

#[test]
fn values_are_counted_the_commonest_first() {
    let index = index();
    let facets = [Facet::Language, Facet::Tag, Facet::Platform, Facet::Kind];
    let counts = index.snapshot().count(&Query::new(""), &facets, 3);
    assert_eq!(told(&counts[0]), [("rust", 150), ("go", 100)]);
    assert_eq!(told(&counts[1]), [("t0", 60), ("t1", 60), ("t2", 60)], "at most three");
    assert_eq!(told(&counts[2]), [("linux", 6)]);
    assert_eq!(told(&counts[3]), []);
    let counts = index.snapshot().count(&Query::new("pdf"), &facets, 9);
    assert_eq!(told(&counts[0]), [("rust", 50), ("go", 34)]);
    assert_eq!(counts[1].len(), 5);
}

#[test]
fn a_count_is_what_choosing_the_value_finds() {
    let index = index();
    let removed = (0..40).map(|n| Change::Remove(format!("k{n}")));
    index.apply(removed).unwrap();
    let snapshot = index.snapshot();
    for text in ["", "pdf", "pdf text", "nothing"] {
        let query = Query::new(text).filter(Facet::Tag, "t0").unwrap();
        let query = query.filter(Facet::Tag, "t1").unwrap();
        let counts = snapshot.count(&query, &[Facet::Language], 9);
        for count in &counts[0] {
            let chosen = query.clone().filter(Facet::Language, &count.value).unwrap();
            assert_eq!(snapshot.search(&chosen).total, count.count, "{text} {}", count.value);
        }
        // A facet that is filtered by tells what its other values would find.
        let tags = snapshot.count(&query, &[Facet::Tag], 9);
        let all = snapshot.count(&Query::new(text), &[Facet::Tag], 9);
        assert_eq!(tags, all);
    }
}
