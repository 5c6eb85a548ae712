//! What is kept beside the files of an installed version: how it came here and what was agreed to.

use package::digest::Listing;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::acquire::Acquired;
use crate::beside::Beside;
use crate::pinned::{Pinned, Sha256};

/// The folder of ours in that of a version; no package has files there.
pub const OURS: &str = ".haft";
/// The file in it.
pub const NAME: &str = ".haft/record.json";

/// The folder of what was acquired for a version.
pub const ACQUIRED: &str = ".haft/acquired";
/// The digests of every file in it, apart because it may be long and few ask for it.
pub const ACQUIRED_FILES: &str = ".haft/acquired.json";

/// How a version came here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// What it is.
    pub pinned: Pinned,
    /// The path of its manifest in the folder.
    pub manifest: String,
    /// How far its source was trusted.
    pub trust: String,
    /// What was agreed to.
    pub consent: Agreed,
    /// When it was installed, in milliseconds since 1970.
    pub installed: i64,
    /// The folder of the version that was active before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<String>,
    /// What was acquired for it, below [`ACQUIRED`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acquired: Option<Acquired>,
    /// Everything that a server offered when it was agreed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<Value>,
    /// What was shown of what runs beside its calls.
    #[serde(default, skip_serializing_if = "Beside::is_empty")]
    pub beside: Beside,
    /// Every file of the package.
    pub files: Vec<FileRecord>,
}

/// What the owner agreed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agreed {
    /// The card that was shown.
    pub card: Sha256,
    /// How they agreed.
    pub how: How,
}

/// How somebody agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// They looked at the card and said yes.
    Asked,
    /// They said yes beforehand.
    Beforehand,
}

/// One file, as it was when it was installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRecord {
    /// Its path in the package.
    pub path: String,
    /// Its size.
    pub size: u64,
    /// Its digest.
    pub sha256: Sha256,
}

impl Record {
    /// As it is written.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("a record is plain data")
    }
}

/// The files of a listing, to be kept.
pub fn files(listing: &Listing) -> Vec<FileRecord> {
    let file = |file: &package::digest::FileDigest| FileRecord {
        path: file.path.clone(),
        size: file.size,
        sha256: Sha256(file.sha256),
    };
    listing.files().iter().map(file).collect()
}
