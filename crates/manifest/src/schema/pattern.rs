//! ECMAScript regular expressions that cannot hang us.
//!
//! Patterns run on an engine of linear time. Look-around and back-references
//! need another one, which gives up after a fixed number of steps back.

use std::borrow::Cow;
use std::cell::Cell;

use regex_syntax::hir::{Class, Hir, HirKind};

/// How long a pattern may be.
const MAX_PATTERN: usize = 8 * 1024;

/// The estimated size up to which a pattern surely compiles; above it, compiling decides.
const SURELY_SMALL: usize = 2_000;

/// The estimated size above which a pattern is refused without trying.
const SURELY_LARGE: usize = 40_000;

/// How large a compiled pattern may be, in bytes.
const MAX_COMPILED: usize = 4 * 1024 * 1024;

/// How many steps a pattern may go back before it is called off.
const MAX_BACKTRACKS: usize = 100_000;

/// How many patterns of one document may need to be compiled to be judged.
const MAX_COSTLY: u32 = 60;

/// What may still be spent on the patterns of one document.
#[derive(Debug)]
pub struct Budget(Cell<u32>);

impl Default for Budget {
    fn default() -> Self {
        Self(Cell::new(MAX_COSTLY))
    }
}

impl Budget {
    fn spend(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct EcmaRegex(fancy_regex::Regex);

/// A pattern needed too many steps on this text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runaway;

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegexError {
    /// Longer than anyone can read.
    TooLong(usize),
    /// Not ECMAScript.
    Syntax(String),
    /// One of too many that are costly to compile.
    TooMany,
    /// Too large once its repetitions are written out.
    TooLarge(String),
    /// ECMAScript, but of a kind that no engine here can run.
    Unsupported(String),
}

impl std::fmt::Display for RegexError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RegexError::TooLong(length) => {
                write!(out, "the pattern has {length} bytes; at most {MAX_PATTERN} are allowed")
            }
            RegexError::TooMany => write!(
                out,
                "the document has more than {MAX_COSTLY} patterns that are costly to compile"
            ),
            RegexError::Syntax(pattern) => {
                write!(out, "`{pattern}` is no ECMAScript regular expression")
            }
            RegexError::TooLarge(pattern) => {
                write!(out, "`{pattern}` grows too large when its repetitions are written out")
            }
            RegexError::Unsupported(pattern) => {
                write!(
                    out,
                    "`{pattern}` is ECMAScript, but of a kind that cannot be run safely here"
                )
            }
        }
    }
}

impl std::error::Error for RegexError {}

impl EcmaRegex {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<Self, RegexError> {
        let translated = translate(pattern)?;
        let is_linear = regex_syntax::parse(&translated).is_ok();
        fancy_regex::RegexBuilder::new(&translated)
            .backtrack_limit(MAX_BACKTRACKS)
            .delegate_size_limit(MAX_COMPILED)
            .build()
            .map(Self)
            .map_err(|_| {
                let shown = shown(pattern);
                if is_linear { RegexError::TooLarge(shown) } else { RegexError::Unsupported(shown) }
            })
    }

    /// Whether the pattern is found anywhere in the text.
    pub fn is_match(&self, text: &str) -> Result<bool, Runaway> {
        self.0.is_match(text).map_err(|_| Runaway)
    }
}

/// Whether a pattern could be compiled, without the cost of compiling it.
pub fn check_regex(pattern: &str, budget: &Budget) -> Result<(), RegexError> {
    if is_surely_fine(pattern) {
        return Ok(());
    }
    let translated = translate(pattern)?;
    // The engine has a parser of its own in front, which is stricter about nesting and repeats.
    match regex_syntax::parse(&translated) {
        Ok(parsed)
            if size(&parsed) <= SURELY_SMALL
                && fancy_regex::Expr::parse_tree(&translated).is_ok() =>
        {
            Ok(())
        }
        Ok(parsed) if size(&parsed) > SURELY_LARGE => Err(RegexError::TooLarge(shown(pattern))),
        _ if !budget.spend() => Err(RegexError::TooMany),
        _ => EcmaRegex::new(pattern).map(|_| ()),
    }
}

/// Whether a pattern is valid ECMAScript without groups of a special kind, without references
/// back, neither deeply nested nor repeating nothing, and too short to grow large.
pub(super) fn is_surely_fine(pattern: &str) -> bool {
    if pattern.len() > 400 || !jsonschema_regex::is_valid_ecma_regex(pattern) {
        return false;
    }
    let bytes = pattern.as_bytes();
    if pattern.matches('(').count() > 32 || pattern.contains("(?:)") {
        return false;
    }
    let pair = |at: usize| (bytes[at], bytes.get(at + 1).copied().unwrap_or(0));
    let mut growth = pattern.len();
    for at in 0..bytes.len() {
        match pair(at) {
            (b'(', b'?') if bytes.get(at + 2) != Some(&b':') => return false,
            (b'\\', escaped) if !is_plain_escape(escaped) => return false,
            (b'[', b'[' | b']') | (b'^', b']') | (b'&', b'&') | (b'~', b'~') | (b'-', b'-') => {
                return false;
            }
            (b'{', _) => {
                let end =
                    bytes[at..].iter().position(|b| *b == b'}').map_or(bytes.len(), |to| at + to);
                let most =
                    pattern[at + 1..end].split(',').filter_map(|n| n.parse::<usize>().ok()).max();
                growth = growth.saturating_mul(most.unwrap_or(1_000).max(1));
            }
            _ => {}
        }
    }
    growth <= SURELY_SMALL
}

/// Whether a pattern may go back in its text: it looks around, or for what it has found before. All others
/// read it once.
pub(super) fn may_go_back(pattern: &str) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'k';
    let refers = |pair: &[u8]| pair[0] == b'\\' && is_digit(&pair[1]);
    pattern.contains("(?") || pattern.as_bytes().windows(2).any(refers)
}

/// Whether an escape means the same to everybody. `\b` does not: in a class it is a backspace.
fn is_plain_escape(escaped: u8) -> bool {
    b"dDwWsSnrtfv".contains(&escaped)
        || (escaped.is_ascii_punctuation() && !b"<>".contains(&escaped))
}

/// Whether a pattern is found in one text. Making the pattern fit for many texts would cost
/// a hundred times as much as looking at this one.
pub fn matches_once(pattern: &str, text: &str) -> Option<bool> {
    look_once(pattern, text).or_else(|| EcmaRegex::new(pattern).ok()?.is_match(text).ok())
}

/// The same for short texts and plain patterns, without compiling anything; none for others.
pub(super) fn look_once(pattern: &str, text: &str) -> Option<bool> {
    // On plain ASCII the classes of ECMAScript are those of bytes, which are far smaller.
    if text.is_ascii() && !text.contains('\r') && text.len() <= MAX_LOOK && is_surely_fine(pattern)
    {
        let mut parser = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build();
        let parsed = parser.parse(pattern).ok()?;
        return (Look { text: text.as_bytes(), steps: Cell::new(10_000) }).anywhere(&parsed);
    }
    None
}

/// The longest text that is looked at without compiling the pattern.
const MAX_LOOK: usize = 256;

/// Looks at one short text by trying, and gives up after so many steps.
struct Look<'t> {
    text: &'t [u8],
    steps: Cell<u32>,
}

impl Look<'_> {
    fn anywhere(&self, parsed: &Hir) -> Option<bool> {
        for start in 0..=self.text.len() {
            if self.from(parsed, start, &mut |_| Some(true))? {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Whether the pattern matches from an offset on, such that what follows does too.
    fn from(
        &self,
        parsed: &Hir,
        at: usize,
        then: &mut dyn FnMut(usize) -> Option<bool>,
    ) -> Option<bool> {
        self.steps.set(self.steps.get().checked_sub(1)?);
        match parsed.kind() {
            HirKind::Empty => then(at),
            HirKind::Literal(literal) => {
                if self.text[at..].starts_with(&literal.0) {
                    then(at + literal.0.len())
                } else {
                    Some(false)
                }
            }
            HirKind::Class(class) => {
                if self.text.get(at).is_some_and(|byte| holds(class, *byte)) {
                    then(at + 1)
                } else {
                    Some(false)
                }
            }
            HirKind::Look(regex_syntax::hir::Look::Start) => {
                if at == 0 {
                    then(at)
                } else {
                    Some(false)
                }
            }
            HirKind::Look(regex_syntax::hir::Look::End) => {
                if at == self.text.len() {
                    then(at)
                } else {
                    Some(false)
                }
            }
            HirKind::Look(_) => None,
            HirKind::Repetition(repetition) => {
                self.repeat(&repetition.sub, repetition.min, repetition.max, at, then)
            }
            HirKind::Capture(capture) => self.from(&capture.sub, at, then),
            HirKind::Concat(parts) => self.all(parts, at, then),
            HirKind::Alternation(parts) => {
                for part in parts {
                    if self.from(part, at, then)? {
                        return Some(true);
                    }
                }
                Some(false)
            }
        }
    }

    fn all(
        &self,
        parts: &[Hir],
        at: usize,
        then: &mut dyn FnMut(usize) -> Option<bool>,
    ) -> Option<bool> {
        match parts.split_first() {
            Some((first, rest)) => self.from(first, at, &mut |next| self.all(rest, next, then)),
            None => then(at),
        }
    }

    fn repeat(
        &self,
        sub: &Hir,
        min: u32,
        max: Option<u32>,
        at: usize,
        then: &mut dyn FnMut(usize) -> Option<bool>,
    ) -> Option<bool> {
        if max != Some(0) {
            let more = self.from(sub, at, &mut |next| {
                // A round that took nothing would go on for ever.
                if next == at && min == 0 {
                    return Some(false);
                }
                self.repeat(sub, min.saturating_sub(1), max.map(|max| max - 1), next, then)
            })?;
            if more {
                return Some(true);
            }
        }
        if min == 0 { then(at) } else { Some(false) }
    }
}

fn holds(class: &Class, byte: u8) -> bool {
    match class {
        Class::Bytes(class) => {
            class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&byte))
        }
        Class::Unicode(class) => class
            .ranges()
            .iter()
            .any(|range| (range.start()..=range.end()).contains(&char::from(byte))),
    }
}

fn translate(pattern: &str) -> Result<Cow<'_, str>, RegexError> {
    if pattern.len() > MAX_PATTERN {
        return Err(RegexError::TooLong(pattern.len()));
    }
    let plain = without_idle_escapes(pattern);
    if !jsonschema_regex::is_valid_ecma_regex(&plain) {
        return Err(RegexError::Syntax(shown(pattern)));
    }
    let translated = match plain {
        Cow::Borrowed(plain) => jsonschema_regex::to_rust_regex(plain),
        Cow::Owned(plain) => jsonschema_regex::to_rust_regex(&plain).map(|t| t.into_owned().into()),
    };
    translated.map_err(|()| RegexError::Unsupported(shown(pattern)))
}

/// Outside Unicode mode ECMAScript lets `\@` stand for `@`; the strict grammar does not.
/// Authors write such escapes, and they are harmless.
fn without_idle_escapes(pattern: &str) -> Cow<'_, str> {
    const IDLE: &str = "@\"'#%&,;:<>=!~`_ ";
    let is_idle = |c: char| IDLE.contains(c);
    if !pattern.contains('\\') {
        return pattern.into();
    }
    let mut plain = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(next) if is_idle(next) || (next == '-' && !in_class) => plain.push(next),
                Some(next) => plain.extend(['\\', next]),
                None => plain.push('\\'),
            },
            '[' => {
                in_class = true;
                plain.push('[');
            }
            ']' => {
                in_class = false;
                plain.push(']');
            }
            other => plain.push(other),
        }
    }
    plain.into()
}

/// A rough count of the states a pattern compiles to.
fn size(parsed: &Hir) -> usize {
    match parsed.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Unicode(class)) => 4 * class.ranges().len().max(1),
        HirKind::Class(Class::Bytes(_)) => 4,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min + 1).max(1) as usize;
            size(&repetition.sub).saturating_mul(times)
        }
        HirKind::Capture(capture) => size(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().fold(1, |sum, part| sum.saturating_add(size(part)))
        }
    }
}

fn shown(pattern: &str) -> String {
    crate::shape::clip(pattern).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ecmascript_is_accepted_and_other_tongues_are_not() {
        for pattern in [
            "^[a-z]+$",
            r"\d{3}\-\d{4}",
            r"^\S+\@\S+$",
            "(?=a)b",
            r"(a)\1",
            r"\u0061",
            "(?<n>x)",
            "[^a]x",
            r"^https:\/\/",
        ] {
            assert_eq!(check_regex(pattern, &Budget::default()), Ok(()), "{pattern}");
            assert!(EcmaRegex::new(pattern).is_ok(), "{pattern}");
        }
        for pattern in ["(", "[a", "*", "(?P<n>x)", "(?i)a", r"\A", "a{2,1}", "a**"] {
            assert!(check_regex(pattern, &Budget::default()).is_err(), "{pattern}");
        }
    }

    #[test]
    fn digits_are_ascii_as_ecmascript_has_them() {
        let digits = EcmaRegex::new(r"^\d+$").unwrap();
        assert_eq!(digits.is_match("123"), Ok(true));
        assert_eq!(digits.is_match("٣"), Ok(false));
    }

    #[test]
    fn one_look_agrees_with_many() {
        for pattern in [
            "^[a-z]+$",
            r"\d{3}\-\d{4}",
            r"^\S+\@\S+$",
            "(?=a)b",
            r"(a)\1",
            "^$",
            "é|ü",
            r"\bx\b",
            "^.{2,3}$",
            r"^[^@\s]+@[^@\s]+$",
            r"^\W\D\S$",
            "a|(?:b|c)+",
            "^(a*)*$",
            "^(a|b){0,3}c?$",
            "(|a)+b",
            "x*",
            "[a-c-]",
            "[\\w.]+/",
        ] {
            let regex = EcmaRegex::new(pattern).unwrap();
            for text in [
                "",
                "a",
                "abc",
                "123-4567",
                "x@y",
                "aa",
                "ü",
                "a x b",
                "éé",
                "a\nb",
                "a\rb",
                "u@h",
                "u@h x",
                "-",
                "b-c",
                "a.b/",
                " \t@",
                "٣٣٣-٣٣٣٣",
            ] {
                assert_eq!(
                    matches_once(pattern, text),
                    regex.is_match(text).ok(),
                    "{pattern} {text}"
                );
            }
        }
        assert_eq!(matches_once("(", "a"), None);
    }

    #[test]
    fn no_pattern_runs_away() {
        let text = format!("{}b", "a".repeat(40));
        assert_eq!(EcmaRegex::new("^(a+)+$").unwrap().is_match(&text), Ok(false));
        let backtracking = EcmaRegex::new(r"^(?=(a+)+$)\1x").unwrap();
        assert!(
            backtracking.is_match(&text).is_ok() || backtracking.is_match(&text) == Err(Runaway)
        );
        assert!(matches!(
            check_regex(&"(a{1000}){1000}".repeat(3), &Budget::default()),
            Err(RegexError::TooLarge(_))
        ));
    }
}
