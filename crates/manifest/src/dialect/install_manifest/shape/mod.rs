//! The shape of an install-manifest, per version.

mod promises;
mod run;

use std::sync::LazyLock;

use super::Version;
use crate::concept::Concept;
use crate::finding::Code;
use crate::shape::{
    Format, Rule, Shape, closed, integer_from, list_within, may, must, patterns, text, text_as,
    text_like, text_within, word,
};

/// The runtimes that the format has say what they offer. A server on the network is among them, although it can be
/// asked for more.
const SILENT_RUNTIMES: &[&str] =
    &["python-module", "node-module", "shell-binary", "container", "mcp-http"];

static SHAPES: LazyLock<[Shape; 5]> = LazyLock::new(|| Version::ALL.map(document));

/// The shape of a manifest of that version.
pub fn shape(version: Version) -> &'static Shape {
    &SHAPES[version as usize]
}

fn document(version: Version) -> Shape {
    let mut fields = vec![
        must("manifest_version", "The version of this format.", word(&[version.name()]))
            .is(Concept::FormatVersion),
        must("tool", "Who the tool is.", tool(version)),
    ];
    if version >= Version::V0_4 {
        fields.push(
            may("publisher", "Who published the manifest, provable by key.", publisher())
                .is(Concept::Publisher),
        );
    }
    fields.extend([
        must("runtime", "How the tool is acquired and started.", run::runtime(version)),
        may(
            "env",
            "What the owner is asked for before the tool can run, in this order.",
            list_within(0, Some(32), env(version)),
        )
        .is(Concept::Env),
        may(
            "scopes",
            "What the tool does on the owner's behalf.",
            list_within(0, Some(32), scope()),
        )
        .is(Concept::Scopes),
    ]);
    if version >= Version::V0_2 {
        fields.push(
            may("actions", "What can be called.", list_within(0, Some(64), run::action(version)))
                .is(Concept::Actions),
        );
    }
    if version >= Version::V0_3 {
        fields.push(
            may("verify", "What the author promises over time.", promises::verify())
                .is(Concept::Verify),
        );
        fields.push(
            may(
                "data_boundary",
                "Which private data is read, sent away and kept.",
                promises::data_boundary(version),
            )
            .is(Concept::DataBoundary),
        );
    }
    fields.extend([
        must("smoke", "How to see, once, that the installed tool works.", promises::smoke(version))
            .is(Concept::Smoke),
        must("kill_switch", "How the tool is revoked.", promises::kill_switch(version))
            .is(Concept::KillSwitch),
        may("cost", "What the tool costs, in US cents.", cost()).is(Concept::Cost),
        may("support", "Where to get help.", support()).is(Concept::Support),
    ]);
    let document = closed(fields);
    if version == Version::V0_1 {
        return document;
    }
    document.rule(Rule::NeedsList {
        path: &["runtime", "kind"],
        among: SILENT_RUNTIMES,
        field: "actions",
        code: Code::MissingActions,
    })
}

fn tool(version: Version) -> Shape {
    let mut fields = vec![
        must("id", "The tool's own name in a registry.", text_like(&patterns::KEBAB_ID))
            .is(Concept::Id),
        must("version", "The tool's version.", text_like(&patterns::TOOL_VERSION))
            .is(Concept::Version),
        must("name", "The name people see.", text_within(1, 80)).is(Concept::DisplayName),
        must("summary", "One sentence on what it does.", text_within(1, 280)).is(Concept::Summary),
        may("description", "More about it, in Markdown.", text_within(0, 4000))
            .is(Concept::Description),
        must("homepage", "Its page.", text_as(Format::Uri)).is(Concept::Homepage),
        may(
            "author",
            "Who wrote it.",
            closed(vec![
                may("name", "Name.", text()),
                may("email", "E-mail address.", text_as(Format::Email)),
                may("url", "Page.", text_as(Format::Uri)),
            ]),
        )
        .is(Concept::Author),
        may("license", "SPDX expression, or PROPRIETARY.", text()).is(Concept::License),
        may("tags", "Words to find it by.", list_within(0, Some(16), text_like(&patterns::TAG)))
            .is(Concept::Tags),
    ];
    if version >= Version::V0_3_1 {
        fields.insert(
            0,
            may(
                "namespace",
                "Prefix of the id: `namespace/id` is the canonical id.",
                text_like(&patterns::NAMESPACE),
            )
            .is(Concept::Namespace),
        );
    }
    closed(fields)
}

fn publisher() -> Shape {
    closed(vec![
        must(
            "did",
            "Decentralised identifier of the publisher (did:plc or did:web).",
            text_like(&patterns::DID),
        ),
        may("did_kid", "Which key of the identifier's document signed.", text())
            .is(Concept::Signature),
        must("signature", "Detached JWS over the canonical manifest without this field.", text())
            .is(Concept::Signature),
        may("fqdn", "Host that must be the one serving the manifest.", text())
            .is(Concept::Signature),
    ])
}

fn env(version: Version) -> Shape {
    let longest_prompt = if version == Version::V0_1 { 280 } else { 800 };
    closed(vec![
        must("name", "Name of the variable.", text_like(&patterns::ENV_NAME)),
        must("prompt", "What the owner is told.", text_within(1, longest_prompt))
            .is(Concept::EnvPrompt),
        must("secret", "Whether the value must never be shown or logged.", Shape::Flag),
        may(
            "required",
            "Whether the tool cannot do without; true unless said otherwise.",
            Shape::Flag,
        ),
        may("validation_regex", "ECMAScript pattern the value must match.", text())
            .is(Concept::EnvPrompt),
        may("default", "Value when the owner gives none; never for a secret.", text()),
        may("obtain_url", "Where the owner gets a value.", text_as(Format::Uri))
            .is(Concept::EnvPrompt),
    ])
}

fn scope() -> Shape {
    closed(vec![
        must("resource", "What is accessed.", text()),
        must(
            "actions",
            "What is done to it.",
            list_within(1, None, word(&["read", "write", "delete", "send", "execute", "admin"])),
        ),
        must("rationale", "Why.", text_within(1, 280)),
        may("provider_scope", "The provider's own name for it.", text()),
    ])
}

fn cost() -> Shape {
    closed(vec![
        may("install_fee_cents", "Once.", integer_from(0.0)),
        may("monthly_fee_cents", "Every month.", integer_from(0.0)),
        may(
            "usage_model",
            "What use is charged by.",
            word(&["none", "per-call", "per-token", "external"]),
        ),
        may("estimate_url", "Address that answers with an estimate.", text_as(Format::Uri)),
    ])
}

fn support() -> Shape {
    closed(vec![
        may("issues_url", "Where bugs are filed.", text_as(Format::Uri)),
        may("security_email", "Who is told of a hole.", text_as(Format::Email)),
        may("docs_url", "Documentation.", text_as(Format::Uri)),
    ])
}
