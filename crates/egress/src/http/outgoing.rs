//! A body of ours on its way, piece by piece, so that somebody can be told how far it is.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

use crate::watch::Watch;

/// How much is handed over at once.
const PIECE: usize = 64 << 10;

/// A body that tells of each piece as the connection takes it.
pub(super) struct Outgoing {
    left: Bytes,
    watch: Watch,
}

impl Outgoing {
    pub(super) fn new(body: Vec<u8>, watch: Watch) -> Self {
        Self { left: body.into(), watch }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.left.len().min(PIECE);
        if length == 0 {
            return Poll::Ready(None);
        }
        let piece = self.left.split_to(length);
        self.watch.passed(length as u64);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}
