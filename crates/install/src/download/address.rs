//! The address of a file, as the owner typed it.

use std::fmt;

use egress::Rule;
use egress::http::{Url, is_here};
use egress::rules::RuleError;
use package::digest::Digest;

/// Where the index of a site is.
const INDEX: &str = "/.well-known/install-manifests.json";
/// What a fragment begins with that says what the file must be.
const PIN: &str = "sha256=";

/// The address of a file: `https`, or `http` on this machine, perhaps with the digest that the file must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAddress {
    url: Url,
    digest: Option<Digest>,
}

/// Why a text is no address that anything is fetched from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// It is no URL.
    NoUrl(String),
    /// Everybody on the way could change what is fetched.
    Plain,
    /// It holds a name or a password.
    Userinfo,
    /// What stands after `#` is no digest.
    Fragment,
    /// Its host cannot be dialled.
    Host(RuleError),
}

impl fmt::Display for AddressError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUrl(why) => write!(out, "it is no URL: {why}"),
            Self::Plain => out
                .write_str("it is not `https`, so anybody on the way could change what is fetched"),
            Self::Userinfo => out
                .write_str("it holds a name or a password, which does not belong into an address"),
            Self::Fragment => out.write_str("after `#` stands `sha256=` and 64 digits, or nothing"),
            Self::Host(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for AddressError {}

impl FileAddress {
    /// Reads an address.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let url = Url::parse(text.trim());
        let mut url = url.map_err(|error| AddressError::NoUrl(error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressError::Userinfo);
        }
        let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_here(&url));
        if !is_safe || !url.has_host() {
            return Err(AddressError::Plain);
        }
        let digest = match url.fragment() {
            None | Some("") => None,
            Some(fragment) => {
                let hex = fragment.strip_prefix(PIN).map(str::to_ascii_lowercase);
                let digest = hex.as_deref().and_then(Digest::parse);
                Some(digest.ok_or(AddressError::Fragment)?)
            }
        };
        url.set_fragment(None);
        rule(&url).map_err(AddressError::Host)?;
        Ok(Self { url, digest })
    }

    /// The URL, without the digest.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The digest that the file must have.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// The address as it is told and written down: its parameters may hold what is secret.
    pub fn shown(&self) -> String {
        shown(&self.url)
    }

    /// The index of a site, where this is one or names nothing but a site.
    pub fn index(&self) -> Option<Self> {
        if self.url.path().ends_with(INDEX) {
            return Some(self.clone());
        }
        if !matches!(self.url.path(), "" | "/") || self.url.query().is_some() {
            return None;
        }
        let mut url = self.url.clone();
        url.set_path(INDEX);
        Some(Self { url, digest: self.digest })
    }

    /// The last part of the path that is not empty, as it was before it was put into an address.
    pub fn file_name(&self) -> String {
        self.parts().pop().unwrap_or_default()
    }

    /// What a package is called there that has no name of its own: the folder that its file is in, else the file.
    pub fn folder_name(&self) -> String {
        let mut parts = self.parts();
        let file = parts.pop().unwrap_or_default();
        let stem = || file.split('.').next().unwrap_or_default().to_owned();
        parts.pop().unwrap_or_else(stem)
    }

    fn parts(&self) -> Vec<String> {
        let decoded = |part: &str| {
            percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned()
        };
        let parts = self.url.path_segments().into_iter().flatten();
        parts.filter(|part| !part.is_empty()).map(decoded).collect()
    }
}

/// An address without its parameters.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// What lets a connection through to the host of a URL, as long as it leads nowhere private.
pub(super) fn rule(url: &Url) -> Result<Rule, RuleError> {
    let port = url.port_or_known_default().unwrap_or_default();
    Rule::parse(&format!("{}:{port}", url.host_str().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_encrypted_or_on_this_machine() {
        for text in [
            "https://a.example/x.mcpkg",
            "https://a.example:8443/x?token=1",
            "http://127.0.0.1:8000/x",
            "http://localhost:8000/x",
            "https://10.0.0.1/x",
        ] {
            assert!(FileAddress::parse(text).is_ok(), "{text}");
        }
        for (text, error) in [
            ("http://a.example/x", AddressError::Plain),
            ("http://10.0.0.1/x", AddressError::Plain),
            ("ftp://a.example/x", AddressError::Plain),
            ("https://u:p@a.example/x", AddressError::Userinfo),
            ("https://a.example/x#sha256=12", AddressError::Fragment),
            ("https://a.example/x#readme", AddressError::Fragment),
        ] {
            assert_eq!(FileAddress::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn a_digest_is_no_part_of_what_is_asked_for_and_parameters_are_not_told() {
        let hex = "ab".repeat(32);
        let text = format!("https://a.example/x.mcpkg?token=s3cret#sha256={}", hex.to_uppercase());
        let address = FileAddress::parse(&text).unwrap();
        assert_eq!(address.digest().map(|digest| digest.to_string()), Some(hex));
        assert_eq!(address.url().as_str(), "https://a.example/x.mcpkg?token=s3cret");
        assert_eq!(address.shown(), "https://a.example/x.mcpkg");
    }

    #[test]
    fn a_site_alone_stands_for_its_index() {
        let index = |text: &str| FileAddress::parse(text).unwrap().index().map(|one| one.shown());
        let place = "https://a.example/.well-known/install-manifests.json";
        for text in ["https://a.example", "https://a.example/", place] {
            assert_eq!(index(text).as_deref(), Some(place), "{text}");
        }
        for text in ["https://a.example/x", "https://a.example/?x", "https://a.example/x/tool.json"]
        {
            assert_eq!(index(text), None, "{text}");
        }
    }

    #[test]
    fn a_manifest_without_an_id_is_called_as_its_folder() {
        for (text, name) in [
            ("https://a.example/text/tools.json", "text"),
            ("https://a.example/my%20tools/tools.json", "my tools"),
            ("https://a.example/count.tools.json", "count"),
        ] {
            assert_eq!(FileAddress::parse(text).unwrap().folder_name(), name, "{text}");
        }
    }
}
