//! What waits for a reviewer, what is said of it, and who owns a tool.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use registry::{Decision, Reviews};

use super::refused::Refused;
use super::text::Parameters;
use super::{admin, caller, change};
use crate::access::OwnerChange;
use crate::service::Registry;
use crate::store::tokens::Token;
use crate::store::versions::FindError;

/// Lists what waits.
pub(super) async fn waiting(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    let by = caller::required(&request)?;
    let parameters = Parameters::read(request.uri().query())?;
    let number = |name, default, least, most| {
        u32::try_from(parameters.number(name, default, least, most)).unwrap_or(u32::MAX)
    };
    let (offset, limit) = (number("offset", 0, 0, 1 << 30), number("limit", 20, 1, 100));
    Ok(admin::told(StatusCode::OK, &registry.waiting(&by, offset, limit).await?))
}

/// Says what becomes of a version (POST), or what was said of it (GET).
pub(super) async fn review(
    registry: &Registry,
    tool: &str,
    version: &str,
    request: Request,
) -> Result<Response, Refused> {
    let by = caller::required(&request)?;
    match request.method().clone() {
        Method::GET | Method::HEAD => said(registry, tool, version, &by).await,
        Method::POST => {
            hide_foreign(registry, tool, Some(&by)).await?;
            let decision: Decision =
                change::read(registry, request.into_body(), "a decision").await?;
            let done = registry.review(&by, tool, version, &decision).await;
            done.map_err(|error| Refused::change(error, tool, Some(version)))?;
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        other => {
            let allowed = HeaderValue::from_static("GET,HEAD,POST");
            Err(Refused::wrong_method(&other).header(header::ALLOW, allowed))
        }
    }
}

async fn said(
    registry: &Registry,
    tool: &str,
    version: &str,
    by: &Token,
) -> Result<Response, Refused> {
    let missing = |error| Refused::found(error, tool);
    let (id, namespace) = registry.store.resolve(tool).await.map_err(missing)?;
    if !registry.sees_hidden(Some(by), &id, &namespace).await? {
        return Err(Refused::no_tool(tool));
    }
    let reviews = registry.store.reviews(&id, version).await?;
    let version = version.to_owned();
    Ok(admin::told(StatusCode::OK, &Reviews { id, version, reviews }))
}

/// Who owns a tool (GET), one owner more (PUT) or less (DELETE).
pub(super) async fn owners(
    registry: &Registry,
    tool: &str,
    owner: Option<&str>,
    request: Request,
) -> Result<Response, Refused> {
    hide_foreign(registry, tool, caller::shown(&request)).await?;
    let method = request.method().clone();
    let (owner, change) = match (&method, owner) {
        (&Method::GET | &Method::HEAD, None) => {
            let owners =
                registry.owners(tool).await.map_err(|error| Refused::found(error, tool))?;
            return Ok(admin::told(StatusCode::OK, &owners));
        }
        (&Method::PUT, Some(owner)) => (owner, OwnerChange::Add),
        (&Method::DELETE, Some(owner)) => (owner, OwnerChange::Remove),
        (other, _) => {
            let allowed = if owner.is_some() { "DELETE,PUT" } else { "GET,HEAD" };
            let allowed = HeaderValue::from_static(allowed);
            return Err(Refused::wrong_method(other).header(header::ALLOW, allowed));
        }
    };
    let by = caller::required(&request)?;
    registry::access::check_namespace(owner)
        .map_err(|fault| Refused::invalid(fault.to_string()))?;
    let done = registry.change_owner(&by, tool, owner, change).await;
    let owners = done.map_err(|error| Refused::change(error, tool, None))?;
    Ok(admin::told(StatusCode::OK, &owners))
}

/// A tool that whoever asks does not see is not there.
pub(super) async fn hide_foreign(
    registry: &Registry,
    tool: &str,
    token: Option<&Token>,
) -> Result<(), Refused> {
    let missing = |error| Refused::found(error, tool);
    let (id, namespace) = registry.store.resolve(tool).await.map_err(missing)?;
    if registry.sees_hidden(token, &id, &namespace).await? {
        return Ok(());
    }
    let view = caller::view(registry, token, &Parameters::default())?;
    let is_offered = match registry.store.versions(&id).await {
        Ok(_) => true,
        Err(FindError::NoPackage | FindError::NoVersion) => false,
        Err(FindError::Store(error)) => return Err(error.into()),
    };
    if is_offered && view.scope.covers(&namespace) { Ok(()) } else { Err(Refused::no_tool(tool)) }
}
