//! Bytes of a catalog or of an index, read one entry at a time: a bad one is passed over and told.

use std::collections::HashSet;
use std::path::PathBuf;

use egress::http::Url;
use manifest::dialect::{Dialect, Form};
use manifest::document::{MAX_CATALOG, MAX_INDEX, MAX_MANIFEST, Options, read};
use manifest::finding::Severity;
use manifest::index::MAX_ENTRIES;
use manifest::json::{Node, parse};
use manifest::model::Package;

/// The most entries of a catalog.
pub const MOST: usize = 20_000;
/// How many warnings are told.
const WARNINGS: usize = 100;
/// States of a manifest that is not to be used.
const REFUSED: [&str; 2] = ["broken", "quarantined"];

/// What a catalog lists.
#[derive(Debug, Default)]
pub struct Listing {
    /// The packages.
    pub packages: Vec<Listed>,
    /// What was passed over, and why.
    pub warnings: Vec<String>,
}

/// A package that is listed, and where all of it is to be had.
#[derive(Debug)]
pub struct Listed {
    /// What it says about itself.
    pub package: Package,
    /// Where it is to be had.
    pub held: Held,
}

/// Where a package that is listed is to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// It is this manifest, which stands in the catalog.
    Manifest(Vec<u8>),
    /// It is this manifest, which was fetched from here.
    ManifestAt(Url, Vec<u8>),
    /// It is in this file, with the files around it or in it.
    File(PathBuf),
}

/// What an index lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// What can be used.
    pub pointed: Vec<Pointed>,
    /// What its publisher says cannot be used: ids, each with its status.
    pub refused: Vec<(String, &'static str)>,
    /// What was passed over, and why.
    pub warnings: Vec<String>,
}

/// A manifest that an index points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointed {
    /// The id that it must have.
    pub id: String,
    /// Where it is.
    pub url: String,
    /// One line on what it does.
    pub summary: Option<String>,
    /// Whether its publisher would rather have another one used.
    pub is_deprecated: bool,
    /// What is to be used instead.
    pub deprecated_for: Option<String>,
}

impl Listing {
    /// Tells of something that was passed over.
    pub fn warn(&mut self, warning: String) {
        if self.warnings.len() < WARNINGS {
            self.warnings.push(warning);
        }
    }
}

/// Reads a catalog of capabilities.
pub fn capabilities(bytes: &[u8]) -> Result<Listing, String> {
    let text = text(bytes, MAX_CATALOG)?;
    let root = root(text)?;
    let entries = root.get("capabilities").filter(|entries| is_list(entries));
    let entries = entries.ok_or("it has no list `capabilities`")?.items();
    if entries.len() > MOST {
        return Err(format!("it lists {} capabilities, and {MOST} are taken", entries.len()));
    }
    let mut listing = Listing::default();
    let mut seen = HashSet::new();
    for (index, entry) in entries.iter().enumerate() {
        let id = entry.text_at("id").unwrap_or_default();
        let named = format!("entry {index} `{}`", clip(id));
        let bytes = text[entry.span.range()].as_bytes();
        match one(bytes, Dialect::Capability) {
            Ok(package) if !seen.insert(package.id.clone()) => {
                listing.warn(format!("{named} is there already"));
            }
            Ok(package) => {
                let held = Held::Manifest(bytes.to_vec());
                listing.packages.push(Listed { package, held });
            }
            Err(why) => listing.warn(format!("{named}: {why}")),
        }
    }
    Ok(listing)
}

/// Reads an index of install-manifests: what it points to, and what was passed over.
pub fn index(bytes: &[u8]) -> Result<Index, String> {
    let text = text(bytes, MAX_INDEX)?;
    let root = root(text)?;
    if root.text_at("version") != Some("1") {
        return Err("its `version` is not \"1\"".to_owned());
    }
    let entries = root.get("manifests").filter(|entries| is_list(entries));
    let entries = entries.ok_or("it has no list `manifests`")?.items();
    if entries.len() > MAX_ENTRIES {
        return Err(format!("it lists {} manifests, and {MAX_ENTRIES} may be", entries.len()));
    }
    let (mut found, mut passed_over) = (Index::default(), Listing::default());
    let mut seen = HashSet::new();
    for (index, entry) in entries.iter().enumerate() {
        let id = entry.text_at("id").unwrap_or_default();
        let named = format!("entry {index} `{}`", clip(id));
        let (url, status) = (entry.text_at("manifest_url"), entry.text_at("status"));
        match (url, status) {
            (Some(url), Some(status @ ("active" | "deprecated"))) if !id.is_empty() => {
                if seen.insert(id) {
                    let of = |name: &str| entry.text_at(name).map(clip);
                    found.pointed.push(Pointed {
                        id: id.to_owned(),
                        url: url.to_owned(),
                        summary: of("summary"),
                        is_deprecated: status == "deprecated",
                        deprecated_for: of("deprecated_in_favor_of"),
                    });
                } else {
                    passed_over.warn(format!("{named} is there already"));
                }
            }
            (Some(_), Some(status)) if REFUSED.contains(&status) => {
                passed_over.warn(format!("{named} is {status}"));
                let status = REFUSED.into_iter().find(|known| *known == status);
                found.refused.extend(status.map(|status| (clip(id), status)));
            }
            _ => passed_over.warn(format!("{named} has no id, no address or no known status")),
        }
    }
    found.warnings = passed_over.warnings;
    Ok(found)
}

/// Reads a manifest that an index pointed to; its id must be the one that was listed.
pub fn pointed(to: &Pointed, bytes: &[u8]) -> Result<Package, String> {
    let package = one(bytes, Dialect::InstallManifest)?;
    if package.id == to.id {
        Ok(package)
    } else {
        Err(format!("the manifest there is of `{}`", clip(&package.id)))
    }
}

/// Reads one manifest of that dialect.
fn one(bytes: &[u8], dialect: Dialect) -> Result<Package, String> {
    text(bytes, MAX_MANIFEST)?;
    let options = Options { dialect: Some(dialect), ..Options::default() };
    match read(bytes, &options) {
        Ok((report, mut packages)) if report.form == Some(Form::Manifest) => {
            packages.pop().ok_or_else(|| "it describes nothing".to_owned())
        }
        Ok(_) => Err("it is no manifest".to_owned()),
        Err(report) => {
            let first = report.findings.iter().find(|finding| finding.severity == Severity::Error);
            Err(first.map_or_else(String::new, |finding| clip(&finding.message)))
        }
    }
}

fn text(bytes: &[u8], most: usize) -> Result<&str, String> {
    if bytes.len() > most {
        return Err(format!("it is larger than {most} bytes"));
    }
    std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// The document, where it is JSON and says nothing twice.
fn root(text: &str) -> Result<Node<'_>, String> {
    let parsed = parse(text);
    if let Some(fault) = parsed.faults.first() {
        return Err(clip(&fault.message));
    }
    parsed.root.ok_or_else(|| "there is nothing".to_owned())
}

fn is_list(node: &Node<'_>) -> bool {
    matches!(node.value, manifest::json::Value::List(_))
}

fn clip(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capability(id: &str) -> serde_json::Value {
        serde_json::json!({
            "id": id, "type": "tool", "version": "1.0.0", "description": "Greets",
            "origin": {"source": "local", "digest": "0".repeat(64)},
            "interfaces": {"inputs": {"type": "object"}, "outputs": {"type": "object"}},
            "permissions": {"network": "deny", "filesystem": "none", "devices": []},
            "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "64Mi"}},
            "trust_level": "verified",
        })
    }

    #[test]
    fn one_bad_entry_does_not_spoil_a_catalog() {
        let mut bad = capability("demo.bad");
        bad["version"] = "latest".into();
        let entries = [capability("demo.greet"), bad, capability("demo.greet")];
        let text = serde_json::json!({"capabilities": entries}).to_string();
        let listing = capabilities(text.as_bytes()).unwrap();
        assert_eq!(listing.packages.len(), 1, "{:?}", listing.warnings);
        assert_eq!(listing.warnings.len(), 2, "{:?}", listing.warnings);
        for text in
            ["", "[]", "{}", "{\"capabilities\":1}", "{\"capabilities\":[],\"capabilities\":[]}"]
        {
            assert!(capabilities(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn an_index_points_to_what_can_be_used() {
        let text = r#"{"version":"1","manifests":[
            {"id":"a","manifest_url":"https://x.example/a.json","status":"active"},
            {"id":"b","manifest_url":"https://x.example/b.json","status":"quarantined"},
            {"id":"a","manifest_url":"https://evil.example/a.json","status":"active"},
            {"id":"c","status":"active"}, 7]}"#;
        let Index { pointed, refused, warnings } = index(text.as_bytes()).unwrap();
        assert_eq!(pointed.len(), 1);
        assert_eq!(pointed[0].url, "https://x.example/a.json");
        assert_eq!(refused, [("b".to_owned(), "quarantined")]);
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        assert!(index(br#"{"version":"2","manifests":[]}"#).is_err());
        let many = format!(r#"{{"version":"1","manifests":[{}]}}"#, vec!["1"; 257].join(","));
        assert!(index(many.as_bytes()).is_err());
    }
}
