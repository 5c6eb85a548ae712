//! What arguments look like, without what they say.
//!
//! `{"timezone": "UTC", "days": [1, 2]}` becomes `{"timezone": "string(3)", "days": ["integer",
//! "integer"]}`. The size of a text is that of its bytes. Names of members are kept when they
//! look like names; others may be data, and only their size is told.

use serde_json::{Map, Value};

/// How deep is looked.
const MAX_DEPTH: usize = 6;
/// How many values are looked at in all.
const MAX_VALUES: usize = 200;
/// How many items of one list are looked at.
const MAX_ITEMS: usize = 4;
/// The longest name that is kept.
const MAX_NAME: usize = 32;

/// Types and sizes of a value, and none of its content.
pub fn shape_of(value: &Value) -> Value {
    let mut left = MAX_VALUES;
    shape(value, MAX_DEPTH, &mut left)
}

fn shape(value: &Value, depth: usize, left: &mut usize) -> Value {
    *left = left.saturating_sub(1);
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "boolean".into(),
        Value::Number(number) if number.is_f64() => "number".into(),
        Value::Number(_) => "integer".into(),
        Value::String(text) => format!("string({})", text.len()).into(),
        Value::Array(items) if items.is_empty() || depth == 0 || *left == 0 => {
            format!("array({})", items.len()).into()
        }
        Value::Object(members) if members.is_empty() || depth == 0 || *left == 0 => {
            format!("object({})", members.len()).into()
        }
        Value::Array(items) => {
            let mut shapes: Vec<Value> = Vec::new();
            for item in items.iter().take(MAX_ITEMS) {
                if *left == 0 {
                    break;
                }
                shapes.push(shape(item, depth - 1, left));
            }
            if shapes.len() < items.len() {
                shapes.push(format!("… {} more", items.len() - shapes.len()).into());
            }
            shapes.into()
        }
        Value::Object(members) => {
            let mut shapes = Map::new();
            for (looked, (name, member)) in members.iter().enumerate() {
                if *left == 0 {
                    shapes
                        .insert("…".to_owned(), format!("{} more", members.len() - looked).into());
                    break;
                }
                let shown =
                    if is_name(name) { name.clone() } else { format!("name({})", name.len()) };
                let shown_shape = shape(member, depth - 1, left);
                shapes.insert(shown, shown_shape);
            }
            shapes.into()
        }
    }
}

/// Whether a member's name looks like one that a schema would give.
fn is_name(name: &str) -> bool {
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let is_plain =
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    begins && is_plain && name.len() <= MAX_NAME
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn types_and_sizes_are_told() {
        let value = json!({
            "timezone": "UTC", "count": 3, "ratio": 0.5, "deep": {"on": true, "none": null},
            "list": [1, "ü", 3, 4, 5], "empty": [], "nothing": {},
        });
        let expected = json!({
            "timezone": "string(3)", "count": "integer", "ratio": "number",
            "deep": {"on": "boolean", "none": "null"},
            "list": ["integer", "string(2)", "integer", "integer", "… 1 more"],
            "empty": "array(0)", "nothing": "object(0)",
        });
        assert_eq!(shape_of(&value), expected);
    }

    #[test]
    fn names_that_may_be_data_are_not_told() {
        let secret = "correct-horse-battery-staple-and-more";
        let value = json!({secret: 1, "jane@example.com": 2, "/home/jane": 3, "": 4});
        let text = shape_of(&value).to_string();
        for part in [secret, "jane"] {
            assert!(!text.contains(part), "{text}");
        }
    }

    #[test]
    fn any_value_has_a_small_shape() {
        let wide: Value =
            (0..100_000).map(|n| (format!("a{n}"), json!("x"))).collect::<Map<_, _>>().into();
        assert!(shape_of(&wide).to_string().len() < 8 * 1024);
        let deep = (0..100).fold(json!("secret"), |inner, _| json!({ "a": [inner] }));
        assert!(shape_of(&deep).to_string().len() < 200);
        let bushy = (0..3)
            .fold(json!(1), |inner, _| json!(vec![json!({"a": inner.clone(), "b": inner}); 8]));
        assert!(shape_of(&bushy).to_string().len() < 16 * 1024);
    }
}
