//! Texts that are easily read wrongly.

use manifest::shape::{Object, Pattern, Shape, Text};
use proptest::strategy::Strategy;

use crate::draws::{Draws, made};
use crate::mutations::change_letters;

/// Strings with no grammar of their own.
pub const TEXTS: [&str; 18] = [
    "a",
    "",
    " ",
    "word",
    "two words",
    "https://example.com/a?b#c",
    "a@example.com",
    "2026-11-15T02:00:00Z",
    "not a uri",
    "${env.NAME}",
    "${input.a}",
    "é",
    "\u{1f600}",
    "e\u{301}",
    "line\nbreak",
    "quote\" back\\slash / tab\t",
    "\u{0}\u{7f}\u{2028}\u{feff}",
    "null",
];

/// Keys that no dialect has.
pub const STRANGE_KEYS: [&str; 9] =
    ["colour", "x-note", "$comment", "_private", "//", "", "__proto__", "ключ", "a/b~c"];

/// A string within limits.
pub fn text_within(limits: &Text, draws: &mut Draws<'_>) -> String {
    if let Some(pattern) = limits.pattern {
        return text_like(pattern, draws).to_owned();
    }
    let length = |text: &str| text.chars().count();
    let fits =
        |text: &str| length(text) >= limits.min && limits.max.is_none_or(|m| length(text) <= m);
    // The borders, in characters of one, two and four bytes, are where counting goes wrong.
    match draws.below(6) {
        0..=3 => {
            let text = draws.pick(&TEXTS);
            if fits(text) { text.to_owned() } else { "a".repeat(limits.min) }
        }
        4 => draws.pick(&["a", "é", "\u{1f600}"]).repeat(limits.min),
        _ => draws.pick(&["a", "é", "\u{1f600}"]).repeat(limits.max.unwrap_or(limits.min + 3)),
    }
}

/// A string that follows a grammar.
pub fn text_like(pattern: &Pattern, draws: &mut Draws<'_>) -> &'static str {
    let sample = draws.pick(samples(pattern));
    assert!((pattern.matches)(sample), "`{sample}` is no sample of {pattern:?}");
    sample
}

/// Strings that follow a grammar, or nearly do.
pub fn texts_near(pattern: &'static Pattern) -> impl Strategy<Value = String> {
    made(12, |draws| {
        let mut text = text_like(pattern, draws).to_owned();
        for _ in 0..draws.below(4) {
            change_letters(&mut text, draws);
        }
        text
    })
}

/// Every grammar in a shape.
pub fn grammars(shape: &Shape) -> Vec<&'static Pattern> {
    let of_fields = |object: &Object| -> Vec<&'static Pattern> {
        object.fields.iter().flat_map(|field| grammars(&field.shape)).collect()
    };
    match shape {
        Shape::Text(limits) => limits.pattern.into_iter().collect(),
        Shape::List(limits) => grammars(&limits.item),
        Shape::Object(object) => of_fields(object),
        Shape::Choice(choice) => {
            choice.branches.iter().flat_map(|branch| of_fields(&branch.object)).collect()
        }
        Shape::Map(inner) | Shape::Nullable(inner) | Shape::Ruled(inner) => grammars(inner),
        Shape::Anything
        | Shape::Flag
        | Shape::Integer(_)
        | Shape::Number(_)
        | Shape::Word(_)
        | Shape::Schema => Vec::new(),
    }
}

const HEX_64: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const LONGEST_ID: &str = "a23456789-123456789-123456789-123456789-123456789-123456789-1234";

/// A few strings that follow a grammar: plain ones first, then those at its borders.
fn samples(pattern: &Pattern) -> &'static [&'static str] {
    match pattern.text {
        "^[a-z0-9][a-z0-9-]{1,62}[a-z0-9]$" => &["demo-tool", "abc", "0-0", "a--b", LONGEST_ID],
        "^[a-z0-9][a-z0-9-]{0,30}[a-z0-9]$" => {
            &["acme", "ab", "0-0", "a2345678901234567890123456789012"]
        }
        "^[0-9]+\\.[0-9]+\\.[0-9]+(-[a-z0-9.-]+)?$" => {
            &["1.0.0", "0.0.0", "01.02.03", "1.2.3-rc.1", "1.2.3--", "1.2.3-.", "1.2.3-a-b"]
        }
        "^[a-z0-9-]+$" => &["mail", "a", "-", "0", "--"],
        "^[a-f0-9]{64}$" => &[HEX_64],
        "^(sha256:)?[0-9a-fA-F]{64}$" => &[
            HEX_64,
            "sha256:0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef",
            "0000000000000000000000000000000000000000000000000000000000000000",
        ],
        "^[A-Z][A-Z0-9_]*$" => &["API_KEY", "A", "A_", "A0"],
        "^[A-Z_][A-Z0-9_]*$" => &["API_KEY", "A", "_", "_0"],
        "^[a-z][a-z0-9_]{0,62}$" => &[
            "send",
            "a",
            "a_",
            "a0",
            "a23456789_123456789_123456789_123456789_123456789_123456789_123",
        ],
        "^[a-z0-9][a-z0-9_-]*(\\.[a-z0-9][a-z0-9_-]*)+$" => {
            &["demo.echo", "a.b", "tools.pdf.read_local", "0.0", "a-_.b_-"]
        }
        text if text == manifest::shape::patterns::SEMVER.text => &[
            "1.0.0",
            "0.0.0",
            "10.20.30",
            "1.2.3-rc.1",
            "1.2.3-0a.0.a-",
            "1.2.3+001",
            "1.2.3--.-+-.0",
            "99999999999999999999.0.0",
        ],
        "^[0-9]+(\\.[0-9]+)?m?$" => &["2", "0.5", "500m", "0", "00.0m"],
        "^[0-9]+(\\.[0-9]+)?(B|[KkMGT]B?|[KMGT]i)?$" => {
            &["256Mi", "1Gi", "512MB", "0", "1.5T", "1k", "1kB", "1B"]
        }
        "^(vault|secret|env|file|keyring)://[^\\s]+$" => &[
            "env://API_KEY",
            "vault://a#b",
            "secret://x",
            "file:///etc/x",
            "keyring://a/b",
            "env://\u{85}",
        ],
        "^[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$" => {
            &["module:function", "a.b_.C0:_f", "_:_"]
        }
        "^[Hh][Tt][Tt][Pp][Ss]?://[^\\s/?#]" => &[
            "https://example.com/",
            "http://x",
            "HTTPS://X",
            "http://é",
            "http://:",
            "https://a b\n",
        ],
        text if text == manifest::shape::patterns::HOST.text => &[
            "example.com",
            "*.example.com",
            "localhost",
            "a--b.c",
            "example.com:443",
            "1.2.3.4:0",
            "A",
            "a:12345",
        ],
        "^[0-9]+x[0-9]+$" => &["128x128", "0x0", "1x99999999999999999999"],
        "^[A-Za-z0-9]{2,8}(-[A-Za-z0-9]{1,8})*$" => {
            &["en", "pt-BR", "zh-Hans-CN", "12345678-12345678", "a1-b"]
        }
        "\\$\\{[Ll][Oo][Cc][Aa][Ll][Ee]\\}" => {
            &["i18n/${locale}.json", "${LOCALE}", "a\n${Locale}\n", "${${locale}}"]
        }
        "^did:(plc|web):[^\\s]" => {
            &["did:web:example.com", "did:plc:a\n", "did:web:.", "did:plc:a"]
        }
        "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$" => {
            &["com.example/weather", "a/b", "io.github.a-b/C_1.x-y", ".-/._-"]
        }
        "^(https?://[^\\s]+|\\{[a-zA-Z_][a-zA-Z0-9_]*\\}[^\\s]*)$" => &[
            "https://example.com/mcp",
            "http://x",
            "{base}/mcp",
            "{_b1}",
            "{a}{b}",
            "https://{region}.example.com/",
        ],
        other => panic!("there are no samples of `{other}` yet: add some here"),
    }
}
