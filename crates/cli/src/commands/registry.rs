//! `haft registry`: a registry of one's own. Those of others are in [`registries`].

mod import;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use server::service::{MakeTokenError, make_token, now};
use server::store::tokens::Token;
use server::token::{Role, Scope};
use server::{Registry, Settings};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::care;
use super::registries;
use super::request_log::Form;
use super::stores::{DatabaseArgs, StoreArgs, open, open_blobs};
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::{interrupt, owner, time};

#[derive(Args, Debug)]
pub(crate) struct RegistryArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Serve a registry until it is stopped
    Serve(ServeArgs),
    /// Make, list and revoke the tokens of a registry
    Token(TokenArgs),
    /// Look whether everything is there and what it should be
    Check(care::CheckArgs),
    /// Remove package files that no version has
    Gc(care::GcArgs),
    /// Keep all of a registry in one file or folder
    Backup(care::BackupArgs),
    /// Bring a backup back, into an empty registry
    Restore(care::RestoreArgs),
    /// Publish what another registry, its dump or a folder holds
    Import(import::ImportArgs),
    /// Name a registry, a catalog or a folder where tools are found
    Add(registries::AddArgs),
    /// List the registries you have named
    List,
    /// Forget a registry, and its token
    Rm(registries::NamedArgs),
    /// Keep the token that is shown to a registry
    Login(registries::NamedArgs),
    /// Forget the token of a registry
    Logout(registries::NamedArgs),
    /// Download a package, checked, into a file
    Get(registries::GetArgs),
}

#[derive(Args, Debug)]
#[command(
    after_help = "Reading needs no token. A password of the database belongs into HAFT_DATABASE_URL, --database-file, PGPASSWORD or ~/.pgpass; `?sslmode=verify-full&sslrootcert=FILE` in the address asks for TLS. Settings of an S3 store are read from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT and the like.\n\nExamples:\n  haft registry serve\n  haft registry serve --database \"postgres://registry@db/registry?sslmode=verify-full\" --blobs s3://packages --listen 0.0.0.0:7070"
)]
struct ServeArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7070")]
    listen: SocketAddr,
    #[command(flatten)]
    stores: StoreArgs,
    /// How to write on stderr what became of each request
    #[arg(long, value_name = "FORM", default_value = "off")]
    log: Form,
    /// How long to go on answering after being told to stop, while /readyz says no [default: not at all]
    #[arg(long, value_name = "TIME", value_parser = super::duration)]
    drain: Option<Duration>,
    /// The address that others know it by, for answers that must name it [default: the one they ask]
    #[arg(long, value_name = "URL", value_parser = public_url)]
    public_url: Option<String>,
}

#[derive(Args, Debug)]
struct TokenArgs {
    #[command(subcommand)]
    verb: TokenVerb,
}

#[derive(Subcommand, Debug)]
enum TokenVerb {
    /// Make a token and print it, once
    New(NewArgs),
    /// List the tokens, without what they are
    List(DatabaseArgs),
    /// End a token
    Revoke(RevokeArgs),
}

#[derive(Args, Debug)]
struct NewArgs {
    /// Whose names it is for; `*` for everybody's
    #[arg(long, value_name = "NAME")]
    namespace: String,
    /// What it is for: publish or read
    #[arg(long, value_name = "ROLE", default_value = "publish", value_parser = role)]
    role: Role,
    /// How long it is good [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = super::duration)]
    expires: Option<Duration>,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Args, Debug)]
struct RevokeArgs {
    /// The token's id, as the list has it
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    database: DatabaseArgs,
}

fn public_url(text: &str) -> Result<String, String> {
    let address = egress::http::Url::parse(text).map_err(|error| error.to_string())?;
    let is_plain = ["http", "https"].contains(&address.scheme())
        && address.host_str().is_some()
        && address.username().is_empty()
        && address.password().is_none()
        && address.query().is_none()
        && address.fragment().is_none();
    if !is_plain {
        return Err("give https:// or http://, a host, and a path if there is one".to_owned());
    }
    Ok(address.as_str().trim_end_matches('/').to_owned())
}

fn role(name: &str) -> Result<Role, String> {
    Role::named(name).ok_or_else(|| super::no_such("role", name, &Role::ALL.map(|(_, name)| name)))
}

pub(crate) fn run(
    args: &RegistryArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    match &args.verb {
        Verb::Add(args) => registries::add(args, home, json_wanted, printer),
        Verb::List => registries::list(home, ask, json_wanted, printer),
        Verb::Rm(args) => registries::remove(args, home, ask, json_wanted, printer),
        Verb::Login(args) => registries::login(args, home, ask, json_wanted, printer),
        Verb::Logout(args) => registries::logout(args, home, ask, json_wanted, printer),
        Verb::Get(args) => registries::get(args, home, ask, json_wanted, printer),
        Verb::Serve(args) => serve(args, home, json_wanted, printer),
        Verb::Check(args) => care::check(args, home, json_wanted, printer),
        Verb::Gc(args) => care::gc(args, home, json_wanted, printer),
        Verb::Backup(args) => care::backup(args, home, json_wanted, printer),
        Verb::Restore(args) => care::restore(args, home, json_wanted, printer),
        Verb::Import(args) => import::run(args, home, ask, json_wanted, printer),
        Verb::Token(args) => match &args.verb {
            TokenVerb::New(args) => new_token(args, home, json_wanted, printer),
            TokenVerb::List(args) => list_tokens(args, home, json_wanted, printer),
            TokenVerb::Revoke(args) => revoke_token(args, home, json_wanted, printer),
        },
    }
}

fn serve(args: &ServeArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to start a runtime").cause(error)
    })?;
    let blobs = open_blobs(&args.stores.blobs, home)?;
    let drain = args.drain.unwrap_or_default();
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    // Those who are being answered are answered before we go.
    let patience = drain + server::web::FAREWELL + Duration::from_secs(5);
    interrupt::end_first_within(patience, move || stop.notify_one());
    runtime.block_on(async {
        let store = open(&args.stores.database, home).await?;
        let settings = Settings {
            log: args.log.log(),
            public_url: args.public_url.clone(),
            ..Settings::default()
        };
        let opened = Registry::open(store, blobs, settings).await;
        let registry = Arc::new(opened.map_err(|error| Failure::of(Exit::Unavailable, &error))?);
        let busy = |error| {
            Failure::new(Exit::Unavailable, format!("failed to listen at {}", args.listen))
                .cause(error)
        };
        let listener = TcpListener::bind(args.listen).await.map_err(busy)?;
        let address = listener.local_addr().map_err(busy)?;
        if json_wanted {
            printer.json(&json!({"url": format!("http://{address}")}))?;
        } else {
            printer.note(&format!("Serving a registry at http://{address}"));
        }
        let following = tokio::spawn(Arc::clone(&registry).follow());
        let app = server::web::router(Arc::clone(&registry));
        let told = Arc::clone(&registry);
        let stopped = async move {
            stopped.notified().await;
            told.close();
            tokio::time::sleep(drain).await;
        };
        server::web::serve(listener, app, stopped).await;
        following.abort();
        registry.store.close().await;
        Ok(Exit::Done)
    })
}

fn new_token(args: &NewArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    if args.namespace.trim().is_empty() {
        return Err(Failure::invalid("a namespace has a name"));
    }
    let (secret, token) = owner::runtime()?.block_on(async {
        let store = open(&args.database, home).await?;
        let made = make_token(&store, Scope::named(&args.namespace), args.role, args.expires).await;
        made.map_err(|error| match error {
            MakeTokenError::Randomness(error) => Failure::of(Exit::Unavailable, &error),
            MakeTokenError::Store(error) => Failure::of(Exit::Unavailable, &error),
        })
    })?;
    if json_wanted {
        let mut document = token_json(&token);
        document["token"] = secret.reveal().into();
        printer.json(&document)?;
    } else {
        printer.note(&format!("Token {} for {}; it is not shown again:", token.id, shown(&token)));
        printer.result(&format!("{}\n", secret.reveal()))?;
    }
    Ok(Exit::Done)
}

fn list_tokens(args: &DatabaseArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let tokens = owner::runtime()?.block_on(async {
        let store = open(args, home).await?;
        store.tokens().await.map_err(|error| Failure::of(Exit::Unavailable, &error))
    })?;
    if json_wanted {
        let tokens: Vec<Value> = tokens.iter().map(token_json).collect();
        printer.json(&json!({"tokens": tokens}))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for token in &tokens {
        let state = match (token.revoked_at, token.is_good(now())) {
            (Some(_), _) => "revoked",
            (None, true) => "good",
            (None, false) => "expired",
        };
        text += &format!("{}  {state:<8} {}\n", token.id, shown(token));
    }
    printer.result(&text)?;
    Ok(Exit::Done)
}

fn revoke_token(args: &RevokeArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let was_there = owner::runtime()?.block_on(async {
        let store = open(&args.database, home).await?;
        let done = store.revoke_token(&args.id, now()).await;
        done.map_err(|error| Failure::of(Exit::Unavailable, &error))
    })?;
    if !was_there {
        let message = format!("there is no token `{}`", args.id);
        return Err(Failure::new(Exit::NotFound, message).hint("`haft registry token list`"));
    }
    if json_wanted {
        printer.json(&json!({"id": args.id, "revoked": true}))?;
    } else {
        printer.note(&format!("Revoked {}", line(&args.id)));
    }
    Ok(Exit::Done)
}

fn token_json(token: &Token) -> Value {
    json!({
        "id": token.id,
        "namespace": token.scope.name(),
        "role": token.role.name(),
        "created": moment(token.created_at),
        "expires": token.expires_at.map(moment),
        "revoked": token.revoked_at.map(moment),
    })
}

fn moment(milliseconds: u64) -> String {
    time::utc(i64::try_from(milliseconds / 1000).unwrap_or(i64::MAX))
}

fn shown(token: &Token) -> String {
    let names = match &token.scope {
        Scope::All => "all names".to_owned(),
        Scope::Namespace(name) => format!("the names of `{}`", line(name)),
    };
    format!("{} of {names}", token.role.name())
}
