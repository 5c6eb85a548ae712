//! What can be called of a package: what it declares, joined with what was approved of its server.

use std::time::Instant;

use manifest::model::{Action, Entry, Invocation};
use serde_json::Value;

use crate::call::Tool;
use crate::error::CallError;
use crate::run::mcp::actions_of;

impl Tool {
    /// Gives it the actions that can be called of it; the names of those that its package declares and its server has not.
    pub async fn take_offered(&mut self, until: Instant) -> Result<Vec<String>, CallError> {
        let Some(surface) = &self.surface else { return Ok(Vec::new()) };
        let offered = actions_of(surface, until).await?;
        let declared = std::mem::take(&mut self.package.actions);
        let (actions, absent) = joined(declared, offered);
        self.package.actions = actions;
        Ok(absent)
    }

    /// What the server behind an action said of it, as it was approved.
    pub fn said_of(&self, action: &Action) -> Option<&Value> {
        let entries = self.package.implementations.iter().map(|one| &one.entry);
        let of_entry = entries.filter_map(|entry| match entry {
            Entry::McpTool { tool_name, .. } => Some(tool_name),
            _ => None,
        });
        let name = match &action.invocation {
            Invocation::McpTool { tool_name } => Some(tool_name),
            _ => of_entry.into_iter().next(),
        }?;
        let tools = self.surface.as_ref()?.tools();
        tools.iter().find(|one| one.get("name").and_then(Value::as_str) == Some(name))
    }
}

/// What is declared, with what the server says where its package says nothing; all that was approved where nothing is
/// declared.
fn joined(declared: Vec<Action>, offered: Vec<Action>) -> (Vec<Action>, Vec<String>) {
    if declared.is_empty() {
        return (offered, Vec::new());
    }
    let mut absent = Vec::new();
    let mut actions = Vec::new();
    for mut action in declared {
        if let Invocation::McpTool { tool_name } = &action.invocation {
            let Some(own) = offered.iter().find(|one| one.name == *tool_name) else {
                absent.push(action.name);
                continue;
            };
            if action.description.is_none() && action.summary.is_none() {
                action.description.clone_from(&own.description);
                action.summary.clone_from(&own.summary);
            }
            action.input = action.input.or_else(|| own.input.clone());
            action.output = action.output.or_else(|| own.output.clone());
        }
        actions.push(action);
    }
    (actions, absent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_server(name: &str, tool: &str, words: Option<&str>) -> Action {
        let invocation = Invocation::McpTool { tool_name: tool.to_owned() };
        Action { description: words.map(str::to_owned), ..Action::new(name, invocation) }
    }

    #[test]
    fn what_is_declared_is_filled_up_and_what_is_not_is_the_servers() {
        let plain = Action::new("plain", Invocation::StdinJson { argv_template: Vec::new() });
        let declared = vec![
            of_server("mine", "a", Some("as the author says")),
            of_server("b", "b", None),
            of_server("gone", "gone", None),
            plain,
        ];
        let offered = ["c", "b", "a"].map(|name| of_server(name, name, Some("as it says itself")));
        let (actions, absent) = joined(declared, offered.to_vec());
        let told: Vec<_> = actions
            .iter()
            .map(|one| (one.name.as_str(), one.description.as_deref().unwrap_or_default()))
            .collect();
        let expected = [("mine", "as the author says"), ("b", "as it says itself"), ("plain", "")];
        assert_eq!((told.as_slice(), absent), (&expected[..], vec!["gone".to_owned()]));
        let (all, absent) = joined(Vec::new(), offered.to_vec());
        assert_eq!((all.len(), absent.len()), (3, 0));
    }
}
