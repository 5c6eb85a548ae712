//! A home in some state, a command that changes it, and every way in which that may be disturbed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{compiled, repository};
use crate::trace::{self, Call, Came};

/// Killed there, `EIO` and `ENOSPC`, as the program that does it wants to be told.
const FAULTS: [&str; 3] = ["kill", "5", "28"];
/// After so many disturbed runs the whole doctor comes; what it says of a home, and of its log, is looked at after each.
const DOCTOR: usize = 50;
/// How often a run is made again that ended before the call came that was to be disturbed.
const MOST_TRIES: usize = 5;
/// Where the grants of a package stand in a snapshot.
pub(crate) const GRANTS: &str = "(granted)";
/// Where the vault stands in a snapshot.
pub(crate) const VAULT: &str = "vault/secrets.json";

/// What a home holds, but for what every command may add: each path with what stands there.
pub(crate) type Snapshot = BTreeMap<PathBuf, String>;

/// What a home may hold after a command that was disturbed.
pub(crate) struct States {
    pub(crate) before: Snapshot,
    pub(crate) after: Snapshot,
}

/// What came of a run.
struct Run {
    is_done: bool,
    trace: Vec<Call>,
}

pub(crate) struct Case {
    scratch: tempfile::TempDir,
    verb: Vec<String>,
    /// Of which package the grants are looked at.
    granted: Option<&'static str>,
}

impl Case {
    /// An empty home, with two versions of echo beside it.
    pub(crate) fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let case = Self { scratch, verb: Vec::new(), granted: None };
        case.echo("one", "0.1.0");
        case.echo("two", "0.2.0");
        fs::create_dir(case.home()).unwrap();
        case
    }

    /// Echo at a version, in a folder of its own.
    pub(crate) fn echo(&self, name: &str, version: &str) {
        let folder = self.path(name);
        let _ = fs::remove_dir_all(&folder);
        copy(&repository().join("examples/mcpkg/echo"), &folder);
        let manifest = folder.join("manifest.json");
        let text = fs::read_to_string(&manifest).unwrap();
        fs::write(&manifest, text.replace("\"0.1.0\"", &format!("\"{version}\""))).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// Runs a command that must succeed.
    pub(crate) fn done(self, words: &[&str]) -> Self {
        let ran = self.haft(words).output().unwrap();
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        self
    }

    /// Looks at the grants of a package too.
    pub(crate) fn granted(mut self, id: &'static str) -> Self {
        self.granted = Some(id);
        self
    }

    /// The command that is disturbed, from now on.
    pub(crate) fn then(mut self, verb: &[&str]) -> Self {
        self.verb = verb.iter().map(|word| (*word).to_owned()).collect();
        copy(&self.home(), &self.path("kept"));
        self
    }

    pub(crate) fn haft(&self, words: &[impl AsRef<std::ffi::OsStr>]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("haft"));
        command.args(words).arg("--quiet");
        self.in_place(&mut command);
        command
    }

    /// Whatever is done leaves exactly the state before or the one after it; and it is made in these changes.
    pub(crate) fn check(&self, changes: &[&[&str]]) {
        self.check_states(changes, |now, states, told| {
            assert!(
                *now == states.before || *now == states.after,
                "it left a half: {told}: {now:#?}"
            );
        });
    }

    /// The same, where `check_left` says what may be left.
    pub(crate) fn check_states(
        &self,
        changes: &[&[&str]],
        check_left: impl Fn(&Snapshot, &States, &str),
    ) {
        self.restore();
        let before = self.snapshot();
        let run = self.run(0, FAULTS[0]);
        assert!(run.is_done, "{:?}", self.verb);
        let after = self.snapshot();
        if let Err(why) = trace::check(&run.trace, changes) {
            panic!("{:?}: {why}", self.verb);
        }
        assert_ne!(before, after, "the command changes something");
        let (states, count) = (States { before, after }, run.trace.len());
        let mut disturbed = 0;
        for number in 1.. {
            for fault in FAULTS {
                let Some(run) = self.disturbed(number, fault) else {
                    assert!(number > count, "call {number} of {count} was never made");
                    assert!(disturbed > 30, "{disturbed}");
                    return;
                };
                disturbed += 1;
                let hit = run.trace.iter().find(|call| call.came == Came::Hit).unwrap();
                let told = format!("{:?} with {fault} at {number}, {hit:?}", self.verb);
                // The next command is the doctor, or another one; both work, and finish or sweep what was left.
                if disturbed % 2 == 0 {
                    self.check_works(&["list"], &told);
                }
                self.check_sound(&told);
                let mut now = self.snapshot();
                // What is looked at in this process is held by whoever another test forks just then, until that has become
                // another program: it is left to whoever comes next.
                for _ in 0..5 {
                    if !now.keys().any(|path| path.starts_with("staging")) {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(20));
                    self.check_sound(&told);
                    now = self.snapshot();
                }
                if run.is_done {
                    assert_eq!(now, states.after, "it said it was done: {told}");
                }
                check_left(&now, &states, &told);
                if disturbed % DOCTOR == 0 {
                    for words in [&["doctor"][..], &["audit", "verify"]] {
                        self.check_works(words, &told);
                    }
                }
            }
        }
    }

    /// What the command does, call by call, when nobody disturbs it.
    pub(crate) fn trace(&self) -> Vec<Call> {
        self.restore();
        self.run(0, FAULTS[0]).trace
    }

    /// Whether the command says that it is done, though this call of a trace fails.
    pub(crate) fn is_done_without(&self, at: usize) -> bool {
        self.disturbed(at + 1, FAULTS[1]).is_some_and(|run| run.is_done)
    }

    /// A run with a fault, where there is a call of that number.
    fn disturbed(&self, number: usize, fault: &str) -> Option<Run> {
        // Who writes to the database in a thread of its own may be a call ahead or behind.
        let mut runs = (0..MOST_TRIES).map(|_| {
            self.restore();
            self.run(number, fault)
        });
        runs.find(|run| run.trace.iter().any(|call| call.came == Came::Hit))
    }

    fn run(&self, number: usize, fault: &str) -> Run {
        let report = self.path("report");
        let mut command = Command::new(compiled::fault());
        command.arg(&report).arg(self.home()).arg(number.to_string()).arg(fault);
        command.arg(assert_cmd::cargo::cargo_bin("haft")).args(&self.verb).arg("--quiet");
        self.in_place(&mut command);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert_ne!(status.code(), Some(125), "the run could not be watched");
        assert_ne!(status.code(), Some(124), "{:?} with {fault} at {number} hangs", self.verb);
        let trace = trace::parse(&fs::read_to_string(&report).unwrap(), &self.home());
        Run { is_done: status.success(), trace }
    }

    fn in_place(&self, command: &mut Command) {
        command.current_dir(self.scratch.path()).stdin(Stdio::null());
        command.env("HAFT_HOME", self.home()).env("STATUS_TOKEN", "t0ken");
    }

    fn check_works(&self, words: &[&str], told: &str) {
        let ran = self.haft(words).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{words:?} after {told}: {said}");
    }

    /// Whether the doctor finds nothing in the home, and the log is whole.
    pub(crate) fn check_sound(&self, told: &str) {
        let faults = install::check::check(&install::Home::at(self.home())).unwrap();
        assert_eq!(faults, [], "{told}");
        let log = ledger::audit::verify(&self.home().join("audit")).unwrap();
        assert!(log.is_sound(), "{told}: {:?}", log.findings);
    }

    fn restore(&self) {
        fs::remove_dir_all(self.home()).unwrap();
        copy(&self.path("kept"), &self.home());
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut found = snapshot(&self.home());
        if let Some(id) = self.granted {
            let output = self.haft(&["grant", id, "--json"]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            found.insert(GRANTS.into(), String::from_utf8(output.stdout).unwrap());
        }
        found
    }
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

fn snapshot(home: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut left = vec![home.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(home).unwrap().to_owned();
            let top = name.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
            // Of a vault only what is in it is the same each time.
            if top.starts_with("state.db") || ["audit", "locks", "cache", "vault"].contains(&&*top)
            {
                continue;
            }
            let kind = entry.file_type().unwrap();
            if kind.is_symlink() {
                found.insert(name, format!("-> {}", fs::read_link(&path).unwrap().display()));
            } else if kind.is_dir() {
                left.push(path);
                // Where changes are prepared may be there, with nothing in it.
                if top != "staging" || name.components().count() > 1 {
                    found.insert(name, "a folder".to_owned());
                }
            } else {
                let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
                found.insert(name, timeless(&text));
            }
        }
    }
    if let Ok(bytes) = fs::read(home.join(VAULT)) {
        found.insert(VAULT.into(), kept_names(&bytes));
    }
    found
}

/// A text in which every moment is the same: when it was installed or revoked is another one each time.
fn timeless(text: &str) -> String {
    let line = |line: &str| match line.split_once(':') {
        Some((name, value)) if [r#""installed""#, r#""since""#].contains(&name.trim()) => {
            format!("{name}: 0{}", if value.ends_with(',') { "," } else { "" })
        }
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The names of the values that a vault has.
fn kept_names(bytes: &[u8]) -> String {
    let contents: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    let name = |entry: &serde_json::Value| format!("{} {}", entry["owner"], entry["name"]);
    let entries = contents["entries"].as_array().unwrap();
    entries.iter().map(name).collect::<Vec<_>>().join("\n")
}
