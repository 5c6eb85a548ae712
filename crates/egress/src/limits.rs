//! How much one tool may ask of the proxy, and how long it may take.

use std::time::Duration;

/// Limits of one proxy. Whatever a client or a server does, memory and tasks stay within them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's or a response's head.
    pub head_bytes: usize,
    /// Header lines in a head.
    pub headers: usize,
    /// Clients at a time. Further ones wait in the listener's queue until one has left.
    pub connections: usize,
    /// Addresses of one name that are tried.
    pub addresses: usize,
    /// How long a client may take to send its request's head.
    pub head_time: Duration,
    /// How long nothing may pass, either way, before a connection is ended. It is noticed
    /// between one and two such times after the last byte.
    pub idle_time: Duration,
    /// How long looking up a name and connecting may take, all addresses together.
    pub connect_time: Duration,
    /// How long connecting to one address may take.
    pub address_time: Duration,
}

impl Limits {
    /// The limits that hold unless somebody says otherwise.
    ///
    /// The idle time is long because a request to a model may think for minutes before
    /// its first byte.
    pub const DEFAULT: Self = Self {
        head_bytes: 32 * 1024,
        headers: 100,
        connections: 128,
        addresses: 16,
        head_time: Duration::from_secs(15),
        idle_time: Duration::from_mins(10),
        connect_time: Duration::from_secs(30),
        address_time: Duration::from_secs(8),
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
