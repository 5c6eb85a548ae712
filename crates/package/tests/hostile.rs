//! Hostile archives: each is refused for its own reason, in bounded time and memory, and nothing
//! of it is left on the disk.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use package::archive::{Archive, Trailer};
use package::digest::Digest;
use package::extract::{ExtractError, extract};
use package::limits::Limits;
use package::refusal::{ReadError, RefusalCode};
use testkit::archives::{self, Hostile};

use common::snapshot;

/// The longest that any of them may take, in a build without optimisation, on a busy machine.
const MOST_TIME: Duration = Duration::from_secs(5);

/// The most memory it may take to refuse any of them: buffers, names, the directory. What a bomb
/// unfolds into is never held.
const MOST_MEMORY_KIB: u64 = 16 * 1024;

/// The codes that an archive alone cannot give: whoever looks for a manifest gives them.
const NOT_OF_THE_READER: [RefusalCode; 2] =
    [RefusalCode::NoManifest, RefusalCode::SeveralManifests];

#[test]
fn there_is_a_hostile_archive_for_every_code() {
    let tried: BTreeSet<_> = hostile().iter().map(|archive| archive.code).collect();
    let all: BTreeSet<_> = RefusalCode::ALL.iter().copied().collect();
    let missing: Vec<_> = all.difference(&tried).copied().collect();
    assert_eq!(missing, NOT_OF_THE_READER);
}

#[test]
fn no_two_hostile_archives_are_one() {
    let archives = hostile();
    let names: BTreeSet<_> = archives.iter().map(|archive| &archive.name).collect();
    let bytes: BTreeSet<_> = archives.iter().map(|archive| Digest::of(&archive.bytes)).collect();
    assert_eq!(names.len(), archives.len());
    assert_eq!(bytes.len(), archives.len());
    assert!(archives.len() >= 250, "{}", archives.len());
}

#[test]
fn each_is_refused_with_its_own_code_by_listing_it() {
    each(|archive| {
        let listed = open(archive).and_then(|opened| opened.listing());
        listed.map(|_| ()).map_err(|error| said(&error))
    });
}

#[test]
fn each_is_refused_with_its_own_code_on_the_disk_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive.zip");
    each(|archive| {
        fs::write(&path, &archive.bytes).unwrap();
        let file = fs::File::open(&path).unwrap();
        let opened = Archive::open(file, Trailer::Refused, &Limits::DEFAULT);
        let listed = opened.and_then(|opened| opened.listing());
        listed.map(|_| ()).map_err(|error| said(&error))
    });
}

#[test]
fn each_is_refused_by_extraction_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let parent = folder.path().join("parent");
    fs::create_dir_all(parent.join("neighbour")).unwrap();
    fs::write(parent.join("neighbour/file"), "mine").unwrap();
    let before = snapshot(folder.path());
    each(|archive| {
        let result = open(archive)
            .map_err(ExtractError::Read)
            .and_then(|opened| extract(&opened, &parent.join("target")).map(|_| ()));
        assert_eq!(snapshot(folder.path()), before, "`{}` left something", archive.name);
        result.map_err(|error| match error {
            ExtractError::Read(error) => said(&error),
            other => other.to_string(),
        })
    });
}

#[test]
fn no_bomb_ever_produces_more_than_its_header_says() {
    for archive in hostile() {
        let Ok(opened) = open(archive) else { continue };
        for entry in opened.entries() {
            let mut produced = 0;
            let streamed = opened.stream(entry, &mut |part| {
                produced += part.len() as u64;
                Ok(())
            });
            assert!(produced <= entry.size, "`{}` produced {produced} bytes", archive.name);
            assert!(produced == entry.size || streamed.is_err(), "`{}`", archive.name);
        }
    }
}

#[test]
fn a_refused_archive_is_refused_the_same_way_whatever_follows_it() {
    for archive in hostile().iter().filter(|archive| archive.bytes.len() < 1 << 20) {
        let signature = [&b"MCPB_SIG_V1"[..], &3_u32.to_le_bytes(), b"sig", b"MCPB_SIG_END"];
        let bytes = [&archive.bytes[..], &signature.concat()].concat();
        let listed = Archive::from_bytes(bytes.clone(), Trailer::Mcpb, &Limits::DEFAULT)
            .and_then(|opened| opened.listing());
        assert_eq!(
            listed.err().and_then(|error| error.code()),
            Some(archive.code),
            "`{}`",
            archive.name
        );
        let plain = Archive::from_bytes(bytes, Trailer::Refused, &Limits::DEFAULT);
        assert!(plain.is_err(), "`{}`", archive.name);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn refusing_hostile_archives_takes_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let of_weight = [
        RefusalCode::TooManyEntries,
        RefusalCode::FileTooLarge,
        RefusalCode::TotalTooLarge,
        RefusalCode::Bomb,
        RefusalCode::NestedBomb,
        RefusalCode::SizeMismatch,
        RefusalCode::Overlap,
        RefusalCode::BadDirectory,
    ];
    fs::create_dir(folder.path().join("none")).unwrap();
    fs::create_dir(folder.path().join("all")).unwrap();
    let heavy = hostile().iter().filter(|archive| of_weight.contains(&archive.code));
    for (index, archive) in heavy.enumerate() {
        fs::write(folder.path().join("all").join(index.to_string()), &archive.bytes).unwrap();
    }
    // What the program itself takes is measured too, and does not count.
    let idle = peak_memory_of_a_child(&folder.path().join("none"));
    let busy = peak_memory_of_a_child(&folder.path().join("all"));
    assert!(busy - idle <= MOST_MEMORY_KIB, "{} KiB", busy - idle);
}

/// The child of the test above: reads every archive of a folder, says what it took at its peak.
#[test]
#[ignore = "runs as a child of the test that measures memory"]
fn a_child_reads_archives() {
    let folder = std::env::var_os("HAFT_ARCHIVES").expect("the parent says which");
    for entry in fs::read_dir(folder).unwrap() {
        let file = fs::File::open(entry.unwrap().path()).unwrap();
        let opened = Archive::open(file, Trailer::Refused, &Limits::DEFAULT);
        opened.and_then(|opened| opened.listing()).unwrap_err();
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap());
}

fn peak_memory_of_a_child(archives: &Path) -> u64 {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["a_child_reads_archives", "--exact", "--ignored", "--nocapture"])
        .env("HAFT_ARCHIVES", archives)
        .output()
        .unwrap();
    let output = String::from_utf8(child.stdout).unwrap();
    assert!(child.status.success(), "{output}{}", String::from_utf8_lossy(&child.stderr));
    let line = output.lines().find(|line| line.contains("VmHWM")).unwrap();
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Made once: some of them take a moment.
static HOSTILE: LazyLock<Vec<Hostile>> = LazyLock::new(archives::hostile);

fn hostile() -> &'static [Hostile] {
    &HOSTILE
}

fn open(archive: &Hostile) -> Result<Archive, ReadError> {
    Archive::from_bytes(archive.bytes.clone(), Trailer::Refused, &Limits::DEFAULT)
}

/// Holds every hostile archive against its code, and says all that went wrong.
fn each(refuse: impl Fn(&Hostile) -> Result<(), String>) {
    let mut wrong = Vec::new();
    for archive in hostile() {
        let start = Instant::now();
        let refused = refuse(archive);
        let took = start.elapsed();
        let expected = archive.code.name();
        match refused {
            Err(code) if code == expected => {}
            Err(other) => wrong.push(format!("{}: {other}, not {expected}", archive.name)),
            Ok(()) => wrong.push(format!("{}: accepted, not {expected}", archive.name)),
        }
        if took > MOST_TIME {
            wrong.push(format!("{}: took {took:?}", archive.name));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn said(error: &ReadError) -> String {
    error.code().map_or_else(|| format!("no refusal: {error}"), |code| code.name().to_owned())
}
