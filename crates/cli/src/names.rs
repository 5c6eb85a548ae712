//! Names that the owner types: of packages, of their actions and of their secrets.

use std::path::Path;

use manifest::dialect::Dialect;
use manifest::model::Package;
use manifest::shape::{is_hidden, suggest};
use vault::place::{MAX_ID, MAX_NAME};

use crate::exit::Failure;
use crate::home::Home;
use crate::printer::line;
use crate::seen::Seen;
use crate::{installed, owner};

/// Refuses an id for what is at a path and has one of its own: only a tools.json can be given one.
pub(crate) fn check_id(typed: Option<&str>, path: &Path, package: &Package) -> Result<(), Failure> {
    match typed {
        Some(_) if package.dialect != Dialect::Agentcli => {
            let own = line(&package.id);
            let message = format!("`{}` has an id of its own, `{own}`", path.display());
            Err(Failure::invalid(message).hint("leave --id out"))
        }
        Some(id) if id.trim().is_empty() => Err(Failure::invalid("--id is empty")),
        _ => Ok(()),
    }
}

/// A package as the owner typed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Typed {
    text: String,
    /// Whether its dialect was left out.
    is_bare: bool,
}

impl Typed {
    /// A name that is whole as it stands.
    pub(crate) fn whole_as(text: &str) -> Self {
        Self { text: text.to_owned(), is_bare: false }
    }

    /// The name it has in grants, rules, secrets and records: that of the package that is installed, where one alone is
    /// called so. Else which dialect is meant is not guessed: what the home has seen is only told.
    pub(crate) fn whole(&self, home: &Home) -> Result<String, Failure> {
        if !self.is_bare {
            return Ok(self.text.clone());
        }
        // What is installed was agreed to under its whole name.
        if let Ok(contents) = installed::home(home).read()
            && let [one] = contents.called(&self.text).as_slice()
            && one.pinned.is_some()
        {
            return Ok(one.id.clone());
        }
        let id = line(&self.text);
        let failure =
            Failure::invalid(format!("`{id}` is not installed, and its dialect is missing"));
        let seen = Seen::at(home, &owner::runtime()?)?;
        let mut meant = seen.meant(&self.text).map(line).peekable();
        Err(if meant.peek().is_some() {
            meant.fold(failure, |failure, one| failure.hint(format!("did you mean `{one}`?")))
        } else {
            let words = format!("write it in front, such as `{}:{id}`", Dialect::Mcpkg.name());
            failure.hint(words).hint("`haft call … --explain` shows the whole name")
        })
    }
}

/// A package as grants, rules, secrets and records name it: its dialect, a colon and its id. Some dialects let an id
/// be any text, so what can be seen may be in one. Without its dialect it may still be known.
pub(crate) fn package(text: &str) -> Result<Typed, String> {
    let known = Dialect::ALL.map(Dialect::name);
    let Some((dialect, id)) = text.split_once(':') else {
        return match text {
            "" => Err("write the dialect and the id, such as mcpkg:acme.weather".to_owned()),
            _ if is_plain(text, MAX_ID) => Ok(Typed { text: text.to_owned(), is_bare: true }),
            _ => Err(format!("the id of a package {}", rule(MAX_ID))),
        };
    };
    if Dialect::named(dialect).is_none() {
        let near = suggest(dialect, known);
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(format!(
            "`{}` is no dialect; write one of {} before `:{}`{near}",
            line(dialect),
            known.join(", "),
            line(id)
        ));
    }
    if is_plain(id, MAX_ID - dialect.len() - 1) {
        return Ok(Typed::whole_as(text));
    }
    Err(format!("the id of a package {}", rule(MAX_ID - dialect.len() - 1)))
}

/// An action of a package.
pub(crate) fn action(text: &str) -> Result<String, String> {
    // Nobody calls one so: whoever writes it left the action out.
    if text.trim_start_matches('=').starts_with('{') {
        return Err("this is a pattern for arguments; the action stands before it".to_owned());
    }
    if is_plain(text, MAX_NAME) {
        return Ok(text.to_owned());
    }
    Err(format!("the name of an action {}", rule(MAX_NAME)))
}

/// Refuses a name that no secret should have. It is not told again: it may hold the value.
pub(crate) fn check_secret(text: &str) -> Result<(), String> {
    if is_plain(text, MAX_NAME)
        && !text.contains(|letter: char| letter.is_whitespace() || letter == '=')
    {
        return Ok(());
    }
    Err(format!(
        "the name of a secret has 1 to {MAX_NAME} characters, all of which can be seen, and neither a blank nor `=`"
    ))
}

/// Whether a text can be a name: there is something, not too much, and all of it can be seen.
fn is_plain(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.chars().count()) && !text.contains(is_hidden) && text.trim() == text
}

/// The same in words.
fn rule(most: usize) -> String {
    format!("has 1 to {most} characters, all of which can be seen, and no blank at either end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_named_by_dialect_and_id() {
        for id in ["mcpkg:acme.weather", "capability:tool:a", "agentcli:My Tools", "jumith:a=b"] {
            assert_eq!(package(id), Ok(Typed::whole_as(id)));
        }
        for (id, words) in [
            ("", "write the dialect and the id, such as mcpkg:acme.weather"),
            ("mcpkgs:x", "`mcpkgs` is no dialect; write one of"),
            ("mcpkgs:x", "did you mean `mcpkg`?"),
            ("mcpkg:", "has 1 to 506 characters"),
            ("mcpkg: ", "no blank at either end"),
            ("mcpkg:a\nb", "all of which can be seen"),
            ("mcpkg:a\0b", "all of which can be seen"),
            ("mcpkg:a\u{202e}b", "all of which can be seen"),
            (&format!("mcpkg:{}", "x".repeat(507)), "has 1 to 506 characters"),
        ] {
            let told = package(id).unwrap_err();
            assert!(told.contains(words), "{id:?}: {told}");
        }
        assert!(package(&format!("mcpkg:{}", "x".repeat(506))).is_ok());
        assert!(package("acme.weather").unwrap().is_bare);
    }

    #[test]
    fn a_secret_has_a_name_without_blanks_and_values() {
        for name in ["API_KEY", "acme.token", "a-b", "schlüssel"] {
            assert_eq!(check_secret(name), Ok(()), "{name}");
        }
        for name in ["", " ", "A B", "A=B", "A\0", "A\u{1b}[31m", &"x".repeat(257)] {
            let told = check_secret(name).unwrap_err();
            assert!(told.starts_with("the name of a secret has 1 to 256 characters"), "{told}");
        }
    }

    #[test]
    fn an_action_has_a_name_that_can_be_seen() {
        assert!(action("send mail").is_ok());
        assert!(action("").is_err() && action("a\tb").is_err());
        for pattern in ["{\"to\":\"*\"}", "={\"to\":\"a\"}"] {
            assert!(action(pattern).unwrap_err().contains("stands before it"));
        }
    }
}
