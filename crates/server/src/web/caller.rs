//! Who asks.

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use registry::Channel;

use super::refused::Refused;
use super::text::Parameters;
use super::watch;
use crate::catalog::View;
use crate::service::{Registry, now};
use crate::settings::Reading;
use crate::store::tokens::Token;
use crate::token::{Scope, Secret};

/// Who asks, as far as is known. Every request has one before anything is answered.
#[derive(Clone, Debug)]
pub(super) struct Caller(pub(super) Option<Token>);

/// How a token may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Showing {
    /// As programs do.
    Bearer,
    /// Also as the password of a browser. A browser shows it with whatever any page makes it ask, so this is for
    /// reading alone, and never for a change.
    BearerOrPassword,
}

/// The token somebody shows; without one that is good nothing goes on.
pub(super) async fn token(
    registry: &Registry,
    headers: &HeaderMap,
    showing: Showing,
) -> Result<Token, Refused> {
    let shown =
        headers.get(header::AUTHORIZATION).ok_or_else(|| Refused::no_token("show a token"))?;
    let shown = shown.to_str().ok().and_then(|text| text.split_once(' '));
    let token = match shown {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
            Some(token.trim().to_owned())
        }
        Some((scheme, encoded))
            if scheme.eq_ignore_ascii_case("basic") && showing == Showing::BearerOrPassword =>
        {
            password(encoded.trim())
        }
        _ => None,
    };
    let token =
        token.ok_or_else(|| Refused::no_token("show a token as `Authorization: Bearer`"))?;
    // What cannot be a token is not looked for.
    let found = match Secret::shown(&token) {
        Some(secret) => registry.store.token(&secret).await?,
        None => None,
    };
    // Whether a token is unknown, has ended or was revoked is nobody's business but its owner's.
    match found {
        Some(token) if token.is_good(now()) => {
            watch::note_caller(&token.id);
            Ok(token)
        }
        _ => Err(Refused::no_token("the token is not good")),
    }
}

/// The password in what a browser shows; the name before it is anybody's.
fn password(encoded: &str) -> Option<String> {
    let decoded = STANDARD.decode(encoded).ok()?;
    let (_, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    Some(password.trim().to_owned())
}

/// Whether somebody shows what may be a token of ours; a proxy may have credentials of its own.
pub(super) fn shows_token(headers: &HeaderMap) -> bool {
    let shown = headers.get(header::AUTHORIZATION).map(axum::http::HeaderValue::as_bytes);
    shown.is_some_and(|text| text.len() >= 7 && text[..7].eq_ignore_ascii_case(b"bearer "))
}

/// The token that was shown, if one was.
pub(super) fn shown(request: &Request) -> Option<&Token> {
    request.extensions().get::<Caller>().and_then(|caller| caller.0.as_ref())
}

/// The token that was shown, where there must be one.
pub(super) fn required(request: &Request) -> Result<Token, Refused> {
    shown(request).cloned().ok_or_else(|| Refused::no_token("show a token"))
}

/// What whoever asks may see, of the channel that is asked for.
pub(super) fn view(
    registry: &Registry,
    token: Option<&Token>,
    parameters: &Parameters,
) -> Result<View, Refused> {
    let scope = match (registry.settings.reading, token) {
        (Reading::Everybody, _) => Scope::All,
        (Reading::Tokens, Some(token)) => token.scope.clone(),
        // The door lets nobody in without one.
        (Reading::Tokens, None) => return Err(Refused::no_token("show a token")),
    };
    Ok(View { scope, channel: channel(parameters)? })
}

/// The one namespace of which anything is told: that of the token where it sees no other, else the one that is
/// asked for.
pub(super) fn namespace(
    registry: &Registry,
    request: &Request,
    asked: Option<&str>,
) -> Result<Option<String>, Refused> {
    match view(registry, shown(request), &Parameters::default())?.scope {
        Scope::All => Ok(asked.map(str::to_owned)),
        Scope::Namespace(own) => match asked {
            Some(other) if other != own => Err(Refused::namespace(other.to_owned())),
            _ => Ok(Some(own)),
        },
    }
}

/// The channel that is asked for.
pub(super) fn channel(parameters: &Parameters) -> Result<Channel, Refused> {
    match parameters.get("channel") {
        None | Some("") => Ok(Channel::Stable),
        Some(name) => Channel::named(name)
            .ok_or_else(|| Refused::invalid("there are the channels `stable` and `beta`")),
    }
}
