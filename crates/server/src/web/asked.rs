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
        let (before_last, last) = cut(rest);
        let (before_second, second) = cut(before_last);
        let (before_third, third) = cut(before_second);
        let (id, part) = match (third, second, last) {
            ("versions", version, "bundle") => (before_third, Part::Bundle(decode(version)?)),
            ("versions", version, "package") => (before_third, Part::Package(decode(version)?)),
            ("versions", version, "manifest") => (before_third, Part::Manifest(decode(version)?)),
            ("versions", version, "yank") => (before_third, Part::Yank(decode(version)?)),
            ("versions", version, "review") => (before_third, Part::Review(decode(version)?)),
            (_, "owners", owner) => (before_second, Part::Owner(decode(owner)?)),
            (_, _, "owners") => (before_last, Part::Owners),
            (_, "versions", version) => (before_second, Part::Version(decode(version)?)),
            (_, _, "versions") => (before_last, Part::Versions),
            _ => (rest, Part::Highest),
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
        if is_nameless || id.split('/').any(str::is_empty) {
            return Err(unknown());
        }
        Ok(Self { tool: decode(id)?, part })
    }
}

/// What is before the last slash of a text, and after it.
fn cut(text: &str) -> (&str, &str) {
    text.rsplit_once('/').unwrap_or(("", text))
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
            ("a/versions/b/owners", "a/versions/b", Part::Owners),
            ("a/owners/acme", "a", Part::Owner("acme".to_owned())),
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
