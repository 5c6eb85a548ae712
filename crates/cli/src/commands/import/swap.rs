//! The file of a client, in which entries are replaced by ours and put back.

use import::Found;
use import::edit::{Ours, Serves, replaced, restored, serves, taken};
use serde_json::json;

use super::ImportArgs;
use super::originals::Originals;
use super::source::Source;
use super::told::{Report, State};
use crate::ask::Ask;
use crate::clients::{self, Settings, program};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::printer::{Printer, line};

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
        let settings = Settings::read(&source.path, form)?;
        let broken = |why| settings.broken(&why);
        let after = replaced(settings.text(), form, &ours).map_err(broken)?;
        settings.check(&after, &ours)?;
        let names: Vec<_> = ours.iter().map(|one| one.name.clone()).collect();
        let was = taken(settings.text(), form, &names).map_err(broken)?;
        Originals::of(&source.path, home, ask)?.keep(form, was)?;
        settings.write(&after)?;
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
        let settings = Settings::read(&source.path, form)?;
        let after = replaced(settings.text(), form, &all).map_err(|why| settings.broken(&why))?;
        printer.result(&settings.difference(&after))?;
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
        let settings = Settings::read(&source.path, form)?;
        let config = settings.entries()?;
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
        let mut after = settings.text().to_owned();
        for name in names {
            let state = match originals.get(form, &name) {
                Some(was) => {
                    after =
                        restored(&after, was, form, &name).map_err(|why| settings.broken(&why))?;
                    originals.forget(form, &name);
                    "restored"
                }
                None => "unknown",
            };
            told.push((name, source.shown(), state));
        }
        if after == settings.text() {
            continue;
        }
        if args.dry_run {
            if !json_wanted {
                printer.result(&settings.difference(&after))?;
            }
            continue;
        }
        settings.write(&after)?;
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
    clients::ours(name, program, Serves::Package(id.to_owned()), home)
}
