//! Packages at addresses, and what the index of a site lists.

use std::path::Path;
use std::sync::Arc;

use install::download::{
    AddressError, DownloadError, Downloaded, Downloads, FileAddress, own_file,
};
use install::{Parcel, Source};
use manifest::dialect::Dialect;
use manifest::document::{Options, read};
use manifest::model::Trust;
use manifest::shape::suggest;
use package::archive::{Archive, Trailer};
use package::bundle::Bundle;
use package::limits::Limits;
use registry::catalog::read::{Index, Pointed};
use registry::client::address::shown;
use registry::client::{FetchError, Reach};

use super::{Fetched, Fetching};
use crate::bar::Bar;
use crate::exit::{Exit, Failure};
use crate::printer::line;
use crate::{container, draw, output, owner, remote};

/// Archives that may carry a signature after the end.
const WITH_TRAILER: [&str; 2] = [".mcpb", ".dxt"];

impl Fetching<'_> {
    /// What is at an address that the owner typed.
    pub(super) fn address(&self, typed: &str) -> Result<Fetched, Failure> {
        let address = FileAddress::parse(typed).map_err(|error| no_address(typed, &error))?;
        if address.digest().is_some() {
            // What has a digest is kept.
            output::make_private_folder(self.home.path())?;
        }
        if let Some(index) = address.index() {
            return self.index(&index);
        }
        let file = self.download(async |downloads| downloads.file(&address).await)?;
        let parcel = self.at_address(&file, &address)?;
        self.unvouched(parcel, &file)
    }

    /// The entry of an index that `--only` names.
    fn index(&self, address: &FileAddress) -> Result<Fetched, Failure> {
        let index = self.download(async |downloads| downloads.index(address).await)?;
        for warning in &index.warnings {
            self.printer.warn(&line(warning));
        }
        let Some(only) = self.only else { return Err(one_is_meant(address, &index)) };
        let prefix = format!("{}:", Dialect::InstallManifest.name());
        let id = only.strip_prefix(&prefix).unwrap_or(only);
        if let Some((_, status)) = index.refused.iter().find(|(refused, _)| refused == id) {
            let message = format!("`{}` is {status}, as its publisher says", line(id));
            return Err(Failure::new(Exit::Denied, message));
        }
        let Some(pointed) = index.pointed.iter().find(|one| one.id == id) else {
            let message = format!("`{}` does not list `{}`", line(&address.shown()), line(id));
            let failure = Failure::new(Exit::NotFound, message);
            let known = index.pointed.iter().map(|one| one.id.as_str());
            return Err(match suggest(id, known) {
                Some(near) => failure.hint(format!("did you mean `{}`?", line(near))),
                None => failure.hint("without --only you are told what it lists"),
            });
        };
        if pointed.is_deprecated {
            self.printer.warn(&deprecated(pointed));
        }
        let file = self.download(async |downloads| downloads.pointed(address, pointed).await)?;
        let parcel = self.alone(file.bytes.clone(), id, &file.shown)?;
        self.unvouched(parcel, &file)
    }

    /// Nobody vouches for what an address gives, unless it is signed by a key that the owner trusts.
    fn unvouched(&self, parcel: Parcel, file: &Downloaded) -> Result<Fetched, Failure> {
        let because = "it was fetched from an address, and nobody vouches for it".to_owned();
        let source = Source::Url(file.shown.clone());
        self.known(parcel, source, Some(file.digest), (Trust::Untrusted, because))
    }

    /// A file that was fetched, as a package: an archive, a bundle or a manifest.
    fn at_address(&self, file: &Downloaded, address: &FileAddress) -> Result<Parcel, Failure> {
        let place = Path::new(&file.shown);
        let bytes = &file.bytes;
        let folder = address.folder_name();
        let fallback = self.id.unwrap_or(&folder);
        let refused = |error: package::refusal::ReadError| container::refused(place, &error);
        let opened = if bytes.starts_with(b"PK") {
            let name = address.file_name().to_ascii_lowercase();
            let has_trailer = WITH_TRAILER.iter().any(|ending| name.ends_with(ending));
            let trailer = if has_trailer { Trailer::Mcpb } else { Trailer::Refused };
            let archive = Archive::from_bytes(bytes.clone(), trailer, &Limits::DEFAULT);
            Parcel::open(archive.map_err(refused)?, fallback)
        } else if super::is_bundle(bytes) {
            let bundle = Bundle::read(bytes, &Limits::DEFAULT);
            let bundle =
                bundle.map_err(|error| container::bad_bundle(place, bytes, error, self.printer))?;
            Parcel::pack(&bundle, fallback)
        } else {
            return self.alone(bytes.clone(), fallback, &file.shown);
        };
        opened.map_err(|error| self.refused(place, error))
    }

    /// A manifest that was fetched from somewhere: one that speaks of files of its own is refused, for they did not come
    /// with it.
    pub(super) fn alone(
        &self,
        bytes: Vec<u8>,
        fallback: &str,
        place: &str,
    ) -> Result<Parcel, Failure> {
        let at = Path::new(place);
        let options = Options { fallback_id: Some(fallback), ..Options::default() };
        let (_, packages) = read(&bytes, &options)
            .map_err(|report| draw::refused(at, &bytes, &report, self.printer))?;
        let is_meant = |id: &str| self.only.is_none_or(|only| only == id);
        let meant = packages
            .iter()
            .filter(|package| is_meant(&package.id) || is_meant(&package.canonical_id()));
        for package in meant {
            if let Some(file) = own_file(package) {
                let message = format!(
                    "`{}` speaks of `{}`, which does not come with its manifest",
                    line(&package.canonical_id()),
                    line(&file)
                );
                return Err(Failure::invalid(message)
                    .cause(format!("only the manifest is at `{}`", line(place)))
                    .hint("`haft pack` puts a package into one file, which can be installed from an address"));
            }
        }
        Parcel::of_manifest(bytes, fallback).map_err(|error| self.refused(at, error))
    }

    /// Fetches something, while the owner sees how far it is.
    fn download<T>(
        &self,
        fetch: impl AsyncFnOnce(Downloads) -> Result<T, DownloadError>,
    ) -> Result<T, Failure> {
        let runtime = owner::runtime()?;
        let bar = Bar::begin("Downloading", None, self.json_wanted, self.printer);
        let reach = if self.offline.offline { Reach::Offline } else { Reach::Online };
        let cache = Arc::new(remote::cache(self.home));
        let downloads = Downloads { cache, reach, watch: bar.watch() };
        let fetched = runtime.block_on(fetch(downloads));
        drop(bar);
        fetched.map_err(|error| failed(&error))
    }
}

fn no_address(typed: &str, error: &AddressError) -> Failure {
    let failure = Failure::invalid(format!("nothing is installed from `{}`", line(&shown(typed))));
    let failure = failure.cause(line(&error.to_string()));
    match error {
        AddressError::Plain => failure.hint("an address begins with https://"),
        _ => failure,
    }
}

/// What to say of an index where nobody said which entry is meant.
fn one_is_meant(address: &FileAddress, index: &Index) -> Failure {
    let place = line(&address.shown());
    let Some(first) = index.pointed.first() else {
        return Failure::new(Exit::NotFound, format!("`{place}` lists nothing that can be used"));
    };
    let told = index.pointed.iter().map(|one| {
        let summary = one.summary.as_deref().map(|words| format!(": {words}"));
        let mark = if one.is_deprecated { " (deprecated)" } else { "" };
        line(&format!("{}{mark}{}", one.id, summary.unwrap_or_default()))
    });
    let count = crate::commands::count(index.pointed.len(), "tool");
    Failure::invalid(format!("`{place}` lists {count}, and one is meant"))
        .details(told)
        .hint(format!("name it, such as --only {}", crate::shell::word(&line(&first.id))))
}

fn deprecated(pointed: &Pointed) -> String {
    match &pointed.deprecated_for {
        Some(instead) => line(&format!("`{}` is deprecated; use `{instead}`", pointed.id)),
        None => line(&format!("`{}` is deprecated", pointed.id)),
    }
}

/// What to say of a file that was not fetched.
fn failed(error: &DownloadError) -> Failure {
    match error {
        DownloadError::Fetch(host, error) => match &**error {
            FetchError::Offline(what) => {
                Failure::new(Exit::Unavailable, format!("{} is not kept here", line(what)))
                    .cause("nobody is asked")
                    .hint("leave --offline out; what is kept is known by `#sha256=` and its digest")
            }
            FetchError::Digest { described, arrived } => {
                Failure::invalid(format!("what `{}` gave has another digest", line(host)))
                    .cause(format!("it is {arrived}, and you typed {described}"))
            }
            error => remote::failed(host, error),
        },
        DownloadError::Setup(error) => Failure::of(Exit::Unavailable, error),
        DownloadError::Place { .. }
        | DownloadError::TooLarge(..)
        | DownloadError::Index(..)
        | DownloadError::Manifest(..) => Failure::invalid(line(&error.to_string())),
    }
}
