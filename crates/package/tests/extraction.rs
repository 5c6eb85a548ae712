//! Extraction: beneath one fresh folder, whole or not at all, whoever gets in the way.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::snapshot;
use package::archive::{Archive, Trailer};
use package::extract::{Durability, ExtractError, extract};
use package::limits::Limits;
use testkit::archives::zip::{Item, Zip};

/// How often a race is run.
const ROUNDS: usize = 150;

#[test]
fn what_stands_at_the_target_stays_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let obstacles: [(&str, &dyn Fn()); 5] = [
        ("a file", &|| fs::write(&target, "mine").unwrap()),
        ("a folder with a file", &|| {
            fs::create_dir(&target).unwrap();
            fs::write(target.join("file"), "mine").unwrap();
        }),
        ("a link to nowhere", &|| symlink("nowhere", &target).unwrap()),
        ("a link to an empty folder", &|| symlink(&elsewhere, &target).unwrap()),
        ("a link to itself", &|| symlink(&target, &target).unwrap()),
    ];
    for (name, place) in obstacles {
        place();
        let before = snapshot(folder.path());
        for path in [target.clone(), folder.path().join("target/")] {
            let taken = extract(&package(), &path);
            assert!(matches!(taken, Err(ExtractError::Taken(_))), "{name}: {taken:?}");
        }
        assert_eq!(snapshot(folder.path()), before, "{name}");
        if target.is_dir() && !target.is_symlink() {
            fs::remove_dir_all(&target).unwrap();
        } else {
            fs::remove_file(&target).unwrap();
        }
        // Whoever comes while the files are written stays too.
        let staged = extract(&package(), &target).unwrap();
        place();
        let mut before = snapshot(folder.path());
        before.retain(|(path, _)| !path.contains(".haft-"));
        let taken = staged.promote(Durability::Synced);
        assert!(matches!(taken, Err(ExtractError::Taken(_))), "{name}: {taken:?}");
        assert_eq!(snapshot(folder.path()), before, "{name}");
        if target.is_dir() && !target.is_symlink() {
            fs::remove_dir_all(&target).unwrap();
        } else {
            fs::remove_file(&target).unwrap();
        }
    }
}

#[test]
fn an_empty_folder_is_filled_and_missing_folders_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let deep = folder.path().join("not/yet/there");
    for target in [&empty, &deep] {
        let staged = extract(&package(), target).unwrap();
        assert!(!target.join("run.sh").exists());
        staged.promote(Durability::Synced).unwrap();
        assert_eq!(names(target), ["folder", "run.sh", "text.txt"]);
    }
    assert_eq!(names(folder.path()), ["empty", "not"]);
}

#[test]
fn files_that_are_not_promoted_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let staged = extract(&package(), &folder.path().join("a/b")).unwrap();
    assert_eq!(staged.listing().files().len(), 4);
    drop(staged);
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn a_target_beneath_a_file_is_no_target() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "mine").unwrap();
    let before = snapshot(folder.path());
    let staged = extract(&package(), &folder.path().join("file/target"));
    let promoted = staged.and_then(|staged| staged.promote(Durability::Left));
    assert!(promoted.is_err());
    assert_eq!(snapshot(folder.path()), before);
}

#[test]
fn modes_are_the_same_under_every_umask_that_is_not_stricter() {
    for umask in ["022", "002", "000"] {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        let child = child(&target);
        let program = child.get_program().to_str().unwrap().to_owned();
        let arguments = child.get_args().map(|argument| argument.to_str().unwrap().to_owned());
        let line = format!("umask {umask}; exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line, &program]).args(arguments).env("HAFT_TARGET", &target);
        let done = shell.output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(said.contains("held under 700"), "umask {umask}: {said}");
        let mode =
            |path: &str| fs::metadata(target.join(path)).unwrap().permissions().mode() & 0o7777;
        let modes = ["", "folder", "folder/deep", "run.sh", "text.txt", "folder/file"].map(mode);
        assert_eq!(modes, [0o755, 0o755, 0o755, 0o755, 0o644, 0o644], "umask {umask}");
    }
}

#[test]
fn the_target_appears_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    let archive = large_package(200);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !target.exists() {
                assert!(!done.load(Ordering::Relaxed), "it never appeared");
            }
            // At the first sight of it everything is there.
            fs::read_dir(&target).unwrap().count()
        });
        extract(&archive, &target).unwrap().promote(Durability::Left).unwrap();
        let seen = watcher.join();
        done.store(true, Ordering::Relaxed);
        assert_eq!(seen.unwrap(), 200);
    });
}

#[test]
fn folders_that_become_links_while_files_are_written_lead_nowhere() {
    race(|folder, outside, swapped| {
        for holder in holders(folder) {
            let Ok(inside) = fs::read_dir(holder.join("whole")) else { continue };
            for entry in inside.flatten() {
                let path = entry.path();
                if path.is_symlink() || path.extension().is_some() {
                    continue;
                }
                if fs::rename(&path, path.with_extension("moved")).is_ok()
                    && symlink(outside, &path).is_ok()
                {
                    swapped.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn the_folder_of_our_own_becomes_a_link_and_leads_nowhere() {
    // What somebody waits for before he swaps the folder, and what he has laid ready elsewhere.
    for (sign, ready) in
        [("", None), ("whole", None), ("whole", Some("whole")), ("whole/run.sh", Some("whole"))]
    {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        if let Some(name) = ready {
            fs::create_dir(outside.path().join(name)).unwrap();
            fs::write(outside.path().join(name).join("planted"), "not checked").unwrap();
        }
        let before = snapshot(outside.path());
        let child = child(&target);
        // Slow enough for anybody to come between.
        let calls = "mkdir,mkdirat,write,renameat,rename";
        let mut slow = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")])
            .args(["-e", &format!("inject={calls}:delay_enter=30000:delay_exit=30000")])
            .arg(child.get_program())
            .args(child.get_args())
            .env("HAFT_TARGET", &target)
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("strace is installed");
        let holder = loop {
            let seen = holders(folder.path()).into_iter().find(|holder| holder.join(sign).exists());
            if let Some(holder) = seen {
                break holder;
            }
            assert!(slow.try_wait().unwrap().is_none(), "{sign}: it was over too soon");
        };
        fs::rename(&holder, folder.path().join("moved")).unwrap();
        symlink(outside.path(), &holder).unwrap();
        slow.wait().unwrap();
        assert_eq!(snapshot(outside.path()), before, "after `{sign}`");
        assert!(!target.join("planted").exists(), "after `{sign}`");
        if target.exists() {
            is_whole(&target);
        }
    }
}

/// Extracts again and again while somebody else bends what is there; nothing may get outside.
fn race(bend: impl Fn(&Path, &Path, &AtomicUsize) + Sync) {
    let outside = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let archive = large_package(40);
    let (swapped, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                bend(folder.path(), outside.path(), &swapped);
            }
        });
        for round in 0..ROUNDS {
            let target = folder.path().join(format!("target-{round}"));
            let staged = extract(&archive, &target);
            let _ = staged.and_then(|staged| staged.promote(Durability::Left));
            let found = names(outside.path());
            if !found.is_empty() {
                done.store(true, Ordering::Relaxed);
                panic!("{found:?} got outside in round {round}");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(swapped.load(Ordering::Relaxed) > ROUNDS / 10, "the race was not run");
}

/// The folders in which files are being written.
fn holders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let is_holder = |path: &PathBuf| {
        path.file_name().unwrap().to_str().unwrap().starts_with(".haft-")
            && path.extension().is_none()
            && !path.is_symlink()
    };
    entries.filter(is_holder).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn a_failing_disk_leaves_nothing_behind() {
    let mut failures = 0;
    for call in ["mkdir,mkdirat", "openat", "write", "syncfs", "rename,renameat,renameat2", "fsync"]
    {
        for error in ["ENOSPC", "EIO"] {
            failures += sweep(&format!("{call}:error={error}"), |folder, succeeded, place| {
                let mut found = names(folder);
                if succeeded {
                    // What failed was the last thing of all: to take the empty folder away.
                    found.retain(|name| {
                        !name.starts_with(".haft-") || !names(&folder.join(name)).is_empty()
                    });
                    assert_eq!(found, ["not"], "{error} of {call}, the {place}th");
                    is_whole(&folder.join("not/yet/there"));
                } else {
                    assert_eq!(found, [""; 0], "{error} of {call}, the {place}th");
                }
            });
        }
    }
    assert!(failures > 100, "{failures}");
}

#[cfg(target_os = "linux")]
#[test]
fn killed_at_any_moment_the_target_is_whole_or_not_there() {
    let mut kills = 0;
    for call in [
        "mkdir,mkdirat",
        "openat",
        "write",
        "syncfs",
        "rename,renameat,renameat2",
        "unlinkat,rmdir",
    ] {
        kills += sweep(&format!("{call}:signal=KILL"), |folder, _, _| {
            let target = folder.join("not/yet/there");
            if target.exists() {
                is_whole(&target);
            }
        });
    }
    assert!(kills > 50, "{kills}");
}

/// Runs the child once for every call of a kind, and disturbs one at a time; says how often it
/// was disturbed.
fn sweep(disturbance: &str, check: impl Fn(&Path, bool, usize)) -> usize {
    let calls = disturbance.split(':').next().unwrap();
    for place in 1.. {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("not/yet/there");
        let log = tempfile::NamedTempFile::new().unwrap();
        let child = child(&target);
        let mut strace = Command::new("strace");
        strace
            .args(["-f", "-qq", "-o", log.path().to_str().unwrap()])
            .args(["-e", &format!("trace={calls}")])
            .args(["-e", &format!("inject={disturbance}:when={place}")])
            .arg(child.get_program())
            .args(child.get_args())
            .env("HAFT_TARGET", &target)
            .env("RUST_BACKTRACE", "0");
        let done = strace.output().expect("strace is installed");
        let said = fs::read_to_string(log.path()).unwrap();
        let was_disturbed = said.contains("INJECTED") || said.contains("killed by SIGKILL");
        if !was_disturbed {
            is_whole(&target);
            return place - 1;
        }
        let succeeded = done.status.code() == Some(EXTRACTED);
        check(folder.path(), succeeded, place);
    }
    unreachable!("a child makes a finite number of calls")
}

/// The child of the tests above.
#[test]
#[ignore = "runs as a child of the tests that disturb it"]
fn a_child_extracts() {
    let target = std::env::var_os("HAFT_TARGET").expect("the parent says where");
    let target = Path::new(&target);
    // One thread does it all, so that one call is disturbed at a time.
    rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global().unwrap();
    let staged = extract(&package(), target);
    let beside = target.parent().filter(|parent| parent.is_dir());
    for holder in beside.map(holders).unwrap_or_default() {
        println!("held under {:o}", fs::metadata(holder).unwrap().permissions().mode() & 0o7777);
    }
    let promoted = staged.and_then(|staged| staged.promote(Durability::Synced));
    std::process::exit(if promoted.is_ok() { EXTRACTED } else { 1 });
}

/// How the child ends when it has extracted everything.
const EXTRACTED: i32 = 42;

fn child(target: &Path) -> Command {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["a_child_extracts", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    child.env("HAFT_TARGET", target);
    child
}

fn is_whole(target: &Path) {
    assert_eq!(names(target), ["folder", "run.sh", "text.txt"]);
    assert_eq!(fs::read(target.join("text.txt")).unwrap(), text());
    assert_eq!(fs::read(target.join("folder/deep/file")).unwrap(), b"deep");
}

fn text() -> Vec<u8> {
    b"some text ".repeat(20_000)
}

fn package() -> Archive {
    opened(&Zip::of([
        Item::stored("run.sh", b"#!/bin/sh\n").mode(0o100_777),
        Item::deflated("text.txt", &text()).mode(0o100_600),
        Item::folder("folder/").mode(0o040_700),
        Item::stored("folder/file", b"file"),
        Item::stored("folder/deep/file", b"deep"),
    ]))
}

/// So many folders with a few files each.
fn large_package(folders: usize) -> Archive {
    let paths = (0..folders).flat_map(|n| (0..3).map(move |m| format!("{n}/{m}")));
    opened(&Zip::of(paths.map(|path| Item::stored(&path, &[b'x'; 5_000]))))
}

fn opened(zip: &Zip) -> Archive {
    Archive::from_bytes(zip.bytes(), Trailer::Refused, &Limits::DEFAULT).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
