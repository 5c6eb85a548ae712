//! What the lowerings of the dialects share: from a valid document to the model.

use sha2::{Digest, Sha256};

use crate::dialect::Dialect;
use crate::json::Node;
use crate::model::{Acquire, Channel, Json, Kind, Package, Permissions, Resources, Trust};

/// The text at a key, owned.
pub(crate) fn text(node: &Node<'_>, key: &str) -> Option<String> {
    node.text_at(key).map(str::to_owned)
}

/// The texts of the list at a key, owned.
pub(crate) fn texts(node: &Node<'_>, key: &str) -> Vec<String> {
    node.list_at(key).iter().filter_map(Node::as_text).map(str::to_owned).collect()
}

/// The members of the object at a key that are texts, with their names.
pub(crate) fn pairs(node: &Node<'_>, key: &str) -> Vec<(String, String)> {
    let members = node.get(key).map(Node::members).unwrap_or_default();
    members
        .iter()
        .filter_map(|member| Some((member.key.to_string(), member.value.as_text()?.to_owned())))
        .collect()
}

/// The value at a key, verbatim.
pub(crate) fn json(node: &Node<'_>, key: &str, source: &str) -> Option<Json> {
    node.get(key).filter(|value| !value.is_null()).map(|value| Json::of(value, source))
}

/// Milliseconds from a number of them.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what u64 holds"
)]
pub(crate) fn millis(node: Option<&Node<'_>>, factor: f64) -> Option<u64> {
    let number = node?.as_number()?.as_f64() * factor;
    (number > 0.0).then_some(number.min(9.0e15).ceil() as u64)
}

/// A package of which nothing is known but its dialect and bytes.
pub(crate) fn blank(dialect: Dialect, id: String, source: &str) -> Package {
    Package {
        dialect,
        format_version: None,
        id,
        namespace: None,
        version: None,
        kind: Kind::Tool,
        name: None,
        summary: None,
        description: None,
        homepage: None,
        license: None,
        author: None,
        publisher: None,
        tags: Vec::new(),
        acquire: Acquire::Bundle,
        implementations: Vec::new(),
        chain: None,
        inputs: Vec::new(),
        scopes: Vec::new(),
        permissions: Permissions::default(),
        sandbox: None,
        resources: Resources::default(),
        timeout_ms: None,
        auth: None,
        actions: Vec::new(),
        smoke: None,
        tests: Vec::new(),
        examples: Vec::new(),
        kill_switch: None,
        cost: None,
        uses_payment: None,
        dependencies: Vec::new(),
        data_boundary: None,
        verify: None,
        support: None,
        trust: Trust::Untrusted,
        enabled: true,
        requires_oauth: false,
        channel: Channel::Programmatic,
        origin: None,
        files_sha256: None,
        raw_sha256: hex(&Sha256::digest(source.as_bytes())),
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
