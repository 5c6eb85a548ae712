//! `/v1`: tools for an agent loop that speaks no MCP. Definitions as a model takes them, and a request for each call.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use host::{CallError, Kind, Output, TraceContext};
use ledger::Time;
use manifest::export::{Context, Export, Format, Name, Options, export};
use prove::measured::All;
use serde_json::{Value, json};

use super::{Shown, Web, read};
use crate::call::{self, By};
use crate::gateway::Gateway;
use crate::offer::Offer;
use crate::refusal;
use crate::shelf::{Shelved, Stock};
use crate::view::{List, View};
use crate::watch::context_of_head;

/// How many tools did not fit into the budget; the definitions have no place for it.
const LEFT_OUT: HeaderName = HeaderName::from_static("haft-left-out");

/// The definitions of all tools, in one of the formats.
pub(super) async fn tools(State(web): State<Arc<Web>>, request: Request) -> Response {
    let (Some(shown), query) = (shown(&request), request.uri().query().unwrap_or_default()) else {
        return wrong(StatusCode::UNAUTHORIZED, "unauthorized", "show a token that counts");
    };
    let wanted = match Wanted::read(query) {
        Ok(wanted) => wanted,
        Err(words) => return wrong(StatusCode::BAD_REQUEST, "bad_input", &words),
    };
    let stock = web.gateway.stock().await;
    let view = match (shown.profile, wanted.profile) {
        (Some(own), Some(other)) if own != other => {
            let grant =
                "Its owner makes a token for another: `haft token new NAME --profile PROFILE`.";
            return denied("this token is for one profile alone", grant);
        }
        (Some(name), _) => View::Profile(name),
        (None, Some(name)) if stock.is_without(&name) => {
            return wrong(StatusCode::NOT_FOUND, "not_found", "there is no such profile");
        }
        (None, Some(name)) => View::Profile(name),
        (None, None) => View::Usual,
    };
    if let Some(response) = closed(&stock, &view) {
        return response;
    }
    let format = wanted.format;
    let unavailable = |words: &str| wrong(StatusCode::SERVICE_UNAVAILABLE, "unavailable", words);
    let measured = if wanted.context || wanted.budget.is_some() {
        stock.measured().await
    } else {
        Ok(All::default())
    };
    let measured = match measured {
        Ok(measured) => measured,
        Err(error) => return unavailable(&error.to_string()),
    };
    // What is known of tools is read from files.
    let steward = Arc::clone(web.gateway.shelf.steward());
    let write = move || {
        let tools: Vec<_> =
            stock.packages.iter().filter_map(|one| one.tool.as_deref().ok()).collect();
        let context = wanted.context.then(|| steward.context(&tools, &measured));
        let order = wanted.budget.map(|_| steward.order(&measured)).transpose()?;
        let mut exported = exported(&stock, &view, format, order.as_deref(), context.as_ref());
        let spent = wanted.budget.map(|budget| exported.fit(budget));
        Ok::<_, String>((exported.document, spent))
    };
    match tokio::task::spawn_blocking(write).await {
        Ok(Ok((document, spent))) => {
            let mut response = json_of(StatusCode::OK, &document);
            if let Some(spent) = spent {
                let left_out = HeaderValue::from(spent.left_out.len());
                response.headers_mut().insert(LEFT_OUT, left_out);
            }
            response
        }
        Ok(Err(words)) => unavailable(&words),
        Err(error) => unavailable(&error.to_string()),
    }
}

/// Which definitions somebody asks for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    format: Format,
    /// Only what belongs to a profile.
    profile: Option<String>,
    /// With the examples of each, and how its tests went.
    context: bool,
    /// Only the best that take so many tokens together.
    budget: Option<u64>,
}

impl Wanted {
    /// Reads what stands behind the `?` of an address. What nobody knows is refused: it would have been meant.
    fn read(query: &str) -> Result<Self, String> {
        let mut wanted =
            Self { format: Format::Openai, profile: None, context: false, budget: None };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "format" => {
                    let names = || Format::ALL.map(Format::name).join(", ");
                    wanted.format = Format::named(value)
                        .ok_or_else(|| format!("`format` is one of {}", names()))?;
                }
                "profile" => wanted.profile = Some(value.to_owned()),
                "context" => {
                    wanted.context =
                        value.parse().map_err(|_| "`context` is true or false".to_owned())?;
                }
                "budget" => {
                    let budget = value.parse().ok().filter(|budget| *budget > 0);
                    let budget = budget.ok_or("`budget` is a number of tokens, 1 or more")?;
                    wanted.budget = Some(budget);
                }
                _ => return Err("it takes `format`, `profile`, `context` and `budget`".to_owned()),
            }
        }
        if wanted.context && wanted.format != Format::Mcpkg {
            let name = wanted.format.name();
            return Err(format!("`context` goes with mcpkg, and {name} has no place for it"));
        }
        Ok(wanted)
    }
}

/// What a view has, as a format tells it. Everything is called what the table of names calls it, but for ids of mcpkg, which lead to it as well
/// as long as the table means nothing else by them. What is in an order comes first, in that order.
fn exported(
    stock: &Stock,
    view: &View,
    format: Format,
    order: Option<&[String]>,
    context: Option<&BTreeMap<String, Context>>,
) -> Export {
    let list = stock.list(view);
    let mut shelved: Vec<_> = stock.packages.iter().collect();
    if let Some(order) = order {
        let place = |id: &str| order.iter().position(|one| one == id).unwrap_or(order.len());
        shelved.sort_by_cached_key(|one| place(&one.id));
    }
    let mut packages = Vec::new();
    for package in shelved {
        let of_it = list.offers.iter().filter(|(_, offer)| offer.package.id == package.id);
        let actions: Vec<_> = of_it.filter_map(|(_, offer)| offer.told()).collect();
        if let (false, Ok(tool)) = (actions.is_empty(), &package.tool) {
            packages.push(manifest::model::Package { actions, ..tool.package.clone() });
        }
    }
    let mut exported = export(&packages, format, &Options { context, ..Options::default() });
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
    let exported = exported(stock, view, Format::Mcpkg, None, None);
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
    let view = reach(&shown);
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
    answered(made, &offer, &web.gateway)
}

/// Why nothing is called so. What cannot be called is written down.
async fn not_there(web: &Web, stock: &Stock, view: &View, name: &str, shown: &Shown) -> Response {
    if let Some((package, action)) = stock.out_of_reach(view, name).await {
        refusal::note_out_of_reach(stock, &package, (name, &action), ("http", &shown.name));
        return out_of_reach(web, &package);
    }
    if let Some(response) = closed(stock, view) {
        return response;
    }
    let near = match stock.near(&stock.list(view), name).await.as_slice() {
        [] => "/v1/tools.json lists those that there are".to_owned(),
        near => format!("did you mean {}?", near.join(", ")),
    };
    wrong(StatusCode::NOT_FOUND, "unknown_tool", &format!("there is no tool `{name}`; {near}"))
}

/// A package that cannot be called, as that is told over HTTP.
pub(super) fn out_of_reach(web: &Web, package: &Shelved) -> Response {
    let told = refusal::out_of_reach(package, web.gateway.console_told());
    let status =
        if package.is_enabled { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::FORBIDDEN };
    json_of(status, &json!({ "error": told }))
}

/// What came of a call, as it is told over HTTP.
pub(super) fn answered(
    made: Result<Output, CallError>,
    offer: &Offer,
    gateway: &Gateway,
) -> Response {
    match made {
        Ok(output) => json_of(StatusCode::OK, &json!({ "result": output.into_value() })),
        Err(error) => {
            let told = refusal::value(&error, &offer.tool, gateway);
            let mut response = json_of(status_of(&error), &json!({ "error": told }));
            if let Some(free) = refusal::free_at(&error).and_then(Time::parse) {
                let left = free.unix_millis() - host::records::now().unix_millis();
                let seconds = u64::try_from(left).unwrap_or_default().div_ceil(1000);
                response.headers_mut().insert(RETRY_AFTER, seconds.into());
            }
            response
        }
    }
}

/// The status of a failure.
pub(super) fn status_of(error: &CallError) -> StatusCode {
    match &error.kind {
        _ if refusal::free_at(error).is_some() => StatusCode::TOO_MANY_REQUESTS,
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

/// What a token may look at: what is shown first where none is named is no wall.
pub(super) fn reach(shown: &Shown) -> View {
    shown.profile.clone().map_or(View::All, View::Profile)
}

/// The trace that a request is in.
pub(super) fn traceparent(request: &Request) -> Option<TraceContext> {
    context_of_head(request.headers())
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
fn closed(stock: &Stock, view: &View) -> Option<Response> {
    let words = stock.closed_to(view)?;
    let told = json!({ "error": refusal::closed(&words) });
    Some(json_of(StatusCode::SERVICE_UNAVAILABLE, &told))
}

/// A request that cannot be answered.
pub(super) fn wrong(status: StatusCode, code: &str, message: &str) -> Response {
    let retry = match status {
        StatusCode::UNAUTHORIZED => "Try again with a token that counts.",
        StatusCode::FORBIDDEN => "Do not try again: it stays refused.",
        _ if status.is_client_error() && status != StatusCode::CONFLICT => {
            "Try again with something else."
        }
        _ => "Try again later.",
    };
    let mut error = json!({ "code": code, "message": message, "retry": retry });
    let grant = match status {
        StatusCode::UNAUTHORIZED => Some("Its owner makes a token: `haft token new NAME`."),
        StatusCode::FORBIDDEN => {
            Some("Its owner says whom it answers as, and to whose pages: `haft serve --host NAME`.")
        }
        _ => None,
    };
    if let Some(grant) = grant {
        error["who"] = "owner".into();
        error["grant"] = grant.into();
    }
    json_of(status, &json!({ "error": error }))
}

/// What may not be done with a token, and what its owner can do about that.
pub(super) fn denied(message: &str, grant: &str) -> Response {
    let retry = "Do not try again: it stays refused.";
    let error = json!({ "code": "denied", "message": message, "who": "owner", "grant": grant, "retry": retry });
    json_of(StatusCode::FORBIDDEN, &json!({ "error": error }))
}
