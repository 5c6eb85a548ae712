//! One thin file per verb.

pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod index;
pub(crate) mod init;
pub(crate) mod schema;
pub(crate) mod validate;

use manifest::dialect::Dialect;

/// Reads the name of a dialect.
fn dialect(name: &str) -> Result<Dialect, String> {
    Dialect::named(name).ok_or_else(|| {
        let names = Dialect::ALL.map(Dialect::name).join(", ");
        format!("no such dialect; there are {names}")
    })
}
