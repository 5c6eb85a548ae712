//! A shelf of packages to look at: good ones, plain ones, and one that is hostile wherever it can be.

use package::archive::{Archive, Trailer};
use package::key::PrivateKey;
use package::limits::Limits;
use package::signature;
use serde_json::{Value, json};

use super::packages::{archive, bundle};
use super::tested;
use super::world::World;

const README: &str = "# Read PDFs\n\nExtracts **text**, tables and structure from PDF files *on this machine*.\n\n\
    ## Use\n\n```sh\nhaft call --from acme.pdf.read-1.2.0.mcpkg read '{\"path\": \"a.pdf\"}'\n```\n\n\
    | option | what it does |\n|---|---|\n| `pages` | which pages, as `1-3` |\n| `mode` | how exact it is |\n\n\
    - [x] works offline\n- [ ] reads handwriting\n\n> Nothing leaves the machine.\n\n\
    See [the guide](https://example.com/guide) and ![a diagram](https://example.com/diagram.png).\n";

/// A tool in the dialect mcpkg with everything a page shows.
pub(crate) fn reader(version: &str, signed: bool) -> Vec<u8> {
    let manifest = json!({
        "toolId": "acme.pdf.read", "name": "Read PDFs locally", "version": version,
        "description": "Extracts text, tables and structure from PDF files on this machine. Nothing leaves it.",
        "capabilities": ["pdf", "text", "reading"],
        "endpoint": {"type": "local", "command": "node ./index.js"},
        "input_schema": {
            "type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {
                "path": {"type": "string", "minLength": 1, "description": "The file to read"},
                "pages": {"type": "string", "pattern": "^[0-9,-]+$", "description": "For example 1-3; all by default"},
                "mode": {"type": "string", "enum": ["fast", "exact", "layout"], "default": "fast",
                         "description": "How exact it is"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 5000, "default": 200},
                "window": {"type": "object", "description": "A part of each page", "required": ["from"],
                    "properties": {"from": {"type": "number", "minimum": 0}, "to": {"type": "number"},
                        "unit": {"enum": ["mm", "pt"], "default": "pt"}}},
                "words": {"type": "array", "maxItems": 10, "items": {"type": "string"},
                          "description": "Only pages with one of these"}
            }
        },
        "output_schema": {"type": "object", "properties": {
            "pages": {"type": "array", "items": {"type": "object", "properties": {
                "number": {"type": "integer"}, "text": {"type": "string"}}}},
            "total": {"type": "integer", "description": "How many pages there are"}}},
        "auth": {"type": "none"},
        "tests": ["tests/one.test.json", "tests/two.test.json"],
        "meta": {"publisher": {"id": "acme", "name": "Acme"}, "license": "Apache-2.0",
                 "homepage": "https://example.com/pdf"}
    });
    let case = |name: &str, about: &str| {
        json!({"name": name, "description": about, "input": {"path": "a.pdf"},
            "expected": {"total": 1}, "assertions": [{"path": "$.total", "equals": 1}]})
        .to_string()
    };
    let (one, two) =
        (case("one_page", "A file of one page."), case("no_page", "A file that is empty."));
    let index = format!("// {version}\n");
    let text = manifest.to_string();
    let mut files: Vec<(&str, &[u8])> = vec![
        ("README.md", README.as_bytes()),
        ("index.js", index.as_bytes()),
        ("manifest.json", text.as_bytes()),
        ("tests/one.test.json", one.as_bytes()),
        ("tests/two.test.json", two.as_bytes()),
    ];
    let bytes = archive(&files);
    if !signed {
        return bytes;
    }
    let opened = Archive::from_bytes(bytes, Trailer::Refused, &Limits::DEFAULT).unwrap();
    let key = PrivateKey::generate().unwrap();
    let seal = signature::sign(&opened.listing().unwrap(), None, &key);
    files.push((signature::PATH, seal.as_bytes()));
    files.sort_unstable();
    archive(&files)
}

/// A tool of no particular interest.
fn plain(id: &str, name: &str, about: &str, tags: &[&str]) -> Vec<u8> {
    let manifest = json!({
        "toolId": id, "name": name, "version": "1.0.0", "description": about, "capabilities": tags,
        "endpoint": {"type": "local", "command": "python3 ./main.py"},
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "output_schema": {"type": "object"}
    });
    archive(&[("main.py", b"print()"), ("manifest.json", manifest.to_string().as_bytes())])
}

/// Text that would do something, if anything let it.
pub(crate) const HOSTILE: &str = "<script>window.owned=1</script><img src=x onerror=\"window.owned=1\">\
    \"'><svg onload=window.owned=1> {{ 7 * 7 }} {% raw %} ${7*7} \u{202e}gnp.exe\u{2066} \u{200b}\u{e0041} javascript:alert(1)";

/// A tool that is hostile wherever an author has a say.
pub(crate) fn hostile() -> Vec<u8> {
    let word = "W".repeat(3_000);
    let marks = format!("Z{}", "\u{301}".repeat(400));
    let nasty = format!("{HOSTILE} {marks} {word}");
    let manifest = json!({
        "toolId": "evil.tool", "name": nasty, "version": "6.6.6", "description": nasty,
        "capabilities": [HOSTILE, "</a><script>window.owned=1</script>", "a,b", word[..500]],
        "endpoint": {"type": "local", "command": "sh -c 'window.owned=1'"},
        "input_schema": {"type": "object", "description": nasty,
            "properties": {
                "</td><script>window.owned=1</script>": {"type": "string", "description": nasty, "default": nasty,
                    "enum": [nasty, "<b>", "\u{202e}"], "pattern": "<script>|\\u202e"},
                "deep": {"type": "object", "properties": {"er": {"type": "object", "properties": {
                    "est": {"type": "array", "items": {"type": "object", "properties": {"end": {"const": HOSTILE}}}}}}}}}},
        "output_schema": {"type": "string", "description": nasty, "title": HOSTILE},
        "auth": {"type": "none"},
        "tests": ["tests/x.test.json"],
        "meta": {"publisher": {"id": HOSTILE, "name": format!("{HOSTILE} {}", &word[..100])}, "license": "MIT",
                 "homepage": "https://example.com/\"onmouseover=\"window.owned=1"}
    });
    let case =
        json!({"name": nasty, "description": nasty, "input": {}, "expected": {}}).to_string();
    let readme = format!(
        "# {nasty}\n\n<script>window.owned=1</script>\n\n<img src=x onerror=window.owned=1>\n\n\
         [click](javascript:window.owned=1) [data](data:text/html,<script>window.owned=1</script>) \
         [](https://example.com/) [tab](java\tscript:window.owned=1) <javascript:window.owned=1>\n\n\
         ![x](https://example.com/track.png \"onerror=window.owned=1\")\n\n\
         [x]: javascript:window.owned=1\n[x]\n\n<style>body{{display:none}}</style>\n\n\
         <iframe srcdoc=\"<script>parent.owned=1</script>\"></iframe>\n\n<form action=https://example.com><button>x</button></form>\n\n\
         ```\"><script>window.owned=1</script>\n{word}\n```\n\n| {word} | b |\n|---|---|\n| <svg onload=window.owned=1> | {word} |\n\n\
         {}x\n\n###### deep\n\n# up\n\n<meta http-equiv=refresh content=\"0;url=https://example.com/\">\n\n<base href=//example.com>\n",
        "> ".repeat(300)
    );
    archive(&[
        ("README.md", readme.as_bytes()),
        ("manifest.json", manifest.to_string().as_bytes()),
        ("tests/x.test.json", case.as_bytes()),
    ])
}

/// A server that speaks MCP: on the network, or as a program.
fn server(id: &str, runtime: &Value) -> Vec<u8> {
    let path = testkit::files::repo().join("examples/install-manifest/dice-server/manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    manifest["tool"]["id"] = id.into();
    manifest["runtime"] = runtime.clone();
    archive(&[("manifest.json", manifest.to_string().as_bytes())])
}

/// The files of an example.
pub(crate) fn example(folder: &str) -> Vec<u8> {
    let root = testkit::files::repo().join("examples").join(folder);
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                files.push((name, std::fs::read(path).unwrap()));
            }
        }
    }
    files.sort();
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    archive(&files)
}

/// Puts everything on the shelf.
pub(crate) async fn fill(world: &World) {
    let publish = async |bytes: Vec<u8>| {
        let answer = world.publish(bytes).await;
        assert_eq!(answer.status, 201, "{}", answer.json());
    };
    publish(hostile()).await;
    for number in 0..45 {
        let id = format!("many.tool{number:02}");
        let tag = ["text", "numbers", "files"][number % 3];
        publish(plain(
            &id,
            &format!("Tool {number}"),
            "One of many tools that count words.",
            &[tag],
        ))
        .await;
    }
    publish(bundle("tool:post.mail", "post.mail", "2.0.0").to_string().into_bytes()).await;
    let digest = "5f".repeat(32);
    let remote = json!({"kind": "mcp-http", "endpoint_url": "https://mcp.example.com/dice", "install":
        {"method": "url", "url": "https://example.com/dice", "sha256": digest}});
    publish(server("dice-remote", &remote)).await;
    let local = json!({"kind": "mcp-stdio", "install": {"method": "npm", "package": "@example/dice", "version_spec": "1.0.0"},
        "entrypoint": {"command": ["dice-mcp", "--say", "it's $HOME"]}});
    publish(server("dice-local", &local)).await;
    for folder in [
        "mcpkg/text-clean",
        "mcpkg/text-stats",
        "mcpkg/pipeline",
        "mcpkg/convert-units",
        "mcpkg/echo",
        "install-manifest/text-find",
        "install-manifest/dice-server",
        "install-manifest/word-count",
        "capability/greet",
    ] {
        publish(example(folder)).await;
    }
    for version in ["0.9.0", "1.0.0", "1.0.1", "1.0.2", "1.1.0", "1.1.1", "1.2.0-beta.1"] {
        publish(reader(version, false)).await;
    }
    let highest = reader("1.2.0", true);
    let report = tested::report(&highest, &tested::READER, "one_page").to_string();
    assert_eq!(tested::publish(world, &highest, &report).await.status, 201);
    let yank = "/v1/tools/acme.pdf.read/versions/1.0.0/yank";
    let reason = r#"{"reason": "leaks temporary files"}"#;
    let done = world.send(axum::http::Method::POST, yank, &world.token, reason).await;
    assert_eq!(done.status, 204);
    publish(plain("gone.tool", "Gone", "Was taken back.", &[])).await;
    let yank = "/v1/tools/gone.tool/versions/1.0.0/yank";
    assert_eq!(world.send(axum::http::Method::POST, yank, &world.token, "").await.status, 204);
}
