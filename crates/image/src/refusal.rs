//! Why an image is refused. Every reason has a code of its own that never changes.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

macro_rules! codes {
    ($($variant:ident $name:literal $about:literal)*) => {
        /// The kinds of refusal. The names are stable: scripts may rely on them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $about] $variant,)*
        }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            /// The stable name.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// What the code means, in one sentence.
            pub fn about(self) -> &'static str {
                match self { $(Code::$variant => $about,)* }
            }
        }
    };
}

codes! {
    NotPinned "not-pinned" "The image is named by a tag, which can mean another image tomorrow."
    BadReference "bad-reference" "This is no name of an image."
    UnknownDigest "unknown-digest" "A digest is no SHA-256."
    DigestMismatch "digest-mismatch" "Bytes are not those that their digest stands for."
    SizeMismatch "size-mismatch" "There are more or fewer bytes than the image says."
    MissingBlob "missing-blob" "A part of the image is not there."
    BadDocument "bad-document" "A document of the image cannot be read."
    DocumentTooLarge "document-too-large" "A document of the image is larger than allowed."
    UnknownMediaType "unknown-media-type" "A part of the image is of a kind that is not known here."
    WrongPlatform "wrong-platform" "The image is for another system or processor."
    LayersDisagree "layers-disagree" "The manifest and the settings of the image name different layers."
    TooManyLayers "too-many-layers" "There are more layers than allowed."
    TooManyVariables "too-many-variables" "The image sets more variables than allowed."
    BadCompression "bad-compression" "A layer cannot be decompressed."
    Bomb "bomb" "A layer is far larger than its compressed form."
    BadTar "bad-tar" "An archive is damaged, or no tar."
    UnknownEntry "unknown-entry" "An entry of an archive is of a kind that is not known here."
    TooManyEntries "too-many-entries" "There are more entries than allowed."
    RootTooWide "root-too-wide" "There is more at the root than can be shown one by one."
    FileTooLarge "file-too-large" "A file is larger than allowed."
    TotalTooLarge "total-too-large" "The layers together are larger than allowed."
    EmptyName "empty-name" "An entry has no name."
    ParentSegment "parent-segment" "A name has a `..` segment."
    NulByte "nul-byte" "A name has a NUL."
    PathTooLong "path-too-long" "A path or name is too long."
    PathTooDeep "path-too-deep" "A path lies too many folders deep."
    FileAsParent "file-as-parent" "A file is also the folder of another."
    LinkLoop "link-loop" "Links lead in a circle."
    LinkTarget "link-target" "A hard link leads to nothing, or to what is no file."
    TooMuchWork "too-much-work" "To unpack it, more names must be looked at than allowed."
    CalledOff "called-off" "It was called off while it was unpacked."
    BadWhiteout "bad-whiteout" "A whiteout names nothing that could be taken away."
}

/// Why an image is refused, and because of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The kind.
    pub code: Code,
    /// What it is about: a path, a digest, a part of the image. A stranger's text.
    pub what: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = self.code.about();
        let sentence = about.strip_suffix('.').unwrap_or(about);
        let mut letters = sentence.chars();
        let first = letters.next().map(|letter| letter.to_ascii_lowercase());
        let text: String = first.into_iter().chain(letters).collect();
        write!(out, "{text}: `{}`", self.what)
    }
}

/// Why there is no image. Nothing of it is left behind.
#[derive(Debug)]
pub enum ImageError {
    /// It is refused.
    Refused(Refusal),
    /// Something cannot be read.
    Read(PathBuf, io::Error),
    /// Something cannot be written.
    Write(PathBuf, io::Error),
}

impl ImageError {
    pub(crate) fn refused(code: Code, what: impl Into<String>) -> Self {
        Self::Refused(Refusal { code, what: what.into() })
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Read(path, cause)
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Write(path, cause)
    }

    /// The kind of refusal, where it is one.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Refused(refusal) => Some(refusal.code),
            Self::Read(..) | Self::Write(..) => None,
        }
    }
}

impl fmt::Display for ImageError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(out),
            Self::Read(path, _) => write!(out, "failed to read `{}`", path.display()),
            Self::Write(path, _) => write!(out, "failed to write `{}`", path.display()),
        }
    }
}

impl std::error::Error for ImageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused(_) => None,
            Self::Read(_, cause) | Self::Write(_, cause) => Some(cause),
        }
    }
}

/// A refusal on its way through a library that knows only errors of the system.
pub(crate) fn carried(refusal: Refusal) -> io::Error {
    io::Error::other(Carried(refusal))
}

/// What an error of the system carries: a refusal of ours, or nothing.
pub(crate) fn uncarried(error: &io::Error) -> Option<Refusal> {
    let carried = error.get_ref()?.downcast_ref::<Carried>()?;
    Some(carried.0.clone())
}

#[derive(Debug)]
struct Carried(Refusal);

impl fmt::Display for Carried {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl std::error::Error for Carried {}
