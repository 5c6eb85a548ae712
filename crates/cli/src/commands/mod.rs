//! One thin file per verb.

pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod index;
pub(crate) mod init;
pub(crate) mod schema;
pub(crate) mod validate;

use manifest::dialect::Dialect;
use manifest::shape::suggest;

/// Reads the name of a dialect.
fn dialect(name: &str) -> Result<Dialect, String> {
    Dialect::named(name).ok_or_else(|| no_such("dialect", name, &Dialect::ALL.map(Dialect::name)))
}

/// What to say of a name that is none of the known ones.
fn no_such(noun: &str, name: &str, known: &[&'static str]) -> String {
    match suggest(name, known.iter().copied()) {
        Some(near) => format!("no such {noun}; did you mean `{near}`?"),
        None => format!("no such {noun}; there are {}", known.join(", ")),
    }
}
