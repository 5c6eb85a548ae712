//! The tests of a package, where they lie: read one at a time, however many there are.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use manifest::dialect::Dialect;
use manifest::document::MAX_MANIFEST;
use manifest::model::Package;
use manifest::path::check_path;

use crate::case::{Case, CaseError, Origin};
use crate::verify::Verify;

/// Where the tests lie of a package whose dialect cannot list them.
const FOLDER: &str = "tests";

/// What the name of a test ends with.
const ENDING: &str = ".test.json";

/// How many tests one package has at most.
const MOST: usize = 100_000;

/// The tests of a package, and the folder that they lie in.
#[derive(Clone, Debug)]
pub struct Suite {
    folder: PathBuf,
    tests: Vec<String>,
    /// What its author promises.
    pub verify: Option<Verify>,
}

impl Suite {
    /// The tests of a package whose files lie in a folder: those that its manifest lists, or, where its dialect cannot
    /// list any, those in `tests`; and its file of cases.
    pub fn of(package: &Package, folder: &Path) -> Self {
        let tests = match package.dialect {
            Dialect::Mcpkg => listed(&package.tests),
            _ => found(&folder.join(FOLDER)),
        };
        Self { folder: folder.to_owned(), tests, verify: Verify::of(package) }
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.tests.is_empty() && self.cases_file().is_none()
    }

    /// The file of cases that the manifest names, where it is not there: a manifest often travels without it.
    pub fn absent(&self) -> Option<&str> {
        self.cases_file().filter(|path| open(&self.folder, path).is_err())
    }

    /// The tests, each read when it is its turn.
    pub fn cases(&self) -> Cases {
        let more = self.tests.len().saturating_sub(MOST);
        Cases {
            folder: self.folder.clone(),
            tests: self.tests.clone().into_iter().take(MOST),
            too_many: (more > 0).then_some(Origin::File),
            file: self.cases_file().map(|path| Lines::Closed(path.to_owned())),
        }
    }

    fn cases_file(&self) -> Option<&str> {
        self.verify.as_ref()?.cases.as_deref()
    }
}

/// Tests, read one at a time.
#[derive(Debug)]
pub struct Cases {
    folder: PathBuf,
    tests: std::iter::Take<std::vec::IntoIter<String>>,
    /// That there are more than are run has to be told.
    too_many: Option<Origin>,
    file: Option<Lines>,
}

/// A file of cases.
#[derive(Debug)]
enum Lines {
    Closed(String),
    Open { path: String, reader: BufReader<File>, number: usize, cases: usize },
}

impl Iterator for Cases {
    type Item = Result<Case, CaseError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(path) = self.tests.next() {
            return Some(read(&self.folder, &path));
        }
        if let Some(origin) = self.too_many.take() {
            return Some(Err(wrong(FOLDER, &format!("only {MOST} tests are run"), origin)));
        }
        loop {
            match self.file.take()? {
                Lines::Closed(path) => match open(&self.folder, &path) {
                    Ok(file) => {
                        let reader = BufReader::new(file);
                        self.file = Some(Lines::Open { path, reader, number: 0, cases: 0 });
                    }
                    Err(why) => return Some(Err(wrong(&path, &why, Origin::Promised))),
                },
                Lines::Open { path, mut reader, mut number, mut cases } => {
                    number += 1;
                    let line = match line(&mut reader) {
                        Ok(None) => return None,
                        Ok(Some(line)) => line,
                        // Nobody can tell where the next case would begin.
                        Err(why) => {
                            let place = format!("{path}:{number}");
                            return Some(Err(wrong(&place, &why, Origin::Promised)));
                        }
                    };
                    if line.trim().is_empty() {
                        self.file = Some(Lines::Open { path, reader, number, cases });
                        continue;
                    }
                    cases += 1;
                    if cases > MOST {
                        let why = format!("only {MOST} cases are run");
                        return Some(Err(wrong(&path, &why, Origin::Promised)));
                    }
                    let read = Case::read_line(&path, number, &line);
                    self.file = Some(Lines::Open { path, reader, number, cases });
                    return Some(read);
                }
            }
        }
    }
}

/// The tests that a manifest lists, each once.
fn listed(paths: &[String]) -> Vec<String> {
    let mut seen = HashSet::new();
    let plain = paths.iter().map(|path| path.strip_prefix("./").unwrap_or(path));
    plain.filter(|path| seen.insert(*path)).map(str::to_owned).collect()
}

/// The tests in a folder, by name.
fn found(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(ENDING))
        .take(MOST + 1)
        .map(|name| format!("{FOLDER}/{name}"))
        .collect();
    names.sort();
    names
}

fn read(folder: &Path, path: &str) -> Result<Case, CaseError> {
    let wrong = |why: &str| wrong(path, why, Origin::File);
    let file = open(folder, path).map_err(|why| wrong(&why))?;
    let mut bytes = Vec::new();
    let most = MAX_MANIFEST as u64 + 1;
    file.take(most).read_to_end(&mut bytes).map_err(|error| wrong(&error.to_string()))?;
    Case::read(path, &bytes)
}

/// Opens a file below a folder. No link is followed: it could lead anywhere.
fn open(folder: &Path, path: &str) -> Result<File, String> {
    if path.contains("://") {
        return Err("it lies elsewhere, and nothing is fetched for a test".to_owned());
    }
    let path = path.strip_prefix("./").unwrap_or(path);
    check_path(path).map_err(|_| "its path is none in a package".to_owned())?;
    let mut whole = folder.to_owned();
    for segment in path.split('/') {
        whole.push(segment);
        match whole.symlink_metadata() {
            Ok(found) if found.is_symlink() => return Err("it is a link".to_owned()),
            Ok(_) => {}
            Err(_) => return Err("it is not in the package".to_owned()),
        }
    }
    if !whole.is_file() {
        return Err("it is no file".to_owned());
    }
    File::open(&whole).map_err(|error| error.to_string())
}

/// The next line of a file, which is no longer than a test may be.
fn line(reader: &mut BufReader<File>) -> Result<Option<String>, String> {
    let mut bytes = Vec::new();
    let read = reader.by_ref().take(MAX_MANIFEST as u64 + 1).read_until(b'\n', &mut bytes);
    match read {
        Ok(0) => Ok(None),
        Ok(_) if bytes.len() > MAX_MANIFEST => Err("it is too large".to_owned()),
        Ok(_) => {
            let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
            Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn wrong(path: &str, why: &str, origin: Origin) -> CaseError {
    CaseError { path: path.to_owned(), why: why.to_owned(), origin }
}

#[cfg(test)]
mod tests {
    use manifest::document::{Options, read};

    use super::*;

    const TEST: &str = r#"{"name": "a", "input": {}, "expected": 1}"#;

    fn package(text: &str) -> Package {
        let (_, mut packages) = read(text.as_bytes(), &Options::default()).unwrap();
        packages.remove(0)
    }

    fn mcpkg(tests: &[&str]) -> Package {
        let manifest = serde_json::json!({
            "toolId": "demo.test.one", "name": "One", "version": "1.0.0", "description": "A test.",
            "capabilities": ["demo"],
            "endpoint": {"type": "http", "method": "GET", "url": "https://example.com/"},
            "input_schema": {"type": "object"}, "output_schema": {},
        });
        let tests = tests.iter().map(|path| (*path).to_owned()).collect();
        Package { tests, ..package(&manifest.to_string()) }
    }

    fn told(suite: &Suite) -> Vec<String> {
        suite
            .cases()
            .map(|case| match case {
                Ok(case) => format!("{} {}", case.path, case.name),
                Err(error) => error.to_string(),
            })
            .collect()
    }

    #[test]
    fn listed_tests_are_read_once_and_none_from_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tests")).unwrap();
        for name in ["a", "unlisted"] {
            std::fs::write(folder.path().join(format!("tests/{name}.test.json")), TEST).unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("tests/link.test.json"))
            .unwrap();
        let listed = [
            "tests/a.test.json",
            "./tests/a.test.json",
            "../a.test.json",
            "tests/link.test.json",
            "tests/gone.test.json",
        ];
        let told = told(&Suite::of(&mcpkg(&listed), folder.path()));
        assert_eq!(told.len(), 4, "{told:?}");
        assert_eq!(told[0], "tests/a.test.json a");
        for (line, words) in told[1..].iter().zip(["path", "a link", "not in the package"]) {
            assert!(line.contains("is no test") && line.contains(words), "{line}");
        }
    }

    #[test]
    fn a_file_of_cases_is_read_line_by_line_and_what_is_no_case_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let lines = "{\"input\": {}}\n\n{\"input\": 7}\n{\"name\": \"last\", \"input\": {}}";
        std::fs::write(folder.path().join("cases.jsonl"), lines).unwrap();
        let mut suite = Suite::of(&mcpkg(&[]), folder.path());
        assert!(suite.is_empty());
        let verify = |path: &str| Verify { cases: Some(path.to_owned()), ..Verify::default() };
        suite.verify = Some(verify("./cases.jsonl"));
        assert_eq!((suite.is_empty(), suite.absent()), (false, None));
        let all = told(&suite);
        assert_eq!(all.len(), 3, "{all:?}");
        assert_eq!((&*all[0], &*all[2]), ("./cases.jsonl:1 case 1", "./cases.jsonl:4 last"));
        assert!(all[1].starts_with("`./cases.jsonl:3` is no test"), "{}", all[1]);
        for (path, words) in
            [("https://a.test/x", "elsewhere"), ("../x", "path"), ("gone", "not in the package")]
        {
            suite.verify = Some(verify(path));
            assert_eq!(suite.absent(), Some(path));
            assert!(told(&suite)[0].contains(words), "{path}");
        }
        let endless = vec![b'x'; MAX_MANIFEST + 5];
        std::fs::write(folder.path().join("long"), endless).unwrap();
        suite.verify = Some(verify("long"));
        assert_eq!(told(&suite), ["`long:1` is no test: it is too large"]);
    }

    #[test]
    fn tests_are_found_where_no_manifest_can_list_them() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tests")).unwrap();
        for name in ["b.test.json", "a.test.json", "a.txt"] {
            std::fs::write(folder.path().join("tests").join(name), TEST).unwrap();
        }
        let tools = package(
            r#"{"tools": []}"#
                .replace(
                    "[]",
                    "[{\"name\": \"t\", \"description\": \"d\", \"command\": [\"./tools/bin/t\"]}]",
                )
                .as_str(),
        );
        let told = told(&Suite::of(&tools, folder.path()));
        assert_eq!(told, ["tests/a.test.json a", "tests/b.test.json a"]);
    }
}
