//! What was installed before, from where it came.

use std::path::Path;

use install::{Parcel, Pinned, Source};
use manifest::model::Trust;
use package::archive::{Archive, Trailer};
use package::limits::Limits;
use registry::Yank;
use registry::client::many::Place;

use super::registry::{Yanked, check_offered, for_security};
use super::{Fetched, Fetching};
use crate::container;
use crate::exit::{Exit, Failure};
use crate::printer::line;
use crate::remote::{self, Known, Which};
use crate::{installed, owner};

impl Fetching<'_> {
    /// What is pinned: exactly that version.
    pub(crate) fn locked(&self, pinned: &Pinned) -> Result<Fetched, Failure> {
        // Whoever can be asked says whether it was taken back for security; else it is what was said last.
        let kept = if self.offline.offline { self.kept(pinned)? } else { None };
        let fetched = match kept {
            Some(kept) => kept,
            None => self.again(pinned, Some(&pinned.version), Yanked::UnlessForSecurity)?,
        };
        self.as_locked(fetched, pinned)
    }

    /// How far something is trusted that a lockfile names. Somebody else may have written it: a registry in it is not the
    /// owner's word for that registry.
    fn as_locked(&self, mut fetched: Fetched, pinned: &Pinned) -> Result<Fetched, Failure> {
        let own = installed::home(self.home).read()?;
        if own.lock.get(&pinned.id).is_some_and(|known| known.source == pinned.source) {
            return Ok(fetched);
        }
        match &pinned.source {
            Source::Registry(address)
                if fetched.trust < Trust::Verified
                    && !Known::new(self.home, self.ask)?.knows(address) =>
            {
                fetched.trust = Trust::Untrusted;
                fetched.because = format!(
                    "a lockfile names the registry `{}`, and it is none of yours",
                    line(address)
                );
            }
            Source::Path(_) => {
                "the lockfile that you named says where it is".clone_into(&mut fetched.because);
            }
            _ => {}
        }
        Ok(fetched)
    }

    /// Why the installed version of a package was taken back, where it was and its registry says so.
    pub(crate) fn taken_back(&self, pinned: &Pinned) -> Option<Yank> {
        let Source::Registry(address) = &pinned.source else { return None };
        let known_before = || for_security(remote::cache(self.home).taken_back(pinned.archive?.0));
        let which = Which::named(address.clone());
        let asked = || {
            let known = Known::new(self.home, self.ask).ok()?.with(self.offline);
            let client = known.client(&which).ok()?;
            let found = client.find(bare(pinned), Some(&pinned.version));
            match owner::runtime().ok()?.block_on(found).ok()? {
                Place::Registry(_, described) => Some(self.yank(&described)),
                Place::Catalog(..) => None,
            }
        };
        if self.offline.offline { known_before() } else { asked().unwrap_or_else(known_before) }
    }

    /// What there is now, where something that is installed came from.
    pub(crate) fn newest(&self, pinned: &Pinned) -> Result<Fetched, Failure> {
        self.again(pinned, None, Yanked::Refused)
    }

    fn again(
        &self,
        pinned: &Pinned,
        version: Option<&str>,
        yanked: Yanked,
    ) -> Result<Fetched, Failure> {
        let id = bare(pinned);
        match &pinned.source {
            Source::Path(path) => Fetching { id: Some(id), ..*self }.path(Path::new(path)),
            Source::Listed(path) => {
                let path = Path::new(path);
                let (mut parcel, archive) =
                    Fetching { id: Some(id), ..*self }.read_path(path, path)?;
                parcel.pieces.retain(|piece| piece.package.canonical_id() == pinned.id);
                let because = "a catalog lists it, and vouches for nothing".to_owned();
                self.known(parcel, pinned.source.clone(), archive, (Trust::Untrusted, because))
            }
            Source::Imported(path) => {
                let message = format!(
                    "`{}` was made of the settings at `{}`, and is in no place that it could be fetched from",
                    line(&pinned.id),
                    line(path)
                );
                Err(Failure::new(Exit::Unavailable, message)
                    .hint("`haft import` makes it anew, on the machine that has the settings"))
            }
            Source::Url(address) => {
                Fetching { id: Some(id), only: Some(id), ..*self }.fetch(address)
            }
            Source::Registry(address) => {
                let which = Which::named(address.clone());
                let there = Fetching { which: &which, ..*self };
                there.registry(&pinned.id, id, version, yanked)
            }
        }
    }

    /// The archive that is pinned, where it was fetched before: its digest says that it is the same.
    fn kept(&self, pinned: &Pinned) -> Result<Option<Fetched>, Failure> {
        let (Some(digest), Source::Registry(address)) = (pinned.archive, &pinned.source) else {
            return Ok(None);
        };
        let cache = remote::cache(self.home);
        let Ok(Some(file)) = cache.package(digest.0) else { return Ok(None) };
        let yank = for_security(cache.taken_back(digest.0));
        check_offered(yank.as_ref(), &pinned.id, Yanked::UnlessForSecurity)?;
        let because = format!("the registry at `{}` has it, and it is in your lock", line(address));
        let archive = Archive::open(file, Trailer::Mcpb, &Limits::DEFAULT);
        let archive = archive.map_err(|error| container::refused(Path::new(&pinned.id), &error))?;
        let parcel = Parcel::open(archive, bare(pinned))
            .map_err(|error| self.refused(Path::new(&pinned.id), error))?;
        let source = pinned.source.clone();
        self.known(parcel, source, Some(digest.0), (Trust::Community, because)).map(Some)
    }
}

/// The id without its dialect.
fn bare(pinned: &Pinned) -> &str {
    pinned.parted().map_or(pinned.id.as_str(), |(_, id)| id)
}
