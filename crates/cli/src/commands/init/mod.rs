//! `haft init`: a new package that works, from nothing or around a function.

mod function;
mod introspect;
mod scripts;

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use manifest::dialect::Dialect;
use manifest::document::Options;
use manifest::finding::Severity;
use manifest::folder::{Folder, FolderError, check_with_folder};
use manifest::starter::{Starter, StarterError, StarterFile, folder_name, starter};
use serde_json::json;

use crate::exit::{Exit, Failure, Outcome};
use crate::new_folder;
use crate::printer::{Printer, escaped};
use crate::shell;
use introspect::Source;

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("function").args(["python", "node"])))]
#[command(after_help = "\
Examples:
  haft init --dialect mcpkg --id acme.text.count
  haft init --python calc:add
  haft init tools/slug --node slug.js:slugify --id acme.text.slugify")]
pub(crate) struct InitArgs {
    /// Folder to make; named after the last part of the id when left out
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// What to write: install-manifest, agentcli, mcpkg, capability or jumith
    #[arg(long, value_name = "DIALECT", value_parser = super::target)]
    dialect: Option<Dialect>,
    /// Id of the package
    #[arg(long)]
    id: Option<String>,
    /// Name people see; made from the id when left out
    #[arg(long)]
    name: Option<String>,
    /// One sentence on what it does
    #[arg(long)]
    summary: Option<String>,
    /// Make an mcpkg package of a Python function, found from the current folder
    #[arg(long, value_name = "MODULE:FUNCTION")]
    python: Option<String>,
    /// Make an mcpkg package of a JavaScript function
    #[arg(long, value_name = "FILE[:EXPORT]")]
    node: Option<String>,
    /// What to call the function with for its test; made from its types when left out
    #[arg(long, value_name = "JSON", requires = "function")]
    input: Option<String>,
    /// Do not call the function; the package then has no test
    #[arg(long, requires = "function", conflicts_with = "input")]
    no_run: bool,
}

pub(crate) fn run(args: &InitArgs, json_wanted: bool, printer: Printer) -> Outcome {
    let mut package = match source(args)? {
        Some(source) => function::package(args, source, printer)?,
        None => from_nothing(args)?,
    };
    check(&mut package)?;
    new_folder::write(&package.folder, &package.files)?;
    tell(&package, json_wanted, printer)
}

/// A package that is about to be written.
struct NewPackage {
    dialect: Dialect,
    id: String,
    folder: PathBuf,
    files: Vec<StarterFile>,
    warnings: Vec<String>,
    /// What it was made from; nothing for a starter.
    made_from: Option<String>,
}

/// The function a package is to be made of, if any.
fn source(args: &InitArgs) -> Result<Option<Source<'_>>, Failure> {
    let source = match (&args.python, &args.node) {
        (Some(target), _) => Source::Python { target },
        (None, Some(target)) => Source::node(target),
        (None, None) => return Ok(None),
    };
    match args.dialect {
        None | Some(Dialect::Mcpkg) => Ok(Some(source)),
        Some(other) => Err(Failure::invalid(format!(
            "a package made of a function is written in mcpkg, not in {other}"
        ))
        .hint("leave out `--dialect`")),
    }
}

fn from_nothing(args: &InitArgs) -> Result<NewPackage, Failure> {
    let (Some(dialect), Some(id)) = (args.dialect, &args.id) else {
        let missing = match (args.dialect, &args.id) {
            (None, None) => "`--dialect` and `--id` are",
            (None, _) => "`--dialect` is",
            (_, _) => "`--id` is",
        };
        let dialects = Dialect::TARGETS.map(Dialect::name).join("|");
        return Err(Failure::invalid(format!("{missing} missing")).hint(format!(
            "`haft init DIR --dialect {dialects} --id ID`, or `haft init --python MODULE:FUNCTION`"
        )));
    };
    let wanted = Starter { id, name: args.name.as_deref(), summary: args.summary.as_deref() };
    let files = starter(dialect, &wanted).map_err(|error| refused(&error))?;
    let folder = folder(args, id, files.iter().map(|file| file.path.as_str()))?;
    Ok(NewPackage { dialect, id: id.clone(), folder, files, warnings: Vec::new(), made_from: None })
}

/// The folder to write to, with nothing in it that would be overwritten.
fn folder<'p>(
    args: &InitArgs,
    id: &str,
    paths: impl IntoIterator<Item = &'p str>,
) -> Result<PathBuf, Failure> {
    let folder = args.folder.clone().unwrap_or_else(|| folder_name(id).into());
    new_folder::check_free(&folder, paths)?;
    let is_used = || std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
    if args.folder.is_none() && is_used() {
        // Nobody named it, so nobody said that new files belong there.
        let message = format!("the folder `{}` is already there", folder.display());
        let named = shell::word(&folder.display().to_string());
        let hint = format!("name the folder to write to: `haft init {named} …`");
        return Err(Failure::new(Exit::Conflict, message).hint(hint));
    }
    Ok(folder)
}

fn refused(error: &StarterError) -> Failure {
    let failure = Failure::invalid(error.to_string());
    match error {
        StarterError::BadId { grammar, .. } => failure.hint(format!("write {}", grammar.words)),
        StarterError::BadText { .. } | StarterError::OnlyRead(_) => failure,
        StarterError::BrokenPromise { .. } => {
            failure.hint("mend the type of the result, or leave the test out with `--no-run`")
        }
    }
}

/// Checks the package as `haft validate` would: nothing is written that does not pass.
fn check(package: &mut NewPackage) -> Result<(), Failure> {
    let name = package.dialect.file_name();
    let beside = InMemory(&package.files);
    let bytes = beside.read(name).unwrap_or_default();
    let options = Options { dialect: Some(package.dialect), ..Options::default() };
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for file in check_with_folder(name, bytes, &options, &beside) {
        for finding in file.report.findings {
            match finding.severity {
                Severity::Error => {
                    errors.push(format!("{} {}: {}", file.path, finding.pointer, finding.message));
                }
                Severity::Warning => warnings.push(finding.message),
            }
        }
    }
    package.warnings.extend(warnings);
    if errors.is_empty() {
        return Ok(());
    }
    let mut failure = match &package.made_from {
        Some(function) => {
            Failure::invalid(format!("the package of `{function}` would not be valid"))
        }
        None => Failure::new(Exit::Bug, "the new package would not be valid"),
    };
    failure.causes = errors;
    Err(failure)
}

/// The files of a package before they are on the disk.
struct InMemory<'f>(&'f [StarterFile]);

impl Folder for InMemory<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, FolderError> {
        let file = self.0.iter().find(|file| file.path == path);
        file.map(|file| file.content.clone()).ok_or(FolderError::Missing)
    }

    fn test_files(&self) -> Vec<String> {
        let paths = self.0.iter().map(|file| &file.path);
        paths.filter(|path| path.ends_with(".test.json")).cloned().collect()
    }
}

fn tell(package: &NewPackage, json_wanted: bool, printer: Printer) -> Outcome {
    let NewPackage { dialect, id, folder, files, warnings, .. } = package;
    for warning in warnings {
        printer.warn(&escaped(warning));
    }
    if json_wanted {
        let paths: Vec<_> = files.iter().map(|file| &file.path).collect();
        printer.json(&json!({
            "dir": folder.to_string_lossy(),
            "id": id,
            "dialect": dialect,
            "files": paths,
            "warnings": warnings,
        }))?;
    } else {
        let shown = |file: &StarterFile| format!("{}\n", shown(&folder.join(&file.path)));
        printer.result(&files.iter().map(shown).collect::<String>())?;
    }
    let folder = shown(folder);
    printer.note(&format!("Made {id} ({dialect}) in {folder}; next: haft validate {folder}"));
    Ok(Exit::Done)
}

fn shown(path: &Path) -> String {
    escaped(&path.to_string_lossy())
}
