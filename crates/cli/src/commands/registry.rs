//! `haft registry`: a registry of one's own. Those of others are in [`registries`].

mod company;
mod import;
mod owner;
mod place;
mod publisher;
mod review;
mod token;

pub(super) use review::channel;
pub(super) use token::{shown as token_shown, until as token_until};

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use registry::client::address::shown;
use serde_json::json;
use server::blobs::BlobError;
use server::service::OpenError;
use server::settings::{Counting, Limits, Quarantine, Reading};
use server::{Registry, Settings};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use trace::Traces;

use company::Company;

use super::care;
use super::collector;
use super::registries;
use super::request_log::Form;
use super::stores::{StoreArgs, folder, open, open_blobs};
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::interrupt;
use crate::printer::{Printer, line};

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
    after_help = "Reading needs no token unless --private says so. Whoever is on this machine is not counted; name a proxy with --trusted-proxy, else all who come through it are counted as one. A password of the database belongs into HAFT_DATABASE_URL, --database-file, PGPASSWORD or ~/.pgpass; `?sslmode=verify-full&sslrootcert=FILE` in the address asks for TLS. Settings of an S3 store are read from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT and the like. Traces are sent to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names.\n\nExamples:\n  haft registry serve\n  haft registry serve --database \"postgres://registry@db/registry?sslmode=verify-full\" --blobs s3://packages --listen 0.0.0.0:7070\n  haft registry serve --private --quarantine --trusted-proxy 10.0.0.0/8"
)]
struct ServeArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7070", value_parser = socket)]
    listen: SocketAddr,
    #[command(flatten)]
    stores: StoreArgs,
    /// Where to answer /metrics, /healthz and /readyz without a token; then /metrics is nowhere else
    #[arg(long, value_name = "ADDR:PORT", value_parser = socket)]
    metrics_listen: Option<SocketAddr>,
    /// How to write on stderr what became of each request
    #[arg(long, value_name = "FORM", default_value = "off")]
    log: Form,
    /// How long to go on answering after being told to stop, while /readyz says no [default: not at all]
    #[arg(long, value_name = "TIME", value_parser = super::duration)]
    drain: Option<Duration>,
    /// The address that others know it by, for answers that must name it [default: the one they ask]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
}

/// A place to listen at.
pub(crate) fn socket(text: &str) -> Result<SocketAddr, String> {
    let message = "write a numeric address and a port, for example 127.0.0.1:8080 or 0.0.0.0:8080";
    let local = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    local.as_deref().unwrap_or(text).parse().map_err(|_| message.to_owned())
}

/// An address that others know the registry by. It is read here, for what is wrong with it may hold a password.
fn public_url(text: &str) -> Result<String, Failure> {
    let address = egress::http::Url::parse(text).ok().filter(|address| {
        ["http", "https"].contains(&address.scheme())
            && address.host_str().is_some()
            && address.username().is_empty()
            && address.password().is_none()
            && address.query().is_none()
            && address.fragment().is_none()
    });
    let address = address.ok_or_else(|| {
        let message = format!("`{}` cannot be the --public-url", line(&shown(text)));
        Failure::invalid(message)
            .hint("give https:// or http://, a host, and a path if there is one")
    })?;
    Ok(address.as_str().trim_end_matches('/').to_owned())
}

#[derive(Args, Debug)]
struct AccessArgs {
    /// Reading needs a token too
    #[arg(long)]
    private: bool,
    /// What is published waits for a reviewer; with names, only in these namespaces
    #[arg(long, value_name = "NAMES", num_args = 0..=1, require_equals = true, value_delimiter = ',', value_parser = quarantined)]
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

/// A namespace whose packages wait. None at all, as of a variable that is empty, must not mean that nothing waits.
fn quarantined(text: &str) -> Result<String, String> {
    let is_name = registry::access::check_namespace(text).is_ok();
    let message = "write names with commas between, or leave them out for all namespaces";
    is_name.then(|| text.to_owned()).ok_or_else(|| message.to_owned())
}

/// A network, or one address.
fn network(text: &str) -> Result<ipnet::IpNet, String> {
    let address = || text.parse::<std::net::IpAddr>().map(ipnet::IpNet::from);
    text.parse().or_else(|_| address()).map_err(|_| "write 10.0.0.0/8 or an address".to_owned())
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
        Verb::Token(args) => token::run(args, home, ask, json_wanted, printer),
        Verb::Owner(args) => owner::run(args, home, ask, json_wanted, printer),
        Verb::Review(args) => review::run(args, home, ask, json_wanted, printer),
        Verb::Publisher(args) => publisher::run(args, home, ask, json_wanted, printer),
    }
}

/// Listens where this flag says.
async fn listen(flag: &str, at: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let busy = |error| {
        Failure::new(Exit::Unavailable, format!("failed to listen at {at}"))
            .cause(error)
            .hint(format!("{flag} ADDR:PORT names another place; port 0 is any that is free"))
    };
    let listener = TcpListener::bind(at).await.map_err(busy)?;
    let address = listener.local_addr().map_err(busy)?;
    Ok((listener, address))
}

/// What is told to whoever serves what is served already.
const BESIDE: &str = "Another server serves this registry too: what is changed at one is found at all within a second; each has its own flags, such as --private, and counts by itself how often somebody asks";

/// Tells a collector where the time of requests goes, if the environment names one.
pub(super) fn traces(name: &str, printer: Printer) -> Result<Option<Traces>, Failure> {
    let Some(collector) = collector::named(name)? else { return Ok(None) };
    let told = Traces::begin(collector, move |text| printer.warn(&line(text)));
    told.map(Some).map_err(|error| Failure::of(Exit::Invalid, &error))
}

fn serve(args: &ServeArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let public_url = args.public_url.as_deref().map(public_url).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to start a runtime").cause(error)
    })?;
    let blobs = open_blobs(&args.stores.blobs, home)?;
    let drain = args.drain.unwrap_or_default();
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    // Those who are being answered are answered before we go.
    let patience = drain + server::web::FAREWELL + Traces::FAREWELL + Duration::from_secs(5);
    interrupt::end_first_within(patience, move || stop.notify_one());
    runtime.block_on(async {
        let store = open(&args.stores.database, home).await?;
        let company = args.stores.database.file(home)?.and_then(|file| Company::join(&file));
        if company.as_ref().is_some_and(|company| company.has_others) {
            printer.note(BESIDE);
        }
        let traces = traces("haft-registry", printer)?;
        let settings = Settings {
            log: args.log.log(),
            traces: traces.clone(),
            public_url,
            counting: args.metrics_listen.map_or(Counting::Here, |_| Counting::Apart),
            // Where it cannot be kept it is made anew.
            index: folder(home).ok().map(|it| it.join("index")),
            ..args.access.settings()
        };
        let opened = Registry::open(store, blobs, settings).await;
        let registry = Arc::new(opened.map_err(|error| match error {
            OpenError::Blob(BlobError::OtherRegistry) => {
                Failure::of(Exit::Denied, &error).hint(care::OTHERS)
            }
            _ => Failure::of(Exit::Unavailable, &error),
        })?);
        let (listener, address) = listen("--listen", args.listen).await?;
        let watching = match args.metrics_listen {
            Some(address) => Some(listen("--metrics-listen", address).await?),
            None => None,
        };
        let metrics = watching.as_ref().map(|(_, address)| format!("http://{address}/metrics"));
        if json_wanted {
            let mut told = json!({"url": format!("http://{address}")});
            if let Some(metrics) = metrics {
                told["metrics"] = metrics.into();
            }
            printer.json(&told)?;
        } else {
            printer.note(&format!("Serving a registry at http://{address}"));
            if let Some(metrics) = metrics {
                printer.note(&format!("Serving its metrics at {metrics}"));
            }
        }
        let following = tokio::spawn(Arc::clone(&registry).follow());
        let looked_at = Arc::clone(&registry);
        // A bucket that is away may come back, so it is served all the same; whoever mistyped its name is told.
        tokio::spawn(async move {
            if let Err(error) = looked_at.blobs.check_alive().await {
                let failure = Failure::of(Exit::Unavailable, &error);
                let why = [&failure.message].into_iter().chain(&failure.causes);
                let why = why.map(String::as_str).collect::<Vec<_>>().join(": ");
                let told = [why].into_iter().chain(failure.hints).collect::<Vec<_>>();
                printer.warn(&line(&told.join("; ")));
            }
        });
        let app = server::web::router(Arc::clone(&registry));
        let told = Arc::clone(&registry);
        let stopped = async move {
            stopped.notified().await;
            told.close();
            tokio::time::sleep(drain).await;
        };
        let proxies = registry.settings.proxies.clone();
        let patience = server::web::Patience::default();
        let watching = watching.map(|(listener, _)| {
            let app = server::web::watching(Arc::clone(&registry));
            tokio::spawn(server::web::serve(listener, app, std::future::pending()))
        });
        server::web::serve_with(listener, app, stopped, patience, &proxies).await;
        // Whoever watches sees the end of it.
        if let Some(watching) = watching {
            watching.abort();
        }
        following.abort();
        registry.store.close().await;
        drop(company);
        if let Some(traces) = traces {
            traces.close().await;
        }
        Ok(Exit::Done)
    })
}
