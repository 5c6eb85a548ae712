//! An input schema as other systems demand it: with `object` at its root.

use serde_json::{Map, Value, json};

/// The schema with `object` at its root; none when no object fits it.
///
/// An input is an object in every dialect, so saying so takes nothing away.
pub(super) fn of_object(schema: Value) -> Option<Value> {
    let mut members = match schema {
        Value::Bool(true) => return Some(any_object()),
        Value::Object(members) => members,
        Value::Bool(false)
        | Value::Null
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_) => return None,
    };
    match members.get("type") {
        Some(Value::String(only)) if only == "object" => Some(Value::Object(members)),
        Some(Value::Array(types)) if types.contains(&json!("object")) => {
            members.insert("type".into(), "object".into());
            Some(Value::Object(members))
        }
        Some(_) => None,
        None => {
            let mut rooted = Map::from_iter([("type".to_owned(), "object".into())]);
            rooted.extend(members);
            Some(Value::Object(rooted))
        }
    }
}

/// The schema that every object fits.
pub(super) fn any_object() -> Value {
    json!({ "type": "object" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_of_an_object_is_left_as_it_is() {
        let schema = json!({ "title": "T", "type": "object", "properties": { "b": {}, "a": {} } });
        assert_eq!(of_object(schema.clone()).unwrap().to_string(), schema.to_string());
    }

    #[test]
    fn a_schema_without_a_type_is_given_one_and_keeps_its_order() {
        let rooted = of_object(json!({ "required": ["b"], "properties": {} })).unwrap();
        assert_eq!(rooted.to_string(), r#"{"type":"object","required":["b"],"properties":{}}"#);
        assert_eq!(of_object(json!(true)).unwrap(), any_object());
    }

    #[test]
    fn of_several_types_the_object_stays() {
        let rooted = of_object(json!({ "type": ["null", "object"], "minProperties": 1 })).unwrap();
        assert_eq!(rooted, json!({ "type": "object", "minProperties": 1 }));
    }

    #[test]
    fn a_schema_that_no_object_fits_has_no_form() {
        for schema in [json!(false), json!({ "type": "string" }), json!({ "type": ["null"] })] {
            assert_eq!(of_object(schema), None);
        }
    }
}
