//! `haft up`: a registry, the gateway and the console on this machine, with tools to try; the newcomer's command.
//!
//! It does what anybody would type: the examples are signed, tested, published and installed by the ordinary verbs. The registry, with its
//! key and its token, is in a folder that is gone afterwards, and without `--home` so is everything else. A home that was named
//! keeps what was installed in it, and nothing of the registry.

mod examples;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::Args;
use registry::client::Registries;
use server::Registry;
use tokio::sync::oneshot;

use self::examples::{ALL, Example, INSTALLED};
use super::serve::{self, ServeArgs};
use super::stores::{BlobArgs, DatabaseArgs, open, open_blobs};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::{self, Home};
use crate::output;
use crate::owner;
use crate::printer::Printer;
use crate::remote;
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
    let folder = tempfile::Builder::new().prefix(home::THROWN_AWAY).tempdir().map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to make a folder to work in").cause(error)
    })?;
    let demo = Home::find(Some(&folder.path().join("home")))?;
    // One that is not typed is nobody's to be filled with examples.
    let home = if home.is_typed() { home.clone() } else { demo.clone() };
    check_free(&home)?;
    output::make_private_folder(home.path())?;
    output::make_private_folder(demo.path())?;
    // Nothing is made ready in a home that somebody else serves, nor does anybody else begin to meanwhile.
    let seat = owner::runtime()?.block_on(serve::seat(&home))?;
    let registry = Demo::begin(&demo)?;
    printer.note(&format!("A registry is at {}", registry.url));
    let publisher = Desk { home: &demo, printer };
    publisher.publish(&registry.url)?;
    let owner = Desk { home: &home, printer };
    let lent = if home.path() == demo.path() { None } else { Some(owner.lend(&demo, &registry)?) };
    owner.install()?;
    if lent.is_none() && !json_wanted {
        let place = shell::word(&home.path().display().to_string());
        printer.note(&format!("All of it is in a folder that is gone when this ends; `export HAFT_HOME={place}` in another terminal lets you look and try there"));
    }
    let listen = args.listen.unwrap_or_else(|| free(7171));
    let served = serve::run_in(&ServeArgs::at(listen), &home, Some(seat), json_wanted, printer);
    drop(lent);
    drop(registry);
    drop(folder);
    served
}

/// Refuses a home that has something of the owner's under the name of the demonstration.
fn check_free(home: &Home) -> Result<(), Failure> {
    home.check_free(NAME)?;
    let list = Registries::load(home.path()).map_err(|error| remote::list_failure(&error))?;
    if list.get(NAME).is_some() {
        let message = format!("this home has a registry `{NAME}` already");
        return Err(Failure::new(Exit::Conflict, message).hint(format!(
            "`haft registry rm {NAME}` forgets it; `haft up` without --home has a folder of its own"
        )));
    }
    Ok(())
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

/// Where the ordinary verbs are typed.
struct Desk<'d> {
    home: &'d Home,
    printer: Printer,
}

/// What a home that was named has of the registry, until this is dropped: its address, and trust in its key.
struct Lent<'l>(&'l Desk<'l>);

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let Desk { home, printer } = self.0;
        let forgotten = Registries::change(home.path(), |list| list.remove(NAME));
        let forgotten = forgotten.map_err(|error| remote::list_failure(&error));
        for failure in [forgotten.err(), home.forget(NAME).err()].into_iter().flatten() {
            printer.failure(&failure);
        }
    }
}

impl Desk<'_> {
    /// Signs, tests and publishes the examples.
    fn publish(&self, url: &str) -> Result<(), Failure> {
        self.quietly(&["key", "new", NAME, "--no-passphrase"], None)?;
        let token = self.quietly(&["registry", "token", "new", "--namespace", "*", "-q"], None)?;
        self.quietly(&["registry", "add", NAME, url], None)?;
        self.quietly(&["registry", "login", NAME], Some(token.trim()))?;
        for example in &ALL {
            let folder = self.home.path().join("examples").join(example.name);
            write(example, &folder)?;
            let folder = folder.display().to_string();
            self.quietly(&["publish", &folder, "--registry", NAME, "--key", NAME], None)?;
            self.printer.note(&format!("Signed, tested and published {}", example.id));
        }
        Ok(())
    }

    /// Has the home know the registry and trust its key, for as long as it is there.
    fn lend(&self, demo: &Home, registry: &Demo) -> Result<Lent<'_>, Failure> {
        self.quietly(&["registry", "add", NAME, &registry.url], None)?;
        let lent = Lent(self);
        self.home.trust(NAME, demo.public(NAME)?)?;
        Ok(lent)
    }

    /// Installs the examples that are not installed yet.
    fn install(&self) -> Result<(), Failure> {
        for example in &ALL[..INSTALLED] {
            if self.quietly(&["status", example.id], None).is_err() {
                self.quietly(&["install", example.id, "--yes"], None)?;
                self.printer.note(&format!("Installed {}", example.id));
            }
        }
        Ok(())
    }

    /// Runs a verb; what it prints comes back, and what goes wrong is told in its words.
    fn quietly(&self, words: &[&str], typed: Option<&str>) -> Result<String, Failure> {
        use std::io::Write;
        let failed = |error: std::io::Error| {
            Failure::new(Exit::Unavailable, format!("failed to run `haft {}`", words[0]))
                .cause(error)
        };
        let mut command = Command::new(sandbox::own_program().map_err(failed)?);
        command.arg("--home").arg(self.home.path()).arg("--non-interactive").args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // What the newcomer has set for their own home is not meant.
        for name in ["HAFT_HOME", "HAFT_DATABASE_URL", "REGISTRY_BASE_URL", "REGISTRY_TOKEN"] {
            command.env_remove(name);
        }
        let mut child = command.spawn().map_err(failed)?;
        if let (Some(mut stdin), Some(typed)) = (child.stdin.take(), typed) {
            let _ = stdin.write_all(typed.as_bytes());
        }
        let ended = child.wait_with_output().map_err(failed)?;
        if ended.status.success() {
            return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
        Err(Failure::new(Exit::Unavailable, format!("`haft {}` failed", words.join(" ")))
            .cause(said))
    }
}

/// Writes an example into a folder.
fn write(example: &Example, folder: &Path) -> Result<(), Failure> {
    for (path, text) in example.files {
        let path = folder.join(path);
        let failed = |error: std::io::Error| {
            Failure::new(Exit::Unavailable, format!("failed to write `{}`", path.display()))
                .cause(error)
        };
        std::fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
        std::fs::write(&path, text).map_err(failed)?;
    }
    Ok(())
}
