//! Tokens and trusted publishers, for administrators; identities, for whoever has one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use registry::{ErrorCode, Exchange, Given, NewPublisher, NewToken, Publishers, Tokens};
use serde::Serialize;

use super::refused::Refused;
use super::text::decode;
use super::{answer, caller, change, door};
use crate::access::AccessError;
use crate::identity::IdentityError;
use crate::rate::Who;
use crate::service::{MakeTokenError, Registry};
use crate::store::tokens::Token;
use crate::token::{Role, Scope, Secret};

/// The longest life of a token that can be asked for.
const LONGEST_LIFE: Duration = Duration::from_hours(24 * 3_650);

/// What is known of the token that is shown: its owner may know it.
pub(super) async fn own_token(request: Request) -> Result<Response, Refused> {
    Ok(told(StatusCode::OK, &registry::Token::from(&caller::required(&request)?)))
}

/// Makes a token.
pub(super) async fn make_token(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    let by = caller::required(&request)?;
    let new: NewToken = change::read(&registry, request.into_body(), "a new token").await?;
    let role = Role::named(&new.role)
        .ok_or_else(|| Refused::invalid("the roles are `read`, `publish`, `review` and `admin`"))?;
    let lifetime = new.expires_in.map(Duration::from_secs);
    if lifetime.is_some_and(|time| time.is_zero() || time > LONGEST_LIFE) {
        return Err(Refused::invalid("a token is good for a second to ten years"));
    }
    let made = registry.give_token(&by, Scope::named(&new.namespace), role, lifetime).await?;
    Ok(given(StatusCode::CREATED, made))
}

/// Lists tokens.
pub(super) async fn tokens(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    let by = caller::required(&request)?;
    let tokens = registry.tokens_for(&by).await?;
    Ok(told(StatusCode::OK, &Tokens { tokens: tokens.iter().map(Into::into).collect() }))
}

/// Ends a token.
pub(super) async fn revoke_token(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    let by = caller::required(&request)?;
    registry.revoke_token(&by, &last(&request)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Gives a token for an identity.
pub(super) async fn exchange(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    let from = door::from(&registry, &request).map(Who::at);
    let asked: Exchange = change::read(&registry, request.into_body(), "an identity").await?;
    match registry.exchange(&asked.identity, asked.namespace.as_deref()).await {
        Ok(made) => Ok(given(StatusCode::CREATED, made)),
        Err(error) => {
            let refused = Refused::from(error);
            if let Some(who) = from.filter(|_| refused.is_unauthorized()) {
                registry.rates.failures.take(&who, Instant::now()).map_err(Refused::too_often)?;
            }
            Err(refused)
        }
    }
}

/// Trusts a publisher.
pub(super) async fn add_publisher(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    let by = caller::required(&request)?;
    let rule: NewPublisher = change::read(&registry, request.into_body(), "a publisher").await?;
    Ok(told(StatusCode::CREATED, &registry.trust_publisher(&by, rule).await?))
}

/// Lists trusted publishers.
pub(super) async fn publishers(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    let by = caller::required(&request)?;
    Ok(told(StatusCode::OK, &Publishers { publishers: registry.publishers(&by).await? }))
}

/// Trusts a publisher no more.
pub(super) async fn remove_publisher(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    let by = caller::required(&request)?;
    registry.forget_publisher(&by, &last(&request)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The last part of the path.
fn last(request: &Request) -> Result<String, Refused> {
    decode(request.uri().path().rsplit('/').next().unwrap_or_default())
}

fn given(status: StatusCode, (secret, token): (Secret, Token)) -> Response {
    told(status, &Given { token: secret.reveal().to_owned(), about: (&token).into() })
}

/// What nobody keeps.
pub(super) fn told(status: StatusCode, value: &impl Serialize) -> Response {
    let mut response = answer::json(status, serde_json::to_string(value).unwrap_or_default());
    let never = axum::http::HeaderValue::from_static("no-store");
    response.headers_mut().insert(axum::http::header::CACHE_CONTROL, never);
    response
}

impl From<AccessError> for Refused {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::Role(action) => Refused::role(action),
            AccessError::Namespace(namespace) => Refused::namespace(namespace),
            AccessError::NotFound(_) => Refused::new(
                StatusCode::NOT_FOUND,
                ErrorCode::InvalidRequest,
                "there is nothing of this id",
            ),
            AccessError::Rule(error) => Refused::invalid(error.to_string()),
            AccessError::Identity(error) => error.into(),
            AccessError::Make(MakeTokenError::Store(error)) | AccessError::Store(error) => {
                error.into()
            }
            AccessError::Make(MakeTokenError::Randomness(_)) => {
                Refused::unavailable("the system gives no randomness")
            }
        }
    }
}

impl From<IdentityError> for Refused {
    fn from(error: IdentityError) -> Self {
        match error {
            IdentityError::Store(error) => error.into(),
            IdentityError::Keys(error) => Refused::unavailable(&error.to_string()),
            IdentityError::Ambiguous(ref names) => {
                let names = names.clone();
                Refused::invalid(error.to_string()).detail("namespaces", names)
            }
            other => Refused::no_token(&other.to_string()),
        }
    }
}
