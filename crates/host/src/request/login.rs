//! Who a request says is asking: a key in a header, or an account to fetch a token with.

use std::fmt;

use egress::http::{HeaderMap, Url};
use manifest::model::{Auth, AuthKind};
use vault::Place;

use super::{header_name, header_value, unavailable};
use crate::error::{CallError, Missing};
use crate::secrets::is_stand_in;
use crate::template::{Values, Variable, check_in_header};

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
    let first_set = || first_set(auth.env.iter(), values).transpose();
    match auth.kind {
        AuthKind::None => {}
        AuthKind::Bearer => {
            let token = first_set().unwrap_or_else(|| Err(missing(auth.env.first())))?;
            put_bearer(headers, token)?;
        }
        AuthKind::ApiKey => {
            let key = first_set().unwrap_or_else(|| Err(missing(auth.env.first())))?;
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
    let (client_secret, refresh_token) = (of(CLIENT_SECRET), of(REFRESH_TOKEN));
    let has_proof = client_secret.is_some() || refresh_token.is_some();
    let missing_of_account = || {
        let unset = |role: &str| named(role).filter(|_| of(role).is_none());
        let proof = named(CLIENT_SECRET).or(named(REFRESH_TOKEN)).filter(|_| !has_proof);
        missing(unset(TOKEN_URL).into_iter().chain(unset(CLIENT_ID)).chain(proof))
    };
    let Some(token_url) = of(TOKEN_URL) else {
        let roles = [TOKEN_URL, CLIENT_ID, CLIENT_SECRET, REFRESH_TOKEN];
        let others =
            || auth.env.iter().filter(|name| !roles.iter().any(|role| has_role(name, role)));
        let token = first_set(others(), values)?;
        let token = token.ok_or_else(|| match named(TOKEN_URL) {
            Some(_) => missing_of_account(),
            None => missing(others().next()),
        })?;
        put_bearer(headers, token)?;
        return Ok(None);
    };
    let Some(client_id) = of(CLIENT_ID).filter(|_| has_proof) else {
        return Err(missing_of_account());
    };
    let name = named(TOKEN_URL).map_or(TOKEN_URL, String::as_str);
    if values.variables.iter().any(|(known, one)| known == name && is_stand_in(name, one)) {
        // Nothing is run, so anything may stand for the token that would be fetched.
        put_bearer(headers, &token_url)?;
        return Ok(None);
    }
    let token_url =
        Url::parse(&token_url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let token_url = token_url.ok_or_else(|| CallError {
        message: format!("`{name}` is no URL"),
        ..CallError::missing(&[Missing::secret(name)])
    })?;
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

/// The first of these that is set, as a header can have it.
fn first_set<'n, 'v>(
    mut names: impl Iterator<Item = &'n String>,
    values: &Values<'v>,
) -> Result<Option<&'v str>, CallError> {
    let found = names.find_map(|name| Some((name, set(values, name)?)));
    let checked = found.map(|(name, value)| check_in_header(name, value).map(|()| value));
    checked.transpose()
}

fn missing<'n>(names: impl IntoIterator<Item = &'n String>) -> CallError {
    let names: Vec<_> = names.into_iter().map(|name| Missing::secret(name)).collect();
    match names.as_slice() {
        [] => unavailable("it needs a key, and does not name the variable that holds it"),
        names => CallError::missing(names),
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Account").field("scopes", &self.scopes).finish_non_exhaustive()
    }
}
