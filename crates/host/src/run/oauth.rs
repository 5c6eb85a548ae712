//! Tokens of OAuth 2: fetched when they are needed, kept in memory until shortly before they end.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use egress::http::{Client, HeaderName, HeaderValue, Method, Request, Response, Url};
use serde_json::Value;

use super::http::not_sent;
use crate::error::{CallError, Kind};
use crate::output::strict;
use crate::request::Account;

/// How long before its end a token is no longer used.
const MARGIN: Duration = Duration::from_secs(30);

/// How long a token is kept of which nobody said when it ends.
const UNSAID: Duration = Duration::from_mins(5);

/// The longest answer of a token endpoint.
const MOST: u64 = 256 << 10;

const AUTHORIZATION: HeaderName = HeaderName::from_static("authorization");

/// The tokens that are known.
#[derive(Default)]
pub(crate) struct Tokens {
    known: Mutex<HashMap<Account, Token>>,
}

struct Token {
    access: String,
    /// What the endpoint said is to be used the next time, where it changes.
    refresh: Option<String>,
    until: Instant,
}

impl Tokens {
    /// A token for an account: one that is known, or a new one.
    pub(crate) async fn of(
        &self,
        account: &Account,
        client: &Client,
        within: Duration,
    ) -> Result<String, CallError> {
        let renewed = {
            let known = self.lock();
            match known.get(account) {
                Some(token) if token.until > Instant::now() => return Ok(token.access.clone()),
                known => known.and_then(|token| token.refresh.clone()),
            }
        };
        let token = fetch(account, renewed, client, within).await?;
        let access = token.access.clone();
        self.lock().insert(account.clone(), token);
        Ok(access)
    }

    /// A token was refused, so it is not used again.
    pub(crate) fn forget(&self, account: &Account) {
        if let Some(token) = self.lock().get_mut(account) {
            token.until = Instant::now();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Account, Token>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Tokens").finish_non_exhaustive()
    }
}

async fn fetch(
    account: &Account,
    renewed: Option<String>,
    client: &Client,
    within: Duration,
) -> Result<Token, CallError> {
    let until = Instant::now() + within;
    let refresh = renewed.or_else(|| account.refresh_token.clone());
    let ask = async |way| {
        let left = until.saturating_duration_since(Instant::now());
        let request = request(account, refresh.as_deref(), way, left);
        client.send(request).await.map_err(|error| not_sent(&error))
    };
    let mut response = ask(Secret::Header).await?;
    for other in other_ways(account) {
        let is_unknown = matches!(response.status.as_u16(), 400 | 401)
            && said(&response)["error"] == "invalid_client";
        if !is_unknown {
            break;
        }
        response = ask(*other).await?;
    }
    read(&response, refresh)
}

/// Where a secret is put. Servers must understand the first way; some do not decode what is encoded, and
/// some look into the body only.
#[derive(Clone, Copy)]
enum Secret {
    Header,
    HeaderAsItIs,
    Body,
}

fn other_ways(account: &Account) -> &'static [Secret] {
    match &account.client_secret {
        None => &[],
        Some(secret)
            if encoded(secret) == *secret && encoded(&account.client_id) == account.client_id =>
        {
            &[Secret::Body]
        }
        Some(_) => &[Secret::HeaderAsItIs, Secret::Body],
    }
}

fn request(account: &Account, refresh: Option<&str>, way: Secret, within: Duration) -> Request {
    let mut pairs = match refresh {
        Some(token) => vec![("grant_type", "refresh_token"), ("refresh_token", token)],
        None => vec![("grant_type", "client_credentials")],
    };
    let scopes = account.scopes.join(" ");
    // A refresh without scopes gives those that were granted before; more would be refused.
    if refresh.is_none() && !scopes.is_empty() {
        pairs.push(("scope", &scopes));
    }
    let mut request = Request::new(Method::POST, account.token_url.clone());
    match (&account.client_secret, way) {
        (Some(secret), Secret::Header) => {
            let (id, secret) = (encoded(&account.client_id), encoded(secret));
            request.headers.insert(AUTHORIZATION, basic(&id, &secret));
        }
        (Some(secret), Secret::HeaderAsItIs) => {
            request.headers.insert(AUTHORIZATION, basic(&account.client_id, secret));
        }
        (secret, _) => {
            pairs.push(("client_id", &account.client_id));
            pairs.extend(secret.as_deref().map(|secret| ("client_secret", secret)));
        }
    }
    request.body = Some(form(pairs).into_bytes());
    for (name, value) in
        [("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json")]
    {
        request.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    request.within = within;
    request.most = MOST;
    // A secret is in the body, and a redirect would carry it elsewhere.
    request.redirects = 0;
    request
}

fn basic(id: &str, secret: &str) -> HeaderValue {
    let words = base64::engine::general_purpose::STANDARD.encode(format!("{id}:{secret}"));
    let value = HeaderValue::from_str(&format!("Basic {words}"));
    let mut value = value.expect("base64 is of letters that a header may have");
    value.set_sensitive(true);
    value
}

/// Pairs as forms have them.
fn form<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> String {
    let mut url = Url::parse("http://form.invalid").expect("it is a URL");
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

/// One value as forms have it.
fn encoded(value: &str) -> String {
    let pair = form([("v", value)]);
    pair.strip_prefix("v=").unwrap_or_default().to_owned()
}

fn said(response: &Response) -> Value {
    std::str::from_utf8(&response.body).ok().and_then(strict).unwrap_or_default()
}

fn read(response: &Response, refresh: Option<String>) -> Result<Token, CallError> {
    let said = said(response);
    if !response.status.is_success() {
        let code = said["error"].as_str();
        let words = code.map(|code| format!(": {code}")).unwrap_or_default();
        let message = format!("the token endpoint answered {}{words}", response.status);
        let error = CallError::new(Kind::Failed, message).with("status", response.status.as_u16());
        return Err(match code {
            Some(code) => error.with("error", code),
            None => error,
        });
    }
    let bad = |message: &str| CallError::new(Kind::BadOutput, message);
    let Some(access) = said["access_token"].as_str().filter(|token| !token.is_empty()) else {
        return Err(bad("the token endpoint answered without a token"));
    };
    if said["token_type"].as_str().is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(bad("the token endpoint gave a token that is no bearer token"));
    }
    let seconds = match &said["expires_in"] {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    };
    let life = seconds.map_or(UNSAID, |seconds| {
        let life = Duration::from_secs(seconds.min(30 * 24 * 3600));
        // One that lives shorter than the margin is used for half of its life.
        life.saturating_sub(MARGIN).max(life / 2)
    });
    let refresh = said["refresh_token"].as_str().map(str::to_owned).or(refresh);
    Ok(Token { access: access.to_owned(), refresh, until: Instant::now() + life })
}
