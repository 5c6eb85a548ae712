//! `/capability`: what is installed as capabilities, found, called, installed and removed.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use host::{CallError, Tool};
use install::catalog;
use manifest::model::{Action, Json, Package as Model};
use search::Query;
use serde_json::{Value, json};

use super::plain::{answered, json_of, out_of_reach, reach, shown, traceparent, wrong};
use super::{Shown, Web, read};
use crate::bring;
use crate::call::{self, By};
use crate::refusal;
use crate::shelf::{Shelved, Stock};
use crate::steward::{Deed, Trouble};
use crate::token::Role;
use crate::view::View;

/// How many are found unless fewer are wanted.
const FOUND: usize = 20;
const MOST_FOUND: usize = 100;

/// Everything that is installed.
pub(super) async fn list(State(web): State<Arc<Web>>, request: Request) -> Response {
    let Some(shown) = shown(&request) else { return unknown_caller() };
    let stock = web.gateway.stock().await;
    let reach = reach(&shown);
    let known = stock.packages.iter().filter(|one| reach.knows(&stock.policy, one));
    let all: Vec<_> = known.map(|one| to_value(&stock, &reach, one)).collect();
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
        Some(package) => json_of(StatusCode::OK, &in_full(&stock, &reach(&shown), &package)),
        None => no_such(&id),
    }
}

/// Those that words describe.
pub(super) async fn search(State(web): State<Arc<Web>>, request: Request) -> Response {
    let (shown, asked) = match asked(request, Role::Agent).await {
        Ok(asked) => asked,
        Err(response) => return response,
    };
    let words = match text(&asked, "query") {
        Ok(Some(words)) => words,
        Ok(None) => return missing("query"),
        Err(response) => return response,
    };
    let limit = match &asked["limit"] {
        Value::Null => Some(FOUND),
        limit => limit.as_u64().and_then(|limit| usize::try_from(limit).ok()),
    };
    let Some(limit) = limit.filter(|limit| (1..=MOST_FOUND).contains(limit)) else {
        let words = format!("`limit` is a whole number from 1 to {MOST_FOUND}");
        return wrong(StatusCode::BAD_REQUEST, "bad_input", &words);
    };
    let stock = web.gateway.stock().await;
    let found = matching(&stock, &shown, words, limit).await;
    let all: Vec<_> = found.iter().map(|one| to_value(&stock, &reach(&shown), one)).collect();
    json_of(StatusCode::OK, &json!({ "capabilities": all }))
}

/// The one that is meant: by its id, or the best that words describe.
pub(super) async fn resolve(State(web): State<Arc<Web>>, request: Request) -> Response {
    let (shown, asked) = match asked(request, Role::Agent).await {
        Ok(asked) => asked,
        Err(response) => return response,
    };
    let stock = web.gateway.stock().await;
    let (package, meant) = match (text(&asked, "id"), text(&asked, "query")) {
        (Err(response), _) | (_, Err(response)) => return response,
        (Ok(Some(id)), _) => (found(&stock, &shown, id), id),
        (Ok(None), Ok(Some(words))) => (matching(&stock, &shown, words, 1).await.pop(), words),
        (Ok(None), Ok(None)) => return missing("id"),
    };
    match package {
        Some(package) => {
            let told = in_full(&stock, &reach(&shown), &package);
            json_of(StatusCode::OK, &json!({ "capability": told }))
        }
        None => no_such(meant),
    }
}

/// A call.
pub(super) async fn run(State(web): State<Arc<Web>>, request: Request) -> Response {
    let traceparent = traceparent(&request);
    let (shown, mut asked) = match asked(request, Role::Agent).await {
        Ok(asked) => asked,
        Err(response) => return response,
    };
    let (id, action) = match (text(&asked, "id"), text(&asked, "action")) {
        (Ok(Some(id)), Ok(action)) => (id.to_owned(), action.map(str::to_owned)),
        (Ok(None), _) => return missing("id"),
        (Err(response), _) | (_, Err(response)) => return response,
    };
    let stock = web.gateway.stock().await;
    let Some(package) = found(&stock, &shown, &id) else { return no_such(&id) };
    let stock = web.gateway.shelf.stock_with(stock, &package).await;
    let Some(package) = found(&stock, &shown, &id) else { return no_such(&id) };
    if !package.is_enabled || package.tool.is_err() {
        let action = action.as_deref().unwrap_or(&id);
        refusal::note_out_of_reach(&stock, &package, (&id, action), ("http", &shown.name));
    }
    if !package.is_enabled {
        // The words are those of the contract.
        let mut told = refusal::out_of_reach(&package, web.gateway.console_told());
        told["message"] = policy::Denial::Disabled.to_string().into();
        return json_of(StatusCode::FORBIDDEN, &json!({ "error": told }));
    }
    if package.tool.is_err() {
        return out_of_reach(&web, &package);
    }
    let list = stock.list(&reach(&shown));
    let of_it = list.offers.iter().map(|(_, offer)| offer);
    let offers: Vec<_> = of_it.filter(|offer| offer.package.id == package.id).cloned().collect();
    let offer = match (action.as_deref(), offers.as_slice()) {
        (Some(name), all) => all.iter().find(|offer| offer.action == name).cloned(),
        (None, [only]) => Some(Arc::clone(only)),
        (None, []) => None,
        (None, all) => {
            let names: Vec<_> = all.iter().map(|offer| offer.action.as_str()).collect();
            let words = format!("`action` says which of {}", names.join(", "));
            return wrong(StatusCode::BAD_REQUEST, "bad_input", &words);
        }
    };
    let Some(offer) = offer else {
        return wrong(StatusCode::NOT_FOUND, "unknown_tool", "there is no such action");
    };
    let input = match asked.get_mut("input").map(Value::take) {
        None | Some(Value::Null) => json!({}),
        Some(input) => input,
    };
    let by = By { name: shown.name, folder: shown.folder, traceparent };
    let made = call::make(&web.gateway, &stock, &offer, input, by).await;
    answered(made.map_err(in_fixed_words), &offer, &web.gateway)
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
        Ok((shown, _)) => done_for_owner(bring::deed(&web.gateway, &shown.name, Deed::Reset).await),
        Err(response) => response,
    }
}

/// What came of a deed.
fn done(came: Result<Value, Trouble>) -> Response {
    came_of(came, bring::told)
}

/// The same of what its owner asked for.
pub(super) fn done_for_owner(came: Result<Value, Trouble>) -> Response {
    came_of(came, bring::told_to_owner)
}

fn came_of(came: Result<Value, Trouble>, told: fn(&Trouble) -> Value) -> Response {
    match came {
        Ok(done) => json_of(StatusCode::OK, &done),
        Err(trouble) => {
            let status = match trouble.code.as_str() {
                "bad_input" => StatusCode::BAD_REQUEST,
                "denied" => StatusCode::FORBIDDEN,
                "not_found" => StatusCode::NOT_FOUND,
                _ => StatusCode::CONFLICT,
            };
            json_of(status, &json!({ "error": told(&trouble) }))
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
        let role = least.name();
        let told = json!({
            "code": "denied",
            "message": format!("this takes a token with the role `{role}`"),
            "who": "owner",
            "grant": format!("The owner makes one: haft token new NAME --role {role}"),
            "retry": "Do not try again with this token.",
        });
        return Err(json_of(StatusCode::FORBIDDEN, &json!({ "error": told })));
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

pub(super) fn found(stock: &Stock, shown: &Shown, id: &str) -> Option<Arc<Shelved>> {
    let package = stock.package(id)?;
    reach(shown).knows(&stock.policy, package).then(|| Arc::clone(package))
}

async fn matching(stock: &Stock, shown: &Shown, words: &str, limit: usize) -> Vec<Arc<Shelved>> {
    let list = stock.list(&reach(shown));
    let page = stock.index().await.search(&Query::new(words).page(0, stock.offers.len().max(1)));
    let mut packages: Vec<Arc<Shelved>> = Vec::new();
    for offer in page.hits.iter().filter_map(|hit| list.offer(&hit.key)) {
        if packages.len() < limit && !packages.iter().any(|one| one.id == offer.package.id) {
            packages.push(Arc::clone(&offer.package));
        }
    }
    packages
}

/// A package as this contract tells it, with those of its actions that are shown.
fn to_value(stock: &Stock, view: &View, package: &Shelved) -> Value {
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
            let shown = shown_of(stock, view, package, tool);
            told["actions"] = shown.iter().map(|one| &*one.name).collect();
        }
        Err(words) => told["unavailable"] = words.clone().into(),
    }
    told
}

/// The same with what it takes and answers, may touch and runs in, as a manifest of this contract has it.
fn in_full(stock: &Stock, view: &View, package: &Shelved) -> Value {
    let mut told = to_value(stock, view, package);
    let Ok(tool) = &package.tool else { return told };
    let actions = shown_of(stock, view, package, tool);
    let described: Vec<_> = actions
        .iter()
        .map(|action| {
            let value = |schema: &Option<Json>| schema.as_ref().map(Json::value);
            json!({
                "action": action.name,
                "description": action.description.as_ref().or(action.summary.as_ref()),
                "inputs": value(&action.input).unwrap_or_else(|| json!({ "type": "object" })),
                "outputs": value(&action.output).unwrap_or_else(|| json!({})),
            })
        })
        .collect();
    let shown = Model { actions: actions.into_iter().cloned().collect(), ..tool.package.clone() };
    let mut said = catalog::described(&shown, stock.policy.sandbox.memory);
    for key in ["interfaces", "permissions", "runtime"] {
        told[key] = said[key].take();
    }
    told["digest"] = tool.digest.as_ref().unwrap_or(&tool.package.raw_sha256).clone().into();
    told["described"] = described.into();
    told
}

fn shown_of<'t>(stock: &Stock, view: &View, package: &Shelved, tool: &'t Tool) -> Vec<&'t Action> {
    let is_shown = |one: &&Action| view.holds(&stock.policy, &package.id, &one.name);
    tool.package.actions.iter().filter(is_shown).collect()
}

/// A text that was asked for by a name, where there is one.
pub(super) fn text<'a>(asked: &'a Value, name: &str) -> Result<Option<&'a str>, Response> {
    match &asked[name] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(wrong(StatusCode::BAD_REQUEST, "bad_input", &format!("`{name}` is no text"))),
    }
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
