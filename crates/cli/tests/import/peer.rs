//! A server on this machine: an MCP server and a small API, which remember what they were told.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// A request that was made.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

/// A server that runs as long as the test.
pub(crate) struct Peer {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Peer {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let heard = Arc::clone(&heard);
                std::thread::spawn(move || serve(stream, &heard));
            }
        });
        Self { port, asked }
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, heard: &Mutex<Vec<Asked>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut out = stream;
    while let Some(asked) = request(&mut reader) {
        heard.lock().unwrap().push(asked.clone());
        let (status, body) = answer(&asked);
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if out.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn request(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut headers = HashMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    Some(Asked { line, headers, body: String::from_utf8(body).ok()? })
}

fn answer(asked: &Asked) -> (&'static str, String) {
    if asked.line.starts_with("GET /api/pets") {
        return ("200 OK", json!([{"name": "Rex"}]).to_string());
    }
    if asked.line.starts_with("POST /api/pets") {
        return ("201 Created", asked.body.clone());
    }
    if !asked.line.starts_with("POST /mcp") {
        return ("405 Method Not Allowed", String::new());
    }
    let request: Value = serde_json::from_str(&asked.body).unwrap_or_default();
    if request.get("id").is_none() {
        return ("202 Accepted", String::new());
    }
    let tool = json!({"name": "shout", "description": "Says it louder.", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}});
    let result = match request["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "peer", "version": "1"},
        }),
        "tools/list" => json!({"tools": [tool]}),
        "tools/call" => {
            let text = request["params"]["arguments"]["text"].as_str().unwrap_or_default();
            json!({"content": [{"type": "text", "text": text.to_uppercase()}]})
        }
        _ => {
            let error = json!({"code": -32601, "message": "method not found"});
            let reply = json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
            return ("200 OK", reply.to_string());
        }
    };
    ("200 OK", json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string())
}
