//! Tells pages that something is new; they look for themselves what it is.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;

use super::Console;
use super::frame::dress;
use super::visit::Visit;
use crate::door::Session;
use crate::mark::Marks;

/// How often it is looked whether something is new.
const LOOK_AGAIN: Duration = Duration::from_millis(400);

/// How often a state that replicas share is looked at.
const LOOK_AT_SHARED: Duration = Duration::from_secs(1);

/// How often a stream says that it is still there.
const STILL_THERE: Duration = Duration::from_secs(15);

/// A page that listens.
struct Listening {
    console: Arc<Console>,
    session: Session,
    seen: Option<Moment>,
    said: Instant,
    /// What the state that replicas share was like when it was last looked at, and when that was.
    shared: Option<(Instant, String)>,
    _place: OwnedSemaphorePermit,
}

/// What tells one moment from another: what is installed, the files that everything is written into, and what others
/// have written who share the state.
type Moment = (u64, Marks, Option<String>);

/// A stream that says so whenever something is new.
pub(super) async fn listen(State(console): State<Arc<Console>>, visit: Visit) -> Response {
    let Ok(place) = Arc::clone(&console.streams).try_acquire_owned() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let listening = Listening {
        console,
        session: visit.session,
        seen: None,
        said: Instant::now(),
        shared: None,
        _place: place,
    };
    let events = stream::unfold(listening, |mut listening| async {
        let text = listening.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from_static(text.as_bytes())), listening))
    });
    let mut response = Response::new(Body::from_stream(events));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    dress(response.headers_mut());
    response
}

impl Listening {
    /// What is said next; nothing where that was all.
    async fn next(&mut self) -> Option<&'static str> {
        loop {
            if !self.console.gateway.door.is_open(&self.session, Instant::now()) {
                return None;
            }
            let now = self.state().await;
            let is_first = self.seen.is_none();
            let is_new = self.seen.replace(now.clone()).is_some_and(|before| before != now);
            if is_first || is_new || self.said.elapsed() >= STILL_THERE {
                self.said = Instant::now();
                return Some(match (is_first, is_new) {
                    // What changed after the page was made and before this is shown, too.
                    (true, _) => "retry: 2000\ndata: here\n\n",
                    (_, true) => "data: new\n\n",
                    (_, false) => ": still there\n\n",
                });
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                () = self.console.closed.cancelled() => return None,
            }
        }
    }

    async fn state(&mut self) -> Moment {
        let stock = self.console.gateway.stock().await;
        let names = ["audit/head", "state.db", "state.db-wal"];
        let files: Vec<PathBuf> = names.iter().map(|name| stock.home.join(name)).collect();
        let is_old = self.shared.as_ref().is_none_or(|(at, _)| at.elapsed() >= LOOK_AT_SHARED);
        if let Some(shared) = stock.host.records().state.shared()
            && is_old
        {
            // While it cannot be read, nothing new can be shown of it.
            let before = self.shared.take().map(|(_, moment)| moment).unwrap_or_default();
            let moment = shared.moment().await.unwrap_or(before);
            self.shared = Some((Instant::now(), moment));
        }
        let shared = self.shared.as_ref().map(|(_, moment)| moment.clone());
        (stock.number, Marks::of(&files), shared)
    }
}
