//! What another registry, its dump or a folder holds, made into packages that can be published.
//!
//! Nothing here publishes or judges: an entry becomes the bytes of a package, or the reason why it cannot.
//! One bad entry never stops the others.
//!
//! | module | what it reads |
//! |---|---|
//! | [`servers`] | a server.json, or a list of them as a registry of the MCP world answers it |
//! | [`mod@folder`] | packages, bundles, manifests and the `tools/` folder of a Jumith hub |
//! | [`remote`] | a registry of the MCP world, page by page |
//! | [`seen`] | what came from a source before |

pub mod folder;
pub mod remote;
pub mod seen;
pub mod servers;

use package::write::{Packed, Writer};

use crate::versions::Yank;

/// Something that is to be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Where it was found.
    pub from: String,
    /// The id of a manifest that has none of its own.
    pub id: Option<String>,
    /// Its name and its version, where the source is a registry that lists both.
    pub listed: Option<(String, String)>,
    /// The package, or why there is none.
    pub package: Result<Vec<u8>, NoPackage>,
}

/// Why something is no package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoPackage {
    /// It is passed over: there is nothing wrong with it.
    Skipped(String),
    /// It cannot be one.
    Refused(String),
    /// It was taken back there.
    Deleted(Deleted),
}

/// What a source has taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// The package that it was: nothing else is taken back because of it.
    pub package: Vec<u8>,
    /// Why, as far as that is told.
    pub why: Yank,
}

impl Item {
    fn refused(from: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(from, Err(NoPackage::Refused(why.into())))
    }

    fn made(from: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self::new(from, Ok(bytes))
    }

    /// Something by itself, which nobody lists.
    pub fn new(from: impl Into<String>, package: Result<Vec<u8>, NoPackage>) -> Self {
        Self { from: from.into(), id: None, listed: None, package }
    }
}

/// A package of these files; always the same bytes for the same files.
fn packed(mut files: Vec<(&str, &[u8])>) -> Result<Vec<u8>, String> {
    files.sort_unstable();
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    for (path, content) in files {
        let file = Packed::compress(path, content, false);
        writer.add(&file).map_err(|error| error.to_string())?;
    }
    writer.finish().map_err(|error| error.to_string())?;
    Ok(bytes)
}
