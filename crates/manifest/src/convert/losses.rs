//! What a conversion loses, seen from the source: every field that the target has no place for.

use crate::concept::{Concept, Weight};
use crate::dialect::{
    Dialect, Form, agentcli, capability, install_manifest, jumith, mcpb, mcpkg, server_json,
};
use crate::json::{Node, Path, Pointer, parse};
use crate::model::Package;
use crate::shape::{Object, Shape};

/// Something the target cannot carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Where it stands in the source.
    pub pointer: Pointer,
    /// What is lost, and why.
    pub reason: String,
    /// How much that matters.
    pub weight: Weight,
}

/// Where in the source the converted package stands.
#[derive(Debug)]
pub(super) struct Place<'p> {
    pub(super) form: Form,
    pub(super) entry: Option<usize>,
    pub(super) only: Option<&'p str>,
}

impl Place<'_> {
    /// Where the manifest stands in its document.
    pub(super) fn base(&self) -> Pointer {
        match (self.form, self.entry) {
            (Form::Bundle, _) => Pointer::root().key("manifest"),
            (Form::Catalog, Some(index)) => Pointer::root().key("capabilities").index(index),
            _ => Pointer::root(),
        }
    }
}

/// Whether a dialect has a place for a concept.
#[expect(clippy::too_many_lines, reason = "a table reads better in one piece")]
pub fn carries(target: Dialect, concept: Concept) -> bool {
    use Concept as C;
    if matches!(concept, C::Part | C::FormatVersion) {
        return true;
    }
    match target {
        Dialect::InstallManifest => matches!(
            concept,
            C::Id
                | C::Namespace
                | C::Version
                | C::DisplayName
                | C::Summary
                | C::Description
                | C::Homepage
                | C::Author
                | C::License
                | C::Tags
                | C::Support
                | C::Acquire
                | C::RuntimeKind
                | C::WorkingFolder
                | C::Run
                | C::McpServer
                | C::Endpoint
                | C::Headers
                | C::Auth
                | C::Env
                | C::EnvPrompt
                | C::EnvDefault
                | C::Secrets
                | C::Scopes
                | C::Actions
                | C::Input
                | C::Output
                | C::OutputFormat
                | C::SideEffects
                | C::Idempotent
                | C::ScopesUsed
                | C::ErrorEnvelope
                | C::Smoke
                | C::KillSwitch
                | C::Verify
                | C::DataBoundary
                | C::Cost
        ),
        Dialect::Agentcli => matches!(
            concept,
            C::Id
                | C::Description
                | C::Summary
                | C::Input
                | C::Run
                | C::Timeout
                | C::Env
                | C::EnvPassthrough
                | C::Actions
        ),
        Dialect::Mcpkg => matches!(
            concept,
            C::RuntimeKind
                | C::Id
                | C::DisplayName
                | C::Version
                | C::Description
                | C::Summary
                | C::Tags
                | C::Run
                | C::Endpoint
                | C::Implementations
                | C::Requirements
                | C::Chain
                | C::Input
                | C::Output
                | C::Auth
                | C::AuthHints
                | C::SideEffects
                | C::Idempotent
                | C::Tests
                | C::Publisher
                | C::License
                | C::Homepage
                | C::Timeout
                | C::Actions
        ),
        Dialect::Capability => matches!(
            concept,
            C::Secrets
                | C::Env
                | C::Id
                | C::Kind
                | C::Version
                | C::Description
                | C::Summary
                | C::Origin
                | C::Input
                | C::Output
                | C::Permissions
                | C::Sandbox
                | C::Resources
                | C::Timeout
                | C::Trust
                | C::Channel
                | C::SecretRefs
                | C::Run
                | C::Enabled
                | C::Oauth
                | C::Actions
        ),
        Dialect::Jumith => matches!(
            concept,
            C::Env
                | C::Id
                | C::DisplayName
                | C::Version
                | C::Summary
                | C::Description
                | C::Tags
                | C::Publisher
                | C::Input
                | C::Output
                | C::Approval
                | C::Secrets
                | C::Payment
                | C::Actions
        ),
        // Nothing is written in it.
        Dialect::Mcpb | Dialect::ServerJson | Dialect::Skill => false,
    }
}

/// Lists every field of the source that the target has no place for.
pub(super) fn audit(
    bytes: &[u8],
    package: &Package,
    target: Dialect,
    place: &Place<'_>,
) -> Vec<Loss> {
    let Some(root) = std::str::from_utf8(bytes).ok().and_then(|text| parse(text).root) else {
        return Vec::new();
    };
    let mut audit = Audit { target, only: place.only, losses: Vec::new() };
    match (package.dialect, place.form) {
        (Dialect::InstallManifest, _) => {
            let version = package.format_version.and_then(install_manifest::Version::named);
            audit.value(
                install_manifest::shape(version.unwrap_or(install_manifest::Version::V0_4)),
                &root,
                Path::ROOT,
            );
        }
        (Dialect::Agentcli, _) => audit.value(agentcli::shape(), &root, Path::ROOT),
        (Dialect::Mcpkg, _) => {
            audit.value(mcpkg::shape(mcpkg::Version::of(&root)), &root, Path::ROOT);
        }
        (Dialect::Capability, Form::Catalog) => {
            let entries = root.list_at("capabilities");
            let index = place.entry.unwrap_or(0);
            if let Some(entry) = entries.get(index) {
                audit.value(
                    capability::shape(),
                    entry,
                    Path::ROOT.key("capabilities").index(index),
                );
            }
            for (at, other) in entries.iter().enumerate().filter(|(at, _)| *at != index) {
                let reason = format!(
                    "the entry `{}` is left out: one is converted at a time",
                    other.text_at("id").unwrap_or_default()
                );
                audit.losses.push(Loss {
                    pointer: Path::ROOT.key("capabilities").index(at).pointer(),
                    reason,
                    weight: Weight::Behaviour,
                });
            }
        }
        (Dialect::Capability, _) => audit.value(capability::shape(), &root, Path::ROOT),
        (Dialect::Jumith, Form::Bundle) => audit.value(jumith::bundle_shape(), &root, Path::ROOT),
        (Dialect::Jumith, _) => audit.value(jumith::shape(), &root, Path::ROOT),
        (Dialect::ServerJson, _) => audit.value(server_json::shape(), &root, Path::ROOT),
        // What is called of a skill are its files, and none of them is in the document.
        (Dialect::Skill, _) => {}
        (Dialect::Mcpb, _) => {
            let version = mcpb::Version::of(&root).unwrap_or(mcpb::Version::V0_4);
            audit.value(mcpb::shape(version), &root, Path::ROOT);
        }
    }
    audit.losses
}

struct Audit<'a> {
    target: Dialect,
    only: Option<&'a str>,
    losses: Vec<Loss>,
}

impl Audit<'_> {
    fn value(&mut self, shape: &Shape, node: &Node<'_>, path: Path<'_>) {
        match shape {
            Shape::Nullable(inner) | Shape::Ruled(inner) => self.value(inner, node, path),
            Shape::Object(object) => self.object(object, None, node, path),
            Shape::Choice(choice) => {
                let tag = node.text_at(choice.tag).unwrap_or_default();
                if let Some(branch) = choice.branches.iter().find(|branch| branch.name == tag) {
                    self.object(&branch.object, Some(choice.tag), node, path);
                }
            }
            Shape::List(list) => {
                for (index, item) in node.items().iter().enumerate() {
                    self.value(&list.item, item, path.index(index));
                }
            }
            Shape::Map(inner) => {
                for member in node.members() {
                    self.value(inner, &member.value, path.key(&member.key));
                }
            }
            _ => {}
        }
    }

    /// A target that knows one way to run a tool carries the first.
    fn implementations(&mut self, shape: &Shape, node: &Node<'_>, path: Path<'_>) {
        let (Shape::List(list), Some(first)) = (shape, node.items().first()) else { return };
        self.value(&list.item, first, path.index(0));
        for index in 1..node.items().len() {
            let reason = "only the first implementation is carried over".to_owned();
            self.losses.push(Loss {
                pointer: path.index(index).pointer(),
                reason,
                weight: Weight::Behaviour,
            });
        }
    }

    fn object(&mut self, object: &Object, tag: Option<&str>, node: &Node<'_>, path: Path<'_>) {
        // An action or tool that was not asked for is one loss, not as many as it has fields.
        if let Some(only) = self.only
            && is_callable(object)
            && let Some(name) = node.text_at("name").filter(|name| *name != only)
        {
            let reason = format!("`{name}` is left out: only `{only}` was asked for");
            return self.losses.push(Loss {
                pointer: path.pointer(),
                reason,
                weight: Weight::Behaviour,
            });
        }
        for member in node.members() {
            let key = member.key.as_ref();
            let path = path.key(key);
            match object.fields.iter().find(|field| field.name == key) {
                Some(field) if says_nothing(field.concept, &member.value) => {}
                Some(field)
                    if field.concept == Concept::Implementations
                        && !carries(self.target, field.concept) =>
                {
                    self.implementations(&field.shape, &member.value, path);
                }
                Some(field) if !carries(self.target, field.concept) => {
                    let words = field.concept.words();
                    let reason = format!("{} has no place for {words}", self.target);
                    self.losses.push(Loss {
                        pointer: path.pointer(),
                        reason,
                        weight: field.concept.weight(),
                    });
                }
                Some(field) => self.value(&field.shape, &member.value, path),
                None if Some(key) == tag => {}
                None => {
                    let reason = format!("`{key}` is unknown and is not carried over");
                    self.losses.push(Loss {
                        pointer: path.pointer(),
                        reason,
                        weight: Weight::Cosmetic,
                    });
                }
            }
        }
    }
}

/// Whether the object is an action or a tool of a list.
fn is_callable(object: &Object) -> bool {
    let field = |name: &str| object.fields.iter().find(|field| field.name == name);
    field("name").is_some_and(|name| name.concept == Concept::Actions || field("command").is_some())
}

/// An empty list or object says nothing that could be lost, nor does what is so by itself: `auth`
/// of type none, a setting that takes one plain text, a list that is complete.
fn says_nothing(concept: Concept, node: &Node<'_>) -> bool {
    use crate::json::Value;
    match (&node.value, concept) {
        (_, Concept::Part) => false,
        (Value::List(items), _) => items.is_empty(),
        (Value::Object(members), _) => {
            members.is_empty() || (concept == Concept::Auth && node.text_at("type") == Some("none"))
        }
        (Value::Null, _)
        | (Value::Bool(false), Concept::Discovery | Concept::EnvKind | Concept::Secrets) => true,
        (Value::Text(kind), Concept::EnvKind) => kind == "string",
        _ => false,
    }
}
