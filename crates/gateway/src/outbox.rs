//! What waits to be written to somebody who may be slow to read.
//!
//! Whoever writes so goes on reading meanwhile: two who write to one another, and would each read only once they had written, would
//! wait for ever.

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};

/// How much is kept of the room that something long took.
const ROOM: usize = 64 << 10;

/// Text on its way.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    text: Vec<u8>,
    written: usize,
}

impl Outbox {
    /// Whether everything was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether there is so much that more has to wait.
    pub(crate) fn is_full(&self) -> bool {
        self.text.len() >= ROOM
    }

    /// Adds a text, and leaves nothing of it where it was.
    pub(crate) fn take(&mut self, text: &mut Vec<u8>) {
        self.text.append(text);
        empty(text);
    }

    /// Adds a message as a line of its own.
    pub(crate) fn line(&mut self, message: &str) {
        self.text.reserve(message.len() + 1);
        self.text.extend_from_slice(message.as_bytes());
        self.text.push(b'\n');
    }

    /// Forgets what nobody will read.
    pub(crate) fn clear(&mut self) {
        empty(&mut self.text);
        self.written = 0;
    }

    /// Writes all of it. Where this is given up, it goes on from there the next time.
    pub(crate) async fn drain(&mut self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        while self.written < self.text.len() {
            match to.write(&self.text[self.written..]).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => self.written += count,
            }
        }
        to.flush().await?;
        self.clear();
        Ok(())
    }
}

/// Empties a text, and gives back what something long took of room.
pub(crate) fn empty(text: &mut Vec<u8>) {
    text.clear();
    text.shrink_to(ROOM);
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[test]
    fn what_is_given_up_goes_on_where_it_was() {
        let (mut ours, mut theirs) = tokio::io::duplex(4);
        let mut outbox = Outbox::default();
        outbox.line("hello");
        outbox.take(&mut b"world\n".to_vec());
        let mut read = Vec::new();
        for _ in 0..3 {
            let _is_done = outbox.drain(&mut ours).now_or_never();
            let mut some = [0; 4];
            let count = theirs.read(&mut some).now_or_never().unwrap().unwrap();
            read.extend_from_slice(&some[..count]);
        }
        assert!(outbox.drain(&mut ours).now_or_never().is_some_and(|done| done.is_ok()));
        assert_eq!((read, outbox.is_empty()), (b"hello\nworld\n".to_vec(), true));
    }

    #[test]
    fn something_long_takes_no_room_once_it_is_gone() {
        let (mut outbox, mut text) = (Outbox::default(), vec![b'x'; 16 << 20]);
        outbox.take(&mut text);
        assert!(text.is_empty() && text.capacity() <= ROOM, "{}", text.capacity());
        assert!(outbox.drain(&mut tokio::io::sink()).now_or_never().is_some());
        assert!(outbox.is_empty() && outbox.text.capacity() <= ROOM, "{}", outbox.text.capacity());
    }
}
