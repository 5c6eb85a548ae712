//! The file or the folder of a backup.
//!
//! A file is a tar archive of what the folder holds, in this order:
//!
//! | path | what it is |
//! |---|---|
//! | `haft-registry-backup.json` | the [`Head`]: what is in it, with the digest of the rows |
//! | `rows.jsonl` | every row of every table, a line of JSON each |
//! | `blobs/ab/ab…` | the package files, each under its digest |
//! | `end.json` | the [`Tail`]: how many files there are, and which were missing; without it a backup was cut off |

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use package::digest::Digest;
use serde::{Deserialize, Serialize};
use tempfile::{NamedTempFile, TempDir};

use super::CareError;

/// What describes a backup.
pub(super) const HEAD: &str = "haft-registry-backup.json";
/// The rows.
pub(super) const ROWS: &str = "rows.jsonl";
/// What ends a backup.
const TAIL: &str = "end.json";
/// What gzip, zstd, xz, bzip2 and zip begin with.
const PRESSED: [&[u8]; 5] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh", b"PK"];
/// The most bytes of a head and of an end, which names the files that were missing.
const HEAD_BYTES: u64 = 64 << 20;
/// The most bytes of a package file.
const BLOB_BYTES: u64 = 1 << 30;

/// What a backup says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// The form of the backup.
    pub(super) format: u32,
    /// The form of the tables.
    pub(super) tables: i64,
    /// When it was made.
    #[serde(with = "registry::moment")]
    pub(super) made_at: u64,
    /// How many rows there are.
    pub(super) rows: u64,
    /// SHA-256 of the rows, in hexadecimal.
    pub(super) rows_sha256: String,
}

/// What a backup ends with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tail {
    /// How many package files there are.
    pub(super) files: u64,
    /// Package files that were missing or damaged when it was made.
    pub(super) missing: Vec<String>,
}

impl Head {
    pub(super) const FORMAT: u32 = 1;
}

pub(super) fn failed(path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> CareError {
    let path = path.as_ref().display().to_string();
    move |error| CareError::File { path, trouble: error.into() }
}

fn blob_path(digest: Digest) -> String {
    let digits = digest.to_string();
    format!("blobs/{}/{digits}", &digits[..2])
}

/// A backup in the making; dropped, nothing of it is left.
pub(super) enum Sink {
    Tar { archive: tar::Builder<BufWriter<NamedTempFile>>, into: PathBuf },
    Folder { folder: TempDir, into: PathBuf },
}

impl Sink {
    /// Begins a backup. What is there already is never written over.
    pub(super) fn new(into: &Path) -> Result<Self, CareError> {
        let is_folder = into.is_dir() || into.as_os_str().as_encoded_bytes().ends_with(b"/");
        let is_taken = if is_folder {
            std::fs::read_dir(into).is_ok_and(|mut entries| entries.next().is_some())
        } else {
            into.symlink_metadata().is_ok()
        };
        if is_taken {
            return Err(CareError::Exists(into.display().to_string()));
        }
        let (beside, into) = (folder_of(into), into.to_owned());
        if !beside.is_dir() {
            return Err(CareError::NoFolder(beside.display().to_string()));
        }
        // Beside the place it goes to, so that it comes there in one step; for its owner alone, it holds hashes of tokens.
        let mut unfinished = tempfile::Builder::new();
        unfinished.prefix(".haft-backup-");
        if is_folder {
            #[cfg(unix)]
            unfinished.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
            let folder = unfinished.tempdir_in(beside).map_err(failed(beside))?;
            Ok(Self::Folder { folder, into })
        } else {
            let file = unfinished.tempfile_in(beside).map_err(failed(beside))?;
            Ok(Self::Tar { archive: tar::Builder::new(BufWriter::new(file)), into })
        }
    }

    /// A file without a name, where the backup is made: that is where there is room for it.
    pub(super) fn scratch(&self) -> Result<File, CareError> {
        let beside = self.beside();
        tempfile::tempfile_in(beside).map_err(failed(beside))
    }

    /// The folder in which the backup is made.
    pub(super) fn beside(&self) -> &Path {
        match self {
            Sink::Tar { into, .. } => folder_of(into),
            Sink::Folder { folder, .. } => folder.path(),
        }
    }

    pub(super) fn head(&mut self, head: &Head) -> Result<(), CareError> {
        self.json(HEAD, head)
    }

    pub(super) fn tail(&mut self, tail: &Tail) -> Result<(), CareError> {
        self.json(TAIL, tail)
    }

    fn json(&mut self, path: &str, value: &impl Serialize) -> Result<(), CareError> {
        let text = serde_json::to_string_pretty(value).expect("texts and numbers alone") + "\n";
        self.put(path, text.len() as u64, &mut text.as_bytes())
    }

    pub(super) fn blob(&mut self, digest: Digest, bytes: &[u8]) -> Result<(), CareError> {
        self.put(&blob_path(digest), bytes.len() as u64, &mut &bytes[..])
    }

    pub(super) fn put(
        &mut self,
        path: &str,
        size: u64,
        from: &mut dyn Read,
    ) -> Result<(), CareError> {
        match self {
            Sink::Tar { archive, into } => {
                let mut header = tar::Header::new_ustar();
                header.set_size(size);
                header.set_mode(0o600);
                header.set_entry_type(tar::EntryType::Regular);
                archive.append_data(&mut header, path, from).map_err(failed(into))
            }
            Sink::Folder { folder, .. } => {
                let path = folder.path().join(path);
                let mut write = || {
                    let (mut folders, mut options) = (DirBuilder::new(), OpenOptions::new());
                    folders.recursive(true);
                    options.write(true).create(true).truncate(true);
                    #[cfg(unix)]
                    {
                        std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
                        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                    }
                    if let Some(parent) = path.parent() {
                        folders.create(parent)?;
                    }
                    let mut file = options.open(&path)?;
                    std::io::copy(from, &mut file)?;
                    file.sync_all()
                };
                write().map_err(failed(&path))
            }
        }
    }

    /// All of it is there: it comes to its place in one step.
    pub(super) fn finish(self) -> Result<(), CareError> {
        match self {
            Sink::Tar { archive, into } => {
                let keep = || {
                    let mut file =
                        archive.into_inner()?.into_inner().map_err(std::io::Error::from)?;
                    file.flush()?;
                    file.as_file().sync_all()?;
                    file.persist_noclobber(&into).map_err(|error| error.error)?;
                    File::open(folder_of(&into))?.sync_all()
                };
                keep().map_err(failed(&into))
            }
            Sink::Folder { folder, into } => {
                let keep = || {
                    sync_folders(folder.path())?;
                    // An empty folder may be there; one with something in it refuses.
                    std::fs::rename(folder.path(), &into)?;
                    let _moved_away = folder.keep();
                    File::open(folder_of(&into))?.sync_all()
                };
                keep().map_err(failed(&into))
            }
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Makes durable which files are in a folder and in those inside.
fn sync_folders(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}

/// A backup that is read: first its head, then its rows into a file of ours, then the package files.
pub(super) enum Source {
    Tar(PathBuf),
    Folder(PathBuf),
}

/// What comes out of a backup, in order.
pub(super) enum Part {
    Head(Head),
    /// The rows, in a file of ours where there is room for one, with the digest of what they are.
    Rows(Option<File>, Digest),
    Tail(Tail),
    /// A package file under its name; whether the bytes are of that digest is for whoever keeps them.
    Blob(Digest, Vec<u8>),
}

impl Source {
    /// Opens what begins like a backup.
    pub(super) fn open(from: &Path) -> Result<Self, CareError> {
        let found = match std::fs::metadata(from) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(CareError::NotThere(from.display().to_string()));
            }
            found => found.map_err(failed(from))?,
        };
        if found.is_dir() {
            if !from.join(HEAD).is_file() {
                return Err(CareError::NoBackup(format!("there is no `{HEAD}` in the folder")));
            }
            return Ok(Self::Folder(from.into()));
        }
        let mut beginning = Vec::new();
        let file = File::open(from).map_err(failed(from))?;
        file.take(HEAD.len() as u64).read_to_end(&mut beginning).map_err(failed(from))?;
        if PRESSED.iter().any(|magic| beginning.starts_with(magic)) {
            return Err(CareError::NoBackup("it is compressed; unpack it first".to_owned()));
        }
        // A tar begins with the name of its first file.
        if beginning != HEAD.as_bytes() {
            return Err(CareError::NoBackup("it is no file of `haft registry backup`".to_owned()));
        }
        Ok(Self::Tar(from.into()))
    }

    /// Gives each part to `take`, in order, and waits until it is taken, or no more is wanted. In the folder `room` there
    /// is room for the rows; without one they are not kept.
    pub(super) async fn read(
        &self,
        room: Option<&Path>,
        mut take: impl AsyncFnMut(Part) -> Result<ControlFlow<()>, CareError>,
    ) -> Result<(), CareError> {
        match self {
            Source::Tar(path) => {
                let file =
                    BufReader::with_capacity(1 << 20, File::open(path).map_err(failed(path))?);
                let mut archive = tar::Archive::new(file);
                // What the reader says of other files holds their bytes.
                let broken = |_: std::io::Error| {
                    CareError::Damaged("it was cut off, or changed since".to_owned())
                };
                for entry in archive.entries().map_err(broken)? {
                    let mut entry = entry.map_err(broken)?;
                    let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
                    if entry.header().entry_type() != tar::EntryType::Regular {
                        return Err(CareError::NoBackup(format!("`{name}` is no file")));
                    }
                    let size = entry.size();
                    if take(part(&name, size, &mut entry, room)?).await?.is_break() {
                        break;
                    }
                }
                Ok(())
            }
            Source::Folder(path) => {
                let open = |name: &str| {
                    let path = path.join(name);
                    let file = File::open(&path).map_err(failed(&path))?;
                    let size = file.metadata().map_err(failed(&path))?.len();
                    Ok::<_, CareError>((size, file))
                };
                for name in [HEAD, ROWS] {
                    let (size, mut file) = open(name)?;
                    if take(part(name, size, &mut file, room)?).await?.is_break() {
                        return Ok(());
                    }
                }
                let inside = |folder: &Path| -> Result<Vec<PathBuf>, CareError> {
                    let entries = match std::fs::read_dir(folder) {
                        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                            return Ok(Vec::new());
                        }
                        entries => entries.map_err(failed(folder))?,
                    };
                    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
                    paths.collect::<Result<_, _>>().map_err(failed(folder))
                };
                for shelf in inside(&path.join("blobs"))? {
                    for blob in inside(&shelf)? {
                        let name = blob.strip_prefix(path).unwrap_or(&blob).display().to_string();
                        let (size, mut file) = open(&name)?;
                        if take(part(&name, size, &mut file, room)?).await?.is_break() {
                            return Ok(());
                        }
                    }
                }
                let (size, mut file) = open(TAIL)?;
                take(part(TAIL, size, &mut file, room)?).await.map(drop)
            }
        }
    }
}

fn part(
    name: &str,
    size: u64,
    from: &mut dyn Read,
    room: Option<&Path>,
) -> Result<Part, CareError> {
    let whole = |most: u64, from: &mut dyn Read| {
        if size > most {
            return Err(CareError::NoBackup(format!("`{name}` has {size} bytes")));
        }
        let mut bytes = Vec::new();
        from.take(most).read_to_end(&mut bytes).map_err(failed(name))?;
        if bytes.len() as u64 == size {
            Ok(bytes)
        } else {
            Err(CareError::Damaged(format!("`{name}` ends too early")))
        }
    };
    let unreadable =
        |_: serde_json::Error| CareError::Damaged(format!("`{name}` cannot be understood"));
    match name {
        HEAD => {
            let bytes = whole(HEAD_BYTES, from)?;
            let head = serde_json::from_slice(&bytes);
            head.map(Part::Head).map_err(unreadable)
        }
        TAIL => {
            let bytes = whole(HEAD_BYTES, from)?;
            let tail = serde_json::from_slice(&bytes);
            tail.map(Part::Tail).map_err(unreadable)
        }
        ROWS => {
            let kept = |room: &Path| tempfile::tempfile_in(room).map_err(failed(room));
            let mut file = room.map(kept).transpose()?;
            let mut hasher = package::digest::Hasher::default();
            let mut piece = vec![0; 1 << 16];
            loop {
                let count = from.read(&mut piece).map_err(failed(name))?;
                if count == 0 {
                    break;
                }
                hasher.update(&piece[..count]);
                if let (Some(file), Some(room)) = (&mut file, room) {
                    file.write_all(&piece[..count]).map_err(failed(room))?;
                }
            }
            Ok(Part::Rows(file, hasher.finish()))
        }
        other => {
            let digest = other.rsplit('/').next().and_then(Digest::parse);
            match digest {
                Some(digest) if blob_path(digest) == other => {
                    Ok(Part::Blob(digest, whole(BLOB_BYTES, from)?))
                }
                _ => Err(CareError::NoBackup(format!("it holds `{other}`"))),
            }
        }
    }
}
