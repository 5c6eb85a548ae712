//! `haft import`: servers of clients' settings, and documents, made into packages and installed.

mod machine;
mod made;
mod originals;
mod source;
mod started;
mod swap;
mod told;

use clap::Args;
use import::openapi::Wanted;

use crate::ask::Ask;
use crate::clients;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::owner;
use crate::printer::{Printer, line};
use made::Making;
use told::{Report, State};

#[derive(Args, Debug)]
#[command(
    after_help = "CLIENT is claude-desktop, claude-code, cursor, vscode, codex, gemini, or all of them: all.\n\nExamples:\n  haft import claude-code --dry-run\n  haft import cursor --replace --yes\n  haft import cursor --undo\n  haft import petstore.yaml --include-tag pets"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that can be typed")]
pub(crate) struct ImportArgs {
    /// What: a client by its name, a file of its settings, a package, or an OpenAPI document
    #[arg(value_name = "CLIENT|FILE", required = true)]
    what: Vec<String>,
    /// Only the server of that name; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Accept every card without being asked; what your policy refuses stays refused
    #[arg(long, short)]
    yes: bool,
    /// A value that one of them asks for and that is no secret: NAME=VALUE; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = super::install::inputs::setting)]
    env: Vec<(String, String)>,
    /// What the package is called, where there is one
    #[arg(long = "as", value_name = "NAME")]
    called: Option<String>,
    /// Show what would become of each, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Of clients: let them start `haft mcp --only ID` instead of each server that was imported
    #[arg(long, conflicts_with = "undo")]
    replace: bool,
    /// Of clients: let them start again what they started before
    #[arg(long, conflicts_with_all = ["only", "env", "called", "yes"])]
    undo: bool,
    #[command(flatten)]
    document: DocumentArgs,
}

// Which operations of a document are meant. A doc comment would stand in the help of the verb.
#[derive(Args, Debug)]
struct DocumentArgs {
    /// Only operations with that tag; may be repeated
    #[arg(long, value_name = "TAG", help_heading = "OpenAPI documents")]
    include_tag: Vec<String>,
    /// Only operations whose path fits: /pets/*; may be repeated
    #[arg(long, value_name = "GLOB", help_heading = "OpenAPI documents")]
    include_path: Vec<String>,
    /// Only operations with that method; may be repeated
    #[arg(long, value_name = "METHOD", help_heading = "OpenAPI documents")]
    include_method: Vec<String>,
    /// Only the operation with that id; may be repeated
    #[arg(long, value_name = "ID", help_heading = "OpenAPI documents")]
    operation: Vec<String>,
    /// Where the operations are reached [default: the first server of the document]
    #[arg(long, value_name = "URL", help_heading = "OpenAPI documents")]
    base_url: Option<String>,
    /// The operation that the package is tried with [default: one that changes nothing and needs nothing]
    #[arg(long, value_name = "ID", help_heading = "OpenAPI documents")]
    smoke: Option<String>,
    /// What it is tried with: a JSON object
    #[arg(long, value_name = "JSON", requires = "smoke", value_parser = object, help_heading = "OpenAPI documents")]
    smoke_input: Option<serde_json::Value>,
}

fn object(text: &str) -> Result<serde_json::Value, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if value.is_object() { Ok(value) } else { Err("write a JSON object".to_owned()) }
}

impl DocumentArgs {
    /// Whether any of them was given.
    fn is_given(&self) -> bool {
        let several =
            [&self.include_tag, &self.include_path, &self.include_method, &self.operation];
        several.iter().any(|given| !given.is_empty())
            || self.base_url.is_some()
            || self.smoke.is_some()
    }

    fn wanted(&self, called: Option<&str>) -> Wanted {
        Wanted {
            tags: self.include_tag.clone(),
            paths: self.include_path.clone(),
            methods: self.include_method.clone(),
            operations: self.operation.clone(),
            base_url: self.base_url.clone(),
            smoke: self.smoke.clone(),
            smoke_input: self.smoke_input.clone(),
            name: called.map(str::to_owned),
        }
    }
}

pub(crate) fn run(
    args: &ImportArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let mut sources = Vec::new();
    for what in &args.what {
        sources.extend(source::find(what)?);
    }
    if (args.replace || args.undo) && sources.iter().any(|source| source.client.is_none()) {
        let message =
            "--replace and --undo change the file of a client, which is named by its name";
        return Err(Failure::invalid(message).hint(format!("there is {}", clients::names())));
    }
    if args.undo {
        return swap::undo(&sources, args, (home, ask), json_wanted, printer);
    }
    let policy = owner::policy(home)?;
    let mut report = Report::default();
    let wanted = args.document.wanted(args.called.as_deref());
    let mut making =
        Making { args, policy: &policy, home, ask, json_wanted, printer, made: Vec::new() };
    for (index, source) in sources.iter().enumerate() {
        making.gather(index, source, &wanted, &mut report);
    }
    check_names(args, &report)?;
    check_settings(args, &report)?;
    if args.document.is_given() && report.documents == 0 && report.exit() == Exit::Done {
        let message = "which operations are meant is said of OpenAPI documents, and none was named";
        return Err(Failure::invalid(message));
    }
    if args.dry_run {
        for entry in &mut report.entries {
            making.foresee(entry);
        }
        report.tell(json_wanted, printer)?;
        if args.replace && !json_wanted {
            swap::show(&sources, &report, home, printer)?;
        }
        return Ok(report.exit());
    }
    for entry in &mut report.entries {
        making.install(entry, &sources);
    }
    if args.replace {
        swap::replace(&sources, &mut report, (home, ask), printer)?;
    }
    report.tell(json_wanted, printer)?;
    Ok(report.exit())
}

/// Refuses a name that nothing has, and one name for several things.
fn check_names(args: &ImportArgs, report: &Report) -> Result<(), Failure> {
    for only in &args.only {
        if !report.entries.iter().any(|entry| entry.name == *only) {
            let failure =
                Failure::new(Exit::NotFound, format!("there is no server `{}`", line(only)));
            let known: Vec<_> = report.names.iter().map(|name| line(name)).collect();
            return Err(match known.as_slice() {
                [] => failure,
                known => failure.hint(format!("there is {}", known.join(", "))),
            });
        }
    }
    let meant =
        report.entries.iter().filter(|entry| !matches!(entry.state, State::Left(_))).count();
    if args.called.is_some() && meant > 1 {
        let message = format!("--as names one package, and there are {meant}");
        return Err(Failure::invalid(message).hint("--only says which is meant"));
    }
    Ok(())
}

/// Refuses a value that nothing asks for.
fn check_settings(args: &ImportArgs, report: &Report) -> Result<(), Failure> {
    for (name, _) in &args.env {
        let asks = |entry: &told::Told| entry.asks_for(name);
        if !report.entries.iter().any(asks) {
            return Err(Failure::invalid(format!("nothing asks for `{}`", line(name))));
        }
    }
    Ok(())
}
