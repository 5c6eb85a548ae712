//! Ids that may be taken for those of others.

use std::time::Duration;

use install::Contents;
use manifest::dialect::Dialect;
use manifest::look::{Likeness, is_mixed, likeness};
use manifest::model::Package;
use policy::Policy;
use registry::client::{Question, Remote};

use super::Agreement;
use crate::ask::Ask;
use crate::exit::{Exit, Failure};
use crate::owner;
use crate::printer::line;

/// Whether an id may be taken for that of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Similar {
    /// The owner is asked about it.
    Asked,
    /// The owner said that it is the one they mean.
    Allowed,
}

/// Whose ids an id may be taken for.
pub(super) struct Known<'k> {
    pub(super) contents: &'k Contents,
    pub(super) policy: &'k Policy,
    /// The registry that the package came from.
    pub(super) registry: Option<&'k Remote>,
}

/// Asks first where an id may be taken for that of a package that is installed, that the policy speaks of, or that its
/// registry has had for longer. Nobody who agrees beforehand has seen it, so then it is refused, unless that was allowed too.
pub(super) fn check(
    package: &Package,
    &Known { contents, policy, registry }: &Known<'_>,
    (similar, agreed): (Similar, Agreement),
    ask: Ask,
) -> Result<(), Failure> {
    let id = package.canonical_id();
    // Who has it knows it.
    if similar == Similar::Allowed || contents.lock.get(&id).is_some() {
        return Ok(());
    }
    let installed = contents.listed();
    let installed = installed.iter().map(|one| (one.id.as_str(), "which is installed"));
    let named = policy.packages.keys().map(|key| (key.as_str(), "which your policy speaks of"));
    let elders = || {
        let registry = registry?;
        let elder = elder(registry, &package.id)?;
        doubt(&id, std::iter::once((elder.as_str(), "which its registry has had for longer")))
    };
    let Some(why) = doubt(&id, installed.chain(named)).or_else(elders) else { return Ok(()) };
    if agreed != Agreement::Asked || !ask.is_possible() {
        return Err(Failure::new(Exit::Denied, why)
            .hint("look at it twice; --allow-similar says that it is the one you mean"));
    }
    if ask.yes_or_no(&format!("{why}. Is it the one you mean?"))? {
        Ok(())
    } else {
        Err(Failure::new(Exit::Denied, "not installed: it is not the one you mean"))
    }
}

/// How many tools of a registry an id is held against.
const NEIGHBOURS: usize = 20;
/// How long a registry is waited for, which is only asked what else it has.
const PATIENCE: Duration = Duration::from_secs(5);

/// An id like this one that its registry has had for longer: of two that look alike, the younger one may live on the name
/// of the other. A registry that cannot say so is not waited for, and keeps nobody from installing.
fn elder(registry: &Remote, id: &str) -> Option<String> {
    let words: Vec<_> = id.split(|letter: char| !letter.is_alphanumeric()).collect();
    let question = Question { words: words.join(" "), limit: NEIGHBOURS, ..Question::default() };
    let first = async |id: &str| {
        let versions = registry.versions(id).await.ok()?.versions;
        versions.iter().map(|version| version.published_at).min()
    };
    let asked = async {
        let page = registry.search(&question).await.ok()?;
        let mut like = page
            .results
            .into_iter()
            .filter(|found| found.name != id && mistaken_for(bare(id), bare(&found.name)).is_some())
            .peekable();
        like.peek()?;
        let own = first(id).await?;
        for found in like {
            if first(&found.id).await.is_some_and(|elder| elder < own) {
                return Some(found.name);
            }
        }
        None
    };
    let runtime = owner::runtime().ok()?;
    runtime.block_on(async { tokio::time::timeout(PATIENCE, asked).await.ok()? })
}

/// What to say of an id that may be taken for another one.
fn doubt<'o>(id: &str, others: impl Iterator<Item = (&'o str, &'static str)>) -> Option<String> {
    let own = bare(id);
    if is_mixed(own) {
        return Some(format!("the id `{}` has letters of several alphabets", line(id)));
    }
    let is_other = |(other, _): &(&str, &str)| *other != id && *other != own;
    others.filter(is_other).find_map(|(other, whence)| {
        let how = mistaken_for(own, bare(other))?;
        Some(format!("the id `{}` {how} `{}`, {whence}", line(id), line(other)))
    })
}

/// How an id may be taken for another one, both without their dialects.
fn mistaken_for(own: &str, other: &str) -> Option<&'static str> {
    match likeness(own, other)? {
        Likeness::Same => Some("looks like"),
        // `s3` and `s4`, `tool1` and `tool12` are two of a kind.
        Likeness::OneEdit if without_digits(own) == without_digits(other) => None,
        Likeness::OneEdit => Some("differs by one letter from"),
    }
}

fn without_digits(id: &str) -> String {
    id.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

/// An id without its dialect; what registries call `tool:x` is called `x` by people.
fn bare(id: &str) -> &str {
    let id = match id.split_once(':') {
        Some((dialect, bare)) if Dialect::named(dialect).is_some() => bare,
        _ => id,
    };
    id.strip_prefix("tool:").unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_may_be_taken_for_another_one_is_told() {
        let known = ["mcpkg:acme.pdf.read", "jumith:tool:email.send", "capability:notes"];
        let doubt = |id| doubt(id, known.iter().map(|id| (*id, "which is installed")));
        for (id, words) in [
            ("mcpkg:acme.pdf.raed", "differs by one letter from `mcpkg:acme.pdf.read`"),
            ("mcpkg:acme.pdf.reads", "differs by one letter"),
            ("capability:acme.pdf.read", "looks like `mcpkg:acme.pdf.read`, which is installed"),
            ("capability:Email.Send", "looks like `jumith:tool:email.send`"),
            ("capability:\u{430}cme", "letters of several alphabets"),
        ] {
            let told = doubt(id).unwrap_or_default();
            assert!(told.contains(words), "{id}: {told}");
        }
        for id in [
            "mcpkg:acme.pdf.write",
            "capability:note-book",
            "mcpkg:acme.pdf.read",
            "mcpkg:acme.pdf.read2",
        ] {
            assert_eq!(doubt(id), None, "{id}");
        }
    }
}
