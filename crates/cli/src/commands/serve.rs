//! `haft serve`: the host of the home, for clients that start `haft mcp`, and over HTTP.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use gateway::socket::{Seat, Stay, Told, Want, Wish, connect};
use gateway::token::{Role, Tokens};
use gateway::web::{Agents, Settings};
use gateway::{Gateway, Lanes, Options, socket, web};
use host::records::whole;
use host::{CancellationToken, Host, Records, fleet};
use serde_json::json;
use tokio::net::TcpListener;

use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::steward::Owner;
use crate::{interrupt, lean, output, owner, walls};

/// How long a host that was started for a client stays when nobody needs it.
const IDLE: Duration = Duration::from_mins(10);

/// How long another host may take to make room.
const HANDOVER: Duration = Duration::from_secs(15);

/// How long everything may take to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// The key that states are sealed with, in the home.
const KEY: &str = "gateway.key";

/// The tokens, in the home.
const TOKENS: &str = "tokens.json";

#[derive(Args, Debug)]
#[command(
    after_help = "Agents show a token: `haft token new NAME` makes one. Whoever asks for another host, or from a page of another origin, is refused.\n\nExamples:\n  haft serve\n  haft serve --listen 127.0.0.1:7171\n  haft serve --listen 0.0.0.0:7171 --host tools.example.com"
)]
pub(crate) struct ServeArgs {
    /// Where to listen
    #[arg(
        long,
        value_name = "ADDR:PORT",
        default_value = "127.0.0.1:7171",
        value_parser = super::registry::socket,
        conflicts_with = "background"
    )]
    listen: SocketAddr,
    /// A further name that it is known by, or an origin (https://…) whose pages are let in; may be repeated
    #[arg(long, value_name = "NAME", value_parser = name)]
    host: Vec<String>,
    /// Where the console is, on this machine alone [default: beside the gateway, or at a free port where others reach that]
    #[arg(long, value_name = "ADDR:PORT", value_parser = on_this_machine, conflicts_with = "background")]
    console: Option<SocketAddr>,
    /// Let whoever is on this machine call tools without a token
    #[arg(long, conflicts_with = "background")]
    without_token: bool,
    /// Serve those who start `haft mcp` alone, and end when nobody needs it; `haft mcp` starts it
    #[arg(long, hide = true)]
    background: bool,
    /// After how many seconds without anybody that ends
    #[arg(long, hide = true, value_name = "SECONDS", requires = "background")]
    idle: Option<u64>,
}

impl ServeArgs {
    /// Serves at a place, and is as usual otherwise.
    pub(super) fn at(listen: SocketAddr) -> Self {
        let (without_token, background) = (false, false);
        let (host, console, idle) = (Vec::new(), None, None);
        Self { listen, host, console, without_token, background, idle }
    }
}

/// A place that nobody else reaches.
fn on_this_machine(text: &str) -> Result<SocketAddr, String> {
    let place = super::registry::socket(text)?;
    if place.ip().is_loopback() {
        return Ok(place);
    }
    Err("the console is for this machine alone: write 127.0.0.1:PORT".to_owned())
}

/// A name of a machine, or an origin.
fn name(text: &str) -> Result<String, String> {
    let origin = text.strip_prefix("https://").or(text.strip_prefix("http://"));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:[]".contains(&byte);
    let name = origin.unwrap_or(text);
    if name.is_empty() || !name.bytes().all(is_plain) {
        return Err(
            "write a name such as tools.example.com, or an origin such as https://example.com"
                .to_owned(),
        );
    }
    Ok(text.to_owned())
}

/// The tokens of a home.
pub(crate) fn tokens(home: &Home) -> Tokens {
    Tokens::at(home.path().join(TOKENS))
}

pub(crate) fn run(args: &ServeArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    run_in(args, home, None, json_wanted, printer)
}

/// The same, in a seat that is taken already, or in none yet.
pub(super) fn run_in(
    args: &ServeArgs,
    home: &Home,
    taken: Option<Seat>,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    output::make_private_folder(home.path())?;
    if args.background {
        // It does not end with the terminal of whoever needed it first.
        #[cfg(unix)]
        let _ = rustix::process::setsid();
    }
    if args.without_token && !args.listen.ip().is_loopback() {
        let message = "--without-token is for this machine alone, and others reach that address";
        return Err(Failure::invalid(message).hint("`haft token new NAME` makes a token"));
    }
    let failed = |error| Failure::new(Exit::Unavailable, "failed to start a runtime").cause(error);
    // What is served is served by threads of its own.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(1).build();
    let (runtime, lanes) = (runtime.map_err(failed)?, Lanes::open(threads()).map_err(failed)?);
    let lanes = Arc::new(lanes);
    // Nobody makes room for somebody who could not serve.
    let (settings, launcher) = (owner::settings(home)?, walls::launcher()?);
    let listener = if args.background {
        None
    } else {
        Some(runtime.block_on(listen(args, home, taken.is_none()))?)
    };
    let seat = match taken {
        Some(seat) => Some(seat),
        // Somebody else serves just as well.
        None if args.background => take(home)?,
        None => Some(runtime.block_on(seat(home))?),
    };
    let Some(seat) = seat.map(Arc::new) else { return Ok(Exit::Done) };
    let records = owner::records(home, &runtime)?;
    records.audit.sit_when_busy();
    let vault = owner::vault_of_service(home)?;
    let host = Host::new(settings, launcher, vault, Arc::clone(&records));
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    interrupt::end_first_within(PATIENCE, move || stopped.cancel());
    // Whoever made something ready for us may have been told meanwhile.
    if interrupt::was_told_to_stop() {
        stop.cancel();
    }
    runtime.block_on(async {
        let traces = super::registry::traces("haft-gateway", printer)?;
        let steward = Arc::new(Owner { home: home.clone(), printer });
        let key = match records.state.shared() {
            Some(shared) => shared.seal_key().await.map_err(|error| owner::of_state(&error))?,
            None => key(home)?,
        };
        let options = Options { key, traces: traces.clone() };
        let gateway = Gateway::open(steward, host, options).await;
        let gateway = gateway.map_err(|words| Failure::new(Exit::Unavailable, words))?;
        let listening = seat.listen().map_err(|error| {
            Failure::new(Exit::Unavailable, "failed to listen for clients of this home")
                .cause(error)
        })?;
        if let Some((_, address)) = &listener {
            place_console(args, *address, &gateway, &lanes, &stop).await?;
        }
        let ended = CancellationToken::new();
        let sending = records.state.is_shared().then(|| send_log(records, &ended, printer));
        let idle = args.idle.map_or(IDLE, Duration::from_secs);
        let stay = if args.background { Stay::While(idle) } else { Stay::Always };
        let near = tokio::spawn(socket::serve(
            Arc::clone(&gateway),
            Arc::clone(&seat),
            listening,
            Arc::clone(&lanes),
            stay,
            stop.clone(),
        ));
        let lean = tokio::spawn(lean::stay_lean());
        if let Some((listener, address)) = listener {
            let has_console = is_beside(args, address);
            let (hosts, agents) = (args.host.clone(), Some(agents(args, home, printer)?));
            let settings = Settings { listening: address, hosts, agents, has_console };
            tell((home, address), args, &settings, gateway.sign_in_link(), json_wanted, printer)?;
            let stopped = stop.clone();
            web::serve(Arc::clone(&gateway), listener, settings, &lanes, async move {
                stopped.cancelled().await;
            })
            .await;
            stop.cancel();
        }
        let _ = near.await;
        gateway.console_closed().await;
        lean.abort();
        gateway.close().await;
        ended.cancel();
        if let Some(sending) = sending {
            let _ = sending.await;
        }
        if let Some(traces) = traces {
            traces.close().await;
        }
        drop(seat);
        Ok(Exit::Done)
    })
}

/// Sends the log of this replica to where those of all are, beside everything else.
fn send_log(
    records: Arc<Records>,
    ended: &CancellationToken,
    printer: Printer,
) -> tokio::task::JoinHandle<()> {
    tokio::spawn(fleet::keep_sending(records, ended.clone(), move |went| match went {
        Ok(()) => printer.note("The log of this replica is sent to the shared state again"),
        Err(words) => printer.warn(&format!("{}; it is tried again", line(&words))),
    }))
}

/// Nobody can listen there.
pub(super) fn not_free(place: SocketAddr, error: std::io::Error) -> Failure {
    Failure::new(Exit::Unavailable, format!("failed to listen at {place}"))
        .cause(error)
        .hint("--listen ADDR:PORT names another place; port 0 is any that is free")
}

/// Listens where it was said, and where that is. Where that cannot be because whoever serves the home does, that is said.
async fn listen(
    args: &ServeArgs,
    home: &Home,
    may_be_served: bool,
) -> Result<(TcpListener, SocketAddr), Failure> {
    let listener = match TcpListener::bind(args.listen).await {
        Ok(listener) => listener,
        Err(error) => {
            let wish = Wish { version: env!("CARGO_PKG_VERSION").to_owned(), want: Want::Place };
            if may_be_served
                && let Ok((_, Told::Refused(words))) = connect(home.path(), &wish).await
            {
                return Err(served(&words));
            }
            return Err(not_free(args.listen, error));
        }
    };
    let address = listener.local_addr().unwrap_or(args.listen);
    Ok((listener, address))
}

/// Whether the console is beside what agents are told.
fn is_beside(args: &ServeArgs, address: SocketAddr) -> bool {
    args.console.is_none() && address.ip().is_loopback()
}

/// Says where the console is, or opens it where only whoever is on this machine reaches it; before anybody can ask for it.
async fn place_console(
    args: &ServeArgs,
    address: SocketAddr,
    gateway: &Arc<Gateway>,
    lanes: &Arc<Lanes>,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    if is_beside(args, address) {
        gateway.has_console_at(address);
        return Ok(());
    }
    let place = args.console.unwrap_or((Ipv4Addr::LOCALHOST, 0).into());
    let failed = |error| {
        Failure::new(Exit::Unavailable, format!("failed to listen at {place} for the console"))
            .cause(error)
            .hint("--console ADDR:PORT names another place; port 0 is any that is free")
    };
    let listener = TcpListener::bind(place).await.map_err(failed)?;
    web::open_console(gateway, listener, lanes, stop.clone()).map_err(failed)
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8)
}

/// Takes the seat of the host, where nobody has it.
fn take(home: &Home) -> Result<Option<Seat>, Failure> {
    Seat::take(home.path()).map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to become the host of this home").cause(error)
    })
}

/// Takes the seat of the host; one that was started for clients makes room.
pub(super) async fn seat(home: &Home) -> Result<Seat, Failure> {
    if let Some(seat) = take(home)? {
        return Ok(seat);
    }
    let wish = Wish { version: env!("CARGO_PKG_VERSION").to_owned(), want: Want::Retire };
    let told = connect(home.path(), &wish).await;
    if let Ok((_, Told::Refused(words))) = &told {
        return Err(served(words));
    }
    let until = tokio::time::Instant::now() + HANDOVER;
    while matches!(told, Ok((_, Told::Welcome))) && tokio::time::Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if let Some(seat) = take(home)? {
            return Ok(seat);
        }
    }
    Err(Failure::new(Exit::Conflict, "another process serves this home, and does not make room"))
}

/// Somebody serves the home, and goes on.
fn served(words: &str) -> Failure {
    Failure::new(Exit::Conflict, line(words)).hint("end that one first")
}

fn agents(args: &ServeArgs, home: &Home, printer: Printer) -> Result<Agents, Failure> {
    let folder = std::env::current_dir().map_err(|error| {
        Failure::new(Exit::Unavailable, "the current folder is gone").cause(error)
    })?;
    Ok(Agents {
        tokens: tokens(home).telling(move |error| {
            printer.alarm(&format!("no token lets anybody in: {}", line(&whole(error))));
        }),
        without_token: args.without_token.then_some(Role::Agent),
        folder,
    })
}

fn tell(
    (home, address): (&Home, SocketAddr),
    args: &ServeArgs,
    settings: &Settings,
    sign_in: Option<String>,
    json_wanted: bool,
    printer: Printer,
) -> Result<(), Failure> {
    let url = format!("http://{address}/mcp");
    let tokens = settings.agents.as_ref().map(|agents| &agents.tokens);
    tokens.into_iter().for_each(Tokens::check);
    if json_wanted {
        let home = home.path().display().to_string();
        return printer.json(&json!({ "mcp": url, "console": sign_in, "home": home }));
    }
    printer.note(&format!("Serving the tools of this home at {url}"));
    if !address.ip().is_loopback() {
        let names = if args.host.is_empty() {
            String::new()
        } else {
            format!(", as {}", args.host.join(", "))
        };
        printer.note(&format!("Others reach it by its address{names}; --host NAME adds a name"));
    }
    if let Some(sign_in) = sign_in {
        printer.note(&format!("Your console, for the next ten minutes and once: {sign_in}"));
        printer.note("`haft console` prints another such address");
    }
    let is_without = |tokens: &Tokens| tokens.all().is_ok_and(|all| all.is_empty());
    if tokens.is_some_and(is_without) && !args.without_token {
        printer.note("Agents show a token, and there is none yet: `haft token new NAME` makes one");
    }
    Ok(())
}

/// The key that states are sealed with, which is made the first time.
fn key(home: &Home) -> Result<[u8; 32], Failure> {
    let path = home.path().join(KEY);
    let broken = || Failure::new(Exit::Invalid, format!("`{}` holds no key", path.display()));
    if !path.exists() {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|_| Failure::new(Exit::Unavailable, "there is no randomness"))?;
        output::keep_secret(&path, &bytes)?;
    }
    let bytes = std::fs::read(&path).map_err(|error| Failure::unread(path.display(), error))?;
    bytes.try_into().map_err(|_| broken().hint("remove it, and a new one is made"))
}
