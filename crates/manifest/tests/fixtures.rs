//! Every fixture is found out, every example is valid, and every code has a document that earns it.

use std::collections::BTreeSet;

use manifest::dialect::Dialect;
use manifest::document::{MAX_CATALOG, MAX_MANIFEST, Options, Report, check};
use manifest::finding::{Code, Severity};
use manifest::folder::check_with_folder;
use serde_json::json;
use testkit::files::{Disk, name_of};
use testkit::{Fixture, examples, fixtures};

/// Codes whose documents are too large to keep: the tests below make them.
const MADE_HERE: [Code; 3] = [Code::TooLarge, Code::MoreFindings, Code::BundleTooLarge];

#[test]
fn every_fixture_reports_the_code_it_is_named_for() {
    let wrong: Vec<_> = fixtures().filter_map(|fixture| complaint(&fixture)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is amiss with how a fixture is reported.
fn complaint(fixture: &Fixture) -> Option<String> {
    let reports = fixture.reports();
    let findings: Vec<_> = reports.iter().flat_map(|file| &file.report.findings).collect();
    let named: Vec<_> = findings.iter().filter(|finding| finding.code == fixture.code).collect();
    let has_error = findings.iter().any(|finding| finding.severity == Severity::Error);
    let is_error = named.iter().any(|finding| finding.severity == Severity::Error);
    let problem = match fixture.code.severity() {
        _ if named.is_empty() => "is not reported",
        Severity::Error if !is_error && !may_be_a_warning(fixture) => "is only a warning",
        _ if has_error && !is_error => "is a warning, and there is an error beside it",
        _ => return None,
    };
    let reported: Vec<_> = findings.iter().map(|finding| finding.code.name()).collect();
    Some(format!("{}: {} {problem} in {reported:?}", fixture.path.display(), fixture.code))
}

/// Codes that a lenient dialect tells as a warning.
fn may_be_a_warning(fixture: &Fixture) -> bool {
    match fixture.code {
        Code::UnknownField | Code::MissingFile => true,
        // The patterns of an OpenAPI document are never run.
        Code::BadRegex => fixture.group == "openapi",
        // The author of a bundle is not at hand; its owner must see these all the same.
        Code::BadPath
        | Code::BadTemplate
        | Code::BadVersion
        | Code::DuplicateTool
        | Code::OutOfRange
        | Code::SecretDefault
        | Code::SecretInArgv => {
            matches!(fixture.dialect(), Some(Dialect::Mcpb | Dialect::ServerJson))
        }
        _ => false,
    }
}

#[test]
fn every_code_has_a_document_that_earns_it() {
    let mut codes: BTreeSet<Code> = fixtures().map(|fixture| fixture.code).collect();
    codes.extend(MADE_HERE);
    let missing: Vec<_> = Code::ALL.iter().filter(|code| !codes.contains(code)).collect();
    assert!(missing.is_empty(), "no fixture for {missing:?}");
}

#[test]
fn every_example_is_valid() {
    let mut count = 0;
    for path in examples() {
        let bytes = std::fs::read(&path).unwrap();
        let disk = Disk::beside(&path);
        for file in check_with_folder(name_of(&path), bytes, &Options::default(), &disk) {
            let findings = &file.report.findings;
            assert!(file.report.is_valid(), "{} {}: {findings:#?}", path.display(), file.path);
            let surprises: Vec<_> =
                findings.iter().filter(|finding| finding.code != Code::ShortId).collect();
            assert!(surprises.is_empty(), "{} {}: {surprises:#?}", path.display(), file.path);
        }
        count += 1;
    }
    assert!(count > 20, "{count} examples");
}

#[test]
fn a_manifest_of_one_byte_too_many_is_refused() {
    let manifest = json!({"toolId": "demo.text.echo"}).to_string();
    assert!(!codes(&padded(&manifest, MAX_MANIFEST)).contains(&Code::TooLarge));
    assert_eq!(codes(&padded(&manifest, MAX_MANIFEST + 1)), [Code::TooLarge]);
}

#[test]
fn a_catalog_may_be_larger_than_a_manifest_but_not_without_end() {
    let catalog = json!({"capabilities": []}).to_string();
    assert_eq!(codes(&padded(&catalog, MAX_CATALOG)), []);
    assert_eq!(codes(&padded(&catalog, MAX_CATALOG + 1)), [Code::TooLarge]);
}

#[test]
fn a_bundle_of_too_many_files_is_refused() {
    let file = |at: usize| json!({"path": format!("{at}.js"), "content": ""});
    let bundle = |count: usize| {
        json!({
            "manifest": {
                "id": "x", "name": "x", "version": "1.0.0", "summary": "x",
                "entry": {"runtime": "node", "main": "0.js"},
            },
            "files": (0..count).map(file).collect::<Vec<_>>(),
        })
    };
    let most = manifest::dialect::jumith::MAX_FILES;
    assert_eq!(codes(bundle(most).to_string().as_bytes()), []);
    assert_eq!(codes(bundle(most + 1).to_string().as_bytes()), [Code::BundleTooLarge]);
}

#[test]
fn of_very_many_findings_the_rest_is_counted() {
    let numbers = vec![1; 3_000];
    let tool = json!({"name": "x", "command": ["./tools/bin/x"], "envPassthrough": numbers});
    let report = report(json!({"tools": [tool]}).to_string().as_bytes());
    let last = report.findings.last().unwrap();
    assert_eq!(last.code, Code::MoreFindings);
    assert_eq!(last.message, "and 1000 more findings");
    assert_eq!(report.findings.len(), 2_001);
    assert!(!report.is_valid());
}

#[test]
fn a_program_by_its_bare_name_is_told_how_it_is_named() {
    let text = br#"{"tools":[{"name":"jq","command":["jq","."],"schema":{"type":"object"}}]}"#;
    let report = report(text);
    let finding = report.findings.iter().find(|one| one.code == Code::CommandNotInBin).unwrap();
    let help = finding.help.as_deref().unwrap_or_default();
    assert!(help.contains("/usr/bin/") && help.contains("./tools/bin/"), "{finding:?}");
}

fn padded(text: &str, length: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(length, b' ');
    bytes
}

fn report(bytes: &[u8]) -> Report {
    check(bytes, &Options::default())
}

fn codes(bytes: &[u8]) -> Vec<Code> {
    report(bytes).findings.into_iter().map(|finding| finding.code).collect()
}
