//! `/capability/oauth`: signing in for a capability, with a browser that is anywhere. Only for an owner's token: an agent calls, and grants
//! nothing.
//!
//! The page, the proof of the code and the tokens are those of `haft login`. Whoever begins it is told a page and its state, and brings back
//! what the browser was sent on with; no answer has anything secret in it.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use policy::policy::Presence;
use serde_json::{Map, Value};
use vault::Secret;
use zeroize::Zeroizing;

use super::Web;
use super::plain::{denied, json_of, wrong};
use super::resolver::{asked, done_for_owner, found, missing, no_such};
use crate::sign_ins::PATIENCE;
use crate::steward::{By, SignIn, SigningIn, Trouble};
use crate::token::Role;

/// Begins: the page for the browser of the owner, and its state.
pub(super) async fn start(State(web): State<Arc<Web>>, request: Request) -> Response {
    let (shown, asked) = match asked(request, Role::Owner).await {
        Ok(asked) => asked,
        Err(response) => return response,
    };
    let Some(id) = asked["id"].as_str() else { return missing("id") };
    let stock = web.gateway.stock().await;
    let Some(package) = found(&stock, &shown, id) else { return no_such(id) };
    if stock.policy.approval.owner_presence != Presence::Any {
        let grant = format!("Its owner signs in at a terminal: `haft login {}`.", package.id);
        return denied("the policy wants more than a token for this", &grant);
    }
    let wanted = match wanted(package.id.clone(), &asked) {
        Ok(wanted) => wanted,
        Err(words) => return wrong(StatusCode::BAD_REQUEST, "bad_input", &words),
    };
    let (steward, by) = (Arc::clone(web.gateway.shelf.steward()), By::Token(shown.name.clone()));
    let begun = aside(move || steward.sign_in(&by, &wanted)).await;
    let begun = match begun {
        Ok(begun) => begun,
        Err(trouble) => return done_for_owner(Err(trouble)),
    };
    let mut told = begun.told().clone();
    if let Some(told) = told.as_object_mut() {
        told.remove("event");
        told.insert("id".to_owned(), package.id.clone().into());
        told.insert("expires_in".to_owned(), PATIENCE.as_secs().into());
    }
    let state = told["state"].as_str().unwrap_or_default();
    match web.gateway.sign_ins.keep(begun, state, shown.name, Instant::now()) {
        Ok(()) => json_of(StatusCode::OK, &told),
        Err(_) => wrong(StatusCode::CONFLICT, "busy", "too many wait for a browser already"),
    }
}

/// Goes on with what the browser was sent back with: the code becomes tokens, which are kept and not told.
pub(super) async fn complete(State(web): State<Arc<Web>>, request: Request) -> Response {
    let (shown, asked) = match asked(request, Role::Owner).await {
        Ok(asked) => asked,
        Err(response) => return response,
    };
    let Some(state) = asked["state"].as_str() else { return missing("state") };
    if !asked["code"].is_string() && !asked["error"].is_string() {
        return missing("code");
    }
    let Some(begun) = web.gateway.sign_ins.take(state, &shown.name, Instant::now()) else {
        let words = "nobody waits for this `state`: it was used, it is over, or another began it";
        return wrong(StatusCode::NOT_FOUND, "unknown_state", words);
    };
    match redirected(begun.as_ref(), &asked) {
        Ok(redirected) => done_for_owner(aside(move || begun.finish(&redirected)).await),
        Err(error) => wrong(StatusCode::BAD_REQUEST, "bad_input", &error.to_string()),
    }
}

/// What somebody wants to sign in for.
fn wanted(id: String, asked: &Value) -> Result<SignIn, String> {
    let text = |name: &str| match &asked[name] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        _ => Err(format!("`{name}` is no text")),
    };
    let texts = |name: &str| match &asked[name] {
        Value::Null => Ok(Vec::new()),
        Value::Array(all) if all.iter().all(Value::is_string) => {
            Ok(all.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        _ => Err(format!("`{name}` is no list of texts")),
    };
    let client_secret = text("client_secret")?.map(Secret::new).transpose();
    let client_secret = client_secret.map_err(|error| format!("`client_secret`: {error}"))?;
    // It is one line of what is typed.
    if client_secret.as_ref().is_some_and(|secret| secret.expose().contains('\n')) {
        return Err("`client_secret` is one line".to_owned());
    }
    let client_id = text("client_id")?;
    if client_secret.is_some() && client_id.is_none() {
        return Err("`client_secret` goes with `client_id`".to_owned());
    }
    Ok(SignIn {
        id,
        scopes: texts("scopes")?,
        issuer: text("issuer")?,
        secret: text("secret")?,
        resource: text("resource")?,
        hosts: texts("allow_hosts")?,
        client_id,
        client_secret,
        redirect: text("redirect_uri")?,
    })
}

/// The address that the browser was sent to, as it must have been.
fn redirected(begun: &dyn SigningIn, asked: &Value) -> Result<Secret, vault::secret::SecretError> {
    let mut address =
        Zeroizing::new(begun.told()["redirect_uri"].as_str().unwrap_or_default().to_owned());
    let empty = Map::new();
    let asked = asked.as_object().unwrap_or(&empty);
    for name in ["state", "code", "error", "iss"] {
        let Some(value) = asked.get(name).and_then(Value::as_str) else { continue };
        let before = if address.contains('?') { '&' } else { '?' };
        address.push(before);
        address.push_str(name);
        address.push('=');
        address.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
    }
    Secret::new(address.to_string())
}

/// Does what takes its time.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Trouble> + Send + 'static,
) -> Result<T, Trouble> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Trouble { message: format!("it broke off: {error}"), ..Trouble::default() })
    })
}
