//! A path through what is known so far.

use std::fmt;

use serde_json::Value;
use serde_json_path::JsonPath;

/// The longest path, in bytes.
pub const LONGEST: usize = 4_096;

/// How many brackets a path may have. The parser calls itself for each of them.
pub const DEEPEST: usize = 64;

/// A JSONPath of RFC 9535.
#[derive(Clone, Debug)]
pub struct Path {
    text: String,
    query: JsonPath,
    is_one: bool,
}

impl Path {
    /// Reads a path.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err("the path is longer than 4,096 bytes".to_owned());
        }
        if text.bytes().filter(|byte| matches!(byte, b'[' | b'(' | b'!')).count() > DEEPEST {
            return Err("the path is nested too deep".to_owned());
        }
        let query = JsonPath::parse(text)
            .map_err(|error| format!("`{}` is no JSONPath: {error}", clipped(text)))?;
        Ok(Self { text: text.to_owned(), query, is_one: is_one(text) })
    }

    /// What it leads to: the one value of a path that can lead to one alone, else the list of all that are found.
    pub fn find(&self, known: &Value) -> Option<Value> {
        let found = self.query.query(known);
        if self.is_one {
            return found.first().cloned();
        }
        Some(Value::Array(found.all().into_iter().cloned().collect()))
    }

    /// Whether it leads to anything.
    pub fn matches(&self, known: &Value) -> bool {
        self.query.query(known).first().is_some()
    }

    /// The first key, where it is a plain one.
    pub fn root(&self) -> Option<&str> {
        root_of(&self.text)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The first key of a path, when it is a plain one.
pub(crate) fn root_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix('$')?;
    if let Some(rest) = rest.strip_prefix('.') {
        if rest.starts_with('.') {
            return None;
        }
        let name = rest[..rest.find(['.', '[']).unwrap_or(rest.len())].trim_end();
        return (name != "*").then_some(name);
    }
    let quoted = rest.strip_prefix("['").and_then(|rest| rest.split_once("']"));
    let double = rest.strip_prefix("[\"").and_then(|rest| rest.split_once("\"]"));
    // Several names in one bracket, or one that is written with escapes, may be any of them.
    let is_plain = |key: &&str| !key.contains(['\'', '"', '\\', ',']);
    quoted.or(double).map(|(key, _)| key).filter(is_plain)
}

/// Whether a path can lead to one value alone: it has only names and numbers.
fn is_one(path: &str) -> bool {
    let mut rest = path.trim_start_matches('$').trim_start();
    while !rest.is_empty() {
        rest = if let Some(after) = rest.strip_prefix('[') {
            match after_selector(after.trim_start()) {
                Some(after) => after,
                None => return false,
            }
        } else if let Some(name) = rest.strip_prefix('.') {
            if name.starts_with(['.', '*']) {
                return false;
            }
            let end = name.find(['.', '[', ' ', '\t', '\n', '\r']).unwrap_or(name.len());
            &name[end..]
        } else {
            return false;
        }
        .trim_start();
    }
    true
}

/// What comes after a bracket that holds one name or one number.
fn after_selector(inside: &str) -> Option<&str> {
    let after = match inside.chars().next()? {
        quote @ ('\'' | '"') => {
            let mut letters = inside.char_indices().skip(1);
            loop {
                match letters.next()? {
                    (_, '\\') => drop(letters.next()?),
                    (at, letter) if letter == quote => break &inside[at + 1..],
                    _ => {}
                }
            }
        }
        _ => inside.trim_start_matches(|letter: char| letter == '-' || letter.is_ascii_digit()),
    };
    (after.len() < inside.len()).then(|| after.trim_start().strip_prefix(']')).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_numbers_lead_to_one_value_and_everything_else_to_a_list() {
        let known =
            json!({"input": {"a b": [1, {"x": null}], "]": 3}, "list": [{"n": 1}, {"n": 2}]});
        for (path, found) in [
            ("$.input['a b'][0]", Some(json!(1))),
            ("$.input['a b'][-1].x", Some(json!(null))),
            ("$.input[\"]\"]", Some(json!(3))),
            ("$ .list [1] .n", Some(json!(2))),
            ("$.input.nothing", None),
            ("$.list[*].n", Some(json!([1, 2]))),
            ("$.list[?@.n > 1].n", Some(json!([2]))),
            ("$.list[0:1].n", Some(json!([1]))),
            ("$.list[0,1].n", Some(json!([1, 2]))),
            ("$..n", Some(json!([1, 2]))),
            ("$.list[?@.n > 9]", Some(json!([]))),
            ("$", Some(known.clone())),
        ] {
            assert_eq!(Path::read(path).unwrap().find(&known), found, "{path}");
        }
        assert!(!Path::read("$.list[?@.n > 9]").unwrap().matches(&known));
        assert!(Path::read("$.input['a b'][1].x").unwrap().matches(&known));
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in
            ["", "input", "$.", "$[", "$.a..", "a.b", "$['a'", &format!("$.{}", "a".repeat(5000))]
        {
            assert!(Path::read(text).is_err(), "{text}");
        }
        let deep = format!("$[?{}@.a{}]", "(".repeat(80), ")".repeat(80));
        assert!(Path::read(&deep).is_err());
    }

    proptest! {
        #[test]
        fn a_path_that_leads_to_one_value_alone_never_finds_two(text in r"\$(\.[a-c]|\[[0-2]\]|\['[a-c]'\]|\[\*\]|\.\.[a-c]|\[0,1\]|\[:1\]){0,4}") {
            let known = json!({"a": {"b": [{"c": 1}, {"c": [2, 3]}], "c": {"a": 1}}, "b": [[1], [2, {"a": 3}]], "c": 4});
            if let Ok(path) = Path::read(&text) {
                let all = path.query.query(&known).all();
                prop_assert!(!path.is_one || all.len() <= 1);
                let is_plain = !text.contains(['*', ',', ':']) && !text.contains("..");
                prop_assert_eq!(path.is_one, is_plain);
            }
        }

        #[test]
        fn a_path_with_a_root_finds_nothing_anywhere_else(
            text in r"\$(\.[a-c]|\.\*|\['[a-c]'\]|\['[a-c]','[a-c]'\]|\[*\*\]|\.\.[a-c])(\.[a-c]|\[[0-2]\]|\[\*\]|\.\.[a-c]){0,3}"
        ) {
            let known = json!({"a": {"b": [{"c": 1}, {"c": [2, 3]}], "c": {"a": 1}}, "b": [[1], [2, {"a": 3}]], "c": {"b": {"c": 4}}});
            if let Ok(path) = Path::read(&text) && let Some(root) = path.root() {
                let alone = json!({root: known[root]});
                prop_assert_eq!(path.find(&known), path.find(&alone));
                let mut without = known.clone();
                without.as_object_mut().unwrap().remove(root);
                prop_assert!(!path.matches(&without), "{}", text);
            }
        }

        #[test]
        fn any_text_is_a_path_or_refused(text in ".{0,80}") {
            if let Ok(path) = Path::read(&text) {
                let _ = path.find(&json!({"input": {"a": [1]}}));
                let _ = path.root();
            }
        }
    }
}
