//! Every HTTP request of ours, within the rules.
//!
//! A [`Client`] dials nobody whom its [`Rules`] do not allow, whoever uses it: each new
//! connection is held against the rules with its port, each name is looked up by the
//! [`Resolve`] that was given, and only addresses that were checked are dialled. It follows
//! no redirect that leads elsewhere than the rules allow, takes no credentials along to
//! another origin, knows no proxies, keeps no cookies and unpacks no bodies.

pub mod challenge;
mod error;
mod guard;
mod incoming;
mod message;
mod outgoing;
mod redirect;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Body, Certificate, Proxy};
use tokio::time::{Instant, timeout_at};

pub use challenge::{Challenge, challenges};
pub use error::{SendError, SetupError};
pub use guard::allowed;
pub use incoming::Incoming;
pub use message::{Request, Response};
pub use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Method, StatusCode, Url};

use crate::attempt::{Attempt, Outcome, Reached, Record, Report};
use crate::host::{Host, Target};
use crate::limits::Limits;
use crate::resolve::Resolve;
use crate::rules::{Refusal, Rules};
use guard::{Guard, Lookups};
use outgoing::Outgoing;
use redirect::Next;

/// What we call ourselves.
const NAME: &str = concat!("haft/", env!("CARGO_PKG_VERSION"));

/// Where a connection is sent that the rules refuse: to a name that nobody has.
const NOWHERE: &str = "http://refused.invalid";

/// What a client is told once.
#[derive(Clone)]
pub struct Settings {
    /// How long connecting may take, and how much a head may hold.
    pub limits: Limits,
    /// Certificates, as PEM, that are trusted besides the system's own.
    pub extra_roots: Vec<u8>,
    /// Is told of each attempt. It is called on the runtime's own threads, so it must return soon.
    pub report: Arc<dyn Fn(Attempt) + Send + Sync>,
}

/// Sends requests within the rules. Clones share connections.
#[derive(Clone)]
pub struct Client {
    inner: reqwest::Client,
    guard: Arc<Guard>,
}

impl Client {
    /// A client that tells nobody what it does.
    pub fn new(rules: Rules, resolver: Arc<dyn Resolve>) -> Result<Self, SetupError> {
        Self::with(rules, resolver, Settings::default())
    }

    /// A client with settings.
    pub fn with(
        rules: Rules,
        resolver: Arc<dyn Resolve>,
        settings: Settings,
    ) -> Result<Self, SetupError> {
        let roots = Certificate::from_pem_bundle(&settings.extra_roots).map_err(SetupError::new)?;
        let guard = Arc::new(Guard::new(rules, resolver, settings.limits, settings.report));
        let at_the_door = Arc::clone(&guard);
        let builder = || {
            let at_the_door = Arc::clone(&at_the_door);
            reqwest::Client::builder()
                .user_agent(NAME)
                .redirect(Policy::none())
                .referer(false)
                .retry(reqwest::retry::never())
                .connect_timeout(settings.limits.connect_time)
                .http1_max_headers(settings.limits.headers)
                .http2_max_header_list_size(
                    u32::try_from(settings.limits.head_bytes).unwrap_or(u32::MAX),
                )
                .dns_resolver(Lookups(Arc::clone(&guard)))
                // This is asked for every connection, those to bare addresses too, and knows the port.
                .no_proxy()
                .proxy(Proxy::custom(move |url| {
                    (!at_the_door.lets_through(url)).then_some(NOWHERE)
                }))
        };
        let with_roots = builder().tls_certs_merge(roots.iter().cloned()).build();
        let inner = match with_roots {
            Ok(inner) => inner,
            // A machine without any certificates can still speak to itself in plain.
            Err(_) => builder().tls_certs_only(roots).build().map_err(SetupError::new)?,
        };
        Ok(Self { inner, guard })
    }

    /// The client for libraries that bring their own requests. Whatever they do with it stays within
    /// the rules; those who [`check`](Self::check) first learn the reason of a refusal.
    pub fn inner(&self) -> &reqwest::Client {
        &self.inner
    }

    /// Says whether a URL may be asked for at all. Nothing is looked up: where a name leads is checked
    /// once it is dialled.
    pub fn check(&self, url: &Url) -> Result<(), Refusal> {
        self.guard.check(url).map(drop)
    }

    /// Sends a request, follows redirects as far as the request and the rules allow, and reads the response.
    pub async fn send(&self, request: Request) -> Result<Response, SendError> {
        self.send_hearing(request, &mut |_, _| {}).await
    }

    /// The same, while somebody is told the body of the last response as it comes, and how it went.
    pub async fn send_hearing(
        &self,
        request: Request,
        heard: &mut (dyn FnMut(StatusCode, &[u8]) + Send),
    ) -> Result<Response, SendError> {
        request.check_headers()?;
        let deadline = Instant::now() + request.within;
        let mut request = request;
        let mut redirects = 0;
        loop {
            let target = self.guard.check(&request.url).map_err(|refusal| {
                let asked = guard::asked(&request.url);
                SendError::Refused { asked, refusal }
            })?;
            let mut record = self.guard.record(&target);
            let exchange = self.exchange(&request, &target, redirects, &mut record, heard);
            let ended = timeout_at(deadline, exchange).await;
            let next = match ended.unwrap_or(Err(SendError::TimedOut)) {
                Ok(next) => next,
                Err(error) => {
                    record.end(error.outcome());
                    return Err(error);
                }
            };
            record.end(Outcome::Completed);
            match next {
                Next::Done(response) => return Ok(*response),
                Next::Elsewhere(next) => request = *next,
            }
            redirects += 1;
        }
    }

    /// Sends a request and gives the response as soon as its head is here. No redirect is followed. `silence` is how
    /// long the server may say nothing.
    pub async fn begin(&self, request: Request, silence: Duration) -> Result<Incoming, SendError> {
        request.check_headers()?;
        let until = Instant::now() + request.within;
        let target = self.guard.check(&request.url).map_err(|refusal| {
            let asked = guard::asked(&request.url);
            SendError::Refused { asked, refusal }
        })?;
        let mut record = self.guard.record(&target);
        let sending = self.ask(&request, &target, &mut record);
        let head = timeout_at(until.min(Instant::now() + silence), sending).await;
        match head.unwrap_or(Err(SendError::TimedOut)) {
            Ok(response) => Ok(Incoming::new(response, record, until, silence, request.most)),
            Err(error) => {
                record.end(error.outcome());
                Err(error)
            }
        }
    }

    /// Sends one request to one server; its head is the answer.
    async fn ask(
        &self,
        request: &Request,
        target: &Target,
        record: &mut Record,
    ) -> Result<reqwest::Response, SendError> {
        let sending = self.inner.request(request.method.clone(), request.url.clone());
        let sending = sending.headers(request.headers.clone());
        let sending = match &request.body {
            Some(body) => match request.watch.clone() {
                Some(watch) => sending.body(Body::wrap(Outgoing::new(body.clone(), watch))),
                None => sending.body(body.clone()),
            },
            None => sending,
        };
        let sent = sending.send().await;
        let response = sent.map_err(|error| SendError::before(error, &target.to_string()))?;
        if let Some(address) = response.remote_addr()
            && let Ok(rule) = self.guard.rules().check_address(target, address.ip())
        {
            record.open(Reached { rule: rule.clone(), address });
        }
        record.count_up(request.body.as_ref().map_or(0, Vec::len));
        Ok(response)
    }

    /// Sends one request to one server, and reads what it answers.
    async fn exchange(
        &self,
        request: &Request,
        target: &Target,
        redirects: u32,
        record: &mut Record,
        heard: &mut (dyn FnMut(StatusCode, &[u8]) + Send),
    ) -> Result<Next, SendError> {
        let response = self.ask(request, target, record).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        if let Some(next) = redirect::next(request, status, &headers, redirects)? {
            return Ok(Next::Elsewhere(Box::new(next)));
        }
        let mut heard = |piece: &[u8]| heard(status, piece);
        let body = read(response, request.most, record, &mut heard).await?;
        let url = request.url.clone();
        Ok(Next::Done(Box::new(Response { status, headers, body, url, redirects })))
    }
}

/// Reads a body, but no more than it may have.
async fn read(
    mut response: reqwest::Response,
    most: u64,
    record: &Record,
    heard: &mut (dyn FnMut(&[u8]) + Send),
) -> Result<Vec<u8>, SendError> {
    let too_large = || SendError::TooLarge { most };
    if response.content_length().is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(SendError::within)? {
        record.count_down(piece.len());
        if body.len() as u64 + piece.len() as u64 > most {
            return Err(too_large());
        }
        heard(&piece);
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

impl Default for Settings {
    fn default() -> Self {
        let report: Report = Arc::new(|_| {});
        Self { limits: Limits::DEFAULT, extra_roots: Vec::new(), report }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client").field("rules", self.guard.rules()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Settings").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Whether a URL leads to this very machine: what is told there in plain, nobody on the way can read.
pub fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    Host::parse(host.as_bytes()).is_ok_and(|host| host.is_this_machine())
}
