//! Signing in by a code that is typed at a browser on any machine.

use std::time::Duration;

use egress::http::Url;
use host::login::{Handoff, Kept, LoginError, Steady, Way, identify};
use serde_json::json;

use super::desk::{Desk, Met, purpose};
use super::refused::failure;
use super::words;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::printer::line;

impl Desk<'_> {
    /// Shows a code, and waits until somebody has signed in with it.
    pub(super) async fn by_code(&self, mut met: Met) -> Result<Kept, Failure> {
        let told = |error: LoginError| failure(&error);
        let identity = self.identity()?;
        let Met { client, server, audience, scopes, .. } = &met;
        let known = identify(client, server, identity, Way::Device, scopes).await.map_err(told)?;
        let (server, audience, scopes) = (server.clone(), audience.clone(), scopes.clone());
        let begun = Handoff::begin(client, server, known, audience, scopes, Steady::default());
        let begun = begun.await.map_err(told)?;
        // Whoever asked for a code of another server would be given what is allowed with it.
        for page in begun.code.pages() {
            self.agree_to_page(page, &met)?;
        }
        self.show_code(&begun)?;
        let agreed = std::mem::take(&mut met.agreed);
        let called_off = interrupt::calling_off();
        let kept = tokio::select! {
            kept = begun.wait(&met.client, agreed, self.args.timeout) => kept.map_err(told),
            () = called_off.cancelled() => {
                let message = "cancelled: nobody is signed in";
                Err(Failure::new(Exit::Of(interrupt::CODE), message))
            }
        };
        interrupt::nothing_runs();
        kept
    }

    /// Shows what is asked for and where, and then the page and the code.
    fn show_code(&self, begun: &Handoff) -> Result<(), Failure> {
        let code = &begun.code;
        let direct = code.direct.as_ref().map(Url::as_str);
        if self.json_wanted {
            return self.printer.event(&json!({
                "event": "device_code",
                "resource": begun.audience.resource(),
                "secret": begun.audience.secret(),
                "issuer": begun.server.issuer,
                "scopes": begun.scopes,
                "verification_uri": code.page.as_str(),
                "verification_uri_complete": direct,
                "user_code": code.typed,
                "expires_in": code.holds.as_secs(),
            }));
        }
        for row in purpose(&begun.audience) {
            self.printer.note(&row);
        }
        self.printer.note(&format!("Sign-in  {}", line(&begun.server.issuer)));
        self.printer.note(&format!("Scopes   {}", words(&begun.scopes)));
        self.printer.note("Open this page in a browser on any machine, and type the code there:");
        let mut text =
            format!("Page     {}\nCode     {}\n", line(code.page.as_str()), line(&code.typed));
        if let Some(direct) = direct {
            text += &format!("Direct   {}\n", line(direct));
        }
        self.printer.result(&text)?;
        let held = self.args.timeout.map_or(code.holds, |own| own.min(code.holds));
        self.printer.note(&format!("It is waited for {}; Ctrl-C calls it off", spoken(held)));
        Ok(())
    }
}

/// A time in words, and never more than it is.
fn spoken(time: Duration) -> String {
    let (count, unit) = match time.as_secs() {
        seconds @ 0..120 => (seconds, "second"),
        seconds => (seconds / 60, "minute"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_words() {
        let words = [0, 1, 119, 120, 899, 900].map(|seconds| spoken(Duration::from_secs(seconds)));
        let told =
            ["0 seconds", "1 second", "119 seconds", "2 minutes", "14 minutes", "15 minutes"];
        assert_eq!(words, told);
    }
}
