//! A text over several lines, after `|` or `>`.

/// How a text over several lines is made into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    style: Style,
    end: End,
}

/// What becomes of the ends of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// They stay.
    Literal,
    /// They become blanks.
    Folded,
}

/// What becomes of the ends of lines after the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// One stays.
    One,
    /// None stays.
    None,
    /// All stay.
    All,
}

impl Block {
    /// Reads what stands before the lines: `|` or `>`, and how the text ends.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (style, rest) = match text.strip_prefix('|') {
            Some(rest) => (Style::Literal, rest),
            None => (Style::Folded, text.strip_prefix('>')?),
        };
        let end = match rest {
            "" => End::One,
            "-" => End::None,
            "+" => End::All,
            _ => return None,
        };
        Some(Self { style, end })
    }

    /// The text of these lines, which have lost their common indentation; one without any is empty.
    pub(super) fn join(self, lines: &[&str]) -> String {
        let last = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
        let (own, after) = lines.split_at(last);
        let mut text = match self.style {
            Style::Literal => own.join("\n"),
            Style::Folded => folded(own),
        };
        match self.end {
            End::None => {}
            End::One if own.is_empty() => {}
            End::One => text.push('\n'),
            End::All => text.extend(std::iter::repeat_n('\n', after.len() + 1)),
        }
        text
    }
}

/// Lines that follow one another become one, paragraphs stay apart, and what is indented more stays as it is.
pub(super) fn folded(lines: &[&str]) -> String {
    let is_more = |line: &str| line.starts_with([' ', '\t']);
    let mut text = String::new();
    let mut before: Option<&str> = None;
    let mut empty = 0;
    for line in lines {
        if line.is_empty() {
            empty += 1;
            continue;
        }
        if let Some(before) = before {
            let stays = is_more(before) || is_more(line);
            let breaks = if stays { empty + 1 } else { empty };
            if breaks == 0 {
                text.push(' ');
            }
            text.extend(std::iter::repeat_n('\n', breaks));
        } else {
            text.extend(std::iter::repeat_n('\n', empty));
        }
        text.push_str(line);
        (before, empty) = (Some(*line), 0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_as_their_mark_says() {
        let lines = ["one", "two", "", "three", "  more", "four", "", ""];
        for (mark, text) in [
            ("|", "one\ntwo\n\nthree\n  more\nfour\n"),
            ("|-", "one\ntwo\n\nthree\n  more\nfour"),
            ("|+", "one\ntwo\n\nthree\n  more\nfour\n\n\n"),
            (">", "one two\nthree\n  more\nfour\n"),
            (">-", "one two\nthree\n  more\nfour"),
        ] {
            assert_eq!(Block::read(mark).unwrap().join(&lines), text, "{mark}");
        }
        for mark in ["", "||", "|1", "|-x", "text"] {
            assert_eq!(Block::read(mark), None, "{mark}");
        }
    }
}
