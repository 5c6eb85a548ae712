//! A new describe document and its Node module.

use serde_json::{Value, json};

use super::{About, StarterFile, example, fill};

pub(super) fn files(about: &About) -> Vec<StarterFile> {
    let document = json!({
        "id": about.id,
        "name": about.name,
        "version": "0.1.0",
        "summary": about.summary,
        "entry": { "runtime": "node", "main": "dist/index.js", "export": "tool" },
        "schema": { "input": example::input_schema(), "output": example::output_schema() },
        "requiresApproval": false,
        "requiredSecrets": []
    });
    // A JSON string is a JavaScript string.
    let [name, summary] =
        [&about.name, &about.summary].map(|text| Value::from(text.as_str()).to_string());
    let module = fill(
        include_str!("templates/index.js"),
        &[("\"@NAME@\"", &name), ("\"@SUMMARY@\"", &summary)],
    );
    let more = "Name the secrets it needs in `requiredSecrets`; they come in `context.env`, the second argument of `execute`.";
    vec![
        StarterFile::json("tool.json", &document),
        StarterFile::text("dist/index.js", &module),
        StarterFile::json("package.json", &json!({ "private": true, "type": "module" })),
        about.readme("dist/index.js", "tool.json", more),
    ]
}
