//! Whether a smoke test passed: what came of it, held against what its author wants of it.

use std::time::{Duration, Instant};

use manifest::json::Pointer;
use manifest::schema::Unknowns;
use manifest::smoke::Condition;
use serde_json::{Value, json};
use vault::Redactor;

use crate::blocked::Blocked;
use crate::call::Output;
use crate::clip;
use crate::error::{CallError, Kind};
use crate::judge::{PATIENCE, TooLong, matches, mismatches};
use crate::promise::bytes_in_words;
use crate::secrets::{Variables, redactor};
use crate::strict::strict;
use crate::template::{self, Values};

/// How many bytes are told of what a tool printed: its end, where the most is said of a failure.
const MOST_TOLD: usize = 16 << 10;

/// How many bytes are told of a value.
const LONGEST_VALUE: usize = 400;

/// How a smoke test went.
#[derive(Clone, Debug, PartialEq)]
pub struct Smoked {
    /// What was tried, by its name in manifests.
    pub kind: &'static str,
    /// Whether nothing failed.
    pub passed: bool,
    /// What was looked at.
    pub checks: Vec<Check>,
    /// What the tool printed or answered, in short and without secrets.
    pub output: String,
    /// What the tool was kept from reaching.
    pub blocked: Vec<Blocked>,
    /// How long it took.
    pub took: Duration,
}

/// Something that a smoke test was held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub what: String,
    /// What it should have been.
    pub expected: String,
    /// What it was.
    pub found: String,
    /// Whether it holds.
    pub verdict: Verdict,
}

/// Whether something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Passed,
    /// It does not.
    Failed,
    /// It cannot be told, because an optional value that it speaks of was not given.
    Skipped,
}

impl Verdict {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

impl Smoked {
    /// The same as one JSON value.
    pub fn to_value(&self) -> Value {
        let check = |one: &Check| {
            json!({
                "what": one.what, "expected": one.expected, "found": one.found,
                "verdict": one.verdict.name(),
            })
        };
        json!({
            "kind": self.kind,
            "passed": self.passed,
            "checks": self.checks.iter().map(check).collect::<Vec<_>>(),
            "output": self.output,
            "blocked": self.blocked.iter().map(|one| one.asked.as_str()).collect::<Vec<_>>(),
            "ms": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// How it went, where the tool ran and gave nothing to look at; else why it did not run.
    pub(crate) fn without_answer(
        kind: &'static str,
        error: CallError,
        took: Duration,
    ) -> Result<Self, CallError> {
        match error.kind {
            Kind::Failed
            | Kind::TimedOut
            | Kind::TooMuchOutput
            | Kind::BadOutput
            | Kind::Unknown => {}
            _ => return Err(error),
        }
        let said = ["stderr", "body", "answer"].iter().find_map(|key| error.details[key].as_str());
        let output = clip::end(said.unwrap_or_default(), MOST_TOLD);
        let (what, expected) = (kind.to_owned(), "an answer".to_owned());
        let failed = Check { what, expected, found: error.message, verdict: Verdict::Failed };
        let blocked = error.blocked;
        Ok(Self { kind, passed: false, checks: vec![failed], output, blocked, took })
    }
}

/// What came of a smoke test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Came {
    /// How the command ended, or that a call gave its result.
    pub(crate) exit: Option<Result<i32, String>>,
    /// The status of the answer.
    pub(crate) status: Option<u16>,
    /// What patterns are looked for in.
    pub(crate) text: String,
    /// What else is shown of it.
    pub(crate) aside: String,
    /// What pointers lead into: the first form in which there is something at a place counts.
    pub(crate) forms: Vec<Value>,
}

impl Came {
    /// A text, which pointers lead into where it is JSON.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let forms = strict(text.trim()).into_iter().collect();
        Self { text, forms, ..Self::default() }
    }

    /// The result of a call.
    pub(crate) fn of_output(output: Output) -> Self {
        let text = match &output {
            Output::Text(text) => text.clone(),
            Output::Binary { bytes, media_type } => bytes_in_words(bytes, media_type.as_deref()),
            Output::Nothing => String::new(),
            Output::Json(value) => value.to_string(),
            Output::Records(records) => {
                records.iter().map(|one| format!("{one}\n")).collect::<String>()
            }
        };
        let forms = match output {
            Output::Text(text) => vec![strict(text.trim()).unwrap_or(Value::String(text))],
            other => vec![other.into_value()],
        };
        Self { exit: Some(Ok(0)), text, forms, ..Self::default() }
    }

    /// The same, as the protocol of MCP words the answer to a call: authors of servers think of that too.
    pub(crate) fn or_as_mcp_says(mut self) -> Self {
        let content = match self.forms.first() {
            Some(Value::Array(contents))
                if contents.iter().all(|one| one.get("type").is_some()) =>
            {
                json!(contents)
            }
            _ => json!([{ "type": "text", "text": self.text }]),
        };
        let structured = self.forms.first().filter(|form| form.is_object()).cloned();
        let mut said = json!({ "content": content, "isError": false });
        if let Some(structured) = structured {
            said["structuredContent"] = structured;
        }
        self.forms.push(said);
        self
    }

    fn at(&self, pointer: &Pointer) -> Option<&Value> {
        self.forms.iter().find_map(|form| form.pointer(pointer.as_str()))
    }
}

/// Holds what came against what must hold of it. What is told is without secrets.
pub(crate) fn judge(
    kind: &'static str,
    conditions: &[Condition],
    came: &Came,
    variables: &Variables,
    took: Duration,
) -> Smoked {
    let redactor = redactor(variables);
    let judged = Judged { came, variables, redactor: &redactor, until: Instant::now() + PATIENCE };
    let checks: Vec<_> = conditions.iter().map(|one| judged.check(one)).collect();
    let passed = checks.iter().all(|check| check.verdict != Verdict::Failed);
    let parts = [came.text.trim_end(), came.aside.trim_end()];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let output = clip::end(&redactor.text(&parts.join("\n")), MOST_TOLD);
    Smoked { kind, passed, checks, output, blocked: Vec::new(), took }
}

struct Judged<'j> {
    came: &'j Came,
    variables: &'j Variables,
    redactor: &'j Redactor,
    until: Instant,
}

impl Judged<'_> {
    fn check(&self, condition: &Condition) -> Check {
        let name = condition.name();
        match condition {
            Condition::ExitCode(code) => {
                let (found, holds) = match &self.came.exit {
                    Some(Ok(found)) => (found.to_string(), i64::from(*found) == *code),
                    Some(Err(why)) => (why.clone(), false),
                    None => ("no process was run".to_owned(), false),
                };
                self.told(name.to_owned(), code.to_string(), found, holds)
            }
            Condition::HttpStatus(status) => {
                let found = self.came.status.map(i64::from);
                let holds = match (status, found) {
                    (Some(status), found) => found == Some(*status),
                    (None, found) => found.is_some_and(|found| (200..300).contains(&found)),
                };
                let expected = status.map_or_else(|| "2xx".to_owned(), |status| status.to_string());
                let found =
                    found.map_or_else(|| "no server was asked".to_owned(), |one| one.to_string());
                self.told(name.to_owned(), expected, found, holds)
            }
            Condition::StdoutRegex(pattern) | Condition::BodyRegex(pattern) => {
                let text = &self.came.text;
                let (found, holds) = match matches(pattern, text, self.until) {
                    Ok(holds) => (text.clone(), holds),
                    Err(TooLong) => ("a text that it takes too long on".to_owned(), false),
                };
                self.told(name.to_owned(), pattern.clone(), found, holds)
            }
            Condition::Equals(at, value) => self.one_of(name, at, std::slice::from_ref(value)),
            Condition::In(at, values) => self.one_of(name, at, values),
            Condition::Exists(at) => {
                let found = self.came.at(at);
                self.told(place(name, at), "something".to_owned(), shown(found), found.is_some())
            }
            Condition::Present(at) => {
                let found = self.came.at(at);
                let is_present = match found {
                    None | Some(Value::Null) => false,
                    Some(Value::String(text)) => !text.trim().is_empty(),
                    Some(_) => true,
                };
                self.told(place(name, at), "a value".to_owned(), shown(found), is_present)
            }
            Condition::NoErrorField => {
                let form = self.came.forms.first();
                let error = form.and_then(|form| form.get("error"));
                let (found, holds) = match (form, error) {
                    (None, _) => ("no JSON".to_owned(), false),
                    (Some(_), None) => ("none".to_owned(), true),
                    (Some(_), error) => (shown(error), false),
                };
                self.told(name.to_owned(), "no `error`".to_owned(), found, holds)
            }
        }
    }

    /// Whether a place has one of these values. One that an absent value is missing from is never compared.
    fn one_of(&self, name: &str, at: &Pointer, values: &[Value]) -> Check {
        let filled: Vec<_> = values.iter().filter_map(|value| self.filled(value)).collect();
        let what = place(name, at);
        let found = self.came.at(at);
        if filled.len() < values.len() {
            let expected = values.iter().map(|value| shown(Some(value))).collect::<Vec<_>>();
            let check = self.told(what, expected.join(" or "), shown(found), false);
            return Check { verdict: Verdict::Skipped, ..check };
        }
        let expected = filled.iter().map(|value| shown(Some(value))).collect::<Vec<_>>();
        let holds = found.is_some_and(|found| self.equals_one(found, &filled));
        self.told(what, expected.join(" or "), shown(found), holds)
    }

    /// As JSON Schema has it: `1` and `1.0` are the same. What a call gives is without its secrets already.
    fn equals_one(&self, found: &Value, values: &[Value]) -> bool {
        let redacted = values.iter().cloned().map(|mut value| {
            self.redactor.json(&mut value);
            value
        });
        let allowed: Vec<_> = values.iter().cloned().chain(redacted).collect();
        let schema = json!({ "enum": allowed }).to_string();
        let unknowns = Unknowns::AsTheSchemaSays;
        mismatches(&schema, &found.to_string(), unknowns, self.until)
            .is_ok_and(|found| found.is_empty())
    }

    /// A value with its texts filled in; none where one of them cannot be.
    fn filled(&self, value: &Value) -> Option<Value> {
        let values = Values { input: &Value::Null, variables: self.variables };
        Some(match value {
            Value::String(template) => template::text(template, &values).ok()??.into(),
            Value::Array(items) => {
                items.iter().map(|item| self.filled(item)).collect::<Option<Vec<_>>>()?.into()
            }
            Value::Object(members) => {
                let filled =
                    |(name, value): (&String, &Value)| Some((name.clone(), self.filled(value)?));
                Value::Object(members.iter().map(filled).collect::<Option<_>>()?)
            }
            plain => plain.clone(),
        })
    }

    fn told(&self, what: String, expected: String, found: String, holds: bool) -> Check {
        let told = |text: String| clip::start(&self.redactor.text(&text), LONGEST_VALUE);
        let verdict = if holds { Verdict::Passed } else { Verdict::Failed };
        Check { what, expected: told(expected), found: told(found), verdict }
    }
}

fn place(name: &str, at: &Pointer) -> String {
    format!("{name} `{at}`")
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Variable;

    fn at(text: &str) -> Pointer {
        Pointer::parse(text).unwrap()
    }

    fn check(condition: Condition, came: &Came) -> Check {
        let variable = |name: &str, value: &str, is_secret| {
            (name.to_owned(), Variable { value: value.to_owned(), is_secret })
        };
        let variables = vec![variable("KEY", "s3cret-value", true), variable("ZONE", "eu", false)];
        let mut smoked = judge("shell", &[condition], came, &variables, Duration::ZERO);
        assert_eq!(smoked.passed, smoked.checks[0].verdict != Verdict::Failed);
        smoked.checks.remove(0)
    }

    fn verdict(condition: Condition, came: &Came) -> Verdict {
        check(condition, came).verdict
    }

    fn holds(condition: Condition, came: &Came) -> bool {
        verdict(condition, came) == Verdict::Passed
    }

    fn json_of(value: &Value) -> Came {
        Came::of_bytes(value.to_string().as_bytes())
    }

    #[test]
    fn codes_and_statuses_are_those_that_were_named() {
        let ended = |exit| Came { exit: Some(exit), ..Came::default() };
        assert!(holds(Condition::ExitCode(0), &ended(Ok(0))));
        assert!(holds(Condition::ExitCode(3), &ended(Ok(3))));
        assert!(!holds(Condition::ExitCode(0), &ended(Ok(3))));
        let late = check(Condition::ExitCode(0), &ended(Err("it ran past its deadline".into())));
        assert_eq!((late.verdict, &*late.found), (Verdict::Failed, "it ran past its deadline"));
        let answered = |status| Came { status: Some(status), ..Came::default() };
        assert!(holds(Condition::HttpStatus(Some(404)), &answered(404)));
        assert!(!holds(Condition::HttpStatus(Some(200)), &answered(204)));
        assert!(holds(Condition::HttpStatus(None), &answered(204)));
        assert!(!holds(Condition::HttpStatus(None), &answered(302)));
        assert!(!holds(Condition::HttpStatus(None), &Came::default()));
        assert!(!holds(Condition::ExitCode(0), &Came::default()));
    }

    #[test]
    fn patterns_are_found_anywhere_in_the_text() {
        let came = Came::of_bytes(b"version 1.2.3\nready\n");
        assert!(holds(Condition::StdoutRegex(r"\d+\.\d+".into()), &came));
        assert!(holds(Condition::BodyRegex("^version".into()), &came));
        let check = check(Condition::StdoutRegex("^ready".into()), &came);
        assert_eq!((check.verdict, &*check.expected), (Verdict::Failed, "^ready"));
        assert!(check.found.starts_with("version 1.2.3"), "{}", check.found);
    }

    #[test]
    fn places_have_values_and_absent_ones_are_never_compared() {
        let came = json_of(
            &json!({ "n": 1.0, "zone": "eu", "blank": " ", "null": null, "deep": { "a/b": [true] } }),
        );
        let equals =
            |pointer: &str, value: Value| verdict(Condition::Equals(at(pointer), value), &came);
        assert_eq!(equals("/n", json!(1)), Verdict::Passed);
        assert_eq!(equals("/n", json!("1")), Verdict::Failed);
        assert_eq!(equals("/deep", json!({ "a/b": [true] })), Verdict::Passed);
        assert_eq!(equals("/deep/a~1b/0", json!(true)), Verdict::Passed);
        assert_eq!(equals("/gone", json!(null)), Verdict::Failed);
        assert_eq!(equals("/zone", json!("${ZONE}")), Verdict::Passed);
        assert_eq!(equals("/zone", json!("${env.ZONE}-1")), Verdict::Failed);
        assert_eq!(equals("/zone", json!("${GONE}")), Verdict::Skipped);
        assert_eq!(equals("/deep", json!({ "a/b": ["${GONE}"] })), Verdict::Skipped);
        let one_of = |values: Value| {
            let Value::Array(values) = values else { panic!() };
            verdict(Condition::In(at("/zone"), values), &came)
        };
        assert_eq!(one_of(json!(["us", "${ZONE}"])), Verdict::Passed);
        assert_eq!(one_of(json!(["us", 1])), Verdict::Failed);
        assert_eq!(one_of(json!(["us", "${GONE}"])), Verdict::Skipped);
        for (pointer, exists, present) in [
            ("/n", true, true),
            ("/blank", true, false),
            ("/null", true, false),
            ("/gone", false, false),
        ] {
            assert_eq!(holds(Condition::Exists(at(pointer)), &came), exists, "{pointer}");
            assert_eq!(holds(Condition::Present(at(pointer)), &came), present, "{pointer}");
        }
    }

    #[test]
    fn an_error_and_what_is_no_json_are_seen() {
        let no_error =
            |text: &str| holds(Condition::NoErrorField, &Came::of_bytes(text.as_bytes()));
        assert!(no_error(r#"{"a":{"error":1}}"#));
        assert!(no_error("[1]"));
        assert!(!no_error(r#"{"error":null}"#));
        assert!(!no_error("plain words"));
        let found = check(Condition::Exists(at("/a")), &Came::of_bytes(b"words"));
        assert_eq!((found.verdict, &*found.found), (Verdict::Failed, "nothing"));
    }

    #[test]
    fn results_of_calls_are_looked_into_by_either_form() {
        let came = Came::of_output(Output::Json(json!({ "ok": 1 }))).or_as_mcp_says();
        for pointer in ["/ok", "/content/0/text", "/structuredContent/ok"] {
            assert!(holds(Condition::Exists(at(pointer)), &came), "{pointer}");
        }
        assert!(holds(Condition::Equals(at("/isError"), json!(false)), &came));
        let text = Came::of_output(Output::Text("hello".into())).or_as_mcp_says();
        assert!(holds(Condition::Equals(at("/content/0/text"), json!("hello")), &text));
        assert!(holds(Condition::Equals(at(""), json!("hello")), &text));
        assert!(holds(Condition::StdoutRegex("^hello$".into()), &text));
        let plain = Came::of_output(Output::Json(json!({ "ok": 1 })));
        assert!(!holds(Condition::Exists(at("/content")), &plain));
    }

    #[test]
    fn no_secret_is_told() {
        let came = json_of(&json!({ "key": "s3cret-value", "other": "x" }));
        let shown = judge(
            "shell",
            &[
                Condition::Equals(at("/key"), json!("${KEY}")),
                Condition::Equals(at("/other"), json!("${KEY}")),
                Condition::StdoutRegex("^no$".into()),
            ],
            &Came { aside: "s3cret-value on stderr".into(), ..came },
            &vec![("KEY".to_owned(), Variable { value: "s3cret-value".into(), is_secret: true })],
            Duration::ZERO,
        );
        assert_eq!(shown.checks[0].verdict, Verdict::Passed);
        assert_eq!(shown.checks[1].verdict, Verdict::Failed);
        assert!(!shown.to_value().to_string().contains("s3cret-value"), "{shown:?}");
        assert!(shown.output.contains("[secret KEY] on stderr"), "{}", shown.output);
        // The result of a call comes without its secrets.
        let hidden = json_of(&json!({ "key": "[secret KEY]" }));
        assert!(holds(Condition::Equals(at("/key"), json!("${KEY}")), &hidden));
    }
}
