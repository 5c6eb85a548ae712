//! `haft registry`: a registry of one's own.

mod owner;
mod place;
mod publisher;
mod review;
mod token;

pub(super) use review::channel;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::json;
use server::settings::{Limits, Quarantine, Reading};
use server::{Blobs, Registry, Settings, Store};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::interrupt;
use crate::printer::Printer;

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
    Token(token::TokenArgs),
    /// Say who else may publish a tool
    Owner(owner::OwnerArgs),
    /// See what waits for a reviewer, approve it or refuse it
    Review(review::ReviewArgs),
    /// Say whose builds are trusted to publish without a token that is kept
    Publisher(publisher::PublisherArgs),
}

#[derive(Args, Debug)]
#[command(
    after_help = "Reading needs no token unless --private says so. Whoever is on this machine is not counted: name a proxy that is with --trusted-proxy. Settings of an S3 store are read from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT and the like.\n\nExamples:\n  haft registry serve\n  haft registry serve --database postgres://registry@db/registry --blobs s3://packages --listen 0.0.0.0:7070\n  haft registry serve --private --quarantine --trusted-proxy 10.0.0.0/8"
)]
struct ServeArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7070")]
    listen: SocketAddr,
    #[command(flatten)]
    database: DatabaseArgs,
    /// Where the package files are: a folder or `s3://bucket/prefix` [default: registry/blobs in the home]
    #[arg(long, value_name = "PLACE")]
    blobs: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
}

#[derive(Args, Debug)]
struct AccessArgs {
    /// Reading needs a token too
    #[arg(long)]
    private: bool,
    /// What is published waits for a reviewer; with names, only in these namespaces
    #[arg(long, value_name = "NAMES", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    quarantine: Option<Vec<String>>,
    /// A proxy, or its network, that says truly for whom it asks; may be repeated
    #[arg(long, value_name = "CIDR", value_parser = network)]
    trusted_proxy: Vec<ipnet::IpNet>,
    /// How often one token, or one address without a token, may read in a minute; 0 is without limit
    #[arg(long, value_name = "N", default_value = "6000")]
    reads_per_minute: u32,
    /// How often one token may publish or change something in a minute
    #[arg(long, value_name = "N", default_value = "600")]
    changes_per_minute: u32,
    /// How many tokens that are not good one address may show in a minute
    #[arg(long, value_name = "N", default_value = "30")]
    failures_per_minute: u32,
}

impl AccessArgs {
    fn settings(&self) -> Settings {
        Settings {
            reading: if self.private { Reading::Tokens } else { Reading::Everybody },
            quarantine: match self.quarantine.as_deref() {
                None => Quarantine::Nobody,
                Some([]) => Quarantine::Everybody,
                Some(names) => Quarantine::Namespaces(names.iter().cloned().collect()),
            },
            rates: Limits {
                reads: self.reads_per_minute,
                changes: self.changes_per_minute,
                failures: self.failures_per_minute,
            },
            proxies: self.trusted_proxy.clone(),
            ..Settings::default()
        }
    }
}

/// A network, or one address.
fn network(text: &str) -> Result<ipnet::IpNet, String> {
    let address = || text.parse::<std::net::IpAddr>().map(ipnet::IpNet::from);
    text.parse().or_else(|_| address()).map_err(|_| "write 10.0.0.0/8 or an address".to_owned())
}

#[derive(Args, Debug)]
pub(crate) struct DatabaseArgs {
    /// The database: a file or `postgres://…` [default: registry/registry.db in the home]
    #[arg(long, value_name = "PLACE")]
    database: Option<String>,
}

pub(crate) fn run(
    args: &RegistryArgs,
    home: &Home,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    match &args.verb {
        Verb::Serve(args) => serve(args, home, json_wanted, printer),
        Verb::Token(args) => token::run(args, home, json_wanted, printer),
        Verb::Owner(args) => owner::run(args, json_wanted, printer),
        Verb::Review(args) => review::run(args, json_wanted, printer),
        Verb::Publisher(args) => publisher::run(args, home, json_wanted, printer),
    }
}

fn serve(args: &ServeArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to start a runtime").cause(error)
    })?;
    let blobs = match &args.blobs {
        Some(place) => Blobs::open(place, &settings()),
        None => Blobs::folder(&folder(home)?.join("blobs")),
    };
    let blobs = blobs.map_err(|error| Failure::of(Exit::Unavailable, &error))?;
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    // Those who are being answered are answered before we go.
    interrupt::end_first(move || stop.notify_one());
    runtime.block_on(async {
        let store = open(&args.database, home).await?;
        let opened = Registry::open(store, blobs, args.access.settings()).await;
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
        let proxies = registry.settings.proxies.clone();
        let patience = server::web::Patience::default();
        server::web::serve_with(listener, app, stopped.notified(), patience, &proxies).await;
        following.abort();
        registry.store.close().await;
        Ok(Exit::Done)
    })
}

pub(crate) async fn open(args: &DatabaseArgs, home: &Home) -> Result<Store, Failure> {
    let opened = match &args.database {
        Some(place) => Store::open(place).await,
        None => Store::file(&folder(home)?.join("registry.db")).await,
    };
    opened.map_err(|error| Failure::of(Exit::Unavailable, &error))
}

/// The folder of the registry in the home, which is for its owner alone.
fn folder(home: &Home) -> Result<std::path::PathBuf, Failure> {
    let folder = home.path().join("registry");
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder).map_err(|error| {
        let message = format!("failed to make `{}`", folder.display());
        Failure::new(Exit::Unavailable, message).cause(error)
    })?;
    Ok(folder)
}

/// What the environment says of an S3 store.
fn settings() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with("AWS_"))
        .collect()
}
