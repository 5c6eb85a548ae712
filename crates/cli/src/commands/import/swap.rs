//! The file of a client, in which entries are replaced by ours and put back.

use std::io::Write;

use import::config::{read_json, read_toml};
use import::edit::{Form, Ours, Serves, replaced, restored, serves, taken};
use import::{Config, Found, Unreadable};
use serde_json::json;
use similar::TextDiff;

use super::ImportArgs;
use super::originals::Originals;
use super::source::{Source, read};
use super::told::{Report, State};
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::output::Beside;
use crate::printer::{Printer, escaped, line};

/// Lets clients start us instead of what was imported.
pub(super) fn replace(
    sources: &[Source],
    report: &mut Report,
    (home, ask): (&Home, Ask),
    printer: Printer,
) -> Result<(), Failure> {
    let program = program()?;
    for (index, source) in sources.iter().enumerate() {
        let Some(form) = &source.form else { continue };
        let is_done = |state: &State| matches!(state, State::Installed(_));
        let ours: Vec<_> = report
            .entries
            .iter()
            .filter(|entry| entry.source == index && is_done(&entry.state))
            .filter_map(|entry| Some(ours(&entry.name, &program, entry.id.as_ref()?, home)))
            .collect();
        if ours.is_empty() {
            continue;
        }
        let before = text(source)?;
        let after = replaced(&before, form, &ours).map_err(|why| broken(source, &why))?;
        check(&after, form, source, &ours)?;
        let names: Vec<_> = ours.iter().map(|one| one.name.clone()).collect();
        let was = taken(&before, form, &names).map_err(|why| broken(source, &why))?;
        Originals::of(&source.path, home, ask)?.keep(form, was)?;
        write(source, &before, &after)?;
        for entry in report.entries.iter_mut().filter(|entry| entry.source == index) {
            if ours.iter().any(|one| one.name == entry.name) {
                entry.state = State::Replaced;
            }
        }
        printer.note(&format!("Wrote {}", line(&source.shown())));
    }
    Ok(())
}

/// Shows what would be written. Secrets that would move are not shown.
pub(super) fn show(
    sources: &[Source],
    report: &Report,
    home: &Home,
    printer: Printer,
) -> Result<(), Failure> {
    let program = program()?;
    for (index, source) in sources.iter().enumerate() {
        let Some(form) = &source.form else { continue };
        let mut all = Vec::new();
        for entry in report.entries.iter().filter(|entry| entry.source == index) {
            let (State::Ready(_), Some(id)) = (&entry.state, &entry.id) else { continue };
            all.push(ours(&entry.name, &program, id, home));
        }
        if all.is_empty() {
            continue;
        }
        let before = text(source)?;
        let after = replaced(&before, form, &all).map_err(|why| broken(source, &why))?;
        printer.result(&difference(source, form, &before, &after))?;
    }
    Ok(())
}

/// Lets clients start again what they started before.
pub(super) fn undo(
    sources: &[Source],
    args: &ImportArgs,
    (home, ask): (&Home, Ask),
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let mut told = Vec::new();
    for source in sources {
        let Some(form) = &source.form else { continue };
        let before = text(source)?;
        let config = entries(before.as_bytes(), form).map_err(|why| broken(source, &why))?;
        let is_ours = |found: &&Found| {
            let serves = found.entry.as_ref().ok().and_then(serves);
            matches!(serves, Some(Serves::Package(_)))
        };
        let names: Vec<_> =
            config.entries.iter().filter(is_ours).map(|found| found.name.clone()).collect();
        if names.is_empty() {
            continue;
        }
        let mut originals = Originals::of(&source.path, home, ask)?;
        let mut after = before.clone();
        for name in names {
            let state = match originals.get(form, &name) {
                Some(was) => {
                    after =
                        restored(&after, was, form, &name).map_err(|why| broken(source, &why))?;
                    originals.forget(form, &name);
                    "restored"
                }
                None => "unknown",
            };
            told.push((name, source.shown(), state));
        }
        if after == before {
            continue;
        }
        if args.dry_run {
            if !json_wanted {
                printer.result(&difference(source, form, &before, &after))?;
            }
            continue;
        }
        write(source, &before, &after)?;
        originals.save()?;
        printer.note(&format!("Wrote {}", line(&source.shown())));
    }
    tell(&told, json_wanted, printer)?;
    let is_whole = told.iter().all(|(_, _, state)| *state == "restored");
    if !is_whole {
        printer.note("hint: what an unknown one was is kept by the home that replaced it, which its entry names after --home, else by the usual one: `haft --home PATH import CLIENT --undo`");
    }
    Ok(if is_whole { Exit::Done } else { Exit::Failed })
}

fn tell(
    told: &[(String, String, &str)],
    json_wanted: bool,
    printer: Printer,
) -> Result<(), Failure> {
    if json_wanted {
        let entry = |(name, from, state): &(String, String, &str)| json!({"name": name, "from": from, "state": state});
        let entries: Vec<_> = told.iter().map(entry).collect();
        return printer.json(&json!({"entries": entries}));
    }
    if told.is_empty() {
        printer.note("Nothing there is served by haft");
        return Ok(());
    }
    let words = |(name, from, state): &(String, String, &str)| {
        format!("{state:<10}  {}  {}\n", line(name), line(from))
    };
    printer.result(&told.iter().map(words).collect::<String>())
}

fn ours(name: &str, program: &str, id: &str, home: &Home) -> Ours {
    // A client that starts it knows nothing of the owner's variables.
    let home = (!home.is_usual()).then(|| {
        let path = home.path();
        path.canonicalize().unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
    });
    let serves = Serves::Package(id.to_owned());
    Ours { name: name.to_owned(), program: program.to_owned(), serves, home }
}

/// The path of this program.
fn program() -> Result<String, Failure> {
    let unknown = || Failure::new(Exit::Unavailable, "it is not known where this program is");
    let path = std::env::current_exe().map_err(|error| unknown().cause(error))?;
    path.into_os_string().into_string().map_err(|_| unknown())
}

fn text(source: &Source) -> Result<String, Failure> {
    let no_text = |_| Failure::invalid(format!("`{}` is no text", source.shown()));
    String::from_utf8(read(&source.path)?).map_err(no_text)
}

fn entries(bytes: &[u8], form: &Form) -> Result<Config, Unreadable> {
    match form {
        Form::Json(path) => read_json(bytes, path),
        Form::Toml => read_toml(bytes),
    }
}

fn broken(source: &Source, why: &Unreadable) -> Failure {
    Failure::invalid(format!("`{}` cannot be read", source.shown())).cause(why)
}

/// Refuses to write what would not be read as it is meant.
fn check(after: &str, form: &Form, source: &Source, ours: &[Ours]) -> Result<(), Failure> {
    let config = entries(after.as_bytes(), form).map_err(|why| broken(source, &why))?;
    let is_there = |one: &Ours| {
        let found = config.entries.iter().find(|entry| entry.name == one.name);
        found.and_then(|entry| entry.entry.as_ref().ok()).is_some_and(|is| one.is_started_by(is))
    };
    if ours.iter().all(is_there) {
        return Ok(());
    }
    Err(changed(source))
}

/// Writes a file in the place of another, with its mode, unless somebody else has changed it since it was read.
fn write(source: &Source, before: &str, after: &str) -> Result<(), Failure> {
    let path = &source.path;
    let mut beside = Beside::like(path)?;
    let failed = |error| {
        Failure::new(Exit::Unavailable, format!("failed to write `{}`", path.display()))
            .cause(error)
    };
    let mut file = beside.file();
    file.write_all(after.as_bytes()).and_then(|()| file.flush()).map_err(failed)?;
    drop(file);
    if text(source)? != before {
        return Err(changed(source));
    }
    beside.replace()
}

fn changed(source: &Source) -> Failure {
    let message = format!("`{}` was changed meanwhile, and is left as it is", source.shown());
    Failure::new(Exit::Conflict, message)
}

/// What would change, line by line, without the secrets of any server.
fn difference(source: &Source, form: &Form, before: &str, after: &str) -> String {
    let mut hidden = [before.to_owned(), after.to_owned()];
    let secrets: Vec<String> = [before, after]
        .iter()
        .filter_map(|text| entries(text.as_bytes(), form).ok())
        .flat_map(|config| config.entries)
        .filter_map(|found| found.entry.ok())
        .flat_map(|entry| import::secret::values(&entry))
        .collect();
    for text in &mut hidden {
        for secret in &secrets {
            // As a file writes it, which may be with escapes.
            let written = serde_json::Value::from(secret.as_str()).to_string();
            let written = written.trim_matches('"');
            *text = text.replace(written, "…").replace(secret.as_str(), "…");
        }
    }
    let [before, after] = &hidden;
    let difference = TextDiff::from_lines(before, after);
    let path = source.shown();
    let whole = difference.unified_diff().context_radius(2).header(&path, &path).to_string();
    whole.lines().map(|line| escaped(line) + "\n").collect()
}
