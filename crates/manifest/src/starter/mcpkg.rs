//! A new mcpkg package, with a test and an example.

use serde_json::json;

use super::{About, StarterFile, example};

pub(super) fn files(about: &About) -> Vec<StarterFile> {
    let document = json!({
        "toolId": about.id,
        "name": about.name,
        "version": "0.1.0",
        "description": about.summary,
        "capabilities": tags(&about.id),
        "implementations": [{
            "id": "python",
            "language": "python",
            "runtime": "python3",
            "endpoint": { "type": "local", "command": "python3 ./tool.py", "timeoutMs": 10000 }
        }],
        "input_schema": example::input_schema(),
        "output_schema": example::output_schema(),
        "tests": ["tests/count.test.json"],
        "examples": ["examples/count.md"]
    });
    let test = json!({
        "name": "counts_three_words",
        "description": "Words are what blanks separate.",
        "input": example::input(),
        "expected": example::output()
    });
    let more = "`tests/count.test.json` says what it must answer, `examples/count.md` shows agents how to call it.";
    vec![
        StarterFile::json("manifest.json", &document),
        StarterFile::text("tool.py", example::ARGUMENT_TOOL),
        StarterFile::json("tests/count.test.json", &test),
        StarterFile::text("examples/count.md", include_str!("templates/example.md")),
        about.readme("tool.py", "manifest.json", more),
    ]
}

/// Words to find a package by: the parts of its id, the publisher apart.
pub(super) fn tags(id: &str) -> Vec<&str> {
    id.split('.').skip(1).collect()
}
