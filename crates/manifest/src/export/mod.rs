//! Tool definitions for other systems, written from the model.
//!
//! [`export`] is a pure function. Every action of every package becomes one
//! definition under a name of its own; what could not be carried is said in
//! the notes, never dropped in silence.
//!
//! | module | what it is |
//! |---|---|
//! | `format` | the formats |
//! | `schema` | an input schema as other systems demand it |
//! | `tool` | an action on its way out |
//! | `names` | what each is called there |
//! | `strict` | which schemas OpenAI can hold a model to |
//! | `openai`, `anthropic`, `mcp`, `agentcli`, `mcpkg` | one definition in each format |
//! | `context` | what a definition can be told with beside itself |
//! | `budget` | as many definitions as fit into so many tokens |
//! | `tokens` | how much of a model's attention a definition takes |

mod agentcli;
mod anthropic;
mod budget;
mod context;
mod format;
mod mcp;
mod mcpkg;
mod names;
mod openai;
mod schema;
mod strict;
mod tokens;
mod tool;

pub use agentcli::{Options, Shim};
pub use budget::Spent;
pub use context::{Context, TestSummary};
pub use format::Format;
pub use tokens::{HOW_ESTIMATED, estimated};

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::Package;
use names::{Grammar, Wanted};
use tool::Tool;

/// What was exported.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// The definitions, in the order of the packages.
    pub document: Value,
    /// What each definition stands for, in the same order: the only way back from a name.
    pub names: Vec<Name>,
    /// Files that belong to the document.
    pub files: Vec<Shim>,
    /// What could not be carried, a sentence each.
    pub notes: Vec<String>,
}

/// What an exposed name stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Name {
    /// The name in the document.
    pub exposed: String,
    /// The canonical id of the package.
    pub package: String,
    /// The action.
    pub action: String,
}

impl Export {
    /// The definitions, each at the place of its name.
    pub fn definitions(&self) -> &[Value] {
        let list = self.document.get(TOOLS).unwrap_or(&self.document);
        list.as_array().map_or(&[], Vec::as_slice)
    }

    /// Calls definitions what somebody says that they are called, where they do. Names of agentcli and mcpkg are ids, and files
    /// that were written with them, so those stay.
    pub fn rename(&mut self, format: Format, known: impl Fn(&Name) -> Option<String>) {
        match format {
            Format::Openai | Format::OpenaiResponses | Format::Anthropic | Format::Mcp => {
                self.rename_alone(format, known);
            }
            Format::Agentcli | Format::Mcpkg => {}
        }
    }

    /// The same for definitions of any format that stand alone: nobody is given the files.
    pub fn rename_alone(&mut self, format: Format, known: impl Fn(&Name) -> Option<String>) {
        let place = match format {
            Format::Openai => "/function/name",
            Format::OpenaiResponses
            | Format::Anthropic
            | Format::Mcp
            | Format::Agentcli
            | Format::Mcpkg => "/name",
        };
        let list = match &mut self.document {
            Value::Object(document) => document.get_mut(TOOLS),
            list => Some(list),
        };
        let Some(Value::Array(definitions)) = list else { return };
        for (definition, name) in definitions.iter_mut().zip(&mut self.names) {
            if let (Some(called), Some(place)) = (known(name), definition.pointer_mut(place)) {
                *place = called.clone().into();
                name.exposed = called;
            }
        }
    }

    /// Leaves out the definitions whose places are not kept, with their names and files.
    pub fn keep(&mut self, is_kept: impl Fn(usize) -> bool) {
        fn kept<T>(all: &mut Vec<T>, is_kept: &impl Fn(usize) -> bool) {
            let mut places = 0..;
            all.retain(|_| places.next().is_some_and(is_kept));
        }
        let list = match &mut self.document {
            Value::Object(document) => document.get_mut(TOOLS),
            document => Some(document),
        };
        if let Some(Value::Array(definitions)) = list {
            kept(definitions, &is_kept);
        }
        kept(&mut self.names, &is_kept);
        kept(&mut self.files, &is_kept);
    }
}

/// Where definitions are in a document that is no list.
const TOOLS: &str = "tools";

/// Writes the actions of packages as definitions of a format.
pub fn export(packages: &[Package], format: Format, options: &Options<'_>) -> Export {
    let mut notes = Vec::new();
    let mut tools = tool::gather(packages, &mut notes);
    tools.retain(|tool| match tool.hindrance(format) {
        Some(reason) => {
            notes.push(format!("{} is left out: {reason}", tool.label()));
            false
        }
        None => true,
    });
    give_names(&mut tools, format);
    notes.extend(tools.iter().filter_map(|tool| root_refusal(tool, format)));

    let list = |define: fn(&Tool<'_>) -> Value| tools.iter().map(define).collect::<Value>();
    let document = match format {
        Format::Openai => list(openai::chat),
        Format::OpenaiResponses => list(openai::responses),
        Format::Anthropic => list(anthropic::definition),
        Format::Mcp => json!({ TOOLS: list(mcp::definition) }),
        Format::Agentcli => json!({ TOOLS: list(agentcli::definition) }),
        Format::Mcpkg => {
            tools.iter().map(|tool| mcpkg::definition(tool, options.context)).collect()
        }
    };
    let files = match format {
        Format::Agentcli => tools.iter().map(|tool| agentcli::shim(tool, options)).collect(),
        Format::Openai
        | Format::OpenaiResponses
        | Format::Anthropic
        | Format::Mcp
        | Format::Mcpkg => Vec::new(),
    };
    let names = tools
        .into_iter()
        .map(|tool| Name { exposed: tool.name, package: tool.id, action: tool.action.name.clone() })
        .collect();
    Export { document, names, files, notes }
}

fn grammar(format: Format) -> Grammar {
    match format {
        Format::Openai | Format::OpenaiResponses | Format::Anthropic | Format::Mcp => {
            Grammar::Portable
        }
        Format::Agentcli => Grammar::PortableFile,
        Format::Mcpkg => Grammar::Verbatim,
    }
}

fn give_names(tools: &mut [Tool<'_>], format: Format) {
    let wanted: Vec<Wanted<'_>> = tools
        .iter()
        .map(|tool| Wanted {
            name: match format {
                Format::Mcpkg => mcpkg::wanted_name(tool),
                Format::Openai
                | Format::OpenaiResponses
                | Format::Anthropic
                | Format::Mcp
                | Format::Agentcli => tool.wanted_name(),
            },
            package: &tool.id,
            action: &tool.action.name,
        })
        .collect();
    let names = names::assign(&wanted, grammar(format));
    for (tool, name) in tools.iter_mut().zip(names) {
        tool.name = name;
    }
}

/// Says when the whole request would be refused for the root of one schema.
fn root_refusal(tool: &Tool<'_>, format: Format) -> Option<String> {
    let refused = match format {
        Format::Openai | Format::OpenaiResponses => openai::REFUSED_AT_ROOT,
        Format::Anthropic => anthropic::REFUSED_AT_ROOT,
        Format::Mcp | Format::Agentcli | Format::Mcpkg => return None,
    };
    let schema = tool.parameters()?;
    let keyword = refused.iter().find(|keyword| schema.get(keyword).is_some())?;
    let (label, format) = (tool.label(), format.name());
    Some(format!("{label} has `{keyword}` at the root of its input schema: {format} refuses that"))
}

#[cfg(test)]
mod tests;
