//! Ports for servers that must be told one before they listen.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below those that the system gives to whoever asks for any, so that nobody gets it before the server does.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// A port that nobody listens at and that no other test of this machine is likely to ask for.
pub fn unused() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(u64::from(std::process::id()) * 97 % u64::from(COUNT)).unwrap_or(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + start.wrapping_add(number) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
