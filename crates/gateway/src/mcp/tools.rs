//! `tools/list` and `tools/call`.

use std::sync::Arc;
use std::time::Instant;

use host::{Call, Made, Resumed};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::client::Asked;
use super::error::{Code, Error};
use super::seal::{Binding, State};
use super::serve::missing;
use super::waiting::{Came, Running};
use super::{asking, finding, result, tasks};
use crate::gateway::Gateway;
use crate::offer::Offer;
use crate::refusal;
use crate::shelf::{Shelved, Stock, closing};
use crate::undertaking::Undertaking;
use crate::view::View;
use crate::watch::{Calling, Told};

/// How often a server may ask within one call, where its client is asked for it.
const MOST_ROUNDS: usize = 10;

/// How many questions of one call wait to be handed over.
const MOST_QUESTIONS: usize = 16;

/// The tools of a view. They are all on one page.
pub(crate) async fn list(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    params: &Value,
) -> Result<String, Error> {
    if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err(Error::new(Code::BadParameters, "there is no such page"));
    }
    let stock = gateway.stock().await;
    let list = stock.list(&asked.client.view);
    let own = finding::definitions(&stock, &asked.client.view, &list);
    let between = if own.is_empty() || list.text.is_empty() { "" } else { "," };
    let hints = if asked.revision.is_stateless() {
        let ttl = result::TTL_MS;
        format!(",\"resultType\":\"complete\",\"ttlMs\":{ttl},\"cacheScope\":\"private\"")
    } else {
        String::new()
    };
    Ok(format!("{{\"tools\":[{own}{between}{}]{hints}}}", list.text))
}

/// A tool that is called.
pub(crate) async fn call(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    mut params: Value,
) -> Result<String, Error> {
    let Some(Value::String(name)) = params.get_mut("name").map(Value::take) else {
        return Err(missing("name"));
    };
    let arguments = match params.get_mut("arguments").map(Value::take) {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(arguments @ Value::Object(_)) => arguments,
        Some(_) => return Err(Error::new(Code::BadParameters, "`params.arguments` is no object")),
    };
    let answers = Answers::of(&mut params);
    let mut stock = gateway.shelf.stock_for_call().await;
    let view = &asked.client.view;
    if let Some(own) = finding::meant(&name, &stock, view) {
        return Box::pin(finding::call(gateway, asked, &stock, own, arguments, answers)).await;
    }
    let found = match stock.list(view).offer(&name) {
        Some(offer) => Arc::clone(offer),
        None => return Err(not_there(gateway, asked, &stock, &name).await),
    };
    stock = gateway.shelf.stock_with(stock, &found.package).await;
    let Some(offer) = stock.list(view).offer(&name).cloned() else {
        return Err(not_there(gateway, asked, &stock, &name).await);
    };
    make(gateway, asked, &stock, &offer, arguments, answers).await
}

/// Why nothing is called so.
async fn not_there(gateway: &Gateway, asked: &Asked, stock: &Stock, name: &str) -> Error {
    if let Some(package) = out_of_reach(asked, stock, name).await {
        let console = gateway.console.as_deref();
        let words = refusal::out_of_reach_in_words(&package, console);
        let told = json!({ "error": refusal::out_of_reach(&package, console) });
        return Error::new(Code::BadParameters, words).with(told);
    }
    match &stock.trouble {
        Some(trouble) => closed(trouble),
        None => unknown(name),
    }
}

/// The package that a client called and that cannot be called, which is written down.
pub(crate) async fn out_of_reach(asked: &Asked, stock: &Stock, name: &str) -> Option<Arc<Shelved>> {
    let (package, action) = stock.out_of_reach(&asked.client.view, name).await?;
    let surface = asked.surface();
    let by = (surface.name(), surface.client());
    refusal::note_out_of_reach(stock, &package, (name, &action), by);
    Some(package)
}

/// Nothing can be called.
fn closed((_, words): &(Instant, String)) -> Error {
    Error::new(Code::Internal, closing(words))
}

fn unknown(name: &str) -> Error {
    Error::new(Code::BadParameters, format!("Unknown tool: {name}"))
}

/// What a client brings that was asked for before.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) responses: Option<Map<String, Value>>,
    pub(crate) state: Option<String>,
}

impl Answers {
    pub(crate) fn of(params: &mut Value) -> Self {
        let responses = match params.get_mut("inputResponses").map(Value::take) {
            Some(Value::Object(responses)) => Some(responses),
            _ => None,
        };
        let state = params.get("requestState").and_then(Value::as_str).map(str::to_owned);
        Self { responses, state }
    }
}

/// A call on its way: everything that it is made of.
pub(crate) struct Making<'m> {
    pub(crate) gateway: &'m Arc<Gateway>,
    pub(crate) asked: &'m Asked,
    pub(crate) stock: &'m Arc<Stock>,
    pub(crate) offer: &'m Arc<Offer>,
    pub(crate) input: String,
}

/// Makes a call, or goes on with one that asked something.
pub(crate) async fn make(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    stock: &Arc<Stock>,
    offer: &Arc<Offer>,
    arguments: Value,
    answers: Answers,
) -> Result<String, Error> {
    let making = Making { gateway, asked, stock, offer, input: arguments.to_string() };
    let mut resumed = None;
    let mut ticket = None;
    if let Some(state) = &answers.state {
        let not_ours = || {
            let words = "`requestState` is none of ours, is for another request, or ran out";
            Error::new(Code::BadParameters, words)
        };
        let opened = gateway.seal.open(state, &making.binding()).ok_or_else(not_ours)?;
        let responses = answers.responses.unwrap_or_default();
        match opened {
            State::Waits(name) => {
                let mut running = gateway.waiting.take(&name).ok_or_else(|| {
                    let words = "the call that asked this was given up; make it again";
                    Error::new(Code::BadParameters, words)
                })?;
                running.answer(&responses);
                if running.is_asked() {
                    return making.asks(running);
                }
                return Box::pin(making.follow(running)).await;
            }
            State::Server(state) => resumed = Some(Resumed { responses, state }),
            State::Ticket(name) => {
                ticket = Box::pin(asking::answered(&making, &name, &responses)).await?;
            }
            State::Task(_) | State::TaskOf(..) => return Err(not_ours()),
        }
    } else if let Some(responses) = answers.responses {
        resumed = Some(Resumed { responses, state: None });
    }
    making.start(ticket, resumed).await
}

impl Making<'_> {
    /// What a state that is handed out for it is bound to.
    pub(crate) fn binding(&self) -> Binding {
        let Offer { package, action, .. } = &**self.offer;
        let who = &self.asked.client.name;
        let view = self.asked.client.view.name();
        Binding::of(&[who, &view, "tools/call", &package.id, action, &self.input])
    }

    fn order(&self, ticket: Option<ledger::state::approvals::TicketId>) -> Call {
        let client = &self.asked.client;
        Call {
            action: self.offer.action.clone(),
            input: self.input.clone(),
            surface: self.asked.surface(),
            approver: None,
            ticket,
            folder: client.folder.clone(),
            within: None,
            progress: self.asked.progress(),
            implementation: None,
            peer: None,
            resumed: None,
            called_off: self.asked.cancel.child_token(),
        }
    }

    /// Whether a server is behind it, which may have something to say while it works.
    fn is_of_server(&self) -> bool {
        self.offer.tool.surface.is_some()
    }

    /// Begins to count and to tell where its time goes.
    fn watched(&self) -> Calling {
        let Asked { client, revision, meta, .. } = self.asked;
        let about = Told {
            package: &self.offer.package.id,
            surface: "mcp",
            session: &client.session,
            revision: Some(revision.name()),
            traceparent: meta.passed.get("traceparent").and_then(Value::as_str),
        };
        self.gateway.watch.call(&self.offer.name, &about)
    }

    pub(crate) async fn start(
        &self,
        ticket: Option<ledger::state::approvals::TicketId>,
        resumed: Option<Resumed>,
    ) -> Result<String, Error> {
        let order = self.order(ticket);
        let may_be_task = self.asked.knows_tasks() && self.asked.revision.is_stateless();
        if !self.is_of_server() && !may_be_task {
            let made = Undertaking::new(self.stock, self.offer, order, Some(self.watched())).await;
            return self.told(made.map_err(broken)?).await;
        }
        if !self.asked.revision.is_stateless() {
            return self.in_rounds(order, resumed).await;
        }
        // Of a client that brings answers with its next request, the call goes on meanwhile.
        let (later, questions) = mpsc::channel(MOST_QUESTIONS);
        let cancel = order.called_off.clone();
        let calling = self.watched();
        let order = Call {
            peer: Some(self.asked.asker(Some(later), calling.traceparent())),
            resumed,
            ..order
        };
        let call = Undertaking::new(self.stock, self.offer, order, Some(calling));
        Box::pin(self.follow(Running::new(call, questions, cancel))).await
    }

    /// Waits for what comes of a call that runs beside.
    async fn follow(&self, mut running: Running) -> Result<String, Error> {
        let came = if self.asked.knows_tasks() {
            match tokio::time::timeout(tasks::LONG, running.next()).await {
                Ok(came) => came,
                Err(_) => return tasks::begin(self, running),
            }
        } else {
            running.next().await
        };
        match came {
            Came::Done(made) => self.told(*made).await,
            Came::Asks => self.asks(running),
            Came::Broke(words) => Err(broken(words)),
        }
    }

    /// Has the client answer what a call asks, while it waits here.
    fn asks(&self, mut running: Running) -> Result<String, Error> {
        running.call.go_on_beside();
        let requests = running.asks();
        let full = || Error::new(Code::Internal, "too many calls wait for answers");
        let name = self.gateway.waiting.keep(running).ok_or_else(full)?;
        self.input_required(&requests, State::Waits(name))
    }

    pub(crate) fn input_required(
        &self,
        requests: &Map<String, Value>,
        state: State,
    ) -> Result<String, Error> {
        let sealed = self.gateway.seal.close(state, &self.binding());
        let sealed = sealed.ok_or_else(|| Error::new(Code::Internal, "there is no randomness"))?;
        let told = json!({
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": sealed,
        });
        Ok(told.to_string())
    }

    /// Makes a call for a client that is asked at once, also by servers that want their call made again for it.
    async fn in_rounds(&self, order: Call, resumed: Option<Resumed>) -> Result<String, Error> {
        let mut calling = self.watched();
        let asker = self.asked.asker(None, calling.traceparent());
        let mut order = Call { peer: Some(asker.clone()), resumed, ..order };
        for _ in 0..MOST_ROUNDS {
            let made = Undertaking::new(self.stock, self.offer, order.clone(), None).await;
            let made = made.map_err(broken)?;
            calling.ended(made.failure());
            let Some(requests) = input_requests(&made) else {
                drop(calling);
                return self.told(made).await;
            };
            let state = made.said.as_ref().and_then(|said| said["requestState"].as_str());
            let mut responses = Map::new();
            for (name, request) in requests {
                let method = request["method"].as_str().unwrap_or_default();
                match host::Peer::ask(&*asker, method, request["params"].clone()).await {
                    Ok(answer) => responses.insert(name.clone(), answer),
                    Err(refused) => {
                        let told = Error::new(Code::Said(refused.code), refused.message);
                        return Err(told);
                    }
                };
            }
            order.resumed = Some(Resumed { responses, state: state.map(str::to_owned) });
        }
        Err(Error::new(Code::Internal, format!("the server asked more than {MOST_ROUNDS} times")))
    }

    /// What a client is told of a call that was made.
    async fn told(&self, mut made: Made) -> Result<String, Error> {
        let own = made.violation.take().map(|violation| (Arc::clone(&self.offer.tool), violation));
        self.gateway.violated(own.into_iter().chain(made.step_violations.drain(..)));
        if let Some(requests) = input_requests(&made) {
            let state = made.said.as_ref().and_then(|said| said["requestState"].as_str());
            return self.input_required(requests, State::Server(state.map(str::to_owned)));
        }
        if let Some(said) = made.said.as_ref().filter(|said| said["resultType"] == "task") {
            return tasks::of_server(self, said);
        }
        let revision = self.asked.revision;
        match (made.reply, made.said) {
            (Ok(_), Some(said)) => Ok(result::whole(said, revision)),
            (Ok(output), None) => Ok(result::whole(result::of_output(output), revision)),
            (Err(error), _) if asking::is_question(&error) => {
                Box::pin(asking::ask(self, &error)).await
            }
            // The tool's own word that it failed is passed on as it is.
            (Err(_), Some(said)) if said["isError"] == true => Ok(result::whole(said, revision)),
            (Err(error), _) => match Error::of_server(&error) {
                Some(said) if self.is_of_server() => Err(said),
                _ => Ok(self.refused(&error)),
            },
        }
    }

    pub(crate) fn refused(&self, error: &host::CallError) -> String {
        let told = refusal::told(error, &self.offer.tool, self.gateway.console.as_deref());
        result::whole(told, self.asked.revision)
    }
}

/// A call that did not come to its end.
fn broken(words: &str) -> Error {
    Error::new(Code::Internal, words)
}

/// What a server asks before it goes on.
fn input_requests(made: &Made) -> Option<&Map<String, Value>> {
    let said = made.said.as_ref()?;
    (said["resultType"] == "input_required").then(|| said["inputRequests"].as_object())?
}

/// Whether a view shows single tools at all.
pub(crate) fn is_raw(view: &View) -> bool {
    matches!(view, View::Raw(_))
}
