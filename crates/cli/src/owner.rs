//! What the owner keeps in the home: policy, secrets, and the ledger; and whether the owner is there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use egress::Rule;
use host::{Records, Settings};
use ledger::StateError;
use policy::Policy;
use policy::policy::Presence;
use tokio::runtime::{Builder, Runtime};
use vault::file::Unsafe;
use vault::{FileVault, Secret, VaultError};

use crate::ask::{self, Ask};
use crate::changes;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::hosts::{self, NoHost};
use crate::keyring;
use crate::output;
use crate::policy_file::PolicyFile;
use crate::printer::line;
use crate::shell;

/// What the passphrase of the vault is called among the credentials of a service.
const CREDENTIAL: &str = "haft-vault";

/// How the desktop's keyring gives the passphrase, in builds that have one.
const IN_KEYRING: &str = if keyring::IS_KNOWN {
    "or `haft secret passphrase --keyring` keeps it in your desktop's keyring, where it is found while that is open; "
} else {
    ""
};

/// The same, where it gave another one.
const BY_KEYRING: &str = if keyring::IS_KNOWN {
    "; where the keyring has it, `haft secret passphrase --keyring` keeps the right one there"
} else {
    ""
};

/// Where the passphrase of the vault comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passphrase {
    /// The owner types it at a terminal.
    Typed,
    /// Whoever started a program that nobody watches passes it on, or the desktop's keyring keeps it.
    PassedOn,
}

impl Passphrase {
    /// How to go on where there is none, or another than the vault's.
    pub(crate) fn hint(self, fault: &str) -> Option<String> {
        match (self, fault) {
            (Self::Typed, "missing") => Some(ask::AT_TERMINAL.to_owned()),
            (Self::PassedOn, "missing") => Some(format!(
                "`LoadCredentialEncrypted={CREDENTIAL}:FILE` in the unit of `haft serve` passes the passphrase of the vault on, once it is started again; {IN_KEYRING}or `haft secret passphrase --remove` takes the passphrase away"
            )),
            (Self::PassedOn, "wrong") => Some(format!(
                "what opens the vault for the gateway is another than its passphrase: seal the right one with `systemd-creds encrypt --name={CREDENTIAL} - FILE`, and start `haft serve` again{BY_KEYRING}"
            )),
            _ => None,
        }
    }
}

/// Who wants to see that the owner is there.
const WANTED_BY: &str = "`[approval] owner_presence` in policy.toml says so";

/// A runtime for one command.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Unavailable, "failed to start a runtime").cause(error))
}

/// The owner's policy; an absent file is the default one.
pub(crate) fn policy(home: &Home) -> Result<Policy, Failure> {
    policy_file(home)?.policy()
}

/// What the host has to know of this process and its owner.
pub(crate) fn settings(home: &Home) -> Result<Settings, Failure> {
    let policy = policy(home)?;
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    Ok(Settings {
        policy,
        home: home.path().to_owned(),
        user_home: std::env::home_dir(),
        search_path: std::env::var_os("PATH").unwrap_or_default(),
        environment: std::env::vars_os().filter_map(text).collect(),
    })
}

/// The file with the owner's policy, which may say something that is none.
pub(crate) fn policy_file(home: &Home) -> Result<PolicyFile, Failure> {
    check_home(home)?;
    PolicyFile::read(home)
}

/// Refuses a home that somebody else could have written into: then nothing in it is the owner's word. The
/// vault and the keys look at their own files.
pub(crate) fn check_home(home: &Home) -> Result<(), Failure> {
    guarded(home).iter().try_for_each(|path| check_nobody_else_writes(path))
}

/// What only the owner may write: the home, and what is taken for their word in it.
pub(crate) fn guarded(home: &Home) -> Vec<PathBuf> {
    const TRUSTED: [&str; 6] = [
        "policy.toml",
        "state.db",
        "state.db-wal",
        "audit",
        registry::client::list::FILE,
        install::project::TRUSTED,
    ];
    let trusted = TRUSTED.iter().map(|name| home.path().join(name));
    [home.path().to_owned()].into_iter().chain(trusted).collect()
}

/// Refuses what somebody else could have written; what is not there was written by nobody.
#[cfg(unix)]
fn check_nobody_else_writes(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::MetadataExt;
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            let message = format!("failed to look at `{}`", path.display());
            return Err(Failure::new(Exit::Unavailable, message).cause(error));
        }
    };
    let shown = path.display().to_string();
    if found.mode() & 0o022 != 0 {
        return Err(Failure::new(Exit::Denied, format!("others may write `{shown}`"))
            .hint(without_writers(&shown)));
    }
    if found.uid() != rustix::process::geteuid().as_raw() && found.uid() != 0 {
        return Err(Failure::new(Exit::Denied, format!("`{shown}` belongs to somebody else"))
            .hint(as_own(&shown)));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_nobody_else_writes(_path: &Path) -> Result<(), Failure> {
    Ok(())
}

/// Reads a host that the owner typed, or says what is wrong with it and what may have been meant.
pub(crate) fn host_rule(text: &str) -> Result<Rule, Failure> {
    hosts::read(text).map_err(|NoHost { wrong, instead }| {
        Failure::invalid(format!("`{}` is no host: {wrong}", line(text))).hint(instead)
    })
}

/// Why the state of the home cannot be used.
pub(crate) fn of_state(error: &StateError) -> Failure {
    let failure = Failure::of(Exit::Unavailable, error);
    match error {
        StateError::Corrupt { path, .. } => {
            failure.hint(without_state(&path.display().to_string()))
        }
        StateError::Foreign { .. } => {
            failure.hint("name a database of its own: `createdb` makes one, and the tables are made by themselves")
        }
        _ => failure,
    }
}

/// Why the state of a home cannot be opened, which may be one that it shares.
fn unopened(home: &Home, error: &StateError) -> Failure {
    let failure = of_state(error);
    match (home.database(), error) {
        (Some(_), StateError::Open { .. }) => failure.hint(
            "look whether the server runs, and at the address in --state or HAFT_STATE; the password may be in PGPASSWORD or ~/.pgpass, too",
        ),
        _ => failure,
    }
}

/// What to do about a database that is damaged, and what that costs.
pub(crate) fn without_state(path: &str) -> String {
    format!(
        "move `{path}` away, with its `-wal` and `-shm`, and an empty one is made: grants, remembered answers, waiting questions, places and what was spent of budgets are lost with it; secrets, policy and log are not"
    )
}

/// The ledger of a home, where there is one: to look makes nothing.
pub(crate) fn records_there(
    home: &Home,
    runtime: &Runtime,
) -> Result<Option<Arc<Records>>, Failure> {
    check_home(home)?;
    let is_there = home.database().is_some() || home.path().join("state.db").exists();
    if is_there { records(home, runtime).map(Some) } else { Ok(None) }
}

/// The ledger of the home, which is made where it is not there.
pub(crate) fn records(home: &Home, runtime: &Runtime) -> Result<Arc<Records>, Failure> {
    output::make_private_folder(home.path())?;
    check_home(home)?;
    let opened = runtime.block_on(async {
        match home.database() {
            Some(database) => Records::join(home.path(), database).await,
            None => Records::open(home.path()).await,
        }
    });
    opened.map(Arc::new).map_err(|error| unopened(home, &error))
}

/// The ledger of the home to look at, which is an empty one where it is not there: nothing is made.
pub(crate) fn records_to_look(home: &Home, runtime: &Runtime) -> Result<Arc<Records>, Failure> {
    check_home(home)?;
    let opened = runtime.block_on(async {
        match home.database() {
            Some(database) => Records::join(home.path(), database).await,
            None => Records::look(home.path()).await,
        }
    });
    opened.map(Arc::new).map_err(|error| unopened(home, &error))
}

/// The vault of the home, one and the same for a whole command: its passphrase is asked for only when it is needed,
/// and then once. What a gateway has done opens it as the gateway does.
pub(crate) fn vault(home: &Home, ask: Ask) -> Result<Arc<FileVault>, Failure> {
    if changes::is_asked_elsewhere() {
        return vault_of_service(home);
    }
    vault_asking(home, ask, "Passphrase for the vault: ")
}

/// The same for a program that nobody watches: a passphrase is what the manager of services passed on, else what the desktop's
/// keyring keeps, or nothing. A secret that cannot be had is told by the call that needs it.
pub(crate) fn vault_of_service(home: &Home) -> Result<Arc<FileVault>, Failure> {
    check_home(home)?;
    install::Home::at(home.path()).settle()?;
    let place = home.path().to_owned();
    home.vault(|folder| {
        let asked = move || passed_on().or_else(|| keyring::find(&place));
        FileVault::open(folder, asked).map_err(|error| vault_failure(&error))
    })
}

/// The passphrase among the credentials that systemd passes on to a service.
fn passed_on() -> Option<Secret> {
    let folder = std::env::var_os("CREDENTIALS_DIRECTORY")?;
    let text = zeroize::Zeroizing::new(std::fs::read(Path::new(&folder).join(CREDENTIAL)).ok()?);
    let line = text.split(|byte| *byte == b'\n').next()?;
    Secret::new(std::str::from_utf8(line).ok()?.to_owned()).ok()
}

/// The same, where the passphrase is asked for in these words.
pub(crate) fn vault_asking(
    home: &Home,
    ask: Ask,
    prompt: &'static str,
) -> Result<Arc<FileVault>, Failure> {
    check_home(home)?;
    // A change that was broken off may have values in it.
    install::Home::at(home.path()).settle()?;
    home.vault(|folder| {
        let asked = move || Secret::new(ask.vault_passphrase(prompt).ok()?.to_string()).ok();
        FileVault::open(folder, asked).map_err(|error| vault_failure(&error))
    })
}

/// What to say of a vault that cannot be used.
pub(crate) fn vault_failure(error: &VaultError) -> Failure {
    let exit = match error {
        VaultError::NoPassphrase
        | VaultError::WrongPassphrase
        | VaultError::Unsafe { fault: Unsafe::Mode(_) | Unsafe::Owner, .. } => Exit::Denied,
        VaultError::Disk { .. } | VaultError::NoRandomness | VaultError::Full => Exit::Unavailable,
        _ => Exit::Invalid,
    };
    let failure = Failure::of(exit, error);
    match error {
        VaultError::NoPassphrase => failure.hint(ask::AT_TERMINAL),
        VaultError::KeyMissing { sealed, .. } => {
            failure.hint(without_key(&sealed.display().to_string()))
        }
        VaultError::Unsafe { path, fault: Unsafe::Mode(_) } => {
            failure.hint(without_others(&path.display().to_string()))
        }
        VaultError::Unsafe { path, fault: Unsafe::Owner } => {
            failure.hint(as_own(&path.display().to_string()))
        }
        _ => failure,
    }
}

/// How to go on where others may write what only the owner should.
pub(crate) fn without_writers(path: &str) -> String {
    format!("`chmod go-w {}` keeps them from it, once you have looked at it", shell::word(path))
}

/// How to go on where others may read or write what is the owner's alone.
pub(crate) fn without_others(path: &str) -> String {
    format!("`chmod go-rwx {}` keeps them from it, once you have looked at it", shell::word(path))
}

/// How to go on where something belongs to somebody else.
pub(crate) fn as_own(path: &str) -> String {
    let path = shell::word(path);
    format!("`chown \"$(id -u)\" {path}` makes it yours, once you have looked at it")
}

/// How to go on where the key of a vault is missing, which is sealed in this file.
pub(crate) fn without_key(sealed: &str) -> String {
    let sealed = line(sealed);
    format!(
        "put it back from a copy; without one the secrets are lost: remove `{sealed}` and keep them anew"
    )
}

/// Refuses to go on where the policy wants to see that the owner is there, and they do not show it.
pub(crate) fn check_presence(home: &Home, ask: Ask) -> Result<(), Failure> {
    match policy(home)?.approval.owner_presence {
        Presence::Any => Ok(()),
        Presence::Terminal => check_terminal(),
        Presence::Passphrase => check_passphrase(home, ask),
    }
}

/// The same for the passphrase itself: whoever changes one has to know it in any case, and the first one is
/// set while there is none.
pub(crate) fn check_presence_for_passphrase(home: &Home) -> Result<(), Failure> {
    match policy(home)?.approval.owner_presence {
        Presence::Any | Presence::Passphrase => Ok(()),
        Presence::Terminal => check_terminal(),
    }
}

fn check_terminal() -> Result<(), Failure> {
    if Ask::has_terminal() {
        return Ok(());
    }
    let message = "your policy wants a terminal for this, and there is none";
    Err(Failure::new(Exit::Denied, message).hint(WANTED_BY))
}

fn check_passphrase(home: &Home, ask: Ask) -> Result<(), Failure> {
    // What opens the vault for a gateway does not show that its owner is there.
    if changes::is_asked_elsewhere() {
        let message =
            "your policy wants the passphrase of the vault for this, which is typed at a terminal";
        return Err(Failure::new(Exit::Denied, message).hint(WANTED_BY));
    }
    let vault = vault(home, ask)?;
    // Nobody is asked for what there is not.
    if !vault.is_sealed().map_err(|error| vault_failure(&error))? {
        let message = "your policy wants the passphrase of the vault, and it has none";
        return Err(Failure::new(Exit::Denied, message).hint("`haft secret passphrase` sets one"));
    }
    vault.unlock().map_err(|error| {
        let mut failure = vault_failure(&error).hint(WANTED_BY);
        let message = "your policy wants the passphrase of the vault for this".to_owned();
        failure.causes.insert(0, std::mem::replace(&mut failure.message, message));
        failure
    })
}
