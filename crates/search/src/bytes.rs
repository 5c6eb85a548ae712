//! An index as bytes.
//!
//! What documents say is written: words, keys, ranks, rows and facets. The lists are made again when they
//! are read, which is quicker than reading them. Bytes come from outside, so nothing of them is believed:
//! they are bounded, in order, whole, and a checksum ends them.
//!
//! | part | what it is |
//! |---|---|
//! | 12 bytes | `haft-search` and a zero |
//! | 4 bytes | the version |
//! | a number | how many segments; then of each: words, keys, ranks, rows, facets |
//! | 4 bytes | CRC-32 of everything before |

use std::collections::HashSet;

use crate::entry::check_key;
use crate::facet::Facet;
use crate::labels::{Label, Labels};
use crate::limits;
use crate::merge::merge;
use crate::rows::{Rows, read_number, write_number};
use crate::segment::{SEGMENT, SEGMENT_BYTES, Segment};
use crate::snapshot::Snapshot;
use crate::texts::Texts;

const MAGIC: &[u8; 12] = b"haft-search\0";
/// Changes with what is written, and with how texts become words: an index of other words finds nothing.
const VERSION: u32 = 1;
/// A stem can be a letter longer than its word.
const STEM_BYTES: usize = limits::WORD_BYTES + 1;
/// A row takes at most four times what it was reckoned to when its segment was closed.
const ROW_BYTES: usize = SEGMENT_BYTES * 4;

/// Many more than an index ever has; each of them makes a search longer.
const SEGMENTS: usize = 4_096;

/// Why bytes are no index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// They are too many.
    TooLong,
    /// They do not begin like an index.
    NotAnIndex,
    /// They are of another version.
    Version(u32),
    /// They are not what was written.
    Damaged,
    /// This part of them makes no sense.
    Unsound(&'static str),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadError::TooLong => {
                write!(out, "the index has more than {} bytes", limits::INDEX_BYTES)
            }
            ReadError::NotAnIndex => write!(out, "these bytes are not an index"),
            ReadError::Version(version) => {
                write!(out, "the index is of version {version}, not {VERSION}")
            }
            ReadError::Damaged => write!(out, "the index is damaged: its checksum does not fit"),
            ReadError::Unsound(part) => write!(out, "the index is not sound: {part}"),
        }
    }
}

impl std::error::Error for ReadError {}

/// Writes what is left of all documents.
pub(crate) fn write(snapshot: &Snapshot) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    write_count(&mut bytes, snapshot.parts.len());
    for part in &snapshot.parts {
        if part.removed.is_some() {
            write_segment(&mut bytes, &merge(&[part]));
        } else {
            write_segment(&mut bytes, &part.segment);
        }
    }
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

fn write_segment(bytes: &mut Vec<u8>, segment: &Segment) {
    let words = segment.dictionary.words();
    for texts in [words, &segment.keys] {
        write_count(bytes, texts.len());
        texts.iter().for_each(|text| write_text(bytes, text));
    }
    segment.ranks.iter().for_each(|rank| bytes.extend(rank.to_le_bytes()));
    for at in 0..segment.rows.len() {
        let row = segment.rows.written(at);
        write_count(bytes, row.len());
        bytes.extend(row);
    }
    write_count(bytes, segment.labels.iter().len());
    for ((facet, value), holders) in segment.labels.iter() {
        bytes.push(*facet as u8);
        write_text(bytes, value);
        write_count(bytes, holders.iter().count());
        holders.iter().for_each(|document| write_number(bytes, u32::from(document)));
    }
}

fn write_count(bytes: &mut Vec<u8>, count: usize) {
    write_number(bytes, u32::try_from(count).expect("a segment is kept far below 4 GiB"));
}

fn write_text(bytes: &mut Vec<u8>, text: &str) {
    write_count(bytes, text.len());
    bytes.extend(text.as_bytes());
}

/// Reads segments that fit together.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<Segment>, ReadError> {
    if bytes.len() > limits::INDEX_BYTES {
        return Err(ReadError::TooLong);
    }
    let rest = bytes.strip_prefix(MAGIC).ok_or(ReadError::NotAnIndex)?;
    let (version, _) = rest.split_first_chunk().ok_or(ReadError::NotAnIndex)?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(ReadError::Version(version));
    }
    let (written, sum) = bytes.split_last_chunk().ok_or(ReadError::NotAnIndex)?;
    if crc32fast::hash(written) != u32::from_le_bytes(*sum) {
        return Err(ReadError::Damaged);
    }
    let body = written.get(MAGIC.len() + 4..).ok_or(ReadError::NotAnIndex)?;
    let mut reader = Reader { left: body };
    let count = reader.count("the number of segments")?;
    if count > SEGMENTS {
        return Err(ReadError::Unsound("it has too many segments"));
    }
    let mut segments: Vec<Segment> = Vec::new();
    for _ in 0..count {
        segments.push(reader.segment()?);
    }
    if !reader.left.is_empty() {
        return Err(ReadError::Unsound("something comes after its end"));
    }
    check_together(&segments)?;
    Ok(segments)
}

/// A key is in one segment, and all of them together are not too many.
fn check_together(segments: &[Segment]) -> Result<(), ReadError> {
    let all: usize = segments.iter().map(Segment::len).sum();
    if all > limits::DOCUMENTS {
        return Err(ReadError::Unsound("it has too many documents"));
    }
    if segments.len() > 1 {
        let mut seen = HashSet::with_capacity(all);
        if !segments.iter().flat_map(|segment| segment.keys.iter()).all(|key| seen.insert(key)) {
            return Err(ReadError::Unsound("two documents have one key"));
        }
    }
    Ok(())
}

/// What is left to be read. Whatever is counted takes a byte at least, so nothing is made that the bytes do not pay for.
struct Reader<'b> {
    left: &'b [u8],
}

type Read<T> = Result<T, ReadError>;

impl<'b> Reader<'b> {
    fn segment(&mut self) -> Read<Segment> {
        let words = self.texts("a word", |word| !word.is_empty() && word.len() <= STEM_BYTES)?;
        let keys = self.texts("a key", |key| check_key(key).is_ok())?;
        let all = keys.len();
        if all == 0 || all > SEGMENT {
            return Err(ReadError::Unsound("the number of documents of a segment"));
        }
        let ranks = (0..all).map(|_| self.rank()).collect::<Read<Vec<f32>>>()?;
        let rows = self.rows(all, words.len())?;
        let labels = self.labels(all)?;
        Ok(Segment::new(words, keys, ranks, rows, labels))
    }

    fn texts(&mut self, what: &'static str, is_sound: impl Fn(&str) -> bool) -> Read<Texts> {
        let mut texts = Texts::default();
        let mut last = None;
        let mut letters = 0;
        for _ in 0..self.count(what)? {
            let text = self.text(what)?;
            letters += text.len();
            let is_next = last.is_none_or(|last| last < text);
            if !is_next || !is_sound(text) || letters > ROW_BYTES {
                return Err(ReadError::Unsound(what));
            }
            texts.push(text);
            last = Some(text);
        }
        Ok(texts)
    }

    fn rank(&mut self) -> Read<f32> {
        let unsound = ReadError::Unsound("a rank");
        let (rank, left) = self.left.split_first_chunk().ok_or(unsound)?;
        self.left = left;
        let rank = f32::from_le_bytes(*rank);
        let is_sound = rank >= limits::RANKS.0 && rank <= limits::RANKS.1;
        if is_sound { Ok(rank) } else { Err(unsound) }
    }

    fn rows(&mut self, all: usize, words: usize) -> Read<Rows> {
        let unsound = ReadError::Unsound("what a document says");
        let mut rows = Rows::default();
        let mut is_used = vec![false; words];
        let mut row = Vec::new();
        for _ in 0..all {
            let count = self.count("what a document says")?;
            let written = self.bytes(count).ok_or(unsound)?;
            if rows.written_bytes() + written.len() > ROW_BYTES {
                return Err(unsound);
            }
            rows.push_written(written, words, &mut row).ok_or(unsound)?;
            for (word, _) in &row {
                is_used[*word as usize] = true;
            }
        }
        let all_are_used = is_used.iter().all(|is_used| *is_used);
        if all_are_used { Ok(rows) } else { Err(ReadError::Unsound("a word that no document has")) }
    }

    fn labels(&mut self, all: usize) -> Read<Labels> {
        let unsound = ReadError::Unsound("a facet");
        let mut labels = Labels::default();
        let mut holders = Vec::new();
        for _ in 0..self.count("a facet")? {
            let facet = self.bytes(1).ok_or(unsound)?[0];
            let facet = Facet::ALL.get(usize::from(facet)).ok_or(unsound)?.0;
            let label: Label = (facet, self.text("a facet")?.into());
            let is_next = labels.last().is_none_or(|last| *last < label);
            if !is_next || label.1.is_empty() || label.1.len() > limits::FACET_BYTES {
                return Err(unsound);
            }
            holders.clear();
            for _ in 0..self.count("a facet")? {
                let document = u16::try_from(self.number("a facet")?).map_err(|_| unsound)?;
                let is_next = holders.last().is_none_or(|last| *last < document);
                if !is_next || usize::from(document) >= all {
                    return Err(unsound);
                }
                holders.push(document);
            }
            if holders.is_empty() {
                return Err(unsound);
            }
            labels.push(label, &holders, all);
        }
        Ok(labels)
    }

    fn text(&mut self, what: &'static str) -> Read<&'b str> {
        let count = self.count(what)?;
        let bytes = self.bytes(count).ok_or(ReadError::Unsound(what))?;
        std::str::from_utf8(bytes).map_err(|_| ReadError::Unsound(what))
    }

    fn count(&mut self, what: &'static str) -> Read<usize> {
        let count = self.number(what)? as usize;
        if count <= self.left.len() { Ok(count) } else { Err(ReadError::Unsound(what)) }
    }

    fn number(&mut self, what: &'static str) -> Read<u32> {
        let (number, left) = read_number(self.left).ok_or(ReadError::Unsound(what))?;
        self.left = left;
        Ok(number)
    }

    fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (bytes, left) = self.left.split_at_checked(count)?;
        self.left = left;
        Some(bytes)
    }
}
