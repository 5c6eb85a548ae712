//! A client that reaches one address that the operator has named, and no other.

use std::fmt;
use std::sync::Arc;

use egress::http::{Client, SetupError, Url};
use egress::resolve::SystemResolver;
use egress::{Rule, Rules};

/// Why an address cannot be asked.
#[derive(Debug)]
pub enum ReachError {
    /// It names no host that can be.
    Host(String),
    /// There is no client.
    Client(SetupError),
}

impl fmt::Display for ReachError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReachError::Host(host) => write!(out, "`{host}` is no host that can be reached"),
            ReachError::Client(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for ReachError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReachError::Host(_) => None,
            ReachError::Client(error) => error.source(),
        }
    }
}

/// A client for this address. The operator named it, so it may be a private one.
pub fn client(address: &Url) -> Result<Client, ReachError> {
    let host = address.host_str().unwrap_or_default();
    let port = address.port_or_known_default().unwrap_or_default();
    let rule = Rule::parse(&format!("{host}:{port}"));
    let rule = rule.map_err(|_| ReachError::Host(host.to_owned()))?;
    let rules = Rules::from_iter([rule.reaching_private()]);
    Client::new(rules, Arc::new(SystemResolver::default())).map_err(ReachError::Client)
}
