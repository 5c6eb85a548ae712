//! Who a request says is asking: a key in a header, or an account to fetch a token with.

use std::fmt;

use egress::http::{HeaderMap, Url};
use manifest::model::{AccountPart, Auth, AuthKind};
use vault::Place;

use super::{header_name, header_value};
use crate::error::{CallError, Kind, Missing};
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

/// Says who is asking: in a header, or by an account to fetch a token with.
pub(crate) fn sign_in(
    auth: &Auth,
    values: &Values<'_>,
    headers: &mut HeaderMap,
) -> Result<Option<Account>, CallError> {
    match auth.kind {
        AuthKind::None => {}
        AuthKind::Bearer => put_bearer(headers, credential(auth, values)?)?,
        AuthKind::ApiKey => {
            let key = credential(auth, values)?;
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
    use AccountPart::{ClientId, ClientSecret, RefreshToken, TokenUrl};
    let named = |part| auth.holder(part);
    let of = |part| named(part).and_then(|name| set(values, name)).map(str::to_owned);
    let (client_secret, refresh_token) = (of(ClientSecret), of(RefreshToken));
    let has_proof = client_secret.is_some() || refresh_token.is_some();
    let missing_of_account = || {
        let unset = |part| named(part).filter(|_| of(part).is_none());
        let proof = named(ClientSecret).or(named(RefreshToken)).filter(|_| !has_proof);
        missing(unset(TokenUrl).into_iter().chain(unset(ClientId)).chain(proof))
    };
    let Some(token_url) = of(TokenUrl) else {
        let token = credential(auth, values).map_err(|error| match named(TokenUrl) {
            Some(_) if error.kind == Kind::MissingInput => missing_of_account(),
            _ => error,
        })?;
        put_bearer(headers, token)?;
        return Ok(None);
    };
    let Some(client_id) = of(ClientId).filter(|_| has_proof) else {
        return Err(missing_of_account());
    };
    let name = named(TokenUrl).map_or(TokenUrl.name(), String::as_str);
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
    let refresh_name = named(RefreshToken).cloned();
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

fn set<'v>(values: &Values<'v>, name: &str) -> Option<&'v str> {
    let found = values.variables.iter().find(|(known, _)| known == name);
    found.map(|(_, Variable { value, .. })| &**value).filter(|value| !value.is_empty())
}

/// The first credential that is set, as a header can have it.
fn credential<'v>(auth: &Auth, values: &Values<'v>) -> Result<&'v str, CallError> {
    let found = auth.credentials().find_map(|name| Some((name, set(values, name)?)));
    let (name, value) = found.ok_or_else(|| missing(auth.credentials().take(1)))?;
    check_in_header(name, value).map(|()| value)
}

fn missing<'n>(names: impl Iterator<Item = &'n String>) -> CallError {
    CallError::missing(&names.map(|name| Missing::secret(name)).collect::<Vec<_>>())
}

impl fmt::Debug for Account {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Account").field("scopes", &self.scopes).finish_non_exhaustive()
    }
}
