//! Tokens: fetched for a code, renewed, given back.

use egress::http::Client;

use super::attempt::{Attempt, Redirected};
use super::audience::Audience;
use super::error::LoginError;
use super::kept::{Agreed, Granted, Kept, now};
use super::metadata::Server;
use super::register::Known;
use super::talk::{post_form, refused, said};

/// Who is asked for tokens.
pub(super) const WHAT: &str = "token endpoint";

/// Makes tokens of the code that came back.
pub async fn exchange(
    client: &Client,
    attempt: Attempt,
    redirected: Redirected,
    hosts: Vec<Agreed>,
) -> Result<Kept, LoginError> {
    let mut pairs = vec![
        ("grant_type", "authorization_code"),
        ("code", redirected.code.expose()),
        ("redirect_uri", attempt.redirect.as_str()),
        ("code_verifier", attempt.verifier.expose()),
    ];
    pairs.extend(attempt.audience.pair());
    let server = &attempt.server;
    let response = post_form(client, &server.token, &attempt.client, pairs, WHAT).await?;
    if !response.status.is_success() {
        return Err(refused(&response, WHAT));
    }
    let granted = Granted::read(&said(&response), now())?;
    let Attempt { server, client, audience, scopes, .. } = attempt;
    Ok(to_keep(granted, server, client, audience, scopes, hosts))
}

/// What is kept of what was granted, for what was asked.
pub(super) fn to_keep(
    granted: Granted,
    server: Server,
    client: Known,
    audience: Audience,
    scopes: Vec<String>,
    hosts: Vec<Agreed>,
) -> Kept {
    Kept {
        audience,
        issuer: server.issuer,
        token: server.token,
        revocation: server.revocation,
        client,
        hosts,
        // A server that says nothing granted what was asked for.
        scopes: granted.scopes.unwrap_or(scopes),
        access: granted.access,
        refresh: granted.refresh,
        until: granted.until,
    }
}

/// Fetches a new token. A server that no longer knows the sign-in has ended it.
pub(super) async fn renew(client: &Client, kept: Kept) -> Result<Kept, LoginError> {
    let refresh = kept.refresh.clone().ok_or(LoginError::Ended)?;
    let mut pairs = vec![("grant_type", "refresh_token"), ("refresh_token", refresh.expose())];
    pairs.extend(kept.audience.pair());
    let response = post_form(client, &kept.token, &kept.client, pairs, WHAT).await?;
    if !response.status.is_success() {
        let error = refused(&response, WHAT);
        return Err(match &error {
            LoginError::Answered { code: Some(code), .. }
                if matches!(
                    &**code,
                    "invalid_grant" | "invalid_client" | "unauthorized_client"
                ) =>
            {
                LoginError::Ended
            }
            _ => error,
        });
    }
    let granted = Granted::read(&said(&response), now())?;
    Ok(kept.renewed(granted))
}

/// Gives the tokens back, where the server takes them; the one that lasts longest first.
pub async fn revoke(client: &Client, kept: &Kept) -> Result<(), LoginError> {
    const WHAT: &str = "revocation endpoint";
    let Some(endpoint) = &kept.revocation else { return Ok(()) };
    let tokens = [kept.refresh.as_ref(), Some(&kept.access)];
    let hints = ["refresh_token", "access_token"];
    let mut outcome = Ok(());
    for (token, hint) in tokens.into_iter().zip(hints) {
        let Some(token) = token else { continue };
        let pairs = vec![("token", token.expose()), ("token_type_hint", hint)];
        let told = match post_form(client, endpoint, &kept.client, pairs, WHAT).await {
            Ok(response) if !response.status.is_success() => Err(refused(&response, WHAT)),
            told => told.map(drop),
        };
        // That one is not taken says nothing about the other.
        outcome = outcome.and(told);
    }
    outcome
}
