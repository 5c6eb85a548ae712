//! What must hold for any bytes at all.
//!
//! Each function takes bytes as a fuzzer or a stranger would hand them over and
//! says which promise is broken, if any. The targets in `fuzz/` call them, and so
//! do ordinary tests.

mod archive;
mod audit;
mod bundle;
mod chain;
mod egress;
mod image;
mod import;
mod registry;
mod search;
mod vault;

use std::collections::HashSet;

use manifest::dialect::mcpkg::split_command;
use manifest::dialect::{Dialect, Form};
use manifest::document::{Depth, Options, Report, check, read};
use manifest::export::{self, Format, export};
use manifest::finding::{Code, Severity};
use manifest::folder::{Folder, FolderError, check_with_folder};
use manifest::json::{MAX_DEPTH, Node, Number, Places, Pointer, Value, parse};
use manifest::openapi;
use manifest::schema::{self, Budget, EcmaRegex, Unknowns, check_regex, matches_once};
use proptest::prelude::{TestCaseError, prop_assert, prop_assert_eq};

pub use archive::archive;
pub use audit::audit_line;
pub use bundle::bundle;
pub use chain::chain;
pub use egress::{authority, challenge, head, question};
pub use image::layer;
pub use import::{import_config, import_openapi};
pub use registry::{registry_answer, registry_catalog, registry_kept, registry_list};
pub use search::search_index;
pub use vault::{redaction, reference, vault};

/// Whether every promise is kept, and which one is not.
pub type Kept = Result<(), TestCaseError>;

/// JSON: `serde_json` accepts the same texts and reads the same values.
pub fn json(bytes: &[u8]) -> Kept {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    let parsed = parse(text);
    for fault in &parsed.faults {
        prop_assert!(fault.span.start <= fault.span.end, "{fault:?}");
        prop_assert!(fault.span.start as usize <= text.len(), "{fault:?}");
    }
    if let Some(root) = &parsed.root {
        check_spans(root, text)?;
    }
    let has = |code| parsed.faults.iter().any(|fault| fault.code == code);
    // One more level than `serde_json` allows is allowed here.
    if has(Code::TooDeep)
        || has(Code::TooLarge)
        || parsed.root.as_ref().is_some_and(|root| depth(root) == MAX_DEPTH)
    {
        return Ok(());
    }
    let is_accepted = parsed.faults.iter().all(|fault| fault.code == Code::DuplicateKey);
    let theirs = serde_json::from_str::<serde_json::Value>(text);
    prop_assert_eq!(is_accepted, theirs.is_ok(), "{:?}, {:?}", parsed.faults, theirs.err());
    if let (Some(ours), Ok(theirs)) = (parsed.root, theirs)
        && !has(Code::DuplicateKey)
    {
        prop_assert!(is_same(&ours, &theirs), "{ours:?}\n{theirs:?}");
    }
    Ok(())
}

/// A document of a dialect: checks, readings and exports agree with each other.
pub fn document(dialect: Dialect, bytes: &[u8]) -> Kept {
    let options =
        Options { dialect: Some(dialect), fallback_id: Some("demo"), ..Options::default() };
    let everything = check(bytes, &options);
    check_report(&everything, bytes)?;
    let structure = check(bytes, &Options { depth: Depth::Structure, ..options });
    check_report(&structure, bytes)?;
    prop_assert!(structure.is_valid() || !everything.is_valid(), "a closer look finds less");
    match read(bytes, &options) {
        Ok((report, packages)) => {
            prop_assert!(report.is_valid() && everything.is_valid());
            for format in Format::ALL {
                let exported = export(&packages, format, &export::Options::default());
                let names: HashSet<_> = exported.names.iter().map(|name| &name.exposed).collect();
                prop_assert_eq!(names.len(), exported.names.len(), "one name, two actions");
            }
        }
        Err(report) => prop_assert_eq!(report.findings, everything.findings),
    }
    Ok(())
}

/// A document of whatever dialect it is recognised as.
pub fn any_document(bytes: &[u8]) -> Kept {
    check_report(&check(bytes, &Options::default()), bytes)
}

/// A companion.
pub fn companion(bytes: &[u8]) -> Kept {
    if let Some(root) = std::str::from_utf8(bytes).ok().and_then(|text| parse(text).root) {
        manifest::companion::read(&root);
    }
    let options = Options { form: Some(Form::Companion), ..Options::default() };
    check_report(&check(bytes, &options), bytes)
}

/// An OpenAPI document, then, after a NUL, the manifest it stands beside.
pub fn openapi(bytes: &[u8]) -> Kept {
    let (document, manifest) = halves(bytes);
    let options = Options { form: Some(Form::OpenApi), ..Options::default() };
    check_report(&check(document, &options), document)?;
    let folder = Lone { name: openapi::FILE_NAME, content: document };
    for dialect in [Dialect::Mcpkg, Dialect::InstallManifest] {
        let options = Options { dialect: Some(dialect), ..Options::default() };
        for file in check_with_folder("manifest.json", manifest.to_vec(), &options, &folder) {
            check_report(&file.report, &file.bytes)?;
        }
    }
    Ok(())
}

/// A folder with one file beside the manifest.
struct Lone<'f> {
    name: &'f str,
    content: &'f [u8],
}

impl Folder for Lone<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, FolderError> {
        if path == self.name { Ok(self.content.to_vec()) } else { Err(FolderError::Missing) }
    }

    fn test_files(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A test of an mcpkg package, then, after a NUL, the manifest it belongs to.
pub fn mcpkg_test(bytes: &[u8]) -> Kept {
    let (test, manifest) = halves(bytes);
    let options =
        Options { dialect: Some(Dialect::Mcpkg), manifest: Some(manifest), ..Options::default() };
    check_report(&check(test, &options.for_test()), test)
}

/// A JSON Schema, then, after a NUL, a value: whatever passes the check can be run.
pub fn schema(bytes: &[u8]) -> Kept {
    let (schema, value) = halves(bytes);
    let (Ok(schema), Ok(value)) = (std::str::from_utf8(schema), std::str::from_utf8(value)) else {
        return Ok(());
    };
    let (schema, value) = (parse(schema), parse(value));
    let (Some(schema), Some(value)) = (
        schema.root.filter(|_| schema.faults.is_empty()),
        value.root.filter(|_| value.faults.is_empty()),
    ) else {
        return Ok(());
    };
    let findings = schema::check(&schema, &Pointer::root(), &Budget::default());
    if findings.iter().any(|finding| finding.severity == Severity::Error) {
        return Ok(());
    }
    let alone = schema::judge(&schema, &value, Unknowns::AsTheSchemaSays);
    let closed = schema::judge(&schema, &value, Unknowns::Refused);
    if let (Ok(alone), Ok(closed)) = (alone, closed) {
        prop_assert!(alone.is_empty() || !closed.is_empty(), "refusing more finds less");
    }
    Ok(())
}

/// A command: it is split into arguments that a process can be given.
pub fn command(bytes: &[u8]) -> Kept {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    if let Ok(arguments) = split_command(text) {
        prop_assert!(!arguments.is_empty());
        prop_assert!(arguments.iter().all(|argument| !argument.contains('\0')));
        let length: usize = arguments.iter().map(String::len).sum();
        prop_assert!(length <= text.len(), "splitting makes nothing up");
    }
    Ok(())
}

/// A pattern, then, after a NUL, a text.
pub fn regex(bytes: &[u8]) -> Kept {
    let (pattern, text) = halves(bytes);
    match (std::str::from_utf8(pattern), std::str::from_utf8(text)) {
        (Ok(pattern), Ok(text)) => pattern_and_text(pattern, text),
        _ => Ok(()),
    }
}

/// A pattern and a text: what is accepted can be compiled, and one look is as good as many.
pub fn pattern_and_text(pattern: &str, text: &str) -> Kept {
    let compiled = EcmaRegex::new(pattern);
    prop_assert_eq!(
        check_regex(pattern, &Budget::default()).is_ok(),
        compiled.is_ok(),
        "accepted, then compiled"
    );
    let by_many = compiled.ok().and_then(|compiled| compiled.is_match(text).ok());
    prop_assert_eq!(matches_once(pattern, text), by_many);
    Ok(())
}

/// The bytes before and after the first NUL.
fn halves(bytes: &[u8]) -> (&[u8], &[u8]) {
    let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (&bytes[..at], bytes.get(at + 1..).unwrap_or_default())
}

/// Every finding points into the text and says something.
fn check_report(report: &Report, bytes: &[u8]) -> Kept {
    let places = Places::new(std::str::from_utf8(bytes).unwrap_or_default());
    for finding in &report.findings {
        prop_assert!(finding.span.start <= finding.span.end, "{finding:?}");
        prop_assert!(finding.span.start as usize <= bytes.len(), "{finding:?}");
        prop_assert!(!finding.message.is_empty(), "{finding:?}");
        let place = places.of(finding.span);
        prop_assert!(place.line > 0 && place.column > 0, "{place:?}");
    }
    Ok(())
}

/// Each value lies within the one around it, after the one before it.
fn check_spans(node: &Node<'_>, text: &str) -> Kept {
    let range = node.span.range();
    prop_assert!(text.is_char_boundary(range.start) && text.is_char_boundary(range.end));
    let members = node.members().iter().map(|member| (member.key_span.start, &member.value));
    let items = node.items().iter().map(|item| (item.span.start, item));
    let mut at = node.span.start;
    for (start, child) in members.chain(items) {
        prop_assert!(at < start && start <= child.span.start, "{child:?}");
        prop_assert!(child.span.end < node.span.end, "{child:?}");
        at = child.span.end;
        check_spans(child, text)?;
    }
    Ok(())
}

fn depth(node: &Node<'_>) -> usize {
    let items = node.items().iter().map(depth);
    let members = node.members().iter().map(|member| depth(&member.value));
    let beneath = items.chain(members).max().unwrap_or(0);
    beneath + usize::from(matches!(node.value, Value::List(_) | Value::Object(_)))
}

fn is_same(ours: &Node<'_>, theirs: &serde_json::Value) -> bool {
    use serde_json::Value as Theirs;
    match (&ours.value, theirs) {
        (Value::Null, Theirs::Null) => true,
        (Value::Bool(a), Theirs::Bool(b)) => a == b,
        (Value::Text(a), Theirs::String(b)) => a == b,
        (Value::Number(Number::Unsigned(a)), Theirs::Number(b)) => Some(*a) == b.as_u64(),
        (Value::Number(Number::Negative(a)), Theirs::Number(b)) => Some(*a) == b.as_i64(),
        // `serde_json` trades the last digit of a fraction for speed.
        (Value::Number(Number::Float(a)), Theirs::Number(b)) => {
            b.is_f64() && b.as_f64().is_some_and(|b| (a - b).abs() <= a.abs() * 1e-15)
        }
        (Value::List(a), Theirs::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Theirs::Object(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|(a, (key, b))| a.key == *key && is_same(&a.value, b))
        }
        _ => false,
    }
}
