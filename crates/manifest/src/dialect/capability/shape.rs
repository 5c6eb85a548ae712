//! The shape of a capability manifest, and of a catalog of them.

use std::sync::LazyLock;

use crate::concept::Concept;
use crate::finding::Code;
use crate::shape::{
    Bounds, Format, Shape, closed, filled_text, list, list_within, may, must, open, patterns, text,
    text_as, text_like, word,
};

static SHAPE: LazyLock<Shape> = LazyLock::new(manifest);
static CATALOG: LazyLock<Shape> = LazyLock::new(|| {
    open(vec![
        must("capabilities", "The entries.", list(manifest())),
        may("version", "The version of the format or of the catalog.", Shape::Anything)
            .is(Concept::FormatVersion),
    ])
});

/// The fixed words for a secret that is more, or less, than a reference.
const REFERENCES_ONLY: &str = "secrets must be references only (no values)";

/// The shape of one manifest.
pub fn shape() -> &'static Shape {
    &SHAPE
}

/// The shape of a catalog.
pub fn catalog_shape() -> &'static Shape {
    &CATALOG
}

#[expect(clippy::too_many_lines, reason = "a table reads better in one piece")]
fn manifest() -> Shape {
    closed(vec![
        must("id", "Id, unique in a catalog.", filled_text()).is(Concept::Id),
        must(
            "type",
            "What kind of capability.",
            word(&["tool", "mcp_server", "skill_pack", "a2a_peer", "agent_workflow"]),
        )
        .is(Concept::Kind),
        must("version", "Exact semantic version.", text_like(&patterns::EXACT_VERSION))
            .is(Concept::Version),
        must("description", "What it does.", filled_text()).is(Concept::Description),
        must(
            "origin",
            "Where it comes from.",
            closed(vec![
                must("source", "From an address, or from this machine.", word(&["url", "local"])),
                must(
                    "digest",
                    "SHA-256 of what is fetched; all zeros means unknown.",
                    text_like(&patterns::DIGEST),
                ),
                may("signature", "Signature over it.", text()),
                may("url", "The address.", text_as(Format::Uri)),
                may("path", "The path on this machine.", text()),
            ]),
        )
        .is(Concept::Origin),
        must(
            "interfaces",
            "What goes in and comes out.",
            closed(vec![
                must("inputs", "JSON Schema of its input.", Shape::Schema).is(Concept::Input),
                must("outputs", "JSON Schema of its answer.", Shape::Schema).is(Concept::Output),
            ]),
        ),
        must(
            "permissions",
            "What it may touch.",
            closed(vec![
                must(
                    "network",
                    "Nothing, or the hosts of the allowlist.",
                    word(&["deny", "allowlist"]),
                ),
                may("network_allowlist", "Hosts or origins it may reach.", list(filled_text())),
                must(
                    "filesystem",
                    "A ceiling on the folders the owner grants.",
                    word(&["read", "write", "none"]),
                ),
                must("devices", "Devices it may use.", list(text())),
            ]),
        )
        .is(Concept::Permissions),
        must(
            "runtime",
            "What it runs in.",
            closed(vec![
                must("sandbox", "The kind of walls.", word(&["process", "container"]))
                    .is(Concept::Sandbox),
                must(
                    "resources",
                    "Its limits.",
                    closed(vec![
                        must("cpu", "Processor time, in cores.", text_like(&patterns::CPU)),
                        must("memory", "Memory.", text_like(&patterns::MEMORY)),
                    ]),
                )
                .is(Concept::Resources),
                may(
                    "timeout_seconds",
                    "Time limit in seconds.",
                    Shape::Number(Bounds { min: Some(0.0), ..Bounds::default() }),
                )
                .is(Concept::Timeout),
            ]),
        ),
        must(
            "trust_level",
            "How far its source is trusted; a claim, which only ever lowers trust.",
            word(&["local", "verified", "community", "untrusted"]),
        )
        .is(Concept::Trust),
        may(
            "execution",
            "How it is driven.",
            closed(vec![must(
                "channel",
                "By program, or through a screen.",
                word(&["programmatic", "vdi_vpn"]),
            )]),
        )
        .is(Concept::Channel),
        may(
            "secrets",
            "References to secrets; never values.",
            list(closed(vec![
                must("name", "What the tool calls it.", filled_text()),
                must("ref", "Where it is kept.", text_like(&patterns::SECRET_REF)),
            ])),
        )
        .is(Concept::SecretRefs)
        .says(Code::SecretValue, REFERENCES_ONLY),
        may(
            "implementation",
            "How it is run.",
            closed(vec![
                must("kind", "Which way.", word(&["command", "python", "mcp_tool", "a2a_rpc"])),
                may(
                    "command",
                    "For kind `command`.",
                    closed(vec![must(
                        "argv",
                        "Arguments, the program first; the input goes to standard input.",
                        list_within(1, None, text()),
                    )]),
                ),
                may(
                    "python",
                    "For kind `python`.",
                    closed(vec![must(
                        "callable",
                        "Function that takes the input.",
                        text_like(&patterns::CALLABLE),
                    )]),
                ),
                may(
                    "mcp",
                    "For kind `mcp_tool`.",
                    closed(vec![
                        must(
                            "registry_url",
                            "Registry that knows the server.",
                            text_as(Format::Uri),
                        ),
                        must("tool_name", "Name of the tool on the server.", filled_text()),
                        may("server_id", "Which server.", text()),
                    ]),
                ),
                may(
                    "a2a",
                    "For kind `a2a_rpc`.",
                    closed(vec![must("endpoint", "Address of the peer.", text_as(Format::Uri))]),
                ),
            ]),
        )
        .is(Concept::Run),
        may("enabled", "Whether it may be called; true unless said otherwise.", Shape::Flag)
            .is(Concept::Enabled),
        may("requires_oauth", "Whether the owner must sign in first.", Shape::Flag)
            .is(Concept::Oauth),
    ])
}
