//! What comes next where the owner has to sign in before a package is called.

use host::login::Logins;
use manifest::model::Package;
use policy::Denial;

use crate::ask::Ask;
use crate::exit::Failure;
use crate::home::Home;
use crate::{owner, shell};

/// What is left to be done; nothing where nobody signs in, or somebody has.
pub(super) fn next(package: &Package, home: &Home, ask: Ask) -> Result<Option<String>, Failure> {
    if !package.requires_oauth {
        return Ok(None);
    }
    let id = package.canonical_id();
    let can_sign_in = package.implementations.iter().any(|one| one.entry.is_server_elsewhere());
    if !can_sign_in {
        return Ok(Some(Denial::NoLogin.to_string()));
    }
    let logins = Logins::new(owner::vault(home, ask)?, home.path());
    let words = format!("{}: `haft login {}` signs in", Denial::Login, shell::word(&id));
    Ok((!logins.is_signed_in(&id)).then_some(words))
}
