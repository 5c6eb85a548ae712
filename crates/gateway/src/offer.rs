//! One thing that an agent can call: an action of an installed package, under a name of its own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use host::Tool;
use ledger::state::names::Named;
use manifest::export::{Format, Name, Options, export};
use manifest::model::Action;
use search::{Entry, EntryError};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::shelf::Shelved;

/// The longest name that every client takes.
const LONGEST: usize = 64;

/// What agents are told of a version that was taken back. The reason is for the owner: it is a text of somebody that nobody here has
/// agreed to.
const TAKEN_BACK: &str = "Its registry has taken this version back for security: use another tool where there is one, and tell the user.";

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

    /// The same as agents are told of it.
    pub(crate) fn told(&self) -> Option<Action> {
        let mut action = self.declared()?.clone();
        if self.package.is_taken_back {
            let said = action.description.as_deref().or(action.summary.as_deref());
            action.description = Some(warned(said));
        }
        Some(action)
    }

    /// A few words on what it does.
    pub(crate) fn summary(&self) -> &str {
        let said =
            ["description", "title"].into_iter().find_map(|key| self.definition[key].as_str());
        said.unwrap_or(&self.action)
    }

    /// What it is found by, and what a match counts.
    pub(crate) fn entry(&self, rank: f32) -> Result<Entry, EntryError> {
        let package = &self.tool.package;
        let actions = self.declared().cloned().into_iter().collect();
        let package = manifest::model::Package { actions, ..package.clone() };
        Entry::of_package(&self.name, &package)?.rank(rank)
    }
}

/// Everything that can be called of what is installed and switched on, and the names that were given anew. Names are of all of
/// it together, so that two views never call different things the same.
pub(crate) fn offers(packages: &[Arc<Shelved>], known: &[Named]) -> (Vec<Offer>, Vec<Named>) {
    let callable = packages.iter().filter(|one| one.is_enabled);
    let callable: Vec<_> =
        callable.filter_map(|one| Some((one, one.tool.as_ref().ok()?))).collect();
    let models: Vec<_> = callable.iter().map(|(_, tool)| tool.package.clone()).collect();
    let exported = export(&models, Format::Mcp, &Options::default());
    let mut names = Names::of(known);
    let Value::Object(mut document) = exported.document else { return Default::default() };
    let definitions = match document.get_mut("tools").map(Value::take) {
        Some(Value::Array(definitions)) => definitions,
        _ => Vec::new(),
    };
    let mut offers = Vec::new();
    for (definition, name) in definitions.into_iter().zip(exported.names) {
        let found = callable.iter().find(|(_, tool)| tool.package.canonical_id() == name.package);
        let Some((package, tool)) = found else { continue };
        let action = tool.action(&name.action);
        let mut definition = match action.and_then(|action| Some((action, tool.said_of(action)?))) {
            Some((action, said)) if package.declares => filled_up(definition, said, action),
            Some((_, said)) => as_the_server_said(said, definition),
            None => definition,
        };
        if package.is_taken_back {
            definition["description"] = warned(definition["description"].as_str()).into();
        }
        let exposed = names.of_action(&name);
        definition["name"] = exposed.clone().into();
        offers.push(Offer {
            name: exposed,
            package: Arc::clone(package),
            tool: Arc::clone(tool),
            action: name.action,
            text: definition.to_string(),
            definition,
        });
    }
    (offers, names.given)
}

/// The names that were given, and those that are given now.
struct Names<'n> {
    by_action: HashMap<(&'n str, &'n str), &'n str>,
    taken: HashSet<String>,
    given: Vec<Named>,
}

impl<'n> Names<'n> {
    fn of(known: &'n [Named]) -> Self {
        let by_action = known.iter().map(|one| ((&*one.package, &*one.action), &*one.exposed));
        let taken = known.iter().map(|one| one.exposed.clone());
        Self { by_action: by_action.collect(), taken: taken.collect(), given: Vec::new() }
    }

    /// The name that an action has, or gets: the one that it would like, or the same with digits of its own.
    fn of_action(&mut self, wanted: &Name) -> String {
        let Name { exposed, package, action } = wanted;
        if let Some(known) = self.by_action.get(&(&**package, &**action)) {
            return (*known).to_owned();
        }
        let digest = Sha256::digest(format!("{}:{package}/{action}", package.len()));
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let longer = (1..=4).map(|times| {
            let digits = &digits[..8 * times];
            let kept: String = exposed.chars().take(LONGEST - digits.len() - 1).collect();
            format!("{kept}_{digits}")
        });
        let free = std::iter::once(exposed.clone()).chain(longer);
        let mut free = free.filter(|name| !self.taken.contains(name));
        let given = free.next().unwrap_or_else(|| digits.clone());
        self.taken.insert(given.clone());
        let (package, action) = (package.clone(), action.clone());
        self.given.push(Named { exposed: given.clone(), package, action });
        given
    }
}

/// What a version that was taken back is described as.
fn warned(said: Option<&str>) -> String {
    format!("{}\n\n{TAKEN_BACK}", said.unwrap_or_default()).trim_start().to_owned()
}

/// The definition of what a package declares, with what its server shows of it beside. Of what it does, the author's word counts,
/// where there is one.
fn filled_up(mut ours: Value, said: &Value, action: &Action) -> Value {
    if let Some(icons) = said.get("icons") {
        ours["icons"] = icons.clone();
    }
    let is_said = [action.side_effects.is_some(), action.idempotent.is_some()];
    for key in ["readOnlyHint", "destructiveHint", "openWorldHint", "idempotentHint"] {
        let is_said = is_said[usize::from(key == "idempotentHint")];
        match said.pointer(&format!("/annotations/{key}")) {
            Some(hint) if !is_said => ours["annotations"][key] = hint.clone(),
            _ => {}
        }
    }
    ours
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

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(exposed: &str, package: &str, action: &str) -> Name {
        Name { exposed: exposed.into(), package: package.into(), action: action.into() }
    }

    #[test]
    fn a_name_stays_with_what_it_was_given_to_and_goes_to_no_other() {
        let gone = Named { exposed: "a_b".into(), package: "mcpb:gone".into(), action: "b".into() };
        let kept = Named { exposed: "c_1".into(), package: "mcpb:c".into(), action: "x".into() };
        let known = [gone, kept];
        let mut names = Names::of(&known);
        assert_eq!(names.of_action(&wanted("c", "mcpb:c", "x")), "c_1");
        let other = names.of_action(&wanted("a_b", "mcpb:a", "b"));
        assert!(other.starts_with("a_b_") && other.len() == 12, "{other}");
        assert_eq!(names.of_action(&wanted("d", "mcpb:d", "x")), "d");
        let clash = names.of_action(&wanted("d", "mcpb:e", "x"));
        assert_ne!(clash, "d");
        assert_eq!(names.given.len(), 3);
        let long = names.of_action(&wanted(&"l".repeat(64), "mcpb:l", "x"));
        let longer = names.of_action(&wanted(&"l".repeat(64), "mcpb:m", "x"));
        assert!(long.len() <= 64 && longer.len() <= 64 && long != longer);
    }
}
