//! Empty networks for rooms, kept for the next one.
//!
//! To make and to destroy a network namespace costs more than everything else
//! about a room together. An empty one has no state a tool could leave: the room's user
//! namespace has no rights over it, and it is kept only when no socket is left in it. One whose listener was handed out
//! is never used again.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use super::mounts::Doing;
use super::process;
use crate::level::Fault;

/// How many to keep.
const KEPT: usize = 32;

/// The networks of a launcher.
#[derive(Debug, Default)]
pub(crate) struct Networks {
    free: Vec<OwnedFd>,
}

impl Networks {
    /// Enters an empty network, so that the next room is made in it, and gives a handle on it.
    pub(crate) fn enter(&mut self) -> Result<OwnedFd, Fault> {
        while let Some(network) = self.free.pop() {
            if enter(&network).is_ok() && is_empty() {
                return Ok(network);
            }
        }
        process::unshare(UnshareFlags::NEWNET).doing(|| "make a network namespace".into())?;
        process::switch_loopback_on().doing(|| "switch the loopback interface on".into())?;
        std::fs::File::open("/proc/self/ns/net")
            .map(OwnedFd::from)
            .doing(|| "open the network namespace".into())
    }

    /// Takes one back that no listener was handed out of.
    pub(crate) fn keep(&mut self, network: OwnedFd) {
        if self.free.len() < KEPT {
            self.free.push(network);
        }
    }
}

fn enter(network: &OwnedFd) -> Result<(), Errno> {
    rustix::thread::move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
}

/// Whether no socket is left in the network this process is in.
fn is_empty() -> bool {
    let text = std::fs::read_to_string("/proc/self/net/sockstat").unwrap_or_default();
    let number_after = |line: &str, word: &str| {
        let mut words = line.split_whitespace().skip_while(|found| *found != word);
        words.nth(1).and_then(|number| number.parse::<u64>().ok())
    };
    let is_unused = text.lines().any(|line| number_after(line, "used") == Some(0));
    is_unused && text.lines().all(|line| number_after(line, "tw").unwrap_or(0) == 0)
}
