//! From one dialect to another, with a list of everything that was lost.
//!
//! What the target demands and the source does not know is asked for, never
//! invented: no made-up smoke test, kill switch, digest or trust. A document
//! of the same dialect comes out byte for byte.

mod agentcli;
mod capability;
mod draft;
mod install_manifest;
mod jumith;
mod losses;
mod mcpkg;
mod run;

use serde_json::Value;

pub use draft::Missing;
pub use losses::{Loss, carries};

use crate::dialect::{Dialect, Form};
use crate::document::{Options, Report, check, read};
use crate::json::{Pointer, parse};
use crate::model::Package;
use draft::Draft;

/// What is to be converted, and into what.
#[derive(Clone, Debug)]
pub struct Request<'r> {
    /// How the source is read.
    pub source: Options<'r>,
    /// The dialect to write.
    pub target: Dialect,
    /// The one action, or catalog entry, to convert.
    pub only: Option<&'r str>,
    /// What the source does not know.
    pub set: &'r [(Pointer, Value)],
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// The document.
    pub document: Vec<u8>,
    /// What the target cannot carry.
    pub losses: Vec<Loss>,
    /// What the target demands and nobody has said.
    pub missing: Vec<Missing>,
    /// What is wrong with a document that was written anew, when everything it demands is there.
    pub report: Option<Report>,
}

/// Why nothing can be converted.
#[derive(Clone, Debug)]
pub enum ConvertError {
    /// The target is a dialect that is only read.
    OnlyRead(Dialect),
    /// The source is not valid.
    Invalid(Box<Report>),
    /// The source is no manifest.
    NoManifest(Form),
    /// The target holds one action, and the source has these.
    Several {
        /// What the choices are called: `action` or `entry`.
        noun: &'static str,
        /// The choices.
        names: Vec<String>,
    },
    /// The source has no action or entry of that name.
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        names: Vec<String>,
    },
    /// The source has nothing to convert.
    Empty,
    /// A value cannot be put where it was to go.
    BadSet(Pointer),
    /// A document of the same dialect is given back as it is; nothing can be set in it.
    SetInSame,
    /// A document of the same dialect has no parts that stand for themselves.
    OnlyInSame,
}

/// Converts a document.
pub fn convert(bytes: &[u8], request: &Request<'_>) -> Result<Conversion, ConvertError> {
    let write = match request.target {
        Dialect::InstallManifest => install_manifest::write,
        Dialect::Agentcli => agentcli::write,
        Dialect::Mcpkg => mcpkg::write,
        Dialect::Capability => capability::write,
        Dialect::Jumith => jumith::write,
        Dialect::Mcpb | Dialect::ServerJson | Dialect::Skill => {
            return Err(ConvertError::OnlyRead(request.target));
        }
    };
    let (report, packages) =
        read(bytes, &request.source).map_err(|report| ConvertError::Invalid(Box::new(report)))?;
    let form = report.form.unwrap_or(Form::Manifest);
    if matches!(
        form,
        Form::Test
            | Form::Companion
            | Form::Index
            | Form::OpenApi
            | Form::Publisher
            | Form::Provenance
    ) {
        return Err(ConvertError::NoManifest(form));
    }
    if report.dialect == Some(Dialect::Skill) {
        // What can be called are files beside it.
        return Err(ConvertError::Empty);
    }
    if report.dialect == Some(request.target) {
        let document = match (request.set, request.only) {
            ([], None) => bytes.to_vec(),
            ([], Some(name)) => part(bytes, form, name)?,
            _ => return Err(ConvertError::SetInSame),
        };
        return Ok(Conversion { document, losses: Vec::new(), missing: Vec::new(), report: None });
    }
    let (entry, package) = pick_package(packages, request)?;
    let package = pick_action(package, request)?;
    let mut draft = Draft::default();
    write(&package, &mut draft);
    let place = losses::Place { form, entry, only: request.only };
    let mut lost = losses::audit(bytes, &package, request.target, &place);
    let (document, missing, explicit) = draft.finish(request.set)?;
    let base = place.base();
    lost.extend(
        explicit.into_iter().map(|loss| Loss { pointer: loss.pointer.beneath(&base), ..loss }),
    );
    lost.sort_by(|a, b| (a.weight, &a.pointer).cmp(&(b.weight, &b.pointer)));
    lost.dedup();
    let document = written(&document);
    let report = missing.is_empty().then(|| {
        check(&document, &Options { dialect: Some(request.target), ..Options::default() })
    });
    Ok(Conversion { document, losses: lost, missing, report })
}

/// One entry of a catalog, as a manifest of its own; byte for byte.
fn part(bytes: &[u8], form: Form, name: &str) -> Result<Vec<u8>, ConvertError> {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let Some(root) = parse(text).root.filter(|_| form == Form::Catalog) else {
        return Err(ConvertError::OnlyInSame);
    };
    let entries = root.list_at("capabilities");
    match entries.iter().find(|entry| entry.text_at("id") == Some(name)) {
        Some(entry) => Ok([text[entry.span.range()].as_bytes(), b"\n"].concat()),
        None => {
            let names = entries.iter().filter_map(|entry| entry.text_at("id")).map(str::to_owned);
            Err(ConvertError::Unknown { name: name.to_owned(), names: names.collect() })
        }
    }
}

/// A document as a person would indent it.
fn written(document: &Value) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(document).expect("a JSON value can be written");
    bytes.push(b'\n');
    bytes
}

/// The package to convert, and where it stands in a catalog.
fn pick_package(
    mut packages: Vec<Package>,
    request: &Request<'_>,
) -> Result<(Option<usize>, Package), ConvertError> {
    let names: Vec<String> = packages.iter().map(|package| package.id.clone()).collect();
    match packages.len() {
        0 => Err(ConvertError::Empty),
        1 => Ok((Some(0), packages.remove(0))),
        _ => match request.only {
            None => Err(ConvertError::Several { noun: "entry", names }),
            Some(name) => match names.iter().position(|known| known == name) {
                Some(index) => Ok((Some(index), packages.swap_remove(index))),
                None => Err(ConvertError::Unknown { name: name.to_owned(), names }),
            },
        },
    }
}

/// The package with only the action that was asked for.
fn pick_action(mut package: Package, request: &Request<'_>) -> Result<Package, ConvertError> {
    let names: Vec<String> = package.actions.iter().map(|action| action.name.clone()).collect();
    if let Some(name) = request.only.filter(|name| *name != package.id) {
        if !names.iter().any(|known| known == name) {
            return Err(ConvertError::Unknown { name: name.to_owned(), names });
        }
        package.actions.retain(|action| action.name == name);
        if package.dialect == Dialect::Agentcli {
            package.implementations.retain(|implementation| implementation.id == name);
        }
    }
    let holds_one =
        matches!(request.target, Dialect::Mcpkg | Dialect::Capability | Dialect::Jumith)
            || (request.target == Dialect::InstallManifest && !run::share_a_program(&package));
    if holds_one && package.actions.len() > 1 {
        return Err(ConvertError::Several { noun: "action", names });
    }
    Ok(package)
}
