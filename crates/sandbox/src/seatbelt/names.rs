//! Regular expressions for the names that must not be planted.
//!
//! The file systems of macOS take `.BASHRC` for `.bashrc`, so a name is told
//! from others by its letters in either case. No path is in an expression,
//! only a count of folders: which folder is meant is said beside it.

use crate::protected::{IN_REPOSITORY, PROTECTED, REPOSITORY};

/// The protected names right below a folder so many folders deep, and all below them.
pub(crate) fn at_top(depth: usize) -> String {
    below(depth, &PROTECTED)
}

/// What git takes its orders from in a folder so many folders deep that is a repository itself.
pub(crate) fn in_bare_repository(depth: usize) -> String {
    below(depth, &IN_REPOSITORY)
}

/// A repository's folder itself, at any depth. It cannot be made, moved or
/// removed: with another one put in its place its hooks would be others.
pub(crate) fn repository() -> String {
    format!("/{}$", either_case(REPOSITORY))
}

/// What git takes its orders from in a repository, at any depth.
pub(crate) fn in_repository() -> String {
    format!("/{}/{}(/|$)", either_case(REPOSITORY), any_of(&IN_REPOSITORY))
}

fn below(depth: usize, names: &[&str]) -> String {
    format!("^{}/{}(/|$)", "/[^/]+".repeat(depth), any_of(names))
}

fn any_of(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| either_case(name)).collect();
    format!("({})", names.join("|"))
}

fn either_case(name: &str) -> String {
    let letter = |letter: char| match letter {
        // The long s and the Kelvin sign are an s and a k in other clothes.
        's' | 'k' => format!("([{letter}{}]|[^ -~]+)", letter.to_ascii_uppercase()),
        'a'..='z' => format!("[{letter}{}]", letter.to_ascii_uppercase()),
        '0'..='9' | '-' | '_' => letter.to_string(),
        _ => format!("[{letter}]"),
    };
    name.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// Asks `grep`, whose extended expressions are those of Seatbelt in all that is used here.
    fn matches(expression: &str, path: &str) -> bool {
        let mut grep = Command::new("grep")
            .args(["-zqE", "--", expression])
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        grep.stdin.take().unwrap().write_all(path.as_bytes()).unwrap();
        grep.wait().unwrap().success()
    }

    #[test]
    fn a_name_is_known_at_the_top_in_any_case_and_nowhere_else() {
        let expression = at_top(2);
        for path in [
            "/a/b/.bashrc",
            "/a/b/.BashRC",
            "/a/b/.claude/settings.json",
            "/a/b/.ba\u{17f}hrc",
            "/a/b/.\u{212a}shrc",
            "/a\n/b(\"/.mcp.json",
        ] {
            assert!(matches(&expression, path), "{path:?}");
        }
        for path in
            ["/a/b/bashrc", "/a/b/.bashrc2", "/a/b/c/.bashrc", "/a/.bashrc", "/a/b/xmcp.json"]
        {
            assert!(!matches(&expression, path), "{path:?}");
        }
    }

    #[test]
    fn the_orders_of_a_repository_are_known_at_any_depth() {
        for path in ["/w/.git/hooks", "/w/x/y/.GIT/Hooks/pre-commit", "/w/.git/config"] {
            assert!(matches(&in_repository(), path), "{path:?}");
        }
        for path in
            ["/w/.git/refs/heads/config", "/w/.git/index", "/w/.git/configuration", "/w/xgit/hooks"]
        {
            assert!(!matches(&in_repository(), path), "{path:?}");
        }
        assert!(matches(&repository(), "/w/sub/.Git"));
        assert!(!matches(&repository(), "/w/sub/.git/index"));
        assert!(!matches(&repository(), "/w/sub/.gitignore"));
        assert!(matches(&in_bare_repository(1), "/w/hooks/update"));
        assert!(!matches(&in_bare_repository(1), "/w/x/hooks/update"));
    }

    #[test]
    fn every_protected_name_is_known() {
        for name in PROTECTED {
            assert!(matches(&at_top(1), &format!("/w/{name}")), "{name}");
            assert!(matches(&at_top(1), &format!("/w/{}", name.to_uppercase())), "{name}");
        }
    }
}
