//! A zip archive, written so that the same files always give the same bytes.
//!
//! Names are sorted, times are 1980, modes are 0644 or 0755, nothing is said
//! about the machine. The compressor is pinned, because its choices are part of
//! the bytes.

use std::io::{self, Write};

use libdeflater::{CompressionLvl, Compressor};

use crate::archive::{Archive, Entry};
use crate::digest::{Digest, FileDigest, Hasher};
use crate::limits::Limits;
use crate::record::{self, Central, Common, DEFLATED, End, STORED};

/// How hard the compressor tries.
const LEVEL: i32 = 6;
/// Files up to this size are compressed whatever their ratio.
const SMALL: usize = 64 * 1024;
/// The first of January 1980, the earliest day there is.
const DATE: u16 = 0x0021;
/// The name is UTF-8.
const UTF8: u16 = 1 << 11;
/// Version 2.0 of the format, on Unix.
const MADE_BY: u16 = 0x0314;

/// A file, ready to be put into an archive.
#[derive(Clone, Debug)]
pub struct Packed {
    path: String,
    executable: bool,
    method: u16,
    crc: u32,
    size: u32,
    data: Vec<u8>,
    sha256: Option<Digest>,
}

impl Packed {
    /// Compresses a file; one that would grow is stored as it is.
    pub fn compress(path: impl Into<String>, content: &[u8], executable: bool) -> Self {
        let level = CompressionLvl::new(LEVEL).expect("the level is one there is");
        let mut compressor = Compressor::new(level);
        let mut data = vec![0; compressor.deflate_compress_bound(content.len())];
        let compressed = compressor.deflate_compress(content, &mut data);
        let method = match compressed {
            // What grows too much would be taken for a bomb, so it is stored as it is.
            Ok(len) if len < content.len() && !is_too_dense(len, content.len()) => {
                data.truncate(len);
                DEFLATED
            }
            _ => {
                data = content.to_vec();
                STORED
            }
        };
        Self {
            path: path.into(),
            executable,
            method,
            crc: crc32fast::hash(content),
            size: number(content.len()),
            data,
            sha256: Some(Digest::of(content)),
        }
    }

    /// A file of another archive, as it is compressed there.
    pub fn copy(archive: &Archive, entry: &Entry) -> io::Result<Self> {
        Ok(Self {
            path: entry.path.clone(),
            executable: entry.executable,
            method: entry.method,
            crc: entry.crc,
            size: number(usize::try_from(entry.size).unwrap_or(usize::MAX)),
            data: archive.raw(entry)?,
            sha256: None,
        })
    }

    /// Its path, size and digest; nothing for a file copied unread.
    pub fn digest(&self) -> Option<FileDigest> {
        let (path, size) = (self.path.clone(), u64::from(self.size));
        self.sha256.map(|sha256| FileDigest { path, size, sha256 })
    }
}

/// An archive in the making. Files must come in the order of their paths.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    hasher: Hasher,
    at: usize,
    directory: Vec<u8>,
    last: Option<String>,
    entries: u16,
}

/// An archive that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its size in bytes.
    pub size: u64,
    /// Its digest.
    pub sha256: Digest,
}

impl<W: Write> Writer<W> {
    /// A new archive.
    pub fn new(out: W) -> Self {
        let (hasher, directory) = (Hasher::default(), Vec::new());
        Self { out, hasher, at: 0, directory, last: None, entries: 0 }
    }

    /// Adds a file.
    pub fn add(&mut self, file: &Packed) -> io::Result<()> {
        assert!(self.last.as_ref() < Some(&file.path), "files come in the order of their paths");
        let header = Common {
            needed: if file.method == DEFLATED { 20 } else { 10 },
            flags: if file.path.is_ascii() { 0 } else { UTF8 },
            method: file.method,
            time: 0,
            date: DATE,
            crc: file.crc,
            compressed: number(file.data.len()),
            size: file.size,
            name_len: u16::try_from(file.path.len()).unwrap_or(u16::MAX),
            extra_len: 0,
        };
        let mode: u32 = if file.executable { 0o100_755 } else { 0o100_644 };
        record::put_central(
            &mut self.directory,
            &Central {
                made_by: MADE_BY,
                common: header,
                comment_len: 0,
                disk: 0,
                internal: 0,
                external: mode << 16,
                offset: number(self.at),
            },
        );
        self.directory.extend(file.path.as_bytes());
        let mut local = Vec::with_capacity(record::LOCAL_LEN + file.path.len());
        record::put_local(&mut local, &header);
        local.extend(file.path.as_bytes());
        self.put(&local)?;
        self.put(&file.data)?;
        self.entries += 1;
        self.last = Some(file.path.clone());
        Ok(())
    }

    /// Writes the directory and the end record.
    pub fn finish(mut self) -> io::Result<Written> {
        let directory = std::mem::take(&mut self.directory);
        let mut end = Vec::new();
        record::put_end(
            &mut end,
            &End {
                disk: 0,
                directory_disk: 0,
                entries_here: self.entries,
                entries: self.entries,
                directory_size: number(directory.len()),
                directory_offset: number(self.at),
                comment_len: 0,
            },
        );
        self.put(&directory)?;
        self.put(&end)?;
        self.out.flush()?;
        Ok(Written { size: self.at as u64, sha256: self.hasher.finish() })
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.hasher.update(bytes);
        self.at += bytes.len();
        Ok(())
    }
}

/// Whether so much from so little would be refused, alone or with others of its kind.
fn is_too_dense(compressed: usize, size: usize) -> bool {
    let ratio = usize::try_from(Limits::DEFAULT.ratio).unwrap_or(usize::MAX);
    size > SMALL && size / ratio >= compressed
}

/// A number of a record. The limits of a package keep every one far below 4 GiB.
fn number(value: usize) -> u32 {
    u32::try_from(value).expect("a package is smaller than 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Trailer;

    fn write(files: &[(&str, &[u8], bool)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        for (path, content, executable) in files {
            writer.add(&Packed::compress(*path, content, *executable)).unwrap();
        }
        let written = writer.finish().unwrap();
        assert_eq!((written.size, written.sha256), (bytes.len() as u64, Digest::of(&bytes)));
        bytes
    }

    #[test]
    fn what_is_written_is_read_back() {
        let long = b"abc".repeat(100_000);
        let files: [(&str, &[u8], bool); 4] =
            [("a", b"", false), ("b/c", b"x", true), ("b/d", &long, false), ("ä", b"y", false)];
        let archive =
            Archive::from_bytes(write(&files), Trailer::Refused, &Limits::DEFAULT).unwrap();
        let read: Vec<_> = archive
            .entries()
            .iter()
            .map(|entry| (entry.path.clone(), archive.read(entry).unwrap(), entry.executable))
            .collect();
        let expected = files.map(|(path, content, run)| (path.to_owned(), content.to_vec(), run));
        assert_eq!(read, expected);
    }

    #[test]
    fn a_file_copied_from_another_archive_keeps_its_bytes() {
        let bytes = write(&[("a", &b"abc".repeat(1000), true), ("b", b"x", false)]);
        let archive =
            Archive::from_bytes(bytes.clone(), Trailer::Refused, &Limits::DEFAULT).unwrap();
        let mut copy = Vec::new();
        let mut writer = Writer::new(&mut copy);
        for entry in archive.entries() {
            writer.add(&Packed::copy(&archive, entry).unwrap()).unwrap();
        }
        writer.finish().unwrap();
        assert_eq!(copy, bytes);
    }

    #[test]
    fn an_empty_archive_is_an_archive() {
        let archive = Archive::from_bytes(write(&[]), Trailer::Refused, &Limits::DEFAULT).unwrap();
        assert!(archive.entries().is_empty());
    }
}
