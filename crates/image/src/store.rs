//! Images found, unpacked and kept.
//!
//! An image is unpacked once, into a folder beside its place, and takes its name in one step. Of those that want the same
//! image one unpacks it: whoever waits finds it done. What a killed process left is removed by the next that unpacks
//! anything, and so are images that nobody has used for long.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::documents::Settings;
use crate::layer::{self, Used};
use crate::limits::Limits;
use crate::refusal::{Code, ImageError};
use crate::source::{Described, Source};
use crate::tree::Tree;
use crate::turn::Turn;

/// What begins the name of an image's folder; the digits of its digest follow.
const IMAGE: &str = "sha256-";

/// What begins the name of a folder that is no image yet, or none any more; the digits of its digest follow.
const STAGING: &str = ".staging-";

/// The most files and folders of one place that are looked at.
const MOST_CANDIDATES: usize = 256;

/// The most folders in which a program is looked for.
const MOST_SEARCHED: usize = 256;

/// What whoever runs an image puts something on, so it must be there.
const FOLDERS: [&[u8]; 3] = [b"proc", b"dev", b"tmp"];
const FILES: [&[u8]; 5] =
    [b"etc/passwd", b"etc/group", b"etc/hosts", b"etc/hostname", b"etc/resolv.conf"];

/// Where unpacked images are kept.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    limits: Limits,
    keeping: Keeping,
}

/// How long unpacked images are kept that nobody uses. They can be unpacked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeping {
    /// One that was not used for so long goes.
    pub longest: Duration,
    /// While all together are larger than this, the one goes that was not used for the longest time.
    pub most_bytes: u64,
    /// One that was used within this time stays, whatever the size of all: it may be in use.
    pub shortest: Duration,
}

impl Keeping {
    /// What holds unless somebody says otherwise.
    pub const DEFAULT: Self = Self {
        longest: Duration::from_hours(30 * 24),
        most_bytes: 32 << 30,
        shortest: Duration::from_hours(24),
    };
}

/// An image that was found.
#[derive(Debug)]
pub struct Found(Place);

#[derive(Debug)]
enum Place {
    Unpacked { image: Image, digest: Digest },
    Packed { source: Source, described: Described, digest: Digest },
}

/// An image whose files lie in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The folder that is its root.
    pub root: PathBuf,
    /// What it says of how it is run.
    pub settings: Settings,
    /// Devices and pipes that were left out.
    pub left_out: u64,
}

/// What is kept beside the files.
#[derive(Serialize, Deserialize)]
struct Note {
    settings: Settings,
    left_out: u64,
    /// How much there is of it; not known of those that were unpacked long ago.
    #[serde(default)]
    bytes: u64,
}

impl Found {
    /// What the image says of how it is run.
    pub fn settings(&self) -> &Settings {
        match &self.0 {
            Place::Unpacked { image, .. } => &image.settings,
            Place::Packed { described, .. } => &described.config.settings,
        }
    }

    /// Where its bytes are.
    pub fn path(&self) -> &Path {
        match &self.0 {
            Place::Unpacked { image, .. } => &image.root,
            Place::Packed { source, .. } => source.path(),
        }
    }

    /// Whether its files lie in a folder already.
    pub fn is_unpacked(&self) -> bool {
        matches!(self.0, Place::Unpacked { .. })
    }
}

impl Store {
    /// A store in a folder, which is made when it is needed.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder, limits: Limits::DEFAULT, keeping: Keeping::DEFAULT }
    }

    /// The same, which keeps what is not used for another time.
    #[must_use]
    pub fn keeping(mut self, keeping: Keeping) -> Self {
        self.keeping = keeping;
        self
    }

    /// The same, with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where the files of an image are when it is unpacked.
    pub fn root_of(&self, digest: &Digest) -> PathBuf {
        self.own(digest).join("root")
    }

    fn own(&self, digest: &Digest) -> PathBuf {
        self.folder.join(format!("{IMAGE}{}", digest.digits()))
    }

    /// Finds the image that a digest stands for: unpacked already, or in one of these folders or in that of the store. What
    /// is refused is told only where no other place has it.
    pub fn find(&self, digest: &Digest, places: &[&Path]) -> Result<Option<Found>, ImageError> {
        if let Some(image) = self.unpacked(digest) {
            return Ok(Some(Found(Place::Unpacked { image, digest: digest.clone() })));
        }
        self.find_packed(digest, places)
    }

    /// The same, where only those count that can be unpacked again and again: what was unpacked is not kept for ever.
    pub fn find_packed(
        &self,
        digest: &Digest,
        places: &[&Path],
    ) -> Result<Option<Found>, ImageError> {
        let mut refused = None;
        for place in places.iter().copied().chain([self.folder.as_path()]) {
            for path in candidates(place) {
                let Some(source) = Source::open(&path, &self.limits) else { continue };
                match source.describe(digest) {
                    Ok(Some(described)) => {
                        let digest = digest.clone();
                        return Ok(Some(Found(Place::Packed { source, described, digest })));
                    }
                    Ok(None) => {}
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
        }
        refused.map_or(Ok(None), Err)
    }

    /// Whoever finds the folder finds it whole.
    fn unpacked(&self, digest: &Digest) -> Option<Image> {
        let own = self.own(digest);
        let note = note_in(&own)?;
        let root = own.join("root").canonicalize().ok()?;
        Some(Image { root, settings: note.settings, left_out: note.left_out })
    }

    /// Puts the files of an image into its folder, unless they are there. It is asked again and again whether it
    /// is called off, also while somebody else unpacks the same image.
    pub fn unpack(
        &self,
        found: Found,
        is_called_off: &dyn Fn() -> bool,
    ) -> Result<Image, ImageError> {
        let (packed, digest) = match found.0 {
            // Nobody removes what was used lately, so nobody has to be kept from it.
            Place::Unpacked { image, digest } if self.is_safe(&digest) => {
                mark_used(&image);
                return Ok(image);
            }
            Place::Unpacked { digest, .. } => (None, digest),
            Place::Packed { source, described, digest } => (Some((source, described)), digest),
        };
        let failed = |cause| ImageError::Write(self.folder.clone(), cause);
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let turn = Turn::wait(&self.folder, digest.digits(), is_called_off).map_err(failed)?;
        let called_off = || ImageError::refused(Code::CalledOff, digest.to_string());
        let turn = turn.ok_or_else(called_off)?;
        if let Some(image) = self.unpacked(&digest) {
            mark_used(&image);
            return Ok(image);
        }
        let gone = || ImageError::refused(Code::MissingBlob, digest.to_string());
        // It was there, and was removed before its turn came.
        let (source, described) = packed.ok_or_else(gone)?;
        self.sweep(&digest);
        // For our eyes only while it is written.
        let staging = tempfile::Builder::new()
            .prefix(&format!("{STAGING}{}-", digest.digits()))
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&self.folder)
            .map_err(failed)?;
        let used = self.fill(staging.path(), &source, &described, is_called_off)?;
        let settings = described.config.settings;
        let note = Note { settings, left_out: used.left_out, bytes: used.bytes };
        self.promote(staging.path(), &digest, &note).map_err(failed)?;
        // It has another name now.
        let _ = staging.keep();
        drop(turn);
        self.unpacked(&digest).ok_or_else(gone)
    }

    /// Whether an image was used so lately that it will not be removed before its use is noted once more.
    fn is_safe(&self, digest: &Digest) -> bool {
        age(&self.own(digest))
            .is_some_and(|age| age < self.keeping.shortest.min(self.keeping.longest) / 2)
    }

    /// Puts all layers into a folder, and what must be there besides.
    fn fill(
        &self,
        staging: &Path,
        source: &Source,
        image: &Described,
        is_called_off: &dyn Fn() -> bool,
    ) -> Result<Used, ImageError> {
        let root = staging.join("root");
        fs::create_dir(&root).map_err(ImageError::write(&root))?;
        fs::set_permissions(&root, Permissions::from_mode(0o755))
            .map_err(ImageError::write(&root))?;
        let tree = Tree::open(&root, &self.limits, is_called_off)?;
        let mut used = Used::default();
        for packed in source.layers(image) {
            layer::apply(packed?, &tree, &self.limits, &mut used, is_called_off)?;
        }
        for name in FOLDERS {
            if let Some(place) = tree.place(name)? {
                tree.folder(&place)?;
            }
        }
        for name in FILES {
            tree.ensure_file(name)?;
        }
        if let Some(folder) = &image.config.settings.folder {
            // One that cannot be made is told when a program would start in it.
            let _ = tree.ensure_folder(folder.as_bytes());
        }
        tree.check_root()?;
        Ok(used)
    }

    /// Gives a folder its name when everything in it is on the disk.
    fn promote(&self, staging: &Path, digest: &Digest, note: &Note) -> io::Result<()> {
        let text = serde_json::to_vec(note)?;
        fs::write(staging.join(NOTE), text)?;
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(File::open(staging)?)?;
        let own = self.own(digest);
        // What has this name and is no image is a leftover of somebody's hands.
        if own.symlink_metadata().is_ok() {
            fs::remove_dir_all(&own)?;
        }
        fs::rename(staging, own)?;
        File::open(&self.folder)?.sync_all()
    }

    /// Removes what killed processes left, and images that nobody has used for long. What somebody else is at work on stays:
    /// he has its turn.
    fn sweep(&self, ours: &Digest) {
        let (mut kept, mut all_bytes) = (Vec::new(), 0_u64);
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            let rest = name.strip_prefix(STAGING).or_else(|| name.strip_prefix(Turn::PREFIX));
            if let Some(rest) = rest {
                let digits = rest.split('-').next().unwrap_or_default();
                // Whoever takes the turn and gives it back takes its file away, too.
                let turn = (digits != ours.digits()).then(|| Turn::take(&self.folder, digits));
                if name.starts_with(STAGING) && turn.is_none_or(|turn| turn.is_some()) {
                    let _ = fs::remove_dir_all(path);
                }
            } else if let Some(digits) = name.strip_prefix(IMAGE)
                && let Some(note) = note_in(&path)
                && let Some(age) = age(&path)
            {
                all_bytes = all_bytes.saturating_add(note.bytes);
                kept.push((age, note.bytes, digits.to_owned()));
            }
        }
        kept.sort_unstable_by_key(|(age, ..)| std::cmp::Reverse(*age));
        for (age, bytes, digits) in kept {
            let is_too_much = all_bytes > self.keeping.most_bytes;
            let Keeping { longest, shortest, .. } = self.keeping;
            let allowed = if is_too_much { longest.min(shortest) } else { longest };
            if age > allowed && self.remove(&digits, allowed) {
                all_bytes = all_bytes.saturating_sub(bytes);
            }
        }
    }

    /// Removes an image that was not used for so long: in one step it is none any more, then its files go.
    fn remove(&self, digits: &str, allowed: Duration) -> bool {
        let Some(_turn) = Turn::take(&self.folder, digits) else { return false };
        let own = self.folder.join(format!("{IMAGE}{digits}"));
        // Somebody may have used it since it was looked at.
        if age(&own).is_none_or(|age| age <= allowed) {
            return false;
        }
        let gone = self.folder.join(format!("{STAGING}{digits}-old"));
        let renamed = fs::rename(own, &gone);
        renamed.is_ok() && fs::remove_dir_all(gone).is_ok()
    }
}

/// What is kept beside the files of an image.
fn note_in(own: &Path) -> Option<Note> {
    serde_json::from_slice(&fs::read(own.join(NOTE)).ok()?).ok()
}

/// The file with what is kept beside the files. The time of its last change is that of the last use.
const NOTE: &str = "image.json";

/// How long an image was not used.
fn age(own: &Path) -> Option<Duration> {
    let used = own.join(NOTE).metadata().and_then(|found| found.modified()).ok()?;
    SystemTime::now().duration_since(used).ok()
}

/// Notes that an image is used. Where that fails it may be unpacked once more some day.
fn mark_used(image: &Image) {
    let note = image.root.parent().map(|own| File::options().append(true).open(own.join(NOTE)));
    if let Some(Ok(note)) = note {
        let _ = note.set_modified(SystemTime::now());
    }
}

impl Image {
    /// Where a program is inside, as a program started in `folder` with this list of folders would find it.
    pub fn program(&self, name: &str, search: &str, folder: &str) -> Option<PathBuf> {
        let tree = Tree::open(&self.root, &Limits::DEFAULT, &|| false).ok()?;
        let found = |path: PathBuf| tree.program(path.as_os_str().as_encoded_bytes());
        if name.contains('/') {
            return found(Path::new("/").join(folder).join(name));
        }
        let folders = search.split(':').filter(|one| one.starts_with('/')).take(MOST_SEARCHED);
        folders.map(|one| Path::new(one).join(name)).find_map(found)
    }
}

/// What in a place may hold an image: the place itself, folders in it, and tars; not what was unpacked from them.
fn candidates(place: &Path) -> Vec<PathBuf> {
    let mut inside: Vec<PathBuf> = fs::read_dir(place)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| !path.join(NOTE).is_file())
        .filter(|path| path.is_dir() || path.extension().is_some_and(|kind| kind == "tar"))
        .collect();
    inside.sort();
    inside.truncate(MOST_CANDIDATES);
    inside.insert(0, place.to_owned());
    inside
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store with an image that was not used for so long.
    fn store_with(age: Duration) -> (tempfile::TempDir, Store, Digest) {
        let folder = tempfile::tempdir().unwrap();
        let (store, digest) = (Store::at(folder.path().to_owned()), Digest::of(b"an image"));
        let own = store.own(&digest);
        fs::create_dir_all(own.join("root")).unwrap();
        let note = Note { settings: Settings::default(), left_out: 0, bytes: 1 };
        fs::write(own.join(NOTE), serde_json::to_vec(&note).unwrap()).unwrap();
        let file = File::options().append(true).open(own.join(NOTE)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
        (folder, store, digest)
    }

    #[test]
    fn an_image_that_was_used_since_it_was_looked_at_stays() {
        let (_folder, store, digest) = store_with(Keeping::DEFAULT.longest * 2);
        let found = store.find(&digest, &[]).unwrap().unwrap();
        let image = store.unpack(found, &|| false).unwrap();
        assert!(!store.remove(digest.digits(), Keeping::DEFAULT.longest));
        assert!(image.root.exists());
        assert!(store.remove(digest.digits(), Duration::ZERO));
        assert!(!image.root.exists());
    }

    #[test]
    fn an_image_that_may_be_removed_is_used_in_its_turn() {
        let (_folder, store, digest) = store_with(Keeping::DEFAULT.shortest * 2);
        let find = || store.find(&digest, &[]).unwrap().unwrap();
        let found = find();
        // As if somebody were about to remove it.
        let turn = Turn::take(&store.folder, digest.digits()).unwrap();
        let refused = store.unpack(find(), &|| true).unwrap_err();
        assert_eq!(refused.code(), Some(Code::CalledOff));
        fs::remove_dir_all(store.own(&digest)).unwrap();
        drop(turn);
        let refused = store.unpack(found, &|| false).unwrap_err();
        assert_eq!(refused.code(), Some(Code::MissingBlob));
    }

    #[test]
    fn an_image_that_was_used_lately_needs_no_turn() {
        let (_folder, store, digest) = store_with(Duration::from_mins(1));
        let found = store.find(&digest, &[]).unwrap().unwrap();
        let _turn = Turn::take(&store.folder, digest.digits()).unwrap();
        assert!(store.unpack(found, &|| true).is_ok());
    }
}
