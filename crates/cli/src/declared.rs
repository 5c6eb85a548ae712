//! What a package that was called here says of itself, read anew where it was called from. A name that it does not have
//! may be misspelt, and is told of; where nothing can be read, nothing is known.

use std::path::Path;
use std::str::FromStr;

use host::secrets::Described;
use ledger::State;
use ledger::state::grants::GrantKind;
use manifest::model::{Entry, Input, InputSource, Package};
use manifest::shape::suggest;
use policy::{Pattern, denies, may_have_device};
use serde_json::Value;
use tokio::runtime::Runtime;
use vault::{Redactor, Reference, Secret};

use crate::load::Loading;
use crate::printer::{Printer, line};

/// A package, as far as it can be found.
#[derive(Default)]
pub(crate) struct Declared(Option<Package>);

impl Declared {
    /// The package of an id with its dialect, at one of the places that it was called from.
    pub(crate) fn of(id: &str, state: &State, runtime: &Runtime) -> Self {
        let granted = runtime.block_on(state.grants(Some(id))).unwrap_or_default();
        let bare = id.split_once(':').map(|(_, bare)| bare);
        let loading = Loading { dialect: None, id: bare };
        let at = |place: &str| {
            let packages = loading.packages(Path::new(place), Printer::silent()).ok()?;
            packages.into_iter().find(|package| package.canonical_id() == id)
        };
        // What the owner said comes before what happened.
        let said = granted.into_iter().filter(|one| one.kind == GrantKind::From);
        let last = runtime.block_on(state.last_place(id)).unwrap_or_default();
        Self(said.map(|one| one.value).chain(last).find_map(|place| at(&place)))
    }

    /// What the package says of a secret, for whoever is asked for it.
    pub(crate) fn says_of(&self, name: &str) -> Vec<String> {
        let Some((package, input)) = self.0.as_ref().zip(self.input(name)) else {
            return Vec::new();
        };
        let Described { prompt, obtain_url } = Described::of(package, &input.name);
        let prompt = prompt.map(|words| asked_for(&words));
        prompt.into_iter().chain(obtain_url.map(|page| to_be_had(&page))).collect()
    }

    /// What to say of a secret that the package is never given.
    pub(crate) fn doubt_secret(&self, name: &str) -> Option<String> {
        let package = self.0.as_ref()?;
        let names: Vec<String> = package.inputs.iter().filter_map(kept_as).collect();
        let near = missing(name, names.iter().map(String::as_str))?;
        // A tool with a hook says only when it is called what it needs, but a name may still be misspelt.
        if near.is_empty() && has_hooks(package) {
            return None;
        }
        Some(format!("{} declares no secret `{}`{near}", told(package), line(name)))
    }

    /// What to say of a value that the package would not take.
    pub(crate) fn doubt_value(&self, name: &str, value: &Secret) -> Option<String> {
        let (package, input) = (self.0.as_ref()?, self.input(name)?);
        let wrong = host::secrets::misfit(input, value.expose())?;
        Some(line(&format!("{} cannot be called with it: the value {wrong}", told(package))))
    }

    /// What to say of a value that is too short to be found in what is shown. What is no secret is not looked for.
    pub(crate) fn doubt_length(&self, name: &str, value: &Secret) -> Option<String> {
        let is_secret = self.input(name).is_none_or(|input| input.secret);
        let least = Redactor::SHORTEST;
        (is_secret && value.expose().len() < least).then(|| format!(
            "the value has fewer than {least} bytes: in results and errors it is hidden only where it is the whole text"
        ))
    }

    /// The input whose value is kept under a name.
    fn input(&self, name: &str) -> Option<&Input> {
        let is_meant = |input: &&Input| kept_as(input).is_some_and(|kept| kept == name);
        self.0.as_ref()?.inputs.iter().find(is_meant)
    }

    /// What to say of a grant that gives the package nothing: what it says itself that it does without is its ceiling.
    pub(crate) fn doubt_grant(&self, kind: GrantKind, value: &str) -> Option<String> {
        let package = self.0.as_ref()?;
        let filesystem = package.permissions.filesystem.as_deref();
        // A file that a secret of it lies in is read by us, and the grant is for that.
        let is_secret = || {
            let mut references = package.inputs.iter().filter_map(|one| one.reference.as_deref());
            references.any(|one| one.strip_prefix("file://") == Some(value))
        };
        let lacks = match kind {
            GrantKind::Host if denies(package, policy::GrantKind::Host) => "reaches nobody",
            GrantKind::Read if denies(package, policy::GrantKind::Read) && !is_secret() => {
                "needs no folders (`filesystem: none`)"
            }
            GrantKind::Write if filesystem == Some("read") => {
                let package = told(package);
                return Some(format!(
                    "{package} only reads (`filesystem: read`), so it may read there"
                ));
            }
            GrantKind::Write if denies(package, policy::GrantKind::Write) => {
                "needs no folders (`filesystem: none`)"
            }
            GrantKind::Device if !may_have_device(package, value) => "does not name this device",
            _ => return None,
        };
        Some(format!(
            "{} says itself that it {lacks}, so the grant gives it nothing",
            told(package)
        ))
    }

    /// What to say of an action that the package does not have. A server says only when it runs which it has.
    pub(crate) fn doubt_action(&self, name: &str) -> Option<String> {
        let package = self.0.as_ref().filter(|package| !package.is_server())?;
        let near = missing(name, package.actions.iter().map(|action| action.name.as_str()))?;
        Some(format!("{} has no action `{}`{near}", told(package), line(name)))
    }

    /// What to say of a pattern that no call of an action fits, because there are no such arguments.
    pub(crate) fn doubt_pattern(&self, action: &str, pattern: &Pattern) -> Option<String> {
        let action = self.0.as_ref()?.actions.iter().find(|one| one.name == action)?;
        let schema = action.input.as_ref()?.value();
        let properties = schema["properties"].as_object()?;
        let takes_others = schema.get("patternProperties").is_some()
            || schema.get("additionalProperties").is_some_and(|others| *others != false);
        let wanted = pattern.wanted().as_object()?;
        let wrong = wanted.iter().find_map(|(name, wanted)| match properties.get(name) {
            None if takes_others => None,
            None => missing(name, properties.keys().map(String::as_str))
                .map(|near| format!("takes no `{}`{near}", line(name))),
            Some(property) => other_type(&property["type"], wanted)
                .map(|taken| format!("takes {taken} as `{}`", line(name))),
        })?;
        Some(format!("no call fits this: `{}` {wrong}", line(&action.name)))
    }
}

/// What a manifest asks for, in a stranger's words.
pub(crate) fn asked_for(prompt: &str) -> String {
    format!("the manifest asks for: {}", line(prompt))
}

/// Where a manifest says that a value is to be had.
pub(crate) fn to_be_had(page: &str) -> String {
    format!("the manifest says where it is to be had: {}", line(page))
}

/// The types that a schema allows, in words, where a value is of none of them.
fn other_type(allowed: &Value, value: &Value) -> Option<String> {
    let allowed: Vec<&str> = match allowed {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let own: &[&str] = match value {
        Value::Null => &["null"],
        Value::Bool(_) => &["boolean"],
        Value::Number(_) => &["number", "integer"],
        Value::String(_) => &["string"],
        Value::Array(_) => &["array"],
        Value::Object(_) => &["object"],
    };
    let is_allowed = allowed.iter().any(|one| own.contains(one));
    (!is_allowed).then(|| line(&allowed.join(" or ")))
}

/// Whether a package may say when it is called that it needs secrets which its manifest does not name.
fn has_hooks(package: &Package) -> bool {
    package.implementations.iter().any(|one| matches!(one.entry, Entry::NodeModule { .. }))
}

fn told(package: &Package) -> String {
    line(&package.canonical_id())
}

/// The name under which the vault keeps the value of an input, where it is the vault that does.
fn kept_as(input: &Input) -> Option<String> {
    match input.reference.as_deref().map(Reference::from_str) {
        None => (input.source == InputSource::Owner).then(|| input.name.clone()),
        Some(Ok(Reference::Secret { name })) => Some(name),
        Some(_) => None,
    }
}

/// What may have been meant by a name that is none of the known ones.
pub(crate) fn missing<'n>(
    name: &str,
    known: impl Iterator<Item = &'n str> + Clone,
) -> Option<String> {
    if known.clone().any(|one| one == name) {
        return None;
    }
    let near = suggest(name, known).map(|near| format!("; did you mean `{}`?", line(near)));
    Some(near.unwrap_or_default())
}
