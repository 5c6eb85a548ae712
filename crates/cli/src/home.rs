//! The owner's home: the folder `.mcp`, and the keys in it.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ledger::state::Database;
use package::key::{KeyError, MAX_KEY_FILE, PrivateKey, PublicKey};
use sandbox::held;
use vault::{FileVault, Secret};
use zeroize::Zeroizing;

use crate::exit::{Exit, Failure};
use crate::output;
use crate::printer::{Printer, line};
use crate::shell;

/// Names the state that is shared.
pub(crate) const STATE: &str = "HAFT_STATE";
/// What a public key's file ends in.
const PUBLIC: &str = "pub";
/// What a private key's file ends in.
const PRIVATE: &str = "key";
/// Room for a key's file.
const KEY_ROOM: usize = 64 * 1024;
/// The folder of the vault.
pub(crate) const VAULT: &str = "vault";
/// How the folder is called, to begin with, in which a home is that is gone when the command ends that made it.
pub(crate) const THROWN_AWAY: &str = "haft-up-";
/// What it is called there.
pub(crate) const WITHIN: &str = "home";
/// The longest name of a key.
const MAX_NAME: usize = 64;

/// The owner's home. It is made only when something is put into it.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    path: PathBuf,
    /// Whether the command line names it, which counts for more than what the environment says.
    is_typed: bool,
    /// Its vault, once somebody needed it.
    vault: Arc<OnceLock<Arc<FileVault>>>,
    /// The state that it shares with others, where it does.
    shared: Option<SharedState>,
}

/// The state that replicas share: where it is, and the address as it was written, which may hold a password and is passed on
/// to programs of ours alone.
#[derive(Clone, Debug)]
struct SharedState {
    database: Database,
    address: Secret,
}

/// A key whose signatures the owner trusts.
#[derive(Clone, Debug)]
pub(crate) struct Trusted {
    pub(crate) name: String,
    pub(crate) key: PublicKey,
    /// Whether the private half is here too.
    pub(crate) own: bool,
}

impl Home {
    /// The folder named by `--home`, by `HAFT_HOME`, or `~/.mcp`.
    pub(crate) fn find(flag: Option<&Path>) -> Result<Self, Failure> {
        let path = match (flag, std::env::var_os("HAFT_HOME").filter(|path| !path.is_empty())) {
            (Some(path), _) => path.to_owned(),
            (None, Some(path)) => path.into(),
            (None, None) => user_home()?.join(".mcp"),
        };
        if fs::metadata(&path).is_ok_and(|found| !found.is_dir()) {
            let message = format!("`{}` is no folder, and a home is one", path.display());
            return Err(Failure::invalid(message).hint("name another with --home or HAFT_HOME"));
        }
        let home = Self { path, is_typed: flag.is_some(), vault: Arc::default(), shared: None };
        // Whoever still names it wants what was there, and nothing that would be made there now.
        if home.is_thrown_away() && !home.path.parent().is_some_and(Path::exists) {
            let message =
                format!("`{}` was the home of a `haft up` that has ended", home.path.display());
            let failure = Failure::new(Exit::NotFound, message);
            return Err(failure.hint("`unset HAFT_HOME` leads to your own"));
        }
        Ok(home)
    }

    /// Whether it is gone when the command ends that made it.
    pub(crate) fn is_thrown_away(&self) -> bool {
        let folder = self.path.parent().and_then(Path::file_name);
        folder.is_some_and(|name| name.to_string_lossy().starts_with(THROWN_AWAY))
    }

    /// The homes of this machine that are served, and gone when the `haft up` ends that made them.
    fn thrown_away() -> impl Iterator<Item = PathBuf> {
        let held = held::in_use(&std::env::temp_dir(), THROWN_AWAY);
        let homes = held.into_iter().map(|folder| folder.join(WITHIN));
        // In a home that was named it keeps no more than what it publishes.
        homes.filter(|home| home.join(gateway::socket::SOCKET).exists())
    }

    /// What leads to the homes of every `haft up` that runs, for whoever may mean one of them and not this one.
    pub(crate) fn ways_elsewhere(&self) -> Vec<String> {
        if self.is_thrown_away() {
            return Vec::new();
        }
        let way = |other: PathBuf| {
            let other = shell::word(&other.display().to_string());
            format!("`export HAFT_HOME={other}` leads to the home of a `haft up` that runs")
        };
        Self::thrown_away().map(way).collect()
    }

    /// The same, with the state that is named by `--state` or by `HAFT_STATE`.
    pub(crate) fn sharing(mut self, flag: Option<&str>) -> Result<Self, Failure> {
        let variable = std::env::var(STATE).ok();
        let named = flag.map(str::to_owned).or(variable).filter(|address| !address.is_empty());
        if let Some(address) = named {
            let database = Database::parse(&address).map_err(|error| {
                Failure::invalid(error.to_string())
                    .hint("write postgres://USER@HOST:PORT/DATABASE; the password may be in PGPASSWORD or ~/.pgpass")
            })?;
            let address = Secret::new(address)
                .map_err(|_| Failure::invalid("the address of the shared state is too long"))?;
            self.shared = Some(SharedState { database, address });
        }
        Ok(self)
    }

    /// The state that it shares with others, where it does.
    pub(crate) fn database(&self) -> Option<&Database> {
        self.shared.as_ref().map(|shared| &shared.database)
    }

    /// Tells a program of ours of the state that is shared, where nobody else sees it.
    pub(crate) fn tell_state(&self, command: &mut std::process::Command) {
        if let Some(shared) = &self.shared {
            command.env(STATE, shared.address.expose());
        }
    }

    /// Whether it is the one that is meant where nobody names any.
    pub(crate) fn is_usual(&self) -> bool {
        user_home().is_ok_and(|user| user.join(".mcp") == self.path)
    }

    /// The whole path by which a program is told of it that knows nothing of the owner's variables; the usual one needs none.
    pub(crate) fn unusual(&self) -> Option<String> {
        (!self.is_usual()).then(|| {
            let whole = self.path.canonicalize().or_else(|_| std::path::absolute(&self.path));
            whole.unwrap_or_else(|_| self.path.clone()).to_string_lossy().into_owned()
        })
    }

    /// Whether it was named by `--home`.
    pub(crate) fn is_typed(&self) -> bool {
        self.is_typed
    }

    /// Where it is, or would be.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A failure, and where it is set that this is the home, if it is about something in it.
    pub(crate) fn place(&self, failure: Failure) -> Failure {
        let path = self.path.display();
        let (whole, within) = (format!("`{path}`"), format!("`{path}/"));
        let is_here = |text: &String| text.contains(&whole) || text.contains(&within);
        let is_here = failure.causes.iter().chain([&failure.message]).any(is_here);
        // Where it is known what to do, the place is not what is wrong.
        if failure.exit != Exit::Unavailable || !failure.hints.is_empty() || !is_here {
            return failure;
        }
        failure.hint(format!(
            "haft keeps its files in `{path}`; --home or HAFT_HOME names another folder"
        ))
    }

    /// Its vault, which is opened the first time and then stays open.
    pub(crate) fn vault(
        &self,
        open: impl FnOnce(PathBuf) -> Result<FileVault, Failure>,
    ) -> Result<Arc<FileVault>, Failure> {
        if let Some(vault) = self.vault.get() {
            return Ok(Arc::clone(vault));
        }
        let opened = Arc::new(open(self.path.join(VAULT))?);
        Ok(Arc::clone(self.vault.get_or_init(|| opened)))
    }

    fn keys(&self) -> PathBuf {
        self.path.join("keys")
    }

    fn key_file(&self, name: &str, kind: &str) -> PathBuf {
        self.keys().join(format!("{name}.{kind}"))
    }

    /// Every key whose signatures the owner trusts, by name.
    pub(crate) fn trusted(&self, printer: Printer) -> Result<Vec<Trusted>, Failure> {
        let entries = match fs::read_dir(self.keys()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(&self.keys(), error)),
        };
        check_owned(&self.keys())?;
        let mut names = BTreeSet::new();
        for entry in entries.flatten() {
            let path = entry.path();
            let is_key = path.extension().is_some_and(|kind| kind == PUBLIC || kind == PRIVATE);
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
            names.extend(name.filter(|name| is_key && check_name(name).is_ok()));
        }
        let mut trusted = Vec::new();
        for name in names {
            match self.public(&name) {
                Ok(key) => trusted.push(Trusted { own: self.is_own(&name), name, key }),
                // One bad file does not keep the others from being trusted.
                Err(failure) => printer.warn(&format!(
                    "{}: {}",
                    line(&failure.message),
                    line(&failure.causes.join(": "))
                )),
            }
        }
        Ok(trusted)
    }

    /// Whether the private half of a key is here.
    pub(crate) fn is_own(&self, name: &str) -> bool {
        self.key_file(name, PRIVATE).exists()
    }

    /// Keeps a new key; one of that name is never replaced.
    pub(crate) fn keep(
        &self,
        name: &str,
        key: &PrivateKey,
        passphrase: Option<&str>,
    ) -> Result<PathBuf, Failure> {
        let text = key.to_file(passphrase).map_err(|error| bad_key(name, error))?;
        self.make_keys()?;
        let path = self.key_file(name, PRIVATE);
        // From here on there is a key, also when we are killed: it names its public half itself.
        output::keep_secret(&path, text.as_bytes())?;
        self.trust(name, key.public()).inspect_err(|_| {
            // Half a key is no key.
            let _ = fs::remove_file(&path);
        })?;
        Ok(path)
    }

    /// Trusts another's key.
    pub(crate) fn trust(&self, name: &str, key: PublicKey) -> Result<PathBuf, Failure> {
        self.make_keys()?;
        let path = self.key_file(name, PUBLIC);
        output::keep(&path, format!("{key} {name}\n").as_bytes())?;
        Ok(path)
    }

    /// Refuses a name that is taken.
    pub(crate) fn check_free(&self, name: &str) -> Result<(), Failure> {
        let taken = [PRIVATE, PUBLIC].iter().any(|kind| self.key_file(name, kind).exists());
        if taken {
            let message = format!("there is a key `{name}` already");
            return Err(Failure::new(Exit::Conflict, message).hint(format!(
                "choose another name, or `haft key remove {} --yes` first",
                shell::word(name)
            )));
        }
        Ok(())
    }

    /// Forgets a key; whether there was one.
    pub(crate) fn forget(&self, name: &str) -> Result<(), Failure> {
        let mut found = false;
        for kind in [PUBLIC, PRIVATE] {
            let path = self.key_file(name, kind);
            match fs::remove_file(&path) {
                Ok(()) => found = true,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    let message = format!("failed to remove `{}`", path.display());
                    return Err(Failure::new(Exit::Unavailable, message).cause(error));
                }
            }
        }
        if found { output::sync_folder(&self.keys()) } else { Err(self.no_such(name)) }
    }

    /// The public key of that name.
    pub(crate) fn public(&self, name: &str) -> Result<PublicKey, Failure> {
        check_name(name).map_err(Failure::invalid)?;
        let (own, path) = (self.key_file(name, PRIVATE), self.key_file(name, PUBLIC));
        if own.exists() {
            let text = read_text(&own)?;
            return PrivateKey::public_of(&text).map_err(|error| bad_key(name, error));
        }
        if !path.exists() {
            return Err(self.no_such(name));
        }
        check_owned(&path)?;
        read_public(&path)
    }

    /// The text of a private key's file, which nobody but its owner may be able to read.
    pub(crate) fn private(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        check_name(name).map_err(Failure::invalid)?;
        let path = self.key_file(name, PRIVATE);
        if !path.exists() {
            if self.key_file(name, PUBLIC).exists() {
                let message =
                    format!("only the public half of `{name}` is here, and it cannot sign");
                return Err(Failure::new(Exit::NotFound, message));
            }
            return Err(self.no_such(name));
        }
        let file = fs::File::open(&path).map_err(|error| unreadable(&path, error))?;
        check_private(&file, &path)?;
        read_from(file, &path)
    }

    fn no_such(&self, name: &str) -> Failure {
        let failure = Failure::new(Exit::NotFound, format!("there is no key `{name}`"));
        let names: Vec<String> = self
            .trusted(Printer::silent())
            .unwrap_or_default()
            .into_iter()
            .map(|key| key.name)
            .collect();
        failure.hint(match names.as_slice() {
            [] => format!("`haft key new {}` makes one", shell::word(name)),
            names => format!("there is {}", names.join(", ")),
        })
    }

    fn make_keys(&self) -> Result<(), Failure> {
        for folder in [self.path.clone(), self.keys()] {
            output::make_private_folder(&folder)?;
        }
        Ok(())
    }
}

/// The folder of whoever runs this.
fn user_home() -> Result<PathBuf, Failure> {
    let found = std::env::home_dir().filter(|path| !path.as_os_str().is_empty());
    let wrong = match &found {
        Some(path) if path.is_absolute() => return Ok(path.clone()),
        Some(path) => format!("it is `{}`, which is no whole path", path.display()),
        None => "it is not set".to_owned(),
    };
    let message = format!("the variable `HOME` does not name your home folder: {wrong}");
    Err(Failure::new(Exit::NotFound, message)
        .hint("set HOME, or name the folder for haft itself with --home or HAFT_HOME"))
}

/// Refuses a name that cannot be a file's on every system.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_plain =
        name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    let begins = name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    let is_file = [PUBLIC, PRIVATE].iter().any(|kind| name.ends_with(&format!(".{kind}")));
    let is_name = begins && is_plain && !is_file && name.len() <= MAX_NAME;
    if is_name && manifest::path::check_path(name).is_ok() {
        Ok(())
    } else {
        Err("a key's name has letters of ASCII, digits, `-`, `_` and `.`, begins with a letter or digit, does not end in `.pub` or `.key`, and is no device's"
            .to_owned())
    }
}

/// Reads a file with a public key.
pub(crate) fn read_public(path: &Path) -> Result<PublicKey, Failure> {
    let text = read_text(path)?;
    PublicKey::parse(&text).map_err(|error| bad_key(&path.display().to_string(), error))
}

/// What to say of a key that cannot be used.
pub(crate) fn bad_key(name: &str, error: KeyError) -> Failure {
    let exit = match error {
        KeyError::NoRandomness => Exit::Unavailable,
        KeyError::WrongPassphrase | KeyError::Sealed => Exit::Denied,
        _ => Exit::Invalid,
    };
    Failure::new(exit, format!("the key `{name}` cannot be used")).cause(error)
}

fn read_text(path: &Path) -> Result<Zeroizing<String>, Failure> {
    read_from(fs::File::open(path).map_err(|error| unreadable(path, error))?, path)
}

/// Reads a key's file; nothing of it stays in memory.
fn read_from(file: fs::File, path: &Path) -> Result<Zeroizing<String>, Failure> {
    // As much room as it may need, so that it is never moved and left behind.
    let mut text = Zeroizing::new(String::with_capacity(KEY_ROOM));
    file.take(MAX_KEY_FILE).read_to_string(&mut text).map_err(|error| unreadable(path, error))?;
    Ok(text)
}

fn unreadable(path: &Path, error: std::io::Error) -> Failure {
    Failure::unread(path.display(), error)
}

#[cfg(unix)]
fn check_private(file: &fs::File, path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    let mode = file.metadata().map_err(|error| unreadable(path, error))?.permissions().mode();
    let others = mode & 0o077;
    if others == 0 {
        return Ok(());
    }
    let shown = path.display();
    let message = format!("others can read the private key `{shown}` (mode {:04o})", mode & 0o7777);
    Err(Failure::new(Exit::Denied, message)
        .hint(format!("chmod 600 {}", shell::word(&shown.to_string()))))
}

/// Refuses what others could have changed: it says whom the owner trusts.
#[cfg(unix)]
fn check_owned(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path).map_err(|error| unreadable(path, error))?.permissions().mode();
    let others = mode & 0o022;
    if others == 0 {
        return Ok(());
    }
    let shown = path.display();
    let message = format!("others can change `{shown}`, so it says nothing about whom you trust");
    Err(Failure::new(Exit::Denied, message)
        .hint(format!("chmod go-w {}", shell::word(&shown.to_string()))))
}

#[cfg(not(unix))]
fn check_owned(_path: &Path) -> Result<(), Failure> {
    Ok(())
}

#[cfg(not(unix))]
fn check_private(_file: &fs::File, _path: &Path) -> Result<(), Failure> {
    Ok(())
}
