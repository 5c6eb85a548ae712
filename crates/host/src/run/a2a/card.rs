//! What an agent says about itself: its card.

use std::time::{Duration, Instant};

use egress::http::{Client, HeaderMap, HeaderName, HeaderValue, Method, Request, SendError, Url};
use serde_json::Value;
use vault::Secret;

use super::part::Takes;
use super::version::Version;
use crate::error::{CallError, Kind};
use crate::login::card::{PLACE, schemes};
use crate::run::http::not_sent;
use crate::strict::strict;

/// The longest card.
const LONGEST: u64 = 1 << 20;

/// How long the card is waited for, where the time of the call is longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is known of an agent before it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) version: Version,
    /// Which of several agents at the same address it is.
    pub(super) tenant: Option<String>,
    pub(super) takes: Takes,
    /// The header that says who is asking; `None` is `Authorization` with a bearer's token.
    key_header: Option<String>,
}

impl Default for Peer {
    /// An agent without a card.
    fn default() -> Self {
        Self { version: Version::One, tenant: None, takes: Takes::Data, key_header: None }
    }
}

/// Reads the card of the agent at an endpoint. An agent need not have one, nor a sound one; what it
/// does not say is found out by asking.
pub(super) async fn fetch(
    client: &Client,
    endpoint: &Url,
    until: Instant,
) -> Result<Peer, CallError> {
    let Ok(url) = endpoint.join(PLACE) else { return Ok(Peer::default()) };
    let mut request = Request::new(Method::GET, url);
    let json = HeaderValue::from_static("application/json");
    request.headers.insert(HeaderName::from_static("accept"), json);
    request.most = LONGEST;
    request.within = until.saturating_duration_since(Instant::now()).min(PATIENCE);
    request.redirects = 0;
    let response = match client.send(request).await {
        Ok(response) => response,
        // Nobody is there, so nobody need be asked.
        Err(
            error @ (SendError::Refused { .. }
            | SendError::Unresolved(_)
            | SendError::NotConnected(_)),
        ) => return Err(not_sent(&error, endpoint)),
        Err(_) => return Ok(Peer::default()),
    };
    if !response.status.is_success() {
        return Ok(Peer::default());
    }
    match std::str::from_utf8(&response.body).ok().and_then(strict) {
        Some(card) => read(&card, endpoint),
        None => Ok(Peer::default()),
    }
}

/// A way to speak with an agent.
struct Interface {
    url: Option<Url>,
    binding: String,
    version: Option<Version>,
    tenant: Option<String>,
}

fn read(card: &Value, endpoint: &Url) -> Result<Peer, CallError> {
    let all = interfaces(card);
    let spoken: Vec<_> =
        all.iter().filter(|one| one.binding.eq_ignore_ascii_case("JSONRPC")).collect();
    if spoken.is_empty() && !all.is_empty() {
        let bindings: Vec<_> = all.iter().map(|one| one.binding.clone()).collect();
        let message = "the agent speaks none of what is understood here, which is JSON-RPC";
        return Err(CallError::new(Kind::Unavailable, message).with("bindings", bindings));
    }
    // What is said of this very address counts most, and of two versions the newer.
    let is_here = |one: &Interface| one.url.as_ref() == Some(endpoint);
    let is_near =
        |one: &Interface| one.url.as_ref().is_some_and(|url| url.origin() == endpoint.origin());
    let best = spoken
        .iter()
        .filter(|one| one.version.is_some())
        .max_by_key(|one| (is_here(one), is_near(one), one.version == Some(Version::One)));
    Ok(Peer {
        version: best.and_then(|one| one.version).unwrap_or(Version::One),
        tenant: best.filter(|one| is_here(one)).and_then(|one| one.tenant.clone()),
        takes: takes(card),
        key_header: key_header(card),
    })
}

fn interfaces(card: &Value) -> Vec<Interface> {
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    let listed = |name: &str| card.get(name).and_then(Value::as_array).into_iter().flatten();
    let url = |of: &Value| text(of, "url").and_then(|url| Url::parse(&url).ok());
    let version = |of: &Value| text(of, "protocolVersion").as_deref().and_then(Version::named);
    let new = listed("supportedInterfaces").map(|one| Interface {
        url: url(one),
        binding: text(one, "protocolBinding").unwrap_or_default(),
        version: version(one),
        tenant: text(one, "tenant").filter(|tenant| !tenant.is_empty()),
    });
    let old = |one: &Value, binding: &str| Interface {
        url: url(one),
        binding: text(one, binding).unwrap_or_else(|| "JSONRPC".to_owned()),
        version: version(card),
        tenant: None,
    };
    let first = card.get("url").map(|_| old(card, "preferredTransport"));
    let more = listed("additionalInterfaces").map(|one| old(one, "transport"));
    new.chain(first).chain(more).collect()
}

fn takes(card: &Value) -> Takes {
    let modes = card.get("defaultInputModes").and_then(Value::as_array);
    let mut modes = modes.into_iter().flatten().filter_map(Value::as_str).peekable();
    let is_said = modes.peek().is_some();
    let has_data = modes.any(|mode| {
        let mode = mode.to_ascii_lowercase();
        mode == "data" || mode.contains("json") || mode.contains('*')
    });
    if is_said && !has_data { Takes::OnlyText } else { Takes::Data }
}

/// The header for a key, where the card wants a key in a header and no token.
fn key_header(card: &Value) -> Option<String> {
    let mut header = None;
    for (scheme, _) in schemes(card) {
        let is_old_key = scheme.get("type").and_then(Value::as_str) == Some("apiKey");
        let key = scheme.get("apiKeySecurityScheme").or_else(|| is_old_key.then_some(scheme));
        // Any other scheme is one of tokens.
        let key = key?;
        let place = key.get("location").or_else(|| key.get("in")).and_then(Value::as_str);
        let name = key.get("name").and_then(Value::as_str);
        header = header.or_else(|| name.filter(|_| place == Some("header")).map(str::to_owned));
    }
    header
}

impl Peer {
    /// A secret where the agent looks for it.
    pub(super) fn sign_in(&self, secret: Option<&Secret>) -> Result<HeaderMap, CallError> {
        let mut headers = HeaderMap::new();
        let Some(secret) = secret else { return Ok(headers) };
        let (name, text) = match &self.key_header {
            Some(name) => (name.as_str(), secret.expose().to_owned()),
            None => ("authorization", format!("Bearer {}", secret.expose())),
        };
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
            let message = "the card of the agent wants a key where there is no header";
            CallError::new(Kind::BadOutput, message)
        })?;
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            CallError::new(
                Kind::BadInput,
                "the secret holds a character that no header is sent with",
            )
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(headers)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn peer(card: &Value) -> Result<Peer, CallError> {
        read(card, &Url::parse("https://a.test/rpc").unwrap())
    }

    #[test]
    fn the_version_is_that_of_this_address() {
        let one = |url: &str, binding: &str, version: &str| json!({ "url": url, "protocolBinding": binding, "protocolVersion": version, "tenant": "t" });
        let of = |all: Value| peer(&json!({ "supportedInterfaces": all })).unwrap();
        let both = json!([
            one("https://a.test/new", "JSONRPC", "1.0"),
            one("https://a.test/rpc", "JSONRPC", "0.3"),
            one("https://a.test/rpc", "GRPC", "1.0"),
        ]);
        let found = of(both);
        assert_eq!((found.version, found.tenant.as_deref()), (Version::ZeroThree, Some("t")));
        let elsewhere = of(json!([one("https://b.test/", "JSONRPC", "0.3.0")]));
        assert_eq!((elsewhere.version, elsewhere.tenant), (Version::ZeroThree, None));
        assert_eq!(of(json!([])), Peer::default());
        let error =
            peer(&json!({ "supportedInterfaces": [one("https://a.test/rpc", "GRPC", "1.0")] }));
        assert_eq!(error.unwrap_err().kind, Kind::Unavailable);
    }

    #[test]
    fn cards_of_0_3_are_read() {
        let card = json!({ "url": "https://a.test/rpc", "protocolVersion": "0.3.0" });
        assert_eq!(peer(&card).unwrap().version, Version::ZeroThree);
        let other = json!({
            "url": "https://a.test/grpc", "preferredTransport": "GRPC", "protocolVersion": "0.3.0",
            "additionalInterfaces": [{ "url": "https://a.test/rpc", "transport": "JSONRPC" }],
        });
        assert_eq!(peer(&other).unwrap().version, Version::ZeroThree);
        for odd in [json!(7), json!({}), json!({ "supportedInterfaces": 7, "securitySchemes": 7 })]
        {
            assert_eq!(peer(&odd).unwrap(), Peer::default());
        }
    }

    #[test]
    fn a_key_goes_where_the_card_says_and_a_token_where_tokens_go() {
        let secret = Secret::new("s3cret".to_owned()).unwrap();
        let headers = |card: Value| peer(&card).unwrap().sign_in(Some(&secret)).unwrap();
        let bearer = headers(json!({}));
        assert_eq!(bearer["authorization"], "Bearer s3cret");
        assert!(bearer["authorization"].is_sensitive());
        let new = json!({ "k": { "apiKeySecurityScheme": { "location": "header", "name": "X-Agent-Key" } } });
        let old = json!({ "k": { "type": "apiKey", "in": "header", "name": "X-Agent-Key" } });
        for schemes in [new, old.clone()] {
            let headers = headers(json!({ "securitySchemes": schemes }));
            assert_eq!((&headers["x-agent-key"], headers.len()), (&"s3cret".parse().unwrap(), 1));
        }
        let mut both = old;
        both["b"] = json!({ "type": "http", "scheme": "bearer" });
        let chosen =
            |security: Value| headers(json!({ "securitySchemes": both, "security": security }));
        assert!(chosen(json!([{ "k": [] }])).contains_key("x-agent-key"));
        assert!(chosen(json!([{ "b": [] }])).contains_key("authorization"));
        assert!(chosen(json!([])).contains_key("authorization"));
    }

    #[test]
    fn an_agent_that_takes_only_text_says_so() {
        let takes = |modes: Value| peer(&json!({ "defaultInputModes": modes })).unwrap().takes;
        assert_eq!(takes(json!(["text/plain"])), Takes::OnlyText);
        assert_eq!(takes(json!(["text/plain", "application/json"])), Takes::Data);
        assert_eq!(takes(json!([])), Takes::Data);
    }
}
