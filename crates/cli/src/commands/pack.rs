//! `haft pack`: a folder, a bundle or another archive → one package file.

use std::path::{Path, PathBuf};

use clap::Args;
use manifest::dialect::Dialect;
use manifest::finding::Severity;
use manifest::folder::FileReport;
use manifest::json::{Places, Pointer};
use manifest::meta;
use manifest::model::Package;
use package::archive::{Archive, Trailer};
use package::bundle::{self, Bundle};
use package::contents::{Contents, Except, With, listing};
use package::digest::{Digest, Listing};
use package::gather::{GatherError, Gathered, gather};
use package::limits::Limits;
use package::pack::{Allowed, Made, PackError, Packing, Secrets, leaks, pack};
use package::secrets::Leak;
use package::signature::{self, State};
use serde_json::{Value, json};

use crate::container::{self, Described};
use crate::draw::draw;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Printer, line};
use crate::{disk, git, output};

#[derive(Args, Debug)]
pub(crate) struct PackArgs {
    /// The folder of a package, in any dialect; or a bundle, or an .mcpb file
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Write to this file [default: `ID-VERSION.mcpkg` in the current folder]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Pack this file, folder or pattern although it looks like a secret; may be repeated
    #[arg(long, value_name = "PATH")]
    allow_file: Vec<String>,
    /// Say in meta/provenance.json which commit the folder is, as git knows it
    #[arg(long)]
    provenance: bool,
    /// Write a Jumith bundle, one JSON text, instead of an archive
    #[arg(long)]
    bundle: bool,
    /// With --bundle: what a Jumith registry must know and the manifest does not say
    #[arg(long, value_name = "POINTER=VALUE", value_parser = super::setting, requires = "bundle")]
    set: Vec<(Pointer, Value)>,
    /// Refuse on warnings too
    #[arg(long)]
    strict: bool,
    /// The id of a tools.json, which has none of its own [default: its folder's name]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

pub(crate) fn run(args: &PackArgs, json_wanted: bool, printer: Printer) -> Outcome {
    let source = Source::find(args, printer)?;
    let described = source.described(args)?;
    let package = check(&described, args, printer)?;
    check_id(args, &package)?;
    let provenance = provenance(args, &source, printer)?;
    let with = provenance.as_deref().map(|content| With {
        contents: source.contents(),
        path: meta::PROVENANCE,
        content,
    });
    let contents: &dyn Contents = match &with {
        Some(with) => with,
        None => source.contents(),
    };
    let stale = match stale_signature(contents)? {
        None if !args.set.is_empty() && contents.size(signature::PATH).is_some() => {
            Some(format!("what --set says is a new file, `{}`", bundle::DESCRIPTION))
        }
        stale => stale,
    };
    if let Some(reason) = &stale {
        printer.warn(&format!("left {} out: {}", signature::PATH, line(reason)));
    }
    let unsigned = Except { contents, path: signature::PATH };
    let contents: &dyn Contents = if stale.is_some() { &unsigned } else { contents };
    let own = own_output(args, &package);
    let others = own.as_deref().map(|path| Except { contents, path });
    let contents: &dyn Contents = match &others {
        Some(others) => others,
        None => contents,
    };
    let allowed = Allowed::new(&args.allow_file)
        .map_err(|pattern| Failure::invalid(format!("--allow-file `{pattern}` is no pattern")))?;
    if let Some(idle) = allowed.idle(&contents.paths()) {
        let message = format!("--allow-file names `{idle}`, which is not among the files");
        return Err(Failure::new(Exit::NotFound, message));
    }
    let secrets = Secrets::RefusedBut(&allowed);
    let written = if args.bundle {
        // Looked through and written must be the same bytes.
        let now = Bundle::of(contents).map_err(|error| container::refused(&args.path, &error))?;
        write_bundle(args, &Packing { contents: &now, secrets }, &described, &package, printer)?
    } else {
        write_archive(args, &Packing { contents, secrets }, &described, &package)?
    };
    tell(&written, &package, source.left_out(), json_wanted, printer)
}

/// Where the package is to be.
fn output_path(args: &PackArgs, package: &Package) -> PathBuf {
    let kind = if args.bundle { "bundle.json" } else { "mcpkg" };
    args.output.clone().unwrap_or_else(|| file_name(package, kind).into())
}

/// The path in the folder of what an earlier run wrote: a package does not hold itself.
fn own_output(args: &PackArgs, package: &Package) -> Option<String> {
    let output = std::path::absolute(output_path(args, package)).ok()?;
    let place = output.parent()?.canonicalize().ok()?.join(output.file_name()?);
    let within = place.strip_prefix(args.path.canonicalize().ok()?).ok()?;
    let names: Option<Vec<&str>> = within.iter().map(|name| name.to_str()).collect();
    Some(names?.join("/"))
}

/// Where the files come from.
enum Source {
    Folder(PathBuf, Gathered),
    File(Box<container::Container>),
}

impl Source {
    fn find(args: &PackArgs, printer: Printer) -> Result<Self, Failure> {
        if !args.path.is_dir() {
            return Ok(Source::File(Box::new(container::open(&args.path, printer)?)));
        }
        let gathered = gather(&args.path, &Limits::DEFAULT).map_err(|error| unpackable(&error))?;
        Ok(Source::Folder(args.path.clone(), gathered))
    }

    fn contents(&self) -> &dyn Contents {
        match self {
            Source::Folder(_, gathered) => gathered,
            Source::File(container) => container.contents(),
        }
    }

    fn left_out(&self) -> &[String] {
        match self {
            Source::Folder(_, gathered) => &gathered.left_out,
            Source::File(_) => &[],
        }
    }

    fn described(&self, args: &PackArgs) -> Result<Described, Failure> {
        match self {
            Source::File(container) => container.described(args.id.as_deref()),
            Source::Folder(path, gathered) => {
                let name = disk::folder_name(&path.join("manifest.json")).unwrap_or_default();
                container::describe(gathered, args.id.as_deref().unwrap_or(&name), path)
            }
        }
    }
}

/// Only a tools.json can be given an id.
fn check_id(args: &PackArgs, package: &Package) -> Result<(), Failure> {
    match &args.id {
        Some(_) if package.dialect != Dialect::Agentcli => {
            let message =
                format!("`{}` has an id of its own, `{}`", args.path.display(), package.id);
            Err(Failure::invalid(message).hint("leave --id out"))
        }
        Some(id) if id.trim().is_empty() => Err(Failure::invalid("--id is empty")),
        _ => Ok(()),
    }
}

/// Shows what is wrong with the manifest and the files around it; the package when nothing is.
fn check(described: &Described, args: &PackArgs, printer: Printer) -> Result<Package, Failure> {
    let root = if args.path.is_dir() { args.path.clone() } else { PathBuf::new() };
    for file in &described.reports {
        show(&root, file, printer);
    }
    let count = |severity| -> usize {
        described.reports.iter().map(|file| file.report.count(severity)).sum()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let shown = args.path.display();
    if errors > 0 || (args.strict && warnings > 0) {
        let message = format!("`{shown}` is not valid, so it is not packed");
        return Err(Failure::invalid(message));
    }
    described.package.clone().ok_or_else(|| {
        let manifest = &described.manifest;
        Failure::invalid(format!("`{manifest}` of `{shown}` does not describe one tool"))
            .hint("a package holds one manifest; a catalog is published as it is")
    })
}

fn show(root: &Path, file: &FileReport, printer: Printer) {
    let text = String::from_utf8_lossy(&file.bytes);
    let places = Places::new(&text);
    let path = root.join(&file.path);
    for finding in &file.report.findings {
        printer.note(&draw(finding, &path.to_string_lossy(), &text, &places, printer));
    }
}

/// What to say of the commit that is packed, when that is wanted.
fn provenance(
    args: &PackArgs,
    source: &Source,
    printer: Printer,
) -> Result<Option<Vec<u8>>, Failure> {
    if !args.provenance {
        return Ok(None);
    }
    let Source::Folder(folder, gathered) = source else {
        let message = "--provenance needs the folder that git knows, not a file made of it";
        return Err(Failure::invalid(message));
    };
    let mut paths = gathered.paths();
    paths.retain(|path| ![meta::PROVENANCE, signature::PATH].contains(path));
    let Some(commit) = git::commit(folder, &paths)? else {
        printer.warn("no commit is known to git here, so provenance is left out");
        return Ok(None);
    };
    if !commit.changed.is_empty() {
        let mut failure =
            Failure::invalid("the folder is not what the commit holds, so it has no provenance")
                .hint("commit these files, or pack without --provenance");
        for path in commit.changed {
            failure = failure.detail(format!("`{path}` differs from the commit"));
        }
        return Err(failure);
    }
    let mut document = serde_json::Map::new();
    if let Some(remote) = commit.remote {
        document.insert("sourceRepo".into(), remote.into());
    }
    document.insert("commit".into(), commit.id.into());
    document.insert("builtAt".into(), commit.time.into());
    if !commit.beside.is_empty() {
        let count = super::count(commit.beside.len(), "file");
        printer.warn(&format!("{count} not in the commit, which meta/provenance.json lists"));
        document.insert("notInCommit".into(), commit.beside.into());
    }
    Ok(Some(format!("{:#}\n", Value::Object(document)).into_bytes()))
}

/// Why a signature in the folder no longer holds; nothing when it does, or there is none.
fn stale_signature(contents: &dyn Contents) -> Result<Option<String>, Failure> {
    if contents.size(signature::PATH).is_none() {
        return Ok(None);
    }
    let failed =
        |error: package::refusal::ReadError| container::refused(Path::new(signature::PATH), &error);
    let content = contents.read(signature::PATH).map_err(failed)?;
    let verdict = signature::check(&listing(contents).map_err(failed)?, Some(&content));
    let is_stale = verdict.state == State::Invalid;
    Ok(is_stale.then(|| verdict.faults.join(", ")))
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

/// What was written.
struct Output {
    path: PathBuf,
    size: u64,
    digest: String,
    files: Value,
    count: usize,
    unchanged: bool,
}

fn write_archive(
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
    let files = super::files_json(&listing).into();
    let count = listing.files().len();
    Ok(Output { path, size, digest, files, count, unchanged })
}

fn write_bundle(
    args: &PackArgs,
    packing: &Packing<'_>,
    described: &Described,
    package: &Package,
    printer: Printer,
) -> Result<Output, Failure> {
    let path = output_path(args, package);
    let found = leaks(packing).map_err(|error| unpacked(&error, &path))?;
    if !found.is_empty() {
        return Err(leaking(&found));
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

fn tell(
    written: &Output,
    package: &Package,
    left_out: &[String],
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    if json_wanted {
        printer.json(&json!({
            "path": written.path.to_string_lossy(),
            "id": package.id,
            "version": package.semver(),
            "dialect": package.dialect,
            "size": written.size,
            "digest": format!("sha256:{}", written.digest),
            "files": written.files,
            "left_out": left_out,
        }))?;
        return Ok(Exit::Done);
    }
    let verb = if written.unchanged { "Unchanged:" } else { "Packed" };
    printer.note(&format!(
        "{verb} {} {}  ({}, {} bytes, sha256:{})",
        line(&package.id),
        line(&package.semver()),
        super::count(written.count, "file"),
        written.size,
        written.digest
    ));
    if !left_out.is_empty() {
        let names: Vec<_> = left_out.iter().take(8).map(|path| line(path)).collect();
        let more = if left_out.len() > 8 { ", …" } else { "" };
        printer.note(&format!("left out: {}{more}", names.join(", ")));
    }
    printer.result(&format!("{}\n", line(&written.path.to_string_lossy())))?;
    Ok(Exit::Done)
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

fn unpackable(error: &GatherError) -> Failure {
    match error {
        GatherError::Disk { cause, .. } => {
            Failure::new(Exit::Unavailable, error.to_string()).cause(cause)
        }
        GatherError::Links(_) | GatherError::Special(_) | GatherError::NotUtf8(_) => {
            Failure::invalid(error.to_string()).hint("name it in .mcpkgignore to leave it out")
        }
        GatherError::Refused(refusal) => Failure::invalid(format!("{refusal} [{}]", refusal.code)),
        GatherError::BadRule(_) => Failure::invalid(error.to_string()),
    }
}

fn unpacked(error: &PackError, path: &Path) -> Failure {
    match error {
        PackError::Leaks(found) => leaking(found),
        PackError::Read { path, cause } => container::refused(Path::new(path), cause),
        PackError::Write(cause) => {
            Failure::new(Exit::Unavailable, format!("failed to write `{}`", path.display()))
                .cause(cause)
        }
    }
}

fn leaking(found: &[Leak]) -> Failure {
    let mut failure = Failure::invalid("these files hold secrets, so nothing was packed");
    for leak in found {
        let place = leak.line.map_or(String::new(), |line| format!(":{line}"));
        failure = failure.detail(format!("`{}`{place}: {}", leak.path, leak.what));
    }
    failure.hint("name them in .mcpkgignore; or, when they are no secrets, with --allow-file PATH")
}
