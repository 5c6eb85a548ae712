//! One layer, put on those below it.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use crate::digest::{Counted, Digest, Promised};
use crate::documents::Packing;
use crate::limits::Limits;
use crate::refusal::{Code, ImageError, Refusal, carried};
use crate::tar::{Entries, Entry, Kind, shown};
use crate::tree::Tree;

/// What begins the name of an entry that takes something away.
const WHITEOUT: &[u8] = b".wh.";

/// What begins the names of a file system's own notes, and of the one that hides all below.
const NOTE: &[u8] = b".wh..wh.";

const OPAQUE: &[u8] = b".wh..wh..opq";

/// The largest window of a frame of Zstandard: 128 MiB, as its own tools have it.
const WINDOW: u32 = 27;

/// What the layers so far came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Entries, and folders that they made on their way.
    pub entries: u64,
    /// Bytes, unpacked.
    pub bytes: u64,
    /// Bytes, packed.
    pub packed: u64,
    /// Devices and pipes, which are left out.
    pub left_out: u64,
}

/// A layer as it comes.
pub(crate) struct Packed<R> {
    /// Its bytes.
    pub(crate) bytes: R,
    /// How it is packed, where the image says so.
    pub(crate) packing: Option<Packing>,
    /// How many they are.
    pub(crate) size: u64,
    /// Whether it was there before: then it takes no room of its own.
    pub(crate) is_repeated: bool,
    /// What they must be. Where this is not known, what comes out of them is.
    pub(crate) digest: Option<Digest>,
    /// What must come out of it.
    pub(crate) unpacked: Digest,
}

/// Puts a layer into a folder: checked to its last byte, as it came and as it was unpacked.
pub(crate) fn apply<R: Read>(
    layer: Packed<R>,
    tree: &Tree<'_>,
    limits: &Limits,
    used: &mut Used,
    is_called_off: &dyn Fn() -> bool,
) -> Result<(), ImageError> {
    let Packed { bytes, packing, size, is_repeated, digest, unpacked } = layer;
    let bytes = Awaited { inner: bytes, is_called_off };
    let input: Box<dyn Read + '_> = match digest {
        Some(digest) => Box::new(Promised::new(bytes, &digest, size)),
        None => Box::new(bytes),
    };
    let mut input = BufReader::with_capacity(128 << 10, input);
    let failed = |error: io::Error| match crate::refusal::uncarried(&error) {
        Some(refusal) => ImageError::Refused(refusal),
        None => ImageError::refused(Code::BadCompression, error.to_string()),
    };
    let packing = match packing {
        Some(packing) => packing,
        None => Packing::sniff(input.fill_buf().map_err(failed)?),
    };
    let output: Box<dyn Read + '_> = match packing {
        Packing::Plain => Box::new(&mut input),
        Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(&mut input)),
        Packing::Zstd => {
            let mut decoder = zstd::Decoder::with_buffer(&mut input).map_err(failed)?;
            decoder.window_log_max(WINDOW).map_err(failed)?;
            Box::new(decoder)
        }
    };
    if !is_repeated {
        used.packed = used.packed.saturating_add(size);
    }
    let (before, packed) = (used.bytes, used.packed);
    let bounded = Bounded { inner: output, passed: 0, before, packed, limits };
    let produced = write(Counted::new(bounded), tree, limits, used)?;
    let (digest, bytes) = produced.finish();
    used.bytes += bytes;
    // What follows the end of the compressed stream belongs to the layer too.
    io::copy(&mut input, &mut io::sink()).map_err(failed)?;
    if digest != unpacked {
        return Err(ImageError::refused(Code::DigestMismatch, unpacked.to_string()));
    }
    Ok(())
}

/// Puts the entries of a plain tar into a folder, for tests: no digest is known.
pub fn write_plain(
    bytes: impl Read,
    folder: &Path,
    limits: &Limits,
    used: &mut Used,
) -> Result<(), ImageError> {
    let tree = Tree::open(folder, limits, &|| false)?;
    let packed = u64::MAX;
    let bounded = Bounded { inner: bytes, passed: 0, before: used.bytes, packed, limits };
    let (_, count) = write(Counted::new(bounded), &tree, limits, used)?.finish();
    used.bytes += count;
    Ok(())
}

fn write<R: Read>(
    bytes: R,
    tree: &Tree<'_>,
    limits: &Limits,
    used: &mut Used,
) -> Result<R, ImageError> {
    let mut writing = Writing { tree, made: HashSet::new(), opaque: HashSet::new() };
    let mut entries = Entries::new(bytes, limits);
    while let Some(entry) = entries.next()? {
        tree.count_entry(&entry.name)?;
        used.entries = tree.entries();
        if entry.kind == Kind::Special {
            used.left_out += 1;
            continue;
        }
        writing.entry(&entry, &mut entries)?;
        used.entries = tree.entries();
    }
    entries.finish()
}

struct Writing<'w> {
    tree: &'w Tree<'w>,
    /// What this layer put where: a whiteout speaks of the layers below only.
    made: HashSet<PathBuf>,
    /// Folders of which nothing is left of the layers below; saying so again changes nothing.
    opaque: HashSet<PathBuf>,
}

impl Writing<'_> {
    fn entry<R: Read>(
        &mut self,
        entry: &Entry,
        content: &mut Entries<R>,
    ) -> Result<(), ImageError> {
        let name = entry.name.strip_suffix(b"/").unwrap_or(&entry.name);
        let (folder, last) = match name.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&name[..slash], &name[slash + 1..]),
            None => (&b"."[..], name),
        };
        if last == OPAQUE {
            return self.tree.white_out_all(folder, &self.made, &mut self.opaque);
        }
        if last.starts_with(NOTE) {
            return Ok(());
        }
        if let Some(hidden) = last.strip_prefix(WHITEOUT) {
            if matches!(hidden, b"" | b"." | b"..") {
                return Err(ImageError::refused(Code::BadWhiteout, shown(&entry.name)));
            }
            let hidden = [folder, b"/", hidden].concat();
            let Some(place) = self.tree.place(&hidden)? else { return Ok(()) };
            return self.tree.white_out(&place, &self.made);
        }
        let Some(place) = self.tree.place(&entry.name)? else { return Ok(()) };
        match &entry.kind {
            Kind::Folder => self.tree.folder(&place)?,
            Kind::SymbolicLink(target) => self.tree.link(&place, target)?,
            Kind::HardLink(target) => self.tree.hard_link(&place, target)?,
            Kind::File => {
                let mut file = self.tree.file(&place, entry.mode())?;
                let mut buffer = vec![0; 64 << 10];
                loop {
                    let count = content.read(&mut buffer)?;
                    if count == 0 {
                        break;
                    }
                    file.write_all(&buffer[..count]).map_err(ImageError::write(&place.path()))?;
                }
            }
            Kind::Special => {}
        }
        self.made.insert(place.path());
        Ok(())
    }
}

/// What comes out of a layer, as long as it is within the limits.
struct Bounded<'b, R> {
    inner: R,
    passed: u64,
    /// What the layers before had.
    before: u64,
    /// How much all have in their packed form, with this one.
    packed: u64,
    limits: &'b Limits,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer).map_err(|error| {
            let refusal = crate::refusal::uncarried(&error);
            carried(
                refusal.unwrap_or(Refusal { code: Code::BadCompression, what: error.to_string() }),
            )
        })?;
        self.passed += count as u64;
        let refused = |code| Err(carried(Refusal { code, what: "a layer".to_owned() }));
        let all = self.before.saturating_add(self.passed);
        if all > self.limits.total_bytes {
            return refused(Code::TotalTooLarge);
        }
        if self.limits.is_bomb(self.packed, all) {
            return refused(Code::Bomb);
        }
        Ok(count)
    }
}

/// The bytes of a layer, as long as somebody waits for them.
struct Awaited<'a, R> {
    inner: R,
    is_called_off: &'a dyn Fn() -> bool,
}

impl<R: Read> Read for Awaited<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.is_called_off)() {
            return Err(carried(Refusal { code: Code::CalledOff, what: "a layer".to_owned() }));
        }
        self.inner.read(buffer)
    }
}
