//! The crates depend on each other as ARCHITECTURE.md draws it, and in no other way.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The table under `## Crates`: each crate and those it may use.
fn drawing() -> BTreeMap<String, BTreeSet<String>> {
    let page = std::fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let table = page.split("## Crates").nth(1).expect("the page has a part on crates");
    let table = table.split("\n## ").next().unwrap();
    table
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|row| {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let name = cells[0].trim_end_matches('`').to_owned();
            let uses = cells[2].split(',').map(|name| name.trim().trim_matches('`').to_owned());
            (name, uses.filter(|name| !name.is_empty() && name != "–").collect())
        })
        .collect()
}

/// What `cargo` says: each crate, its ordinary dependencies and its dev-dependencies in here.
fn built() -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let names: BTreeSet<_> =
        packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
    let arrows = |package: &serde_json::Value, is_dev: bool| {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        dependencies
            .filter(|dependency| (dependency["kind"].as_str() == Some("dev")) == is_dev)
            .filter_map(|dependency| dependency["name"].as_str())
            .filter(|name| names.contains(name))
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    packages
        .iter()
        .map(|package| {
            (
                package["name"].as_str().unwrap().to_owned(),
                (arrows(package, false), arrows(package, true)),
            )
        })
        .collect()
}

#[test]
fn every_arrow_between_crates_is_in_the_drawing() {
    let drawing = drawing();
    assert!(drawing.len() >= 16, "the drawing was read: {drawing:?}");
    for (name, (uses, _)) in built() {
        let allowed =
            drawing.get(&name).unwrap_or_else(|| panic!("`{name}` is not in the drawing"));
        let extra: Vec<_> = uses.difference(allowed).collect();
        assert!(extra.is_empty(), "`{name}` uses {extra:?}, which is not in the drawing");
    }
}

#[test]
fn the_test_kit_is_for_tests_only() {
    for (name, (uses, _)) in built() {
        assert!(!uses.contains("testkit"), "`{name}` uses `testkit` outside its tests");
    }
}

#[test]
fn the_drawing_has_no_circle() {
    let mut left = drawing();
    while !left.is_empty() {
        let free: Vec<_> = left
            .iter()
            .filter(|(_, uses)| uses.iter().all(|used| !left.contains_key(used)))
            .map(|(name, _)| name.clone())
            .collect();
        assert!(!free.is_empty(), "a circle among {:?}", left.keys());
        for name in free {
            left.remove(&name);
        }
    }
}
