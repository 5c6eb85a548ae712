//! How much is taken from outside: of a document, of a query, of bytes.
//!
//! What is too long to be indexed is cut, because a long description is no fault; what
//! identifies a document or is compared whole is refused instead.

/// Bytes of a key.
pub const KEY_BYTES: usize = 512;
/// Bytes of a value of a facet.
pub const FACET_BYTES: usize = 256;
/// Values of one facet that a document may have, and that a filter may name.
pub const FACET_VALUES: usize = 64;
/// Bytes of a text, all texts of one field of a document together; the rest is not indexed.
pub const FIELD_BYTES: usize = 64 << 10;
/// Words of one field of a document; the rest is not indexed.
pub const FIELD_WORDS: usize = 4_096;
/// Bytes of a word as it is indexed; longer ones (keys, digests) are passed over.
pub const WORD_BYTES: usize = 64;
/// Bytes of a query that are read.
pub const QUERY_BYTES: usize = 8 << 10;
/// Different words of a query that count: those that say most.
pub const QUERY_WORDS: usize = 64;
/// Words of one query that are looked for with other spellings.
pub const CORRECTED_WORDS: usize = 4;
/// Spellings, or endings, that one word of a query may stand for.
pub const SPELLINGS: usize = 16;
/// Hits on one page.
pub const PAGE: usize = 1_000;
/// Documents in one index, unless the caller allows fewer.
pub const DOCUMENTS: usize = 4 << 20;
/// Bytes that an index is read from.
pub const INDEX_BYTES: usize = 2 << 30;
/// The lowest and the highest rank; others are brought within.
pub const RANKS: (f32, f32) = (0.01, 100.0);
