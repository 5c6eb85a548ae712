//! How long a writer keeps the lock to itself.
//!
//! Who writes one record upon the other would give the lock back only to take it again, look whether all is as it was, and sign for
//! each. So it sits down: for a moment nobody else can write, nothing has to be looked at, and the head is sealed. As soon as
//! somebody waits, or it has nothing more to write, it signs, gives the lock back, and leaves it for the others to have for another
//! moment. Whoever waits for the lock, to write or to verify, finds a head that is signed. Who is killed meanwhile leaves one that
//! is sealed, which the key vouches for just as well.

use std::sync::Weak;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::append::Log;

/// How soon another record has to follow.
const BUSY: Duration = Duration::from_millis(2);
/// How often a writer who sits looks whether somebody waits.
const SITTING: Duration = Duration::from_millis(10);
/// How long it sits at most, should somebody wait who does not say so.
const LONGEST: Duration = Duration::from_secs(1);
/// How long it then leaves the lock to others between two records; they ask for it every other millisecond.
const APART: Duration = Duration::from_millis(5);

/// When a writer may sit, and who ends that.
#[derive(Debug)]
pub(super) struct Chair {
    /// Tells the thread that somebody sits.
    taken: Sender<()>,
    /// When the last record was written.
    wrote: Option<Instant>,
    /// When somebody got up last.
    left: Option<Instant>,
}

impl Chair {
    /// A chair for a log, where there can be a thread that looks after it.
    pub(super) fn of(log: Weak<Log>) -> Option<Self> {
        let (taken, heard) = channel();
        let look_after = move || look_after(&log, &heard);
        thread::Builder::new().name("audit".to_owned()).spawn(look_after).ok()?;
        Some(Self { taken, wrote: None, left: None })
    }

    /// Whether whoever has just written a record sits down: the thread knows then, and will have them get up.
    pub(super) fn is_taken(&mut self) -> bool {
        let now = Instant::now();
        let within = |at: Option<Instant>, time| at.is_some_and(|at| now.duration_since(at) < time);
        let is_busy = within(self.wrote, BUSY) && !within(self.left, APART);
        self.wrote = Some(now);
        is_busy && self.taken.send(()).is_ok()
    }

    pub(super) fn is_left(&mut self) {
        self.left = Some(Instant::now());
    }
}

/// Ends each time somebody sits, until the log is gone.
fn look_after(log: &Weak<Log>, taken: &Receiver<()>) {
    while taken.recv().is_ok() {
        let (began, mut written) = (Instant::now(), None);
        loop {
            thread::sleep(SITTING);
            let Some(log) = log.upgrade() else { return };
            if began.elapsed() > LONGEST || !log.may_be_sat_at(&mut written) {
                log.get_up();
                break;
            }
        }
    }
}
