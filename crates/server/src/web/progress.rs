//! Whether anything still goes on at a connection of HTTP/2.
//!
//! Such a client may answer every ping and yet take nothing of its answers, or ask for nothing more. Below, a
//! connection that is alive is kept; here it is seen whether pieces of answers are taken.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::serve::Patience;

/// The most bytes of an answer that are handed down at once: what was handed down is not seen any more.
pub(super) const PIECE: usize = 64 << 10;

/// What goes on at a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// When something was asked or taken last; none as long as nothing was asked.
    last: Option<Instant>,
    /// How many are being answered, of whose answers nothing is there yet.
    answering: usize,
    /// Since when the pieces of answers wait to be taken.
    waiting: HashMap<u64, Instant>,
    number: u64,
}

impl Progress {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody asks something, until this is dropped or becomes a body.
    pub(super) fn begins(&self) -> Asked {
        let mut state = self.state();
        state.last = Some(Instant::now());
        state.answering += 1;
        drop(state);
        Asked(self.clone())
    }

    /// Waits until nothing goes on any more: for ever, where nothing was asked.
    pub(super) async fn ended(&self, patience: Patience) {
        let often = patience.stalled.min(patience.idle) / 4;
        loop {
            tokio::time::sleep(often).await;
            if self.state().is_over(patience, Instant::now()) {
                return;
            }
        }
    }
}

impl State {
    fn is_over(&self, patience: Patience, now: Instant) -> bool {
        let since = |then: Instant| now.saturating_duration_since(then);
        let is_stalled = self.waiting.values().any(|then| since(*then) > patience.stalled);
        let is_busy = self.answering > 0 || !self.waiting.is_empty();
        let is_idle = !is_busy && self.last.is_some_and(|then| since(then) > patience.idle);
        is_stalled || is_idle
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Asked(Progress);

impl Asked {
    /// The answer, whose pieces are seen as they are taken.
    pub(super) fn answered(self, body: Body) -> Body {
        let mut state = self.0.state();
        state.number += 1;
        let number = state.number;
        state.waiting.insert(number, Instant::now());
        drop(state);
        Body::new(Seen { body, rest: Bytes::new(), progress: self.0.clone(), number })
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.answering -= 1;
        state.last = Some(Instant::now());
    }
}

/// The body of an answer.
struct Seen {
    body: Body,
    /// What is left of a piece that was larger than it may be.
    rest: Bytes,
    progress: Progress,
    number: u64,
}

impl HttpBody for Seen {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = if self.rest.is_empty() {
            Pin::new(&mut self.body).poll_frame(context)
        } else {
            Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.rest)))))
        };
        let polled = polled.map_ok(|frame| match frame.into_data() {
            Ok(mut data) => {
                self.rest = data.split_off(PIECE.min(data.len()));
                Frame::data(data)
            }
            Err(other) => other,
        });
        let mut state = self.progress.state();
        let now = Instant::now();
        state.last = Some(now);
        // Whoever asks has taken what there was. Where there is nothing yet, it is for us to bring it.
        match &polled {
            Poll::Pending => state.waiting.remove(&self.number),
            Poll::Ready(_) => state.waiting.insert(self.number, now),
        };
        drop(state);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, below) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(below.lower().saturating_add(rest));
        if let Some(upper) = below.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let mut state = self.progress.state();
        state.waiting.remove(&self.number);
        state.last = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use http_body_util::BodyExt;

    use super::*;

    const PATIENCE: Patience = Patience {
        head: Duration::from_secs(1),
        stalled: Duration::from_secs(30),
        idle: Duration::from_mins(1),
        connections: 1,
        connections_each: 1,
    };

    #[tokio::test]
    async fn a_connection_ends_when_nothing_is_asked_or_taken() {
        let progress = Progress::default();
        let after = |seconds: u64| {
            let now = Instant::now() + Duration::from_secs(seconds);
            progress.state().is_over(PATIENCE, now)
        };
        assert!(!after(9_999), "who has asked nothing is for others to judge");
        let asked = progress.begins();
        assert!(!after(9_999), "it is for us to answer");
        let text = Bytes::from(vec![1; 2 * PIECE + 1]);
        let mut body = asked.answered(Body::from(text.clone()));
        assert_eq!((after(29), after(31)), (false, true), "nothing of it is taken");
        let mut taken = Vec::new();
        while let Some(frame) = body.frame().await {
            let data = frame.unwrap().into_data().unwrap();
            assert!(data.len() <= PIECE);
            taken.extend_from_slice(&data);
            assert!(!after(29));
        }
        assert_eq!(taken, text);
        drop(body);
        assert_eq!((after(59), after(61)), (false, true), "nothing more is asked");
        // One that takes nothing is not hidden by others that do.
        let stuck = progress.begins().answered(Body::from("x"));
        let _busy = progress.begins();
        assert_eq!((after(29), after(31)), (false, true));
        drop(stuck);
        assert!(!after(9_999));
    }

    #[tokio::test]
    async fn what_we_have_not_brought_yet_is_not_waited_for_by_us() {
        let progress = Progress::default();
        let silent =
            Body::from_stream(futures_util::stream::pending::<Result<Bytes, axum::Error>>());
        let mut body = progress.begins().answered(silent);
        assert!(body.frame().now_or_never().is_none());
        let later = Instant::now() + Duration::from_secs(31);
        assert!(!progress.state().is_over(PATIENCE, later));
    }
}
