//! `haft list|enable|disable|remove|rollback|reset|lock`: what is installed, and what becomes of it.

use std::path::{Path, PathBuf};

use clap::Args;
use install::lockfile::NAME;
use install::project::View;
use install::{Changing, HomeError, Installed, Layer, Listed, Revocation, catalog};
use serde_json::json;

use crate::ask::Ask;
use crate::changes::{Change, Verb, noted};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::installed::{self, Named, named};
use crate::printer::{Printer, line};
use crate::revoking::{
    check_not_revoked, check_secrets_free, kept_values, take_grants, without_secrets,
};
use crate::{output, owner, project, shell};

#[derive(Args, Debug)]
pub(crate) struct ListArgs {}

#[derive(Args, Debug)]
pub(crate) struct PackageArgs {
    /// Its id, with its dialect or without
    #[arg(value_name = "ID")]
    pub(super) id: String,
}

#[derive(Args, Debug)]
pub(crate) struct RemoveArgs {
    /// Its id, with its dialect or without
    #[arg(value_name = "ID")]
    id: String,
    /// Leave the values in the vault that it asked for
    #[arg(long)]
    keep_secrets: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ResetArgs {
    /// Do it without being asked
    #[arg(long, short)]
    yes: bool,
    /// Leave the values in the vault that the packages asked for
    #[arg(long)]
    keep_secrets: bool,
}

#[derive(Args, Debug)]
pub(crate) struct LockArgs {
    /// Where to write it [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn list(_args: &ListArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let view = project::view(home, printer)?;
    let (listed, revoked) = (view.listed(), &view.user().revoked);
    let state = |one: &Listed<'_>| match one.layer {
        Layer::Project => of_project(&view, one),
        Layer::Base | Layer::Local => state(one.enabled, revoked.get(&one.id)),
    };
    if json_wanted {
        let packages: Vec<_> = listed
            .iter()
            .map(|one| {
                let mut told = json!({
                    "id": one.id,
                    "version": one.version,
                    "dialect": one.dialect.name(),
                    "kind": one.kind,
                    "layer": one.layer.name(),
                    "enabled": one.enabled,
                    "trust": one.trust.name(),
                    "actions": one.actions,
                });
                let state = state(one);
                if !["enabled", "disabled"].contains(&state) {
                    told["state"] = state.into();
                    told["enabled"] = false.into();
                }
                told
            })
            .collect();
        printer.json(&json!({"packages": packages}))?;
        return Ok(Exit::Done);
    }
    if listed.is_empty() {
        printer.note(
            "nothing is installed; `haft install` takes a path, or the id of a tool in a registry",
        );
        return Ok(Exit::Done);
    }
    let rows = listed.iter().map(|one| {
        [
            line(&one.id),
            line(one.version),
            state(one).to_owned(),
            one.trust.name().to_owned(),
            one.layer.name().to_owned(),
            one.actions.len().to_string(),
        ]
    });
    printer.result(&table(["PACKAGE", "VERSION", "STATE", "TRUST", "LAYER", "ACTIONS"], rows))?;
    if listed.iter().any(|one| state(one) == ABSENT) {
        printer.note("hint: `haft sync .mcp/haft.lock` in the project's folder brings what is absent, once you accept it");
    }
    Ok(Exit::Done)
}

/// What a project's lockfile names and nobody has agreed to here.
const ABSENT: &str = "absent";

/// Whether a package of the project may be called, in a word.
fn of_project(view: &View, one: &Listed<'_>) -> &'static str {
    match one.pinned {
        // Only what was agreed to is called.
        None => "declared",
        Some(pinned) if view.agreed(pinned).is_none() => ABSENT,
        Some(_) => state(one.enabled, view.user().revoked.get(&one.id)),
    }
}

/// Rows below their headings, each column as wide as it has to be.
pub(crate) fn table<const N: usize>(
    headings: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let all: Vec<_> = std::iter::once(headings.map(str::to_owned)).chain(rows).collect();
    let wide = |at: usize| all.iter().map(|row| row[at].chars().count()).max().unwrap_or_default();
    let widths: [usize; N] = std::array::from_fn(wide);
    let drawn = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    all.iter().map(drawn).collect()
}

pub(crate) fn switch(
    args: &PackageArgs,
    enabled: bool,
    home: &Home,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let at = installed::home(home);
    let named = named(&args.id, &at)?;
    let verb = if enabled { Verb::Enable } else { Verb::Disable };
    if named.enabled != enabled {
        noted(Change::new(home, verb, &named.id, printer).about(named.pinned.as_ref()), || {
            let mut changing = at.lock()?;
            let is_revoked =
                changing.contents().revoked.get(&named.id).is_some_and(|one| !one.keeps_secrets());
            if enabled && is_revoked && named.pinned.is_none() {
                // An entry of a catalog cannot be installed again: its owner's word brings it back.
                changing.forget_revocation(at.draft()?, &named.id)?;
            } else if enabled {
                check_not_revoked(&named.id, changing.contents())?;
            }
            Ok(changing.switch(&named.id_in_catalog, enabled)?)
        })?;
    }
    let state = if enabled { "Enabled" } else { "Disabled" };
    let around = installed::named_around(&named.id, home, Printer::silent());
    let here = match around {
        Ok(around) if enabled && !around.enabled => format!("; in this folder {BY_PROJECT}"),
        _ => String::new(),
    };
    let words = format!("{state} {}{here}", line(&named.id));
    tell(&named, "enabled", &enabled.into(), &words, json_wanted, printer)
}

/// Why something is off that the user's home has on.
pub(super) const BY_PROJECT: &str = "the project's catalog switches it off";

/// Whether a package is on in the user's home.
pub(super) fn at_home(id: &str, at: &install::Home) -> Result<bool, Failure> {
    Ok(at.read()?.listed().iter().any(|one| one.id == id && one.enabled))
}

/// Whether a package may be called, in a word.
pub(super) fn state(enabled: bool, revoked: Option<&Revocation>) -> &'static str {
    match (revoked, enabled) {
        (Some(revoked), _) => revoked.state.name(),
        (None, true) => "enabled",
        (None, false) => "disabled",
    }
}

fn tell(
    named: &Named,
    name: &str,
    value: &serde_json::Value,
    words: &str,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    if json_wanted {
        printer.json(&json!({"id": named.id, name: value}))?;
    } else {
        printer.note(words);
    }
    Ok(Exit::Done)
}

pub(crate) fn remove(
    args: &RemoveArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let at = installed::home(home);
    let named = named(&args.id, &at)?;
    noted(
        Change::new(home, Verb::Remove, &named.id, printer).about(named.pinned.as_ref()),
        || remove_noted(&named, args, home, ask, printer),
    )?;
    let words = match named.layer {
        Layer::Local => match kept_values(&named.id, home) {
            0 if named.pinned.is_none() => format!(
                "Removed what the local catalog said of {}: what the baseline says of it counts again",
                line(&named.id)
            ),
            0 => format!("Removed {}", line(&named.id)),
            values => format!(
                "Removed {}; {} that it asked for stay in the vault, and whatever is installed under its id is given them",
                line(&named.id),
                super::count(values, "value"),
            ),
        },
        Layer::Base | Layer::Project => {
            format!("Disabled {}: it is in the baseline, which is never written", line(&named.id))
        }
    };
    tell(&named, "removed", &(named.layer == Layer::Local).into(), &words, json_wanted, printer)
}

fn remove_noted(
    named: &Named,
    args: &RemoveArgs,
    home: &Home,
    ask: Ask,
    printer: Printer,
) -> Result<(), Failure> {
    let at = installed::home(home);
    let contents = at.read()?;
    check_secrets_free(&named.id, &contents, home)?;
    let Some(pinned) = &named.pinned else {
        let mut changing = at.lock()?;
        // What is taken away here may let the baseline be seen again.
        check_not_revoked(&named.id, changing.contents())?;
        return Ok(match named.layer {
            // What is written above the baseline goes, and the baseline is seen again.
            Layer::Local => changing.forget(&named.id_in_catalog),
            // The baseline itself is never written.
            Layer::Base | Layer::Project => changing.switch(&named.id_in_catalog, false),
        }?);
    };
    // Whoever comes under the same id later is somebody else.
    take_grants(&named.id, home, &owner::runtime()?)?;
    let going: &[&str] = if args.keep_secrets { &[] } else { &[&named.id] };
    without_secrets(going, home, ask, printer, |changing, draft| changing.remove(draft, pinned))
}

pub(crate) fn rollback(
    args: &PackageArgs,
    home: &Home,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let at = installed::home(home);
    let named = named(&args.id, &at)?;
    let nothing = || {
        let message = format!("there is no earlier version of `{}` here", line(&named.id));
        Failure::new(Exit::NotFound, message)
    };
    let pinned = named.pinned.as_ref().ok_or_else(nothing)?;
    let key = pinned.key().map_err(|error| Failure::invalid(error.to_string()))?;
    let mut changing = at.lock()?;
    check_not_revoked(&named.id, changing.contents())?;
    let record = at.record(&key, &pinned.folder())?;
    let before =
        record.replaced.filter(|folder| at.folder(&key, folder).is_dir()).ok_or_else(nothing)?;
    let record = at.record(&key, &before)?;
    let installed = Installed::load(&at, &record.pinned)?;
    let manifest = std::fs::read(installed.root.join(&record.manifest)).map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to read its manifest").cause(error)
    })?;
    let trust =
        manifest::model::Trust::named(&record.trust).unwrap_or(manifest::model::Trust::Untrusted);
    let memory = owner::policy(home)?.sandbox.memory;
    let entry = catalog::entry(&installed.package, &manifest, &record.pinned, trust, memory);
    let version = record.pinned.version.clone();
    let change = Change::new(home, Verb::Rollback, &named.id, printer).about(Some(&record.pinned));
    noted(change, || Ok(changing.roll_back(record, entry)?))?;
    let listed = changing.contents().listed();
    let off = if listed.iter().any(|one| one.id == named.id && one.enabled) {
        String::new()
    } else {
        format!("; it is disabled: `haft enable {}` switches it on", shell::word(&named.id))
    };
    let words = format!("Rolled back {} to {}{off}", line(&named.id), line(&version));
    tell(&named, "version", &version.into(), &words, json_wanted, printer)
}

pub(crate) fn reset(
    args: &ResetArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let at = installed::home(home);
    let (going, what) = match at.read() {
        Ok(contents) => {
            let going: Vec<_> = contents.lock.packages().iter().map(|one| one.id.clone()).collect();
            let what = super::count(going.len(), "package");
            (going, what)
        }
        Err(HomeError::Broken { .. }) => (Vec::new(), "what cannot be read any more".to_owned()),
        Err(error) => return Err(error.into()),
    };
    let question = format!("Remove {what}, and everything in the local catalog?");
    let is_meant =
        || ask.yes_or_no(&question).map_err(|failure| failure.hint("--yes says so beforehand"));
    if !args.yes && !is_meant()? {
        return Err(Failure::new(Exit::Denied, "nothing was removed"));
    }
    noted(Change::new(home, Verb::Reset, "", printer), || {
        let runtime = owner::runtime()?;
        for id in &going {
            take_grants(id, home, &runtime)?;
        }
        let open = at.read().map(|contents| contents.revoked).unwrap_or_default();
        let gives_up = |id: &&String| {
            !args.keep_secrets && !open.get(id).is_some_and(Revocation::keeps_secrets)
        };
        let without: Vec<_> = going.iter().filter(gives_up).map(String::as_str).collect();
        without_secrets(&without, home, ask, printer, Changing::reset)?;
        Ok(())
    })?;
    if json_wanted {
        printer.json(&json!({"removed": going.len()}))?;
    } else {
        printer.note(&format!("Removed {what}"));
    }
    for open in at.read()?.revoked.all().iter().filter(|one| one.keeps_secrets()) {
        let (id, word) = (line(&open.id), shell::word(&open.id));
        printer.alarm(&format!("the revocation of {id} is unconfirmed, and its secrets are kept; `haft revoke {word} --forget` gives them up"));
    }
    Ok(Exit::Done)
}

pub(crate) fn lock(args: &LockArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let contents = installed::home(home).read()?;
    let mut lock = contents.lock.clone();
    for one in contents.revoked.all() {
        // Nobody else is to have it brought.
        if lock.get(&one.id).is_some() {
            lock.take(&one.id);
            printer.warn(&format!("`{}` was revoked, and is left out", line(&one.id)));
        }
    }
    match &args.output {
        Some(path) => {
            if path.is_dir() {
                let shown = path.display();
                return Err(Failure::invalid(format!("`{shown}` is a folder"))
                    .hint(format!("name the file too: `{}`", path.join(NAME).display())));
            }
            output::check_folder_of(path)?;
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new(".")).canonicalize();
            if let Ok(folder) = folder {
                lock = lock.told_from(&folder);
            }
            output::replace(path, &lock.to_bytes())?;
            let number = lock.packages().len();
            let count = super::count(number, "package");
            if json_wanted {
                printer.json(&json!({"path": path.to_string_lossy(), "packages": number}))?;
            } else {
                printer.note(&format!("Wrote {}, {count}", path.display()));
            }
        }
        None => printer.bytes(&lock.to_bytes())?,
    }
    Ok(Exit::Done)
}
