//! Where packages are had, and what their owner allows them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use egress::http::Url;
use egress::{Rule, Rules};
use percent_encoding::percent_decode_str;

use super::requirement::{Manager, folded};

/// What the face knows of this machine and its owner.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Where Python packages are had: the index, and those beside it. With none it is the one that this machine's pip has by itself.
    pub pip: Vec<Index>,
    /// Where Node packages are had.
    pub npm: Option<Index>,
    /// Where those of a scope are had: `acme`, and its registry.
    pub npm_scopes: Vec<(String, Index)>,
    /// Addresses of repositories that stand for others: what one begins with, and what is put in its place.
    pub git: Vec<(String, String)>,
    /// Where container images are had.
    pub images: Images,
    /// Further hosts that files may come from, such as the store behind a mirror.
    pub hosts: Vec<Rule>,
    /// A file of certificates that are trusted too.
    pub certificates: Option<PathBuf>,
    /// Where programs are looked for, as `PATH` has it.
    pub search: OsString,
    /// Packages that may run code of their own while they are installed: build from source, or run their scripts.
    pub trusted: BTreeSet<(Manager, String)>,
    /// Ids of MCP servers that are here already.
    pub servers: BTreeSet<String>,
    /// Who is asked.
    pub reach: Reach,
}

/// Who is asked which versions there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Whoever answered before is not asked again.
    #[default]
    Kept,
    /// Everybody, for newer ones.
    Fresh,
    /// Nobody: what is kept has to do.
    Offline,
}

/// Where container images are had.
#[derive(Clone, Debug, Default)]
pub struct Images {
    /// What is asked in place of the registries that names begin with.
    pub mirror: Option<Index>,
    /// The folder with images that the owner has put there.
    pub folder: Option<PathBuf>,
    /// Who brings them here.
    pub by: Bringer,
}

/// Who brings an image here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bringer {
    /// We do.
    #[default]
    Us,
    /// An engine has it, or will not run it: the owner wants it so.
    Engine,
}

/// A package index.
#[derive(Clone, PartialEq, Eq)]
pub struct Index {
    /// Where it is, perhaps with a name and a password.
    pub url: Url,
    /// A token to show it.
    pub token: Option<String>,
}

impl Index {
    /// An index for everybody.
    pub fn at(url: Url) -> Self {
        Self { url, token: None }
    }

    /// Where it is, without anything that is nobody else's business.
    pub(super) fn plain(&self) -> Url {
        plain(&self.url)
    }

    /// What lets a connection through to it. The owner named it, so it may be a private place.
    pub(super) fn rule(&self) -> Option<Rule> {
        rule_for(&self.url).map(Rule::reaching_private)
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Index({})", self.plain())
    }
}

impl Sources {
    /// All indexes of a manager.
    pub(super) fn indexes(&self, manager: Manager) -> Vec<&Index> {
        match manager {
            Manager::Pip => self.pip.iter().collect(),
            Manager::Npm => {
                self.npm.iter().chain(self.npm_scopes.iter().map(|(_, index)| index)).collect()
            }
        }
    }

    /// What a manager may reach.
    pub(super) fn rules(&self, manager: Manager) -> Rules {
        let indexes = self.indexes(manager);
        indexes.into_iter().filter_map(Index::rule).chain(self.hosts.iter().cloned()).collect()
    }

    /// Whether a package may run code of its own while it is installed.
    pub(super) fn trusts(&self, manager: Manager, name: &str) -> bool {
        let is_it = |(of, trusted): &(Manager, String)| {
            *of == manager && folded(manager, trusted) == folded(manager, name)
        };
        self.trusted.iter().any(is_it)
    }

    /// A text without the passwords and tokens of indexes, whoever wrote it.
    pub(super) fn redacted(&self, text: String) -> String {
        let indexes = [Manager::Pip, Manager::Npm].map(|manager| self.indexes(manager));
        let secrets = indexes.iter().flatten().flat_map(|index| {
            let password = index.url.password();
            let decoded = password.map(|text| percent_decode_str(text).decode_utf8_lossy());
            [index.token.clone(), password.map(str::to_owned), decoded.map(Into::into)]
        });
        let known = secrets.flatten().filter(|secret| !secret.is_empty());
        known.fold(text, |text, secret| text.replace(&secret, "[redacted]"))
    }

    /// Where a repository is really had.
    pub(super) fn repository(&self, url: &str) -> Option<String> {
        let longest = self.git.iter().filter(|(begin, _)| url.starts_with(begin.as_str()));
        let (begin, instead) = longest.max_by_key(|(begin, _)| begin.len())?;
        Some(format!("{instead}{}", &url[begin.len()..]))
    }
}

/// A URL without a name and a password.
pub(super) fn plain(url: &Url) -> Url {
    let mut url = url.clone();
    // Only a URL that cannot have any refuses.
    let _has_none = url.set_username("");
    let _has_none = url.set_password(None);
    url
}

/// The rule for the host and the port of a URL.
pub(crate) fn rule_for(url: &Url) -> Option<Rule> {
    let port = url.port_or_known_default()?;
    Rule::parse(&format!("{}:{port}", url.host_str()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_tokens_are_taken_out_of_what_is_told() {
        let at = |url: &str| Index::at(Url::parse(url).unwrap());
        let mut npm = at("https://b.test/");
        npm.token = Some("t0ken".to_owned());
        let pip = vec![at("https://name:s3%2Bcret@a.test/simple")];
        let sources = Sources { pip, npm: Some(npm), ..Sources::default() };
        let told = sources.redacted("s3%2Bcret s3+cret t0ken name".to_owned());
        assert_eq!(told, "[redacted] [redacted] [redacted] name");
        assert!(!format!("{sources:?}").contains("cret"));
    }
}
