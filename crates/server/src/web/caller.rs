//! Who asks.

use axum::http::{HeaderMap, header};

use super::refused::Refused;
use super::watch;
use crate::service::{Registry, now};
use crate::store::tokens::Token;
use crate::token::Secret;

/// The longest token that is looked at.
const LONGEST: usize = 256;

/// The token somebody shows; without one that is good nothing goes on.
pub(super) async fn token(registry: &Registry, headers: &HeaderMap) -> Result<Token, Refused> {
    let shown =
        headers.get(header::AUTHORIZATION).ok_or_else(|| Refused::no_token("show a token"))?;
    let bearer = shown.to_str().ok().and_then(|text| text.split_once(' '));
    let secret = match bearer {
        Some((scheme, token))
            if scheme.eq_ignore_ascii_case("bearer") && token.trim().len() <= LONGEST =>
        {
            Secret::shown(token.trim())
        }
        _ => return Err(Refused::no_token("show a token as `Authorization: Bearer`")),
    };
    // Whether a token is unknown, has ended or was revoked is nobody's business but its owner's.
    match registry.store.token(&secret).await? {
        Some(token) if token.is_good(now()) => {
            watch::note_caller(&token.id);
            Ok(token)
        }
        _ => Err(Refused::no_token("the token is not good")),
    }
}
