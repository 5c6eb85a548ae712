//! How much a package may hold.

/// Limits of a package, whatever it travels in. Each is enforced on the bytes
/// that are produced, not on what a header claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files and folders.
    pub entries: usize,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of all files together.
    pub total_bytes: u64,
    /// How many times larger than its compressed form a file may be.
    pub ratio: u64,
    /// Files up to this size may have any ratio.
    pub ratio_free_bytes: u64,
}

impl Limits {
    /// The limits that hold unless somebody says otherwise.
    pub const DEFAULT: Self = Self {
        entries: 4_096,
        file_bytes: 64 * 1024 * 1024,
        total_bytes: 256 * 1024 * 1024,
        ratio: 200,
        ratio_free_bytes: 1024 * 1024,
    };

    /// Whether so much may come out of so little.
    pub(crate) fn is_bomb(&self, compressed: u64, size: u64) -> bool {
        size > self.ratio_free_bytes && size > compressed.saturating_mul(self.ratio)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
