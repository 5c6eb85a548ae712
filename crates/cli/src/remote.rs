//! Requests to a registry, and what its answers mean for whoever typed the command.

use std::sync::Arc;
use std::time::Duration;

use egress::http::{Client, HeaderName, HeaderValue, Method, Request, Url, is_here};
use egress::resolve::SystemResolver;
use egress::{Rule, Rules};
use registry::read::Checked;
use registry::{ErrorBody, ErrorCode};
use serde::de::DeserializeOwned;

use crate::exit::{Exit, Failure};
use crate::owner;

/// Names the registry where no flag does.
const ADDRESS: &str = "REGISTRY_BASE_URL";
/// Holds the token.
const TOKEN: &str = "HAFT_TOKEN";
/// How long a request may take, with all it sends and gets.
const WITHIN: Duration = Duration::from_mins(5);

/// A registry that was named.
pub(crate) struct Remote {
    base: Url,
    client: Client,
}

/// A request to make.
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    /// What follows the address of the registry, a segment each.
    pub(crate) path: &'a [&'a str],
    /// Parameters.
    pub(crate) query: &'a [(&'a str, &'a str)],
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) identity: Identity,
}

/// Whether it is said who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// Nobody needs to know.
    Nobody,
    /// Whoever has the token.
    Token,
    /// Whoever has the token, where there is one: a registry may show more to them.
    Perhaps,
}

impl Remote {
    /// The registry of the flag, else of the environment.
    pub(crate) fn find(flag: Option<&str>) -> Result<Self, Failure> {
        let variable = std::env::var(ADDRESS).ok().filter(|text| !text.is_empty());
        let address = flag.map(str::to_owned).or(variable).ok_or_else(|| {
            Failure::invalid("no registry is named")
                .hint(format!("name one with --registry URL or {ADDRESS}"))
        })?;
        let wrong = || Failure::invalid(format!("`{address}` is no address of a registry"));
        let base = Url::parse(&address).map_err(|error| wrong().cause(error))?;
        if !["http", "https"].contains(&base.scheme()) {
            return Err(wrong().hint("it begins with https:// or http://"));
        }
        let place = base.host_str().zip(base.port_or_known_default()).ok_or_else(wrong)?;
        let rule = Rule::parse(&format!("{}:{}", place.0, place.1))
            .map_err(|error| wrong().cause(error))?;
        // The owner named it, so it may be a private one.
        let rules = Rules::from_iter([rule.reaching_private()]);
        let client = Client::new(rules, Arc::new(SystemResolver::default()))
            .map_err(|error| Failure::of(Exit::Unavailable, &error))?;
        Ok(Self { base, client })
    }

    /// Makes a request and reads its answer.
    pub(crate) fn read<T: DeserializeOwned + Checked>(&self, ask: Ask<'_>) -> Result<T, Failure> {
        let body = self.send(ask)?;
        registry::read(&body).map_err(|error| {
            let message = format!("`{}` answers what no registry answers", self.base);
            Failure::new(Exit::Unavailable, message).cause(error)
        })
    }

    /// Makes a request; an answer that is no success is a failure.
    pub(crate) fn send(&self, ask: Ask<'_>) -> Result<Vec<u8>, Failure> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(ask.path);
        }
        if !ask.query.is_empty() {
            url.query_pairs_mut().extend_pairs(ask.query);
        }
        let mut request = Request::new(ask.method, url);
        request.within = WITHIN;
        request.redirects = 0;
        request.body = ask.body;
        let has_token = std::env::var_os(TOKEN).is_some_and(|token| !token.is_empty());
        if ask.identity == Identity::Token || ask.identity == Identity::Perhaps && has_token {
            request.headers.insert(HeaderName::from_static("authorization"), self.token()?);
        }
        let sent = owner::runtime()?.block_on(self.client.send(request));
        let response = sent.map_err(|error| {
            let cause = Failure::of(Exit::Unavailable, &error);
            let mut failure =
                Failure::new(Exit::Unavailable, format!("failed to reach `{}`", self.base))
                    .cause(cause.message);
            failure.causes.extend(cause.causes);
            failure
        })?;
        if response.status.is_success() {
            return Ok(response.body);
        }
        Err(refused(response.status.as_u16(), &response.body))
    }

    /// Whether what is told it stays between us.
    pub(crate) fn check_confidential(&self) -> Result<(), Failure> {
        if self.base.scheme() == "https" || is_here(&self.base) {
            return Ok(());
        }
        let message = format!("everybody on the way to `{}` could read the token", self.base);
        Err(Failure::new(Exit::Denied, message).hint("use https://"))
    }

    fn token(&self) -> Result<HeaderValue, Failure> {
        let token =
            std::env::var(TOKEN).ok().filter(|token| !token.is_empty()).ok_or_else(|| {
                Failure::invalid(format!("there is no token in {TOKEN}"))
                    .hint("`haft registry token new` makes one, where the registry runs")
            })?;
        self.check_confidential()?;
        let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| Failure::invalid(format!("what {TOKEN} holds is no token")))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// What an answer that is no success means.
fn refused(status: u16, body: &[u8]) -> Failure {
    let said = std::str::from_utf8(body).ok().and_then(|text| {
        let parsed: ErrorBody = serde_json::from_str(text).ok()?;
        Some(parsed.error)
    });
    let exit = match status {
        401 | 403 => Exit::Denied,
        404 => Exit::NotFound,
        409 => Exit::Conflict,
        429 => Exit::Unavailable,
        400..500 => Exit::Invalid,
        _ => Exit::Unavailable,
    };
    let Some(said) = said else {
        return Failure::new(exit, format!("the registry answers with {status}"));
    };
    let findings = said.details.get("findings").and_then(|found| found.as_array());
    let details = findings.into_iter().flatten().map(|finding| {
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        format!("{} {}: {}", text("path"), text("pointer"), text("message"))
    });
    let mut failure = Failure::new(exit, format!("the registry refuses: {}", said.message));
    failure = failure.details(details);
    match ErrorCode::named(&said.code) {
        Some(ErrorCode::Unauthorized) => {
            failure.hint(format!("set {TOKEN} to a token that is good"))
        }
        _ => failure,
    }
}
