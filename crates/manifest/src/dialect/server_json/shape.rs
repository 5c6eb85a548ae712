//! The shape of a server.json.

use std::sync::LazyLock;

use crate::concept::Concept;
use crate::finding::Code;
use crate::shape::{
    Field, Format, Pattern, Shape, Text, choice, filled_text, list, may, must, open, patterns,
    text, text_as, text_like, text_within, word,
};

static SHAPE: LazyLock<Shape> = LazyLock::new(document);

/// The shape of a server.json.
pub fn shape() -> &'static Shape {
    &SHAPE
}

/// The name of a server: a namespace, a slash, a name.
pub static NAME: Pattern = Pattern {
    text: "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$",
    matches: |s| {
        let is = |text: &str, others: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
            !text.is_empty() && text.chars().all(is_plain)
        };
        s.split_once('/').is_some_and(|(namespace, name)| is(namespace, ".-") && is(name, "._-"))
    },
    noun: "server name",
    words: "a namespace, a slash and a name, like `com.example/weather`",
    code: Code::BadPattern,
};

/// The address of a server, which may begin with a variable.
static ADDRESS: Pattern = Pattern {
    text: "^(https?://[^\\s]+|\\{[a-zA-Z_][a-zA-Z0-9_]*\\}[^\\s]*)$",
    matches: |s| {
        let is_filled = |rest: &str| !rest.is_empty() && !rest.chars().any(is_space);
        let plain = s.strip_prefix("http://").or_else(|| s.strip_prefix("https://"));
        if let Some(rest) = plain {
            return is_filled(rest);
        }
        let Some((name, rest)) = s.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
            return false;
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
        name.starts_with(is_first) && name.chars().all(is_name) && !rest.chars().any(is_space)
    },
    noun: "address",
    words: "an address that begins with http:// or https://, or with a variable in braces",
    code: Code::BadUrl,
};

/// What `\s` stands for in ECMAScript.
fn is_space(c: char) -> bool {
    c.is_whitespace() && c != '\u{85}' || c == '\u{feff}'
}

fn document() -> Shape {
    open(vec![
        may("$schema", "Where a schema of this document is.", text_as(Format::Uri))
            .is(Concept::FormatVersion),
        must("name", "Its namespace, a slash, its name.", name()).is(Concept::Id),
        must("description", "What it does, in short.", text_within(1, 100)).is(Concept::Summary),
        may("title", "Name people see.", text_within(1, 100)).is(Concept::DisplayName),
        must("version", "Its version, a semantic one if possible.", text_within(1, 255))
            .is(Concept::Version),
        may("repository", "Where its source is.", repository()).is(Concept::Links),
        may("websiteUrl", "Its page.", text_as(Format::Uri)).is(Concept::Homepage),
        may("icons", "Pictures of it.", list(icon())).is(Concept::Pictures),
        may("packages", "Where it is to be had, and how it is started.", list(package()))
            .is(Concept::Acquire),
        may("remotes", "Where it runs already.", list(remote())).is(Concept::Endpoint),
        may(
            "_meta",
            "Notes of publishers and registries, by their domain read backwards.",
            Shape::Map(Box::new(Shape::Anything)),
        )
        .is(Concept::HostNotes),
    ])
}

fn name() -> Shape {
    Shape::Text(Text { min: 3, max: Some(200), pattern: Some(&NAME), format: None })
}

fn repository() -> Shape {
    open(vec![
        must("url", "Its address.", text_as(Format::Uri)),
        must("source", "Who hosts it, such as github.", text()),
        may("id", "What the host calls it.", text()),
        may("subfolder", "Folder of the server in it.", text()),
    ])
}

fn icon() -> Shape {
    open(vec![
        must("src", "Its address.", text_within(0, 255)),
        may(
            "mimeType",
            "What it is.",
            word(&["image/png", "image/jpeg", "image/jpg", "image/svg+xml", "image/webp"]),
        ),
        may("sizes", "Widths and heights, or any.", list(text())),
        may("theme", "Theme it belongs to.", word(&["light", "dark"])),
    ])
}

fn package() -> Shape {
    open(vec![
        must("registryType", "Who hands it out: npm, pypi, oci, nuget, mcpb, ….", filled_text()),
        may("registryBaseUrl", "The address of that registry.", text_as(Format::Uri)),
        must("identifier", "Its name there, or its address.", filled_text()),
        may("version", "Its version there, exactly.", text_within(1, 255)),
        may("fileSha256", "Digest of the file.", text_like(&patterns::SHA256)).is(Concept::Digest),
        may("runtimeHint", "What starts it, such as npx, uvx or docker.", text())
            .is(Concept::RuntimeKind),
        must(
            "transport",
            "How it is spoken to.",
            choice(
                "type",
                "Which way.",
                vec![
                    ("stdio", vec![]),
                    ("streamable-http", address_and_headers()),
                    ("sse", address_and_headers()),
                ],
            )
            .lenient(),
        )
        .is(Concept::Run),
        may("runtimeArguments", "Arguments of what starts it.", list(argument())).is(Concept::Run),
        may("packageArguments", "Arguments of the server.", list(argument())).is(Concept::Run),
        may("environmentVariables", "Variables that it is given.", list(key_value()))
            .is(Concept::Env),
    ])
}

fn remote() -> Shape {
    let mut fields = address_and_headers();
    fields.push(
        may("variables", "What stands in the braces of the address.", variables()).is(Concept::Env),
    );
    let again = {
        let mut fields = address_and_headers();
        fields.push(
            may("variables", "What stands in the braces of the address.", variables())
                .is(Concept::Env),
        );
        fields
    };
    choice("type", "How it is spoken to.", vec![("streamable-http", fields), ("sse", again)])
        .lenient()
}

fn address_and_headers() -> Vec<Field> {
    vec![
        must("url", "Its address; may hold variables in braces.", text_like(&ADDRESS)),
        may("headers", "Headers of every request.", list(key_value())).is(Concept::Headers),
    ]
}

fn variables() -> Shape {
    Shape::Map(Box::new(open(input())))
}

/// What is asked of the owner, or set.
fn input() -> Vec<Field> {
    vec![
        may("description", "What the owner is told.", text()).is(Concept::EnvPrompt),
        may("isRequired", "Whether it cannot do without.", Shape::Flag),
        may("format", "What a value is.", word(&["string", "number", "boolean", "filepath"]))
            .is(Concept::EnvKind),
        may("value", "The value; the owner is not asked then. May hold variables.", text()),
        may("isSecret", "Whether it must never be shown.", Shape::Flag).is(Concept::Secrets),
        may("default", "Value when the owner gives none.", text()).is(Concept::EnvDefault),
        may("placeholder", "What a value looks like.", text()).is(Concept::EnvPrompt),
        may("choices", "The values to choose from.", list(text())).is(Concept::EnvKind),
    ]
}

fn with_variables() -> Vec<Field> {
    let mut fields = input();
    fields.push(may("variables", "What stands in the braces of the value.", variables()));
    fields
}

fn key_value() -> Shape {
    let mut fields = vec![must("name", "Its name.", text())];
    fields.extend(with_variables());
    open(fields)
}

fn argument() -> Shape {
    let repeated = || may("isRepeated", "Whether it may be given several times.", Shape::Flag);
    let mut positional =
        vec![may("valueHint", "What the value is called; not part of the command.", text())];
    positional.push(repeated());
    positional.extend(with_variables());
    let mut named = vec![must("name", "The flag, with its dashes.", text()), repeated()];
    named.extend(with_variables());
    choice("type", "Whether it has a name.", vec![("positional", positional), ("named", named)])
        .lenient()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_follow_their_grammar() {
        for good in ["io.github.a/b", "a/b", "com.example/my_server.1-x"] {
            assert!((NAME.matches)(good), "{good}");
        }
        for bad in ["ab", "a/", "/b", "a/b/c", "a_b/c", "a b/c", "ä/b"] {
            assert!(!(NAME.matches)(bad), "{bad}");
        }
        for good in ["https://a", "{base}/mcp", "{_b1}"] {
            assert!((ADDRESS.matches)(good), "{good}");
        }
        for bad in ["ftp://a", "https://", "https://a b", "{1}", "{}", "a{b}", "{a} b"] {
            assert!(!(ADDRESS.matches)(bad), "{bad}");
        }
    }
}
