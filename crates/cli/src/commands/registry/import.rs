//! `haft registry import`: what others hold, published in a registry of one's own.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use egress::Rules;
use egress::http::Client;
use egress::resolve::SystemResolver;
use package::limits::Limits;
use registry::client::error::Kind;
use registry::client::{Address, FetchError, Remote};
use registry::import::remote::{PageError, Pages, Wanted, dump};
use registry::import::{Item, NoPackage, folder, servers};
use registry::{Channel, Describe, Outcome as Became};
use serde_json::{Value, json};
use server::upload::Upload;

use crate::ask::Ask;
use crate::bar::Bar;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::owner;
use crate::printer::{Printer, line};
use crate::remote::{self, Known, Which};

#[derive(Args, Debug)]
#[command(
    after_help = "SOURCE is the address of an MCP registry, or of a dump of one that ends in .json; a file with a dump, a manifest, a bundle or a package; or a folder of those, also the tools/ folder of a Jumith hub. Everything is checked as any publish. The token is that of `haft publish`, and needs all namespaces that are imported. What is there already changes nothing, so an import that was broken off is simply started again.\n\nExamples:\n  haft registry import servers.json --registry http://127.0.0.1:7070 --dry-run\n  haft registry import https://mcp.example.com --latest\n  haft registry import hub/tools"
)]
pub(super) struct ImportArgs {
    /// What to import: an address, a file or a folder
    #[arg(value_name = "SOURCE")]
    source: String,
    #[command(flatten)]
    which: Which,
    /// Check everything and say what would be imported, but publish nothing
    #[arg(long)]
    dry_run: bool,
    /// Of an MCP registry: the last version of each server alone
    #[arg(long)]
    latest: bool,
    /// Of an MCP registry: those with this in their names
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Of an MCP registry: those that have changed since then, as 2026-11-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    updated_since: Option<String>,
    /// Of an MCP registry: where an import was broken off
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// End with 2 when anything is refused
    #[arg(long)]
    strict: bool,
}

pub(super) fn run(
    args: &ImportArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let remote = Known::new(home, ask)?.one(&args.which)?;
    let is_address = ["http://", "https://"].iter().any(|start| args.source.starts_with(start));
    let bar = Bar::begin("Importing", None, json_wanted, printer);
    let mut import = Import { args, remote, json_wanted, printer, bar, told: Told::default() };
    let done = if is_address { import.address() } else { import.path() };
    let Import { told, bar, .. } = import;
    drop(bar);
    if json_wanted {
        let mut document = told.json();
        document["dry_run"] = args.dry_run.into();
        document["next"] = told.cursor.clone().filter(|_| done.is_err()).into();
        printer.json(&document)?;
    }
    if told.is_empty() && !is_address && done.is_ok() {
        let message = format!("there is nothing to import in `{}`", args.source);
        return Err(Failure::new(Exit::NotFound, message));
    }
    let imported = if args.dry_run { "would be imported" } else { "imported" };
    if !told.is_empty() || done.is_ok() {
        printer.note(&format!(
            "{} {imported}, {} there already, {} refused, {} passed over",
            told.imported.len(),
            told.unchanged.len(),
            told.refused.len(),
            told.skipped.len()
        ));
    }
    done.map_err(|failure| match &told.cursor {
        Some(cursor) => failure.hint(format!("go on with --cursor {}", line(cursor))),
        None => failure,
    })?;
    let is_all_refused = told.imported.is_empty() && told.unchanged.is_empty();
    let is_bad = !told.refused.is_empty() && (args.strict || is_all_refused);
    Ok(if is_bad { Exit::Invalid } else { Exit::Done })
}

struct Import<'i> {
    args: &'i ImportArgs,
    remote: Remote,
    json_wanted: bool,
    printer: Printer,
    bar: Bar,
    told: Told,
}

/// What became of everything.
#[derive(Default)]
struct Told {
    imported: Vec<Value>,
    unchanged: Vec<Value>,
    refused: Vec<Value>,
    skipped: Vec<Value>,
    /// Where the source goes on.
    cursor: Option<String>,
}

impl Told {
    fn is_empty(&self) -> bool {
        [&self.imported, &self.unchanged, &self.refused, &self.skipped]
            .iter()
            .all(|list| list.is_empty())
    }

    fn json(&self) -> Value {
        json!({
            "imported": self.imported,
            "unchanged": self.unchanged,
            "refused": self.refused,
            "skipped": self.skipped,
        })
    }
}

/// What became of one thing.
enum Fate {
    Imported(Value),
    Unchanged(Value),
    Refused(String),
}

impl Import<'_> {
    fn address(&mut self) -> Result<(), Failure> {
        let source = &self.args.source;
        let address = remote::address(source)?;
        if !address.is_private_talk() {
            let message =
                format!("everybody on the way from `{source}` could change what is imported");
            return Err(Failure::new(Exit::Denied, message).hint("use https://"));
        }
        let client = client_for(&address)?;
        let address = address.url();
        if address.path().to_ascii_lowercase().ends_with(".json") {
            let (runtime, mut page) = (owner::runtime()?, address.clone());
            let mut seen = HashSet::new();
            loop {
                if !seen.insert(page.clone()) {
                    return Err(broken_off(&PageError::Circle));
                }
                let read = runtime.block_on(dump(&client, &page));
                let (bytes, next) = read.map_err(|error| broken_off(&error))?;
                let mut items = Vec::new();
                folder::of_document(source, None, bytes, &mut |item| items.push(item));
                items.into_iter().try_for_each(|item| self.take(item))?;
                match next {
                    None => return Ok(()),
                    Some(next) if next.origin() != address.origin() => {
                        let why = format!("it goes on at `{next}`, which is another place");
                        let package = Err(NoPackage::Skipped(why));
                        return self.take(Item { from: source.clone(), id: None, package });
                    }
                    Some(next) => page = next,
                }
            }
        }
        let wanted = Wanted {
            latest: self.args.latest,
            search: self.args.search.clone(),
            updated_since: self.args.updated_since.clone(),
            cursor: self.args.cursor.clone(),
        };
        let mut pages = Pages::new(client, address, &wanted);
        let runtime = owner::runtime()?;
        self.told.cursor = pages.cursor().map(str::to_owned);
        loop {
            // Whoever is broken off begins with this page again.
            self.told.cursor = pages.cursor().map(str::to_owned);
            let page = runtime.block_on(pages.next()).map_err(|error| broken_off(&error))?;
            let Some(page) = page else { return Ok(()) };
            for item in servers::of_list(&page.servers, source) {
                self.take(item)?;
            }
        }
    }

    fn path(&mut self) -> Result<(), Failure> {
        let path = Path::new(&self.args.source);
        let mut failed = None;
        let read = folder::read(path, &mut |item| {
            if failed.is_none() {
                failed = self.take(item).err();
            }
        });
        if let Some(failure) = failed {
            return Err(failure);
        }
        read.map_err(|error| {
            let exit = match error.kind() {
                std::io::ErrorKind::NotFound => Exit::NotFound,
                _ => Exit::Unavailable,
            };
            Failure::new(exit, format!("failed to read `{}`", path.display())).cause(error)
        })
    }

    /// Takes one thing in. A failure is one of the registry, and the end; what is wrong with the thing itself is
    /// told and stops nothing.
    fn take(&mut self, item: Item) -> Result<(), Failure> {
        let Item { from, id, package } = item;
        let fate = match package {
            Err(NoPackage::Skipped(why)) => {
                self.say("passed over", &format!("{from}: {why}"))?;
                self.told.skipped.push(json!({"from": from, "why": why}));
                return Ok(());
            }
            Err(NoPackage::Refused(why)) => Fate::Refused(why),
            Ok(bytes) if self.args.dry_run => self.tried(bytes, id.as_deref())?,
            Ok(bytes) => self.published(bytes, id.as_deref())?,
        };
        let name = |known: &Value| {
            let text = |key: &str| known[key].as_str().unwrap_or_default().to_owned();
            format!("{} {}", text("name"), text("version"))
        };
        match fate {
            Fate::Imported(known) => {
                self.say("imported", &name(&known))?;
                self.told.imported.push(known);
            }
            Fate::Unchanged(known) => {
                self.say("there", &name(&known))?;
                self.told.unchanged.push(known);
            }
            Fate::Refused(why) => {
                self.say("refused", &format!("{from}: {why}"))?;
                self.told.refused.push(json!({"from": from, "why": why}));
            }
        }
        Ok(())
    }

    fn say(&self, what: &str, text: &str) -> Result<(), Failure> {
        if self.json_wanted {
            return Ok(());
        }
        self.bar.aside(|| self.printer.result(&format!("{what:<11} {}\n", line(text))))
    }

    /// Publishes a package.
    fn published(&self, bytes: Vec<u8>, id: Option<&str>) -> Result<Fate, Failure> {
        match owner::runtime()?.block_on(self.remote.publish(bytes, id, Channel::Stable)) {
            Ok(published) => {
                let known = json!({
                    "id": published.id, "name": published.name,
                    "version": published.version, "sha256": published.sha256,
                });
                Ok(match published.outcome {
                    Became::Published => Fate::Imported(known),
                    Became::Unchanged => Fate::Unchanged(known),
                })
            }
            Err(error) => self.refused(&error).map(Fate::Refused),
        }
    }

    /// What would become of a package.
    fn tried(&self, bytes: Vec<u8>, id: Option<&str>) -> Result<Fate, Failure> {
        let upload = match Upload::read(bytes, id, &Limits::DEFAULT) {
            Ok(upload) => upload,
            Err(error) => return Ok(Fate::Refused(error.to_string())),
        };
        let Describe { id, name, version, sha256, .. } = &upload.describe;
        let known = json!({"id": id, "name": name, "version": version, "sha256": sha256});
        match owner::runtime()?.block_on(self.remote.describe(id, Some(version))) {
            Ok(there) if there.describe.sha256 == *sha256 => Ok(Fate::Unchanged(known)),
            Ok(_) => Ok(Fate::Refused(format!("{name} {version} is published with other bytes"))),
            Err(error) if error.kind() == Kind::NotFound => Ok(Fate::Imported(known)),
            Err(error) => Err(remote::failed(self.remote.name(), &error)),
        }
    }

    /// Why one thing is refused, where that says nothing about the others.
    fn refused(&self, error: &FetchError) -> Result<String, Failure> {
        let failure = remote::failed(self.remote.name(), error);
        match error {
            FetchError::Refused { status: 400 | 403 | 409 | 413 | 422, .. } => Ok(why(&failure)),
            _ => Err(failure),
        }
    }
}

/// A client for the one place that the owner named, which may be a private one.
fn client_for(address: &Address) -> Result<Client, Failure> {
    let rule = address.rule().map_err(|error| Failure::of(Exit::Invalid, &error))?;
    Client::new(Rules::from_iter([rule]), Arc::new(SystemResolver::default()))
        .map_err(|error| Failure::of(Exit::Unavailable, &error))
}

/// A refusal in a line.
fn why(failure: &Failure) -> String {
    match failure.details.first() {
        Some(detail) => format!("{}: {detail}", failure.message),
        None => failure.message.clone(),
    }
}

fn broken_off(error: &PageError) -> Failure {
    Failure::of(Exit::Unavailable, error)
}
