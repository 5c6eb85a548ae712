//! From byte offsets to lines and columns.

use super::Span;

/// A line and a column, both counted from one; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// Where the lines of a text begin.
#[derive(Clone, Debug)]
pub struct Places<'t> {
    text: &'t str,
    starts: Vec<u32>,
    is_ascii: bool,
}

impl<'t> Places<'t> {
    /// Finds the lines of a text.
    pub fn new(text: &'t str) -> Self {
        let breaks = text.bytes().zip(1u32..).filter(|(byte, _)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(_, next)| next)).collect();
        Self { text, starts, is_ascii: text.is_ascii() }
    }

    /// The place where a span begins.
    pub fn of(&self, span: Span) -> Place {
        let mut offset = (span.start as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let after = self.starts.partition_point(|start| *start as usize <= offset);
        let start = self.starts[after - 1] as usize;
        // A minified document is one long line: do not count it again for every finding.
        let column = if self.is_ascii || offset - start > 10_000 {
            offset - start
        } else {
            self.text[start..offset].chars().count()
        };
        Place { line: count(after), column: count(column + 1) }
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let text = "{\n  \"é\": 1\n}";
        let places = Places::new(text);
        let at = |start| places.of(Span { start, end: start });
        assert_eq!(at(0), Place { line: 1, column: 1 });
        assert_eq!(at(4), Place { line: 2, column: 3 });
        assert_eq!(at(10), Place { line: 2, column: 8 });
        assert_eq!(at(12), Place { line: 3, column: 1 });
        assert_eq!(at(999), Place { line: 3, column: 2 });
    }
}
