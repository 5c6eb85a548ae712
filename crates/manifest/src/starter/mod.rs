//! New packages, ready to be written down.
//!
//! [`starter`] makes a small one that works, in any dialect; [`function_package`] makes one around
//! a function that is already there. Both only name files and give their content.
//!
//! What the author types goes into JSON through its writer, and into no program but as a JSON
//! string, so no id, name or summary can change what a file does.

mod agentcli;
mod capability;
mod example;
mod function;
mod install_manifest;
mod jumith;
mod mcpkg;
mod text;

pub use function::{Answers, Function, Language, Recorded, function_package};
pub use text::{fill, folder_name, local_id};

use serde_json::Value;

use crate::dialect::Dialect;
use crate::shape::{Pattern, clip, is_hidden, patterns};

/// What the author says of a new package.
#[derive(Clone, Copy, Debug)]
pub struct Starter<'s> {
    /// Its id.
    pub id: &'s str,
    /// The name people see; made from the id when absent.
    pub name: Option<&'s str>,
    /// One sentence on what it does; that of the example when absent.
    pub summary: Option<&'s str>,
}

impl Starter<'_> {
    /// Refuses what the dialect does not take.
    pub fn check(&self, dialect: Dialect) -> Result<(), StarterError> {
        About::of(dialect, self, "").map(drop)
    }
}

/// A file of a new package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StarterFile {
    /// Its path in the package, with forward slashes.
    pub path: String,
    /// Its content.
    pub content: Vec<u8>,
    /// Whether it is a program to be started by its own name.
    pub executable: bool,
}

/// Why there can be no such package.
#[derive(Clone, Debug)]
pub enum StarterError {
    /// The id does not follow the grammar of its dialect.
    BadId {
        /// The dialect.
        dialect: Dialect,
        /// What was given.
        id: String,
        /// The grammar.
        grammar: &'static Pattern,
    },
    /// A text is empty, too long, or holds what cannot be shown.
    BadText {
        /// Which text.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The dialect is only read.
    OnlyRead(Dialect),
    /// What a function answered does not fit what its types promise.
    BrokenPromise {
        /// The function.
        function: String,
        /// Where they differ.
        reason: String,
    },
}

impl std::fmt::Display for StarterError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StarterError::BadId { dialect, id, grammar } => {
                write!(out, "`{}` is not a {} of {dialect}", clip(id), grammar.noun)
            }
            StarterError::BadText { what, reason } => write!(out, "the {what} {reason}"),
            StarterError::OnlyRead(dialect) => write!(out, "{dialect} is read, not written"),
            StarterError::BrokenPromise { function, reason } => {
                write!(out, "`{function}` does not answer as its types say: {reason}")
            }
        }
    }
}

impl std::error::Error for StarterError {}

/// A small package that works: its tool counts the words of a text.
pub fn starter(dialect: Dialect, wanted: &Starter<'_>) -> Result<Vec<StarterFile>, StarterError> {
    let about = About::of(dialect, wanted, example::SUMMARY)?;
    Ok(match dialect {
        Dialect::InstallManifest => install_manifest::files(&about),
        Dialect::Agentcli => agentcli::files(&about),
        Dialect::Mcpkg => mcpkg::files(&about),
        Dialect::Capability => capability::files(&about),
        Dialect::Jumith => jumith::files(&about),
        Dialect::Mcpb | Dialect::ServerJson | Dialect::Skill => {
            return Err(StarterError::OnlyRead(dialect));
        }
    })
}

/// What is said of a package, once it is known to be fit for its dialect.
struct About {
    id: String,
    name: String,
    summary: String,
}

impl About {
    fn of(dialect: Dialect, wanted: &Starter<'_>, summary: &str) -> Result<Self, StarterError> {
        let grammar = grammar(dialect);
        if !(grammar.matches)(wanted.id) {
            return Err(StarterError::BadId { dialect, id: wanted.id.to_owned(), grammar });
        }
        // Only install-manifest counts the characters of its texts.
        let (longest_name, longest_summary) = match dialect {
            Dialect::InstallManifest => (Some(80), Some(280)),
            _ => (None, None),
        };
        if let Some(name) = wanted.name {
            check_line("name", name, longest_name)?;
        }
        if let Some(summary) = wanted.summary {
            check_line("summary", summary, longest_summary)?;
        }
        let name = wanted.name.map_or_else(|| default_name(dialect, wanted.id), str::to_owned);
        Ok(Self {
            id: wanted.id.to_owned(),
            name,
            summary: wanted.summary.unwrap_or(summary).into(),
        })
    }

    /// The README of a starter.
    fn readme(&self, code: &str, manifest: &str, more: &str) -> StarterFile {
        let text = fill(
            include_str!("templates/README.md"),
            &[
                ("@NAME@", &self.name),
                ("@SUMMARY@", &self.summary),
                ("@CODE@", code),
                ("@MANIFEST@", manifest),
                ("@MORE@", more),
            ],
        );
        StarterFile::text("README.md", &text)
    }
}

impl StarterFile {
    fn text(path: &str, content: &str) -> Self {
        Self { path: path.to_owned(), content: content.into(), executable: false }
    }

    fn program(path: &str, content: &str) -> Self {
        Self { executable: true, ..Self::text(path, content) }
    }

    /// A file that holds a JSON document.
    pub fn json(path: &str, document: &Value) -> Self {
        Self::text(path, &format!("{document:#}\n"))
    }
}

/// What an id of a dialect must look like.
fn grammar(dialect: Dialect) -> &'static Pattern {
    match dialect {
        Dialect::InstallManifest => &patterns::KEBAB_ID,
        Dialect::Mcpkg => &patterns::DOTTED_ID,
        Dialect::Agentcli => &TOOL_NAME,
        Dialect::Capability
        | Dialect::Jumith
        | Dialect::Mcpb
        | Dialect::ServerJson
        | Dialect::Skill => &FREE_ID,
    }
}

/// The dialect takes any name; a new tool gets one that is a file name and that every model takes.
static TOOL_NAME: Pattern = Pattern {
    text: "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
    matches: |s| {
        s.len() <= 64
            && s.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
            && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    },
    noun: "tool name",
    words: "a letter, then at most 63 letters, digits, `_` and `-`, like `count_words`",
    code: crate::finding::Code::BadPattern,
};

/// The dialect takes any text; a new package gets an id that needs no quoting anywhere.
static FREE_ID: Pattern = Pattern {
    text: "^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$",
    matches: |s| {
        s.len() <= 128
            && s.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
            && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:/-".contains(&b))
    },
    noun: "tool id",
    words: "at most 128 letters, digits, `.`, `_`, `-`, `:` and `/`, beginning with a letter or digit, like `acme.text.count`",
    code: crate::finding::Code::BadPattern,
};

fn default_name(dialect: Dialect, id: &str) -> String {
    match dialect {
        // There the name is what people type, not what they read.
        Dialect::Jumith => {
            id.strip_prefix("tool:").filter(|name| !name.is_empty()).unwrap_or(id).into()
        }
        _ => text::title(folder_name(id)),
    }
}

/// Checks a text that stands on one line.
fn check_line(what: &'static str, text: &str, longest: Option<usize>) -> Result<(), StarterError> {
    let refuse = |reason: String| Err(StarterError::BadText { what, reason });
    if text.trim().is_empty() {
        return refuse("is empty".to_owned());
    }
    if let Some(hidden) = text.chars().find(|c| is_hidden(*c)) {
        return refuse(format!(
            "holds the character U+{:04X}, which cannot be shown",
            u32::from(hidden)
        ));
    }
    let length = text.chars().count();
    match longest.filter(|longest| length > *longest) {
        Some(longest) => refuse(format!("has {length} characters; at most {longest} are allowed")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Options, check};

    fn id_of(dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::InstallManifest => "word-count",
            Dialect::Agentcli => "word_count",
            Dialect::Mcpkg | Dialect::Capability => "acme.text.word_count",
            Dialect::Jumith => "tool:text.count",
            Dialect::Mcpb | Dialect::ServerJson | Dialect::Skill => unreachable!("it is only read"),
        }
    }

    #[test]
    fn every_starter_is_without_findings() {
        let texts =
            [(None, None), (Some("Ünï \"quoted\" \\ @SUMMARY@"), Some("A `'$(x)`. @NAME@"))];
        for dialect in Dialect::TARGETS {
            for (name, summary) in texts {
                let files =
                    starter(dialect, &Starter { id: id_of(dialect), name, summary }).unwrap();
                let manifest = &files[0];
                assert_eq!(manifest.path, dialect.file_name());
                let report = check(&manifest.content, &Options::default());
                assert_eq!(report.dialect, Some(dialect));
                assert!(report.findings.is_empty(), "{dialect}: {:?}", report.findings);
                for test in files.iter().filter(|file| file.path.ends_with(".test.json")) {
                    let options =
                        Options { manifest: Some(&manifest.content), ..Options::default() };
                    let report = check(&test.content, &options.for_test());
                    assert!(report.findings.is_empty(), "{:?}", report.findings);
                }
            }
        }
    }

    #[test]
    fn hostile_ids_are_refused_in_every_dialect() {
        let hostile = [
            "",
            " ",
            "../../etc",
            "a b",
            "a\"b",
            "a'b.c",
            "$(x).y",
            "-a.b",
            "a\n.b",
            "é.b",
            "a.b\u{202e}",
        ];
        for dialect in Dialect::TARGETS {
            for id in hostile {
                let made = starter(dialect, &Starter { id, name: None, summary: None });
                assert!(matches!(made, Err(StarterError::BadId { .. })), "{dialect} {id:?}");
            }
        }
    }

    #[test]
    fn texts_stand_on_one_line_and_can_be_seen() {
        let with = |dialect, name, summary| {
            starter(dialect, &Starter { id: id_of(dialect), name, summary })
        };
        let long = "x".repeat(281);
        assert!(with(Dialect::Mcpkg, Some(" "), None).is_err());
        assert!(with(Dialect::Mcpkg, Some("a\nb"), None).is_err());
        assert!(with(Dialect::Mcpkg, None, Some("a\u{202e}b")).is_err());
        assert!(with(Dialect::Mcpkg, None, Some(&long)).is_ok());
        let error = with(Dialect::InstallManifest, None, Some(&long)).unwrap_err();
        assert_eq!(error.to_string(), "the summary has 281 characters; at most 280 are allowed");
    }

    #[test]
    fn own_grammars_agree_with_their_patterns() {
        for pattern in [&TOOL_NAME, &FREE_ID] {
            let regex = regex::Regex::new(pattern.text).unwrap();
            let long = ["a".repeat(64), "a".repeat(65), "a".repeat(128), "a".repeat(129)];
            let words =
                ["", "a", "9", "-a", "_a", "a-_9", "a.b", "tool:a/b", "a b", "é", "a\u{e9}"];
            for word in words.into_iter().chain(long.iter().map(String::as_str)) {
                assert_eq!((pattern.matches)(word), regex.is_match(word), "{word:?}");
            }
        }
    }
}
