//! The ends of a program's network that are ours.

use std::net::{TcpListener, UdpSocket};
#[cfg(unix)]
use std::os::unix::net::UnixDatagram;

/// What a program with a network reaches, as the host holds it. Whatever it is told there is for the holder to decide.
#[derive(Debug)]
pub struct Ends {
    /// Where it finds the proxy.
    pub proxy: TcpListener,
    /// Where it asks for names. `None` where the machine keeps such ports to itself.
    pub names: Option<UdpSocket>,
    /// Where it comes when it knows of no proxy: for each of [`Confinement::doors`](crate::Confinement::doors) that
    /// could be opened one on every IPv4 address of its loopback, and one on that of IPv6.
    pub doors: Vec<TcpListener>,
}

/// The most doors that a program has.
pub const MOST_DOORS: usize = 12;

/// The longest question for a name: what fits a datagram of the first version of the protocol.
#[cfg(unix)]
pub(crate) const LONGEST_QUESTION: usize = 512;

/// What a program without a network asked for in vain.
#[derive(Debug)]
pub struct Asked {
    /// One message for each question.
    #[cfg(unix)]
    pub(crate) socket: UnixDatagram,
    #[cfg(not(unix))]
    pub(crate) never: std::convert::Infallible,
}

impl Asked {
    /// The questions for names that have come since the last time, as they are sent to a name server; of very
    /// many not all.
    #[cfg(unix)]
    pub fn take(&self) -> Vec<Vec<u8>> {
        const MOST: usize = 256;
        let mut question = [0; LONGEST_QUESTION];
        let mut next = || match self.socket.recv(&mut question) {
            // An empty one is the end: the room is gone.
            Ok(length @ 1..) => Some(question[..length].to_vec()),
            _ => None,
        };
        std::iter::from_fn(&mut next).take(MOST).collect()
    }

    /// Nothing: there are no such programs here.
    #[cfg(not(unix))]
    pub fn take(&self) -> Vec<Vec<u8>> {
        match self.never {}
    }
}
