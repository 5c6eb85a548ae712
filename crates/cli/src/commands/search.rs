//! `haft search`: the right tool in all registries.

use clap::Args;
use host::records::now;
use manifest::model::Kind;
use registry::client::{FindError, FoundIn, Question, Results};
use serde_json::json;

use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::measured;
use crate::owner;
use crate::printer::{Printer, Style, line};
use crate::remote::{self, Known, Offline, Which};

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  haft search \"read pdf for javascript\" --registry http://127.0.0.1:7070\n  haft search pdf --language python --platform linux-x64 --json\n\nWhat each registry finds best comes first; among equals, the priorities of `haft registry add` decide."
)]
pub(crate) struct SearchArgs {
    /// What the tool should do, in your words
    #[arg(value_name = "QUERY", required_unless_present_any = ["tag", "capability", "language", "platform", "kind"])]
    query: Option<String>,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    offline: Offline,
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
    /// Only packages of this kind: tool, `mcp_server`, `skill_pack`, `a2a_peer` or `agent_workflow`; may be repeated, one is enough
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind)]
    kind: Vec<Kind>,
    /// How far along: stable, or beta, which has what is stable too
    #[arg(long, value_name = "CHANNEL", value_parser = super::registry::channel)]
    channel: Option<registry::Channel>,
    /// How many, from 1 to 100
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,
    /// How many to pass over
    #[arg(long, value_name = "N", default_value = "0")]
    offset: u32,
}

/// Reads the name of a kind, which many write with hyphens.
fn kind(name: &str) -> Result<Kind, String> {
    let known = Kind::ALL.map(|(_, name)| name);
    let plain = name.to_ascii_lowercase().replace('-', "_");
    Kind::named(&plain).ok_or_else(|| super::no_such("kind", name, &known))
}

pub(crate) fn run(
    args: &SearchArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let kinds = args.kind.iter().map(|kind| kind.name().to_owned()).collect();
    let filters = [
        ("capability", &args.capability),
        ("language", &args.language),
        ("platform", &args.platform),
        ("tags", &args.tag),
        ("kind", &kinds),
    ];
    let filters = filters.into_iter().flat_map(|(name, values)| {
        values.iter().map(move |value| (name.to_owned(), value.clone()))
    });
    let filters: Vec<_> = filters.collect();
    if args.query.as_deref().unwrap_or_default().trim().is_empty()
        && filters.iter().all(|(_, value): &(String, String)| value.trim().is_empty())
    {
        return Err(Failure::invalid("there is nothing to search for").hint(
            "say what the tool should do, or filter with --tag, --capability, --language, --platform or --kind",
        ));
    }
    let channel = args.channel.map(|channel| ("channel".to_owned(), channel.name().to_owned()));
    let question = Question {
        words: args.query.clone().unwrap_or_default(),
        filters: filters.into_iter().chain(channel).collect(),
        offset: args.offset.try_into().unwrap_or(usize::MAX),
        limit: args.limit.try_into().unwrap_or(usize::MAX),
    };
    let client = Known::new(home, ask)?.with(&args.offline).client(&args.which)?;
    let found = owner::runtime()?.block_on(client.search(&question));
    let mut found = found.map_err(|error| match &error {
        FindError::Failed(name, cause) => remote::failed(name, cause),
        _ => Failure::of(Exit::Invalid, &error),
    })?;
    nudge(&mut found, home, printer);
    for (name, error) in &found.failed {
        let Failure { message, causes, .. } = remote::failed(name, error);
        let causes: String = causes.iter().map(|cause| format!(": {cause}")).collect();
        printer.warn(&format!("{}{}", line(&message), line(&causes)));
    }
    for (name, warning) in &found.warnings {
        printer.warn(&format!("{}: {}", line(name), line(warning)));
    }
    if json_wanted {
        let one = |one: &FoundIn| {
            let mut document = json!(one.found);
            document["registry"] = one.registry.clone().into();
            document
        };
        let results: Vec<_> = found.results.iter().map(one).collect();
        let failed: Vec<_> = found
            .failed
            .iter()
            .map(|(name, error)| json!({"registry": name, "error": error.to_string()}))
            .collect();
        printer.json(&json!({"results": results, "total": found.total, "failed": failed}))?;
        return Ok(Exit::Done);
    }
    let names_registries = client.sources().len() > 1;
    let title = |one: &FoundIn| {
        let from = if names_registries { format!(" ({})", one.registry) } else { String::new() };
        line(&format!("{} {}{from}", one.found.name, one.found.version))
    };
    let width = found.results.iter().map(|one| title(one).chars().count());
    let width = width.max().unwrap_or(0).min(60);
    let mut text = String::new();
    for one in &found.results {
        let title = format!("{:<width$}", title(one));
        let summary = line(&one.found.summary);
        text += &format!("{}  {summary}\n", printer.paint(Style::Strong, &title));
    }
    printer.result(&text)?;
    let shown = found.results.len() as u64;
    if found.total != shown {
        printer.note(&format!("{shown} of {}", super::count(found.total, "tool")));
    } else if shown == 0 {
        printer.note("Nothing found");
    }
    Ok(Exit::Done)
}

/// Lets what was measured here decide among those that were found nearly alike: a tool rises by at most two places.
fn nudge(found: &mut Results, home: &Home, printer: Printer) {
    let read = owner::runtime().and_then(|runtime| {
        Ok((measured::all(home, &runtime)?, owner::policy(home)?.rank.weights))
    });
    let (measured, weights) = match read {
        Ok(read) => read,
        // Nobody has to have called anything to search.
        Err(failure) => {
            let why = line(&failure.message);
            return printer.warn(&format!("what was measured here does not count: {why}"));
        }
    };
    let score = |one: &FoundIn| {
        measured.called(&one.found.name, &one.found.version)?.score(&weights, now())
    };
    let scores: Vec<_> = found.results.iter().map(score).collect();
    let mut results: Vec<_> = std::mem::take(&mut found.results).into_iter().map(Some).collect();
    let order = prove::rank::nudged(&scores);
    found.results = order.into_iter().filter_map(|at| results[at].take()).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_one_of_those_there_are_however_it_is_written() {
        for (kind_meant, name) in Kind::ALL {
            assert_eq!(kind(name), Ok(kind_meant));
            assert_eq!(kind(&name.replace('_', "-")), Ok(kind_meant));
        }
        let wrong = kind("bogus").unwrap_err();
        for (_, name) in Kind::ALL {
            assert!(wrong.contains(name), "{wrong}");
        }
        assert_eq!(kind("mcp_servr").unwrap_err(), "no such kind; did you mean `mcp_server`?");
    }
}
