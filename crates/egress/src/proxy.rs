//! All clients of one listener.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use crate::attempt::Attempt;
use crate::connection::serve;
use crate::gate::Gate;
use crate::limits::Limits;
use crate::resolve::Resolve;
use crate::rules::Rules;

/// How long to wait when no client can be accepted, say for want of descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A proxy that serves a listener until it is stopped or dropped; its connections end with it.
pub struct Proxy {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts to serve a listener, inside a tokio runtime with its clock and its I/O enabled.
    ///
    /// The listener may be of another network namespace; what is dialled is of this one.
    /// `report` is called on the runtime's own threads, so it must return soon.
    pub fn start(
        listener: std::net::TcpListener,
        rules: Rules,
        resolver: impl Resolve + 'static,
        limits: Limits,
        report: impl Fn(Attempt) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let gate = Gate::new(rules, Box::new(resolver), limits, Arc::new(report));
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(serve_all(listener, Arc::new(gate), stopped));
        Ok(Self { address, stop, task })
    }

    /// Where clients find the proxy.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections, and returns when each has been reported.
    pub async fn stop(self) {
        drop(self.stop);
        // The task fails only if it was ended already.
        let _ = self.task.await;
    }
}

/// Dropping the sender of `stopped` ends the loop, and with it every connection.
async fn serve_all(listener: TcpListener, gate: Arc<Gate>, mut stopped: oneshot::Receiver<()>) {
    let places = Arc::new(Semaphore::new(gate.limits.connections.max(1)));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            _ = &mut stopped => break,
            (place, accepted) = next => match accepted {
                Ok((client, _)) => {
                    let gate = Arc::clone(&gate);
                    connections.spawn(async move {
                        serve(client, &gate).await;
                        drop(place);
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    connections.shutdown().await;
}

impl fmt::Debug for Proxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Proxy").field("address", &self.address).finish_non_exhaustive()
    }
}
