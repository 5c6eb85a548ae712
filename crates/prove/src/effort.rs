//! How much work a path is on an answer: tests come from strangers, and so do answers.

use serde_json::Value;

/// How many places may be looked at for one path.
const MOST: f64 = 4e6;

/// How large an answer is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// How many values are in it, itself among them.
    nodes: f64,
    /// How deep they lie in each other.
    depth: f64,
}

impl Size {
    /// The size of an answer.
    pub fn of(answer: &Value) -> Self {
        let within = |values: &mut dyn Iterator<Item = &Value>| {
            let start = Self { nodes: 1.0, depth: 1.0 };
            values.map(Self::of).fold(start, |sum, one| Self {
                nodes: sum.nodes + one.nodes,
                depth: sum.depth.max(one.depth + 1.0),
            })
        };
        match answer {
            Value::Array(elements) => within(&mut elements.iter()),
            Value::Object(members) => within(&mut members.values()),
            _ => within(&mut std::iter::empty()),
        }
    }
}

/// Whether a path can be followed in an answer of this size without looking at too many places, at the worst: every `..`
/// finds a place once for each of those above it, every further selector in brackets finds all of them once more, and
/// what a filter asks of the whole or of many is asked at every place.
pub fn is_bearable(path: &str, size: Size) -> bool {
    let (mut work, mut selectors, mut level, mut is_filter) = (size.nodes, 1.0, 0_u32, false);
    let mut letters = path.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            quote @ ('"' | '\'') => {
                while let Some(letter) = letters.next() {
                    match letter {
                        '\\' => drop(letters.next()),
                        letter if letter == quote => break,
                        _ => {}
                    }
                }
            }
            '[' => level += 1,
            ']' => {
                level = level.saturating_sub(1);
                if level == 0 {
                    work *= selectors;
                    (selectors, is_filter) = (1.0, false);
                }
            }
            ',' => selectors += 1.0,
            '?' => is_filter = true,
            '.' if letters.next_if_eq(&'.').is_some() => {
                work *= size.depth;
                if is_filter {
                    work *= size.nodes;
                }
            }
            '*' | '$' | ':' if is_filter => work *= size.nodes,
            _ => {}
        }
    }
    work * selectors <= MOST
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_people_ask_is_bearable_and_what_would_never_end_is_not() {
        let many: Vec<_> = (0..20_000).map(|id| json!({"id": id, "tags": ["a", "b"]})).collect();
        let answer = json!({ "items": many });
        let size = Size::of(&answer);
        assert_eq!((size.nodes, size.depth), (100_002.0, 5.0));
        for path in [
            "$",
            "$.items[0].id",
            "$.items[*].tags[*]",
            "$..id",
            "$.items[0,1,2,3]",
            "$.items[?@.id == 7].tags",
            "$['a,b..c?*']",
            "$.items[1:10:2]",
        ] {
            assert!(is_bearable(path, size), "{path}");
        }
        let twice = "[*,*]".repeat(40);
        for path in [
            "$..*..*..*",
            &format!("${twice}"),
            "$.items[?count($..id) > 3]",
            "$..[?@..id == 1]",
            "$[?@[?@[?@.*]]]",
        ] {
            assert!(!is_bearable(path, size), "{path}");
        }
        // Of a small answer nearly anything may be asked.
        let small = Size::of(&json!({"a": [1, 2, {"b": null}]}));
        assert!(is_bearable("$..*..*..[?@..b]", small));
    }
}
