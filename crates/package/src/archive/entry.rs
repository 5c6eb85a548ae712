//! One entry: what the directory says of it, and whether its own header agrees.

use crate::limits::Limits;
use crate::names::Kind;
use crate::record::{self, Central, Common, DEFLATED, LOCAL_LEN, STORED};
use crate::refusal::{ReadError, Refusal, RefusalCode};
use crate::source::Source;

/// The entry's data is encrypted, in one of three ways.
const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
/// How hard the compressor tried; says nothing to a reader.
const EFFORT: u16 = 1 << 1 | 1 << 2;
/// Sizes and checksum follow the data.
const DESCRIBED_AFTER: u16 = 1 << 3;
/// The name is UTF-8.
const UTF8: u16 = 1 << 11;

/// Extra fields that tell of times and owners, and change nothing we read.
const HARMLESS: [u16; 5] = [
    0x000a, // times on NTFS
    0x5455, // times
    0x5855, // times and owner, old
    0x7855, // owner, old
    0x7875, // owner
];
/// The most bytes a harmless extra field needs; more would be a place to hide something.
const MAX_HARMLESS: usize = 36;
/// The name once more, in UTF-8; harmless when it is the same name.
const UNICODE_PATH: u16 = 0x7075;
/// Sizes over 4 GiB.
const ZIP64: u16 = 0x0001;

/// Systems whose attributes we know: FAT, Unix, NTFS (two numbers), VFAT, macOS.
const SYSTEMS: [u8; 6] = [0, 3, 10, 11, 14, 19];

/// How much more than its content a file's data may be: compressors have their ways, but
/// data that unfolds to nothing is a place to hide something.
const SPARE: u64 = 4096;

/// How many files of any ratio a package may have.
const FREE_FILES: u64 = 16;

/// Nothing, deflated.
const EMPTY: [u8; 2] = [3, 0];

const FILE_TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const SYMBOLIC_LINK: u32 = 0o120_000;

/// An entry as the directory lists it.
pub(super) struct Listed {
    pub(super) header: Central,
    pub(super) name: Vec<u8>,
    pub(super) path: String,
    pub(super) kind: Kind,
    pub(super) executable: bool,
}

/// Checks everything a line of the directory says by itself.
pub(super) fn check_central(header: Central, name: &[u8], extra: &[u8]) -> Result<Listed, Refusal> {
    let full = String::from_utf8_lossy(name).into_owned();
    let refuse = |code, words: &str| Err(Refusal::entry(code, &full, words));
    let common = header.common;
    if common.flags & ENCRYPTED != 0 || common.method == 99 {
        return refuse(RefusalCode::Encrypted, "is encrypted");
    }
    if common.compressed == u32::MAX || common.size == u32::MAX || header.offset == u32::MAX {
        return refuse(RefusalCode::Zip64, "uses zip64");
    }
    if ![STORED, DEFLATED].contains(&common.method) {
        let words = format!("is compressed by method {}; only deflate is read", common.method);
        return refuse(RefusalCode::UnknownMethod, &words);
    }
    if common.flags & !(EFFORT | DESCRIBED_AFTER | UTF8) != 0 {
        let words = format!("has the flags {:#06x}", common.flags);
        return refuse(RefusalCode::UnknownFlags, &words);
    }
    check_extra(extra, name, &full)?;
    if common.needed & 0xff > 20 {
        let words = format!("needs version {} of the format", common.needed & 0xff);
        return refuse(RefusalCode::UnknownMethod, &words);
    }
    if header.comment_len != 0 {
        return refuse(RefusalCode::EntryComment, "has a comment");
    }
    if header.disk != 0 {
        return refuse(RefusalCode::SeveralDisks, "lies on another disk");
    }
    if std::str::from_utf8(name).is_err() || (common.flags & UTF8 == 0 && !name.is_ascii()) {
        return refuse(RefusalCode::NameEncoding, "has a name that is not marked as UTF-8");
    }
    let (path, kind) = match full.strip_suffix('/') {
        Some(path) => (path, Kind::Folder),
        None => (full.as_str(), Kind::File),
    };
    let executable = check_attributes(&header, &full, kind)?;
    // Some writers compress a folder's nothing; what its two bytes are is looked at later.
    let compressed = if common.method == DEFLATED { EMPTY.len() } else { 0 };
    let is_empty = (common.size, common.crc) == (0, 0)
        && [0, compressed].contains(&(common.compressed as usize));
    if kind == Kind::Folder && !is_empty {
        return refuse(RefusalCode::FolderContent, "is a folder with content");
    }
    if common.method == STORED && common.size != common.compressed {
        return refuse(RefusalCode::SizeMismatch, "is stored, and its two sizes differ");
    }
    if common.method == STORED && common.flags & DESCRIBED_AFTER != 0 && common.size > 0 {
        // Nothing in the data itself says where it ends, so two readers may disagree.
        return refuse(RefusalCode::BadDescriptor, "is stored, and its size follows its data");
    }
    let path = path.to_owned();
    Ok(Listed { header, name: name.to_vec(), path, kind, executable })
}

/// Refuses all that is no plain file or folder; whether the owner may run it otherwise.
fn check_attributes(header: &Central, full: &str, kind: Kind) -> Result<bool, Refusal> {
    let refuse = |code, words: &str| Err(Refusal::entry(code, full, words));
    let [_, system] = header.made_by.to_le_bytes();
    if !SYSTEMS.contains(&system) {
        let words = format!("was made on system {system}, whose attributes are unknown");
        return refuse(RefusalCode::UnknownSystem, &words);
    }
    // Some readers take the mode for one whatever the system, so it must be harmless on all.
    let mode = header.external >> 16;
    let stated = match mode & FILE_TYPE {
        SYMBOLIC_LINK => return refuse(RefusalCode::Link, "is a link"),
        0 => None,
        REGULAR => Some(Kind::File),
        FOLDER => Some(Kind::Folder),
        _ => return refuse(RefusalCode::SpecialFile, "is a device, pipe or socket"),
    };
    if mode & 0o7000 != 0 {
        return refuse(RefusalCode::Setuid, "has a setuid, setgid or sticky bit");
    }
    let dos = header.external & 0xff;
    if dos & 0x08 != 0 {
        return refuse(RefusalCode::SpecialFile, "is a volume label");
    }
    if dos & 0x40 != 0 {
        return refuse(RefusalCode::SpecialFile, "is a device");
    }
    let is_dos_folder = dos & 0x10 != 0;
    if stated.is_some_and(|stated| stated != kind) || (is_dos_folder && kind == Kind::File) {
        let words = "is a folder by its name or its attributes, but not by both";
        return refuse(RefusalCode::KindMismatch, words);
    }
    Ok(mode & 0o100 != 0)
}

/// Refuses extra fields that are damaged or could change what a reader sees.
fn check_extra(extra: &[u8], name: &[u8], full: &str) -> Result<(), Refusal> {
    let refuse = |words: &str| Err(Refusal::entry(RefusalCode::ExtraField, full, words));
    let mut left = extra;
    let mut seen = Vec::new();
    while !left.is_empty() {
        let [a, b, c, d, rest @ ..] = left else {
            return refuse("has a damaged extra field");
        };
        let (id, len) = (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]));
        let Some((field, rest)) = rest.split_at_checked(usize::from(len)) else {
            return refuse("has a damaged extra field");
        };
        match id {
            _ if seen.contains(&id) => return refuse("has an extra field twice"),
            ZIP64 => return Err(Refusal::entry(RefusalCode::Zip64, full, "uses zip64")),
            UNICODE_PATH => {
                // Version, checksum of the plain name, then the name in UTF-8.
                let crc = crc32fast::hash(name).to_le_bytes();
                let is_same = field == [&[1], &crc[..], name].concat();
                if !is_same {
                    return refuse("has a second name");
                }
            }
            _ if HARMLESS.contains(&id) && field.len() <= MAX_HARMLESS => {}
            _ => return refuse(&format!("has the extra field {id:#06x}")),
        }
        seen.push(id);
        left = rest;
    }
    Ok(())
}

/// Holds what the headers claim against the limits.
pub(super) fn check_sizes(listed: &[Listed], limits: &Limits) -> Result<(), Refusal> {
    let mut total = 0;
    for line in listed {
        let (compressed, size) =
            (u64::from(line.header.common.compressed), u64::from(line.header.common.size));
        if size > limits.file_bytes {
            let words = format!("has {size} bytes; at most {} are allowed", limits.file_bytes);
            return Err(Refusal::entry(RefusalCode::FileTooLarge, &line.path, words));
        }
        if limits.is_bomb(compressed, size) {
            let words = format!(
                "grows from {compressed} to {size} bytes, more than {} times",
                limits.ratio
            );
            return Err(Refusal::entry(RefusalCode::Bomb, &line.path, words));
        }
        total += size;
    }
    if total > limits.total_bytes {
        let message =
            format!("the files have {total} bytes; at most {} are allowed", limits.total_bytes);
        return Err(Refusal::new(RefusalCode::TotalTooLarge, message));
    }
    Ok(())
}

/// Refuses files that together grow too much, and data that is far larger than its content.
pub(super) fn check_growth(listed: &[Listed], limits: &Limits) -> Result<(), Refusal> {
    let (mut total, mut total_compressed) = (0, 0);
    for line in listed {
        let (compressed, size) =
            (u64::from(line.header.common.compressed), u64::from(line.header.common.size));
        if compressed > 2 * size + SPARE {
            let words = format!("takes {compressed} bytes for {size} bytes of content");
            return Err(Refusal::entry(RefusalCode::BadDeflate, &line.path, words));
        }
        total += size;
        total_compressed += compressed;
    }
    // A few small files may each have any ratio; hundreds of them may not.
    if total > FREE_FILES * limits.ratio_free_bytes && limits.is_bomb(total_compressed, total) {
        let message = format!(
            "the files grow from {total_compressed} to {total} bytes, more than {} times",
            limits.ratio
        );
        return Err(Refusal::new(RefusalCode::Bomb, message));
    }
    Ok(())
}

/// Reads an entry's own header, which must say what the directory says.
/// Gives where its data begins and where the entry ends.
pub(super) fn check_local(
    source: &Source,
    line: &Listed,
    next: u64,
) -> Result<(u64, u64), ReadError> {
    let offset = u64::from(line.header.offset);
    let refuse = |code, words: &str| Err(ReadError::from(Refusal::entry(code, &line.path, words)));
    let mismatch = |words: &str| refuse(RefusalCode::HeaderMismatch, words);
    let available = next.saturating_sub(offset);
    if available < (LOCAL_LEN + line.name.len()) as u64 {
        return refuse(RefusalCode::Overlap, "has no room for its header");
    }
    let bytes = source.part(offset, LOCAL_LEN + line.name.len())?;
    let Some(local) = record::local(&bytes) else {
        return mismatch("does not begin with a header");
    };
    let listed = line.header.common;
    if usize::from(local.name_len) != line.name.len() || bytes[LOCAL_LEN..] != line.name {
        return mismatch("has another name in its own header");
    }
    // Whoever writes to a pipe leaves out what he does not know yet; Info-ZIP knows the size.
    let is_left_out = |number: u32| listed.flags & DESCRIBED_AFTER != 0 && number == 0;
    let are_sizes_equal =
        [(local.crc, listed.crc), (local.compressed, listed.compressed), (local.size, listed.size)]
            .iter()
            .all(|(own, other)| own == other || is_left_out(*own));
    let rest =
        |header: &Common| (header.needed, header.flags, header.method, header.time, header.date);
    if rest(&local) != rest(&listed) || !are_sizes_equal {
        return mismatch("has other facts in its own header than in the directory");
    }
    let extra_at = offset + bytes.len() as u64;
    let data = extra_at + u64::from(local.extra_len);
    let end = data + u64::from(listed.compressed);
    if end > next {
        return refuse(RefusalCode::Overlap, "overlaps what follows it");
    }
    let extra = source.part(extra_at, usize::from(local.extra_len))?;
    check_extra(&extra, &line.name, &line.path)?;
    if line.kind == Kind::Folder
        && listed.compressed > 0
        && source.part(data, EMPTY.len())? != EMPTY
    {
        return refuse(RefusalCode::FolderContent, "is a folder with content");
    }
    if listed.flags & DESCRIBED_AFTER == 0 {
        return Ok((data, end));
    }
    let after = check_descriptor(source, line, end, next)?;
    Ok((data, after))
}

/// Sizes and checksum after the data must be those of the directory.
fn check_descriptor(source: &Source, line: &Listed, end: u64, next: u64) -> Result<u64, ReadError> {
    let common = line.header.common;
    let wanted: Vec<u8> =
        [common.crc, common.compressed, common.size].iter().flat_map(|n| n.to_le_bytes()).collect();
    let marked = [&record::DESCRIPTOR.to_le_bytes()[..], &wanted].concat();
    for form in [&marked, &wanted] {
        let len = form.len() as u64;
        if next - end >= len && source.part(end, form.len())? == *form {
            return Ok(end + len);
        }
    }
    let words = "is not followed by the sizes and checksum of the directory";
    Err(Refusal::entry(RefusalCode::BadDescriptor, &line.path, words).into())
}
