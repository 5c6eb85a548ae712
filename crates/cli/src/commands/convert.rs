//! `haft convert`: one dialect into another, with its losses.

use std::path::{Path, PathBuf};

use clap::Args;
use manifest::convert::{Conversion, ConvertError, Loss, Request, convert};
use manifest::dialect::Dialect;
use manifest::document::Options;
use manifest::json::Pointer;
use serde_json::{Value, json};

use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Printer, escaped};
use crate::{container, disk, draw, output};

#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    /// The manifest, or the folder or package that holds it; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The dialect to write
    #[arg(long, value_name = "DIALECT", value_parser = super::target)]
    to: Dialect,
    /// Write to this new file instead of standard output
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
    /// A value the source does not know: a JSON pointer into the new document, and JSON or plain text
    #[arg(long, value_name = "POINTER=VALUE", value_parser = super::setting)]
    set: Vec<(Pointer, Value)>,
    /// Write the document even though something it demands is missing
    #[arg(long)]
    draft: bool,
    /// Convert only this action, or this entry of a catalog
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Read the file as this dialect instead of recognising it
    #[arg(long, value_name = "DIALECT", value_parser = super::dialect)]
    dialect: Option<Dialect>,
    /// The id of a tools.json, which has none of its own [default: its folder's name]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

pub(crate) fn run(args: &ConvertArgs, json_wanted: bool, printer: Printer) -> Outcome {
    let Source { file, bytes, name } = source(&args.file, printer)?;
    let source = Options {
        dialect: args.dialect,
        fallback_id: args.id.as_deref().or(name.as_deref()),
        ..Options::default()
    };
    let request = Request { source, target: args.to, only: args.only.as_deref(), set: &args.set };
    let conversion =
        convert(&bytes, &request).map_err(|error| explain(error, args, &file, &bytes, printer))?;
    if !args.draft {
        if !conversion.missing.is_empty() {
            return ask(&conversion, args, json_wanted, printer);
        }
        if let Some(report) = conversion.report.as_ref().filter(|report| !report.is_valid()) {
            return Err(draw::refused(
                Path::new("the new document"),
                &conversion.document,
                report,
                printer,
            )
            .hint(
                "a value given with --set does not fit; --draft writes the document all the same",
            ));
        }
    }
    if json_wanted {
        printer.json(&document(&conversion, true))?;
    } else {
        tell(&conversion.losses, printer);
        for missing in &conversion.missing {
            printer.warn(&format!("{} is missing: {}", missing.pointer, escaped(&missing.what)));
        }
        for finding in conversion.report.iter().flat_map(|report| &report.findings) {
            let place = escaped(finding.pointer.as_str());
            printer.warn(&format!("{}: {place}", escaped(&finding.message)));
        }
    }
    match &args.output {
        Some(path) => {
            output::write_new(path, &conversion.document)?;
            printer.note(&format!("wrote {}", path.display()));
        }
        None if !json_wanted => printer.result(&String::from_utf8_lossy(&conversion.document))?,
        None => {}
    }
    Ok(Exit::Done)
}

/// What is converted.
struct Source {
    /// What to call it in messages.
    file: PathBuf,
    bytes: Vec<u8>,
    /// The id of a manifest that has none.
    name: Option<String>,
}

/// Reads the manifest the user means: a file, the one in a folder, or the one in a package.
fn source(path: &Path, printer: Printer) -> Result<Source, Failure> {
    if path.is_file() && container::is_archive(path) {
        let container = container::open(path, printer)?;
        let (name, bytes) = container.manifest()?;
        return Ok(Source { file: path.join(name), bytes, name: Some(container.name()) });
    }
    let file = disk::manifest_in(path)?;
    let bytes = disk::read(&file)?;
    let name = disk::folder_name(&file);
    Ok(Source { file, bytes, name })
}

/// Lists what the target demands and nobody has said.
fn ask(
    conversion: &Conversion,
    args: &ConvertArgs,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    if json_wanted {
        printer.json(&document(conversion, false))?;
        return Ok(Exit::Invalid);
    }
    tell(&conversion.losses, printer);
    let message = format!("{} demands what `{}` does not say", args.to, args.file.display());
    let missing = conversion.missing.iter();
    Err(Failure::invalid(message)
        .details(missing.map(|missing| format!("{}: {}", missing.pointer, missing.what)))
        .hint("give each with --set POINTER=VALUE, or write the incomplete document with --draft"))
}

fn tell(losses: &[Loss], printer: Printer) {
    for loss in losses {
        let pointer = match loss.pointer.as_str() {
            "" => String::new(),
            pointer => format!(" {}", escaped(pointer)),
        };
        let text = format!("lost ({}){pointer}: {}", weight(loss), escaped(&loss.reason));
        printer.note(&text);
    }
}

fn weight(loss: &Loss) -> &'static str {
    match loss.weight {
        manifest::concept::Weight::Safety => "safety",
        manifest::concept::Weight::Behaviour => "behaviour",
        manifest::concept::Weight::Cosmetic => "cosmetic",
    }
}

fn document(conversion: &Conversion, is_done: bool) -> Value {
    let losses: Vec<_> = conversion
        .losses
        .iter()
        .map(
            |loss| json!({"pointer": loss.pointer, "reason": loss.reason, "severity": loss.weight}),
        )
        .collect();
    let body = is_done
        .then(|| serde_json::from_slice::<Value>(&conversion.document).unwrap_or(Value::Null));
    json!({"document": body, "losses": losses, "missing": conversion.missing})
}

fn explain(
    error: ConvertError,
    args: &ConvertArgs,
    path: &Path,
    bytes: &[u8],
    printer: Printer,
) -> Failure {
    let file = path.display();
    match error {
        ConvertError::Invalid(report) => draw::refused(path, bytes, &report, printer),
        ConvertError::NoManifest(form) => {
            Failure::invalid(format!("`{file}` is no manifest but {}", form.noun()))
        }
        ConvertError::Several { noun, names } => {
            let many = if noun == "entry" { "entries" } else { "actions" };
            Failure::invalid(format!(
                "`{file}` has {} {many}, and {} holds one",
                names.len(),
                args.to
            ))
            .hint(format!("choose with --only: {}", listed(&names)))
        }
        ConvertError::Unknown { name, names } => {
            Failure::new(Exit::NotFound, format!("`{file}` has nothing called `{name}`"))
                .hint(format!("there is {}", listed(&names)))
        }
        ConvertError::OnlyRead(dialect) => {
            Failure::invalid(format!("{dialect} is read, not written"))
        }
        ConvertError::Empty => Failure::invalid(format!("`{file}` holds nothing to convert")),
        ConvertError::BadSet(pointer) => {
            Failure::invalid(format!("nothing can be put at `{pointer}`"))
                .hint("a list grows by one element at a time, and a text or number has no members")
        }
        ConvertError::OnlyInSame => {
            let message =
                format!("`{file}` is {} already, and has no parts that stand alone", args.to);
            Failure::invalid(message).hint("leave --only out")
        }
        ConvertError::SetInSame => Failure::invalid(format!(
            "`{file}` is {} already, and is given back byte for byte",
            args.to
        ))
        .hint("leave --set out, or edit the file"),
    }
}

fn listed(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(20).map(|name| format!("`{name}`")).collect();
    let more =
        if names.len() > 20 { format!(" and {} more", names.len() - 20) } else { String::new() };
    shown.join(", ") + &more
}
