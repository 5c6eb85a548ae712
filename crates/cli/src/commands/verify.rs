//! `haft verify`: whether somebody you trust vouches for every file of a package.

use std::path::{Path, PathBuf};

use clap::Args;
use package::signature::{self, State};
use serde_json::{Value, json};

use crate::container;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::{Home, Trusted, read_public};
use crate::printer::{Printer, line};

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// The package: .mcpkg or a bundle
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Trust only this key: the name of one in the home, or a file with a public key; may be repeated
    #[arg(long, value_name = "KEY")]
    key: Vec<String>,
}

pub(crate) fn run(args: &VerifyArgs, home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let trusted = trusted(args, home, printer)?;
    let container = container::open(&args.file, printer)?;
    let listing = container.listing()?;
    let verdict = container.verdict(&listing)?;
    let signers: Vec<&Trusted> =
        verdict.signers().filter_map(|key| trusted.iter().find(|known| known.key == key)).collect();
    let signer = signers.first().copied();
    if json_wanted {
        let signatures: Vec<Value> = verdict
            .signatures
            .iter()
            .map(|signed| {
                let name = super::name_of(signed.key, &trusted);
                json!({"key": signed.key.to_string(), "name": name, "state": signed.state.name()})
            })
            .collect();
        printer.json(&json!({
            "path": args.file.to_string_lossy(),
            "digest": format!("sha256:{}", container.digest),
            "contents": format!("sha256:{}", listing.without(signature::PATH).digest()),
            "state": verdict.state.name(),
            "trusted": signer.is_some(),
            "signer": signer.map(|known| &known.name),
            "signatures": signatures,
            "faults": verdict.faults,
        }))?;
    }
    let shown = args.file.display();
    let denied = |message: String| Failure::new(Exit::Denied, message);
    let failure = match (verdict.state, signer) {
        (State::Valid, Some(_)) => {
            if !json_wanted {
                let named = |known: &&Trusted| format!("{} ({})", line(&known.name), known.key);
                printer.result(&format!(
                    "valid: every file of {} is signed by {}\n",
                    line(&shown.to_string()),
                    signers.iter().map(named).collect::<Vec<_>>().join(" and ")
                ))?;
            }
            return Ok(Exit::Done);
        }
        (State::Valid, None) => {
            let keys: Vec<String> = verdict.signers().map(|key| key.to_string()).collect();
            let whose = if args.key.is_empty() { "a key you do not trust" } else { "another key" };
            denied(format!("`{shown}` is signed by {whose}"))
                .detail(keys.join(", "))
                .hint("`haft key add FILE` trusts a public key you have from its owner")
        }
        (State::Unsigned, _) => denied(format!("`{shown}` is not signed")),
        (State::Partial, _) => denied(format!("`{shown}` counts as unsigned")),
        (State::Invalid, _) => {
            Failure::invalid(format!("`{shown}` was changed after it was signed"))
        }
    };
    Err(failure.details(verdict.faults))
}

/// The keys to trust: those named, else all of the home.
fn trusted(args: &VerifyArgs, home: &Home, printer: Printer) -> Result<Vec<Trusted>, Failure> {
    if args.key.is_empty() {
        return home.trusted(printer);
    }
    args.key.iter().map(|named| named_key(named, home)).collect()
}

/// A key by its name in the home, or by the path of its file. A file that happens to lie in
/// the current folder never stands for a key of the home.
fn named_key(named: &str, home: &Home) -> Result<Trusted, Failure> {
    let trusted = |name: &str, key| Trusted { name: name.to_owned(), key, own: false };
    let path = Path::new(named);
    let bare = named.strip_suffix(".pub");
    let is_path = named.contains(std::path::is_separator);
    if !is_path && bare.is_none() {
        return Ok(trusted(named, home.public(named)?));
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if !path.is_file() && !is_path {
        return Ok(trusted(&stem, home.public(&stem)?));
    }
    let key = read_public(path)?;
    let other = home.public(&stem).ok().filter(|known| !is_path && *known != key);
    if other.is_some() {
        let message = format!("`{named}` here is not the key `{stem}` of your home");
        let hint = format!("--key {stem} means that of the home, --key ./{named} the file");
        return Err(Failure::new(Exit::Conflict, message).hint(hint));
    }
    Ok(trusted(&stem, key))
}
