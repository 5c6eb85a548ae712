//! Prompts, resources and completions of hosted servers, passed through.
//!
//! Of one server its names and addresses are passed on as they are. Of several, prompts are called by their package too, and
//! a resource is read from the one server that has it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use host::{CallError, Kind, Peer};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::time::timeout_at;

use super::client::Asked;
use super::error::{Code, Error};
use super::hosted::{Server, Voice, of_package, of_view};
use super::listings::{Kept, Listing, PROMPTS, RESOURCES, TEMPLATES};
use super::result;
use super::seal::{Binding, State};
use super::serve::missing;
use super::tools::Answers;
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

/// How often a server may ask within one request, where its client is asked for it.
const MOST_ROUNDS: usize = 10;

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
    let answer = pass(gateway, &voice, asked, &server, "prompts/get", params).await?;
    Ok(result::whole(answer, asked.revision))
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
    let answer = pass(gateway, &voice, asked, &server, "resources/read", params).await?;
    if answer["resultType"] == "input_required" {
        return Ok(answer.to_string());
    }
    Ok(result::kept(answer, asked.revision))
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
    let answer = pass(gateway, &voice, asked, &server, "completion/complete", params).await?;
    Ok(result::whole(answer, asked.revision))
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
        Err(error) => Err(of_call(&error)),
    }
}

/// Asks the server of a package for something in its own words.
pub(crate) async fn pass_to(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    package: &str,
    method: &str,
    mut params: Value,
) -> Result<Value, Error> {
    let stock = gateway.stock().await;
    let server = of_package(&stock, &asked.client.view, package);
    let gone = || Error::new(Code::BadParameters, "the server is not there any more");
    let server = server.ok_or_else(gone)?;
    if let Some(all) = params.as_object_mut() {
        all.remove("_meta");
    }
    let answer = Voice::of(&stock, asked).ask(&server, method, params, &asked.cancel).await;
    answer.map(|replied| replied.answer).map_err(|error| of_call(&error))
}

/// Asks a server, and again with what its client answers.
async fn pass(
    gateway: &Arc<Gateway>,
    voice: &Voice,
    asked: &Asked,
    server: &Server,
    method: &str,
    mut params: Value,
) -> Result<Value, Error> {
    let answers = Answers::of(&mut params);
    if let Some(all) = params.as_object_mut() {
        for own in ["_meta", "inputResponses", "requestState"] {
            all.remove(own);
        }
    }
    let what = params.to_string();
    let (who, view) = (&asked.client.name, asked.client.view.name());
    let binding = Binding::of(&[who, &view, method, &server.package.id, &what]);
    if let Some(responses) = answers.responses {
        params["inputResponses"] = Value::Object(responses);
    }
    if let Some(state) = &answers.state {
        match gateway.seal.open(state, &binding) {
            Some(State::Server(Some(state))) => params["requestState"] = state.into(),
            Some(State::Server(None)) => {}
            _ => {
                let words = "`requestState` is none of ours, is for another request, or ran out";
                return Err(Error::new(Code::BadParameters, words));
            }
        }
    }
    for _ in 0..MOST_ROUNDS {
        let answer = voice.ask(server, method, params.clone(), &asked.cancel).await;
        let mut answer = answer.map_err(|error| of_call(&error))?.answer;
        if answer["resultType"] != "input_required" {
            return Ok(answer);
        }
        let state = answer["requestState"].as_str().map(str::to_owned);
        if asked.revision.is_stateless() {
            let sealed = gateway.seal.close(State::Server(state), &binding);
            answer["requestState"] =
                sealed.ok_or_else(|| Error::new(Code::Internal, "there is no randomness"))?.into();
            return Ok(answer);
        }
        let asker = asked.asker(None);
        let mut responses = Map::new();
        for (name, question) in answer["inputRequests"].as_object().into_iter().flatten() {
            let method = question["method"].as_str().unwrap_or_default();
            let answered = asker.ask(method, question["params"].clone()).await;
            let answered = answered
                .map_err(|refused| Error::new(Code::Said(refused.code), refused.message))?;
            responses.insert(name.clone(), answered);
        }
        params["inputResponses"] = Value::Object(responses);
        match state {
            Some(state) => params["requestState"] = state.into(),
            None => {
                params.as_object_mut().map(|all| all.remove("requestState"));
            }
        }
    }
    Err(Error::new(Code::Internal, format!("the server asked more than {MOST_ROUNDS} times")))
}

/// An error of a server as its client is told it.
fn of_call(error: &CallError) -> Error {
    Error::of_server(error).unwrap_or_else(|| {
        let code = match &error.kind {
            Kind::BadInput | Kind::Unknown => Code::BadParameters,
            _ => Code::Internal,
        };
        Error::new(code, error.message.clone())
    })
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
