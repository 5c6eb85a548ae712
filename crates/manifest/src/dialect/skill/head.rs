//! The head of a `SKILL.md`, as a tree that knows its places.
//!
//! It is a small part of YAML, read strictly: names with texts, lists of texts, and one level of names below a name.
//! Every value is read as text. Anchors, tags, mappings in braces and whatever else two readers may see differently are
//! refused.

use std::borrow::Cow;

use super::block::{Block, folded};
use super::scalar::{plain, quoted, without_comment};
use super::{FENCE, is_skill};
use crate::finding::Code;
use crate::json::{Fault, Member, Node, Parsed, Path, Span, Value};
use crate::shape::clip;

/// The longest head, in bytes.
const MOST_BYTES: usize = 64 * 1024;
/// The most names in one place, and the most texts of a list.
const MOST_VALUES: usize = 256;
/// How deep names stand below names.
const DEEPEST: usize = 1;
/// How many faults are told.
const MOST_FAULTS: usize = 100;

/// One line.
#[derive(Clone, Copy, Debug)]
struct Line<'t> {
    /// Where it begins in the text.
    start: usize,
    /// What stands in it, without its indentation and its end.
    text: &'t str,
    /// How many blanks it begins with.
    indent: usize,
}

impl Line<'_> {
    fn end(&self) -> usize {
        self.start + self.indent + self.text.len()
    }

    fn is_nothing(&self) -> bool {
        self.text.is_empty() || self.text.starts_with('#')
    }

    fn is_item(&self) -> bool {
        self.text == "-" || self.text.starts_with("- ")
    }
}

/// Reads the head of a text.
pub(crate) fn parse(text: &str) -> Parsed<'_> {
    let fault = |at: usize, code: Code, message: String| Parsed {
        root: None,
        faults: vec![Fault {
            code,
            pointer: Path::ROOT.pointer(),
            span: span(at, at + 1),
            message,
        }],
    };
    if !is_skill(text) {
        let message = format!("a SKILL.md begins with a line `{FENCE}`, its head, and `{FENCE}`");
        return fault(0, Code::YamlSyntax, message);
    }
    let mut lines = Vec::new();
    let mut start = 0;
    let mut is_closed = false;
    for whole in text.split_inclusive('\n').take(MOST_BYTES) {
        let line = whole.trim_end_matches(['\n', '\r']);
        let is_first = start == 0;
        if !is_first && line.trim_end() == FENCE {
            is_closed = true;
            break;
        }
        if start + line.len() > MOST_BYTES {
            let message = format!("the head is longer than {MOST_BYTES} bytes");
            return fault(start.min(text.len() - 1), Code::TooLarge, message);
        }
        if !is_first {
            let text = line.trim_start_matches(' ');
            let indent = line.len() - text.len();
            lines.push(Line { start, text: text.trim_end(), indent });
        }
        start += whole.len();
    }
    if !is_closed {
        return fault(0, Code::YamlSyntax, format!("the head is not ended by a line `{FENCE}`"));
    }
    let mut reader = Reader { lines, at: 0, faults: Vec::new() };
    reader.check_characters();
    let members = reader.mapping(0, Path::ROOT, 0);
    let root = Node { span: span(0, start), value: Value::Object(members) };
    Parsed { root: Some(root), faults: reader.faults }
}

fn span(start: usize, end: usize) -> Span {
    let short = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Span { start: short(start), end: short(end) }
}

struct Reader<'t> {
    lines: Vec<Line<'t>>,
    /// The line that is read next.
    at: usize,
    faults: Vec<Fault>,
}

impl<'t> Reader<'t> {
    fn fault(&mut self, path: Path<'_>, at: usize, message: impl Into<String>) {
        if self.faults.len() < MOST_FAULTS {
            let (code, pointer) = (Code::YamlSyntax, path.pointer());
            let span = span(at, at + 1);
            self.faults.push(Fault { code, pointer, span, message: message.into() });
        }
    }

    /// What is not seen has no place in a head, and tabs mean something else to every reader.
    fn check_characters(&mut self) {
        let is_odd = |c: char| (c.is_control() && c != '\t') || c == '\u{feff}';
        for line in self.lines.clone() {
            if line.text.starts_with('\t') {
                self.fault(Path::ROOT, line.start, "a line is indented with blanks, not with tabs");
            } else if let Some(at) = line.text.find(is_odd) {
                let at = line.start + line.indent + at;
                self.fault(Path::ROOT, at, "a control character stands here");
            }
        }
    }

    /// The next line with something in it, where it belongs to whoever is indented so far.
    fn peek(&mut self) -> Option<Line<'t>> {
        while self.lines.get(self.at).is_some_and(Line::is_nothing) {
            self.at += 1;
        }
        self.lines.get(self.at).copied()
    }

    /// The names at an indentation, each with its value.
    fn mapping(&mut self, indent: usize, path: Path<'_>, depth: usize) -> Vec<Member<'t>> {
        let mut members: Vec<Member<'t>> = Vec::new();
        while let Some(line) = self.peek() {
            if line.indent < indent {
                break;
            }
            self.at += 1;
            if line.indent > indent {
                self.fault(path, line.start, "this line is indented more than those before it");
                continue;
            }
            let place = line.start + line.indent;
            let Some((key, length, after)) = key_of(line.text) else {
                let message = "a line of the head is a name, a colon and a blank, and a value";
                self.fault(path, place, message);
                continue;
            };
            let key_span = span(place, place + length);
            let value = self.value(line, after, path.key(&key), depth);
            if members.iter().any(|known| known.key == key) {
                let (pointer, code) = (path.key(&key).pointer(), Code::DuplicateKey);
                let message = format!("`{}` is there twice", clip(&key));
                self.faults.push(Fault { code, pointer, span: key_span, message });
            } else if members.len() >= MOST_VALUES {
                self.fault(path, place, format!("there are more than {MOST_VALUES} names here"));
                break;
            } else {
                members.push(Member { key, key_span, value });
            }
        }
        members
    }

    /// What stands after a name, `after` bytes into what its line says.
    fn value(&mut self, line: Line<'t>, after: usize, path: Path<'_>, depth: usize) -> Node<'t> {
        let rest = &line.text[after..];
        let text = rest.trim_start_matches([' ', '\t']);
        let start = line.start + line.indent + after + (rest.len() - text.len());
        let bare = without_comment(text);
        if bare.is_empty() {
            return self.below(line, path, depth);
        }
        if bare.starts_with(['|', '>']) {
            return match Block::read(bare) {
                Some(block) => self.block(block, line, start),
                None => {
                    self.fault(path, start, "after `|` or `>` stands `-`, `+` or nothing");
                    nothing(start)
                }
            };
        }
        if bare.starts_with('[') {
            return self.flow(bare, start, path);
        }
        if bare.starts_with(['"', '\'']) {
            return self.quoted(text, start, path);
        }
        // A plain text goes on for as long as lines are indented more.
        let mut parts = vec![(start, bare)];
        while let Some(next) = self.lines.get(self.at).copied() {
            let goes_on = match next.text {
                "" => self.goes_on_after(line.indent),
                text => next.indent > line.indent && !text.starts_with('#'),
            };
            if !goes_on {
                break;
            }
            self.at += 1;
            parts.push((next.start + next.indent, without_comment(next.text)));
        }
        self.plain(&parts, path)
    }

    /// Whether after empty lines there is one that is indented more.
    fn goes_on_after(&self, indent: usize) -> bool {
        let next = self.lines[self.at..].iter().find(|line| !line.text.is_empty());
        next.is_some_and(|line| line.indent > indent && !line.text.starts_with('#'))
    }

    /// A plain text of one or more lines, each with its place.
    fn plain(&mut self, parts: &[(usize, &'t str)], path: Path<'_>) -> Node<'t> {
        let (start, _) = parts.first().copied().unwrap_or_default();
        let end = parts.last().map_or(start, |(at, part)| at + part.len());
        for (place, part) in parts {
            if let Err((at, message)) = plain(part) {
                self.fault(path, place + at, message);
                // It is a text all the same: more need not be said of it.
                let value = Value::Text(Cow::Borrowed(*part));
                return Node { span: span(start, end), value };
            }
        }
        let text = match parts {
            [(_, only)] => Cow::Borrowed(*only),
            several => {
                Cow::Owned(folded(&several.iter().map(|(_, part)| *part).collect::<Vec<_>>()))
            }
        };
        let value = match text.as_ref() {
            "~" | "null" => Value::Null,
            _ => Value::Text(text),
        };
        Node { span: span(start, end), value }
    }

    fn quoted(&mut self, text: &'t str, start: usize, path: Path<'_>) -> Node<'t> {
        match quoted(text) {
            Ok((held, rest)) => {
                let end = start + text.len() - rest.len();
                let is_spaced = rest.is_empty() || rest.starts_with([' ', '\t']);
                if !is_spaced || !without_comment(rest.trim_start()).is_empty() {
                    self.fault(path, end, "something follows the text in quotes");
                }
                Node { span: span(start, end), value: Value::Text(held) }
            }
            Err((at, message)) => {
                self.fault(path, start + at, message);
                Node { span: span(start, start + text.len()), value: Value::Text(text.into()) }
            }
        }
    }

    /// What stands below a name that has nothing beside it.
    fn below(&mut self, line: Line<'t>, path: Path<'_>, depth: usize) -> Node<'t> {
        let end = line.end();
        let Some(next) = self.peek() else { return nothing(end) };
        if next.is_item() && next.indent >= line.indent {
            return self.list(next.indent, path);
        }
        if next.indent <= line.indent {
            return nothing(end);
        }
        if key_of(next.text).is_none() {
            self.at += 1;
            let mut parts = vec![(next.start + next.indent, without_comment(next.text))];
            while let Some(more) = self.lines.get(self.at).copied()
                && more.indent >= next.indent
                && !more.is_nothing()
            {
                parts.push((more.start + more.indent, without_comment(more.text)));
                self.at += 1;
            }
            return self.plain(&parts, path);
        }
        let start = next.start + next.indent;
        if depth >= DEEPEST {
            self.fault(path, start, "names below names below a name are not read here");
            while self.peek().is_some_and(|deep| deep.indent > line.indent) {
                self.at += 1;
            }
            return nothing(start);
        }
        let members = self.mapping(next.indent, path, depth + 1);
        Node { span: span(start, start + next.text.len()), value: Value::Object(members) }
    }

    /// A list, a text a line.
    fn list(&mut self, indent: usize, path: Path<'_>) -> Node<'t> {
        let mut items = Vec::new();
        let mut place: Option<(usize, usize)> = None;
        while let Some(line) = self.peek().filter(|line| line.indent == indent && line.is_item()) {
            self.at += 1;
            let text = line.text[1..].trim_start();
            let start = line.start + line.indent + line.text.len() - text.len();
            let (first, _) = place.unwrap_or((line.start + line.indent, 0));
            place = Some((first, line.end()));
            if items.len() >= MOST_VALUES {
                self.fault(path, start, format!("there are more than {MOST_VALUES} texts here"));
                continue;
            }
            let path = path.index(items.len());
            let bare = without_comment(text);
            let item = if text.starts_with(['"', '\'']) {
                self.quoted(text, start, path)
            } else {
                self.plain(&[(start, bare)], path)
            };
            items.push(item);
        }
        let (start, end) = place.unwrap_or_default();
        Node { span: span(start, end), value: Value::List(items) }
    }

    /// A list in brackets, on one line.
    fn flow(&mut self, text: &'t str, start: usize, path: Path<'_>) -> Node<'t> {
        let whole = span(start, start + text.len());
        let Some(mut inside) = text[1..].strip_suffix(']') else {
            self.fault(path, start, "a list in brackets is closed on its line");
            return nothing(start);
        };
        let mut items = Vec::new();
        loop {
            inside = inside.trim_start();
            if inside.is_empty() {
                break;
            }
            let at = start + 1 + (text.len() - 2 - inside.len());
            if items.len() >= MOST_VALUES {
                self.fault(path, at, format!("there are more than {MOST_VALUES} texts here"));
                break;
            }
            let path = path.index(items.len());
            let (item, rest) = if inside.starts_with(['"', '\'']) {
                match quoted(inside) {
                    Ok((held, rest)) => {
                        let end = at + inside.len() - rest.len();
                        (Node { span: span(at, end), value: Value::Text(held) }, rest)
                    }
                    Err((wrong, message)) => {
                        self.fault(path, at + wrong, message);
                        return nothing(start);
                    }
                }
            } else {
                let end = inside.find(',').unwrap_or(inside.len());
                let bare = inside[..end].trim_end();
                if bare.is_empty() || bare.contains(['[', ']', '{', '}']) {
                    self.fault(path, at, "a list holds texts, and nothing else");
                    return nothing(start);
                }
                (self.plain(&[(at, bare)], path), &inside[end..])
            };
            items.push(item);
            let rest = rest.trim_start();
            inside = match rest.strip_prefix(',') {
                Some(rest) => rest,
                None if rest.is_empty() => rest,
                None => {
                    self.fault(path, at, "the texts of a list are parted by commas");
                    return nothing(start);
                }
            };
        }
        Node { span: whole, value: Value::List(items) }
    }

    /// The lines of a text after `|` or `>`.
    fn block(&mut self, block: Block, line: Line<'t>, start: usize) -> Node<'t> {
        let first = self.lines[self.at..].iter().find(|line| !line.text.is_empty());
        let own = first.map(|first| first.indent).filter(|indent| *indent > line.indent);
        let mut lines = Vec::new();
        let mut end = line.end();
        while let (Some(own), Some(next)) = (own, self.lines.get(self.at).copied())
            && (next.indent >= own || next.text.is_empty())
        {
            self.at += 1;
            let more = next.indent.saturating_sub(own);
            lines.push(if next.text.is_empty() {
                String::new()
            } else {
                end = next.end();
                format!("{}{}", " ".repeat(more), next.text)
            });
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let value = Value::Text(block.join(&lines).into());
        Node { span: span(start, end), value }
    }
}

/// The name at the beginning of a line, how long it is as it is written, and where what follows its colon begins.
fn key_of(text: &str) -> Option<(Cow<'_, str>, usize, usize)> {
    let (key, rest) = if text.starts_with(['"', '\'']) {
        quoted(text).ok()?
    } else {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        let end = text.find(|c| !is_plain(c)).unwrap_or(text.len());
        (Cow::Borrowed(&text[..end]), &text[end..])
    };
    let length = text.len() - rest.len();
    let rest = rest.trim_start_matches(' ').strip_prefix(':')?;
    let is_parted = rest.is_empty() || rest.starts_with([' ', '\t']);
    (!key.is_empty() && is_parted).then(|| (key, length, text.len() - rest.len()))
}

/// A value that is not there.
fn nothing(at: usize) -> Node<'static> {
    Node { span: span(at, at + 1), value: Value::Null }
}

#[cfg(test)]
mod tests;
