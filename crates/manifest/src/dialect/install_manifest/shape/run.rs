//! How the tool is acquired and started, and what can be called.

use super::Version;
use crate::concept::Concept;
use crate::shape::{
    Format, Shape, choice, closed, filled_text, list, list_within, may, must, patterns, text,
    text_as, text_like, text_within, word,
};

pub(super) fn runtime(version: Version) -> Shape {
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

pub(super) fn action(version: Version) -> Shape {
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
