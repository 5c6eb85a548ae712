//! `haft registry token`: who may do what.

use std::io::Read;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use egress::http::Method;
use registry::client::{By, Errand};
use registry::{Exchange, Given, NewToken, Token, Tokens};
use serde_json::{Value, json};
use server::Store;
use server::service::{MakeTokenError, make_token, now};
use server::token::{Role, Scope};

use super::super::stores::{missing, open, open_existing};
use super::place::{Office, PlaceArgs};
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::remote::Which;
use crate::{owner, time};

/// Holds an identity.
const IDENTITY: &str = "HAFT_IDENTITY";
/// The longest identity that is read.
const LONGEST: u64 = 64 << 10;

#[derive(Args, Debug)]
pub(super) struct TokenArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Make a token and print it, once
    New(NewArgs),
    /// List the tokens, without what they are
    List(PlaceArgs),
    /// End a token
    Revoke(RevokeArgs),
    /// Get a token for an identity that a build service has signed
    Exchange(ExchangeArgs),
}

#[derive(Args, Debug)]
struct NewArgs {
    /// Whose names it is for; `*` for everybody's
    #[arg(long, value_name = "NAME")]
    namespace: String,
    /// What it is for: read, publish, review or admin
    #[arg(long, value_name = "ROLE", default_value = "publish", value_parser = role)]
    role: Role,
    /// How long it is good: 12h, 30d [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = super::super::duration)]
    expires: Option<Duration>,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Args, Debug)]
struct RevokeArgs {
    /// The token's id, as the list has it
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    id: String,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Args, Debug)]
#[command(
    after_help = "The identity is a JWT. It is read from HAFT_IDENTITY, else from standard input; it is good once. The token is for publishing, for a quarter of an hour.\n\nExamples:\n  export HAFT_TOKEN=$(haft registry token exchange --quiet --registry https://registry.example)"
)]
struct ExchangeArgs {
    /// Whose names it is for, where several could be meant
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    which: Which,
}

fn role(name: &str) -> Result<Role, String> {
    let known = Role::ALL.map(|(_, name)| name);
    Role::named(name).ok_or_else(|| super::super::no_such("role", name, &known))
}

pub(super) fn run(
    args: &TokenArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    match &args.verb {
        Verb::New(args) => tell(&make(args, home, ask, printer)?, json_wanted, printer),
        Verb::List(args) => list(args, home, ask, json_wanted, printer),
        Verb::Revoke(args) => revoke(args, home, ask, json_wanted, printer),
        Verb::Exchange(args) => tell(&exchange(args, home, ask)?, json_wanted, printer),
    }
}

fn make(args: &NewArgs, home: &Home, ask: Ask, printer: Printer) -> Result<Given, Failure> {
    registry::access::check_scope(&args.namespace)
        .map_err(|fault| Failure::invalid(fault.to_string()))?;
    match args.place.office(home, ask)? {
        Some(office) => {
            let new = NewToken {
                namespace: args.namespace.clone(),
                role: args.role.name().to_owned(),
                expires_in: args.expires.map(|time| time.as_secs().max(1)),
            };
            let body = Some(json!(new).to_string().into());
            office.ask(Errand { body, ..Errand::new(Method::POST, &["tokens"]) })
        }
        None => make_here(args, home, printer),
    }
}

fn make_here(args: &NewArgs, home: &Home, printer: Printer) -> Result<Given, Failure> {
    let scope = Scope::named(&args.namespace);
    // A token can be made before the registry is served for the first time; whoever has the wrong home sees it here.
    if let Some(path) = missing(&args.place.database, home)? {
        printer.warn(&format!("there was no registry at `{}`; it is made now", path.display()));
    }
    owner::runtime()?.block_on(async {
        let store = open(&args.place.database, home).await?;
        let made = make_token(&store, scope, args.role, args.expires).await;
        let (secret, token) = made.map_err(|error| match error {
            MakeTokenError::Randomness(error) => Failure::of(Exit::Unavailable, &error),
            MakeTokenError::Store(error) => Failure::of(Exit::Unavailable, &error),
        })?;
        Ok(Given { token: secret.reveal().to_owned(), about: (&token).into() })
    })
}

fn exchange(args: &ExchangeArgs, home: &Home, ask: Ask) -> Result<Given, Failure> {
    let office = Office::open(&args.which, home, ask)?;
    let given = std::env::var(IDENTITY).ok().filter(|text| !text.trim().is_empty());
    let identity = match given {
        Some(identity) => identity,
        None => {
            let mut text = String::new();
            let read = std::io::stdin().lock().take(LONGEST).read_to_string(&mut text);
            read.map_err(|error| Failure::invalid("failed to read the identity").cause(error))?;
            text
        }
    };
    if identity.trim().is_empty() {
        return Err(Failure::invalid("there is no identity")
            .hint(format!("put it into {IDENTITY} or write it to standard input")));
    }
    let wish = Exchange { identity: identity.trim().to_owned(), namespace: args.namespace.clone() };
    let body = Some(json!(wish).to_string().into());
    let path = ["tokens", "exchange"];
    let asked = office.ask(Errand { body, by: By::Secret, ..Errand::new(Method::POST, &path) });
    asked.map_err(|mut failure| {
        if failure.exit == Exit::Denied {
            // Another token would not help.
            failure.hints = vec![
                "an administrator sees by `haft registry publisher list` whose identities are trusted".to_owned(),
            ];
        }
        failure
    })
}

fn tell(given: &Given, json_wanted: bool, printer: Printer) -> Outcome {
    if json_wanted {
        let mut document = token_json(&given.about);
        document["token"] = given.token.as_str().into();
        printer.json(&document)?;
    } else {
        let (id, shown) = (line(&given.about.id), shown(&given.about));
        let until = until(&given.about);
        printer.note(&format!("Token {id} for {shown}, good {until}; it is not shown again:"));
        printer.result(&format!("{}\n", line(&given.token)))?;
    }
    Ok(Exit::Done)
}

fn list(args: &PlaceArgs, home: &Home, ask: Ask, json_wanted: bool, printer: Printer) -> Outcome {
    let tokens = match args.office(home, ask)? {
        Some(office) => office.ask::<Tokens>(Errand::new(Method::GET, &["tokens"]))?.tokens,
        None => owner::runtime()?.block_on(async {
            let store = open_existing(&args.database, home).await?;
            let failed = |error| Failure::of(Exit::Unavailable, &error);
            for id in store.unreadable_tokens().await.map_err(failed)? {
                printer.warn(&format!(
                    "the token {} cannot be read, and is good for nothing",
                    line(&id)
                ));
            }
            let tokens = store.tokens().await.map_err(failed)?;
            Ok::<_, Failure>(tokens.iter().map(Token::from).collect())
        })?,
    };
    if json_wanted {
        let tokens: Vec<Value> = tokens.iter().map(token_json).collect();
        printer.json(&json!({"tokens": tokens}))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for token in &tokens {
        let state = match (token.revoked_at, token.expires_at) {
            (Some(_), _) => "revoked",
            (None, Some(end)) if end <= now() => "expired",
            (None, _) => "good",
        };
        let whose = match &token.provenance {
            Some(told) => format!(" (given to {})", line(&told.subject)),
            None => String::new(),
        };
        let (id, made, until) = (line(&token.id), moment(token.created_at), until(token));
        text += &format!("{id}  {state:<8} {}{whose}, made {made}, {until}\n", shown(token));
    }
    printer.result(&text)?;
    Ok(Exit::Done)
}

fn revoke(
    args: &RevokeArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let end = async |store: Store| store.revoke_token(&args.id, now()).await;
    args.place.end((home, ask), "token", &args.id, end)?;
    if json_wanted {
        printer.json(&json!({"id": args.id, "revoked": true}))?;
    } else {
        printer.note(&format!("Revoked {}", line(&args.id)));
    }
    Ok(Exit::Done)
}

fn token_json(token: &Token) -> Value {
    let mut document = json!({
        "id": token.id,
        "namespace": token.namespace,
        "role": token.role,
        "created": moment(token.created_at),
        "expires": token.expires_at.map(moment),
        "revoked": token.revoked_at.map(moment),
    });
    if let Some(provenance) = &token.provenance {
        document["provenance"] = json!(provenance);
    }
    document
}

fn moment(milliseconds: u64) -> String {
    time::utc(i64::try_from(milliseconds / 1000).unwrap_or(i64::MAX))
}

/// How long it is good, or was.
pub(in super::super) fn until(token: &Token) -> String {
    match (token.revoked_at, token.expires_at) {
        (Some(end), _) | (None, Some(end)) => format!("until {}", moment(end)),
        (None, None) => "until it is revoked".to_owned(),
    }
}

/// What it is for, in words.
pub(in super::super) fn shown(token: &Token) -> String {
    let names = match token.namespace.as_str() {
        "*" => "all names".to_owned(),
        name => format!("the names of `{}`", line(name)),
    };
    format!("{} of {names}", line(&token.role))
}
