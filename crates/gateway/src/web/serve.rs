//! Connections: each is served until it ends, and none is waited for too long.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::header::{CONNECTION, HOST};
use axum::http::{HeaderValue, Request, Version};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use super::{PROGRAMS, Settings, Web, answer, is_below, router, too_many};
use crate::gateway::Gateway;
use crate::lanes::Lanes;
use crate::mcp::client::lock;

/// How long a client may take to say what it wants.
const HEAD: Duration = Duration::from_secs(30);

/// How long one that has its answers may stay without a word.
const IDLE: Duration = Duration::from_mins(5);

/// How long answers may take to come to their end once it is told to stop.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long those may take then that say that their call was called off.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How many connections there are at a time.
const MOST: usize = 4096;

/// How many requests there are at a time of others than the owner, who finds a place for their console in any case.
const MOST_OF_OTHERS: usize = MOST - 256;

/// With fewer places left, nobody keeps one whose request was answered.
const FEW: usize = 512;

/// Serves a gateway until it is told to stop.
pub async fn serve(
    gateway: Arc<Gateway>,
    listener: TcpListener,
    settings: Settings,
    lanes: &Lanes,
    stop: impl Future<Output = ()>,
) {
    let web = Arc::new(Web::new(gateway, settings));
    let doors = Arc::new((Arc::clone(&web), router(Arc::clone(&web))));
    let places = Arc::new(Semaphore::new(MOST));
    let others = Arc::new(Semaphore::new(MOST_OF_OTHERS));
    let graceful = GracefulShutdown::new();
    let builder = builder();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let Ok((stream, _)) = accepted else {
            // There are no descriptors left, for now.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let _ = stream.set_nodelay(true);
        // It was accepted here, and is watched by the thread that serves it.
        let Ok(stream) = stream.into_std() else { continue };
        let (doors, builder, watcher) = (Arc::clone(&doors), builder.clone(), graceful.watcher());
        let (places, others) = (Arc::clone(&places), Arc::clone(&others));
        lanes.serve(async move {
            let attention = Arc::new(Attention::default());
            let asked = Arc::clone(&attention);
            let service = service_fn(move |request: Request<Incoming>| {
                let (doors, paid) = (Arc::clone(&doors), Paid::to(&asked));
                let is_to_close =
                    places.available_permits() < FEW && request.version() == Version::HTTP_11;
                let place = place_of(request.uri().path(), &others);
                async move {
                    let (web, router) = &*doors;
                    let (mut response, place) = match place {
                        Ok(place) => (answer(web, router, naming_its_host(request)).await, place),
                        Err(_) => (too_many(request.uri().path()), None),
                    };
                    if is_to_close {
                        response
                            .headers_mut()
                            .insert(CONNECTION, HeaderValue::from_static("close"));
                    }
                    Ok::<_, Infallible>(response.map(|body| Held { body, _paid: (paid, place) }))
                }
            });
            if let Ok(stream) = TcpStream::from_std(stream) {
                let connection = builder.serve_connection(TokioIo::new(stream), service);
                tokio::select! {
                    _ = watcher.watch(connection.into_owned()) => {}
                    () = attention.lost(HEAD, IDLE) => {}
                }
            }
            drop(place);
        });
    }
    drop(listener);
    web.close();
    web.gateway.dismiss();
    let mut graceful = pin!(graceful.shutdown());
    if tokio::time::timeout(FAREWELL, &mut graceful).await.is_err() {
        // Whoever waits longer is told that it ends.
        web.gateway.call_off().await;
        let _ = tokio::time::timeout(LAST_WORDS, graceful).await;
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // How long somebody may say nothing is looked at for both versions alike.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(HEAD);
    builder
}

/// The place of a request to a path among those of others than the owner, who needs none.
fn place_of(
    path: &str,
    others: &Arc<Semaphore>,
) -> Result<Option<OwnedSemaphorePermit>, TryAcquireError> {
    let is_of_others = is_below(path, &PROGRAMS);
    is_of_others.then(|| Arc::clone(others).try_acquire_owned()).transpose()
}

/// A request with its host where it is looked for: over HTTP/2 it is no header. One that names two has both.
fn naming_its_host(request: Request<Incoming>) -> Request<Body> {
    let mut request = request.map(Body::new);
    let Some(named) = request.uri().authority().map(|named| named.as_str().to_owned()) else {
        return request;
    };
    let is_said = |host: &HeaderValue| host.as_bytes().eq_ignore_ascii_case(named.as_bytes());
    if !request.headers().get(HOST).is_some_and(is_said)
        && let Ok(named) = HeaderValue::from_str(&named)
    {
        request.headers_mut().append(HOST, named);
    }
    request
}

/// What is known of whoever is connected: whether they wait for an answer, and since when they do not.
#[derive(Debug)]
struct Attention(Mutex<Known>);

#[derive(Debug)]
struct Known {
    has_asked: bool,
    open: usize,
    since: Instant,
}

impl Default for Attention {
    fn default() -> Self {
        Self(Mutex::new(Known { has_asked: false, open: 0, since: Instant::now() }))
    }
}

impl Attention {
    /// Waits until they take too long to ask the first time, or have not asked again for long.
    async fn lost(&self, first: Duration, again: Duration) {
        loop {
            let left = self.left(first, again);
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }

    /// How long they need not be looked after.
    fn left(&self, first: Duration, again: Duration) -> Duration {
        let known = lock(&self.0);
        let patience = if known.has_asked { again } else { first };
        match known.open {
            0 => patience.saturating_sub(known.since.elapsed()),
            _ => patience,
        }
    }
}

/// An answer that is waited for, until this is dropped.
struct Paid(Arc<Attention>);

impl Paid {
    fn to(attention: &Arc<Attention>) -> Self {
        let mut known = lock(&attention.0);
        known.has_asked = true;
        known.open += 1;
        drop(known);
        Self(Arc::clone(attention))
    }
}

impl Drop for Paid {
    fn drop(&mut self) {
        let mut known = lock(&self.0.0);
        known.open -= 1;
        known.since = Instant::now();
    }
}

/// The body of an answer, which is waited for until it ends.
struct Held {
    body: Body,
    _paid: (Paid, Option<OwnedSemaphorePermit>),
}

impl hyper::body::Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Response;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn however_much_others_ask_the_owner_finds_a_place() {
        let others = Arc::new(Semaphore::new(1));
        let first = place_of("/mcp/work", &others).unwrap();
        assert!(first.is_some() && place_of("/v1/tools.json", &others).is_err());
        assert!(place_of("/approvals", &others).unwrap().is_none());
        drop(first);
        assert!(place_of("/v1/tools.json", &others).is_ok());
        let refused = too_many("/v1/tools.json");
        assert_eq!(refused.status(), 503);
        assert_eq!(refused.headers()["retry-after"], "1");
    }

    const SOON: Duration = Duration::from_millis(20);

    fn run<T>(test: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
    }

    #[test]
    fn whoever_says_nothing_has_no_place_for_long() {
        // Nothing at all, the beginning of a request, and all that HTTP/2 begins with.
        for said in [&b""[..], b"GET / HT", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"]
        {
            run(async {
                let (mut theirs, ours) = tokio::io::duplex(1024);
                theirs.write_all(said).await.unwrap();
                let service = service_fn(|_: Request<Incoming>| async {
                    Ok::<_, Infallible>(Response::new(Body::empty()))
                });
                let builder = builder();
                let connection = builder.serve_connection(TokioIo::new(ours), service);
                let attention = Attention::default();
                tokio::select! {
                    _ = connection => panic!("{said:?} was enough"),
                    () = attention.lost(SOON, IDLE) => {}
                }
                let mut rest = Vec::new();
                theirs.read_to_end(&mut rest).await.unwrap();
            });
        }
    }

    #[test]
    fn whoever_waits_for_an_answer_keeps_the_place_and_loses_it_later() {
        run(async {
            let attention = Arc::new(Attention::default());
            let paid = Paid::to(&attention);
            let lost = attention.lost(SOON, SOON);
            let mut lost = pin!(lost);
            assert!(tokio::time::timeout(SOON * 4, &mut lost).await.is_err());
            drop(paid);
            lost.await;
        });
    }
}
