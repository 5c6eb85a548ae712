//! `haft mcp`: every installed tool as one MCP server on standard input and output, as clients start one.
//!
//! It only passes lines on: the tools are run by the one host of the home, which is started where there is none, so ten
//! clients do not mean ten copies of each server.

use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use gateway::relay::{Reach, relay};
use gateway::socket::{Told, Want, Wish, connect};
use tokio::net::UnixStream;

use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::output;
use crate::owner;
use crate::printer::{Printer, line};

/// How long a host may take to be there.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is looked whether it is.
const LOOK_AGAIN: Duration = Duration::from_millis(3);

/// What the host says that nobody hears is in this file of the home.
const LOG: &str = "host.log";

#[derive(Args, Debug)]
#[command(
    after_help = "Clients start it and speak to it; `haft connect CLIENT` writes it into their settings."
)]
pub(crate) struct McpArgs {
    /// Serve the tools of this profile alone
    #[arg(long, value_name = "NAME", conflicts_with = "only")]
    profile: Option<String>,
    /// Serve this installed package alone, whose tools keep their own names
    #[arg(long, value_name = "ID")]
    only: Option<String>,
}

pub(crate) fn run(args: &McpArgs, home: &Home, _printer: Printer) -> Outcome {
    output::make_private_folder(home.path())?;
    owner::check_home(home)?;
    let folder = std::env::current_dir().map_err(|error| {
        Failure::new(Exit::Unavailable, "the current folder is gone").cause(error)
    })?;
    let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let session = format!("{}-{}", std::process::id(), started.unwrap_or_default().as_millis());
    let want =
        Want::Speak { profile: args.profile.clone(), only: args.only.clone(), folder, session };
    let wish = Wish { version: env!("CARGO_PKG_VERSION").to_owned(), want };
    let way = Way { home: home.clone(), wish };
    let runtime = owner::runtime()?;
    let passed = runtime.block_on(async {
        let relaying = relay(&way, tokio::io::stdin(), tokio::io::stdout());
        relaying.await
    });
    // Whoever waits on standard input would keep us here for ever.
    runtime.shutdown_background();
    passed.map_err(|error| failure(&error, home))?;
    Ok(Exit::Done)
}

/// The way to the host of a home.
struct Way {
    home: Home,
    wish: Wish,
}

impl Reach for Way {
    async fn reach(&self) -> io::Result<UnixStream> {
        let until = Instant::now() + PATIENCE;
        let mut starting: Option<std::process::Child> = None;
        loop {
            match connect(self.home.path(), &self.wish).await {
                Ok((stream, Told::Welcome)) => return Ok(stream),
                Ok((_, Told::Refused(words))) => {
                    return Err(io::Error::new(io::ErrorKind::NotFound, words));
                }
                // It ends, and a new one takes its place.
                Ok((_, Told::Outdated | Told::Address(_))) => starting = None,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                Err(_) => {}
            }
            if Instant::now() >= until {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match &mut starting {
                None => starting = Some(self.start()?),
                Some(child) => {
                    if let Some(ended) = child.try_wait()? {
                        // One that found another already there ends well.
                        if !ended.success() {
                            return Err(io::Error::other(self.last_words()));
                        }
                        starting = None;
                    }
                }
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

impl Way {
    /// Starts a host that goes on without us.
    fn start(&self) -> io::Result<std::process::Child> {
        let log = std::fs::File::create(self.home.path().join(LOG))?;
        // It is started elsewhere.
        let home = std::path::absolute(self.home.path())?;
        let mut command = Command::new(sandbox::own_program()?);
        command.arg("--home").arg(home).args(["serve", "--background"]);
        self.home.tell_state(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // It belongs to no folder that somebody may want to remove.
        command.current_dir("/");
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            // So that it is found in a list of processes.
            command.arg0("haft").process_group(0);
        }
        command.spawn()
    }

    /// Why a host did not come to be.
    fn last_words(&self) -> String {
        let said = std::fs::read_to_string(self.home.path().join(LOG)).unwrap_or_default();
        let said = said.trim();
        if said.is_empty() { "it ended without a word".to_owned() } else { said.to_owned() }
    }
}

fn failure(error: &io::Error, home: &Home) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => {
            Failure::new(Exit::NotFound, line(&error.to_string())).hint("`haft list` shows what is installed, `haft policy profile list` which profiles there are")
        }
        io::ErrorKind::PermissionDenied => {
            Failure::new(Exit::Denied, "the host of this home runs as somebody else")
        }
        io::ErrorKind::BrokenPipe => Failure::new(Exit::Unavailable, "the client does not listen any more"),
        _ => Failure::new(Exit::Unavailable, "the host of the tools cannot be reached")
            .cause(error)
            .hint(format!("`{}` has what it said", home.path().join(LOG).display())),
    }
}
