//! What a package asks the owner for: values from the command line, from what is kept, from the environment, or typed.

use std::io::Read;

use host::secrets::{misfit, place};
use install::Piece;
use install::beside::revoking_secrets;
use manifest::model::{Input, InputSource, Package};
use vault::{FileVault, Secret};
use zeroize::Zeroizing;

use crate::ask::Ask;
use crate::declared;
use crate::exit::{Exit, Failure};
use crate::printer::{Printer, line};
use crate::{owner, shell};

/// How often a value that does not fit is asked for.
const TRIES: usize = 3;

/// What is known before anybody is asked.
#[derive(Clone, Copy)]
pub(super) struct Known<'k> {
    /// Values that are no secrets, from the command line.
    pub(super) typed: &'k [(String, String)],
    /// Secrets.
    pub(super) secrets: &'k [(String, Secret)],
    /// The secret that a sign-in gives.
    pub(super) token: Option<&'k str>,
}

/// Values that are to be kept once the package is installed.
pub(super) type Values = Vec<(String, Secret)>;

/// Collects the values in the order of the manifest. All that are missing are told at once.
pub(super) fn collect(
    package: &Package,
    Known { typed, secrets, token }: Known<'_>,
    vault: &FileVault,
    ask: Ask,
    printer: Printer,
) -> Result<Values, Failure> {
    check_typed(package, typed)?;
    let (mut values, mut missing) = (Vec::new(), Vec::new());
    // Where a secret is kept elsewhere, nobody is asked for it.
    let asked = |input: &&Input| input.source == InputSource::Owner && input.reference.is_none();
    for input in package.inputs.iter().filter(asked) {
        let kept =
            place(package, &input.name).map_err(|error| Failure::invalid(error.to_string()))?;
        let kept = vault.get(&kept).map_err(|error| owner::vault_failure(&error))?;
        // One that was kept for an earlier version may not fit any more.
        let is_kept = kept.is_some_and(|value| misfit(input, value.expose()).is_none())
            || token == Some(&*input.name);
        let given =
            typed.iter().find(|(name, _)| *name == input.name).map(|(_, value)| value.clone());
        let known = secrets.iter().find(|(name, _)| *name == input.name);
        let given = given.or_else(|| known.map(|(_, secret)| secret.expose().to_owned()));
        let found = match given {
            Some(value) => Some(checked(input, value)?),
            None if is_kept => None,
            None => match std::env::var(&input.name).ok().filter(|value| !value.is_empty()) {
                Some(value) => Some(checked(input, value)?),
                None if input.default.is_some() => None,
                None => ask_for(input, ask, printer)?,
            },
        };
        match found {
            Some(value) => values.push((input.name.clone(), value)),
            None if input.required && !is_kept && input.default.is_none() => missing.push(input),
            None => {}
        }
    }
    if missing.is_empty() { Ok(values) } else { Err(lacking(package, &missing)) }
}

/// The most that is read of values.
const MOST: u64 = 1 << 20;

/// Values from standard input, a line each.
pub(super) fn from_stdin() -> Result<Values, Failure> {
    let mut text = Zeroizing::new(String::new());
    let read = std::io::stdin().lock().take(MOST + 1).read_to_string(&mut text);
    read.map_err(|error| {
        Failure::new(Exit::Unavailable, "failed to read values from standard input").cause(error)
    })?;
    if text.len() as u64 > MOST {
        return Err(Failure::invalid("values have at most 1 MiB together"));
    }
    let mut values: Values = Vec::new();
    for (number, written) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        // What stands there may be a secret, so it is not shown.
        let wrong =
            |why: &str| Failure::invalid(format!("line {} of the values {why}", number + 1));
        let (name, value) = written.split_once('=').ok_or_else(|| wrong("is not NAME=VALUE"))?;
        if values.iter().any(|(known, _)| known == name) {
            return Err(wrong("names one that was named before"));
        }
        let value =
            Secret::new(value.to_owned()).map_err(|error| wrong("holds no value").cause(error))?;
        values.push((name.to_owned(), value));
    }
    Ok(values)
}

/// Refuses values that no package asks for.
pub(super) fn check_asked(values: &Values, pieces: &[&Piece]) -> Result<(), Failure> {
    for (name, _) in values {
        let asks = |piece: &&Piece| piece.package.inputs.iter().any(|input| input.name == *name);
        if !pieces.iter().any(asks) {
            return Err(Failure::invalid(format!("nothing asks for `{}`", line(name))));
        }
    }
    Ok(())
}

/// The secret that the kill switch of a package is told, where it has several and somebody can say which.
pub(super) fn revoking(
    package: &Package,
    typed: Option<&str>,
    ask: Ask,
    printer: Printer,
) -> Result<Option<String>, Failure> {
    if let Some(typed) = typed {
        let secrets = package.inputs.iter().filter(|input| input.secret);
        let known: Vec<_> = secrets.map(|input| input.name.as_str()).collect();
        if known.contains(&typed) {
            return Ok(Some(typed.to_owned()));
        }
        let failure = Failure::invalid(format!("it has no secret `{}`", line(typed)));
        return Err(match known.as_slice() {
            [] => failure,
            known => failure.hint(format!("it has {}", line(&known.join(", ")))),
        });
    }
    match revoking_secrets(package).as_slice() {
        several @ [_, _, ..] if ask.is_possible() => {
            ask.one_of("Which of its secrets does its kill switch need to revoke it?", several)
        }
        // Whoever revokes it can still say.
        several @ [_, _, ..] => {
            let names = line(&several.join(", "));
            printer.note(&format!("Its kill switch is told one of its secrets ({names}): `--revoke-with SECRET` says which, here or at `haft revoke --with SECRET`"));
            Ok(None)
        }
        _ => Ok(None),
    }
}

/// Refuses what was typed for nothing, and secrets that would be seen by others.
fn check_typed(package: &Package, typed: &[(String, String)]) -> Result<(), Failure> {
    for (name, value) in typed {
        match package.inputs.iter().find(|input| input.name == *name) {
            Some(input) if input.secret => {
                let message = format!(
                    "`{}` is a secret, and what is typed on a command line is seen by others",
                    line(name)
                );
                let (id, name) = (shell::word(&package.canonical_id()), shell::word(name));
                return Err(Failure::invalid(message)
                    .hint(format!("`haft secret set {id} {name}` keeps it")));
            }
            // Before anybody is asked for anything else.
            Some(input) => drop(checked(input, value.clone())?),
            None => {
                let known: Vec<_> = package.inputs.iter().map(|input| line(&input.name)).collect();
                let failure = Failure::invalid(format!("it asks for no `{}`", line(name)));
                return Err(if known.is_empty() {
                    failure
                } else {
                    failure.hint(format!("it asks for {}", known.join(", ")))
                });
            }
        }
    }
    Ok(())
}

fn checked(input: &Input, value: String) -> Result<Secret, Failure> {
    if let Some(wrong) = misfit(input, &value) {
        return Err(Failure::invalid(format!(
            "the value of `{}` does not fit: {}",
            line(&input.name),
            line(&wrong)
        )));
    }
    Secret::new(value).map_err(|error| Failure::invalid(error.to_string()))
}

/// Asks at the terminal, a few times; what may be left out is left out by typing nothing.
fn ask_for(input: &Input, ask: Ask, printer: Printer) -> Result<Option<Secret>, Failure> {
    if !ask.is_possible() {
        return Ok(None);
    }
    if let Some(prompt) = &input.prompt {
        printer.note(&declared::asked_for(prompt));
    }
    if let Some(page) = &input.obtain_url {
        printer.note(&declared::to_be_had(page));
    }
    for _ in 0..TRIES {
        let value = if input.secret {
            ask.value(&input.name)?
        } else {
            Zeroizing::new(ask.shown_value(&input.name)?)
        };
        if value.is_empty() && !input.required {
            return Ok(None);
        }
        match misfit(input, &value) {
            None => {
                return Secret::new(value.to_string())
                    .map(Some)
                    .map_err(|error| Failure::invalid(error.to_string()));
            }
            Some(wrong) => printer.warn(&format!("that does not fit: {}", line(&wrong))),
        }
    }
    let message = format!("no value of `{}` was given that fits", line(&input.name));
    Err(Failure::invalid(message))
}

fn lacking(package: &Package, missing: &[&Input]) -> Failure {
    let names: Vec<_> = missing.iter().map(|input| format!("`{}`", line(&input.name))).collect();
    let message = format!("it needs {}, and nobody can be asked for it", names.join(", "));
    let id = shell::word(&package.canonical_id());
    let hint = |input: &&Input| {
        let name = shell::word(&input.name);
        if input.secret {
            format!("`haft secret set {id} {name}` keeps it")
        } else {
            format!(
                "`haft install … --env {name}=VALUE` gives it, `haft secret set {id} {name}` keeps it"
            )
        }
    };
    missing.iter().map(hint).fold(Failure::new(Exit::Invalid, message), Failure::hint)
}

/// Reads `NAME=VALUE`.
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}
