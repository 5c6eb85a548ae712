//! An action on its way out.

use std::collections::HashMap;

use serde_json::Value;

use super::format::Format;
use super::schema;
use crate::dialect::Dialect;
use crate::model::{Action, Package};
use crate::shape::clip;

/// An action, its package, and what it is called outside.
#[derive(Debug)]
pub(super) struct Tool<'p> {
    /// The package.
    pub package: &'p Package,
    /// The action.
    pub action: &'p Action,
    /// The canonical id of the package.
    pub id: String,
    /// The exposed name; empty until it is given.
    pub name: String,
}

/// Gathers what can be called, each action once; says what is left out.
pub(super) fn gather<'p>(packages: &'p [Package], notes: &mut Vec<String>) -> Vec<Tool<'p>> {
    let mut tools: Vec<Tool<'p>> = Vec::new();
    for package in packages {
        let id = package.canonical_id();
        if !package.enabled {
            notes.push(format!("`{}` is left out: it is disabled", clip(&id)));
        } else if package.actions.is_empty() {
            notes.push(format!("`{}` is left out: it declares no action", clip(&id)));
        } else {
            tools.extend(package.actions.iter().map(|action| Tool {
                package,
                action,
                id: id.clone(),
                name: String::new(),
            }));
        }
    }
    once_each(tools, notes)
}

/// Keeps one of each action: a call names a package and an action, and could not tell two apart.
/// The highest version wins, then the digest, so the order of the packages decides nothing.
fn once_each<'p>(tools: Vec<Tool<'p>>, notes: &mut Vec<String>) -> Vec<Tool<'p>> {
    let mut winners: HashMap<(String, &str), (usize, &Package)> = HashMap::new();
    for (at, tool) in tools.iter().enumerate() {
        let key = (tool.id.clone(), tool.action.name.as_str());
        let winner = winners.entry(key).or_insert((at, tool.package));
        if rank(tool.package) > rank(winner.1) {
            *winner = (at, tool.package);
        }
    }
    let mut kept = Vec::new();
    for (at, tool) in tools.into_iter().enumerate() {
        let (winner, of) = winners[&(tool.id.clone(), tool.action.name.as_str())];
        if winner == at {
            kept.push(tool);
            continue;
        }
        if tool.package == of {
            continue;
        }
        let (was, is) = (tool.package.semver(), of.semver());
        let note = format!("{} {was} is left out: {is} of the same id is exported", tool.label());
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    kept
}

fn rank(package: &Package) -> (Option<semver::Version>, &str) {
    (semver::Version::parse(&package.semver()).ok(), &package.raw_sha256)
}

impl Tool<'_> {
    /// What a note calls it.
    pub(super) fn label(&self) -> String {
        match self.package.dialect {
            Dialect::Mcpkg | Dialect::Capability | Dialect::Jumith => {
                format!("`{}`", clip(&self.id))
            }
            Dialect::InstallManifest
            | Dialect::Agentcli
            | Dialect::Mcpb
            | Dialect::ServerJson
            | Dialect::Skill => {
                format!("`{}` of `{}`", clip(&self.action.name), clip(&self.id))
            }
        }
    }

    /// The name it would like to have, before it is made portable.
    pub(super) fn wanted_name(&self) -> String {
        match self.package.dialect {
            Dialect::Mcpkg | Dialect::Capability => self.package.id.clone(),
            // Registries put `tool:` before every id; it tells nothing apart.
            Dialect::Jumith => {
                let id = &self.package.id;
                id.strip_prefix("tool:").filter(|rest| !rest.is_empty()).unwrap_or(id).to_owned()
            }
            Dialect::InstallManifest | Dialect::Mcpb | Dialect::ServerJson | Dialect::Skill => {
                format!("{}_{}", self.package.id, self.action.name)
            }
            Dialect::Agentcli => self.action.name.clone(),
        }
    }

    /// The text that says best what it does.
    pub(super) fn description(&self) -> Option<&str> {
        let (action, package) = (self.action, self.package);
        [&action.description, &action.summary, &package.description, &package.summary]
            .into_iter()
            .filter_map(Option::as_deref)
            .find(|text| !text.is_empty())
    }

    /// The input schema where one may be absent. That of a tools.json goes as it was written:
    /// its specification says so.
    pub(super) fn parameters(&self) -> Option<Value> {
        let written = self.action.input.as_ref()?.value();
        match self.package.dialect {
            Dialect::Agentcli => Some(written),
            Dialect::InstallManifest
            | Dialect::Mcpkg
            | Dialect::Capability
            | Dialect::Jumith
            | Dialect::Mcpb
            | Dialect::ServerJson
            | Dialect::Skill => schema::of_object(written),
        }
    }

    /// The input schema where there must be one.
    pub(super) fn input_schema(&self) -> Value {
        let written = self.action.input.as_ref().map(crate::model::Json::value);
        written.and_then(schema::of_object).unwrap_or_else(schema::any_object)
    }

    /// How long one call may take.
    pub(super) fn timeout_ms(&self) -> Option<u64> {
        self.action.timeout_ms.or(self.package.timeout_ms)
    }

    /// Why it cannot be carried into a format.
    pub(super) fn hindrance(&self, format: Format) -> Option<&'static str> {
        let goes_as_written = match format {
            Format::Openai | Format::OpenaiResponses | Format::Agentcli => {
                self.package.dialect == Dialect::Agentcli
            }
            Format::Anthropic | Format::Mcp | Format::Mcpkg => false,
        };
        if let Some(input) = &self.action.input
            && !goes_as_written
            && schema::of_object(input.value()).is_none()
        {
            return Some("no object fits its input schema");
        }
        if format == Format::Agentcli
            && [&self.id, &self.action.name].iter().any(|text| text.contains('\0'))
        {
            return Some("a NUL in its name cannot be passed to a program");
        }
        None
    }
}
