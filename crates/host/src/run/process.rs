//! One process for one call.

use sandbox::{Finished, Killer, Launcher};

use super::{Blocked, Network, not_started};
use crate::error::{CallError, Kind};
use crate::plan::Process;

/// Runs a process to its end. Whoever is told of the killer can call it off.
pub(crate) fn run(
    launcher: &Launcher,
    process: &Process,
    started: impl FnOnce(Killer),
) -> Result<(Finished, Vec<Blocked>), CallError> {
    let walls = &process.walls;
    let spawned = launcher.spawn(&walls.confinement, &process.argv);
    let mut child = spawned.map_err(|error| not_started(&error))?;
    started(child.killer());
    let network = Network::open(&mut child, &walls.rules)?;
    let finished = child.finish(&process.stdin).map_err(|error| {
        CallError::new(Kind::Unavailable, format!("failed to wait for the tool: {error}"))
    })?;
    Ok((finished, network.close()))
}
