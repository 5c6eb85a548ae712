//! The bodies of the fuzz targets, over damaged fixtures and examples.
//!
//! A fuzzer finds more, in hours; this finds in seconds what a change broke.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use manifest::dialect::Dialect;
use proptest::prelude::Strategy;
use testkit::bytes::damaged;
use testkit::draws::holds;
use testkit::fuzz::{self, Kept};

/// Files small enough to be damaged often, every so many of them.
fn seeds(every: usize) -> Vec<Vec<u8>> {
    let paths = testkit::fixtures().map(|fixture| fixture.document()).chain(testkit::examples());
    let files = paths.filter(|path| path.is_file()).map(|path| std::fs::read(path).unwrap());
    files.filter(|bytes| bytes.len() < 8 * 1024).step_by(every).collect()
}

/// Holds a promise against damaged copies of the seeds.
fn damaged_seeds_keep(every: usize, cases: u32, promise: impl Fn(&[u8]) -> Kept) {
    for seed in seeds(every) {
        promise(&seed).unwrap();
        holds(cases, &damaged(seed), |bytes| promise(&bytes));
    }
}

#[test]
fn damaged_json_is_judged_as_serde_json_does() {
    damaged_seeds_keep(2, 12, fuzz::json);
}

#[test]
fn damaged_documents_of_each_dialect_are_read_without_harm() {
    for dialect in Dialect::ALL {
        damaged_seeds_keep(5, 8, |bytes| fuzz::document(dialect, bytes));
    }
    damaged_seeds_keep(2, 12, fuzz::any_document);
}

#[test]
fn damaged_companions_and_tests_are_read_without_harm() {
    damaged_seeds_keep(5, 8, fuzz::companion);
    damaged_seeds_keep(5, 8, fuzz::mcpkg_test);
}

#[test]
fn damaged_chains_are_followed_without_harm() {
    damaged_seeds_keep(5, 8, fuzz::chain);
    for name in ["pipeline", "pdf-embed"] {
        let manifest = testkit::repo().join("examples/mcpkg").join(name).join("manifest.json");
        let known = br#"{"input": {"pdfPath": "a", "draft": [1, {"x": null}]}, "cleaned": {}}"#;
        let pair = [&std::fs::read(manifest).unwrap(), &b"\0"[..], known].concat();
        fuzz::chain(&pair).unwrap();
        holds(400, &damaged(pair), |bytes| fuzz::chain(&bytes));
    }
}

#[test]
fn damaged_openapi_documents_are_read_without_harm() {
    damaged_seeds_keep(5, 8, fuzz::openapi);
    let folder = testkit::repo().join("examples/mcpkg/http-status");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let pair = [read("openapi.json"), vec![0], read("manifest.json")].concat();
    fuzz::openapi(&pair).unwrap();
    holds(200, &damaged(pair), |bytes| fuzz::openapi(&bytes));
}

#[test]
fn damaged_schemas_commands_and_patterns_are_read_without_harm() {
    let pairs = [
        &b"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/b\"}},\"$defs\":{\"b\":{\"pattern\":\"^a+$\"}}}\0{\"a\":\"aa\"}"[..],
        b"{\"anyOf\":[{\"const\":1},{\"not\":{\"enum\":[2,\"x\"]}}],\"uniqueItems\":true}\0[1,1.0]",
    ];
    for pair in pairs {
        holds(400, &damaged(pair.to_vec()), |bytes| fuzz::schema(&bytes));
    }
    let commands = damaged(b"python3 ./a.py \"b c\" 'd' e\\ f".to_vec());
    holds(400, &commands.prop_map(|bytes| bytes), |bytes| fuzz::command(&bytes));
    holds(400, &damaged(b"^(a|[b-d]{2,3})+\\d*$\0abcd12".to_vec()), |bytes| fuzz::regex(&bytes));
}
