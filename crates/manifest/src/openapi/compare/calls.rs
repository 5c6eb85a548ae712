//! The HTTP calls that a manifest makes.

use super::Place;
use super::routes::Address;
use crate::dialect::Dialect;
use crate::json::{Node, Pointer};

/// One call of a manifest.
pub(super) struct Call<'n, 't> {
    /// The method, as the manifest writes it.
    pub(super) method: String,
    pub(super) method_at: Place,
    pub(super) address: Address,
    pub(super) url_at: Place,
    pub(super) input: Option<Schema<'n, 't>>,
    pub(super) output: Option<Schema<'n, 't>>,
    /// Inputs that are known to go somewhere else than into query or body.
    pub(super) placed: Vec<String>,
}

/// A schema of the manifest.
pub(super) struct Schema<'n, 't> {
    pub(super) node: &'n Node<'t>,
    pub(super) pointer: Pointer,
}

/// The calls of a manifest whose address can be read.
pub(super) fn calls<'n, 't>(manifest: &'n Node<'t>, dialect: Dialect) -> Vec<Call<'n, 't>> {
    match dialect {
        Dialect::Mcpkg => mcpkg(manifest),
        Dialect::InstallManifest => install_manifest(manifest),
        Dialect::Agentcli
        | Dialect::Capability
        | Dialect::Jumith
        | Dialect::Mcpb
        | Dialect::ServerJson
        | Dialect::Skill => Vec::new(),
    }
}

fn mcpkg<'n, 't>(manifest: &'n Node<'t>) -> Vec<Call<'n, 't>> {
    let own = manifest.get("endpoint").map(|node| (node, Pointer::root().key("endpoint")));
    let list = manifest.list_at("implementations").iter().enumerate();
    let others = list.filter_map(|(index, implementation)| {
        let pointer = Pointer::root().key("implementations").index(index).key("endpoint");
        Some((implementation.get("endpoint")?, pointer))
    });
    let schema = |field: &str| {
        let node = manifest.get(field)?;
        Some(Schema { node, pointer: Pointer::root().key(field) })
    };
    let call = |(endpoint, pointer): (&'n Node<'t>, Pointer)| {
        if endpoint.text_at("type") != Some("http") {
            return None;
        }
        let (method, url) = (endpoint.get("method")?, endpoint.get("url")?);
        let address = Address::parse(url.as_text()?)?;
        Some(Call {
            method: method.as_text()?.to_owned(),
            method_at: Place { pointer: pointer.key("method"), span: method.span },
            placed: address.names(),
            address,
            url_at: Place { pointer: pointer.key("url"), span: url.span },
            input: schema("input_schema"),
            output: schema("output_schema"),
        })
    };
    own.into_iter().chain(others).filter_map(call).collect()
}

fn install_manifest<'n, 't>(manifest: &'n Node<'t>) -> Vec<Call<'n, 't>> {
    let Some(base) = manifest.at(&["runtime", "endpoint_url"]).and_then(Node::as_text) else {
        return Vec::new();
    };
    let call = |(index, action): (usize, &'n Node<'t>)| {
        let pointer = Pointer::root().key("actions").index(index);
        let invocation = action.get("invocation")?;
        if invocation.text_at("kind") != Some("http") {
            return None;
        }
        let (method, path) = (invocation.get("method")?, invocation.get("path")?);
        let separator = if path.as_text()?.starts_with('/') { "" } else { "/" };
        let url = format!("{}{separator}{}", base.trim_end_matches('/'), path.as_text()?);
        let address = Address::parse(&url)?;
        let at = pointer.key("invocation");
        let mut placed = address.names();
        for header in invocation.get("headers").map(Node::members).unwrap_or_default() {
            placed.extend(header.value.as_text().into_iter().flat_map(inputs));
        }
        let schema = |node, pointer| Schema { node, pointer };
        Some(Call {
            method: method.as_text()?.to_owned(),
            method_at: Place { pointer: at.key("method"), span: method.span },
            address,
            url_at: Place { pointer: at.key("path"), span: path.span },
            input: action.get("input").map(|node| schema(node, pointer.key("input"))),
            output: action
                .get("output")
                .filter(|output| output.text_at("format") == Some("json"))
                .and_then(|output| output.get("schema"))
                .map(|node| schema(node, pointer.key("output").key("schema"))),
            placed,
        })
    };
    manifest.list_at("actions").iter().enumerate().filter_map(call).collect()
}

/// The inputs that a template uses: `${input.name}`.
pub(super) fn inputs(template: &str) -> impl Iterator<Item = String> {
    template.split("${input.").skip(1).filter_map(|rest| {
        let (name, _) = rest.split_once('}')?;
        Some(name.split('.').next()?.to_owned())
    })
}
