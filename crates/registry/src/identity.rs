//! What a package is called in a registry, and whose names it is among.

use manifest::dialect::Dialect;
use manifest::model::Package;

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

#[cfg(test)]
mod tests {
    use super::*;

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
