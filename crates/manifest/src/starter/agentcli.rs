//! A new tools.json with one program in `tools/bin/`.

use serde_json::json;

use super::{About, StarterFile, example};

pub(super) fn files(about: &About) -> Vec<StarterFile> {
    let program = format!("tools/bin/{}", about.id);
    let document = json!({
        "tools": [{
            "name": about.id,
            "description": about.summary,
            "schema": example::input_schema(),
            "command": [format!("./{program}")],
            "timeoutSec": 10
        }]
    });
    let more = "One file may name many tools: put each program into `tools/bin/`, and an entry into `tools.json`.";
    vec![
        StarterFile::json("tools.json", &document),
        StarterFile::program(&program, example::STDIN_TOOL),
        about.readme(&program, "tools.json", more),
    ]
}
