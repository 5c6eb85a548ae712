//! One process for one call.

use sandbox::{Finished, Launcher};

use super::leash::Leash;
use super::{Blocked, Network, not_started};
use crate::error::{CallError, Kind};
use crate::plan::Process;

/// How many processes of one tool run at a time; whoever comes later waits.
pub(crate) const MOST_OF_ONE: usize = 64;

/// Runs a process to its end, on a leash. Somebody hears what it writes as it comes.
pub(crate) fn run(
    launcher: &Launcher,
    process: &Process,
    leash: &Leash,
    heard: &mut dyn FnMut(&[u8]),
) -> Result<(Finished, Vec<Blocked>), CallError> {
    let walls = &process.walls;
    let spawned = launcher.spawn(&walls.confinement, &process.argv);
    let mut child = spawned.map_err(|error| not_started(&error))?;
    leash.hold(child.killer());
    let network = Network::open(&mut child, &walls.rules)?;
    let finished = child.finish_hearing(&process.stdin, heard).map_err(|error| {
        CallError::new(Kind::Unavailable, format!("failed to wait for the tool: {error}"))
    })?;
    Ok((finished, network.close()))
}
