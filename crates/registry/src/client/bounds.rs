//! Whether an answer is about what was asked, and no larger than it may be.

use std::collections::HashSet;

use super::error::FetchError;
use super::limits;
use crate::describe::Describe;
use crate::find::{Found, Page};
use crate::identity::with_prefix;
use crate::versions::Versions;

/// Refuses an id that no address can carry.
pub(super) fn check_id(id: &str) -> Result<(), FetchError> {
    let is_dots = |part: &str| matches!(part, "" | "." | "..");
    let is_askable =
        id.len() <= limits::NAME && !id.contains(char::is_control) && !id.split('/').any(is_dots);
    if is_askable { Ok(()) } else { Err(FetchError::Unaskable("id", id.to_owned())) }
}

/// Refuses a version that is none.
pub(super) fn check_version(version: &str) -> Result<(), FetchError> {
    let is_one = version.len() <= limits::NAME && semver::Version::parse(version).is_ok();
    if is_one { Ok(()) } else { Err(FetchError::Unaskable("version", version.to_owned())) }
}

/// Refuses a page with more than was asked for, or with texts that nobody can read.
pub(super) fn check_page(page: &Page, limit: usize) -> Result<(), FetchError> {
    if page.results.len() > limit {
        return Err(FetchError::TooMuch("page of results"));
    }
    let mut ids = HashSet::new();
    for found in &page.results {
        check_found(found)?;
        if !ids.insert(&found.id) {
            return Err(FetchError::TooMuch("page of results"));
        }
    }
    Ok(())
}

/// Whether clients take a result; a registry offers no other.
pub fn is_bounded(found: &Found) -> bool {
    check_found(found).is_ok()
}

fn check_found(found: &Found) -> Result<(), FetchError> {
    let names = [&found.id, &found.name, &found.version];
    let provider = found.provider.as_deref().unwrap_or_default();
    check_words(names, &found.summary, provider, &[&found.tags, &found.required_secrets])
}

/// Refuses a description of something else, or one with texts that nobody can read.
pub(super) fn check_describe(
    describe: &Describe,
    id: &str,
    version: Option<&str>,
) -> Result<(), FetchError> {
    check_named(id, &describe.id, &describe.name)?;
    if let Some(version) = version.filter(|version| *version != describe.version) {
        return Err(other("version", version, &describe.version));
    }
    let names = [&describe.id, &describe.name, &describe.version];
    let provider = describe.provider.as_deref().unwrap_or_default();
    let lists = [&describe.tags, &describe.required_secrets];
    check_words(names, &describe.summary, provider, &lists.map(Vec::as_slice))?;
    if describe.entry.runtime.len() > limits::NAME {
        return Err(FetchError::TooMuch("description"));
    }
    Ok(())
}

/// Refuses versions of something else, too many, or one of them twice.
pub(super) fn check_versions(versions: &Versions, id: &str) -> Result<(), FetchError> {
    check_named(id, &versions.id, &versions.name)?;
    if versions.versions.len() > limits::VERSIONS {
        return Err(FetchError::TooMuch("list of versions"));
    }
    let mut seen = HashSet::new();
    for one in &versions.versions {
        let reason = one.yank_reason.as_deref().unwrap_or_default();
        let by = one.yanked_by.as_deref().unwrap_or_default();
        let has_long_name = [&one.version, by].iter().any(|name| name.len() > limits::NAME);
        if has_long_name || reason.len() > limits::LINE {
            return Err(FetchError::TooMuch("list of versions"));
        }
        if !seen.insert(&one.version) {
            return Err(other("versions", "each once", &one.version));
        }
    }
    if let Some(latest) = versions.latest.as_ref().filter(|latest| !seen.contains(latest)) {
        return Err(other("versions", "the latest among them", latest));
    }
    Ok(())
}

/// A tool is asked for by its id, with or without the prefix, or by its name.
pub(super) fn check_named(asked: &str, id: &str, name: &str) -> Result<(), FetchError> {
    if asked == id || asked == name || with_prefix(asked) == id {
        Ok(())
    } else {
        Err(other("tool", asked, id))
    }
}

fn check_words(
    names: [&String; 3],
    summary: &str,
    provider: &str,
    lists: &[&[String]],
) -> Result<(), FetchError> {
    let is_too_much = names.iter().any(|name| name.len() > limits::NAME)
        || summary.len() > limits::LINE
        || provider.len() > limits::NAME
        || lists.iter().any(|list| {
            list.len() > limits::WORDS || list.iter().any(|word| word.len() > limits::NAME)
        });
    if is_too_much { Err(FetchError::TooMuch("description")) } else { Ok(()) }
}

/// An answer about something else; of what a stranger says no more is told than can be read.
pub(super) fn other(what: &'static str, asked: &str, answered: &str) -> FetchError {
    let answered = clip(answered, 200);
    FetchError::Other { what, asked: asked.to_owned(), answered }
}

/// The beginning of a stranger's text.
pub(super) fn clip(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_address_can_carry_is_not_asked_for() {
        for id in ["", ".", "..", "a/../b", "a//b", "/a", "a\nb", &"x".repeat(600)] {
            assert!(check_id(id).is_err(), "{id}");
        }
        for id in ["demo.echo", "tool:demo.echo", "acme/pdf", "a b", "caf\u{e9}"] {
            assert!(check_id(id).is_ok(), "{id}");
        }
        assert!(check_version("1.0").is_err() && check_version("latest").is_err());
        assert!(check_version("1.0.0+build").is_ok());
    }

    #[test]
    fn a_tool_answers_to_its_id_and_its_name() {
        assert!(check_named("demo.echo", "tool:demo.echo", "demo.echo").is_ok());
        assert!(check_named("order", "tool:acme.order", "order").is_ok());
        assert!(check_named("demo.echo", "tool:demo.evil", "demo.evil").is_err());
        assert!(check_named("demo.echo", "demo.echo2", "x").is_err());
    }
}
