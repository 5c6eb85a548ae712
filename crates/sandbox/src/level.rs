//! How strong the walls are on this machine: found by building them, not by guessing.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The strength of the walls, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    /// No walls.
    L0,
    /// Landlock and seccomp alone, or Apple's Seatbelt: files and system calls are held, processes are seen.
    L1,
    /// Namespaces, Landlock, seccomp and an empty network; limits by rlimits and a watchdog.
    L2,
    /// The same, with limits by control groups.
    L3,
}

impl Level {
    /// Reads `L0` to `L3`.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::L0, Self::L1, Self::L2, Self::L3]
            .into_iter()
            .find(|level| level.to_string().eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::L0 => "L0",
            Self::L1 => "L1",
            Self::L2 => "L2",
            Self::L3 => "L3",
        })
    }
}

/// One thing that the walls are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Primitive {
    /// Namespaces of users, mounts, processes, network, IPC, host name and control groups, and a root of our own.
    Namespaces,
    /// Access to files by the Landlock security module.
    Landlock,
    /// The list of system calls.
    Seccomp,
    /// Limits by control groups.
    ControlGroups,
    /// Apple's sandbox.
    Seatbelt,
}

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::ControlGroups => "control groups",
            Self::Seatbelt => "seatbelt",
        })
    }
}

/// What was found when a primitive was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finding {
    /// It works, in this version or kind.
    Works(String),
    /// It does not.
    Fails(Fault),
}

/// What went wrong while the walls were built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What was being done.
    pub doing: String,
    /// The error number of the system, or 0.
    pub errno: i32,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.errno {
            0 => write!(f, "failed to {}", self.doing),
            errno => {
                let cause = std::io::Error::from_raw_os_error(errno).to_string();
                let cause = cause.split(" (os error").next().unwrap_or_default().to_lowercase();
                write!(f, "failed to {}: {cause}", self.doing)
            }
        }
    }
}

impl std::error::Error for Fault {}

/// What the walls on this machine are made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walls {
    /// Each primitive that was tried, and what came of it.
    pub findings: Vec<(Primitive, Finding)>,
}

impl Walls {
    /// The strength that these primitives have together.
    pub fn level(&self) -> Level {
        if self.has(Primitive::Seatbelt) {
            return Level::L1;
        }
        let held = self.has(Primitive::Landlock) && self.has(Primitive::Seccomp);
        match (held, self.has(Primitive::Namespaces), self.has(Primitive::ControlGroups)) {
            (true, true, true) => Level::L3,
            (true, true, false) => Level::L2,
            (true, false, _) => Level::L1,
            (false, _, _) => Level::L0,
        }
    }

    /// Whether a primitive works here.
    pub fn has(&self, primitive: Primitive) -> bool {
        self.findings
            .iter()
            .any(|(tried, finding)| *tried == primitive && matches!(finding, Finding::Works(_)))
    }

    /// The primitives that do not work here, and why.
    pub fn missing(&self) -> impl Iterator<Item = (Primitive, &Fault)> {
        self.findings.iter().filter_map(|(primitive, finding)| match finding {
            Finding::Fails(fault) => Some((*primitive, fault)),
            Finding::Works(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walls(working: &[Primitive]) -> Walls {
        let all = [
            Primitive::Namespaces,
            Primitive::Landlock,
            Primitive::Seccomp,
            Primitive::ControlGroups,
        ];
        let finding = |primitive| {
            if working.contains(&primitive) {
                Finding::Works(String::new())
            } else {
                Finding::Fails(Fault { doing: "try".into(), errno: 1 })
            }
        };
        Walls { findings: all.iter().map(|primitive| (*primitive, finding(*primitive))).collect() }
    }

    #[test]
    fn a_level_needs_every_primitive_of_it() {
        use Primitive::{ControlGroups, Landlock, Namespaces, Seccomp};
        assert_eq!(walls(&[Namespaces, Landlock, Seccomp, ControlGroups]).level(), Level::L3);
        assert_eq!(walls(&[Namespaces, Landlock, Seccomp]).level(), Level::L2);
        assert_eq!(walls(&[Landlock, Seccomp]).level(), Level::L1);
        assert_eq!(walls(&[Landlock, Seccomp, ControlGroups]).level(), Level::L1);
        assert_eq!(walls(&[Namespaces, Seccomp, ControlGroups]).level(), Level::L0);
        assert_eq!(walls(&[Namespaces, Landlock]).level(), Level::L0);
        assert_eq!(walls(&[]).level(), Level::L0);
    }

    #[test]
    fn levels_are_ordered_and_read_as_written() {
        assert!(Level::L0 < Level::L1 && Level::L2 < Level::L3);
        assert_eq!(Level::parse("l2"), Some(Level::L2));
        assert_eq!(Level::parse("2"), None);
    }

    #[test]
    fn a_fault_says_what_was_done_and_why_not() {
        let fault = Fault { doing: "make a user namespace".into(), errno: 1 };
        assert_eq!(fault.to_string(), "failed to make a user namespace: operation not permitted");
    }
}
