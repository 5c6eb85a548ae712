//! `haft registry publisher`: whose builds are trusted.

use std::collections::BTreeMap;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use egress::http::Method;
use registry::client::Errand;
use registry::{NewPublisher, Publisher, Publishers};
use serde_json::json;
use server::Store;
use server::access::{AccessError, trust_publisher};

use super::super::stores::{open, open_existing};
use super::place::PlaceArgs;
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::owner;
use crate::printer::{Printer, line};

#[derive(Args, Debug)]
#[command(
    after_help = "A build service signs who builds what, as a JWT. The registry asks the issuer for its keys, checks audience, time and claims, and gives a token for a quarter of an hour: `haft registry token exchange`.\n\nExamples:\n  haft registry publisher add --issuer https://token.actions.githubusercontent.com --audience https://registry.example --claim repository=acme/tools --claim 'ref=refs/tags/*' --namespace acme"
)]
pub(super) struct PublisherArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Trust the builds that fit a rule
    Add(AddArgs),
    /// List the rules
    List(PlaceArgs),
    /// Trust them no more
    Rm(RemoveArgs),
}

#[derive(Args, Debug)]
struct AddArgs {
    /// The issuer, exactly as its identities say
    #[arg(long, value_name = "URL")]
    issuer: String,
    /// Where its keys are [default: as it says at its own address]
    #[arg(long, value_name = "URL")]
    keys: Option<String>,
    /// For whom its identities must be: what you tell the build service
    #[arg(long, value_name = "TEXT")]
    audience: String,
    /// What they must say; `*` in the value is any text; may be repeated, all must fit
    #[arg(long, value_name = "NAME=VALUE", required = true, value_parser = claim)]
    claim: Vec<(String, String)>,
    /// How they may be signed [default: RS256, ES256]; may be repeated
    #[arg(long, value_name = "NAME")]
    algorithm: Vec<String>,
    /// Whose names may be published then
    #[arg(long, value_name = "NAME")]
    namespace: String,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Args, Debug)]
struct RemoveArgs {
    /// The rule's id, as the list has it
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    id: String,
    #[command(flatten)]
    place: PlaceArgs,
}

fn claim(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE, for example repository=acme/tools".to_owned()),
    }
}

pub(super) fn run(
    args: &PublisherArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    match &args.verb {
        Verb::Add(args) => add(args, home, ask, json_wanted, printer),
        Verb::List(args) => list(args, home, ask, json_wanted, printer),
        Verb::Rm(args) => remove(args, home, ask, json_wanted, printer),
    }
}

fn add(args: &AddArgs, home: &Home, ask: Ask, json_wanted: bool, printer: Printer) -> Outcome {
    let mut claims = BTreeMap::new();
    for (name, value) in &args.claim {
        if claims.insert(name.clone(), value.clone()).is_some() {
            return Err(Failure::invalid(format!("the claim `{name}` is named twice")));
        }
    }
    let rule = NewPublisher {
        issuer: args.issuer.clone(),
        keys: args.keys.clone(),
        audience: args.audience.clone(),
        claims,
        algorithms: match args.algorithm.as_slice() {
            [] => registry::access::default_algorithms(),
            named => named.to_vec(),
        },
        namespace: args.namespace.clone(),
    };
    server::identity::check_rule(&rule).map_err(|error| Failure::invalid(error.to_string()))?;
    let publisher: Publisher = match args.place.office(home, ask)? {
        Some(office) => {
            let body = Some(json!(rule).to_string().into());
            office.ask(Errand { body, ..Errand::new(Method::POST, &["publishers"]) })?
        }
        None => owner::runtime()?.block_on(async {
            let store = open(&args.place.database, home).await?;
            trust_publisher(&store, rule).await.map_err(|error| match error {
                AccessError::Store(error) => Failure::of(Exit::Unavailable, &error),
                other => Failure::invalid(format!("the rule is refused: {other:?}")),
            })
        })?,
    };
    if json_wanted {
        printer.json(&json!(publisher))?;
    } else {
        printer.result(&shown(&publisher))?;
    }
    Ok(Exit::Done)
}

fn list(args: &PlaceArgs, home: &Home, ask: Ask, json_wanted: bool, printer: Printer) -> Outcome {
    let publishers = match args.office(home, ask)? {
        Some(office) => office.ask(Errand::new(Method::GET, &["publishers"]))?,
        None => owner::runtime()?.block_on(async {
            let store = open_existing(&args.database, home).await?;
            let found = store.publishers().await;
            let publishers = found.map_err(|error| Failure::of(Exit::Unavailable, &error))?;
            Ok::<_, Failure>(Publishers { publishers })
        })?,
    };
    if json_wanted {
        printer.json(&json!(publishers))?;
    } else {
        printer.result(&publishers.publishers.iter().map(shown).collect::<String>())?;
    }
    Ok(Exit::Done)
}

fn remove(
    args: &RemoveArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let end = async |store: Store| store.remove_publisher(&args.id).await;
    args.place.end((home, ask), "publisher", &args.id, end)?;
    if json_wanted {
        printer.json(&json!({"id": args.id, "removed": true}))?;
    } else {
        printer.note(&format!("Removed {}", line(&args.id)));
    }
    Ok(Exit::Done)
}

fn shown(publisher: &Publisher) -> String {
    let claims = publisher.claims.iter().map(|(name, value)| format!("{name}={value}"));
    let claims = claims.collect::<Vec<_>>().join(" ");
    format!(
        "{}  the names of `{}` by {} for {}: {}\n",
        line(&publisher.id),
        line(&publisher.namespace),
        line(&publisher.issuer),
        line(&publisher.audience),
        line(&claims)
    )
}
