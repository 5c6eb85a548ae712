//! `haft export`: tool definitions for other systems, of what is installed or of files.

mod installed;

pub(crate) use installed::known;

use std::path::PathBuf;

use clap::Args;
use manifest::dialect::Dialect;
use manifest::export::{Export, Format, HOW_ESTIMATED, Options, Spent, export};
use serde_json::json;

use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::load::Loading;
use crate::output;
use crate::printer::{Printer, escaped};
use crate::shell;

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  haft export --format mcp\n  haft export --format mcpkg --context --budget 4000\n  haft export --format agentcli --output tools\n  haft export examples/mcpkg/echo --format openai"
)]
pub(crate) struct ExportArgs {
    /// Manifests, or folders that hold some [default: what is installed and can be called]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What to write: openai, openai-responses, anthropic, mcp, agentcli or mcpkg
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Format,
    /// Write into this new folder; for agentcli, with the programs it starts
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Read the files as this dialect instead of recognising it
    #[arg(long, value_name = "DIALECT", requires = "files", value_parser = super::dialect)]
    dialect: Option<Dialect>,
    /// The id of a tools.json, which has none of its own [default: its folder's name]
    #[arg(long, value_name = "ID", requires = "files")]
    id: Option<String>,
    /// Of what is installed, for mcpkg: tell the examples of each, and how its tests went the last time
    #[arg(long, conflicts_with = "files")]
    context: bool,
    /// Of what is installed: only the best ranked whose definitions together take about so many tokens
    #[arg(long, value_name = "TOKENS", conflicts_with = "files", allow_hyphen_values = true, value_parser = tokens)]
    budget: Option<u64>,
}

/// A budget.
fn tokens(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "write a number of tokens, 1 or more".to_owned())
}

pub(crate) fn run(
    args: &ExportArgs,
    home: impl FnOnce() -> Result<Home, Failure>,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    if args.context && args.format != Format::Mcpkg {
        let message =
            format!("--context goes with mcpkg, and {} has no place for it", args.format.name());
        return Err(Failure::invalid(message));
    }
    let is_file = |path: &&PathBuf| path.extension().is_some_and(|kind| kind == "json");
    if let Some(file) = args.output.as_ref().filter(is_file) {
        let file = shell::word(&file.display().to_string());
        let message = format!("--output makes a new folder, and {file} would be a strange one");
        let hint = format!("without --output the document is printed, and `> {file}` keeps it");
        return Err(Failure::invalid(message).hint(hint));
    }
    let (exported, spent) = if args.files.is_empty() {
        installed::exported(args, &home()?, printer)?
    } else {
        (of_files(args, printer)?, None)
    };
    for note in &exported.notes {
        printer.warn(&escaped(note));
    }
    if let Some(spent) = &spent {
        printer.note(&words_of(spent, exported.names.len()));
    }
    if let Some(folder) = &args.output {
        write(folder, &exported, args.format, printer)?;
    } else if !exported.files.is_empty() {
        printer.note("the programs it starts are written with --output DIR");
    }
    if json_wanted {
        let mut told = json!({"document": exported.document, "names": exported.names, "notes": exported.notes});
        if let Some(spent) = &spent {
            told["budget"] = spent.to_value();
        }
        printer.json(&told)?;
    } else if args.output.is_none() {
        printer.json(&exported.document)?;
    }
    Ok(Exit::Done)
}

/// What became of a budget.
fn words_of(spent: &Spent, kept: usize) -> String {
    let (tools, Spent { budget, used, .. }) = (super::count(kept, "tool"), spent);
    format!("{tools} of about {used} tokens, of {budget}; counted is {HOW_ESTIMATED}")
}

fn of_files(args: &ExportArgs, printer: Printer) -> Result<Export, Failure> {
    let loading = Loading { dialect: args.dialect, id: args.id.as_deref() };
    let mut packages = Vec::new();
    for file in &args.files {
        packages.extend(loading.packages(file, printer)?);
    }
    let exported = export(&packages, args.format, &Options::default());
    if !exported.files.is_empty() {
        printer.note("the programs run `haft call`, which finds a package once it is installed");
    }
    Ok(exported)
}

fn write(
    folder: &std::path::Path,
    exported: &Export,
    format: Format,
    printer: Printer,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let exit = if error.kind() == std::io::ErrorKind::AlreadyExists {
            Exit::Conflict
        } else {
            Exit::Unavailable
        };
        Failure::new(exit, format!("failed to make the folder `{}`", folder.display())).cause(error)
    };
    std::fs::create_dir(folder).map_err(failed)?;
    let mut document = serde_json::to_vec_pretty(&exported.document)
        .map_err(|error| Failure::new(Exit::Bug, "failed to write JSON").cause(error))?;
    document.push(b'\n');
    let name = if format == Format::Agentcli {
        "tools.json".to_owned()
    } else {
        format!("{}.json", format.name())
    };
    output::write_new(&folder.join(&name), &document)?;
    for shim in &exported.files {
        let path = folder.join(&shim.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        output::write_new(&path, shim.content.as_bytes())?;
        if shim.executable {
            output::make_executable(&path)?;
        }
    }
    let programs = match exported.files.len() {
        0 => String::new(),
        1 => " and 1 program".to_owned(),
        many => format!(" and {many} programs"),
    };
    printer.note(&format!("wrote {name}{programs} below {}", folder.display()));
    Ok(())
}

fn format(name: &str) -> Result<Format, String> {
    Format::named(name)
        .ok_or_else(|| super::no_such("format", name, &Format::ALL.map(Format::name)))
}
