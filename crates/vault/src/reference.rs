//! What a manifest writes instead of a value: a reference to where the value is.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::place::{MAX_NAME, is_plain};

/// The longest reference, in bytes.
pub const MAX_REFERENCE: usize = 4096;
/// What references begin with.
const SCHEMES: [&str; 5] = ["vault://", "secret://", "env://", "file://", "keyring://"];

/// A reference, read strictly: whatever it says has exactly one meaning, and it is written as it is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reference {
    /// `vault://mount/path#field`: a field of an entry in a Vault server's key-value store.
    Vault {
        /// Where the store is mounted.
        mount: String,
        /// The entry in it; segments with `/` between them.
        path: String,
        /// The field of the entry.
        field: String,
    },
    /// `secret://NAME`: an entry of our own vault.
    Secret {
        /// Its name; whose it is follows from who asks.
        name: String,
    },
    /// `env://NAME`: a variable of the owner's environment.
    Environment {
        /// Its name.
        name: String,
    },
    /// `file:///path`: the content of a file.
    File {
        /// Its absolute path, without `.` and `..`.
        path: PathBuf,
    },
    /// `keyring://service/account`: an entry of the desktop's keyring.
    Keyring {
        /// What it is for.
        service: String,
        /// Whose it is there.
        account: String,
    },
}

/// Why a text is no reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceError {
    /// The reference, shortened and made safe to show; `None` where the text does not even begin like
    /// one, because somebody may have written the value itself there.
    pub reference: Option<String>,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is longer than [`MAX_REFERENCE`].
    TooLong,
    /// It has a control character, a blank, a backslash, `%` or `?`.
    Character,
    /// It begins with none of the schemes.
    Scheme,
    /// It is no `vault://mount/path#field`.
    Vault,
    /// It is no `secret://NAME`.
    Secret,
    /// It is no `env://NAME`.
    Environment,
    /// It is no `file:///path`.
    File,
    /// It is no `keyring://service/account`.
    Keyring,
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reference {
            Some(reference) => write!(out, "`{reference}` is no reference to a secret: ")?,
            None => out.write_str("the text is no reference to a secret: ")?,
        }
        out.write_str(match self.fault {
            Fault::TooLong => "it is too long",
            Fault::Character => {
                "a control character, a blank, `\\`, `%` or `?` has no place in one"
            }
            Fault::Scheme => {
                "it must begin with vault://, secret://, env://, file:// or keyring://"
            }
            Fault::Vault => "it must read vault://mount/path#field",
            Fault::Secret => "it must read secret://NAME",
            Fault::Environment => "it must read env://NAME, of letters, digits and `_`",
            Fault::File => "it must read file:///path, without empty parts, `.` and `..`",
            Fault::Keyring => "it must read keyring://service/account",
        })
    }
}

impl std::error::Error for ReferenceError {}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        parse(text).map_err(|fault| {
            let shown = text.chars().take(80).map(|c| if is_odd(c) { '\u{fffd}' } else { c });
            let begins_well = SCHEMES.iter().any(|scheme| text.starts_with(scheme));
            ReferenceError { reference: begins_well.then(|| shown.collect()), fault }
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Vault { mount, path, field } => {
                write!(out, "vault://{mount}/{path}#{field}")
            }
            Reference::Secret { name } => write!(out, "secret://{name}"),
            Reference::Environment { name } => write!(out, "env://{name}"),
            Reference::File { path } => write!(out, "file://{}", path.display()),
            Reference::Keyring { service, account } => write!(out, "keyring://{service}/{account}"),
        }
    }
}

fn parse(text: &str) -> Result<Reference, Fault> {
    if text.len() > MAX_REFERENCE {
        return Err(Fault::TooLong);
    }
    // Nothing is decoded, so nothing that readers of addresses disagree about may be in one.
    if text.contains(|c| is_odd(c) || matches!(c, ' ' | '\\' | '%' | '?')) {
        return Err(Fault::Character);
    }
    let (scheme, rest) = text.split_once("://").ok_or(Fault::Scheme)?;
    match scheme {
        "vault" => parse_vault(rest).ok_or(Fault::Vault),
        "secret" if is_plain(rest, MAX_NAME) && !rest.contains(['/', '#']) => {
            Ok(Reference::Secret { name: rest.to_owned() })
        }
        "secret" => Err(Fault::Secret),
        "env" if is_variable(rest) => Ok(Reference::Environment { name: rest.to_owned() }),
        "env" => Err(Fault::Environment),
        "file" if rest.strip_prefix('/').is_some_and(are_segments) => {
            Ok(Reference::File { path: PathBuf::from(rest) })
        }
        "file" => Err(Fault::File),
        "keyring" => match rest.split_once('/') {
            Some((service, account)) if are_names(&[service, account]) => {
                Ok(Reference::Keyring { service: service.to_owned(), account: account.to_owned() })
            }
            _ => Err(Fault::Keyring),
        },
        _ => Err(Fault::Scheme),
    }
}

fn parse_vault(rest: &str) -> Option<Reference> {
    let (place, field) = rest.split_once('#')?;
    let (mount, path) = place.split_once('/')?;
    let is_sound = are_segments(mount) && are_segments(path) && are_names(&[field]);
    is_sound.then(|| Reference::Vault {
        mount: mount.to_owned(),
        path: path.to_owned(),
        field: field.to_owned(),
    })
}

/// Whether these are parts with `/` between them, none of which leads elsewhere.
fn are_segments(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | "..")) && !path.contains('#')
}

/// Whether each is a name without `/` and `#`.
fn are_names(names: &[&str]) -> bool {
    names.iter().all(|name| is_plain(name, MAX_NAME) && !name.contains(['/', '#']))
}

fn is_variable(name: &str) -> bool {
    is_plain(name, MAX_NAME)
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Characters that are not seen, or that change how others are seen.
fn is_odd(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_is_read_and_written() {
        for text in [
            "vault://kv/team/github#token",
            "secret://GITHUB_TOKEN",
            "env://HOME_2",
            "file:///run/secrets/token",
            "keyring://github.com/me@example.com",
        ] {
            assert_eq!(text.parse::<Reference>().unwrap().to_string(), text);
        }
        assert_eq!(
            "vault://kv/a/b#c".parse(),
            Ok(Reference::Vault { mount: "kv".into(), path: "a/b".into(), field: "c".into() })
        );
    }

    #[test]
    fn what_is_ambiguous_is_no_reference() {
        for (text, fault) in [
            ("", Fault::Scheme),
            ("hunter2", Fault::Scheme),
            ("VAULT://a/b#c", Fault::Scheme),
            ("https://a/b#c", Fault::Scheme),
            ("vault://a#b", Fault::Vault),
            ("vault://a/b", Fault::Vault),
            ("vault://a/b#", Fault::Vault),
            ("vault://a/../b#c", Fault::Vault),
            ("vault://a//b#c", Fault::Vault),
            ("vault:///a/b#c", Fault::Vault),
            ("vault://a/b#c#d", Fault::Vault),
            ("vault://a/%2e%2e/b#c", Fault::Character),
            ("vault://a/b?version=1#c", Fault::Character),
            ("secret://", Fault::Secret),
            ("secret://a/b", Fault::Secret),
            ("env://", Fault::Environment),
            ("env://1A", Fault::Environment),
            ("env://A=B", Fault::Environment),
            ("file://etc/passwd", Fault::File),
            ("file:///etc/../passwd", Fault::File),
            ("file:///", Fault::File),
            ("keyring://service", Fault::Keyring),
            ("keyring://a/b/c", Fault::Keyring),
            ("secret://a\u{202e}b", Fault::Character),
            ("secret://a\nb", Fault::Character),
        ] {
            let error = text.parse::<Reference>().unwrap_err();
            assert_eq!(error.fault, fault, "{text}");
            assert!(!error.to_string().contains(['\n', '\u{202e}']), "{error}");
            // What does not begin like a reference may be a value.
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        let long = format!("secret://{}", "a".repeat(MAX_REFERENCE));
        assert_eq!(long.parse::<Reference>().unwrap_err().fault, Fault::TooLong);
    }
}
