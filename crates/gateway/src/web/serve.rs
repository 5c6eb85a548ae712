//! Connections: each is served until it ends, and none is waited for too long.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};

use super::{Settings, Web, answer, router};
use crate::gateway::Gateway;
use crate::lanes::Lanes;

/// How long a client may take to say what it wants.
const HEAD: Duration = Duration::from_secs(30);

/// How long answers may take to come to their end once it is told to stop.
const FAREWELL: Duration = Duration::from_secs(5);

/// How many connections there are at a time.
const MOST: usize = 4096;

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
    let places = Arc::new(tokio::sync::Semaphore::new(MOST));
    let graceful = GracefulShutdown::new();
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    builder.http2().timer(TokioTimer::new());
    let mut stop = std::pin::pin!(stop);
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
        lanes.serve(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let doors = Arc::clone(&doors);
                async move {
                    let (web, router) = &*doors;
                    Ok::<_, Infallible>(answer(web, router, request.map(Body::new)).await)
                }
            });
            if let Ok(stream) = TcpStream::from_std(stream) {
                let connection = builder.serve_connection(TokioIo::new(stream), service);
                let _ = watcher.watch(connection.into_owned()).await;
            }
            drop(place);
        });
    }
    drop(listener);
    web.close();
    let _ = tokio::time::timeout(FAREWELL, graceful.shutdown()).await;
}
