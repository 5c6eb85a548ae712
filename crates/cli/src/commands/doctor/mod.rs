//! `haft doctor`: how strong the walls are here, which runtimes there are, and what to mend.

mod remedy;
mod runtimes;

use clap::Args;
use sandbox::{Finding, Launcher, Primitive, Walls};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::policy_file::PolicyFile;
use crate::printer::{Printer, Style, line};
use crate::{installed, walls};

use remedy::{Machine, Remedy};
use runtimes::Found;

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Do what needs root once, such as the AppArmor profile that lets haft use user namespaces
    #[arg(long)]
    fix: bool,
}

pub(crate) fn run(args: &DoctorArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let machine = Machine::this();
    if args.fix {
        fix(&machine, printer)?;
    }
    let launcher = walls::launcher()?;
    let walls = launcher.walls().clone();
    let remedies = remedy::of(&walls, &machine);
    let runtimes = runtimes::find(&launcher);
    let checked = install::check::check(&installed::home(home));
    let tokens = super::serve::tokens(home).all();
    let policy = PolicyFile::read(home).and_then(PolicyFile::policy);
    let mut faults: Vec<String> = match &checked {
        Ok(faults) => faults.iter().map(ToString::to_string).collect(),
        Err(error) => vec![
            std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source())
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(": "),
        ],
    };
    let is_whole = faults.is_empty();
    faults.extend(tokens.as_ref().err().map(|error| host::records::whole(error)));
    faults.extend(policy.as_ref().err().map(crate::steward::words));
    if json_wanted {
        printer.json(&json!({
            "sandbox": sandbox_json(&walls, &remedies),
            "runtimes": runtimes.iter().map(Found::json).collect::<serde_json::Map<_, _>>(),
            "home": home_json(home, &faults),
        }))?;
    } else {
        let mut text = sandbox_text(&walls, &remedies, printer);
        text += &runtimes_text(&runtimes, printer);
        text += &home_text(home, &faults);
        printer.result(&text)?;
    }
    if walls.level() < walls::REQUIRED {
        let message = format!(
            "local tools need walls of {}, and these reach {}",
            walls::REQUIRED,
            walls.level()
        );
        return Err(Failure::new(Exit::Unavailable, message));
    }
    if !is_writable(home.path()) {
        let message = format!(
            "`{}` cannot be written: what is in it can be looked at, and nothing called, since calls are written down",
            home.path().display()
        );
        return Err(Failure::new(Exit::Unavailable, message));
    }
    if let Err(error) = &checked {
        return Err(installed::failure(error));
    }
    if !is_whole {
        let message = format!("what is installed in `{}` is not whole", home.path().display());
        let hint = "`haft remove` takes a package away that is damaged, and `haft install` puts it there anew";
        return Err(Failure::new(Exit::Unavailable, message).hint(hint));
    }
    // Without it nothing can be called.
    policy?;
    if let Err(error) = &tokens {
        let hint = "`haft serve` lets nobody in by a token until that is mended";
        return Err(Failure::of(Exit::Unavailable, error).hint(hint));
    }
    Ok(Exit::Done)
}

/// Does what there is to do, unless the walls stand already.
fn fix(machine: &Machine, printer: Printer) -> Result<(), Failure> {
    // Root may have walls where its users have none, so the settings decide.
    let steps = remedy::settings(machine);
    if steps.is_empty() {
        printer.note("there is nothing that --fix could do");
        return Ok(());
    }
    if !machine.is_root() {
        let words = steps.iter().map(ToString::to_string);
        return Err(Failure::new(Exit::Denied, "this needs root, once")
            .details(words)
            .hint("sudo haft doctor --fix"));
    }
    for remedy in &steps {
        remedy.apply(machine)?;
        printer.note(&format!("done: {remedy}"));
    }
    Ok(())
}

fn sandbox_json(walls: &Walls, remedies: &[Remedy]) -> Value {
    let primitives: serde_json::Map<String, Value> = walls
        .findings
        .iter()
        .map(|(primitive, finding)| {
            let name = primitive.to_string().replace(' ', "_");
            let value = match finding {
                Finding::Works(what) => json!({"works": true, "kind": what}),
                Finding::Fails(fault) => json!({"works": false, "cause": fault.to_string()}),
            };
            (name, value)
        })
        .collect();
    json!({
        "level": walls.level().to_string(),
        "required": walls::REQUIRED.to_string(),
        "primitives": primitives,
        "remedies": remedies.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn sandbox_text(walls: &Walls, remedies: &[Remedy], printer: Printer) -> String {
    let level = walls.level();
    let style = if level >= walls::REQUIRED { Style::Good } else { Style::Error };
    let mut text = format!(
        "{}   {} ({} is required for local tools)\n",
        printer.paint(Style::Strong, "sandbox"),
        printer.paint(style, &level.to_string()),
        walls::REQUIRED
    );
    for (primitive, finding) in &walls.findings {
        let (word, style, what) = match finding {
            Finding::Works(what) => ("works", Style::Good, worded(*primitive, what)),
            Finding::Fails(fault) => ("missing", Style::Warning, fault.to_string()),
        };
        let word = printer.paint(style, &format!("{word:<7}"));
        text += &format!("  {:<15} {word}  {}\n", primitive.to_string(), line(&what));
    }
    for remedy in remedies {
        text += &format!("  to do: {}\n", line(&remedy.to_string()));
    }
    text
}

/// What works, in words. Old control groups are no reason to mend anything.
fn worded(primitive: Primitive, what: &str) -> String {
    match (primitive, what) {
        (Primitive::ControlGroups, "v1") => "v1, which is enough as root".into(),
        _ => what.to_owned(),
    }
}

fn runtimes_text(runtimes: &[Found], printer: Printer) -> String {
    let mut text = printer.paint(Style::Strong, "runtimes") + "\n";
    for found in runtimes {
        text += &format!("  {:<15} {}\n", found.name, line(&found.words()));
    }
    text
}

/// What is known of the home.
fn home_json(home: &Home, faults: &[String]) -> Value {
    let path = home.path();
    json!({
        "path": path.to_string_lossy(),
        "exists": path.is_dir(),
        "private": is_private(path),
        "writable": is_writable(path),
        "faults": faults,
    })
}

fn home_text(home: &Home, faults: &[String]) -> String {
    let path = home.path();
    let state = match (path.is_dir(), is_private(path)) {
        (false, _) => "not made yet",
        (true, _) if !is_writable(path) => "it cannot be written",
        (true, true) => "only its owner can change it",
        (true, false) => "others can change it: chmod go-w it",
    };
    let faults: String = faults.iter().map(|fault| format!("  {}\n", line(fault))).collect();
    format!("home      {} ({state})\n{faults}", line(&path.to_string_lossy()))
}

#[cfg(unix)]
fn is_private(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o022 == 0)
}

/// Whether it can be written by whoever runs this, as far as it is there.
#[cfg(unix)]
fn is_writable(path: &std::path::Path) -> bool {
    use rustix::fs::{Access, access};
    use rustix::io::Errno;
    matches!(access(path, Access::WRITE_OK | Access::EXEC_OK), Ok(()) | Err(Errno::NOENT))
}

#[cfg(not(unix))]
fn is_writable(_path: &std::path::Path) -> bool {
    true
}

#[cfg(not(unix))]
fn is_private(_path: &std::path::Path) -> bool {
    true
}

/// Whether a primitive is missing.
fn is_missing(walls: &Walls, primitive: Primitive) -> bool {
    walls.missing().any(|(missing, _)| missing == primitive)
}

/// Whether programs can be started at the level that is required.
fn can_run(launcher: &Launcher) -> bool {
    launcher.walls().level() >= walls::REQUIRED
}
