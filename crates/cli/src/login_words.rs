//! How people are told that they have to sign in for a package, and what signs them in.

use std::sync::Arc;

use host::login::Logins;
use manifest::model::{Package, SignIn};
use policy::Denial;
use vault::FileVault;

use crate::home::{Home, VAULT};
use crate::shell;

/// What the owner has to say when they sign in for a package for the first time. What they said is remembered.
pub(crate) fn first(package: &Package) -> &'static str {
    match package.sign_in() {
        SignIn::Named(secrets) if secrets.len() > 1 => " --issuer URL --secret NAME",
        SignIn::Named(_) => " --issuer URL",
        SignIn::Asked | SignIn::Impossible => "",
    }
}

/// That a command signs in, and what stands in it for what only its owner knows.
pub(crate) fn signs_in(command: &str) -> String {
    let whose = if command.contains(" --issuer URL") {
        ", where URL is the authorization server of its provider"
    } else {
        ""
    };
    format!("`{command}` signs in{whose}")
}

/// Whether the owner is signed in for a package, which is known without a passphrase.
pub(crate) fn is_signed_in(package: &Package, home: &Home) -> bool {
    let place = home.path().join(VAULT);
    let vault = place.exists().then(|| FileVault::open(place, || None).ok()).flatten();
    let logins = vault.map(|vault| Logins::new(Arc::new(vault), home.path()));
    logins.is_some_and(|logins| logins.is_signed_in(&package.canonical_id()))
}

/// The secret of a package that a sign-in gives, so that nobody has to keep a value for it.
pub(crate) fn given_secret(
    package: &Package,
    vault: &Arc<FileVault>,
    home: &Home,
) -> Option<String> {
    let logins = Logins::new(Arc::clone(vault), home.path());
    let kept = logins.kept(&package.canonical_id()).ok().flatten()?;
    kept.audience.secret().map(str::to_owned)
}

/// What is left to do before an installed package is called, where somebody has to sign in for it and nobody has.
pub(crate) fn next(package: &Package, home: &Home) -> Option<String> {
    (package.requires_oauth && !is_signed_in(package, home)).then(|| needed(package))
}

fn needed(package: &Package) -> String {
    match package.sign_in() {
        SignIn::Impossible => Denial::NoLogin.to_string(),
        SignIn::Asked | SignIn::Named(_) => {
            let id = shell::word(&package.canonical_id());
            let command = format!("haft login {id}{}", first(package));
            format!("{}: {}", Denial::Login, signs_in(&command))
        }
    }
}

/// What can be done about a package that nobody can sign in for.
pub(crate) fn impossible(package: &Package) -> &'static str {
    if package.requires_oauth {
        "only its author can change that: it can be signed in for once it declares the secret that it takes a token as, and called without once it does not say `requires_oauth`"
    } else {
        "it asks for no key either: it is called without"
    }
}
