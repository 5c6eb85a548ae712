//! The actions of a package, gathered one by one, and how it is tried.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use url::Url;

use super::operation::{Made, Operation};
use super::schema::Document;
use super::security::Told;
use super::words::cut;
use super::{Wanted, filled};

/// How many operations that are left out are named.
const NAMED: usize = 20;

/// How many values a manifest asks for at most.
const MOST_ASKED: usize = 32;

/// What is said where nothing can be tried.
const UNTRIED: &str = "none of its operations changes nothing and can be called with what the document gives; --smoke names one that the package is tried with, and --smoke-input says with what";

/// The actions that were made, and what was not.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) actions: Vec<Value>,
    /// What the owner is asked for.
    pub(super) told: Vec<Told>,
    pub(super) left_out: Vec<String>,
    trials: Vec<Trial>,
    names: HashSet<String>,
    notes: Vec<String>,
}

/// What an action could be tried with.
struct Trial {
    name: String,
    operation: Option<String>,
    arguments: Option<Map<String, Value>>,
}

impl Gathered {
    /// Takes an operation, or notes why it is left out.
    pub(super) fn take<'d>(
        &mut self,
        operation: Operation<'d>,
        endpoint: &Url,
        wanted: &Wanted,
        reader: &mut Document<'d>,
    ) {
        let words = operation.words();
        // An address that was typed is that of all of them.
        if wanted.base_url.is_none() && is_elsewhere(&operation, reader.root, endpoint) {
            self.left_out.push(format!("{words}: it has a server of its own"));
            return;
        }
        let name = self.free(&operation.name());
        match operation.action(&name, reader).and_then(|made| self.without_known(made)) {
            Ok(Made { action, told, trial, notes }) => {
                self.names.insert(name.clone());
                self.actions.push(action);
                self.told.extend(told);
                let operation = operation.id().map(str::to_owned);
                self.trials.push(Trial { name, operation, arguments: trial });
                self.notes.extend(notes.into_iter().map(|note| format!("{words}: {note}")));
            }
            Err(why) => self.left_out.push(format!("{words}: {why}")),
        }
    }

    /// The same without what is asked for already; what one of them cannot do without is asked for in any case.
    fn without_known(&mut self, mut made: Made) -> Result<Made, String> {
        for one in &made.told {
            let known = self.told.iter_mut().find(|known| known.env == one.env);
            let Some(known) = known else { continue };
            if (&known.header, &known.value) != (&one.header, &one.value) {
                return Err("the names of two headers or schemes are too much alike".to_owned());
            }
            known.required |= one.required;
        }
        made.told.retain(|one| !self.told.iter().any(|known| known.env == one.env));
        if self.told.len() + made.told.len() > MOST_ASKED {
            return Err(format!("more than {MOST_ASKED} values would be asked for"));
        }
        Ok(made)
    }

    fn free(&self, name: &str) -> String {
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        names.find(|name| !self.names.contains(name)).unwrap_or_default()
    }

    /// How the package is tried: by what the owner named, or by an operation that changes nothing and needs nothing that
    /// the document does not give.
    pub(super) fn smoke(&self, wanted: &Wanted) -> Result<Value, String> {
        let nothing = Map::new();
        let (name, arguments) = match &wanted.smoke {
            Some(id) => {
                let is_meant = |one: &&Trial| one.name == *id || one.operation.as_ref() == Some(id);
                let missing = || format!("there is no operation `{}` to try it with", cut(id, 80));
                let found = self.trials.iter().find(is_meant).ok_or_else(missing)?;
                let given = wanted.smoke_input.as_ref().and_then(Value::as_object);
                (&found.name, given.or(found.arguments.as_ref()).unwrap_or(&nothing))
            }
            None => {
                let trials = self.trials.iter();
                let can = trials.filter_map(|one| Some((&one.name, one.arguments.as_ref()?)));
                can.min_by_key(|(_, arguments)| arguments.len()).ok_or(UNTRIED)?
            }
        };
        Ok(json!({"kind": "action-call", "action": name, "arguments": arguments, "success": {}}))
    }

    /// What is not carried, in a few lines.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (list, about) in [(&self.left_out, "left out: "), (&self.notes, "")] {
            warnings.extend(list.iter().take(NAMED).map(|one| format!("{about}{one}")));
            if list.len() > NAMED {
                warnings.push(format!("{about}{} more", list.len() - NAMED));
            }
        }
        warnings
    }
}

/// Whether an operation is reached somewhere else than the rest.
fn is_elsewhere(operation: &Operation<'_>, document: &Value, endpoint: &Url) -> bool {
    let own = operation.value.get("servers").or_else(|| operation.item.get("servers"));
    let Some(first) = own.and_then(|servers| servers.get(0)) else { return false };
    document.pointer("/servers/0") != Some(first)
        && filled(first).ok().and_then(|url| Url::parse(&url).ok()).as_ref() != Some(endpoint)
}
