//! Container images, by their digests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use egress::Rule;
use egress::http::Url;
use install::acquire::{
    AcquireError, Acquired, Bringer, Images, Index, Kind, Method, Reach, Sources,
};
use manifest::model::Acquire;
use serde_json::Value;

use crate::world::{Home, ask_at, certificate, names, offline};

/// A registry, until this is dropped.
struct Registry {
    server: Child,
    world: BTreeMap<String, Value>,
    certificate: PathBuf,
    _folder: tempfile::TempDir,
}

impl Registry {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = certificate(folder.path());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acquire/images.py");
        let mut server = Command::new("python3")
            .arg(script)
            .args([&certificate, &key])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let world = serde_json::from_str(&said).expect("it begins with what it has");
        Self { server, world, certificate, _folder: folder }
    }

    fn port(&self, name: &str) -> u16 {
        u16::try_from(self.world[name].as_u64().unwrap()).unwrap()
    }

    fn digest(&self, name: &str) -> &str {
        self.world[name].as_str().unwrap()
    }

    /// One of its images, served in one of its ways.
    fn image(&self, way: &str, which: &str) -> Acquire {
        let image = format!("images.test/{way}/greet@{}", self.digest(which));
        Acquire::Container { image }
    }

    /// An owner who has this registry in place of all others.
    fn sources(&self) -> Sources {
        let url = format!("http://127.0.0.1:{}", self.port("port"));
        let mirror = Some(Index::at(Url::parse(&url).unwrap()));
        let search = std::env::var_os("PATH").unwrap();
        let certificates = Some(self.certificate.clone());
        let images = Images { mirror, ..Images::default() };
        Sources { images, search, certificates, ..Sources::default() }
    }

    /// What was asked for, and what was shown along with it.
    fn seen(&self) -> Vec<(String, String)> {
        let port = self.port("port");
        serde_json::from_str(&ask_at(port, "/seen")).unwrap()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ended_already = self.server.kill();
        let _ended_already = self.server.wait();
    }
}

async fn pulled(registry: &Registry, way: &str, which: &str) -> (Home, Acquired, PathBuf) {
    let home = Home::new();
    let what = registry.image(way, which);
    let (acquired, place) = home.acquire(&what, &[], &registry.sources(), None).await.unwrap();
    (home, acquired, place)
}

async fn refused(registry: &Registry, way: &str, which: &str) -> AcquireError {
    let home = Home::new();
    home.acquire(&registry.image(way, which), &[], &registry.sources(), None).await.unwrap_err()
}

/// Whether a folder holds the image that a digest stands for.
fn holds(place: &Path, digest: &str) -> bool {
    let digest = image::Digest::parse(digest).unwrap();
    image::Store::at(place.join("none")).find_packed(&digest, &[place]).unwrap().is_some()
}

#[tokio::test]
async fn an_image_becomes_a_layout_and_a_second_time_needs_no_network() {
    let registry = Registry::new();
    for which in ["manifest", "docker"] {
        let (home, acquired, place) = pulled(&registry, "plain", which).await;
        assert_eq!(names(&place.join("image")), ["blobs", "index.json", "oci-layout"]);
        assert!(holds(&place, registry.digest(which)));
        // The image itself, its settings and two layers.
        assert_eq!(acquired.artefacts.len(), 4, "{:?}", acquired.artefacts);
        let image = &acquired.artefacts[0];
        assert_eq!(
            (image.method, image.name.as_str()),
            (Method::Container, "images.test/plain/greet")
        );
        assert_eq!(format!("sha256:{}", image.sha256), registry.digest(which));
        assert_eq!(acquired.commands, [""; 0]);
        let what = registry.image("plain", which);
        let before = registry.seen().len();
        let sources = offline(&registry.sources());
        let again = home.acquire(&what, &[], &sources, Some(&acquired.artefacts)).await;
        assert_eq!(again.unwrap().0, acquired);
        assert_eq!(registry.seen().len(), before);
        let unknown = Home::new().acquire(&what, &[], &sources, None).await.unwrap_err();
        assert!(matches!(unknown, AcquireError::Offline(_)), "{unknown}");
    }
}

#[tokio::test]
async fn of_an_index_the_image_for_this_machine_is_had() {
    let registry = Registry::new();
    let (_home, acquired, place) = pulled(&registry, "plain", "index").await;
    assert!(holds(&place, registry.digest("index")));
    let digests: Vec<_> =
        acquired.artefacts.iter().map(|one| format!("sha256:{}", one.sha256)).collect();
    assert_eq!(digests[..2], [registry.digest("index"), registry.digest("manifest")]);
    assert_eq!(digests.len(), 5);
    // Of the others nothing was asked for.
    let alien = registry.digest("mismatch");
    assert!(!registry.seen().iter().any(|(path, _)| path.contains(alien)));
}

#[tokio::test]
async fn what_is_for_another_machine_is_refused_before_its_layers_are_had() {
    let registry = Registry::new();
    for which in ["alien", "mismatch"] {
        let error = refused(&registry, "plain", which).await;
        assert_eq!(error.kind(), Kind::Unavailable, "{error}");
        let AcquireError::Image { cause, .. } = &error else { panic!("{error}") };
        assert_eq!(cause.code(), Some(image::Code::WrongPlatform), "{which}");
    }
    let blobs = registry.seen().into_iter().filter(|(path, _)| path.contains("/blobs/"));
    // The settings of the one that is no index.
    assert_eq!(blobs.count(), 1);
}

#[tokio::test]
async fn other_bytes_half_of_them_and_wrong_sizes_are_refused() {
    let registry = Registry::new();
    for (way, which) in
        [("wrong", "manifest"), ("spoilt", "manifest"), ("short", "manifest"), ("plain", "liar")]
    {
        let error = refused(&registry, way, which).await;
        assert!(matches!(error, AcquireError::Digest { .. }), "{way}: {error}");
        assert_eq!(error.kind(), Kind::Untrustworthy, "{way}: {error}");
    }
}

#[tokio::test]
async fn a_token_is_fetched_where_the_registry_wants_to_see_one() {
    let registry = Registry::new();
    let (_home, acquired, _) = pulled(&registry, "locked", "manifest").await;
    assert_eq!(acquired.artefacts.len(), 4);
    let seen = registry.seen();
    let tokens: Vec<_> = seen.iter().filter(|(path, _)| path.starts_with("/token/")).collect();
    assert_eq!(tokens.len(), 1, "one serves for all: {seen:?}");
    assert_eq!(tokens[0].1, "");
    let blobs: Vec<_> = seen.iter().filter(|(path, _)| path.contains("/blobs/")).collect();
    assert!(blobs.iter().all(|(_, shown)| shown == "Bearer t0ken"), "{seen:?}");
}

#[tokio::test]
async fn nobody_is_asked_for_a_token_in_plain_but_the_owner_s_own_registry() {
    let registry = Registry::new();
    let error = refused(&registry, "astray", "manifest").await;
    assert!(matches!(error, AcquireError::Place { .. }), "{error}");
    assert!(error.to_string().contains("not `https`"), "{error}");
    let closed = refused(&registry, "closed", "manifest").await;
    assert!(matches!(closed, AcquireError::Absent { .. }), "{closed}");
}

#[tokio::test]
async fn a_layer_may_be_elsewhere_where_no_token_is_shown_and_nothing_private_reached() {
    let registry = Registry::new();
    for way in ["aside", "inward", "downward"] {
        let error = refused(&registry, way, "manifest").await;
        assert!(
            matches!(error, AcquireError::Fetch { .. } | AcquireError::Place { .. }),
            "{way}: {error}"
        );
    }
    let at_the_store = |registry: &Registry| {
        registry.seen().into_iter().filter(|(path, _)| path.starts_with("/store/")).count()
    };
    assert_eq!(at_the_store(&registry), 0);
    // Where the owner has named that place, it is reached, and shown nothing.
    let rule = Rule::parse(&format!("localhost:{}", registry.port("secure"))).unwrap();
    let mut sources = Sources { hosts: vec![rule.as_typed()], ..registry.sources() };
    let url = format!("http://name:word@127.0.0.1:{}", registry.port("port"));
    sources.images.mirror = Some(Index::at(Url::parse(&url).unwrap()));
    let what = registry.image("aside", "manifest");
    Home::new().acquire(&what, &[], &sources, None).await.unwrap();
    assert_eq!(at_the_store(&registry), 1);
    let seen = registry.seen();
    assert!(seen.iter().any(|(_, shown)| shown.starts_with("Basic ")), "{seen:?}");
}

#[tokio::test]
async fn a_registry_that_only_the_manifest_names_is_neither_plain_nor_private() {
    let registry = Registry::new();
    let sources = Sources { images: Images::default(), ..registry.sources() };
    for host in ["port", "secure"] {
        let digest = registry.digest("manifest");
        let image = format!("localhost:{}/plain/greet@{digest}", registry.port(host));
        let what = Acquire::Container { image };
        let error = Home::new().acquire(&what, &[], &sources, None).await.unwrap_err();
        assert!(matches!(error, AcquireError::Fetch { .. }), "{error}");
    }
    assert_eq!(registry.seen(), []);
}

#[tokio::test]
async fn what_is_here_or_left_to_an_engine_is_not_pulled() {
    let registry = Registry::new();
    let (_home, _, place) = pulled(&registry, "plain", "manifest").await;
    let kept = tempfile::tempdir().unwrap();
    std::fs::rename(place.join("image"), kept.path().join("greet")).unwrap();
    let before = registry.seen().len();
    let what = registry.image("plain", "manifest");
    let mut sources = Sources { reach: Reach::Offline, ..registry.sources() };
    sources.images.folder = Some(kept.path().to_owned());
    let home = Home::new();
    let (acquired, place) = home.acquire(&what, &[], &sources, None).await.unwrap();
    assert_eq!((acquired.artefacts.len(), names(&place).len()), (1, 0));
    sources.images = Images { by: Bringer::Engine, ..Images::default() };
    let (acquired, _) = Home::new().acquire(&what, &[], &sources, None).await.unwrap();
    assert_eq!(acquired.artefacts.len(), 1);
    assert_eq!(registry.seen().len(), before);
}

#[tokio::test]
async fn with_a_lock_it_is_the_locked_image_or_none() {
    let registry = Registry::new();
    let (home, acquired, _) = pulled(&registry, "plain", "index").await;
    let locked = Some(acquired.artefacts.as_slice());
    let other = registry.image("plain", "docker");
    let error = home.acquire(&other, &[], &registry.sources(), locked).await.unwrap_err();
    assert!(matches!(error, AcquireError::NotLocked(_)), "{error}");
    let error = home.acquire(&other, &[], &registry.sources(), Some(&[])).await.unwrap_err();
    assert!(matches!(error, AcquireError::NotLocked(_)), "{error}");
}
