//! Connections.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::Version;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use ipnet::IpNet;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::address::{Peer, is_among};
use super::guarded::Guarded;
use super::progress::{PIECE, Progress};
use crate::rate::Who;

/// How patient the registry is with whoever connects, and with how many.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long somebody may take to say what is wanted; between two requests too.
    pub head: Duration,
    /// How long somebody may take nothing of an answer.
    pub stalled: Duration,
    /// How long somebody may ask for nothing on a connection of HTTP/2.
    pub idle: Duration,
    /// The most connections at once; others wait to be accepted.
    pub connections: usize,
    /// The most connections of one address that is neither this machine nor a trusted proxy; more are closed.
    pub connections_each: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(15),
            stalled: Duration::from_secs(30),
            idle: Duration::from_mins(1),
            connections: 4_096,
            connections_each: 256,
        }
    }
}

/// How long those who are being answered have left when the registry closes.
pub const FAREWELL: Duration = Duration::from_secs(20);
/// The most bytes of what is asked, headers and all.
const HEAD_BYTES: usize = 64 << 10;
/// The most requests at once on one connection.
const STREAMS: u32 = 100;

/// Answers on a listener until told to stop; then those that are being answered are answered to the end.
pub async fn serve(listener: TcpListener, app: Router, stop: impl Future<Output = ()>) {
    serve_with(listener, app, stop, Patience::default(), &[]).await;
}

/// The same, with other patience, and proxies that are trusted to bring many others.
pub async fn serve_with(
    listener: TcpListener,
    app: Router,
    stop: impl Future<Output = ()>,
    patience: Patience,
    proxies: &[IpNet],
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(64 << 10)
        .max_concurrent_streams(STREAMS)
        .max_send_buf_size(PIECE)
        .keep_alive_interval(patience.head)
        .keep_alive_timeout(patience.head);
    let room = Arc::new(Semaphore::new(patience.connections));
    let guests = Guests::default();
    let underway = GracefulShutdown::new();
    tokio::pin!(stop);
    loop {
        let accepted = async {
            let place = Arc::clone(&room).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, stream, peer) = tokio::select! {
            (place, accepted) = accepted => match accepted {
                Ok((stream, peer)) => (place, stream, peer),
                Err(_) => {
                    // Too many open files, most likely: that passes.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut stop => break,
        };
        let address = peer.ip().to_canonical();
        let is_counted = !address.is_loopback() && !is_among(proxies, address);
        let most = if is_counted { patience.connections_each } else { usize::MAX };
        let Some(seat) = guests.seat(Who::at(address), most) else { continue };
        let _less_delay = stream.set_nodelay(true);
        let spoken = Arc::new(AtomicBool::new(false));
        let stream = Guarded::new(stream, patience, Arc::clone(&spoken));
        let app = app.clone();
        let progress = Progress::default();
        let seen = progress.clone();
        let service = tower::service_fn(move |mut request: Request<hyper::body::Incoming>| {
            let mut app = app.clone();
            spoken.store(true, Ordering::Relaxed);
            request.extensions_mut().insert(Peer(address));
            // Of the older protocol `Guarded` sees enough.
            let asked = (request.version() == Version::HTTP_2).then(|| seen.begins());
            // A router is always ready.
            let answering = tower::Service::call(&mut app, request.map(Body::new));
            async move {
                let Ok(answer) = answering.await;
                Ok::<_, Infallible>(match asked {
                    Some(asked) => answer.map(|body| asked.answered(body)),
                    None => answer,
                })
            }
        });
        let connection =
            builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let connection = underway.watch(connection.into_owned());
        tokio::spawn(async move {
            tokio::select! {
                _whoever_left = connection => {}
                () = progress.ended(patience) => {}
            }
            drop((place, seat));
        });
    }
    drop(listener);
    let _those_who_stay = tokio::time::timeout(FAREWELL, underway.shutdown()).await;
}

/// How many connections each has.
#[derive(Clone, Debug, Default)]
struct Guests(Arc<Mutex<HashMap<Who, usize>>>);

/// A connection that is counted until this is dropped.
struct Seat(Guests, Who);

impl Guests {
    fn seat(&self, who: Who, most: usize) -> Option<Seat> {
        let mut guests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = guests.entry(who.clone()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Seat(self.clone(), who))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut guests = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = guests.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                guests.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_takes_no_more_than_its_seats() {
        let (guests, who) = (Guests::default(), Who::at([192, 0, 2, 1].into()));
        let first = guests.seat(who.clone(), 2);
        let second = guests.seat(who.clone(), 2);
        assert!(first.is_some() && second.is_some());
        assert!(guests.seat(who.clone(), 2).is_none());
        assert!(guests.seat(Who::at([192, 0, 2, 2].into()), 2).is_some());
        drop(first);
        assert!(guests.seat(who, 2).is_some());
        drop(second);
        assert!(guests.0.lock().unwrap().is_empty(), "whoever left is forgotten");
    }
}
