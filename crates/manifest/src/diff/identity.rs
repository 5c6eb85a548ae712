//! Who the package is: id, version, kind, people, licence, and the words about it.

use std::cmp::Ordering;

use super::Class;
use super::changes::Changes;
use super::words::{gained, listed, quoted};
use crate::concept::Concept;
use crate::dialect::Dialect;
use crate::model::{Json, Kind, Person};

/// Another dialect is another contract.
pub(super) fn dialect(changes: &mut Changes, old: Dialect, new: Dialect) {
    if old != new {
        let message = format!("the dialect was `{old}` and is now `{new}`");
        changes.about("dialect").tell(Class::Breaking, Concept::FormatVersion, message);
    }
}

/// The versions of a dialect only add to one another.
pub(super) fn format_version(changes: &mut Changes, old: Option<&str>, new: Option<&str>) {
    changes.about("format version").text(Class::Cosmetic, Concept::FormatVersion, old, new);
}

/// Another id is another package.
pub(super) fn id(changes: &mut Changes, old: &str, new: &str) {
    if old != new {
        changes.about("id").replaced(Class::Breaking, Concept::Id, old, new);
    }
}

/// The namespace is a part of the canonical id.
pub(super) fn namespace(changes: &mut Changes, old: Option<&str>, new: Option<&str>) {
    changes.about("namespace").text(Class::Breaking, Concept::Namespace, old, new);
}

/// A version may only move forward.
pub(super) fn version(changes: &mut Changes, old: Option<&str>, new: Option<&str>) {
    let mut topic = changes.about("version");
    let (Some(old), Some(new)) = (old, new) else {
        return topic.text(Class::NeedsReview, Concept::Version, old, new);
    };
    if old == new {
        return;
    }
    let (before, after) = (quoted(old), quoted(new));
    let (class, message) = match precedence(old, new) {
        Some(Ordering::Less) => (Class::Cosmetic, format!("went from {before} to {after}")),
        Some(Ordering::Greater) => (Class::Breaking, format!("went back from {before} to {after}")),
        Some(Ordering::Equal) => (
            Class::NeedsReview,
            format!("{before} and {after} differ in build metadata alone, so neither is the newer"),
        ),
        None => (Class::NeedsReview, format!("{before} and {after} cannot be put in order")),
    };
    topic.tell(class, Concept::Version, message);
}

fn precedence(old: &str, new: &str) -> Option<Ordering> {
    let old = semver::Version::parse(old).ok()?;
    let new = semver::Version::parse(new).ok()?;
    Some(old.cmp_precedence(&new))
}

/// What a tool offers as a skill pack cannot be called as a tool.
pub(super) fn kind(changes: &mut Changes, old: Kind, new: Kind) {
    if old != new {
        changes.about("kind").replaced(Class::Breaking, Concept::Kind, old.name(), new.name());
    }
}

/// Words that only people read.
pub(super) fn text(changes: &mut Changes, concept: Concept, old: Option<&str>, new: Option<&str>) {
    changes.about(subject(concept)).text(Class::Cosmetic, concept, old, new);
}

/// Words that agents read, and may be steered by.
pub(super) fn prose(changes: &mut Changes, concept: Concept, old: Option<&str>, new: Option<&str>) {
    changes.about(subject(concept)).prose(concept, old, new);
}

/// The owner agreed to the old terms; a licence where there was none only gives.
pub(super) fn license(changes: &mut Changes, old: Option<&str>, new: Option<&str>) {
    let class = if old.is_none() { Class::Additive } else { Class::NeedsReview };
    changes.about("licence").text(class, Concept::License, old, new);
}

/// The author is a claim, which nothing rests on.
pub(super) fn author(changes: &mut Changes, old: Option<&Person>, new: Option<&Person>) {
    if old != new {
        let (old, new) = (old.map(words), new.map(words));
        let mut topic = changes.about("author");
        if old == new {
            topic.tell(Class::Cosmetic, Concept::Author, "how to reach the author changed");
        }
        topic.text(Class::Cosmetic, Concept::Author, old.as_deref(), new.as_deref());
    }
}

/// Trust rests on who publishes a package: another publisher is for the owner to judge.
pub(super) fn publisher(changes: &mut Changes, old: Option<&Person>, new: Option<&Person>) {
    if old == new {
        return;
    }
    let who = |person: &Person| (person.id.clone(), person.name.clone());
    let mut topic = changes.about("publisher");
    if old.map(who) == new.map(who) {
        let message = "how to reach the publisher changed";
        return topic.tell(Class::Cosmetic, Concept::Publisher, message);
    }
    let class = if old.is_none() { Class::Additive } else { Class::NeedsReview };
    let (old, new) = (old.map(words), new.map(words));
    topic.text(class, Concept::Publisher, old.as_deref(), new.as_deref());
}

/// Lists that only help people: tags, paths of examples.
pub(super) fn names(changes: &mut Changes, concept: Concept, old: &[String], new: &[String]) {
    let mut topic = changes.about(subject(concept));
    for (verb, names) in [("added", gained(old, new)), ("removed", gained(new, old))] {
        if !names.is_empty() {
            topic.tell(Class::Cosmetic, concept, format!("{verb} {}", listed(names)));
        }
    }
}

/// Where to get help.
pub(super) fn support(changes: &mut Changes, old: Option<&Json>, new: Option<&Json>) {
    if old.map(Json::value) != new.map(Json::value) {
        let (old, new) = (old.map(Json::text), new.map(Json::text));
        changes.about("support").text(Class::Cosmetic, Concept::Support, old, new);
    }
}

fn subject(concept: Concept) -> &'static str {
    let words = concept.words();
    words.strip_prefix("the ").unwrap_or(words)
}

fn words(person: &Person) -> String {
    let Person { id, name, email, url } = person;
    let known = [name, id, email, url].into_iter().flatten();
    known.map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_may_only_move_forward() {
        let table = [
            ("1.0.0", "1.0.1", Class::Cosmetic),
            ("1.0.0-rc.1", "1.0.0", Class::Cosmetic),
            ("1.9.0", "1.10.0", Class::Cosmetic),
            ("1.0.0", "1.0.0-rc.1", Class::Breaking),
            ("2.0.0", "1.9.9", Class::Breaking),
            ("1.0.0+a", "1.0.0+b", Class::NeedsReview),
            ("1.0.0", "99999999999999999999.0.0", Class::NeedsReview),
        ];
        for (old, new, class) in table {
            let mut changes = Changes::default();
            version(&mut changes, Some(old), Some(new));
            assert_eq!(changes.in_order()[0].class, class, "{old} {new}");
        }
    }

    #[test]
    fn another_publisher_needs_review_and_another_address_of_his_does_not() {
        let person = |name: &str, url: &str| Person {
            name: Some(name.into()),
            url: Some(url.into()),
            ..Person::default()
        };
        let class = |old: Option<&Person>, new: Option<&Person>| {
            let mut changes = Changes::default();
            publisher(&mut changes, old, new);
            changes.in_order()[0].class
        };
        let (acme, other) = (person("acme", "a"), person("other", "a"));
        assert_eq!(class(Some(&acme), Some(&other)), Class::NeedsReview);
        assert_eq!(class(Some(&acme), None), Class::NeedsReview);
        assert_eq!(class(None, Some(&acme)), Class::Additive);
        assert_eq!(class(Some(&acme), Some(&person("acme", "b"))), Class::Cosmetic);
    }
}
