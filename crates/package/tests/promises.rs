//! What must hold for any bytes at all: the bodies of the fuzz targets, as ordinary tests.

use testkit::archives::drawn::{damaged, drawn};
use testkit::archives::{clean, hostile};
use testkit::draws::holds;
use testkit::fuzz;

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
