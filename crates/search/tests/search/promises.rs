//! What must hold for any documents, any changes, any questions and any bytes.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::index_of;
use proptest::collection::{btree_map, vec};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq};
use proptest::sample::select;
use search::{Change, Entry, Facet, Field, Index, LastWord, Page, Query, ReadError, Spelling};
use testkit::draws::holds;
use testkit::fuzz;

const CASES: u32 = 400;

/// Words that are their own stems, some of them a slip away from others.
const WORDS: &[&str] = &[
    "karo", "karol", "mint", "mind", "tok", "tokon", "zulu", "pdf", "github", "gitlab", "rust", "a",
];

const VALUES: &[&str] = &["rust", "python", "go"];

/// A document before it has a key.
#[derive(Clone, Debug)]
struct Draft {
    texts: Vec<(Field, Vec<&'static str>)>,
    facets: Vec<(Facet, &'static str)>,
    rank: f32,
}

impl Draft {
    fn entry(&self, key: &str) -> Entry {
        let mut entry = Entry::new(key).unwrap().rank(self.rank).unwrap();
        for (field, words) in &self.texts {
            entry = entry.text(*field, &words.join(" "));
        }
        self.facets.iter().fold(entry, |entry, (facet, value)| entry.facet(*facet, value).unwrap())
    }

    /// How often a word is in each field, and how long each is.
    fn counts(&self, word: &str) -> BTreeMap<Field, (f64, f64)> {
        let mut counts: BTreeMap<Field, (f64, f64)> = BTreeMap::new();
        for (field, words) in &self.texts {
            let (times, length) = counts.entry(*field).or_default();
            *times += words.iter().filter(|known| **known == word).map(|_| 1.0).sum::<f64>();
            *length += words.iter().map(|_| 1.0).sum::<f64>();
        }
        counts
    }

    fn has(&self, word: &str) -> bool {
        self.texts.iter().any(|(_, words)| words.contains(&word))
    }
}

fn words(most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    vec(select(WORDS), 0..most)
}

fn draft() -> impl Strategy<Value = Draft> {
    let fields: Vec<Field> = Field::ALL.iter().map(|(field, _)| *field).collect();
    let facets = select(vec![Facet::Language, Facet::Kind]);
    let texts = vec((select(fields), words(12)), 0..5);
    let rank = select(vec![1.0_f32, 1.0, 2.0, 0.5]);
    (texts, vec((facets, select(VALUES)), 0..4), rank).prop_map(|(texts, facets, rank)| Draft {
        texts,
        facets,
        rank,
    })
}

fn drafts() -> impl Strategy<Value = BTreeMap<String, Draft>> {
    btree_map("[a-d][0-9]", draft(), 0..24)
}

fn built(drafts: &BTreeMap<String, Draft>) -> Index {
    index_of(drafts.iter().map(|(key, draft)| draft.entry(key)))
}

fn everything(index: &Index, query: &Query) -> Page {
    index.search(&query.clone().page(0, 1_000))
}

/// BM25F as it is written in a book, with nothing worked out before and nothing rounded.
fn reference(
    drafts: &BTreeMap<String, Draft>,
    asked: &BTreeSet<&str>,
) -> BTreeMap<String, (f64, f64)> {
    let all = drafts.values().map(|_| 1.0).sum::<f64>();
    let mut scores = BTreeMap::new();
    for word in asked {
        let having = drafts.values().filter(|draft| draft.has(word)).map(|_| 1.0).sum::<f64>();
        let worth = (1.0 + (all - having + 0.5) / (having + 0.5)).ln().powf(1.5);
        for (key, draft) in drafts.iter().filter(|(_, draft)| draft.has(word)) {
            let mut sum = 0.0;
            for (field, (times, length)) in draft.counts(word) {
                let (by_length, usual) =
                    (f64::from(field.by_length()), f64::from(field.usual_length()));
                sum += f64::from(field.weight()) * times
                    / (1.0 - by_length + by_length * length / usual);
            }
            let (score, error) = scores.entry(key.clone()).or_insert((0.0, 0.0));
            let rank = f64::from(draft.rank);
            *score += rank * worth * sum / (1.2 + sum);
            // An impact is rounded to a 255th, but never to nothing, and a weight to a 256th.
            *error += rank * (worth / 255.0 + 1.0 / 256.0);
        }
    }
    scores
}

#[test]
fn scores_are_those_of_bm25f() {
    holds(CASES, &(drafts(), words(8)), |(drafts, asked)| {
        let index = built(&drafts);
        let query = Query::new(&asked.join(" ")).spelling(Spelling::Exact);
        let page = everything(&index, &query);
        let asked: BTreeSet<&str> = asked.into_iter().collect();
        if asked.is_empty() {
            prop_assert_eq!(page.total, drafts.len());
            return Ok(());
        }
        let expected = reference(&drafts, &asked);
        prop_assert_eq!(page.total, expected.len());
        prop_assert_eq!(page.hits.len(), expected.len());
        for hit in &page.hits {
            let (score, error) = expected[&hit.key];
            prop_assert!((hit.score - score).abs() <= error, "{} is {score}, not {hit:?}", hit.key);
        }
        Ok(())
    });
}

#[test]
fn the_order_is_total_and_pages_are_cut_from_it() {
    let cases = (drafts(), words(4), 1..7_usize);
    holds(CASES, &cases, |(drafts, asked, size)| {
        let index = built(&drafts);
        let query = Query::new(&asked.join(" "));
        let all = everything(&index, &query);
        let is_before = |pair: &[search::Hit]| {
            let (one, other) = (&pair[0], &pair[1]);
            let by_number = other.score.total_cmp(&one.score).then(other.rank.total_cmp(&one.rank));
            by_number.then(one.key.cmp(&other.key)).is_lt()
        };
        prop_assert!(all.hits.windows(2).all(is_before), "{:?}", all.hits);
        let mut joined = Vec::new();
        for offset in (0..=all.total).step_by(size) {
            let page = index.search(&query.clone().page(offset, size));
            prop_assert_eq!(page.total, all.total);
            prop_assert!(page.hits.len() <= size);
            joined.extend(page.hits);
        }
        prop_assert_eq!(joined, all.hits);
        Ok(())
    });
}

#[test]
fn pages_of_many_documents_are_cut_from_one_order() {
    let index = Index::new();
    // Few words and few ranks, so that many documents are as good as each other; in several segments.
    for batch in 0..6 {
        let changes = (batch * 500..(batch + 1) * 500).map(|n: usize| {
            let texts = vec![(Field::Name, vec![WORDS[n % 5]]), (Field::Tags, vec![WORDS[n % 7]])];
            let rank = [1.0, 2.0, 1.0, 0.7][n % 4];
            let draft = Draft { texts, facets: vec![(Facet::Kind, VALUES[n % 3])], rank };
            Change::Put(draft.entry(&format!("k{}", n * 7_919 % 3_000)))
        });
        index.apply(changes).unwrap();
    }
    assert!(index.memory().segments > 1);
    for text in ["karo mint", "tok", ""] {
        for query in [Query::new(text), Query::new(text).filter(Facet::Kind, "rust").unwrap()] {
            let total = index.search(&query).total;
            let pages = |size: usize| {
                let pages = (0..=total).step_by(size);
                let hits = pages.flat_map(|at| index.search(&query.clone().page(at, size)).hits);
                hits.collect::<Vec<_>>()
            };
            let whole = pages(1_000);
            assert_eq!(whole.len(), total);
            assert!(total > 100, "{text}");
            assert_eq!(pages(37), whole);
            assert_eq!(index.search(&query).hits, whole[..10]);
        }
    }
}

#[test]
fn the_best_that_are_picked_early_are_the_best_of_all() {
    // Each word is in every so many documents, so there are rare and common ones, and documents with several of them.
    let words = [
        (2, "alpine"),
        (3, "bronze"),
        (7, "cactus"),
        (17, "dragon"),
        (23, "ember"),
        (41, "falcon"),
        (67, "glacier"),
        (131, "harbor"),
        (251, "indigo"),
        (499, "jasper"),
    ];
    for ranks in [[1.0, 1.0, 1.0], [0.3, 4.0, 1.0]] {
        let index = Index::new();
        for batch in 0..3 {
            let changes = (batch * 3_000..(batch + 1) * 3_000).map(|n: usize| {
                let having = words.iter().filter(|(every, _)| n.is_multiple_of(*every));
                let mut texts: Vec<_> =
                    having.map(|(_, word)| (Field::Description, vec![*word])).collect();
                texts.push((Field::Description, vec![WORDS[0]; n % 11]));
                if n.is_multiple_of(13) {
                    texts.push((Field::Name, vec!["glacial"]));
                }
                let facets = vec![(Facet::Kind, VALUES[n % 3])];
                let draft = Draft { texts, facets, rank: ranks[n % 5 % 3] };
                Change::Put(draft.entry(&format!("k{}", n * 7_919 % 9_000)))
            });
            index.apply(changes).unwrap();
        }
        index.apply((0..9_000).step_by(97).map(|n| Change::Remove(format!("k{n}")))).unwrap();
        for text in [
            "jasper indigo harbor",
            "alpine bronze cactus dragon ember falcon glacier harbor indigo jasper",
            "alpine jasper",
            "glacir falcn alpine bronze",
            "jasper indigo glac",
            "bronze alpine",
        ] {
            for query in [
                Query::new(text),
                Query::new(text).last_word(LastWord::Begun),
                Query::new(text).filter(Facet::Kind, "rust").unwrap(),
            ] {
                // So many are wanted that every score is looked at.
                let all = index.search(&query.clone().page(0, 1_000));
                for most in [1, 10, 20, 150] {
                    let best = index.search(&query.clone().page(0, most));
                    assert_eq!(best.total, all.total, "{text}");
                    assert_eq!(best.hits, all.hits[..most.min(all.hits.len())], "{text} {most}");
                }
            }
        }
    }
}

#[test]
fn filters_leave_what_looking_at_each_document_leaves() {
    let filters = vec((select(vec![Facet::Language, Facet::Kind]), select(VALUES)), 0..4);
    holds(CASES, &(drafts(), words(3), filters), |(drafts, asked, filters)| {
        let index = built(&drafts);
        let plain = Query::new(&asked.join(" "));
        let query = filters
            .iter()
            .fold(plain.clone(), |query, (facet, value)| query.filter(*facet, value).unwrap());
        let passes = |key: &str| {
            filters.iter().all(|(facet, _)| {
                let mut wanted = filters.iter().filter(|(other, _)| other == facet);
                wanted.any(|wanted| drafts[key].facets.contains(wanted))
            })
        };
        let mut expected = everything(&index, &plain).hits;
        expected.retain(|hit| passes(&hit.key));
        let page = everything(&index, &query);
        prop_assert_eq!(page.total, expected.len());
        prop_assert_eq!(page.hits, expected);
        Ok(())
    });
}

#[test]
fn an_index_that_changed_answers_like_one_that_was_made_anew() {
    let change = ("[a-d][0-9]", proptest::option::weighted(0.7, draft()));
    let batches = vec(vec(change, 0..6), 0..20);
    let cases = (batches, words(4), any::<bool>(), any::<bool>());
    holds(CASES, &cases, |(batches, asked, is_compact, is_begun)| {
        let index = Index::new();
        let mut drafts = BTreeMap::new();
        for batch in batches {
            let changes = batch.iter().map(|(key, draft)| match draft {
                Some(draft) => Change::Put(draft.entry(key)),
                None => Change::Remove(key.clone()),
            });
            index.apply(changes).unwrap();
            for (key, draft) in batch {
                match draft {
                    Some(draft) => drafts.insert(key, draft),
                    None => drafts.remove(&key),
                };
            }
        }
        if is_compact {
            index.compact();
        }
        let last = if is_begun { LastWord::Begun } else { LastWord::Whole };
        let fresh = built(&drafts);
        for text in [asked.join(" "), asked.join(" ") + " karp", "gihtub tok".to_owned()] {
            let query = Query::new(&text).last_word(last);
            prop_assert_eq!(everything(&index, &query), everything(&fresh, &query), "{}", text);
            let rust = query.filter(Facet::Language, "rust").unwrap();
            prop_assert_eq!(everything(&index, &rust), everything(&fresh, &rust));
        }
        let read = Index::from_bytes(&index.to_bytes()).unwrap();
        let query = Query::new(&asked.join(" "));
        prop_assert_eq!(everything(&read, &query), everything(&fresh, &query));
        prop_assert_eq!(read.snapshot().keys().count(), drafts.len());
        Ok(())
    });
}

#[test]
fn an_explanation_adds_up_to_the_score() {
    let typed = vec(select(vec!["karo", "gihtub", "mint", "pdf", "tok", "a", "unknown"]), 0..5);
    holds(CASES, &(drafts(), typed, any::<bool>()), |(drafts, asked, is_begun)| {
        let index = built(&drafts);
        let last = if is_begun { LastWord::Begun } else { LastWord::Whole };
        let query = Query::new(&asked.join(" ")).last_word(last);
        let page = everything(&index, &query);
        for hit in &page.hits {
            let told = index.explain(&query, &hit.key).unwrap();
            prop_assert_eq!((told.score, told.rank), (hit.score, hit.rank));
            let sum: f64 = told.words.iter().map(|word| word.score).sum();
            prop_assert!(
                (sum * f64::from(told.rank) - hit.score).abs() < 1e-9 * hit.score.max(1.0)
            );
            for word in &told.words {
                prop_assert!((word.weight * word.impact - word.score).abs() < 1e-9);
                let fields: f64 = word.fields.iter().map(|field| field.score).sum();
                prop_assert!((fields - word.score).abs() < 1e-5 * word.score.max(1.0), "{word:?}");
                prop_assert!(word.fields.iter().all(|field| field.times > 0 && field.weight > 0.0));
            }
        }
        let found: BTreeSet<_> = page.hits.iter().map(|hit| &hit.key).collect();
        for key in drafts.keys().filter(|key| !found.contains(key)) {
            prop_assert!(index.explain(&query, key).is_none());
        }
        prop_assert!(index.explain(&query, "nowhere").is_none());
        Ok(())
    });
}

#[test]
fn any_text_is_indexed_and_found_by_itself() {
    let text = || vec(any::<char>(), 0..40).prop_map(String::from_iter);
    holds(CASES * 5, &(text(), text()), |(name, other)| {
        let entry = |key: &str, name: &str| Entry::new(key).unwrap().text(Field::Name, name);
        let index = index_of([entry("one", &name), entry("other", &other)]);
        for text in [&name, &other] {
            for last in [LastWord::Whole, LastWord::Begun] {
                let query = Query::new(text).last_word(last);
                let page = index.search(&query);
                let key = if text == &name { "one" } else { "other" };
                let hit = page.hits.iter().find(|hit| hit.key == key);
                let has_words = text.chars().any(char::is_alphanumeric) || text.trim().is_empty();
                prop_assert!(hit.is_some() || !has_words, "{text:?} does not find itself");
                prop_assert_eq!(
                    index.explain(&query, key).map(|told| told.score),
                    hit.map(|hit| hit.score)
                );
            }
        }
        Ok(())
    });
}

fn sound() -> Vec<u8> {
    let entry = |key: &str| {
        let entry = Entry::new(key).unwrap().text(Field::Name, "pdf reader").rank(1.5).unwrap();
        entry.text(Field::Description, key).facet(Facet::Language, "rust").unwrap()
    };
    index_of(["one", "two", "three"].map(entry)).to_bytes()
}

#[test]
fn bytes_that_were_damaged_are_refused() {
    let bytes = sound();
    assert!(Index::from_bytes(&bytes).is_ok());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            assert!(Index::from_bytes(&damaged).is_err(), "byte {at}, bit {bit}");
        }
        assert!(Index::from_bytes(&bytes[..at]).is_err(), "cut after {at}");
    }
    assert_eq!(Index::from_bytes(b"something else").unwrap_err(), ReadError::NotAnIndex);
    let mut later = bytes.clone();
    later[12] = 2;
    assert_eq!(Index::from_bytes(&later).unwrap_err(), ReadError::Version(2));
    let mut damaged = bytes;
    damaged[20] ^= 1;
    assert_eq!(Index::from_bytes(&damaged).unwrap_err(), ReadError::Damaged);
    for error in [ReadError::TooLong, ReadError::Unsound("a word"), ReadError::Damaged] {
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn every_promise_is_kept_for_bytes() {
    let bytes = sound();
    fuzz::search_index(&bytes).unwrap();
    let body = bytes[16..bytes.len() - 4].to_vec();
    // The checksum is put right, so that what is behind it is tried.
    let changed = vec((0..body.len(), any::<u8>(), 0..3_usize), 1..4).prop_map(move |changes| {
        let mut body = body.clone();
        for (at, byte, what) in changes {
            let at = at.min(body.len() - 1);
            match what {
                0 => body[at] = byte,
                1 => body.insert(at, byte),
                _ => drop(body.remove(at)),
            }
        }
        body
    });
    holds(CASES * 20, &changed, |body| fuzz::search_index(&body));
    holds(CASES * 10, &vec(any::<u8>(), 0..64), |body| fuzz::search_index(&body));
}
