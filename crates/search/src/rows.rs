//! The words of each document, in few bytes: what everything else of a segment is made from.
//!
//! A row is the number of its words, and for each word, in order: how far it is from the one before,
//! which fields it is in (a bit each), and how often in each of them. Numbers are in groups of seven bits.

use crate::field::Field;
use crate::ranking::{Frequencies, Lengths};

/// Rows, one per document.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

/// A word of a document, and how often it is where.
pub(crate) type Word = (u32, Frequencies);

impl Rows {
    /// Adds a document. Its words are in order, each once, each somewhere.
    pub(crate) fn push(&mut self, words: &[Word]) {
        write_number(&mut self.bytes, number(words.len()));
        let mut last = 0;
        for (word, frequencies) in words {
            write_number(&mut self.bytes, word - last);
            last = *word;
            let in_field = |field: &usize| frequencies[*field] > 0;
            let fields = (0..Field::COUNT).filter(in_field).fold(0_u8, |bits, at| bits | 1 << at);
            self.bytes.push(fields);
            for field in (0..Field::COUNT).filter(in_field) {
                write_number(&mut self.bytes, u32::from(frequencies[field]));
            }
        }
        self.ends.push(number(self.bytes.len()));
    }

    /// Adds a document as it is written; none when it is not written well, or has no word of `known`.
    pub(crate) fn push_written(
        &mut self,
        row: &[u8],
        known: usize,
        words: &mut Vec<Word>,
    ) -> Option<()> {
        let rest = read(row, words)?;
        let are_known = words.last().is_none_or(|(word, _)| (*word as usize) < known);
        if !rest.is_empty() || !are_known {
            return None;
        }
        self.bytes.extend_from_slice(row);
        self.ends.push(number(self.bytes.len()));
        Some(())
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A row as it is written.
    pub(crate) fn written(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.bytes[start..self.ends[at] as usize]
    }

    /// Reads the words of a document.
    pub(crate) fn words(&self, at: usize, words: &mut Vec<Word>) {
        read(self.written(at), words)
            .expect("rows are written here or were checked when they were read");
    }

    pub(crate) fn written_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 4
    }

    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

/// How many words each field of a document has.
pub(crate) fn lengths(words: &[Word]) -> Lengths {
    let mut lengths = [0; Field::COUNT];
    for (_, frequencies) in words {
        for (length, frequency) in lengths.iter_mut().zip(frequencies) {
            *length += u32::from(*frequency);
        }
    }
    lengths
}

pub(crate) fn write_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// A number and what comes after it; none when it does not end or is too large.
pub(crate) fn read_number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut number = 0_u64;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            // Each number is written in one way, so that an index is too.
            if *byte == 0 && at > 0 {
                return None;
            }
            return Some((u32::try_from(number).ok()?, &bytes[at + 1..]));
        }
    }
    None
}

fn read<'b>(bytes: &'b [u8], words: &mut Vec<Word>) -> Option<&'b [u8]> {
    words.clear();
    let (count, mut rest) = read_number(bytes)?;
    let mut last = 0_u32;
    for at in 0..count {
        let (step, after) = read_number(rest)?;
        if step == 0 && at > 0 {
            return None;
        }
        last = last.checked_add(step)?;
        let (fields, after) = after.split_first()?;
        rest = after;
        let mut frequencies = [0; Field::COUNT];
        for (field, frequency) in frequencies.iter_mut().enumerate() {
            if fields & (1 << field) != 0 {
                let (times, after) = read_number(rest)?;
                *frequency = u16::try_from(times).ok().filter(|times| *times > 0)?;
                rest = after;
            }
        }
        if *fields == 0 {
            return None;
        }
        words.push((last, frequencies));
    }
    Some(rest)
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("a segment is kept far below 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let words = vec![(0, [1, 0, 0, 0, 0, 0, 0, 9]), (7, [0, 300, 0, 0, 0, 0, 0, 0])];
        let mut rows = Rows::default();
        rows.push(&words);
        rows.push(&[]);
        let mut read = Vec::new();
        rows.words(0, &mut read);
        assert_eq!(read, words);
        assert_eq!(lengths(&read), [1, 300, 0, 0, 0, 0, 0, 9]);
        let mut copy = Rows::default();
        assert!(copy.push_written(rows.written(0), 8, &mut read).is_some());
        assert!(copy.push_written(rows.written(0), 7, &mut read).is_none(), "word 7 is not known");
        rows.words(1, &mut read);
        assert!(read.is_empty());
    }

    #[test]
    fn damaged_rows_are_refused() {
        for row in [
            &[][..],
            &[1],
            &[1, 0],
            &[1, 0, 0],
            &[1, 0, 1, 0],
            &[2, 0, 1, 1, 0, 1, 1],
            &[1, 0, 1, 1, 0],
            &[0x81, 0x00, 0, 1, 1],
            &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1],
            &[1, 0, 1, 0xff, 0xff, 0xff, 1],
        ] {
            assert!(Rows::default().push_written(row, 9, &mut Vec::new()).is_none(), "{row:?}");
        }
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u32::MAX] {
            let mut bytes = Vec::new();
            write_number(&mut bytes, number);
            assert_eq!(read_number(&bytes), Some((number, &[][..])));
        }
        assert_eq!(read_number(&[0xff; 4]), None);
        assert_eq!(read_number(&[0xff, 0xff, 0xff, 0xff, 0x7f]), None);
    }
}
