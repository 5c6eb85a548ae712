//! What must hold for any bytes at all: the bodies of the fuzz targets, as ordinary tests.

use testkit::archives::drawn::{damaged, drawn};
use testkit::archives::{clean, hostile};
use testkit::draws::{holds, made};
use testkit::fuzz;
use testkit::mutations::{Vocabulary, mutate};

/// How many cases of each kind are tried.
const CASES: u32 = 2_500;

/// How large an archive may be to be damaged often.
const SMALL: usize = 4_096;

#[test]
fn every_promise_is_kept_for_clean_and_hostile_archives() {
    for archive in clean() {
        fuzz::archive(&archive.bytes).unwrap_or_else(|error| panic!("{}: {error}", archive.name));
    }
    for archive in hostile() {
        fuzz::archive(&archive.bytes).unwrap_or_else(|error| panic!("{}: {error}", archive.name));
    }
}

#[test]
fn every_promise_is_kept_for_archives_made_by_chance() {
    holds(CASES, &drawn(), |bytes| fuzz::archive(&bytes));
}

#[test]
fn every_promise_is_kept_for_damaged_archives() {
    let clean = clean().into_iter().map(|archive| archive.bytes);
    let seeds = clean.chain(hostile().into_iter().map(|archive| archive.bytes));
    let seeds = seeds.filter(|bytes| bytes.len() < SMALL).collect();
    holds(2 * CASES, &damaged(seeds), |bytes| fuzz::archive(&bytes));
}

#[test]
fn every_promise_is_kept_for_an_archive_cut_off_anywhere() {
    for archive in clean().into_iter().filter(|archive| archive.bytes.len() < 600) {
        for len in 0..archive.bytes.len() {
            fuzz::archive(&archive.bytes[..len]).unwrap();
        }
    }
}

#[test]
fn every_promise_is_kept_for_bundles() {
    let mut accepted = 0;
    for path in testkit::examples().filter(|path| path.to_string_lossy().ends_with(".bundle.json"))
    {
        fuzz::bundle(&std::fs::read(path).unwrap()).unwrap();
        accepted += 1;
    }
    assert!(accepted > 0);
    for fixture in testkit::fixtures().filter(|fixture| fixture.group == "jumith") {
        fuzz::bundle(&std::fs::read(fixture.document()).unwrap()).unwrap();
    }
}

#[test]
fn every_promise_is_kept_for_damaged_bundles() {
    let bundle = std::fs::read(testkit::repo().join("examples/jumith/dice.bundle.json")).unwrap();
    holds(CASES / 4, &testkit::bytes::damaged(bundle), |bytes| fuzz::bundle(&bytes));
}

#[test]
fn every_promise_is_kept_for_changed_bundles() {
    let bundle = std::fs::read(testkit::repo().join("examples/jumith/dice.bundle.json")).unwrap();
    let bundle: serde_json::Value = serde_json::from_slice(&bundle).unwrap();
    let words = [
        "manifest",
        "files",
        "path",
        "content",
        "encoding",
        "base64",
        "utf8",
        "tool.json",
        "manifest.json",
        "meta/jumith.json",
        "meta/signature.sig",
        "dist/index.js",
        "executable",
    ];
    let vocabulary = Vocabulary::from_words(&words);
    let changed = made(64, |draws| {
        let mut document = bundle.clone();
        for _ in 0..=draws.below(4) {
            mutate(&mut document, &vocabulary, draws);
        }
        document.to_string().into_bytes()
    });
    holds(CASES / 2, &changed, |bytes| fuzz::bundle(&bytes));
}
