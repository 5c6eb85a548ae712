//! What other worlds are told of a version: made once, when it is published, and kept ready to be sent.
//!
//! Nothing is invented: where a version cannot be told in the words of another world, that world is told nothing.

use manifest::convert::{Request, convert};
use manifest::dialect::Dialect;
use manifest::document::Options;
use manifest::json::Pointer;
use manifest::model::{Package, Trust};
use registry::server_json;
use serde_json::{Value, json};

/// The longest entry of a catalog, in bytes.
const MOST: usize = 256 << 10;

/// What other worlds are told of a version, each in its own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doors {
    /// Its name in the MCP world.
    pub server_name: Option<String>,
    /// Its server.json.
    pub server: Option<String>,
    /// Its entry in a well-known index, the address of the manifest apart.
    pub listed: Option<String>,
    /// Its entry in a catalog of capabilities, the address of the package apart.
    pub capability: Option<String>,
}

impl Doors {
    /// What can be told of a package. `id` is what was given for a manifest that has none of its own.
    pub fn of(package: &Package, manifest: &[u8], id: Option<&str>) -> Self {
        let told = server_json::of_package(package, manifest);
        Self {
            server: told.as_ref().map(|told| told.server.to_string()),
            server_name: told.map(|told| told.name),
            listed: listed(package).map(|entry| entry.to_string()),
            capability: capability(package, manifest, id)
                .map(|entry| entry.to_string())
                .filter(|text| text.len() <= MOST),
        }
    }
}

/// The entry of an install-manifest in a well-known index.
fn listed(package: &Package) -> Option<Value> {
    if package.dialect != Dialect::InstallManifest {
        return None;
    }
    let mut entry = json!({
        "id": package.id,
        "manifest_url": "",
        "manifest_version": package.format_version?,
        "status": "active",
    });
    if let Some(summary) = &package.summary {
        entry["summary"] = summary.as_str().into();
    }
    if !package.tags.is_empty() {
        entry["tags"] = package.tags.clone().into();
    }
    Some(entry)
}

/// The entry in a catalog of capabilities. What its author did not say cannot be said for them: a tool of
/// another dialect is told only when nothing is missing but what the registry knows itself.
fn capability(package: &Package, manifest: &[u8], id: Option<&str>) -> Option<Value> {
    let origin = json!({"source": "url", "digest": "0".repeat(64)});
    let mut entry: Value = if package.dialect == Dialect::Capability {
        serde_json::from_slice(manifest).ok()?
    } else {
        let set = [
            (Pointer::root().key("origin"), origin.clone()),
            (Pointer::root().key("trust_level"), Trust::Untrusted.name().into()),
        ];
        let source = Options { fallback_id: id, ..Options::default() };
        let request = Request { source, target: Dialect::Capability, only: None, set: &set };
        let made = convert(manifest, &request).ok()?;
        if !made.missing.is_empty() || !made.report.is_some_and(|report| report.is_valid()) {
            return None;
        }
        serde_json::from_slice(&made.document).ok()?
    };
    // A registry vouches for no more than that it has it.
    let trust = package.trust.min(Trust::Community);
    entry["trust_level"] = trust.name().into();
    entry["origin"] = origin;
    Some(entry)
}

#[cfg(test)]
mod tests {
    use manifest::document::read;

    use super::*;

    fn doors(text: &str) -> Doors {
        let (_, packages) = read(text.as_bytes(), &Options::default()).expect("it is valid");
        Doors::of(&packages[0], text.as_bytes(), None)
    }

    #[test]
    fn a_capability_is_told_with_no_more_trust_than_a_registry_can_give() {
        let text = json!({
            "id": "acme.hash", "type": "tool", "version": "1.0.0", "description": "Hashes",
            "origin": {"source": "local", "digest": "0".repeat(64), "path": "/home/ann/hash"},
            "interfaces": {"inputs": {"type": "object"}, "outputs": {"type": "object"}},
            "permissions": {"network": "deny", "filesystem": "none", "devices": []},
            "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "64Mi"}},
            "trust_level": "local"
        });
        let told = doors(&text.to_string());
        let entry: Value =
            serde_json::from_str(told.capability.as_deref().unwrap_or("")).expect("JSON");
        assert_eq!(entry["trust_level"], "community");
        assert_eq!(entry["origin"]["source"], "url");
        assert!(entry["origin"].get("path").is_none(), "nobody needs to know the author's folders");
        assert_eq!((told.server, told.listed), (None, None));
    }

    #[test]
    fn what_its_author_did_not_say_is_not_said_for_them() {
        let told = doors(
            r#"{"toolId":"demo.echo.it","name":"Echo","version":"1.2.0","description":"Echo.",
            "capabilities":["demo"],"endpoint":{"type":"local","command":"node ./index.js"},
            "input_schema":{"type":"object"},"output_schema":{"type":"object"}}"#,
        );
        assert_eq!(told, Doors::default());
    }
}
