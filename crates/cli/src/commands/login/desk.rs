//! Where the owner sits: what is found out and agreed to before anybody signs in.

use std::io::{BufRead, IsTerminal, Read};

use egress::http::{Client, Url};
use egress::{Decision, Refusal, Rules};
use host::login::address::{host_of, target_of};
use host::login::kept::Agreed;
use host::login::scopes::{self, OFFLINE};
use host::login::{Audience, Found, Identity, Kept, LoginError, Server, find, logins, meet};
use host::{Host, Tool};
use vault::Secret;
use zeroize::Zeroizing;

use super::LoginArgs;
use super::named::again;
use super::refused::{failure, refused_here};
use crate::ask::Ask;
use crate::changes;
use crate::commands::call;
use crate::exit::{Exit, Failure};
use crate::owner;
use crate::printer::{Printer, line};

/// Where the owner sits.
pub(super) struct Desk<'d> {
    pub(super) args: &'d LoginArgs,
    pub(super) ask: Ask,
    pub(super) printer: Printer,
    pub(super) json_wanted: bool,
}

/// Who was met, and what is asked for there.
pub(super) struct Met {
    pub(super) client: Client,
    pub(super) server: Server,
    pub(super) audience: Audience,
    pub(super) scopes: Vec<String>,
    pub(super) agreed: Vec<Agreed>,
    pub(super) rules: Rules,
}

impl Desk<'_> {
    /// Signs in for a tool, once everybody who is reached for it was agreed to.
    pub(super) async fn sign_in(&self, host: &Host, tool: &Tool) -> Result<Kept, Failure> {
        let met = self.meet(host, tool).await?;
        if self.args.device { self.by_code(met).await } else { self.by_browser(met).await }
    }

    /// Finds out who signs people in for a tool.
    async fn meet(&self, host: &Host, tool: &Tool) -> Result<Met, Failure> {
        let told = |error: LoginError| failure(&error);
        let before = host.logins().kept(&tool.package.canonical_id()).unwrap_or_default();
        let named = self.named(host, tool, before.as_ref()).await?;
        let rules = host.reach(tool).await.map_err(|error| call::failure(&error, &[], tool))?;
        let mut agreed = self.typed()?;
        let found = match named {
            Some(found) => found,
            None => self.find(host, tool, &rules, &agreed, before.as_ref()).await?,
        };
        // What they agreed to for the same sign-in holds.
        if let Some(before) = before.as_ref().filter(|one| is_same(one, &found)) {
            agreed.extend(before.hosts.iter().cloned());
        }
        self.agree(&[&found.issuer], &rules, &mut agreed)?;
        let client = logins::client(&rules, &agreed).map_err(told)?;
        let server = meet(&client, &found).await.map_err(told)?;
        let mut asked = server.endpoints();
        // Who cannot sign anybody in this way is left alone from here on.
        if self.args.device {
            asked.push(server.device().map_err(told)?);
        } else {
            server.page().map_err(|error| refused_here(&error, &server))?;
        }
        self.agree(&asked, &rules, &mut agreed)?;
        let client = logins::client(&rules, &agreed).map_err(told)?;
        let scopes = self.scopes(&found, &server, before.as_ref(), &scopes::named(&tool.package));
        Ok(Met { client, server, audience: found.audience, scopes, agreed, rules })
    }

    /// Asks the server or agent of a tool who signs people in for it. Where it does not say, it is who did before.
    async fn find(
        &self,
        host: &Host,
        tool: &Tool,
        rules: &Rules,
        agreed: &[Agreed],
        before: Option<&Kept>,
    ) -> Result<Found, Failure> {
        let told = |error: LoginError| failure(&error);
        let remote = host.remote(tool).await;
        let (endpoint, protocol) = remote.map_err(|error| call::failure(&error, &[], tool))?;
        let client = logins::client(rules, agreed).map_err(told)?;
        find(&client, &endpoint, protocol).await.or_else(|error| {
            let is_silent =
                matches!(error, LoginError::NotWanted { .. } | LoginError::NoMetadata { .. });
            before.filter(|_| is_silent).and_then(again).ok_or_else(|| told(error))
        })
    }

    /// The hosts the owner typed, that of the authorization server among them.
    fn typed(&self) -> Result<Vec<Agreed>, Failure> {
        let typed = |host: String| Agreed { host, is_typed: true };
        let rule = |text: &String| Ok(typed(owner::host_rule(text)?.to_string()));
        let issuer = self.args.issuer.iter().map(|url| Ok(typed(host_of(url))));
        self.args.allow_host.iter().map(rule).chain(issuer).collect()
    }

    /// Has the owner agree to every host that is to be reached and nobody allowed yet.
    fn agree(&self, urls: &[&Url], rules: &Rules, agreed: &mut Vec<Agreed>) -> Result<(), Failure> {
        for url in urls {
            let host = host_of(url);
            let all = rules.clone().allowing(agreed.iter().filter_map(Agreed::rule));
            let denied = |why: &str| {
                let message = format!("`{}`, where you would sign in, {why}", line(&host));
                let (host, is_request) = (line(&host), changes::is_asked_elsewhere());
                Failure::new(Exit::Denied, message).hint(if is_request {
                    format!("`{host}` in `allow_hosts` agrees to it")
                } else {
                    format!("--allow-host {host} agrees to it")
                })
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

    /// Has the owner agree to a host where a browser is sent.
    pub(super) fn agree_to_host(&self, page: &Url, met: &Met) -> Result<(), Failure> {
        self.agree(&[page], &met.rules, &mut met.agreed.clone())
    }

    /// Has the owner agree to where a browser is sent. What is said there is given to the authorization
    /// server, so a page elsewhere counts only where that is said not to be another's.
    pub(super) fn agree_to_page(&self, page: &Url, met: &Met) -> Result<(), Failure> {
        self.agree_to_host(page, met)?;
        let server = &met.server;
        let typed = self.typed()?;
        let typed = Rules::default().allowing(typed.iter().filter_map(Agreed::rule));
        let is_typed = target_of(page)
            .is_some_and(|target| matches!(typed.decide(&target), Decision::Allowed(_)));
        if server.is_own(page) || is_typed {
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
    /// granted before and what was typed. Where the owner named a server that lists nothing, only the package can say what it
    /// needs.
    fn scopes(
        &self,
        found: &Found,
        server: &Server,
        before: Option<&Kept>,
        named: &[String],
    ) -> Vec<String> {
        let mut scopes = match self.args.scope.as_slice() {
            [] => {
                let is_listed = !server.scopes.is_empty() || found.audience.secret().is_none();
                let known =
                    named.iter().filter(|scope| !is_listed || server.scopes.contains(scope));
                found.scopes.iter().chain(known).cloned().collect()
            }
            typed => {
                let same = before
                    .filter(|one| one.audience == found.audience && one.issuer == server.issuer);
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
    pub(super) fn identity(&self) -> Result<Identity, Failure> {
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
}

/// Whether a sign-in is for the same at the same authorization server.
fn is_same(before: &Kept, found: &Found) -> bool {
    let issuer = Url::parse(&before.issuer);
    before.audience == found.audience && issuer.is_ok_and(|issuer| issuer == found.issuer)
}

/// What a token is for, as a person sees it.
pub(super) fn purpose(audience: &Audience) -> Vec<String> {
    let secret = audience.secret().map(|name| format!("Secret   {}", line(name)));
    let label = if secret.is_some() { "Resource" } else { "Server  " };
    let resource = audience.resource().map(|name| format!("{label} {}", line(name)));
    secret.into_iter().chain(resource).collect()
}

/// One line of standard input.
pub(super) fn typed_line() -> Result<Zeroizing<String>, Failure> {
    /// More is refused in any case.
    const MOST: u64 = 64 << 10;
    let mut text = Zeroizing::new(String::new());
    std::io::stdin().lock().take(MOST).read_line(&mut text).map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to read standard input").cause(error)
    })?;
    Ok(Zeroizing::new(text.trim().to_owned()))
}
