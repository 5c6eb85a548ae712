//! Other readers: whatever we accept lists the same names and contents under Python's `zipfile`,
//! and Info-ZIP finds nothing wrong with it.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use package::archive::{Archive, Trailer};
use package::digest::Listing;
use package::limits::Limits;
use serde_json::Value;
use testkit::archives::drawn::{damaged, drawn};
use testkit::archives::{clean, hostile};
use testkit::draws::holds;

/// How many archives are made by chance, and how many are damaged.
const CASES: u32 = 1_500;

/// How large an archive may be to be damaged often.
const SMALL: usize = 4_096;

#[test]
fn clean_archives_are_the_same_for_other_readers() {
    let archives: Vec<_> = clean().into_iter().map(|archive| archive.bytes).collect();
    assert_eq!(compare(&archives), archives.len());
}

#[test]
fn archives_made_by_chance_that_we_accept_are_the_same_for_other_readers() {
    let archives = RefCell::new(Vec::new());
    holds(CASES, &drawn(), |bytes| {
        archives.borrow_mut().push(bytes);
        Ok(())
    });
    let accepted = compare(&archives.into_inner());
    assert!(accepted > 300, "{accepted}");
}

#[test]
fn damaged_archives_that_we_accept_are_the_same_for_other_readers() {
    let clean = clean().into_iter().map(|archive| archive.bytes);
    let seeds = clean.chain(hostile().into_iter().map(|archive| archive.bytes));
    let seeds = seeds.filter(|bytes| bytes.len() < SMALL).collect();
    let archives = RefCell::new(Vec::new());
    holds(4 * CASES, &damaged(seeds), |bytes| {
        archives.borrow_mut().push(bytes);
        Ok(())
    });
    let accepted = compare(&archives.into_inner());
    assert!(accepted > 300, "{accepted}");
}

/// Holds everything we accept against the other readers; says how many that were.
fn compare(archives: &[Vec<u8>]) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let mut accepted = BTreeMap::new();
    for (index, bytes) in archives.iter().enumerate() {
        let opened = Archive::from_bytes(bytes.clone(), Trailer::Refused, &Limits::DEFAULT);
        if let Ok(listing) = opened.and_then(|opened| opened.listing()) {
            let name = format!("{index:05}.zip");
            fs::write(folder.path().join(&name), bytes).unwrap();
            accepted.insert(name, listing);
        }
    }
    let theirs = python(folder.path());
    for (name, listing) in &accepted {
        let path = folder.path().join(name);
        assert_eq!(theirs[name], ours(listing), "{name}: {:?}", fs::read(&path).unwrap());
        check_info_zip(&path, listing);
    }
    accepted.len()
}

fn ours(listing: &Listing) -> Value {
    let files = listing.files().iter();
    files.map(|file| Value::from(vec![file.path.clone(), file.sha256.to_string()])).collect()
}

fn python(folder: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zipfile.py");
    let done = Command::new("python3").arg(script).arg(folder).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

/// Info-ZIP lists the same names, and reads every file to its end. Names beyond ASCII it decodes
/// by a rule of its own when they were made on FAT, as those of git are; it may then warn.
fn check_info_zip(path: &Path, listing: &Listing) {
    let said = |program: &str, option: &str| {
        let mut command = Command::new(program);
        let done = command.arg(option).arg(path).env("LC_ALL", "C.UTF-8").output();
        let done = done.expect("unzip is installed");
        (
            done.status.code(),
            String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned(),
        )
    };
    let (status, names) = said("zipinfo", "-1");
    // An archive of nothing is an oddity to it.
    if names.contains("Empty zipfile") {
        assert!(listing.files().is_empty());
        return;
    }
    assert_eq!(status, Some(0), "{names}");
    let may_warn = !names.is_ascii();
    let names: Vec<_> = names.lines().filter(|name| !name.ends_with('/')).collect();
    assert_eq!(names.len(), listing.files().len(), "{names:?}");
    let is_plain = |name: &&str| name.is_ascii();
    let mut names: Vec<_> = names.into_iter().filter(is_plain).collect();
    names.sort_unstable();
    let ours: Vec<_> = listing.files().iter().map(|file| file.path.as_str()).collect();
    let plain: Vec<_> = ours.iter().copied().filter(is_plain).collect();
    assert_eq!(names, plain, "{:?}", fs::read(path).unwrap());
    let (status, tested) = said("unzip", "-t");
    // After a second name in an extra field, it takes every descriptor for an overlap.
    let is_misled = tested.contains("overlapped components")
        && fs::read(path).unwrap().windows(2).any(|id| id == 0x7075_u16.to_le_bytes());
    assert!(status == Some(0) || (may_warn && status == Some(1)) || is_misled, "{tested}");
}
