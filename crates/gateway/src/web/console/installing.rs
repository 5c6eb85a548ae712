//! Finding a tool, its card, and installing exactly what was shown; the same for what is newer.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::Value;
use vault::Secret;

use super::card::Card;
use super::frame::{Frame, Part, done, missing, of_trouble, page, see, sentence};
use super::visit::{Posted, Visit};
use super::{Console, link};
use crate::door::Note;
use crate::steward::{Deed, Trouble};

/// A tool that was found.
#[derive(Debug)]
struct Found {
    name: String,
    version: String,
    summary: String,
    registry: String,
    card: String,
    is_here: bool,
    tags: Vec<String>,
}

#[derive(Template)]
#[template(path = "find.html")]
struct FindPage {
    frame: Frame,
    words: String,
    found: Option<Vec<Found>>,
    total: u64,
    failed: Vec<String>,
    trouble: Option<Note>,
}

/// Looks for tools in the registries that are known.
pub(super) async fn find(State(console): State<Arc<Console>>, visit: Visit) -> Response {
    let words = visit.query.text("q").unwrap_or_default().to_owned();
    let mut shown = FindPage {
        frame: Frame::new(&console, &visit, Part::Install, "Install").await,
        words: words.clone(),
        found: None,
        total: 0,
        failed: Vec::new(),
        trouble: None,
    };
    if !words.is_empty() {
        let stock = console.gateway.stock().await;
        match console.deed(Deed::Search { words }).await {
            Ok(told) => {
                let one = |one: &Value| {
                    let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
                    let (name, version) = (text("name"), text("version"));
                    let card =
                        format!("/install/card?what={}", link::part(&format!("{name}@{version}")));
                    let is_here = stock.package(&name).is_some();
                    let tags = one["tags"].as_array().into_iter().flatten();
                    let tags = tags.filter_map(Value::as_str).take(6).map(str::to_owned).collect();
                    Found {
                        name,
                        version,
                        summary: text("summary"),
                        registry: text("registry"),
                        card,
                        is_here,
                        tags,
                    }
                };
                shown.found =
                    Some(told["results"].as_array().into_iter().flatten().map(one).collect());
                shown.total = told["total"].as_u64().unwrap_or_default();
                let failed = told["failed"].as_array().into_iter().flatten();
                shown.failed = failed
                    .map(|one| {
                        format!(
                            "{}: {}",
                            one["registry"].as_str().unwrap_or_default(),
                            one["error"].as_str().unwrap_or_default()
                        )
                    })
                    .collect();
            }
            Err(trouble) => shown.trouble = Some(of_trouble(&trouble)),
        }
    }
    page(&shown)
}

#[derive(Template)]
#[template(path = "card.html")]
struct CardPage {
    frame: Frame,
    what: String,
    cards: Vec<Card>,
    /// The page of the tool, where it is installed in this version.
    here: Option<String>,
    trouble: Option<Note>,
}

/// Shows the card of a package.
pub(super) async fn look(State(console): State<Arc<Console>>, visit: Visit) -> Response {
    let Some(what) = visit.query.text("what").map(str::to_owned) else { return see("/install") };
    let (cards, trouble) = match console.deed(Deed::Card { what: what.clone() }).await {
        Ok(told) => {
            (told["cards"].as_array().into_iter().flatten().map(Card::read).collect(), None)
        }
        Err(trouble) => (Vec::new(), Some(of_trouble(&trouble))),
    };
    let stock = console.gateway.stock().await;
    let is_here = |card: &Card| {
        let package = stock.package(&card.id)?;
        (package.version.as_ref() == Some(&card.version)).then(|| link::tool(&package.id))
    };
    let here = cards.first().and_then(is_here);
    let frame = Frame::new(&console, &visit, Part::Install, format!("Card of {what}")).await;
    page(&CardPage { frame, what, cards, here, trouble })
}

/// Installs a package, if its card is still the one that was shown.
pub(super) async fn install(State(console): State<Arc<Console>>, posted: Posted) -> Response {
    let field = |name: &str| posted.fields.text(name).unwrap_or_default().to_owned();
    let (what, card) = (field("what"), field("card"));
    let again = format!("/install/card?what={}", link::part(&what));
    let values = match values(&posted) {
        Ok(values) => values,
        Err(words) => {
            console
                .gateway
                .door
                .note(&posted.visit.session, Note { is_done: false, words, more: Vec::new() });
            return see(&again);
        }
    };
    match console.deed(Deed::Install { what, card, values }).await {
        Ok(told) => {
            let all: Vec<_> = told["packages"].as_array().into_iter().flatten().collect();
            for one in &all {
                let text = |name: &str| one[name].as_str().unwrap_or_default();
                let note = match text("state") {
                    "there" => {
                        done(format!("{} {} was here already.", text("id"), text("version")))
                    }
                    "disabled" => Note {
                        is_done: false,
                        words: format!(
                            "{} is installed and disabled: its trial failed.",
                            text("id")
                        ),
                        more: Vec::new(),
                    },
                    _ => done(format!(
                        "{} {} is installed. Agents can call it now.",
                        text("id"),
                        text("version")
                    )),
                };
                console.gateway.door.note(&posted.visit.session, note);
            }
            let address = match all.as_slice() {
                [one] => link::tool(one["id"].as_str().unwrap_or_default()),
                _ => "/tools".to_owned(),
            };
            see(&address)
        }
        Err(trouble) => {
            console.gateway.door.note(&posted.visit.session, of_trouble(&trouble));
            see(&again)
        }
    }
}

/// The values that were filled in. Each is a line for whoever reads them.
fn values(posted: &Posted) -> Result<Vec<(String, Secret)>, String> {
    let given = posted.fields.beginning("value.").filter(|(_, value)| !value.is_empty());
    let value = |(name, value): (&str, &str)| {
        if value.contains(['\n', '\r']) || name.contains(['\n', '\r', '=']) {
            return Err(format!("{name} has more than one line, which cannot be given here."));
        }
        let secret = Secret::new(value.to_owned()).map_err(|error| sentence(&error.to_string()))?;
        Ok((name.to_owned(), secret))
    };
    given.map(value).collect()
}

/// A change of a newer version.
#[derive(Debug)]
struct Change {
    class: String,
    tone: &'static str,
    subject: String,
    message: String,
}

#[derive(Template)]
#[template(path = "update.html")]
struct UpdatePage {
    frame: Frame,
    id: String,
    address: String,
    version: String,
    newer: Option<String>,
    digest: String,
    asks: bool,
    changes: Vec<Change>,
    files: Vec<(&'static str, Vec<String>)>,
    surface: Vec<String>,
    trouble: Option<Note>,
}

/// Shows what is newer than a package, and what is different about it.
pub(super) async fn newer(
    State(console): State<Arc<Console>>,
    Path(id): Path<String>,
    visit: Visit,
) -> Response {
    let stock = console.gateway.stock().await;
    let Some(package) = stock.package(&id) else { return missing("No such tool is installed.") };
    let id = package.id.clone();
    let told = console.deed(Deed::Newer { id: id.clone() }).await;
    let (told, trouble) = match told {
        Ok(told) => {
            let failed = told["failed"][0]["why"]
                .as_str()
                .map(|why| Trouble { message: why.to_owned(), ..Trouble::default() });
            (told, failed.as_ref().map(of_trouble))
        }
        Err(trouble) => (Value::Null, Some(of_trouble(&trouble))),
    };
    let row = &told["packages"][0];
    let change = |one: &Value| {
        let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        let class = text("class");
        let tone = match class.as_str() {
            "breaking" => "stop",
            "needs-review" | "needs_review" => "warn",
            _ => "plain",
        };
        Change {
            class: class.replace(['-', '_'], " "),
            tone,
            subject: text("subject"),
            message: text("message"),
        }
    };
    let files = [("New", "added"), ("Changed", "changed"), ("Gone", "removed")];
    let files = files.map(|(name, key)| (name, texts(&row["files"][key])));
    page(&UpdatePage {
        frame: Frame::new(&console, &visit, Part::Tools, format!("Update {id}")).await,
        address: link::tool(&id),
        version: package.version.clone().unwrap_or_default(),
        newer: row["newer"].as_str().map(str::to_owned),
        digest: row["digest"].as_str().unwrap_or_default().to_owned(),
        asks: row["asks"] == true,
        changes: row["changes"].as_array().into_iter().flatten().map(change).collect(),
        files: files.into_iter().filter(|(_, all)| !all.is_empty()).collect(),
        surface: texts(&row["surface"]),
        trouble,
        id,
    })
}

/// The texts of a list.
fn texts(value: &Value) -> Vec<String> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[derive(Template)]
#[template(path = "surface.html")]
struct SurfacePage {
    frame: Frame,
    id: String,
    address: String,
    digest: String,
    is_changed: bool,
    differences: Vec<String>,
    trouble: Option<Note>,
}

/// Shows what the server of a package offers, held against what was approved.
pub(super) async fn offered(
    State(console): State<Arc<Console>>,
    Path(id): Path<String>,
    visit: Visit,
) -> Response {
    let stock = console.gateway.stock().await;
    let Some(package) = stock.package(&id) else { return missing("No such tool is installed.") };
    let id = package.id.clone();
    let (told, trouble) = match console.deed(Deed::Offered { id: id.clone() }).await {
        Ok(told) => (told, None),
        Err(trouble) => (Value::Null, Some(of_trouble(&trouble))),
    };
    let title = format!("What {id} offers");
    page(&SurfacePage {
        frame: Frame::new(&console, &visit, Part::Tools, title).await,
        address: link::tool(&id),
        digest: told["surface"].as_str().unwrap_or_default().to_owned(),
        is_changed: told["changed"] == true,
        differences: texts(&told["differences"]),
        trouble,
        id,
    })
}

/// Approves what the server of a package offers, if it is still what was shown.
pub(super) async fn approve(
    State(console): State<Arc<Console>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Response {
    let digest = posted.fields.text("digest").unwrap_or_default().to_owned();
    let note = match console.deed(Deed::Approve { id: id.clone(), digest }).await {
        Ok(_) => done(format!("What {id} offers is approved, and agents are told of it.")),
        Err(trouble) => of_trouble(&trouble),
    };
    console.gateway.door.note(&posted.visit.session, note);
    see(&link::tool(&id))
}

/// Takes what is newer, if it is still what was shown.
pub(super) async fn update(
    State(console): State<Arc<Console>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Response {
    let digest = posted.fields.text("digest").unwrap_or_default().to_owned();
    let note = match console.deed(Deed::Update { id: id.clone(), digest }).await {
        Ok(told) => match told["packages"][0]["newer"].as_str() {
            Some(newer) => done(format!("{id} is updated to {newer}.")),
            None => done(format!("{id} is as new as where it came from.")),
        },
        Err(trouble) => of_trouble(&trouble),
    };
    console.gateway.door.note(&posted.visit.session, note);
    see(&link::tool(&id))
}
