//! Whatever fails, and whenever: afterwards there is exactly what was there before, or the whole
//! of what was to be made. Faults are put into system calls with strace.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::repository;

/// The calls that touch the disk. `openat` of a library that is not found ends the program early.
const CALLS: [&str; 11] = [
    "openat",
    "write",
    "fsync",
    "syncfs",
    "rename",
    "renameat",
    "renameat2",
    "mkdir",
    "mkdirat",
    "read",
    "pread64",
];
/// How many of each call are tried; they are spread over the whole run.
const TRIES: usize = 8;

/// What stands in a folder: each path with its content.
type Snapshot = BTreeMap<PathBuf, Option<Vec<u8>>>;

fn snapshot(folder: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder_here) = left.pop() {
        for entry in fs::read_dir(&folder_here).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_owned();
            if path.is_dir() {
                found.insert(name, None);
                left.push(path);
            } else {
                found.insert(name, Some(fs::read(&path).unwrap()));
            }
        }
    }
    found
}

/// A verb, and a folder in which it has work to do.
struct Case {
    verb: &'static [&'static str],
    scratch: tempfile::TempDir,
}

impl Case {
    fn new(verb: &'static [&'static str]) -> Self {
        let case = Self { verb, scratch: tempfile::tempdir().unwrap() };
        let folder = case.folder();
        let echo = repository().join("examples/mcpkg/echo");
        fs::create_dir_all(&folder).unwrap();
        for arguments in [
            &["pack", echo.to_str().unwrap(), "-o", "echo.mcpkg", "-q"][..],
            &["key", "new", "alice", "--no-passphrase", "-q"],
        ] {
            assert!(case.command().args(arguments).status().unwrap().success());
        }
        Command::new("cp").arg("-r").arg(&echo).arg(folder.join("echo")).status().unwrap();
        case
    }

    fn folder(&self) -> PathBuf {
        self.scratch.path().join("work")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("haft"));
        command.current_dir(self.folder()).env("HAFT_HOME", self.folder().join("home"));
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command
    }

    /// Runs the verb under strace; whether it said that it was done.
    fn traced(&self, options: &[&str]) -> bool {
        let haft = assert_cmd::cargo::cargo_bin("haft");
        let mut command = Command::new("strace");
        command.args(["-f", "-qq"]).args(options).arg(haft).args(self.verb);
        command.current_dir(self.folder()).env("HAFT_HOME", self.folder().join("home"));
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command.status().expect("strace is installed by ./test").success()
    }

    /// How often the verb makes a call when nothing fails.
    fn count(&self, call: &str) -> usize {
        let log = self.scratch.path().join("log");
        self.traced(&["-o", log.to_str().unwrap(), "-e", &format!("trace={call}")]);
        let text = fs::read_to_string(&log).unwrap_or_default();
        text.lines().filter(|line| line.contains(&format!("{call}("))).count()
    }

    fn restore(&self, before: &Snapshot) {
        let folder = self.folder();
        fs::remove_dir_all(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        for (path, content) in before {
            let path = folder.join(path);
            match content {
                None => fs::create_dir_all(path).unwrap(),
                Some(content) => {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(&path, content).unwrap();
                    if path.extension().is_some_and(|kind| kind == "key") {
                        use std::os::unix::fs::PermissionsExt;
                        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
                    }
                }
            }
        }
    }

    fn check(&self) {
        let before = snapshot(&self.folder());
        let (mut tried, mut commits) = (0, 0);
        for call in CALLS {
            self.restore(&before);
            let count = self.count(call);
            commits += if call.starts_with("rename") { count } else { 0 };
            for step in 0..count.min(TRIES) {
                let at = 1 + step * count / count.min(TRIES);
                for fault in ["error=EIO", "error=ENOSPC", "signal=KILL"] {
                    self.restore(&before);
                    let fault = format!("inject={call}:{fault}:when={at}");
                    let done = self.traced(&["-o", "/dev/null", "-e", &fault]);
                    self.check_after(&before, done, &fault);
                    tried += 1;
                }
            }
        }
        assert!(tried > 30, "{tried} faults were tried");
        assert!(commits > 0, "the call that commits the work was disturbed too");
    }

    /// Nothing new, or all of it.
    fn check_after(&self, before: &Snapshot, done: bool, fault: &str) {
        let verb = self.verb;
        let mut after = snapshot(&self.folder());
        if fault.contains("KILL") {
            // What was being made has a name of its own, and nobody takes it for anything else.
            let is_ours = |path: &Path| {
                path.components().any(|part| {
                    let name = part.as_os_str().to_string_lossy().into_owned();
                    name.starts_with(".haft-")
                })
            };
            after.retain(|path, _| !is_ours(path));
        }
        let whole = self.is_whole();
        if done {
            assert!(whole, "{verb:?} said it was done, with {fault}");
        } else if !whole {
            let is_same = after.iter().all(|(path, content)| {
                // A home that was begun is empty folders at most.
                before.get(path) == Some(content) || content.is_none() && path.starts_with("home")
            });
            assert!(
                is_same && after.len() >= before.len(),
                "{verb:?} left something, with {fault}"
            );
        }
    }

    /// Whether everything is there that the verb makes.
    fn is_whole(&self) -> bool {
        let folder = self.folder();
        let run = |arguments: &[&str]| self.command().args(arguments).status().unwrap().success();
        match self.verb[0] {
            "pack" => run(&["inspect", "new.mcpkg"]),
            "sign" => run(&["verify", "echo.mcpkg"]),
            "key" => run(&["sign", "echo.mcpkg", "--key", "bob"]),
            _ => snapshot(&folder.join("echo")).into_iter().all(|(path, content)| {
                let path = folder.join("out").join(path);
                content.is_none_or(|content| fs::read(path).ok() == Some(content))
            }),
        }
    }
}

#[test]
fn pack_makes_a_whole_package_or_none() {
    Case::new(&["pack", "echo", "-o", "new.mcpkg"]).check();
}

#[test]
fn unpack_makes_a_whole_folder_or_none() {
    Case::new(&["unpack", "echo.mcpkg", "-o", "out"]).check();
}

#[test]
fn sign_leaves_the_package_or_signs_it() {
    Case::new(&["sign", "echo.mcpkg", "--key", "alice"]).check();
}

#[test]
fn a_new_key_is_whole_or_not_there() {
    Case::new(&["key", "new", "bob", "--no-passphrase"]).check();
}
