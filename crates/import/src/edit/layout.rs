//! How the objects of a JSON file are laid out, so that what is written into it looks like the rest.

use manifest::json::Node;
use serde_json::json;

use super::line_end;

/// What a step inwards is where a file does not show it.
const STEP: &str = "  ";

/// How the members of an object are laid out.
#[derive(Clone, Debug)]
pub(super) enum Layout {
    /// On one line, with this after each colon and each comma.
    Line { gap: &'static str },
    /// Each on a line of its own, one step further in.
    Lines { end: &'static str, step: String },
}

impl Layout {
    /// That of a file that is written anew.
    pub(super) fn usual(end: &'static str) -> Self {
        Self::Lines { end, step: STEP.to_owned() }
    }

    /// That of an object, where it has members, else of the file that it is in.
    pub(super) fn of(text: &str, root: &Node<'_>, object: &Node<'_>) -> Self {
        let range = object.span.range();
        let has_comment = !text[range.start + 1..range.end - 1].trim().is_empty();
        let model = match object.members() {
            // After a comment that ends with its line nothing can follow on it.
            [] if has_comment => None,
            [] => Some(root),
            _ => Some(object),
        };
        let line = model.and_then(|model| {
            let [first, ..] = model.members() else { return None };
            let last = model.members().last()?;
            let range = model.span.range();
            let before = &text[range.start..first.key_span.range().start];
            let after = &text[last.value.span.range().end..range.end];
            let gap = &text[first.key_span.range().end..first.value.span.range().start];
            let is_line = !before.contains('\n') && !after.contains('\n');
            is_line.then_some(Self::Line { gap: if gap.contains(' ') { " " } else { "" } })
        });
        line.unwrap_or_else(|| {
            let first = root.members().first().map(|first| first.key_span.range().start);
            let step = first.and_then(|at| blanks_before(text, at)).filter(|step| !step.is_empty());
            Self::Lines { end: line_end(text), step: step.unwrap_or(STEP).to_owned() }
        })
    }

    /// That of a value which takes the place of another, at this many blanks.
    pub(super) fn like(text: &str, old: &Node<'_>, outer: &str) -> Self {
        let was = &text[old.span.range()];
        if !was.contains('\n') {
            return Self::Line { gap: " " };
        }
        let first = old.members().first().map(|first| indent(text, first.key_span.range().start));
        let step =
            first.and_then(|inner| inner.strip_prefix(outer)).filter(|step| !step.is_empty());
        Self::Lines { end: line_end(was), step: step.unwrap_or(STEP).to_owned() }
    }

    /// The blanks before the members of an object that stands at this many.
    pub(super) fn further(&self, outer: &str) -> String {
        match self {
            Self::Line { .. } => String::new(),
            Self::Lines { step, .. } => format!("{outer}{step}"),
        }
    }

    /// The blanks before the members of an object.
    pub(super) fn within(&self, text: &str, object: &Node<'_>) -> String {
        let members = object.members().iter().rev();
        let on_lines = members.filter_map(|one| blanks_before(text, one.key_span.range().start));
        let found = on_lines.into_iter().next().map(str::to_owned);
        found.unwrap_or_else(|| self.further(indent(text, object.span.range().start)))
    }

    /// What stands before one more member.
    pub(super) fn before(&self, inner: &str) -> String {
        match self {
            Self::Line { gap } => (*gap).to_owned(),
            Self::Lines { end, .. } => format!("{end}{inner}"),
        }
    }

    /// What stands after the last member.
    pub(super) fn after(&self, outer: &str) -> String {
        match self {
            Self::Line { .. } => String::new(),
            Self::Lines { end, .. } => format!("{end}{outer}"),
        }
    }

    /// A member.
    pub(super) fn member(&self, key: &str, value: &str) -> String {
        format!("{}:{}{value}", json!(key), self.gap())
    }

    /// An object that stands at this many blanks.
    pub(super) fn object(&self, members: &[String], outer: &str) -> String {
        let inner = self.further(outer);
        let first = match self {
            Self::Line { .. } => String::new(),
            Self::Lines { .. } => self.before(&inner),
        };
        let members = members.join(&format!(",{}", self.before(&inner)));
        format!("{{{first}{members}{}}}", self.after(outer))
    }

    /// A list of texts, which stays on its line.
    pub(super) fn list(&self, texts: &[&str]) -> String {
        let texts: Vec<_> = texts.iter().map(|text| json!(text).to_string()).collect();
        format!("[{}]", texts.join(&format!(",{}", self.gap())))
    }

    fn gap(&self) -> &'static str {
        match self {
            Self::Line { gap } => gap,
            Self::Lines { .. } => " ",
        }
    }
}

/// The blanks that the line of a place begins with.
pub(super) fn indent(text: &str, at: usize) -> &str {
    let line = text[..at].rsplit('\n').next().unwrap_or_default();
    &line[..line.len() - line.trim_start().len()]
}

/// What is before a place on its line, where it is nothing but blanks.
fn blanks_before(text: &str, at: usize) -> Option<&str> {
    let (_, line) = text[..at].rsplit_once('\n')?;
    line.trim().is_empty().then_some(line)
}
