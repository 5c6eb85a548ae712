//! Why an archive is refused. Every reason has a code of its own that never changes.

use std::fmt;
use std::io;

use manifest::path::PathFault;

macro_rules! codes {
    ($($variant:ident $name:literal $about:literal)*) => {
        /// The kinds of refusal. The names are stable: scripts may rely on them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RefusalCode {
            $(#[doc = $about] $variant,)*
        }

        impl RefusalCode {
            /// Every code, in the order of the documentation.
            pub const ALL: &[RefusalCode] = &[$(RefusalCode::$variant,)*];

            /// The stable name.
            pub fn name(self) -> &'static str {
                match self { $(RefusalCode::$variant => $name,)* }
            }

            /// What the code means, in one sentence.
            pub fn about(self) -> &'static str {
                match self { $(RefusalCode::$variant => $about,)* }
            }
        }
    };
}

codes! {
    NotAnArchive "not-an-archive" "There is no end record, so this is no zip archive, or the end of one is missing."
    TrailingData "trailing-data" "Bytes follow the end of the archive."
    PrefixData "prefix-data" "Bytes stand before the first entry."
    TwoEndRecords "two-end-records" "There is more than one end record, so two readers may see two archives."
    SeveralDisks "several-disks" "The archive claims to be split over several disks."
    Zip64 "zip64" "The archive uses zip64, which nothing within the limits needs."
    ArchiveComment "archive-comment" "The archive has a comment that is no commit id."
    EntryComment "entry-comment" "An entry has a comment."
    BadDirectory "bad-directory" "The central directory is damaged, or not where the end record says."
    Gap "gap" "Bytes between two entries belong to neither."
    Overlap "overlap" "Entries overlap, or stand in another order than the directory lists them."
    HeaderMismatch "header-mismatch" "An entry's own header and the directory say different things."
    Encrypted "encrypted" "An entry is encrypted."
    UnknownMethod "unknown-method" "An entry is compressed by something other than deflate."
    UnknownFlags "unknown-flags" "An entry has flags with no meaning here."
    UnknownSystem "unknown-system" "An entry was made on a system whose attributes cannot be read."
    ExtraField "extra-field" "An entry has an extra field that is damaged, or could change its name or content."
    Link "link" "An entry is a link."
    SpecialFile "special-file" "An entry is a device, pipe, socket or volume label."
    Setuid "setuid" "An entry has a setuid, setgid or sticky bit."
    KindMismatch "kind-mismatch" "An entry's name and attributes disagree on whether it is a folder."
    FolderContent "folder-content" "A folder has content."
    NameEncoding "name-encoding" "A name is not UTF-8, or not marked as such."
    EmptyName "empty-name" "A name is empty."
    AbsolutePath "absolute-path" "A path begins with `/`."
    Backslash "backslash" "A path has a backslash."
    Drive "drive" "A path has a colon: a drive, or a stream of a file."
    Wildcard "wildcard" "A path has a character that some systems forbid."
    PathTooLong "path-too-long" "A path or name is too long."
    PathTooDeep "path-too-deep" "A path lies too many folders deep."
    HiddenCharacter "hidden-character" "A path has a control, bidi or zero-width character."
    EmptySegment "empty-segment" "A path has an empty segment."
    DotSegment "dot-segment" "A path has a `.` segment."
    ParentSegment "parent-segment" "A path has a `..` segment."
    TrailingDot "trailing-dot" "A name ends in a dot or blank."
    ReservedName "reserved-name" "A name some systems keep for a device."
    Repository "repository" "A path has a `.git` segment: a repository can make git run programs."
    DisguisedPath "disguised-path" "A path becomes another once its characters are normalised."
    DuplicatePath "duplicate-path" "Two entries have the same path."
    CaseTwin "case-twin" "Two paths differ only in case."
    FormTwin "form-twin" "Two paths differ only in the forms of their characters (NFKC)."
    FileAsParent "file-as-parent" "A file is also the folder of another."
    TooManyEntries "too-many-entries" "There are more entries than allowed."
    FileTooLarge "file-too-large" "A file is larger than allowed."
    TotalTooLarge "total-too-large" "The files together are larger than allowed."
    Bomb "bomb" "A file, or all of them together, is far larger than its compressed form."
    NestedBomb "nested-bomb" "An archive inside the package is a bomb."
    NestedArchive "nested-archive" "An archive inside an archive inside the package."
    BadDeflate "bad-deflate" "Compressed data is damaged, ends too early or too late, or is far larger than its content."
    SizeMismatch "size-mismatch" "A file has another size than its header says."
    CrcMismatch "crc-mismatch" "A file has another checksum than its header says."
    BadDescriptor "bad-descriptor" "The record after an entry's data is missing or says something else."
    NoManifest "no-manifest" "There is no manifest."
    SeveralManifests "several-manifests" "There is more than one manifest, so two readers may see two packages."
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// One reason why an archive is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of reason, in a word that never changes.
    pub code: RefusalCode,
    /// The reason, naming the entry.
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A refusal on account of one entry; the words follow its name.
    pub(crate) fn entry(code: RefusalCode, path: &str, words: impl fmt::Display) -> Self {
        Self::new(code, format!("entry `{}` {words}", manifest::shape::clip(path)))
    }

    /// A refusal on account of a path that is not plain.
    pub(crate) fn path(path: &str, fault: PathFault) -> Self {
        Self::entry(code_of(fault), path, fault.words())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

fn code_of(fault: PathFault) -> RefusalCode {
    match fault {
        PathFault::Empty => RefusalCode::EmptyName,
        PathFault::Absolute => RefusalCode::AbsolutePath,
        PathFault::Backslash => RefusalCode::Backslash,
        PathFault::Colon => RefusalCode::Drive,
        PathFault::Wildcard => RefusalCode::Wildcard,
        PathFault::TooLong => RefusalCode::PathTooLong,
        PathFault::TooDeep => RefusalCode::PathTooDeep,
        PathFault::Hidden => RefusalCode::HiddenCharacter,
        PathFault::EmptySegment => RefusalCode::EmptySegment,
        PathFault::DotSegment => RefusalCode::DotSegment,
        PathFault::ParentSegment => RefusalCode::ParentSegment,
        PathFault::TrailingDot => RefusalCode::TrailingDot,
        PathFault::Reserved => RefusalCode::ReservedName,
        PathFault::Repository => RefusalCode::Repository,
        PathFault::Disguised => RefusalCode::DisguisedPath,
    }
}

/// Why a package could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// It is refused.
    Refused(Refusal),
    /// The disk failed.
    Disk(io::Error),
}

impl ReadError {
    /// The code of a refusal.
    pub fn code(&self) -> Option<RefusalCode> {
        match self {
            ReadError::Refused(refusal) => Some(refusal.code),
            ReadError::Disk(_) => None,
        }
    }
}

impl From<Refusal> for ReadError {
    fn from(refusal: Refusal) -> Self {
        ReadError::Refused(refusal)
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        ReadError::Disk(error)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Refused(refusal) => refusal.fmt(out),
            ReadError::Disk(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for ReadError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_names_are_unique() {
        let mut names: Vec<_> = RefusalCode::ALL.iter().map(|code| code.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RefusalCode::ALL.len());
    }
}
