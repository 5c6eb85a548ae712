//! Names that a program without a network asks for: refused at once, and told to the host.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags};
use rustix::net::SendFlags;

use crate::network::LONGEST_QUESTION;

/// Where programs ask when nobody told them where.
const PORT: u16 = 53;

/// Opens the place where programs ask for names. There is none where the machine keeps such ports to itself.
pub(super) fn open() -> Option<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, PORT)).ok()
}

/// Refuses every name.
pub(super) struct Refuser {
    socket: UdpSocket,
    /// The host hears the questions here.
    told: OwnedFd,
}

impl Refuser {
    pub(super) fn new(socket: UdpSocket, told: OwnedFd) -> Self {
        Self { socket, told }
    }

    /// Becomes readable when there is a question.
    pub(super) fn news(&self) -> PollFd<'_> {
        PollFd::new(&self.socket, PollFlags::IN)
    }

    /// Refuses one question. Whatever goes wrong is the loss of who asked.
    pub(super) fn refuse(&self) {
        let mut question = [0; LONGEST_QUESTION];
        let Ok((length, from)) = self.socket.recv_from(&mut question) else { return };
        // A host that does not listen misses it.
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let _ = rustix::net::send(&self.told, &question[..length], flags);
        if let Some(answer) = refusal(&mut question[..length]) {
            let _ = self.socket.send_to(answer, from);
        }
    }
}

/// Turns a question into its refusal.
fn refusal(message: &mut [u8]) -> Option<&[u8]> {
    /// The flag of an answer, and the code of one that refuses (RFC 1035, 4.1.1).
    const ANSWER: u8 = 0x80;
    const REFUSED: u8 = 5;
    let [_, _, flags, codes, ..] = message else { return None };
    if *flags & ANSWER != 0 {
        return None;
    }
    *flags |= ANSWER;
    *codes = *codes & 0xf0 | REFUSED;
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_refused_and_an_answer_is_not_answered() {
        let mut question = *b"\x12\x34\x01\x00rest of it..";
        assert_eq!(refusal(&mut question), Some(&b"\x12\x34\x81\x05rest of it.."[..]));
        assert_eq!(refusal(&mut question), None);
        assert_eq!(refusal(&mut [0; 3]), None);
    }
}
