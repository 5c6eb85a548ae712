//! Connections.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// How long somebody may take to say what is wanted.
const HEAD: Duration = Duration::from_secs(15);
/// How long those who are being answered have left when the registry closes.
pub const FAREWELL: Duration = Duration::from_secs(20);
/// The most connections at once; others wait to be accepted.
const CONNECTIONS: usize = 4_096;
/// The most bytes of what is asked, headers and all.
const HEAD_BYTES: usize = 64 << 10;

/// Answers on a listener until told to stop; then those that are being answered are answered to the end.
pub async fn serve(listener: TcpListener, app: Router, stop: impl Future<Output = ()>) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(64 << 10)
        .keep_alive_interval(HEAD);
    let room = std::sync::Arc::new(Semaphore::new(CONNECTIONS));
    let underway = GracefulShutdown::new();
    tokio::pin!(stop);
    loop {
        let accepted = async {
            let place = std::sync::Arc::clone(&room).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, stream) = tokio::select! {
            (place, accepted) = accepted => match accepted {
                Ok((stream, _)) => (place, stream),
                Err(_) => {
                    // Too many open files, most likely: that passes.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut stop => break,
        };
        let _less_delay = stream.set_nodelay(true);
        let app = app.clone();
        let service = tower::service_fn(move |request: Request<hyper::body::Incoming>| {
            let app = app.clone();
            async move {
                let answer = tower::ServiceExt::oneshot(app, request.map(Body::new)).await;
                answer.map_err(|never: Infallible| match never {})
            }
        });
        let connection =
            builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let connection = underway.watch(connection.into_owned());
        tokio::spawn(async move {
            let _whoever_left = connection.await;
            drop(place);
        });
    }
    drop(listener);
    let _those_who_stay = tokio::time::timeout(FAREWELL, underway.shutdown()).await;
}
