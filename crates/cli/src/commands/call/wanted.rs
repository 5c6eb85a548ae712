//! What is wanted: which action, of which tool, with what.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use host::{Call, CallError, CancellationToken, Host, Kind, Tool};
use manifest::dialect::Dialect;
use manifest::model::Entry;
use policy::Surface;

use super::told::{Unmade, failed};
use crate::exit::{Exit, Failure};
use crate::printer::line;

/// Which action, and with what.
#[derive(Args, Debug)]
pub(crate) struct Wanted {
    /// Call what is at this path, without installing it: a manifest, a folder, an archive, a bundle
    #[arg(long, value_name = "PATH")]
    pub(super) from: PathBuf,
    /// The action, or the id or name of a tool with one action
    #[arg(value_name = "NAME")]
    pub(super) name: String,
    /// The input: a JSON object, @FILE, or - for standard input [default: {}]
    #[arg(value_name = "INPUT")]
    pub(super) input: Option<String>,
    /// The dialect, when it is not to be recognised
    #[arg(long, value_name = "NAME", value_parser = crate::commands::dialect)]
    pub(super) dialect: Option<Dialect>,
    /// The id of a tools.json [default: its folder's name]
    #[arg(long, value_name = "ID")]
    pub(super) id: Option<String>,
}

impl Wanted {
    /// The call that is wanted, with nobody who watches it.
    pub(super) fn call(&self, surface: Surface) -> Result<Call, Failure> {
        let folder = std::env::current_dir().map_err(|error| {
            Failure::new(Exit::Unavailable, "failed to find this folder").cause(error)
        })?;
        Ok(Call {
            action: self.name.clone(),
            input: input(self.input.as_deref())?,
            surface,
            approver: None,
            ticket: None,
            folder,
            progress: None,
            called_off: CancellationToken::new(),
        })
    }
}

/// Asks those that say only when they run what they can do, MCP servers, where no other has the action.
pub(super) async fn discover(
    tools: &mut [Tool],
    wanted: &Wanted,
    host: &Host,
) -> Result<(), Unmade> {
    if tools.iter().any(|tool| tool.action(&wanted.name).is_some()) {
        return Ok(());
    }
    for tool in tools.iter_mut().filter(|tool| is_server(tool)) {
        let found = host.discover(tool, &Surface::Terminal).await;
        let found = found.map_err(|error| {
            let failure = failed(&error, &[], tool, &wanted.from);
            Unmade { failure, error: Some(Box::new(error)) }
        })?;
        let declared: Vec<_> = tool.package.actions.iter().map(|one| one.name.clone()).collect();
        tool.package.actions.extend(found.into_iter().filter(|one| !declared.contains(&one.name)));
    }
    Ok(())
}

/// Whether a tool is an MCP server, which may have more tools than its package says.
pub(super) fn is_server(tool: &Tool) -> bool {
    let mut entries = tool.package.implementations.iter().map(|one| &one.entry);
    entries.any(|entry| matches!(entry, Entry::McpStdio { .. } | Entry::McpHttp { .. }))
}

/// The tool that is meant by a name.
pub(super) fn choose<'t>(tools: &'t [Tool], name: &str) -> Result<&'t Tool, Unmade> {
    let matching: Vec<_> = tools.iter().filter(|tool| tool.action(name).is_some()).collect();
    match matching.as_slice() {
        [tool] => Ok(tool),
        [] => {
            let actions = |tool: &Tool| -> Vec<String> {
                tool.package.actions.iter().map(|action| action.name.clone()).collect()
            };
            if let Some(tool) = tools.iter().find(|tool| tool.is_called(name)) {
                let message = format!("`{}` has more than one action", line(name));
                return Err(Failure::invalid(message)
                    .hint(format!("name one: {}", line(&actions(tool).join(", "))))
                    .into());
            }
            let known: Vec<_> = tools.iter().flat_map(actions).collect();
            let message = format!("unknown tool: {name}");
            let failure = Failure::new(Exit::NotFound, line(&message))
                .hint(format!("there is {}", line(&known.join(", "))));
            let error = CallError::new(Kind::Unknown, message).with("actions", known);
            Err(Unmade { failure, error: Some(Box::new(error)) })
        }
        several => {
            let ids: Vec<_> = several.iter().map(|tool| tool.package.canonical_id()).collect();
            let message = format!("`{}` is in more than one package", line(name));
            Err(Failure::new(Exit::Conflict, message)
                .hint(format!("name the file of one with --from: {}", line(&ids.join(", "))))
                .into())
        }
    }
}

/// The input as it was typed, or from where it was said to be.
fn input(typed: Option<&str>) -> Result<String, Failure> {
    /// More is refused by the host in any case.
    const MOST: u64 = 16 << 20;
    let read = |reader: &mut dyn Read, name: &str| {
        let mut text = String::new();
        reader.take(MOST).read_to_string(&mut text).map_err(|error| {
            Failure::new(Exit::Unavailable, format!("failed to read {name}")).cause(error)
        })?;
        Ok(text)
    };
    match typed {
        None => Ok("{}".to_owned()),
        Some("-") => read(&mut std::io::stdin().lock(), "standard input"),
        Some(text) => match text.strip_prefix('@') {
            Some(path) => {
                let mut file = std::fs::File::open(path).map_err(|error| {
                    let message = format!("failed to read `{}`", line(path));
                    Failure::new(Exit::NotFound, message).cause(error)
                })?;
                read(&mut file, &format!("`{}`", line(path)))
            }
            None => Ok(text.to_owned()),
        },
    }
}
