//! The lines of a file, forwards and backwards, in little memory whatever the file holds.
//!
//! Of a line that is too long only so much is kept that it is seen to be too long.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Take};

use super::line::MAX_LINE;

/// How much is kept of a line at most.
const KEPT: usize = MAX_LINE + 1;
const BLOCK: u64 = 16 * 1024;

/// Reads lines from a place on.
#[derive(Debug)]
pub(super) struct Forward {
    reader: BufReader<Take<File>>,
    /// Where the next line begins.
    pub(super) at: u64,
}

/// What comes next.
pub(super) enum Next {
    /// A line, without its end.
    Line(Vec<u8>),
    /// Bytes without an end.
    Torn,
    /// Nothing.
    End,
}

impl Forward {
    /// Reads a file between two places.
    pub(super) fn new(mut file: File, from: u64, to: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(from))?;
        let reader = BufReader::with_capacity(64 * 1024, file.take(to.saturating_sub(from)));
        Ok(Self { reader, at: from })
    }

    pub(super) fn next(&mut self) -> io::Result<Next> {
        let mut line = Vec::new();
        let mut length = 0;
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(if length == 0 { Next::End } else { Next::Torn });
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            line.extend_from_slice(&part[..part.len().min(KEPT - line.len())]);
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            length += used as u64;
            if end.is_some() {
                self.at += length;
                return Ok(Next::Line(line));
            }
        }
    }
}

/// Reads lines from a place back to the beginning.
pub(super) struct Backward {
    file: File,
    /// Where the bytes begin that were read and not given yet.
    start: u64,
    /// These bytes; they end in a line's end, unless there are none.
    bytes: Vec<u8>,
    /// What was dropped of a line that is too long.
    dropped: u64,
}

impl Backward {
    /// Begins at a place; what stands before it without a line's end is stepped over.
    pub(super) fn new(file: File, from: u64) -> io::Result<Self> {
        let mut lines = Self { file, start: from, bytes: Vec::new(), dropped: 0 };
        // The torn bytes are taken for a line that ends here.
        lines.take_line()?;
        Ok(lines)
    }

    /// Where the next line ends, its end included.
    pub(super) fn at(&self) -> u64 {
        self.start + self.bytes.len() as u64 + self.dropped
    }

    /// The line before, and where it begins.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        if self.at() == 0 {
            return Ok(None);
        }
        self.bytes.pop();
        let line = self.take_line()?;
        Ok(Some((self.at(), line)))
    }

    /// Takes all bytes after the last line's end.
    fn take_line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = self.bytes.iter().rposition(|byte| *byte == b'\n') {
                self.dropped = 0;
                return Ok(self.bytes.split_off(end + 1));
            }
            if self.start == 0 {
                self.dropped = 0;
                return Ok(std::mem::take(&mut self.bytes));
            }
            let length = BLOCK.min(self.start);
            self.start -= length;
            let mut block = Vec::new();
            self.file.seek(SeekFrom::Start(self.start))?;
            (&self.file).take(length).read_to_end(&mut block)?;
            if block.len() as u64 != length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            // No line's end is among them, so the last ones are not missed.
            let kept = self.bytes.len().min(KEPT);
            self.dropped += (self.bytes.len() - kept) as u64;
            block.extend_from_slice(&self.bytes[..kept]);
            self.bytes = block;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &[u8]) -> File {
        use std::io::Write;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        file
    }

    #[test]
    fn lines_are_the_same_in_both_directions() {
        let long = "x".repeat(300_000);
        let contents = [
            "",
            "\n",
            "a",
            "a\n",
            "a\nb",
            "a\nb\n",
            "\n\na\n\n",
            &"line\n".repeat(20_000),
            &format!("a\n{long}\nb\n{long}"),
            &format!("{long}\n{long}\n"),
        ]
        .map(str::to_owned);
        for content in contents {
            let length = content.len() as u64;
            let mut forward = Forward::new(file(content.as_bytes()), 0, length).unwrap();
            let mut down = Vec::new();
            let mut at = 0;
            while let Next::Line(line) = forward.next().unwrap() {
                down.push((at, line.len()));
                at = forward.at;
            }
            let mut backward = Backward::new(file(content.as_bytes()), length).unwrap();
            assert_eq!(backward.at(), at, "the torn end is stepped over");
            let mut up = Vec::new();
            while let Some((start, line)) = backward.next().unwrap() {
                up.push((start, line.len().min(KEPT)));
            }
            up.reverse();
            assert_eq!(up, down, "{} bytes", content.len());
            let whole = content.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            assert_eq!(down.len(), whole.count());
        }
    }
}
