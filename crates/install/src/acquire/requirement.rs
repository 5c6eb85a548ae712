//! Packages of other package managers, as manifests name them.

use std::fmt;

use manifest::model::{Entry, Implementation, Json};
use serde::{Deserialize, Serialize};

/// Whose package it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manager {
    /// Python's.
    Pip,
    /// Node's.
    Npm,
}

/// A package by its name, and perhaps which versions of it. It is nothing that its package manager could take for an
/// option, an address or a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    manager: Manager,
    name: String,
    /// As the manager writes it after the name: for pip with its operator, and parts of the package in brackets before it.
    rest: String,
}

/// A text that names no package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRequirement {
    /// Who would be asked for it.
    pub manager: Manager,
    /// What was written.
    pub text: String,
    /// Why it is none.
    pub why: &'static str,
}

/// The longest name, as npm has it.
const LONGEST_NAME: usize = 214;
/// The longest that is written after it.
const LONGEST_REST: usize = 256;
/// What stands before a version in Python; those that begin with another come first.
const OPERATORS: [&str; 8] = ["===", "==", "~=", "!=", "<=", ">=", "<", ">"];

impl Requirement {
    /// A package and, where they are named, the versions as its manager writes them.
    pub fn new(
        manager: Manager,
        package: &str,
        versions: Option<&str>,
    ) -> Result<Self, BadRequirement> {
        let versions = versions.map(str::trim).filter(|text| !text.is_empty());
        let text = || format!("{package}{}", versions.unwrap_or_default());
        let refuse = |why| BadRequirement { manager, text: text(), why };
        let (name, parts) = match (manager, package.split_once('[')) {
            (Manager::Pip, Some((name, _))) => (name.trim_end(), &package[name.len()..]),
            _ => (package, ""),
        };
        let is_name = match manager {
            Manager::Pip => is_python_name(name) && (parts.is_empty() || are_parts(parts)),
            Manager::Npm => is_node_name(name),
        };
        if !is_name || name.len() > LONGEST_NAME {
            return Err(refuse("it is not the name of a package"));
        }
        let are_versions = versions.is_none_or(|versions| match manager {
            Manager::Pip => are_python_versions(versions),
            Manager::Npm => are_node_versions(versions),
        });
        if !are_versions {
            return Err(refuse(match manager {
                Manager::Pip => "which versions is written as in `>=1.2,<2`",
                Manager::Npm => "which versions is written as in `^1.2.3`",
            }));
        }
        let rest = match manager {
            Manager::Pip => format!("{parts}{}", versions.unwrap_or_default()),
            Manager::Npm => versions.unwrap_or("*").to_owned(),
        };
        let rest: String = match manager {
            Manager::Pip => rest.split_whitespace().collect(),
            Manager::Npm => rest,
        };
        if rest.len() > LONGEST_REST {
            return Err(refuse("it is too long"));
        }
        Ok(Self { manager, name: name.to_owned(), rest })
    }

    /// Reads a package with its versions as one text: `PyMuPDF>=1.23.0`, `@acme/pdf@^1.2`.
    pub fn parse(manager: Manager, text: &str) -> Result<Self, BadRequirement> {
        let text = text.trim();
        let (package, versions) = match manager {
            Manager::Pip => {
                let at = text.find(['=', '<', '>', '!', '~']).unwrap_or(text.len());
                let (package, versions) = text.split_at(at);
                (package.trim_end(), Some(versions))
            }
            Manager::Npm => match text.char_indices().skip(1).find(|(_, letter)| *letter == '@') {
                Some((at, _)) => (&text[..at], Some(&text[at + 1..])),
                None => (text, None),
            },
        };
        Self::new(manager, package, versions)
    }

    /// Reads a dependency as a companion has it: `pip:six==1.16.0`.
    pub fn of_companion(text: &str) -> Result<Self, BadRequirement> {
        let (manager, rest) = match text.split_once(':') {
            Some(("npm", rest)) => (Manager::Npm, rest),
            Some(("pip", rest)) => (Manager::Pip, rest),
            _ => (Manager::Pip, text),
        };
        match (manager, rest.split_once("==")) {
            (Manager::Npm, Some((package, version))) => Self::new(manager, package, Some(version)),
            _ => Self::parse(manager, rest),
        }
    }

    /// All packages that one way to run a tool needs, of Python or of Node, whichever it is written for. Of anything else nothing
    /// can be had: another manager may have another package of that name.
    pub fn of_implementation(implementation: &Implementation) -> Result<Vec<Self>, BadRequirement> {
        let requirements = implementation.requirements.as_ref().map(Json::value);
        let packages = requirements.as_ref().and_then(|value| value.get("packages")?.as_array());
        let texts = packages.into_iter().flatten().filter_map(|package| package.as_str());
        let manager = manager_of(implementation);
        let read = |text: &str| match manager {
            Some(manager) => Self::parse(manager, text),
            None => {
                let why = "the tool is written for neither Python nor Node";
                Err(BadRequirement { manager: Manager::Pip, text: text.to_owned(), why })
            }
        };
        texts.map(read).collect()
    }

    /// Whose package it is.
    pub fn manager(&self) -> Manager {
        self.manager
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which versions, as npm writes it.
    pub(super) fn range(&self) -> &str {
        &self.rest
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = match self.manager {
            Manager::Pip => "",
            Manager::Npm => "@",
        };
        write!(out, "{}{between}{}", self.name, self.rest)
    }
}

impl fmt::Display for Manager {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Manager::Pip => "pip",
            Manager::Npm => "npm",
        })
    }
}

impl fmt::Display for BadRequirement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` cannot be had by {}: {}", self.text, self.manager, self.why)
    }
}

impl std::error::Error for BadRequirement {}

/// A name as all its spellings are compared: Python takes `Foo.Bar` for `foo-bar`.
pub(super) fn folded(manager: Manager, name: &str) -> String {
    match manager {
        Manager::Npm => name.to_owned(),
        Manager::Pip => {
            let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
            words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
        }
    }
}

/// Whose packages a tool is written with.
fn manager_of(implementation: &Implementation) -> Option<Manager> {
    const OF_NODE: [&str; 3] = ["node", "javascript", "typescript"];
    let program = match &implementation.entry {
        Entry::NodeModule { .. } => return Some(Manager::Npm),
        Entry::PythonCallable { .. } => return Some(Manager::Pip),
        Entry::Argv { argv, .. } | Entry::McpStdio { argv, .. } => argv.first(),
        _ => None,
    };
    let words = [implementation.language.as_ref(), implementation.runtime.as_ref(), program];
    words.into_iter().flatten().find_map(|word| {
        let word = word.to_ascii_lowercase();
        if word.starts_with("python") {
            Some(Manager::Pip)
        } else {
            OF_NODE.iter().any(|node| word.starts_with(node)).then_some(Manager::Npm)
        }
    })
}

fn is_python_name(name: &str) -> bool {
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    is_end(name.bytes().next()) && is_end(name.bytes().last()) && name.bytes().all(is_plain)
}

/// Whether a text names optional parts of a package, in brackets.
fn are_parts(text: &str) -> bool {
    let inside = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inside.is_some_and(|inside| inside.split(',').all(|part| is_python_name(part.trim())))
}

fn are_python_versions(text: &str) -> bool {
    text.split(',').all(|one| {
        let one = one.trim();
        let version = OPERATORS.iter().find_map(|operator| one.strip_prefix(operator));
        version.map(str::trim).is_some_and(|version| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".*+!_-".contains(&byte);
            version.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
                && version.bytes().all(is_plain)
        })
    })
}

fn is_node_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
        part.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'~')
            && part.bytes().all(is_plain)
            && part != "node_modules"
    };
    match name.strip_prefix('@') {
        Some(scoped) => {
            scoped.split_once('/').is_some_and(|(scope, name)| is_part(scope) && is_part(name))
        }
        None => is_part(name),
    }
}

/// Whether a text is a range of versions or a tag: no address, path, alias or repository has none of `:`, `/` and `@`.
fn are_node_versions(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-+^~<>=|* ".contains(&byte);
    !text.starts_with('-') && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(manager: Manager, text: &str) -> Option<String> {
        Requirement::parse(manager, text).ok().map(|one| one.to_string())
    }

    #[test]
    fn packages_are_read_as_their_managers_write_them() {
        for (text, read) in [
            ("six", "six"),
            ("PyMuPDF>=1.23.0", "PyMuPDF>=1.23.0"),
            ("six == 1.16.0", "six==1.16.0"),
            ("uvicorn[standard]>=0.20, <1", "uvicorn[standard]>=0.20,<1"),
            ("a.b_c-d~=1!2.0+local.1", "a.b_c-d~=1!2.0+local.1"),
        ] {
            assert_eq!(shown(Manager::Pip, text).as_deref(), Some(read), "{text}");
        }
        for (text, read) in [
            ("left-pad", "left-pad@*"),
            ("left-pad@^1.3.0", "left-pad@^1.3.0"),
            ("@acme/pdf", "@acme/pdf@*"),
            ("@acme/pdf@>=1 <2 || 3.x", "@acme/pdf@>=1 <2 || 3.x"),
            ("JSONStream@latest", "JSONStream@latest"),
        ] {
            assert_eq!(shown(Manager::Npm, text).as_deref(), Some(read), "{text}");
        }
    }

    #[test]
    fn options_addresses_and_paths_are_no_names() {
        for text in [
            "",
            "-r",
            "--index-url=https://evil.test",
            "-e .",
            "./here",
            "/etc/passwd",
            "..",
            ".",
            "https://evil.test/x.whl",
            "git+https://evil.test/x",
            "six @ https://evil.test/x.whl",
            "six; python_version < '3'",
            "six --hash=sha256:00",
            "six==1 --pre",
            "six=1",
            "six==",
            "six[a]b",
            "six\n-r x",
            "s\u{456}x",
        ] {
            assert_eq!(shown(Manager::Pip, text), None, "{text}");
        }
        for text in [
            "",
            "-g",
            "--registry=https://evil.test",
            "../x",
            "/x",
            "a/b",
            "@a",
            "@a/b/c",
            "@../b",
            "x@file:../y",
            "x@npm:y@1",
            "x@git+ssh://evil.test",
            "x@github:a/b",
            "x@a/b",
            "x@-1",
            "node_modules",
            ".bin",
            "x\ny",
            "x@1\n2",
        ] {
            assert_eq!(shown(Manager::Npm, text), None, "{text:?}");
        }
    }

    #[test]
    fn a_companion_names_the_manager_first() {
        let read =
            |text| Requirement::of_companion(text).map(|one| (one.manager(), one.to_string()));
        assert_eq!(read("pip:six==1.16.0"), Ok((Manager::Pip, "six==1.16.0".to_owned())));
        assert_eq!(read("npm:@acme/a==1.2.3"), Ok((Manager::Npm, "@acme/a@1.2.3".to_owned())));
        assert!(read("npm:-g==1").is_err());
    }

    #[test]
    fn an_implementation_needs_packages_of_what_it_is_written_for() {
        let text = r#"{"packages": ["PyMuPDF>=1.23.0"]}"#;
        let tree = manifest::json::parse(text);
        let mut implementation = Implementation {
            id: "one".to_owned(),
            language: Some("python".to_owned()),
            runtime: None,
            platforms: Vec::new(),
            entry: Entry::Undeclared,
            timeout_ms: None,
            requirements: Some(Json::of(&tree.root.unwrap(), text)),
        };
        let read = Requirement::of_implementation(&implementation).unwrap();
        assert_eq!((read[0].manager(), read[0].name()), (Manager::Pip, "PyMuPDF"));
        implementation.language = Some("nodejs".to_owned());
        assert!(
            Requirement::of_implementation(&implementation).is_err(),
            "npm writes it otherwise"
        );
        implementation.language = Some("dotnet".to_owned());
        let refused = Requirement::of_implementation(&implementation).unwrap_err();
        assert!(refused.why.contains("neither"), "{refused}");
    }

    #[test]
    fn python_takes_several_spellings_for_one_name() {
        assert_eq!(folded(Manager::Pip, "Foo.._Bar-x"), "foo-bar-x");
        assert_eq!(folded(Manager::Npm, "JSONStream"), "JSONStream");
    }
}
