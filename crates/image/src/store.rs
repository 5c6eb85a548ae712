//! Images found, unpacked and kept.
//!
//! An image is unpacked once, into a folder beside its place, and takes its name in one step. One at a time is
//! unpacked: whoever waits finds it done. What a killed process left is removed by the next.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::documents::Settings;
use crate::layer::{self, Used};
use crate::limits::Limits;
use crate::refusal::{Code, ImageError};
use crate::source::{Described, Source};
use crate::tree::Tree;

/// What begins the name of a folder that is no image yet.
const STAGING: &str = ".staging-";

/// The most files and folders of one place that are looked at.
const MOST_CANDIDATES: usize = 256;

/// What whoever runs an image puts something on, so it must be there.
const FOLDERS: [&[u8]; 3] = [b"proc", b"dev", b"tmp"];
const FILES: [&[u8]; 5] =
    [b"etc/passwd", b"etc/group", b"etc/hosts", b"etc/hostname", b"etc/resolv.conf"];

/// Where unpacked images are kept.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    limits: Limits,
}

/// An image that was found.
#[derive(Debug)]
pub struct Found(Place);

#[derive(Debug)]
enum Place {
    Unpacked(Image),
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
}

impl Found {
    /// What the image says of how it is run.
    pub fn settings(&self) -> &Settings {
        match &self.0 {
            Place::Unpacked(image) => &image.settings,
            Place::Packed { described, .. } => &described.config.settings,
        }
    }

    /// Where its bytes are.
    pub fn path(&self) -> &Path {
        match &self.0 {
            Place::Unpacked(image) => &image.root,
            Place::Packed { source, .. } => source.path(),
        }
    }

    /// Whether its files lie in a folder already.
    pub fn is_unpacked(&self) -> bool {
        matches!(self.0, Place::Unpacked(_))
    }
}

impl Store {
    /// A store in a folder, which is made when it is needed.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder, limits: Limits::DEFAULT }
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
        self.folder.join(format!("sha256-{}", digest.digits()))
    }

    /// Finds the image that a digest stands for: unpacked already, or in one of these folders or in that of the store. What
    /// is refused is told only where no other place has it.
    pub fn find(&self, digest: &Digest, places: &[&Path]) -> Result<Option<Found>, ImageError> {
        if let Some(image) = self.unpacked(digest) {
            return Ok(Some(Found(Place::Unpacked(image))));
        }
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
        let note = fs::read(own.join("image.json")).ok()?;
        let note: Note = serde_json::from_slice(&note).ok()?;
        let root = own.join("root").canonicalize().ok()?;
        Some(Image { root, settings: note.settings, left_out: note.left_out })
    }

    /// Puts the files of an image into its folder, unless they are there.
    pub fn unpack(&self, found: Found) -> Result<Image, ImageError> {
        let (source, described, digest) = match found.0 {
            Place::Unpacked(image) => return Ok(image),
            Place::Packed { source, described, digest } => (source, described, digest),
        };
        let failed = |cause| ImageError::Write(self.folder.clone(), cause);
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let turn = File::options().create(true).append(true).open(self.folder.join(".lock"));
        let turn = turn.map_err(failed)?;
        turn.lock().map_err(failed)?;
        if let Some(image) = self.unpacked(&digest) {
            return Ok(image);
        }
        self.sweep();
        // For our eyes only while it is written.
        let staging = tempfile::Builder::new()
            .prefix(STAGING)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&self.folder)
            .map_err(failed)?;
        let left_out = self.fill(staging.path(), &source, &described)?;
        let settings = described.config.settings;
        self.promote(staging.path(), &digest, &Note { settings, left_out }).map_err(failed)?;
        // It has another name now.
        let _ = staging.keep();
        drop(turn);
        let gone = || ImageError::refused(Code::MissingBlob, digest.to_string());
        self.unpacked(&digest).ok_or_else(gone)
    }

    /// Puts all layers into a folder, and what must be there besides.
    fn fill(&self, staging: &Path, source: &Source, image: &Described) -> Result<u64, ImageError> {
        let root = staging.join("root");
        fs::create_dir(&root).map_err(ImageError::write(&root))?;
        fs::set_permissions(&root, Permissions::from_mode(0o755))
            .map_err(ImageError::write(&root))?;
        let tree = Tree::open(&root, &self.limits)?;
        let mut used = Used::default();
        for packed in source.layers(image) {
            layer::apply(packed?, &tree, &self.limits, &mut used)?;
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
        Ok(used.left_out)
    }

    /// Gives a folder its name when everything in it is on the disk.
    fn promote(&self, staging: &Path, digest: &Digest, note: &Note) -> io::Result<()> {
        let text = serde_json::to_vec(note)?;
        fs::write(staging.join("image.json"), text)?;
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

    /// Removes what killed processes left. Whoever has the turn knows that nobody else is at work.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(STAGING.as_bytes()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl Image {
    /// Where a program is inside, as a program started in `folder` with this list of folders would find it.
    pub fn program(&self, name: &str, search: &str, folder: &str) -> Option<PathBuf> {
        let tree = Tree::open(&self.root, &Limits::DEFAULT).ok()?;
        let found = |path: PathBuf| {
            let is_program = tree.is_program(path.as_os_str().as_encoded_bytes());
            is_program.then_some(path)
        };
        if name.contains('/') {
            return found(Path::new("/").join(folder).join(name));
        }
        let folders = search.split(':').filter(|one| one.starts_with('/'));
        folders.map(|one| Path::new(one).join(name)).find_map(found)
    }
}

/// What in a place may hold an image: the place itself, folders in it, and tars.
fn candidates(place: &Path) -> Vec<PathBuf> {
    let mut inside: Vec<PathBuf> = fs::read_dir(place)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() || path.extension().is_some_and(|kind| kind == "tar"))
        .take(MOST_CANDIDATES)
        .collect();
    inside.sort();
    inside.insert(0, place.to_owned());
    inside
}
