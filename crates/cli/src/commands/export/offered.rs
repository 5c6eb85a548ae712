//! What a server was approved to offer, joined with what its package declares.

use std::time::{Duration, Instant};

use host::{CallError, Tool, actions_of};
use manifest::model::{Action, Invocation};

/// How long what a server offers is read for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Gives a tool the actions that can be called of it; the names of those that its package declares and its server has not.
pub(super) async fn take(tool: &mut Tool) -> Result<Vec<String>, CallError> {
    let Some(surface) = &tool.surface else { return Ok(Vec::new()) };
    let offered = actions_of(surface, Instant::now() + PATIENCE).await?;
    let declared = std::mem::take(&mut tool.package.actions);
    let (actions, absent) = joined(declared, offered);
    tool.package.actions = actions;
    Ok(absent)
}

/// What is declared, with what the server says where its package says nothing; all that was approved where nothing is
/// declared. Agents find the same behind `haft mcp`.
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
