//! `haft chain suggest`: chains that nobody has written down yet, found in what is kept of calls.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use host::Tool;
use ledger::state::flows::Flow;
use manifest::model::Action;
use manifest::starter::StarterFile;
use prove::Suite;
use prove::mining::draft::{Called, Draft, TEST};
use prove::mining::{self, Bounds, Seen, Step, Suggestion};
use serde_json::{Value, json};

use crate::commands::count;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::{installed, new_folder, owner, shell};

/// The file of a package that says what it is.
const MANIFEST: &str = "manifest.json";

#[derive(Args, Debug)]
#[command(
    after_help = "Of each call, digests of what went in and came out are kept, made with a key of this home: never a value, and nothing of short or common ones. A sequence counts where a result became an input that nobody had said before, several times and with different values.\n\nExamples:\n  haft chain suggest\n  haft chain suggest 1 --output ./clean-then-count\n  haft chain suggest --forget"
)]
pub(super) struct SuggestArgs {
    /// Which of the list is written as a package
    #[arg(value_name = "NUMBER", requires = "output", value_parser = clap::value_parser!(u32).range(1..))]
    number: Option<u32>,
    /// The new folder that it is written into
    #[arg(long, short, value_name = "FOLDER", requires = "number")]
    output: Option<PathBuf>,
    /// Its id [default: local.chain. and the names of its steps]
    #[arg(long, value_name = "ID", requires = "number")]
    id: Option<String>,
    /// How often a sequence must have been seen
    #[arg(long, value_name = "TIMES", default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..))]
    least: u32,
    /// Forget what is kept of calls
    #[arg(long, conflicts_with_all = ["number", "least"])]
    forget: bool,
}

pub(super) fn run(args: &SuggestArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let runtime = owner::runtime()?;
    let Some(records) = owner::records_there(home, &runtime)? else {
        return tell(&[], 0, json_wanted, printer);
    };
    if args.forget {
        let forgotten = runtime.block_on(records.state.forget_flows(None));
        let forgotten = forgotten.map_err(|error| owner::of_state(&error))?;
        if json_wanted {
            printer.json(&json!({"forgotten": forgotten}))?;
        } else {
            printer.note(&format!("Forgot what was kept of {}", count(forgotten, "call")));
        }
        return Ok(Exit::Done);
    }
    let flows = runtime.block_on(records.state.flows()).map_err(|error| owner::of_state(&error))?;
    let calls: Vec<_> = flows.into_iter().map(seen).collect();
    let bounds = Bounds { least: args.least as usize, ..Bounds::default() };
    let suggestions = mining::suggest(&calls, &bounds);
    let mut tools = Tools { home, known: BTreeMap::new() };
    let (usable, gone): (Vec<_>, Vec<_>) =
        suggestions.into_iter().partition(|one| one.steps.iter().all(|step| tools.has(step)));
    match (args.number, &args.output) {
        (Some(number), Some(folder)) => {
            let one = usable.get(number as usize - 1).ok_or_else(|| {
                let message =
                    format!("there is no suggestion {number}: there are {}", usable.len());
                Failure::new(Exit::NotFound, message).hint("`haft chain suggest` lists them")
            })?;
            write(one, folder, args.id.as_deref(), &tools, json_wanted, printer)
        }
        _ => tell(&usable, gone.len(), json_wanted, printer),
    }
}

/// A call as it is looked at.
fn seen(flow: Flow) -> Seen {
    let Flow { package, action, began, ended, inputs, outputs, .. } = flow;
    let millis = |time: ledger::Time| u64::try_from(time.unix_millis()).unwrap_or(0);
    let tool = mining::Tool { package, action };
    Seen { tool, began: millis(began), ended: millis(ended), inputs, outputs }
}

/// The packages that steps would call, as they are installed.
struct Tools<'t> {
    home: &'t Home,
    known: BTreeMap<String, Option<Tool>>,
}

impl Tools<'_> {
    /// Whether a step can be called, now that some time has passed.
    fn has(&mut self, step: &Step) -> bool {
        let home = self.home;
        let known = self.known.entry(step.tool.package.clone()).or_insert_with_key(|id| {
            let found = installed::found(id, home, Printer::silent()).ok()?;
            found.tools.into_iter().next()
        });
        known.as_ref().is_some_and(|tool| tool.action(&step.tool.action).is_some())
    }

    fn of(&self, step: &Step) -> Option<(&Tool, &Action)> {
        let tool = self.known.get(&step.tool.package)?.as_ref()?;
        Some((tool, tool.action(&step.tool.action)?))
    }
}

fn tell(usable: &[Suggestion], gone: usize, json_wanted: bool, printer: Printer) -> Outcome {
    if json_wanted {
        let suggestions: Vec<_> = usable.iter().map(to_value).collect();
        printer.json(&json!({"suggestions": suggestions, "unusable": gone}))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for (number, one) in usable.iter().enumerate() {
        let ids: Vec<_> = one.steps.iter().map(|step| line(bare(&step.tool.package))).collect();
        text += &format!("{}  {}\n", number + 1, ids.join(" → "));
        text += &format!(
            "   seen {}, would have saved {} and {}\n",
            count(one.seen, "time"),
            count(one.calls, "call"),
            lasting(one.millis)
        );
        for step in &one.steps {
            for (member, source) in &step.takes {
                let from = line(bare(&one.steps[source.step].tool.package));
                let (to, path) = (line(bare(&step.tool.package)), line(&source.path));
                text += &format!("   {to}.{} is {path} of {from}\n", line(member));
            }
        }
    }
    if usable.is_empty() {
        printer.note("nothing yet: no result became an input of another tool often enough");
    } else {
        printer.result(&text)?;
        printer.note("hint: `haft chain suggest NUMBER --output FOLDER` writes one as a package, with a test");
    }
    if gone > 0 {
        printer
            .note(&format!("{} more of what is not installed any more", count(gone, "sequence")));
    }
    Ok(Exit::Done)
}

fn to_value(one: &Suggestion) -> Value {
    let step = |step: &Step| {
        let takes: BTreeMap<_, _> = step
            .takes
            .iter()
            .map(|(member, source)| (member, json!({"step": source.step, "path": source.path})))
            .collect();
        json!({"package": step.tool.package, "action": step.tool.action, "takes": takes, "asks": step.asks.keys().collect::<Vec<_>>()})
    };
    let steps: Vec<_> = one.steps.iter().map(step).collect();
    json!({"steps": steps, "seen": one.seen, "saved": {"calls": one.calls, "ms": one.millis}})
}

fn write(
    one: &Suggestion,
    folder: &Path,
    id: Option<&str>,
    tools: &Tools<'_>,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let found: Vec<_> = one.steps.iter().filter_map(|step| tools.of(step)).collect();
    let tested: Vec<_> = found.iter().map(|(tool, action)| tested(tool, action)).collect();
    let called: Vec<_> = found
        .iter()
        .zip(&tested)
        .map(|((tool, action), tested)| Called {
            package: &tool.package,
            action,
            tested: tested.as_ref(),
        })
        .collect();
    let id = id.map_or_else(|| default_id(&called), str::to_owned);
    let draft = Draft::of(one, &called, &id);
    let file = |path: &str, value: &Value| StarterFile {
        path: path.to_owned(),
        content: format!("{value:#}\n").into_bytes(),
        executable: false,
    };
    let mut files = vec![file(MANIFEST, &draft.manifest)];
    files.extend(draft.test.iter().map(|test| file(TEST, test)));
    check_valid(&files[0].content)?;
    new_folder::write(folder, &files)?;
    let mut shown = shell::word(&folder.display().to_string());
    // A bare name would be taken for an id.
    if folder.components().count() == 1 && folder.is_relative() {
        shown = format!("./{shown}");
    }
    if json_wanted {
        let paths: Vec<_> = files.iter().map(|file| &file.path).collect();
        printer.json(&json!({"id": id, "folder": folder.to_string_lossy(), "files": paths}))?;
        return Ok(Exit::Done);
    }
    printer.note(&format!("Wrote {} into {shown}", line(&id)));
    if draft.test.is_none() {
        printer.note(
            "Its packages have no tests that say what it could be tried with, so it has none",
        );
    }
    printer.note(&format!("hint: `haft test {shown}`, then `haft install {shown}`"));
    Ok(Exit::Done)
}

/// The input of a test of a package that calls an action.
fn tested(tool: &Tool, action: &Action) -> Option<Value> {
    let is_of = |case: &prove::Case| {
        case.action
            .as_deref()
            .is_none_or(|name| tool.action(name).is_some_and(|one| one.name == action.name))
    };
    Suite::of(&tool.package, &tool.root).cases().flatten().find(is_of).map(|case| case.input)
}

fn default_id(called: &[Called<'_>]) -> String {
    let last = |id: &str| id.rsplit(['.', '/', ':']).next().unwrap_or(id).to_lowercase();
    let names: Vec<_> = called.iter().map(|one| last(&one.package.id)).collect();
    format!("local.chain.{}", names.join("-"))
}

/// Refuses an id that makes no package.
fn check_valid(manifest: &[u8]) -> Result<(), Failure> {
    let options = manifest::document::Options::default();
    manifest::document::read(manifest, &options).map(drop).map_err(|report| {
        let why = report.findings.first().map_or_else(String::new, |one| one.message.clone());
        Failure::invalid("what would be written is no package")
            .cause(line(&why))
            .hint("--id gives it another id")
    })
}

fn bare(id: &str) -> &str {
    id.split_once(':').map_or(id, |(_, id)| id)
}

/// A length of time as people say it.
fn lasting(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..120_000 => format!("{} s", millis / 1_000),
        _ => format!("{} min", millis / 60_000),
    }
}
