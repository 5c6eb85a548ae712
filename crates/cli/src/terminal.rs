//! Our terminal lent to a walled program: it has one of its own, and everything passes through here.
//!
//! So it can neither read what is typed when it is not in front, nor leave our terminal in a
//! state of its own; and Ctrl-C reaches it as in any terminal.

use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::termios::{OptionalActions, Termios};
use sandbox::Child;

use crate::interrupt;

/// How often to look whether our window has another size.
const LOOK_UP: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// How long to read on after the end. Somebody whom the program lent its terminal to could write for ever.
const AFTERMATH: Duration = Duration::from_secs(1);

/// So often within so long, Ctrl-C ends a program that does not listen to it.
const INSISTENCE: (usize, Duration) = (3, Duration::from_secs(2));
const CTRL_C: u8 = 3;

/// Passes everything between our terminal and the program's until the program has ended.
pub(crate) fn lend(theirs: &OwnedFd, child: &mut Child) {
    let (input, output) = (io::stdin(), io::stdout());
    let mut is_typed = input.is_terminal();
    let _raw = is_typed.then(Raw::enter);
    let to_output = output.is_terminal();
    let mut presses: Vec<Instant> = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    let mut last = None;
    loop {
        resize(theirs);
        let [typed, said, ended] = {
            let typing = if is_typed { PollFlags::IN } else { PollFlags::empty() };
            let mut ready = [
                PollFd::new(&input, typing),
                PollFd::new(theirs, PollFlags::IN),
                PollFd::from_borrowed_fd(child.as_fd(), PollFlags::IN),
            ];
            let _ = rustix::event::poll(&mut ready, Some(&LOOK_UP));
            ready.map(|one| !one.revents().is_empty())
        };
        if ended && Instant::now() >= *last.get_or_insert_with(|| Instant::now() + AFTERMATH) {
            return;
        }
        if said {
            // The end of a terminal reads as an error.
            let count = rustix::io::read(theirs, &mut buffer).unwrap_or(0);
            if count == 0 && ended {
                return;
            }
            show(&buffer[..count], to_output);
        } else if ended {
            return;
        }
        if typed && is_typed {
            match rustix::io::read(&input, &mut buffer) {
                Ok(count @ 1..) => {
                    let _ = rustix::io::write(theirs, &buffer[..count]);
                    if is_insisting(&buffer[..count], &mut presses) {
                        child.kill();
                    }
                }
                _ => is_typed = false,
            }
        }
    }
}

fn show(bytes: &[u8], to_output: bool) {
    // Whoever closed our end has seen enough.
    let _ = if to_output {
        let mut out = io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush())
    } else {
        io::stderr().write_all(bytes)
    };
}

/// Gives the program's terminal the size of ours.
fn resize(theirs: &OwnedFd) {
    let ours =
        [io::stdout().as_fd().try_clone_to_owned(), io::stdin().as_fd().try_clone_to_owned()];
    let size = ours.iter().flatten().find_map(|fd| rustix::termios::tcgetwinsize(fd).ok());
    if let Some(size) = size
        && rustix::termios::tcgetwinsize(theirs).is_ok_and(|now| now != size)
    {
        let _ = rustix::termios::tcsetwinsize(theirs, size);
    }
}

fn is_insisting(typed: &[u8], presses: &mut Vec<Instant>) -> bool {
    let now = Instant::now();
    presses.extend(typed.iter().filter(|byte| **byte == CTRL_C).map(|_| now));
    presses.retain(|at| now.duration_since(*at) < INSISTENCE.1);
    presses.len() >= INSISTENCE.0
}

/// Our terminal while it passes on every key; as it was when this is dropped.
struct Raw(Option<Termios>);

impl Raw {
    fn enter() -> Self {
        interrupt::keep_terminal();
        let before = rustix::termios::tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut raw = before.clone();
            raw.make_raw();
            // Lines of our own still begin at the left.
            raw.output_modes = before.output_modes;
            let _ = rustix::termios::tcsetattr(io::stdin(), OptionalActions::Now, &raw);
        }
        Self(before)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = rustix::termios::tcsetattr(io::stdin(), OptionalActions::Flush, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrl_c_again_and_again_is_an_order() {
        let mut presses = Vec::new();
        assert!(!is_insisting(b"\x03", &mut presses));
        assert!(!is_insisting(b"abc", &mut presses));
        assert!(!is_insisting(b"\x03", &mut presses));
        assert!(is_insisting(b"\x03", &mut presses));
        assert!(is_insisting(b"\x03\x03\x03", &mut Vec::new()));
    }
}
