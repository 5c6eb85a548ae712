//! How much an image may hold.

/// Limits of an image. Each is enforced on the bytes that are produced, not on what a header claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Layers.
    pub layers: usize,
    /// Entries of all layers together, and folders that they have made on their way.
    pub entries: u64,
    /// Files, folders and links at the root, each of which every call has to show.
    pub at_root: usize,
    /// Names that are walked, looked at or taken away, in all layers together: what an image costs that writes little.
    pub steps: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of all layers together, unpacked.
    pub total_bytes: u64,
    /// How many times larger than their compressed form the layers together may be.
    pub ratio: u64,
    /// Layers that together have up to this size may have any ratio.
    pub ratio_free_bytes: u64,
    /// Bytes of one JSON document.
    pub document_bytes: u64,
    /// Bytes of a path.
    pub path_bytes: usize,
    /// Folders above a file.
    pub depth: usize,
}

impl Limits {
    /// The limits that hold unless somebody says otherwise.
    pub const DEFAULT: Self = Self {
        layers: 128,
        entries: 500_000,
        at_root: 512,
        steps: 20_000_000,
        file_bytes: 4 << 30,
        total_bytes: 16 << 30,
        ratio: 200,
        ratio_free_bytes: 64 << 20,
        document_bytes: 4 << 20,
        path_bytes: 4096,
        depth: 64,
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
