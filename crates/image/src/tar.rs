//! The entries of a tar, one after the other: ustar, with the long names of POSIX (`pax`) and of GNU.
//!
//! Only what decides over names and contents is looked at. What would make one entry mean two things, such as a name for
//! all entries or a file with holes, is refused.

use std::io::{self, Read, Seek, SeekFrom};

use crate::limits::Limits;
use crate::refusal::{Code, ImageError, uncarried};

/// Everything in a tar lies in blocks of this size.
const BLOCK: usize = 512;

/// The longest list of extended attributes that is read.
const LONGEST_EXTENSION: u64 = 1 << 20;

/// How many bytes all of them may have in an archive of which only the headers matter.
const MOST_EXTENDED: u64 = 8 << 20;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its name, as it was written.
    pub(crate) name: Vec<u8>,
    pub(crate) kind: Kind,
    /// Whether anybody may execute it.
    pub(crate) is_executable: bool,
    /// Bytes of its content.
    pub(crate) size: u64,
}

impl Entry {
    /// The mode a file is given: others than these two mean nothing where all belongs to one user.
    pub(crate) fn mode(&self) -> u32 {
        if self.is_executable { 0o755 } else { 0o644 }
    }
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    /// Another name for a file of the archive.
    HardLink(Vec<u8>),
    SymbolicLink(Vec<u8>),
    /// A device or a pipe.
    Special,
}

/// The entries of a tar.
pub(crate) struct Entries<R> {
    inner: R,
    skip: fn(&mut R, u64) -> io::Result<()>,
    limits: Limits,
    /// Bytes that extended headers may still have.
    extended: u64,
    /// Bytes up to the next thing that is read.
    position: u64,
    /// What is left of the content of the entry before.
    content: u64,
    /// What fills the last block of it.
    padding: u64,
}

impl<R: Read> Entries<R> {
    /// Entries that are read from the first byte to the last.
    pub(crate) fn new(inner: R, limits: &Limits) -> Self {
        Self::with(inner, limits, limits.total_bytes, |inner, count| {
            let skipped = io::copy(&mut inner.take(count), &mut io::sink())?;
            if skipped < count { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
        })
    }

    fn with(
        inner: R,
        limits: &Limits,
        extended: u64,
        skip: fn(&mut R, u64) -> io::Result<()>,
    ) -> Self {
        Self { inner, skip, limits: *limits, extended, position: 0, content: 0, padding: 0 }
    }

    /// The next entry; its content can be read before the one after it is asked for.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, ImageError> {
        let mut long = Long::default();
        loop {
            self.skip_content()?;
            let Some(block) = self.block()? else { return Ok(None) };
            let header = Header::read(&block)?;
            self.content = long.size.filter(|_| !header.is_extension()).unwrap_or(header.size);
            let end = self.content.checked_next_multiple_of(BLOCK as u64);
            let end = end.ok_or_else(|| ImageError::refused(Code::BadTar, shown(&header.name)))?;
            self.padding = end - self.content;
            match header.kind {
                b'x' => long.extend(&self.extension()?)?,
                b'g' => check_global(&self.extension()?)?,
                b'L' => long.name = Some(until_nul(&self.extension()?).to_vec()),
                b'K' => long.target = Some(until_nul(&self.extension()?).to_vec()),
                _ => return self.entry(&header, long).map(Some),
            }
        }
    }

    fn entry(&mut self, header: &Header, long: Long) -> Result<Entry, ImageError> {
        let name = long.name.unwrap_or_else(|| header.name.clone());
        let target = long.target.unwrap_or_else(|| header.target.clone());
        let kind = match header.kind {
            // Old archives know folders by their names.
            0 | b'0' | b'7' if name.ends_with(b"/") => Kind::Folder,
            0 | b'0' | b'7' => Kind::File,
            b'1' => Kind::HardLink(target),
            b'2' => Kind::SymbolicLink(target),
            b'3' | b'4' | b'6' => Kind::Special,
            b'5' => Kind::Folder,
            _ => return Err(ImageError::refused(Code::UnknownEntry, shown(&name))),
        };
        if kind != Kind::File && self.content > 0 {
            // Some writers give a hard link the size of its file, and no content.
            if !matches!(kind, Kind::HardLink(_)) {
                return Err(ImageError::refused(Code::BadTar, shown(&name)));
            }
            (self.content, self.padding) = (0, 0);
        }
        if self.content > self.limits.file_bytes {
            return Err(ImageError::refused(Code::FileTooLarge, shown(&name)));
        }
        let is_executable = header.mode & 0o111 != 0;
        Ok(Entry { name, kind, is_executable, size: self.content })
    }

    /// The content of the entry, as far as it was not read yet.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ImageError> {
        let most = usize::try_from(self.content).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let count = self.inner.read(&mut buffer[..most]).map_err(|error| damaged(&error))?;
        if count == 0 {
            return Err(ImageError::refused(Code::BadTar, "it ends within a file"));
        }
        self.content -= count as u64;
        self.position += count as u64;
        Ok(count)
    }

    /// Where the content of the entry begins.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Reads what follows the end, so that all of it was seen.
    pub(crate) fn finish(mut self) -> Result<R, ImageError> {
        io::copy(&mut self.inner, &mut io::sink()).map_err(|error| damaged(&error))?;
        Ok(self.inner)
    }

    fn extension(&mut self) -> Result<Vec<u8>, ImageError> {
        if self.content > LONGEST_EXTENSION {
            return Err(ImageError::refused(Code::BadTar, "an extended header is too long"));
        }
        let left = self.extended.checked_sub(self.content + BLOCK as u64);
        let too_much = || ImageError::refused(Code::BadTar, "its extended headers are too long");
        self.extended = left.ok_or_else(too_much)?;
        let mut all = vec![0; usize::try_from(self.content).unwrap_or_default()];
        let mut filled = 0;
        while filled < all.len() {
            filled += self.read(&mut all[filled..])?;
        }
        Ok(all)
    }

    fn skip_content(&mut self) -> Result<(), ImageError> {
        (self.skip)(&mut self.inner, self.content).map_err(|error| damaged(&error))?;
        match (self.skip)(&mut self.inner, self.padding) {
            // Some writers end with the last byte of the last file.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            skipped => skipped.map_err(|error| damaged(&error))?,
        }
        self.position += self.content + self.padding;
        (self.content, self.padding) = (0, 0);
        Ok(())
    }

    /// The next block; none where the archive ends, with a block of zeros or without.
    fn block(&mut self) -> Result<Option<[u8; BLOCK]>, ImageError> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            match self.inner.read(&mut block[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(ImageError::refused(Code::BadTar, "it ends within a header")),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(damaged(&error)),
            }
        }
        self.position += BLOCK as u64;
        Ok(block.iter().any(|byte| *byte != 0).then_some(block))
    }
}

impl<R: Read + Seek> Entries<R> {
    /// Entries of a file of which only the headers matter.
    pub(crate) fn seeking(inner: R, limits: &Limits) -> Self {
        Self::with(inner, limits, MOST_EXTENDED, |inner, count| {
            let count = i64::try_from(count).map_err(io::Error::other)?;
            inner.seek(SeekFrom::Current(count)).map(drop)
        })
    }
}

/// A refusal of a reader below comes up as itself; anything else that cannot be read is damage.
fn damaged(error: &io::Error) -> ImageError {
    match uncarried(error) {
        Some(refusal) => ImageError::Refused(refusal),
        None => ImageError::refused(Code::BadTar, error.to_string()),
    }
}

/// What extended headers say of the entry that follows.
#[derive(Default)]
struct Long {
    name: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
}

impl Long {
    fn extend(&mut self, records: &[u8]) -> Result<(), ImageError> {
        for (key, value) in pax(records)? {
            match key {
                b"path" => self.name = Some(value.to_vec()),
                b"linkpath" => self.target = Some(value.to_vec()),
                b"size" => {
                    let text = std::str::from_utf8(value).ok();
                    let size = text.and_then(|text| text.parse().ok()).ok_or_else(bad_extension)?;
                    self.size = Some(size);
                }
                key if key.starts_with(b"GNU.sparse.") => {
                    return Err(ImageError::refused(Code::UnknownEntry, "a file with holes"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Nothing that decides over names and contents may be said of all entries at once.
fn check_global(records: &[u8]) -> Result<(), ImageError> {
    let decides = |key: &[u8]| {
        [&b"path"[..], b"linkpath", b"size"].contains(&key) || key.starts_with(b"GNU.sparse.")
    };
    if pax(records)?.iter().any(|(key, _)| decides(key)) {
        return Err(bad_extension());
    }
    Ok(())
}

/// A key and its value.
type Record<'r> = (&'r [u8], &'r [u8]);

/// Records as `LENGTH KEY=VALUE\n`, where the length counts itself.
fn pax(mut records: &[u8]) -> Result<Vec<Record<'_>>, ImageError> {
    let mut all = Vec::new();
    while !records.is_empty() {
        let space = records.iter().take(8).position(|byte| *byte == b' ');
        let space = space.ok_or_else(bad_extension)?;
        let length = std::str::from_utf8(&records[..space]).ok().and_then(|text| text.parse().ok());
        let length: usize = length.ok_or_else(bad_extension)?;
        let record = records.get(space + 1..length).ok_or_else(bad_extension)?;
        let record = record.strip_suffix(b"\n").ok_or_else(bad_extension)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(bad_extension)?;
        all.push((&record[..equals], &record[equals + 1..]));
        records = &records[length..];
    }
    Ok(all)
}

fn bad_extension() -> ImageError {
    ImageError::refused(Code::BadTar, "an extended header is damaged")
}

struct Header {
    name: Vec<u8>,
    target: Vec<u8>,
    mode: u64,
    size: u64,
    kind: u8,
}

impl Header {
    fn read(block: &[u8; BLOCK]) -> Result<Self, ImageError> {
        let name = until_nul(&block[..100]);
        let bad = || ImageError::refused(Code::BadTar, shown(name));
        let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
        let own: u64 = block[148..156].iter().map(|byte| u64::from(*byte)).sum();
        if number(&block[148..156]) != Some(sum - own + 8 * u64::from(b' ')) {
            return Err(bad());
        }
        let prefix = until_nul(&block[345..500]);
        let name = match (&block[257..263], prefix) {
            // GNU keeps other things where POSIX has the first part of a long name.
            (b"ustar\0", prefix) if !prefix.is_empty() => [prefix, b"/", name].concat(),
            _ => name.to_vec(),
        };
        Ok(Self {
            name,
            target: until_nul(&block[157..257]).to_vec(),
            mode: number(&block[100..108]).ok_or_else(bad)?,
            size: number(&block[124..136]).ok_or_else(bad)?,
            kind: block[156],
        })
    }

    fn is_extension(&self) -> bool {
        matches!(self.kind, b'x' | b'g' | b'L' | b'K')
    }
}

/// A number in octal digits, or in GNU's way for large ones.
fn number(field: &[u8]) -> Option<u64> {
    let (first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        let digits = std::iter::once(first & 0x7f).chain(rest.iter().copied());
        return digits
            .into_iter()
            .try_fold(0_u64, |value, digit| value.checked_mul(256)?.checked_add(u64::from(digit)));
    }
    let text = field.trim_ascii_start();
    let end = text.iter().position(|byte| matches!(byte, 0 | b' ')).unwrap_or(text.len());
    text[..end].iter().try_fold(0_u64, |value, digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

fn until_nul(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    &field[..end]
}

/// A name for people.
pub(crate) fn shown(name: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(name).into_owned();
    if let Some((end, _)) = text.char_indices().nth(200) {
        text.truncate(end);
        text.push('…');
    }
    text
}
