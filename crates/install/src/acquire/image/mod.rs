//! A container image, pulled from its registry by its digest and put down as an OCI layout.
//!
//! The digest stands for all of it: each document is held against the digest that led to it, and so is each layer. What is on
//! this machine already, in the package or among the owner's images, is not pulled.

mod place;
mod token;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;

use egress::http::{HeaderValue, Url};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use image::{Limits, MOST_INDEXES, Part, Parts, Reference, parts};
use package::digest::Digest;
use registry::client::FetchError;

use self::place::Place;
use super::artefact::{Artefact, Method};
use super::error::AcquireError;
use super::fetch::{Known, Origin};
use super::sources::{Bringer, Reach};
use super::workshop::{AT_ONCE, Workshop};

/// Where the layout lies, below the folder.
pub(super) const FOLDER: &str = "image";

/// The kinds of documents that a digest may stand for.
const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.docker.distribution.manifest.v2+json";

/// Reads what a manifest names.
pub(super) fn read(text: &str) -> Result<Reference, AcquireError> {
    Reference::parse(text).map_err(|cause| refused(text, cause))
}

/// Acquires an image, unless it is here: first itself among what was acquired, then its parts.
pub(super) async fn acquire(
    workshop: &Workshop<'_>,
    text: &str,
) -> Result<Vec<Artefact>, AcquireError> {
    let reference = read(text)?;
    let image = artefact(&reference, &reference.digest, None);
    // What the digest stands for is in the lock by the digest, also where a machine of another kind made the lock.
    if let Some(locked) = workshop.locked(Method::Container, &image.shown())?
        && !locked.contains(&image)
    {
        return Err(AcquireError::NotLocked(image.shown()));
    }
    let images = &workshop.sources.images;
    if images.by == Bringer::Engine || is_here(workshop, &reference) {
        return Ok(vec![image]);
    }
    let place = Place::of(&reference.name, images.mirror.as_ref())?;
    let origin = place.origin(None);
    let mut pull = Pull { workshop, name: &reference.name, place, origin };
    let pulled = pull.all(&reference).await?;
    put(workshop, &reference, &pulled)?;
    let parts = pulled.parts.iter().map(|part| {
        let place = format!("{FOLDER}/{}", blob(&part.digest));
        artefact(&reference, &part.digest, Some(place))
    });
    // An image may name one layer twice.
    let mut seen = BTreeSet::from([image.sha256.to_string()]);
    let parts: Vec<_> = parts.filter(|one| seen.insert(one.sha256.to_string())).collect();
    Ok([vec![image], parts].concat())
}

/// An image whose parts are all kept.
#[derive(Debug)]
struct Pulled {
    /// What kind of document the digest stands for.
    media_type: &'static str,
    /// Every part, that document first.
    parts: Vec<Part>,
}

/// An image on its way.
struct Pull<'p> {
    workshop: &'p Workshop<'p>,
    name: &'p str,
    place: Place,
    origin: Origin,
}

impl Pull<'_> {
    /// Has every part of an image kept.
    async fn all(&mut self, reference: &Reference) -> Result<Pulled, AcquireError> {
        let limits = Limits::DEFAULT;
        let refuse = |cause| refused(&reference.to_string(), cause);
        let (mut digest, mut size, mut media_type) = (reference.digest.clone(), None, None);
        let mut had = Vec::new();
        for _ in 0..=MOST_INDEXES {
            let url = self.place.manifest(&digest);
            let bytes = self.document(url, &digest, size, Some(ACCEPTED)).await?;
            had.push(Part { digest: digest.clone(), size: bytes.len() as u64 });
            let found = Parts::read(&bytes, &digest, &limits).map_err(refuse)?;
            let media_type = *media_type.get_or_insert(found.media_type());
            match found {
                Parts::Next(part) => (digest, size) = (part.digest, Some(part.size)),
                Parts::All { config, layers } => {
                    let url = self.place.blob(&config.digest);
                    let settings =
                        self.document(url, &config.digest, Some(config.size), None).await?;
                    parts::check_settings(&settings, &config.digest, layers.len())
                        .map_err(refuse)?;
                    self.layers(&layers).await?;
                    had.push(config);
                    had.extend(layers);
                    return Ok(Pulled { media_type, parts: had });
                }
            }
        }
        let place = reference.to_string();
        Err(AcquireError::Place { place, why: "one index leads to another, again and again" })
    }

    /// A document, whole.
    async fn document(
        &mut self,
        url: Url,
        digest: &image::Digest,
        size: Option<u64>,
        accept: Option<&'static str>,
    ) -> Result<Vec<u8>, AcquireError> {
        let most = size.unwrap_or(Limits::DEFAULT.document_bytes);
        let accept = accept.map(HeaderValue::from_static);
        let shown = format!("`{}@{digest}`", self.name);
        let known = Known { shown, url, digest: plain(digest), most, accept };
        let files = self.workshop.files.clone();
        self.signed_in(&known.url.clone(), async |origin| files.have(&known, origin).await).await?;
        let mut bytes = Vec::new();
        self.checked(digest, size)?.take(most).read_to_end(&mut bytes).map_err(|error| {
            AcquireError::Disk(self.workshop.store.cache.folder().into(), error)
        })?;
        Ok(bytes)
    }

    /// Has all layers. Where nobody is asked, all that are missing are told at once.
    async fn layers(&mut self, layers: &[Part]) -> Result<(), AcquireError> {
        let workshop = self.workshop;
        let known = |(at, layer): (usize, &Part)| Known {
            shown: format!("layer {} of {} of `{}`", at + 1, layers.len(), self.name),
            url: self.place.blob(&layer.digest),
            digest: plain(&layer.digest),
            most: layer.size,
            accept: None,
        };
        let mut all: Vec<_> = layers.iter().enumerate().map(known).collect();
        // Two that wait for one file would only stand in each other's way.
        let mut seen = BTreeSet::new();
        all.retain(|one| seen.insert(one.digest.to_string()));
        if workshop.sources.reach == Reach::Offline {
            let mut missing = Vec::new();
            for one in &all {
                if !workshop.store.has(one.digest)? {
                    missing.push(one.shown.clone());
                }
            }
            if !missing.is_empty() {
                return Err(AcquireError::Offline(missing));
            }
        }
        if let Some(first) = all.first().map(|one| one.url.clone()) {
            let fetch = async |origin: &Origin| {
                let each = all.iter().map(|one| workshop.files.have(one, origin));
                stream::iter(each).buffer_unordered(AT_ONCE).try_collect::<()>().await
            };
            self.signed_in(&first, fetch).await?;
        }
        for layer in layers {
            self.checked(&layer.digest, Some(layer.size))?;
        }
        Ok(())
    }

    /// Asks, and once more with a new token where the registry wants to see one.
    async fn signed_in(
        &mut self,
        url: &Url,
        ask: impl AsyncFn(&Origin) -> Result<(), AcquireError>,
    ) -> Result<(), AcquireError> {
        let asked = match ask(&self.origin).await {
            Err(error) if status(&error) == Some(401) => {
                let token = token::fetch(self.workshop, &self.place, url, self.name).await?;
                self.origin = self.place.origin(Some(token));
                ask(&self.origin).await
            }
            asked => asked,
        };
        asked.map_err(|error| match status(&error) {
            Some(401 | 403) => unshared(self.name),
            _ => error,
        })
    }

    /// A part that is kept, if it has as many bytes as was said.
    fn checked(&self, digest: &image::Digest, size: Option<u64>) -> Result<fs::File, AcquireError> {
        let broken = |error| AcquireError::Disk(self.workshop.store.cache.folder().into(), error);
        let gone = || broken(std::io::ErrorKind::NotFound.into());
        let file = self.workshop.store.open(plain(digest))?.ok_or_else(gone)?;
        let there = file.metadata().map_err(broken)?.len();
        match size.filter(|size| *size != there) {
            None => Ok(file),
            Some(size) => Err(AcquireError::Digest {
                what: format!("a part of `{}`", self.name),
                described: format!("{size} bytes of {digest}"),
                arrived: format!("{there} bytes of {digest}"),
            }),
        }
    }
}

/// Whether an image lies on this machine, where it can be unpacked again and again.
fn is_here(workshop: &Workshop<'_>, reference: &Reference) -> bool {
    let nowhere = workshop.folder.to_owned();
    let images = image::Store::at(workshop.sources.images.folder.clone().unwrap_or(nowhere));
    let places: Vec<&Path> = workshop.beside.into_iter().collect();
    // One that is refused may be had whole from its registry.
    images.find_packed(&reference.digest, &places).is_ok_and(|found| found.is_some())
}

/// Puts the parts of an image down as a layout.
fn put(
    workshop: &Workshop<'_>,
    reference: &Reference,
    pulled: &Pulled,
) -> Result<(), AcquireError> {
    let layout = workshop.folder.join(FOLDER);
    let made = fs::create_dir_all(layout.join("blobs/sha256"));
    made.map_err(|error| AcquireError::Disk(layout.clone(), error))?;
    for part in &pulled.parts {
        let path = layout.join(blob(&part.digest));
        if !path.exists() {
            workshop.store.copy(plain(&part.digest), &path)?;
        }
    }
    let size = pulled.parts.first().map_or(0, |part| part.size);
    let named = serde_json::json!({
        "mediaType": pulled.media_type, "digest": reference.digest.to_string(), "size": size,
    });
    let index = serde_json::json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [named],
    });
    let version = serde_json::json!({"imageLayoutVersion": "1.0.0"});
    for (name, text) in [("index.json", index), ("oci-layout", version)] {
        let path = layout.join(name);
        fs::write(&path, text.to_string()).map_err(|error| AcquireError::Disk(path, error))?;
    }
    // Whoever runs it reads it in the same way.
    let found = image::Store::at(layout).find_packed(&reference.digest, &[]);
    found.map(drop).map_err(|cause| refused(&reference.to_string(), cause))
}

/// Where a layout keeps the bytes of a digest.
fn blob(digest: &image::Digest) -> String {
    format!("blobs/sha256/{}", digest.digits())
}

/// An image or a part of it, as the lock has it: wherever it is had, it is the same.
fn artefact(reference: &Reference, digest: &image::Digest, place: Option<String>) -> Artefact {
    let name = reference.name.clone();
    let url = format!("{name}@{digest}");
    let (method, version) = (Method::Container, String::new());
    Artefact { method, name, version, url, sha256: plain(digest), place }
}

fn plain(digest: &image::Digest) -> Digest {
    Digest::parse(digest.digits()).expect("both are 64 digits in lower case")
}

fn status(error: &AcquireError) -> Option<u16> {
    let AcquireError::Fetch { cause, .. } = error else { return None };
    match **cause {
        FetchError::Refused { status, .. } => Some(status),
        _ => None,
    }
}

fn refused(what: &str, cause: image::ImageError) -> AcquireError {
    AcquireError::Image { what: what.to_owned(), cause: Box::new(cause) }
}

/// An image that its registry does not give to everybody.
fn unshared(name: &str) -> AcquireError {
    AcquireError::Absent {
        what: format!("the image `{name}`"),
        why: "its registry gives it to nobody who does not sign in; an archive of it in `images/` of the home counts",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_a_digest() {
        let digest = "ab".repeat(32);
        let found = read(&format!("registry.test/tools/echo:1@sha256:{digest}")).unwrap();
        let image = artefact(&found, &found.digest, None);
        assert_eq!(image.name, "registry.test/tools/echo");
        assert_eq!(image.url, format!("registry.test/tools/echo@sha256:{digest}"));
        for bad in ["echo", "echo:latest", "echo@sha256:00", &format!("-x@sha256:{digest}")] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
