//! An mcpkg package around a function that is already there.

use serde_json::{Value, json};

use super::text::segment;
use super::{About, Starter, StarterError, StarterFile, fill, mcpkg};
use crate::dialect::Dialect;
use crate::dialect::mcpkg::join_command;
use crate::finding::Severity;
use crate::json::{Pointer, parse};
use crate::schema::{Budget, Unknowns, check, judge};
use crate::shape::clip;

/// How long one call may take, in milliseconds.
const TIME_LIMIT: u32 = 30_000;

/// A function, as far as a package must know it.
#[derive(Clone, Copy, Debug)]
pub struct Function<'f> {
    /// What the author says of the package.
    pub about: Starter<'f>,
    /// What the function is called by, as the author typed it.
    pub called: &'f str,
    /// Its own name.
    pub name: &'f str,
    /// What its documentation says; may be empty.
    pub description: &'f str,
    /// What it is written in.
    pub language: Language,
    /// The program that runs it.
    pub interpreter: &'f str,
    /// The file in the package that calls it.
    pub runner: &'f str,
    /// Packages it needs.
    pub packages: &'f [String],
    /// JSON Schema of its input.
    pub input_schema: &'f Value,
    /// JSON Schema of its answer.
    pub output_schema: &'f Value,
    /// An input that fits.
    pub input: &'f Value,
    /// What it answered to that input, when it was called.
    pub recorded: Option<Recorded<'f>>,
}

/// What a function is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Python.
    Python,
    /// JavaScript, run by Node.
    Node,
}

/// What a function answered.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'f> {
    /// The answer.
    pub result: &'f Value,
    /// Whether it can be expected again.
    pub answers: Answers,
}

/// Whether the same input gives the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// It does.
    Alike,
    /// It does not: only the type of the answer can be expected.
    Differently,
}

/// The files of the package beside the function's own: manifest, test and README.
pub fn function_package(function: &Function<'_>) -> Result<Vec<StarterFile>, StarterError> {
    let first_line = function.description.lines().next().unwrap_or_default().trim();
    let fallback = format!("Calls the function {}.", function.name);
    let summary = if first_line.is_empty() { &fallback } else { first_line };
    let about = About::of(Dialect::Mcpkg, &function.about, summary)?;
    if let Some(recorded) = &function.recorded {
        check_promise(function, recorded)?;
    }
    let test = function.recorded.map(|recorded| test(function, recorded));
    let mut files =
        vec![StarterFile::json("manifest.json", &manifest(function, &about, test.as_ref()))];
    files.extend(test);
    files.push(readme(function, &about));
    Ok(files)
}

fn manifest(function: &Function<'_>, about: &About, test: Option<&StarterFile>) -> Value {
    let is_told = function.about.summary.is_some() || function.description.is_empty();
    let description = if is_told { &about.summary } else { function.description };
    let command = join_command(&[function.interpreter.into(), format!("./{}", function.runner)]);
    let (id, language, minimum, version) = match function.language {
        Language::Python => ("python", "python", "minPythonVersion", "3.9"),
        Language::Node => ("node", "javascript", "minNodeVersion", "18.0.0"),
    };
    let mut requirements = json!({ minimum: version });
    if !function.packages.is_empty() {
        requirements["packages"] = function.packages.into();
    }
    json!({
        "toolId": about.id,
        "name": about.name,
        "version": "0.1.0",
        "description": description,
        "capabilities": mcpkg::tags(&about.id),
        "implementations": [{
            "id": id,
            "language": language,
            "runtime": function.interpreter,
            "endpoint": { "type": "local", "command": command, "timeoutMs": TIME_LIMIT },
            "requirements": requirements
        }],
        "input_schema": function.input_schema,
        "output_schema": function.output_schema,
        "tests": test.map(|test| test.path.as_str()).into_iter().collect::<Vec<_>>()
    })
}

fn test(function: &Function<'_>, recorded: Recorded<'_>) -> StarterFile {
    let name = segment(function.name);
    let mut test = json!({
        "name": name,
        "description": format!("What `{}` answered when the package was made.", function.called),
        "input": function.input
    });
    match (recorded.answers, recorded.result) {
        (Answers::Alike, Value::Object(fields)) if !fields.is_empty() => {
            test["expected"] = recorded.result.clone();
        }
        (Answers::Alike, result) => test["assertions"] = json!([{ "path": "$", "equals": result }]),
        (Answers::Differently, result) => {
            test["assertions"] = json!([{ "path": "$", "type": type_of(result) }]);
        }
    }
    StarterFile::json(&format!("tests/{name}.test.json"), &test)
}

fn readme(function: &Function<'_>, about: &About) -> StarterFile {
    // Inside the single quotes of a shell command.
    let input = function.input.to_string().replace('\'', r"'\''");
    let text = fill(
        include_str!("templates/function.md"),
        &[
            ("@NAME@", &about.name),
            ("@SUMMARY@", &about.summary),
            ("@RUNNER@", function.runner),
            ("@CALLED@", function.called),
            ("@PROGRAM@", function.interpreter),
            ("@INPUT@", &input),
        ],
    );
    StarterFile::text("README.md", &text)
}

/// Holds what was answered against the schema that was made from the types.
fn check_promise(function: &Function<'_>, recorded: &Recorded<'_>) -> Result<(), StarterError> {
    let [schema, result] = [function.output_schema, recorded.result].map(Value::to_string);
    let (Some(schema), Some(result)) = (parse(&schema).root, parse(&result).root) else {
        return Ok(());
    };
    let faults = check(&schema, &Pointer::root(), &Budget::default());
    if faults.iter().any(|fault| fault.severity == Severity::Error) {
        // Told when the manifest is checked.
        return Ok(());
    }
    let mismatches = judge(&schema, &result, Unknowns::AsTheSchemaSays).unwrap_or_default();
    match mismatches.first() {
        Some(mismatch) => Err(StarterError::BrokenPromise {
            function: function.called.to_owned(),
            reason: clip(&mismatch.message).into_owned(),
        }),
        None => Ok(()),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{self, Options};

    fn made(result: &Value, answers: Answers, output: &Value) -> Result<Vec<Value>, StarterError> {
        let input_schema =
            json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
        let function = Function {
            about: Starter { id: "local.calc.add", name: None, summary: None },
            called: "calc:add",
            name: "add",
            description: "Adds.\n\nAnd more.",
            language: Language::Python,
            interpreter: "python3",
            runner: "run.py",
            packages: &["numpy".to_owned()],
            input_schema: &input_schema,
            output_schema: output,
            input: &json!({ "a": 1 }),
            recorded: Some(Recorded { result, answers }),
        };
        let files = function_package(&function)?;
        let report = document::check(&files[0].content, &Options::default());
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        let options = Options { manifest: Some(&files[0].content), ..Options::default() };
        let report = document::check(&files[1].content, &options.for_test());
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        Ok(files[..2].iter().map(|file| serde_json::from_slice(&file.content).unwrap()).collect())
    }

    #[test]
    fn the_manifest_says_what_the_function_says() {
        let files = made(&json!(3), Answers::Alike, &json!({ "type": "integer" })).unwrap();
        assert_eq!(files[0]["description"], "Adds.\n\nAnd more.");
        assert_eq!(files[0]["capabilities"], json!(["calc", "add"]));
        let implementation = &files[0]["implementations"][0];
        assert_eq!(implementation["endpoint"]["command"], "python3 ./run.py");
        assert_eq!(implementation["requirements"]["packages"], json!(["numpy"]));
    }

    #[test]
    fn the_test_expects_what_was_answered() {
        let expecting = |result: Value, answers| {
            let test = made(&result, answers, &json!({})).unwrap().pop().unwrap();
            (test["expected"].clone(), test["assertions"].clone())
        };
        let object = json!({ "sum": 3 });
        assert_eq!(expecting(object.clone(), Answers::Alike), (object.clone(), Value::Null));
        let equals = json!([{ "path": "$", "equals": null }]);
        assert_eq!(expecting(Value::Null, Answers::Alike), (Value::Null, equals));
        // Everything contains an empty object, so it is compared as a whole.
        let equals = json!([{ "path": "$", "equals": {} }]);
        assert_eq!(expecting(json!({}), Answers::Alike), (Value::Null, equals));
        let typed = json!([{ "path": "$", "type": "object" }]);
        assert_eq!(expecting(object, Answers::Differently), (Value::Null, typed));
    }

    #[test]
    fn an_answer_that_breaks_its_types_is_refused() {
        let error = made(&json!("3"), Answers::Alike, &json!({ "type": "integer" })).unwrap_err();
        assert!(
            error.to_string().contains("`calc:add` does not answer as its types say"),
            "{error}"
        );
    }
}
