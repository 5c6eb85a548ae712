use serde_json::{Value, json};

use super::Edit::{Remove, Set};
use super::{check_basics, check_rows};
use crate::diff::Class::{Additive, Breaking, Cosmetic, NeedsReview};

fn sample() -> Value {
    json!({"tools": [
        {"name": "get_time", "description": "Tells the time.", "command": ["./tools/bin/get_time"],
         "timeoutSec": 5, "envPassthrough": ["TZ"],
         "schema": {"type": "object", "properties": {"zone": {"type": "string"}}}},
        {"name": "get_date", "command": ["./tools/bin/get_date"]}
    ]})
}

#[test]
fn nothing_changes_nothing() {
    check_basics(&sample(), &sample());
}

#[test]
fn each_field_is_classed() {
    let tool = json!({"name": "more", "command": ["./tools/bin/more"]});
    check_rows(
        &sample(),
        &sample(),
        vec![
            ("/tools/0", Remove, Breaking, "action get_time"),
            // The dialect cannot say what a tool changes.
            ("/tools/-", Set(tool), NeedsReview, "action more"),
            ("/tools/0/description", Set(json!("Tells it.")), Cosmetic, "action get_time"),
            ("/tools/0/command/-", Set(json!("-v")), NeedsReview, "implementation get_time"),
            ("/tools/0/timeoutSec", Set(json!(1)), NeedsReview, "action get_time"),
            ("/tools/0/timeoutSec", Remove, Additive, "action get_time"),
            (
                "/tools/0/envPassthrough/-",
                Set(json!("AWS_SECRET_ACCESS_KEY")),
                NeedsReview,
                "variable AWS_SECRET_ACCESS_KEY",
            ),
            ("/tools/1/envPassthrough", Set(json!(["TZ"])), NeedsReview, "action get_date"),
            ("/tools/0/envPassthrough", Remove, Additive, "action get_time"),
            ("/tools/0/schema", Remove, NeedsReview, "input schema of get_time"),
            (
                "/tools/0/schema/properties/zone/type",
                Set(json!("null")),
                Breaking,
                "input schema of get_time at /properties/zone",
            ),
        ],
    );
}

#[test]
fn tools_in_another_order_are_the_same() {
    let tools: Vec<Value> = sample()["tools"].as_array().unwrap().iter().rev().cloned().collect();
    check_basics(&sample(), &json!({"tools": tools}));
}
