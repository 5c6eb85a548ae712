//! Why a value is not given, with what a face needs to say how to go on.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use manifest::model::Input;
use vault::file::Unsafe;
use vault::outside::OutsideError;
use vault::{Reference, VaultError};

use crate::error::{CallError, Kind, Missing};

/// Nobody keeps what a tool cannot do without.
pub(super) fn missing(input: &Input) -> Missing<'_> {
    let sought = sought(input).filter(|(_, place)| *place != input.name);
    Missing { name: &input.name, is_secret: input.secret, sought, refused: None }
}

/// A value is not given, though it may be there.
pub(super) fn withheld(input: &Input, error: CallError) -> Missing<'_> {
    Missing { refused: Some(error), sought: None, ..missing(input) }
}

/// A value that is there is none that the input takes.
pub(super) fn unfit(input: &Input, wrong: &str) -> CallError {
    let name = &*input.name;
    let error = CallError::new(Kind::BadInput, format!("`{name}` is not given: its value {wrong}"))
        .with("name", name);
    let told = [("pattern", &input.validation_regex), ("prompt", &input.prompt)];
    told.into_iter().fold(error, |error, (key, told)| match told {
        Some(told) => error.with(key, told.as_str()),
        None => error,
    })
}

/// The same, with where the value of an input is looked for.
pub(crate) fn looked_for(error: CallError, input: &Input) -> CallError {
    match sought(input) {
        Some((key, place)) => error.with(key, place),
        None => error,
    }
}

/// Where the value of an input is looked for, where the owner can put one.
fn sought(input: &Input) -> Option<(&'static str, String)> {
    match input.reference.as_deref().map(Reference::from_str) {
        None => Some(("kept_as", input.name.clone())),
        Some(Ok(Reference::Secret { name })) => Some(("kept_as", name)),
        Some(Ok(Reference::Environment { name })) => Some(("variable", name)),
        Some(_) => None,
    }
}

/// A value cannot be had.
pub(super) fn unavailable(name: &str, error: &dyn Display) -> CallError {
    CallError::new(Kind::Unavailable, not_had(name, error))
}

/// Our own vault does not give a value.
pub(super) fn by_vault(name: &str, error: &VaultError) -> CallError {
    of_vault(not_had(name, error), error)
}

/// Our own vault cannot be used: where it is the owner who has to do something, it refuses.
pub(crate) fn of_vault(message: String, error: &VaultError) -> CallError {
    let denied = |message| CallError::new(Kind::Denied, message);
    match error {
        VaultError::NoPassphrase => denied(message).with("passphrase", "missing"),
        VaultError::WrongPassphrase => denied(message).with("passphrase", "wrong"),
        VaultError::Unsafe { path, fault: Unsafe::Mode(_) } => {
            denied(message).with("open_to_others", told(path))
        }
        VaultError::Unsafe { path, fault: Unsafe::Owner } => {
            denied(message).with("of_another", told(path))
        }
        VaultError::KeyMissing { sealed, .. } => {
            CallError::new(Kind::Unavailable, message).with("sealed", told(sealed))
        }
        _ => CallError::new(Kind::Unavailable, message),
    }
}

/// A file that a reference names does not give a value.
pub(super) fn by_file(reference: &str, error: &OutsideError) -> CallError {
    let message = not_had(reference, error);
    match error {
        OutsideError::Writable(path) => {
            CallError::new(Kind::Denied, message).with("writable", told(path))
        }
        OutsideError::Foreign(path) => {
            CallError::new(Kind::Denied, message).with("of_another", told(path))
        }
        _ => CallError::new(Kind::Unavailable, message),
    }
}

/// The owner did not say that what a reference leads to may be given.
pub(super) fn refused(reference: &str, how: &str) -> CallError {
    CallError::new(Kind::Denied, format!("`{reference}` is not given: {how}"))
}

/// The same, of a list of the policy that names others.
pub(super) fn unnamed(reference: &str, list: &str, known: &[String], value: &str) -> CallError {
    refused(reference, &format!("your policy does not name it in [secrets] {list}")).unlisted(
        ("secrets", list),
        known,
        value,
    )
}

/// Nobody said where the Vault server is.
pub(super) fn no_server() -> CallError {
    CallError::new(Kind::Unavailable, "your policy has no [secrets] vault_address")
        .with("setting", "vault_address")
}

/// The same, of a file that would have to be granted.
pub(super) fn ungranted(reference: &str, path: &Path) -> CallError {
    refused(reference, "the file was not granted for reading").with("read", told(path))
}

fn not_had(name: &str, error: &dyn Display) -> String {
    format!("the secret `{name}` cannot be had: {error}")
}

fn told(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
