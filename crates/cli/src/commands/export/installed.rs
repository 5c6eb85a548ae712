//! What is installed and can be called, exported.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use host::Tool;
use ledger::state::names::Named;
use manifest::export::{Context, Export, Format, Options, Spent, TestSummary, export};
use manifest::folder::{Folder, FolderError};

use super::ExportArgs;
use crate::disk::Beside;
use crate::exit::Failure;
use crate::home::Home;
use crate::measured;
use crate::printer::{Printer, line};
use crate::{clients, commands, installed, owner};

/// The most bytes of an example that is told.
const LONGEST_EXAMPLE: usize = 64 * 1024;

/// How long what a server offers is read for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The definitions of all that can be called in the working folder, as many as were asked for.
pub(super) fn exported(
    args: &ExportArgs,
    home: &Home,
    printer: Printer,
) -> Result<(Export, Option<Spent>), Failure> {
    let (mut tools, mut notes) = gathered(home, printer)?;
    let mut context = None;
    if args.context || args.budget.is_some() {
        let measured = measured::all(home, &owner::runtime()?)?;
        if args.context {
            context = Some(known(&tools.iter().collect::<Vec<_>>(), &measured, &mut notes));
        }
        if args.budget.is_some() {
            let order = commands::rank::order(home, &measured)?;
            let place = |id: &str| order.iter().position(|one| one == id).unwrap_or(order.len());
            // Those of one rank stay in the order of their ids.
            tools.sort_by_cached_key(|tool| place(&tool.package.canonical_id()));
        }
    }
    let packages: Vec<_> = tools.into_iter().map(|tool| tool.package).collect();
    // The programs are started without the owner's variables.
    let own = home.unusual();
    let program = match args.format {
        Format::Agentcli => clients::program()?,
        _ => String::new(),
    };
    let options = Options { program: &program, home: own.as_deref(), context: context.as_ref() };
    let mut exported = export(&packages, args.format, &options);
    // What agents call them at the gateway, where they were seen there.
    let runtime = owner::runtime()?;
    if let Some(records) = owner::records_there(home, &runtime)? {
        let known = runtime.block_on(records.state.names());
        let known = known.map_err(|error| owner::of_state(&error))?;
        exported.rename(args.format, |name| {
            let is_it = |one: &&Named| one.package == name.package && one.action == name.action;
            known.iter().find(is_it).map(|one| one.exposed.clone())
        });
    }
    notes.append(&mut exported.notes);
    exported.notes = notes;
    let spent = args.budget.map(|budget| exported.fit(budget));
    Ok((exported, spent))
}

/// What can be called, with everything that its servers offer, and what is left out.
fn gathered(home: &Home, printer: Printer) -> Result<(Vec<Tool>, Vec<String>), Failure> {
    let all = installed::all(home, printer)?;
    if all.is_empty() {
        printer.note("nothing is installed; `haft install` takes a path, an address or the id of a tool in a registry");
    }
    let runtime = owner::runtime()?;
    let revoked = installed::home(home).read()?.revoked;
    let (mut tools, mut notes) = (Vec::new(), Vec::new());
    for (id, found) in all {
        let is_revoked = revoked.get(&id).is_some();
        let id = line(&id);
        if is_revoked {
            notes.push(format!("`{id}` is left out: it was revoked"));
            continue;
        }
        let mut tool = match found {
            Ok(tool) => tool,
            Err(failure) => {
                notes.push(format!("`{id}` is left out: {}", line(&failure.message)));
                continue;
            }
        };
        match runtime.block_on(tool.take_offered(Instant::now() + PATIENCE)) {
            Ok(absent) => notes.extend(absent.iter().map(|action| {
                format!("`{}` of `{id}` is left out: its server does not offer it", line(action))
            })),
            Err(error) => {
                notes.push(format!("`{id}` is left out: {}", line(&error.to_string())));
                continue;
            }
        }
        tools.push(tool);
    }
    Ok((tools, notes))
}

/// What is known of tools beside what they declare: what their authors show, and how their tests went.
pub(crate) fn known(
    tools: &[&Tool],
    measured: &prove::measured::All,
    notes: &mut Vec<String>,
) -> BTreeMap<String, Context> {
    let mut all = BTreeMap::new();
    for tool in tools {
        let id = tool.package.canonical_id();
        let measured = measured.version(&id, &tool.counted_version());
        let tests = measured.and_then(|one| one.tested.as_ref()).map(|tested| TestSummary {
            total: tested.total,
            passed: tested.passed,
            latency: tested.latency,
        });
        let files = Beside::of(&tool.folder().join("manifest.json"));
        let mut examples = Vec::new();
        for path in &tool.package.examples {
            match example(&files, path) {
                Ok(text) => examples.push(text),
                Err(why) => {
                    notes.push(format!("`{}` of `{}` is not told: {why}", line(path), line(&id)));
                }
            }
        }
        all.insert(id, Context { examples, tests });
    }
    all
}

fn example(files: &Beside, path: &str) -> Result<String, String> {
    let bytes = files.read(path).map_err(|error| match error {
        FolderError::Missing => "it is not there".to_owned(),
        FolderError::NotAFile => "it is no file".to_owned(),
        FolderError::Unreadable(why) => line(&why),
    })?;
    if bytes.len() > LONGEST_EXAMPLE {
        return Err(format!("it has more than {LONGEST_EXAMPLE} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is no text".to_owned())
}
