//! `haft login` and `haft logout`: signing in to MCP servers on the network.

mod granted;

use std::io::{BufRead, IsTerminal, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use egress::http::Url;
use egress::{Decision, Refusal, Rule, Rules};
use host::login::address::{host_of, target_of};
use host::login::kept::Agreed;
use host::login::metadata::is_scope;
use host::login::scopes::{OFFLINE, compared, named};
use host::login::{
    Attempt, Found as Guarded, Identity, Kept, Listener, LoginError, Logins, Server, exchange,
    find, identify, logins, meet, revoke,
};
use host::{Host, Tool};
use install::Installed;
use manifest::dialect::Dialect;
use serde_json::json;
use tokio::runtime::Runtime;
use vault::Secret;
use zeroize::Zeroizing;

use super::call;
use super::install::has_server;
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::load::Loading;
use crate::names::{self, Typed};
use crate::printer::{Printer, line};
use crate::tools::Found;
use crate::{installed, owner, shell, tools, walls};

#[derive(Args, Debug)]
#[command(
    after_help = "The page to sign in at is printed, and opened in the browser on a terminal. What comes back is kept sealed in your vault, for this package alone.\n\nExamples:\n  haft login acme-files\n  haft login --from path/to/package\n  haft login --from path/to/package --scope files:write\n  haft login --from path/to/package --client-id my-client --client-secret --no-browser"
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
    /// What you are registered as at the authorization server, or the URL of a document about it
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Ask for the secret of that registration, or read it from the first line of standard input
    #[arg(long, requires = "client_id")]
    client_secret: bool,
    /// Listen on this port, where the registration names one [default: one that is free]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Agree that this host of the authorization server is reached; may be repeated
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Open no browser and wait for none: read from standard input where it was sent to
    #[arg(long)]
    no_browser: bool,
    /// How long to wait for you
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = super::duration)]
    timeout: Duration,
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
        match &self.from {
            Some(from) => {
                format!("haft login --from {}", shell::word(&from.display().to_string()))
            }
            None => format!("haft login {}", shell::word(package)),
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
    if let Some(before) = before.filter(|one| one.client.id != kept.client.id) {
        give_back(&before, home, &runtime, printer);
    }
    let difference = compared(&tool.package, &kept.scopes);
    if json_wanted {
        printer.json(&json!({
            "package": package,
            "resource": kept.name,
            "issuer": kept.issuer,
            "scopes": kept.scopes,
            "renews": kept.refresh.is_some(),
            "missing": granted::missing(&difference),
            "beyond": difference.beyond,
        }))?;
    } else {
        let scopes = words(&kept.scopes);
        printer.note(&format!("Signed in for {} (scopes: {scopes})", line(&package)));
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
    let forgotten = runtime.block_on(logins.forget(&package)).map_err(|error| failure(&error))?;
    let Some(kept) = forgotten else {
        let message = format!("nobody is signed in for {}", line(&package));
        return Err(Failure::new(Exit::NotFound, message));
    };
    match kept {
        Ok(kept) => give_back(&kept, home, &runtime, printer),
        Err(error) => not_given_back(&error.to_string(), printer),
    }
    printer.note(&format!("Signed out of {}", line(&package)));
    Ok(Exit::Done)
}

/// Tells the server that tokens are not used any more, where it can be told. Here they are gone in any case.
fn give_back(kept: &Kept, home: &Home, runtime: &Runtime, printer: Printer) {
    let denied = match owner::policy(home) {
        Ok(policy) => policy.network.deny,
        // Nobody knows whom the owner lets us reach.
        Err(failure) => return not_given_back(&failure.message, printer),
    };
    let denied = denied.iter().filter_map(|text| Rule::parse(text).ok()).collect();
    let client = logins::client(&Rules::default().denying(denied), &kept.hosts);
    if let Err(error) = client.and_then(|client| runtime.block_on(revoke(&client, kept))) {
        not_given_back(&error.to_string(), printer);
    }
}

fn not_given_back(why: &str, printer: Printer) {
    printer.warn(&format!("the tokens were not given back to the server: {why}"));
}

/// Where the owner sits.
struct Desk<'d> {
    args: &'d LoginArgs,
    ask: Ask,
    printer: Printer,
    json_wanted: bool,
}

impl Desk<'_> {
    async fn sign_in(&self, host: &Host, tool: &Tool) -> Result<Kept, Failure> {
        let told = |error: LoginError| failure(&error);
        let (endpoint, rules) =
            host.remote(tool).await.map_err(|error| call::failure(&error, &[], tool))?;
        let mut agreed = self.typed()?;
        let client = logins::client(&rules, &agreed).map_err(told)?;
        let found = find(&client, &endpoint).await.map_err(told)?;
        self.agree(&[&found.issuer], &rules, &mut agreed)?;
        let client = logins::client(&rules, &agreed).map_err(told)?;
        let server = meet(&client, &found).await.map_err(told)?;
        self.agree(&server.endpoints(), &rules, &mut agreed)?;
        self.agree_to_page(&server, &rules, &agreed)?;
        let client = logins::client(&rules, &agreed).map_err(told)?;
        let package = tool.package.canonical_id();
        let before = host.logins().kept(&package).unwrap_or_default();
        let scopes = self.scopes(&found, &server, before.as_ref(), &named(&tool.package));
        let listener = Listener::open(self.args.port).await.map_err(told)?;
        let identity = self.identity()?;
        let redirect = listener.redirect().clone();
        let known = identify(&client, &server, identity, &redirect, &scopes).await.map_err(told)?;
        let attempt =
            Attempt::new(server, known, found.resource, scopes, redirect).map_err(told)?;
        self.show(&attempt)?;
        let redirected = if self.args.no_browser {
            // The port stays taken, so that nobody else on this machine is sent the code.
            let read = attempt.read(&pasted()?);
            drop(listener);
            read
        } else {
            listener.wait(&attempt, self.args.timeout).await
        };
        exchange(&client, attempt, redirected.map_err(told)?, agreed).await.map_err(told)
    }

    /// The hosts the owner typed.
    fn typed(&self) -> Result<Vec<Agreed>, Failure> {
        let rule = |text: &String| {
            let rule = owner::host_rule(text)?;
            Ok(Agreed { host: rule.to_string(), is_typed: true })
        };
        self.args.allow_host.iter().map(rule).collect()
    }

    /// Has the owner agree to every host that is to be reached and nobody allowed yet.
    fn agree(&self, urls: &[&Url], rules: &Rules, agreed: &mut Vec<Agreed>) -> Result<(), Failure> {
        for url in urls {
            let host = host_of(url);
            let all = rules.clone().allowing(agreed.iter().filter_map(Agreed::rule));
            let denied = |why: &str| {
                let message = format!("`{}`, where you would sign in, {why}", line(&host));
                Failure::new(Exit::Denied, message)
                    .hint(format!("--allow-host {} agrees to it", line(&host)))
            };
            let target = target_of(url).ok_or_else(|| denied("is no host"))?;
            let one = Agreed { host: host.clone(), is_typed: false };
            match all.decide(&target) {
                Decision::Allowed(rule) => {
                    let is_typed = rule.names_private() || rule.reach() == egress::Reach::Private;
                    if !agreed.iter().any(|known| known.host == one.host) {
                        agreed.push(Agreed { is_typed, ..one });
                    }
                }
                Decision::Refused(Refusal::Denied) => {
                    let message = format!("your policy refuses `{}`", line(&host));
                    return Err(Failure::new(Exit::Denied, message));
                }
                Decision::Refused(_) if one.rule().is_none() => {
                    return Err(denied("is a private place, and you did not name it"));
                }
                Decision::Refused(_) => {
                    let question = format!("You would sign in at `{}`. Go there?", line(&host));
                    let answer = self.ask.yes_or_no(&question);
                    if !answer
                        .map_err(|_| denied("has to be agreed to, and nobody can be asked"))?
                    {
                        return Err(denied("was not agreed to"));
                    }
                    agreed.push(one);
                }
            }
        }
        Ok(())
    }

    /// Has the owner agree to where the browser is sent. What comes back from there is given to the
    /// authorization server, so a page elsewhere counts only where that is said not to be another's.
    fn agree_to_page(
        &self,
        server: &Server,
        rules: &Rules,
        agreed: &[Agreed],
    ) -> Result<(), Failure> {
        let page = &server.authorization;
        self.agree(&[page], rules, &mut agreed.to_vec())?;
        let typed = self.typed()?;
        let typed = Rules::default().allowing(typed.iter().filter_map(Agreed::rule));
        let is_typed = target_of(page)
            .is_some_and(|target| matches!(typed.decide(&target), Decision::Allowed(_)));
        if server.has_own_page() || server.names_itself || is_typed {
            return Ok(());
        }
        let (host, issuer) = (line(&host_of(page)), line(&server.issuer));
        let question = format!(
            "The page is at `{host}`, and `{issuer}` is given what you get there. Do both belong together?"
        );
        match self.ask.yes_or_no(&question) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => {
                let message =
                    format!("the page at `{host}` may be of another server than `{issuer}`");
                Err(Failure::new(Exit::Denied, message)
                    .hint(format!("--allow-host {host} says that both belong together")))
            }
        }
    }

    /// What is asked for: what the server wants and what the package names of all that the server knows, or what was
    /// granted before and what was typed.
    fn scopes(
        &self,
        found: &Guarded,
        server: &Server,
        before: Option<&Kept>,
        named: &[String],
    ) -> Vec<String> {
        let mut scopes = match self.args.scope.as_slice() {
            [] => {
                let known = named.iter().filter(|scope| server.scopes.contains(scope));
                found.scopes.iter().chain(known).cloned().collect()
            }
            typed => {
                let same =
                    before.filter(|one| one.name == found.resource && one.issuer == server.issuer);
                let mut all = same.map(|one| one.scopes.clone()).unwrap_or_default();
                all.extend(typed.iter().cloned());
                all
            }
        };
        // Servers that know this one give tokens that can be renewed only to those who ask for it.
        scopes.extend(server.scopes.iter().find(|scope| *scope == OFFLINE).cloned());
        let mut all: Vec<String> = Vec::new();
        for scope in scopes {
            if !all.contains(&scope) {
                all.push(scope);
            }
        }
        all
    }

    /// How the owner wants us to be known. A secret is never an argument.
    fn identity(&self) -> Result<Identity, Failure> {
        let Some(id) = &self.args.client_id else { return Ok(Identity::Stranger) };
        let url = Url::parse(id).ok().filter(|url| url.scheme() == "https" && url.path() != "/");
        if let Some(url) = url.filter(|_| !self.args.client_secret) {
            return Ok(Identity::Document(url));
        }
        let secret = match self.args.client_secret {
            false => None,
            true if std::io::stdin().is_terminal() => Some(self.ask.value("client secret")?),
            true => Some(typed_line()?),
        };
        let secret = secret.map(|text| Secret::new(text.to_string()));
        let secret = secret.transpose().map_err(|error| Failure::invalid(error.to_string()))?;
        Ok(Identity::Given { id: id.clone(), secret })
    }

    /// Shows what is asked for and where, and then the page.
    fn show(&self, attempt: &Attempt) -> Result<(), Failure> {
        let page = attempt.page();
        self.printer.note(&format!("Server   {}", line(&attempt.resource)));
        self.printer.note(&format!("Sign-in  {}", line(&attempt.server.issuer)));
        self.printer.note(&format!("Page     {}", line(&host_of(&page))));
        self.printer.note(&format!("Scopes   {}", words(&attempt.scopes)));
        if self.json_wanted {
            self.printer.note(page.as_str());
        } else {
            self.printer.result(&format!("{page}\n"))?;
        }
        let is_seen = std::io::stderr().is_terminal() && matches!(self.ask, Ask::Terminal);
        if is_seen && !self.args.no_browser {
            // Who has no browser here has the page on the screen.
            let opened = Command::new("xdg-open")
                .arg(page.as_str())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            drop(opened);
        }
        Ok(())
    }
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

/// Where the browser was sent to, as the owner pastes it.
fn pasted() -> Result<Zeroizing<String>, Failure> {
    let text = typed_line()?;
    if text.is_empty() {
        return Err(Failure::invalid("nothing was pasted")
            .hint("paste the whole address that the browser ended at"));
    }
    Ok(text)
}

/// One line of standard input.
fn typed_line() -> Result<Zeroizing<String>, Failure> {
    /// More is refused in any case.
    const MOST: u64 = 64 << 10;
    let mut text = Zeroizing::new(String::new());
    std::io::stdin().lock().take(MOST).read_line(&mut text).map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to read standard input").cause(error)
    })?;
    Ok(Zeroizing::new(text.trim().to_owned()))
}

fn words(scopes: &[String]) -> String {
    if scopes.is_empty() { "none named".to_owned() } else { line(&scopes.join(" ")) }
}

/// Why nobody is signed in, as the person sees it.
fn failure(error: &LoginError) -> Failure {
    let failure = Failure::of(call::exit_of(&error.kind()), error);
    match error {
        LoginError::NotWanted { looked } => failure
            .details(looked.iter().map(|one| line(one)))
            .hint("an MCP server that wants you to sign in answers 401; if this one does not, it is called without"),
        LoginError::NoMetadata { looked, .. } => failure
            .details(looked.iter().map(|one| line(one)))
            .hint("whoever runs it can put its metadata there (RFC 9728 of a server, RFC 8414 of who signs people in)"),
        LoginError::NoClient => failure.hint("--client-id names one that you registered"),
        LoginError::TimedOut => failure.hint("--no-browser reads the answer from standard input"),
        LoginError::Ended => failure.hint("`haft login` signs in again"),
        LoginError::Insecure(_) => failure.hint("no token was asked for and none was sent"),
        error => match error.refused_host() {
            Some(host) => failure.hint(format!("--allow-host {} agrees to it", line(host))),
            None => failure,
        },
    }
}
