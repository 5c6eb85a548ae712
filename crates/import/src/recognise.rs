//! What a file is, by its content.

use manifest::dialect;
use manifest::json::parse;

use crate::config::{Path, USUAL};
use crate::jsonc::blanked;
use crate::openapi;

/// What a file is.
#[derive(Clone, Debug)]
pub enum Recognised {
    /// The settings of a client in JSON, with its servers below those keys.
    Json(Path),
    /// The settings of a client in TOML.
    Toml,
    /// An OpenAPI document.
    OpenApi(Box<serde_json::Value>),
    /// A package, or a manifest of one.
    Package,
}

/// What a file is, or that it is nothing that can be imported.
///
/// # Errors
/// Says what it was looked at for, and how it is broken.
pub fn recognise(bytes: &[u8]) -> Result<Recognised, String> {
    if bytes.starts_with(b"PK\x03\x04") {
        return Ok(Recognised::Package);
    }
    let text =
        std::str::from_utf8(bytes).map_err(|_| "it is neither a text nor an archive".to_owned())?;
    if text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '/']) {
        return json(text);
    }
    if let Ok(document) = toml_edit::Document::parse(text)
        && document.get("mcp_servers").is_some()
    {
        return Ok(Recognised::Toml);
    }
    match openapi::read(bytes) {
        Ok(document) if openapi::is_openapi(&document) => {
            Ok(Recognised::OpenApi(Box::new(document)))
        }
        Ok(_) => Err(NOTHING.to_owned()),
        Err(why) => Err(format!("{NOTHING}: {why}")),
    }
}

const NOTHING: &str = "it is neither a client's settings (`mcpServers`, `servers`, `[mcp_servers.…]`), an OpenAPI document, nor a package";

fn json(text: &str) -> Result<Recognised, String> {
    let plain = blanked(text);
    let parsed = parse(&plain);
    let Some(root) = parsed.root else {
        let why =
            parsed.faults.first().map_or_else(String::new, |fault| format!(": {}", fault.message));
        // What begins with a brace may be YAML.
        return match openapi::read(text.as_bytes()) {
            Ok(document) if openapi::is_openapi(&document) => {
                Ok(Recognised::OpenApi(Box::new(document)))
            }
            _ => Err(format!("it is no JSON{why}")),
        };
    };
    // A package that is known by its own keys is never taken for settings.
    let is_package = matches!(dialect::recognise(&root), Some((Some(_), _)));
    let path = USUAL.iter().find(|path| root.at(path).is_some_and(manifest::json::Node::is_object));
    match path {
        Some(path) if !is_package || path[0] == "mcpServers" => {
            Ok(Recognised::Json(path.iter().map(|&key| key.to_owned()).collect()))
        }
        _ if is_package => Ok(Recognised::Package),
        _ => {
            let document = openapi::read(text.as_bytes())?;
            if openapi::is_openapi(&document) {
                return Ok(Recognised::OpenApi(Box::new(document)));
            }
            Err(NOTHING.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_content() {
        let name = |text: &str| match recognise(text.as_bytes()) {
            Ok(Recognised::Json(path)) => path.join("."),
            Ok(Recognised::Toml) => "toml".to_owned(),
            Ok(Recognised::OpenApi(_)) => "openapi".to_owned(),
            Ok(Recognised::Package) => "package".to_owned(),
            Err(why) => why,
        };
        for (text, expected) in [
            ("// mine\n{\"mcpServers\": {},}", "mcpServers"),
            ("{\"servers\": {\"a\": {}}}", "servers"),
            ("{\"mcp\": {\"servers\": {}}}", "mcp.servers"),
            ("[mcp_servers.a]\ncommand = \"x\"", "toml"),
            ("{\"openapi\": \"3.1.0\", \"info\": {}, \"servers\": [], \"paths\": {}}", "openapi"),
            ("openapi: 3.0.0\ninfo: {}\n", "openapi"),
            (
                "{\"name\": \"a/b\", \"description\": \"x\", \"version\": \"1.0.0\", \"remotes\": []}",
                "package",
            ),
            ("{\"toolId\": \"a.b\"}", "package"),
            ("PK\u{3}\u{4}…", "package"),
        ] {
            assert_eq!(name(text), expected, "{text}");
        }
        for text in ["{}", "hello", "[1]", "{\"a\": ", ""] {
            assert!(recognise(text.as_bytes()).is_err(), "{text}");
        }
    }
}
