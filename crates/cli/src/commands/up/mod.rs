//! `haft up`: a registry, the gateway and the console on this machine, with tools to try; the newcomer's command.
//!
//! It does what anybody would type: the examples are signed, tested, published and installed by the ordinary verbs. The registry, with its
//! key and its token, is in a folder that is gone afterwards, and without `--home` so is everything else. A home that was named
//! keeps what was installed in it, and nothing of the registry.

mod desk;
mod examples;
mod lent;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use clap::Args;
use sandbox::held::{self, HeldFolder};
use server::Registry;
use tokio::sync::oneshot;

use self::desk::Desk;
use self::lent::Lent;
use super::serve::{self, ServeArgs};
use super::stores::{BlobArgs, DatabaseArgs, open, open_blobs};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::{self, Home};
use crate::interrupt;
use crate::output;
use crate::owner;
use crate::printer::Printer;
use crate::shell;

/// What the registry is called, and the key that signs its packages.
const NAME: &str = "demo";

#[derive(Args, Debug)]
#[command(
    after_help = "Without --home, everything is in a folder of its own that is gone when this ends. With it, the tools that it installs stay in that home; the registry, the trust in its key and its token go when this ends. `haft serve` serves the tools that you have installed yourself."
)]
pub(crate) struct UpArgs {
    /// Where the gateway and the console listen [default: 127.0.0.1:7171, or any port that is free]
    #[arg(long, value_name = "ADDR:PORT", value_parser = super::registry::socket)]
    listen: Option<SocketAddr>,
}

pub(crate) fn run(args: &UpArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    if let Some(place) = args.listen {
        if !place.ip().is_loopback() {
            let message = "`haft up` is for this machine alone";
            let hint = format!("`haft serve --listen {place}` is for others too");
            return Err(Failure::invalid(message).hint(hint));
        }
        // Nothing is made ready for a place that somebody else has.
        TcpListener::bind(place).map_err(|error| serve::not_free(place, error))?;
    }
    // Whoever stops it before it is ready finds nothing left either.
    let stopping = interrupt::calling_off();
    let temporary = std::env::temp_dir();
    held::sweep(&temporary, home::THROWN_AWAY);
    let folder = HeldFolder::make(&temporary, home::THROWN_AWAY).map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to make a folder to work in").cause(error)
    })?;
    let demo = Home::find(Some(&folder.path().join(home::WITHIN)))?;
    // One that is not typed is nobody's to be filled with examples.
    let home = if home.is_typed() { home.clone() } else { demo.clone() };
    output::make_private_folder(home.path())?;
    output::make_private_folder(demo.path())?;
    // Nothing is made ready in a home that somebody else serves, nor does anybody else begin to meanwhile.
    let seat = owner::runtime()?.block_on(async {
        tokio::select! {
            seat = serve::seat(&home) => seat,
            () = stopping.cancelled() => Err(interrupt::cancelled()),
        }
    })?;
    lent::take_back(&home)?;
    lent::check_free(&home)?;
    let registry = Demo::begin(&demo)?;
    printer.note(&format!("A registry is at {}", registry.url));
    let publisher = Desk { home: &demo, stopping: &stopping, printer };
    publisher.publish(&registry.url)?;
    let owner = Desk { home: &home, stopping: &stopping, printer };
    let lent = if home.path() == demo.path() {
        None
    } else {
        let add = || owner.quietly(&["registry", "add", NAME, &registry.url], None).map(drop);
        Some(Lent::lend(&home, &registry.url, demo.public(NAME)?, printer, add)?)
    };
    owner.install()?;
    if stopping.is_cancelled() {
        return Err(interrupt::cancelled());
    }
    let place = shell::word(&home.path().display().to_string());
    match (&lent, home.unusual()) {
        _ if json_wanted => {}
        (None, _) => printer.note(&format!("All of it is in a folder that is gone when this ends; `export HAFT_HOME={place}` in another terminal lets you look and try there")),
        (Some(_), Some(whole)) => printer.note(&format!("What is installed stays in this home; `export HAFT_HOME={}` in another terminal leads to it", shell::word(&whole))),
        (Some(_), None) => {}
    }
    let listen = args.listen.unwrap_or_else(|| free(7171));
    if args.listen.is_none() && listen.port() == 0 {
        printer.note("Somebody listens at 127.0.0.1:7171, so another port that is free is taken");
    }
    let served = serve::run_in(&ServeArgs::at(listen), &home, Some(seat), json_wanted, printer);
    drop(lent);
    drop(registry);
    drop(folder);
    served
}

/// A port of this machine: the usual one where nobody has it.
fn free(usual: u16) -> SocketAddr {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, usual));
    match TcpListener::bind(usual) {
        Ok(_) => usual,
        Err(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    }
}

/// A registry that is served until this is dropped.
struct Demo {
    url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Demo {
    /// Serves the registry of a home on a thread of its own.
    fn begin(home: &Home) -> Result<Self, Failure> {
        let (told, address) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let home = home.clone();
        let thread = std::thread::spawn(move || {
            let served = serve_registry(&home, &told, stopped);
            if let Err(failure) = served {
                let _ = told.send(Err(failure));
            }
        });
        let gone = || Err(Failure::new(Exit::Bug, "the registry ended before it began"));
        let address = address.recv().unwrap_or_else(|_| gone())?;
        let (stop, thread) = (Some(stop), Some(thread));
        Ok(Self { url: format!("http://{address}"), stop, thread })
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve_registry(
    home: &Home,
    told: &std::sync::mpsc::Sender<Result<SocketAddr, Failure>>,
    stopped: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    let runtime = owner::runtime()?;
    runtime.block_on(async {
        let store = open(&DatabaseArgs::default(), home).await?;
        let blobs = open_blobs(&BlobArgs::default(), home)?;
        let opened = Registry::open(store, blobs, server::Settings::default()).await;
        let registry = Arc::new(opened.map_err(|error| Failure::of(Exit::Unavailable, &error))?);
        let listener = tokio::net::TcpListener::bind(free(7070)).await;
        let busy = |error| Failure::new(Exit::Unavailable, "failed to listen").cause(error);
        let listener = listener.map_err(busy)?;
        let _ = told.send(Ok(listener.local_addr().map_err(busy)?));
        let following = tokio::spawn(Arc::clone(&registry).follow());
        let app = server::web::router(Arc::clone(&registry));
        let stop = async move {
            let _ = stopped.await;
        };
        server::web::serve(listener, app, stop).await;
        following.abort();
        registry.store.close().await;
        Ok(())
    })
}
