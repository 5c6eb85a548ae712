//! Names to addresses.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::host::Name;

/// A look-up under way.
pub type Lookup<'a> = Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, ResolveError>> + Send + 'a>>;

/// Looks names up. Tests bring their own.
pub trait Resolve: Send + Sync {
    /// The addresses of a name, in the order they should be tried.
    fn resolve<'a>(&'a self, name: &'a Name) -> Lookup<'a>;
}

/// Why a name has no address.
#[derive(Debug)]
pub enum ResolveError {
    /// The resolver says so.
    Failed(io::Error),
    /// The resolver knows the name, but no address.
    NoAddress,
    /// The resolver did not answer in time.
    TimedOut,
}

/// The resolver of this machine: its hosts file, then whatever it is set up to ask.
///
/// A look-up cannot be called back once it runs, so as many as may run at a time are counted
/// until they have really ended; further ones wait within their own time.
#[derive(Clone, Debug)]
pub struct SystemResolver {
    time: Duration,
    running: Arc<Semaphore>,
}

impl SystemResolver {
    /// Look-ups at a time.
    const LOOKUPS: usize = 16;

    /// A resolver whose look-ups take no longer than this.
    pub fn new(time: Duration) -> Self {
        Self { time, running: Arc::new(Semaphore::new(Self::LOOKUPS)) }
    }
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new(Duration::from_secs(10))
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a Name) -> Lookup<'a> {
        let running = Arc::clone(&self.running);
        let name = name.as_str().to_owned();
        let lookup = async move {
            let permit = running.acquire_owned().await.map_err(io::Error::other)?;
            spawn_blocking(move || {
                let found = (name.as_str(), 0).to_socket_addrs();
                drop(permit);
                found.map(|found| found.map(|address| address.ip()).collect())
            })
            .await?
        };
        Box::pin(async move {
            match timeout(self.time, lookup).await {
                Ok(found) => found.map_err(ResolveError::Failed),
                Err(_) => Err(ResolveError::TimedOut),
            }
        })
    }
}

impl ResolveError {
    /// The same error, for somebody else who asks.
    pub(crate) fn again(&self) -> Self {
        match self {
            ResolveError::Failed(error) => {
                ResolveError::Failed(io::Error::new(error.kind(), error.to_string()))
            }
            ResolveError::NoAddress => ResolveError::NoAddress,
            ResolveError::TimedOut => ResolveError::TimedOut,
        }
    }
}

impl fmt::Display for ResolveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            ResolveError::Failed(_) => "the name was not found",
            ResolveError::NoAddress => "the name has no address",
            ResolveError::TimedOut => "looking the name up took too long",
        })
    }
}

impl std::error::Error for ResolveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ResolveError::Failed(error) => Some(error),
            ResolveError::NoAddress | ResolveError::TimedOut => None,
        }
    }
}
