//! What the author stands by: how the tool is tried, verified and revoked, and what it does with data.

use super::Version;
use crate::shape::{
    Bounds, Field, Format, Rule, Shape, choice, closed, filled_text, integer_from, integer_within,
    list, list_within, may, must, number_within, patterns, text, text_as, text_like, text_within,
    word,
};

pub(super) fn verify() -> Shape {
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

pub(super) fn data_boundary(version: Version) -> Shape {
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

pub(super) fn smoke(version: Version) -> Shape {
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

pub(super) fn kill_switch(version: Version) -> Shape {
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
