//! The reader and the published JSON Schemas give the same verdict, and the schemas on the disk
//! are the ones the reader is made of.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::LazyLock;

use jsonschema::{Draft, Validator};
use manifest::dialect::{
    COMPANION, Dialect, Form, PUBLISHED, Published, install_manifest, mcpb, mcpkg,
};
use manifest::document::{Depth, MAX_MANIFEST, Options, check};
use manifest::finding::{Code, Severity, Stage};
use manifest::json::{Pointer, parse};
use manifest::schema::EcmaRegex;
use proptest::prelude::{Strategy, prop_assert, prop_assert_eq};
use serde_json::Value;
use testkit::documents::{documents, mutants};
use testkit::draws::holds;
use testkit::repo;
use testkit::words::{grammars, texts_near};

/// How many documents of each kind are tried.
const CASES: u32 = 500;

/// Each published schema, compiled as any user would compile it.
static VALIDATORS: LazyLock<HashMap<&str, Validator>> = LazyLock::new(|| {
    published().map(|entry| (entry.name, validator(&entry.json_schema()))).collect()
});

fn published() -> impl Iterator<Item = Published> {
    PUBLISHED.into_iter().chain([COMPANION])
}

fn validator(schema: &Value) -> Validator {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(false)
        .offline()
        .build(schema)
        .unwrap_or_else(|error| panic!("{}: {error}", schema["$id"]))
}

#[test]
fn published_schemas_are_valid_2020_12() {
    for entry in published() {
        let schema = entry.json_schema();
        let verdict = jsonschema::draft202012::meta::validate(&schema);
        assert!(verdict.is_ok(), "{}: {verdict:?}", entry.name);
        let text = schema.to_string();
        let findings = manifest::schema::check(
            &parse(&text).root.unwrap(),
            &Pointer::root(),
            &manifest::schema::Budget::default(),
        );
        assert!(findings.is_empty(), "{}: {findings:#?}", entry.name);
    }
}

#[test]
fn documents_made_from_a_shape_are_valid() {
    for entry in published() {
        holds(CASES, &documents((entry.shape)()), |document| {
            prop_assert!(is_valid_by_reader(entry, &document), "{} by the reader", entry.name);
            prop_assert!(is_valid_by_schema(entry, &document), "{} by the schema", entry.name);
            Ok(())
        });
    }
}

#[test]
fn every_matcher_agrees_with_its_pattern() {
    let mut seen = HashSet::new();
    for grammar in published().flat_map(|entry| grammars((entry.shape)())) {
        if !seen.insert(grammar.text) {
            continue;
        }
        let regex = EcmaRegex::new(grammar.text).unwrap();
        holds(10 * CASES, &texts_near(grammar), |text| {
            prop_assert_eq!((grammar.matches)(&text), regex.is_match(&text).unwrap());
            Ok(())
        });
    }
    assert!(seen.len() > 10, "{seen:?}");
}

#[test]
fn install_manifests_get_the_same_verdict() {
    agree("install-manifest");
}

#[test]
fn tools_files_get_the_same_verdict() {
    agree("agentcli");
}

#[test]
fn packages_get_the_same_verdict() {
    agree("mcpkg");
}

#[test]
fn capabilities_get_the_same_verdict() {
    agree("capability");
}

#[test]
fn registry_documents_get_the_same_verdict() {
    agree("jumith");
}

#[test]
fn bundle_manifests_get_the_same_verdict() {
    agree("mcpb");
}

#[test]
fn server_documents_get_the_same_verdict() {
    agree("server-json");
}

#[test]
fn companions_get_the_same_verdict() {
    agree("haft");
}

fn agree(name: &str) {
    for entry in published().filter(|entry| entry.name.starts_with(name)) {
        let small = |document: &Value| document.to_string().len() <= MAX_MANIFEST;
        let mutants = mutants((entry.shape)()).prop_filter("refused for its size", small);
        holds(CASES, &mutants, |document| {
            let by_reader = is_valid_by_reader(entry, &document);
            let by_schema = is_valid_by_schema(entry, &document);
            prop_assert_eq!(by_reader, by_schema, "{}: reader, then schema", entry.name);
            Ok(())
        });
    }
}

/// A version only adds to the one before it, so a manifest stays valid when it names the next.
#[test]
fn each_install_manifest_version_only_adds() {
    let versions = install_manifest::Version::ALL;
    // 0.2 asks for a catalog of actions where 0.1 had none.
    for pair in versions[1..].windows(2) {
        let bumped = documents(install_manifest::shape(pair[0])).prop_map(|mut document| {
            document["manifest_version"] = pair[1].name().into();
            document
        });
        holds(CASES, &bumped, |document| {
            let name = format!("install-manifest@{}", pair[1].name());
            prop_assert!(VALIDATORS[name.as_str()].is_valid(&document));
            Ok(())
        });
    }
}

#[test]
fn a_package_that_needs_nothing_new_is_valid_by_either_version() {
    holds(CASES, &mutants(mcpkg::shape(mcpkg::Version::V0_1)), |document| {
        if mcpkg_version(&document) == mcpkg::Version::V0_1 {
            let verdict = |name| VALIDATORS[name].is_valid(&document);
            prop_assert_eq!(verdict("mcpkg@0.1"), verdict("mcpkg@0.2"));
        }
        Ok(())
    });
}

#[test]
fn each_bundle_manifest_version_only_adds() {
    for pair in mcpb::Version::ALL.windows(2) {
        let bumped = documents(mcpb::shape(pair[0])).prop_map(|mut document| {
            for key in mcpb::VERSION_KEYS {
                if document.get(key).is_some() {
                    document[key] = pair[1].name().into();
                }
            }
            document
        });
        holds(CASES, &bumped, |document| {
            let name = format!("mcpb@{}", pair[1].name());
            prop_assert!(VALIDATORS[name.as_str()].is_valid(&document));
            Ok(())
        });
    }
}

/// Whether the reader finds no error that a schema could find.
fn is_valid_by_reader(entry: Published, document: &Value) -> bool {
    let (dialect, form) = kind_of(entry);
    let depth = match dialect {
        // Its contract words some faults of structure itself, in its rules.
        Some(Dialect::Agentcli) => Depth::Everything,
        _ => Depth::Structure,
    };
    let options = Options { dialect, form: Some(form), depth, ..Options::default() };
    let report = check(document.to_string().as_bytes(), &options);
    report.findings.iter().all(|finding| {
        let is_of_structure = finding.code.stage() == Stage::Structure
            || matches!(finding.code, Code::UnknownVersion | Code::MoreFindings);
        finding.severity == Severity::Warning || !is_of_structure
    })
}

/// Whether the schema accepts it: that of the version which the document itself speaks of.
fn is_valid_by_schema(entry: Published, document: &Value) -> bool {
    let name = match kind_of(entry) {
        (Some(Dialect::InstallManifest), Form::Manifest) => {
            let named = document["manifest_version"].as_str();
            let version = named.and_then(install_manifest::Version::named);
            version.map_or(entry.name.to_owned(), |v| format!("install-manifest@{}", v.name()))
        }
        (Some(Dialect::Mcpkg), Form::Manifest) => {
            format!("mcpkg@{}", mcpkg_version(document).name())
        }
        (Some(Dialect::Mcpb), Form::Manifest) => {
            let text = document.to_string();
            let version = mcpb::Version::of(&parse(&text).root.expect("serde_json writes JSON"));
            version.map_or(entry.name.to_owned(), |version| format!("mcpb@{}", version.name()))
        }
        _ => entry.name.to_owned(),
    };
    VALIDATORS[name.as_str()].is_valid(document)
}

fn mcpkg_version(document: &Value) -> mcpkg::Version {
    let text = document.to_string();
    mcpkg::Version::of(&parse(&text).root.expect("serde_json writes JSON"))
}

/// What a reader must be told to read a document as of that schema.
fn kind_of(entry: Published) -> (Option<Dialect>, Form) {
    match entry.name {
        "haft@1" => (None, Form::Companion),
        "install-manifest-index@1" => (Some(Dialect::InstallManifest), Form::Index),
        "mcpkg-test" => (Some(Dialect::Mcpkg), Form::Test),
        "capability-catalog@0.1" => (Some(Dialect::Capability), Form::Catalog),
        "jumith-bundle" => (Some(Dialect::Jumith), Form::Bundle),
        other => {
            let dialect = Dialect::named(other.split('@').next().unwrap_or_default());
            assert!(dialect.is_some(), "{other} is of no dialect");
            (dialect, Form::Manifest)
        }
    }
}

#[test]
fn schemas_on_the_disk_are_current() {
    let folder = repo().join("schemas");
    let update = std::env::var_os("HAFT_UPDATE").is_some();
    let mut expected: Vec<PathBuf> = Vec::new();
    for entry in published() {
        let path = folder.join(format!("{}.schema.json", entry.name.replace('@', "-")));
        let text = format!("{:#}\n", entry.json_schema());
        if update {
            std::fs::write(&path, &text).unwrap();
        }
        let is_current = std::fs::read_to_string(&path).is_ok_and(|written| written == text);
        assert!(is_current, "{} is out of date: {HINT}", path.display());
        expected.push(path);
    }
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        let is_schema = path.to_string_lossy().ends_with(".schema.json");
        assert!(!is_schema || expected.contains(&path), "{} is published no more", path.display());
    }
}

const HINT: &str = "run `HAFT_UPDATE=1 cargo test -p manifest --test same_verdict` to rewrite it";
