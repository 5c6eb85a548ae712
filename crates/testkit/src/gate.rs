//! A way to a server that can be closed: while it is, whoever comes is turned away.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A port that leads to another.
#[derive(Debug)]
pub struct Gate {
    port: u16,
    is_open: Arc<AtomicBool>,
}

impl Gate {
    /// A way to this port, open.
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be had");
        let own = listener.local_addr().expect("it has an address").port();
        let is_open = Arc::new(AtomicBool::new(true));
        let known = Arc::clone(&is_open);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let known = Arc::clone(&known);
                if known.load(Ordering::Acquire) {
                    std::thread::spawn(move || pass(&stream, port, &known));
                }
            }
        });
        Self { port: own, is_open }
    }

    /// The port to come to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Turns everybody away, also those who are in the middle of something.
    pub fn close(&self) {
        self.is_open.store(false, Ordering::Release);
    }

    /// Lets everybody through again.
    pub fn open(&self) {
        self.is_open.store(true, Ordering::Release);
    }
}

fn pass(stream: &TcpStream, port: u16, is_open: &Arc<AtomicBool>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { return };
    std::thread::scope(|scope| {
        scope.spawn(|| copy(stream, &server, is_open));
        copy(&server, stream, is_open);
    });
}

fn copy(mut from: &TcpStream, mut to: &TcpStream, is_open: &AtomicBool) {
    let mut bytes = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if !is_open.load(Ordering::Acquire) || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _gone_already = from.shutdown(Shutdown::Both);
    let _gone_already = to.shutdown(Shutdown::Both);
}
