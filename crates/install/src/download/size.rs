//! How much of a file is taken, judged from how it begins.

use manifest::document::{MAX_BUNDLE, MAX_CATALOG, MAX_INDEX, MAX_MANIFEST, size_limit};
use registry::client::Limits;

use super::error::DownloadError;

/// How much of a file is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// As much as what it begins as may have.
    AsItBegins,
    /// So many bytes, as it is this.
    UpTo(u64, &'static str),
}

impl Size {
    /// The most that is ever taken.
    pub(super) fn most(self) -> u64 {
        match self {
            Self::AsItBegins => Limits::DEFAULT.bundle.max(Limits::DEFAULT.package),
            Self::UpTo(most, _) => most,
        }
    }

    /// Refuses what is longer than it may be, as far as it has come.
    pub(super) fn check(self, bytes: &[u8]) -> Result<(), DownloadError> {
        let (most, noun) = match self {
            // No kind of file may have less, so nothing need be looked at before.
            Self::AsItBegins if bytes.len() <= MAX_MANIFEST => return Ok(()),
            Self::AsItBegins => limit(bytes),
            Self::UpTo(most, noun) => (most, noun),
        };
        if bytes.len() as u64 > most {
            return Err(DownloadError::TooLarge(noun, most));
        }
        Ok(())
    }
}

/// The most that a file may have which begins so, and what it is.
fn limit(bytes: &[u8]) -> (u64, &'static str) {
    if bytes.starts_with(b"PK") {
        return (Limits::DEFAULT.package, "an archive");
    }
    match size_limit(bytes) {
        MAX_BUNDLE => (Limits::DEFAULT.bundle, "a bundle"),
        MAX_CATALOG => (MAX_CATALOG as u64, "a catalog"),
        MAX_INDEX => (MAX_INDEX as u64, "an index"),
        // Nothing else that may have more is installed.
        _ => (MAX_MANIFEST as u64, "a manifest"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_file_may_have_as_much_as_its_kind() {
        let refused = |begin: &str, length: usize| {
            let mut bytes = begin.as_bytes().to_vec();
            bytes.resize(length, b' ');
            match Size::AsItBegins.check(&bytes) {
                Err(DownloadError::TooLarge(noun, _)) => Some(noun),
                _ => None,
            }
        };
        let (mib, over) = (1 << 20, (1 << 20) + 1);
        assert_eq!(refused("{\"toolId\": 1,", mib), None);
        assert_eq!(refused("{\"toolId\": 1,", over), Some("a manifest"));
        assert_eq!(refused("neither", over), Some("a manifest"));
        assert_eq!(refused("{\"capabilities\": [", 16 * mib), None);
        assert_eq!(refused("{\"capabilities\": [", 16 * mib + 1), Some("a catalog"));
        assert_eq!(refused("{\"manifests\": [], \"publisher\": {", 2 * mib + 1), Some("an index"));
        assert_eq!(refused("{\"manifest\": {", 17 * mib), None);
        assert_eq!(refused("PK\u{3}\u{4}", 64 * mib), None);
        assert_eq!(refused("PK\u{3}\u{4}", 64 * mib + 1), Some("an archive"));
    }
}
