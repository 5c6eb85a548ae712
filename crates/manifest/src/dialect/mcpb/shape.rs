//! The shape of a bundle's manifest, version by version.

use std::sync::LazyLock;

use super::{PLATFORMS, Version};
use crate::concept::Concept;
use crate::finding::Code;
use crate::shape::{
    Bounds, Field, Format, Pattern, Rule, Shape, closed, filled_text, list, may, must, open, text,
    text_as, text_like, word,
};

static SHAPES: LazyLock<[Shape; 4]> = LazyLock::new(|| Version::ALL.map(document));

/// The shape of a manifest of that version.
pub fn shape(version: Version) -> &'static Shape {
    &SHAPES[version as usize]
}

static SIZE: Pattern = Pattern {
    text: "^[0-9]+x[0-9]+$",
    matches: |s| {
        let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        s.split_once('x').is_some_and(|(width, height)| is_number(width) && is_number(height))
    },
    noun: "size",
    words: "width and height in pixels, like `128x128`",
    code: Code::BadPattern,
};

static LOCALE: Pattern = Pattern {
    text: "^[A-Za-z0-9]{2,8}(-[A-Za-z0-9]{1,8})*$",
    matches: |s| {
        let is_tag = |s: &str, least: usize| {
            (least..=8).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_alphanumeric())
        };
        let mut tags = s.split('-');
        tags.next().is_some_and(|first| is_tag(first, 2)) && tags.all(|tag| is_tag(tag, 1))
    },
    noun: "language tag",
    words: "a language as BCP 47 writes it, like `en` or `pt-BR`",
    code: Code::BadPattern,
};

static RESOURCES: Pattern = Pattern {
    text: "\\$\\{[Ll][Oo][Cc][Aa][Ll][Ee]\\}",
    matches: |s| s.to_ascii_lowercase().contains("${locale}"),
    noun: "pattern of paths",
    words: "a path with `${locale}` where the language belongs",
    code: Code::BadPattern,
};

fn document(version: Version) -> Shape {
    let mut fields = vec![
        may("$schema", "Where a schema of this document is.", text()),
        may("manifest_version", "The version of this format.", word(&[version.name()]))
            .is(Concept::FormatVersion),
        may("dxt_version", "The same, under its old name.", word(&[version.name()]))
            .is(Concept::FormatVersion),
        must("name", "Name for programs.", filled_text()).is(Concept::Id),
        may("display_name", "Name people see.", text()).is(Concept::DisplayName),
        must("version", "Semantic version.", filled_text()).is(Concept::Version),
        must("description", "What it does, in short.", text()).is(Concept::Summary),
        may("long_description", "More about it, in Markdown.", text()).is(Concept::Description),
        must("author", "Who wrote it.", author()).is(Concept::Author),
        may("repository", "Where its source is.", repository()).is(Concept::Links),
        may("homepage", "Its page.", text_as(Format::Uri)).is(Concept::Homepage),
        may("documentation", "Its documentation.", text_as(Format::Uri)).is(Concept::Links),
        may("support", "Where to get help.", text_as(Format::Uri)).is(Concept::Support),
        may("icon", "Path of its icon in the bundle, a PNG.", text()).is(Concept::Pictures),
    ];
    if version >= Version::V0_3 {
        fields.push(
            may("icons", "Icons of several sizes and themes.", list(icon())).is(Concept::Pictures),
        );
    }
    fields.push(
        may("screenshots", "Paths of pictures in the bundle.", list(text())).is(Concept::Pictures),
    );
    if version >= Version::V0_3 {
        fields.push(
            may("localization", "Where its translations are.", localization())
                .is(Concept::Translations),
        );
    }
    fields.push(must("server", "The MCP server.", server(version)).is(Concept::McpServer));
    fields.extend(surface());
    fields.extend([
        may("keywords", "Words to find it by.", list(text())).is(Concept::Tags),
        may("license", "SPDX expression.", text()).is(Concept::License),
    ]);
    if version >= Version::V0_2 {
        fields.push(
            may(
                "privacy_policies",
                "Privacy policies of the services it talks to.",
                list(text_as(Format::Uri)),
            )
            .is(Concept::Links),
        );
    }
    fields.extend([
        may("compatibility", "What it needs of the machine.", compatibility()).is(Concept::Systems),
        may("user_config", "What the owner is asked for.", Shape::Map(Box::new(setting())))
            .is(Concept::Env),
    ]);
    if version >= Version::V0_3 {
        let notes = Shape::Map(Box::new(Shape::Map(Box::new(Shape::Anything))));
        fields.push(
            may("_meta", "Notes for particular hosts, by their domain read backwards.", notes)
                .is(Concept::HostNotes),
        );
    }
    closed(fields).rule(Rule::AnyOf(
        &super::VERSION_KEYS,
        Code::MissingField,
        "the field `manifest_version` of the document is missing",
    ))
}

fn author() -> Shape {
    closed(vec![
        must("name", "Name.", text()),
        may("email", "E-mail address.", text_as(Format::Email)),
        may("url", "Page.", text_as(Format::Uri)),
    ])
}

fn repository() -> Shape {
    closed(vec![
        must("type", "What kind of repository, such as git.", text()),
        must("url", "Its address.", text_as(Format::Uri)),
    ])
}

fn icon() -> Shape {
    closed(vec![
        must("src", "Path of the icon in the bundle.", text()),
        must("size", "Width and height in pixels.", text_like(&SIZE)),
        may("theme", "Theme it belongs to, such as dark.", filled_text()),
    ])
}

fn localization() -> Shape {
    closed(vec![
        must(
            "resources",
            "Path of the translations, the language left open.",
            text_like(&RESOURCES),
        ),
        must("default_locale", "The language of this document.", text_like(&LOCALE)),
    ])
}

fn server(version: Version) -> Shape {
    let types: &[&'static str] = match version {
        Version::V0_1 | Version::V0_2 | Version::V0_3 => &["python", "node", "binary"],
        Version::V0_4 => &["python", "node", "binary", "uv"],
    };
    let mut config = launch(must("command", "The program.", filled_text()));
    config.push(
        may(
            "platform_overrides",
            "What is different on `darwin`, `win32` or `linux`.",
            Shape::Map(Box::new(closed(launch(may("command", "The program.", text()))))),
        )
        .is(Concept::Systems),
    );
    closed(vec![
        must("type", "What runs it.", word(types)),
        must("entry_point", "Path of the server in the bundle.", filled_text()),
        must("mcp_config", "How it is started; texts may hold `${…}`.", closed(config))
            .is(Concept::Run),
    ])
}

/// How a server is started.
fn launch(program: Field) -> Vec<Field> {
    vec![
        program,
        may("args", "Its arguments.", list(text())),
        may("env", "Variables set for it.", Shape::Map(Box::new(text()))),
    ]
}

/// What the server offers, as far as its author lists it.
fn surface() -> [Field; 4] {
    [
        may(
            "tools",
            "Tools it offers; their schemas are asked of the server.",
            list(closed(vec![
                must("name", "What it is called by.", filled_text()).is(Concept::Actions),
                may("description", "What it does.", text()).is(Concept::Description),
            ])),
        )
        .is(Concept::Actions),
        may("tools_generated", "Whether there are more tools than listed.", Shape::Flag)
            .is(Concept::Discovery),
        may(
            "prompts",
            "Prompts it offers.",
            list(closed(vec![
                must("name", "What it is called by.", text()),
                may("description", "What it is for.", text()),
                may("arguments", "Names of what it is given.", list(text())),
                must("text", "The prompt; may hold `${arguments.…}`.", text()),
            ])),
        )
        .is(Concept::Prompts),
        may("prompts_generated", "Whether there are more prompts than listed.", Shape::Flag)
            .is(Concept::Discovery),
    ]
}

/// Names of clients other than `claude_desktop` are documented, though the format's own tool refuses them.
fn compatibility() -> Shape {
    open(vec![
        may("claude_desktop", "Versions of Claude Desktop it works with.", text()),
        may("platforms", "Systems it runs on; all when absent.", list(word(&PLATFORMS))),
        may(
            "runtimes",
            "Versions of what runs it.",
            closed(vec![may("python", "Of Python.", text()), may("node", "Of Node.", text())]),
        ),
    ])
}

fn setting() -> Shape {
    let number = || Shape::Number(Bounds::default());
    closed(vec![
        must(
            "type",
            "What a value is.",
            word(&["string", "number", "boolean", "directory", "file"]),
        )
        .is(Concept::EnvKind),
        must("title", "What the owner reads.", text()).is(Concept::EnvPrompt),
        must("description", "More about it.", text()).is(Concept::EnvPrompt),
        may(
            "required",
            "Whether the server cannot do without; false unless said otherwise.",
            Shape::Flag,
        ),
        may(
            "default",
            "Value when the owner gives none: a text, a number, true or false, or a list of texts.",
            Shape::Anything,
        )
        .is(Concept::EnvDefault),
        may("multiple", "Whether several folders or files may be given.", Shape::Flag)
            .is(Concept::EnvKind),
        may("sensitive", "Whether the value must never be shown.", Shape::Flag)
            .is(Concept::Secrets),
        may("min", "Smallest number.", number()).is(Concept::EnvKind),
        may("max", "Largest number.", number()).is(Concept::EnvKind),
    ])
}
