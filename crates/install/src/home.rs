//! A home on the disk: what is installed in it, and the one lock around every change.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use manifest::dialect::Dialect;
use manifest::model::Trust;

use crate::catalog::{self, Brief, Local, id_in_catalog};
use crate::error::{Doing, HomeError};
use crate::journal::{self, Draft, Step};
use crate::key::Key;
use crate::lockfile::{self, Lockfile};
use crate::pinned::Pinned;
use crate::record::{self, Record};
use crate::revoked::{self, Revocation, Revocations};
use crate::whole;

/// Versions of packages.
pub(crate) const PACKAGES: &str = "packages";
/// Links to those that are active.
pub(crate) const TOOLS: &str = "tools";
/// Whoever changes anything holds this file.
const LOCK: &str = "locks/home";
/// The system's number for what is not there.
const NOT_FOUND: i32 = 2;

/// A home. It is made only when something is put into it.
#[derive(Clone, Debug)]
pub struct Home(PathBuf);

/// What is in a home.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// What is installed.
    pub lock: Lockfile,
    /// What was revoked.
    pub revoked: Revocations,
    pub(crate) local: Vec<Brief>,
    pub(crate) base: Vec<Brief>,
}

/// A package that can be called, or could be if it were switched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<'c> {
    /// Its id, with its dialect.
    pub id: String,
    /// Its version.
    pub version: &'c str,
    /// Its dialect.
    pub dialect: Dialect,
    /// What kind of capability it is.
    pub kind: &'c str,
    /// Which layer it is in.
    pub layer: Layer,
    /// Whether it may be called.
    pub enabled: bool,
    /// How far it is trusted.
    pub trust: Trust,
    /// What can be called, by name.
    pub actions: Vec<&'c str>,
    /// What is installed, where it is not only declared.
    pub pinned: Option<&'c Pinned>,
}

/// A layer of what can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The baseline.
    Base,
    /// What was installed, or written above the baseline.
    Local,
    /// What the home of a project adds.
    Project,
}

impl Layer {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Local => "local",
            Self::Project => "project",
        }
    }
}

impl Home {
    /// The home at a path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What is in it. A change that was broken off is finished first.
    pub fn read(&self) -> Result<Contents, HomeError> {
        // Whoever makes a change may begin and end it while this is read: then it is read again.
        for _ in 0..8 {
            if journal::is_pending(&self.0) {
                drop(self.lock()?);
            } else if journal::left(&self.0).next().is_some() {
                // It counts for nothing, so whoever may not sweep it can read all the same.
                drop(self.lock());
            }
            let contents = self.look();
            if !journal::is_pending(&self.0) {
                return contents;
            }
        }
        let locked = self.lock()?;
        Ok(locked.contents.clone())
    }

    /// Finishes a change that was broken off, where one was.
    pub fn settle(&self) -> Result<(), HomeError> {
        if journal::is_pending(&self.0) { self.lock().map(drop) } else { Ok(()) }
    }

    /// Locks it against every other change, and finishes one that was broken off.
    pub fn lock(&self) -> Result<Changing, HomeError> {
        let held = self.hold()?;
        let contents = self.look()?;
        Ok(Changing { home: self.clone(), contents, _held: held })
    }

    /// Holds the lock, once what was broken off is finished.
    fn hold(&self) -> Result<File, HomeError> {
        let place = self.0.join(LOCK);
        let doing = Doing::Lock(place.clone());
        let folder = place.parent().unwrap_or(&self.0);
        journal::make_private(folder).map_err(|cause| doing.failed(cause))?;
        let held = File::options().create(true).append(true).open(&place);
        let held = held.map_err(|cause| doing.failed(cause))?;
        held.lock().map_err(|cause| doing.failed(cause))?;
        journal::recover(&self.0)?;
        Ok(held)
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

    /// A folder in which a change is prepared.
    pub fn draft(&self) -> Result<Draft, HomeError> {
        Draft::begin(&self.0)
    }

    /// The folder of an installed version.
    pub fn folder(&self, key: &Key, version: &str) -> PathBuf {
        self.0.join(PACKAGES).join(key.as_str()).join(version)
    }

    /// Whether the version that is pinned lies here and is the active one.
    pub fn holds(&self, pinned: &Pinned) -> bool {
        let Ok(key) = pinned.key() else { return false };
        let folder = pinned.folder();
        let active = fs::read_link(self.0.join(TOOLS).join(key.as_str()));
        let leads = active.is_ok_and(|to| to.file_name().is_some_and(|name| *name == *folder));
        leads && self.folder(&key, &folder).join(record::NAME).is_file()
    }

    /// Whether that is so, and every file of it is what it was.
    pub fn holds_whole(&self, pinned: &Pinned) -> bool {
        let Ok(key) = pinned.key() else { return false };
        let folder = self.folder(&key, &pinned.folder());
        let record = self.record(&key, &pinned.folder());
        self.holds(pinned) && record.is_ok_and(|record| whole::changed(&folder, &record).is_empty())
    }

    /// How an installed version came here.
    pub fn record(&self, key: &Key, version: &str) -> Result<Record, HomeError> {
        let path = self.folder(key, version).join(record::NAME);
        let bytes = read(&path, lockfile::MOST)?;
        let bytes = bytes.ok_or_else(|| {
            Doing::Read(path.clone()).failed(io::Error::from_raw_os_error(NOT_FOUND))
        })?;
        serde_json::from_slice(&bytes)
            .map_err(|error| HomeError::Broken { path, why: error.to_string() })
    }

    /// How a version that is installed came here.
    pub fn record_of(&self, pinned: &Pinned) -> Result<Record, HomeError> {
        self.record(&key(pinned)?, &pinned.folder())
    }

    fn look(&self) -> Result<Contents, HomeError> {
        let lock = self.parsed(lockfile::NAME, lockfile::MOST, Lockfile::parse)?;
        let local = self.parsed(catalog::LOCAL, catalog::MOST, catalog::briefs)?;
        let base = self.parsed(catalog::BASE, catalog::MOST, catalog::briefs)?;
        let revoked = self.parsed(revoked::NAME, revoked::MOST, Revocations::parse)?;
        Ok(Contents { lock, revoked, local, base })
    }

    fn parsed<T: Default>(
        &self,
        name: &str,
        most: u64,
        parse: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<T, HomeError> {
        let path = self.0.join(name);
        match read(&path, most)? {
            Some(bytes) => parse(&bytes).map_err(|why| HomeError::Broken { path, why }),
            None => Ok(T::default()),
        }
    }
}

/// The lockfile at a path, wherever that is.
pub fn read_lockfile(path: &Path) -> Result<Lockfile, HomeError> {
    let missing = || Doing::Read(path.to_owned()).failed(io::Error::from_raw_os_error(NOT_FOUND));
    let bytes = read(path, lockfile::MOST)?.ok_or_else(missing)?;
    Lockfile::parse(&bytes).map_err(|why| HomeError::Broken { path: path.to_owned(), why })
}

/// A file of the home, where it is there.
fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, HomeError> {
    let doing = Doing::Read(path.to_owned());
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|cause| doing.failed(cause))?,
    };
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|cause| doing.failed(cause))?;
    if bytes.len() as u64 > most {
        let why = format!("it is longer than {} MiB", most >> 20);
        return Err(HomeError::Broken { path: path.to_owned(), why });
    }
    Ok(Some(bytes))
}

impl Contents {
    /// Everything that can be called, by id.
    pub fn listed(&self) -> Vec<Listed<'_>> {
        let installed: std::collections::HashMap<&str, &Pinned> =
            self.lock.packages().iter().map(|pinned| (id_in_catalog(pinned), pinned)).collect();
        let over: std::collections::HashSet<&str> =
            self.local.iter().map(|brief| brief.id.as_str()).collect();
        let under: std::collections::HashMap<&str, &Brief> =
            self.base.iter().map(|brief| (brief.id.as_str(), brief)).collect();
        let mut listed: Vec<_> = self
            .local
            .iter()
            .map(|brief| {
                let trust = under.get(brief.id.as_str()).map_or(Trust::Local, |base| base.trust());
                let pinned = installed.get(brief.id.as_str()).copied();
                Listed::new(brief, pinned, Layer::Local, trust)
            })
            .chain(
                self.base
                    .iter()
                    .filter(|brief| !over.contains(brief.id.as_str()))
                    .map(|brief| Listed::new(brief, None, Layer::Base, Trust::Local)),
            )
            .collect();
        listed.sort_by(|a, b| a.id.cmp(&b.id));
        listed
    }

    /// The ids in the local catalog.
    pub(crate) fn listed_locally(&self) -> impl Iterator<Item = &str> {
        self.local.iter().map(|brief| brief.id.as_str())
    }

    /// Those that a name stands for: an id as a whole first, then without its dialect or namespace.
    pub fn called(&self, name: &str) -> Vec<Listed<'_>> {
        called(self.listed(), name)
    }
}

/// Those of a list that a name stands for.
pub(crate) fn called<'c>(mut listed: Vec<Listed<'c>>, name: &str) -> Vec<Listed<'c>> {
    if let Some(at) = listed.iter().position(|one| one.id == name) {
        return vec![listed.swap_remove(at)];
    }
    let is_meant = |one: &Listed<'_>| {
        let bare = one.id.split_once(':').map_or(one.id.as_str(), |(_, id)| id);
        // What a registry calls `tool:x` is called `x` by people.
        let bare = bare.strip_prefix("tool:").filter(|last| *last == name).unwrap_or(bare);
        bare == name || bare.split_once('/').is_some_and(|(_, last)| last == name)
    };
    listed.retain(is_meant);
    listed
}

impl<'c> Listed<'c> {
    pub(crate) fn new(
        brief: &'c Brief,
        pinned: Option<&'c Pinned>,
        layer: Layer,
        most: Trust,
    ) -> Self {
        let trust = brief.trust().min(most);
        let (dialect, id) = match pinned.and_then(|one| Some((one.parted()?.0, one.id.clone()))) {
            Some(known) => known,
            None => (Dialect::Capability, format!("{}:{}", Dialect::Capability.name(), brief.id)),
        };
        let actions = match pinned {
            Some(pinned) => pinned.actions.iter().map(String::as_str).collect(),
            // A capability has one action, of its own name.
            None => vec![brief.id.as_str()],
        };
        let (version, kind) = (brief.version.as_str(), brief.kind.as_str());
        Self { id, version, dialect, kind, layer, enabled: brief.enabled, trust, actions, pinned }
    }
}

/// The entry of another version: one that was switched off stays so.
fn keeping(mut entry: serde_json::Value, local: &Local) -> serde_json::Value {
    let known = entry["id"].as_str().and_then(|id| local.get(id));
    if known.is_some_and(|known| known["enabled"] == false) {
        entry["enabled"] = false.into();
    }
    entry
}

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
        if self.home.0.join(&to).exists() {
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
    pub fn remove(&mut self, pinned: &Pinned) -> Result<(), HomeError> {
        let mut draft = self.home.draft()?;
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

    /// Switches a package off, and writes down in the same change what came of revoking it.
    pub fn revoke(&mut self, id_in_catalog: &str, what: Revocation) -> Result<(), HomeError> {
        let local = match self.switched(id_in_catalog, false)? {
            Some(local) => local,
            None => self.local()?,
        };
        let (mut draft, lock) = (self.home.draft()?, self.contents.lock.clone());
        let mut revoked = self.contents.revoked.clone();
        revoked.put(what);
        draft.file(revoked::NAME, &revoked.to_bytes())?;
        self.finish(draft, &lock, &local)
    }

    /// Forgets that a package was revoked which is not here any more.
    pub fn forget_revocation(&mut self, id: &str) -> Result<(), HomeError> {
        let mut draft = self.home.draft()?;
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
    pub fn reset(&mut self) -> Result<(), HomeError> {
        let mut draft = self.home.draft()?;
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
        let folder = self.home.0.join(PACKAGES).join(key.as_str());
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

fn key(pinned: &Pinned) -> Result<Key, HomeError> {
    pinned
        .key()
        .map_err(|error| HomeError::Broken { path: lockfile::NAME.into(), why: error.to_string() })
}
