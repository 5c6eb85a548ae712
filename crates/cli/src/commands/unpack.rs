//! `haft unpack`: the files of a package in a fresh folder, whole or not at all.

use std::path::{Path, PathBuf};

use clap::Args;
use package::extract::{Durability, ExtractError, extract};
use package::signature::{self, State};
use serde_json::json;

use crate::container::{self, refused};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::interrupt;
use crate::printer::{Printer, line};

#[derive(Args, Debug)]
pub(crate) struct UnpackArgs {
    /// The package: .mcpkg, .mcpb or a bundle
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The folder to make [default: the file's name without its ending]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Do not wait until the files are on the disk
    #[arg(long)]
    no_sync: bool,
}

pub(crate) fn run(args: &UnpackArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let container = container::open(&args.file, printer)?;
    package::contents::find_manifest(container.contents())
        .map_err(|error| refused(&args.file, &error))?;
    let content = container.signature()?;
    let folder = match &args.output {
        Some(folder) => folder.clone(),
        None => args.file.file_stem().map(PathBuf::from).unwrap_or_default(),
    };
    check_not_here(&folder)?;
    let above = std::path::absolute(&folder).unwrap_or_default();
    above.ancestors().skip(1).filter(|above| above.is_dir()).take(1).for_each(interrupt::watch);
    let archive = container.into_archive()?;
    let staged = extract(&archive, &folder).map_err(|error| unextracted(args, error))?;
    let verdict = signature::check(staged.listing(), content.as_deref());
    if verdict.state == State::Invalid {
        let message = format!(
            "`{}` was changed after it was signed, so it is not unpacked",
            args.file.display()
        );
        return Err(Failure::invalid(message).details(verdict.faults));
    }
    let durability = if args.no_sync { Durability::Left } else { Durability::Synced };
    let listing = staged.promote(durability).map_err(|error| unextracted(args, error))?;
    if json_wanted {
        printer.json(&json!({
            "path": folder.to_string_lossy(),
            "files": super::files_json(&listing),
            "signature": {"state": verdict.state.name()},
        }))?;
        return Ok(Exit::Done);
    }
    printer.note(&format!(
        "Unpacked {}, {} bytes, {}",
        super::count(listing.files().len(), "file"),
        listing.total(),
        super::signature_words(&verdict, &home.trusted(printer)?)
    ));
    printer.result(&format!("{}\n", line(&folder.to_string_lossy())))?;
    Ok(Exit::Done)
}

/// The folder we stand in cannot be made anew under our feet.
fn check_not_here(folder: &Path) -> Result<(), Failure> {
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok();
    if here.is_some() && folder.canonicalize().ok() == here {
        let message = format!("`{}` is the current folder, not a fresh one", folder.display());
        return Err(Failure::new(Exit::Conflict, message)
            .hint("nothing was written; name another folder with --output"));
    }
    Ok(())
}

fn unextracted(args: &UnpackArgs, error: ExtractError) -> Failure {
    match error {
        ExtractError::Read(error) => refused(&args.file, &error),
        ExtractError::Taken(path) => {
            let message = format!("`{}` is already there", path.display());
            Failure::new(Exit::Conflict, message)
                .hint("nothing was written; name another folder with --output")
        }
        ExtractError::Write { path, cause } => {
            Failure::new(Exit::Unavailable, format!("failed to write `{}`", path.display()))
                .cause(cause)
        }
    }
}
