//! A package as one JSON text: the bundle of the Jumith registry API.
//!
//! A bundle and an archive hold the same files, so each becomes the other without
//! loss. What a bundle says in `manifest` is, in an archive, `tool.json`; for a
//! package of another dialect, whose manifest is among the files, it is
//! `meta/jumith.json`, unless it is just what that manifest converts to.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use manifest::convert::{ConvertError, Missing, Request, convert};
use manifest::dialect::{Dialect, Form};
use manifest::document::{Options, Report, check};
use manifest::json::{Node, Pointer, parse};
use serde_json::Value;

use crate::contents::{Contents, find_manifest};
use crate::limits::Limits;
use crate::names::{Kind, check_names};
use crate::nested;
use crate::refusal::{ReadError, Refusal, RefusalCode};

/// What a bundle's manifest is called in an archive.
pub const MANIFEST: &str = "tool.json";
/// Where the description for a Jumith registry stands beside a manifest of another dialect.
pub const DESCRIPTION: &str = "meta/jumith.json";

/// The files of a bundle.
#[derive(Clone, Debug, Default)]
pub struct Bundle {
    files: BTreeMap<String, File>,
    /// Members of the bundle that say nothing about the package, and are not kept.
    pub dropped: Vec<String>,
}

#[derive(Clone, Debug)]
struct File {
    content: Vec<u8>,
    executable: bool,
}

/// Why a bundle cannot be read or written.
#[derive(Debug)]
pub enum BundleError {
    /// The bundle, or the description made for it, is not valid.
    Invalid(Box<Report>),
    /// The package is refused, or cannot be read.
    Read(ReadError),
    /// A Jumith registry must know this, and the manifest does not say it.
    Missing(Vec<Missing>),
    /// The manifest cannot be converted.
    Convert(ConvertError),
}

impl From<ReadError> for BundleError {
    fn from(error: ReadError) -> Self {
        BundleError::Read(error)
    }
}

impl From<Refusal> for BundleError {
    fn from(refusal: Refusal) -> Self {
        BundleError::Read(refusal.into())
    }
}

impl fmt::Display for BundleError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BundleError::Invalid(_) => out.write_str("the bundle is not valid"),
            BundleError::Read(error) => error.fmt(out),
            BundleError::Missing(missing) => {
                let what: Vec<_> = missing.iter().map(|missing| missing.pointer.as_str()).collect();
                write!(out, "a Jumith registry must also know {}", what.join(", "))
            }
            BundleError::Convert(_) => out.write_str("the manifest cannot be described for Jumith"),
        }
    }
}

impl std::error::Error for BundleError {}

impl Contents for Bundle {
    fn paths(&self) -> Vec<&str> {
        self.files.keys().map(String::as_str).collect()
    }

    fn size(&self, path: &str) -> Option<u64> {
        self.files.get(path).map(|file| file.content.len() as u64)
    }

    fn is_executable(&self, path: &str) -> bool {
        self.files.get(path).is_some_and(|file| file.executable)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let file = self.files.get(path);
        Ok(file.ok_or(io::Error::from(io::ErrorKind::NotFound))?.content.clone())
    }
}

impl Bundle {
    /// The files of a package as they are now; they change no more.
    pub fn of(contents: &dyn Contents) -> Result<Self, ReadError> {
        let mut files = BTreeMap::new();
        for path in contents.paths() {
            let (content, executable) = (contents.read(path)?, contents.is_executable(path));
            files.insert(path.to_owned(), File { content, executable });
        }
        Ok(Self { files, dropped: Vec::new() })
    }

    /// Reads a bundle, by the rules that hold for archives too.
    pub fn read(bytes: &[u8], limits: &Limits) -> Result<Self, BundleError> {
        let options = Options {
            dialect: Some(Dialect::Jumith),
            form: Some(Form::Bundle),
            ..Options::default()
        };
        let report = check(bytes, &options);
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let root = match parse(text).root {
            Some(root) if report.is_valid() => root,
            _ => return Err(BundleError::Invalid(Box::new(report))),
        };
        let mut bundle = Self::default();
        for file in root.list_at("files") {
            let path = file.text_at("path").unwrap_or_default().to_owned();
            let executable = file.get("executable").and_then(Node::as_bool).unwrap_or_default();
            bundle.files.insert(path, File { content: content(file), executable });
        }
        let known = ["manifest", "files"];
        let members = root.members().iter().map(|member| member.key.to_string());
        bundle.dropped = members.filter(|key| !known.contains(&key.as_str())).collect();
        let described = root.get("manifest").map(|node| &text[node.span.range()]);
        bundle.keep_description(described.unwrap_or_default())?;
        bundle.check(limits)?;
        Ok(bundle)
    }

    /// Puts what the bundle says of itself among the files, unless it is there already.
    fn keep_description(&mut self, described: &str) -> Result<(), BundleError> {
        let (path, needed) = match find_manifest(self) {
            Err(ReadError::Refused(refusal)) if refusal.code == RefusalCode::NoManifest => {
                (MANIFEST, true)
            }
            Err(error) => return Err(error.into()),
            Ok(path) if path == MANIFEST => (MANIFEST, false),
            Ok(path) => {
                let manifest = self.read(&path)?;
                check_same_package(&manifest, described, &path)?;
                let derived = describe(&manifest, &[]).ok();
                let is_derived =
                    derived.is_some_and(|derived| is_same_json(&derived, described.as_bytes()));
                (DESCRIPTION, !is_derived)
            }
        };
        match self.files.get(path) {
            Some(file) if agrees(path, &file.content, described.as_bytes()) => Ok(()),
            Some(_) => {
                let message = format!("the bundle's manifest and its file `{path}` differ");
                Err(Refusal::new(RefusalCode::SeveralManifests, message).into())
            }
            None => {
                if needed {
                    let content = described.as_bytes().to_vec();
                    self.files.insert(path.to_owned(), File { content, executable: false });
                }
                Ok(())
            }
        }
    }

    fn check(&self, limits: &Limits) -> Result<(), Refusal> {
        check_names(self.files.keys().map(|path| (path.as_str(), Kind::File)), limits)?;
        let known = nested::Known::default();
        for (path, file) in &self.files {
            nested::check_whole(path, &file.content, &known, limits)?;
        }
        if self.files.len() > limits.entries {
            let message = format!("the bundle has more than {} files", limits.entries);
            return Err(Refusal::new(RefusalCode::TooManyEntries, message));
        }
        let total: u64 = self.files.values().map(|file| file.content.len() as u64).sum();
        if total > limits.total_bytes {
            let message =
                format!("the files have {total} bytes; at most {} are allowed", limits.total_bytes);
            return Err(Refusal::new(RefusalCode::TotalTooLarge, message));
        }
        Ok(())
    }
}

/// Writes a package as a bundle; `set` says what a Jumith registry must know beyond the
/// manifest of another dialect.
pub fn write(contents: &dyn Contents, set: &[(Pointer, Value)]) -> Result<Vec<u8>, BundleError> {
    let path = find_manifest(contents)?;
    let manifest = contents.read(&path)?;
    let report = check(&manifest, &Options::default());
    let is_jumith = report.dialect == Some(Dialect::Jumith);
    let (source, described) = if is_jumith {
        (Some(path.as_str()), manifest)
    } else if contents.size(DESCRIPTION).is_some() && set.is_empty() {
        let described = contents.read(DESCRIPTION)?;
        check_same_package(&manifest, &String::from_utf8_lossy(&described), &path)?;
        (Some(DESCRIPTION), described)
    } else {
        (None, describe(&manifest, set)?)
    };
    let options = Options { dialect: Some(Dialect::Jumith), ..Options::default() };
    let report = check(&described, &options);
    if !report.is_valid() {
        return Err(BundleError::Invalid(Box::new(report)));
    }
    let described = String::from_utf8_lossy(&described);
    let mut files = Vec::new();
    for path in contents.paths() {
        let content = contents.read(path)?;
        // The manifest says it byte for byte, so the file need not say it again.
        let is_said = source == Some(path)
            && [MANIFEST, DESCRIPTION].contains(&path)
            && !contents.is_executable(path)
            && content == described.trim().as_bytes();
        if !is_said {
            files.push(format!("    {}", file_json(path, &content, contents.is_executable(path))));
        }
    }
    let files =
        if files.is_empty() { "[]".into() } else { format!("[\n{}\n  ]", files.join(",\n")) };
    Ok(format!("{{\n  \"manifest\": {},\n  \"files\": {files}\n}}\n", described.trim()).into())
}

fn file_json(path: &str, content: &[u8], executable: bool) -> String {
    let mut file = serde_json::Map::new();
    file.insert("path".into(), path.into());
    match std::str::from_utf8(content) {
        Ok(text) if !text.contains('\0') => {
            file.insert("content".into(), text.into());
            file.insert("encoding".into(), "utf8".into());
        }
        _ => {
            file.insert("content".into(), STANDARD.encode(content).into());
            file.insert("encoding".into(), "base64".into());
        }
    }
    if executable {
        file.insert("executable".into(), true.into());
    }
    Value::Object(file).to_string()
}

/// What a Jumith registry would say of a package of another dialect.
fn describe(manifest: &[u8], set: &[(Pointer, Value)]) -> Result<Vec<u8>, BundleError> {
    let source = Options::default();
    let request = Request { source, target: Dialect::Jumith, only: None, set };
    let conversion = convert(manifest, &request).map_err(BundleError::Convert)?;
    match conversion.report {
        _ if !conversion.missing.is_empty() => Err(BundleError::Missing(conversion.missing)),
        Some(report) if !report.is_valid() => Err(BundleError::Invalid(Box::new(report))),
        _ => Ok(conversion.document),
    }
}

/// A description must speak of the package that stands beside it.
fn check_same_package(manifest: &[u8], described: &str, path: &str) -> Result<(), Refusal> {
    let title = |bytes: &[u8], dialect| {
        let report = check(bytes, &Options { dialect, ..Options::default() });
        report.title.map(|title| title.strip_prefix("tool:").unwrap_or(&title).to_owned())
    };
    let is_same = title(manifest, None) == title(described.as_bytes(), Some(Dialect::Jumith));
    if is_same {
        return Ok(());
    }
    let message = format!("the bundle's manifest and its file `{path}` are of different packages");
    Err(Refusal::new(RefusalCode::SeveralManifests, message))
}

/// A file's content, which the checks have found to be what it says.
fn content(file: &Node<'_>) -> Vec<u8> {
    let text = file.text_at("content").unwrap_or_default();
    match file.text_at("encoding") {
        Some("base64") => STANDARD.decode(text).unwrap_or_default(),
        _ => text.as_bytes().to_vec(),
    }
}

/// Whether what a bundle says of itself agrees with the file that says it too. A registry adds what it knows,
/// digests and the like, and leaves out what it does not know; the file is what counts. It may tell more of a
/// package of another dialect by its own manifest, but not another version, and not another module.
fn agrees(path: &str, file: &[u8], described: &[u8]) -> bool {
    let read = |bytes| serde_json::from_slice::<Value>(bytes).ok();
    let (Some(Value::Object(file)), Some(Value::Object(described))) = (read(file), read(described))
    else {
        return false;
    };
    let plain = |value: &Value| match value.as_str() {
        Some(text) => Value::from(text.strip_prefix("tool:").unwrap_or(text)),
        None => value.clone(),
    };
    file.iter().all(|(key, value)| match (key.as_str(), described.get(key)) {
        ("id", Some(other)) => plain(value) == plain(other),
        ("version" | "entry", other) => other == Some(value),
        (_, Some(other)) => value == other || path == DESCRIPTION,
        (_, None) => true,
    })
}

fn is_same_json(a: &[u8], b: &[u8]) -> bool {
    let read = |bytes| serde_json::from_slice::<Value>(bytes).ok();
    read(a).is_some_and(|a| Some(a) == read(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{Archive, Trailer};
    use crate::pack::{Packing, Secrets, pack};

    const TOOL: &str = r#"{"id":"tool:a.b","name":"a.b","version":"1.0.0","summary":"Does it",
        "entry":{"runtime":"node","main":"index.js"}}"#;
    const ECHO: &str = r#"{"toolId":"demo.echo.it","name":"Echo","version":"1.0.0","description":"Echo.",
        "capabilities":["demo"],"endpoint":{"type":"local","command":"node ./index.js"},
        "input_schema":{"type":"object"},"output_schema":{"type":"object"}}"#;

    fn package(files: &[(&str, &[u8])]) -> Bundle {
        let file = |content: &[u8]| File { content: content.to_vec(), executable: false };
        let files = files.iter().map(|(path, content)| ((*path).to_owned(), file(content)));
        Bundle { files: files.collect(), dropped: Vec::new() }
    }

    fn archive(contents: &dyn Contents) -> Archive {
        let mut bytes = Vec::new();
        let packing = Packing { contents, secrets: Secrets::NotLookedFor };
        pack(&packing, &mut bytes).unwrap();
        Archive::from_bytes(bytes, Trailer::Refused, &Limits::DEFAULT).unwrap()
    }

    fn same(a: &dyn Contents, b: &dyn Contents) -> bool {
        let all = |contents: &dyn Contents| -> Vec<(String, Vec<u8>, bool)> {
            let paths = contents.paths().into_iter();
            paths
                .map(|p| (p.into(), contents.read(p).unwrap(), contents.is_executable(p)))
                .collect()
        };
        all(a) == all(b)
    }

    #[test]
    fn a_registry_may_add_what_it_knows_and_contradict_nothing() {
        let bundle = |manifest: &str| {
            let files = serde_json::json!([{"path": "tool.json", "content": TOOL},
                {"path": "index.js", "content": "1"}]);
            let text = format!(r#"{{"manifest":{manifest},"files":{files}}}"#);
            Bundle::read(text.as_bytes(), &Limits::DEFAULT)
        };
        let added = TOOL.replace("\"name\"", "\"tags\":[],\"size\":7,\"name\"");
        let read = bundle(&added).unwrap();
        assert_eq!(read.read(MANIFEST).unwrap(), TOOL.as_bytes(), "the file is what counts");
        for (from, to) in [
            ("1.0.0", "1.0.1"),
            ("Does it", "Does more"),
            ("index.js", "other.js"),
            ("tool:a.b", "tool:a.c"),
        ] {
            assert!(bundle(&TOOL.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn a_bundle_becomes_an_archive_and_a_bundle_again() {
        let first = format!(
            r#"{{"manifest":{TOOL},"files":[{{"path":"index.js","content":"x"}},
                {{"path":"bin/run","content":"AAH/","encoding":"base64","executable":true}}]}}"#
        );
        let bundle = Bundle::read(first.as_bytes(), &Limits::DEFAULT).unwrap();
        assert_eq!(bundle.paths(), ["bin/run", "index.js", "tool.json"]);
        let archive = archive(&bundle);
        assert!(same(&bundle, &archive));
        let second = write(&archive, &[]).unwrap();
        let again = Bundle::read(&second, &Limits::DEFAULT).unwrap();
        assert!(same(&bundle, &again));
        let second: Value = serde_json::from_slice(&second).unwrap();
        let first: Value = serde_json::from_str(&first).unwrap();
        assert_eq!(second["manifest"], first["manifest"]);
        assert_eq!(second["files"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn an_archive_becomes_a_bundle_and_the_same_archive_again() {
        let line = format!("{TOOL}\n");
        for tool in [TOOL, &line] {
            let package = package(&[("tool.json", tool.as_bytes()), ("index.js", b"\xff\x00")]);
            let bundle = write(&archive(&package), &[]).unwrap();
            assert!(same(&package, &Bundle::read(&bundle, &Limits::DEFAULT).unwrap()));
        }
    }

    #[test]
    fn a_package_of_another_dialect_is_described_and_comes_back_whole() {
        let package = package(&[("manifest.json", ECHO.as_bytes()), ("index.js", b"x")]);
        let Err(BundleError::Missing(missing)) = write(&package, &[]) else {
            panic!("a Jumith registry must know the module");
        };
        assert!(missing.iter().any(|missing| missing.pointer.as_str() == "/entry/main"));
        let main = (Pointer::parse("/entry/main").unwrap(), Value::from("index.js"));
        let bundle = write(&package, &[main]).unwrap();
        let back = Bundle::read(&bundle, &Limits::DEFAULT).unwrap();
        assert_eq!(back.paths(), ["index.js", "manifest.json", "meta/jumith.json"]);
        assert_eq!(back.read("manifest.json").unwrap(), ECHO.as_bytes());
        // Once described, it goes back and forth by itself.
        assert!(same(&back, &Bundle::read(&write(&back, &[]).unwrap(), &Limits::DEFAULT).unwrap()));
    }

    #[test]
    fn a_bundle_that_is_two_packages_is_refused() {
        let refused = |files: &str| {
            let text = format!(r#"{{"manifest":{TOOL},"files":[{files}]}}"#);
            match Bundle::read(text.as_bytes(), &Limits::DEFAULT) {
                Err(BundleError::Read(error)) => error.code(),
                other => panic!("{other:?}"),
            }
        };
        let file = |path: &str, content: &str| {
            format!(
                r#"{{"path":"{path}","content":{}}},{{"path":"index.js","content":""}}"#,
                Value::from(content)
            )
        };
        let other = TOOL.replace("1.0.0", "2.0.0");
        assert_eq!(refused(&file("tool.json", &other)), Some(RefusalCode::SeveralManifests));
        assert_eq!(refused(&file("manifest.json", ECHO)), Some(RefusalCode::SeveralManifests));
        assert_eq!(
            refused(&format!("{},{}", file("A/x", ""), r#"{"path":"a/y","content":""}"#)),
            Some(RefusalCode::CaseTwin)
        );
    }
}
