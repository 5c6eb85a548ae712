//! Our own vault: one sealed file in a folder of its own.
//!
//! | file | what it is |
//! |---|---|
//! | `secrets.json` | every secret, sealed, with its owner, name and times in the open |
//! | `key` | the key, where no passphrase was set; else the key is in `secrets.json`, sealed |
//! | `lock` | held by whoever writes |
//! | `*.new` | being written, or left by somebody who was killed; removed by the next who writes |
//!
//! A change is one rename of `secrets.json`: whatever is killed and whenever, the vault is as before
//! or as after. A new key is written beside the old one first, so the rename switches both at once.

mod base64_bytes;
mod error;
mod folder;
mod format;
mod seal;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use error::{Unsafe, VaultError};
pub use format::{Listed, Unreadable, listed_in};

use self::folder::{Folder, Lock, MAX_FILE};
use self::format::{Contents, Entry, Kept, KeyFile, KeyId};
use self::seal::{Key, Underivable, WORK, random};
use crate::place::{Owner, Place};
use crate::secret::Secret;

const SECRETS: &str = "secrets.json";
const KEY: &str = "key";

/// A vault in a folder. There need not be one yet: the first secret makes it.
pub struct FileVault {
    path: PathBuf,
    ask: Box<dyn Fn() -> Option<Secret> + Send + Sync>,
    /// What was opened last, so that a passphrase is asked for once.
    opened: Mutex<Option<Opened>>,
    /// How long whoever was asked took, all together.
    waited: Mutex<Duration>,
}

/// A key, and the passphrase that opened it, where it took one.
#[derive(Clone)]
struct Opened {
    id: KeyId,
    key: Key,
    passphrase: Option<Secret>,
}

/// What the next key is kept under.
enum Under<'p> {
    /// What the last one was.
    Same,
    File,
    Passphrase(&'p Secret),
}

/// What the file of the secrets is to hold. While this is there, nobody else changes it.
pub struct Change {
    bytes: Vec<u8>,
    _lock: Lock,
}

impl Change {
    /// The name of the file in the folder of the vault.
    pub const FILE: &'static str = SECRETS;

    /// What is to be in it, for the owner alone to read.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::fmt::Debug for Change {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Change")
    }
}

/// The vault while nobody else can write to it, with its key at hand.
struct Writing {
    folder: Folder,
    lock: Lock,
    current: Option<(Contents, Opened)>,
}

impl std::fmt::Debug for FileVault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("FileVault").field("path", &self.path).finish_non_exhaustive()
    }
}

impl FileVault {
    /// The vault in a folder, whose parent exists. `ask` is called when the passphrase is needed and at
    /// no other time; `None` means that nobody can be asked.
    pub fn open(
        folder: impl Into<PathBuf>,
        ask: impl Fn() -> Option<Secret> + Send + Sync + 'static,
    ) -> Result<Self, VaultError> {
        let vault = Self {
            path: folder.into(),
            ask: Box::new(ask),
            opened: Mutex::new(None),
            waited: Mutex::default(),
        };
        vault.read()?;
        Ok(vault)
    }

    /// How long whoever was asked for the passphrase has taken so far.
    pub fn waited(&self) -> Duration {
        *self.waited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> Option<Secret> {
        let began = Instant::now();
        let said = (self.ask)();
        *self.waited.lock().unwrap_or_else(PoisonError::into_inner) += began.elapsed();
        said
    }

    /// Every secret without its value, in order; needs no passphrase.
    pub fn list(&self) -> Result<Vec<Listed>, VaultError> {
        Ok(self.read()?.map(|(_, contents)| contents.listed()).unwrap_or_default())
    }

    /// Whether the vault has a passphrase.
    pub fn is_sealed(&self) -> Result<bool, VaultError> {
        let read = self.read()?;
        Ok(read.is_some_and(|(_, contents)| matches!(contents.key, Kept::Passphrase { .. })))
    }

    /// The file of the secrets, where it is missing though a key of theirs is there. A writer that was killed before
    /// the first secret was kept leaves this behind too, so it is no failure.
    pub fn missing(&self) -> Result<Option<PathBuf>, VaultError> {
        let Some(folder) = Folder::open(&self.path)? else { return Ok(None) };
        let is_missing = folder.read(SECRETS)?.is_none() && folder.read(KEY)?.is_some();
        Ok(is_missing.then(|| folder.file(SECRETS)))
    }

    /// The value of a secret; one that is not there needs no passphrase.
    pub fn get(&self, place: &Place) -> Result<Option<Secret>, VaultError> {
        loop {
            let Some((folder, contents)) = self.read()? else { return Ok(None) };
            let Some(entry) = contents.find(place) else { return Ok(None) };
            let id = contents.key.id();
            match self.opened(&folder, &contents.key) {
                Ok(opened) => return entry.open((id, &opened.key)).map(Some),
                // Between our two looks somebody may have put another key in place.
                Err(VaultError::KeyMissing { .. } | VaultError::OtherKey(_))
                    if self.has_moved_on(id)? => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Keeps a value, in place of the one that may be there.
    pub fn set(&self, place: &Place, value: &Secret) -> Result<(), VaultError> {
        self.begin()?.set(place, value)
    }

    /// Prepares to keep values: somebody else puts the file in its place, together with what it belongs to. Nobody else
    /// changes the vault meanwhile.
    pub fn change(&self, values: &[(Place, Secret)]) -> Result<Change, VaultError> {
        let writing = self.begin()?;
        let (mut contents, key) = match writing.current {
            Some((contents, opened)) => (contents, opened.key),
            None => new_vault(&writing.folder, &writing.lock)?,
        };
        for (place, value) in values {
            contents.put(&key, place, value)?;
        }
        let bytes = contents.to_bytes();
        if bytes.len() > MAX_FILE {
            return Err(VaultError::Full);
        }
        Ok(Change { bytes, _lock: writing.lock })
    }

    /// Prepares to remove all secrets of these, in the same way; `None` where there are none. Needs no passphrase.
    pub fn change_without(&self, owners: &[Owner]) -> Result<Option<Change>, VaultError> {
        let Some(folder) = Folder::open(&self.path)? else { return Ok(None) };
        let lock = folder.lock()?;
        let Some(mut contents) = read_contents(&folder)? else { return Ok(None) };
        let before = contents.entries.len();
        contents.entries.retain(|entry| !owners.iter().any(|owner| entry.is_of(owner)));
        let is_changed = contents.entries.len() < before;
        Ok(is_changed.then(|| Change { bytes: contents.to_bytes(), _lock: lock }))
    }

    /// Keeps a value in place of another, where that is still what is kept; says whether it was.
    pub fn replace(&self, place: &Place, old: &Secret, new: &Secret) -> Result<bool, VaultError> {
        let writing = self.begin()?;
        let Some((contents, opened)) = &writing.current else { return Ok(false) };
        let Some(entry) = contents.find(place) else { return Ok(false) };
        if entry.open((contents.key.id(), &opened.key))?.expose() != old.expose() {
            return Ok(false);
        }
        writing.set(place, new).map(|()| true)
    }

    /// Removes a secret; says whether there was one. Needs no passphrase.
    pub fn remove(&self, place: &Place) -> Result<bool, VaultError> {
        let Some(folder) = Folder::open(&self.path)? else { return Ok(false) };
        let lock = folder.lock()?;
        let Some(mut contents) = read_contents(&folder)? else { return Ok(false) };
        let before = contents.entries.len();
        contents.entries.retain(|entry| !entry.is_at(place));
        let is_changed = contents.entries.len() < before;
        if is_changed {
            commit(&folder, &lock, &contents)?;
        }
        Ok(is_changed)
    }

    /// Puts a new key in place of the old one and seals everything again. With a passphrase, the same
    /// one seals the new key, and is asked for unless it was before.
    pub fn rotate(&self) -> Result<(), VaultError> {
        self.rekey(&Under::Same)
    }

    /// Sets or changes the passphrase. The key is a new one, and no plain one is left on the disk.
    pub fn set_passphrase(&self, passphrase: &Secret) -> Result<(), VaultError> {
        self.rekey(&Under::Passphrase(passphrase))
    }

    /// Takes the passphrase away: a new key is kept in a file that only its owner can read.
    pub fn remove_passphrase(&self) -> Result<(), VaultError> {
        self.rekey(&Under::File)
    }

    /// Has the passphrase at hand: it is asked for, unless it opened this vault before. A vault without one
    /// cannot be unlocked.
    pub fn unlock(&self) -> Result<(), VaultError> {
        match self.read()? {
            Some((folder, contents)) if matches!(contents.key, Kept::Passphrase { .. }) => {
                self.opened(&folder, &contents.key).map(drop)
            }
            _ => Err(VaultError::NotSealed),
        }
    }

    fn rekey(&self, under: &Under<'_>) -> Result<(), VaultError> {
        let writing = self.begin()?;
        let (id, key) = (KeyId::new()?, Key::generate()?);
        let mut entries = Vec::new();
        let mut plain = vec![(id, &key)];
        let mut passphrase = None;
        if let Some((contents, old)) = &writing.current {
            for entry in &contents.entries {
                let value = entry.open((contents.key.id(), &old.key))?;
                entries.push(Entry::seal((id, &key), &entry.listed(), &value)?);
            }
            if matches!(contents.key, Kept::File { .. }) {
                plain.push((contents.key.id(), &old.key));
            }
            passphrase.clone_from(&old.passphrase);
        }
        match under {
            Under::Same => {}
            Under::File => passphrase = None,
            Under::Passphrase(new) => passphrase = Some((*new).clone()),
        }
        let kept = match &passphrase {
            None => {
                let file = KeyFile::new(&plain).to_bytes();
                writing.folder.replace(&writing.lock, KEY, &file)?;
                Kept::File { id }
            }
            Some(passphrase) => seal_key(id, &key, passphrase)?,
        };
        commit(&writing.folder, &writing.lock, &Contents::new(kept, entries))?;
        self.remember(Opened { id, key, passphrase });
        Ok(())
    }

    /// Locks the vault and has its key at hand. Nobody is asked for a passphrase while others wait.
    fn begin(&self) -> Result<Writing, VaultError> {
        let folder = Folder::make(&self.path)?;
        loop {
            if let Some(contents) = read_contents(&folder)? {
                match self.opened(&folder, &contents.key) {
                    Err(VaultError::KeyMissing { .. } | VaultError::OtherKey(_))
                        if self.has_moved_on(contents.key.id())? =>
                    {
                        continue;
                    }
                    opened => drop(opened?),
                }
            }
            let lock = folder.lock()?;
            let Some(contents) = read_contents(&folder)? else {
                return Ok(Writing { folder, lock, current: None });
            };
            if let Some(opened) = self.remembered(contents.key.id()) {
                return Ok(Writing { folder, lock, current: Some((contents, opened)) });
            }
            // Somebody was faster and put another key in place.
        }
    }

    fn read(&self) -> Result<Option<(Folder, Contents)>, VaultError> {
        let Some(folder) = Folder::open(&self.path)? else { return Ok(None) };
        Ok(read_contents(&folder)?.map(|contents| (folder, contents)))
    }

    fn has_moved_on(&self, from: KeyId) -> Result<bool, VaultError> {
        Ok(self.read()?.is_none_or(|(_, contents)| contents.key.id() != from))
    }

    fn remember(&self, opened: Opened) {
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
    }

    fn remembered(&self, id: KeyId) -> Option<Opened> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.as_ref().filter(|known| known.id == id).cloned()
    }

    /// The key, opened now or before.
    fn opened(&self, folder: &Folder, kept: &Kept) -> Result<Opened, VaultError> {
        if let Some(opened) = self.remembered(kept.id()) {
            return Ok(opened);
        }
        let id = kept.id();
        let opened = match kept {
            Kept::File { .. } => {
                let keys = read_keys(folder)?.ok_or_else(|| VaultError::KeyMissing {
                    key: folder.file(KEY),
                    sealed: folder.file(SECRETS),
                })?;
                let key = keys.find(id).ok_or_else(|| VaultError::OtherKey(folder.file(KEY)))?;
                Opened { id, key, passphrase: None }
            }
            Kept::Passphrase { .. } => {
                let passphrase = self.asked().ok_or(VaultError::NoPassphrase)?;
                let key = unseal(folder, kept, &passphrase)?;
                Opened { id, key, passphrase: Some(passphrase) }
            }
        };
        self.remember(opened.clone());
        Ok(opened)
    }
}

impl Writing {
    /// Keeps a value, in place of the one that may be there.
    fn set(self, place: &Place, value: &Secret) -> Result<(), VaultError> {
        let (mut contents, key) = match self.current {
            Some((contents, opened)) => (contents, opened.key),
            None => new_vault(&self.folder, &self.lock)?,
        };
        contents.put(&key, place, value)?;
        commit(&self.folder, &self.lock, &contents)
    }
}

impl Contents {
    /// Puts a value in, in place of the one that may be there.
    fn put(&mut self, key: &Key, place: &Place, value: &Secret) -> Result<(), VaultError> {
        let now = now();
        let created = self.find(place).map_or(now, |entry| entry.listed().created);
        let listed = Listed { place: place.clone(), created, changed: now };
        let entry = Entry::seal((self.key.id(), key), &listed, value)?;
        self.entries.retain(|entry| !entry.is_at(place));
        self.entries.push(entry);
        Ok(())
    }
}

/// An empty vault, whose key is already on the disk.
fn new_vault(folder: &Folder, lock: &Lock) -> Result<(Contents, Key), VaultError> {
    let (id, key) = (KeyId::new()?, Key::generate()?);
    folder.replace(lock, KEY, &KeyFile::new(&[(id, &key)]).to_bytes())?;
    Ok((Contents::new(Kept::File { id }, Vec::new()), key))
}

/// Makes the contents those of the vault, and forgets every other key.
fn commit(folder: &Folder, lock: &Lock, contents: &Contents) -> Result<(), VaultError> {
    let bytes = contents.to_bytes();
    if bytes.len() > MAX_FILE {
        return Err(VaultError::Full);
    }
    folder.replace(lock, SECRETS, &bytes)?;
    // It is done. A key that stays because this fails opens nothing, and the next change removes it.
    let _ = forget_other_keys(folder, lock, &contents.key);
    Ok(())
}

fn forget_other_keys(folder: &Folder, lock: &Lock, kept: &Kept) -> Result<(), VaultError> {
    match (kept, read_keys(folder)?) {
        (Kept::Passphrase { .. }, _) => folder.remove(lock, KEY),
        (Kept::File { id }, Some(keys)) if !keys.is_only(*id) => match keys.find(*id) {
            Some(key) => folder.replace(lock, KEY, &KeyFile::new(&[(*id, &key)]).to_bytes()),
            None => Ok(()),
        },
        (Kept::File { .. }, _) => folder.remove_unfinished(lock, KEY),
    }
}

fn seal_key(id: KeyId, key: &Key, passphrase: &Secret) -> Result<Kept, VaultError> {
    let salt: [u8; 16] = random()?;
    let outer = Key::derive(passphrase.expose(), &salt, WORK);
    let outer = outer.unwrap_or_else(|_| unreachable!("our own work is within our own bounds"));
    let key = outer.seal(key.as_bytes(), id.as_bytes())?;
    Ok(Kept::Passphrase { id, work: WORK, salt, key })
}

fn unseal(folder: &Folder, kept: &Kept, passphrase: &Secret) -> Result<Key, VaultError> {
    let Kept::Passphrase { id, work, salt, key } = kept else { return Err(VaultError::NotSealed) };
    let outer = Key::derive(passphrase.expose(), salt, *work).map_err(|fault| match fault {
        Underivable::TooCostly => VaultError::TooCostly(folder.file(SECRETS)),
        Underivable::Malformed => VaultError::Malformed(folder.file(SECRETS)),
    })?;
    let opened = outer.open(key, id.as_bytes()).ok_or(VaultError::WrongPassphrase)?;
    Key::from_bytes(&opened).ok_or_else(|| VaultError::Malformed(folder.file(SECRETS)))
}

fn read_contents(folder: &Folder) -> Result<Option<Contents>, VaultError> {
    let bytes = folder.read(SECRETS)?;
    bytes.map(|bytes| Contents::parse(&bytes)).transpose().map_err(|u| named(folder, SECRETS, u))
}

fn read_keys(folder: &Folder) -> Result<Option<KeyFile>, VaultError> {
    let bytes = folder.read(KEY)?;
    bytes.map(|bytes| KeyFile::parse(&bytes)).transpose().map_err(|u| named(folder, KEY, u))
}

fn named(folder: &Folder, file: &str, unreadable: Unreadable) -> VaultError {
    match unreadable {
        Unreadable::Malformed => VaultError::Malformed(folder.file(file)),
        Unreadable::Later => VaultError::Later(folder.file(file)),
    }
}

fn now() -> u64 {
    // A clock before 1970 says nothing worth keeping.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
