//! Tools for finding tools: where there are too many to be shown, an agent finds, looks at and calls them by these.

use std::sync::Arc;

use ledger::state::wishes::Wish;
use policy::policy::AgentInstall;
use search::Query;
use serde_json::{Value, json};

use super::client::Asked;
use super::error::{Code, Error};
use super::result;
use super::rounds::Answers;
use super::tools::{is_raw, make};
use crate::bring;
use crate::gateway::Gateway;
use crate::refusal;
use crate::shelf::Stock;
use crate::view::{List, View};

/// How many are found unless more are wanted, and how many at most.
const FOUND: usize = 8;
const MOST_FOUND: usize = 50;

/// The longest summary of one that is found.
const LONGEST_SUMMARY: usize = 300;

/// How long what is said of a tool that is wished for may be.
const LONGEST_WISH: usize = 500;

/// A tool of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    Find,
    Describe,
    Call,
    Request,
    Install,
}

impl Own {
    const ALL: [Self; 5] = [Self::Find, Self::Describe, Self::Call, Self::Request, Self::Install];

    fn name(self) -> &'static str {
        match self {
            Self::Find => "find_tools",
            Self::Describe => "describe_tool",
            Self::Call => "call_tool",
            Self::Request => "request_tool",
            Self::Install => "install_tool",
        }
    }

    fn definition(self) -> Value {
        let (description, properties, required) = match self {
            Self::Find => (
                "Finds tools by what they do. Names and summaries come back, the best first; describe_tool shows what one takes.",
                json!({
                    "query": { "type": "string", "description": "What the tool should do, in a few words" },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": FOUND },
                }),
                json!(["query"]),
            ),
            Self::Describe => (
                "Shows what a tool does, what it takes and what it answers.",
                json!({ "name": { "type": "string", "description": "As find_tools names it" } }),
                json!(["name"]),
            ),
            Self::Call => (
                "Calls a tool that find_tools found.",
                json!({
                    "name": { "type": "string", "description": "As find_tools names it" },
                    "arguments": { "type": "object", "description": "What the tool takes, as describe_tool shows it", "default": {} },
                }),
                json!(["name"]),
            ),
            Self::Request => (
                "Asks the owner of this machine for a tool that is not here. They decide; look for it again later.",
                json!({
                    "tool": { "type": "string", "maxLength": LONGEST_WISH, "description": "The id of the tool, or what it should do" },
                    "why": { "type": "string", "maxLength": LONGEST_WISH, "description": "What it is needed for" },
                }),
                json!(["tool", "why"]),
            ),
            Self::Install => (
                "Installs a tool of a registry, as far as the owner of this machine lets it in without being asked.",
                json!({ "tool": { "type": "string", "maxLength": LONGEST_WISH, "description": "The id of the tool" } }),
                json!(["tool"]),
            ),
        };
        let [reads, destroys, is_idempotent, is_open] = match self {
            Self::Find | Self::Describe => [true, false, true, false],
            // It may be a call of anything.
            Self::Call => [false, true, false, true],
            Self::Request => [false, false, true, false],
            Self::Install => [false, false, true, true],
        };
        json!({
            "name": self.name(),
            "title": self.name(),
            "description": description,
            "inputSchema": { "type": "object", "properties": properties, "required": required, "additionalProperties": false },
            "annotations": {
                "title": self.name(),
                "readOnlyHint": reads,
                "destructiveHint": destroys,
                "idempotentHint": is_idempotent,
                "openWorldHint": is_open,
            },
        })
    }
}

/// The tools of ours that a view has.
fn own(stock: &Stock, view: &View, list: &List) -> impl Iterator<Item = Own> {
    let (is_raw, is_folded, install) = (is_raw(view), list.is_folded, stock.policy.agents.install);
    let is_closed = stock.closed_to(view).is_some();
    Own::ALL.into_iter().filter(move |own| match own {
        _ if is_raw => false,
        // An agent that sees none learns from it why.
        _ if is_closed => *own == Own::Find,
        Own::Find | Own::Describe | Own::Call => is_folded,
        Own::Request => install == AgentInstall::Request,
        Own::Install => install == AgentInstall::Allow,
    })
}

/// The definitions of our own that a view shows, as they are sent.
pub(crate) fn definitions(stock: &Stock, view: &View, list: &List) -> String {
    let closed = stock.closed_to(view);
    let define = |own: Own| {
        let mut definition = own.definition();
        if let Some(words) = &closed {
            definition["description"] = format!("Finds nothing now: {words}.").into();
        }
        definition.to_string()
    };
    own(stock, view, list).map(define).collect::<Vec<_>>().join(",")
}

/// The tool of ours that is meant by a name. What is installed under the same name comes first.
pub(crate) fn meant(name: &str, stock: &Stock, view: &View) -> Option<Own> {
    let list = stock.list(view);
    if list.offer(name).is_some() {
        return None;
    }
    own(stock, view, &list).find(|own| own.name() == name)
}

/// Answers a call of a tool of ours.
pub(crate) async fn call(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    stock: &Arc<Stock>,
    own: Own,
    mut arguments: Value,
    answers: Answers,
) -> Result<String, Error> {
    if let Some(words) = stock.closed_to(&asked.client.view) {
        return Ok(refused(asked, &words, &refusal::closed(&words)));
    }
    let list = stock.list(&asked.client.view);
    let name = arguments["name"].as_str().map(str::to_owned);
    match own {
        Own::Find => {
            let Some(query) = arguments["query"].as_str() else {
                return Ok(wrong(asked, "`query` is missing"));
            };
            let limit = arguments["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok());
            let limit = limit.unwrap_or(FOUND).clamp(1, MOST_FOUND);
            Ok(found(asked, stock, &list, query, limit).await)
        }
        Own::Describe => match name.as_deref().and_then(|name| list.offer(name)) {
            Some(offer) => {
                let told = json!({ "tool": offer.definition });
                Ok(structured(asked, &told))
            }
            None => Ok(no_such(gateway, asked, stock, name.as_deref()).await),
        },
        Own::Call => {
            let passed = match arguments.get_mut("arguments").map(Value::take) {
                None | Some(Value::Null) => json!({}),
                Some(passed @ Value::Object(_)) => passed,
                Some(_) => return Ok(wrong(asked, "`arguments` is no object")),
            };
            let Some(name) = &name else { return Ok(no_such(gateway, asked, stock, None).await) };
            let mut stock = Arc::clone(stock);
            if let Some(offer) = list.offer(name) {
                stock = gateway.shelf.stock_with(stock, &offer.package).await;
            }
            if let Some(offer) = stock.list(&asked.client.view).offer(name) {
                return make(gateway, asked, &stock, offer, passed, answers).await;
            }
            match not_reached(gateway, asked, &stock, name).await {
                Some(refused) => Ok(result::whole(refused, asked.revision)),
                None => Ok(no_such(gateway, asked, &stock, Some(name)).await),
            }
        }
        Own::Request => request(gateway, asked, stock, &arguments).await,
        Own::Install => Ok(install(gateway, asked, &arguments).await),
    }
}

/// Installs a tool, as far as the policy lets it in without a question.
async fn install(gateway: &Gateway, asked: &Asked, arguments: &Value) -> String {
    let Some(id) = arguments["tool"].as_str() else { return wrong(asked, "`tool` is missing") };
    match bring::install(gateway, asked.surface().client(), id).await {
        Ok(told) => structured(asked, &told),
        Err(trouble) => refused(asked, &bring::in_words(&trouble), &bring::told(&trouble)),
    }
}

/// Leaves a request for the owner.
async fn request(
    gateway: &Gateway,
    asked: &Asked,
    stock: &Stock,
    arguments: &Value,
) -> Result<String, Error> {
    let text = |key: &str| {
        let text = arguments[key].as_str().map(str::trim).unwrap_or_default();
        (1..=LONGEST_WISH).contains(&text.len()).then(|| text.to_owned())
    };
    let (Some(tool), Some(why)) = (text("tool"), text("why")) else {
        let words = format!("`tool` and `why` are texts of 1 to {LONGEST_WISH} bytes");
        return Ok(wrong(asked, &words));
    };
    if tool.chars().any(char::is_control) {
        return Ok(wrong(asked, "`tool` is an id or a name, on one line"));
    }
    let (surface, at) = (asked.surface().name().to_owned(), host::records::now());
    let wish = Wish { tool, why, surface, client: Some(asked.client.name.clone()), at };
    let noted = stock.host.records().state.wish(&wish).await;
    noted.map_err(|error| Error::new(Code::Internal, error.to_string()))?;
    let page = gateway.console_told().map(|url| format!(", or at {url}/approvals"));
    let words = format!(
        "The request is left for the owner, who finds it with `haft approve requests`{}. Nothing is installed until they do so; go on without it meanwhile.",
        page.unwrap_or_default()
    );
    Ok(result::whole(json!({ "content": [result::text(&words)] }), asked.revision))
}

async fn found(asked: &Asked, stock: &Stock, list: &List, query: &str, limit: usize) -> String {
    // What is not of this view is left out, so more are asked for than are told.
    let query = Query::new(query).page(0, stock.offers.len().max(1));
    let page = stock.index().await.search(&query);
    let hits = page.hits.iter().filter_map(|hit| list.offer(&hit.key));
    let tools: Vec<_> = hits
        .take(limit)
        .map(|offer| json!({ "name": offer.name, "id": offer.package.id, "summary": summary(offer.summary()) }))
        .collect();
    let mut told = json!({ "tools": tools, "of": list.offers.len() });
    if tools.is_empty() {
        told["hint"] = match stock.policy.agents.install {
            AgentInstall::Never => "Nothing that is here fits; other words may find more.",
            AgentInstall::Request => {
                "Nothing that is here fits; other words may find more, and request_tool asks the owner for what is missing."
            }
            AgentInstall::Allow => {
                "Nothing that is here fits; other words may find more, and install_tool installs a tool by its id."
            }
        }
        .into();
    }
    structured(asked, &told)
}

/// The beginning of a text, where it is long.
fn summary(text: &str) -> String {
    match text.char_indices().nth(LONGEST_SUMMARY) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn structured(asked: &Asked, told: &Value) -> String {
    let whole = json!({ "content": [result::text(&told.to_string())], "structuredContent": told });
    result::whole(whole, asked.revision)
}

async fn no_such(gateway: &Gateway, asked: &Asked, stock: &Stock, name: Option<&str>) -> String {
    let Some(name) = name else { return wrong(asked, "`name` is missing") };
    let view = &asked.client.view;
    if let Some((package, _)) = stock.out_of_reach(view, name).await {
        let console = gateway.console_told();
        let words = refusal::out_of_reach_in_words(&package, console);
        return refused(asked, &words, &refusal::out_of_reach(&package, console));
    }
    let near = stock.near(&stock.list(view), name).await;
    let near = match near.as_slice() {
        [] => "find_tools finds those that there are".to_owned(),
        near => format!("did you mean {}?", near.join(", ")),
    };
    wrong(asked, &format!("there is no tool `{name}`; {near}"))
}

/// What a client is told that called what cannot be called: it is switched off or broken, which is written down, or nothing is called at
/// all.
pub(crate) async fn not_reached(
    gateway: &Gateway,
    asked: &Asked,
    stock: &Stock,
    name: &str,
) -> Option<Value> {
    let view = &asked.client.view;
    let Some((package, action)) = stock.out_of_reach(view, name).await else {
        return stock.closed_to(view).map(|words| refusal_of(&words, &refusal::closed(&words)));
    };
    let (surface, console) = (asked.surface(), gateway.console_told());
    let by = (surface.name(), surface.client());
    refusal::note_out_of_reach(stock, &package, (name, &action), by);
    let words = refusal::out_of_reach_in_words(&package, console);
    Some(refusal_of(&words, &refusal::out_of_reach(&package, console)))
}

/// What is wrong with what was asked for.
fn wrong(asked: &Asked, words: &str) -> String {
    let retry = "Try again with something else.";
    refused(asked, words, &json!({ "code": "bad_input", "message": words, "retry": retry }))
}

/// What was not done, in words and for programs.
fn refused(asked: &Asked, words: &str, error: &Value) -> String {
    result::whole(refusal_of(words, error), asked.revision)
}

/// The same before it is written for a revision.
fn refusal_of(words: &str, error: &Value) -> Value {
    let code = format!("(code: {})", error["code"].as_str().unwrap_or_default());
    let words = if words.ends_with(&code) { words.to_owned() } else { format!("{words} {code}") };
    refusal::in_result(&words, error)
}
