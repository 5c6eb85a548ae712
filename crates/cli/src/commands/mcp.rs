//! `haft mcp --only ID`: an installed package as an MCP server on standard input and output, as clients start one.
//!
//! The agent may call, never grant: what needs the owner's word is left for `haft approve`, and the same call goes ahead
//! once they gave it. The package is looked up for every call, so one that is switched off or revoked is so at once.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use host::{Call, CallError, Host, Kind, Output, Tool, Warmth, actions_of};
use ledger::state::approvals::TicketId;
use manifest::export::{Format, Name, Options, export};
use policy::Surface;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool as Definition,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;

use super::call::act;
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::printer::Printer;
use crate::{installed, owner, walls};

/// How long what a server offers is read for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most questions that are remembered until the owner has answered.
const MOST_TICKETS: usize = 100;

#[derive(Args, Debug)]
#[command(
    after_help = "Clients start it and speak to it; `haft import CLIENT --replace` writes it into their settings."
)]
pub(crate) struct McpArgs {
    /// The installed package whose tools are served
    #[arg(long, value_name = "ID")]
    only: String,
}

pub(crate) fn run(args: &McpArgs, home: &Home, printer: Printer) -> Outcome {
    // Whoever starts it is a program: nobody can be asked.
    let ask = Ask::Nobody;
    let runtime = owner::runtime()?;
    let records = owner::records(home, &runtime)?;
    let vault = owner::vault(home, ask)?;
    let host = Host::new(owner::settings(home)?, walls::launcher()?, vault, records);
    let folder = std::env::current_dir().map_err(|error| {
        Failure::new(Exit::Unavailable, "the current folder is gone").cause(error)
    })?;
    let served = Served {
        only: args.only.clone(),
        home: home.clone(),
        host,
        session: format!("{}", std::process::id()),
        folder,
        tickets: Mutex::default(),
        printer,
    };
    // What cannot be served is told before anybody speaks.
    served.tool()?;
    let done = runtime.block_on(async {
        let running = served.serve(rmcp::transport::io::stdio()).await?;
        running.waiting().await?;
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    done.map_err(|error| Failure::new(Exit::Unavailable, "nobody spoke MCP to it").cause(error))?;
    Ok(Exit::Done)
}

/// One package, served.
struct Served {
    only: String,
    home: Home,
    host: Host,
    session: String,
    folder: PathBuf,
    /// The questions that calls have raised: by the action and its input.
    tickets: Mutex<HashMap<(String, String), TicketId>>,
    printer: Printer,
}

impl Served {
    /// The package as it is now.
    fn tool(&self) -> Result<Tool, Failure> {
        let mut found = installed::found(&self.only, &self.home, self.printer)?;
        Ok(found.tools.remove(0))
    }

    /// Its tools, as they are called here and as they are called there.
    fn offered(tool: &Tool) -> (Vec<Definition>, Vec<Name>) {
        let exported =
            export(std::slice::from_ref(&tool.package), Format::Mcp, &Options::default());
        // A server's own tools keep their names and everything that was approved of them.
        let own = tool.surface.as_ref().map(host::surface::Surface::to_value);
        if let Some(Value::Array(own)) = own {
            let definitions: Vec<Definition> =
                own.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect();
            let named = |one: &Definition| Name {
                exposed: one.name.to_string(),
                package: tool.package.canonical_id(),
                action: one.name.to_string(),
            };
            let names = definitions.iter().map(named).collect();
            return (definitions, names);
        }
        let listed = exported.document["tools"].as_array().cloned().unwrap_or_default();
        let read = |one: Value| serde_json::from_value(one).ok();
        (listed.into_iter().filter_map(read).collect(), exported.names)
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let mut tool = match self.tool() {
            Ok(tool) => tool,
            Err(failure) => return Ok(told(&failure.message)),
        };
        let (_, names) = Self::offered(&tool);
        if let Some(surface) = &tool.surface
            && tool.package.actions.is_empty()
        {
            let read = actions_of(surface, Instant::now() + PATIENCE).await;
            match read {
                Ok(actions) => tool.package.actions = actions,
                Err(error) => return Ok(told(&error.to_string())),
            }
        }
        let Some(name) = names.into_iter().find(|name| name.exposed == *request.name) else {
            let message = format!("there is no tool `{}`", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let input = Value::Object(request.arguments.unwrap_or_default()).to_string();
        let key = (name.action.clone(), input.clone());
        let surface = Surface::Agent { name: "mcp".to_owned(), session: self.session.clone() };
        let call = Call {
            action: name.action,
            input,
            surface,
            approver: None,
            ticket: self.tickets().remove(&key),
            folder: self.folder.clone(),
            within: None,
            progress: None,
            implementation: None,
            peer: None,
            resumed: None,
            called_off: context.ct.clone(),
        };
        let mut made = self.host.call(&tool, &call, Warmth::Warm).await;
        if let Some(violation) = made.violation.take() {
            act(&violation, &tool, &self.home, Ask::Nobody, self.printer);
        }
        for (tool, violation) in made.step_violations.drain(..) {
            act(&violation, &tool, &self.home, Ask::Nobody, self.printer);
        }
        Ok(match made.reply {
            Ok(output) => answered(output),
            Err(error) => self.refused(&error, key),
        })
    }

    /// What an agent is told of a call that came to nothing.
    fn refused(&self, error: &CallError, key: (String, String)) -> CallToolResult {
        let ticket = error.details["ticket"].as_str().and_then(TicketId::parse);
        let (Kind::NeedsApproval(_), Some(ticket)) = (&error.kind, ticket) else {
            return told(&error.to_string());
        };
        let words = format!(
            "{error}. The owner answers with `haft approve allow {ticket}` or `haft approve refuse {ticket}`; make the same call again then."
        );
        let mut tickets = self.tickets();
        if tickets.len() < MOST_TICKETS {
            tickets.insert(key, ticket);
        }
        told(&words)
    }

    fn tickets(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), TicketId>> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerHandler for Served {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new(self.only.clone(), env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool =
            self.tool().map_err(|failure| ErrorData::internal_error(failure.message, None))?;
        Ok(ListToolsResult::with_all_items(Self::offered(&tool).0))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Box::pin(self.call(request, context)).await.map(CallToolResponse::from)
    }
}

/// A result: an object as it is, and everything in words.
fn answered(output: Output) -> CallToolResult {
    match output {
        Output::Json(value @ Value::Object(_)) => CallToolResult::structured(value),
        Output::Text(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Output::Nothing => CallToolResult::success(Vec::new()),
        other => CallToolResult::success(vec![ContentBlock::text(other.into_value().to_string())]),
    }
}

fn told(words: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(words)])
}
