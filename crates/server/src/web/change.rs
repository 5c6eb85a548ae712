//! Publish, yank.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Multipart, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::BodyExt;
use registry::{Outcome, Yank};

use super::answer;
use super::caller;
use super::refused::{Refused, clip};
use super::review;
use super::text::Parameters;
use crate::hub::HubForm;
use crate::service::Registry;
use crate::token::Action;
use crate::upload::LONGEST_ID;

/// What the part of a form is called that holds the package.
const PARTS: [&str; 3] = ["package", "bundle", "file"];
/// How long somebody may send nothing of a body.
const SILENCE: std::time::Duration = std::time::Duration::from_secs(20);
/// The most bytes of a body that is no package.
const SMALL: usize = 64 << 10;
/// How long somebody waits for a turn to publish.
const TURN: Duration = Duration::from_secs(30);

/// Publishes a package: its file, a bundle, or a form with either.
pub(super) async fn publish(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    // Nobody's body is read before it is known who sends it.
    let token = caller::required(&request)?;
    if !token.role.allows(Action::Publish) {
        return Err(Refused::role(Action::Publish));
    }
    let parameters = Parameters::read(request.uri().query())?;
    let id = parameters.get("id").filter(|id| !id.is_empty()).map(str::to_owned);
    if id.as_ref().is_some_and(|id| id.len() > LONGEST_ID) {
        return Err(Refused::invalid("the id is too long"));
    }
    let channel = caller::channel(&parameters)?;
    let room = Arc::clone(&registry.uploading).acquire_owned();
    let room = tokio::time::timeout(TURN, room)
        .await
        .map_err(|_| Refused::unavailable("too much is being published; come again"))?
        .map_err(|_| Refused::unavailable("the registry is closing"))?;
    let (parts, body) = request.into_parts();
    let bytes = whole(&registry, body, registry.settings.upload_bytes).await?;
    let sent = if is_form(&parts.headers) {
        of_form(Request::from_parts(parts, Body::from(bytes))).await?
    } else {
        Sent::Package(bytes)
    };
    let published = match sent {
        Sent::Package(bytes) => registry.publish(&token, bytes, id, channel, Some(room)).await,
        Sent::Tool(form) => {
            registry.publish_form(&token, Arc::new(*form), channel, Some(room)).await
        }
    };
    let published = published.map_err(|error| Refused::change(error, "", None))?;
    let status = match published.outcome {
        Outcome::Published => StatusCode::CREATED,
        Outcome::Unchanged => StatusCode::OK,
    };
    Ok(answer::json(status, serde_json::to_string(&published).unwrap_or_default()))
}

/// Takes back a version (POST), or offers it again (DELETE).
pub(super) async fn yank(
    registry: &Registry,
    tool: &str,
    version: &str,
    request: Request,
) -> Result<Response, Refused> {
    let method = request.method().clone();
    if ![Method::POST, Method::PUT, Method::DELETE].contains(&method) {
        let allowed = HeaderValue::from_static("DELETE,POST,PUT");
        return Err(Refused::wrong_method(&method).header(header::ALLOW, allowed));
    }
    let token = caller::required(&request)?;
    review::hide_foreign(registry, tool, Some(&token)).await?;
    let body = whole(registry, request.into_body(), SMALL).await?;
    let yank = match body.trim_ascii() {
        [] => Yank::default(),
        text => registry::read(text)
            .map_err(|error| Refused::invalid(format!("the body is no reason to yank: {error}")))?,
    };
    let reason = (method != Method::DELETE).then_some(yank.reason.as_str());
    let done = registry.yank(&token, tool, version, reason).await;
    done.map_err(|error| Refused::change(error, tool, Some(version)))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A small body, read strictly.
pub(super) async fn read<T: serde::de::DeserializeOwned + registry::read::Checked>(
    registry: &Registry,
    body: Body,
    what: &str,
) -> Result<T, Refused> {
    let body = whole(registry, body, SMALL).await?;
    registry::read(&body)
        .map_err(|error| Refused::invalid(format!("the body is not {what}: {error}")))
}

/// A body, all of it, unless it is too large or takes too long.
async fn whole(registry: &Registry, body: Body, most: usize) -> Result<Bytes, Refused> {
    if body.size_hint().lower() > most as u64 {
        return Err(Refused::too_large(most));
    }
    let read = collect(body, most);
    match tokio::time::timeout(registry.settings.patience, read).await {
        Ok(read) => read,
        Err(_) => Err(too_slow()),
    }
}

/// Takes a body in as it comes. Who sends nothing for a while is not waited for: others wait for the room.
async fn collect(mut body: Body, most: usize) -> Result<Bytes, Refused> {
    let mut bytes = bytes::BytesMut::new();
    loop {
        let piece = match tokio::time::timeout(SILENCE, body.frame()).await {
            Ok(None) => return Ok(bytes.freeze()),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(Some(Err(_))) => return Err(Refused::invalid("the body ended too early")),
            Err(_) => return Err(too_slow()),
        };
        if bytes.len() + piece.len() > most {
            return Err(Refused::too_large(most));
        }
        bytes.extend_from_slice(&piece);
    }
}

fn too_slow() -> Refused {
    Refused::new(
        StatusCode::REQUEST_TIMEOUT,
        registry::ErrorCode::InvalidRequest,
        "the body took too long to arrive",
    )
    .header(header::CONNECTION, HeaderValue::from_static("close"))
}

fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("multipart/"))
}

/// What somebody sends: a package, or a tool as the hub of the Jumith world takes it.
enum Sent {
    Package(Bytes),
    Tool(Box<HubForm>),
}

/// The package in a form: the one part with one of its names. A form that also says what the tool is called, or
/// what it does, holds the one file of a tool.
async fn of_form(request: Request) -> Result<Sent, Refused> {
    let broken = |why: String| Refused::invalid(format!("the form cannot be read: {why}"));
    let mut form =
        Multipart::from_request(request, &()).await.map_err(|error| broken(error.body_text()))?;
    let mut package = None;
    let mut tool = HubForm::default();
    let mut is_tool = false;
    while let Some(part) = form.next_field().await.map_err(|error| broken(error.body_text()))? {
        let name = part.name().unwrap_or_default().to_owned();
        let is_package = PARTS.contains(&name.as_str());
        if let Some(file) = part.file_name().filter(|_| is_package) {
            file.clone_into(&mut tool.file_name);
        }
        let bytes = part.bytes().await.map_err(|error| broken(error.body_text()))?;
        if !is_package {
            let text = std::str::from_utf8(&bytes);
            let text =
                text.map_err(|_| Refused::invalid(format!("`{}` is not UTF-8", clip(&name))))?;
            match name.as_str() {
                "name" => text.clone_into(&mut tool.name),
                "description" => text.clone_into(&mut tool.description),
                "required_secrets" => text.clone_into(&mut tool.required_secrets),
                // As the hub has it: whatever is in the box, it is ticked.
                "uses_payment" => tool.uses_payment = !text.is_empty(),
                "requires_approval" => tool.requires_approval = !text.is_empty(),
                _ => continue,
            }
            is_tool = true;
            continue;
        }
        if package.replace(bytes).is_some() {
            return Err(Refused::invalid("the form holds more than one package"));
        }
    }
    if is_tool {
        tool.file = package.map(Vec::from).unwrap_or_default();
        return Ok(Sent::Tool(Box::new(tool)));
    }
    package.map(Sent::Package).ok_or_else(|| Refused::invalid("the form has no part `package`"))
}
