//! Our own judges against those of others: JSON against `serde_json`, schemas and values against
//! `jsonschema`, the quick look at a pattern against the compiled one.

use jsonschema::{Draft, Validator};
use manifest::finding::{Finding, Severity};
use manifest::json::{Pointer, parse};
use manifest::schema::{self, Unknowns};
use proptest::prelude::{prop_assert, prop_assert_eq};
use serde_json::{Value, json};
use testkit::bytes::{damaged_texts, json_texts};
use testkit::draws::holds;
use testkit::fuzz;
use testkit::schemas::{mutants, patterns_and_texts, schemas_and_values, tangles};

/// How many cases of each kind are tried.
const CASES: u32 = 2_500;

#[test]
fn what_is_json_is_json_for_serde_json_too() {
    holds(CASES, &json_texts(), |text| fuzz::json(text.as_bytes()));
    holds(2 * CASES, &damaged_texts(), |bytes| fuzz::json(&bytes));
}

#[test]
fn deep_json_is_read_as_deep_as_the_limit() {
    for depth in [1, 126, 127, 128, 129, 200] {
        let lists = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let objects = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        fuzz::json(lists.as_bytes()).unwrap();
        fuzz::json(objects.as_bytes()).unwrap();
    }
}

#[test]
fn a_schema_that_passes_the_check_can_be_built() {
    let can_be_built = |(schema, _): (Value, Value)| {
        if is_sound(&schema) {
            prop_assert!(build(&schema).is_ok(), "{:?}", build(&schema).err());
        }
        Ok(())
    };
    holds(CASES, &schemas_and_values(), can_be_built);
    holds(CASES, &mutants(), can_be_built);
    holds(CASES, &tangles(), can_be_built);
}

#[test]
fn a_schema_that_the_meta_schema_refuses_does_not_pass_the_check() {
    holds(2 * CASES, &mutants(), |(schema, _)| {
        if !jsonschema::draft202012::meta::is_valid(&schema) {
            prop_assert!(!is_sound(&schema));
        }
        Ok(())
    });
}

#[test]
fn a_value_gets_the_same_verdict_by_a_sound_schema() {
    let get_the_same_verdict = |(schema, value): (Value, Value)| {
        if let Some((ours, theirs)) = verdicts(&schema, &value) {
            prop_assert_eq!(ours, theirs, "ours, then theirs");
        }
        Ok(())
    };
    holds(2 * CASES, &schemas_and_values(), get_the_same_verdict);
    holds(CASES, &mutants(), get_the_same_verdict);
    holds(CASES, &tangles(), get_the_same_verdict);
}

#[test]
fn a_pattern_that_passes_the_check_compiles_and_one_look_is_as_good_as_many() {
    holds(4 * CASES, &patterns_and_texts(), |(pattern, text)| {
        fuzz::pattern_and_text(&pattern, &text)
    });
}

#[test]
fn a_pattern_means_the_same_in_a_schema() {
    holds(CASES, &patterns_and_texts(), |(pattern, text)| {
        if let (Some(ours), Ok(theirs)) =
            (schema::matches_once(&pattern, &text), build(&json!({"pattern": pattern})))
        {
            prop_assert_eq!(ours, theirs.is_valid(&text.into()));
        }
        Ok(())
    });
}

/// Whether the check finds no error.
fn is_sound(schema: &Value) -> bool {
    findings(schema).iter().all(|finding| finding.severity == Severity::Warning)
}

fn findings(schema: &Value) -> Vec<Finding> {
    let text = schema.to_string();
    schema::check(
        &parse(&text).root.expect("serde_json writes JSON"),
        &Pointer::root(),
        &schema::Budget::default(),
    )
}

/// Our verdict and theirs; none when the schema is not sound, or the question is too costly.
fn verdicts(schema: &Value, value: &Value) -> Option<(bool, bool)> {
    if !is_sound(schema) {
        return None;
    }
    let theirs = build(schema).ok()?.is_valid(value);
    let (schema, value) = (schema.to_string(), value.to_string());
    let (schema, value) = (parse(&schema).root?, parse(&value).root?);
    let mismatches = schema::judge(&schema, &value, Unknowns::AsTheSchemaSays).ok()?;
    Some((mismatches.is_empty(), theirs))
}

/// Builds a schema as 2020-12, whatever drafts it names, with nothing fetched.
fn build(schema: &Value) -> Result<Validator, String> {
    let mut schema = schema.clone();
    to_the_letter(&mut schema);
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(false)
        .offline()
        .build(&schema)
        .map_err(|error| error.to_string())
}

/// Drops every `$schema`, and writes references as URIs: authors are not that strict.
/// A property of such a name is a schema, not a text.
fn to_the_letter(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|key, value| key != "$schema" || !value.is_string());
            for (key, value) in members {
                match value {
                    Value::String(text) if key == "$ref" || key == "$dynamicRef" => {
                        *text = percent_encoded(text);
                    }
                    other => to_the_letter(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(to_the_letter),
        _ => {}
    }
}

fn percent_encoded(text: &str) -> String {
    let is_strange = |byte: u8| !byte.is_ascii_graphic() || b"\\^|[]{}<>\"`".contains(&byte);
    let written = |byte: u8| {
        if is_strange(byte) { format!("%{byte:02X}") } else { char::from(byte).to_string() }
    };
    text.bytes().map(written).collect()
}
