//! Prompts, resources and completions of hosted servers, passed through.
//!
//! Of one server its names and addresses are passed on as they are. Of several, prompts are called by their package too, and
//! a resource is read from the one server that has it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use host::{CallError, GREETING, Kind, Peer, Request, Tool};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::client::{Asked, Asker, lock};
use super::error::{Code, Error};
use super::result;
use super::seal::{Binding, State};
use super::serve::missing;
use super::tools::Answers;
use crate::gateway::Gateway;
use crate::shelf::{Shelved, Stock};
use crate::view::View;

/// How many pages of a list are read, and how many entries.
const MOST_PAGES: usize = 64;
const MOST_LISTED: usize = 10_000;

/// How long what a server listed is taken for what it has. It may say sooner that it has something else.
const CURRENT: Duration = Duration::from_mins(1);

/// How often a server may ask within one request, where its client is asked for it.
const MOST_ROUNDS: usize = 10;

/// A server of a view.
pub(crate) struct Server {
    package: Arc<Shelved>,
    tool: Arc<Tool>,
}

/// The servers among the packages of a view.
pub(crate) fn of_view(stock: &Stock, view: &View) -> Vec<Server> {
    let list = stock.list(view);
    let is_shown = |one: &Arc<Shelved>| match view {
        View::All => true,
        View::Raw(id) => stock.package(id).is_some_and(|named| named.id == one.id),
        View::Profile(_) => list.offers.iter().any(|(_, offer)| offer.package.id == one.id),
    };
    let shown = stock.packages.iter().filter(|one| one.is_enabled && is_shown(one));
    let server = |one: &Arc<Shelved>| {
        let tool = one.tool.as_ref().ok().filter(|tool| tool.surface.is_some())?;
        Some(Server { package: Arc::clone(one), tool: Arc::clone(tool) })
    };
    shown.filter_map(server).collect()
}

/// What servers listed, for a while.
#[derive(Debug, Default)]
pub(crate) struct Listings(Mutex<HashMap<(String, String), Listed>>);

/// What is kept of a list.
type Listed = (Instant, Arc<Vec<Value>>);

impl Listings {
    pub(crate) fn forget(&self, package: &str) {
        lock(&self.0).retain(|(known, _), _| known != package);
    }

    pub(crate) fn forget_all(&self) {
        lock(&self.0).clear();
    }
}

/// One of the lists that a server keeps.
#[derive(Clone, Copy)]
struct Kept {
    method: &'static str,
    /// What the entries are called in the answer.
    key: &'static str,
    /// What a server must have said that it can.
    capability: &'static str,
}

const PROMPTS: Kept = Kept { method: "prompts/list", key: "prompts", capability: "prompts" };
const RESOURCES: Kept =
    Kept { method: "resources/list", key: "resources", capability: "resources" };
const TEMPLATES: Kept =
    Kept { method: "resources/templates/list", key: "resourceTemplates", capability: "resources" };

/// A list of all that the servers of a view have.
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
    let all = listed(gateway, &stock, asked, &servers, kind).await;
    let mut told = Vec::new();
    for (server, entries) in servers.iter().zip(&all) {
        for entry in &**entries {
            let mut entry = entry.clone();
            if kind.key == PROMPTS.key {
                let own = entry["name"].as_str().unwrap_or_default();
                entry["name"] = exposed(&asked.client.view, &server.package.id, own).into();
            }
            told.push(entry);
        }
    }
    Ok(result::kept(json!({ kind.key: told }), asked.revision))
}

/// What each of some servers has. One that cannot be asked has nothing.
async fn listed(
    gateway: &Arc<Gateway>,
    stock: &Stock,
    asked: &Asked,
    servers: &[Server],
    kind: Kept,
) -> Vec<Arc<Vec<Value>>> {
    let each = servers.iter().map(|server| async move {
        let key = (server.package.id.clone(), kind.method.to_owned());
        if let Some((at, known)) = lock(&gateway.listings.0).get(&key)
            && at.elapsed() < CURRENT
        {
            return Arc::clone(known);
        }
        let Ok(entries) = entries(stock, asked, server, kind).await else { return Arc::default() };
        let entries = Arc::new(entries);
        lock(&gateway.listings.0).insert(key, (Instant::now(), Arc::clone(&entries)));
        entries
    });
    join_all(each).await
}

/// All pages of what one server has.
async fn entries(
    stock: &Stock,
    asked: &Asked,
    server: &Server,
    kind: Kept,
) -> Result<Vec<Value>, CallError> {
    let (_, greeting) = request(stock, asked, server, GREETING, json!({})).await?;
    if greeting["capabilities"].get(kind.capability).is_none() {
        return Ok(Vec::new());
    }
    let (mut all, mut params) = (Vec::new(), json!({}));
    for _ in 0..MOST_PAGES {
        let (mut page, _) = request(stock, asked, server, kind.method, params).await?;
        if let Some(Value::Array(entries)) = page.get_mut(kind.key).map(Value::take) {
            all.extend(entries);
        }
        match page.get("nextCursor").and_then(Value::as_str) {
            Some(next) if all.len() < MOST_LISTED => params = json!({ "cursor": next }),
            _ => break,
        }
    }
    all.truncate(MOST_LISTED);
    Ok(all)
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

/// The server that a prompt is of, and what it calls it.
async fn of_prompt(
    gateway: &Arc<Gateway>,
    stock: &Stock,
    asked: &Asked,
    name: &str,
) -> Result<(Server, String), Error> {
    let view = &asked.client.view;
    let mut servers = of_view(stock, view);
    if matches!(view, View::Raw(_)) && servers.len() == 1 {
        return Ok((servers.remove(0), name.to_owned()));
    }
    let all = listed(gateway, stock, asked, &servers, PROMPTS).await;
    for (server, entries) in servers.into_iter().zip(all) {
        let own = entries.iter().filter_map(|entry| entry["name"].as_str());
        let own = own.map(str::to_owned).find(|own| exposed(view, &server.package.id, own) == name);
        if let Some(own) = own {
            return Ok((server, own));
        }
    }
    Err(Error::new(Code::BadParameters, format!("Unknown prompt: {name}")))
}

/// The one server that has a resource, by its list or by a template.
async fn of_resource(
    gateway: &Arc<Gateway>,
    stock: &Stock,
    asked: &Asked,
    uri: &str,
) -> Result<Server, Error> {
    let mut servers = of_view(stock, &asked.client.view);
    if servers.len() == 1 {
        return Ok(servers.remove(0));
    }
    let resources = listed(gateway, stock, asked, &servers, RESOURCES).await;
    let templates = listed(gateway, stock, asked, &servers, TEMPLATES).await;
    let has = |at: usize| {
        let by_list = resources[at].iter().any(|one| one["uri"].as_str() == Some(uri));
        by_list
            || templates[at]
                .iter()
                .filter_map(|one| one["uriTemplate"].as_str())
                .any(|one| fits(one, uri))
    };
    let having: Vec<_> = (0..servers.len()).filter(|at| has(*at)).collect();
    match having.as_slice() {
        [one] => Ok(servers.swap_remove(*one)),
        [] => Err(Error::new(Code::NoResource, "Resource not found").with(json!({ "uri": uri }))),
        several => {
            let names: Vec<_> = several.iter().map(|at| servers[*at].package.id.clone()).collect();
            let words = format!(
                "several servers have it: {}; /mcp/raw/PACKAGE names one",
                names.join(", ")
            );
            Err(Error::new(Code::BadParameters, words).with(json!({ "uri": uri })))
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
    let (server, own) = of_prompt(gateway, &stock, asked, &name).await?;
    params["name"] = own.into();
    let answer = pass(gateway, &stock, asked, &server, "prompts/get", params).await?;
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
    let server = of_resource(gateway, &stock, asked, &uri).await?;
    let answer = pass(gateway, &stock, asked, &server, "resources/read", params).await?;
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
    let reference = &params["ref"];
    let server = match (reference["type"].as_str(), &reference["name"], &reference["uri"]) {
        (Some("ref/prompt"), Value::String(name), _) => {
            let (server, own) = of_prompt(gateway, &stock, asked, name).await?;
            params["ref"]["name"] = own.into();
            server
        }
        (Some("ref/resource"), _, Value::String(uri)) => {
            of_resource(gateway, &stock, asked, uri).await?
        }
        _ => {
            return Err(Error::new(
                Code::BadParameters,
                "`params.ref` names neither a prompt nor a resource",
            ));
        }
    };
    let answer = pass(gateway, &stock, asked, &server, "completion/complete", params).await?;
    Ok(result::whole(answer, asked.revision))
}

/// Has a server say when a resource changes, or no longer.
pub(crate) async fn watch(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    method: &str,
    uri: &str,
) -> Result<(), Error> {
    let stock = gateway.stock().await;
    let server = of_resource(gateway, &stock, asked, uri).await?;
    match request(&stock, asked, &server, method, json!({ "uri": uri })).await {
        Ok(_) => Ok(()),
        // A server that knows no such method tells its client nothing, as one would that never changes.
        Err(error) if error.kind == Kind::Unknown => Ok(()),
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
    let mut servers = of_view(&stock, &asked.client.view);
    let at = servers.iter().position(|server| server.package.id == package);
    let at =
        at.ok_or_else(|| Error::new(Code::BadParameters, "the server is not there any more"))?;
    if let Some(all) = params.as_object_mut() {
        all.remove("_meta");
    }
    let server = servers.swap_remove(at);
    let answer = request(&stock, asked, &server, method, params).await;
    answer.map(|(answer, _)| answer).map_err(|error| of_call(&error))
}

/// Asks a server, and again with what its client answers.
async fn pass(
    gateway: &Arc<Gateway>,
    stock: &Stock,
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
        let answer = request(stock, asked, server, method, params.clone()).await;
        let (mut answer, _) = answer.map_err(|error| of_call(&error))?;
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
        let asker = asked.asker(None, None);
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

/// Asks a server for something.
async fn request(
    stock: &Stock,
    asked: &Asked,
    server: &Server,
    method: &str,
    params: Value,
) -> Result<(Value, Value), CallError> {
    let surface = asked.surface();
    let peer: Arc<Asker> = if asked.revision.is_stateless() {
        // Whoever is not asked at once has nobody here to be asked in the middle of this.
        asked.asker(Some(mpsc::channel(1).0), None)
    } else {
        asked.asker(None, None)
    };
    let request = Request { method, params, surface: &surface, peer: Some(peer) };
    Box::pin(stock.host.request(&server.tool, request, &asked.cancel)).await
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
        let view = View::All;
        let names: std::collections::HashSet<_> =
            [("mcpb:a", "b_c"), ("mcpb:a_b", "c"), ("mcpkg:a", "b_c")]
                .map(|(package, name)| exposed(&view, package, name))
                .into();
        assert_eq!(names.len(), 3);
        assert!(names.iter().all(|name| name.len() <= 64));
        assert_eq!(exposed(&View::Raw("a".into()), "mcpb:a", "x y"), "x y");
    }
}
