//! From paths the user typed to packages, or to the reason why not.

use std::path::{Path, PathBuf};

use manifest::companion;
use manifest::dialect::{Dialect, Form, capability, resembles, skill};
use manifest::document::{Options, Report, read};
use manifest::finding::Code;
use manifest::folder::LAYERS;
use manifest::model::Package;
use package::contents::Around;

use install::parcel::companion_of;

use crate::container;
use crate::disk::{self, Beside};
use crate::draw::refused;
use crate::exit::{Exit, Failure};
use crate::printer::Printer;

/// How paths are to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loading<'l> {
    /// The dialect, when it is not to be recognised.
    pub(crate) dialect: Option<Dialect>,
    /// The id of a tools.json.
    pub(crate) id: Option<&'l str>,
}

impl Loading<'_> {
    /// Reads the packages at a path: a manifest, or a folder that holds some.
    pub(crate) fn packages(self, path: &Path, printer: Printer) -> Result<Vec<Package>, Failure> {
        let located = self.located(path, printer)?;
        Ok(located.into_iter().map(|(_, package)| package).collect())
    }

    /// The same, each with the file it was found in.
    pub(crate) fn located(
        self,
        path: &Path,
        printer: Printer,
    ) -> Result<Vec<(PathBuf, Package)>, Failure> {
        let at = |file: &Path, found: Vec<Package>| {
            found.into_iter().map(|package| (file.to_owned(), package)).collect::<Vec<_>>()
        };
        if !path.is_dir() {
            return Ok(at(path, self.file(path, printer)?));
        }
        let mut packages = Vec::new();
        let mut base = (path.to_owned(), Vec::new());
        for file in disk::document_files(path, self.dialect)? {
            let name = file
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            // A package may bring a skill along that tells agents how to use it.
            if name == skill::FILE_NAME && has_manifest(&file) {
                continue;
            }
            let bytes = disk::read(&file)?;
            let (report, found) = match self.read(&bytes, &file) {
                Ok(read) => read,
                // What an interface says of itself is no package, whatever is wrong with it.
                Err(report) if report.form == Some(Form::OpenApi) => continue,
                Err(report) if is_foreign(&name, &bytes, &report) => continue,
                Err(report) => return Err(refused(&file, &bytes, &report, printer)),
            };
            match (report.form, name.as_str()) {
                (Some(Form::Catalog), name) if name == LAYERS.0 => base = (file, found),
                (Some(Form::Catalog), name) if name == LAYERS.1 => {
                    let merged = capability::merge(std::mem::take(&mut base.1), found);
                    packages.extend(at(&file, merged));
                }
                (Some(Form::Manifest | Form::Catalog | Form::Bundle), _) => {
                    packages.extend(at(&file, found));
                }
                _ => {}
            }
        }
        packages.extend(at(&base.0, base.1));
        if packages.is_empty() {
            return Err(Failure::new(
                Exit::NotFound,
                format!("no manifests below `{}`", path.display()),
            ));
        }
        Ok(packages)
    }

    fn file(self, path: &Path, printer: Printer) -> Result<Vec<Package>, Failure> {
        if container::is_archive(path) {
            return self.archive(path, printer);
        }
        let bytes = disk::read(path)?;
        match self.read(&bytes, path) {
            Ok((report, packages)) => {
                if let Some(
                    form @ (Form::Test
                    | Form::Companion
                    | Form::Index
                    | Form::OpenApi
                    | Form::Publisher
                    | Form::Provenance),
                ) = report.form
                {
                    return Err(Failure::invalid(format!(
                        "`{}` is no manifest but {}",
                        path.display(),
                        form.noun()
                    )));
                }
                Ok(packages)
            }
            Err(report) => Err(refused(path, &bytes, &report, printer)),
        }
    }

    fn archive(self, path: &Path, printer: Printer) -> Result<Vec<Package>, Failure> {
        let container = container::open(path, printer)?;
        container.check_unbroken()?;
        let (name, bytes) = container.manifest()?;
        let own_name = container.name();
        let fallback_id = Some(self.id.unwrap_or(&own_name));
        let options = Options { dialect: self.dialect, fallback_id, ..Options::default() };
        let (_, mut packages) = read(&bytes, &options)
            .map_err(|report| refused(&path.join(&name), &bytes, &report, printer))?;
        for package in &mut packages {
            manifest::skill::apply(&Around(container.contents()), package);
        }
        if let Some(companion) = companion_of(&Around(container.contents())).ok().flatten() {
            for package in &mut packages {
                companion::apply(&companion, package);
            }
        }
        Ok(packages)
    }

    fn read(self, bytes: &[u8], path: &Path) -> Result<(Report, Vec<Package>), Report> {
        let folder_name = disk::folder_name(path);
        let fallback_id = self.id.or(folder_name.as_deref());
        let is_skill = path.file_name().is_some_and(|name| name == skill::FILE_NAME);
        let dialect = self.dialect.or_else(|| is_skill.then_some(Dialect::Skill));
        let folder = folder_name.as_deref();
        let options = Options { dialect, fallback_id, folder, ..Options::default() };
        let (report, mut packages) = read(bytes, &options)?;
        for package in &mut packages {
            manifest::skill::apply(&Beside::of(path), package);
        }
        if let Some(companion) = companion_of(&Beside::of(path)).ok().flatten() {
            for package in &mut packages {
                companion::apply(&companion, package);
            }
        }
        Ok((report, packages))
    }
}

/// Whether a manifest of another kind stands beside a file.
fn has_manifest(file: &Path) -> bool {
    let folder = file.parent().unwrap_or(Path::new(""));
    package::contents::MANIFEST_NAMES.iter().any(|name| folder.join(name).is_file())
}

/// Files whose name says that they are meant to be manifests.
const MANIFEST_NAMES: [&str; 7] =
    ["manifest.json", "tools.json", "tool.json", "haft.json", LAYERS.0, LAYERS.1, skill::FILE_NAME];

/// Whether a file below a folder was never meant to be a manifest.
pub(crate) fn is_foreign(name: &str, bytes: &[u8], report: &Report) -> bool {
    if report.form.is_some() {
        return false;
    }
    let text = String::from_utf8_lossy(bytes);
    let is_other = report.findings.iter().any(|finding| finding.code == Code::UnknownDialect);
    let is_meant = MANIFEST_NAMES.contains(&name) || name.ends_with(".test.json");
    // Web apps and browser extensions have a `manifest.json` too.
    let web = ["\"start_url\"", "\"icons\"", "\"short_name\"", "\"content_scripts\""];
    let is_web = name == "manifest.json" && web.iter().any(|key| text.contains(key));
    if is_meant { is_other && is_web } else { is_other || !resembles(&text) }
}
