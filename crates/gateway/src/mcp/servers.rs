//! Prompts, resources and completions of hosted servers, passed through.
//!
//! Of one server its names and addresses are passed on as they are. Of several, prompts are called by their package too, and
//! a resource is read from the one server that has it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use host::Kind;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::timeout_at;

use super::client::Asked;
use super::error::{Code, Error};
use super::hosted::{Server, Voice, of_view};
use super::listings::{Kept, Listing, PROMPTS, RESOURCES, TEMPLATES};
use super::passing::{self, Passing};
use super::result;
use super::serve::missing;
use super::watching::Watches;
use crate::gateway::Gateway;
use crate::shelf::Stock;
use crate::view::View;

/// How long a list waits for one of several servers.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long is waited for the others where one of several servers is known to have a resource.
const GRACE: Duration = Duration::from_secs(1);

/// Where a list says which servers it is without.
const UNANSWERED: &str = "haft/unanswered";

/// A list of all that the servers of a view have. It goes on without those that do not answer, and names them.
pub(crate) async fn list(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    method: &str,
    params: &Value,
) -> Result<String, Error> {
    if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err(Error::new(Code::BadParameters, "there is no such page"));
    }
    let kind = [PROMPTS, RESOURCES, TEMPLATES].into_iter().find(|kind| kind.method == method);
    let kind = kind.ok_or_else(|| Error::no_method(method))?;
    let stock = gateway.stock().await;
    let servers = of_view(&stock, &asked.client.view);
    if servers.is_empty() {
        return Err(Error::no_method(method));
    }
    let voice = Voice::of(&stock, asked);
    let listings = servers.iter().map(|server| gateway.listings.of(gateway, &voice, server, kind));
    let all: Vec<_> = match servers.len() {
        1 => join_all(listings.map(Listing::wait)).await,
        _ => join_all(listings.map(|listing| listing.wait_for(PATIENCE))).await,
    };
    let (mut told, mut unanswered) = (Vec::new(), Vec::new());
    for (server, entries) in servers.iter().zip(all) {
        let id = &server.package.id;
        let Some(entries) = entries else {
            unanswered.push(id.as_str());
            continue;
        };
        for entry in &*entries {
            let mut entry = entry.clone();
            if kind.key == PROMPTS.key {
                let own = entry["name"].as_str().unwrap_or_default();
                entry["name"] = exposed(&asked.client.view, id, own).into();
            }
            told.push(entry);
        }
    }
    let mut told = json!({ kind.key: told });
    if !unanswered.is_empty() {
        told["_meta"] = json!({ UNANSWERED: unanswered });
    }
    Ok(result::kept(told, asked.revision))
}

/// What a prompt is called: by its package too, where there are several.
fn exposed(view: &View, package: &str, name: &str) -> String {
    if matches!(view, View::Raw(_)) {
        return name.to_owned();
    }
    let bare = package.split_once(':').map_or(package, |(_, bare)| bare);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let plain = |text: &str| -> String {
        text.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
    };
    let digest = Sha256::digest(format!("{}:{package}/{name}", package.len()));
    let digits: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let (bare, name) = (plain(bare), plain(name));
    // Always with digits, so that no prompt can be called as another is.
    let kept: String = format!("{bare}_{name}").chars().take(55).collect();
    format!("{kept}_{digits}")
}

/// The server that a prompt is of, and what it calls it. The others need not have answered for that.
async fn of_prompt(
    gateway: &Arc<Gateway>,
    (stock, voice): (&Stock, &Voice),
    view: &View,
    name: &str,
) -> Result<(Server, String), Error> {
    let mut servers = of_view(stock, view);
    if matches!(view, View::Raw(_)) && servers.len() == 1 {
        return Ok((servers.remove(0), name.to_owned()));
    }
    let listing = |server: Server| {
        let listing = gateway.listings.of(gateway, voice, &server, PROMPTS);
        async { (server, listing.wait().await) }
    };
    let mut listing: FuturesUnordered<_> = servers.into_iter().map(listing).collect();
    let mut unanswered = Vec::new();
    while let Some((server, entries)) = listing.next().await {
        let id = &server.package.id;
        let Some(entries) = entries else {
            unanswered.push(id.clone());
            continue;
        };
        let mut own = entries.iter().filter_map(|entry| entry["name"].as_str());
        if let Some(own) = own.find(|own| exposed(view, id, own) == name) {
            let own = own.to_owned();
            return Ok((server, own));
        }
    }
    let error = Error::new(Code::BadParameters, format!("Unknown prompt: {name}"));
    Err(match unanswered.as_slice() {
        [] => error,
        some => error.with(json!({ "unanswered": some })),
    })
}

/// The one server that has a resource, by its list or by a template. Where one is known, the others are waited for no longer
/// than they may take to say that they have it too.
async fn of_resource(
    gateway: &Arc<Gateway>,
    (stock, voice): (&Stock, &Voice),
    view: &View,
    uri: &str,
) -> Result<Server, Error> {
    let mut servers = of_view(stock, view);
    if servers.len() == 1 {
        return Ok(servers.remove(0));
    }
    let of = |server: &Server, kind: Kept| gateway.listings.of(gateway, voice, server, kind);
    let listings: Vec<_> = servers
        .into_iter()
        .map(|server| (of(&server, RESOURCES), of(&server, TEMPLATES), server))
        .collect();
    let since = listings.iter().flat_map(|(resources, templates, _)| [resources, templates]);
    let until = since.map(|listing| listing.since + GRACE).max();
    let listing = |(resources, templates, server): (Listing, Listing, Server)| async {
        (join(resources.wait(), templates.wait()).await, server)
    };
    let mut listing: FuturesUnordered<_> = listings.into_iter().map(listing).collect();
    let (mut having, mut unanswered) = (Vec::new(), Vec::new());
    loop {
        let next = match until.filter(|_| !having.is_empty()) {
            Some(until) => timeout_at(until.into(), listing.next()).await.ok().flatten(),
            None => listing.next().await,
        };
        let Some(((resources, templates), server)) = next else { break };
        if resources.is_none() || templates.is_none() {
            unanswered.push(server.package.id.clone());
        }
        let mut resources = resources.iter().flat_map(|all| all.iter());
        let mut templates = templates.iter().flat_map(|all| all.iter());
        let is_fitting =
            |one: &Value| one["uriTemplate"].as_str().is_some_and(|one| fits(one, uri));
        if resources.any(|one| one["uri"].as_str() == Some(uri)) || templates.any(is_fitting) {
            having.push(server);
        }
    }
    let about = |more: Value| {
        let mut about = json!({ "uri": uri });
        if more != json!([]) {
            about["unanswered"] = more;
        }
        about
    };
    match having.as_slice() {
        [_] => Ok(having.swap_remove(0)),
        [] => {
            let error = Error::new(Code::NoResource, "Resource not found");
            Err(error.with(about(unanswered.into())))
        }
        several => {
            let mut names: Vec<_> = several.iter().map(|one| one.package.id.clone()).collect();
            names.sort();
            let words = format!(
                "several servers have it: {}; /mcp/raw/PACKAGE names one",
                names.join(", ")
            );
            Err(Error::new(Code::BadParameters, words).with(about(json!([]))))
        }
    }
}

/// Whether an address can be made from a template. An expression stands for anything.
fn fits(template: &str, uri: &str) -> bool {
    if template == uri {
        return true;
    }
    let mut rest = uri;
    let mut pieces = template.split('{');
    let Some(first) = pieces.next() else { return false };
    let Some(after) = rest.strip_prefix(first) else { return false };
    rest = after;
    let mut is_open = false;
    for piece in pieces {
        let Some((_, literal)) = piece.split_once('}') else { return false };
        is_open = literal.is_empty();
        if is_open {
            continue;
        }
        let Some(at) = rest.find(literal) else { return false };
        rest = &rest[at + literal.len()..];
    }
    is_open || rest.is_empty()
}

/// A prompt.
pub(crate) async fn prompt(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    mut params: Value,
) -> Result<String, Error> {
    let name = params["name"].as_str().ok_or_else(|| missing("name"))?.to_owned();
    let stock = gateway.stock().await;
    let voice = Voice::of(&stock, asked);
    let of = of_prompt(gateway, (&stock, &voice), &asked.client.view, &name);
    let (server, own) = of.await?;
    params["name"] = own.into();
    Passing { gateway, asked, voice, server }.pass("prompts/get", params, result::whole).await
}

/// A resource.
pub(crate) async fn read(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    params: Value,
) -> Result<String, Error> {
    let uri = params["uri"].as_str().ok_or_else(|| missing("uri"))?.to_owned();
    let stock = gateway.stock().await;
    let voice = Voice::of(&stock, asked);
    let server = of_resource(gateway, (&stock, &voice), &asked.client.view, &uri).await?;
    Passing { gateway, asked, voice, server }.pass("resources/read", params, result::kept).await
}

/// What could stand in an argument.
pub(crate) async fn complete(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    mut params: Value,
) -> Result<String, Error> {
    let stock = gateway.stock().await;
    let (voice, view) = (Voice::of(&stock, asked), &asked.client.view);
    let reference = &params["ref"];
    let server = match (reference["type"].as_str(), &reference["name"], &reference["uri"]) {
        (Some("ref/prompt"), Value::String(name), _) => {
            let (server, own) = of_prompt(gateway, (&stock, &voice), view, name).await?;
            params["ref"]["name"] = own.into();
            server
        }
        (Some("ref/resource"), _, Value::String(uri)) => {
            of_resource(gateway, (&stock, &voice), view, uri).await?
        }
        _ => {
            return Err(Error::new(
                Code::BadParameters,
                "`params.ref` names neither a prompt nor a resource",
            ));
        }
    };
    Passing { gateway, asked, voice, server }
        .pass("completion/complete", params, result::whole)
        .await
}

/// Has the server of a resource say when that changes; whether it does.
pub(crate) async fn watch(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    watches: &Watches,
    uri: &str,
) -> Result<bool, Error> {
    let stock = gateway.stock().await;
    let voice = Voice::of(&stock, asked);
    let server = of_resource(gateway, (&stock, &voice), &asked.client.view, uri).await?;
    match watches.begin(&voice, &server, uri, &asked.cancel).await {
        Ok(()) => Ok(true),
        // A server that knows no such method tells its client nothing, as one would that never changes.
        Err(error) if error.kind == Kind::Unknown => Ok(false),
        Err(error) => Err(passing::of_call(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_fits_a_template() {
        for (template, uri, is_fitting) in [
            ("test://template/{id}/data", "test://template/7/data", true),
            ("test://template/{id}/data", "test://template/7/date", false),
            ("file:///{path}", "file:///a/b", true),
            ("file:///{path}", "http://a", false),
            ("a://{x}/{y}", "a://1/2", true),
            ("a://{x}/{y}", "a://1", false),
            ("a://b", "a://b", true),
            ("a://b", "a://bc", false),
            ("a://{x", "a://1", false),
        ] {
            assert_eq!(fits(template, uri), is_fitting, "{template} {uri}");
        }
    }

    #[test]
    fn prompts_of_two_packages_are_never_called_the_same() {
        let view = View::Usual;
        let names: std::collections::HashSet<_> =
            [("mcpb:a", "b_c"), ("mcpb:a_b", "c"), ("mcpkg:a", "b_c")]
                .map(|(package, name)| exposed(&view, package, name))
                .into();
        assert_eq!(names.len(), 3);
        assert!(names.iter().all(|name| name.len() <= 64));
        assert_eq!(exposed(&View::Raw("a".into()), "mcpb:a", "x y"), "x y");
    }
}
