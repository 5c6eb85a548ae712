//! `haft publish`: a package, for everybody who may read a registry.

use std::path::PathBuf;

use clap::Args;
use egress::http::Method;
use package::digest::Digest;
use registry::{Outcome as Became, Published, State};
use serde_json::json;

use crate::container;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Printer, line};
use crate::remote::{Ask, Identity, Remote};

#[derive(Args, Debug)]
#[command(
    after_help = "The token is read from HAFT_TOKEN. The same bytes again change nothing; other bytes under a published version are refused.\n\nExamples:\n  haft publish demo.echo-0.1.0.mcpkg --registry http://127.0.0.1:7070"
)]
pub(crate) struct PublishArgs {
    /// The package: .mcpkg or a bundle
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The registry [default: `REGISTRY_BASE_URL`]
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
    /// The id of a tools.json, which has none of its own
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Where it is offered: stable or beta, unless it waits for a reviewer
    #[arg(long, value_name = "CHANNEL", default_value = "stable", value_parser = super::registry::channel)]
    channel: registry::Channel,
}

pub(crate) fn run(args: &PublishArgs, json_wanted: bool, printer: Printer) -> Outcome {
    let remote = Remote::find(args.registry.as_deref())?;
    // What cannot be opened here need not travel.
    let container = container::open(&args.file, printer)?;
    container.check_unbroken()?;
    let unread = |error| {
        let message = format!("failed to read `{}`", args.file.display());
        Failure::new(Exit::Unavailable, message).cause(error)
    };
    let bytes = std::fs::read(&args.file).map_err(unread)?;
    if Digest::of(&bytes) != container.digest {
        let message = format!("`{}` changes while it is read", args.file.display());
        return Err(Failure::new(Exit::Conflict, message));
    }
    let mut query = vec![("channel", args.channel.name())];
    query.extend(args.id.iter().map(|id| ("id", id.as_str())));
    let published: Published = remote.read(Ask {
        method: Method::POST,
        path: &["tools"],
        query: &query,
        body: Some(bytes),
        identity: Identity::Token,
    })?;
    for warning in &published.warnings {
        printer.warn(&line(warning));
    }
    if json_wanted {
        printer.json(&json!(published))?;
        return Ok(Exit::Done);
    }
    let became = match published.outcome {
        Became::Published => "Published",
        Became::Unchanged => "Already published, nothing changed:",
    };
    let Published { name, version, sha256, .. } = &published;
    printer.result(&format!(
        "{became} {} {}  (sha256:{})\n",
        line(name),
        line(version),
        line(sha256)
    ))?;
    match published.channel {
        State::Quarantine => printer.note("It waits for a reviewer; others do not see it yet"),
        State::Rejected => printer.warn("A reviewer has refused it; publish another version"),
        State::Stable | State::Beta => {}
    }
    Ok(Exit::Done)
}
