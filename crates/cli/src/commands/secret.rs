//! `haft secret`: values that tools need and nobody else may see.

use std::io::{IsTerminal, Read};

use clap::{Args, Subcommand};
use host::secrets::server::TOKEN_OWNER;
use manifest::dialect::Dialect;
use manifest::shape::suggest;
use serde_json::{Value, json};
use vault::file::Listed;
use vault::{FileVault, Owner, Place, Secret};
use zeroize::Zeroizing;

use crate::ask::Ask;
use crate::declared::Declared;
use crate::done::Done;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::keyring::{self, Entry};
use crate::names::{self, Typed};
use crate::printer::{Printer, line};
use crate::seen::Seen;
use crate::{output, owner, shell, time};

#[derive(Args, Debug)]
#[command(
    after_help = "A value is asked for, or read from standard input; it is never an argument.\n\nExamples:\n  haft secret set mcpkg:acme.weather API_KEY\n  printf %s \"$KEY\" | haft secret set mcpkg:acme.weather API_KEY\n  haft secret list"
)]
pub(crate) struct SecretArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Keep a value, in place of the one that may be there
    Set(Named),
    /// Show which secrets are kept, never their values
    List,
    /// Forget a value
    Rm(Named),
    /// Seal everything with a new key
    Rotate,
    /// Set or change the passphrase of the vault
    Passphrase {
        /// Take it away: the key is then in a file only you can read
        #[arg(long)]
        remove: bool,
        /// Read the new one from standard input instead of asking; the old one is asked for
        #[arg(long, conflicts_with = "remove")]
        passphrase_stdin: bool,
        #[command(flatten)]
        keyring: keyring::Wanted,
    },
}

#[derive(Args, Debug)]
struct Named {
    /// The package, with its dialect: mcpkg:acme.weather
    #[arg(value_name = "PACKAGE", value_parser = holder)]
    package: Typed,
    /// The name of the secret, as the package calls it
    #[arg(value_name = "NAME")]
    name: String,
}

/// A package, or we ourselves.
fn holder(text: &str) -> Result<Typed, String> {
    match text {
        TOKEN_OWNER => Ok(Typed::whole_as(text)),
        _ => names::package(text),
    }
}

impl Named {
    fn meant(&self, home: &Home) -> Result<Meant<'_>, Failure> {
        Ok(Meant { package: self.package.whole(home)?, name: &self.name })
    }
}

/// A secret by its names.
struct Meant<'n> {
    package: String,
    name: &'n str,
}

impl Meant<'_> {
    fn place(&self) -> Result<Place, Failure> {
        if self.name == host::login::NAME {
            let message =
                format!("`{}` is no name of a secret: a sign-in is kept there", self.name);
            return Err(Failure::invalid(message).hint("`haft login` and `haft logout` change it"));
        }
        let is_jumith = self.package.starts_with(&format!("{}:", Dialect::Jumith.name()));
        let owner = if is_jumith && self.name.contains('.') {
            Owner::Shared
        } else {
            Owner::Package(self.package.clone())
        };
        Place::new(owner, self.name).or_else(|error| {
            self.check_name()?;
            Err(Failure::of(Exit::Invalid, &error))
        })
    }

    /// Refuses a name that no secret should have.
    fn check_name(&self) -> Result<(), Failure> {
        names::check_secret(self.name).map_err(|rule| {
            Failure::invalid(rule)
                .hint("the value is no argument: it is asked for, or read from standard input")
        })
    }
}

pub(crate) fn run(
    args: &SecretArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let vault = match args.what {
        // A new one is asked for next.
        What::Passphrase { remove: false, .. } => {
            owner::vault_asking(home, ask, "Old passphrase for the vault: ")?
        }
        _ => owner::vault(home, ask)?,
    };
    let failed = |error: vault::VaultError| owner::vault_failure(&error);
    let listed = || vault.list().map_err(failed);
    let find =
        |place: &Place| Ok::<_, Failure>(listed()?.into_iter().find(|one| one.place == *place));
    let mut done = Done::default();
    let document = match &args.what {
        What::Set(named) => {
            let named = &named.meant(home)?;
            named.check_name()?;
            let place = named.place()?;
            owner::check_presence(home, ask)?;
            if *place.owner() == Owner::Shared {
                printer.note(&format!(
                    "`{}` has a dot, so it is shared: every Jumith tool whose manifest names it is given it",
                    line(named.name)
                ));
            }
            let known = known(named, home)?;
            if std::io::stdin().is_terminal() {
                known.1.says_of(named.name).iter().for_each(|words| printer.note(words));
            }
            let value = value(named.name, ask)?;
            warn_of_missing(&vault, printer)?;
            output::make_private_folder(home.path())?;
            vault.set(&place, &value).map_err(failed)?;
            done.note(format!("Kept {}", line(&place.to_string())));
            done.doubt(doubts(named, &value, &known));
            json!({ "kept": find(&place)?.as_ref().map(entry) })
        }
        What::List => {
            let listed = listed()?;
            warn_of_missing(&vault, printer)?;
            return show(&listed, json_wanted, printer);
        }
        What::Rm(named) => {
            let named = &named.meant(home)?;
            let place = named.place()?;
            owner::check_presence(home, ask)?;
            let kept = find(&place)?;
            if !vault.remove(&place).map_err(failed)? {
                // A name that was let in before can still be taken out.
                named.check_name()?;
                let message = format!("there is no secret {}", line(&place.to_string()));
                let failure = Failure::new(Exit::NotFound, message);
                let failure = near(named, &listed()?).into_iter().fold(failure, Failure::hint);
                return Err(failure.hint("`haft secret list` shows which there are"));
            }
            done.note(format!("Forgot {}", line(&place.to_string())));
            json!({ "forgotten": kept.as_ref().map(entry) })
        }
        What::Rotate => {
            owner::check_presence(home, ask)?;
            let listed = listed()?;
            if listed.is_empty() && !vault.is_sealed().map_err(failed)? {
                warn_of_missing(&vault, printer)?;
                done.note("there is nothing to rotate: no secrets are kept");
            } else {
                vault.rotate().map_err(failed)?;
                done.note("Sealed every secret with a new key");
            }
            json!({ "rotated": listed.iter().map(entry).collect::<Vec<_>>() })
        }
        What::Passphrase { remove: true, .. } => {
            owner::check_presence_for_passphrase(home)?;
            output::make_private_folder(home.path())?;
            let entry = Entry::there(home)?;
            vault.remove_passphrase().map_err(failed)?;
            entry.as_ref().map_or(Ok(()), Entry::forget)?;
            done.note("The vault has no passphrase any more");
            json!({ "passphrase": false })
        }
        What::Passphrase { remove: false, passphrase_stdin, keyring } => {
            owner::check_presence_for_passphrase(home)?;
            if vault.is_sealed().map_err(failed)? {
                // The one there is comes before the one there shall be.
                vault.unlock().map_err(failed)?;
            }
            let passphrase = if *passphrase_stdin {
                ask.passphrase_from_stdin()?
            } else {
                ask.new_vault_passphrase()?
            };
            let passphrase = Secret::new(passphrase.to_string())
                .map_err(|error| Failure::invalid(error.to_string()))?;
            output::make_private_folder(home.path())?;
            set_passphrase(&vault, &passphrase, keyring.entry(home)?, &mut done)?;
            json!({ "passphrase": true })
        }
    };
    done.tell(document, json_wanted, printer)
}

/// Sets a passphrase, and keeps it in an entry of the keyring too.
fn set_passphrase(
    vault: &FileVault,
    passphrase: &Secret,
    entry: Option<Entry>,
    done: &mut Done,
) -> Result<(), Failure> {
    vault.set_passphrase(passphrase).map_err(|error| owner::vault_failure(&error))?;
    done.note("The vault has this passphrase now");
    if let Some(entry) = entry {
        entry.keep(passphrase)?;
        done.note("Your desktop's keyring has it too");
    }
    Ok(())
}

fn show(listed: &[Listed], json_wanted: bool, printer: Printer) -> Outcome {
    if json_wanted {
        printer.json(&json!(listed.iter().map(entry).collect::<Vec<_>>()))?;
        return Ok(Exit::Done);
    }
    for one in listed {
        let package = match one.place.owner() {
            Owner::Package(id) => id,
            Owner::Shared => "(shared)",
        };
        let (package, name) = (line(package), line(one.place.name()));
        printer.result(&format!("{package} {name} {}\n", told(one.changed)))?;
    }
    if listed.is_empty() {
        printer.note("no secrets are kept");
    }
    Ok(Exit::Done)
}

/// The kept secret that may have been meant: of the same package, else of one with a name like it.
fn near(named: &Meant<'_>, listed: &[Listed]) -> Option<String> {
    let of = |package: &str| {
        let own = listed
            .iter()
            .filter(move |one| *one.place.owner() == Owner::Package(package.to_owned()));
        own.map(|one| one.place.name()).collect::<Vec<_>>()
    };
    let did_you_mean = |package: &str, name: &str| {
        let words = format!("haft secret rm {} {}", shell::word(package), shell::word(name));
        format!("did you mean `{words}`?")
    };
    if let Some(name) = suggest(named.name, of(&named.package)) {
        return Some(did_you_mean(&named.package, name));
    }
    let packages = listed.iter().filter_map(|one| match one.place.owner() {
        Owner::Package(id) if of(id).contains(&named.name) => Some(id.as_str()),
        Owner::Package(_) | Owner::Shared => None,
    });
    suggest(&named.package, packages).map(|package| did_you_mean(package, named.name))
}

/// A secret without its value, for programs.
fn entry(one: &Listed) -> Value {
    let package = match one.place.owner() {
        Owner::Package(id) => Some(id),
        Owner::Shared => None,
    };
    json!({ "package": package, "name": one.place.name(), "changed": told(one.changed) })
}

/// The packages that are known here, and what the one that is meant says of itself.
fn known(named: &Meant<'_>, home: &Home) -> Result<(Seen, Declared), Failure> {
    let runtime = owner::runtime()?;
    Ok(match owner::records_there(home, &runtime)? {
        Some(records) => (
            Seen::of(&records.state, home, &runtime)?,
            Declared::of(&named.package, &records.state, &runtime),
        ),
        None => (Seen::at(home, &runtime)?, Declared::default()),
    })
}

/// What may not be meant by the names of a secret, or by its value.
fn doubts(named: &Meant<'_>, value: &Secret, known: &(Seen, Declared)) -> Vec<String> {
    let (seen, declared) = known;
    let doubts = [
        // What we keep for ourselves is of no package.
        seen.doubt(&named.package).filter(|_| named.package != TOKEN_OWNER),
        declared.doubt_secret(named.name),
        declared.doubt_value(named.name, value),
        declared.doubt_length(named.name, value),
    ];
    doubts.into_iter().flatten().chain(doubt_characters(value.expose())).collect()
}

/// What to say of characters that came along with a value, perhaps from a file or an editor.
fn doubt_characters(value: &str) -> Vec<String> {
    let kept = value.trim_end();
    let is_steering = |c: char| c.is_control() && c != '\t';
    let inner = kept.contains(is_steering).then_some(
        "the value holds line ends or other control characters: no header can have them, and no program a NUL",
    );
    let beyond = (!value.is_ascii())
        .then_some("the value holds characters beyond ASCII, which no header is sent with");
    let last = (kept != value).then_some("the value ends in white space, which is kept with it");
    inner.into_iter().chain(beyond).chain(last).map(str::to_owned).collect()
}

/// Says that secrets may be lost: what is kept now begins anew.
fn warn_of_missing(vault: &FileVault, printer: Printer) -> Result<(), Failure> {
    if let Some(path) = vault.missing().map_err(|error| owner::vault_failure(&error))? {
        printer.warn(&format!(
            "`{}` is missing, though the key of the vault is there; put it back from a copy, or keep the secrets anew",
            path.display()
        ));
    }
    Ok(())
}

/// The value, from a person or from standard input; never from an argument.
pub(super) fn value(name: &str, ask: Ask) -> Result<Secret, Failure> {
    /// A little more than the longest, so that one that is too long is noticed.
    const MOST: u64 = 70 << 10;
    let text = if std::io::stdin().is_terminal() {
        ask.value(name)?
    } else {
        // With room for all of it from the start, no copy is left behind by growing.
        let room = usize::try_from(MOST).unwrap_or_default();
        let mut text = Zeroizing::new(String::with_capacity(room));
        std::io::stdin().lock().take(MOST).read_to_string(&mut text).map_err(
            |error| match error.kind() {
                std::io::ErrorKind::InvalidData => Failure::invalid("the value is no UTF-8 text"),
                _ => Failure::new(Exit::Unavailable, "failed to read standard input").cause(error),
            },
        )?;
        // The line end that `echo` adds is nobody's secret.
        let trimmed = text.strip_suffix('\n').unwrap_or(&text);
        Zeroizing::new(trimmed.strip_suffix('\r').unwrap_or(trimmed).to_owned())
    };
    if text.is_empty() {
        return Err(Failure::invalid("the value is empty").hint("nothing was kept"));
    }
    Secret::new(text.to_string()).map_err(|error| Failure::invalid(error.to_string()))
}

fn told(seconds: u64) -> String {
    time::utc(i64::try_from(seconds).unwrap_or_default())
}
