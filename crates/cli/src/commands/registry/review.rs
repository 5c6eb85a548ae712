//! `haft registry review`: what leaves the quarantine.

use clap::{Args, Subcommand};
use egress::http::Method;
use registry::client::Errand;
use registry::{Channel, Decision, WaitingList};
use serde_json::json;

use super::place::Office;
use crate::ask::Ask;
use crate::commands::yank::version;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::remote::Which;

#[derive(Args, Debug)]
#[command(
    after_help = "The token in HAFT_TOKEN has the role review or admin. Whoever published a version that is held back does not approve it.\n\nExamples:\n  haft registry review list --registry https://registry.example\n  haft registry review approve acme.pdf.read@1.2.0 --channel beta\n  haft registry review reject acme.pdf.read@1.2.0 --reason \"sends what it reads\""
)]
pub(super) struct ReviewArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List what waits, the oldest first
    List(ListArgs),
    /// Offer a version in a channel
    Approve(ApproveArgs),
    /// Refuse a version
    Reject(RejectArgs),
}

#[derive(Args, Debug)]
struct ListArgs {
    /// How many, from 1 to 100
    #[arg(long, value_name = "N", default_value = "20")]
    limit: u32,
    /// How many to pass over
    #[arg(long, value_name = "N", default_value = "0")]
    offset: u32,
    #[command(flatten)]
    which: Which,
}

#[derive(Args, Debug)]
struct ApproveArgs {
    /// The version, as ID@VERSION
    #[arg(value_name = "ID@VERSION", value_parser = version)]
    version: (String, String),
    /// Where it is offered: stable or beta
    #[arg(long, value_name = "CHANNEL", default_value = "stable", value_parser = channel)]
    channel: Channel,
    /// Why, for its publisher to read
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    #[command(flatten)]
    which: Which,
}

#[derive(Args, Debug)]
struct RejectArgs {
    /// The version, as ID@VERSION
    #[arg(value_name = "ID@VERSION", value_parser = version)]
    version: (String, String),
    /// Why, for its publisher to read
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    which: Which,
}

/// Reads the name of a channel.
pub(in crate::commands) fn channel(name: &str) -> Result<Channel, String> {
    let known = Channel::ALL.map(|(_, name)| name);
    Channel::named(name).ok_or_else(|| super::super::no_such("channel", name, &known))
}

pub(super) fn run(
    args: &ReviewArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let (which, (id, version), decision) = match &args.verb {
        Verb::List(args) => {
            return list(args, &Office::open(&args.which, home, ask)?, json_wanted, printer);
        }
        Verb::Approve(args) => {
            let decision = Decision { channel: Some(args.channel), reason: args.reason.clone() };
            (&args.which, &args.version, decision)
        }
        Verb::Reject(args) => {
            let decision = Decision { channel: None, reason: args.reason.clone() };
            (&args.which, &args.version, decision)
        }
    };
    registry::read::Checked::check(&decision)
        .map_err(|fault| Failure::invalid(fault.to_string()))?;
    let path = ["tools", id.as_str(), "versions", version.as_str(), "review"];
    let body = Some(json!(decision).to_string().into());
    let errand = Errand { body, ..Errand::new(Method::POST, &path) };
    Office::open(which, home, ask)?.tell(errand)?;
    let state = decision.channel.map_or("rejected", Channel::name);
    if json_wanted {
        printer.json(&json!({"id": id, "version": version, "channel": state}))?;
    } else {
        let done = match decision.channel {
            Some(channel) => format!("Approved into {}:", channel.name()),
            None => "Rejected".to_owned(),
        };
        printer.note(&format!("{done} {} {}", line(id), line(version)));
    }
    Ok(Exit::Done)
}

fn list(args: &ListArgs, office: &Office, json_wanted: bool, printer: Printer) -> Outcome {
    let (limit, offset) = (args.limit.to_string(), args.offset.to_string());
    let query = [("limit", limit.as_str()), ("offset", offset.as_str())];
    let waiting: WaitingList =
        office.ask(Errand { query: &query, ..Errand::new(Method::GET, &["reviews"]) })?;
    if json_wanted {
        printer.json(&json!(waiting))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for one in &waiting.waiting {
        let name = one.id.strip_prefix("tool:").unwrap_or(&one.id);
        text += &format!("{}@{}  by {}\n", line(name), line(&one.version), line(&one.publisher));
    }
    printer.result(&text)?;
    let shown = waiting.waiting.len() as u64;
    if waiting.total != shown {
        printer.note(&format!("{shown} of {}", waiting.total));
    } else if shown == 0 {
        printer.note("Nothing waits");
    }
    Ok(Exit::Done)
}
