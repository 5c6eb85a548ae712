//! The door every connection of a client goes through.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::Url;
use reqwest::dns::{Addrs, Name as AskedName, Resolve as ResolveForClient, Resolving};

use crate::attempt::{Outcome, Record, Report};
use crate::dial::{DialError, addresses};
use crate::escape::escaped;
use crate::host::{Host, Name, Port, Target, TargetError};
use crate::limits::Limits;
use crate::resolve::{Resolve, ResolveError};
use crate::rules::{Decision, Refusal, Rules};

/// What all connections of one client share.
pub(super) struct Guard {
    rules: Rules,
    resolver: Arc<dyn Resolve>,
    limits: Limits,
    report: Report,
    attempts: AtomicU64,
    /// The ports that were asked for at each name. A look-up knows a name only, so its addresses
    /// are checked for all of them.
    ports: Mutex<HashMap<Name, BTreeSet<Port>>>,
    /// Refused connections that were told. The library asks more than once for the same one.
    told: Mutex<BTreeSet<String>>,
}

/// How many different refusals are told.
const MOST_TOLD: usize = 1024;

impl Guard {
    pub(super) fn new(
        rules: Rules,
        resolver: Arc<dyn Resolve>,
        limits: Limits,
        report: Report,
    ) -> Self {
        Self {
            rules,
            resolver,
            limits,
            report,
            attempts: AtomicU64::new(0),
            ports: Mutex::default(),
            told: Mutex::default(),
        }
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Says what a URL is about, if it may be asked for; a refusal is reported.
    pub(super) fn check(&self, url: &Url) -> Result<Target, Refusal> {
        self.decide(url).inspect_err(|refusal| {
            self.new_record(asked(url), target(url).ok()).end(Outcome::Refused(*refusal));
        })
    }

    /// Whether a connection may be made; a refusal is reported the first time.
    pub(super) fn lets_through(&self, url: &Url) -> bool {
        let Err(refusal) = self.decide(url) else { return true };
        let asked = asked(url);
        let is_new = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.len() < MOST_TOLD && told.insert(asked.clone())
        };
        if is_new {
            self.new_record(asked, target(url).ok()).end(Outcome::Refused(refusal));
        }
        false
    }

    fn decide(&self, url: &Url) -> Result<Target, Refusal> {
        let target = allowed(&self.rules, url)?;
        if let Host::Name(name) = &target.host {
            let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
            ports.entry(name.clone()).or_default().insert(target.port);
        }
        Ok(target)
    }

    /// An attempt at a target.
    pub(super) fn record(&self, target: &Target) -> Record {
        self.new_record(target.to_string(), Some(target.clone()))
    }

    fn new_record(&self, asked: String, target: Option<Target>) -> Record {
        let id = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        Record::new(id, asked, target, Arc::clone(&self.report))
    }

    /// The addresses of a name that may be dialled at every port it was asked for.
    async fn look_up(&self, name: &str) -> Result<Vec<SocketAddr>, DialError> {
        let refused = DialError::Refused;
        let name = Name::parse(name).map_err(|error| refused(Refusal::Spelling(error)))?;
        let ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        let ports = ports.ok_or(refused(Refusal::Host))?;
        let host = Host::Name(name);
        let found =
            addresses(&host, self.resolver.as_ref()).await.map_err(DialError::Unresolved)?;
        let mut refusal = None;
        let mut checked = Vec::new();
        for address in found.into_iter().take(self.limits.addresses) {
            let at_each_port = ports.iter().try_for_each(|port| {
                let target = Target { host: host.clone(), port: *port };
                self.rules.check_address(&target, address).map(drop)
            });
            match at_each_port {
                // The port is put in by whoever asked.
                Ok(()) => checked.push(SocketAddr::new(address.to_canonical(), 0)),
                Err(reason) => refusal = refusal.or(Some(reason)),
            }
        }
        match refusal {
            _ if !checked.is_empty() => Ok(checked),
            Some(refusal) => Err(refused(refusal)),
            None => Err(DialError::Unresolved(ResolveError::NoAddress)),
        }
    }
}

/// Says what a URL is about, if these rules let it be asked for at all. Nothing is looked up: where a name
/// leads is checked once it is dialled.
pub fn allowed(rules: &Rules, url: &Url) -> Result<Target, Refusal> {
    let target = target(url)?;
    match target.host {
        Host::Ip(address) => rules.check_address(&target, address).map(drop)?,
        Host::Name(_) => match rules.decide(&target) {
            Decision::Allowed(_) => {}
            Decision::Refused(refusal) => return Err(refusal),
        },
    }
    Ok(target)
}

/// The look-ups of a client's connections.
pub(super) struct Lookups(pub(super) Arc<Guard>);

impl ResolveForClient for Lookups {
    fn resolve(&self, name: AskedName) -> Resolving {
        let guard = Arc::clone(&self.0);
        Box::pin(async move {
            let checked = guard.look_up(name.as_str()).await?;
            Ok(Box::new(checked.into_iter()) as Addrs)
        })
    }
}

/// What a URL is about.
fn target(url: &Url) -> Result<Target, Refusal> {
    let default = match url.scheme() {
        "http" => Port::HTTP,
        "https" => Port::HTTPS,
        _ => return Err(Refusal::Scheme),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refusal::Spelling(TargetError::Userinfo));
    }
    let host = url.host_str().unwrap_or_default();
    let host = Host::parse(host.as_bytes()).map_err(Refusal::Spelling)?;
    let port = match url.port() {
        Some(number) => Port::new(number).ok_or(Refusal::Spelling(TargetError::Port))?,
        None => default,
    };
    Ok(Target { host, port })
}

/// What a URL asks for, to be shown: never what stands before an `@`, in the path or in the query.
pub(super) fn asked(url: &Url) -> String {
    match target(url) {
        Ok(target) => target.to_string(),
        Err(_) => {
            escaped(format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default()).as_bytes())
        }
    }
}
