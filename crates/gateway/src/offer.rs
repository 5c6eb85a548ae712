//! One thing that an agent can call: an action of an installed package, under a name of its own.

use std::sync::Arc;

use host::Tool;
use manifest::export::{Format, Options, export};
use manifest::model::Action;
use search::{Entry, EntryError};
use serde_json::{Map, Value};

use crate::shelf::Shelved;

/// One thing that an agent can call.
#[derive(Debug)]
pub(crate) struct Offer {
    /// What agents call it.
    pub(crate) name: String,
    pub(crate) package: Arc<Shelved>,
    pub(crate) tool: Arc<Tool>,
    /// What it is called in its package.
    pub(crate) action: String,
    /// As agents are shown it.
    pub(crate) definition: Value,
    /// The same, as it is sent.
    pub(crate) text: String,
}

impl Offer {
    /// The action itself.
    pub(crate) fn declared(&self) -> Option<&Action> {
        self.tool.action(&self.action)
    }

    /// A few words on what it does.
    pub(crate) fn summary(&self) -> &str {
        let said = ["description", "title"].into_iter().find_map(|key| self.definition[key].as_str());
        said.unwrap_or(&self.action)
    }

    /// What it is found by.
    pub(crate) fn entry(&self) -> Result<Entry, EntryError> {
        let package = &self.tool.package;
        let actions = self.declared().cloned().into_iter().collect();
        Entry::of_package(&self.name, &manifest::model::Package { actions, ..package.clone() })
    }
}

/// Everything that can be called of what is installed and switched on. Names depend on all of it, so that two views never
/// call different things the same.
pub(crate) fn offers(packages: &[Arc<Shelved>]) -> Vec<Offer> {
    let callable = packages.iter().filter(|one| one.is_enabled);
    let callable: Vec<_> =
        callable.filter_map(|one| Some((one, one.tool.as_ref().ok()?))).collect();
    let models: Vec<_> = callable.iter().map(|(_, tool)| tool.package.clone()).collect();
    let exported = export(&models, Format::Mcp, &Options::default());
    let Value::Object(mut document) = exported.document else { return Vec::new() };
    let definitions = match document.get_mut("tools").map(Value::take) {
        Some(Value::Array(definitions)) => definitions,
        _ => Vec::new(),
    };
    let mut offers = Vec::new();
    for (definition, name) in definitions.into_iter().zip(exported.names) {
        let found = callable.iter().find(|(_, tool)| tool.package.canonical_id() == name.package);
        let Some((package, tool)) = found else { continue };
        let definition = match own(tool, &name.action) {
            Some(own) => as_the_server_said(own, definition),
            None => definition,
        };
        offers.push(Offer {
            name: name.exposed,
            package: Arc::clone(package),
            tool: Arc::clone(tool),
            action: name.action,
            text: definition.to_string(),
            definition,
        });
    }
    offers
}

/// What a server said of one of its tools, as it was approved.
pub(crate) fn own<'t>(tool: &'t Tool, action: &str) -> Option<&'t Value> {
    let surface = tool.surface.as_ref()?;
    surface.tools().iter().find(|one| one.get("name").and_then(Value::as_str) == Some(action))
}

/// The definition of a server with everything that it said, under our name. What it left out of its hints is what it would
/// be at worst.
fn as_the_server_said(own: &Value, ours: Value) -> Value {
    let (Value::Object(mut said), Value::Object(ours)) = (own.clone(), ours) else {
        return own.clone();
    };
    for (key, value) in ours {
        match (key.as_str(), said.get_mut(&key)) {
            ("name", _) | (_, None) => {
                said.insert(key, value);
            }
            ("annotations" | "_meta", Some(Value::Object(theirs))) => fill(theirs, value),
            _ => {}
        }
    }
    Value::Object(said)
}

/// Adds what is not there.
fn fill(theirs: &mut Map<String, Value>, ours: Value) {
    let Value::Object(ours) = ours else { return };
    for (key, value) in ours {
        theirs.entry(key).or_insert(value);
    }
}
