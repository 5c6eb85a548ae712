//! An MCP server on standard input and output with one tool that says what it was told. It does as little as can be done, so
//! that what is measured is what stands before it. With the word `hang` it never answers a call, and with `flood` it answers with
//! noise that does not end: neighbours that nobody wants.

use std::io::{BufRead, Write};

use serde_json::{Value, json};

fn tool(number: usize) -> Value {
    let name = if number == 0 { "echo".to_owned() } else { format!("measure_thing_{number}") };
    json!({
        "name": name,
        "description": format!("Says what it was told, as number {number} of many tools that each say a little of what they are for"),
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": { "type": "string", "description": "What is said" },
                "times": { "type": "integer", "minimum": 1, "description": "How often" },
            },
            "required": ["text"],
        },
    })
}

fn main() {
    // How many tools it says that it has, or what is wrong with it.
    let word = std::env::args().nth(1).unwrap_or_default();
    let tools = word.parse().unwrap_or(1);
    let (input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in input.lines() {
        let Ok(line) = line else { return };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(id) = message.get("id") else { continue };
        let params = &message["params"];
        let answer = match message["method"].as_str().unwrap_or_default() {
            "initialize" => Ok(json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "echo", "version": "1" },
            })),
            "tools/list" => Ok(json!({ "tools": (0..tools).map(tool).collect::<Vec<_>>() })),
            "tools/call" if word == "hang" => continue,
            "tools/call" if word == "flood" => {
                let noise = "noise ".repeat(1000);
                while writeln!(output, "{noise}").is_ok() {}
                return;
            }
            "tools/call" => {
                Ok(json!({ "content": [{ "type": "text", "text": params["arguments"]["text"] }] }))
            }
            "ping" => Ok(json!({})),
            _ => Err(json!({ "code": -32601, "message": "no such method" })),
        };
        let text = match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        };
        if writeln!(output, "{text}").and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}
