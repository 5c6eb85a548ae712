//! One big button: what tools were given becomes worthless, and they are kept from being called.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::Value;

use super::frame::{Frame, Part, done, missing, of_trouble, page, see, sentence};
use super::moment::count;
use super::visit::{Posted, Visit};
use super::{Console, link};
use crate::door::Note;
use crate::steward::Deed;

#[derive(Template)]
#[template(path = "revoke.html")]
struct RevokePage {
    frame: Frame,
    /// Which one; all where there is none.
    id: Option<String>,
    packages: Vec<String>,
    address: String,
    back: String,
    /// How it is revoked, as it says.
    kill_switch: Option<String>,
}

pub(super) async fn ask_one(
    State(console): State<Arc<Console>>,
    Path(id): Path<String>,
    visit: Visit,
) -> Response {
    let stock = console.gateway.stock().await;
    let Some(package) = stock.package(&id) else { return missing("No such tool is installed.") };
    let switch = package.tool.as_ref().ok().and_then(|tool| tool.package.kill_switch.as_ref());
    let kill_switch = switch.and_then(|switch| switch.value()["kind"].as_str().map(str::to_owned));
    let frame = Frame::new(&console, &visit, Part::Tools, format!("Revoke {id}")).await;
    let back = link::tool(&package.id);
    let (id, address) = (Some(package.id.clone()), format!("{back}/revoke"));
    page(&RevokePage { frame, id, packages: Vec::new(), address, back, kill_switch })
}

pub(super) async fn ask_all(State(console): State<Arc<Console>>, visit: Visit) -> Response {
    let stock = console.gateway.stock().await;
    let packages = stock.packages.iter().map(|one| one.id.clone()).collect();
    let frame = Frame::new(&console, &visit, Part::Today, "Revoke everything").await;
    let (address, back) = ("/revoke".to_owned(), "/".to_owned());
    page(&RevokePage { frame, id: None, packages, address, back, kill_switch: None })
}

pub(super) async fn one(
    State(console): State<Arc<Console>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Response {
    let back = link::tool(&id);
    let note = match console.deed(Deed::Revoke { id }).await {
        Ok(told) => told_of(&told),
        Err(trouble) => of_trouble(&trouble),
    };
    console.gateway.door.note(&posted.visit.session, note);
    see(&back)
}

pub(super) async fn all(State(console): State<Arc<Console>>, posted: Posted) -> Response {
    let note = match console.deed(Deed::RevokeAll).await {
        Ok(told) => {
            let all: Vec<_> = told["packages"].as_array().into_iter().flatten().collect();
            let open: Vec<_> = all
                .iter()
                .filter(|one| one["state"] != "revoked")
                .map(|one| told_of(one).words)
                .collect();
            if open.is_empty() {
                done(format!("{} revoked; nothing is called any more.", count(all.len(), "tool")))
            } else {
                let words = format!(
                    "{} switched off; nothing is called any more. Of {} nobody confirms that what it was given is worth nothing.",
                    count(all.len(), "tool"),
                    open.len()
                );
                Note { more: open, ..done(words) }
            }
        }
        Err(trouble) => of_trouble(&trouble),
    };
    console.gateway.door.note(&posted.visit.session, note);
    see("/")
}

/// What came of revoking one.
fn told_of(told: &Value) -> Note {
    let id = told["id"].as_str().unwrap_or_default();
    if told["state"] == "revoked" {
        return done(format!(
            "{id} is revoked: what it was given is worth nothing any more, and it is not called."
        ));
    }
    let why = told["why"].as_str().map(sentence);
    let by_hand = told["by_hand"].as_str().map(|words| format!("You may do it yourself: {words}"));
    let again = format!("Its secrets are kept to try again: haft revoke {}", link::word(id));
    Note {
        is_done: false,
        words: format!(
            "{id} is switched off, and nobody confirms that what it was given is worth nothing."
        ),
        more: why.into_iter().chain(by_hand).chain([again]).collect(),
    }
}
