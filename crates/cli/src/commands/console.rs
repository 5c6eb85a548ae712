//! `haft console`: an address that signs the owner in to the console of the running host.

use std::io::ErrorKind;

use clap::Args;
use gateway::socket::{Told, Want, Wish, connect};
use serde_json::json;

use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::owner;
use crate::printer::Printer;

#[derive(Args, Debug)]
#[command(
    after_help = "The address counts once, and for ten minutes; whoever opens it is taken for you. See docs/console.md."
)]
pub(crate) struct ConsoleArgs {}

pub(crate) fn run(
    _args: &ConsoleArgs,
    home: &Home,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    owner::check_home(home)?;
    let wish = Wish { version: env!("CARGO_PKG_VERSION").to_owned(), want: Want::SignIn };
    let told = owner::runtime()?.block_on(connect(home.path(), &wish));
    let missing = |words: String| {
        Failure::new(Exit::Unavailable, words)
            .hint("`haft serve` serves this home, with its console")
    };
    match told {
        Ok((_, Told::Address(address))) => {
            if json_wanted {
                printer.json(&json!({ "console": address }))?;
            } else {
                printer.result(&format!("{address}\n"))?;
            }
            Ok(Exit::Done)
        }
        Ok((_, Told::Refused(words))) => Err(missing(words)),
        Ok((_, Told::Welcome | Told::Outdated)) => {
            Err(missing("the host of this home is of another version".to_owned()))
        }
        Err(error) => {
            let mut failure = missing("nothing serves this home".to_owned());
            // What runs is more likely to be meant.
            failure.hints.splice(0..0, home.ways_elsewhere());
            // Where there is nobody, the words of the system add nothing.
            let is_nobody =
                matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused);
            Err(if is_nobody { failure } else { failure.cause(error) })
        }
    }
}
