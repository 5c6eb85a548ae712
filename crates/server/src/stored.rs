//! The manifest of a version, read as it is kept.

use manifest::document::{Options, read};
use manifest::model::{Entry, Package};
use serde_json::Value;

/// What a tool in Python is run by.
pub(crate) const PYTHON: &str = "python";

/// The one package of a manifest, under this id where it has none of its own. The dialect of hubs knows Node alone, though
/// their form takes Python: the rest of such a manifest is read as that of a tool for Node.
pub(crate) fn read_manifest(text: &[u8], id: &str) -> Option<Package> {
    let options = Options { fallback_id: Some(id), ..Options::default() };
    let one = |mut packages: Vec<Package>| packages.pop().filter(|_| packages.is_empty());
    if let Ok((_, packages)) = read(text, &options) {
        return one(packages);
    }
    let mut manifest: Value = serde_json::from_slice(text).ok()?;
    let runtime = manifest.pointer_mut("/entry/runtime").filter(|runtime| **runtime == PYTHON)?;
    *runtime = "node".into();
    let (_, packages) = read(manifest.to_string().as_bytes(), &options).ok()?;
    let mut package = one(packages)?;
    for way in &mut package.implementations {
        way.language = Some(PYTHON.to_owned());
        way.runtime = Some(PYTHON.to_owned());
    }
    Some(package)
}

/// Whether it came so by the form of a hub: a module for Node that is none, which nothing runs.
pub(crate) fn is_run_by_nothing(package: &Package) -> bool {
    package.implementations.iter().any(|way| {
        matches!(way.entry, Entry::NodeModule { .. }) && way.runtime.as_deref() == Some(PYTHON)
    })
}
