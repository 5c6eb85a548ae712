//! The parser: strict JSON (RFC 8259), borrowed strings, spans, bounded depth.
//!
//! What can be stepped over (a duplicate key, a number beyond what a double
//! holds, half of a surrogate pair) is noted and the reading goes on, so one
//! run finds all of it. What cannot ends the reading.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{Member, Node, Number, Path, Pointer, Span, Value};
use crate::finding::Code;

/// How deep values may be nested.
pub const MAX_DEPTH: usize = 128;

/// How many values a document may have: each takes memory, however short it is.
pub const MAX_VALUES: usize = 2_000_000;

/// How many faults are kept; a document with more of them is noise, not a manifest.
const MAX_FAULTS: usize = 1_000;

/// Objects up to this size are searched for twins by comparing; larger ones by hashing.
const SMALL_OBJECT: usize = 16;

/// Something wrong with the text itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which kind of fault.
    pub code: Code,
    /// Where in the document, as far as it was known.
    pub pointer: Pointer,
    /// Where in the text.
    pub span: Span,
    /// What is wrong.
    pub message: String,
}

/// The outcome of reading a text.
#[derive(Clone, Debug)]
pub struct Parsed<'t> {
    /// The tree; absent when the text broke off.
    pub root: Option<Node<'t>>,
    /// Everything that was wrong with the text.
    pub faults: Vec<Fault>,
}

/// Reads a text of at most 4 GiB.
pub fn parse(text: &str) -> Parsed<'_> {
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0, values: 0, faults: Vec::new() };
    if u32::try_from(text.len()).is_err() {
        reader.at = 0;
        reader.stop(Path::ROOT, Code::TooLarge, "the text is larger than 4 GiB".into());
        return Parsed { root: None, faults: reader.faults };
    }
    reader.skip_space();
    let root = reader.value(Path::ROOT, 1).ok();
    if root.is_some() {
        reader.skip_space();
        if reader.at < reader.bytes.len() {
            let rest = reader.bytes.len() - reader.at;
            let bytes = if rest == 1 { "byte follows" } else { "bytes follow" };
            let message = format!("{rest} {bytes} the end of the document");
            reader.stop(Path::ROOT, Code::TrailingData, message);
        }
    }
    Parsed { root, faults: reader.faults }
}

/// The reading cannot go on; the reason is among the faults.
struct Stopped;

struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    values: usize,
    faults: Vec<Fault>,
}

impl<'t> Reader<'t> {
    fn value(&mut self, path: Path<'_>, depth: usize) -> Result<Node<'t>, Stopped> {
        let start = self.at;
        self.values += 1;
        if self.values > MAX_VALUES {
            let message = format!("the document has more than {MAX_VALUES} values");
            return Err(self.stop(path, Code::TooLarge, message));
        }
        let value = match self.peek() {
            Some(b'"') => Value::Text(self.string(path)?),
            Some(b'{') => Value::Object(self.object(path, depth)?),
            Some(b'[') => Value::List(self.list(path, depth)?),
            Some(b'-' | b'0'..=b'9') => Value::Number(self.number(path)?),
            Some(b't') => self.word("true", Value::Bool(true), path)?,
            Some(b'f') => self.word("false", Value::Bool(false), path)?,
            Some(b'n') => self.word("null", Value::Null, path)?,
            _ => return Err(self.unexpected(path, "a value")),
        };
        Ok(Node { span: self.span_from(start), value })
    }

    fn object(&mut self, path: Path<'_>, depth: usize) -> Result<Vec<Member<'t>>, Stopped> {
        self.descend(path, depth)?;
        let mut members: Vec<Member<'t>> = Vec::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(members);
        }
        loop {
            if self.peek() != Some(b'"') {
                let wanted = if members.is_empty() { "a key or `}`" } else { "a key" };
                return Err(self.unexpected(path, wanted));
            }
            let start = self.at;
            let key = self.string(path)?;
            let key_span = self.span_from(start);
            self.skip_space();
            if !self.take(b':') {
                return Err(self.unexpected(path, "`:`"));
            }
            self.skip_space();
            let value = self.value(path.key(&key), depth + 1)?;
            members.push(Member { key, key_span, value });
            self.skip_space();
            if self.take(b',') {
                self.skip_space();
            } else if self.take(b'}') {
                break;
            } else {
                return Err(self.unexpected(path, "`,` or `}`"));
            }
        }
        self.note_twins(path, &members);
        Ok(members)
    }

    fn list(&mut self, path: Path<'_>, depth: usize) -> Result<Vec<Node<'t>>, Stopped> {
        self.descend(path, depth)?;
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(items);
        }
        loop {
            items.push(self.value(path.index(items.len()), depth + 1)?);
            self.skip_space();
            if self.take(b',') {
                self.skip_space();
            } else if self.take(b']') {
                return Ok(items);
            } else {
                return Err(self.unexpected(path, "`,` or `]`"));
            }
        }
    }

    fn descend(&mut self, path: Path<'_>, depth: usize) -> Result<(), Stopped> {
        if depth > MAX_DEPTH {
            let message = format!("values are nested more than {MAX_DEPTH} deep");
            return Err(self.stop(path, Code::TooDeep, message));
        }
        self.at += 1;
        Ok(())
    }

    fn note_twins(&mut self, path: Path<'_>, members: &[Member<'t>]) {
        if members.len() <= SMALL_OBJECT {
            for (index, member) in members.iter().enumerate() {
                if members[..index].iter().any(|earlier| earlier.key == member.key) {
                    self.note_twin(path, member);
                }
            }
        } else {
            let mut seen = HashSet::with_capacity(members.len());
            for member in members {
                if !seen.insert(member.key.as_ref()) {
                    self.note_twin(path, member);
                }
            }
        }
    }

    fn note_twin(&mut self, path: Path<'_>, member: &Member<'t>) {
        let message = format!("the key `{}` appears twice in one object", member.key);
        self.note(path.key(&member.key), Code::DuplicateKey, member.key_span, message);
    }

    fn string(&mut self, path: Path<'_>) -> Result<Cow<'t, str>, Stopped> {
        let start = self.at + 1;
        self.at = plain_end(self.bytes, start);
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(&self.text[start..self.at - 1]));
        }
        let mut text = self.text[start..self.at].to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(text));
                }
                Some(b'\\') => text.push(self.escape(path)?),
                Some(_) => {
                    let message = "a control character stands unescaped in a string".into();
                    return Err(self.stop(path, Code::JsonSyntax, message));
                }
                None => {
                    self.at = start - 1;
                    let message = "this string never ends".into();
                    return Err(self.stop(path, Code::JsonSyntax, message));
                }
            }
            let from = self.at;
            self.at = plain_end(self.bytes, from);
            text.push_str(&self.text[from..self.at]);
        }
    }

    fn escape(&mut self, path: Path<'_>) -> Result<char, Stopped> {
        let start = self.at;
        self.at += 2;
        Ok(match self.bytes.get(start + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.four_hex(path, start)?;
                return self.code_point(path, start, first);
            }
            _ => {
                self.at = start;
                let message = "no such escape in JSON".into();
                return Err(self.stop(path, Code::JsonSyntax, message));
            }
        })
    }

    fn code_point(&mut self, path: Path<'_>, start: usize, first: u32) -> Result<char, Stopped> {
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        let is_leading = (0xD800..0xDC00).contains(&first);
        if is_leading && self.bytes[self.at..].starts_with(b"\\u") {
            let second_start = self.at;
            self.at += 2;
            let second = self.four_hex(path, second_start)?;
            if (0xDC00..0xE000).contains(&second) {
                let combined = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(combined).expect("a surrogate pair is a character"));
            }
            self.at = second_start;
        }
        let message = format!("`\\u{first:04x}` is half of a surrogate pair");
        self.note(path, Code::LoneSurrogate, self.span_from(start), message);
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn four_hex(&mut self, path: Path<'_>, start: usize) -> Result<u32, Stopped> {
        let digits = self.bytes.get(self.at..self.at + 4);
        match digits.and_then(|digits| {
            digits
                .iter()
                .try_fold(0, |sum, digit| Some(sum * 16 + char::from(*digit).to_digit(16)?))
        }) {
            Some(value) => {
                self.at += 4;
                Ok(value)
            }
            None => {
                self.at = start;
                let message = "`\\u` needs four hexadecimal digits".into();
                Err(self.stop(path, Code::JsonSyntax, message))
            }
        }
    }

    fn number(&mut self, path: Path<'_>) -> Result<Number, Stopped> {
        let start = self.at;
        let negative = self.take(b'-');
        let digits = self.digits();
        let leading_zero = digits > 1 && self.bytes[self.at - digits] == b'0';
        if digits == 0 || leading_zero {
            self.at = start;
            let what = if digits == 0 {
                "a number needs a digit"
            } else {
                "a number may not begin with a zero"
            };
            return Err(self.stop(path, Code::JsonSyntax, what.into()));
        }
        let mut whole = true;
        if self.take(b'.') {
            whole = false;
            if self.digits() == 0 {
                return Err(self.unexpected(path, "a digit after the decimal point"));
            }
        }
        if self.take(b'e') || self.take(b'E') {
            whole = false;
            let _sign = self.take(b'+') || self.take(b'-');
            if self.digits() == 0 {
                return Err(self.unexpected(path, "a digit in the exponent"));
            }
        }
        let written = &self.text[start..self.at];
        if whole
            && !negative
            && let Ok(number) = written.parse()
        {
            return Ok(Number::Unsigned(number));
        }
        // `-0` is a float: an integer cannot hold its sign.
        if whole
            && negative
            && written != "-0"
            && let Ok(number) = written.parse()
        {
            return Ok(Number::Negative(number));
        }
        let number: f64 = written.parse().expect("checked above to be a JSON number");
        if number.is_infinite() {
            let message =
                format!("the number `{}` is larger than a double can hold", shortened(written));
            self.note(path, Code::NumberOutOfRange, self.span_from(start), message);
            return Ok(Number::Unsigned(0));
        }
        Ok(Number::Float(number))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn word(&mut self, word: &str, value: Value<'t>, path: Path<'_>) -> Result<Value<'t>, Stopped> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.unexpected(path, "a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn span_from(&self, start: usize) -> Span {
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span { start: offset(start), end: offset(self.at) }
    }

    fn unexpected(&mut self, path: Path<'_>, wanted: &str) -> Stopped {
        let message = match self.text[self.at..].chars().next() {
            Some(found) => format!("expected {wanted}, found {}", shown(found)),
            None => format!("expected {wanted}, found the end of the text"),
        };
        self.stop(path, Code::JsonSyntax, message)
    }

    fn stop(&mut self, path: Path<'_>, code: Code, message: String) -> Stopped {
        let start = u32::try_from(self.at).unwrap_or(u32::MAX);
        let span = Span { start, end: start.saturating_add(1) };
        // The reason for stopping is never dropped, however many faults came before it.
        self.faults.push(Fault { code, pointer: path.pointer(), span, message });
        Stopped
    }

    fn note(&mut self, path: Path<'_>, code: Code, span: Span, message: String) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(Fault { code, pointer: path.pointer(), span, message });
        }
    }
}

/// The offset of the first byte from `at` on that ends or interrupts a plain run of a string:
/// a quote, a backslash, a control character, or the end. Eight bytes are looked at in one step.
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    while let Some(chunk) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        let quotes = zero_bytes(word ^ (ONES * u64::from(b'"')));
        let backslashes = zero_bytes(word ^ (ONES * u64::from(b'\\')));
        let controls = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        let hits = quotes | backslashes | controls;
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    bytes[at..].iter().position(is_special).map_or(bytes.len(), |offset| at + offset)
}

fn shown(character: char) -> String {
    if character.is_control() {
        format!("the control character U+{:04X}", u32::from(character))
    } else {
        format!("`{character}`")
    }
}

fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= 40 { text.into() } else { format!("{}…", &text[..40]).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Vec<Code> {
        parse(text).faults.into_iter().map(|fault| fault.code).collect()
    }

    #[test]
    fn values_come_with_their_places() {
        let text = r#"{"a": [1, "two", null], "b": -3.5}"#;
        let root = parse(text).root.unwrap();
        let two = &root.get("a").unwrap().items()[1];
        assert_eq!(&text[two.span.range()], r#""two""#);
        assert_eq!(root.member("b").unwrap().key_span, Span { start: 24, end: 27 });
    }

    #[test]
    fn every_duplicate_key_is_noted_and_the_reading_goes_on() {
        let parsed = parse(r#"{"a": 1, "a": 2, "b": {"c": 1, "c": 2, "\u0063": 3}}"#);
        let pointers: Vec<_> = parsed.faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(pointers, ["/b/c", "/b/c", "/a"]);
        assert!(parsed.root.is_some());
    }

    #[test]
    fn twins_are_found_in_large_objects_too() {
        let members: Vec<_> = (0..100).map(|n| format!("\"k{}\": 0", n % 99)).collect();
        assert_eq!(codes(&format!("{{{}}}", members.join(","))), [Code::DuplicateKey]);
    }

    #[test]
    fn depth_is_counted_exactly() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(codes(&nested(MAX_DEPTH)), []);
        assert_eq!(codes(&nested(MAX_DEPTH + 1)), [Code::TooDeep]);
        assert_eq!(codes(&"[".repeat(1_000_000)), [Code::TooDeep]);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "{'a':1}",
            "01",
            "1.",
            "-",
            "+1",
            ".5",
            "1e",
            "nul",
            "tru",
            "\"\u{1}\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"",
            "// c\n1",
            "NaN",
            "[1 2]",
            "{\"a\" 1}",
            "{1:2}",
        ] {
            assert_eq!(codes(text), [Code::JsonSyntax], "{text}");
        }
        assert_eq!(codes("{} x"), [Code::TrailingData]);
        assert_eq!(codes("1e999"), [Code::NumberOutOfRange]);
        assert_eq!(codes(r#""\ud800""#), [Code::LoneSurrogate]);
        assert_eq!(codes(r#""\ud800\u0041""#), [Code::LoneSurrogate]);
    }

    #[test]
    fn strings_are_read_whole() {
        let text = r#""a long plain run é\n\u00e9\ud83d\ude00 \"q\" \/ and more after it""#;
        let root = parse(text).root.unwrap();
        assert_eq!(root.as_text(), Some("a long plain run é\né😀 \"q\" / and more after it"));
    }

    #[test]
    fn numbers_keep_their_kind() {
        let number = |text| parse(text).root.unwrap().as_number().unwrap();
        assert_eq!(number("18446744073709551615"), Number::Unsigned(u64::MAX));
        assert_eq!(number("-9223372036854775808"), Number::Negative(i64::MIN));
        assert_eq!(number("18446744073709551616"), Number::Float(18_446_744_073_709_551_616.0));
        assert_eq!(number("1.0"), Number::Float(1.0));
        assert!(number("1.0").is_integer());
        assert!(!number("1.5").is_integer());
    }
}
