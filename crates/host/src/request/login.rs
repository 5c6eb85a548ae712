//! Who a request says is asking: a key in a header, or an account to fetch a token with.

use std::fmt;

use egress::http::{HeaderMap, Url};
use manifest::model::{Auth, AuthKind};
use vault::Place;

use super::{header_name, header_value, unavailable};
use crate::error::{CallError, Kind};
use crate::template::{Values, Variable};

/// An account at a token endpoint, as OAuth 2 has it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Account {
    pub(crate) token_url: Url,
    pub(crate) client_id: String,
    pub(crate) client_secret: Option<String>,
    pub(crate) refresh_token: Option<String>,
    pub(crate) scopes: Vec<String>,
    /// The variable that holds the refresh token.
    pub(crate) refresh_name: Option<String>,
    /// Where the vault keeps it, so that a newer one can take its place.
    pub(crate) kept_at: Option<Place>,
}

/// How the names of the variables end that an account at a token endpoint has.
const TOKEN_URL: &str = "TOKEN_URL";
const CLIENT_ID: &str = "CLIENT_ID";
const CLIENT_SECRET: &str = "CLIENT_SECRET";
const REFRESH_TOKEN: &str = "REFRESH_TOKEN";

/// Says who is asking: in a header, or by an account to fetch a token with.
pub(crate) fn sign_in(
    auth: &Auth,
    values: &Values<'_>,
    headers: &mut HeaderMap,
) -> Result<Option<Account>, CallError> {
    let first_set = || auth.env.iter().find_map(|name| set(values, name));
    match auth.kind {
        AuthKind::None => {}
        AuthKind::Bearer => {
            let token = first_set().ok_or_else(|| missing(auth.env.first()))?;
            put_bearer(headers, token)?;
        }
        AuthKind::ApiKey => {
            let key = first_set().ok_or_else(|| missing(auth.env.first()))?;
            headers.insert(header_name("x-api-key")?, header_value("X-API-Key", key, true)?);
        }
        AuthKind::Oauth2 => return oauth(auth, values, headers),
    }
    Ok(None)
}

/// Puts a token where servers look for it.
pub(crate) fn put_bearer(headers: &mut HeaderMap, token: &str) -> Result<(), CallError> {
    let value = header_value("Authorization", &format!("Bearer {token}"), true)?;
    headers.insert(header_name("authorization")?, value);
    Ok(())
}

/// An account, where the owner has one; else a token they already have.
fn oauth(
    auth: &Auth,
    values: &Values<'_>,
    headers: &mut HeaderMap,
) -> Result<Option<Account>, CallError> {
    let named = |role: &str| auth.env.iter().find(|name| has_role(name, role));
    let of = |role: &str| named(role).and_then(|name| set(values, name)).map(str::to_owned);
    let Some(token_url) = of(TOKEN_URL) else {
        let roles = [TOKEN_URL, CLIENT_ID, CLIENT_SECRET, REFRESH_TOKEN];
        let others =
            || auth.env.iter().filter(|name| !roles.iter().any(|role| has_role(name, role)));
        let token = others().find_map(|name| set(values, name));
        let token = token.ok_or_else(|| missing(named(TOKEN_URL).or(others().next())))?;
        put_bearer(headers, token)?;
        return Ok(None);
    };
    let token_url =
        Url::parse(&token_url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let token_url = token_url.ok_or_else(|| {
        let name = named(TOKEN_URL).map_or(TOKEN_URL, String::as_str);
        CallError::new(Kind::MissingInput, format!("`{name}` is no URL")).with("name", name)
    })?;
    let client_id = of(CLIENT_ID).ok_or_else(|| missing(named(CLIENT_ID)))?;
    let (client_secret, refresh_token) = (of(CLIENT_SECRET), of(REFRESH_TOKEN));
    if client_secret.is_none() && refresh_token.is_none() {
        return Err(missing(named(CLIENT_SECRET).or(named(REFRESH_TOKEN))));
    }
    let scopes = auth.scopes.clone();
    let refresh_name = named(REFRESH_TOKEN).cloned();
    Ok(Some(Account {
        token_url,
        client_id,
        client_secret,
        refresh_token,
        scopes,
        refresh_name,
        kept_at: None,
    }))
}

fn has_role(name: &str, role: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name == role || name.strip_suffix(role).is_some_and(|before| before.ends_with('_'))
}

fn set<'v>(values: &Values<'v>, name: &str) -> Option<&'v str> {
    let found = values.variables.iter().find(|(known, _)| known == name);
    found.map(|(_, Variable { value, .. })| &**value).filter(|value| !value.is_empty())
}

fn missing(name: Option<&String>) -> CallError {
    match name {
        Some(name) => {
            CallError::new(Kind::MissingInput, format!("Missing required secret: {name}"))
                .with("name", &**name)
        }
        None => unavailable("it needs a key, and does not name the variable that holds it"),
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Account").field("scopes", &self.scopes).finish_non_exhaustive()
    }
}
