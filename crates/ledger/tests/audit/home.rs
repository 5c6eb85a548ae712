//! What the tests of the log share.

use std::fs;
use std::path::{Path, PathBuf};

use ledger::Time;
use ledger::audit::{Audit, Call, Durability, Ending, Fault, verify};
use tempfile::TempDir;

/// The first moment of the tests, shortly after noon.
pub(crate) const NOON: i64 = 1_763_208_000_000;
pub(crate) const DAY: i64 = 86_400_000;

pub(crate) fn at(millis: i64) -> Time {
    Time::from_unix_millis(NOON + millis)
}

/// A home with a log.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A home whose log has a record for each of these moments.
    pub(crate) fn with(moments: impl IntoIterator<Item = i64>) -> Self {
        let home = Self::new();
        let audit = home.audit();
        for moment in moments {
            audit.record(&call("demo.files", "list"), &Ending::default(), at(moment)).unwrap();
        }
        home
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.0.path().join("audit")
    }

    pub(crate) fn audit(&self) -> Audit {
        Audit::new(self.folder(), Durability::Process)
    }

    /// The first log.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder().join("20251115.log")
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.log()).unwrap()
    }

    /// Changes the lines of the first log.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Vec<String>)) {
        let mut lines: Vec<_> = self.text().lines().map(str::to_owned).collect();
        change(&mut lines);
        fs::write(self.log(), lines.iter().map(|line| format!("{line}\n")).collect::<String>())
            .unwrap();
    }

    /// What is wrong, with its line.
    pub(crate) fn faults(&self) -> Vec<(u64, Fault)> {
        let findings = verify(&self.folder()).unwrap().findings;
        findings.into_iter().map(|finding| (finding.line, finding.fault)).collect()
    }
}

pub(crate) fn call(package: &str, action: &str) -> Call {
    Call {
        package: package.into(),
        action: action.into(),
        surface: "terminal".into(),
        argv: vec!["run".into(), "[redacted]".into()],
        ..Call::default()
    }
}

/// A line with another text in it, hashed anew: what somebody does who knows the format.
pub(crate) fn forged(line: &str, from: &str, to: &str) -> String {
    let (hashed, _) = line.rsplit_once(",\"hash\":").unwrap();
    let hashed = hashed.replacen(from, to, 1);
    let hash = ledger::audit::line::Hash::of(hashed.as_bytes());
    format!("{hashed},\"hash\":\"{hash}\"}}")
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
