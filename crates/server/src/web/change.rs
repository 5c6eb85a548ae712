//! Publish, yank.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Multipart, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::BodyExt;
use registry::{Channel, Outcome, TestReport, Yank, identity};
use tokio::sync::OwnedSemaphorePermit;

use super::answer;
use super::caller;
use super::refused::{Refused, clip};
use super::review;
use super::text::Parameters;
use crate::hub::HubForm;
use crate::memory::{Memory, NoMemory, Share};
use crate::service::{Registry, Sent};
use crate::store::tokens::Token;
use crate::token::Action;
use trace::{Place, part};

/// What the part of a form is called that holds the package.
const PARTS: [&str; 3] = ["package", "bundle", "file"];
/// What the part is called that holds the report of its tests.
const REPORT: &str = "report";
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
    let Arrived { token, id, channel, form, room } = receive(&registry, request).await?;
    let published = match form {
        Form::Package(bytes, report) => {
            let sent = Sent { bytes, id, report: report.map(|report| *report) };
            registry.publish(&token, sent, channel, room).await
        }
        Form::Tool(form) => registry.publish_form(&token, Arc::new(*form), channel, room).await,
    };
    let published = published.map_err(|error| Refused::change(error, "", None))?;
    let status = match published.outcome {
        Outcome::Published => StatusCode::CREATED,
        Outcome::Unchanged => StatusCode::OK,
    };
    Ok(answer::json(status, serde_json::to_string(&published).unwrap_or_default()))
}

/// Says what publishing a package would come to. It has a path of its own, so that a registry which does not know it
/// publishes nothing.
pub(super) async fn foresee(
    State(registry): State<Arc<Registry>>,
    request: Request,
) -> Result<Response, Refused> {
    let Arrived { token, id, channel, form, room } = receive(&registry, request).await?;
    let Form::Package(bytes, report) = form else {
        return Err(Refused::invalid("the form holds a tool; what is foreseen is a package"));
    };
    let sent = Sent { bytes, id, report: report.map(|report| *report) };
    let foreseen = registry.foresee(&token, sent, channel, room).await;
    let foreseen = foreseen.map_err(|error| Refused::change(error, "", None))?;
    Ok(answer::json(StatusCode::OK, serde_json::to_string(&foreseen).unwrap_or_default()))
}

/// What has arrived to be published.
struct Arrived {
    token: Token,
    id: Option<String>,
    channel: Channel,
    form: Form,
    /// A turn, and the memory that is taken.
    room: (OwnedSemaphorePermit, Share),
}

async fn receive(registry: &Registry, request: Request) -> Result<Arrived, Refused> {
    // Nobody's body is read before it is known who sends it.
    let token = caller::required(&request)?;
    if !token.role.allows(Action::Publish) {
        return Err(Refused::role(Action::Publish));
    }
    let parameters = Parameters::read(request.uri().query())?;
    let id = parameters.get("id").filter(|id| !id.is_empty()).map(str::to_owned);
    if id.as_ref().is_some_and(|id| id.len() > identity::LONGEST) {
        return Err(Refused::invalid("the id is too long"));
    }
    let channel = caller::channel(&parameters)?;
    let (parts, body) = request.into_parts();
    // A turn is for what has arrived: whoever sends slowly keeps nobody from theirs.
    let mut share = registry.arriving.share();
    let most = registry.settings.upload_bytes;
    let receiving = part(Place::Here, "receive the package");
    let bytes = whole_in(registry, body, most, &mut share).await?;
    drop(receiving);
    let turn = Arc::clone(&registry.uploading).acquire_owned();
    let turn = tokio::time::timeout(TURN, turn)
        .await
        .map_err(|_| too_much())?
        .map_err(|_| Refused::unavailable("the registry is closing"))?;
    let form = if is_form(&parts.headers) {
        of_form(Request::from_parts(parts, Body::from(bytes))).await?
    } else {
        Form::Package(bytes, None)
    };
    Ok(Arrived { token, id, channel, form, room: (turn, share) })
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
    let yank = (method != Method::DELETE).then_some(&yank);
    let done = registry.yank(&token, tool, version, yank).await;
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

/// A small body, all of it, unless it is too large or takes too long.
async fn whole(registry: &Registry, body: Body, most: usize) -> Result<Bytes, Refused> {
    whole_in(registry, body, most, &mut Memory::new(most).share()).await
}

/// The same of a large one, in memory that others wait for.
async fn whole_in(
    registry: &Registry,
    body: Body,
    most: usize,
    share: &mut Share,
) -> Result<Bytes, Refused> {
    if body.size_hint().lower() > most as u64 {
        return Err(Refused::too_large("body", most));
    }
    let read = collect(body, most, share);
    match tokio::time::timeout(registry.settings.patience, read).await {
        Ok(read) => read,
        Err(_) => Err(too_slow()),
    }
}

/// Takes a body in as it comes. Who sends nothing for a while is not waited for: others wait for the memory.
async fn collect(mut body: Body, most: usize, share: &mut Share) -> Result<Bytes, Refused> {
    let mut bytes = bytes::BytesMut::new();
    loop {
        let piece = match tokio::time::timeout(SILENCE, body.frame()).await {
            Ok(None) => return Ok(bytes.freeze()),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(Some(Err(_))) => return Err(Refused::invalid("the body ended too early")),
            Err(_) => return Err(too_slow()),
        };
        if bytes.len() + piece.len() > most {
            return Err(Refused::too_large("body", most));
        }
        share.hold(bytes.len() + piece.len()).await.map_err(|NoMemory| too_much())?;
        bytes.extend_from_slice(&piece);
    }
}

fn too_much() -> Refused {
    Refused::unavailable("too much is being published; come again")
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

/// What somebody sends: a package and what its tests came to, or a tool as the hub of the Jumith world takes it.
enum Form {
    Package(Bytes, Option<Box<TestReport>>),
    Tool(Box<HubForm>),
}

/// The package in a form: the one part with one of its names. A form that also says what the tool is called, or
/// what it does, holds the one file of a tool.
async fn of_form(request: Request) -> Result<Form, Refused> {
    let broken = |why: String| Refused::invalid(format!("the form cannot be read: {why}"));
    let mut form =
        Multipart::from_request(request, &()).await.map_err(|error| broken(error.body_text()))?;
    let (mut package, mut report) = (None, None);
    let mut tool = HubForm::default();
    let mut is_tool = false;
    while let Some(part) = form.next_field().await.map_err(|error| broken(error.body_text()))? {
        let name = part.name().unwrap_or_default().to_owned();
        let is_package = PARTS.contains(&name.as_str());
        if let Some(file) = part.file_name().filter(|_| is_package) {
            file.clone_into(&mut tool.file_name);
        }
        let bytes = part.bytes().await.map_err(|error| broken(error.body_text()))?;
        if name == REPORT {
            if report.replace(Box::new(read_report(&bytes)?)).is_some() {
                return Err(Refused::invalid("the form holds more than one report"));
            }
            continue;
        }
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
        if report.is_some() {
            return Err(Refused::invalid("a report is about a package, and the form holds a tool"));
        }
        tool.file = package.map(Vec::from).unwrap_or_default();
        return Ok(Form::Tool(Box::new(tool)));
    }
    let package = package.ok_or_else(|| Refused::invalid("the form has no part `package`"))?;
    Ok(Form::Package(package, report))
}

fn read_report(bytes: &[u8]) -> Result<TestReport, Refused> {
    if bytes.len() > TestReport::MOST_BYTES {
        return Err(Refused::too_large(REPORT, TestReport::MOST_BYTES));
    }
    registry::read(bytes)
        .map_err(|error| Refused::invalid(format!("`{REPORT}` is no report of tests: {error}")))
}
