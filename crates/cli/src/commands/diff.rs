//! `haft diff`: what changed between two versions, and how much it matters.

use std::path::{Path, PathBuf};

use clap::Args;
use manifest::dialect::Dialect;
use manifest::diff::{Change, Class, diff, diff_sets, is_upgrade_safe};
use package::digest::Listing;
use package::signature;
use serde_json::json;

use crate::container;
use crate::exit::{Exit, Failure, Outcome};
use crate::load::Loading;
use crate::printer::{Printer, Style, escaped};

#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// The manifest of the old version, or its folder or package
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The manifest of the new version, or its folder or package
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Exit with 4 when anything breaks or needs the owner's review
    #[arg(long)]
    upgrade_safe: bool,
    /// Read the files as this dialect instead of recognising it
    #[arg(long, value_name = "DIALECT", value_parser = super::dialect)]
    dialect: Option<Dialect>,
}

pub(crate) fn run(args: &DiffArgs, json_wanted: bool, printer: Printer) -> Outcome {
    // Two tools.json have no ids of their own; by one name they can be held against each other.
    let loading = Loading { dialect: args.dialect, id: Some("tools") };
    let old = loading.packages(&args.old, printer)?;
    let new = loading.packages(&args.new, printer)?;
    let mut changes = match (&old[..], &new[..]) {
        ([old], [new]) => diff(old, new),
        _ => diff_sets(&old, &new),
    };
    changes.extend(files(args, printer)?);
    changes.sort_by_key(|change| change.class);
    let safe = is_upgrade_safe(&changes);
    if json_wanted {
        let count = |class| changes.iter().filter(|change| change.class == class).count();
        let counts: serde_json::Map<_, _> = Class::ALL
            .iter()
            .map(|class| (class.name().to_owned(), count(*class).into()))
            .collect();
        printer.json(&json!({"changes": changes, "counts": counts, "upgrade_safe": safe}))?;
    } else {
        printer.result(&told(&changes, printer))?;
        if changes.is_empty() {
            printer.note("no changes");
        }
    }
    Ok(if args.upgrade_safe && !safe { Exit::Denied } else { Exit::Done })
}

/// What happened to the files of two packages; the manifests have been looked at more closely.
fn files(args: &DiffArgs, printer: Printer) -> Result<Vec<Change>, Failure> {
    if !container::is_archive(&args.old) || !container::is_archive(&args.new) {
        return Ok(Vec::new());
    }
    let listing = |path: &Path| -> Result<(Listing, String), Failure> {
        let container = container::open(path, printer)?;
        let listing = container.check_unbroken()?.without(signature::PATH);
        Ok((listing, container.manifest()?.0))
    };
    let ((old, manifest), (new, _)) = (listing(&args.old)?, listing(&args.new)?);
    let change = |path: &str, message: &str| Change {
        class: Class::NeedsReview,
        subject: format!("file {path}"),
        message: message.to_owned(),
        pointer: None,
    };
    let mut changes = Vec::new();
    for file in old.files().iter().filter(|file| file.path != manifest) {
        match new.get(&file.path) {
            None => changes.push(change(&file.path, "is gone")),
            Some(now) if now.sha256 != file.sha256 => {
                changes.push(change(&file.path, "was changed"));
            }
            Some(_) => {}
        }
    }
    let added = new.files().iter().filter(|file| old.get(&file.path).is_none());
    changes.extend(added.map(|file| change(&file.path, "is new")));
    Ok(changes)
}

pub(super) fn told(changes: &[Change], printer: Printer) -> String {
    changes
        .iter()
        .map(|change| {
            let style = match change.class {
                Class::Breaking => Style::Error,
                Class::NeedsReview => Style::Warning,
                Class::Additive => Style::Good,
                Class::Cosmetic => Style::Faint,
            };
            let class = printer.paint(style, &format!("{:<12}", change.class.name()));
            let subject = escaped(&change.subject).replace('\n', " ");
            format!("{class}  {subject}: {}\n", escaped(&change.message).replace('\n', " "))
        })
        .collect()
}
