//! Connections: each is served until it ends, and none is waited for too long.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use super::{Settings, Web, router};
use crate::gateway::Gateway;

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
    stop: impl Future<Output = ()>,
) {
    let web = Arc::new(Web::new(gateway, settings));
    let router = router(Arc::clone(&web));
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
        let service = TowerToHyperService::new(router.clone());
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection.into_owned());
        tokio::spawn(async move {
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    web.close();
    let _ = tokio::time::timeout(FAREWELL, graceful.shutdown()).await;
}
