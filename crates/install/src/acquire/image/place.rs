//! Where an image is had: at the registry that its name begins with, or at the mirror that the owner has put in its place.

use egress::Rule;
use egress::http::Url;

use crate::acquire::error::AcquireError;
use crate::acquire::fetch::Origin;
use crate::acquire::sources::{Index, rule_for};

/// A repository of a registry.
#[derive(Clone, Debug)]
pub(super) struct Place {
    index: Index,
    /// What lets a connection through to it: to a private place only where the owner has named it.
    rule: Option<Rule>,
    /// What comes after the host in the name of the image, and after a mirror's own prefix.
    repository: String,
}

impl Place {
    /// Where the image of this name is had.
    pub(super) fn of(name: &str, mirror: Option<&Index>) -> Result<Self, AcquireError> {
        let (host, path) = parted(name);
        let refuse = |place: &str, why| AcquireError::Place { place: place.to_owned(), why };
        let Some(mirror) = mirror else {
            // Which registry a short name means differs from machine to machine.
            let host = host.ok_or_else(|| {
                refuse(name, "its name begins with no registry, and no mirror of images is set")
            })?;
            let url = Url::parse(&format!("https://{host}/"));
            let url = url.map_err(|_| refuse(name, "its registry has no host"))?;
            let index = Index::at(url);
            return Ok(Self { rule: rule_for(&index.url), index, repository: path.to_owned() });
        };
        let url = mirror.plain();
        if !["http", "https"].contains(&url.scheme()) || !url.has_host() {
            return Err(refuse(url.as_str(), "a mirror of images is `https` or `http`"));
        }
        let prefix = url.path().trim_matches('/');
        let repository =
            if prefix.is_empty() { path.to_owned() } else { format!("{prefix}/{path}") };
        Ok(Self { rule: mirror.rule(), index: mirror.clone(), repository })
    }

    /// What the registry calls it.
    pub(super) fn repository(&self) -> &str {
        &self.repository
    }

    /// Where an index or a manifest is.
    pub(super) fn manifest(&self, digest: &image::Digest) -> Url {
        self.below(&format!("manifests/{digest}"))
    }

    /// Where settings and layers are.
    pub(super) fn blob(&self, digest: &image::Digest) -> Url {
        self.below(&format!("blobs/{digest}"))
    }

    /// Whom its parts are taken from: the registry, which is shown a token where there is one, and whoever it sends to.
    pub(super) fn origin(&self, token: Option<String>) -> Origin {
        let url = self.index.url.clone();
        let index = match token {
            Some(token) => Index { url, token: Some(token) },
            None => self.index.clone(),
        };
        Origin::Registry(index, self.rule.clone())
    }

    /// The registry itself.
    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    fn below(&self, path: &str) -> Url {
        let mut url = self.index.plain();
        // Names of images hold no letters that would mean something else here.
        url.set_path(&format!("/v2/{}/{path}", self.repository));
        url.set_query(None);
        url.set_fragment(None);
        url
    }
}

/// The host and the rest of a name. What comes first is a host only where it looks like one.
fn parted(name: &str) -> (Option<&str>, &str) {
    match name.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => {
            (Some(host), path)
        }
        _ => (None, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(name: &str, mirror: Option<&str>) -> String {
        let mirror = mirror.map(|url| Index::at(Url::parse(url).unwrap()));
        let place = Place::of(name, mirror.as_ref()).unwrap();
        place.blob(&image::Digest::of(b"")).as_str().split("/blobs/").next().unwrap().to_owned()
    }

    #[test]
    fn a_name_leads_to_its_registry_and_a_short_one_nowhere() {
        for (name, place) in [
            ("registry.test/acme/echo", "https://registry.test/v2/acme/echo"),
            ("registry.test:5000/echo", "https://registry.test:5000/v2/echo"),
            ("localhost/echo", "https://localhost/v2/echo"),
        ] {
            assert_eq!(url(name, None), place);
        }
        for short in ["echo", "acme/echo"] {
            assert!(Place::of(short, None).is_err());
            assert_eq!(url(short, Some("https://m.test")), format!("https://m.test/v2/{short}"));
        }
    }

    #[test]
    fn a_mirror_stands_in_place_of_the_host() {
        for (mirror, place) in [
            ("http://127.0.0.1:5000", "http://127.0.0.1:5000/v2/acme/echo"),
            ("https://name:word@m.test/proxy/", "https://m.test/v2/proxy/acme/echo"),
        ] {
            assert_eq!(url("registry.test/acme/echo", Some(mirror)), place);
        }
        let mirror = Index::at(Url::parse("file:///tmp").unwrap());
        assert!(Place::of("echo", Some(&mirror)).is_err());
    }

    #[test]
    fn only_a_mirror_may_be_a_private_place() {
        let reach = |place: Place| place.rule.unwrap().reach();
        let named = Place::of("localhost:5000/echo", None).unwrap();
        assert_eq!(reach(named), egress::rules::Reach::Public);
        let mirror = Index::at(Url::parse("http://localhost:5000").unwrap());
        let typed = Place::of("echo", Some(&mirror)).unwrap();
        assert_eq!(reach(typed), egress::rules::Reach::Private);
    }
}
