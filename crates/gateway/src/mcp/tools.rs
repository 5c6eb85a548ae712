//! `tools/list` and `tools/call`.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use host::{Call, CallError, Made, Peer, Resumed};
use ledger::state::approvals::TicketId;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::client::{Asked, Question};
use super::error::{Code, Error};
use super::rounds::{self, Answers, broken, not_ours, wanted};
use super::seal::{Binding, State};
use super::serve::missing;
use super::waiting::{Came, Questions, Running};
use super::{asking, finding, result, tasks};
use crate::gateway::Gateway;
use crate::offer::Offer;
use crate::refusal;
use crate::shelf::Stock;
use crate::undertaking::Undertaking;
use crate::view::View;
use crate::watch::Calling;

/// What is told of a tool that was there when its call began.
const GONE: &str = "the tool is not there any more";

/// How many questions a task shows at a time.
const MOST_SHOWN: usize = 16;

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
        None => return Box::pin(not_there(gateway, asked, &stock, &name)).await,
    };
    stock = gateway.shelf.stock_with(stock, &found.package).await;
    let Some(offer) = stock.list(view).offer(&name).cloned() else {
        return Box::pin(not_there(gateway, asked, &stock, &name)).await;
    };
    make(gateway, asked, &stock, &offer, arguments, answers).await
}

/// What is told of a call of something that is not there: of one that is known and cannot be called, why not.
async fn not_there(
    gateway: &Gateway,
    asked: &Asked,
    stock: &Stock,
    name: &str,
) -> Result<String, Error> {
    match finding::not_reached(gateway, asked, stock, name).await {
        Some(refused) => Ok(result::whole(refused, asked.revision)),
        None => Err(Error::new(Code::BadParameters, format!("Unknown tool: {name}"))),
    }
}

/// A call on its way: everything that it is made of.
pub(crate) struct Making<'m> {
    pub(crate) gateway: &'m Arc<Gateway>,
    pub(crate) asked: &'m Asked,
    pub(crate) stock: Arc<Stock>,
    pub(crate) offer: Arc<Offer>,
    pub(crate) input: String,
    /// Whether the client's person was asked for the owner's word, and gave none.
    pub(crate) looked_away: bool,
    /// What the call that is made now brings its server.
    pub(crate) resumed: Option<Resumed>,
}

/// What a call is made with that was asked for before.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    /// The owner's word.
    ticket: Option<TicketId>,
    /// What the server asked.
    resumed: Option<Resumed>,
}

/// What came of a call.
pub(crate) enum Outcome {
    Ended(Ended),
    /// It is made again once its client says something: what is asked, by name, and what the answers come back with.
    Asks(Map<String, Value>, State),
}

/// How a call ended.
pub(crate) enum Ended {
    /// With a result.
    Whole(Value),
    /// Its server made a task of it, and says so.
    Task(Value),
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
    let input = arguments.to_string();
    let (looked_away, resumed) = (false, None);
    let (stock, offer) = (Arc::clone(stock), Arc::clone(offer));
    let mut making = Making { gateway, asked, stock, offer, input, looked_away, resumed };
    let Some(state) = &answers.state else {
        let resumed = answers.responses.map(|responses| Resumed { responses, state: None });
        return making.start(Brought { ticket: None, resumed }).await;
    };
    let opened = gateway.seal.open(state, &making.binding()).ok_or_else(not_ours)?;
    let responses = answers.responses.unwrap_or_default();
    if let State::Waits(name) = opened {
        let running = gateway.calls.again(&name, &responses)?;
        return Box::pin(making.follow(running)).await;
    }
    let brought = Box::pin(making.answered(opened, responses)).await?;
    making.start(brought).await
}

impl Making<'_> {
    /// What a state that is handed out for it is bound to.
    fn binding(&self) -> Binding {
        let Offer { package, action, .. } = &*self.offer;
        let who = &self.asked.client.name;
        let view = self.asked.client.view.name();
        Binding::of(&[who, &view, "tools/call", &package.id, action, &self.input])
    }

    /// Begins a call. What it asks is asked of its client at once, or handed over for later.
    fn undertake(
        &mut self,
        brought: Brought,
        later: Option<&mpsc::Sender<Question>>,
    ) -> Undertaking {
        self.resumed.clone_from(&brought.resumed);
        let (client, calling) = (&self.asked.client, self.watched());
        let mut order = Call {
            action: self.offer.action.clone(),
            input: self.input.clone(),
            surface: self.asked.surface(),
            approver: None,
            ticket: brought.ticket,
            folder: client.folder.clone(),
            within: None,
            progress: self.asked.progress(),
            implementation: None,
            peer: None,
            resumed: brought.resumed,
            context: None,
            called_off: self.asked.cancel.child_token(),
        };
        if self.is_of_server() || later.is_some() {
            order.peer = Some(self.asked.asker(later.cloned()));
        }
        Undertaking::new(self.gateway, &self.stock, &self.offer, order, calling)
    }

    /// Whether a server is behind it, which may have something to say while it works.
    fn is_of_server(&self) -> bool {
        self.offer.tool.surface.is_some()
    }

    /// Begins to count and to tell where its time goes.
    fn watched(&self) -> Calling {
        self.gateway.watch.call(&self.offer.name, self.asked.told_of(&self.offer.package.id))
    }

    /// Makes the call, and says what its client is told.
    async fn start(&mut self, brought: Brought) -> Result<String, Error> {
        if !self.asked.revision.is_stateless() {
            let call = self.undertake(brought, None);
            let ended = self.in_rounds(call, None).await?;
            return self.ended(ended);
        }
        if !self.is_of_server() && !self.asked.knows_tasks() {
            let made = self.undertake(brought, None).await.map_err(broken)?;
            return self.told(made);
        }
        // Of a client that brings answers with its next request, the call goes on meanwhile.
        let questions = Questions::new();
        let call = self.undertake(brought, Some(&questions.later()));
        Box::pin(self.follow(Running { call, questions })).await
    }

    /// Waits for what comes of a call that runs beside. One that takes long becomes a task; where there is no place for it, its client
    /// waits as one that knows no tasks.
    async fn follow(&self, mut running: Running) -> Result<String, Error> {
        let soon = if self.asked.knows_tasks() {
            tokio::time::timeout(tasks::LONG, running.next()).await.ok()
        } else {
            Some(running.next().await)
        };
        let came = match soon {
            Some(came) => came,
            None => match tasks::open(self)? {
                Some(opened) => return Ok(tasks::begin(self, running, opened)),
                None => running.next().await,
            },
        };
        match came {
            Came::Done(made) => self.told(*made),
            Came::Asks => {
                let (requests, state) =
                    self.gateway.calls.hold(&self.asked.client.name, running)?;
                self.input_required(requests, state)
            }
            Came::Broke(words) => Err(broken(words)),
        }
    }

    /// Has the client make its request again with what is asked.
    fn input_required(&self, requests: Map<String, Value>, state: State) -> Result<String, Error> {
        let told = rounds::input_required(self.gateway, &self.binding(), requests, state)?;
        Ok(told.to_string())
    }

    /// Brings a call to its end for a client that is asked meanwhile: it is made again with whatever the client answers.
    pub(crate) async fn in_rounds(
        &mut self,
        mut call: Undertaking,
        later: Option<&mpsc::Sender<Question>>,
    ) -> Result<Ended, Error> {
        for _ in 0..rounds::MOST {
            let (requests, state) = match self.outcome(call.await.map_err(broken)?)? {
                Outcome::Ended(ended) => return Ok(ended),
                Outcome::Asks(requests, state) => (requests, state),
            };
            let responses = match (Box::pin(self.ask(requests, later)).await, &state) {
                (Ok(responses), _) => responses,
                // Whoever cannot be asked has said no more than who looks away.
                (Err(_), State::Ticket(..)) => {
                    self.looked_away = true;
                    Map::new()
                }
                (Err(refused), _) => return Err(refused),
            };
            if let Some(refused) = Box::pin(self.look_again()).await {
                return Ok(Ended::Whole(refused));
            }
            let brought = Box::pin(self.answered(state, responses)).await?;
            call = self.undertake(brought, later);
        }
        Err(rounds::too_many())
    }

    /// Goes on with what is installed and allowed now: whoever was asked may have thought about it for long. What is told where it
    /// cannot be called any more.
    async fn look_again(&mut self) -> Option<Value> {
        let (gateway, before, view) = (self.gateway, &self.offer, &self.asked.client.view);
        let stock = gateway.shelf.stock_for_call().await;
        let stock = gateway.shelf.stock_with(stock, &before.package).await;
        let is_it = |offer: &&Arc<Offer>| {
            offer.package.id == before.package.id && offer.action == before.action
        };
        let found = stock.list(view).offers.iter().map(|(_, offer)| offer).find(is_it).cloned();
        if let Some(offer) = found {
            (self.stock, self.offer) = (stock, offer);
            return None;
        }
        let name = if is_raw(view) { &before.action } else { &before.name };
        let refused = finding::not_reached(gateway, self.asked, &stock, name).await;
        let gone = || refusal::in_result(GONE, &json!({ "code": "unknown_tool", "message": GONE }));
        Some(refused.unwrap_or_else(gone))
    }

    /// Asks the client. A person is shown one question after the other, a task shows all that it waits for.
    async fn ask(
        &self,
        requests: Map<String, Value>,
        later: Option<&mpsc::Sender<Question>>,
    ) -> Result<Map<String, Value>, Error> {
        let asker = &self.asked.asker(later.cloned());
        let each = requests.into_iter().map(|(name, mut request)| async move {
            let params = request["params"].take();
            let answer = asker.ask(request["method"].as_str().unwrap_or_default(), params).await;
            let told =
                |refused: host::Refused| Error::new(Code::Said(refused.code), refused.message);
            answer.map(|answer| (name, answer)).map_err(told)
        });
        let at_once = if later.is_some() { MOST_SHOWN } else { 1 };
        let all: Vec<_> = stream::iter(each).buffered(at_once).try_collect().await?;
        Ok(all.into_iter().collect())
    }

    /// What the call is made with now that what was asked is answered.
    async fn answered(
        &mut self,
        state: State,
        responses: Map<String, Value>,
    ) -> Result<Brought, Error> {
        match state {
            State::Server(state) => {
                Ok(Brought { ticket: None, resumed: Some(Resumed { responses, state }) })
            }
            State::Ticket(ticket, resumed) => {
                let ticket = asking::answered(self, &ticket, &responses).await?;
                Ok(Brought { ticket: Some(ticket), resumed })
            }
            State::Waits(_) | State::Task(_) | State::TaskOf(..) | State::TaskBeyond(..) => {
                Err(not_ours())
            }
        }
    }

    /// What came of a call that was made.
    fn outcome(&self, made: Made) -> Result<Outcome, Error> {
        let Made { reply, said, .. } = made;
        if let Some((requests, state)) = said.as_ref().and_then(wanted) {
            return Ok(Outcome::Asks(requests, state));
        }
        let ended = match (reply, said) {
            (_, Some(said)) if said["resultType"] == "task" => Ended::Task(said),
            (Ok(_), Some(said)) => Ended::Whole(said),
            (Ok(output), None) => Ended::Whole(result::of_output(output)),
            (Err(error), said) => return self.outcome_of(&error, said),
        };
        Ok(Outcome::Ended(ended))
    }

    /// What came of a call that failed.
    fn outcome_of(&self, error: &CallError, said: Option<Value>) -> Result<Outcome, Error> {
        if let Some((requests, state)) = asking::question_of(self, error) {
            return Ok(Outcome::Asks(requests, state));
        }
        // The tool's own word that it failed is passed on as it is.
        let own = said.filter(|said| said["isError"] == true);
        let in_protocol = Error::of_server(error).filter(|_| self.is_of_server());
        match (own, in_protocol) {
            (Some(said), _) => Ok(Outcome::Ended(Ended::Whole(said))),
            (None, Some(refused)) => Err(refused),
            (None, None) => {
                let told = refusal::told(error, &self.offer.tool, self.gateway);
                Ok(Outcome::Ended(Ended::Whole(told)))
            }
        }
    }

    /// What a client is told of a call that was made.
    fn told(&self, made: Made) -> Result<String, Error> {
        match self.outcome(made)? {
            Outcome::Ended(ended) => self.ended(ended),
            Outcome::Asks(requests, state) => self.input_required(requests, state),
        }
    }

    /// What it is told of one that ended.
    fn ended(&self, ended: Ended) -> Result<String, Error> {
        match ended {
            Ended::Whole(result) => Ok(result::whole(result, self.asked.revision)),
            Ended::Task(said) => tasks::of_server(self, said),
        }
    }
}

/// Whether a view is one package, passed through.
pub(crate) fn is_raw(view: &View) -> bool {
    matches!(view, View::Raw(_))
}
