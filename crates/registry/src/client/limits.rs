//! How much is taken from a registry.

use std::time::Duration;

/// How much is taken from a registry, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a page of results.
    pub page: u64,
    /// Bytes of what is said of a version.
    pub describe: u64,
    /// Bytes of a list of versions.
    pub versions: u64,
    /// Bytes of a bundle.
    pub bundle: u64,
    /// Bytes of a package file.
    pub package: u64,
    /// Bytes of an answer that is no success.
    pub refusal: u64,
    /// How long an answer may take.
    pub within: Duration,
    /// How long one part of a download may take, and an upload.
    pub transfer: Duration,
    /// How long a registry may say nothing in the middle of a download.
    pub silence: Duration,
}

impl Limits {
    /// The usual ones.
    pub const DEFAULT: Self = Self {
        page: 4 << 20,
        describe: 2 << 20,
        versions: 8 << 20,
        bundle: 128 << 20,
        package: 64 << 20,
        refusal: 1 << 20,
        within: Duration::from_secs(30),
        transfer: Duration::from_mins(5),
        silence: Duration::from_secs(30),
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The most results that are asked for at once, as the API has it.
pub const PAGE: usize = 100;
/// The most results that are taken from one registry for one question.
pub const DEEPEST: usize = 1_000;
/// The most versions of a tool.
pub const VERSIONS: usize = 10_000;
/// The longest id, name and version, in bytes.
pub const NAME: usize = 512;
/// The longest summary and the longest reason, in bytes.
pub const LINE: usize = 8 << 10;
/// The most tags and secrets of a tool.
pub const WORDS: usize = 512;
