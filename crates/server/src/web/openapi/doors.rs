//! What other worlds can ask, each in its own words.

use registry::mcp::{Server, ServerList};
use serde_json::{Value, json};

use super::{Operation, PLAIN, Words, described, nothing};

const LISTED: &[&str] =
    &["cursor", "servers", "search", "since", "asked version", "include_deleted"];

pub(super) fn operations() -> Vec<Operation> {
    let mut all = vec![
        Operation {
            path: "/v1/catalog.json",
            name: "listCapabilities",
            summary: "Everything that can be told as a capability; a `Link` leads to the next page",
            parameters: &["after", "limit", "one namespace"],
            answers: |_| vec![object(&["version", "capabilities"]), nothing(304)],
            ..PLAIN
        },
        Operation {
            path: "/.well-known/install-manifests.json",
            name: "listManifests",
            summary: "The install-manifests, the first published first; a `Link` leads to the next page",
            parameters: &["after", "limit", "one namespace"],
            answers: |_| {
                vec![object(&["version", "publisher", "generated_at", "manifests"]), nothing(304)]
            },
            ..PLAIN
        },
        Operation {
            path: "/v1/tools/{id}/versions/{version}/manifest",
            name: "manifestVersion",
            summary: "The manifest of one version, as it was written",
            parameters: &["id", "version", "channel"],
            answers: |_| vec![object(&[]), nothing(304)],
            refusals: super::READ,
            ..PLAIN
        },
    ];
    all.extend(servers(
        ["/v0.1/servers", "listServers", "listServerVersions", "getServerVersion"],
        ["/v0.1/servers/{serverName}/versions", "/v0.1/servers/{serverName}/versions/{version}"],
    ));
    let older = servers(
        ["/v0/servers", "listServersOfOld", "listServerVersionsOfOld", "getServerVersionOfOld"],
        ["/v0/servers/{serverName}/versions", "/v0/servers/{serverName}/versions/{version}"],
    );
    all.extend(older.into_iter().map(|operation| Operation { deprecated: true, ..operation }));
    all
}

/// The API of the MCP world under one of its names.
fn servers(
    [all, list, list_versions, get]: [&'static str; 4],
    [versions, version]: [&'static str; 2],
) -> [Operation; 3] {
    let plain = Operation { words: Words::Mcp, refusals: &[400, 405, 422, 500, 503], ..PLAIN };
    let one = Operation { refusals: &[400, 404, 405, 422, 500, 503], ..plain };
    [
        Operation {
            path: all,
            name: list,
            summary: "MCP servers, each version for itself, by name",
            parameters: LISTED,
            answers: |shapes| vec![shapes.json::<ServerList>(200), nothing(304)],
            ..plain
        },
        Operation {
            path: versions,
            name: list_versions,
            summary: "The versions of an MCP server, the newest first",
            parameters: &["serverName", "include_deleted"],
            answers: |shapes| vec![shapes.json::<ServerList>(200), nothing(304)],
            ..one
        },
        Operation {
            path: version,
            name: get,
            summary: "One version of an MCP server",
            parameters: &["serverName", "version", "include_deleted"],
            answers: |shapes| vec![shapes.json::<Server>(200), nothing(304)],
            ..one
        },
    ]
}

/// A document of another world, which says itself what it is.
fn object(required: &[&str]) -> (u16, Value) {
    let schema = json!({"type": "object", "required": required});
    let content = json!({"application/json": {"schema": schema}});
    (200, json!({"description": described(200), "content": content}))
}
