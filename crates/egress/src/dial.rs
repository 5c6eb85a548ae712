//! Resolve once, check every address, connect to the checked one.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::host::{Host, Name, Target};
use crate::limits::Limits;
use crate::resolve::{Resolve, ResolveError};
use crate::rules::{Decision, HOST_MACHINE, Refusal, Rule, Rules};

/// A connection to an address that was checked.
#[derive(Debug)]
pub struct Dialled<'r> {
    /// The connection.
    pub stream: TcpStream,
    /// The address.
    pub address: SocketAddr,
    /// The rule that allows it.
    pub rule: &'r Rule,
}

/// Why there is no connection.
#[derive(Debug)]
pub enum DialError {
    /// The rules refuse the target, or all its addresses.
    Refused(Refusal),
    /// The name leads nowhere.
    Unresolved(ResolveError),
    /// No address answered; this is what the last one said.
    Unreachable(SocketAddr, io::Error),
    /// No address answered in time.
    TimedOut,
}

/// Connects to a target as far as the rules allow.
///
/// The addresses are tried in the order the resolver gave, each for its time, all within
/// the time for all. No address is looked up twice: the one that was checked is the one
/// that is dialled.
pub async fn dial<'r>(
    target: &Target,
    rules: &'r Rules,
    resolver: &dyn Resolve,
    limits: &Limits,
) -> Result<Dialled<'r>, DialError> {
    if let Decision::Refused(refusal) = rules.decide(target) {
        return Err(DialError::Refused(refusal));
    }
    let deadline = Instant::now() + limits.connect_time;
    let found = timeout_at(deadline, addresses(&target.host, resolver))
        .await
        .unwrap_or(Err(ResolveError::TimedOut))
        .map_err(DialError::Unresolved)?;
    let mut refusal = None;
    let mut checked = Vec::new();
    for address in found.into_iter().take(limits.addresses) {
        match rules.check_address(target, address) {
            Ok(rule) => checked.push((address.to_canonical(), rule)),
            Err(reason) => refusal = refusal.or(Some(reason)),
        }
    }
    let mut failure = match refusal {
        Some(refusal) => DialError::Refused(refusal),
        None => DialError::Unresolved(ResolveError::NoAddress),
    };
    for (address, rule) in checked {
        let address = SocketAddr::new(address, target.port.number());
        let connecting = timeout(limits.address_time, TcpStream::connect(address));
        failure = match timeout_at(deadline, connecting).await {
            Ok(Ok(Ok(stream))) => return Ok(Dialled { stream, address, rule }),
            Ok(Ok(Err(error))) => DialError::Unreachable(address, error),
            Ok(Err(_)) => DialError::TimedOut,
            Err(_) => return Err(DialError::TimedOut),
        };
    }
    Err(failure)
}

/// The addresses of a host, each once.
pub(crate) async fn addresses(
    host: &Host,
    resolver: &dyn Resolve,
) -> Result<Vec<IpAddr>, ResolveError> {
    match host {
        Host::Ip(address) => Ok(vec![*address]),
        Host::Name(name) if name.is_host_machine() => Ok(HOST_MACHINE.to_vec()),
        Host::Name(name) => distinct(resolver, name).await,
    }
}

/// Each address once: the system's resolver names one for every kind of socket.
async fn distinct(resolver: &dyn Resolve, name: &Name) -> Result<Vec<IpAddr>, ResolveError> {
    let mut distinct = Vec::new();
    for address in resolver.resolve(name).await? {
        if !distinct.contains(&address) {
            distinct.push(address);
        }
    }
    Ok(distinct)
}

impl fmt::Display for DialError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DialError::Refused(_) => out.write_str("the rules do not allow it"),
            DialError::Unresolved(_) => out.write_str("the host has no address"),
            DialError::Unreachable(address, _) => write!(out, "`{address}` could not be reached"),
            DialError::TimedOut => out.write_str("no address answered in time"),
        }
    }
}

impl std::error::Error for DialError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DialError::Refused(refusal) => Some(refusal),
            DialError::Unresolved(error) => Some(error),
            DialError::Unreachable(_, error) => Some(error),
            DialError::TimedOut => None,
        }
    }
}
