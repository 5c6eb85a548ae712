//! Changes of a home: each is made whole or not at all, while nobody else makes one.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use manifest::dialect::Dialect;

use crate::catalog::{self, Local, id_in_catalog};
use crate::contents::Contents;
use crate::error::{Doing, HomeError};
use crate::home::{Home, PACKAGES, TOOLS, key};
use crate::journal::{Draft, Step};
use crate::key::Key;
use crate::lockfile::{self, Lockfile};
use crate::pinned::Pinned;
use crate::record::{self, Record};
use crate::revoked::{self, Revocation, Revocations};

/// A home that is locked, to be changed.
#[derive(Debug)]
pub struct Changing {
    home: Home,
    contents: Contents,
    _held: File,
}

/// A version that is ready to be put in its place.
#[derive(Debug)]
pub struct Ready {
    /// The name of the folder with its files, in the draft.
    pub room: String,
    /// Where that is.
    pub folder: PathBuf,
    /// How it came here.
    pub record: Record,
    /// Its entry in the local catalog.
    pub entry: serde_json::Value,
}

/// What became of a version that was to be put in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is the first one.
    Installed,
    /// It took the place of another version.
    Replaced,
    /// It was there already.
    There,
}

/// Why a version was not put in its place.
#[derive(Debug)]
pub enum PutError {
    /// Other bytes are installed under the same version of this package.
    OtherBytes(String),
    /// The home could not be changed.
    Home(HomeError),
}

impl From<HomeError> for PutError {
    fn from(error: HomeError) -> Self {
        Self::Home(error)
    }
}

impl Home {
    /// Locks it against every other change, and finishes one that was broken off.
    pub fn lock(&self) -> Result<Changing, HomeError> {
        let held = self.hold()?;
        let contents = self.look()?;
        Ok(Changing { home: self.clone(), contents, _held: held })
    }

    /// The same where what is in it cannot be read: nothing is left to do with it but to take it away.
    pub fn lock_broken(&self) -> Result<Changing, HomeError> {
        match self.lock() {
            Err(HomeError::Broken { .. }) => {
                let held = self.hold()?;
                Ok(Changing { home: self.clone(), contents: Contents::default(), _held: held })
            }
            locked => locked,
        }
    }
}

impl Changing {
    /// What is in the home now.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Puts versions in their places, all or none. The one of each that was active stays beside it, and those before that
    /// are removed; so are the packages that are to go.
    pub fn put(
        &mut self,
        mut draft: Draft,
        ready: Vec<Ready>,
        going: &[Pinned],
    ) -> Result<Vec<Put>, PutError> {
        let (mut lock, mut local) = (self.contents.lock.clone(), self.local()?);
        let mut revoked = self.contents.revoked.clone();
        let mut done = Vec::new();
        for one in ready {
            let id = one.record.pinned.id.clone();
            done.push(self.prepare(one, &mut draft, &mut lock, &mut local)?);
            revoked.take(&id);
        }
        for pinned in going {
            leave(pinned, &mut draft, &mut lock, &mut local)?;
            revoked.take(&pinned.id);
        }
        self.put_revoked(&mut draft, &revoked)?;
        if !going.is_empty() || done.iter().any(|put| *put != Put::There) {
            self.finish(draft, &lock, &local)?;
        }
        Ok(done)
    }

    /// Prepares one version to be put in its place.
    fn prepare(
        &self,
        ready: Ready,
        draft: &mut Draft,
        lock: &mut Lockfile,
        local: &mut Local,
    ) -> Result<Put, PutError> {
        let Ready { room, folder: staged, mut record, entry } = ready;
        let revoked = &self.contents.revoked;
        let key = key(&record.pinned)?;
        let folder = record.pinned.folder();
        let before = self.contents.lock.get(&record.pinned.id).cloned();
        if let Some(before) = &before {
            if before.version == record.pinned.version && before.package != record.pinned.package {
                return Err(PutError::OtherBytes(before.id.clone()));
            }
            // One that somebody went back from is still here, and still what it was.
            if self.home.has_other(&key, &record.pinned) {
                return Err(PutError::OtherBytes(before.id.clone()));
            }
            // What was revoked is put there anew.
            let is_revoked = revoked.get(&before.id).is_some();
            if before.folder() == folder && self.home.holds_whole(before) && !is_revoked {
                return Ok(Put::There);
            }
        }
        let before = before.filter(|before| before.folder() != folder);
        record.replaced = before.as_ref().map(Pinned::folder);
        let place = staged.join(record::NAME);
        let doing = Doing::Write(place.clone());
        let made = place.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&place, record.to_bytes()))
            .map_err(|cause| doing.failed(cause))?;
        let to = format!("{PACKAGES}/{key}/{folder}");
        // A version that was replaced before is put there anew.
        if self.home.path().join(&to).exists() {
            draft.step(Step::Remove { at: to.clone() });
        }
        draft.step(Step::Move { from: room, to });
        for old in self.others(&key, &[Some(&folder), record.replaced.as_ref()])? {
            draft.step(Step::Remove { at: old });
        }
        lead(&record.pinned, draft)?;
        // What was revoked was switched off for that alone.
        let entry = match revoked.get(&record.pinned.id) {
            Some(_) => entry,
            None => keeping(entry, local),
        };
        lock.put(record.pinned);
        local.put(entry);
        Ok(if before.is_some() { Put::Replaced } else { Put::Installed })
    }

    /// Takes a package away, with every version of it.
    pub fn remove(&mut self, mut draft: Draft, pinned: &Pinned) -> Result<(), HomeError> {
        let (mut lock, mut local) = (self.contents.lock.clone(), self.local()?);
        leave(pinned, &mut draft, &mut lock, &mut local)?;
        self.forgive(&mut draft, &pinned.id)?;
        self.finish(draft, &lock, &local)
    }

    /// Makes the version active again that was before this one; its entry is that of `entry`.
    pub fn roll_back(&mut self, record: Record, entry: serde_json::Value) -> Result<(), HomeError> {
        let mut draft = self.home.draft()?;
        let (mut lock, mut local) = (self.contents.lock.clone(), self.local()?);
        lead(&record.pinned, &mut draft)?;
        self.forgive(&mut draft, &record.pinned.id)?;
        lock.put(record.pinned);
        local.put(keeping(entry, &local));
        self.finish(draft, &lock, &local)
    }

    /// Writes down anew how the active version came here, and what it is.
    pub fn amend(&mut self, record: Record) -> Result<(), HomeError> {
        const AMENDED: &str = "record.json";
        let mut draft = self.home.draft()?;
        let place = draft.folder().join(AMENDED);
        fs::write(&place, record.to_bytes())
            .map_err(|cause| Doing::Write(place.clone()).failed(cause))?;
        let (key, folder) = (key(&record.pinned)?, record.pinned.folder());
        let to = format!("{PACKAGES}/{key}/{folder}/{}", record::NAME);
        draft.step(Step::Move { from: AMENDED.into(), to });
        let (mut lock, local) = (self.contents.lock.clone(), self.local()?);
        lock.put(record.pinned);
        self.finish(draft, &lock, &local)
    }

    /// Switches a package on or off. Of the baseline, an entry above it says so.
    pub fn switch(&mut self, id_in_catalog: &str, enabled: bool) -> Result<(), HomeError> {
        let Some(local) = self.switched(id_in_catalog, enabled)? else { return Ok(()) };
        let (draft, lock) = (self.home.draft()?, self.contents.lock.clone());
        self.finish(draft, &lock, &local)
    }

    /// The local catalog with a package switched on or off, where there is such a package.
    fn switched(&self, id_in_catalog: &str, enabled: bool) -> Result<Option<Local>, HomeError> {
        let mut local = self.local()?;
        if !local.switch(id_in_catalog, enabled) {
            let base = self.home.parsed(catalog::BASE, catalog::MOST, Local::parse)?;
            let Some(entry) = base.get(id_in_catalog) else { return Ok(None) };
            local.put(entry.clone());
            local.switch(id_in_catalog, enabled);
        }
        Ok(Some(local))
    }

    /// Switches a package off, and writes down in the same change what came of revoking it. What else is in the draft goes
    /// with it, such as a vault without its secrets.
    pub fn revoke(
        &mut self,
        mut draft: Draft,
        id_in_catalog: &str,
        what: Revocation,
    ) -> Result<(), HomeError> {
        let local = match self.switched(id_in_catalog, false)? {
            Some(local) => local,
            None => self.local()?,
        };
        let (lock, mut revoked) = (self.contents.lock.clone(), self.contents.revoked.clone());
        revoked.put(what);
        draft.file(revoked::NAME, &revoked.to_bytes())?;
        self.finish(draft, &lock, &local)
    }

    /// Forgets that a package was revoked which is not here any more. What else is in the draft goes with it.
    pub fn forget_revocation(&mut self, mut draft: Draft, id: &str) -> Result<(), HomeError> {
        self.forgive(&mut draft, id)?;
        draft.commit()?;
        self.contents = self.home.look()?;
        Ok(())
    }

    /// Adds to a change that a package does not count as revoked any more.
    fn forgive(&self, draft: &mut Draft, id: &str) -> Result<(), HomeError> {
        let mut revoked = self.contents.revoked.clone();
        revoked.take(id);
        self.put_revoked(draft, &revoked)
    }

    /// Adds to a change what counts as revoked after it.
    fn put_revoked(&self, draft: &mut Draft, revoked: &Revocations) -> Result<(), HomeError> {
        if *revoked == self.contents.revoked {
            return Ok(());
        }
        if revoked.all().is_empty() {
            draft.step(Step::Remove { at: revoked::NAME.to_owned() });
            return Ok(());
        }
        draft.file(revoked::NAME, &revoked.to_bytes())
    }

    /// Takes an entry out of the local catalog that is only written there.
    pub fn forget(&mut self, id_in_catalog: &str) -> Result<(), HomeError> {
        let mut local = self.local()?;
        local.take(id_in_catalog);
        let (mut draft, lock) = (self.home.draft()?, self.contents.lock.clone());
        self.forgive(&mut draft, &format!("{}:{id_in_catalog}", Dialect::Capability.name()))?;
        self.finish(draft, &lock, &local)
    }

    /// Takes everything away but the baseline. Of what was revoked only that stays whose secrets are still kept: nothing
    /// but its kill switch may use them.
    pub fn reset(&mut self, mut draft: Draft) -> Result<(), HomeError> {
        let mut revoked = self.contents.revoked.clone();
        revoked.retain_open();
        self.put_revoked(&mut draft, &revoked)?;
        for name in [TOOLS, PACKAGES, lockfile::NAME, catalog::LOCAL] {
            draft.step(Step::Remove { at: name.to_owned() });
        }
        draft.commit()?;
        self.contents = self.home.look()?;
        Ok(())
    }

    /// The versions of a package other than these, as paths of the home.
    fn others(&self, key: &Key, kept: &[Option<&String>]) -> Result<Vec<String>, HomeError> {
        let folder = self.home.path().join(PACKAGES).join(key.as_str());
        let doing = Doing::Read(folder.clone());
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|cause| doing.failed(cause))?,
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let is_old = |name: &String| !kept.iter().flatten().any(|one| *one == name);
        Ok(names.filter(is_old).map(|name| format!("{PACKAGES}/{key}/{name}")).collect())
    }

    fn local(&self) -> Result<Local, HomeError> {
        self.home.parsed(catalog::LOCAL, catalog::MOST, Local::parse)
    }

    fn finish(
        &mut self,
        mut draft: Draft,
        lock: &Lockfile,
        local: &Local,
    ) -> Result<(), HomeError> {
        if *lock != self.contents.lock {
            draft.file(lockfile::NAME, &lock.to_bytes())?;
        }
        draft.file(catalog::LOCAL, &local.to_bytes())?;
        draft.commit()?;
        self.contents = self.home.look()?;
        Ok(())
    }
}

/// Lets the link of a package lead to a version.
fn lead(pinned: &Pinned, draft: &mut Draft) -> Result<(), HomeError> {
    let (key, folder) = (key(pinned)?, pinned.folder());
    let to = format!("../{PACKAGES}/{key}/{folder}");
    draft.step(Step::Link { at: format!("{TOOLS}/{key}"), to });
    Ok(())
}

/// Lets a package go, with every version of it.
fn leave(
    pinned: &Pinned,
    draft: &mut Draft,
    lock: &mut Lockfile,
    local: &mut Local,
) -> Result<(), HomeError> {
    let key = key(pinned)?;
    draft.step(Step::Remove { at: format!("{TOOLS}/{key}") });
    draft.step(Step::Remove { at: format!("{PACKAGES}/{key}") });
    lock.take(&pinned.id);
    local.take(id_in_catalog(pinned));
    Ok(())
}

/// The entry of another version: one that was switched off stays so.
fn keeping(mut entry: serde_json::Value, local: &Local) -> serde_json::Value {
    let known = entry["id"].as_str().and_then(|id| local.get(id));
    if known.is_some_and(|known| known["enabled"] == false) {
        entry["enabled"] = false.into();
    }
    entry
}
