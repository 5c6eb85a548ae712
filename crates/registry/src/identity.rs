//! What a package is called in a registry, and whose names it is among.

use manifest::dialect::Dialect;
use manifest::model::Package;
use manifest::shape::{is_unseen, mixes_alphabets};

/// What the id of a tool begins with in a registry.
pub const PREFIX: &str = "tool:";

/// The id that a package has of itself: with its namespace before it, where the dialect has one apart.
pub fn source_id(package: &Package) -> String {
    match &package.namespace {
        Some(namespace) => format!("{namespace}/{}", package.id),
        None => package.id.clone(),
    }
}

/// Its id in a registry: the source id with the prefix, which is not put before itself.
pub fn id(package: &Package) -> String {
    with_prefix(&source_id(package))
}

/// The name in a registry: the source id. A Jumith tool has a name of its own, by which its secrets are kept.
pub fn name(package: &Package) -> String {
    match (&package.name, package.dialect) {
        (Some(name), Dialect::Jumith) => name.clone(),
        _ => source_id(package),
    }
}

/// An id or a name with the prefix.
pub fn with_prefix(id: &str) -> String {
    if id.starts_with(PREFIX) { id.to_owned() } else { format!("{PREFIX}{id}") }
}

/// Whose names a package is among: its namespace, else the first part of its id, else the id.
pub fn namespace(package: &Package) -> &str {
    package.namespace.as_deref().unwrap_or_else(|| namespace_of(&package.id))
}

/// The first part of an id or of a name, without the prefix; all of it when it has no parts.
pub fn namespace_of(id: &str) -> &str {
    let plain = id.strip_prefix(PREFIX).unwrap_or(id);
    plain.split('.').next().filter(|first| !first.is_empty()).unwrap_or(plain)
}

/// The longest id, name and namespace, in bytes.
pub const LONGEST: usize = 256;

/// Whether a text can be an id or a name in a registry, or a namespace, which is a part of one: all of it is seen, in
/// one alphabet and without blanks; a `*` would stand for everybody's; and a part between slashes is neither nothing
/// nor dots, which addresses pass over.
pub fn is_name(text: &str) -> bool {
    let plain = text.strip_prefix(PREFIX).unwrap_or(text);
    let is_strange = plain.contains(|c: char| c == '*' || c.is_whitespace() || is_unseen(c));
    let has_dots = plain.split('/').any(|part| ["", ".", ".."].contains(&part));
    text.len() <= LONGEST && !is_strange && !has_dots && !mixes_alphabets(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_or_asked_for_is_no_name() {
        for name in ["acme", "tool:acme.pdf", "com.example/weather", "a/b:c", "читать", "a_b-c"]
        {
            assert!(is_name(name), "{name}");
        }
        let long = "x".repeat(LONGEST + 1);
        for name in [
            "",
            "tool:",
            "a b",
            "a*",
            "*",
            "a//b",
            "/a",
            "a/..",
            ".",
            "a\u{200b}",
            "\u{430}cme",
            &long,
        ] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn the_prefix_is_put_before_an_id_once() {
        assert_eq!(with_prefix("demo.echo"), "tool:demo.echo");
        assert_eq!(with_prefix("tool:demo.echo"), "tool:demo.echo");
    }

    #[test]
    fn a_namespace_is_the_first_part_of_an_id_or_all_of_it() {
        for (id, namespace) in [
            ("acme.pdf.read", "acme"),
            ("tool:acme.pdf", "acme"),
            ("order_pizza", "order_pizza"),
            (".hidden", ".hidden"),
            ("tool:", ""),
        ] {
            assert_eq!(namespace_of(id), namespace, "{id}");
        }
    }
}
