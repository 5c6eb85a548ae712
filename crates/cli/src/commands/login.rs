//! `haft login` and `haft logout`: signing in to servers and agents on the network, and for tools that run here.

mod browser;
mod desk;
mod device;
mod granted;
mod named;
mod refused;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use egress::http::Url;
use host::login::metadata::is_scope;
use host::login::scopes::compared;
use host::login::{Kept, Logins};
use host::{Host, Tool};
use install::Installed;
use manifest::dialect::Dialect;
use serde_json::json;

use self::desk::Desk;
use self::refused::failure;
use super::call;
use super::install::has_server;
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::load::Loading;
use crate::names::{self, Typed};
use crate::printer::{Printer, line};
use crate::signing_out::{give_back, sign_out};
use crate::tools::Found;
use crate::{installed, owner, shell, tools, walls};

#[derive(Args, Debug)]
#[command(
    after_help = "The page to sign in at is printed, and opened in the browser on a terminal. With --device it is a page for a browser on any machine, and the code to type there. What comes back is kept sealed in your vault, for this package alone.\n\nA server or an agent on the network says where to sign in, and is told the token. Nobody says it for a tool that runs here: name the authorization server with --issuer, and the tool is given the token as one of its secrets.\n\nExamples:\n  haft login acme-files\n  haft login --from path/to/package\n  haft login --from path/to/package --scope files:write\n  haft login --from path/to/package --client-id my-client --client-secret --no-browser\n  haft login acme-files --device\n  haft login acme.report --issuer https://login.acme.example --scope reports:read"
)]
pub(crate) struct LoginArgs {
    /// Sign in for what is at this path, and is not installed: a manifest, a folder, an archive
    #[arg(long, value_name = "PATH")]
    from: Option<PathBuf>,
    /// The installed package, by its id; with --from: the package there, where there are several
    #[arg(value_name = "NAME", required_unless_present = "from")]
    name: Option<String>,
    /// Ask for this scope, besides those that were granted before; may be repeated
    #[arg(long, value_name = "SCOPE", value_parser = scope)]
    scope: Vec<String>,
    /// Sign in at this authorization server, where nobody on the network says which one it is
    #[arg(long, value_name = "URL", value_parser = named::address)]
    issuer: Option<Url>,
    /// Give the package the token as this secret of its [default: the only one that it declares]
    #[arg(long, value_name = "NAME", requires = "issuer")]
    secret: Option<String>,
    /// What the token is for, where that authorization server wants to know
    #[arg(long, value_name = "URL", value_parser = named::address, requires = "issuer")]
    resource: Option<Url>,
    /// What you are registered as at the authorization server, or the URL of a document about it
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Ask for the secret of that registration, or read it from the first line of standard input
    #[arg(long, requires = "client_id")]
    client_secret: bool,
    /// Listen on this port, where the registration names one [default: one that is free]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Have the browser sent there, where an application of yours takes the answer: it goes on standard input
    #[arg(long, value_name = "URL", value_parser = named::address, requires = "no_browser", conflicts_with = "port")]
    redirect: Option<Url>,
    /// Agree that this host of the authorization server is reached; may be repeated
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Open no browser and wait for none: read from standard input where it was sent to
    #[arg(long)]
    no_browser: bool,
    /// Sign in at a browser on any machine: a page is printed, and a code to type there
    #[arg(long, conflicts_with_all = ["no_browser", "port"])]
    device: bool,
    /// How long to wait for you [default: 5m; with --device: as long as the code holds]
    #[arg(long, value_name = "TIME", value_parser = super::duration)]
    timeout: Option<Duration>,
    /// The dialect, when it is not to be recognised
    #[arg(long, value_name = "DIALECT", value_parser = super::dialect, requires = "from")]
    dialect: Option<Dialect>,
    /// The id of a tools.json [default: its folder's name]
    #[arg(long, value_name = "ID", requires = "from")]
    id: Option<String>,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  haft logout install-manifest:acme-files\n  haft logout --from path/to/package"
)]
pub(crate) struct LogoutArgs {
    /// The package, with its dialect: install-manifest:acme-files
    #[arg(value_name = "PACKAGE", value_parser = names::package, required_unless_present = "from")]
    package: Option<Typed>,
    /// Sign out of what is at this path instead
    #[arg(long, value_name = "PATH", conflicts_with = "package")]
    from: Option<PathBuf>,
}

/// One scope, as it is typed.
fn scope(text: &str) -> Result<String, String> {
    if is_scope(text) { Ok(text.to_owned()) } else { Err("a scope is one word".to_owned()) }
}

/// What is signed in for.
struct Meant<'a> {
    found: Found,
    /// Which of them.
    name: Option<&'a str>,
    /// What is left to be done once that is done.
    next: Option<String>,
}

impl LoginArgs {
    /// What is at a path, or an installed package: one whose server nobody has approved of yet, too, since it may say what it
    /// offers to those alone who are signed in.
    fn meant(&self, home: &Home, printer: Printer) -> Result<Meant<'_>, Failure> {
        let name = self.name.as_deref();
        if let Some(from) = &self.from {
            let loading = Loading { dialect: self.dialect, id: self.id.as_deref() };
            let found = tools::at(from, loading, home, printer)?;
            found.check_id(self.id.as_deref(), from)?;
            return Ok(Meant { found, name, next: None });
        }
        let at = installed::home(home);
        let named = installed::named(name.unwrap_or_default(), &at)?;
        let Some(pinned) = &named.pinned else {
            let message = format!("`{}` is not installed", line(&named.id));
            return Err(Failure::new(Exit::NotFound, message));
        };
        let there = Installed::load(&at, pinned)?;
        let is_unapproved = there.record.surface.is_none() && has_server(&there.package);
        let next = is_unapproved.then(|| {
            let id = shell::word(&named.id);
            format!("It is called once you have approved what its server offers: `haft approve surface {id}`")
        });
        let mut tool = installed::unasked(there, &named)?;
        // One that waits for this, and is switched off until then, can be signed in for: nothing of it is called.
        tool.package.enabled = true;
        let found = Found::installed(tool);
        Ok(Meant { found, name: None, next })
    }

    /// The command that signs in for the same package again.
    fn command(&self, package: &str) -> String {
        let device = if self.device { " --device" } else { "" };
        match &self.from {
            Some(from) => {
                format!("haft login --from {}{device}", shell::word(&from.display().to_string()))
            }
            None => format!("haft login {}{device}", shell::word(package)),
        }
    }
}

pub(crate) fn run(
    args: &LoginArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    owner::check_presence(home, ask)?;
    let Meant { found, name, next } = args.meant(home, printer)?;
    let tool = choose(&found.tools, name)?;
    let runtime = owner::runtime()?;
    let records = owner::records(home, &runtime)?;
    let vault = owner::vault(home, ask)?;
    let host = Host::new(call::settings(home)?, walls::launcher()?, vault, records);
    let desk = Desk { args, ask, printer, json_wanted };
    let kept = runtime.block_on(Box::pin(desk.sign_in(&host, tool)))?;
    let package = tool.package.canonical_id();
    let keeping = host.logins().keep(&package, &kept);
    let before = runtime.block_on(keeping).map_err(|error| failure(&error))?;
    // Some servers end all that was given to a client together, so only another client's tokens go back.
    let is_other = |one: &Kept| one.client.id != kept.client.id || one.issuer != kept.issuer;
    if let Some(before) = before.filter(is_other) {
        give_back(&before, home, &runtime, printer);
    }
    let difference = compared(&tool.package, &kept.scopes);
    if json_wanted {
        printer.json(&json!({
            "package": package,
            "resource": kept.audience.resource(),
            "secret": kept.audience.secret(),
            "issuer": kept.issuer,
            "scopes": kept.scopes,
            "renews": kept.refresh.is_some(),
            "missing": granted::missing(&difference),
            "beyond": difference.beyond,
        }))?;
    } else {
        let scopes = words(&kept.scopes);
        printer.note(&format!("Signed in for {} (scopes: {scopes})", line(&package)));
        if let Some(secret) = kept.audience.secret() {
            printer.note(&format!("It is given the token as its secret {}", line(secret)));
        }
        granted::tell(&difference, &args.command(&package), printer);
        if let Some(words) = next {
            printer.note(&words);
        }
    }
    Ok(Exit::Done)
}

pub(crate) fn logout(args: &LogoutArgs, home: &Home, ask: Ask, printer: Printer) -> Outcome {
    let package = match (&args.package, &args.from) {
        (Some(package), _) => package.whole(home)?,
        (None, Some(path)) => {
            let found = tools::at(path, Loading { dialect: None, id: None }, home, printer)?;
            choose(&found.tools, None)?.package.canonical_id()
        }
        (None, None) => return Err(Failure::invalid("no package is named")),
    };
    let logins = Logins::new(owner::vault(home, ask)?, home.path());
    let runtime = owner::runtime()?;
    let signed_out = sign_out(&package, &logins, home, &runtime, printer);
    if !signed_out.map_err(|error| failure(&error))? {
        let message = format!("nobody is signed in for {}", line(&package));
        return Err(Failure::new(Exit::NotFound, message));
    }
    printer.note(&format!("Signed out of {}", line(&package)));
    Ok(Exit::Done)
}

/// The package that is meant.
fn choose<'t>(tools: &'t [Tool], name: Option<&str>) -> Result<&'t Tool, Failure> {
    let is_meant = |tool: &&Tool| name.is_none_or(|name| tool.is_called(name));
    let meant: Vec<_> = tools.iter().filter(is_meant).collect();
    let ids = |tools: &[&Tool]| {
        let ids: Vec<_> = tools.iter().map(|tool| tool.package.canonical_id()).collect();
        line(&ids.join(", "))
    };
    match meant.as_slice() {
        [tool] => Ok(tool),
        [] => {
            let all: Vec<_> = tools.iter().collect();
            Err(Failure::new(Exit::NotFound, "there is no such package")
                .hint(format!("there is {}", ids(&all))))
        }
        several => Err(Failure::new(Exit::Conflict, "more than one package is meant")
            .hint(format!("name one: {}", ids(several)))),
    }
}

/// Scopes as a person sees them.
fn words(scopes: &[String]) -> String {
    if scopes.is_empty() { "none named".to_owned() } else { line(&scopes.join(" ")) }
}
