//! Signing in by a browser here, which is sent back to this machine.

use std::io::IsTerminal;
use std::process::{Command, Stdio};
use std::time::Duration;

use host::login::address::host_of;
use host::login::{Attempt, Kept, Listener, LoginError, Way, exchange, identify};
use serde_json::json;
use zeroize::Zeroizing;

use super::desk::{Desk, Met, purpose, typed_line};
use super::refused::{failure, refused_here};
use super::words;
use crate::ask::Ask;
use crate::exit::Failure;
use crate::printer::line;

/// How long is waited where the owner does not say.
const PATIENCE: Duration = Duration::from_mins(5);

impl Desk<'_> {
    /// Signs in by a browser, and waits for what it comes back with.
    pub(super) async fn by_browser(&self, met: Met) -> Result<Kept, Failure> {
        let told = |error: LoginError| failure(&error);
        let page = met.server.page().map_err(told)?;
        // One that names itself in what comes back cannot be given what another gave.
        if met.server.names_itself {
            self.agree_to_host(page, &met)?;
        } else {
            self.agree_to_page(page, &met)?;
        }
        let Met { client, server, audience, scopes, agreed, rules: _ } = met;
        let listener = match &self.args.redirect {
            Some(_) => None,
            None => {
                let listener = Listener::open(self.args.port).await;
                Some(listener.map_err(|error| refused_here(&error, &server))?)
            }
        };
        let identity = self.identity()?;
        let own = listener.as_ref().map(Listener::redirect);
        let redirect = self.args.redirect.as_ref().or(own).cloned();
        let redirect = redirect.expect("who has no listener was told where to send it");
        let way = Way::Browser(&redirect);
        let known = identify(&client, &server, identity, way, &scopes).await.map_err(told)?;
        let attempt = Attempt::new(server, known, audience, scopes, redirect).map_err(told)?;
        self.show(&attempt)?;
        let redirected = match listener {
            Some(listener) if !self.args.no_browser => {
                listener.wait(&attempt, self.args.timeout.unwrap_or(PATIENCE)).await
            }
            // A port stays taken, so that nobody else on this machine is sent the code.
            _taken => attempt.read(&pasted()?),
        };
        let redirected = redirected.map_err(|error| refused_here(&error, &attempt.server))?;
        exchange(&client, attempt, redirected, agreed).await.map_err(told)
    }

    /// Shows what is asked for and where, and then the page.
    fn show(&self, attempt: &Attempt) -> Result<(), Failure> {
        let page = attempt.page();
        if self.json_wanted && self.args.no_browser {
            return self.printer.event(&json!({
                "event": "sign_in_page",
                "resource": attempt.audience.resource(),
                "secret": attempt.audience.secret(),
                "issuer": attempt.server.issuer,
                "scopes": attempt.scopes,
                "authorization_url": page.as_str(),
                "redirect_uri": attempt.redirect.as_str(),
                "state": attempt.state(),
            }));
        }
        for row in purpose(&attempt.audience) {
            self.printer.note(&row);
        }
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
            if opened.is_err() && attempt.server.device().is_ok() {
                self.printer.note("No browser was opened here; --device signs in by one elsewhere");
            }
        }
        Ok(())
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
