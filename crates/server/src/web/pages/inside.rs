//! What is inside a version: its manifest, its README, its tests. It never changes, so it is kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use manifest::model::Package;
use package::archive::{Archive, Trailer};
use package::contents::Contents;
use package::digest::Digest;
use package::limits::Limits;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinError;

use super::date::bytes;
use super::inert::short;
use super::markdown;
use crate::service::Registry;
use crate::store::versions::{FindError, Known};
use crate::stored::read_manifest;
use crate::upload::plain;

/// What a README is called, best first; an agent skill has its text in the last.
const READMES: [&str; 5] = ["readme.md", "readme.markdown", "readme.txt", "readme", "skill.md"];
/// The most bytes of a README that are read, and that are shown.
const README: (u64, usize) = (1 << 20, 256 << 10);
/// How many tests are read, and the most bytes of one.
const TESTS: (usize, u64) = (50, 64 << 10);
/// How many files are listed.
const FILES: usize = 200;
/// How many versions are kept, and how many bytes of text.
const KEPT: (usize, usize) = (512, 16 << 20);
/// How many packages are read side by side: each is in memory while it is.
const READING: usize = 2;

/// What is inside a version.
#[derive(Debug)]
pub(super) struct Inside {
    /// What its manifest says; none when it cannot be read any more.
    pub(super) package: Option<Package>,
    pub(super) files: Option<Files>,
    weight: usize,
}

/// What its files say.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) readme: Option<Readme>,
    pub(super) cases: Vec<Case>,
    /// Paths and sizes, in words.
    pub(super) list: Vec<(String, String)>,
    pub(super) count: usize,
}

/// A README.
#[derive(Debug)]
pub(super) struct Readme {
    pub(super) path: String,
    /// As HTML that was made by us.
    pub(super) html: String,
    pub(super) is_cut: bool,
}

/// A test that the package carries.
#[derive(Debug)]
pub(super) struct Case {
    /// The path of its file.
    pub(super) path: String,
    pub(super) name: String,
    pub(super) about: String,
    pub(super) checks: usize,
}

/// What was read of versions, by the digest of their file.
#[derive(Debug)]
pub(super) struct Cache {
    kept: Mutex<Kept>,
    reading: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Kept {
    by_digest: HashMap<String, (u64, Arc<Inside>)>,
    weight: usize,
    clock: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Self { kept: Mutex::default(), reading: Arc::new(Semaphore::new(READING)) }
    }
}

impl Cache {
    /// What is inside a version. When its file cannot be had, the manifest alone; that is not kept.
    pub(super) async fn inside(
        self: &Arc<Self>,
        registry: &Registry,
        known: &Known,
        name: &str,
    ) -> Result<Arc<Inside>, FindError> {
        if let Some(inside) = self.get(&known.digest) {
            return Ok(inside);
        }
        let turn = Arc::clone(&self.reading).acquire_owned().await;
        if let Some(inside) = self.get(&known.digest) {
            return Ok(inside);
        }
        let manifest = registry.store.manifest(&known.id, &known.version).await?;
        let manifest = manifest.ok_or(FindError::NoVersion)?;
        let (cache, blobs, limits) =
            (Arc::clone(self), registry.blobs.clone(), registry.settings.limits);
        let (digest, name) = (known.digest.clone(), name.to_owned());
        // Reading goes on when whoever asked hangs up, and so the turn is taken until it is done.
        let reading = tokio::spawn(async move {
            let _turn = turn;
            let bytes = match Digest::parse(&digest) {
                Some(digest) => blobs.get(digest).await.ok(),
                None => None,
            };
            let work = move || look(&manifest, &name, bytes.map(Vec::from), &limits);
            let inside = Arc::new(tokio::task::spawn_blocking(work).await?);
            if inside.files.is_some() {
                cache.keep(&digest, &inside);
            }
            Ok::<_, JoinError>(inside)
        });
        let nothing = || Arc::new(Inside { package: None, files: None, weight: 0 });
        Ok(reading.await.and_then(|read| read).unwrap_or_else(|_| nothing()))
    }

    fn get(&self, digest: &str) -> Option<Arc<Inside>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        let (used, inside) = kept.by_digest.get_mut(digest)?;
        *used = now;
        Some(Arc::clone(inside))
    }

    fn keep(&self, digest: &str, inside: &Arc<Inside>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        kept.weight += inside.weight;
        if let Some((_, old)) = kept.by_digest.insert(digest.to_owned(), (now, Arc::clone(inside)))
        {
            kept.weight -= old.weight;
        }
        while kept.by_digest.len() > KEPT.0 || kept.weight > KEPT.1 {
            let oldest = kept.by_digest.iter().min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(digest, _)| digest.clone()) else { break };
            if let Some((_, gone)) = kept.by_digest.remove(&oldest) {
                kept.weight -= gone.weight;
            }
        }
    }
}

fn look(manifest: &[u8], name: &str, bytes: Option<Vec<u8>>, limits: &Limits) -> Inside {
    let package = read_manifest(manifest, name);
    let archive = bytes.and_then(|bytes| Archive::from_bytes(bytes, Trailer::Refused, limits).ok());
    let files = archive.map(|archive| files(&archive, package.as_ref()));
    let readme = files.as_ref().and_then(|files| files.readme.as_ref());
    let weight = manifest.len() * 4
        + readme.map_or(0, |readme| readme.html.len())
        + files
            .as_ref()
            .map_or(0, |files| files.list.iter().map(|(path, _)| path.len() + 32).sum())
        + 1_024;
    Inside { package, files, weight }
}

fn files(contents: &dyn Contents, package: Option<&Package>) -> Files {
    let paths = contents.paths();
    let mut list: Vec<(String, String)> = paths
        .iter()
        .take(FILES)
        .map(|path| ((*path).to_owned(), bytes(contents.size(path).unwrap_or(0))))
        .collect();
    list.sort();
    let tests = package.map_or(&[][..], |package| package.tests.as_slice());
    let cases = tests.iter().take(TESTS.0).filter_map(|path| case(contents, path)).collect();
    Files { readme: readme(contents, &paths), cases, list, count: paths.len() }
}

/// The README at the root, or in the folder that holds everything.
fn readme(contents: &dyn Contents, paths: &[&str]) -> Option<Readme> {
    let rank = |path: &str| {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let place = READMES.iter().position(|known| name.eq_ignore_ascii_case(known))?;
        (folder.matches('/').count() == 0).then_some((!folder.is_empty(), place))
    };
    let (_, path) = paths.iter().filter_map(|path| Some((rank(path)?, *path))).min()?;
    if contents.size(path)? > README.0 {
        return None;
    }
    let bytes = contents.read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut end = text.len().min(README.1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let shown = &text[..end];
    let is_markdown = !path.to_ascii_lowercase().ends_with(".txt");
    let html = if is_markdown {
        markdown::render(shown)
    } else {
        format!("<pre tabindex=\"0\">{}</pre>", super::inert::escaped(shown))
    };
    Some(Readme { path: path.to_owned(), html, is_cut: end < text.len() })
}

fn case(contents: &dyn Contents, path: &str) -> Option<Case> {
    let plain = plain(path);
    if contents.size(plain)? > TESTS.1 {
        return None;
    }
    let value: Value = serde_json::from_slice(&contents.read(plain).ok()?).ok()?;
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(Case {
        path: plain.to_owned(),
        name: short(&text("name").unwrap_or_else(|| plain.to_owned()), 80),
        about: short(&text("description").unwrap_or_default(), 300),
        checks: value.get("assertions").and_then(Value::as_array).map_or(0, Vec::len)
            + usize::from(value.get("expected").is_some()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_the_longest_unused_goes() {
        let cache = Cache::default();
        let inside = |weight| Arc::new(Inside { package: None, files: None, weight });
        for n in 0..KEPT.0 {
            cache.keep(&n.to_string(), &inside(1));
        }
        assert!(cache.get("0").is_some());
        cache.keep("one more", &inside(1));
        assert!(cache.get("1").is_none() && cache.get("0").is_some());
        cache.keep("large", &inside(KEPT.1 - 3));
        let kept = cache.kept.lock().unwrap();
        assert!(kept.weight <= KEPT.1 && kept.by_digest.len() <= 4, "{}", kept.by_digest.len());
        assert!(kept.by_digest.contains_key("large"));
    }
}
