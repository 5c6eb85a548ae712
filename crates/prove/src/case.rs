//! A test as its author wrote it.

use std::fmt;
use std::time::Duration;

use manifest::dialect::Dialect;
use manifest::document::{MAX_MANIFEST, Options, check};
use manifest::finding::{Finding, Severity};
use manifest::json::parse;
use serde_json::Value;

use crate::assertion::Assertion;
use crate::effort::Size;
use crate::fault::Fault;
use crate::value::missing;

/// How many faults of one test are told.
const MOST: usize = 20;

/// A test: what a tool is given, and what must hold of its answer.
#[derive(Clone, Debug)]
pub struct Case {
    /// The path of its file in the package; of one among many in a file, with its line.
    pub path: String,
    /// Its name.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// The action it calls, where the author says so.
    pub action: Option<String>,
    /// What the tool is given.
    pub input: Value,
    /// What its answer must contain.
    pub expected: Option<Value>,
    /// What else must hold of it.
    pub assertions: Vec<Assertion>,
    /// How long it may take, where the author says so.
    pub timeout: Option<Duration>,
}

/// Where a test comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file of its own.
    File,
    /// A line of the file of cases that the author promises about.
    Promised,
    /// What the package is tried with when it is installed.
    Smoke,
}

/// Why a file is no test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseError {
    /// The path of the file.
    pub path: String,
    /// What is wrong with it.
    pub why: String,
    /// Where it comes from.
    pub origin: Origin,
}

impl fmt::Display for CaseError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` is no test: {}", self.path, self.why)
    }
}

impl std::error::Error for CaseError {}

/// What is wrong with a file, where, and what would mend it.
fn placed(finding: &Finding, bytes: &[u8]) -> String {
    let place = match finding.pointer.as_str() {
        "" => {
            let before = &bytes[..bytes.len().min(finding.span.start as usize)];
            let line = before.split(|byte| *byte == b'\n').count();
            format!("line {line}")
        }
        pointer => format!("`{pointer}`"),
    };
    let help = finding.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    format!("{place}: {}{help}", finding.message)
}

impl Case {
    /// Reads the file of a test, by the rules of its dialect.
    pub fn read(path: &str, bytes: &[u8]) -> Result<Self, CaseError> {
        let wrong = |why: &str| {
            let (path, why) = (path.to_owned(), why.to_owned());
            CaseError { path, why, origin: Origin::File }
        };
        if bytes.len() > MAX_MANIFEST {
            return Err(wrong("it is larger than 1 MiB"));
        }
        let options = Options { dialect: Some(Dialect::Mcpkg), ..Options::default() }.for_test();
        let report = check(bytes, &options);
        let error = report.findings.iter().find(|finding| finding.severity == Severity::Error);
        if let Some(error) = error {
            return Err(wrong(&placed(error, bytes)));
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
            origin: Origin::File,
            action: root["action"].as_str().map(str::to_owned),
            input: root["input"].clone(),
            expected: root.get("expected").cloned(),
            assertions: assertions.ok_or_else(|| wrong("an assertion asks nothing"))?,
            timeout: timeout
                .map(|time| Duration::try_from_secs_f64(time / 1e3).unwrap_or(Duration::MAX)),
        })
    }

    /// Reads a line of a file of cases: a test, whose name is that of its line where it has none.
    pub fn read_line(path: &str, number: usize, line: &str) -> Result<Self, CaseError> {
        let place = format!("{path}:{number}");
        let named = named(line, number);
        let read = Self::read(&place, named.as_deref().unwrap_or(line).as_bytes());
        match read {
            Ok(case) => Ok(Self { origin: Origin::Promised, ..case }),
            Err(error) => Err(CaseError { origin: Origin::Promised, ..error }),
        }
    }

    /// What of an answer is not as it should be.
    pub fn faults(&self, answer: &Value) -> Vec<Fault> {
        let expected = self.expected.as_ref().map(|expected| missing(expected, answer));
        let size = Size::of(answer);
        let asserted = self.assertions.iter().filter_map(|assertion| assertion.fault(answer, size));
        expected.into_iter().flatten().chain(asserted).take(MOST).collect()
    }
}

/// The text of a case that has no name, with one; none where it has one, or is no object.
fn named(line: &str, number: usize) -> Option<String> {
    let text = line.trim_start();
    let root = parse(text).root.filter(|root| root.is_object() && root.get("name").is_none())?;
    let rest = text.strip_prefix('{')?;
    let comma = if root.members().is_empty() { "" } else { "," };
    Some(format!("{{\"name\":\"case {number}\"{comma}{rest}"))
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
        assert_eq!(case.faults(&json!({"n": 4.0, "unit": "m"})), []);
        let faults = case.faults(&json!({"n": 5}));
        let words: Vec<_> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["$.n is 5, expected 4", "$.unit leads to nothing, expected \"m\""]);
    }

    #[test]
    fn a_line_of_a_file_of_cases_is_a_test_and_need_not_have_a_name() {
        let read = |line: &str| Case::read_line("cases.jsonl", 3, line);
        let case = read(r#" {"input": {"n": 2}, "expected": 4, "action": "double"}"#).unwrap();
        assert_eq!((&*case.name, &*case.path), ("case 3", "cases.jsonl:3"));
        assert_eq!((case.action.as_deref(), case.origin), (Some("double"), Origin::Promised));
        let case = read(r#"{"name": "own", "input": {}}"#).unwrap();
        assert_eq!(case.name, "own");
        for line in ["", "{}", "[]", "{", r#"{"input": 1}"#, r#"{"input": {}, "input": {}}"#] {
            let error = read(line).unwrap_err();
            assert_eq!((&*error.path, error.origin), ("cases.jsonl:3", Origin::Promised), "{line}");
        }
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
