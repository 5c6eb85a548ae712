//! The shapes of an mcpkg manifest and of its tests.

use std::sync::LazyLock;

use super::Version;
use crate::concept::Concept;
use crate::finding::Code;
use crate::shape::{
    Bounds, Rule, Shape, choice, filled_text, free, integer_within, list, list_within, may, must,
    open, patterns, text, text_like, word,
};

static SHAPES: LazyLock<[Shape; 2]> = LazyLock::new(|| Version::ALL.map(document));
static TEST: LazyLock<Shape> = LazyLock::new(test);

/// The shape of a manifest of that version.
pub fn shape(version: Version) -> &'static Shape {
    &SHAPES[version as usize]
}

/// The shape of a `*.test.json`.
pub fn test_shape() -> &'static Shape {
    &TEST
}

fn document(version: Version) -> Shape {
    let mut fields = vec![
        must(
            "toolId",
            "Id of dotted segments: publisher, domain, name.",
            text_like(&patterns::DOTTED_ID),
        )
        .is(Concept::Id),
        must("name", "The name people see.", filled_text()).is(Concept::DisplayName),
        must("version", "Semantic version.", text_like(&patterns::SEMVER)).is(Concept::Version),
        must("description", "What it does, in short.", filled_text()).is(Concept::Description),
        must("capabilities", "Words to find it by.", list(text())).is(Concept::Tags),
        may("endpoint", "Where a call goes.", endpoint(version)).is(Concept::Run),
    ];
    if version == Version::V0_2 {
        fields.extend([
            may(
                "implementations",
                "Ways to run it, of which the host chooses one.",
                list(implementation(version)),
            )
            .is(Concept::Implementations),
            may("chain", "Steps through other tools.", list_within(1, None, step()))
                .is(Concept::Chain),
        ]);
    }
    fields.extend([
        must("input_schema", "JSON Schema of its input.", Shape::Schema).is(Concept::Input),
        must("output_schema", "JSON Schema of its answer.", Shape::Schema).is(Concept::Output),
        may(
            "auth",
            "How requests are authenticated.",
            open(vec![
                must("type", "Which way.", word(&["none", "bearer", "api_key", "oauth2"])),
                may("scopes", "Scopes of the credential.", list(text())),
                may(
                    "configHints",
                    "Hints for whoever sets it up.",
                    free(vec![
                        may("env", "Variables that may hold the credential.", list(text())),
                        may("docsUrl", "Page about it.", text()),
                    ]),
                )
                .is(Concept::AuthHints),
            ]),
        )
        .is(Concept::Auth),
        may(
            "sideEffects",
            "What a call changes (ours).",
            word(&["none", "read", "write", "destructive"]),
        )
        .is(Concept::SideEffects),
        may("idempotent", "Whether calling twice is calling once (ours).", Shape::Flag)
            .is(Concept::Idempotent),
        may("tests", "Paths of test files in the package.", list(text())).is(Concept::Tests),
        may("examples", "Paths of example files in the package.", list(text()))
            .is(Concept::Examples),
        may(
            "meta",
            "About the package.",
            free(vec![
                may(
                    "publisher",
                    "Who publishes it.",
                    free(vec![
                        may("id", "Id in a registry.", text()),
                        may("name", "Name.", text()),
                        may("website", "Page.", text()),
                    ]),
                )
                .is(Concept::Publisher),
                may("license", "SPDX expression, or free text.", text()).is(Concept::License),
                may("homepage", "Its page.", text()).is(Concept::Homepage),
                may("tags", "More words to find it by.", list(text())).is(Concept::Tags),
            ]),
        ),
    ]);
    let nothing = "neither `endpoint`, `implementations` nor `chain` says how the tool runs";
    match version {
        Version::V0_1 => open(fields).rule(Rule::AnyOf(&["endpoint"], Code::NoWayToRun, nothing)),
        Version::V0_2 => open(fields)
            .rule(Rule::AnyOf(&["endpoint", "implementations", "chain"], Code::NoWayToRun, nothing))
            .rule(Rule::Excludes("chain", &["endpoint", "implementations"])),
    }
}

fn timeout() -> Shape {
    Shape::Number(Bounds { above: Some(0.0), ..Bounds::default() })
}

fn endpoint(version: Version) -> Shape {
    let timeout_field =
        || may("timeoutMs", "Time limit in milliseconds.", timeout()).is(Concept::Timeout);
    let mut kinds = vec![(
        "http",
        vec![
            must(
                "method",
                "HTTP method.",
                word(&["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]),
            ),
            must("url", "Address, http or https.", text_like(&patterns::HTTP_URL)),
            timeout_field(),
        ],
    )];
    if version == Version::V0_2 {
        kinds.push(("local", vec![
            must("command", "One command line, split without a shell; the input is its last argument and its standard input.", text()),
            timeout_field(),
        ]));
    }
    choice("type", "Which way.", kinds).lenient()
}

fn implementation(version: Version) -> Shape {
    open(vec![
        must("id", "Id, unique in the manifest.", filled_text()),
        may("language", "Language it is written in.", text()).is(Concept::RuntimeKind),
        may("runtime", "What runs it, perhaps with a version.", text()).is(Concept::RuntimeKind),
        may("platforms", "Systems it runs on.", list(text())).is(Concept::Requirements),
        must("endpoint", "Where a call goes.", endpoint(version)).is(Concept::Run),
        may(
            "requirements",
            "What must be there.",
            free(vec![
                may("minNodeVersion", "Oldest version of Node.", text()),
                may("minPythonVersion", "Oldest version of Python.", text()),
                may("packages", "Packages it needs.", list(text())),
            ]),
        )
        .is(Concept::Requirements),
    ])
}

fn step() -> Shape {
    open(vec![
        must("step", "Name of the step.", filled_text()),
        must("tool", "Id of the tool it calls.", filled_text()),
        may("action", "The action it calls, of a tool with several (ours).", filled_text()),
        may(
            "inputMapping",
            "Where each input comes from: a JSONPath, `{\"value\": …}`, or `{\"path\": …, \"default\": …}`.",
            Shape::Map(Box::new(Shape::Anything)),
        ),
        may("outputKey", "Key under which later steps find its answer.", filled_text()),
        may("optional", "Inputs that may be missing (ours).", list(text())),
        may("when", "JSONPath that must find something for the step to run (ours).", text()),
        may("forEach", "JSONPath to a list; the step runs once for each `$.item` (ours).", text()),
        may("concurrency", "How many of those at once (ours).", integer_within(1.0, 64.0)),
        may("timeoutMs", "Time limit in milliseconds (ours).", timeout()),
        may(
            "retry",
            "How often a failed idempotent step is tried again (ours).",
            integer_within(0.0, 10.0),
        ),
    ])
}

fn test() -> Shape {
    open(vec![
        must("name", "Name of the test.", filled_text()),
        may("description", "What it shows.", text()),
        may("action", "The action it calls, of a package with several (ours).", filled_text()),
        must("input", "What is given to the tool.", Shape::Map(Box::new(Shape::Anything))),
        may("expected", "What the answer must contain.", Shape::Anything),
        may(
            "assertions",
            "What must hold of the answer.",
            list(open(vec![
                must("path", "JSONPath into the answer.", text()),
                may("equals", "The value there equals this.", Shape::Anything),
                may("notEquals", "The value there is another.", Shape::Anything),
                may("exists", "Whether something is there.", Shape::Flag),
                may("notExists", "Whether nothing is there.", Shape::Flag),
                may("contains", "The text or list there contains this (ours).", Shape::Anything),
                may("matches", "ECMAScript pattern found in the text there (ours).", text()),
                may(
                    "lessThan",
                    "The number there is less (ours).",
                    Shape::Number(Bounds::default()),
                ),
                may(
                    "greaterThan",
                    "The number there is greater (ours).",
                    Shape::Number(Bounds::default()),
                ),
                may(
                    "type",
                    "The JSON type there (ours).",
                    word(&["null", "boolean", "object", "array", "number", "string", "integer"]),
                ),
                may(
                    "length",
                    "How many characters, elements or members are there (ours).",
                    integer_within(0.0, 1e9),
                ),
            ])),
        ),
        may("timeoutMs", "Time limit in milliseconds.", timeout()),
    ])
}
