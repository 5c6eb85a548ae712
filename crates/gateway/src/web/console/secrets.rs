//! Secrets by their names. A value goes in, and never comes out.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use host::records::now;
use policy::policy::Presence;
use serde_json::Value;
use vault::Secret;

use super::frame::{Frame, Part, done, of_trouble, page, see, sentence};
use super::moment::Moment;
use super::visit::{Posted, Visit};
use super::{Console, link};
use crate::door::Note;
use crate::steward::Deed;

/// What the owners of secrets begin with that are no packages: the sign-ins of Haft itself, to a registry or another vault.
const OURS: &str = "haft:";

/// A secret that is kept or wanted.
#[derive(Debug)]
struct Named {
    package: String,
    name: String,
    /// When it was last set; nothing where it is not.
    changed: Option<Moment>,
    /// What its author says of it.
    about: Option<String>,
    is_wanted: bool,
    is_required: bool,
    /// Whether Haft keeps it for itself.
    is_ours: bool,
}

#[derive(Template)]
#[template(path = "secrets.html")]
struct SecretsPage {
    frame: Frame,
    named: Vec<Named>,
    packages: Vec<String>,
    trouble: Option<String>,
    /// What has to be typed, where a page is not enough for the policy.
    only_by: Option<&'static str>,
}

pub(super) async fn show(State(console): State<Arc<Console>>, visit: Visit) -> Response {
    let (stock, now) = (console.gateway.stock().await, now());
    let (kept, trouble) = match console.deed(Deed::Secrets).await {
        Ok(kept) => (kept, None),
        Err(trouble) => (Value::Null, Some(sentence(&trouble.message))),
    };
    let mut changed: HashMap<(String, String), Moment> = HashMap::new();
    for one in kept.as_array().into_iter().flatten() {
        let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        changed.insert((text("package"), text("name")), Moment::told(text("changed"), now));
    }
    let mut named = Vec::new();
    for package in &stock.packages {
        let Ok(tool) = &package.tool else { continue };
        for input in tool.package.inputs.iter().filter(|input| input.secret) {
            let changed = changed.remove(&(package.id.clone(), input.name.clone()));
            named.push(Named {
                package: package.id.clone(),
                name: input.name.clone(),
                changed,
                about: input.prompt.clone(),
                is_wanted: true,
                is_required: input.required,
                is_ours: false,
            });
        }
    }
    let mut rest: Vec<_> = changed.into_iter().collect();
    rest.sort_by(|(one, _), (other, _)| one.cmp(other));
    named.extend(rest.into_iter().map(|((package, name), changed)| Named {
        is_ours: package.starts_with(OURS),
        package,
        name,
        changed: Some(changed),
        about: None,
        is_wanted: false,
        is_required: false,
    }));
    let packages = stock.packages.iter().map(|one| one.id.clone()).collect();
    let only_by = (stock.policy.approval.owner_presence != Presence::Any)
        .then_some("haft secret set PACKAGE NAME");
    let frame = Frame::new(&console, &visit, Part::Secrets, "Secrets").await;
    page(&SecretsPage { frame, named, packages, trouble, only_by })
}

pub(super) async fn change(State(console): State<Arc<Console>>, posted: Posted) -> Response {
    let note = put(&console, &posted).await;
    console.gateway.door.note(&posted.visit.session, note);
    see("/secrets")
}

async fn put(console: &Console, posted: &Posted) -> Note {
    let refused = |words: &str| Note { is_done: false, words: words.to_owned(), more: Vec::new() };
    let field = |name: &str| posted.fields.text(name).unwrap_or_default().to_owned();
    let (package, name) = (field("package"), field("name"));
    let stock = console.gateway.stock().await;
    if stock.policy.approval.owner_presence != Presence::Any {
        let command = format!(
            "At your terminal: haft secret set {} {}",
            link::word(&package),
            link::word(&name)
        );
        return Note {
            more: vec![command],
            ..refused("Your policy wants more than this page for secrets.")
        };
    }
    let (deed, words) = match posted.fields.get("what") {
        Some("forget") => (
            Deed::ForgetSecret { package: package.clone(), name: name.clone() },
            format!("{name} of {package} is forgotten."),
        ),
        _ => {
            let value = posted.fields.get("value").unwrap_or_default().to_owned();
            let value = match Secret::new(value) {
                Ok(value) => value,
                Err(error) => return refused(&sentence(&error.to_string())),
            };
            let words = format!("{name} of {package} is kept. Nobody sees it here again.");
            (Deed::KeepSecret { package, name, value }, words)
        }
    };
    match console.deed(deed).await {
        Ok(_) => done(words),
        Err(trouble) => of_trouble(&trouble),
    }
}
