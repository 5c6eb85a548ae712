//! Whatever fails while a home is changed, and whenever: afterwards it holds exactly what it held before, or exactly what
//! the command makes, and the next command works.
//!
//! Every call of a traced run that changes something in the home is numbered, and each is killed, and given `EIO` and
//! `ENOSPC`, in a run of its own.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::repository;

/// Calls that change something on the disk, or make a change last.
const CALLS: &str = "openat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,symlink,symlinkat,\
write,pwrite64,fsync,fdatasync,syncfs,ftruncate,chmod,fchmod,fchmodat";
const FAULTS: [&str; 3] = ["signal=KILL", "error=EIO", "error=ENOSPC"];

/// What a home holds, but for what every command may add: each path with what stands there.
type Snapshot = BTreeMap<PathBuf, String>;

fn snapshot(home: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut left = vec![home.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(home).unwrap().to_owned();
            let top = name.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
            if top.starts_with("state.db") || ["audit", "locks", "cache"].contains(&&*top) {
                continue;
            }
            // Of a vault only what is in it is the same each time.
            if name == Path::new("vault/secrets.json") {
                found.insert(name, kept_names(&path));
                continue;
            }
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && top == "vault" {
                left.push(path);
            } else if top == "vault" {
            } else if kind.is_symlink() {
                found.insert(name, format!("-> {}", fs::read_link(&path).unwrap().display()));
            } else if kind.is_dir() {
                left.push(path);
            } else {
                let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
                // When it was installed or revoked is another moment each time.
                let is_moment = |line: &&str| {
                    let line = line.trim_start();
                    !line.starts_with("\"installed\":") && !line.starts_with("\"since\":")
                };
                found.insert(name, text.lines().filter(is_moment).collect::<Vec<_>>().join("\n"));
            }
        }
    }
    found
}

/// The names of the values that a vault has.
fn kept_names(file: &Path) -> String {
    let contents: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let name = |entry: &serde_json::Value| format!("{} {}", entry["owner"], entry["name"]);
    let entries = contents["entries"].as_array().unwrap();
    entries.iter().map(name).collect::<Vec<_>>().join("\n")
}

/// A home in some state, and a command that changes it.
struct Case {
    scratch: tempfile::TempDir,
    verb: Vec<String>,
}

impl Case {
    /// Commands that make the state, and the one that is disturbed.
    fn new(before: &[&[&str]], verb: &[&str]) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        for (version, name) in [("0.1.0", "one"), ("0.2.0", "two")] {
            let folder = scratch.path().join(name);
            let echo = repository().join("examples/mcpkg/echo");
            assert!(
                Command::new("cp").arg("-r").arg(&echo).arg(&folder).status().unwrap().success()
            );
            let manifest = folder.join("manifest.json");
            let text = fs::read_to_string(&manifest).unwrap();
            fs::write(&manifest, text.replace("\"0.1.0\"", &format!("\"{version}\""))).unwrap();
        }
        let case = Self { scratch, verb: verb.iter().map(|word| (*word).to_owned()).collect() };
        fs::create_dir(case.home()).unwrap();
        for words in before {
            let output = case.haft(words).output().unwrap();
            assert!(
                output.status.success(),
                "{words:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Command::new("cp")
            .arg("-a")
            .arg(case.home())
            .arg(case.scratch.path().join("kept"))
            .status()
            .unwrap();
        case
    }

    fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    fn haft(&self, words: &[impl AsRef<std::ffi::OsStr>]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("haft"));
        command
            .args(words)
            .arg("--quiet")
            .current_dir(self.scratch.path())
            .env("HAFT_HOME", self.home())
            .env("STATUS_TOKEN", "t0ken");
        command.stdin(Stdio::null());
        command
    }

    fn restore(&self) {
        let _ = fs::remove_dir_all(self.home());
        let kept = self.scratch.path().join("kept");
        assert!(
            Command::new("cp").arg("-a").arg(kept).arg(self.home()).status().unwrap().success()
        );
    }

    /// Runs the command under strace; whether it said that it was done.
    fn traced(&self, options: &[&str]) -> bool {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq"]).args(options);
        // Who waits for a word between threads that was lost to a fault is ended, as its owner would.
        command.args(["timeout", "-s", "KILL", "20"]).arg(assert_cmd::cargo::cargo_bin("haft"));
        command.args(&self.verb).arg("--quiet").current_dir(self.scratch.path());
        command.env("HAFT_HOME", self.home()).env("STATUS_TOKEN", "t0ken").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().expect("strace is installed by ./test").success()
    }

    /// The lines of a traced run, each with its thread and the path of what it is about.
    fn trace(&self) -> Vec<(String, String)> {
        let log = self.scratch.path().join("log");
        assert!(self.traced(&["-y", "-o", log.to_str().unwrap(), "-e", &format!("trace={CALLS}")]));
        let text = fs::read_to_string(&log).unwrap();
        let line = |line: &str| {
            let (thread, call) = line.split_once(char::is_whitespace)?;
            Some((thread.to_owned(), call.trim_start().to_owned()))
        };
        text.lines().filter_map(line).collect()
    }

    /// Each call that changes the home: its name, and its number among those of its name in its thread. A fault hits the
    /// call of that number in every thread, so those are left out that are a word between threads in another: no disk
    /// makes that fail.
    fn numbered(&self, trace: &[(String, String)]) -> BTreeSet<(String, usize)> {
        let home = self.home().display().to_string();
        let mut counts = BTreeMap::<(&str, &str), usize>::new();
        let (mut found, mut words) = (BTreeSet::new(), BTreeSet::new());
        for (thread, call) in trace {
            let Some((name, rest)) = call.split_once('(') else { continue };
            let count = counts.entry((thread, name)).or_default();
            *count += 1;
            let changes = name != "openat" || rest.contains("O_CREAT");
            if changes && rest.contains(&home) {
                found.insert((name.to_owned(), *count));
            }
            if rest.contains("<anon_inode:[eventfd]>") {
                words.insert((name.to_owned(), *count));
            }
        }
        found.difference(&words).cloned().collect()
    }

    fn check(&self) {
        self.check_all(|now, states, told| {
            assert!(now == &states.0 || now == &states.1, "it left a half: {told}");
        });
    }

    /// The same of a command of several steps: what it left may be neither, and then the same command finishes it.
    fn check_steps(&self, finished: impl Fn(&Self)) {
        self.check_all(|now, states, told| {
            if now != &states.0 {
                let again = self.haft(&self.verb).output().unwrap();
                let said = String::from_utf8_lossy(&again.stderr).into_owned();
                assert!(again.status.success(), "{told}: {said}");
                assert_eq!(&snapshot(&self.home()), &states.1, "{told}");
                finished(self);
            }
        });
    }

    fn check_all(&self, check_left: impl Fn(&Snapshot, &(Snapshot, Snapshot), &str)) {
        self.restore();
        let before = snapshot(&self.home());
        let trace = self.trace();
        let after = snapshot(&self.home());
        assert_ne!(before, after, "the command changes something");
        check_synced(&trace, &self.home());
        let numbered = self.numbered(&trace);
        assert!(numbered.len() > 10, "{numbered:?}");
        let states = (before, after);
        for (call, number) in &numbered {
            for fault in FAULTS {
                self.restore();
                let fault = format!("inject={call}:{fault}:when={number}");
                let done = self.traced(&["-o", "/dev/null", "-e", &fault]);
                let verb = &self.verb;
                // The next command works, and finishes or sweeps what was left.
                let listed = self.haft(&["list"]).output().unwrap();
                let told = String::from_utf8_lossy(&listed.stderr).into_owned();
                assert!(listed.status.success(), "{verb:?} with {fault}: {told}");
                let now = snapshot(&self.home());
                let told = format!("{verb:?} with {fault}");
                if done {
                    assert_eq!(now, states.1, "it said it was done: {told}");
                }
                check_left(&now, &states, &told);
            }
        }
        self.restore();
        self.traced(&["-o", "/dev/null"]);
        let doctor = self.haft(&["doctor"]).output().unwrap();
        assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stderr));
    }
}

/// What gets its place by a rename was put on the disk before it, and the place after it.
fn check_synced(trace: &[(String, String)], home: &Path) {
    let home = home.display().to_string();
    let is_sync = |call: &str| call.starts_with("fsync(") || call.starts_with("syncfs(");
    let journal = trace.iter().position(|(_, call)| {
        call.starts_with("rename") && call.contains(&format!("{home}/journal\""))
    });
    let journal = journal.expect("a journal gets its place");
    let written = trace[..journal].iter().rposition(|(_, call)| {
        (call.starts_with("write(") || call.starts_with("pwrite64("))
            && call.contains(&format!("{home}/staging/"))
    });
    let synced = trace[..journal]
        .iter()
        .rposition(|(_, call)| is_sync(call) && call.contains(&format!("{home}/staging/")));
    assert!(synced > written, "everything prepared is on the disk before the journal is found");
    let moved = trace[journal + 1..].iter().position(|(_, call)| call.starts_with("rename"));
    let named = trace[journal + 1..]
        .iter()
        .position(|(_, call)| is_sync(call) && call.contains(&format!("{home}>")));
    assert!(
        named.is_some() && named < moved,
        "the journal is on the disk before anything is moved"
    );
    let removed = trace.iter().rposition(|(_, call)| {
        call.starts_with("unlink") && call.contains(&format!("{home}/journal\""))
    });
    let removed = removed.expect("the journal goes in the end");
    let last_move = trace[..removed].iter().rposition(|(_, call)| call.starts_with("rename"));
    let last_sync = trace[..removed].iter().rposition(|(_, call)| is_sync(call));
    assert!(last_sync > last_move, "what was moved is on the disk before the journal goes");
}

/// Values are kept together with the package that they are for.
#[test]
fn an_install_with_a_value_is_whole_or_nothing() {
    let place = repository().join("examples/mcpkg/http-status");
    let case = Case::new(&[], &["install", place.to_str().unwrap(), "--yes"]);
    case.check();
}

const ONE: &[&str] = &["install", "./one", "--yes"];
const TWO: &[&str] = &["install", "./two", "--yes"];

#[test]
fn an_install_is_whole_or_nothing() {
    Case::new(&[], ONE).check();
}

#[test]
fn an_update_is_whole_or_nothing() {
    Case::new(&[ONE], TWO).check();
}

#[test]
fn a_rollback_is_whole_or_nothing() {
    Case::new(&[ONE, TWO], &["rollback", "demo.echo"]).check();
}

#[test]
fn a_removal_is_whole_or_nothing() {
    Case::new(&[ONE, TWO], &["remove", "demo.echo"]).check();
}

#[test]
fn a_lockfile_is_brought_whole_or_not_at_all() {
    let case = Case::new(
        &[TWO, &["lock", "-o", "two.lock"], &["remove", "demo.echo"], ONE],
        &["sync", "two.lock", "--locked", "--yes"],
    );
    case.check();
}

#[test]
fn a_reset_is_whole_or_nothing() {
    Case::new(&[ONE], &["reset", "--yes"]).check();
}

#[test]
fn a_revocation_is_begun_or_not_and_the_same_command_finishes_it() {
    let grant = ["grant", "mcpkg:demo.echo", "--host", "api.example.com"];
    let case = Case::new(&[ONE, &grant], &["revoke", "demo.echo", "--yes"]);
    case.check_steps(|case| {
        let granted = case.haft(&["grant", "mcpkg:demo.echo", "--json"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&granted.stdout).trim(), "[]");
    });
}
