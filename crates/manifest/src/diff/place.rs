//! Where a thing stands in a document, as its dialect's shape has it.

use crate::concept::Concept;
use crate::dialect::{
    Dialect, agentcli, capability, install_manifest, jumith, mcpb, mcpkg, server_json, skill,
};
use crate::json::Pointer;
use crate::model::Package;
use crate::shape::Shape;

/// The places of one package's document.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places {
    document: Option<&'static Shape>,
    action: Option<&'static Shape>,
}

impl Places {
    /// The places of a package's document.
    pub(super) fn of(package: &Package) -> Self {
        let version = package.format_version.unwrap_or_default();
        let document = match package.dialect {
            Dialect::InstallManifest => {
                install_manifest::Version::named(version).map(install_manifest::shape)
            }
            Dialect::Mcpkg => mcpkg::Version::named(version).map(mcpkg::shape),
            Dialect::Agentcli => Some(agentcli::shape()),
            Dialect::Capability => Some(capability::shape()),
            Dialect::Jumith => Some(jumith::shape()),
            Dialect::Mcpb => mcpb::Version::named(version).map(mcpb::shape),
            Dialect::ServerJson => Some(server_json::shape()),
            Dialect::Skill => Some(skill::shape()),
        };
        let action = match package.dialect {
            Dialect::InstallManifest => document.and_then(|shape| element_of(shape, "actions")),
            Dialect::Agentcli | Dialect::Mcpb => {
                document.and_then(|shape| element_of(shape, "tools"))
            }
            Dialect::Mcpkg
            | Dialect::Capability
            | Dialect::Jumith
            | Dialect::ServerJson
            | Dialect::Skill => document,
        };
        Self { document, action }
    }

    /// Where the document speaks of something.
    pub(super) fn in_package(self, concept: Concept) -> Option<Pointer> {
        locate(self.document?, &Pointer::root(), concept)
    }

    /// Where an action that stands at `base` speaks of something; the action itself, failing that.
    pub(super) fn in_action(self, base: &Pointer, concept: Concept) -> Option<Pointer> {
        let found = self.action.and_then(|shape| locate(shape, base, concept));
        found.or_else(|| (*base != Pointer::root()).then(|| base.clone()))
    }
}

fn locate(shape: &Shape, at: &Pointer, concept: Concept) -> Option<Pointer> {
    if concept == Concept::Part {
        return None;
    }
    find(shape, at, concept).or_else(|| locate(shape, at, next_best(concept)?))
}

/// What speaks of the same thing in dialects that have no field of its own for it.
fn next_best(concept: Concept) -> Option<Concept> {
    match concept {
        Concept::Env => Some(Concept::SecretRefs),
        Concept::SecretRefs => Some(Concept::Secrets),
        Concept::Secrets => Some(Concept::Auth),
        Concept::Endpoint => Some(Concept::Run),
        _ => None,
    }
}

fn find(shape: &Shape, at: &Pointer, concept: Concept) -> Option<Pointer> {
    match shape {
        Shape::Object(object) => {
            let own = object.fields.iter().find(|field| field.concept == concept);
            own.map(|field| at.key(field.name)).or_else(|| {
                object
                    .fields
                    .iter()
                    .find_map(|field| find(&field.shape, &at.key(field.name), concept))
            })
        }
        Shape::Nullable(inner) | Shape::Ruled(inner) => find(inner, at, concept),
        // What is inside a list, a map or a choice has no one place: the author decides.
        Shape::List(_)
        | Shape::Map(_)
        | Shape::Choice(_)
        | Shape::Anything
        | Shape::Text(_)
        | Shape::Flag
        | Shape::Integer(_)
        | Shape::Number(_)
        | Shape::Word(_)
        | Shape::Schema => None,
    }
}

/// What each element of the list in that field is.
fn element_of(shape: &'static Shape, field: &str) -> Option<&'static Shape> {
    let Shape::Object(object) = shape else { return None };
    let mut shape = &object.fields.iter().find(|known| known.name == field)?.shape;
    loop {
        match shape {
            Shape::Nullable(inner) | Shape::Ruled(inner) => shape = inner,
            Shape::List(list) => return Some(&list.item),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(dialect: Dialect, version: &'static str) -> Places {
        let package = crate::dialect::lowering::blank(dialect, String::new(), "");
        Places::of(&Package { format_version: Some(version), ..package })
    }

    #[test]
    fn each_dialect_has_its_own_place_for_the_same_thing() {
        let table = [
            (Dialect::InstallManifest, "0.4", Concept::License, Some("/tool/license")),
            (Dialect::Mcpkg, "0.2", Concept::License, Some("/meta/license")),
            (Dialect::Jumith, "", Concept::License, None),
            (Dialect::InstallManifest, "0.2", Concept::Env, Some("/env")),
            (Dialect::Capability, "0.1", Concept::Env, Some("/secrets")),
            (Dialect::Jumith, "", Concept::Env, Some("/requiredSecrets")),
            (Dialect::Mcpb, "0.3", Concept::Env, Some("/user_config")),
            (Dialect::Mcpb, "0.1", Concept::Run, Some("/server/mcp_config")),
            (Dialect::Capability, "0.1", Concept::Endpoint, Some("/implementation")),
        ];
        for (dialect, version, concept, expected) in table {
            let found = places(dialect, version).in_package(concept);
            assert_eq!(found.as_ref().map(Pointer::as_str), expected, "{dialect} {concept:?}");
        }
    }

    #[test]
    fn a_schema_is_found_inside_its_action() {
        let base = Pointer::root().key("actions").index(2);
        let install = places(Dialect::InstallManifest, "0.4");
        assert_eq!(
            install.in_action(&base, Concept::Output).unwrap().as_str(),
            "/actions/2/output/schema"
        );
        assert_eq!(install.in_action(&base, Concept::Timeout).unwrap(), base);
        let capability = places(Dialect::Capability, "0.1");
        let root = Pointer::root();
        assert_eq!(
            capability.in_action(&root, Concept::Input).unwrap().as_str(),
            "/interfaces/inputs"
        );
        assert_eq!(capability.in_action(&root, Concept::SideEffects), None);
    }
}
