//! `haft publish`: a package, for everybody who may read a registry.

mod folder;
mod tested;

use std::path::{Path, PathBuf};

use clap::Args;
use manifest::dialect::Dialect;
use manifest::folder::LAYERS;
use package::digest::Digest;
use package::pack::{Packing, Secrets, leaks};
use registry::client::{FetchError, Remote};
use registry::{Channel, ErrorCode, Outcome as Became, Published, State};
use serde_json::json;

use super::pack;
use crate::ask::Ask;
use crate::bar::Bar;
use crate::container::{self, Container};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::names;
use crate::owner;
use crate::printer::{Printer, line};
use crate::remote::{self, Known, Which};
use crate::shell;
use tested::Tested;

#[derive(Args, Debug)]
#[command(
    after_help = "A file is published as it is. A folder is checked, packed, tested inside the walls, signed with a key of yours, and published; whatever fails, nothing is published.\nThe token is read from HAFT_TOKEN, or from what `haft registry login` keeps. The same bytes again change nothing; other bytes under a published version are refused.\n\nExamples:\n  haft publish demo.echo-0.1.0.mcpkg --registry http://127.0.0.1:7070\n  haft publish ./echo --registry acme --key alice"
)]
pub(crate) struct PublishArgs {
    /// The package: .mcpkg, a bundle, or the folder of one
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    which: Which,
    /// The id of a tools.json, which has none of its own
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Where it is offered, unless a reviewer says so: stable or beta
    #[arg(long, value_name = "CHANNEL", default_value = "stable", value_parser = super::registry::channel)]
    channel: Channel,
    #[command(flatten)]
    folder: folder::FolderArgs,
}

pub(crate) fn run(
    args: &PublishArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    // Whoever may not publish need not wait for tests.
    let remote = Known::new(home, ask)?.one(&args.which)?;
    // To whom it would be told in plain, it is refused for that.
    if !remote.has_token() && remote.address().is_private_talk() {
        return Err(remote::failed(remote.name(), &FetchError::NoToken));
    }
    if args.path.is_dir() {
        let done = folder::run(args, &remote, home, ask, json_wanted, printer);
        let is_catalog = [LAYERS.0, LAYERS.1].iter().any(|name| args.path.join(name).is_file());
        let hint = "`haft registry import` publishes each entry of a catalog";
        return done.map_err(|failure| if is_catalog { failure.hint(hint) } else { failure });
    }
    args.folder.check_unused(&args.path)?;
    let container = container::open(&args.path, printer)?;
    check_no_secrets(&container, &args.folder.allow_file, &args.path)?;
    let described = container.described(args.id.as_deref())?;
    // What is not valid the registry refuses, and says why.
    if let Some(package) = &described.package {
        names::check_id(args.id.as_deref(), &args.path, package)?;
        if package.dialect == Dialect::Agentcli && args.id.is_none() {
            let message = "a tools.json has no id of its own, and a file does not say one either";
            return Err(Failure::invalid(message).hint("--id ID names it"));
        }
    }
    let id = args.id.as_deref();
    let published = send(&remote, &args.path, (id, args.channel), None, json_wanted, printer)?;
    tell(&published, args, None, json_wanted, printer)
}

/// Refuses files that look like secrets: in a registry everybody could read them.
fn check_no_secrets(container: &Container, known: &[String], path: &Path) -> Result<(), Failure> {
    let contents = container.contents();
    let allowed = pack::allowed(known, contents)?;
    let packing = Packing { contents, secrets: Secrets::RefusedBut(&allowed) };
    let found = leaks(&packing).map_err(|error| pack::unpacked(&error, path))?;
    if found.is_empty() { Ok(()) } else { Err(pack::leaking(&found, "published")) }
}

/// Publishes a file under an id, where it has none, in a channel; and how its tests went where they were run.
fn send(
    remote: &Remote,
    file: &Path,
    (id, channel): (Option<&str>, Channel),
    tested: Option<&Tested>,
    json_wanted: bool,
    printer: Printer,
) -> Result<Published, Failure> {
    // What cannot be opened here need not travel.
    let container = container::open(file, printer)?;
    container.check_unbroken()?;
    let bytes = std::fs::read(file).map_err(|error| Failure::unread(file.display(), error))?;
    if Digest::of(&bytes) != container.digest {
        let message = format!("`{}` changes while it is read", file.display());
        return Err(Failure::new(Exit::Conflict, message));
    }
    let report = tested.and_then(|tested| tested.to_report(container.digest));
    let bar = Bar::begin("Publishing", Some(bytes.len() as u64), json_wanted, printer);
    let watched = remote.clone().watched(bar.watch());
    let sent = watched.publish_tested(bytes, id, channel, report.as_ref());
    let runtime = owner::runtime()?;
    let published = runtime.block_on(sent);
    drop(bar);
    let published = published.map_err(|error| {
        let failure = remote::failed(remote.name(), &error);
        match error.code() {
            Some(ErrorCode::Forbidden) => failure.hint(
                "an administrator makes one for it: `haft registry token new --namespace NAME --role publish`",
            ),
            _ => failure,
        }
    })?;
    for warning in &published.warnings {
        printer.warn(&line(warning));
    }
    if published.outcome == Became::Unchanged {
        let Published { id, version, .. } = &published;
        let known = runtime.block_on(remote.describe(id, Some(version)));
        if known.is_ok_and(|described| described.yanked.is_some()) {
            let which = shell::word(&format!("{id}@{version}"));
            printer.warn(&format!(
                "it was taken back, so nobody chooses it; `haft yank --undo {which}` offers it again"
            ));
        }
    }
    Ok(published)
}

fn tell(
    published: &Published,
    args: &PublishArgs,
    tests: Option<serde_json::Value>,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    if json_wanted {
        let mut document = json!(published);
        if let Some(tests) = tests {
            document["tests"] = tests;
        }
        printer.json(&document)?;
        return Ok(Exit::Done);
    }
    let became = match published.outcome {
        Became::Published => "Published",
        Became::Unchanged => "Already published, nothing changed:",
    };
    let Published { name, version, sha256, .. } = published;
    printer.result(&format!(
        "{became} {} {}  (sha256:{})\n",
        line(name),
        line(version),
        line(sha256)
    ))?;
    match published.channel {
        State::Quarantine => printer.note("It waits for a reviewer; others do not see it yet"),
        State::Rejected => printer.warn("A reviewer has refused it; publish another version"),
        // Only a version that was there already can be elsewhere.
        there @ (State::Stable | State::Beta) if there != args.channel.into() => {
            let (there, wanted) = (there.name(), args.channel.name());
            let what = shell::word(&format!("{name}@{version}"));
            let which = args.which.typed();
            printer.warn(&format!(
                "It is offered in {there}, not in {wanted}, and publishing it again does not move it; `haft registry review approve {what} --channel {wanted}{which}` does"
            ));
        }
        State::Stable | State::Beta => {}
    }
    Ok(Exit::Done)
}
