//! `haft pack`: a folder, a bundle or another archive → one package file.

mod failures;
mod source;
mod write;

use std::path::{Path, PathBuf};

use clap::Args;
use manifest::finding::Severity;
use manifest::folder::FileReport;
use manifest::json::{Places, Pointer};
use manifest::meta;
use manifest::model::Package;
use package::bundle::{self, Bundle};
use package::contents::{Contents, Except, With};
use package::pack::{Allowed, Packing, Secrets};
use package::signature;
use serde_json::{Value, json};

pub(super) use self::failures::{leaking, unpacked};
use self::source::{Source, provenance, stale_signature};
use self::write::{Output, own_output, write_archive, write_bundle};
use crate::container::{self, Described};
use crate::draw::draw;
use crate::exit::{Exit, Failure, Outcome};
use crate::names;
use crate::printer::{Printer, line};

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

/// A package that was made.
pub(super) struct Made {
    pub(super) package: Package,
    written: Output,
    left_out: Vec<String>,
}

impl PackArgs {
    /// A folder that becomes an archive.
    pub(super) fn archive(
        path: &Path,
        output: PathBuf,
        allow_file: &[String],
        id: Option<&str>,
    ) -> Self {
        Self {
            path: path.to_owned(),
            output: Some(output),
            allow_file: allow_file.to_owned(),
            provenance: false,
            bundle: false,
            set: Vec::new(),
            strict: false,
            id: id.map(str::to_owned),
        }
    }
}

pub(crate) fn run(args: &PackArgs, json_wanted: bool, printer: Printer) -> Outcome {
    let Made { package, written, left_out } = make(args, printer)?;
    tell(&written, &package, &left_out, json_wanted, printer)
}

/// Looks at everything, and writes the package.
pub(super) fn make(args: &PackArgs, printer: Printer) -> Result<Made, Failure> {
    let source = Source::find(args, printer)?;
    let described = source.described(args)?;
    let package = check(&described, args, printer)?;
    names::check_id(args.id.as_deref(), &args.path, &package)?;
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
    let allowed = allowed(&args.allow_file, contents)?;
    let secrets = Secrets::RefusedBut(&allowed);
    let written = if args.bundle {
        // Looked through and written must be the same bytes.
        let now = Bundle::of(contents).map_err(|error| container::refused(&args.path, &error))?;
        write_bundle(args, &Packing { contents: &now, secrets }, &described, &package, printer)?
    } else {
        write_archive(args, &Packing { contents, secrets }, &described, &package)?
    };
    let left_out = source.left_out().to_owned();
    Ok(Made { package, written, left_out })
}

/// Shows what is wrong with the manifest and the files around it; the package when nothing is.
/// The files that may look like secrets.
pub(super) fn allowed(known: &[String], contents: &dyn Contents) -> Result<Allowed, Failure> {
    let allowed = Allowed::new(known)
        .map_err(|pattern| Failure::invalid(format!("--allow-file `{pattern}` is no pattern")))?;
    if let Some(idle) = allowed.idle(&contents.paths()) {
        let message = format!("--allow-file names `{idle}`, which is not among the files");
        return Err(Failure::new(Exit::NotFound, message));
    }
    Ok(allowed)
}

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
