//! What must hold for any bytes that may be a test.

use manifest::dialect::Dialect;
use manifest::document::{Options, check};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use prove::Case;
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
            prop_assert!(!fault.is_empty() && fault.len() < 4_096, "{fault}");
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
