//! Where the bytes of an image are: an OCI layout, as a folder or in a tar, or an archive of `docker save`.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::digest::Digest;
use crate::documents::{Config, Packing, Saved, Top, check_config, ours};
use crate::layer::Packed;
use crate::limits::Limits;
use crate::refusal::{Code, ImageError};
use crate::tar::{Entries, Kind};

/// How deep one index may lie in another.
pub const MOST_INDEXES: usize = 3;

/// The most images that one archive of `docker save` tells of.
const MOST_SAVED: usize = 64;

/// A place with the bytes of one or several images.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    form: Form,
    limits: Limits,
}

#[derive(Debug)]
enum Form {
    Folder,
    Archive(HashMap<Vec<u8>, Part>),
}

/// A file in an archive.
#[derive(Debug, Clone)]
enum Part {
    At {
        offset: u64,
        size: u64,
    },
    /// Another name of one: old archives keep a layer once.
    Link(Vec<u8>),
}

/// An image whose documents were read and fit together.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) config: Config,
    layers: Vec<Layer>,
}

/// A layer, and where its bytes are.
#[derive(Debug)]
struct Layer {
    name: Vec<u8>,
    packing: Option<Packing>,
    promise: Option<(Digest, u64)>,
}

impl Source {
    /// Looks at a folder or a file; `None` where it holds no image.
    pub fn open(path: &Path, limits: &Limits) -> Option<Self> {
        let form = if path.is_dir() {
            path.join("oci-layout").is_file().then_some(Form::Folder)?
        } else {
            let parts = list(path, limits)?;
            let has = |name: &[u8]| parts.contains_key(name);
            (has(b"oci-layout") || has(b"manifest.json")).then_some(Form::Archive(parts))?
        };
        Some(Self { path: path.to_owned(), form, limits: *limits })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The image that a digest stands for: that of its manifest or of an index, or, in an archive of `docker save`, which
    /// keeps neither, that of its settings.
    pub(crate) fn describe(&self, pinned: &Digest) -> Result<Option<Described>, ImageError> {
        if self.part(&blob(pinned))?.is_some() {
            // The settings have their own digest, and an archive may hold both.
            let bytes = self.document(&blob(pinned), pinned, None)?;
            match self.saved(pinned, &blob(pinned)) {
                Ok(Some(described)) => return Ok(Some(described)),
                Ok(None) | Err(_) => return self.descend(&bytes, pinned).map(Some),
            }
        }
        self.saved(pinned, format!("{}.json", pinned.digits()).as_bytes())
    }

    /// From an index to the manifest for this machine.
    fn descend(&self, bytes: &[u8], pinned: &Digest) -> Result<Described, ImageError> {
        let (mut bytes, mut digest) = (bytes.to_vec(), pinned.clone());
        for _ in 0..=MOST_INDEXES {
            match Top::read(&bytes, &digest)? {
                Top::Manifest { config, layers } => {
                    check_config(&config)?;
                    let settings = config.digest()?;
                    let text = self.document(&blob(&settings), &settings, Some(config.size))?;
                    let config = Config::read(&text, &settings)?;
                    let layers = layers.iter().map(|layer| {
                        let digest = layer.digest()?;
                        Ok(Layer {
                            name: blob(&digest),
                            packing: Some(Packing::of(&layer.media_type)?),
                            promise: Some((digest, layer.size)),
                        })
                    });
                    let layers = layers.collect::<Result<Vec<_>, ImageError>>()?;
                    return self.checked(config, layers, &digest);
                }
                Top::Index(manifests) => {
                    let chosen = ours(&manifests, &digest)?;
                    let next = chosen.digest()?;
                    bytes = self.document(&blob(&next), &next, Some(chosen.size))?;
                    digest = next;
                }
            }
        }
        Err(ImageError::refused(Code::BadDocument, pinned.to_string()))
    }

    /// An image as `docker save` describes it.
    fn saved(&self, pinned: &Digest, config: &[u8]) -> Result<Option<Described>, ImageError> {
        if self.part(b"manifest.json")?.is_none() || matches!(self.form, Form::Folder) {
            return Ok(None);
        }
        let bad = || ImageError::refused(Code::BadDocument, "manifest.json");
        let text = self.whole(b"manifest.json")?;
        let saved: Vec<Saved> = serde_json::from_slice(&text).map_err(|_| bad())?;
        let mut named = saved.iter().take(MOST_SAVED);
        let Some(one) = named.find(|one| one.config.as_bytes() == config) else { return Ok(None) };
        let text = self.document(config, pinned, None)?;
        let config = Config::read(&text, pinned)?;
        let layers = one.layers.iter().map(|name| Layer {
            name: name.as_bytes().to_vec(),
            packing: None,
            promise: None,
        });
        self.checked(config, layers.collect(), pinned).map(Some)
    }

    fn checked(
        &self,
        config: Config,
        layers: Vec<Layer>,
        what: &Digest,
    ) -> Result<Described, ImageError> {
        if layers.len() > self.limits.layers {
            return Err(ImageError::refused(Code::TooManyLayers, what.to_string()));
        }
        if layers.len() != config.layers.len() {
            return Err(ImageError::refused(Code::LayersDisagree, what.to_string()));
        }
        Ok(Described { config, layers })
    }

    /// The layers of an image, the lowest first.
    pub(crate) fn layers(
        &self,
        image: &Described,
    ) -> impl Iterator<Item = Result<Packed<impl Read + 'static>, ImageError>> {
        let mut seen = HashSet::new();
        image.layers.iter().zip(&image.config.layers).map(move |(layer, unpacked)| {
            let (bytes, there) = self.bytes(&layer.name)?;
            let (digest, size) = match &layer.promise {
                Some((digest, size)) if *size == there => (Some(digest.clone()), *size),
                Some((digest, _)) => {
                    return Err(ImageError::refused(Code::SizeMismatch, digest.to_string()));
                }
                None => (None, there),
            };
            let is_repeated = !seen.insert(unpacked);
            let (packing, unpacked) = (layer.packing, unpacked.clone());
            Ok(Packed { bytes, packing, size, is_repeated, digest, unpacked })
        })
    }

    /// A document whose digest is known, and perhaps its size.
    fn document(
        &self,
        name: &[u8],
        digest: &Digest,
        size: Option<u64>,
    ) -> Result<Vec<u8>, ImageError> {
        let bytes = self.whole(name)?;
        if size.is_some_and(|size| size != bytes.len() as u64) {
            return Err(ImageError::refused(Code::SizeMismatch, digest.to_string()));
        }
        if Digest::of(&bytes) != *digest {
            return Err(ImageError::refused(Code::DigestMismatch, digest.to_string()));
        }
        Ok(bytes)
    }

    fn whole(&self, name: &[u8]) -> Result<Vec<u8>, ImageError> {
        let (bytes, size) = self.bytes(name)?;
        if size > self.limits.document_bytes {
            let what = crate::tar::shown(name);
            return Err(ImageError::refused(Code::DocumentTooLarge, what));
        }
        let mut all = Vec::new();
        let read = bytes.take(self.limits.document_bytes).read_to_end(&mut all);
        read.map_err(ImageError::read(&self.path))?;
        Ok(all)
    }

    /// The bytes of a part, and how many they are.
    fn bytes(&self, name: &[u8]) -> Result<(impl Read + 'static, u64), ImageError> {
        let missing = || ImageError::refused(Code::MissingBlob, crate::tar::shown(name));
        let (file, size) = self.part(name)?.ok_or_else(missing)?;
        Ok((file.take(size), size))
    }

    /// A part, at its beginning.
    fn part(&self, name: &[u8]) -> Result<Option<(File, u64)>, ImageError> {
        let failed = |cause| ImageError::Read(self.path.clone(), cause);
        match &self.form {
            Form::Folder => {
                let Ok(name) = std::str::from_utf8(name) else { return Ok(None) };
                Ok(plain_file(&self.path.join(name)))
            }
            Form::Archive(parts) => {
                let mut part = parts.get(name);
                if let Some(Part::Link(target)) = part {
                    part = parts.get(target);
                }
                let Some(Part::At { offset, size }) = part else { return Ok(None) };
                let Some((mut file, length)) = plain_file(&self.path) else { return Ok(None) };
                if offset.checked_add(*size).is_none_or(|end| end > length) {
                    let what = crate::tar::shown(name);
                    return Err(ImageError::refused(Code::BadTar, what));
                }
                file.seek(SeekFrom::Start(*offset)).map_err(failed)?;
                Ok(Some((file, *size)))
            }
        }
    }
}

/// Where a layout keeps the bytes of a digest.
fn blob(digest: &Digest) -> Vec<u8> {
    format!("blobs/sha256/{}", digest.digits()).into_bytes()
}

/// Opens a file that is one: whoever made the folder must not keep us waiting at a pipe.
fn plain_file(path: &Path) -> Option<(File, u64)> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let found = file.metadata().ok()?;
    found.is_file().then_some((file, found.len()))
}

/// The files of a tar by their names; `None` where it is none, or has more than an image would.
fn list(path: &Path, limits: &Limits) -> Option<HashMap<Vec<u8>, Part>> {
    /// An archive with more is no image of so many layers.
    const MOST: usize = 4096;
    let (file, _) = plain_file(path)?;
    let mut entries = Entries::seeking(file, &Limits { file_bytes: u64::MAX, ..*limits });
    let (mut parts, mut seen) = (HashMap::new(), 0);
    while let Some(entry) = entries.next().ok()? {
        seen += 1;
        let target = match &entry.kind {
            Kind::SymbolicLink(target) | Kind::HardLink(target) => target.len(),
            Kind::File | Kind::Folder | Kind::Special => 0,
        };
        if seen > MOST || entry.name.len().max(target) > limits.path_bytes {
            return None;
        }
        let name = plain_name(&entry.name, b"");
        let part = match &entry.kind {
            Kind::File => Part::At { offset: entries.position(), size: entry.size },
            Kind::SymbolicLink(target) => {
                let end = name.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                Part::Link(plain_name(target, &name[..end]))
            }
            Kind::HardLink(target) => Part::Link(plain_name(target, b"")),
            Kind::Folder | Kind::Special => continue,
        };
        // Of two files of one name neither is meant.
        if parts.insert(name, part).is_some() {
            return None;
        }
    }
    Some(parts)
}

/// A name in an archive, from a folder of it, without steps that lead nowhere or back.
fn plain_name(name: &[u8], from: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    let steps = from.split(|byte| *byte == b'/').chain(name.split(|byte| *byte == b'/'));
    for step in steps {
        match step {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            step => parts.push(step),
        }
    }
    parts.join(&b'/')
}
