//! `haft registry login`: a token, kept where its registry knows it.

use egress::http::Method;
use registry::client::list::Kind;
use registry::client::{Errand, FetchError, Listed, Token};
use serde_json::json;
use server::token::Secret;
use zeroize::Zeroizing;

use super::super::registry::{token_shown, token_until};
use super::super::secret;
use super::{NamedArgs, listed};
use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::owner;
use crate::printer::{Printer, line};
use crate::remote::{self, Known};

pub(in super::super) fn login(
    args: &NamedArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let listed = listed(args, home)?;
    if !listed.has_address() {
        let message = format!("`{}` is on this machine and needs no token", listed.name);
        return Err(Failure::invalid(message));
    }
    if !remote::address(&listed.url)?.is_private_talk() {
        let message = format!("everybody on the way to `{}` could read the token", listed.url);
        return Err(Failure::new(Exit::Denied, message).hint("use https://"));
    }
    let place = remote::place(&listed.url)?;
    owner::check_presence(home, ask)?;
    let value = secret::value(&format!("token for {}", line(&listed.name)), ask)?;
    let token = Token::parse(value.expose()).map_err(|error| Failure::of(Exit::Invalid, &error))?;
    let looked = match listed.kind {
        Kind::Registry => {
            let text = Zeroizing::new(value.expose().trim().to_owned());
            look(&Known::new(home, ask)?, &listed, &token, &text)?
        }
        // What guards a catalog is for whoever serves it to say.
        Kind::Catalog | Kind::WellKnown | Kind::Folder => Looked::Nobody,
    };
    let vault = owner::vault(home, ask)?;
    vault.set(&place, &value).map_err(|error| owner::vault_failure(&error))?;
    if json_wanted {
        let mut document = json!({"name": listed.name, "url": listed.url, "token": true});
        document["checked"] = matches!(looked, Looked::Known(_)).into();
        if let Looked::Known(known) = &looked {
            document["role"] = known.role.as_str().into();
            document["namespace"] = known.namespace.as_str().into();
            document["expires_at"] = known.expires_at.into();
        }
        printer.json(&document)?;
        return Ok(Exit::Done);
    }
    let (name, url) = (line(&listed.name), line(&listed.url));
    let what = match &looked {
        Looked::Known(known) => format!(": {}, good {}", token_shown(known), token_until(known)),
        Looked::Unchecked(_) | Looked::Nobody => String::new(),
    };
    printer.note(&format!("Kept the token for {name}{what}; it is shown to {url} alone"));
    if let Looked::Unchecked(why) = looked {
        printer.warn(&format!("nobody knows yet whether the token is good: {why}"));
    }
    Ok(Exit::Done)
}

/// What is known of a token before it is kept.
enum Looked {
    /// The registry knows it.
    Known(Box<registry::Token>),
    /// It could not be asked, for this reason.
    Unchecked(String),
    /// Nobody can be asked.
    Nobody,
}

/// Asks the registry about a token. One that it refuses is not kept, nor is what cannot be one of ours where nobody says
/// that the registry has others.
fn look(known: &Known<'_>, listed: &Listed, token: &Token, text: &str) -> Result<Looked, Failure> {
    let remote = known.showing(listed, token)?;
    let asked = remote.ask::<registry::Token>(Errand::new(Method::GET, &["token"]));
    let error = match owner::runtime()?.block_on(asked) {
        Ok(told) => return Ok(Looked::Known(Box::new(told))),
        Err(error) => error,
    };
    let name = line(&listed.name);
    match &error {
        FetchError::Refused { status: 401, .. } => {
            let message = format!("`{name}` does not know the token, so it is not kept");
            Err(Failure::new(Exit::Denied, message).cause(error).hint(
                "it may be cut short, have ended, be revoked or be for another registry; `haft registry token new` makes one, where the registry runs",
            ))
        }
        FetchError::Refused { status: 404 | 405, .. } | FetchError::Unreadable(..) => {
            Ok(Looked::Unchecked(format!("`{name}` is a registry that cannot be asked")))
        }
        _ if Secret::shown(text).is_some() => {
            Ok(Looked::Unchecked(remote::failed(&name, &error).message))
        }
        _ => {
            let message = format!(
                "that is no token of a registry of ours, and `{name}` cannot be asked whether it is one of its own"
            );
            Err(Failure::invalid(message)
                .cause(error)
                .hint("a token is `haft_` and 64 digits, as `haft registry token new` prints it"))
        }
    }
}
