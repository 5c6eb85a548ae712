//! A YAML text as a JSON value, within bounds.
//!
//! What is made of events is counted before it is made: what an alias stands for counts as often as it is named.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// The most values of a document.
const MOST_VALUES: usize = 1_000_000;
/// How deep they may be nested.
const DEEPEST: usize = 128;

/// Reads one document. Names twice in a mapping are refused, as in JSON.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let mut reader = Reader { open: Vec::new(), anchors: HashMap::new(), values: 0, root: None };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| format!("it is no YAML: {error}"))?;
        let line = span.start.line();
        reader.take(event).map_err(|what| format!("{what} (line {line})"))?;
    }
    reader.root.ok_or_else(|| "it holds nothing".to_owned())
}

struct Reader {
    open: Vec<Open>,
    anchors: HashMap<usize, (Value, usize)>,
    values: usize,
    root: Option<Value>,
}

/// A list or mapping that is not closed yet.
struct Open {
    what: What,
    anchor: usize,
    /// How many values there were when it began.
    began: usize,
}

enum What {
    List(Vec<Value>),
    Mapping(Map<String, Value>, Option<String>),
}

impl Reader {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err("there is more than one document in it".to_owned())
            }
            Event::DocumentStart(_) => Ok(()),
            Event::Alias(anchor) => {
                let (value, weight) = self
                    .anchors
                    .get(&anchor)
                    .cloned()
                    .ok_or("an alias stands inside of what it names")?;
                self.count(weight)?;
                self.put(value)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let value = match (style, tag) {
                    (ScalarStyle::Plain, None) => plain(&text)?,
                    (_, Some(tag)) if !tag.suffix.ends_with("str") => {
                        return Err(format!("the tag `{}` is not read", tag.suffix));
                    }
                    _ => Value::String(text.into_owned()),
                };
                // The name of a member is its text, however it is written.
                self.count(1)?;
                self.note(anchor, &value, 1);
                self.put(value)
            }
            Event::SequenceStart(anchor, _) => self.begin(What::List(Vec::new()), anchor),
            Event::MappingStart(anchor, _) => self.begin(What::Mapping(Map::new(), None), anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { what, anchor, began }) = self.open.pop() else { return Ok(()) };
                let value = match what {
                    What::List(items) => Value::Array(items),
                    What::Mapping(members, _) => Value::Object(members),
                };
                self.note(anchor, &value, self.values - began);
                self.put(value)
            }
        }
    }

    fn begin(&mut self, what: What, anchor: usize) -> Result<(), String> {
        self.count(1)?;
        if self.open.len() >= DEEPEST {
            return Err(format!("values are nested more than {DEEPEST} deep"));
        }
        self.open.push(Open { what, anchor, began: self.values });
        Ok(())
    }

    fn count(&mut self, more: usize) -> Result<(), String> {
        self.values = self.values.saturating_add(more);
        if self.values > MOST_VALUES {
            return Err(format!("there are more than {MOST_VALUES} values in it"));
        }
        Ok(())
    }

    fn note(&mut self, anchor: usize, value: &Value, weight: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, (value.clone(), weight));
        }
    }

    fn put(&mut self, value: Value) -> Result<(), String> {
        match self.open.last_mut().map(|open| &mut open.what) {
            None => self.root = Some(value),
            Some(What::List(items)) => items.push(value),
            Some(What::Mapping(members, name)) => match name.take() {
                None => {
                    *name = Some(match value {
                        Value::String(text) => text,
                        Value::Number(_) | Value::Bool(_) => value.to_string(),
                        Value::Null | Value::Array(_) | Value::Object(_) => {
                            return Err("the name of a member is no text".to_owned());
                        }
                    });
                }
                Some(name) => {
                    if members.insert(name.clone(), value).is_some() {
                        return Err(format!("`{}` stands there twice", name.escape_default()));
                    }
                }
            },
        }
        Ok(())
    }
}

/// A text without quotes, as the core schema of YAML 1.2 understands it.
fn plain(text: &str) -> Result<Value, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        ".nan" | ".NaN" | ".inf" | "-.inf" | "+.inf" => {
            return Err(format!("`{text}` is a number that JSON has not"));
        }
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    })
}

fn number(text: &str) -> Option<Number> {
    let is_number = text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    if !is_number {
        return None;
    }
    let digits = text.strip_prefix('+').unwrap_or(text);
    if let Ok(whole) = digits.parse::<i64>() {
        return Some(whole.into());
    }
    Number::from_f64(digits.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_becomes_the_value_it_stands_for() {
        let text = "openapi: 3.0.3\nversion: '1.0'\npaths:\n  /a:\n    get: &g\n      tags: [x, \"y\"]\n      ok: true\n      none: ~\n    put: *g\n  200: 1.5\ntext: |\n  a\n  b\n";
        let expected = json!({
            "openapi": "3.0.3", "version": "1.0",
            "paths": {
                "/a": {"get": {"tags": ["x", "y"], "ok": true, "none": null}, "put": {"tags": ["x", "y"], "ok": true, "none": null}},
                "200": 1.5,
            },
            "text": "a\nb\n",
        });
        assert_eq!(read(text).unwrap(), expected);
    }

    #[test]
    fn what_would_grow_without_end_is_refused() {
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..9 {
            let below = format!("*a{}", level - 1);
            bomb += &format!("a{level}: &a{level} [{}]\n", vec![below; 10].join(","));
        }
        assert!(read(&bomb).unwrap_err().contains("more than"));
        assert!(read(&"[".repeat(500)).is_err());
        assert!(read(&("[".repeat(200) + &"]".repeat(200))).unwrap_err().contains("deep"));
    }

    #[test]
    fn what_json_would_refuse_is_refused() {
        for text in [
            "a: 1\na: 2\n",
            "a: .nan\n",
            "--- 1\n--- 2\n",
            "? [a]\n: b\n",
            "a: !!binary aGk=\n",
            "a: [\n",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
