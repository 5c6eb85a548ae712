//! What the owner keeps in the home: policy, secrets, and the ledger; and whether the owner is there.

use std::sync::Arc;

use host::Records;
use manifest::dialect::Dialect;
use policy::Policy;
use policy::policy::Presence;
use tokio::runtime::{Builder, Runtime};
use vault::{FileVault, Secret, VaultError};

use crate::ask::Ask;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::output;
use crate::printer::line;

/// A runtime for one command.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Unavailable, "failed to start a runtime").cause(error))
}

/// The owner's policy; an absent file is the default one.
pub(crate) fn policy(home: &Home) -> Result<Policy, Failure> {
    let path = home.path().join("policy.toml");
    match std::fs::read_to_string(&path) {
        Ok(text) => Policy::parse(&text).map_err(|error| {
            Failure::invalid(format!("`{}` is no policy", path.display())).cause(error)
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Policy::default()),
        Err(error) => {
            let message = format!("failed to read `{}`", path.display());
            Err(Failure::new(Exit::Unavailable, message).cause(error))
        }
    }
}

/// The ledger of the home, which is made where it is not there.
pub(crate) fn records(home: &Home, runtime: &Runtime) -> Result<Arc<Records>, Failure> {
    output::make_private_folder(home.path())?;
    let opened = runtime.block_on(Records::open(home.path()));
    opened.map(Arc::new).map_err(|error| Failure::of(Exit::Unavailable, &error))
}

/// The vault of the home. A passphrase is asked for only when it is needed.
pub(crate) fn vault(home: &Home, ask: Ask) -> Result<Arc<FileVault>, Failure> {
    let asked = move || Secret::new(ask.passphrase("the vault").ok()?.to_string()).ok();
    let opened = FileVault::open(home.path().join("vault"), asked);
    opened.map(Arc::new).map_err(|error| vault_failure(&error))
}

/// What to say of a vault that cannot be used.
pub(crate) fn vault_failure(error: &VaultError) -> Failure {
    let exit = match error {
        VaultError::NoPassphrase | VaultError::WrongPassphrase => Exit::Denied,
        VaultError::Disk { .. } | VaultError::NoRandomness | VaultError::Full => Exit::Unavailable,
        _ => Exit::Invalid,
    };
    Failure::of(exit, error)
}

/// Refuses to go on where the policy wants more than a terminal, and it is not given.
pub(crate) fn check_presence(home: &Home, ask: Ask) -> Result<(), Failure> {
    if policy(home)?.approval.owner_presence == Presence::Terminal {
        return Ok(());
    }
    let vault = vault(home, ask)?;
    let passphrase = ask.passphrase("the vault")?;
    let passphrase = Secret::new(passphrase.to_string())
        .map_err(|error| Failure::new(Exit::Denied, error.to_string()))?;
    vault.verify(&passphrase).map_err(|error| match error {
        VaultError::NotSealed => Failure::new(
            Exit::Denied,
            "your policy wants the passphrase of the vault, and it has none",
        )
        .hint("`haft secret passphrase` sets one"),
        error => vault_failure(&error),
    })
}

/// A package as grants and secrets name it: its id, with the dialect before it.
pub(crate) fn package_id(text: &str) -> Result<String, String> {
    let dialect = text.split_once(':').and_then(|(dialect, _)| Dialect::named(dialect));
    let is_plain = !text.is_empty() && text.len() <= 512 && !text.contains(char::is_control);
    match dialect {
        Some(_) if is_plain => Ok(text.to_owned()),
        _ => Err(format!(
            "write the dialect and the id, such as mcpkg:{}; `haft call … --explain` shows it",
            line(text)
        )),
    }
}
