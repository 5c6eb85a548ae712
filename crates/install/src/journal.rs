//! Changes of a home that are made whole or not at all.
//!
//! A change is prepared in a folder of its own in `staging/`, put on the disk, and written down as a list of
//! [`Step`]s in the file `journal`. From then on it counts: whoever opens the home next finishes what is left of
//! it, and every step can be taken twice. Without a journal the folder counts for nothing and is swept.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Doing, HomeError};

/// The file that is there while a change is under way.
const JOURNAL: &str = "journal";
/// Where changes are prepared.
pub(crate) const STAGING: &str = "staging";
/// What the folders of changes are called in there.
const PREFIX: &str = "change-";
/// How often the staging area may be gone when a folder is to be made in it.
const MOST_TRIES: u32 = 64;
/// The longest journal that is read.
const MOST: u64 = 16 << 20;

/// One step of a change. Paths are those of the home, without its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// What was prepared gets its place; a file that is there is replaced.
    Move {
        /// Its name in the folder of the change.
        from: String,
        /// Its place.
        to: String,
    },
    /// A link leads somewhere else from now on.
    Link {
        /// Where the link is.
        at: String,
        /// What it leads to, seen from where it is.
        to: String,
    },
    /// Something is taken away.
    Remove {
        /// Where it is.
        at: String,
    },
}

/// A change as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Journal {
    version: u32,
    /// The folder in which it was prepared.
    folder: String,
    steps: Vec<Step>,
}

/// A folder in which a change is prepared. Dropping it removes it.
#[derive(Debug)]
pub struct Draft {
    home: PathBuf,
    name: String,
    /// By which others know that it is in use.
    _held: Held,
    steps: Vec<Step>,
    rooms: u32,
    is_over: bool,
    /// Whether the staging area was not there before.
    is_first: bool,
}

impl Draft {
    /// A new folder in the staging area of a home.
    pub(crate) fn begin(home: &Path) -> Result<Self, HomeError> {
        let staging = home.join(STAGING);
        let doing = Doing::Make(staging.clone());
        let is_first = !staging.is_dir();
        for number in 0_u32.. {
            let name = format!("{PREFIX}{}-{number}", std::process::id());
            // Whoever made it may take it away again.
            make_private(&staging).map_err(|cause| doing.failed(cause))?;
            match fs::create_dir(staging.join(&name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound && number < MOST_TRIES => {
                    continue;
                }
                Err(error) => return Err(Doing::Make(staging.join(name)).failed(error)),
                Ok(()) => {}
            }
            let folder = staging.join(&name);
            // Somebody may have taken it for a leftover before it was locked.
            if let Ok(held) = File::open(&folder)
                && let Some(held) = Held::take(held)
                && is_at(&held.0, &folder)
            {
                let (home, steps) = (home.to_owned(), Vec::new());
                return Ok(Self {
                    home,
                    name,
                    _held: held,
                    steps,
                    rooms: 0,
                    is_over: false,
                    is_first,
                });
            }
        }
        Err(doing.failed(io::ErrorKind::AlreadyExists.into()))
    }

    /// Where it is.
    pub fn folder(&self) -> PathBuf {
        self.home.join(STAGING).join(&self.name)
    }

    /// The name of a further folder in it, which is not there yet.
    pub(crate) fn room(&mut self) -> String {
        self.rooms += 1;
        format!("files-{}", self.rooms)
    }

    /// Adds a step. What it moves is in the folder by the time of [`commit`](Self::commit).
    pub fn step(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// A file that gets these bytes.
    pub fn file(&mut self, to: &str, bytes: &[u8]) -> Result<(), HomeError> {
        self.written(to, bytes, File::options().create_new(true).write(true))
    }

    /// A file that gets these bytes, for its owner alone.
    pub fn private_file(&mut self, to: &str, bytes: &[u8]) -> Result<(), HomeError> {
        let mut options = File::options();
        options.create_new(true).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        self.written(to, bytes, &options)
    }

    fn written(&mut self, to: &str, bytes: &[u8], how: &OpenOptions) -> Result<(), HomeError> {
        let from = format!("file-{}", self.steps.len());
        let path = self.folder().join(&from);
        let mut file = how.open(&path).map_err(|cause| Doing::Write(path.clone()).failed(cause))?;
        file.write_all(bytes).map_err(|cause| Doing::Write(path).failed(cause))?;
        self.step(Step::Move { from, to: to.to_owned() });
        Ok(())
    }

    /// Makes the change, in a home that the caller has locked. An error means that nothing was changed, unless it says that the change is made.
    pub fn commit(mut self) -> Result<(), HomeError> {
        if self.steps.is_empty() {
            return Ok(());
        }
        let folder = format!("{STAGING}/{}", self.name);
        let journal = Journal { version: 1, folder, steps: std::mem::take(&mut self.steps) };
        let text = serde_json::to_vec_pretty(&journal).expect("a journal is plain data");
        let beside = self.folder().join(JOURNAL);
        let doing = Doing::Write(beside.clone());
        fs::write(&beside, text).map_err(|cause| doing.failed(cause))?;
        // Everything that was prepared, and the journal with it, before the journal can be found.
        package::extract::sync_whole(&self.folder()).map_err(|cause| doing.failed(cause))?;
        let place = self.home.join(JOURNAL);
        let doing = Doing::Write(place.clone());
        fs::rename(&beside, &place).map_err(|cause| doing.failed(cause))?;
        if let Err(cause) = sync_folder(&self.home) {
            // It may or may not outlive a power cut; so that it counts for nothing, it is taken back.
            if fs::remove_file(&place).and_then(|()| sync_folder(&self.home)).is_ok() {
                return Err(doing.failed(cause));
            }
        }
        // It counts from here on.
        self.is_over = true;
        // What fails once may not fail twice; what does is finished by whoever comes next.
        match finish(&self.home) {
            Err(first) if is_pending(&self.home) => {
                finish(&self.home).map_err(|_| HomeError::made(first))
            }
            // Without a journal every step of it was taken.
            _ => Ok(()),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = fs::remove_dir_all(self.folder());
            if self.is_first {
                // Others may be in there by now, and then it stays.
                let _ = fs::remove_dir(self.home.join(STAGING));
            }
        }
    }
}

/// Whether a change is under way, or was broken off.
pub(crate) fn is_pending(home: &Path) -> bool {
    home.join(JOURNAL).symlink_metadata().is_ok()
}

/// Finishes a change that counts, and sweeps those that do not. The caller has locked the home.
pub(crate) fn recover(home: &Path) -> Result<(), HomeError> {
    if is_pending(home) {
        finish(home)?;
    }
    sweep(home);
    Ok(())
}

/// Takes every step of the journal that is not taken yet.
fn finish(home: &Path) -> Result<(), HomeError> {
    let place = home.join(JOURNAL);
    let journal = read(&place)?;
    let folder = home.join(&journal.folder);
    for (number, step) in journal.steps.iter().enumerate() {
        take(home, &folder, number, step)?;
    }
    for touched in parents(home, &journal.steps) {
        let doing = Doing::Write(touched.clone());
        sync_folder(&touched).map_err(|cause| doing.failed(cause))?;
    }
    let doing = Doing::Remove(place.clone());
    fs::remove_file(&place).map_err(|cause| doing.failed(cause))?;
    // It is done. A journal that comes back after a power cut finds every step taken, as long as the folder is there that
    // shows it; so that one goes when the journal is gone for good, and should it stay, it is swept.
    if sync_folder(home).is_ok() {
        let _ = fs::remove_dir_all(&folder);
    }
    Ok(())
}

fn take(home: &Path, folder: &Path, number: usize, step: &Step) -> Result<(), HomeError> {
    match step {
        Step::Move { from, to } => {
            let (from, to) = (folder.join(from), home.join(to));
            if from.symlink_metadata().is_err() {
                return Ok(());
            }
            make_parent(&to)?;
            fs::rename(&from, &to).map_err(|cause| Doing::Move(from, to).failed(cause))
        }
        Step::Link { at, to } => {
            let at = home.join(at);
            if fs::read_link(&at).is_ok_and(|there| there == Path::new(to)) {
                return Ok(());
            }
            make_parent(&at)?;
            let beside = folder.join(format!("link-{number}"));
            let doing = Doing::Move(beside.clone(), at.clone());
            let _ = fs::remove_file(&beside);
            link(to, &beside)
                .and_then(|()| fs::rename(&beside, &at))
                .map_err(|cause| doing.failed(cause))
        }
        Step::Remove { at } => {
            let (at, trash) = (home.join(at), folder.join(format!("trash-{number}")));
            // What is there once it was taken away is what a later step of the same change has put there.
            if at.symlink_metadata().is_err() || trash.symlink_metadata().is_ok() {
                return Ok(());
            }
            fs::rename(&at, &trash).map_err(|cause| Doing::Move(at, trash).failed(cause))
        }
    }
}

/// The folders whose names change.
fn parents(home: &Path, steps: &[Step]) -> Vec<PathBuf> {
    let place = |step: &Step| match step {
        Step::Move { to, .. } => home.join(to),
        Step::Link { at, .. } | Step::Remove { at } => home.join(at),
    };
    let mut parents: Vec<_> =
        steps.iter().filter_map(|step| Some(place(step).parent()?.to_owned())).collect();
    parents.sort();
    parents.dedup();
    // A folder that was there for one package alone may be gone with it.
    parents.retain(|parent| parent.is_dir());
    parents
}

fn read(place: &Path) -> Result<Journal, HomeError> {
    use std::io::Read;
    let doing = Doing::Read(place.to_owned());
    let mut bytes = Vec::new();
    let file = File::open(place).map_err(|cause| doing.failed(cause))?;
    file.take(MOST).read_to_end(&mut bytes).map_err(|cause| doing.failed(cause))?;
    let broken =
        || HomeError::Broken { path: place.to_owned(), why: "it is no journal of ours".into() };
    let journal: Journal = serde_json::from_slice(&bytes).map_err(|_| broken())?;
    let is_here = |path: &String| {
        !path.is_empty()
            && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
    };
    let is_sound = |step: &Step| match step {
        Step::Move { from, to } => is_here(from) && is_here(to),
        Step::Link { at, .. } | Step::Remove { at } => is_here(at),
    };
    if journal.version != 1 || !is_here(&journal.folder) || !journal.steps.iter().all(is_sound) {
        return Err(broken());
    }
    Ok(journal)
}

/// Removes what changes left that never counted.
fn sweep(home: &Path) {
    let left: Vec<_> = left(home).collect();
    // That there is no journal is true of the disk before anything that one might speak of is removed.
    if left.is_empty() || sync_folder(home).is_err() {
        return;
    }
    for (path, _held) in left {
        let _ = fs::remove_dir_all(home.join(path));
    }
}

/// A folder that is locked. Letting go of it unlocks it, although whoever was forked meanwhile still has it open.
#[derive(Debug)]
pub(crate) struct Held(File);

impl Held {
    fn take(folder: File) -> Option<Self> {
        folder.try_lock().ok().map(|()| Self(folder))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Whether a folder that is open is the one at a path, and not one that was there before it.
#[cfg(unix)]
fn is_at(held: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |found: fs::Metadata| (found.dev(), found.ino());
    let (held, there) = (held.metadata().map(place), fs::symlink_metadata(path).map(place));
    held.is_ok_and(|held| there.is_ok_and(|there| there == held))
}

#[cfg(not(unix))]
fn is_at(_held: &File, path: &Path) -> bool {
    path.exists()
}

/// What changes left in the staging area, and nobody holds. Each is held from now on, so that it is taken from nobody who
/// has just begun.
pub(crate) fn left(home: &Path) -> impl Iterator<Item = (String, Held)> {
    let entries = fs::read_dir(home.join(STAGING)).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        // Somebody who has just made it finds it locked, and makes another one.
        let held = Held::take(File::open(entry.path()).ok()?)?;
        is_at(&held.0, &entry.path()).then(|| (format!("{STAGING}/{name}"), held))
    })
}

/// Puts the names in a folder on the disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes a folder that only its owner can look into; one that is there stays as it is.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

fn make_parent(path: &Path) -> Result<(), HomeError> {
    let Some(parent) = path.parent() else { return Ok(()) };
    if parent.is_dir() {
        return Ok(());
    }
    let doing = Doing::Make(parent.to_owned());
    let missing: Vec<_> = parent.ancestors().take_while(|above| !above.is_dir()).collect();
    make_private(parent).map_err(|cause| doing.failed(cause))?;
    // Their own names last too.
    let above = missing.iter().rev().filter_map(|made| made.parent());
    above.into_iter().try_for_each(sync_folder).map_err(|cause| doing.failed(cause))
}

#[cfg(unix)]
fn link(to: &str, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, at)
}

#[cfg(not(unix))]
fn link(to: &str, at: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_dir(to, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn draft(home: &Path, content: &str) -> Draft {
        let mut draft = Draft::begin(home).unwrap();
        fs::create_dir(draft.folder().join("files")).unwrap();
        fs::write(draft.folder().join("files/a"), content).unwrap();
        draft.step(Step::Move { from: "files".into(), to: format!("packages/x/{content}") });
        draft.step(Step::Link { at: "tools/x".into(), to: format!("../packages/x/{content}") });
        draft.file("haft.lock", content.as_bytes()).unwrap();
        draft
    }

    fn state(home: &Path) -> (String, String) {
        let read = |path| fs::read_to_string(home.join(path)).unwrap_or_default();
        (read("haft.lock"), read("tools/x/a"))
    }

    #[test]
    fn a_change_is_made_whole() {
        let home = home();
        draft(home.path(), "one").commit().unwrap();
        draft(home.path(), "two").commit().unwrap();
        assert_eq!(state(home.path()), ("two".into(), "two".into()));
        assert!(!is_pending(home.path()));
        assert_eq!(fs::read_dir(home.path().join(STAGING)).unwrap().count(), 0);
    }

    #[test]
    fn what_a_child_has_open_is_no_longer_held() {
        let home = home();
        fs::create_dir_all(home.path().join("staging/change-1-0")).unwrap();
        let (_, held) = left(home.path()).next().unwrap();
        // What a fork does with it.
        let _childs = held.0.try_clone().unwrap();
        assert_eq!(left(home.path()).count(), 0);
        drop(held);
        assert_eq!(left(home.path()).count(), 1);
    }

    #[test]
    fn a_change_that_is_dropped_leaves_nothing() {
        let home = home();
        draft(home.path(), "one").commit().unwrap();
        drop(draft(home.path(), "two"));
        assert_eq!(state(home.path()), ("one".into(), "one".into()));
        assert_eq!(fs::read_dir(home.path().join(STAGING)).unwrap().count(), 0);
        let empty = self::home();
        let (first, second) = (draft(empty.path(), "one"), draft(empty.path(), "two"));
        drop(first);
        assert!(second.folder().is_dir());
        drop(second);
        drop(draft(empty.path(), "three"));
        assert_eq!(fs::read_dir(empty.path().join(STAGING)).unwrap().count(), 0);
        let new = self::home();
        drop(draft(new.path(), "one"));
        assert_eq!(fs::read_dir(new.path()).unwrap().count(), 0);
    }

    #[test]
    fn whatever_of_a_change_was_done_the_rest_is_done_by_whoever_comes_next() {
        for done in 0..=3 {
            let home = home();
            draft(home.path(), "one").commit().unwrap();
            let mut second = draft(home.path(), "two");
            let journal = Journal {
                version: 1,
                folder: format!("{STAGING}/{}", second.name),
                steps: second.steps.clone(),
            };
            for (number, step) in journal.steps.iter().take(done).enumerate() {
                take(home.path(), &second.folder(), number, step).unwrap();
            }
            fs::write(home.path().join(JOURNAL), serde_json::to_vec(&journal).unwrap()).unwrap();
            second.is_over = true;
            drop(second);
            recover(home.path()).unwrap();
            assert_eq!(state(home.path()), ("two".into(), "two".into()), "{done}");
            assert!(!is_pending(home.path()));
        }
    }

    #[test]
    fn what_takes_the_place_of_something_of_the_same_name_is_there_however_often_it_is_finished() {
        for done in 0..=5 {
            let home = home();
            draft(home.path(), "one").commit().unwrap();
            let mut second = Draft::begin(home.path()).unwrap();
            fs::create_dir(second.folder().join("files")).unwrap();
            fs::write(second.folder().join("files/a"), "new").unwrap();
            let to = "packages/x/one".to_owned();
            second.step(Step::Remove { at: to.clone() });
            second.step(Step::Move { from: "files".into(), to });
            second.step(Step::Link { at: "tools/x".into(), to: "../packages/x/one".into() });
            second.file("haft.lock", b"new").unwrap();
            let steps = second.steps.clone();
            let journal =
                Journal { version: 1, folder: format!("{STAGING}/{}", second.name), steps };
            for (number, step) in journal.steps.iter().take(done).enumerate() {
                take(home.path(), &second.folder(), number, step).unwrap();
            }
            fs::write(home.path().join(JOURNAL), serde_json::to_vec(&journal).unwrap()).unwrap();
            second.is_over = true;
            drop(second);
            recover(home.path()).unwrap();
            assert_eq!(state(home.path()), ("new".into(), "new".into()), "{done}");
        }
    }

    #[test]
    fn a_journal_that_leads_out_of_the_home_is_refused() {
        let home = home();
        for path in ["../x", "/etc/x", "a/../../x", ""] {
            let journal = Journal {
                version: 1,
                folder: "staging/change-1-0".into(),
                steps: vec![Step::Remove { at: path.into() }],
            };
            fs::write(home.path().join(JOURNAL), serde_json::to_vec(&journal).unwrap()).unwrap();
            assert!(matches!(recover(home.path()), Err(HomeError::Broken { .. })), "{path}");
        }
    }

    #[test]
    fn nobody_sweeps_what_somebody_has_just_begun() {
        let home = tempfile::tempdir().unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        sweep(home.path());
                    }
                });
            }
            for _ in 0..400 {
                let draft = Draft::begin(home.path()).unwrap();
                std::thread::yield_now();
                let is_there = draft.folder().is_dir();
                if !is_there {
                    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
                }
                assert!(is_there);
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
