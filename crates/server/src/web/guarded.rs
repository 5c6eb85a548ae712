//! A connection that is not waited for without end, and on which every refusal is in the error model.
//!
//! The library below answers what it cannot read by itself, without a body: a broken line, a head that is too
//! large. Such an answer is told in the words of the registry here, and it is the last on its connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use registry::{ErrorBody, ErrorCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::serve::Patience;

/// What every answer of ours has and the library's own have not.
const OURS: &[u8] = b"x-content-type-options";

/// A connection with patience.
pub(super) struct Guarded<S> {
    stream: S,
    patience: Patience,
    /// Whether anything was asked yet; until then the library waits for ever.
    spoken: Arc<AtomicBool>,
    greeting: Pin<Box<Sleep>>,
    stalled: Option<Pin<Box<Sleep>>>,
    /// An answer of ours in place of one of the library's, as far as it is not sent yet.
    instead: Vec<u8>,
}

impl<S> Guarded<S> {
    pub(super) fn new(stream: S, patience: Patience, spoken: Arc<AtomicBool>) -> Self {
        let greeting = Box::pin(tokio::time::sleep(patience.head));
        Self { stream, patience, spoken, greeting, stalled: None, instead: Vec::new() }
    }

    /// Gives up on whoever takes nothing for too long.
    fn wait<T>(
        &mut self,
        context: &mut Context<'_>,
        progress: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stalled = None;
            return progress;
        }
        let stalled = self.patience.stalled;
        let sleep = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(stalled)));
        match sleep.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> Guarded<S> {
    /// Sends what stands in place of something else.
    fn send_instead(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.instead.is_empty() {
            let written = Pin::new(&mut self.stream).poll_write(context, &self.instead);
            let written = ready!(self.wait(context, written))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.instead.drain(..written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let is_waiting = read.is_pending() && !self.spoken.load(Ordering::Relaxed);
        if is_waiting && self.greeting.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.send_instead(context))?;
        if let Some(instead) = instead_of(bytes) {
            self.instead = instead;
            // It is sent with the next write or flush; the library flushes before it closes.
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wait(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.send_instead(context))?;
        if let [only] = parts
            && let Some(instead) = instead_of(only)
        {
            self.instead = instead;
            return Poll::Ready(Ok(only.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.wait(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.send_instead(context))?;
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.wait(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.send_instead(context))?;
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.wait(context, shut)
    }
}

/// What is said in place of an answer that the library makes by itself.
fn instead_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let status = bytes.strip_prefix(b"HTTP/1.1 ").or_else(|| bytes.strip_prefix(b"HTTP/1.0 "))?;
    let message = match status.get(..3)? {
        b"400" => "the request cannot be understood",
        b"414" => "the address is too long",
        b"431" => "the head of the request is too large",
        _ => return None,
    };
    let is_whole = bytes.ends_with(b"\r\n\r\n") && bytes.len() < 512;
    if !is_whole || bytes.windows(OURS.len()).any(|part| part == OURS) {
        return None;
    }
    let line = status.split(|byte| *byte == b'\r').next()?;
    let body = serde_json::to_string(&ErrorBody::new(ErrorCode::InvalidRequest, message)).ok()?;
    let head = format!(
        "HTTP/1.1 {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         x-content-type-options: nosniff\r\nconnection: close\r\n\r\n",
        String::from_utf8_lossy(line),
        body.len()
    );
    Some((head + &body).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_library_says_by_itself_is_said_in_other_words() {
        let own = "HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n";
        let said = String::from_utf8(instead_of(own.as_bytes()).unwrap()).unwrap();
        assert!(said.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"), "{said}");
        assert!(said.contains("connection: close") && said.ends_with("\"details\":{}}}"), "{said}");
        for other in [
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\nx-content-type-options: nosniff\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\nab",
            "HTTP/1.1 4",
            "",
        ] {
            assert_eq!(instead_of(other.as_bytes()), None, "{other}");
        }
    }
}
