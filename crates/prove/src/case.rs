//! A test as its author wrote it.

use std::fmt;
use std::time::Duration;

use manifest::dialect::Dialect;
use manifest::document::{MAX_MANIFEST, Options, check};
use manifest::finding::Severity;
use manifest::json::parse;
use serde_json::Value;

use crate::assertion::Assertion;
use crate::value::missing;

/// How many faults of one test are told.
const MOST: usize = 20;

/// A test: what a tool is given, and what must hold of its answer.
#[derive(Clone, Debug)]
pub struct Case {
    /// The path of its file in the package.
    pub path: String,
    /// Its name.
    pub name: String,
    /// What the tool is given.
    pub input: Value,
    /// What its answer must contain.
    pub expected: Option<Value>,
    /// What else must hold of it.
    pub assertions: Vec<Assertion>,
    /// How long it may take, where the author says so.
    pub timeout: Option<Duration>,
}

/// Why a file is no test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseError {
    /// The path of the file.
    pub path: String,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for CaseError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` is no test: {}", self.path, self.why)
    }
}

impl std::error::Error for CaseError {}

impl Case {
    /// Reads the file of a test, by the rules of its dialect.
    pub fn read(path: &str, bytes: &[u8]) -> Result<Self, CaseError> {
        let wrong = |why: &str| CaseError { path: path.to_owned(), why: why.to_owned() };
        if bytes.len() > MAX_MANIFEST {
            return Err(wrong("it is too large"));
        }
        let options = Options { dialect: Some(Dialect::Mcpkg), ..Options::default() }.for_test();
        let report = check(bytes, &options);
        let error = report.findings.iter().find(|finding| finding.severity == Severity::Error);
        if let Some(error) = error {
            return Err(wrong(&error.message));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8"))?;
        let root = parse(text).root.ok_or_else(|| wrong("there is nothing"))?.to_value();
        let assertions = root["assertions"].as_array().cloned().unwrap_or_default();
        let read = assertions.iter().map(Assertion::read);
        let assertions: Option<Vec<_>> = read.collect();
        let timeout = root["timeoutMs"].as_f64().filter(|time| *time > 0.0);
        Ok(Self {
            path: path.to_owned(),
            name: root["name"].as_str().unwrap_or_default().to_owned(),
            input: root["input"].clone(),
            expected: root.get("expected").cloned(),
            assertions: assertions.ok_or_else(|| wrong("an assertion asks nothing"))?,
            timeout: timeout
                .map(|time| Duration::try_from_secs_f64(time / 1e3).unwrap_or(Duration::MAX)),
        })
    }

    /// What of an answer is not as it should be.
    pub fn faults(&self, answer: &Value) -> Vec<String> {
        let expected = self.expected.as_ref().map(|expected| missing(expected, answer));
        let asserted = self.assertions.iter().filter_map(|assertion| assertion.fault(answer));
        expected.into_iter().flatten().chain(asserted).take(MOST).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_test_is_read_and_holds_an_answer_against_it() {
        let text = r#"{"name": "twice", "input": {"n": 2}, "expected": {"n": 4},
            "assertions": [{"path": "$.unit", "equals": "m"}], "timeoutMs": 1500}"#;
        let case = Case::read("tests/twice.test.json", text.as_bytes()).unwrap();
        assert_eq!((case.name.as_str(), &case.input), ("twice", &json!({"n": 2})));
        assert_eq!(case.timeout, Some(Duration::from_millis(1500)));
        assert_eq!(case.faults(&json!({"n": 4.0, "unit": "m"})), [""; 0]);
        assert_eq!(
            case.faults(&json!({"n": 5})),
            ["$.n is 5, expected 4", "$.unit leads to nothing"]
        );
    }

    #[test]
    fn what_is_no_test_is_refused() {
        for text in [
            "",
            "{}",
            "\u{feff}{}",
            r#"{"name": "x"}"#,
            r#"{"name": "x", "input": []}"#,
            r#"{"name": "x", "input": {}, "assertions": [{"path": "$.a"}]}"#,
            r#"{"name": "x", "input": {}, "input": {}}"#,
            r#"{"name": "x", "input": {}, "timeoutMs": -1}"#,
        ] {
            assert!(Case::read("t", text.as_bytes()).is_err(), "{text}");
        }
    }
}
