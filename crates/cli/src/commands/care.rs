//! `haft registry check|gc|backup|restore`: what an operator does for a registry.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use server::blobs::BlobError;
use server::care::CareError;
use server::care::backup::backup as make_backup;
use server::care::check::{Finding, check as look};
use server::care::gc::{Mode, Step, collect};
use server::care::restore::{Others, check_begins, restore as bring_back};
use server::{Store, Trouble};

use super::count;
use super::stores::{StoreArgs, open, open_blobs, open_existing, open_existing_blobs, room};
use crate::bar::Bar;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::output;
use crate::owner;
use crate::printer::{Printer, line};

/// What to do about files of another registry.
pub(super) const OTHERS: &str = "name the database and the files that belong together with --database and --blobs; after a restore beside files that were kept, `haft registry restore --take-over` makes them its own";

#[derive(Args, Debug)]
#[command(
    after_help = "Every row is read and every package file is read through. Exit 1 when something is damaged. Files that no version has are named and are no damage: `haft registry gc` removes them. It works while the registry is served."
)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    stores: StoreArgs,
}

#[derive(Args, Debug)]
#[command(
    after_help = "A publish that is under way keeps its file, whatever the grace is. It works while the registry is served."
)]
pub(super) struct GcArgs {
    /// How old a file must be
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = grace)]
    grace: Duration,
    /// Name the files and remove nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    stores: StoreArgs,
}

#[derive(Args, Debug)]
#[command(
    after_help = "The rows are those of one moment, so it works while the registry is served. The hashes of tokens are in it: keep it for yourself. Exit 1 when something could not be kept because it is damaged.\n\nExamples:\n  haft registry backup registry-2026-11-16.tar\n  haft registry backup registry-2026-11-16/"
)]
pub(super) struct BackupArgs {
    /// A new file, or a new folder when it ends in a slash
    #[arg(value_name = "FILE|DIR")]
    into: PathBuf,
    #[command(flatten)]
    stores: StoreArgs,
}

#[derive(Args, Debug)]
#[command(
    after_help = "The registry must be empty. It may be of the other kind: a backup of SQLite and a folder goes into PostgreSQL and S3, and back."
)]
pub(super) struct RestoreArgs {
    /// What `haft registry backup` made
    #[arg(value_name = "FILE|DIR")]
    from: PathBuf,
    /// Make package files that belong to another registry this one's own; the other is refused from then on
    #[arg(long)]
    take_over: bool,
    #[command(flatten)]
    stores: StoreArgs,
}

fn failed(error: &CareError) -> Failure {
    let exit = match error {
        CareError::File { trouble: Trouble::Missing, .. } => Exit::NotFound,
        CareError::Blob(BlobError::OtherRegistry | BlobError::NoRegistry) => Exit::Denied,
        CareError::Store(_) | CareError::Blob(_) | CareError::File { .. } => Exit::Unavailable,
        CareError::NoFolder(_) | CareError::NotThere(_) => Exit::NotFound,
        CareError::Exists(_) | CareError::NotEmpty(_) => Exit::Conflict,
        CareError::NoBackup(_) | CareError::Newer { .. } | CareError::Damaged(_) => Exit::Invalid,
    };
    let failure = Failure::of(exit, error);
    match error {
        CareError::Blob(BlobError::OtherRegistry) => failure.hint(OTHERS),
        CareError::NoFolder(path) => failure.hint(output::made_by(path)),
        CareError::Exists(_) => failure.hint("no backup is written over; name a new file or folder"),
        CareError::NotEmpty(_) => failure.hint(
            "a backup goes into a new registry: name one with --home, or with --database and --blobs",
        ),
        CareError::NoBackup(_) => {
            failure.hint("`haft registry backup FILE` makes one, as a tar file or a folder")
        }
        CareError::Damaged(_) => {
            failure.hint("nothing of it was brought back; take another copy, or an older backup")
        }
        CareError::Newer { .. } => failure.hint("restore it with the version of Haft that made it"),
        _ => failure,
    }
}

/// How much there is to read through, where the database says so.
async fn measure(store: &Store) -> Option<u64> {
    store.file_bytes().await.ok()
}

pub(super) fn check(args: &CheckArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let mut findings: Vec<Value> = Vec::new();
    let mut tell = |bar: &Bar, finding: Finding| {
        if json_wanted {
            findings.push(json!({
                "kind": finding.kind.name(),
                "damage": finding.kind.is_damage(),
                "what": finding.what,
                "message": finding.message,
            }));
        } else {
            let text = format!("{}: {}", line(&finding.what), line(&finding.message));
            bar.aside(|| {
                if finding.kind.is_damage() {
                    // Written as it is found: a reader that has gone away ends it.
                    let _ends_there = printer.result(&format!("{text}\n"));
                } else {
                    printer.note(&text);
                }
            });
        }
    };
    let checked = owner::runtime()?.block_on(async {
        let store = open_existing(&args.stores.database, home).await?;
        let blobs = open_existing_blobs(&args.stores.blobs, home)?;
        let bar = Bar::begin("Checking", measure(&store).await, json_wanted, printer);
        let blobs = blobs.watched(bar.watch());
        let looked = look(&store, &blobs, |finding| tell(&bar, finding)).await;
        looked.map_err(|error| failed(&error))
    })?;
    if json_wanted {
        printer.json(&json!({
            "versions": checked.versions,
            "files": checked.files,
            "bytes": checked.bytes,
            "damaged": checked.damaged,
            "noted": checked.noted,
            "findings": findings,
        }))?;
    } else {
        printer.note(&format!(
            "Checked {} and {} ({}): {} damaged",
            count(checked.versions, "version"),
            count(checked.files, "file"),
            count(checked.bytes, "byte"),
            checked.damaged
        ));
    }
    Ok(if checked.damaged > 0 { Exit::Failed } else { Exit::Done })
}

pub(super) fn gc(args: &GcArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let mode = if args.dry_run { Mode::Name } else { Mode::Remove };
    let mut files: Vec<Value> = Vec::new();
    let collected = owner::runtime()?.block_on(async {
        let store = open_existing(&args.stores.database, home).await?;
        let blobs = open_existing_blobs(&args.stores.blobs, home)?;
        let bar = Bar::count("Looking for unused files", json_wanted, printer);
        // Those that no version has come on top, which are few.
        if let Ok(files) = store.file_count().await {
            bar.of(files);
        }
        let tell = |step: Step| {
            let Step::Goes(digest, size) = step else { return bar.done_one() };
            if json_wanted {
                files.push(json!({"sha256": digest.to_string(), "size": size}));
            } else {
                let text = format!("sha256:{digest}  {size}\n");
                let _ends_there = bar.aside(|| printer.result(&text));
            }
        };
        collect(&store, &blobs, args.grace, mode, tell).await.map_err(|error| failed(&error))
    })?;
    if json_wanted {
        printer.json(&json!({
            "dryRun": args.dry_run,
            "files": collected.files,
            "removed": collected.removed,
            "bytes": collected.bytes,
            "young": collected.young,
            "unfinished": collected.unfinished,
            "removedFiles": files,
        }))?;
    } else {
        let done = if args.dry_run { "Would remove" } else { "Removed" };
        let are = if collected.young == 1 { "is" } else { "are" };
        printer.note(&format!(
            "{done} {} of {} ({}) and {}; {} {are} too young",
            collected.removed,
            count(collected.files, "file"),
            count(collected.bytes, "byte"),
            count(collected.unfinished, "unfinished file"),
            collected.young
        ));
    }
    Ok(Exit::Done)
}

pub(super) fn backup(
    args: &BackupArgs,
    home: &Home,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let kept = owner::runtime()?.block_on(async {
        let store = open_existing(&args.stores.database, home).await?;
        let blobs = open_existing_blobs(&args.stores.blobs, home)?;
        let bar = Bar::begin("Keeping", measure(&store).await, json_wanted, printer);
        let blobs = blobs.watched(bar.watch());
        make_backup(&store, &blobs, &args.into).await.map_err(|error| failed(&error))
    })?;
    if json_wanted {
        printer.json(&json!({
            "rows": kept.rows,
            "files": kept.files,
            "bytes": kept.bytes,
            "damaged": kept.damaged,
        }))?;
    } else {
        kept.damaged.iter().for_each(|what| printer.warn(&line(what)));
        printer.note(&format!(
            "Kept {} and {} ({})",
            count(kept.rows, "row"),
            count(kept.files, "file"),
            count(kept.bytes, "byte")
        ));
    }
    Ok(if kept.damaged.is_empty() { Exit::Done } else { Exit::Failed })
}

pub(super) fn restore(
    args: &RestoreArgs,
    home: &Home,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let restored = owner::runtime()?.block_on(async {
        check_begins(&args.from).await.map_err(|error| failed(&error))?;
        let store = open(&args.stores.database, home).await?;
        let blobs = open_blobs(&args.stores.blobs, home)?;
        let others = if args.take_over { Others::TakeOver } else { Others::Refuse };
        let room = room(&args.stores.database, home)?;
        // Little else is in the file of a backup; how much a folder holds is not known.
        let file = args.from.metadata().ok().filter(std::fs::Metadata::is_file);
        let bytes = file.map(|found| found.len());
        let bar = Bar::begin("Restoring", bytes, json_wanted, printer);
        let blobs = blobs.watched(bar.watch());
        let restored = bring_back(&store, &blobs, &args.from, others, &room).await;
        restored.map_err(|error| failed(&error))
    })?;
    if json_wanted {
        printer.json(&json!({
            "rows": restored.rows,
            "files": restored.files,
            "bytes": restored.bytes,
            "missing": restored.missing,
        }))?;
    } else {
        let missing = |digest: &String| printer.warn(&format!("sha256:{digest} was missing"));
        restored.missing.iter().for_each(missing);
        printer.note(&format!(
            "Restored {} and {} ({})",
            count(restored.rows, "row"),
            count(restored.files, "file"),
            count(restored.bytes, "byte")
        ));
    }
    Ok(if restored.missing.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Reads how old a file must be; files of any age are meant by nothing.
fn grace(text: &str) -> Result<Duration, String> {
    if ["0", "0s"].contains(&text) { Ok(Duration::ZERO) } else { super::duration(text) }
}
