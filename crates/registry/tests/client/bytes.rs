//! What must hold for any bytes at all that may be an answer, a list, a catalog or what is kept.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::test_runner::{Config, TestRunner};
use testkit::fuzz;

use crate::stand_in::Packed;

const CASES: u32 = 512;

fn holds(cases: u32, bytes: &impl Strategy<Value = Vec<u8>>, check: fn(&[u8]) -> fuzz::Kept) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(bytes, |bytes| check(&bytes)).unwrap();
}

/// Bytes that begin as good ones and are changed in a few places.
fn changed(good: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let length = good.len();
    (Just(good), vec((0..length, any::<u8>()), 0..4), 0..=length).prop_map(
        |(mut bytes, changes, end)| {
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            bytes.truncate(end.max(1));
            bytes
        },
    )
}

#[test]
fn any_bytes_are_an_answer_or_refused() {
    let describe = Packed::new(1).describe.to_string().into_bytes();
    let page = br#"{"results":[{"id":"tool:a.b","name":"a.b","version":"1.0.0","summary":"x"}],"total":1}"#;
    let versions = br#"{"id":"tool:a.b","name":"a.b","latest":"1.0.0","versions":[{"version":"1.0.0","sha256":"0000000000000000000000000000000000000000000000000000000000000000","size":1,"publishedAt":"2026-11-16T00:00:00.000Z","signature":"valid"}]}"#;
    let bytes = prop_oneof![
        changed(describe),
        changed(page.to_vec()),
        changed(versions.to_vec()),
        vec(any::<u8>(), 0..64)
    ];
    holds(CASES, &bytes, fuzz::registry_answer);
}

#[test]
fn any_bytes_are_a_list_of_registries_or_refused() {
    let list = br#"{"registries":[{"name":"acme","url":"https://tools.acme.example","kind":"registry","priority":5}]}"#;
    holds(
        CASES,
        &prop_oneof![changed(list.to_vec()), vec(any::<u8>(), 0..64)],
        fuzz::registry_list,
    );
}

#[test]
fn any_bytes_are_a_catalog_or_refused() {
    let read = |path: &str| std::fs::read(testkit::repo().join("examples").join(path)).unwrap();
    let catalog = read("capability/catalog/manifest.base.json");
    let index = br#"{"version":"1","manifests":[{"id":"a","manifest_url":"https://x.example/a.json","status":"active"}]}"#;
    let bytes = prop_oneof![changed(catalog), changed(index.to_vec()), vec(any::<u8>(), 0..64)];
    holds(CASES / 4, &bytes, fuzz::registry_catalog);
}

#[test]
fn any_bytes_are_what_was_kept_or_nothing() {
    let kept = registry::client::cache::Kept {
        tag: Some("\"x\"".to_owned()),
        yanked: None,
        next: Some("https://x.example/?page=2".to_owned()),
        body: b"{\"a\":1}".to_vec(),
    };
    let bytes = kept.to_bytes("https://x.example/");
    holds(CASES, &prop_oneof![changed(bytes), vec(any::<u8>(), 0..64)], fuzz::registry_kept);
}
