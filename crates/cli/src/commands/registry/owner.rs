//! `haft registry owner`: who else may publish a tool.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use egress::http::Method;
use registry::Owners;
use registry::client::{By, Errand};
use serde_json::json;

use super::place::Office;
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::remote::Which;
use crate::shell;

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
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    id: String,
    #[command(flatten)]
    which: Which,
}

#[derive(Args, Debug)]
struct ChangeArgs {
    #[command(flatten)]
    tool: ToolArgs,
    /// The namespace
    #[arg(value_name = "NAMESPACE", value_parser = NonEmptyStringValueParser::new())]
    namespace: String,
}

pub(super) fn run(
    args: &OwnerArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let owners: Owners = match &args.verb {
        Verb::List(args) => list(args, home, ask)?,
        Verb::Add(args) => change(Method::PUT, args, home, ask)?,
        Verb::Rm(args) => {
            let (tool, name) = (&args.tool.id, &args.namespace);
            // The namespace of the tool itself owns it always, which the registry says.
            let known = list(&args.tool, home, ask)?;
            if known.namespace != *name && !known.owners.contains(name) {
                let message = format!("`{}` does not own `{}`", line(name), line(tool));
                return Err(Failure::new(Exit::NotFound, message).hint(format!(
                    "`haft registry owner list {}` shows who does",
                    shell::word(tool)
                )));
            }
            change(Method::DELETE, args, home, ask)?
        }
    };
    if json_wanted {
        printer.json(&json!(owners))?;
        return Ok(Exit::Done);
    }
    let all = std::iter::once(&owners.namespace).chain(&owners.owners);
    printer.result(&all.map(|name| format!("{}\n", line(name))).collect::<String>())?;
    Ok(Exit::Done)
}

fn list(args: &ToolArgs, home: &Home, ask: Ask) -> Result<Owners, Failure> {
    let path = ["tools", args.id.as_str(), "owners"];
    let errand = Errand { by: By::Anybody, ..Errand::new(Method::GET, &path) };
    Office::open(&args.which, home, ask)?.ask(errand)
}

fn change(method: Method, args: &ChangeArgs, home: &Home, ask: Ask) -> Result<Owners, Failure> {
    let path = ["tools", &args.tool.id, "owners", &args.namespace];
    Office::open(&args.tool.which, home, ask)?.ask(Errand::new(method, &path))
}
