//! A manifest together with the files around it: tests, examples, the other layer,
//! `openapi.json`.
//!
//! The disk is behind [`Folder`], so an archive or a test can stand in for it.

use std::collections::{HashMap, HashSet};

use crate::dialect::rules::path_escapes;
use crate::dialect::{Dialect, Form, capability, mcpb};
use crate::document::{Options, Report, check};
use crate::finding::{Code, Finding, Severity};
use crate::json::{Node, Pointer, Span, parse};
use crate::meta;
use crate::openapi;
use crate::path::check_path;
use crate::shape::clip;

/// The name of the companion file.
pub const COMPANION: &str = "haft.json";

/// The two layers of a catalog.
pub const LAYERS: (&str, &str) = ("manifest.base.json", "manifest.local.json");

/// The files around a manifest. Each face brings its own.
pub trait Folder {
    /// Reads a file; the path is plain and relative, and links are not followed.
    fn read(&self, path: &str) -> Result<Vec<u8>, FolderError>;

    /// The paths of the test files there are.
    fn test_files(&self) -> Vec<String>;

    /// The files in `scripts/`; none where nobody asks for them.
    fn scripts(&self) -> Vec<Script> {
        Vec::new()
    }
}

/// A file that may be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Its name in the folder.
    pub name: String,
    /// Whether it can be run by itself.
    pub is_executable: bool,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderError {
    /// It is not there.
    Missing,
    /// It is there, but it is no plain file.
    NotAFile,
    /// It cannot be read, for this reason.
    Unreadable(String),
}

/// What was found out about one file.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The path, relative to the manifest's folder; the manifest itself comes first.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
    /// What was found.
    pub report: Report,
}

/// Checks a manifest and the files it speaks of.
pub fn check_with_folder(
    name: &str,
    bytes: Vec<u8>,
    options: &Options<'_>,
    folder: &dyn Folder,
) -> Vec<FileReport> {
    let report = check(&bytes, options);
    let mut around = Around { folder, extra: Vec::new(), files: Vec::new() };
    match (report.dialect, report.form) {
        (Some(Dialect::Mcpkg), Some(Form::Manifest)) => around.mcpkg(&bytes),
        (Some(Dialect::Capability), Some(Form::Catalog)) if name == LAYERS.1 => {
            around.layers(&bytes);
        }
        (Some(Dialect::InstallManifest), Some(Form::Manifest)) => around.suite(&bytes),
        (Some(Dialect::Mcpb), Some(Form::Manifest)) => around.mcpb(&bytes),
        _ => {}
    }
    if let (Some(dialect), Some(Form::Manifest)) = (report.dialect, report.form) {
        around.companion();
        around.openapi(dialect, &bytes);
        around.meta(&bytes);
    }
    let Around { extra, mut files, .. } = around;
    let mut manifest = FileReport { path: name.to_owned(), bytes, report };
    manifest.report.findings.extend(extra);
    manifest.report.findings.sort_by_key(|finding| finding.span);
    files.insert(0, manifest);
    files
}

struct Around<'f> {
    folder: &'f dyn Folder,
    extra: Vec<Finding>,
    files: Vec<FileReport>,
}

impl Around<'_> {
    fn mcpkg(&mut self, bytes: &[u8]) {
        let Some(root) = std::str::from_utf8(bytes).ok().and_then(|text| parse(text).root) else {
            return;
        };
        let mut listed = HashSet::new();
        for (index, entry) in root.list_at("tests").iter().enumerate() {
            let Some(path) = entry.as_text().filter(|path| !path_escapes(path)) else { continue };
            if listed.insert(plain(path)) {
                let pointer = Pointer::root().key("tests").index(index);
                if let Some(content) = self.read(path, entry, pointer) {
                    self.test(plain(path), content, bytes);
                }
            }
        }
        for (index, entry) in root.list_at("examples").iter().enumerate() {
            if let Some(path) = entry.as_text().filter(|path| !path_escapes(path)) {
                let pointer = Pointer::root().key("examples").index(index);
                self.read(path, entry, pointer);
            }
        }
        for path in self.folder.test_files() {
            if !listed.contains(path.as_str())
                && let Ok(content) = self.folder.read(&path)
            {
                self.test(&path, content, bytes);
                if let Some(file) = self.files.last_mut() {
                    let message = format!(
                        "`{}` is not listed in the manifest's `tests`, so it is never run",
                        clip(&path)
                    );
                    file.report.findings.insert(
                        0,
                        Finding::new(
                            Code::UnlistedFile,
                            Pointer::root(),
                            Span { start: 0, end: 1 },
                            message,
                        ),
                    );
                }
            }
        }
        self.twins();
    }

    fn test(&mut self, path: &str, content: Vec<u8>, manifest: &[u8]) {
        let options = Options {
            dialect: Some(Dialect::Mcpkg),
            manifest: Some(manifest),
            ..Options::default()
        };
        let mut report = check(&content, &options.for_test());
        report.form = Some(Form::Test);
        self.files.push(FileReport { path: path.to_owned(), bytes: content, report });
    }

    /// Two tests of one name cannot be told apart in a report.
    fn twins(&mut self) {
        let mut seen: HashMap<String, String> = HashMap::new();
        for file in &mut self.files {
            let Some(name) = file.report.title.clone() else { continue };
            if let Some(first) = seen.insert(name.clone(), file.path.clone()) {
                let message =
                    format!("the test of `{}` is called `{}` too", clip(&first), clip(&name));
                let text = String::from_utf8_lossy(&file.bytes);
                let span = parse(&text)
                    .root
                    .as_ref()
                    .and_then(|root| root.get("name"))
                    .map(|name| name.span);
                let pointer = Pointer::root().key("name");
                file.report.findings.push(Finding::new(
                    Code::DuplicateTest,
                    pointer,
                    span.unwrap_or_default(),
                    message,
                ));
            }
        }
    }

    fn layers(&mut self, local: &[u8]) {
        let Ok(base) = self.folder.read(LAYERS.0) else { return };
        let (Ok(base), Ok(local)) = (std::str::from_utf8(&base), std::str::from_utf8(local)) else {
            return;
        };
        if let (Some(base), Some(local)) = (parse(base).root, parse(local).root) {
            self.extra.extend(capability::check_layers(&base, &local));
        }
    }

    fn suite(&mut self, bytes: &[u8]) {
        let Some(root) = std::str::from_utf8(bytes).ok().and_then(|text| parse(text).root) else {
            return;
        };
        let Some(entry) = root.at(&["verify", "suite", "ref"]) else { return };
        let Some(path) = entry.as_text() else { return };
        let pointer = Pointer::root().key("verify").key("suite").key("ref");
        if path.contains("://") || path.is_empty() {
            return;
        }
        if path_escapes(path) {
            let message = format!("`{}` is no path beside the manifest", clip(path));
            self.extra.push(Finding::new(Code::PathEscapes, pointer, entry.span, message));
        } else if self.folder.read(plain(path)) == Err(FolderError::Missing) {
            // A manifest often travels without its suite, so this is no error.
            let message = format!("`{}` is not there", clip(path));
            let mut finding = Finding::new(Code::MissingFile, pointer, entry.span, message);
            finding.severity = Severity::Warning;
            self.extra.push(finding);
        }
    }

    /// A manifest stands in its folder before its server is built, so a missing file is no error.
    fn mcpb(&mut self, bytes: &[u8]) {
        let Some(root) = std::str::from_utf8(bytes).ok().and_then(|text| parse(text).root) else {
            return;
        };
        for file in mcpb::files(&root) {
            let is_here = !file.path.contains("${") && check_path(file.plain()).is_ok();
            if is_here && self.folder.read(file.plain()) == Err(FolderError::Missing) {
                let message = format!("`{}` is not there", clip(file.path));
                let mut finding =
                    Finding::new(Code::MissingFile, file.pointer, file.node.span, message);
                finding.severity = Severity::Warning;
                self.extra.push(finding);
            }
        }
    }

    fn companion(&mut self) {
        for path in [COMPANION, "meta/haft.json"] {
            if let Ok(content) = self.folder.read(path) {
                let report =
                    check(&content, &Options { form: Some(Form::Companion), ..Options::default() });
                self.files.push(FileReport { path: path.to_owned(), bytes: content, report });
            }
        }
        let [.., first, second] = self.files.as_mut_slice() else { return };
        let are_both = |form| form == Some(Form::Companion);
        if are_both(first.report.form) && are_both(second.report.form) {
            let message = format!("`{}` and `{}` are both there", first.path, second.path);
            let finding = Finding::new(
                Code::TwoCompanions,
                Pointer::root(),
                Span { start: 0, end: 1 },
                message,
            );
            second.report.findings.insert(0, finding.help("keep one of them"));
        }
    }

    /// What the package says of its making.
    fn meta(&mut self, manifest: &[u8]) {
        for (path, form) in
            [(meta::PUBLISHER, Form::Publisher), (meta::PROVENANCE, Form::Provenance)]
        {
            let Ok(content) = self.folder.read(path) else { continue };
            let report = check(&content, &Options { form: Some(form), ..Options::default() });
            if form == Form::Publisher
                && let (Ok(manifest), Ok(text)) =
                    (std::str::from_utf8(manifest), std::str::from_utf8(&content))
                && let (Some(manifest), Some(publisher)) = (parse(manifest).root, parse(text).root)
            {
                self.extra.extend(meta::check_publisher(&manifest, &publisher));
            }
            self.files.push(FileReport { path: path.to_owned(), bytes: content, report });
        }
    }

    /// What the package says of its interface, and whether the manifest says the same.
    fn openapi(&mut self, dialect: Dialect, manifest: &[u8]) {
        let Ok(content) = self.folder.read(openapi::FILE_NAME) else { return };
        let options = Options { form: Some(Form::OpenApi), ..Options::default() };
        let report = check(&content, &options);
        if report.is_valid()
            && let (Ok(manifest), Ok(text)) =
                (std::str::from_utf8(manifest), std::str::from_utf8(&content))
            && let (Some(manifest), Some(document)) = (parse(manifest).root, parse(text).root)
        {
            self.extra.extend(openapi::contradictions(&manifest, dialect, &document));
        }
        let path = openapi::FILE_NAME.to_owned();
        self.files.push(FileReport { path, bytes: content, report });
    }

    fn read(&mut self, path: &str, entry: &Node<'_>, pointer: Pointer) -> Option<Vec<u8>> {
        let message = match self.folder.read(plain(path)) {
            Ok(content) => return Some(content),
            Err(FolderError::Missing) => format!("`{}` is not there", clip(path)),
            Err(FolderError::NotAFile) => format!("`{}` is no plain file", clip(path)),
            Err(FolderError::Unreadable(reason)) => {
                format!("`{}` cannot be read: {reason}", clip(path))
            }
        };
        self.extra.push(Finding::new(Code::MissingFile, pointer, entry.span, message));
        None
    }
}

fn plain(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}
