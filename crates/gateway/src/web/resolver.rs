//! `/capability`: what is installed as capabilities, found, called, installed and removed.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use host::CallError;
use manifest::model::Package as Model;
use search::Query;
use serde_json::{Value, json};

use super::plain::{answered, json_of, shown, traceparent, view, wrong};
use super::{Shown, Web, read};
use crate::bring;
use crate::call::{self, By};
use crate::offer::Offer;
use crate::refusal;
use crate::shelf::{Shelved, Stock};
use crate::steward::{Deed, Trouble};
use crate::token::Role;

/// How many are found unless fewer are wanted.
const FOUND: usize = 20;
const MOST_FOUND: usize = 100;

/// Everything that is installed.
pub(super) async fn list(State(web): State<Arc<Web>>, request: Request) -> Response {
    let Some(shown) = shown(&request) else { return unknown_caller() };
    let stock = web.gateway.stock().await;
    let all: Vec<_> = of_view(&stock, &shown).iter().map(|one| to_value(one)).collect();
    json_of(StatusCode::OK, &json!({ "capabilities": all }))
}

/// One of them.
pub(super) async fn get(
    State(web): State<Arc<Web>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let Some(shown) = shown(&request) else { return unknown_caller() };
    let stock = web.gateway.stock().await;
    match found(&stock, &shown, &id) {
        Some(package) => json_of(StatusCode::OK, &to_value(&package)),
        None => no_such(&id),
    }
}

/// Those that words describe.
pub(super) async fn search(State(web): State<Arc<Web>>, request: Request) -> Response {
    let (shown, asked) = match asked(request, Role::Agent).await {
        Ok(asked) => asked,
        Err(response) => return response,
    };
    let Some(words) = asked["query"].as_str() else { return missing("query") };
    let limit = asked["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok());
    let stock = web.gateway.stock().await;
    let limit = limit.unwrap_or(FOUND).clamp(1, MOST_FOUND);
    let found = matching(&stock, &shown, words, limit).await;
    let all: Vec<_> = found.iter().map(|one| to_value(one)).collect();
    json_of(StatusCode::OK, &json!({ "capabilities": all }))
}

/// The one that is meant: by its id, or the best that words describe.
pub(super) async fn resolve(State(web): State<Arc<Web>>, request: Request) -> Response {
    let (shown, asked) = match asked(request, Role::Agent).await {
        Ok(asked) => asked,
        Err(response) => return response,
    };
    let stock = web.gateway.stock().await;
    if let Some(id) = asked["id"].as_str() {
        return match found(&stock, &shown, id) {
            Some(package) => json_of(StatusCode::OK, &json!({ "capability": to_value(&package) })),
            None => no_such(id),
        };
    }
    let Some(words) = asked["query"].as_str() else { return missing("id") };
    match matching(&stock, &shown, words, 1).await.first() {
        Some(package) => json_of(StatusCode::OK, &json!({ "capability": to_value(package) })),
        None => no_such(words),
    }
}

/// A call.
pub(super) async fn run(State(web): State<Arc<Web>>, request: Request) -> Response {
    let traceparent = traceparent(&request);
    let (shown, mut asked) = match asked(request, Role::Agent).await {
        Ok(asked) => asked,
        Err(response) => return response,
    };
    let Some(id) = asked["id"].as_str().map(str::to_owned) else { return missing("id") };
    let stock = web.gateway.stock().await;
    let Some(package) = found(&stock, &shown, &id) else { return no_such(&id) };
    if !package.is_enabled || package.tool.is_err() {
        let action = asked["action"].as_str().unwrap_or(&id);
        refusal::note_out_of_reach(&stock, &package, (&id, action), ("http", &shown.name));
    }
    if !package.is_enabled {
        // The words are those of the contract.
        let mut told = refusal::out_of_reach(&package, web.gateway.console.as_deref());
        told["message"] = policy::Denial::Disabled.to_string().into();
        return json_of(StatusCode::FORBIDDEN, &json!({ "error": told }));
    }
    if let Err(words) = &package.tool {
        return wrong(StatusCode::CONFLICT, "unavailable", words);
    }
    let stock = web.gateway.shelf.stock_with(stock, &package).await;
    let offers: Vec<_> =
        stock.offers.iter().filter(|offer| offer.package.id == package.id).cloned().collect();
    let offer = match (asked["action"].as_str(), offers.as_slice()) {
        (Some(name), all) => all.iter().find(|offer| offer.action == name).cloned(),
        (None, [only]) => Some(Arc::clone(only)),
        (None, all) => {
            let names: Vec<_> = all.iter().map(|offer| offer.action.as_str()).collect();
            let words = format!("`action` says which of {}", names.join(", "));
            return wrong(StatusCode::BAD_REQUEST, "bad_input", &words);
        }
    };
    let Some(offer) = offer.filter(|offer| is_shown(&stock, &shown, offer)) else {
        return wrong(StatusCode::NOT_FOUND, "unknown_tool", "there is no such action");
    };
    let input = match asked.get_mut("input").map(Value::take) {
        None | Some(Value::Null) => json!({}),
        Some(input) => input,
    };
    let by = By { name: shown.name, folder: shown.folder, traceparent };
    let made = call::make(&web.gateway, &stock, &offer, input, by).await;
    answered(made.map_err(in_fixed_words), &offer, web.gateway.console.as_deref())
}

/// Installs a package of a registry, as far as the policy lets it in without a question.
pub(super) async fn install(State(web): State<Arc<Web>>, request: Request) -> Response {
    let (shown, asked) = match asked(request, Role::Installer).await {
        Ok(asked) => asked,
        Err(response) => return response,
    };
    let Some(id) = asked["id"].as_str() else { return missing("id") };
    done(bring::install(&web.gateway, &shown.name, id).await)
}

/// Removes a package.
pub(super) async fn remove(
    State(web): State<Arc<Web>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let (shown, _) = match asked(request, Role::Installer).await {
        Ok(asked) => asked,
        Err(response) => return response,
    };
    let stock = web.gateway.stock().await;
    let Some(package) = found(&stock, &shown, &id) else { return no_such(&id) };
    let deed = Deed::Remove { id: package.id.clone() };
    done(bring::deed(&web.gateway, &shown.name, deed).await)
}

/// Takes away everything that was installed.
pub(super) async fn reset(State(web): State<Arc<Web>>, request: Request) -> Response {
    match asked(request, Role::Owner).await {
        Ok((shown, _)) => done(bring::deed(&web.gateway, &shown.name, Deed::Reset).await),
        Err(response) => response,
    }
}

/// What came of a deed.
pub(super) fn done(came: Result<Value, Trouble>) -> Response {
    match came {
        Ok(told) => json_of(StatusCode::OK, &told),
        Err(Trouble { code, message, causes, hints }) => {
            let (status, code) = match code.as_str() {
                "" => (StatusCode::CONFLICT, "unavailable"),
                "bad_input" => (StatusCode::BAD_REQUEST, "bad_input"),
                "denied" => (StatusCode::FORBIDDEN, "denied"),
                "not_found" => (StatusCode::NOT_FOUND, "not_found"),
                code => (StatusCode::CONFLICT, code),
            };
            let error =
                json!({ "code": code, "message": message, "causes": causes, "hints": hints });
            json_of(status, &json!({ "error": error }))
        }
    }
}

/// Some refusals have words of their own in this contract.
fn in_fixed_words(mut error: CallError) -> CallError {
    if matches!(error.kind, host::Kind::Blocked(_)) {
        error.message = format!("network denied by capability permissions: {}", error.message);
    }
    error
}

/// Reads a request of somebody who may do that much.
pub(super) async fn asked(request: Request, least: Role) -> Result<(Shown, Value), Response> {
    let shown = shown(&request).ok_or_else(unknown_caller)?;
    if shown.role < least {
        let words = format!("this takes a token with the role `{}`", least.name());
        return Err(wrong(StatusCode::FORBIDDEN, "denied", &words));
    }
    let (parts, body) = request.into_parts();
    let body = read(parts.uri.path(), body).await?;
    if body.is_empty() {
        return Ok((shown, json!({})));
    }
    match serde_json::from_slice(&body) {
        Ok(asked @ Value::Object(_)) => Ok((shown, asked)),
        _ => Err(wrong(StatusCode::BAD_REQUEST, "bad_input", "the body is no JSON object")),
    }
}

fn of_view(stock: &Stock, shown: &Shown) -> Vec<Arc<Shelved>> {
    let list = stock.list(&view(shown));
    let is_shown = |package: &&Arc<Shelved>| {
        shown.profile.is_none()
            || list.offers.iter().any(|(_, offer)| offer.package.id == package.id)
    };
    stock.packages.iter().filter(is_shown).cloned().collect()
}

pub(super) fn found(stock: &Stock, shown: &Shown, id: &str) -> Option<Arc<Shelved>> {
    let package = stock.package(id)?;
    of_view(stock, shown).into_iter().find(|one| one.id == package.id)
}

fn is_shown(stock: &Stock, shown: &Shown, offer: &Offer) -> bool {
    stock.list(&view(shown)).offer(&offer.name).is_some()
}

async fn matching(stock: &Stock, shown: &Shown, words: &str, limit: usize) -> Vec<Arc<Shelved>> {
    let list = stock.list(&view(shown));
    let page = stock.index().await.search(&Query::new(words).page(0, stock.offers.len().max(1)));
    let mut packages: Vec<Arc<Shelved>> = Vec::new();
    for offer in page.hits.iter().filter_map(|hit| list.offer(&hit.key)) {
        if packages.len() < limit && !packages.iter().any(|one| one.id == offer.package.id) {
            packages.push(Arc::clone(&offer.package));
        }
    }
    packages
}

/// A package as this contract tells it.
fn to_value(package: &Shelved) -> Value {
    let mut told = json!({
        "id": package.id,
        "version": package.version,
        "enabled": package.is_enabled,
        "taken_back": package.is_taken_back,
    });
    match &package.tool {
        Ok(tool) => {
            let Model { description, summary, kind, requires_oauth, .. } = &tool.package;
            told["type"] = kind.name().into();
            told["description"] = description.clone().or(summary.clone()).into();
            told["trust_level"] = tool.trust().name().into();
            told["requires_oauth"] = (*requires_oauth).into();
            told["actions"] = tool.package.actions.iter().map(|one| &*one.name).collect();
        }
        Err(words) => told["unavailable"] = words.clone().into(),
    }
    told
}

fn unknown_caller() -> Response {
    wrong(StatusCode::UNAUTHORIZED, "unauthorized", "show a token that counts")
}

pub(super) fn missing(name: &str) -> Response {
    wrong(StatusCode::BAD_REQUEST, "bad_input", &format!("`{name}` is missing"))
}

pub(super) fn no_such(id: &str) -> Response {
    wrong(StatusCode::NOT_FOUND, "unknown_tool", &format!("there is no capability `{id}`"))
}
