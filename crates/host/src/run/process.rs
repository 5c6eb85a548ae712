//! One process for one call.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::time::{Duration, Instant};

use sandbox::{Finished, Launcher};

use super::leash::Leash;
use super::{Network, not_started};
use crate::blocked::Blocked;
use crate::call::TraceContext;
use crate::error::{CallError, Kind};
use crate::plan::Process;

/// How many processes of one tool run at a time; whoever comes later waits.
pub(crate) const MOST_OF_ONE: usize = 64;

/// So much later than the time of the call its process may end.
const SLACK: Duration = Duration::from_millis(50);

/// Runs a process to its end, on a leash, until the time of its call is over, if it may begin. Somebody hears what it
/// writes as it comes.
pub(crate) fn run(
    launcher: &Launcher,
    process: &Process,
    context: Option<&TraceContext>,
    until: Instant,
    leash: &Leash,
    may: impl FnOnce() -> bool,
    heard: &mut dyn FnMut(&[u8]),
) -> Result<(Finished, Vec<Blocked>), CallError> {
    let walls = &process.walls;
    let mut confinement = Cow::Borrowed(&walls.confinement);
    let left = until.saturating_duration_since(Instant::now());
    // What is tried again has only what is left.
    if confinement.limits.deadline.is_some_and(|deadline| deadline > left + SLACK) {
        confinement.to_mut().limits.deadline = Some(left);
    }
    // What its owner or its manifest says of either goes before both.
    let is_own = |name: &OsStr| TraceContext::VARIABLES.iter().any(|known| name == *known);
    if !confinement.environment.iter().any(|(name, _)| is_own(name)) {
        for (name, value) in context.iter().flat_map(|context| context.variables()) {
            confinement.to_mut().environment.push((name.into(), value.into()));
        }
    }
    let spawned = launcher.spawn_if(&confinement, &process.argv, may);
    let mut child = spawned.map_err(|error| not_started(&error))?;
    leash.hold(child.killer());
    let network = Network::open(&mut child, &walls.rules)?;
    let finished = child.finish_hearing(&process.stdin, heard).map_err(|error| {
        CallError::new(Kind::Unavailable, format!("failed to wait for the tool: {error}"))
    })?;
    Ok((finished, network.close()))
}
