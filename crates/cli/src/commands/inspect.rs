//! `haft inspect`: everything a package holds and says, without unpacking it.

use std::path::PathBuf;

use clap::Args;
use manifest::dialect::Form;
use manifest::finding::Severity;
use manifest::meta;
use manifest::model::Package;
use package::digest::{Digest, Listing};
use package::key::PublicKey;
use package::signature::{self, Verdict};
use serde_json::{Value, json};

use crate::container::{self, Container, Described, Inside};
use crate::draw;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::{Home, Trusted};
use crate::printer::{Printer, Style, line};

#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    /// The package: .mcpkg, .mcpb or a bundle
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &InspectArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let container = container::open(&args.file, printer)?;
    let listing = container.listing()?;
    let verdict = container.verdict(&listing)?;
    let described = container.described(None)?;
    let trusted = home.trusted(printer)?;
    let look = Look { container: &container, listing, verdict, described, trusted };
    if json_wanted {
        printer.json(&look.document()?)?;
    } else {
        printer.result(&look.page(printer)?)?;
    }
    let manifest = &look.described.reports[0];
    if manifest.report.is_valid() {
        return Ok(Exit::Done);
    }
    let path = args.file.join(&manifest.path);
    Err(draw::refused(&path, &manifest.bytes, &manifest.report, printer))
}

struct Look<'c> {
    container: &'c Container,
    listing: Listing,
    verdict: Verdict,
    described: Described,
    trusted: Vec<Trusted>,
}

impl Look<'_> {
    fn document(&self) -> Result<Value, Failure> {
        let package = self.described.package.as_ref();
        let manifest = &self.described.reports[0].report;
        let signatures: Vec<Value> = self
            .verdict
            .signatures
            .iter()
            .map(|signed| {
                let (key, state) = (signed.key.to_string(), signed.state.name());
                json!({"key": key, "name": super::name_of(signed.key, &self.trusted), "state": state})
            })
            .collect();
        let key = self.verdict.signers().next().or(self.only_key()).map(|key| key.to_string());
        Ok(json!({
            "id": package.map(|package| &package.id),
            "version": package.map(Package::semver),
            "dialect": manifest.dialect,
            "manifest": self.described.manifest,
            "valid": self.described.reports.iter().all(|file| file.report.is_valid()),
            "digest": format!("sha256:{}", self.container.digest),
            "size": self.container.size,
            "contents": format!("sha256:{}", self.contents()),
            "files": super::files_json(&self.listing),
            "signature": {
                "state": self.verdict.state.name(),
                "key": key,
                "signatures": signatures,
                "faults": self.verdict.faults,
            },
            "publisher": self.meta(meta::PUBLISHER)?,
            "provenance": self.meta(meta::PROVENANCE)?,
            "openapi": self.openapi(),
            "mcpb_signature": self.mcpb_signature(),
        }))
    }

    fn page(&self, printer: Printer) -> Result<String, Failure> {
        let mut page = String::new();
        let manifest = &self.described.reports[0].report;
        let dialect = manifest.dialect.map_or("no dialect".to_owned(), |dialect| {
            manifest.version.map_or(dialect.to_string(), |version| format!("{dialect} {version}"))
        });
        let title = match &self.described.package {
            Some(package) => format!("{} {}", package.id, package.semver()),
            None => "not valid".to_owned(),
        };
        page += &format!("{}  {dialect}\n", printer.paint(Style::Strong, &line(&title)));
        if let Some(blurb) = self.described.package.as_ref().and_then(Package::blurb) {
            page += &format!("{}\n", line(blurb.lines().next().unwrap_or_default()));
        }
        page.push('\n');
        let mut row = |name: &str, text: &str| {
            page += &format!(
                "{} {}\n",
                printer.paint(Style::Faint, &format!("{name:<11}")),
                line(text)
            );
        };
        row("file", &format!("{} bytes, sha256:{}", self.container.size, self.container.digest));
        let (count, total) = (self.listing.files().len(), self.listing.total());
        let count = super::count(count, "file");
        row("contents", &format!("{count}, {total} bytes, sha256:{}", self.contents()));
        row("manifest", &self.described.manifest);
        row("signature", &self.signature());
        for fault in &self.verdict.faults {
            row("", fault);
        }
        for (name, path) in [("publisher", meta::PUBLISHER), ("provenance", meta::PROVENANCE)] {
            if let Some(value) = self.meta(path)? {
                row(name, &words(&value));
            }
        }
        if let Some(openapi) = self.openapi() {
            row("openapi", &openapi_words(&openapi));
        }
        let count = |severity| -> usize {
            self.described.reports.iter().map(|file| file.report.count(severity)).sum()
        };
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        if errors + warnings > 0 {
            let counts = [super::count(errors, "error"), super::count(warnings, "warning")];
            row("findings", &format!("{}; `haft validate` shows them", counts.join(", ")));
        }
        page.push('\n');
        let width = self.listing.files().iter().map(|file| file.size.to_string().len()).max();
        for file in self.listing.files() {
            let size = format!("{:>width$}", file.size, width = width.unwrap_or(0));
            page += &format!("{}  {size}  {}\n", file.sha256, line(&file.path));
        }
        Ok(page)
    }

    /// The key of a signature that is alone, whatever it comes to.
    fn only_key(&self) -> Option<PublicKey> {
        match self.verdict.signatures.as_slice() {
            [only] => Some(only.key),
            _ => None,
        }
    }

    /// The digest of the files, signatures apart: it does not depend on who has signed.
    fn contents(&self) -> Digest {
        self.listing.without(signature::PATH).digest()
    }

    fn signature(&self) -> String {
        let mut words = super::signature_words(&self.verdict, &self.trusted);
        if self.mcpb_signature().is_some() {
            words += "; an MCPB signature follows the archive, which Haft does not check";
        }
        words
    }

    /// How many bytes an MCPB signature has that was cut off.
    fn mcpb_signature(&self) -> Option<u64> {
        match &self.container.inside {
            Inside::Archive(archive) => Some(archive.trailer_len()).filter(|len| *len > 0),
            Inside::Bundle(_) => None,
        }
    }

    /// What a file about the package says; a file that is no JSON says nothing.
    fn meta(&self, path: &str) -> Result<Option<Value>, Failure> {
        match self.container.contents().size(path) {
            Some(size) if size <= manifest::document::MAX_MANIFEST as u64 => {
                Ok(serde_json::from_slice(&self.container.read(path)?).ok())
            }
            _ => Ok(None),
        }
    }

    /// What the OpenAPI document describes.
    fn openapi(&self) -> Option<Value> {
        let file =
            self.described.reports.iter().find(|file| file.report.form == Some(Form::OpenApi))?;
        let document: Value = serde_json::from_slice(&file.bytes).unwrap_or_default();
        let paths = document["paths"].as_object().into_iter().flatten();
        let operations: Vec<String> = paths
            .flat_map(|(path, item)| {
                let methods = item.as_object().into_iter().flatten().map(|(method, _)| method);
                let known =
                    methods.filter(|method| manifest::openapi::METHODS.contains(&method.as_str()));
                known.map(|method| format!("{} {path}", method.to_uppercase())).collect::<Vec<_>>()
            })
            .collect();
        Some(json!({
            "version": document["openapi"],
            "title": document["info"]["title"],
            "valid": file.report.is_valid(),
            "operations": operations,
        }))
    }
}

/// How many operations are named on the page.
const SHOWN: usize = 5;

/// What an OpenAPI document describes, in a few words.
fn openapi_words(openapi: &Value) -> String {
    let text = |key: &str| openapi[key].as_str().unwrap_or("?").to_owned();
    let operations: Vec<&str> =
        openapi["operations"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let named = operations.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    let more = if operations.len() > SHOWN { ", …" } else { "" };
    let valid = if openapi["valid"] == true { "" } else { "not valid; " };
    let count = super::count(operations.len(), "operation");
    format!("{}, {}: {valid}{count}: {named}{more}", text("version"), text("title"))
}

/// The texts of an object, one after the other.
fn words(value: &Value) -> String {
    let members = value.as_object().into_iter().flatten();
    let texts: Vec<String> = members
        .map(|(key, value)| match value.as_str() {
            Some(text) => format!("{key} {text}"),
            None => format!("{key} {value}"),
        })
        .collect();
    texts.join(", ")
}
