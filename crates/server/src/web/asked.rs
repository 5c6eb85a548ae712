//! Which tool is asked for, and what of it.

use super::refused::Refused;
use super::text::decode;

/// What stands before every tool.
const TOOLS: &str = "/v1/tools/";

/// What is asked for: a tool, by its id or its name, and a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) tool: String,
    pub(super) part: Part,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The highest version.
    Highest,
    /// All versions.
    Versions,
    /// One version.
    Version(String),
    /// Its bundle.
    Bundle(String),
    /// Its package file.
    Package(String),
    /// Its manifest, as it was written.
    Manifest(String),
    /// That it is taken back.
    Yank(String),
    /// What a reviewer says of it.
    Review(String),
    /// Who else may publish it.
    Owners,
    /// One of those.
    Owner(String),
}

impl Asked {
    /// Takes a path apart from its end, because an id may have slashes, encoded or not.
    pub(super) fn read(path: &str) -> Result<Self, Refused> {
        let unknown = || Refused::unknown_path(path);
        let rest = path.strip_prefix(TOOLS).ok_or_else(unknown)?;
        let segments: Vec<&str> = rest.split('/').collect();
        let (id, part) = match segments.as_slice() {
            [id @ .., "versions", version, "bundle"] => (id, Part::Bundle(decode(version)?)),
            [id @ .., "versions", version, "package"] => (id, Part::Package(decode(version)?)),
            [id @ .., "versions", version, "manifest"] => (id, Part::Manifest(decode(version)?)),
            [id @ .., "versions", version, "yank"] => (id, Part::Yank(decode(version)?)),
            [id @ .., "versions", version, "review"] => (id, Part::Review(decode(version)?)),
            [id @ .., "owners", owner] => (id, Part::Owner(decode(owner)?)),
            [id @ .., "owners"] => (id, Part::Owners),
            [id @ .., "versions", version] => (id, Part::Version(decode(version)?)),
            [id @ .., "versions"] => (id, Part::Versions),
            id => (id, Part::Highest),
        };
        let is_nameless = match &part {
            Part::Version(name)
            | Part::Bundle(name)
            | Part::Package(name)
            | Part::Manifest(name)
            | Part::Yank(name)
            | Part::Review(name)
            | Part::Owner(name) => name.is_empty(),
            Part::Highest | Part::Versions | Part::Owners => false,
        };
        if is_nameless || id.is_empty() || id.iter().any(|segment| segment.is_empty()) {
            return Err(unknown());
        }
        Ok(Self { tool: decode(&id.join("/"))?, part })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_tool_and_a_part_of_it() {
        let version = || "1.0.0".to_owned();
        for (path, tool, part) in [
            ("tool:a.b", "tool:a.b", Part::Highest),
            ("tool%3Aa.b", "tool:a.b", Part::Highest),
            ("acme/pdf", "acme/pdf", Part::Highest),
            ("acme%2Fpdf/versions", "acme/pdf", Part::Versions),
            ("a.b/versions/1.0.0", "a.b", Part::Version(version())),
            ("a.b/versions/1.0.0/bundle", "a.b", Part::Bundle(version())),
            ("a.b/versions/1.0.0/package", "a.b", Part::Package(version())),
            ("a.b/versions/1.0.0/manifest", "a.b", Part::Manifest(version())),
            ("acme/pdf/versions/1.0.0/yank", "acme/pdf", Part::Yank(version())),
            ("a.b/versions/1.0.0%2Bx", "a.b", Part::Version("1.0.0+x".to_owned())),
        ] {
            let asked = Asked::read(&format!("/v1/tools/{path}")).unwrap();
            assert_eq!(asked, Asked { tool: tool.to_owned(), part }, "{path}");
        }
        for path in [
            "",
            "/",
            "a//b",
            "a.b/",
            "a.b/versions/",
            "a.b/versions//package",
            "versions",
            "versions/1.0.0",
            "%zz",
            "a/versions/%ff",
        ] {
            assert!(Asked::read(&format!("/v1/tools/{path}")).is_err(), "{path}");
        }
    }
}
