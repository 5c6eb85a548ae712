//! Writing a new package: never over something that pack itself could not have made.

use std::path::{Path, PathBuf};

use manifest::model::Package;
use package::archive::{Archive, Trailer};
use package::bundle;
use package::contents::{Contents, listing};
use package::digest::{Digest, Listing};
use package::limits::Limits;
use package::pack::{Made, Packing, leaks, pack};
use package::signature;
use serde_json::{Value, json};

use super::PackArgs;
use super::failures::{leaking, unpacked};
use crate::commands::files_json;
use crate::container::{self, Described};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::printer::Printer;

/// What was written.
pub(super) struct Output {
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) digest: String,
    pub(super) files: Value,
    pub(super) count: usize,
    pub(super) unchanged: bool,
}

pub(super) fn write_archive(
    args: &PackArgs,
    packing: &Packing<'_>,
    described: &Described,
    package: &Package,
) -> Result<Output, Failure> {
    let path = output_path(args, package);
    let mut beside = output::Beside::new(&path)?;
    let Made { written, listing } =
        pack(packing, beside.file()).map_err(|error| unpacked(&error, &path))?;
    check_same(described, &listing)?;
    // What we would not read we do not write.
    Archive::open(beside.reopen()?, Trailer::Refused, &Limits::DEFAULT)
        .map_err(|error| container::refused(&path, &error))?;
    let earlier = Earlier::at(&path, package);
    let (mut digest, mut size) = (written.sha256.to_string(), written.size);
    let unchanged = match &earlier {
        Earlier::Archive { container, .. } if container.digest == written.sha256 => true,
        // The same files, signed since: the signature stays.
        Earlier::Archive { container, contents }
            if *contents == unsigned(&listing)
                && listing.get(signature::PATH).is_none()
                && container.contents().size(signature::PATH).is_some()
                && same_programs(container.contents(), packing.contents) =>
        {
            (digest, size) = (container.digest.to_string(), container.size);
            true
        }
        _ => false,
    };
    if !unchanged {
        earlier.check(&path)?;
        beside.replace()?;
    }
    let files = files_json(&listing).into();
    let count = listing.files().len();
    Ok(Output { path, size, digest, files, count, unchanged })
}

pub(super) fn write_bundle(
    args: &PackArgs,
    packing: &Packing<'_>,
    described: &Described,
    package: &Package,
    printer: Printer,
) -> Result<Output, Failure> {
    let path = output_path(args, package);
    let found = leaks(packing).map_err(|error| unpacked(&error, &path))?;
    if !found.is_empty() {
        return Err(leaking(&found, "packed"));
    }
    let listing =
        listing(packing.contents).map_err(|error| container::refused(&args.path, &error))?;
    check_same(described, &listing)?;
    let bytes = bundle::write(packing.contents, &args.set)
        .map_err(|error| container::bad_bundle(&args.path, b"", error, printer))?;
    let unchanged = std::fs::read(&path).is_ok_and(|there| there == bytes);
    if !unchanged {
        output::write_new(&path, &bytes)?;
    }
    let document: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let paths = document["files"].as_array().into_iter().flatten();
    let files: Vec<Value> = paths.map(|file| json!({"path": file["path"]})).collect();
    let digest = package::digest::Digest::of(&bytes).to_string();
    let (size, count) = (bytes.len() as u64, files.len());
    Ok(Output { path, size, digest, files: files.into(), count, unchanged })
}

/// Where the package is to be.
fn output_path(args: &PackArgs, package: &Package) -> PathBuf {
    let kind = if args.bundle { "bundle.json" } else { "mcpkg" };
    args.output.clone().unwrap_or_else(|| file_name(package, kind).into())
}

/// The path in the folder of what an earlier run wrote: a package does not hold itself.
pub(super) fn own_output(args: &PackArgs, package: &Package) -> Option<String> {
    let output = std::path::absolute(output_path(args, package)).ok()?;
    let place = output.parent()?.canonicalize().ok()?.join(output.file_name()?);
    let within = place.strip_prefix(args.path.canonicalize().ok()?).ok()?;
    let names: Option<Vec<&str>> = within.iter().map(|name| name.to_str()).collect();
    Some(names?.join("/"))
}

/// Refuses files that changed between being checked and being packed.
fn check_same(described: &Described, listing: &Listing) -> Result<(), Failure> {
    for file in &described.reports {
        let packed = listing.get(&file.path).map(|packed| packed.sha256);
        if packed.is_some_and(|packed| packed != Digest::of(&file.bytes)) {
            let message = format!("`{}` changed while it was packed", file.path);
            return Err(
                Failure::new(Exit::Conflict, message).hint("nothing was written; try again")
            );
        }
    }
    Ok(())
}

/// What stands where the archive is to be.
enum Earlier {
    Nothing,
    /// An archive of the same package, and the digest of its files.
    Archive {
        container: Box<container::Container>,
        contents: Digest,
    },
    Other,
}

/// Whether the same files can be run in both.
fn same_programs(a: &dyn Contents, b: &dyn Contents) -> bool {
    b.paths().iter().all(|path| a.is_executable(path) == b.is_executable(path))
}

/// The digest of the files that a signature covers.
fn unsigned(listing: &Listing) -> Digest {
    listing.without(signature::PATH).digest()
}

impl Earlier {
    fn at(path: &Path, package: &Package) -> Self {
        if path.symlink_metadata().is_err() {
            return Earlier::Nothing;
        }
        let Ok(container) = container::open(path, Printer::silent()) else { return Earlier::Other };
        let is_same = container.described(None).is_ok_and(|described| {
            described.package.is_some_and(|there| {
                let is_named = there.id == package.id || there.version.is_none();
                is_named && there.semver() == package.semver()
            })
        });
        match container.listing() {
            Ok(listing) if is_same => {
                let contents = unsigned(&listing);
                Earlier::Archive { container: Box::new(container), contents }
            }
            _ => Earlier::Other,
        }
    }

    /// An earlier build is replaced; anything else stays.
    fn check(&self, path: &Path) -> Result<(), Failure> {
        let shown = path.display();
        let message = match self {
            Earlier::Nothing => return Ok(()),
            Earlier::Archive { container, .. } => {
                if container.contents().size(signature::PATH).is_none() {
                    return Ok(());
                }
                format!("`{shown}` is there already, signed and with other files")
            }
            Earlier::Other => format!("`{shown}` is there already, and is something else"),
        };
        Err(Failure::new(Exit::Conflict, message)
            .hint("remove it, or name another file with --output"))
    }
}

/// `<id>-<version>.<kind>`, with what no file name can have percent-encoded.
fn file_name(package: &Package, kind: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+~@".contains(&byte);
    let encoded = |text: &str| -> String {
        let one = |byte: u8| {
            if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
        };
        text.bytes().map(one).collect()
    };
    let id = match &package.namespace {
        Some(namespace) => format!("{namespace}/{}", package.id),
        None => package.id.clone(),
    };
    let id = encoded(&id);
    // A name that begins with a dot would be hidden; one with a dash, an option.
    let id = match id.strip_prefix(['.', '-']) {
        Some(rest) => format!("_{rest}"),
        None => id,
    };
    format!("{id}-{}.{kind}", encoded(&package.semver()))
}
