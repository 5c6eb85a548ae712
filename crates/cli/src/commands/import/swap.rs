//! The file of a client, in which entries are replaced by ours and put back.
//!
//! What the file was before lies in `clients/` of the home, which no tool sees: a copy beside the file might be committed with
//! its secrets.

use std::io::Write;
use std::path::{Path, PathBuf};

use import::config::{read_json, read_toml};
use import::edit::{Form, Ours, replaced, restored, served};
use import::{Config, Unreadable};
use package::digest::Digest;
use serde_json::json;
use similar::TextDiff;

use super::ImportArgs;
use super::source::{Source, read};
use super::told::{Report, State};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::output::{Beside, keep_secret, make_private_folder};
use crate::printer::{Printer, escaped, line};

/// How many copies of one file are kept at most.
const MOST_COPIES: usize = 1000;

/// Lets clients start us instead of what was imported.
pub(super) fn replace(
    sources: &[Source],
    report: &mut Report,
    home: &Home,
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
            .filter_map(|entry| Some(ours(&entry.name, &program, entry.id.as_ref()?)))
            .collect();
        if ours.is_empty() {
            continue;
        }
        let before = text(source)?;
        let after = replaced(&before, form, &ours).map_err(|why| broken(source, &why))?;
        check(&after, form, source, &ours)?;
        Copies::of(&source.path, home).keep(&before)?;
        write(&source.path, &after)?;
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
pub(super) fn show(sources: &[Source], report: &Report, printer: Printer) -> Result<(), Failure> {
    let program = program()?;
    for (index, source) in sources.iter().enumerate() {
        let Some(form) = &source.form else { continue };
        let mut all = Vec::new();
        for entry in report.entries.iter().filter(|entry| entry.source == index) {
            let (State::Ready(_), Some(id)) = (&entry.state, &entry.id) else { continue };
            all.push(ours(&entry.name, &program, id));
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
    home: &Home,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let mut told = Vec::new();
    let mut is_whole = true;
    for source in sources {
        let Some(form) = &source.form else { continue };
        let before = text(source)?;
        let config = entries(before.as_bytes(), form).map_err(|why| broken(source, &why))?;
        let is_ours =
            |entry: &import::Found| entry.entry.as_ref().is_ok_and(|one| served(one).is_some());
        let mut left: Vec<String> = config
            .entries
            .iter()
            .filter(|entry| is_ours(entry))
            .map(|entry| entry.name.clone())
            .collect();
        let copies = Copies::of(&source.path, home);
        let mut after = before.clone();
        for old in copies.newest_first()? {
            let Ok(config) = entries(old.as_bytes(), form) else { continue };
            let was = |name: &String| {
                config.entries.iter().any(|entry| entry.name == *name && !is_ours(entry))
            };
            let (found, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(was);
            left = rest;
            after = restored(&after, &old, form, &found).map_err(|why| broken(source, &why))?;
            told.extend(found.into_iter().map(|name| (name, source.shown(), "restored")));
        }
        is_whole &= left.is_empty();
        told.extend(left.iter().map(|name| (name.clone(), source.shown(), "unknown")));
        if after == before {
            continue;
        }
        if args.dry_run {
            if !json_wanted {
                printer.result(&difference(source, form, &before, &after))?;
            }
            continue;
        }
        write(&source.path, &after)?;
        if left.is_empty() {
            copies.remove();
        }
        printer.note(&format!("Wrote {}", line(&source.shown())));
    }
    if json_wanted {
        let entries: Vec<_> = told
            .iter()
            .map(|(name, from, state)| json!({"name": name, "from": from, "state": state}))
            .collect();
        printer.json(&json!({"entries": entries}))?;
    } else if told.is_empty() {
        printer.note("Nothing there is served by haft");
    } else {
        let lines: Vec<_> = told
            .iter()
            .map(|(name, from, state)| format!("{state:<10}  {}  {}", line(name), line(from)))
            .collect();
        printer.result(&lines.join("\n"))?;
    }
    Ok(if is_whole { Exit::Done } else { Exit::Failed })
}

fn ours(name: &str, program: &str, id: &str) -> Ours {
    Ours { name: name.to_owned(), program: program.to_owned(), id: id.to_owned() }
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
        found.and_then(|entry| served(entry.entry.as_ref().ok()?)) == Some(&one.id)
    };
    if ours.iter().all(is_there) {
        return Ok(());
    }
    let message = format!("`{}` was changed meanwhile, and is left as it is", source.shown());
    Err(Failure::new(Exit::Conflict, message))
}

/// Writes a file in the place of another, with its mode.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let mut beside = Beside::like(path)?;
    let failed = |error| {
        Failure::new(Exit::Unavailable, format!("failed to write `{}`", path.display()))
            .cause(error)
    };
    let mut file = beside.file();
    file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(failed)?;
    drop(file);
    beside.replace()
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
    whole.lines().map(escaped).collect::<Vec<_>>().join("\n")
}

/// What a file was before it was changed.
struct Copies {
    folder: PathBuf,
}

impl Copies {
    fn of(path: &Path, home: &Home) -> Self {
        let name = Digest::of(path.as_os_str().as_encoded_bytes()).to_string();
        Self { folder: home.path().join("clients").join(name) }
    }

    /// Keeps what it is now, which only its owner can read.
    fn keep(&self, text: &str) -> Result<(), Failure> {
        make_private_folder(&self.folder)?;
        let number = self.numbers().last().map_or(1, |last| last + 1);
        keep_secret(&self.folder.join(number.to_string()), text.as_bytes())
    }

    fn newest_first(&self) -> Result<Vec<String>, Failure> {
        let numbers = self.numbers();
        let newest = numbers.iter().rev().take(MOST_COPIES);
        let bytes = newest.map(|number| read(&self.folder.join(number.to_string())));
        let texts: Result<Vec<_>, _> = bytes.collect();
        Ok(texts?.into_iter().filter_map(|bytes| String::from_utf8(bytes).ok()).collect())
    }

    fn numbers(&self) -> Vec<u64> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut numbers: Vec<u64> = names.filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    fn remove(&self) {
        // What is left of them harms nobody: nothing in the file is ours any more.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
