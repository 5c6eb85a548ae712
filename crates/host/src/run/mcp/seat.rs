//! The places of servers: one is filled by whoever finds it empty, waits where its servers fall again and again, and is given up where
//! there are too many.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::server::Server;
use super::session::Claim;
use crate::error::{CallError, Kind};

/// How many servers are kept, of all tools together.
pub(super) const MOST: usize = 32;

/// How many of them are kept rather than others because somebody watches what they have.
const MOST_SPARED: usize = MOST / 2;

/// How often a server may fall before it had served anybody until the next one waits, and for how long.
const PATIENT_FALLS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The place of one server. Whoever finds it empty fills it, and the others wait for that.
pub(super) type Slot = Arc<tokio::sync::Mutex<Seat>>;

/// A server, and how often one fell here before it had served anybody.
#[derive(Debug, Default)]
pub(super) struct Seat {
    pub(super) server: Option<Arc<Server>>,
    pub(super) falls: u32,
    /// When the last one was started.
    pub(super) at: Option<Instant>,
}

impl Seat {
    /// Refuses to start one more so soon after the last ones fell.
    pub(super) fn check_pause(&self) -> Result<(), CallError> {
        let Some(left) = self.at.map(|at| self.pause().saturating_sub(at.elapsed())) else {
            return Ok(());
        };
        if left.is_zero() {
            return Ok(());
        }
        let message = format!(
            "the server fell {} times before it had served anybody; it is started again in {:.1} s",
            self.falls,
            left.as_secs_f64()
        );
        let error = CallError::new(Kind::Unavailable, message);
        let after = u32::try_from(left.as_secs() + 1).unwrap_or(u32::MAX);
        Err(CallError { passes_after: Some(after), ..error })
    }

    fn pause(&self) -> Duration {
        match self.falls.checked_sub(PATIENT_FALLS) {
            None => Duration::ZERO,
            Some(more) => (FIRST_PAUSE * 2_u32.saturating_pow(more.min(16))).min(LONGEST_PAUSE),
        }
    }
}

/// A server that is not kept any more serves those whom it serves, and ends with that.
impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.retired.cancel();
        }
    }
}

/// A server that works for somebody, until this is dropped.
pub(super) struct Hired {
    pub(super) server: Arc<Server>,
    pub(super) _claim: Option<Claim>,
}

impl Deref for Hired {
    type Target = Arc<Server>;

    fn deref(&self) -> &Arc<Server> {
        &self.server
    }
}

/// What nobody calls at the moment.
#[derive(Clone, Copy)]
pub(super) struct Idle {
    /// Whether somebody wants to be told of what it has.
    pub(super) is_watched: bool,
    /// How long it has been so.
    pub(super) since: Duration,
}

/// Whether nobody calls what is in a slot.
pub(super) fn idle(slot: &Slot) -> Option<Idle> {
    let place = slot.try_lock().ok()?;
    let (is_watched, since) = match &place.server {
        Some(server) if server.is_well() => (server.watched.is_any(), server.idle()?),
        // Whoever waits for the end of a pause would begin anew.
        _ if !place.pause().is_zero() => (false, place.at?.elapsed()),
        // One that is gone, or never came.
        _ => (false, Duration::MAX),
    };
    Some(Idle { is_watched, since })
}

/// Which of them ends first where there are too many: the one that nobody has called for longest. One that is watched is spared
/// as long as those are not so many that hardly any room would be left for the others.
pub(super) fn first_to_go<K>(all: Vec<(Idle, K)>) -> Option<K> {
    let are_spared = all.iter().filter(|(idle, _)| idle.is_watched).count() <= MOST_SPARED;
    let rank = |(idle, _): &(Idle, K)| (!(are_spared && idle.is_watched), idle.since);
    all.into_iter().max_by_key(rank).map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many that are watched and were called last, one after the other, before the others were.
    fn first_beside(watched: usize) -> Option<usize> {
        let idle = |number: usize| {
            let since = Duration::from_secs(100 - number as u64);
            (Idle { is_watched: number < watched, since }, number)
        };
        first_to_go((0..=MOST).map(idle).collect())
    }

    #[test]
    fn what_is_watched_goes_last_but_does_not_crowd_out_the_others() {
        assert_eq!(first_beside(0), Some(0));
        assert_eq!(first_beside(MOST_SPARED), Some(MOST_SPARED));
        assert_eq!(first_beside(MOST_SPARED + 1), Some(0));
        assert_eq!(first_beside(MOST + 1), Some(0));
    }
}
