//! One file from anywhere, known by its digest; where nobody says what that is, the first one counts from then on.

use std::path::PathBuf;

use egress::http::Url;
use package::digest::Digest;

use super::artefact::{Artefact, Method, shown};
use super::error::AcquireError;
use super::fetch::Origin;
use super::sources::plain;
use super::unpack::{is_below, make_executable};
use super::workshop::Workshop;

/// Where the file lies, below the folder.
pub(super) const FOLDER: &str = "bin";

/// What an archive begins with: such a file is no program, and nobody unpacks it here.
const ARCHIVES: [&[u8]; 5] = [b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"];

/// Reads what a manifest names: where the file is, what it is where that is known, and what it is called.
pub(super) fn read(url: &str, sha256: &str) -> Result<(Url, Option<Digest>, String), AcquireError> {
    let refuse = |why| AcquireError::Place { place: url.to_owned(), why };
    let digest = match sha256 {
        "" => None,
        text => Some(Digest::parse(text).ok_or_else(|| refuse("its digest is no SHA-256"))?),
    };
    let parsed = Url::parse(url).ok().filter(|url| url.scheme() == "https" && url.has_host());
    let parsed = parsed.ok_or_else(|| refuse("it is not `https`"))?;
    let last = parsed.path_segments().and_then(|mut segments| segments.next_back());
    let name = percent_encoding::percent_decode_str(last.unwrap_or_default()).decode_utf8_lossy();
    let is_plain = manifest::path::check_path(&name).is_ok() && !name.contains('/');
    if !is_plain || !is_below(name.as_ref().as_ref()) || name.starts_with('-') {
        return Err(refuse("its last part is not the name of a file"));
    }
    Ok((parsed.clone(), digest, name.into_owned()))
}

/// Acquires it.
pub(super) async fn acquire(
    workshop: &Workshop<'_>,
    url: &str,
    sha256: &str,
) -> Result<(Artefact, PathBuf), AcquireError> {
    let (url, sha256, name) = read(url, sha256)?;
    let of = |sha256| Artefact {
        method: Method::Url,
        name: name.clone(),
        version: String::new(),
        url: plain(&url).to_string(),
        sha256,
        place: None,
    };
    let shown = shown(&name, "");
    let locked = workshop.locked(Method::Url, &shown)?;
    let is_same = |one: &&Artefact| **one == of(sha256.unwrap_or(one.sha256));
    let pinned = locked.as_ref().map(|locked| locked.iter().find(is_same));
    let sha256 = match (pinned, sha256) {
        (Some(None), _) => return Err(AcquireError::NotLocked(shown)),
        (Some(Some(pinned)), _) => Some(pinned.sha256),
        (None, sha256) => sha256,
    };
    let sha256 = match sha256 {
        Some(sha256) => {
            // One that comes with the package is as good as one that is fetched: what it is, its digest says.
            if let Some(beside) = workshop.beside
                && !workshop.store.has(sha256)?
                && let Ok(bytes) = std::fs::read(beside.join(&name))
                && Digest::of(&bytes) == sha256
            {
                workshop.store.put(&bytes)?;
            }
            workshop.files.known(&shown, &url, sha256, &Origin::Anybody).await?;
            sha256
        }
        None => {
            let bytes = workshop.files.unknown(&shown, &url, &Origin::Anybody).await?;
            workshop.store.put(&bytes)?
        }
    };
    let artefact = of(sha256);
    let folder = workshop.folder.join(FOLDER);
    std::fs::create_dir(&folder).map_err(|error| AcquireError::Disk(folder.clone(), error))?;
    let path = folder.join(&name);
    workshop.store.copy(sha256, &path)?;
    let disk = |error| AcquireError::Disk(path.clone(), error);
    if !is_archive(&path).map_err(disk)? {
        make_executable(&path).map_err(disk)?;
    }
    Ok((artefact, PathBuf::from(FOLDER).join(name)))
}

fn is_archive(path: &std::path::Path) -> std::io::Result<bool> {
    use std::io::Read;
    let mut first = Vec::new();
    std::fs::File::open(path)?.take(8).read_to_end(&mut first)?;
    Ok(ARCHIVES.iter().any(|begin| first.starts_with(begin)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_is_had_by_https_and_has_a_name() {
        let digest = "ab".repeat(32);
        let (_, _, name) = read("https://a.test/x/tool-1.0?token=1", &digest).unwrap();
        assert_eq!(name, "tool-1.0");
        for url in [
            "http://a.test/x",
            "https://a.test/",
            "https://a.test/%2e%2e",
            "https://a.test/a%2f..%2fb",
            "https://a.test/-x",
            "file:///etc/passwd",
            "x",
        ] {
            assert!(read(url, &digest).is_err(), "{url}");
        }
        assert!(read("https://a.test/x", "AB").is_err());
    }
}
