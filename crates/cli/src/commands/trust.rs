//! `haft trust`: homes of projects that count.

use std::path::{Path, PathBuf};

use clap::Args;
use install::project::{FOLDER, Project, Standing, Trusted};
use serde_json::json;

use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::installed;
use crate::owner;
use crate::printer::{Printer, line};

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct TrustArgs {
    /// The folder of a project: its `.mcp` counts from now on, as it is now
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// List the projects that you trust
    #[arg(long)]
    list: bool,
    /// Trust the project in this folder no more
    #[arg(long, value_name = "DIR")]
    forget: Option<PathBuf>,
}

pub(crate) fn run(
    args: &TrustArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    match (&args.dir, &args.forget) {
        (Some(dir), _) => trust(dir, home, ask, json_wanted, printer),
        (None, Some(dir)) => forget(dir, home, json_wanted, printer),
        (None, None) => list(home, json_wanted, printer),
    }
}

fn trust(dir: &Path, home: &Home, ask: Ask, json_wanted: bool, printer: Printer) -> Outcome {
    let folder = home_in(dir);
    let missing = |error: std::io::Error| {
        Failure::new(Exit::NotFound, format!("there is no `{}`", folder.display())).cause(error)
    };
    let found = std::fs::symlink_metadata(&folder).map_err(missing)?;
    if !found.is_dir() {
        return Err(Failure::invalid(format!("`{}` is no folder", folder.display())));
    }
    let folder = folder.canonicalize().map_err(missing)?;
    if home.path().canonicalize().is_ok_and(|own| own == folder) {
        let message = format!("`{}` is your own home, which always counts", folder.display());
        return Err(Failure::invalid(message));
    }
    let project =
        Project::read(&folder).map_err(|error| Failure::invalid(line(&error.to_string())))?;
    owner::check_home(home)?;
    owner::check_presence(home, ask)?;
    let now = host::records::now().unix_millis();
    Trusted::trust(&installed::home(home), &project, now)?;
    let locked = project.contents().lock.packages();
    let listed = project.contents().listed();
    if json_wanted {
        printer.json(&json!({
            "path": folder.to_string_lossy(),
            "digest": format!("sha256:{}", project.digest()),
            "packages": locked.iter().map(|one| &one.id).collect::<Vec<_>>(),
            "entries": listed.iter().map(|one| &one.id).collect::<Vec<_>>(),
        }))?;
        return Ok(Exit::Done);
    }
    for pinned in locked {
        printer.note(&format!("  locks {} {}", line(&pinned.id), line(&pinned.version)));
    }
    for one in listed.iter().filter(|one| one.pinned.is_none()) {
        printer.note(&format!("  lists {} {}", line(&one.id), line(one.version)));
    }
    printer.note(&format!("Trusted {}, as it is now", folder.display()));
    Ok(Exit::Done)
}

fn forget(dir: &Path, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let folder = home_in(dir);
    // It may be gone by now.
    let absolute = std::path::absolute(&folder).unwrap_or_else(|_| folder.clone());
    let folder = folder.canonicalize().unwrap_or(absolute);
    if !Trusted::forget(&installed::home(home), &folder)? {
        let message = format!("`{}` is not trusted", folder.display());
        return Err(Failure::new(Exit::NotFound, message).hint("`haft trust --list` shows what is"));
    }
    if json_wanted {
        printer.json(&json!({"path": folder.to_string_lossy(), "trusted": false}))?;
    } else {
        printer.note(&format!("Trusts {} no more", folder.display()));
    }
    Ok(Exit::Done)
}

fn list(home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let trusted = Trusted::load(&installed::home(home))?;
    let state = |path: &str| match Project::read(Path::new(path)) {
        _ if !Path::new(path).is_dir() => "gone",
        Ok(project) if trusted.standing(&project) == Standing::Trusted => "trusted",
        _ => "changed",
    };
    if json_wanted {
        let projects: Vec<_> = trusted
            .projects()
            .iter()
            .map(|one| {
                json!({
                    "path": one.path,
                    "digest": one.digest,
                    "since": ledger::Time::from_unix_millis(one.since).to_string(),
                    "state": state(&one.path),
                })
            })
            .collect();
        printer.json(&json!({"projects": projects}))?;
        return Ok(Exit::Done);
    }
    if trusted.projects().is_empty() {
        printer
            .note("no project is trusted; `haft trust DIR` shows what one brings, and trusts it");
    }
    let rows = trusted.projects().iter().map(|one| {
        let since = ledger::Time::from_unix_millis(one.since);
        format!("{:<7}  {since}  {}\n", state(&one.path), line(&one.path))
    });
    printer.result(&rows.collect::<String>())?;
    Ok(Exit::Done)
}

/// The home that is meant by the folder of a project, or by itself.
fn home_in(dir: &Path) -> PathBuf {
    if dir.file_name().is_some_and(|name| name == FOLDER) {
        dir.to_owned()
    } else {
        dir.join(FOLDER)
    }
}
