//! How the tool reaches the machine, and where its author says it comes from.

use serde_json::Value;

use super::Class;
use super::changes::Changes;
use super::words::{both, quoted};
use crate::concept::Concept;
use crate::model::{Acquire, Json};

/// Whether the acquisition has told a change already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It has.
    Already,
    /// It has not.
    NotYet,
}

/// A way to acquire, and the version of its package.
type Source<'p> = (&'p Acquire, Option<&'p str>);

/// Other code comes in: the owner looks at it, unless only a version pin followed the package's own.
pub(super) fn compare(changes: &mut Changes, old: Source<'_>, new: Source<'_>) -> Told {
    if is_same(old.0, new.0) {
        return Told::NotYet;
    }
    let class = if is_following(old, new) { Class::Additive } else { Class::NeedsReview };
    let message = format!("was {} and is now {}", words(old.0), words(new.0));
    changes.about("acquisition").tell(class, Concept::Acquire, message);
    Told::Already
}

/// What the author says of the source. A signature differs whenever the bytes do; a lost one counts.
pub(super) fn origin(changes: &mut Changes, old: Option<&Json>, new: Option<&Json>, told: Told) {
    let (before, after) = (value(old), value(new));
    if before == after {
        return;
    }
    let mut topic = changes.about("origin");
    let field = |origin: &Value, key: &str| origin[key].as_str().map(str::to_owned);
    match (field(&before, "signature"), field(&after, "signature")) {
        (Some(signature), None) => {
            let message = format!("the signature {} was removed", quoted(&signature));
            topic.tell(Class::NeedsReview, Concept::Origin, message);
        }
        (None, Some(signature)) => {
            let message = format!("the signature {} was added", quoted(&signature));
            topic.tell(Class::Additive, Concept::Origin, message);
        }
        (Some(old), Some(new)) if old != new => {
            let (old, new) = both(&old, &new);
            let message = format!("the signature was {old} and is now {new}");
            topic.tell(Class::Cosmetic, Concept::Origin, message);
        }
        (Some(_), Some(_)) | (None, None) => {}
    }
    if told == Told::Already {
        return;
    }
    for key in ["source", "url", "path", "digest"] {
        let read = |origin: &Value| {
            let text = field(origin, key)?;
            let digest = || text.trim_start_matches("sha256:").to_ascii_lowercase();
            Some(if key == "digest" { digest() } else { text })
        };
        let (old, new) = (read(&before), read(&after));
        if old != new {
            let show = |text: Option<String>| quoted(text.as_deref().unwrap_or("nothing"));
            let message = format!("its {key} was {} and is now {}", show(old), show(new));
            topic.tell(Class::NeedsReview, Concept::Origin, message);
        }
    }
}

fn value(json: Option<&Json>) -> Value {
    json.map_or(Value::Null, Json::value)
}

fn is_same(old: &Acquire, new: &Acquire) -> bool {
    match (old, new) {
        (Acquire::Preinstalled { locator: old }, Acquire::Preinstalled { locator: new }) => {
            old.value() == new.value()
        }
        _ => old == new,
    }
}

/// Whether the same package is pinned to its own version, before and after.
fn is_following(old: Source<'_>, new: Source<'_>) -> bool {
    let is_own = |spec: &Option<String>, version: Option<&str>| match (spec, version) {
        (Some(spec), Some(version)) => spec.trim_start_matches('=').trim() == version,
        _ => false,
    };
    match (old.0, new.0) {
        (
            Acquire::Pip { package, version_spec },
            Acquire::Pip { package: new_package, version_spec: new_spec },
        )
        | (
            Acquire::Npm { package, version_spec },
            Acquire::Npm { package: new_package, version_spec: new_spec },
        ) => package == new_package && is_own(version_spec, old.1) && is_own(new_spec, new.1),
        _ => false,
    }
}

fn words(acquire: &Acquire) -> String {
    let spec = |spec: &Option<String>| match spec {
        Some(spec) => format!(" {}", quoted(spec)),
        None => " in any version".to_owned(),
    };
    match acquire {
        Acquire::Bundle => "the package itself".to_owned(),
        Acquire::Pip { package, version_spec } => {
            format!("the Python package {}{}", quoted(package), spec(version_spec))
        }
        Acquire::Npm { package, version_spec } => {
            format!("the Node package {}{}", quoted(package), spec(version_spec))
        }
        Acquire::Git { url, reference, subpath, layout } => {
            let part = |noun: &str, part: &Option<String>| match part {
                Some(part) => format!(", {noun} {}", quoted(part)),
                None => String::new(),
            };
            let (folder, layout) = (part("folder", subpath), part("layout", layout));
            format!("the repository {} at {}{folder}{layout}", quoted(url), quoted(reference))
        }
        Acquire::Container { image } => format!("the image {}", quoted(image)),
        Acquire::Url { url, sha256 } if sha256.is_empty() => {
            format!("{} with no known SHA-256", quoted(url))
        }
        Acquire::Url { url, sha256 } => format!("{} with SHA-256 {}", quoted(url), quoted(sha256)),
        Acquire::Preinstalled { locator } => format!("there already: {}", quoted(locator.text())),
        Acquire::LocalPath { path: Some(path) } => format!("the path {}", quoted(path)),
        Acquire::LocalPath { path: None } => "a path on this machine".to_owned(),
        Acquire::Nothing => "nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pip(package: &str, spec: &str) -> Acquire {
        Acquire::Pip { package: package.into(), version_spec: Some(spec.into()) }
    }

    fn class(old: (&Acquire, &str), new: (&Acquire, &str)) -> Option<Class> {
        let mut changes = Changes::default();
        compare(&mut changes, (old.0, Some(old.1)), (new.0, Some(new.1)));
        changes.in_order().first().map(|change| change.class)
    }

    #[test]
    fn a_pin_that_follows_the_packages_own_version_is_additive() {
        let (old, new) = (pip("acme", "==1.0.0"), pip("acme", "==1.1.0"));
        assert_eq!(class((&old, "1.0.0"), (&new, "1.1.0")), Some(Class::Additive));
        assert_eq!(class((&old, "1.0.0"), (&new, "1.2.0")), Some(Class::NeedsReview));
        assert_eq!(
            class((&old, "1.0.0"), (&pip("acme", ">=1.1.0"), "1.1.0")),
            Some(Class::NeedsReview)
        );
        assert_eq!(
            class((&old, "1.0.0"), (&pip("acme-evil", "==1.1.0"), "1.1.0")),
            Some(Class::NeedsReview)
        );
        assert_eq!(class((&old, "1.0.0"), (&old, "1.1.0")), None);
    }

    #[test]
    fn another_way_to_acquire_needs_review() {
        let image = |digest: &str| Acquire::Container { image: format!("acme/tool@{digest}") };
        let (old, new) = (image("sha256:aa"), image("sha256:bb"));
        assert_eq!(class((&old, "1.0.0"), (&new, "1.1.0")), Some(Class::NeedsReview));
        assert_eq!(class((&old, "1.0.0"), (&Acquire::Bundle, "1.1.0")), Some(Class::NeedsReview));
    }
}
