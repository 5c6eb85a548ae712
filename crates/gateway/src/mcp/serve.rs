//! A request, and what is answered: the same for every wire.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::client::{Asked, Begun, Client, Greeting, LEVELS, Line, says};
use super::error::{Code, Error};
use super::message::{self, Id, Message, Request};
use super::revision::{Meta, Revision, key};
use super::{elsewhere, hosted, listen, result, servers, tasks, tools, watching};
use crate::gateway::Gateway;
use crate::shelf::Stock;
use crate::view::View;

/// A request, read once.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) meta: Meta,
}

impl Whole {
    pub(crate) fn of(request: &Request<'_>) -> Result<Box<Self>, Error> {
        let params = request.params()?;
        let (id, method) = (request.id.clone(), request.method.clone().into_owned());
        Ok(Box::new(Self { id, method, meta: Meta::of(&params), params }))
    }

    /// Takes it up for a client: from now on it can be called off.
    pub(crate) fn take_up(self: Box<Self>, client: &Arc<Client>) -> Result<Taken, Error> {
        Ok(Taken { begun: client.begin(&self.id)?, whole: self })
    }
}

/// A request that was taken up, and is to be answered.
pub(crate) struct Taken {
    pub(crate) whole: Box<Whole>,
    begun: Begun,
}

/// Answers a request, with a result as it is sent; not at all where it was called off.
pub(crate) async fn answer(
    gateway: &Arc<Gateway>,
    client: &Arc<Client>,
    taken: Taken,
    line: &Line,
) -> Option<Result<String, Error>> {
    let method = taken.whole.method.clone();
    let answer = answered(gateway, client, taken, line).await;
    gateway.watch.answered(&method, matches!(answer, Some(Ok(_))));
    answer
}

/// The same, which nobody counts.
pub(crate) async fn answered(
    gateway: &Arc<Gateway>,
    client: &Arc<Client>,
    taken: Taken,
    line: &Line,
) -> Option<Result<String, Error>> {
    let Taken { whole, begun } = taken;
    let Whole { id, method, params, meta } = *whole;
    if method == "initialize" && meta.revision.is_none() {
        let revision = match note_greeting(client, &params) {
            Ok(revision) => revision,
            Err(error) => return Some(Err(error)),
        };
        return Some(Ok(Box::pin(greeted(gateway, client, revision)).await));
    }
    let (revision, capabilities) = match era(client, &method, &meta) {
        Ok(agreed) => agreed,
        Err(error) => return Some(Err(error)),
    };
    let asked = Asked {
        client: Arc::clone(client),
        revision,
        capabilities,
        meta,
        id,
        line: line.clone(),
        cancel: begun.cancel.clone(),
    };
    let result = tokio::select! {
        // What was called off before it began does not begin.
        biased;
        () = begun.cancel.cancelled() => None,
        result = dispatch(gateway, &asked, &method, params) => Some(result),
    };
    Some(result?.map_err(|error| as_the_era_says(error, revision)))
}

/// The revision that a request is of, and what its client can do.
fn era(
    client: &Client,
    method: &str,
    meta: &Meta,
) -> Result<(Revision, Map<String, Value>), Error> {
    match client.greeting() {
        Some(greeting) if meta.revision.is_none() => Ok((greeting.revision, greeting.capabilities)),
        // Before anything was agreed on, one may ask whether somebody is there.
        None if method == "ping" && meta.revision.is_none() => {
            Ok((Revision::NEWEST_WITH_HANDSHAKE, Map::new()))
        }
        Some(_) | None => {
            let (revision, capabilities) = meta.check()?;
            Ok((revision, capabilities.clone()))
        }
    }
}

/// What its client is told of a request that was called off, where it has to be told something.
pub(crate) fn called_off() -> Error {
    Error::new(Code::BadRequest, "the request was called off")
}

/// One of several messages, taken up or refused, and its id where it has one.
pub(crate) struct Part {
    id: Option<Id>,
    taken: Result<Taken, Error>,
}

/// Takes up all that a client of 2025-03-26 may put into one message, each at once: what comes after one may be about it.
pub(crate) fn take_up_all(client: &Arc<Client>, batch: &[&RawValue]) -> Vec<Part> {
    let take_up = |one: &&RawValue| match message::parse(one.get()) {
        Ok(Message::Request(request)) => {
            let taken = Whole::of(&request).and_then(|whole| whole.take_up(client));
            Some(Part { id: Some(request.id), taken })
        }
        Ok(other) => {
            hear(client, &other);
            None
        }
        Err((id, error)) => Some(Part { id, taken: Err(error) }),
    };
    batch.iter().filter_map(take_up).collect()
}

/// Answers all of them together; not where nothing of it is asked.
pub(crate) async fn answer_all(
    gateway: &Arc<Gateway>,
    client: &Arc<Client>,
    batch: Vec<Part>,
    line: &Line,
) -> Option<String> {
    let each = batch.into_iter().map(|Part { id, taken }| async move {
        let answered = match taken {
            Ok(taken) => answer(gateway, client, taken, line).await?,
            Err(error) => Err(error),
        };
        Some(message::answer(id.as_ref(), &answered))
    });
    let answers: Vec<_> = join_all(each).await.into_iter().flatten().collect();
    (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
}

/// What a text holds that is several messages, where its client may say so: only one revision lets it.
pub(crate) fn batch_of<'t>(client: &Client, text: &'t str) -> Option<Vec<&'t RawValue>> {
    let is_let = client.greeting().is_some_and(|one| one.revision.has_batches());
    if is_let { message::batch(text) } else { None }
}

/// What is told without being asked for an answer.
pub(crate) fn hear(client: &Client, message: &Message<'_>) {
    match message {
        Message::Answer { id, answer } => {
            client.answered(id, *answer);
        }
        Message::Notification { method, params } => {
            if let Some(id) = message::called_off(method, *params) {
                client.cancel(&id);
            }
        }
        Message::Request(_) => {}
    }
}

async fn dispatch(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    method: &str,
    params: Value,
) -> Result<String, Error> {
    let stateless = asked.revision.is_stateless();
    if stateless && let Some(answer) = elsewhere::pass_on(gateway, asked, method, &params).await {
        return answer;
    }
    match method {
        "tools/call" => Box::pin(tools::call(gateway, asked, params)).await,
        "tools/list" => tools::list(gateway, asked, &params).await,
        "server/discover" if stateless => {
            let stock = gateway.stock().await;
            Ok(discovered(&stock, &asked.client.view))
        }
        "prompts/list" | "resources/list" | "resources/templates/list" => {
            Box::pin(servers::list(gateway, asked, method, &params)).await
        }
        "prompts/get" => Box::pin(servers::prompt(gateway, asked, params)).await,
        "resources/read" => Box::pin(servers::read(gateway, asked, params)).await,
        "completion/complete" => Box::pin(servers::complete(gateway, asked, params)).await,
        listen::METHOD if stateless => Box::pin(listen::listen(gateway, asked, &params)).await,
        "tasks/get" | "tasks/update" | "tasks/cancel" if stateless => {
            Box::pin(tasks::answer(gateway, asked, method, params)).await
        }
        "ping" if !stateless => Ok("{}".to_owned()),
        "logging/setLevel" if !stateless => {
            let level = params["level"].as_str().unwrap_or_default();
            if !LEVELS.contains(&level) {
                let words = format!("`level` is one of {}", LEVELS.join(", "));
                return Err(Error::new(Code::BadParameters, words));
            }
            asked.client.log_from(level);
            Ok("{}".to_owned())
        }
        "resources/subscribe" | "resources/unsubscribe" if !stateless => {
            let uri = params["uri"].as_str().ok_or_else(|| missing("uri"))?.to_owned();
            if method == "resources/subscribe" {
                Box::pin(watching::subscribe(gateway, asked, &uri)).await?;
            } else {
                asked.client.watches.end(&uri);
            }
            Ok("{}".to_owned())
        }
        _ => Err(Error::no_method(method)),
    }
}

/// A parameter that is not there.
pub(crate) fn missing(name: &str) -> Error {
    Error::new(Code::BadParameters, format!("`params.{name}` is missing, or no text"))
}

/// What a client of the older era greets with. It counts for whatever it says after that, answered or not.
pub(crate) fn note_greeting(client: &Client, params: &Value) -> Result<Revision, Error> {
    let Some(asked) = params["protocolVersion"].as_str() else {
        return Err(missing("protocolVersion"));
    };
    let revision = Revision::agreed(asked);
    let capabilities = match params.get("capabilities") {
        Some(Value::Object(all)) => all.clone(),
        _ => Map::new(),
    };
    let says = says(&params["clientInfo"]);
    client.greet(Greeting { revision, capabilities, log_level: None, says });
    Ok(revision)
}

/// The answer to a greeting.
async fn greeted(gateway: &Arc<Gateway>, client: &Arc<Client>, revision: Revision) -> String {
    let stock = gateway.stock().await;
    let mut offered = capabilities_of(&stock, &client.view);
    client.declare(&offered);
    offered["logging"] = json!({});
    let mut told = json!({
        "protocolVersion": revision.name(),
        "capabilities": offered,
        "serverInfo": server_info(),
    });
    if let Some(words) = instructions(&stock, &client.view) {
        told["instructions"] = words.into();
    }
    told.to_string()
}

/// The same for those who ask before every conversation is one request.
fn discovered(stock: &Stock, view: &View) -> String {
    let mut capabilities = capabilities_of(stock, view);
    capabilities["extensions"] = json!({ key::TASKS: {} });
    let mut told = json!({
        "resultType": "complete",
        "supportedVersions": Revision::names(),
        "capabilities": capabilities,
        "ttlMs": result::TTL_MS,
        "cacheScope": "private",
        "_meta": { key::SERVER: server_info() },
    });
    if let Some(words) = instructions(stock, view) {
        told["instructions"] = words.into();
    }
    told.to_string()
}

fn server_info() -> Value {
    json!({ "name": "haft", "title": "Haft", "version": env!("CARGO_PKG_VERSION") })
}

fn capabilities_of(stock: &Stock, view: &View) -> Value {
    let mut told = json!({ "tools": { "listChanged": true } });
    if !hosted::of_view(stock, view).is_empty() {
        told["prompts"] = json!({ "listChanged": true });
        told["resources"] = json!({ "subscribe": true, "listChanged": true });
        told["completions"] = json!({});
    }
    told
}

/// What an agent should know before it begins.
fn instructions(stock: &Stock, view: &View) -> Option<String> {
    if let Some(words) = stock.closed_to(view) {
        return Some(format!("Now {words}."));
    }
    let list = stock.list(view);
    list.is_folded.then(|| {
        format!(
            "There are {} tools here, too many to be listed. `find_tools` finds the right one by words, `describe_tool` shows what it takes, and `call_tool` calls it.",
            list.offers.len()
        )
    })
}

/// An error as the era of a client knows it.
fn as_the_era_says(error: Error, revision: Revision) -> Error {
    if revision.is_stateless() { error.of_newer_era() } else { error }
}
