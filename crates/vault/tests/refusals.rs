//! Files that are not their owner's alone are not used: as root, and as a user who is nobody.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use common::{open, secret, shared, value};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use vault::file::Unsafe;
use vault::{FileVault, VaultError};

const NOBODY: u32 = 65_534;

/// Each file of a vault that somebody else could have touched, and why it is refused.
fn refusals(folder: &Path) {
    let path = folder.join("vault");
    open(&path).set(&shared("name"), &secret("value")).unwrap();
    let moved = folder.join("moved");
    for name in ["secrets.json", "key"] {
        let file = path.join(name);
        for mode in [0o640, 0o604, 0o620, 0o602, 0o666, 0o644] {
            mode_is(&file, mode);
            assert_eq!(fault(&path), Some(Unsafe::Mode(mode)), "{name}");
        }
        mode_is(&file, 0o600);
        fs::hard_link(&file, &moved).unwrap();
        assert_eq!(fault(&path), Some(Unsafe::Linked), "{name}");
        fs::remove_file(&moved).unwrap();
        fs::rename(&file, &moved).unwrap();
        symlink(&moved, &file).unwrap();
        assert_eq!(fault(&path), Some(Unsafe::Kind), "a link as {name}");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(fault(&path), Some(Unsafe::Kind), "a folder as {name}");
        fs::remove_dir(&file).unwrap();
        mknodat(CWD, &file, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert_eq!(fault(&path), Some(Unsafe::Kind), "a pipe as {name}");
        fs::remove_file(&file).unwrap();
        fs::rename(&moved, &file).unwrap();
    }
    for mode in [0o750, 0o701, 0o777, 0o1777] {
        mode_is(&path, mode);
        assert_eq!(fault(&path), Some(Unsafe::Mode(mode)));
        assert!(open_error(&path).is_some());
    }
    mode_is(&path, 0o700);
    fs::rename(&path, &moved).unwrap();
    symlink(&moved, &path).unwrap();
    assert_eq!(fault(&path), Some(Unsafe::Kind), "a link as the folder");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    assert_eq!(fault(&path), Some(Unsafe::Kind), "a file as the folder");
    fs::remove_file(&path).unwrap();
    fs::rename(&moved, &path).unwrap();
    assert_eq!(value(&open(&path), &shared("name")).unwrap(), "value");
}

#[test]
fn what_others_may_touch_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    refusals(folder.path());
}

#[test]
fn nothing_is_written_through_what_was_laid_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    let vault = open(&path);
    vault.set(&shared("name"), &secret("value")).unwrap();
    let elsewhere = folder.path().join("elsewhere");
    fs::write(&elsewhere, "mine").unwrap();
    symlink(&elsewhere, path.join("secrets.json.new")).unwrap();
    vault.set(&shared("name"), &secret("other")).unwrap();
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine");
    fs::remove_file(path.join("lock")).unwrap();
    symlink(&elsewhere, path.join("lock")).unwrap();
    let refused = vault.set(&shared("name"), &secret("third"));
    assert!(matches!(refused, Err(VaultError::Unsafe { fault: Unsafe::Kind, .. })), "{refused:?}");
    assert_eq!(value(&vault, &shared("name")).unwrap(), "other");
}

#[test]
fn root_does_not_use_what_belongs_to_another_nor_another_what_belongs_to_root() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    mode_is(folder.path(), 0o755);
    let path = folder.path().join("vault");
    open(&path).set(&shared("name"), &secret("value")).unwrap();
    for file in ["secrets.json", "key"] {
        chown(path.join(file), Some(NOBODY), None).unwrap();
        assert_eq!(fault(&path), Some(Unsafe::Owner), "{file}");
        chown(path.join(file), Some(0), None).unwrap();
    }
    chown(&path, Some(NOBODY), None).unwrap();
    assert_eq!(fault(&path), Some(Unsafe::Owner));
    // The folder is theirs, and the files in it are root's.
    assert_eq!(as_nobody("a_child_is_refused", &path), Some(0));
    chown(&path, Some(0), None).unwrap();
    assert_eq!(as_nobody("a_child_is_refused", &path), Some(0));
}

#[test]
fn nobody_is_as_strict_as_root() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    chown(folder.path(), Some(NOBODY), None).unwrap();
    assert_eq!(as_nobody("a_child_is_as_strict", folder.path()), Some(0));
}

#[test]
#[ignore = "runs as a child of another test"]
fn a_child_is_refused() {
    let path = std::env::var("HAFT_VAULT").unwrap();
    let refused = FileVault::open(&path, || None)
        .and_then(|vault| vault.set(&shared("name"), &secret("value")))
        .unwrap_err();
    let is_denied = match &refused {
        VaultError::Disk { cause, .. } => cause.kind() == std::io::ErrorKind::PermissionDenied,
        VaultError::Unsafe { fault, .. } => *fault == Unsafe::Owner,
        _ => false,
    };
    assert!(is_denied, "{refused:?}");
}

#[test]
#[ignore = "runs as a child of another test"]
fn a_child_is_as_strict() {
    refusals(Path::new(&std::env::var("HAFT_VAULT").unwrap()));
}

/// Runs a test of this file as a user who is nobody.
fn as_nobody(test: &str, path: &Path) -> Option<i32> {
    // Where the tests are built may be closed to others.
    let program = tempfile::tempdir().unwrap();
    mode_is(program.path(), 0o755);
    let copy = program.path().join("test");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let mut child = Command::new(&copy);
    child.args([test, "--exact", "--ignored"]).env("HAFT_VAULT", path);
    let done = child.uid(NOBODY).gid(NOBODY).current_dir("/").output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.contains("1 passed"), "{said}");
    done.status.code()
}

/// Why a vault is unsafe, whoever finds it out first.
fn fault(path: &Path) -> Option<Unsafe> {
    let refused = FileVault::open(path, || None).and_then(|vault| vault.get(&shared("name")));
    match refused {
        Err(VaultError::Unsafe { fault, .. }) => Some(fault),
        Ok(_) => None,
        Err(other) => panic!("{other:?}"),
    }
}

fn open_error(path: &Path) -> Option<VaultError> {
    FileVault::open(path, || None).err()
}

fn mode_is(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
