//! `haft registry import`: what others hold, published in a registry of one's own.

mod gone;
mod rehearsal;
mod told;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use clap::Args;
use package::digest::Digest;
use registry::client::address::shown;
use registry::client::error::Kind;
use registry::client::{FetchError, Remote};
use registry::import::remote::{Asker, PageError, Pages, Wanted, dump};
use registry::import::{Deleted, Item, NoPackage, folder, servers};
use registry::{Channel, Describe, Outcome as Became, Published, Yank};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::super::count;
use crate::ask::Ask;
use crate::bar::Bar;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::owner;
use crate::printer::{Printer, line};
use crate::remote::{self, Known, Which};
use rehearsal::Rehearsal;
use told::Told;

#[derive(Args, Debug)]
#[command(
    after_help = "SOURCE is the address of an MCP registry, or of a dump of one that ends in .json; a file with a dump, a manifest, a bundle or a package; or a folder of those, also the tools/ folder of a Jumith hub. Everything is checked as any publish. The token is that of `haft publish`, and needs all namespaces that are imported. What is there already changes nothing, so an import that was broken off is simply started again. A version that the source has deleted since is yanked here, and so are all versions of a tool that its list, read to the end, has no more.\n\nExamples:\n  haft registry import servers.json --registry http://127.0.0.1:7070 --dry-run\n  haft registry import https://mcp.example.com --latest\n  haft registry import hub/tools"
)]
pub(super) struct ImportArgs {
    /// What to import: an address, a file or a folder
    #[arg(value_name = "SOURCE")]
    source: String,
    #[command(flatten)]
    which: Which,
    /// Say what would be imported and what refused, but publish nothing
    #[arg(long)]
    dry_run: bool,
    /// Of an MCP registry: the last version of each server alone
    #[arg(long)]
    latest: bool,
    /// Of an MCP registry: those with this in their names
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Of an MCP registry: those that have changed since then, as 2026-11-01T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
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
    let is_address = args.source.contains("://");
    if !is_address || is_dump(&args.source) {
        args.check_unasked()?;
    }
    let known = Known::new(home, ask)?;
    let remote = known.one(&args.which)?;
    let bar = Bar::count("Importing tools", json_wanted, printer);
    let (listed, told) = (BTreeMap::new(), Told { is_only_tried: args.dry_run, ..Told::default() });
    let is_list = true;
    let rehearsal = args.dry_run.then(Rehearsal::begin).transpose()?;
    let mut import =
        Import { args, remote, json_wanted, printer, bar, listed, is_list, rehearsal, told };
    let done = if is_address { import.address(&known) } else { import.path() };
    let done = done.and_then(|()| import.look_for_missing());
    let done = import.remember(home, done);
    let Import { told, bar, .. } = import;
    drop(bar);
    let done = done.and_then(|()| {
        if !told.is_empty() || is_address {
            return Ok(());
        }
        let message = format!("there is nothing to import in `{}`", args.source);
        Err(Failure::new(Exit::NotFound, message))
    });
    if !told.is_empty() || done.is_ok() {
        printer.note(&told.summary());
    }
    let mut document = told.json();
    document["next"] = told.cursor.clone().filter(|_| done.is_err()).into();
    if let Err(failure) = done {
        let failure = match &told.cursor {
            // What was typed has just failed.
            Some(cursor) if args.cursor.as_ref() != Some(cursor) => {
                failure.hint(format!("go on with --cursor {}", line(cursor)))
            }
            _ => failure,
        };
        return Err(failure.after(document));
    }
    if json_wanted {
        printer.json(&document)?;
    }
    let is_bad = !told.refused.is_empty() && (args.strict || told.is_nothing_taken());
    Ok(if is_bad { Exit::Invalid } else { Exit::Done })
}

impl ImportArgs {
    /// Refuses what only a registry can be asked: everything else would be taken as if it were not there.
    fn check_unasked(&self) -> Result<(), Failure> {
        let asked = [
            (self.latest, "--latest"),
            (self.search.is_some(), "--search"),
            (self.updated_since.is_some(), "--updated-since"),
            (self.cursor.is_some(), "--cursor"),
        ];
        match asked.into_iter().find(|(is_asked, _)| *is_asked) {
            Some((_, flag)) => {
                let source = line(&shown(&self.source));
                let message = format!("{flag} is asked of an MCP registry, and `{source}` is none");
                Err(Failure::invalid(message)
                    .hint("everything of a dump, a file or a folder is imported"))
            }
            None => Ok(()),
        }
    }
}

/// A moment as registries take it: it is passed on as it was typed.
fn moment(text: &str) -> Result<String, String> {
    let said = || "a moment is written as 2026-11-01T00:00:00Z".to_owned();
    registry::moment::read(text).map(|_| text.to_owned()).ok_or_else(said)
}

/// Whether a path or an address is of a dump.
fn is_dump(source: &str) -> bool {
    source.to_ascii_lowercase().ends_with(".json")
}

struct Import<'i> {
    args: &'i ImportArgs,
    remote: Remote,
    json_wanted: bool,
    printer: Printer,
    bar: Bar,
    /// The versions that the source lists, by name.
    listed: BTreeMap<String, BTreeSet<String>>,
    /// Whether the source is nothing but a list of names and versions, each of which could be read.
    is_list: bool,
    /// Where it is tried out, unless it is meant.
    rehearsal: Option<Rehearsal>,
    told: Told,
}

/// What became of one thing.
enum Fate {
    Imported(Value),
    Unchanged(Value),
    Yanked(Value),
    Refused(String),
    Skipped(String),
}

impl Import<'_> {
    fn address(&mut self, known: &Known<'_>) -> Result<(), Failure> {
        let source = &self.args.source;
        let address = remote::address(source)?;
        if !address.is_private_talk() {
            let message =
                format!("everybody on the way from `{source}` could change what is imported");
            return Err(Failure::new(Exit::Denied, message).hint("use https://"));
        }
        let token = known.token_at(&address, &self.args.which)?;
        let asker = Asker::new(&address, token.as_ref())
            .map_err(|error| Failure::of(Exit::Unavailable, &error))?;
        let address = address.url();
        if is_dump(address.path()) {
            let (runtime, mut page) = (owner::runtime()?, address.clone());
            let mut seen = HashSet::new();
            loop {
                if !seen.insert(page.clone()) {
                    return Err(broken_off(source, &PageError::Circle));
                }
                let read = runtime.block_on(dump(&asker, &page));
                let (bytes, next) = read.map_err(|error| broken_off(source, &error))?;
                let mut items = Vec::new();
                folder::of_document(source, None, bytes, &mut |item| items.push(item));
                if next.is_none() {
                    self.bar.of(self.bar.done() + items.len() as u64);
                }
                items.into_iter().try_for_each(|item| self.take(item))?;
                match next {
                    None => return Ok(()),
                    Some(next) if next.origin() != address.origin() => {
                        let why = format!("it goes on at `{next}`, which is another place");
                        let package = Err(NoPackage::Skipped(why));
                        return self.take(Item::new(source.clone(), package));
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
        let (other, mut pages) = (asker.clone(), Pages::new(asker, &wanted));
        let runtime = owner::runtime()?;
        self.told.cursor = pages.cursor().map(str::to_owned);
        loop {
            // Whoever is broken off begins with this page again.
            self.told.cursor = pages.cursor().map(str::to_owned);
            let page =
                runtime.block_on(pages.next()).map_err(|error| broken_off(source, &error))?;
            let Some(page) = page else { break };
            for item in servers::of_list(&page.servers, source) {
                self.take(item)?;
            }
        }
        let is_whole = !self.args.latest
            && self.args.search.is_none()
            && self.args.updated_since.is_none()
            && self.args.cursor.is_none();
        if let (true, Ok(tools)) = (is_whole, address.join("/v1/tools?limit=1"))
            && let Ok((bytes, _)) = runtime.block_on(dump(&other, &tools))
        {
            self.look_for_others(&bytes);
        }
        Ok(())
    }

    /// Tells of the tools of a registry like ours that are no MCP servers: nobody takes them over by this way.
    fn look_for_others(&self, listing: &[u8]) {
        let listing: Option<Value> = serde_json::from_slice(listing).ok();
        let all = listing.and_then(|listing| listing["total"].as_u64()).unwrap_or(0);
        let servers = self.listed.len() as u64;
        if all > servers {
            self.printer.warn(&format!(
                "it has {}, and as an MCP registry it tells of {servers}: the others were not imported; `haft registry get` fetches a package, `haft publish` publishes it",
                count(all, "tool")
            ));
        }
    }

    fn path(&mut self) -> Result<(), Failure> {
        let path = Path::new(&self.args.source);
        let (mut failed, mut items) = (None, Vec::new());
        let is_file = path.is_file();
        let read = folder::read(path, &mut |item| match &failed {
            // What one file holds is in memory at once, and so it is known how much it is.
            None if is_file => items.push(item),
            None => failed = self.take(item).err(),
            Some(_) => {}
        });
        if is_file {
            self.bar.of(items.len() as u64);
            items.into_iter().try_for_each(|item| self.take(item))?;
        }
        if let Some(failure) = failed {
            return Err(failure);
        }
        read.map_err(|error| Failure::unread(path.display(), error))
    }

    /// Takes one thing in. A failure is one of the registry, and the end; what is wrong with the thing itself is
    /// told and stops nothing.
    fn take(&mut self, item: Item) -> Result<(), Failure> {
        let Item { from, id, listed, package } = item;
        match listed.clone() {
            Some((name, version)) => {
                self.listed.entry(name).or_default().insert(version);
            }
            None => self.is_list = false,
        }
        let fate = match package {
            Err(NoPackage::Skipped(why)) => Fate::Skipped(why),
            Err(NoPackage::Deleted(deleted)) => self.taken_back(listed.as_ref(), &deleted)?,
            Err(NoPackage::Refused(why)) => Fate::Refused(why),
            Ok(bytes) => self.published(bytes, id.as_deref())?,
        };
        self.bar.done_one();
        self.settle(&from, fate)
    }

    /// Tells what became of one thing.
    fn settle(&mut self, from: &str, fate: Fate) -> Result<(), Failure> {
        match fate {
            Fate::Imported(known) => {
                self.say("imported", &told::name(&known))?;
                self.told.imported.push(known);
            }
            Fate::Unchanged(known) => {
                self.say("there", &told::name(&known))?;
                self.told.unchanged.push(known);
            }
            Fate::Yanked(known) => {
                self.say("yanked", &told::name(&known))?;
                self.told.yanked.push(known);
            }
            Fate::Refused(why) => {
                self.say("refused", &format!("{from}: {why}"))?;
                self.told.refused.push(json!({"from": from, "why": why}));
            }
            Fate::Skipped(why) => {
                self.say("passed over", &format!("{from}: {why}"))?;
                self.told.skipped.push(json!({"from": from, "why": why}));
            }
        }
        Ok(())
    }

    /// Takes back what the source has taken back.
    fn taken_back(
        &self,
        listed: Option<&(String, String)>,
        deleted: &Deleted,
    ) -> Result<Fate, Failure> {
        let said = "it was deleted there";
        let Some((name, version)) = listed else { return Ok(Fate::Skipped(said.to_owned())) };
        let Yank { reason, security } = &deleted.why;
        let more = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let reason = format!("deleted in {}{more}", self.source());
        let digest = Digest::of(&deleted.package).to_string();
        self.take_back((name, version, &digest), said, &Yank { reason, security: *security })
    }

    /// Takes back a version, where it is the very same thing: its name, the version and its digest.
    fn take_back(
        &self,
        (name, version, digest): (&str, &str, &str),
        said: &str,
        yank: &Yank,
    ) -> Result<Fate, Failure> {
        let skipped = |more: &str| Ok(Fate::Skipped(format!("{said}{more}")));
        let runtime = owner::runtime()?;
        let there = match runtime.block_on(self.remote.describe(name, Some(version))) {
            Ok(there) => there,
            Err(error) if error.kind() == Kind::NotFound => return skipped(""),
            Err(error) => return Err(remote::failed(self.remote.name(), &error)),
        };
        if there.yanked.is_some() {
            return skipped(", and is yanked here");
        }
        let Describe { id, name, version, sha256, .. } = &there.describe;
        if sha256.as_deref() != Some(digest) {
            return skipped(", and something else is here");
        }
        let known = told::known(id, name, version, digest);
        if !self.args.dry_run
            && let Err(error) = runtime.block_on(self.remote.yank(id, version, Some(yank)))
        {
            return self.refused(&error).map(Fate::Refused);
        }
        Ok(Fate::Yanked(known))
    }

    /// What the source is called for everybody: its address, or the name of the file alone.
    fn source(&self) -> String {
        let source = &self.args.source;
        let file = Path::new(source).file_name().filter(|_| !source.contains("://"));
        file.map_or_else(|| source.clone(), |file| file.to_string_lossy().into_owned())
    }

    fn say(&self, what: &str, text: &str) -> Result<(), Failure> {
        if self.json_wanted {
            return Ok(());
        }
        self.bar.aside(|| self.printer.result(&format!("{what:<11} {}\n", line(text))))
    }

    /// Publishes a package, or asks what that would come to.
    fn published(&self, bytes: Vec<u8>, id: Option<&str>) -> Result<Fate, Failure> {
        let runtime = owner::runtime()?;
        let Some(rehearsal) = &self.rehearsal else {
            let sent = self.remote.publish(bytes.clone(), id, Channel::Stable);
            return match runtime.block_on(sent) {
                Ok(published) => Ok(fate(&published)),
                Err(error) => self.not_published(&error, bytes, &runtime),
            };
        };
        match runtime.block_on(self.remote.foresee(bytes.clone(), id, Channel::Stable)) {
            Ok(foreseen) if foreseen.outcome == Became::Unchanged => Ok(fate(&foreseen)),
            // What is imported first may stand in the way of what comes after it.
            Ok(foreseen) => match rehearsal.publish(bytes, id)? {
                Ok(outcome) => Ok(fate(&Published { outcome, ..foreseen })),
                Err(why) => Ok(Fate::Refused(format!("`{}` refuses: {why}", self.remote.name()))),
            },
            Err(error @ FetchError::Refused { status: 404 | 405, .. }) => {
                Err(remote::failed(self.remote.name(), &error).hint(
                    "a registry of another kind cannot be asked beforehand; leave --dry-run out",
                ))
            }
            Err(error) => self.not_published(&error, bytes, &runtime),
        }
    }

    /// Why something was not published; unless the same server is there as its author packed it.
    fn not_published(
        &self,
        error: &FetchError,
        bytes: Vec<u8>,
        runtime: &Runtime,
    ) -> Result<Fate, Failure> {
        let refused = self.refused(error)?;
        let is_taken = matches!(error, FetchError::Refused { status: 409, .. });
        let server = servers::told_by(bytes).filter(|_| is_taken);
        let text = |key: &str| server.as_ref().and_then(|server| server[key].as_str());
        if let (Some(name), Some(version)) = (text("name"), text("version"))
            && let Ok(there) = runtime.block_on(self.remote.package(name, Some(version)))
        {
            let Describe { id, name, version, .. } = there.described.describe.clone();
            let known = told::known(&id, &name, &version, &there.digest.to_string());
            if there.bytes().ok().and_then(servers::told_by) == server {
                return Ok(Fate::Unchanged(known));
            }
        }
        Ok(Fate::Refused(refused))
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

fn fate(published: &Published) -> Fate {
    let Published { id, name, version, sha256, .. } = published;
    let known = told::known(id, name, version, sha256);
    match published.outcome {
        Became::Published => Fate::Imported(known),
        Became::Unchanged => Fate::Unchanged(known),
    }
}

/// A refusal in a line.
fn why(failure: &Failure) -> String {
    let message = &failure.message;
    match failure.details.as_slice() {
        [] => message.clone(),
        [more] => format!("{message}; {more}"),
        [more, others @ ..] => format!("{message}; {more}; and {} more", others.len()),
    }
}

fn broken_off(source: &str, error: &PageError) -> Failure {
    let source = line(source);
    let failure = |exit, message| {
        let mut failure = Failure::of(exit, error);
        failure.message = message;
        failure
    };
    match error {
        PageError::Status(401, _) => Failure::of(Exit::Denied, error).hint(remote::good_token()),
        // What was typed is passed on as it is, and so it is that which is refused.
        PageError::Status(400 | 422, _) => failure(Exit::Invalid, format!("`{source}`: {error}")),
        PageError::Send(_) => failure(Exit::Unavailable, format!("failed to reach `{source}`")),
        PageError::Status(status @ (404 | 405), _) => {
            let message = format!("`{source}` is no MCP registry: it answers with {status}");
            failure(Exit::Unavailable, message).hint(SOURCES)
        }
        PageError::Unreadable(_) => {
            let message = format!("`{source}` is no MCP registry: it answers what none answers");
            failure(Exit::Unavailable, message).hint(SOURCES)
        }
        PageError::Status(..) | PageError::Circle => {
            failure(Exit::Unavailable, format!("`{source}`: {error}"))
        }
    }
}

/// What can be imported from an address.
const SOURCES: &str =
    "it is the address before `/v0.1/servers`, or that of a dump, which ends in .json";
