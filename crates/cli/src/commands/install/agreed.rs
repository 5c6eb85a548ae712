//! Cards that were shown before: `--card` accepts exactly those.

use clap::Args;
use install::Card;
use package::digest::Digest;

use super::Agreement;
use crate::exit::{Exit, Failure};
use crate::printer::line;

// Which cards were accepted. A doc comment here would stand in the help of every verb that has these.
#[derive(Args, Debug)]
pub(crate) struct Cards {
    /// Accept the card that `haft show --json` printed with this digest, and no other; may be repeated
    #[arg(long = "card", value_name = "sha256:HEX", value_parser = digest)]
    accepted: Vec<Digest>,
    /// Their owner has just looked at these cards, and said yes there
    #[arg(long, requires = "accepted", hide = true)]
    shown: bool,
}

impl Cards {
    /// How a card was accepted before it was seen again, if it was; refused where others were, and this one was not.
    pub(super) fn check(&self, card: &Card) -> Result<Option<Agreement>, Failure> {
        let now = card.digest();
        if self.accepted.is_empty() {
            return Ok(None);
        }
        if self.accepted.contains(&now) {
            return Ok(Some(if self.shown { Agreement::Elsewhere } else { Agreement::Beforehand }));
        }
        let message = format!("the card of `{}` is not the one that was accepted", line(&card.id));
        Err(Failure::new(Exit::Denied, message)
            .cause(format!("now it is sha256:{now}"))
            .hint("`haft show` shows what it is now"))
    }
}

fn digest(text: &str) -> Result<Digest, String> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    Digest::parse(hex).ok_or_else(|| "a card's digest is `sha256:` and 64 digits".to_owned())
}
