//! From what the owner typed to a package that was read whole: a path, an address, or the id of a tool in a registry.

use std::path::{Path, PathBuf};

use install::{Parcel, ParcelError, Source};
use manifest::document::{Options, read};
use manifest::model::{Acquire, Trust};
use package::archive::{Archive, Trailer};
use package::digest::Digest;
use package::gather::gather;
use package::limits::Limits;
use registry::Yank;
use registry::client::many::Place;

use crate::ask::Ask;
use crate::bar::Bar;
use crate::commands::signature_words;
use crate::disk;
use crate::draw;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::remote::{self, Known, Offline, Which};
use crate::{container, output, owner};

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
        if text.starts_with("https://") || text.starts_with("http://") {
            return Self::Address(text);
        }
        let looks_like_a_path =
            text.contains('/') && !is_qualified(text) || text.starts_with(['.', '~']);
        if looks_like_a_path || path.is_file() {
            return Self::Path(path.to_owned());
        }
        match text.rsplit_once('@') {
            Some((id, version)) if !id.is_empty() => Self::Id(id, Some(version)),
            _ => Self::Id(text, None),
        }
    }
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
    pub(crate) json_wanted: bool,
    pub(crate) printer: Printer,
}

impl Fetching<'_> {
    /// Fetches what was typed.
    pub(crate) fn fetch(&self, typed: &str) -> Result<Fetched, Failure> {
        match Typed::read(typed) {
            Typed::Path(path) => self.path(&path),
            Typed::Id(id, version) => self.registry(typed, id, version),
            Typed::Address(address) => {
                let message = format!(
                    "`{}` is an address, and nothing is installed from one yet",
                    line(address)
                );
                Err(Failure::new(Exit::Unavailable, message))
            }
        }
    }

    fn path(&self, path: &Path) -> Result<Fetched, Failure> {
        let absolute = path.canonicalize().map_err(|error| {
            let exit = match error.kind() {
                std::io::ErrorKind::NotFound => Exit::NotFound,
                _ => Exit::Unavailable,
            };
            Failure::new(exit, format!("failed to read `{}`", path.display())).cause(error)
        })?;
        let opened =
            |parcel: Result<Parcel, ParcelError>| parcel.map_err(|error| self.refused(path, error));
        let (parcel, archive) = if absolute.is_dir() {
            (opened(self.folder(&absolute)?)?, None)
        } else if container::is_archive(&absolute) || is_bundle(&absolute)? {
            let container = container::open(&absolute, self.printer)?;
            let (digest, name) = (container.digest, container.name());
            let archive = container.into_archive()?;
            (opened(Parcel::open(archive, self.id.unwrap_or(&name)))?, Some(digest))
        } else {
            (opened(self.manifest(&absolute)?)?, None)
        };
        let because = "you typed its path".to_owned();
        let source = Source::Path(absolute.display().to_string());
        self.known(parcel, source, archive, (Trust::Local, because))
    }

    /// The files of a folder.
    fn folder(&self, folder: &Path) -> Result<Result<Parcel, ParcelError>, Failure> {
        let gathered = gather(folder, &Limits::DEFAULT)
            .map_err(|error| Failure::invalid(error.to_string()))?;
        let name =
            folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Parcel::pack(&gathered, self.id.unwrap_or(&name)))
    }

    /// A manifest by itself; where it speaks of files that come with it, those around it too.
    fn manifest(&self, file: &Path) -> Result<Result<Parcel, ParcelError>, Failure> {
        let bytes = disk::read(file)?;
        let name = disk::folder_name(file).unwrap_or_default();
        let fallback = self.id.unwrap_or(&name);
        let options = Options { fallback_id: Some(fallback), ..Options::default() };
        let (_, packages) = read(&bytes, &options)
            .map_err(|report| draw::refused(file, &bytes, &report, self.printer))?;
        let with_files =
            |acquire: &Acquire| matches!(acquire, Acquire::Bundle | Acquire::LocalPath { .. });
        let folder =
            file.parent().filter(|_| packages.iter().any(|package| with_files(&package.acquire)));
        match folder {
            Some(folder) => self.folder(folder),
            None => Ok(Parcel::of_manifest(bytes, fallback)),
        }
    }

    fn registry(&self, typed: &str, id: &str, version: Option<&str>) -> Result<Fetched, Failure> {
        let known = Known::new(self.home, self.ask)?.with(self.offline);
        let client = known.client(self.which).map_err(|failure| {
            let there = Path::new(typed).is_dir();
            let hint = || format!("there is a folder of that name here: write `./{}`", line(typed));
            if there { failure.hint(hint()) } else { failure }
        })?;
        output::make_private_folder(self.home.path())?;
        let runtime = owner::runtime()?;
        let (registry, fetched) = runtime.block_on(async {
            let place = client.find(id, version).await;
            match place.map_err(|error| remote::not_found(typed, version, &error))? {
                Place::Registry(registry, described) => {
                    let bytes = described.describe.size;
                    let bar = Bar::begin("Downloading", bytes, self.json_wanted, self.printer);
                    let watched = registry.clone().watched(bar.watch());
                    let fetched = watched.package_of(*described).await;
                    let fetched =
                        fetched.map_err(|error| remote::failed(registry.name(), &error))?;
                    Ok((registry.clone(), fetched))
                }
                Place::Catalog(catalog, package) => {
                    let message = format!(
                        "`{}` is listed in `{}`, which is no registry",
                        line(&package.id),
                        line(catalog.name())
                    );
                    Err(Failure::new(Exit::Unavailable, message))
                }
            }
        })?;
        check_offered(fetched.described.yanked.as_ref(), typed)?;
        let refused =
            |error: package::refusal::ReadError| container::refused(Path::new(typed), &error);
        let archive =
            Archive::open(fetched.file, Trailer::Mcpb, &Limits::DEFAULT).map_err(refused)?;
        let name = fetched.described.describe.name.clone();
        let parcel =
            Parcel::open(archive, &name).map_err(|error| self.refused(Path::new(typed), error))?;
        let source = Source::Registry(registry.address().url().to_string());
        let because =
            format!("the registry `{}` has it, and you named that registry", registry.name());
        self.known(parcel, source, Some(fetched.digest), (Trust::Community, because))
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
        Ok(Fetched { parcel, source, archive, trust, because, signature })
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

/// Refuses a version that was taken back.
fn check_offered(yanked: Option<&Yank>, typed: &str) -> Result<(), Failure> {
    let Some(Yank { reason, security }) = yanked else { return Ok(()) };
    let why = if reason.is_empty() { String::new() } else { format!(": {}", line(reason)) };
    let message = if *security {
        format!("`{}` was taken back for security{why}", line(typed))
    } else {
        format!("`{}` was taken back{why}", line(typed))
    };
    Err(Failure::new(Exit::Denied, message)
        .hint("a version that was taken back is installed only where a lockfile has it already"))
}

/// Whether a file is a package as one JSON text.
fn is_bundle(path: &Path) -> Result<bool, Failure> {
    let bytes = disk::read(path)?;
    let root = std::str::from_utf8(&bytes).ok().and_then(|text| manifest::json::parse(text).root);
    Ok(root.is_some_and(|root| root.get("manifest").is_some() && root.get("files").is_some()))
}
