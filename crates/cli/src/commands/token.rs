//! `haft token`: who may do what at the gateway, over HTTP.

use std::time::Duration;

use clap::{Args, Subcommand};
use gateway::token::{Role, Token, TokenError, Wanted};
use ledger::Time;
use serde_json::{Value, json};

use super::serve::tokens;
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::{output, owner};

#[derive(Args, Debug)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Show which tokens there are; what is secret about them is shown when they are made, and never again
    #[command(alias = "list")]
    Show,
    /// Make a token, and print it
    New {
        /// What you call it
        name: String,
        /// What whoever shows it may do: agent (call tools), installer (and install them), owner
        #[arg(long, value_name = "ROLE", default_value = "agent", value_parser = role)]
        role: Role,
        /// The profile that it sees, and nothing else
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
        /// Put questions to you in the client that shows it, where you are the one who answers there
        #[arg(long)]
        asks: bool,
        /// How long it counts [default: until it is removed]
        #[arg(long, value_name = "TIME", value_parser = expiry)]
        expires: Option<Duration>,
    },
    /// Take a token away; it counts no more from now on
    #[command(alias = "remove")]
    Rm {
        /// What you call it
        name: String,
    },
}

/// How long a token counts at most that does not count until it is removed.
const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

/// Reads a time, which has a unit: whoever means days would have seconds.
fn expiry(text: &str) -> Result<Duration, String> {
    const ELSE: &str = "without --expires it counts until it is removed";
    let unit = text.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    if unit == text || !["ms", "s", "m", "h", "d"].contains(&unit) {
        return Err(format!("write a time with its unit, such as 12h or 30d; {ELSE}"));
    }
    let time = super::duration(text)?;
    if time > LONGEST {
        return Err(format!("it is more than a hundred years; {ELSE}"));
    }
    Ok(time)
}

fn role(text: &str) -> Result<Role, String> {
    let found = Role::ALL.into_iter().find(|(_, name)| *name == text);
    found
        .map(|(role, _)| role)
        .ok_or_else(|| super::no_such("role", text, &Role::ALL.map(|(_, name)| name)))
}

pub(crate) fn run(
    args: &TokenArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    owner::check_home(home)?;
    let tokens = tokens(home);
    match &args.verb {
        Verb::Show => {
            let all = tokens.all().map_err(|error| failure(&error))?;
            if json_wanted {
                printer.json(&json!(all.iter().map(to_value).collect::<Vec<_>>()))?;
                return Ok(Exit::Done);
            }
            for token in &all {
                printer.result(&format!("{}\n", words(token)))?;
            }
            if all.is_empty() {
                printer.note("there are no tokens; `haft token new NAME` makes one");
            }
        }
        Verb::New { name, role, profile, asks, expires } => {
            owner::check_presence(home, ask)?;
            if let Some(profile) = profile
                && !owner::policy(home)?.profiles.contains_key(profile)
            {
                let message = format!("there is no profile `{}`", line(profile));
                return Err(Failure::new(Exit::NotFound, message)
                    .hint("`haft policy profile add NAME ID…` makes one"));
            }
            output::make_private_folder(home.path())?;
            let now = host::records::now();
            let wanted = Wanted {
                name,
                role: *role,
                profile: profile.clone(),
                asks: *asks,
                expires: expires.map(|time| now.plus(time)),
            };
            let secret = tokens.add(wanted, now);
            let secret = secret.map_err(|error| failure(&error))?;
            if json_wanted {
                printer.json(&json!({ "name": name, "role": role.name(), "token": secret }))?;
            } else {
                printer.result(&format!("{secret}\n"))?;
                printer.note("It is shown this once. Agents send it as `Authorization: Bearer …`");
                for way in home.ways_elsewhere() {
                    printer.note(&format!("It counts for this home; {way}"));
                }
            }
        }
        Verb::Rm { name } => {
            let removed = tokens.remove(name).map_err(|error| failure(&error))?;
            if json_wanted {
                printer.json(&json!({ "removed": to_value(&removed) }))?;
            } else {
                printer.note(&format!("`{}` counts no more", line(name)));
            }
        }
    }
    Ok(Exit::Done)
}

fn words(token: &Token) -> String {
    let profile = token.profile.as_deref().map(|name| format!(" profile {}", line(name)));
    let until = token.expires.map(|until| {
        let over = if is_over(token) { ", which is over: it counts no more" } else { "" };
        format!(" until {}{over}", Time::from_unix_millis(until))
    });
    format!(
        "{} {}{}{} since {}{}",
        line(&token.name),
        token.role.name(),
        profile.unwrap_or_default(),
        if token.asks { " asks" } else { "" },
        Time::from_unix_millis(token.created),
        until.unwrap_or_default()
    )
}

/// Whether the time of a token is over.
fn is_over(token: &Token) -> bool {
    token.expires.is_some_and(|until| host::records::now().unix_millis() >= until)
}

fn to_value(token: &Token) -> Value {
    json!({
        "name": token.name,
        "role": token.role.name(),
        "profile": token.profile,
        "asks": token.asks,
        "since": Time::from_unix_millis(token.created).to_string(),
        "expires": token.expires.map(|until| Time::from_unix_millis(until).to_string()),
        "expired": is_over(token),
    })
}

fn failure(error: &TokenError) -> Failure {
    let exit = match error {
        TokenError::Taken => Exit::Conflict,
        TokenError::Missing => Exit::NotFound,
        TokenError::Name | TokenError::Tokenless => Exit::Invalid,
        TokenError::File(..) | TokenError::Broken(_) => Exit::Unavailable,
    };
    let failure = Failure::of(exit, error);
    match error {
        TokenError::Taken => failure.hint("`haft token rm NAME` takes it away"),
        TokenError::Missing => failure.hint("`haft token show` shows which there are"),
        TokenError::Broken(_) => failure.hint(
            "put it back from a copy, or take it away and make the tokens anew with `haft token new NAME`",
        ),
        _ => failure,
    }
}
