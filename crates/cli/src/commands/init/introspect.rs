//! What Python or Node says of a function.

use std::path::{Path, PathBuf};

use manifest::starter::Language;
use serde::Deserialize;
use serde_json::Value;

use super::scripts;
use crate::exit::{Exit, Failure};
use crate::program::{self, Ended, RunError, TIME_LIMIT};

/// Where a function is, as it was typed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    /// `module:function`, looked for from the current folder.
    Python { target: &'a str },
    /// A file, and the export that is meant.
    Node { target: &'a str, file: &'a str, export: Option<&'a str> },
}

impl<'a> Source<'a> {
    /// Reads `file.js` or `file.js:export`.
    pub(super) fn node(target: &'a str) -> Self {
        let is_script = |file: &str| {
            let extension = Path::new(file).extension().and_then(|extension| extension.to_str());
            extension.is_some_and(|extension| ["js", "mjs", "cjs"].contains(&extension))
        };
        match target.rsplit_once(':') {
            Some((file, export)) if is_script(file) => {
                Self::Node { target, file, export: Some(export) }
            }
            _ => Self::Node { target, file: target, export: None },
        }
    }

    /// The function, as it was typed.
    pub(super) fn target(self) -> &'a str {
        match self {
            Self::Python { target } | Self::Node { target, .. } => target,
        }
    }

    pub(super) fn language(self) -> Language {
        match self {
            Self::Python { .. } => Language::Python,
            Self::Node { .. } => Language::Node,
        }
    }

    /// The folder that the files of a report are in.
    pub(super) fn root(self, report: &Report) -> PathBuf {
        match self {
            Self::Python { .. } => PathBuf::from("."),
            Self::Node { file, .. } => {
                let beside = Path::new(file).parent().unwrap_or(Path::new(""));
                beside.join(report.root.as_deref().unwrap_or("."))
            }
        }
    }

    /// The programs that can run it, the best first.
    fn interpreters(self) -> &'static [&'static str] {
        match self {
            Self::Python { .. } => &["python3", "python"],
            Self::Node { .. } => &["node"],
        }
    }

    /// The arguments that make an interpreter read our script from its standard input.
    fn arguments(self, purpose: Purpose, input: Option<&str>) -> Vec<String> {
        let mut arguments = match self {
            Self::Python { .. } => vec!["-".to_owned()],
            Self::Node { .. } => vec!["--input-type=module".to_owned(), "-".to_owned()],
        };
        arguments.extend(match self {
            Self::Node { export: Some(export), .. } => Some(format!("--export={export}")),
            _ => None,
        });
        arguments.extend(match purpose {
            Purpose::Describe => None,
            Purpose::Call => Some("--call".to_owned()),
        });
        arguments.extend(input.map(|input| format!("--input={input}")));
        // What follows is never an option, however it begins.
        arguments.push("--".to_owned());
        match self {
            Self::Python { target } => arguments.extend([target.to_owned(), ".".to_owned()]),
            Self::Node { file, .. } => arguments.push(file.to_owned()),
        }
        arguments
    }
}

/// What a function is looked at for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To know its types. Its file is loaded, the function is not called.
    Describe,
    /// To know what it answers, too.
    Call,
}

/// What was found out about a function.
#[derive(Debug, Deserialize)]
pub(super) struct Report {
    pub(super) name: String,
    pub(super) module: String,
    pub(super) description: String,
    pub(super) files: Vec<String>,
    pub(super) packages: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) input_schema: Value,
    pub(super) output_schema: Value,
    pub(super) sample_input: Value,
    /// The answer; there is one when `deterministic` says something.
    #[serde(default)]
    pub(super) result: Value,
    pub(super) deterministic: Option<bool>,
    pub(super) call_error: Option<String>,
    /// Python: the function inside the module, dotted.
    pub(super) function: Option<String>,
    /// Node: the file, the export, how it is called, and what `.js` means.
    pub(super) file: Option<String>,
    pub(super) export: Option<String>,
    #[serde(default)]
    pub(super) call: Value,
    #[serde(rename = "type")]
    pub(super) module_type: Option<String>,
    /// Node: the folder of the files, seen from the folder of the file.
    pub(super) root: Option<String>,
}

/// Asks the interpreter about a function. Gives its report, and the name of the interpreter.
pub(super) fn introspect(
    source: Source<'_>,
    purpose: Purpose,
    input: Option<&str>,
) -> Result<(Report, &'static str), Failure> {
    let arguments = source.arguments(purpose, input);
    let script = scripts::introspection(source.language());
    for name in source.interpreters() {
        match program::run(name, &arguments, Path::new("."), &script, TIME_LIMIT) {
            Ok(ended) => return read(source, name, &ended).map(|report| (report, *name)),
            Err(RunError::Missing) => {}
            Err(error) => return Err(not_run(source, name, error)),
        }
    }
    let (needed, minimum) = match source.language() {
        Language::Python => ("python3", "Python 3.9"),
        Language::Node => ("node", "Node 18"),
    };
    Err(Failure::new(Exit::Unavailable, format!("`{needed}` is not on the PATH"))
        .hint(format!("`{}` runs on it: install {minimum} or later", source.target())))
}

/// Why a function could not be run at all.
pub(super) fn not_run(source: Source<'_>, interpreter: &str, error: RunError) -> Failure {
    let target = source.target();
    match error {
        RunError::TooSlow => {
            let seconds = TIME_LIMIT.as_secs();
            Failure::invalid(format!("`{target}` took longer than {seconds} seconds, and was ended"))
                .hint("it is loaded and called with a sample: `--input` gives another, `--no-run` only loads it")
        }
        RunError::Missing => {
            Failure::new(Exit::Unavailable, format!("`{interpreter}` is not on the PATH"))
        }
        RunError::Start(error) => {
            Failure::new(Exit::Unavailable, format!("failed to run `{interpreter}`")).cause(error)
        }
    }
}

/// Reads the one line of a report. It was written beside a stranger's code, so it may be anything.
fn read(source: Source<'_>, interpreter: &str, ended: &Ended) -> Result<Report, Failure> {
    let parsed = manifest::json::parse(&ended.stdout);
    let document = parsed.root.filter(|_| parsed.faults.is_empty()).map(|root| root.to_value());
    if let Some(document) = document {
        if document["ok"] == false && document["error"].is_string() {
            let text = |key: &str| document[key].as_str().unwrap_or_default().to_owned();
            let failure = Failure::invalid(plain(&text("error")));
            let hint = text("hint");
            return Err(if hint.is_empty() { failure } else { failure.hint(plain(&hint)) });
        }
        if document["ok"] == true
            && let Ok(report) = serde_json::from_value(document)
        {
            return Ok(report);
        }
    }
    let message = format!("`{interpreter}` could not describe `{}`", source.target());
    let mut failure = Failure::invalid(message);
    failure.causes = ended.last_words().into_iter().map(str::to_owned).collect();
    if failure.causes.is_empty() {
        failure = failure.cause("it ended without a word");
    }
    Err(failure)
}

/// A sentence of a script as our messages are written: a phrase, without the full stop.
fn plain(sentence: &str) -> String {
    let phrase = sentence.trim().trim_end_matches('.');
    let first = phrase.split(' ').next().unwrap_or_default();
    // A name keeps its capital; a file's name has a dot in it.
    if first.bytes().all(|b| b.is_ascii_alphabetic()) && !phrase.is_empty() {
        phrase[..1].to_ascii_lowercase() + &phrase[1..]
    } else {
        phrase.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_an_export_are_told_apart() {
        for (typed, expected) in [
            ("a.js", ("a.js", None)),
            ("a.js:add", ("a.js", Some("add"))),
            ("dir/a.mjs:default", ("dir/a.mjs", Some("default"))),
            (r"C:\a.cjs", (r"C:\a.cjs", None)),
            (r"C:\a.cjs:add", (r"C:\a.cjs", Some("add"))),
            ("a:b.js", ("a:b.js", None)),
        ] {
            let Source::Node { file, export, .. } = Source::node(typed) else { unreachable!() };
            assert_eq!((file, export), expected, "{typed}");
        }
    }

    #[test]
    fn what_is_typed_never_becomes_an_option() {
        let source = Source::node("--eval.js:--call");
        let arguments = source.arguments(Purpose::Describe, Some("-1"));
        let expected =
            ["--input-type=module", "-", "--export=--call", "--input=-1", "--", "--eval.js"];
        assert_eq!(arguments, expected);
    }

    #[test]
    fn sentences_become_phrases() {
        assert_eq!(plain("There is no module \"x\"."), "there is no module \"x\"");
        assert_eq!(plain("Slug.js exports no function."), "Slug.js exports no function");
        assert_eq!(plain("É."), "É");
        assert_eq!(plain(" . "), "");
    }

    #[test]
    fn a_crash_is_told_in_its_own_last_words() {
        let ended = Ended {
            success: false,
            stdout: "{\"ok\": tr".to_owned(),
            stderr: "Traceback\n\nSegmentation fault\n".to_owned(),
        };
        let failure = read(Source::Python { target: "a:b" }, "python3", &ended).unwrap_err();
        assert_eq!(failure.exit, Exit::Invalid);
        assert_eq!(failure.message, "`python3` could not describe `a:b`");
        assert_eq!(failure.causes, ["Traceback", "Segmentation fault"]);
    }
}
