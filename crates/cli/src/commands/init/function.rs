//! A package around a function: what it is asked, how it is tried, which files it takes along.

use std::path::Path;

use manifest::dialect::Dialect;
use manifest::starter::{
    Answers, Function, Language, Recorded, Starter, StarterFile, function_package, local_id,
};
use serde_json::{Value, json};

use super::introspect::{Purpose, Report, Source, introspect, not_run};
use super::{InitArgs, NewPackage, folder, refused, scripts};
use crate::exit::{Exit, Failure};
use crate::new_folder;
use crate::printer::{Printer, escaped};
use crate::program::{self, TIME_LIMIT};

/// The longest answer a test writes down, in bytes.
const MAX_RECORDED: usize = 64 * 1024;

/// The longest text shown of a sample.
const MAX_SHOWN: usize = 200;

/// Makes the package. The function is called only after its types are known, the folder is known
/// to be free, and the user has been told.
pub(super) fn package(
    args: &InitArgs,
    source: Source<'_>,
    printer: Printer,
) -> Result<NewPackage, Failure> {
    let about = |id| Starter { id, name: args.name.as_deref(), summary: args.summary.as_deref() };
    let typed_id = args.id.as_deref();
    about(typed_id.unwrap_or("local.unnamed"))
        .check(Dialect::Mcpkg)
        .map_err(|error| refused(&error))?;
    let input = args.input.as_deref();
    let (mut report, interpreter) = introspect(source, Purpose::Describe, input)?;
    let id = typed_id.map_or_else(|| default_id(source, &report), str::to_owned);
    if typed_id.is_none() {
        printer.note(&format!("the id is {id}; --id gives it another"));
    }
    let folder = folder(args, &id, own_files(&report))?;
    let target = shown(source.target());
    if args.no_run {
        printer.note(&format!("{target} is not called, so the package has no test"));
    } else {
        let sample = shown(&report.sample_input.to_string());
        printer.note(&format!(
            "calling {target} with {sample} to record what it answers; --no-run leaves the test out"
        ));
        (report, _) = introspect(source, Purpose::Call, input)?;
    }
    let runner = runner_name(source.language(), &report.files);
    let code = code_files(source, &report, runner)?;
    let mut warnings = report.warnings.clone();
    let recorded = if args.no_run {
        None
    } else {
        Some(recorded(source, interpreter, &report, runner, &code, &mut warnings)?)
    };
    let mut files = function_package(&Function {
        about: about(&id),
        called: source.target(),
        name: &report.name,
        description: &report.description,
        language: source.language(),
        interpreter,
        runner,
        packages: &report.packages,
        input_schema: &report.input_schema,
        output_schema: &report.output_schema,
        input: &report.sample_input,
        recorded,
    })
    .map_err(|error| refused(&error))?;
    files.extend(code);
    check_twins(&files)?;
    let made_from = Some(source.target().to_owned());
    Ok(NewPackage { dialect: Dialect::Mcpkg, id, folder, files, warnings, made_from })
}

fn default_id(source: Source<'_>, report: &Report) -> String {
    match source {
        Source::Python { .. } => {
            let function = report.function.as_deref().unwrap_or(&report.name);
            local_id(report.module.split('.').chain(function.split('.')))
        }
        Source::Node { .. } => local_id([report.module.as_str(), report.name.as_str()]),
    }
}

/// The paths that are known before the function is called.
fn own_files(report: &Report) -> impl Iterator<Item = &str> {
    ["manifest.json", "README.md"].into_iter().chain(report.files.iter().map(String::as_str))
}

/// What the function answered, and whether its test can expect that again.
fn recorded<'r>(
    source: Source<'_>,
    interpreter: &str,
    report: &'r Report,
    runner: &str,
    code: &[StarterFile],
    warnings: &mut Vec<String>,
) -> Result<Recorded<'r>, Failure> {
    let target = source.target();
    let (input, result) = (&report.sample_input, &report.result);
    if let Some(error) = &report.call_error {
        let sample = shown(&input.to_string());
        return Err(Failure::invalid(format!("`{target}` failed with the input {sample}"))
            .cause(error)
            .hint("give an input that works, as in `--input '{\"a\": 1}'`, or leave the test out with `--no-run`"));
    }
    let again = match tried(source, interpreter, runner, code, input) {
        // What npm installs beside the function cannot be beside the package yet.
        Err(_) if source.language() == Language::Node && !report.packages.is_empty() => {
            let packages = report.packages.join(" ");
            warnings.push(format!("the package runs after `npm install {packages}` in its folder"));
            result.clone()
        }
        outcome => outcome?,
    };
    let doubt = if report.deterministic != Some(true) {
        "answers differently each time"
    } else if again != *result {
        "answers differently in the package"
    } else if result.to_string().len() > MAX_RECORDED {
        "answers at great length"
    } else {
        return Ok(Recorded { result, answers: Answers::Alike });
    };
    warnings.push(format!("`{target}` {doubt}, so its test asks only for the type of the answer"));
    Ok(Recorded { result, answers: Answers::Differently })
}

/// Calls the function once more, by the package's own runner and away from its old place.
fn tried(
    source: Source<'_>,
    interpreter: &str,
    runner: &str,
    code: &[StarterFile],
    input: &Value,
) -> Result<Value, Failure> {
    let place = tempfile::tempdir().map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to make a temporary folder").cause(error)
    })?;
    new_folder::write(place.path(), code)?;
    let runner = format!("./{runner}");
    let ended = program::run(interpreter, &[runner], place.path(), &input.to_string(), TIME_LIMIT)
        .map_err(|error| not_run(source, interpreter, error))?;
    let answer = manifest::json::parse(&ended.stdout).root.map(|root| root.to_value());
    answer.filter(|_| ended.success).ok_or_else(|| {
        let message = format!("`{}` works where it is, but not in the package", source.target());
        let mut failure = Failure::invalid(message);
        failure.causes = ended.last_words().into_iter().map(str::to_owned).collect();
        failure.hint("only source files are copied, not what they read; `--no-run` makes the package without a test")
    })
}

/// The name of the file that calls the function, other than its own files.
fn runner_name(language: Language, files: &[String]) -> &'static str {
    let names = match language {
        Language::Python => ["run.py", "run_tool.py"],
        Language::Node => ["run.mjs", "run-tool.mjs"],
    };
    let is_free = |name: &&str| !files.iter().any(|file| file.eq_ignore_ascii_case(name));
    names.into_iter().find(is_free).unwrap_or(names[1])
}

/// The function's own files, and the one that calls it.
fn code_files(
    source: Source<'_>,
    report: &Report,
    runner: &str,
) -> Result<Vec<StarterFile>, Failure> {
    let root = source.root(report);
    let content = runner_text(source, report)?.into_bytes();
    let mut files = vec![StarterFile { path: runner.to_owned(), content, executable: false }];
    for path in &report.files {
        if !is_plain(path) {
            return Err(Failure::invalid(format!("`{path}` is no path inside a package"))
                .hint("rename the file, or move it beneath the folder of the others"));
        }
        let content = std::fs::read(root.join(path)).map_err(|error| {
            Failure::new(Exit::Unavailable, format!("failed to read `{path}`")).cause(error)
        })?;
        files.push(StarterFile { path: path.clone(), content, executable: false });
    }
    // The function's own package.json, when it reads it, says the same.
    let has_own = report.files.iter().any(|file| file == "package.json");
    if let Some(module_type) = report.module_type.as_deref().filter(|_| !has_own) {
        let document = json!({ "private": true, "type": module_type });
        files.push(StarterFile::json("package.json", &document));
    }
    check_twins(&files)?;
    Ok(files)
}

fn runner_text(source: Source<'_>, report: &Report) -> Result<String, Failure> {
    let unknown =
        || Failure::invalid(format!("`{}` has a name that cannot be written", source.target()));
    match source.language() {
        Language::Python => {
            let function = report.function.as_deref().unwrap_or(&report.name);
            if !is_dotted_name(&report.module) || !is_dotted_name(function) {
                return Err(unknown());
            }
            let values = [("@MODULE@", report.module.as_str()), ("@FUNCTION@", function)];
            Ok(scripts::runner(Language::Python, &values))
        }
        Language::Node => {
            let (Some(file), Some(export)) = (&report.file, &report.export) else {
                return Err(unknown());
            };
            // A JSON value is a JavaScript expression.
            let [file, export] = [file, export].map(|text| Value::from(text.as_str()).to_string());
            let call = report.call.to_string();
            let values = [("\"@FILE@\"", &*file), ("\"@EXPORT@\"", &*export), ("@CALL@", &*call)];
            Ok(scripts::runner(Language::Node, &values))
        }
    }
}

/// Refuses two files of one name, as systems see it that ignore case.
fn check_twins(files: &[StarterFile]) -> Result<(), Failure> {
    let mut seen = std::collections::HashSet::new();
    match files.iter().find(|file| !seen.insert(file.path.to_lowercase())) {
        None => Ok(()),
        Some(twin) => {
            let message =
                format!("the function needs a file `{}`, and so does the package", twin.path);
            Err(Failure::new(Exit::Conflict, message).hint("rename the function's file"))
        }
    }
}

/// Whether a path leads to a place beneath its folder, on any system.
fn is_plain(path: &str) -> bool {
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..");
    path.split('/').all(is_segment)
        && !path.contains(['\\', ':'])
        && !path.contains(char::is_control)
        && Path::new(path).is_relative()
}

/// Whether a text is Python names joined by dots, which can stand inside quotes.
fn is_dotted_name(text: &str) -> bool {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c == '_' || c.is_alphanumeric());
    text.split('.').all(is_name)
}

/// A stranger's text on one line, not too long.
fn shown(text: &str) -> String {
    let text = escaped(text);
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_away_are_not_plain() {
        for path in ["a.py", "a/b.py", "..a/b"] {
            assert!(is_plain(path), "{path}");
        }
        for path in ["", "/a", "../a", "a/../b", "a//b", "./a", "a\\b", "C:a", "a\nb"] {
            assert!(!is_plain(path), "{path}");
        }
    }

    #[test]
    fn only_names_go_into_the_runner() {
        for name in ["calc", "pkg.sub", "Größe._x1"] {
            assert!(is_dotted_name(name), "{name}");
        }
        for name in ["", "a..b", "a\"", "a\\", "a b", "a\n", "a'", "a;b"] {
            assert!(!is_dotted_name(name), "{name:?}");
        }
    }

    #[test]
    fn the_runner_yields_to_a_file_of_its_name() {
        assert_eq!(runner_name(Language::Python, &["calc.py".into()]), "run.py");
        assert_eq!(runner_name(Language::Python, &["Run.py".into()]), "run_tool.py");
        assert_eq!(runner_name(Language::Node, &["run.mjs".into()]), "run-tool.mjs");
    }
}
