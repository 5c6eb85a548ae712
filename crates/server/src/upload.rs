//! From the bytes somebody sends to a version that can be published.
//!
//! Everything of a package is looked at before anything is kept, by the same rules as on the machine of its
//! author. It takes a while and does nothing but compute.

use std::fmt;

use crate::doors::Doors;
use manifest::dialect::{Dialect, Form};
use manifest::document::{MAX_MANIFEST, Options, read};
use manifest::finding::{Finding, Severity};
use manifest::folder::check_with_folder;
use manifest::model::{Entry, Package};
use package::archive::{Archive, Trailer};
use package::bundle::{Bundle, BundleError, DESCRIPTION};
use package::contents::{Around, Contents, MANIFEST_NAMES, find_manifest, listing};
use package::digest::Digest;
use package::limits::Limits;
use package::pack::{PackError, Packing, Secrets, pack};
use package::refusal::ReadError;
use package::signature::{self, State};
use registry::error::found;
use registry::{Describe, EntryPoint, Found, Signature, TestReport, Tests, identity};

/// The longest version, in bytes.
pub const LONGEST_VERSION: usize = 128;
/// How many findings are told.
const FINDINGS: usize = 50;

/// A package that may be published.
#[derive(Debug)]
pub struct Upload {
    /// The bytes of the package file.
    pub bytes: Vec<u8>,
    /// Their digest.
    pub digest: Digest,
    /// Whose names it is among, by its id and by its name.
    pub namespaces: [String; 2],
    /// The dialect of its manifest.
    pub dialect: Dialect,
    /// Where in the package its manifest is.
    pub manifest_path: String,
    /// The manifest, as it was written.
    pub manifest: Vec<u8>,
    /// What describing it answers.
    pub describe: Describe,
    /// What finding it answers.
    pub found: Found,
    /// What the index is made from.
    pub entry: search::Entry,
    /// What other worlds are told of it.
    pub doors: Doors,
    /// The paths of the tests that it carries.
    pub tests: Vec<String>,
    /// What is worth mending, though it is no reason to refuse.
    pub warnings: Vec<String>,
}

/// Why bytes are no package that may be published.
#[derive(Debug)]
pub enum UploadError {
    /// They are neither an archive nor a bundle.
    Unknown,
    /// The archive, or a file in it, is refused.
    Refused(ReadError),
    /// The manifest, or a file it speaks of, is not valid.
    Invalid(Vec<Told>),
    /// The document beside the files is no manifest of one package.
    NotOne(usize),
    /// It was changed after it was signed.
    Broken(Vec<String>),
    /// It has no id of its own, and none was given.
    NoId,
    /// Its id, its name or its version cannot be kept.
    Name(&'static str, String),
    /// It cannot be put into the index.
    Entry(search::EntryError),
    /// A bundle could not be packed.
    Pack(PackError),
    /// The report of its tests is about the bytes of this digest, which are others.
    ReportOfOther(String),
    /// The report tells of a test that it does not carry.
    ReportOfNoTest(String),
}

/// A finding, as it is told.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Told {
    /// The file.
    pub path: String,
    /// Its code.
    pub code: String,
    /// Where in the file.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for UploadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UploadError::Unknown => out.write_str("the body is neither a package nor a bundle"),
            UploadError::Refused(error) => write!(out, "the package is refused: {error}"),
            UploadError::Invalid(told) => match told.first() {
                Some(Told { path, pointer, message, .. }) => {
                    // Who published a bundle or a form has never seen the name that it was given.
                    let is_manifest = MANIFEST_NAMES.contains(&path.as_str());
                    let what = if is_manifest { "the manifest" } else { &format!("`{path}`") };
                    write!(out, "{what} is not valid: {}", found(pointer, message))
                }
                None => out.write_str("the manifest is not valid"),
            },
            UploadError::NotOne(count) => {
                write!(out, "the manifest describes {count} packages; one is published at a time")
            }
            UploadError::Broken(faults) => {
                let fault = faults.first().map_or("", String::as_str);
                write!(out, "the package was changed after it was signed: {fault}")
            }
            UploadError::NoId => {
                out.write_str("the manifest has no id of its own; give one with `?id=`")
            }
            UploadError::Name(what, name) => write!(out, "the {what} `{name}` cannot be published"),
            UploadError::Entry(error) => write!(out, "it cannot be indexed: {error}"),
            UploadError::Pack(error) => write!(out, "the bundle cannot be packed: {error}"),
            UploadError::ReportOfOther(_) => {
                out.write_str("the report of tests is about other bytes than the package")
            }
            UploadError::ReportOfNoTest(path) => {
                write!(out, "the report tells of `{path}`, which is no test of the package")
            }
        }
    }
}

impl std::error::Error for UploadError {}

impl From<ReadError> for UploadError {
    fn from(error: ReadError) -> Self {
        UploadError::Refused(error)
    }
}

impl Upload {
    /// Looks at everything. `id` is for a manifest that has none of its own: a tools.json.
    pub fn read(bytes: Vec<u8>, id: Option<&str>, limits: &Limits) -> Result<Self, UploadError> {
        match bytes.trim_ascii_start() {
            [b'P', b'K', ..] => {
                let archive = Archive::from_bytes(bytes.clone(), Trailer::Refused, limits)?;
                Self::of(bytes, &archive, id)
            }
            [b'{', ..] => {
                let bundle = Bundle::read(&bytes, limits).map_err(bad_bundle)?;
                drop(bytes);
                let mut packed = Vec::new();
                let packing = Packing { contents: &bundle, secrets: Secrets::NotLookedFor };
                pack(&packing, &mut packed).map_err(UploadError::Pack)?;
                Self::of(packed, &bundle, id)
            }
            _ => Err(UploadError::Unknown),
        }
    }

    fn of(bytes: Vec<u8>, contents: &dyn Contents, id: Option<&str>) -> Result<Self, UploadError> {
        let manifest_path = find_manifest(contents)?;
        let is_large = contents.size(&manifest_path).is_some_and(|size| size > MAX_MANIFEST as u64);
        let manifest = if is_large { Vec::new() } else { contents.read(&manifest_path)? };
        let options = Options { fallback_id: id, ..Options::default() };
        let folder = Around(contents);
        let (mut errors, mut warnings) = (Vec::new(), Vec::new());
        for file in check_with_folder(&manifest_path, manifest.clone(), &options, &folder) {
            for finding in &file.report.findings {
                let told = told(&file.path, finding);
                match finding.severity {
                    Severity::Error => errors.push(told),
                    Severity::Warning => {
                        warnings.push(format!("{} {}: {}", told.path, told.pointer, told.message));
                    }
                }
            }
        }
        errors.truncate(FINDINGS);
        warnings.truncate(FINDINGS);
        let (report, mut packages) = match read(&manifest, &options) {
            Ok(read) if errors.is_empty() => read,
            _ => return Err(UploadError::Invalid(errors)),
        };
        if packages.len() != 1 || report.form != Some(Form::Manifest) {
            return Err(UploadError::NotOne(packages.len()));
        }
        let package = packages.remove(0);
        let doors = Doors::of(&package, &manifest, id);
        let read = Self::of_package(bytes, contents, &package, manifest_path, manifest)?;
        Ok(Self { doors, warnings, ..read })
    }

    /// Takes in what the publisher reports of its tests; a report of anything else is refused.
    pub(crate) fn report(&mut self, report: TestReport) -> Result<(), UploadError> {
        if report.sha256 != self.digest.to_string() {
            return Err(UploadError::ReportOfOther(report.sha256));
        }
        if let Some(case) = report.cases.iter().find(|case| !self.tests.contains(&case.path)) {
            return Err(UploadError::ReportOfNoTest(case.path.chars().take(200).collect()));
        }
        self.describe.tests = Some(Tests { reported: Some(report) });
        Ok(())
    }

    /// The same, for a package whose manifest was looked at already.
    pub(crate) fn of_package(
        bytes: Vec<u8>,
        contents: &dyn Contents,
        package: &Package,
        manifest_path: String,
        manifest: Vec<u8>,
    ) -> Result<Self, UploadError> {
        let files = listing(contents)?;
        let signatures = match contents.size(signature::PATH) {
            Some(size) if size <= signature::MAX_FILE => Some(contents.read(signature::PATH)?),
            _ => None,
        };
        let verdict = signature::check(&files, signatures.as_deref());
        if verdict.state == State::Invalid {
            return Err(UploadError::Broken(verdict.faults));
        }
        let digest = Digest::of(&bytes);
        let mut describe = Describe::of_package(package);
        describe.sha256 = Some(digest.to_string());
        describe.files_sha256 = Some(files.digest().to_string());
        describe.size = Some(bytes.len() as u64);
        describe.signature = Some(Signature {
            state: verdict.state.name().to_owned(),
            keys: verdict.signers().map(|key| key.to_string()).collect(),
        });
        if let Some(entry) = node_entry(contents, package)? {
            describe.entry = entry;
        }
        check_names(&describe)?;
        let entry = search::Entry::of_package(&describe.id, package).map_err(UploadError::Entry)?;
        Ok(Self {
            digest,
            namespaces: [
                identity::namespace(package).trim_start_matches(identity::PREFIX).to_owned(),
                match &package.namespace {
                    Some(namespace) => namespace.clone(),
                    None => identity::namespace_of(&describe.name).to_owned(),
                },
            ],
            doors: Doors::default(),
            dialect: package.dialect,
            manifest_path,
            manifest,
            found: Found::from(&describe),
            describe,
            entry,
            tests: package.tests.iter().map(|path| plain(path).to_owned()).collect(),
            warnings: Vec::new(),
            bytes,
        })
    }
}

/// The path of a test as the package has it.
pub(crate) fn plain(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

/// The module that a package of another dialect has for Jumith clients, as it says beside its manifest.
fn node_entry(contents: &dyn Contents, own: &Package) -> Result<Option<EntryPoint>, UploadError> {
    if own.dialect == Dialect::Jumith || contents.size(DESCRIPTION).is_none() {
        return Ok(None);
    }
    let options = Options { dialect: Some(Dialect::Jumith), ..Options::default() };
    let described = match read(&contents.read(DESCRIPTION)?, &options) {
        Ok((_, mut packages)) if packages.len() == 1 => packages.remove(0),
        Ok((_, packages)) => return Err(UploadError::NotOne(packages.len())),
        Err(report) => {
            let errors = report.findings.iter().map(|finding| told(DESCRIPTION, finding));
            return Err(UploadError::Invalid(errors.take(FINDINGS).collect()));
        }
    };
    let entry = described.implementations.first().map(|implementation| &implementation.entry);
    match entry {
        Some(Entry::NodeModule { main, .. }) if contents.size(main).is_some() => {
            Ok(Some(Describe::of_package(&described).entry))
        }
        _ => Ok(None),
    }
}

/// Whether the registry can keep such an id, such a name and such a version, and people can tell them.
fn check_names(describe: &Describe) -> Result<(), UploadError> {
    for (what, name) in [("id", &describe.id), ("name", &describe.name)] {
        let plain = name.strip_prefix(identity::PREFIX).unwrap_or(name);
        if plain.is_empty() {
            return Err(UploadError::NoId);
        }
        if !identity::is_name(name) {
            return Err(UploadError::Name(what, name.chars().take(80).collect()));
        }
    }
    let version = &describe.version;
    if version.len() > LONGEST_VERSION || semver::Version::parse(version).is_err() {
        return Err(UploadError::Name("version", version.chars().take(80).collect()));
    }
    // What no client takes would hide everything that is found beside it.
    if !registry::client::is_bounded(&Found::from(describe)) {
        let name = describe.name.chars().take(80).collect();
        return Err(UploadError::Name("summary, tags, secrets or provider of", name));
    }
    Ok(())
}

fn told(path: &str, finding: &Finding) -> Told {
    Told {
        path: path.to_owned(),
        code: finding.code.name().to_owned(),
        pointer: finding.pointer.as_str().to_owned(),
        message: finding.message.clone(),
    }
}

fn bad_bundle(error: BundleError) -> UploadError {
    match error {
        BundleError::Read(error) => UploadError::Refused(error),
        BundleError::Invalid(report) => {
            let errors =
                report.findings.iter().filter(|finding| finding.severity == Severity::Error);
            UploadError::Invalid(
                errors.take(FINDINGS).map(|finding| told("bundle", finding)).collect(),
            )
        }
        BundleError::Missing(_) | BundleError::Convert(_) => UploadError::Invalid(Vec::new()),
    }
}
