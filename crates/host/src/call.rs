//! One call: what is asked for, and what comes back.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use egress::http::{HeaderMap, HeaderName, HeaderValue};
use futures_util::future::BoxFuture;
use ledger::state::approvals::TicketId;
use manifest::model::{Action, Package, Trust};
use policy::{Consent, Grant, Question, Surface};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use vault::Secret;

use crate::brought::Brought;
use crate::chain::Linked;
use crate::error::{CallError, Kind};
use crate::surface::Surface as Offered;

/// A package that can be called, and where its files lie.
#[derive(Clone, Debug)]
pub struct Tool {
    /// What it says about itself.
    pub package: Package,
    /// The folder with its files, without links in its path.
    pub root: PathBuf,
    /// Where the owner has it, without links: the folder of its manifest, or the archive that was unpacked.
    pub place: PathBuf,
    /// How the owner came to have it.
    pub consent: Consent,
    /// How far its source is trusted; what the package claims can only lower it.
    pub source_trust: Trust,
    /// What it is given that is not kept, or not yet.
    pub given: Given,
    /// What the owner approved of all that it offers, where it is a server that was asked: one that offers
    /// something else is not called.
    pub surface: Option<Offered>,
    /// What was acquired for it.
    pub brought: Brought,
    /// What its steps call, where it is a chain and somebody looked them up, or why that cannot be said.
    pub links: Option<Result<Arc<Linked>, CallError>>,
    /// What stands for every file that it is made of, where those cannot change unnoticed.
    pub digest: Option<String>,
}

/// What a tool is given that is not kept, or not yet: while it is installed, and while it is revoked.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Values of its inputs, by name. They stand before those that are kept.
    pub values: Vec<(String, Secret)>,
    /// Hosts on the card that the owner accepted, as rules; they lead to no private place.
    pub hosts: Vec<String>,
    /// What the owner granted by their own word, beside what they granted before.
    pub grants: Vec<Grant>,
}

impl Tool {
    /// The action of that name; a tool with one action is also called by its id or its own name.
    pub fn action(&self, name: &str) -> Option<&Action> {
        let package = &self.package;
        let by_name = package.actions.iter().find(|action| action.name == name);
        by_name.or_else(|| match package.actions.as_slice() {
            [only] => self.is_called(name).then_some(only),
            _ => None,
        })
    }

    /// The folder of its files as the owner has them, tests among them; of an archive, where it was unpacked.
    pub fn folder(&self) -> &Path {
        if self.place.is_dir() { &self.place } else { &self.root }
    }

    /// The version that its calls are counted under. What is called from a path may be anything by now, so it is counted apart
    /// from what is installed.
    pub fn counted_version(&self) -> String {
        let version = self.package.semver();
        match self.consent {
            Consent::ByPath if version.contains('+') => format!("{version}.path"),
            Consent::ByPath => format!("{version}+path"),
            Consent::ByCard { .. } => version,
        }
    }

    /// The tool that an error is about: of a chain the one whose step failed.
    pub fn about(&self, error: &CallError) -> &Self {
        let step = error.details["step"]["package"].as_str();
        let linked = self.links.as_ref().and_then(|links| links.as_ref().ok());
        step.zip(linked).and_then(|(package, linked)| linked.tool(package)).map_or(self, |one| one)
    }

    /// The tools behind its steps, of a chain.
    pub(crate) fn linked(&self) -> Result<&Arc<Linked>, CallError> {
        match &self.links {
            Some(links) => links.as_ref().map_err(Clone::clone),
            None => Err(CallError::new(
                Kind::Unavailable,
                format!("nobody has looked up what the steps of `{}` call", self.package.id),
            )),
        }
    }

    /// Whether a path lies among its files, or among what was acquired for it.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        let brought = self.brought.folder.as_ref();
        path.starts_with(&self.root) || brought.is_some_and(|folder| path.starts_with(folder))
    }

    /// Whether the package is meant by a name: its id, alone or with its namespace or dialect, or its own name.
    pub fn is_called(&self, name: &str) -> bool {
        let package = &self.package;
        let with_namespace =
            package.namespace.as_ref().map(|space| format!("{space}/{}", package.id));
        name == package.id
            || package.name.as_deref() == Some(name)
            || with_namespace.as_deref() == Some(name)
            || package.canonical_id() == name
    }

    /// How far it is trusted: the lower of what it claims, where its dialect can, and what is known.
    pub fn trust(&self) -> Trust {
        match self.package.dialect {
            manifest::dialect::Dialect::Capability => self.package.trust.min(self.source_trust),
            _ => self.source_trust,
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Call {
    /// The name of the action.
    pub action: String,
    /// The input, as the caller wrote it.
    pub input: String,
    /// Where it comes from.
    pub surface: Surface,
    /// Who asks the owner while the call waits, where that is possible.
    pub approver: Option<Arc<dyn Approver>>,
    /// The ticket of a question that an earlier call of an agent raised, once the owner has answered.
    pub ticket: Option<TicketId>,
    /// The caller's folder.
    pub folder: PathBuf,
    /// How long it may take at most, where the caller would have it take less than it may.
    pub within: Option<Duration>,
    /// Who is told how far it is, where the tool says so.
    pub progress: Option<Arc<dyn Progress>>,
    /// The implementation that the owner wants it made by, and no other.
    pub implementation: Option<String>,
    /// Whom a server that is called can speak with meanwhile.
    pub peer: Option<Arc<dyn Peer>>,
    /// What was answered to what an earlier try of it asked.
    pub resumed: Option<Resumed>,
    /// Where it belongs among the calls of others: whatever is asked for it is told so.
    pub context: Option<TraceContext>,
    /// With it the caller calls it off.
    pub called_off: CancellationToken,
}

impl Call {
    /// How long whoever it is made for has been asked by the tool.
    pub(crate) fn waited(&self) -> Duration {
        self.peer.as_ref().map(|peer| peer.waited()).unwrap_or_default()
    }

    /// A call of another action that comes from where this one does, for as long as this one is not called off. Nobody
    /// watches it, and no ticket is for it.
    pub(crate) fn of_step(&self, action: &str, input: String) -> Self {
        Self {
            action: action.to_owned(),
            input,
            surface: self.surface.clone(),
            approver: self.approver.clone(),
            ticket: None,
            folder: self.folder.clone(),
            within: None,
            progress: None,
            implementation: None,
            peer: None,
            resumed: None,
            context: self.context.clone(),
            called_off: self.called_off.clone(),
        }
    }
}

/// Where a call belongs among those of others, as the W3C writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace, and the part of it that the call is.
    pub parent: String,
    /// What others keep with the trace.
    pub state: Option<String>,
}

impl TraceContext {
    /// What the trace is called in headers and in `_meta`.
    pub const PARENT: &'static str = "traceparent";

    /// The same for what tracing systems keep with it.
    pub const STATE: &'static str = "tracestate";

    /// What both are called among the variables of a program.
    pub(crate) const VARIABLES: [&'static str; 2] = ["TRACEPARENT", "TRACESTATE"];

    /// Tells it beside the parameters of a request, in place of what is told there.
    pub fn put_into_meta(&self, meta: &mut Map<String, Value>) {
        meta.shift_remove(Self::STATE);
        meta.extend(self.members().map(|(name, text)| (name.to_owned(), text.into())));
    }

    /// Tells it in the head of a request, unless that says something of its own.
    pub(crate) fn put_into_head(&self, head: &mut HeaderMap) {
        if head.contains_key(Self::PARENT) || head.contains_key(Self::STATE) {
            return;
        }
        for (name, text) in self.members() {
            if let Ok(value) = HeaderValue::from_str(text) {
                head.insert(HeaderName::from_static(name), value);
            }
        }
    }

    /// The same for a program that is started for one call, or asked for it: as variables.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let state = self.state.iter().map(|state| (Self::VARIABLES[1], state.as_str()));
        [(Self::VARIABLES[0], self.parent.as_str())].into_iter().chain(state)
    }

    fn members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let state = self.state.iter().map(|state| (Self::STATE, state.as_str()));
        [(Self::PARENT, self.parent.as_str())].into_iter().chain(state)
    }
}

/// Whoever a call is made for, where they speak MCP themselves: a server that is called can ask them and tell them something
/// meanwhile. It is a stranger's word that is passed on, so nothing that is the owner's to say is said here.
pub trait Peer: fmt::Debug + Send + Sync {
    /// Which conversation it is.
    fn conversation(&self) -> &str;

    /// Who is asked, so that several calls of one can be told from those of others. Where an answer comes back for the very call that it
    /// was asked for, each has its own.
    fn client(&self) -> &str;

    /// What they can be asked, as the protocol writes it.
    fn capabilities(&self) -> &Map<String, Value>;

    /// What is passed on beside the arguments: where a call belongs in a trace, what is to be told of it.
    fn meta(&self) -> Map<String, Value>;

    /// Asks them something, in the server's words.
    fn ask<'p>(&'p self, method: &'p str, params: Value) -> BoxFuture<'p, Result<Value, Refused>>;

    /// Tells them something, in the server's words. It must return soon.
    fn tell(&self, method: &str, params: Value);

    /// How long they have been asked for until now, all questions together: a call does not get older meanwhile.
    fn waited(&self) -> Duration;
}

/// Why whoever was asked gave no answer, as the protocol writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The code.
    pub code: i32,
    /// The words.
    pub message: String,
    /// What else is said.
    pub data: Option<Value>,
}

/// What was answered to what an earlier try of a call asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    /// By the names of the questions.
    pub responses: Map<String, Value>,
    /// What the server wants to have back with them.
    pub state: Option<String>,
}

/// Asks the owner about a call. Each face that has the owner before it brings its own.
pub trait Approver: fmt::Debug + Send + Sync {
    /// What the owner says, `None` where nobody can be asked, or why their word does not count. It may take as
    /// long as a person takes.
    fn ask(&self, matter: &Matter) -> Result<Option<Said>, CallError>;

    /// Whether anybody can be asked now. A tool need not be heard where nobody can.
    fn is_there(&self) -> bool;
}

/// What the owner is asked about.
#[derive(Clone, Debug)]
pub struct Matter {
    /// The package, with its dialect.
    pub package: String,
    /// The action.
    pub action: String,
    /// The arguments it will be called with, as JSON.
    pub input: String,
    /// Why it is asked.
    pub question: Question,
    /// What the tool would have the owner told. A stranger's words.
    pub message: Option<String>,
    /// Whether these arguments can be remembered, and no others with them.
    pub can_be_remembered: bool,
    /// Of a chain: the steps that the owner has to be asked about, which a yes is for as well.
    pub steps: Vec<AskedStep>,
}

/// A step of a chain that the owner has to be asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedStep {
    /// Its name, after those of the chains around it.
    pub step: String,
    /// The package that it calls, with its dialect.
    pub package: String,
    /// The action.
    pub action: String,
    /// Where its input comes from: each member, and from where.
    pub takes: Vec<(String, String)>,
    /// The list that it is made for each element of, where it is.
    pub each: Option<String>,
    /// Why the owner has to be asked.
    pub because: String,
}

/// What the owner has to be asked first, and all that they are shown of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unasked {
    /// The question.
    pub question: Question,
    /// The input as the tool would get it, where it is known.
    pub input: Option<String>,
    /// Of a chain: the steps that a yes is for as well.
    pub steps: Vec<AskedStep>,
}

/// What the owner says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Yes, to this one call.
    Once,
    /// Yes, and from now on: to the action, where the question is for the first time only; else to it with
    /// these arguments.
    Always,
    /// No.
    No,
}

/// Is told how far a call is. Each face brings its own: a line on the terminal, a notification.
pub trait Progress: fmt::Debug + Send + Sync {
    /// Is told once more. It is called between messages of the tool, so it must return soon; what it is
    /// told is the tool's word.
    fn advanced(&self, advance: &Advance);

    /// Is told the next record of a tool that answers with a stream of them. All of them are in the result
    /// too, if there is one in the end.
    fn recorded(&self, record: &Value);
}

/// How far a call is, as the tool says.
#[derive(Clone, Debug, PartialEq)]
pub struct Advance {
    /// What is done.
    pub done: f64,
    /// What there is to do, where that is known.
    pub total: Option<f64>,
    /// What it is doing.
    pub message: Option<String>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A JSON value.
    Json(Value),
    /// Text.
    Text(String),
    /// Bytes.
    Binary {
        /// The bytes.
        bytes: Vec<u8>,
        /// What they are, where that is known.
        media_type: Option<String>,
    },
    /// Records, as they came.
    Records(Vec<Value>),
    /// Nothing.
    Nothing,
}

/// The longest media type: a stranger's words that are shown.
const LONGEST_TYPE: usize = 128;

impl Output {
    /// Bytes, and what a stranger says they are, where that can be.
    pub(crate) fn binary(bytes: Vec<u8>, said: Option<&str>) -> Self {
        Self::Binary {
            bytes,
            media_type: said.filter(|said| is_media_type(said)).map(str::to_owned),
        }
    }

    /// The result as one JSON value: bytes in base64 with their type, records as a list.
    pub fn into_value(self) -> Value {
        match self {
            Self::Json(value) => value,
            Self::Text(text) => Value::String(text),
            Self::Binary { bytes, media_type } => {
                use base64::Engine;
                let data = base64::engine::general_purpose::STANDARD.encode(bytes);
                let media_type =
                    media_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                serde_json::json!({ "mediaType": media_type, "data": data })
            }
            Self::Records(records) => Value::Array(records),
            Self::Nothing => Value::Null,
        }
    }
}

/// Whether a text is `type/subtype`, perhaps with parameters.
fn is_media_type(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    text.len() <= LONGEST_TYPE
        && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        && essence.split_once('/').is_some_and(|(kind, sub)| is_name(kind) && is_name(sub))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_media_type_is_not_told() {
        let told = |said: &str| match Output::binary(Vec::new(), Some(said)) {
            Output::Binary { media_type, .. } => media_type,
            _ => None,
        };
        for said in ["image/png", "image/svg+xml", "text/csv; charset=utf-8; header=present"] {
            assert_eq!(told(said).as_deref(), Some(said));
        }
        let long = format!("image/{}", "x".repeat(200));
        for said in ["", "png", "/png", "image/", "image/p ng", "image/\u{1b}[2J", "a/b; \n", &long]
        {
            assert_eq!(told(said), None, "{said}");
        }
    }
}
