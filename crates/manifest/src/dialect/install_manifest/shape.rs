//! The shape of an install-manifest, per version.

use std::sync::LazyLock;

use super::Version;
use crate::concept::Concept;
use crate::finding::Code;
use crate::shape::{
    Bounds, Field, Format, Rule, Shape, choice, closed, filled_text, integer_from, integer_within,
    list, list_within, may, must, number_within, patterns, text, text_as, text_like, text_within,
    word,
};

/// The runtimes that cannot be asked what they offer.
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
        must("runtime", "How the tool is acquired and started.", runtime(version)),
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
            may("actions", "What can be called.", list_within(0, Some(64), action(version)))
                .is(Concept::Actions),
        );
    }
    if version >= Version::V0_3 {
        fields.push(
            may("verify", "What the author promises over time.", verify()).is(Concept::Verify),
        );
        fields.push(
            may(
                "data_boundary",
                "Which private data is read, sent away and kept.",
                data_boundary(version),
            )
            .is(Concept::DataBoundary),
        );
    }
    fields.extend([
        must("smoke", "How to see, once, that the installed tool works.", smoke(version))
            .is(Concept::Smoke),
        must("kill_switch", "How the tool is revoked.", kill_switch(version))
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
            text_like(&DID),
        ),
        may("did_kid", "Which key of the identifier's document signed.", text())
            .is(Concept::Signature),
        must("signature", "Detached JWS over the canonical manifest without this field.", text())
            .is(Concept::Signature),
        may("fqdn", "Host that must be the one serving the manifest.", text())
            .is(Concept::Signature),
    ])
}

static DID: crate::shape::Pattern = crate::shape::Pattern {
    text: "^did:(plc|web):.+",
    matches: |s| {
        let rest = s.strip_prefix("did:plc:").or_else(|| s.strip_prefix("did:web:"));
        rest.is_some_and(|rest| {
            rest.chars().next().is_some_and(|c| !"\n\r\u{2028}\u{2029}".contains(c))
        })
    },
    noun: "decentralised identifier",
    words: "`did:plc:…` or `did:web:…`",
    code: Code::BadPattern,
};

fn runtime(version: Version) -> Shape {
    closed(vec![
        must(
            "kind",
            "What runs the tool.",
            word(&[
                "mcp-stdio",
                "mcp-http",
                "python-module",
                "node-module",
                "shell-binary",
                "container",
            ]),
        )
        .is(Concept::RuntimeKind),
        must("install", "How the tool reaches the machine.", install(version)).is(Concept::Acquire),
        may(
            "entrypoint",
            "The command that starts the tool; actions extend it.",
            closed(vec![
                must("command", "Arguments, the program first.", list_within(1, None, text())),
                may("cwd", "Working folder.", text()).is(Concept::WorkingFolder),
            ]),
        )
        .is(Concept::Run),
        may(
            "endpoint_url",
            "Where a remote tool is reached; excludes `entrypoint`.",
            text_as(Format::Uri),
        )
        .is(Concept::Endpoint),
    ])
}

fn install(version: Version) -> Shape {
    let package = |about, spec| {
        vec![must("package", about, filled_text()), may("version_spec", spec, text())]
    };
    let mut git = vec![
        must("url", "Address of the repository.", text_as(Format::Uri)),
        must("ref", "What to check out; a commit SHA is the only safe choice.", text()),
        may("subpath", "Folder inside the repository.", text()),
    ];
    if version >= Version::V0_3_1 {
        git.push(may(
            "layout",
            "How the folder is laid out.",
            word(&["package", "skill-bundle", "raw"]),
        ));
    }
    let mut methods = vec![
        ("pip", package("Name of the Python package.", "Which versions, as pip writes it.")),
        ("npm", package("Name of the Node package.", "Which versions, as npm writes it.")),
        ("git", git),
        ("container", vec![must("image", "Image reference with its digest.", text())]),
        (
            "url",
            vec![
                must("url", "Address of the one file to download.", text_as(Format::Uri)),
                must("sha256", "Its digest.", text_like(&patterns::SHA256)),
            ],
        ),
    ];
    if version >= Version::V0_4 {
        methods.push((
            "preinstalled",
            vec![must(
                "locator",
                "How to see that the tool is there.",
                choice(
                    "kind",
                    "What to look for.",
                    vec![
                        (
                            "python-module",
                            vec![must("module", "Module that can be imported.", filled_text())],
                        ),
                        (
                            "binary-on-path",
                            vec![must("binary", "Program found on PATH.", filled_text())],
                        ),
                        (
                            "mcp-server-id",
                            vec![must(
                                "server_id",
                                "MCP server the host already knows.",
                                filled_text(),
                            )],
                        ),
                    ],
                ),
            )],
        ));
    }
    choice("method", "Which way.", methods)
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

fn action(version: Version) -> Shape {
    let mut fields = vec![
        must("name", "What it is called by.", text_like(&patterns::ACTION_NAME))
            .is(Concept::Actions),
        must("summary", "One sentence on what it does.", text_within(1, 280)).is(Concept::Summary),
        may("description", "More about it.", text_within(0, 4000)).is(Concept::Description),
        must("invocation", "How it is called.", invocation()).is(Concept::Run),
        may("input", "JSON Schema of its input.", Shape::Schema).is(Concept::Input),
        may(
            "output",
            "What it answers.",
            closed(vec![
                must(
                    "format",
                    "The wire format.",
                    word(&["json", "text", "binary", "ndjson-stream", "none"]),
                )
                .is(Concept::OutputFormat),
                may("schema", "JSON Schema of the answer.", Shape::Schema).is(Concept::Output),
            ]),
        ),
        must("side_effects", "What it changes.", word(&["none", "read", "write", "destructive"]))
            .is(Concept::SideEffects),
        may(
            "idempotent",
            "Whether calling twice is calling once; false unless said otherwise.",
            Shape::Flag,
        )
        .is(Concept::Idempotent),
        may("scopes_used", "Which of the scopes it uses.", list(text())).is(Concept::ScopesUsed),
        may(
            "error_envelope",
            "The shape of its errors; raw unless said otherwise.",
            word(&["standard", "raw"]),
        )
        .is(Concept::ErrorEnvelope),
        may(
            "examples",
            "Calls worth seeing.",
            list_within(
                0,
                Some(4),
                closed(vec![
                    must("description", "What it shows.", text_within(0, 280)),
                    may("input", "What is given.", Shape::Anything),
                    may("output", "What comes back.", Shape::Anything),
                ]),
            ),
        )
        .is(Concept::Examples),
    ];
    if version >= Version::V0_3 {
        fields.push(
            may(
                "docs",
                "Short notes for agents.",
                closed(vec![
                    may("goal", "What it achieves.", text_within(1, 200)),
                    may("inputs_brief", "Notes on the input.", text_within(0, 200)),
                    may("outputs_brief", "Notes on the answer.", text_within(0, 200)),
                    may("errors_brief", "Errors it gives.", text_within(0, 200)),
                    may("example", "One call.", text_within(0, 200)),
                ]),
            )
            .is(Concept::Docs),
        );
        fields.push(
            may(
                "runtime_telemetry",
                "Reserved; not looked into.",
                Shape::Map(Box::new(Shape::Anything)),
            )
            .is(Concept::Telemetry),
        );
    }
    closed(fields)
}

fn invocation() -> Shape {
    let headers = || {
        may(
            "headers",
            "Headers; values may hold `${input.…}` and `${env.…}`.",
            Shape::Map(Box::new(text())),
        )
        .is(Concept::Headers)
    };
    choice(
        "kind",
        "Which way.",
        vec![
            (
                "subcommand",
                vec![must(
                    "argv_template",
                    "Arguments after the entrypoint; may hold `${input.…}` and `${env.…}`.",
                    list_within(1, None, text()),
                )],
            ),
            (
                "stdin-json",
                vec![may(
                    "argv_template",
                    "Arguments after the entrypoint; the input goes to standard input.",
                    list(text()),
                )],
            ),
            (
                "http",
                vec![
                    must(
                        "method",
                        "HTTP method.",
                        word(&["GET", "POST", "PUT", "PATCH", "DELETE"]),
                    ),
                    must("path", "Path after the endpoint URL; may hold `${input.…}`.", text()),
                    headers(),
                ],
            ),
            ("mcp-tool", vec![must("tool_name", "Name of the MCP tool.", text())]),
        ],
    )
}

fn verify() -> Shape {
    closed(vec![
        may(
            "suite",
            "A file of cases.",
            closed(vec![
                must("ref", "Path of the file, relative to the manifest.", filled_text()),
                must("format", "The format of the file.", word(&["jsonl-cases"])),
                may(
                    "pass_threshold",
                    "Share of cases that must pass; 1 unless said otherwise.",
                    number_within(0.0, 1.0),
                ),
                may("case_count", "How many cases there are.", integer_from(1.0)),
            ]),
        ),
        may(
            "sla",
            "Figures the author stands by.",
            closed(vec![
                may("p50_latency_ms", "Median latency.", integer_from(0.0)),
                may("p95_latency_ms", "95th percentile of latency.", integer_from(0.0)),
                may("error_rate_max", "Largest share of failures.", number_within(0.0, 1.0)),
            ]),
        ),
        may(
            "schedule",
            "When the cases are run again.",
            closed(vec![
                may("cadence", "How often.", word(&["on-install", "daily", "weekly", "manual"])),
                may("on_install", "Whether they run at install.", Shape::Flag),
            ]),
        ),
    ])
}

fn data_boundary(version: Version) -> Shape {
    let fields = || must("fields", "What of it.", list_within(1, None, filled_text()));
    let to = "Host it is sent to, which covers its subdomains.";
    let mut transmit: Vec<Field> = Vec::new();
    if version >= Version::V0_4 {
        transmit.extend([
            may("to", to, filled_text()),
            may(
                "to_kind",
                "For a recipient that the agent names at each call; excludes `to`.",
                word(&["agent-supplied"]),
            ),
            may("to_constraint", "What the tool refuses as a recipient.", text_within(1, 280)),
        ]);
    } else {
        transmit.push(must("to", to, filled_text()));
    }
    transmit.extend([
        fields(),
        must("purpose", "What for.", text_within(1, 280)),
        must(
            "third_party_retention",
            "How long the recipient keeps it.",
            word(&[
                "none-per-vendor-tos",
                "session-only",
                "persistent-30d",
                "persistent-90d",
                "persistent-indefinite",
                "unknown",
            ]),
        ),
        may("vendor_tos_url", "The recipient's terms.", text_as(Format::Uri)),
    ]);
    let mut transmit = closed(transmit).rule(Rule::Needs(
        "third_party_retention",
        "none-per-vendor-tos",
        "vendor_tos_url",
    ));
    if version >= Version::V0_4 {
        transmit = transmit.rule(Rule::ExactlyOne(&["to", "to_kind"]));
    }
    let days = |name, about| may(name, about, integer_from(0.0));
    closed(vec![
        may(
            "reads",
            "Private data it reads.",
            list(closed(vec![
                must("resource", "A resource of the scopes.", filled_text()),
                must("sensitivity", "How sensitive it is.", word(&["low", "medium", "high"])),
            ])),
        ),
        may("transmits", "Private data it sends to others.", list(transmit)),
        may(
            "persists",
            "Private data it keeps.",
            list(closed(vec![
                must(
                    "where",
                    "Where it is kept.",
                    word(&["tool_local", "tool_cloud", "session_only"]),
                ),
                fields(),
            ])),
        ),
        may(
            "retention",
            "How long it keeps things, in days.",
            closed(vec![
                days("tool_local_days", "On this machine."),
                days("tool_cloud_days", "In the author's cloud."),
                days("transmit_log_days", "Its logs of what was sent."),
            ]),
        ),
    ])
}

fn smoke(version: Version) -> Shape {
    let common = || {
        [
            may(
                "timeout_seconds",
                "Time limit; 30 unless said otherwise.",
                integer_within(1.0, 300.0),
            ),
            must("success", "What must all hold.", success(version)),
        ]
    };
    let arguments =
        || may("arguments", "What is given to it.", Shape::Map(Box::new(Shape::Anything)));
    let mut kinds = vec![
        (
            "shell",
            vec![must("command", "Arguments, the program first.", list_within(1, None, text()))],
        ),
        (
            "http",
            vec![
                may("method", "GET unless said otherwise.", word(&["GET", "POST"])),
                must("url", "Where to.", text_as(Format::Uri)),
                may("headers", "Headers; values may hold `${VAR}`.", Shape::Map(Box::new(text()))),
                may("body", "Body; may hold `${VAR}`.", text()),
            ],
        ),
        ("mcp-tool-call", vec![must("tool_name", "Name of the MCP tool.", text()), arguments()]),
    ];
    if version >= Version::V0_2 {
        kinds.push((
            "action-call",
            vec![
                must(
                    "action",
                    "Name of an action that changes nothing.",
                    text_like(&patterns::ACTION_NAME),
                ),
                arguments(),
            ],
        ));
    }
    for (_, fields) in &mut kinds {
        fields.extend(common());
    }
    choice("kind", "Which way.", kinds)
}

fn success(version: Version) -> Shape {
    let mut fields = vec![
        may(
            "exit_code",
            "Exit code of a shell smoke; 0 unless said otherwise.",
            Shape::Integer(Bounds::default()),
        ),
        may("http_status", "Status of an http smoke.", Shape::Integer(Bounds::default())),
        may("stdout_regex", "ECMAScript pattern found in the output.", text()),
        may("body_regex", "ECMAScript pattern found in the body.", text()),
        may(
            "json_pointer_equals",
            "JSON pointers and the value each must have.",
            Shape::Map(Box::new(Shape::Anything)),
        ),
        may("no_error_field", "Whether a top-level `error` is a failure.", Shape::Flag),
    ];
    if version >= Version::V0_3_1 {
        fields.extend([
            may(
                "json_pointer_in",
                "JSON pointers and the values each may have.",
                Shape::Map(Box::new(list_within(1, None, Shape::Anything))),
            ),
            may("json_pointer_exists", "JSON pointer that must lead to something.", text()),
            may(
                "json_pointer_present",
                "JSON pointer that must lead to something neither null nor blank.",
                text(),
            ),
        ]);
    }
    closed(fields)
}

fn kill_switch(version: Version) -> Shape {
    let url = |name, about| must(name, about, text_as(Format::Uri));
    let mut kinds = vec![
        ("url", vec![url("url", "Address to which a DELETE revokes.")]),
        (
            "shell",
            vec![must("command", "Arguments, the program first.", list_within(1, None, text()))],
        ),
    ];
    if version < Version::V0_3_1 {
        kinds.push(("manual", vec![url("instructions_url", "Page that tells the owner how.")]));
        return choice("kind", "Which way.", kinds);
    }
    kinds.push(("none", vec![]));
    kinds.push((
        "manual",
        vec![
            may(
                "instructions_url",
                "Page that tells the owner how; excludes `instructions`.",
                text_as(Format::Uri),
            ),
            may("instructions", "What the owner does, in so many words.", text_within(1, 2000)),
        ],
    ));
    let mut shape = choice("kind", "Which way.", kinds);
    if let Shape::Choice(choice) = &mut shape
        && let Some(manual) = choice.branches.last_mut()
    {
        manual.object.rules.push(Rule::ExactlyOne(&["instructions_url", "instructions"]));
    }
    shape
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
