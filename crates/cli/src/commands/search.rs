//! `haft search`: the right tool in a registry.

use clap::Args;
use egress::http::Method;
use registry::Page;
use serde_json::json;

use crate::exit::{Exit, Outcome};
use crate::printer::{Printer, Style, line};
use crate::remote::{Ask, Identity, Remote};

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  haft search \"read pdf for javascript\" --registry http://127.0.0.1:7070\n  haft search pdf --language python --platform linux-x64 --json"
)]
pub(crate) struct SearchArgs {
    /// What the tool should do, in your words
    #[arg(value_name = "QUERY", required_unless_present = "tag")]
    query: Option<String>,
    /// The registry [default: `REGISTRY_BASE_URL`]
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
    /// Only tools that can do this; may be repeated, one is enough
    #[arg(long, value_name = "NAME")]
    capability: Vec<String>,
    /// Only tools written in this language
    #[arg(long, value_name = "NAME")]
    language: Vec<String>,
    /// Only tools for this system: linux-x64, darwin-arm64
    #[arg(long, value_name = "NAME")]
    platform: Vec<String>,
    /// Only tools with this tag; may be repeated, one is enough
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Only packages of this kind: tool, `mcp_server`, `skill_pack`
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// How far along: stable, or beta, which has what is stable too
    #[arg(long, value_name = "CHANNEL", value_parser = super::registry::channel)]
    channel: Option<registry::Channel>,
    /// How many, from 1 to 100
    #[arg(long, value_name = "N", default_value = "20")]
    limit: u32,
    /// How many to pass over
    #[arg(long, value_name = "N", default_value = "0")]
    offset: u32,
}

pub(crate) fn run(args: &SearchArgs, json_wanted: bool, printer: Printer) -> Outcome {
    let remote = Remote::find(args.registry.as_deref())?;
    let (limit, offset) = (args.limit.to_string(), args.offset.to_string());
    let mut query: Vec<(&str, &str)> = vec![("limit", &limit), ("offset", &offset)];
    query.extend(args.query.iter().map(|words| ("q", words.as_str())));
    query.extend(args.channel.map(|channel| ("channel", channel.name())));
    for (name, values) in [
        ("capability", &args.capability),
        ("language", &args.language),
        ("platform", &args.platform),
        ("tags", &args.tag),
        ("kind", &args.kind),
    ] {
        query.extend(values.iter().map(|value| (name, value.as_str())));
    }
    let page: Page = remote.read(Ask {
        method: Method::GET,
        path: &["tools", "search"],
        query: &query,
        body: None,
        identity: Identity::Perhaps,
    })?;
    if json_wanted {
        printer.json(&json!(page))?;
        return Ok(Exit::Done);
    }
    let width =
        page.results.iter().map(|found| found.name.chars().count() + found.version.len() + 1);
    let width = width.max().unwrap_or(0).min(60);
    let mut text = String::new();
    for found in &page.results {
        let title = format!("{:<width$}", format!("{} {}", found.name, found.version));
        text +=
            &format!("{}  {}\n", printer.paint(Style::Strong, &line(&title)), line(&found.summary));
    }
    printer.result(&text)?;
    let shown = page.results.len() as u64;
    if page.total != shown {
        printer.note(&format!(
            "{shown} of {}",
            super::count(page.total.try_into().unwrap_or(usize::MAX), "tool")
        ));
    } else if shown == 0 {
        printer.note("Nothing found");
    }
    Ok(Exit::Done)
}
