//! `haft registry owner`: who else may publish a tool.

use clap::{Args, Subcommand};
use egress::http::Method;
use registry::Owners;
use serde_json::json;

use super::place::known;
use crate::exit::{Exit, Outcome};
use crate::printer::{Printer, line};
use crate::remote::{Ask, Identity, Remote};

#[derive(Args, Debug)]
#[command(
    after_help = "A tool is published by the tokens of its own namespace, and of the namespaces that own it beside. Only those of its own say who does.\n\nExamples:\n  haft registry owner add acme.pdf.read tools-team --registry https://registry.example"
)]
pub(super) struct OwnerArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List the namespaces whose tokens may publish a tool
    List(ToolArgs),
    /// Let another namespace publish it too
    Add(ChangeArgs),
    /// Let it publish no more
    Rm(ChangeArgs),
}

#[derive(Args, Debug)]
struct ToolArgs {
    /// The tool
    #[arg(value_name = "ID")]
    id: String,
    /// The registry [default: `REGISTRY_BASE_URL`]
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
}

#[derive(Args, Debug)]
struct ChangeArgs {
    #[command(flatten)]
    tool: ToolArgs,
    /// The namespace
    #[arg(value_name = "NAMESPACE")]
    namespace: String,
}

pub(super) fn run(args: &OwnerArgs, json_wanted: bool, printer: Printer) -> Outcome {
    let owners: Owners = match &args.verb {
        Verb::List(args) => Remote::find(args.registry.as_deref())?.read(Ask {
            method: Method::GET,
            path: &["tools", &args.id, "owners"],
            query: &[],
            body: None,
            identity: Identity::Perhaps,
        })?,
        Verb::Add(args) => change(Method::PUT, args)?,
        Verb::Rm(args) => change(Method::DELETE, args)?,
    };
    if json_wanted {
        printer.json(&json!(owners))?;
        return Ok(Exit::Done);
    }
    let all = std::iter::once(&owners.namespace).chain(&owners.owners);
    printer.result(&all.map(|name| format!("{}\n", line(name))).collect::<String>())?;
    Ok(Exit::Done)
}

fn change(method: Method, args: &ChangeArgs) -> Result<Owners, crate::exit::Failure> {
    let remote = Remote::find(args.tool.registry.as_deref())?;
    let path = ["tools", &args.tool.id, "owners", &args.namespace];
    remote.read(known(method, &path, None))
}
