//! Packages that a registry has, or a catalog lists.

use std::path::Path;

use install::download::own_file;
use install::{Parcel, Source};
use manifest::model::{Package, Trust};
use package::archive::{Archive, Trailer};
use package::digest::Digest;
use package::limits::Limits;
use registry::catalog::{Catalog, Held, Place as Kept};
use registry::client::many::Place;
use registry::client::{Described, Remote};
use registry::{Describe, Yank};

use super::{Fetched, Fetching};
use crate::bar::Bar;
use crate::exit::{Exit, Failure};
use crate::printer::line;
use crate::remote::{self, Known};
use crate::{container, output, owner};

impl Fetching<'_> {
    /// The tool of an id, in a version where one is named.
    pub(super) fn registry(
        &self,
        typed: &str,
        id: &str,
        version: Option<&str>,
        yanked: Yanked,
    ) -> Result<Fetched, Failure> {
        let known = Known::new(self.home, self.ask)?.with(self.offline);
        let client = known.client(self.which).map_err(|failure| {
            let there = Path::new(typed).is_dir();
            let shown = line(typed);
            failure.hint(if there {
                format!("there is a folder of that name here: write `./{shown}`")
            } else {
                format!("there is no file `{shown}` here, so it is taken for the id of a tool")
            })
        })?;
        output::make_private_folder(self.home.path())?;
        let runtime = owner::runtime()?;
        let place = runtime.block_on(client.find(id, version));
        let (registry, described) =
            match place.map_err(|error| remote::not_found(typed, version, &error))? {
                Place::Registry(registry, described) => (registry, described),
                Place::Catalog(catalog, package) => return self.listed(catalog, package),
            };
        let yank = self.yank(&described);
        check_offered(yank.as_ref(), typed, yanked)?;
        if described.describe.sha256.is_none() && described.describe.entry.is_node() {
            return self.bundled(registry, &described, typed);
        }
        let bytes = described.describe.size;
        let bar = Bar::begin("Downloading", bytes, self.json_wanted, self.printer);
        let watched = registry.clone().watched(bar.watch());
        let fetched = runtime.block_on(watched.package_of(*described));
        drop(bar);
        let fetched = fetched.map_err(|error| remote::failed(registry.name(), &error))?;
        let refused =
            |error: package::refusal::ReadError| container::refused(Path::new(typed), &error);
        let archive =
            Archive::open(fetched.file, Trailer::Mcpb, &Limits::DEFAULT).map_err(refused)?;
        let name = fetched.described.describe.name.clone();
        let parcel =
            Parcel::open(archive, &name).map_err(|error| self.refused(Path::new(typed), error))?;
        check_described(&fetched.described.describe, &parcel, registry.name())?;
        let source = Source::Registry(registry.address().url().to_string());
        let because =
            format!("the registry `{}` has it, and you named that registry", registry.name());
        let known =
            self.known(parcel, source, Some(fetched.digest), (Trust::Community, because))?;
        Ok(Fetched { registry: Some(registry.clone()), ..known })
    }

    /// A tool of a registry that knows no package files: it gives what it describes as a bundle.
    fn bundled(
        &self,
        registry: &Remote,
        described: &Described,
        typed: &str,
    ) -> Result<Fetched, Failure> {
        let Describe { id, name, version, .. } = &described.describe;
        let bundle = owner::runtime()?.block_on(registry.bundle(id, version));
        let bundle = bundle.map_err(|error| remote::failed(registry.name(), &error))?;
        let parcel =
            Parcel::pack(&bundle, name).map_err(|error| self.refused(Path::new(typed), error))?;
        check_described(&described.describe, &parcel, registry.name())?;
        let source = Source::Registry(registry.address().url().to_string());
        let because =
            format!("the registry `{}` has it, and you named that registry", registry.name());
        let known = self.known(parcel, source, None, (Trust::Community, because))?;
        Ok(Fetched { registry: Some(registry.clone()), ..known })
    }

    /// Whether a version was taken back. What a registry says of its security is kept in mind for when nobody is asked.
    pub(super) fn yank(&self, described: &Described) -> Option<Yank> {
        let yank = described.yanked.clone();
        let digest = described.describe.sha256.as_deref().and_then(Digest::parse);
        let Some(digest) = digest else { return yank };
        let cache = remote::cache(self.home);
        if self.offline.offline {
            return for_security(cache.taken_back(digest)).or(yank);
        }
        let reason = yank.as_ref().filter(|yank| yank.security).map(|yank| yank.reason.as_str());
        // Who cannot keep it in mind refuses it now all the same.
        let _kept_next_time = cache.note_taken_back(digest, reason);
        yank
    }

    /// A package that a catalog lists. Whoever lists something vouches for nothing.
    fn listed(&self, catalog: &Catalog, package: &Package) -> Result<Fetched, Failure> {
        let because = format!("`{}` lists it, and a catalog vouches for nothing", catalog.name());
        let trust = (Trust::Untrusted, because);
        let in_catalog = |path: &Path| Source::Listed(path.display().to_string());
        let id = package.id.as_str();
        match catalog.held(package) {
            Some(Held::File(path)) => {
                let (parcel, archive) = self.read_path(path, path)?;
                self.known(parcel, in_catalog(path), archive, trust)
            }
            Some(Held::ManifestAt(url, bytes)) => {
                let digest = Some(Digest::of(bytes));
                let parcel = self.alone(bytes.clone(), id, url.as_str())?;
                self.known(parcel, Source::Url(url.to_string()), digest, trust)
            }
            Some(Held::Manifest(bytes)) => match catalog.place() {
                // The files of its entries lie beside a catalog that lies on this machine.
                Kept::File(path) | Kept::Folder(path) if own_file(package).is_some() => {
                    let (mut parcel, _) = self.read_path(path, path)?;
                    parcel.pieces.retain(|piece| piece.package.id == id);
                    self.known(parcel, in_catalog(path), None, trust)
                }
                Kept::File(path) | Kept::Folder(path) => {
                    let parcel = self.alone(bytes.clone(), id, &path.to_string_lossy())?;
                    self.known(parcel, in_catalog(path), None, trust)
                }
                // It is had as it will be had again: out of the whole catalog.
                Kept::Address(fetcher) | Kept::WellKnown(fetcher) => {
                    let there = Fetching { only: Some(id), ..*self };
                    let mut fetched = there.address(&fetcher.address().to_string())?;
                    fetched.parcel.pieces.retain(|piece| piece.package.id == id);
                    Ok(fetched)
                }
            },
            None => {
                let message =
                    format!("`{}` does not say where `{}` is", line(catalog.name()), line(id));
                Err(Failure::new(Exit::Unavailable, message))
            }
        }
    }
}

/// Refuses a package that is not the one that was described.
fn check_described(describe: &Describe, parcel: &Parcel, registry: &str) -> Result<(), Failure> {
    let wrong = match parcel.pieces.as_slice() {
        [one] => describe.differs_from(&one.package),
        _ => Some("number of packages"),
    };
    let Some(wrong) = wrong else { return Ok(()) };
    let message = format!(
        "`{}` describes `{}` {}, and what it gave is something else",
        line(registry),
        line(&describe.name),
        line(&describe.version)
    );
    Err(Failure::invalid(message).cause(format!("its {wrong} is another one")))
}

/// That something was taken back for security, with this reason.
pub(super) fn for_security(reason: Option<String>) -> Option<Yank> {
    reason.map(|reason| Yank { reason, security: true })
}

/// What becomes of a version that was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Yanked {
    /// It is not had.
    Refused,
    /// A lockfile has it already, so it is; but not if it was taken back for security.
    UnlessForSecurity,
}

/// Refuses a version that was taken back.
pub(super) fn check_offered(
    yank: Option<&Yank>,
    typed: &str,
    yanked: Yanked,
) -> Result<(), Failure> {
    let Some(Yank { reason, security }) = yank else { return Ok(()) };
    if yanked == Yanked::UnlessForSecurity && !security {
        return Ok(());
    }
    let why = if reason.is_empty() { String::new() } else { format!(": {}", line(reason)) };
    let message = if *security {
        format!("`{}` was taken back for security{why}", line(typed))
    } else {
        format!("`{}` was taken back{why}", line(typed))
    };
    let failure = Failure::new(Exit::Denied, message);
    Err(if *security {
        failure.hint("such a version is not installed, even where a lockfile has it")
    } else {
        failure
            .hint("a version that was taken back is installed only where a lockfile has it already")
    })
}
