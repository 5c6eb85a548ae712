//! `haft key`: the keys in the owner's home.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use package::key::PrivateKey;
use serde_json::json;

use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::{Home, bad_key, check_name, read_public};
use crate::printer::{Printer, escaped};

#[derive(Args, Debug)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    verb: KeyVerb,
}

#[derive(Subcommand, Debug)]
enum KeyVerb {
    /// Make a key to sign packages with
    New(NewArgs),
    /// List the keys whose signatures you trust
    List,
    /// Print a public key, to give to others
    Show {
        /// The key's name
        #[arg(value_parser = name)]
        name: String,
    },
    /// Trust another's public key
    Add {
        /// The file with the public key
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// What to call it [default: the file's name without its ending]
        #[arg(long, value_parser = name)]
        name: Option<String>,
    },
    /// Forget a key; a private key is gone for good
    Remove {
        /// The key's name
        #[arg(value_parser = name)]
        name: String,
        /// Remove the private half too, when it is here
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args, Debug)]
struct NewArgs {
    /// What to call it
    #[arg(value_parser = name)]
    name: String,
    /// Keep the private key unsealed: whoever reads the file can sign
    #[arg(long)]
    no_passphrase: bool,
    /// Read the passphrase from standard input instead of asking
    #[arg(long, conflicts_with = "no_passphrase")]
    passphrase_stdin: bool,
}

pub(crate) fn run(
    args: &KeyArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    match &args.verb {
        KeyVerb::New(args) => new(args, home, ask, json_wanted, printer),
        KeyVerb::List => list(home, json_wanted, printer),
        KeyVerb::Show { name } => {
            let key = home.public(name)?;
            if json_wanted {
                printer.json(&json!({"name": name, "key": key.to_string()}))?;
            } else {
                printer.result(&format!("{key} {name}\n"))?;
            }
            Ok(Exit::Done)
        }
        KeyVerb::Add { file, name } => {
            let key = read_public(file)?;
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let name = name.clone().unwrap_or(stem);
            check_name(&name)
                .map_err(|words| Failure::invalid(words).hint("give one with --name"))?;
            if let Some(known) = home.trusted(printer)?.into_iter().find(|known| known.key == key) {
                let message = format!("this key is there already, as `{}`", known.name);
                return Err(Failure::new(Exit::Conflict, message));
            }
            home.check_free(&name)?;
            home.trust(&name, key)?;
            printer.note(&format!("Trusting {key} as {name}"));
            if json_wanted {
                printer.json(&json!({"name": name, "key": key.to_string()}))?;
            }
            Ok(Exit::Done)
        }
        KeyVerb::Remove { name, yes } => {
            if home.is_own(name) && !yes {
                let message = format!("`{name}` is a key of yours, and would be gone for good");
                return Err(Failure::new(Exit::Denied, message).hint("--yes removes it"));
            }
            home.forget(name)?;
            printer.note(&format!("Forgot {name}"));
            if json_wanted {
                printer.json(&json!({"name": name, "removed": true}))?;
            }
            Ok(Exit::Done)
        }
    }
}

fn new(args: &NewArgs, home: &Home, ask: Ask, json_wanted: bool, printer: Printer) -> Outcome {
    home.check_free(&args.name)?;
    let passphrase = if args.no_passphrase {
        None
    } else if args.passphrase_stdin {
        Some(ask.passphrase_from_stdin()?)
    } else {
        Some(ask.new_passphrase(&args.name)?)
    };
    let key = PrivateKey::generate().map_err(|error| bad_key(&args.name, error))?;
    let path = home.keep(&args.name, &key, passphrase.as_deref().map(String::as_str))?;
    let sealed = if passphrase.is_some() { "sealed" } else { "without a passphrase" };
    printer.note(&format!("Made {}, {sealed}, in {}", args.name, escaped(&path.to_string_lossy())));
    if json_wanted {
        printer.json(&json!({
            "name": args.name,
            "key": key.public().to_string(),
            "sealed": passphrase.is_some(),
        }))?;
    } else {
        printer.result(&format!("{} {}\n", key.public(), args.name))?;
    }
    Ok(Exit::Done)
}

fn list(home: &Home, json_wanted: bool, printer: Printer) -> Outcome {
    let keys = home.trusted(printer)?;
    if json_wanted {
        let keys: Vec<_> = keys
            .iter()
            .map(|key| json!({"name": key.name, "key": key.key.to_string(), "own": key.own}))
            .collect();
        printer.json(&json!({"keys": keys}))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for key in &keys {
        let whose = if key.own { "yours" } else { "trusted" };
        text += &format!("{}  {whose:<7}  {}\n", key.key, key.name);
    }
    if keys.is_empty() {
        printer.note("no keys; `haft key new NAME` makes one");
    }
    printer.result(&text)?;
    Ok(Exit::Done)
}

fn name(text: &str) -> Result<String, String> {
    check_name(text).map(|()| text.to_owned())
}
