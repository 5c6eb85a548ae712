//! `haft registry import`: what others hold, published in a registry of one's own.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use egress::http::{Method, Response, Url};
use package::limits::Limits;
use registry::import::remote::{PageError, Pages, Wanted, dump};
use registry::import::{Item, NoPackage, folder, servers};
use registry::{Describe, Outcome as Became, Published};
use serde_json::{Value, json};
use server::upload::Upload;

use crate::exit::{Exit, Failure, Outcome};
use crate::owner;
use crate::printer::{Printer, line};
use crate::remote::{Ask, Identity, Remote, client_for, refused};

/// How often something is published before we give up.
const ATTEMPTS: u32 = 5;
/// The longest pause between two attempts.
const PAUSE: Duration = Duration::from_secs(30);

#[derive(Args, Debug)]
#[command(
    after_help = "SOURCE is the address of an MCP registry, or of a dump of one that ends in .json; a file with a dump, a manifest, a bundle or a package; or a folder of those, also the tools/ folder of a Jumith hub. Everything is checked as any publish. The token is read from HAFT_TOKEN, and needs all namespaces that are imported. What is there already changes nothing, so an import that was broken off is simply started again.\n\nExamples:\n  haft registry import servers.json --registry http://127.0.0.1:7070 --dry-run\n  haft registry import https://mcp.example.com --latest\n  haft registry import hub/tools"
)]
pub(super) struct ImportArgs {
    /// What to import: an address, a file or a folder
    #[arg(value_name = "SOURCE")]
    source: String,
    /// The registry to publish in [default: `REGISTRY_BASE_URL`]
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
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

pub(super) fn run(args: &ImportArgs, json_wanted: bool, printer: Printer) -> Outcome {
    let remote = Remote::find(args.registry.as_deref())?;
    let is_address = ["http://", "https://"].iter().any(|start| args.source.starts_with(start));
    let mut import = Import { args, remote, json_wanted, printer, told: Told::default() };
    let done = if is_address { import.address() } else { import.path() };
    let told = &import.told;
    if json_wanted {
        let mut document = told.json();
        document["dry_run"] = args.dry_run.into();
        document["next"] = told.cursor.clone().filter(|_| done.is_err()).into();
        printer.json(&document)?;
    }
    let imported = if args.dry_run { "would be imported" } else { "imported" };
    printer.note(&format!(
        "{} {imported}, {} there already, {} refused, {} passed over",
        told.imported.len(),
        told.unchanged.len(),
        told.refused.len(),
        told.skipped.len()
    ));
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
        let address = Url::parse(source)
            .map_err(|error| Failure::invalid(format!("`{source}` is no address")).cause(error))?;
        let client = client_for(&address)?;
        if address.path().to_ascii_lowercase().ends_with(".json") {
            let read = owner::runtime()?.block_on(dump(&client, &address));
            let bytes = read.map_err(|error| broken_off(&error))?;
            let mut items = Vec::new();
            folder::of_document(source, None, bytes, &mut |item| items.push(item));
            return items.into_iter().try_for_each(|item| self.take(item));
        }
        let wanted = Wanted {
            latest: self.args.latest,
            search: self.args.search.clone(),
            updated_since: self.args.updated_since.clone(),
            cursor: self.args.cursor.clone(),
        };
        let mut pages = Pages::new(client, &address, &wanted);
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
            Ok(bytes) => self.published(&bytes, id.as_deref())?,
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
        self.printer.result(&format!("{what:<11} {}\n", line(text)))
    }

    /// Publishes a package, again and again while the registry asks to wait.
    fn published(&self, bytes: &[u8], id: Option<&str>) -> Result<Fate, Failure> {
        let query: Vec<(&str, &str)> = id.iter().map(|id| ("id", *id)).collect();
        let mut pause = Duration::from_millis(250);
        for attempt in 1.. {
            let answered = self.remote.answer(Ask {
                method: Method::POST,
                path: &["tools"],
                query: &query,
                body: Some(bytes.to_vec()),
                identity: Identity::Token,
            });
            let is_last = attempt >= ATTEMPTS;
            let wait = match answered {
                Err(failure) if is_last || failure.exit != Exit::Unavailable => {
                    return Err(failure);
                }
                Err(_) => pause,
                Ok(response) => match response.status.as_u16() {
                    200..300 => return fate(&response),
                    429 | 503 if !is_last => asked_to_wait(&response).unwrap_or(pause),
                    401 | 429 | 500.. => {
                        return Err(refused(response.status.as_u16(), &response.body));
                    }
                    status => return Ok(Fate::Refused(why(&refused(status, &response.body)))),
                },
            };
            std::thread::sleep(wait.min(PAUSE));
            pause *= 2;
        }
        Err(Failure::new(Exit::Unavailable, "the registry asks to wait again and again"))
    }

    /// What would become of a package.
    fn tried(&self, bytes: Vec<u8>, id: Option<&str>) -> Result<Fate, Failure> {
        let upload = match Upload::read(bytes, id, &Limits::DEFAULT) {
            Ok(upload) => upload,
            Err(error) => return Ok(Fate::Refused(error.to_string())),
        };
        let Describe { id, name, version, sha256, .. } = &upload.describe;
        let known = json!({"id": id, "name": name, "version": version, "sha256": sha256});
        let response = self.remote.answer(Ask {
            method: Method::GET,
            path: &["tools", id, "versions", version],
            query: &[],
            body: None,
            identity: Identity::Nobody,
        })?;
        match response.status.as_u16() {
            404 => Ok(Fate::Imported(known)),
            200..300 => {
                let there: Result<Describe, _> = registry::read(&response.body);
                Ok(match there {
                    Ok(there) if there.sha256 == *sha256 => Fate::Unchanged(known),
                    _ => Fate::Refused(format!("{name} {version} is published with other bytes")),
                })
            }
            status => Err(refused(status, &response.body)),
        }
    }
}

fn fate(response: &Response) -> Result<Fate, Failure> {
    let published: Published = registry::read(&response.body).map_err(|error| {
        Failure::new(Exit::Unavailable, "the registry answers what none answers").cause(error)
    })?;
    let known = json!({
        "id": published.id, "name": published.name,
        "version": published.version, "sha256": published.sha256,
    });
    Ok(match published.outcome {
        Became::Published => Fate::Imported(known),
        Became::Unchanged => Fate::Unchanged(known),
    })
}

fn asked_to_wait(response: &Response) -> Option<Duration> {
    let seconds = response.headers.get("retry-after")?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
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
