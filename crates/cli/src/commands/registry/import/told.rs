//! What became of everything that was to be imported.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// What became of everything.
#[derive(Default)]
pub(super) struct Told {
    /// Nothing is changed; it is told what would be.
    pub(super) is_only_tried: bool,
    pub(super) imported: Vec<Value>,
    pub(super) unchanged: Vec<Value>,
    pub(super) refused: Vec<Value>,
    pub(super) skipped: Vec<Value>,
    /// What the source has taken back.
    pub(super) yanked: Vec<Value>,
    /// What is here and not there.
    pub(super) missing: Vec<Value>,
    /// Where the source goes on.
    pub(super) cursor: Option<String>,
}

impl Told {
    pub(super) fn is_empty(&self) -> bool {
        self.is_nothing_taken() && self.refused.is_empty() && self.skipped.is_empty()
    }

    /// Whether nothing of it is here as it is there.
    pub(super) fn is_nothing_taken(&self) -> bool {
        self.taken().next().is_none()
    }

    /// The names of what is here as it is there, each once.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.taken().filter_map(|one| one["name"].as_str()).map(str::to_owned).collect()
    }

    /// What is here as it is there, or was taken back as it was there.
    pub(super) fn taken(&self) -> impl Iterator<Item = &Value> {
        self.imported.iter().chain(&self.unchanged).chain(&self.yanked)
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "imported": self.imported,
            "unchanged": self.unchanged,
            "refused": self.refused,
            "skipped": self.skipped,
            "yanked": self.yanked,
            "missing": self.missing,
            "dry_run": self.is_only_tried,
        })
    }

    /// All of it in a line.
    pub(super) fn summary(&self) -> String {
        let would = if self.is_only_tried { "would be " } else { "" };
        format!(
            "{} {would}imported, {} there already, {} refused, {} passed over, {} {would}yanked, {} missing there",
            self.imported.len(),
            self.unchanged.len(),
            self.refused.len(),
            self.skipped.len(),
            self.yanked.len(),
            self.missing.len()
        )
    }
}

/// A version, as it is told of.
pub(super) fn known(id: &str, name: &str, version: &str, sha256: &str) -> Value {
    json!({"id": id, "name": name, "version": version, "sha256": sha256})
}

/// The name and the version of something.
pub(super) fn name(known: &Value) -> String {
    let text = |key: &str| known[key].as_str().unwrap_or_default();
    format!("{} {}", text("name"), text("version"))
}
