//! The proxy on a thread of its own, for callers without a runtime.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::attempt::Attempt;
use crate::limits::Limits;
use crate::proxy::{Ends, Proxy};
use crate::resolve::Resolve;
use crate::rules::Rules;

/// A proxy on a thread of its own. Dropping it ends all connections, and returns when each
/// has been reported.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts to serve; see [`Proxy::start`].
    pub fn in_background(
        ends: impl Into<Ends>,
        rules: Rules,
        resolver: impl Resolve + 'static,
        limits: Limits,
        report: impl Fn(Attempt) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let ends = ends.into();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, start) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("egress".to_owned()).spawn(move || {
            runtime.block_on(async move {
                match Proxy::start(ends, rules, resolver, limits, report) {
                    Ok(proxy) => {
                        // Whoever waits for it is there: the other end is held below.
                        let _ = started.send(Ok(proxy.address()));
                        let _ = stopped.await;
                        proxy.stop().await;
                    }
                    Err(error) => {
                        let _ = started.send(Err(error));
                    }
                }
            });
            // A look-up that hangs is not waited for.
            runtime.shutdown_background();
        })?;
        let address = start.recv().map_err(io::Error::other)??;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where clients find the proxy.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It fails only by a panic of the reporter, which was told already.
            let _ = thread.join();
        }
    }
}
