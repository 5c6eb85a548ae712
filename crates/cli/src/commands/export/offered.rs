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

/// What is declared, with what the server says where its package says nothing; then everything else that was approved.
fn joined(declared: Vec<Action>, offered: Vec<Action>) -> (Vec<Action>, Vec<String>) {
    let mut absent = Vec::new();
    let mut actions = Vec::new();
    let mut taken = Vec::new();
    for mut action in declared {
        taken.push(action.name.clone());
        if let Invocation::McpTool { tool_name } = &action.invocation {
            let Some(own) = offered.iter().find(|one| one.name == *tool_name) else {
                absent.push(action.name);
                continue;
            };
            taken.push(tool_name.clone());
            if action.description.is_none() && action.summary.is_none() {
                action.description.clone_from(&own.description);
                action.summary.clone_from(&own.summary);
            }
            action.input = action.input.or_else(|| own.input.clone());
            action.output = action.output.or_else(|| own.output.clone());
        }
        actions.push(action);
    }
    actions.extend(offered.into_iter().filter(|one| !taken.contains(&one.name)));
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
    fn what_is_declared_is_filled_up_and_the_rest_follows() {
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
        let expected = [
            ("mine", "as the author says"),
            ("b", "as it says itself"),
            ("plain", ""),
            ("c", "as it says itself"),
        ];
        assert_eq!((told.as_slice(), absent), (&expected[..], vec!["gone".to_owned()]));
    }
}
