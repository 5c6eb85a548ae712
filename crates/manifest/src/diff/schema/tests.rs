use serde_json::{Value, json};

use super::*;

fn steps(old: &Value, new: &Value, side: Side, unknowns: Unknowns) -> Vec<Change> {
    let verbatim = |value: &Value| {
        let text = value.to_string();
        let parsed = crate::json::parse(&text);
        Json::of(&parsed.root.unwrap(), &text)
    };
    let pointer = Some(Pointer::root().key("input"));
    let place = Site { side, subject: "input schema of send".into(), pointer, unknowns };
    let mut changes = compare(&verbatim(old), &verbatim(new), &place);
    changes.sort_by_key(|change| change.class);
    changes
}

fn worst(old: &Value, new: &Value, side: Side) -> Option<Class> {
    steps(old, new, side, Unknowns::AsTheSchemaSays).first().map(|change| change.class)
}

/// A schema, a narrower one, and nothing else between them.
#[test]
fn a_narrower_input_breaks_and_a_wider_one_adds_while_an_output_goes_the_other_way() {
    let pairs = [
        (json!({}), json!({"type": "string"})),
        (json!({"type": ["string", "null"]}), json!({"type": "string"})),
        (json!({"type": "number"}), json!({"type": "integer"})),
        (json!({"enum": ["a", "b"]}), json!({"enum": ["a"]})),
        (json!({"enum": ["a", "b"]}), json!({"const": "b"})),
        (json!({"type": "string"}), json!({"type": "string", "enum": ["a"]})),
        (json!({"minimum": 1}), json!({"minimum": 2})),
        (json!({"minimum": 1}), json!({"exclusiveMinimum": 1})),
        (
            json!({"minimum": 9_007_199_254_740_992_u64}),
            json!({"minimum": 9_007_199_254_740_993_u64}),
        ),
        (json!({}), json!({"maximum": 10.5})),
        (json!({"maximum": 10}), json!({"maximum": 9.5})),
        (json!({"maxLength": 10}), json!({"maxLength": 9})),
        (json!({}), json!({"minItems": 1})),
        (json!({}), json!({"uniqueItems": true})),
        (json!({}), json!({"multipleOf": 2})),
        (json!({"multipleOf": 2}), json!({"multipleOf": 4})),
        (json!({}), json!({"pattern": "^a"})),
        (json!({}), json!({"format": "email"})),
        (json!({"items": {}}), json!({"items": {"type": "string"}})),
        (json!({"items": {"maximum": 3}}), json!({"items": {"maximum": 2}})),
        (json!({"properties": {"a": {}}}), json!({"properties": {"a": {}}, "required": ["a"]})),
        (json!({"properties": {"a": {}}}), json!({"properties": {"a": {"type": "null"}}})),
        (json!({"properties": {"a": {}}}), json!({"properties": {"a": false}})),
        (
            json!({"additionalProperties": {"type": ["string", "null"]}}),
            json!({"additionalProperties": {"type": "string"}}),
        ),
        (json!({}), json!({"additionalProperties": {"type": "string"}})),
        (
            json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}}),
            json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"maximum": 1}}}),
        ),
    ];
    for (wide, narrow) in &pairs {
        assert_eq!(worst(wide, narrow, Side::Input), Some(Class::Breaking), "{wide} {narrow}");
        assert_eq!(worst(narrow, wide, Side::Input), Some(Class::Additive), "{narrow} {wide}");
        assert_eq!(worst(wide, narrow, Side::Output), Some(Class::Additive), "{wide} {narrow}");
        assert_eq!(worst(narrow, wide, Side::Output), Some(Class::Breaking), "{narrow} {wide}");
    }
}

#[test]
fn properties_come_and_go_by_their_own_rules() {
    let closed =
        |properties: Value| json!({"properties": properties, "additionalProperties": false});
    let open = |properties: Value| json!({"properties": properties});
    let required = |properties: Value| json!({"properties": properties, "required": ["b"]});
    let (a, ab) = (json!({"a": {}}), json!({"a": {}, "b": {}}));
    let table = [
        (open(a.clone()), open(ab.clone()), Class::Additive, Class::Additive),
        (closed(a.clone()), closed(ab.clone()), Class::Additive, Class::Additive),
        (open(a.clone()), required(ab.clone()), Class::Breaking, Class::Additive),
        (open(ab.clone()), open(a.clone()), Class::NeedsReview, Class::Breaking),
        (closed(ab.clone()), closed(a.clone()), Class::Breaking, Class::Breaking),
        (required(ab), closed(a.clone()), Class::Breaking, Class::Breaking),
        (open(a.clone()), closed(a.clone()), Class::Breaking, Class::Additive),
        (closed(a.clone()), open(a), Class::Additive, Class::Additive),
        (
            json!({"additionalProperties": {"type": "string"}}),
            json!({"additionalProperties": {"type": "string"}, "properties": {"b": {"type": "null"}}}),
            Class::Breaking,
            Class::Breaking,
        ),
    ];
    for (old, new, input, output) in &table {
        assert_eq!(worst(old, new, Side::Input), Some(*input), "{old} {new}");
        assert_eq!(worst(old, new, Side::Output), Some(*output), "{old} {new}");
    }
}

#[test]
fn where_unknown_properties_are_refused_silence_is_a_closed_door() {
    let refused = |old, new| {
        let changes = steps(old, new, Side::Input, Unknowns::Refused);
        changes.first().map(|change| change.class)
    };
    let (two, one) = (json!({"properties": {"a": {}, "b": {}}}), json!({"properties": {"a": {}}}));
    assert_eq!(refused(&two, &one), Some(Class::Breaking));
    let aloud = json!({"properties": {"a": {}}, "additionalProperties": false});
    assert_eq!(refused(&one, &aloud), None);
    let free = json!({"properties": {"a": {}}, "additionalProperties": true});
    assert_eq!(refused(&free, &one), Some(Class::Breaking));
    assert_eq!(refused(&one, &free), Some(Class::Additive));
    let inside = |inner: &Value| json!({"properties": {"x": inner}});
    assert_eq!(refused(&inside(&two), &inside(&one)), Some(Class::NeedsReview));
}

#[test]
fn what_cannot_be_put_in_order_needs_review() {
    let pairs = [
        (json!({"$ref": "#/$defs/a"}), json!({"$ref": "#/$defs/b"})),
        (json!({"anyOf": [{"type": "string"}]}), json!({"anyOf": [{"type": "null"}]})),
        (json!({"anyOf": [{"type": "string"}]}), json!({"anyOf": [{"type": "string"}, {}]})),
        (json!({}), json!({"allOf": [{"type": "string"}]})),
        (json!({"not": {"type": "string"}}), json!({"not": {}})),
        (json!({"prefixItems": [{}]}), json!({"prefixItems": [{}, {}]})),
        (json!({}), json!({"dependentRequired": {"a": ["b"]}})),
        (json!({"patternProperties": {"^a": {}}}), json!({"patternProperties": {"^b": {}}})),
        (json!({"contains": {"minimum": 1}}), json!({"contains": {"minimum": 2}})),
        (json!({"unevaluatedProperties": true}), json!({"unevaluatedProperties": false})),
    ];
    for (old, new) in &pairs {
        for side in [Side::Input, Side::Output] {
            assert_eq!(worst(old, new, side), Some(Class::NeedsReview), "{old} {new}");
        }
    }
}

#[test]
fn a_part_used_by_reference_beneath_a_negation_is_never_called_harmless() {
    let schema =
        |limit: u32| json!({"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"maximum": limit}}});
    assert_eq!(worst(&schema(1), &schema(2), Side::Input), Some(Class::NeedsReview));
    assert_eq!(worst(&schema(2), &schema(1), Side::Output), Some(Class::NeedsReview));
}

#[test]
fn another_pattern_format_or_step_loses_some_values_either_way() {
    let pairs = [
        (json!({"pattern": "^a"}), json!({"pattern": "^b"})),
        (json!({"format": "email"}), json!({"format": "uri"})),
        (json!({"multipleOf": 2}), json!({"multipleOf": 3})),
        (json!({"type": "string"}), json!({"type": "null"})),
    ];
    for (old, new) in &pairs {
        for side in [Side::Input, Side::Output] {
            assert_eq!(worst(old, new, side), Some(Class::Breaking), "{old} {new}");
        }
    }
}

#[test]
fn notes_are_cosmetic_wherever_they_stand_and_a_default_is_additive() {
    let table = [
        (json!({"description": "a"}), json!({"description": "b"}), Class::Cosmetic),
        (json!({"anyOf": [{"title": "a"}]}), json!({"anyOf": [{"title": "b"}]}), Class::Cosmetic),
        (json!({"x-note": 1}), json!({}), Class::Cosmetic),
        (json!({}), json!({"$defs": {"a": {}}}), Class::Cosmetic),
        (json!({"default": 1}), json!({"default": 2}), Class::Additive),
    ];
    for (old, new, class) in &table {
        assert_eq!(worst(old, new, Side::Input), Some(*class), "{old} {new}");
    }
    // These names are properties here, not notes.
    let named = |name: &str| json!({"properties": {name: {"type": "string"}}});
    assert_eq!(worst(&named("title"), &named("default"), Side::Output), Some(Class::Breaking));
}

#[test]
fn the_same_said_otherwise_is_no_change() {
    let pairs = [
        (json!({"minimum": 1}), json!({"minimum": 1.0})),
        (json!({"enum": [1, {"a": 1, "b": 2}]}), json!({"enum": [{"b": 2.0, "a": 1}, 1.0]})),
        (json!({"type": "string"}), json!({"type": ["string"]})),
        (json!({"enum": ["a"]}), json!({"type": "string", "enum": ["a"]})),
        (json!({"const": 1}), json!({"enum": [1]})),
        (json!({}), json!({"minLength": 0, "uniqueItems": false, "items": true})),
        (json!({}), json!({"additionalProperties": {}})),
        (json!({"minimum": 1}), json!({"minimum": 1, "exclusiveMinimum": 0})),
    ];
    for (old, new) in &pairs {
        let changes = steps(old, new, Side::Input, Unknowns::AsTheSchemaSays);
        assert!(changes.is_empty(), "{old} {new} {changes:?}");
    }
}

#[test]
fn a_change_says_where_it_is() {
    let schema = |kind: &str| json!({"properties": {"a/b": {"items": {"type": kind}}}});
    let changes = steps(&schema("string"), &schema("null"), Side::Input, Unknowns::Refused);
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].subject, "input schema of send at /properties/a~1b/items");
    assert_eq!(changes[0].message, "the type was `string` and is now `null`");
    let pointer = changes[0].pointer.as_ref().unwrap();
    assert_eq!(pointer.as_str(), "/input/properties/a~1b/items");
}

/// Values, and schemas that draw the line between them in many ways.
fn corpus() -> (Vec<Value>, Vec<Value>) {
    let values = json!([
        null, true, 0, 1, 2, 2.5, 3, 4, -1, "", "a", "ab", "abc", "b", [], [1], [1, 1], [1, "a"], {},
        {"a": 1}, {"a": "x"}, {"a": null}, {"b": 1}, {"a": 1, "b": "y"}, {"c": 1}
    ]);
    let schemas = json!([
        {}, {"type": "string"}, {"type": ["string", "null"]}, {"type": "number"}, {"type": "integer"},
        {"type": ["integer", "string"]}, {"enum": [1, "a"]}, {"enum": ["a", "b", 1.0]}, {"const": 1},
        {"minimum": 1}, {"minimum": 2, "type": "number"}, {"exclusiveMinimum": 1}, {"maximum": 2},
        {"maximum": 2.5, "minimum": 0}, {"exclusiveMaximum": 3}, {"multipleOf": 2}, {"multipleOf": 3},
        {"multipleOf": 0.5}, {"minLength": 1}, {"maxLength": 2}, {"pattern": "^a"}, {"pattern": "b$"},
        {"minItems": 1}, {"maxItems": 1}, {"uniqueItems": true}, {"items": {"type": "integer"}},
        {"items": false}, {"prefixItems": [{"type": "string"}]}, {"contains": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false},
        {"type": "object", "properties": {"a": {"type": ["integer", "null"]}}, "additionalProperties": false},
        {"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": false},
        {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": false},
        {"type": "object", "additionalProperties": {"type": "integer"}}, {"maxProperties": 1},
        {"required": ["a"]}, {"propertyNames": {"enum": ["a", "b"]}}, {"patternProperties": {"^a": {"type": "null"}}},
        {"anyOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"maximum": 1}]},
        {"oneOf": [{"type": "integer"}, {"minimum": 2}]}, {"not": {"type": "string"}}, {"not": {}},
        {"allOf": [{"minimum": 1}, {"maximum": 3}]}, {"if": {"type": "string"}, "then": {"maxLength": 1}},
        {"$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}}, {"$ref": "#/$defs/x", "$defs": {"x": {"minimum": 2}}},
        {"not": {"$ref": "#/$defs/x"}, "$defs": {"x": {"minimum": 2}}},
        {"not": {"$ref": "#/$defs/x"}, "$defs": {"x": {"minimum": 1}}},
        {"dependentRequired": {"a": ["b"]}}
    ]);
    let list = |value: Value| value.as_array().unwrap().clone();
    (list(values), list(schemas))
}

/// The rule behind all rules: what is called safe loses no input and brings no unknown output.
#[test]
fn no_value_is_lost_by_a_change_that_is_called_safe() {
    let (values, schemas) = corpus();
    let accepts = |schema: &Value, value: &Value| {
        let (schema, value) = (schema.to_string(), value.to_string());
        let parsed = |text| crate::json::parse(text).root.unwrap();
        let judged =
            crate::schema::judge(&parsed(&schema), &parsed(&value), Unknowns::AsTheSchemaSays);
        judged.unwrap().is_empty()
    };
    let accepted: Vec<Vec<bool>> = schemas
        .iter()
        .map(|schema| values.iter().map(|value| accepts(schema, value)).collect())
        .collect();
    let is_open = |schema: &Value| schema.get("additionalProperties") != Some(&json!(false));
    for (old, before) in schemas.iter().zip(&accepted) {
        for (new, after) in schemas.iter().zip(&accepted) {
            let lost =
                values.iter().zip(before.iter().zip(after)).find(|(_, (was, is))| **was && !**is);
            let is_safe =
                |side| worst(old, new, side).is_none_or(|class| class > Class::NeedsReview);
            if let Some((value, _)) = lost {
                assert!(!is_safe(Side::Input), "{old} to {new} refuses {value}");
            }
            let won =
                values.iter().zip(before.iter().zip(after)).find(|(_, (was, is))| !**was && **is);
            // A new property in an answer is one that callers look past, by convention.
            let is_property = matches!(won, Some((Value::Object(_), _))) && !is_open(old);
            if let Some((value, _)) = won.filter(|_| !is_property) {
                assert!(!is_safe(Side::Output), "{old} to {new} answers {value}");
            }
        }
    }
}
