//! `haft validate`: everything that is wrong with manifests, and where.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::Args;
use manifest::companion;
use manifest::dialect::{Dialect, Form, skill};
use manifest::document::{Options, Report, check};
use manifest::finding::Severity;
use manifest::folder::{FileReport, check_with_folder};
use manifest::json::{Places, parse};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::count;
use crate::container;
use crate::disk::{self, Beside};
use crate::draw::{draw, to_value};
use crate::exit::{Exit, Failure, Outcome};
use crate::load;
use crate::printer::{Printer, Style, escaped};

#[derive(Args, Debug)]
pub(crate) struct ValidateArgs {
    /// Manifests, packages, or folders to look for manifests in; `-` reads standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Read the files as this dialect instead of recognising it
    #[arg(long, value_name = "DIALECT", value_parser = super::dialect)]
    dialect: Option<Dialect>,
    /// Fail on warnings too
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &ValidateArgs, json_wanted: bool, printer: Printer) -> Outcome {
    let mut checked = Vec::new();
    let mut failures = Vec::new();
    for path in &args.paths {
        let is_folder = path.is_dir();
        let (dialect, strict) = (args.dialect, args.strict);
        let look = Look { dialect, json: json_wanted, named: !is_folder, strict, printer };
        match look.at_path(path, is_folder) {
            Ok((found, failed)) => {
                checked.extend(found);
                failures.extend(failed);
            }
            Err(failure) => failures.push(failure),
        }
    }
    // A test that was checked with its manifest is not told again by itself.
    let beside: HashSet<String> =
        checked.iter().filter(|entry| entry.is_beside).map(|entry| entry.path.clone()).collect();
    checked.retain(|entry| entry.is_beside || !beside.contains(&entry.path));
    let mut tally = Tally::default();
    let mut files = Vec::new();
    for entry in checked {
        tally.add(&entry);
        if json_wanted {
            files.push(entry.document);
        } else {
            printer.result(&entry.text)?;
        }
    }
    if json_wanted {
        printer.json(&json!({"files": files}))?;
    } else {
        tally.tell(args.strict, printer);
    }
    // What could not be read does not keep the rest from being checked.
    let last = failures.pop();
    for failure in &failures {
        printer.failure(failure);
    }
    let fails = tally.invalid > 0 || (args.strict && tally.warnings > 0);
    match last {
        Some(failure) => Err(failure),
        None => Ok(if fails { Exit::Invalid } else { Exit::Done }),
    }
}

#[derive(Default)]
struct Tally {
    files: usize,
    invalid: usize,
    errors: usize,
    warnings: usize,
    hidden_warnings: usize,
}

impl Tally {
    fn add(&mut self, entry: &Checked) {
        self.files += 1;
        self.invalid += usize::from(entry.errors > 0);
        self.errors += entry.errors;
        self.warnings += entry.warnings;
        self.hidden_warnings += if entry.is_drawn { 0 } else { entry.warnings };
    }

    fn tell(&self, strict: bool, printer: Printer) {
        let files = count(self.files, "file");
        if self.invalid > 0 || (strict && self.warnings > 0) {
            printer.note(&format!(
                "{files}: {} invalid, {}, {}",
                self.invalid,
                count(self.errors, "error"),
                count(self.warnings, "warning")
            ));
        } else if self.files > 1 {
            printer.note(&format!("{files}, all valid"));
        }
        if self.hidden_warnings > 0 {
            printer.note(&format!(
                "{} not shown: name the file, or use --strict, to see them",
                count(self.hidden_warnings, "warning")
            ));
        }
    }
}

/// How files are looked at.
#[derive(Clone, Copy)]
struct Look {
    dialect: Option<Dialect>,
    json: bool,
    /// Whether the user named the file, rather than a folder above it.
    named: bool,
    strict: bool,
    printer: Printer,
}

/// What is left of a file once it has been looked at. Its text is gone, so ten
/// thousand of these fit in memory.
struct Checked {
    path: String,
    is_beside: bool,
    is_drawn: bool,
    errors: usize,
    warnings: usize,
    text: String,
    document: Value,
}

impl Look {
    /// Looks at a file, or at every manifest below a folder; also gives what could not be read.
    fn at_path(
        self,
        path: &Path,
        is_folder: bool,
    ) -> Result<(Vec<Checked>, Vec<Failure>), Failure> {
        if !is_folder {
            return Ok((self.at(path)?, Vec::new()));
        }
        let targets = disk::document_files(path, self.dialect)?;
        let looked: Vec<_> = targets.par_iter().map(|target| self.at(target)).collect();
        let mut checked = Vec::new();
        let mut failures = Vec::new();
        for result in looked {
            match result {
                Ok(entries) => checked.extend(entries),
                Err(failure) => failures.push(failure),
            }
        }
        if checked.is_empty() && failures.is_empty() {
            let message = format!("no manifests below `{}`", path.display());
            let failure = Failure::new(Exit::NotFound, message);
            return Err(match targets.len() {
                0 => failure,
                many => failure.hint(format!(
                    "looked at {}; `--dialect` forces a dialect",
                    count(many, "JSON file")
                )),
            });
        }
        Ok((checked, failures))
    }

    /// Looks at the manifest in an archive, and the files it speaks of.
    fn at_archive(self, path: &Path) -> Result<Vec<Checked>, Failure> {
        let container = container::open(path, self.printer)?;
        container.listing()?;
        let reports = container.reports(self.dialect)?;
        let shown = |file: &FileReport| path.join(&file.path).to_string_lossy().into_owned();
        Ok(reports
            .into_iter()
            .enumerate()
            .map(|(index, file)| self.checked(&shown(&file), index > 0, file))
            .collect())
    }

    fn at(self, path: &Path) -> Result<Vec<Checked>, Failure> {
        if self.named && container::is_archive(path) {
            return self.at_archive(path);
        }
        let bytes = disk::read(path)?;
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let folder_name = disk::folder_name(path);
        let manifest = name.ends_with(".test.json").then(|| manifest_of_test(path)).flatten();
        let options = Options {
            dialect: self.dialect,
            fallback_id: folder_name.as_deref(),
            manifest: manifest.as_deref(),
            ..Options::default()
        };
        let options = match name.as_str() {
            skill::FILE_NAME if self.dialect.is_none() => {
                Options { dialect: Some(Dialect::Skill), folder: folder_name.as_deref(), ..options }
            }
            manifest::folder::COMPANION => Options { form: Some(Form::Companion), ..options },
            manifest::openapi::FILE_NAME if self.named && self.dialect.is_none() => {
                Options { form: Some(Form::OpenApi), ..options }
            }
            _ if manifest.is_some() => options.for_test(),
            _ if self.named && name.ends_with(".test.json") => {
                Options { dialect: Some(Dialect::Mcpkg), ..options }.for_test()
            }
            _ => options,
        };
        let reports = if path == Path::new("-") {
            // What comes from standard input stands in no folder.
            let report = check(&bytes, &Options { fallback_id: None, ..options });
            vec![FileReport { path: name.clone(), bytes, report }]
        } else {
            check_with_folder(&name, bytes, &options, &Beside::of(path))
        };
        if !self.named
            && reports
                .first()
                .is_some_and(|first| load::is_foreign(&name, &first.bytes, &first.report))
        {
            return Ok(Vec::new());
        }
        // Below a folder, the OpenAPI documents of a package are told with its manifest; others are
        // none of our business.
        if !self.named
            && reports.first().is_some_and(|first| first.report.form == Some(Form::OpenApi))
        {
            return Ok(Vec::new());
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        Ok(reports
            .into_iter()
            .enumerate()
            .map(|(index, file)| {
                let shown = if index == 0 { path.to_owned() } else { parent.join(&file.path) };
                self.checked(&shown.to_string_lossy(), index > 0, file)
            })
            .collect())
    }

    fn checked(self, path: &str, is_beside: bool, file: FileReport) -> Checked {
        let FileReport { bytes, report, .. } = file;
        let text = String::from_utf8_lossy(&bytes);
        let errors = report.count(Severity::Error);
        let warnings = report.count(Severity::Warning);
        let is_drawn = errors > 0 || self.named || self.strict;
        let mut checked = Checked {
            path: path.to_owned(),
            is_beside,
            is_drawn,
            errors,
            warnings,
            text: String::new(),
            document: Value::Null,
        };
        if self.json {
            checked.document = document(path, &report, &text);
        } else {
            checked.text = self.drawn(path, &report, &text, is_drawn);
        }
        checked
    }

    fn drawn(self, path: &str, report: &Report, text: &str, is_drawn: bool) -> String {
        let mut drawn = String::new();
        if is_drawn && !report.findings.is_empty() {
            let places = Places::new(text);
            for finding in &report.findings {
                drawn += &draw(finding, path, text, &places, self.printer);
                drawn.push('\n');
            }
        }
        drawn + &self.line(path, report, text)
    }

    /// The one line about a file.
    fn line(self, path: &str, report: &Report, text: &str) -> String {
        let verdict = if report.is_valid() {
            self.printer.paint(Style::Good, "valid  ")
        } else {
            self.printer.paint(Style::Error, "invalid")
        };
        let mut parts = vec![match (report.dialect, report.version) {
            (Some(dialect), Some(version)) => format!("{dialect} {version}"),
            (Some(dialect), None) => dialect.to_string(),
            (None, _) if report.form == Some(Form::Companion) => "haft.json".to_owned(),
            (None, _) if report.form == Some(Form::Publisher) => "publisher".to_owned(),
            (None, _) if report.form == Some(Form::Provenance) => "provenance".to_owned(),
            (None, Some(version)) if report.form == Some(Form::OpenApi) => {
                format!("openapi {version}")
            }
            (None, None) if report.form == Some(Form::OpenApi) => "openapi".to_owned(),
            (None, _) => "no dialect".to_owned(),
        }];
        let is_said = |form: &Form| {
            matches!(
                form,
                Form::Manifest
                    | Form::Companion
                    | Form::OpenApi
                    | Form::Publisher
                    | Form::Provenance
            )
        };
        if let Some(form) = report.form.filter(|form| !is_said(form)) {
            parts[0] += &format!(" {}", form.name());
        }
        parts.extend(report.title.clone());
        if report.form == Some(Form::Companion) && report.is_valid() {
            parts.extend(claims(text));
        }
        let (errors, warnings) = (report.count(Severity::Error), report.count(Severity::Warning));
        if errors > 0 {
            parts.push(count(errors, "error"));
        }
        if warnings > 0 {
            parts.push(count(warnings, "warning"));
        }
        format!("{verdict}  {}  {}\n", escaped(path), escaped(&parts.join(", ")))
    }
}

/// What a companion claims, in a few words.
fn claims(text: &str) -> Option<String> {
    let companion = companion::read(&parse(text).root?);
    let secrets: Vec<_> = companion.secrets.iter().map(|(name, _)| name.clone()).collect();
    let named = |what: &str, names: &[String]| {
        (!names.is_empty()).then(|| format!("{what} {}", names.join(" ")))
    };
    let claims: Vec<_> = [
        named("network", &companion.permissions.hosts),
        named("reads", &companion.permissions.read),
        named("writes", &companion.permissions.write),
        named("devices", &companion.permissions.devices),
        named("env", &companion.env),
        named("secrets", &secrets),
        named("needs", &companion.dependencies),
    ]
    .into_iter()
    .flatten()
    .collect();
    Some(if claims.is_empty() {
        "claims nothing".to_owned()
    } else {
        format!("claims {}", claims.join("; "))
    })
}

/// The manifest of the package a test stands in.
fn manifest_of_test(path: &Path) -> Option<Vec<u8>> {
    let folder = std::path::absolute(path).ok()?.parent()?.parent()?.to_owned();
    disk::read(&folder.join("manifest.json")).ok()
}

fn document(path: &str, report: &Report, text: &str) -> Value {
    let places = Places::new(text);
    let findings: Vec<_> =
        report.findings.iter().map(|finding| to_value(finding, &places)).collect();
    let mut document = json!({
        "path": path,
        "dialect": report.dialect,
        "version": report.version,
        "form": report.form.map(Form::name),
        "valid": report.is_valid(),
        "findings": findings,
    });
    if report.form == Some(Form::Companion) && report.is_valid() {
        document["claims"] = claims(text).map_or(Value::Null, Value::from);
    }
    document
}
