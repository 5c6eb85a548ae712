//! From what the owner typed to a package that was read whole: a path, an address, or the id of a tool.
//!
//! | module | what it is about |
//! |---|---|
//! | `path` | folders, archives, bundles and manifests on this machine |
//! | `registry` | what a registry has, or a catalog lists |
//! | `address` | files at addresses, and what the index of a site lists |
//! | `again` | what was installed before, from where it came |

mod address;
mod again;
mod path;
mod registry;

use std::path::{Path, PathBuf};

use ::registry::client::Remote;
use install::{Parcel, ParcelError, Source};
use manifest::model::Trust;
use package::digest::Digest;

use self::registry::Yanked;
use crate::ask::Ask;
use crate::commands::signature_words;
use crate::exit::Failure;
use crate::home::Home;
use crate::printer::Printer;
use crate::remote::{Offline, Which};
use crate::{container, draw};

/// A package as it came, and how far that speaks for it.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) parcel: Parcel,
    pub(crate) source: Source,
    /// The file that it came in, where it came in one.
    pub(crate) archive: Option<Digest>,
    pub(crate) trust: Trust,
    pub(crate) because: String,
    /// What its signatures come to.
    pub(crate) signature: String,
    /// The registry that was asked for it, where one was.
    pub(crate) registry: Option<Remote>,
}

/// What was typed.
enum Typed<'t> {
    Path(PathBuf),
    Address(&'t str),
    Id(&'t str, Option<&'t str>),
}

impl<'t> Typed<'t> {
    /// A name without a slash is an id, unless a file is called so: a folder that happens to be here is not what somebody
    /// means who names a tool.
    fn read(text: &'t str) -> Self {
        let path = Path::new(text);
        // Which schemes are taken is said where addresses are read.
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
        };
        if text.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme)) {
            return Self::Address(text);
        }
        let is_named = is_qualified(text) || is_namespaced(text) && !path.exists();
        let looks_like_a_path = text.contains('/') && !is_named || text.starts_with(['.', '~']);
        if looks_like_a_path || path.is_file() {
            return Self::Path(path.to_owned());
        }
        // A registry knows nothing of dialects.
        let id =
            if is_qualified(text) { text.split_once(':').map_or(text, |(_, id)| id) } else { text };
        match id.rsplit_once('@') {
            Some((id, version)) if !id.is_empty() => Self::Id(id, Some(version)),
            _ => Self::Id(id, None),
        }
    }
}

/// Whether a text names a tool, and no version of it.
pub(crate) fn is_id(text: &str) -> bool {
    matches!(Typed::read(text), Typed::Id(_, None))
}

/// Whether a text may be an id with a namespace, such as `acme/mail` or `com.example/weather`.
fn is_namespaced(text: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphanumeric())
            && part.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.@+".contains(letter))
    };
    text.split_once('/').is_some_and(|(space, id)| is_part(space) && is_part(id))
}

/// Whether a text is an id with a namespace and a dialect, such as `install-manifest:acme/mail`.
fn is_qualified(text: &str) -> bool {
    let dialect = text.split_once(':').map(|(dialect, _)| dialect);
    dialect.is_some_and(|name| manifest::dialect::Dialect::named(name).is_some())
}

/// How packages are fetched.
pub(crate) struct Fetching<'f> {
    pub(crate) home: &'f Home,
    pub(crate) ask: Ask,
    pub(crate) which: &'f Which,
    pub(crate) offline: &'f Offline,
    /// The id of a tools.json.
    pub(crate) id: Option<&'f str>,
    /// The entry of a catalog or of an index that is meant.
    pub(crate) only: Option<&'f str>,
    pub(crate) json_wanted: bool,
    pub(crate) printer: Printer,
}

impl Fetching<'_> {
    /// Fetches what was typed.
    pub(crate) fn fetch(&self, typed: &str) -> Result<Fetched, Failure> {
        match Typed::read(typed) {
            Typed::Path(path) => self.path(&path),
            Typed::Id(id, version) => self.registry(typed, id, version, Yanked::Refused),
            Typed::Address(address) => self.address(address),
        }
    }

    /// What is known of a package, once it is known who signed it.
    fn known(
        &self,
        parcel: Parcel,
        source: Source,
        archive: Option<Digest>,
        (trust, because): (Trust, String),
    ) -> Result<Fetched, Failure> {
        let trusted = self.home.trusted(self.printer)?;
        let signature = signature_words(&parcel.verdict, &trusted);
        let signer =
            parcel.verdict.signers().find_map(|key| trusted.iter().find(|known| known.key == key));
        let (trust, because) = match signer {
            Some(known) if trust < Trust::Verified => {
                (Trust::Verified, format!("signed by `{}`, whose key you trust", known.name))
            }
            _ => (trust, because),
        };
        Ok(Fetched { parcel, source, archive, trust, because, signature, registry: None })
    }

    fn refused(&self, path: &Path, error: ParcelError) -> Failure {
        match error {
            ParcelError::Read(error) => container::refused(path, &error),
            ParcelError::Invalid { path: inside, bytes, report } => {
                draw::refused(&path.join(inside), &bytes, &report, self.printer)
            }
            ParcelError::Changed(ref faults) => {
                let message = format!("`{}` was changed after it was signed", path.display());
                Failure::invalid(message).details(faults.clone())
            }
            other => Failure::invalid(format!("`{}` is refused", path.display())).cause(other),
        }
    }
}

/// Whether bytes are a package as one JSON text.
fn is_bundle(bytes: &[u8]) -> bool {
    let root = std::str::from_utf8(bytes).ok().and_then(|text| manifest::json::parse(text).root);
    root.is_some_and(|root| root.get("manifest").is_some() && root.get("files").is_some())
}
