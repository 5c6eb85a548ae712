//! Signing out: tokens are forgotten here, and given back to the server that they came from.

use egress::{Rule, Rules};
use host::login::{Kept, LoginError, Logins, logins, revoke};
use tokio::runtime::Runtime;

use crate::home::Home;
use crate::owner;
use crate::printer::Printer;

/// Signs out of what a package signed in to; whether anybody was signed in.
pub(crate) fn sign_out(
    package: &str,
    logins: &Logins,
    home: &Home,
    runtime: &Runtime,
    printer: Printer,
) -> Result<bool, LoginError> {
    match runtime.block_on(logins.forget(package))? {
        None => return Ok(false),
        Some(Ok(kept)) => give_back(&kept, home, runtime, printer),
        Some(Err(error)) => not_given_back(&error.to_string(), printer),
    }
    Ok(true)
}

/// Tells the server that tokens are not used any more, where it can be told. Here they are gone in any case.
pub(crate) fn give_back(kept: &Kept, home: &Home, runtime: &Runtime, printer: Printer) {
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
