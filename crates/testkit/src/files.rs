//! The files of the repository that tests read.

use std::path::{Path, PathBuf};

use manifest::dialect::{Dialect, Form};
use manifest::document::{Options, check};
use manifest::finding::Code;
use manifest::folder::{COMPANION, FileReport, Folder, FolderError, LAYERS, check_with_folder};

/// The root of the repository.
pub fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A faulty document, or a folder of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fixture {
    /// The folder it is in: a dialect, `bytes`, `unknown`, `companion` or `openapi`.
    pub group: String,
    /// The code that must be reported.
    pub code: Code,
    /// The file or folder.
    pub path: PathBuf,
}

impl Fixture {
    /// The dialect it is written in; none where the fault lies before any dialect.
    pub fn dialect(&self) -> Option<Dialect> {
        Dialect::named(&self.group)
    }

    /// What is found in it, file by file.
    pub fn reports(&self) -> Vec<FileReport> {
        let path = self.document();
        let bytes = std::fs::read(&path).expect("a fixture can be read");
        let form = match self.group.as_str() {
            "companion" => Some(Form::Companion),
            "openapi" => Some(Form::OpenApi),
            _ => None,
        };
        let folder = path.parent().filter(|_| self.path.is_dir()).map(name_of);
        let options = Options { dialect: self.dialect(), form, folder, ..Options::default() };
        if self.path.is_dir() {
            return check_with_folder(name_of(&path), bytes, &options, &Disk::beside(&path));
        }
        // The other fixtures beside a single file are none of its business.
        let report = check(&bytes, &options);
        vec![FileReport { path: name_of(&path).to_owned(), bytes, report }]
    }

    /// The document to begin with: the fixture itself, or the foremost file of its folder.
    pub fn document(&self) -> PathBuf {
        if self.path.is_file() {
            return self.path.clone();
        }
        let names = ["manifest.json", LAYERS.1, COMPANION, "SKILL.md"];
        let mut candidates = names.iter().map(|name| self.path.join(name));
        candidates.find(|path| path.is_file()).expect("a folder of fixtures has a manifest")
    }
}

/// Every fixture, in the order of their paths.
pub fn fixtures() -> impl Iterator<Item = Fixture> {
    let groups = entries(&repo().join("fixtures")).into_iter().filter(|path| path.is_dir());
    groups.flat_map(|folder| {
        let group = name_of(&folder).to_owned();
        entries(&folder).into_iter().map(move |path| {
            let name = name_of(&path).split('.').next().unwrap_or_default();
            let code = Code::ALL.iter().find(|code| code.name() == name);
            let code = *code.unwrap_or_else(|| panic!("{} names no code", path.display()));
            Fixture { group: group.clone(), code, path }
        })
    })
}

/// Every document among the examples, companions, layers and tests included.
pub fn examples() -> impl Iterator<Item = PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![repo().join("examples")];
    while let Some(folder) = left.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                left.push(path);
            } else if (path.extension().is_some_and(|kind| kind == "json")
                && name_of(&path) != "package.json")
                || name_of(&path) == "SKILL.md"
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found.into_iter()
}

/// The folder a document on the disk stands in.
#[derive(Clone, Debug)]
pub struct Disk(PathBuf);

impl Disk {
    /// What stands beside a file.
    pub fn beside(path: &Path) -> Self {
        Self(path.parent().expect("a file stands in a folder").to_owned())
    }
}

impl Folder for Disk {
    fn read(&self, path: &str) -> Result<Vec<u8>, FolderError> {
        let path = self.0.join(path);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(bytes),
            Err(_) if !path.exists() => Err(FolderError::Missing),
            Err(_) if path.is_dir() => Err(FolderError::NotAFile),
            Err(error) => Err(FolderError::Unreadable(error.to_string())),
        }
    }

    fn test_files(&self) -> Vec<String> {
        let tests = self.0.join("tests");
        if !tests.is_dir() {
            return Vec::new();
        }
        let is_test = |path: &PathBuf| name_of(path).ends_with(".test.json");
        let tests = entries(&tests).into_iter().filter(is_test);
        tests.map(|path| format!("tests/{}", name_of(&path))).collect()
    }
}

/// The last part of a path; every path in the repository is UTF-8.
pub fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("a path of the repository")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("failed to list {}: {error}", folder.display()));
    let mut paths: Vec<_> = listed
        .map(|entry| entry.expect("a folder of the repository can be listed").path())
        .filter(|path| !name_of(path).starts_with('.'))
        .collect();
    paths.sort();
    paths
}
