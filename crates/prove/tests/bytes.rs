//! What must hold for any bytes that may be a test.

use host::tape::{Asked, Tape, Turn};
use manifest::dialect::Dialect;
use manifest::document::{Options, check};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use prove::{Case, Recording};
use serde_json::{Value, json};

const TEST: &str = r#"{"name": "a", "input": {"n": 2}, "expected": {"n": [4, {"x": null}]}, "timeoutMs": 1500,
    "assertions": [{"path": "$.n[0]", "equals": 4}, {"path": "$..x", "exists": true}, {"path": "$.s", "matches": "^(a+)+$"},
    {"path": "$.n", "length": 2}, {"path": "$.t", "type": "string"}, {"path": "$.n[*]", "lessThan": 1e300}]}"#;

/// A file is a test exactly where the checks of its dialect say so, and can then be held against any answer.
fn holds(bytes: &[u8]) -> Result<(), TestCaseError> {
    let options = Options { dialect: Some(Dialect::Mcpkg), ..Options::default() }.for_test();
    let read = Case::read("tests/a.test.json", bytes);
    prop_assert_eq!(read.is_ok(), check(bytes, &options).is_valid(), "{:?}", read);
    let Ok(case) = read else { return Ok(()) };
    let long = "a".repeat(40) + "!";
    let deep = (0..100).fold(Value::Null, |inner, _| json!({ "x": inner }));
    for answer in [json!(null), json!({"n": [4, {"x": null}], "s": long}), deep] {
        for fault in case.faults(&answer) {
            let words = fault.to_string();
            prop_assert!(!words.is_empty() && words.len() < 4_096, "{words}");
        }
    }
    Ok(())
}

#[test]
fn a_file_is_a_test_where_its_dialect_says_so() {
    let changed = (vec((0..TEST.len(), any::<u8>()), 0..4), Just(TEST.as_bytes().to_vec()));
    let changed = changed.prop_map(|(changes, mut bytes)| {
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        bytes
    });
    let bytes = prop_oneof![changed, vec(any::<u8>(), 0..64)];
    let config = Config { cases: 512, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(&bytes, |bytes| holds(&bytes)).expect("every promise is kept");
    holds(TEST.as_bytes()).expect("it is a test");
}

/// Any bytes are a recording that answers, or are refused in words.
#[test]
fn a_recording_answers_or_is_refused_whatever_its_bytes_are() {
    const FILE: &str = concat!(
        "{\"haft_recording\":1}\n",
        "{\"method\":\"GET\",\"url\":\"https://a.test/\",\"status\":200,\"headers\":{\"content-type\":\"a/b\"},\"text\":\"x\"}\n",
        "{\"method\":\"POST\",\"url\":\"u\",\"body_sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\",\"status\":503,\"headers\":{},\"base64\":\"AA==\"}\n",
    );
    let changed = (vec((0..FILE.len(), any::<u8>()), 0..4), Just(FILE.as_bytes().to_vec()));
    let changed = changed.prop_map(|(changes, mut bytes)| {
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        bytes
    });
    let bytes = prop_oneof![changed, vec(any::<u8>(), 0..64)];
    let config = Config { cases: 512, failure_persistence: None, ..Config::default() };
    let checked = TestRunner::new(config).run(&bytes, |bytes| {
        match Recording::read(&bytes) {
            Ok(recording) => {
                let (method, url) = ("GET".to_owned(), "https://a.test/".to_owned());
                let asked = Asked { method, url, body_sha256: None };
                let turn = recording.answer(&asked);
                prop_assert!(turn != Turn::Server && turn == recording.answer(&asked), "{turn:?}");
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        Ok(())
    });
    checked.expect("every promise is kept");
}
