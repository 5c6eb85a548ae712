//! What can be asked without MCP is asked everything that it describes, by a program that knows nothing else of it.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::{Desk, repository, write_below};
use crate::gate::{Gate, OPEN, home};
use crate::plain::token;

/// Where `./test` puts the program.
const PEERS: &str = "HAFT_API_PEERS";

/// Names of what is there, for whoever draws examples.
fn with_examples(mut document: Value) -> Value {
    for path in document["paths"].as_object_mut().unwrap().values_mut() {
        for operation in path.as_object_mut().unwrap().values_mut() {
            for parameter in
                operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten()
            {
                let example = match parameter["name"].as_str() {
                    Some("id") => "demo.echo",
                    Some("name") => "demo_echo",
                    Some("profile") => "half",
                    _ => continue,
                };
                parameter["example"] = example.into();
            }
            let body = "/requestBody/content/application~1json/schema/properties";
            if let Some(id) = operation.pointer_mut(body).and_then(|all| all.get_mut("id")) {
                id["examples"] = json!(["demo.echo"]);
            }
        }
    }
    document
}

#[test]
fn every_answer_is_as_the_document_describes_it() {
    let Some(peers) = std::env::var_os(PEERS) else {
        assert!(std::env::var_os("HAFT_TEST_SERVERS").is_none(), "schemathesis is not installed");
        return;
    };
    let desk = home(&[], &format!("{OPEN}[profile.half]\ntools = [\"demo.echo\"]\n"));
    for name in ["echo", "text-stats"] {
        let folder = repository().join("examples/mcpkg").join(name);
        desk.done(&["install", folder.to_str().unwrap(), "--yes"]);
    }
    let tokens = ["agent", "installer", "owner"].map(|role| token(&desk, &[role, "--role", role]));
    let gate = Gate::open(&desk, &[]);
    let document = gate.send("GET", "/openapi.json", &[], "").body;
    let document = with_examples(serde_json::from_str(&document).unwrap());
    write_below(desk.0.path(), "openapi.json", &document.to_string());
    let all = |token: &str, more: &[&str]| asked(&desk, &gate, &peers, token, more);
    // What is drawn is nearly never what is installed, so it is refused as it should be; what would take all of it away comes last.
    let harmless = ["--exclude-path-regex", "(remove|factory_reset)"];
    for token in &tokens {
        all(token, &harmless);
    }
    for token in &tokens {
        all(token, &["--include-path-regex", "(remove|factory_reset)"]);
    }
    // The token of the owner may take all of it away, and did.
    assert_eq!(desk.done(&["list", "--json"]).json()["packages"], json!([]));
    assert_eq!(desk.done(&["audit", "verify"]).code, 0);
}

fn asked(desk: &Desk, gate: &Gate, peers: &std::ffi::OsStr, token: &str, more: &[&str]) {
    let ran = Command::new("python3")
        .env("PYTHONPATH", peers)
        .current_dir(desk.0.path())
        .args(["-m", "schemathesis.cli", "run", "openapi.json", "--no-color"])
        .args(["--url", &format!("http://{}", gate.address), "--checks", "all"])
        .args(["--exclude-checks", "positive_data_acceptance"])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .args(["--max-examples", "10", "--seed", "1"])
        .args(more)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains(" generated, ") && !said.contains('❌'), "{said}");
}
