//! `haft sign`: vouches for every file of a package.

use std::path::{Path, PathBuf};

use clap::Args;
use package::archive::{Archive, Trailer};
use package::digest::Digest;
use package::key::PrivateKey;
use package::limits::Limits;
use package::signature::{self, State};
use package::write::{Packed, Writer};
use serde_json::json;

use crate::ask::Ask;
use crate::container::{self, Inside, refused};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::{Home, bad_key};
use crate::output;
use crate::printer::{Printer, escaped};

#[derive(Args, Debug)]
pub(crate) struct SignArgs {
    /// The package; it is replaced by the signed one
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The name of a key of yours
    #[arg(long, value_name = "NAME")]
    key: String,
    /// Drop the signatures that are there, also those that no longer fit
    #[arg(long)]
    replace: bool,
    /// Read the passphrase from standard input instead of asking
    #[arg(long)]
    passphrase_stdin: bool,
}

/// What was signed.
pub(super) struct Signed {
    key: String,
    files: usize,
    digest: Digest,
}

impl SignArgs {
    /// A new package that is signed with a key.
    pub(super) fn new_package(file: &Path, key: &str, passphrase_stdin: bool) -> Self {
        Self { file: file.to_owned(), key: key.to_owned(), replace: false, passphrase_stdin }
    }
}

pub(crate) fn run(
    args: &SignArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let Signed { key, files, digest } = sign(args, home, ask, printer)?;
    if json_wanted {
        printer.json(&json!({
            "path": args.file.to_string_lossy(),
            "key": key,
            "files": files,
            "digest": format!("sha256:{digest}"),
        }))?;
    } else {
        printer.note(&format!(
            "Signed {} of {} as {}",
            super::count(files, "file"),
            escaped(&args.file.display().to_string()),
            args.key
        ));
    }
    Ok(Exit::Done)
}

/// Signs a package, in its place.
pub(super) fn sign(
    args: &SignArgs,
    home: &Home,
    ask: Ask,
    printer: Printer,
) -> Result<Signed, Failure> {
    let container = container::open(&args.file, printer)?;
    let shown = args.file.display();
    let archive = match &container.inside {
        Inside::Archive(archive) if archive.trailer_len() == 0 => archive,
        Inside::Archive(_) => {
            let message = format!("`{shown}` carries an MCPB signature, which would no longer fit");
            return Err(Failure::invalid(message).hint("`haft pack` makes an .mcpkg of it first"));
        }
        Inside::Bundle(_) => {
            let message = format!("`{shown}` is a bundle, and a signature needs an archive");
            return Err(Failure::invalid(message).hint("`haft pack` makes an .mcpkg of it first"));
        }
    };
    let described = container.described(None)?;
    if described.package.is_none() {
        let message = format!("the manifest of `{shown}` is not valid, so it is not signed");
        return Err(Failure::invalid(message).hint("`haft validate` says what is wrong"));
    }
    let listing = container.listing()?;
    let earlier = container.signature()?.filter(|_| !args.replace);
    let verdict = signature::check(&listing, earlier.as_deref());
    let is_foreign = verdict.state == State::Unsigned && earlier.is_some();
    if verdict.state == State::Invalid || is_foreign {
        return Err(Failure::invalid(format!(
            "`{shown}` has a signature that does not fit, so another beside it means nothing"
        ))
        .details(verdict.faults)
        .hint("--replace drops it; look at the files first"));
    }
    let key = private_key(args, home, ask)?;
    let text = signature::sign(&listing, earlier.as_deref(), &key);
    let signed = Packed::compress(signature::PATH, text.as_bytes(), false);
    let failed = |error: std::io::Error| {
        Failure::new(Exit::Unavailable, format!("failed to write `{shown}`")).cause(error)
    };
    // A link leads to the package; it is the package that is signed.
    let target = args.file.canonicalize().map_err(failed)?;
    let mut beside = output::Beside::like(&target)?;
    let mut writer = Writer::new(beside.file());
    let mut left = Some(&signed);
    for entry in archive.entries().iter().filter(|entry| entry.path != signature::PATH) {
        if let Some(signed) = left.take_if(|_| entry.path.as_str() > signature::PATH) {
            writer.add(signed).map_err(failed)?;
        }
        let copy =
            Packed::copy(archive, entry).map_err(|error| refused(&args.file, &error.into()))?;
        writer.add(&copy).map_err(failed)?;
    }
    if let Some(signed) = left {
        writer.add(signed).map_err(failed)?;
    }
    let written = writer.finish().map_err(failed)?;
    // Never in the place of a good package one that we would refuse.
    Archive::open(beside.reopen()?, Trailer::Refused, &Limits::DEFAULT)
        .map_err(|error| refused(&args.file, &error))?;
    beside.replace()?;
    let files = listing.without(signature::PATH).files().len();
    Ok(Signed { key: key.public().to_string(), files, digest: written.sha256 })
}

fn private_key(args: &SignArgs, home: &Home, ask: Ask) -> Result<PrivateKey, Failure> {
    let text = home.private(&args.key)?;
    let wrong = |error| bad_key(&args.key, error);
    let passphrase = match PrivateKey::is_sealed(&text).map_err(wrong)? {
        false => None,
        true if args.passphrase_stdin => Some(ask.passphrase_from_stdin()?),
        true => Some(ask.passphrase(&args.key)?),
    };
    PrivateKey::from_file(&text, passphrase.as_deref().map(String::as_str)).map_err(wrong)
}
