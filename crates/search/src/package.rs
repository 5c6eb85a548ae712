//! Which part of a package goes into which field.

use manifest::model::{Action, Entry as Started, Json, Package};
use serde_json::Value;

use crate::entry::{Entry, EntryError};
use crate::facet::Facet;
use crate::field::Field;

/// How deep parameters are looked for in a schema, and how many are taken.
const DEEPEST: usize = 4;
const PARAMETERS: usize = 512;

impl Entry {
    /// What a package says about itself. The key, the rank and a trust that others vouch for are the caller's.
    pub fn of_package(key: &str, package: &Package) -> Result<Self, EntryError> {
        let mut entry = Entry::new(key)?.text(Field::Name, &package.id);
        for (field, text) in [
            (Field::Name, &package.name),
            (Field::Summary, &package.summary),
            (Field::Description, &package.description),
        ] {
            if let Some(text) = text {
                entry = entry.text(field, text);
            }
        }
        for tag in &package.tags {
            entry = entry.text(Field::Tags, tag);
            entry = entry.with(Facet::Tag, tag).with(Facet::Capability, tag);
        }
        for scope in &package.scopes {
            entry =
                entry.text(Field::Tags, &scope.resource).with(Facet::Capability, &scope.resource);
        }
        for action in &package.actions {
            entry = entry.action(action);
        }
        Ok(entry.facets_of(package))
    }

    fn action(mut self, action: &Action) -> Self {
        self = self.text(Field::Actions, &action.name);
        for text in [&action.summary, &action.description].into_iter().flatten() {
            self = self.text(Field::ActionTexts, text);
        }
        let mut left = PARAMETERS;
        let schema = action.input.as_ref().map(Json::value);
        match schema {
            Some(schema) => self.parameters(&schema, DEEPEST, &mut left),
            None => self,
        }
    }

    /// The names and the descriptions of a schema's properties, and of what is in them.
    fn parameters(mut self, schema: &Value, deepest: usize, left: &mut usize) -> Self {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return self;
        };
        for (name, property) in properties {
            if *left == 0 {
                break;
            }
            *left -= 1;
            self = self.text(Field::Parameters, name);
            if let Some(text) = property.get("description").and_then(Value::as_str) {
                self = self.text(Field::ParameterTexts, text);
            }
            if deepest > 1 {
                let inner = property.get("items").unwrap_or(property);
                self = self.parameters(inner, deepest - 1, left);
            }
        }
        self
    }

    fn facets_of(mut self, package: &Package) -> Self {
        self = self.with(Facet::Kind, package.kind.name());
        self = self.with(Facet::Trust, package.trust.name());
        self = self.with(Facet::Dialect, package.dialect.name());
        self = self.with(Facet::Namespace, namespace(package));
        let publisher = package.publisher.as_ref().or(package.author.as_ref());
        if let Some(name) = publisher.and_then(|person| person.id.as_ref().or(person.name.as_ref()))
        {
            self = self.with(Facet::Provider, name);
        }
        for step in package.chain.iter().flat_map(|chain| &chain.steps) {
            self = self.with(Facet::Uses, plain(&step.tool));
        }
        for implementation in &package.implementations {
            if let Some(language) = &implementation.language {
                self = self.with(Facet::Language, language);
            }
            let runtime = implementation.runtime.as_deref().or(runtime(&implementation.entry));
            if let Some(runtime) = runtime {
                self = self.with(Facet::Runtime, runtime);
            }
            for platform in &implementation.platforms {
                self = self.with(Facet::Platform, platform);
            }
        }
        self
    }

    /// With a value that may be too long or one too many: it is no reason to refuse a package.
    fn with(self, facet: Facet, value: &str) -> Self {
        self.clone().facet(facet, value).unwrap_or(self)
    }
}

/// Whose names an id is among: the namespace, else the first part of the id.
fn namespace(package: &Package) -> &str {
    let id = plain(&package.id);
    let first = id.split('.').next().filter(|first| !first.is_empty());
    package.namespace.as_deref().or(first).unwrap_or(id)
}

/// An id without what registries put before ids.
fn plain(id: &str) -> &str {
    id.strip_prefix("tool:").unwrap_or(id)
}

/// What runs an entry whose author does not say.
fn runtime(entry: &Started) -> Option<&str> {
    match entry {
        Started::Argv { runtime, .. } => runtime.as_deref(),
        Started::NodeModule { .. } => Some("node"),
        Started::PythonCallable { .. } => Some("python"),
        Started::McpStdio { .. }
        | Started::McpHttp { .. }
        | Started::Http { .. }
        | Started::McpTool { .. }
        | Started::KnownServer { .. }
        | Started::A2a { .. }
        | Started::Undeclared => None,
    }
}
