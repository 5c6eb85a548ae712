//! A room without namespaces, for levels below L2: the process is its own
//! reaper and finds what it must end by looking. It holds less, and says so by its level.

use std::collections::HashMap;

use rustix::process::{DumpableBehavior, Pid, Signal};

use super::mounts::Doing;
use crate::level::Fault;

/// Devices it may use.
pub(crate) const DEVICES: [&str; 5] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Makes this process a room.
pub(crate) fn build() -> Result<(), Fault> {
    become_reaper()?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .doing(|| "close the memory of the room".into())
}

/// Makes this process the one that orphans below it come to.
pub(crate) fn become_reaper() -> Result<(), Fault> {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).doing(|| "become a reaper".into())
}

/// Kills everything below this process that is there now, apart from these and what is below them.
pub(crate) fn kill_descendants(apart_from: &[i32]) {
    signal_descendants(Signal::KILL, apart_from);
}

/// Sends a signal to all of them.
pub(crate) fn signal_descendants(signal: Signal, apart_from: &[i32]) {
    for pid in descendants(apart_from).into_iter().filter_map(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Everything below this process that is there now, apart from these and what is below them.
pub(crate) fn descendants(apart_from: &[i32]) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let text = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = text
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1))
            .and_then(|parent| parent.parse().ok());
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut next) = (Vec::new(), vec![rustix::process::getpid().as_raw_pid()]);
    while let Some(parent) = next.pop() {
        let below = children.remove(&parent).unwrap_or_default();
        let below = below.into_iter().filter(|child| !apart_from.contains(child));
        for child in below {
            found.push(child);
            next.push(child);
        }
    }
    found
}
