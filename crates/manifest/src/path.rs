//! Paths inside a package: plain and relative, and the same on every system.
//!
//! Archives, bundles and manifests all name files by the same rules.

use unicode_normalization::UnicodeNormalization;

use crate::shape::is_unseen;

/// The longest path, in bytes.
pub const MAX_PATH: usize = 1024;
/// The longest name of a file or folder, in bytes.
pub const MAX_NAME: usize = 255;
/// How deep folders may lie in each other.
pub const MAX_SEGMENTS: usize = 32;

/// Names that some systems keep for devices.
const RESERVED: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// The folder of a git repository, also by its short name on Windows.
const REPOSITORY: [&str; 2] = [".git", "git~1"];

/// Why a path is not plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the words say it")]
pub enum PathFault {
    Empty,
    Absolute,
    Backslash,
    Colon,
    Wildcard,
    TooLong,
    TooDeep,
    Hidden,
    EmptySegment,
    DotSegment,
    ParentSegment,
    TrailingDot,
    Reserved,
    Repository,
    Disguised,
}

impl PathFault {
    /// What is wrong, as it follows the path in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            PathFault::Empty => "is empty",
            PathFault::Absolute => "is absolute",
            PathFault::Backslash => "has a backslash",
            PathFault::Colon => "has a colon",
            PathFault::Wildcard => "has one of `<`, `>`, `\"`, `|`, `?` and `*`",
            PathFault::TooLong => "is longer than 1,024 bytes, or one of its names than 255",
            PathFault::TooDeep => "lies more than 32 folders deep",
            PathFault::Hidden => "has an invisible character",
            PathFault::EmptySegment => "has an empty segment",
            PathFault::DotSegment => "has a `.` segment",
            PathFault::ParentSegment => "has a `..` segment",
            PathFault::TrailingDot => "has a segment that ends in a dot or blank",
            PathFault::Reserved => "has a name some systems keep for a device",
            PathFault::Repository => "has a `.git` segment: a repository can make git run programs",
            PathFault::Disguised => "becomes another path once its characters are normalised",
        }
    }
}

/// Refuses a path that is not plain and relative.
pub fn check_path(path: &str) -> Result<(), PathFault> {
    check_as_written(path)?;
    // Systems that normalise names must not see a separator or `..` where we see a letter.
    if !path.is_ascii() {
        let normal: String = path.nfkc().collect();
        let slashes = |text: &str| text.bytes().filter(|byte| *byte == b'/').count();
        if slashes(&normal) != slashes(path) || check_as_written(&normal).is_err() {
            return Err(PathFault::Disguised);
        }
    }
    Ok(())
}

/// A path as systems see it that ignore case and compatibility forms.
pub fn folded(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    // Upper case in between joins letters that only full case folding joins: `ß` and `ss`.
    let lower: String = path.nfkc().flat_map(char::to_lowercase).collect();
    let upper: String = lower.chars().flat_map(char::to_uppercase).collect();
    upper.chars().flat_map(char::to_lowercase).nfkc().collect()
}

fn check_as_written(path: &str) -> Result<(), PathFault> {
    if path.is_empty() {
        return Err(PathFault::Empty);
    }
    if path.starts_with('/') {
        return Err(PathFault::Absolute);
    }
    if path.contains('\\') {
        return Err(PathFault::Backslash);
    }
    if path.contains(':') {
        return Err(PathFault::Colon);
    }
    if path.len() > MAX_PATH {
        return Err(PathFault::TooLong);
    }
    if path.contains(is_unseen) {
        return Err(PathFault::Hidden);
    }
    if path.contains(['<', '>', '"', '|', '?', '*']) {
        return Err(PathFault::Wildcard);
    }
    for (index, segment) in path.split('/').enumerate() {
        if index >= MAX_SEGMENTS {
            return Err(PathFault::TooDeep);
        }
        check_segment(segment)?;
    }
    Ok(())
}

fn check_segment(segment: &str) -> Result<(), PathFault> {
    match segment {
        "" => Err(PathFault::EmptySegment),
        "." => Err(PathFault::DotSegment),
        ".." => Err(PathFault::ParentSegment),
        _ if segment.len() > MAX_NAME => Err(PathFault::TooLong),
        _ if segment.ends_with(['.', ' ']) => Err(PathFault::TrailingDot),
        _ if is_reserved(segment) => Err(PathFault::Reserved),
        _ if REPOSITORY.iter().any(|name| segment.eq_ignore_ascii_case(name)) => {
            Err(PathFault::Repository)
        }
        _ => Ok(()),
    }
}

/// Whether a name means a device on some system, whatever follows its first dot.
fn is_reserved(segment: &str) -> bool {
    let stem = segment.split('.').next().unwrap_or_default().trim_end().to_lowercase();
    let is_port = ["com", "lpt"].iter().any(|kind| {
        stem.strip_prefix(kind).is_some_and(|rest| {
            let mut rest = rest.chars();
            let digit = rest.next().is_some_and(|c| c.is_ascii_digit() || "¹²³".contains(c));
            digit && rest.next().is_none()
        })
    });
    is_port || RESERVED.contains(&stem.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paths_pass() {
        for path in ["a", "a/b.c", ".env.example", "ä/ö.txt", "日本/語.md", "[x].js", "console.js"]
        {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn every_other_path_is_refused_for_its_own_reason() {
        let long = "a/".repeat(600) + "b";
        let name = "n".repeat(256);
        let deep = "d/".repeat(32) + "f";
        let cases = [
            ("", PathFault::Empty),
            ("/etc/passwd", PathFault::Absolute),
            ("a\\b", PathFault::Backslash),
            ("C:/x", PathFault::Colon),
            ("a?b", PathFault::Wildcard),
            (&long, PathFault::TooLong),
            (&name, PathFault::TooLong),
            (&deep, PathFault::TooDeep),
            ("a\u{202e}b", PathFault::Hidden),
            ("a\nb", PathFault::Hidden),
            ("a\u{fe0f}b", PathFault::Hidden),
            ("\u{3164}", PathFault::Hidden),
            ("a//b", PathFault::EmptySegment),
            ("a/", PathFault::EmptySegment),
            ("./a", PathFault::DotSegment),
            ("a/../b", PathFault::ParentSegment),
            ("a./b", PathFault::TrailingDot),
            ("a ", PathFault::TrailingDot),
            ("x/CON.txt", PathFault::Reserved),
            ("lpt1", PathFault::Reserved),
            ("COM².log", PathFault::Reserved),
            ("a/.git/config", PathFault::Repository),
            (".GIT", PathFault::Repository),
            ("a\u{ff0f}b", PathFault::Disguised),
            ("\u{2025}/b", PathFault::Disguised),
            ("\u{ff1a}", PathFault::Disguised),
        ];
        for (path, fault) in cases {
            assert_eq!(check_path(path), Err(fault), "{path}");
        }
    }

    #[test]
    fn twins_fold_to_one_path() {
        for (a, b) in
            [("A/b", "a/B"), ("ﬁle", "file"), ("Straße", "STRASSE"), ("ς", "Σ"), ("K", "k")]
        {
            assert_eq!(folded(a), folded(b), "{a} and {b}");
        }
        assert_ne!(folded("a"), folded("ä"));
    }
}
