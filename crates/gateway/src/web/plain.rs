//! `/v1`: tools for an agent loop that speaks no MCP. Definitions as a model takes them, and a request for each call.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use host::{CallError, Kind, Output};
use manifest::export::{Export, Format, Name, Options, export};
use serde_json::{Value, json};

use super::{Shown, Web, read};
use crate::call::{self, By};
use crate::offer::Offer;
use crate::refusal;
use crate::shelf::{Shelved, Stock, closing};
use crate::view::{List, View};

/// The definitions of all tools, in one of the formats.
pub(super) async fn tools(State(web): State<Arc<Web>>, request: Request) -> Response {
    let (Some(shown), query) = (shown(&request), request.uri().query().unwrap_or_default()) else {
        return wrong(StatusCode::UNAUTHORIZED, "unauthorized", "show a token that counts");
    };
    let mut format = Format::Openai;
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        match (name, Format::named(value)) {
            ("format", Some(named)) => format = named,
            ("format", None) => {
                let names = Format::ALL.map(Format::name).join(", ");
                let words = format!("`format` is one of {names}");
                return wrong(StatusCode::BAD_REQUEST, "bad_input", &words);
            }
            _ => {}
        }
    }
    let stock = web.gateway.stock().await;
    if let Some(response) = closed(&stock) {
        return response;
    }
    let view = view(&shown);
    json_of(StatusCode::OK, &exported(&stock, &view, format).document)
}

/// What a view has, as a format tells it. Everything is called what the table of names calls it, but for ids of mcpkg, which lead to it as well
/// as long as the table means nothing else by them.
fn exported(stock: &Stock, view: &View, format: Format) -> Export {
    let list = stock.list(view);
    let mut packages = Vec::new();
    for package in &stock.packages {
        let of_it = list.offers.iter().filter(|(_, offer)| offer.package.id == package.id);
        let actions: Vec<_> = of_it.filter_map(|(_, offer)| offer.declared().cloned()).collect();
        if let (false, Ok(tool)) = (actions.is_empty(), &package.tool) {
            packages.push(manifest::model::Package { actions, ..tool.package.clone() });
        }
    }
    let mut exported = export(&packages, format, &Options::default());
    exported.rename_alone(format, |name| {
        let offer = meant(&list, name)?;
        let is_other = |other: &Arc<Offer>| !Arc::ptr_eq(other, offer);
        let is_renamed = match format {
            Format::Mcpkg => stock.offer(&name.exposed).is_some_and(is_other),
            Format::Openai
            | Format::OpenaiResponses
            | Format::Anthropic
            | Format::Mcp
            | Format::Agentcli => true,
        };
        is_renamed.then(|| offer.name.clone())
    });
    exported
}

/// What a name of an export stands for.
fn meant<'l>(list: &'l List, name: &Name) -> Option<&'l Arc<Offer>> {
    let mut offers = list.offers.iter().map(|(_, offer)| offer);
    offers.find(|offer| offer.package.id == name.package && offer.action == name.action)
}

/// What is called so: by the table of names, or else by the id that a definition of mcpkg has.
fn called(stock: &Stock, view: &View, name: &str) -> Option<Arc<Offer>> {
    let list = stock.list(view);
    if let Some(offer) = list.offer(name) {
        return Some(Arc::clone(offer));
    }
    let exported = exported(stock, view, Format::Mcpkg);
    let name = exported.names.iter().find(|one| one.exposed == name)?;
    meant(&list, name).cloned()
}

/// Calls a tool; the body is what it takes.
pub(super) async fn call(
    State(web): State<Arc<Web>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let Some(shown) = shown(&request) else {
        return wrong(StatusCode::UNAUTHORIZED, "unauthorized", "show a token that counts");
    };
    let traceparent = traceparent(&request);
    let (parts, body) = request.into_parts();
    let body = match read(parts.uri.path(), body).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let text: &[u8] = if body.is_empty() { b"{}" } else { &body };
    let Ok(arguments @ Value::Object(_)) = serde_json::from_slice(text) else {
        return wrong(StatusCode::BAD_REQUEST, "bad_input", "the body is no JSON object");
    };
    let view = view(&shown);
    let stock = web.gateway.stock().await;
    let Some(found) = called(&stock, &view, &name) else {
        return not_there(&web, &stock, &view, &name, &shown).await;
    };
    let stock = web.gateway.shelf.stock_with(stock, &found.package).await;
    let Some(offer) = called(&stock, &view, &name) else {
        return not_there(&web, &stock, &view, &name, &shown).await;
    };
    let arguments = call::without_needless(arguments, &offer.definition["inputSchema"]);
    let by = By { name: shown.name, folder: shown.folder, traceparent };
    let made = call::make(&web.gateway, &stock, &offer, arguments, by).await;
    answered(made, &offer, web.gateway.console.as_deref())
}

/// Why nothing is called so. What cannot be called is written down.
async fn not_there(web: &Web, stock: &Stock, view: &View, name: &str, shown: &Shown) -> Response {
    if let Some((package, action)) = stock.out_of_reach(view, name).await {
        refusal::note_out_of_reach(stock, &package, (name, &action), ("http", &shown.name));
        return out_of_reach(web, &package);
    }
    let words = format!("there is no tool `{name}`");
    closed(stock).unwrap_or_else(|| wrong(StatusCode::NOT_FOUND, "unknown_tool", &words))
}

/// A package that cannot be called, as that is told over HTTP.
fn out_of_reach(web: &Web, package: &Shelved) -> Response {
    let told = refusal::out_of_reach(package, web.gateway.console.as_deref());
    let status =
        if package.is_enabled { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::FORBIDDEN };
    json_of(status, &json!({ "error": told }))
}

/// What came of a call, as it is told over HTTP.
pub(super) fn answered(
    made: Result<Output, CallError>,
    offer: &Offer,
    console: Option<&str>,
) -> Response {
    match made {
        Ok(output) => json_of(StatusCode::OK, &json!({ "result": output.into_value() })),
        Err(error) => {
            let told = refusal::value(&error, &offer.tool, console);
            json_of(status_of(&error), &json!({ "error": told }))
        }
    }
}

/// The status of a failure.
pub(super) fn status_of(error: &CallError) -> StatusCode {
    match &error.kind {
        Kind::BadInput => StatusCode::BAD_REQUEST,
        Kind::Unknown => StatusCode::NOT_FOUND,
        Kind::Denied
        | Kind::Distrusted
        | Kind::Blocked(_)
        | Kind::NeedsApproval(_)
        | Kind::NeedsLogin => StatusCode::FORBIDDEN,
        Kind::MissingInput | Kind::BadChain | Kind::Unfinished => StatusCode::CONFLICT,
        Kind::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Kind::Failed | Kind::TooMuchOutput | Kind::BadOutput | Kind::Cancelled => {
            StatusCode::BAD_GATEWAY
        }
    }
}

/// What a token shows.
pub(super) fn view(shown: &Shown) -> View {
    shown.profile.clone().map_or(View::All, View::Profile)
}

/// The trace that a request is in.
pub(super) fn traceparent(request: &Request) -> Option<String> {
    request.headers().get("traceparent").and_then(|value| value.to_str().ok()).map(str::to_owned)
}

pub(super) fn shown(request: &Request) -> Option<Shown> {
    request.extensions().get::<Shown>().cloned()
}

pub(super) fn json_of(status: StatusCode, document: &Value) -> Response {
    let mut response = Response::new(Body::from(document.to_string()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// What is told while nothing can be called.
fn closed(stock: &Stock) -> Option<Response> {
    let (_, words) = stock.trouble.as_ref()?;
    Some(wrong(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &closing(words)))
}

/// A request that cannot be answered.
pub(super) fn wrong(status: StatusCode, code: &str, message: &str) -> Response {
    json_of(status, &json!({ "error": { "code": code, "message": message } }))
}
