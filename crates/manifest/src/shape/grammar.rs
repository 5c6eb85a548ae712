//! The grammars of strings: ids, versions, names.
//!
//! Each is a pattern for the published schema and a hand-written matcher for
//! the reader, because compiling a dozen regular expressions would cost more than reading the whole
//! document. A test holds each pair against each other.

use crate::finding::Code;

/// A grammar of a string.
pub struct Pattern {
    /// The ECMAScript pattern.
    pub text: &'static str,
    /// Whether a string follows it.
    pub matches: fn(&str) -> bool,
    /// What a string of this grammar is called.
    pub noun: &'static str,
    /// The grammar in words.
    pub words: &'static str,
    /// The finding when a string does not follow it.
    pub code: Code,
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Pattern({})", self.text)
    }
}

/// What a string should be; a violation is a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An absolute URI.
    Uri,
    /// An e-mail address.
    Email,
    /// An RFC 3339 date and time.
    DateTime,
}

impl Format {
    /// The keyword value in JSON Schema.
    pub fn keyword(self) -> &'static str {
        match self {
            Format::Uri => "uri",
            Format::Email => "email",
            Format::DateTime => "date-time",
        }
    }

    /// Whether the string is one.
    pub fn is_met_by(self, text: &str) -> bool {
        match self {
            // A URI template in braces or `${VAR}` is filled in later and judged then.
            Format::Uri => text.contains("${") || fluent_uri::Uri::parse(text).is_ok(),
            Format::Email => email_address::EmailAddress::is_valid(text),
            Format::DateTime => is_date_time(text),
        }
    }

    /// What it is called.
    pub fn noun(self) -> &'static str {
        match self {
            Format::Uri => "absolute URI",
            Format::Email => "e-mail address",
            Format::DateTime => "RFC 3339 date and time",
        }
    }
}

/// The grammars the dialects use.
pub mod patterns {
    use super::Pattern;
    use crate::finding::Code;

    /// Id of an install-manifest tool.
    pub static KEBAB_ID: Pattern = Pattern {
        text: "^[a-z0-9][a-z0-9-]{1,62}[a-z0-9]$",
        matches: |s| {
            (3..=64).contains(&s.len())
                && all(s, |b| is_lower_or_digit(b) || b == b'-')
                && ends(s, is_lower_or_digit)
        },
        noun: "tool id",
        words: "3 to 64 lower-case letters, digits and hyphens, no hyphen at either end",
        code: Code::BadPattern,
    };
    /// Namespace of an install-manifest tool.
    pub static NAMESPACE: Pattern = Pattern {
        text: "^[a-z0-9][a-z0-9-]{0,30}[a-z0-9]$",
        matches: |s| {
            (2..=32).contains(&s.len())
                && all(s, |b| is_lower_or_digit(b) || b == b'-')
                && ends(s, is_lower_or_digit)
        },
        noun: "namespace",
        words: "2 to 32 lower-case letters, digits and hyphens, no hyphen at either end",
        code: Code::BadPattern,
    };
    /// Version of an install-manifest tool.
    pub static TOOL_VERSION: Pattern = Pattern {
        text: "^[0-9]+\\.[0-9]+\\.[0-9]+(-[a-z0-9.-]+)?$",
        matches: |s| {
            let (core, pre) = s.split_once('-').map_or((s, None), |(core, pre)| (core, Some(pre)));
            is_dotted_triple(core)
                && pre.is_none_or(|pre| {
                    filled(pre, |b| is_lower_or_digit(b) || b == b'.' || b == b'-')
                })
        },
        noun: "version",
        words: "MAJOR.MINOR.PATCH, then perhaps `-` and a pre-release in lower case",
        code: Code::BadPattern,
    };
    /// Tag of an install-manifest tool.
    pub static TAG: Pattern = Pattern {
        text: "^[a-z0-9-]+$",
        matches: |s| filled(s, |b| is_lower_or_digit(b) || b == b'-'),
        noun: "tag",
        words: "lower-case letters, digits and hyphens",
        code: Code::BadPattern,
    };
    /// Lower-case SHA-256.
    pub static SHA256: Pattern = Pattern {
        text: "^[a-f0-9]{64}$",
        matches: |s| s.len() == 64 && all(s, |b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
        noun: "SHA-256",
        words: "64 lower-case hexadecimal digits",
        code: Code::BadPattern,
    };
    /// SHA-256 with or without its prefix.
    pub static DIGEST: Pattern = Pattern {
        text: "^(sha256:)?[0-9a-fA-F]{64}$",
        matches: |s| {
            let hex = s.strip_prefix("sha256:").unwrap_or(s);
            hex.len() == 64 && all(hex, |b| b.is_ascii_hexdigit())
        },
        noun: "SHA-256 digest",
        words: "64 hexadecimal digits, with or without `sha256:` before them",
        code: Code::BadDigest,
    };
    /// Name of an environment variable.
    pub static ENV_NAME: Pattern = Pattern {
        text: "^[A-Z][A-Z0-9_]*$",
        matches: |s| {
            s.as_bytes().first().is_some_and(u8::is_ascii_uppercase)
                && all(s, |b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        },
        noun: "variable name",
        words: "upper-case letters, digits and underscores, beginning with a letter",
        code: Code::BadPattern,
    };
    /// Name of an action.
    pub static ACTION_NAME: Pattern = Pattern {
        text: "^[a-z][a-z0-9_]{0,62}$",
        matches: |s| {
            (1..=63).contains(&s.len())
                && s.as_bytes()[0].is_ascii_lowercase()
                && all(s, |b| is_lower_or_digit(b) || b == b'_')
        },
        noun: "action name",
        words: "lower-case letters, digits and underscores, beginning with a letter, at most 63",
        code: Code::BadPattern,
    };
    /// Id of an mcpkg tool.
    pub static DOTTED_ID: Pattern = Pattern {
        text: "^[a-z0-9][a-z0-9_-]*(\\.[a-z0-9][a-z0-9_-]*)+$",
        matches: |s| {
            s.contains('.')
                && s.split('.').all(|segment| {
                    segment.bytes().next().is_some_and(is_lower_or_digit)
                        && all(segment, |b| is_lower_or_digit(b) || b == b'_' || b == b'-')
                })
        },
        noun: "tool id",
        words: "two or more segments joined by dots, each of lower-case letters, digits, `_` and `-`, like `publisher.domain.name`",
        code: Code::BadPattern,
    };
    /// Exact semantic version, pre-release and build allowed.
    pub static SEMVER: Pattern = Pattern {
        text: "^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\\+[0-9a-zA-Z-]+(\\.[0-9a-zA-Z-]+)*)?$",
        matches: is_semver,
        noun: "semantic version",
        words: "an exact MAJOR.MINOR.PATCH, then perhaps `-pre.release` and `+build`; no range, no `latest`",
        code: Code::BadPattern,
    };
    /// The same, where a range has its own name for being wrong.
    pub static EXACT_VERSION: Pattern = Pattern {
        text: SEMVER.text,
        matches: is_semver,
        noun: "exact version",
        words: SEMVER.words,
        code: Code::BadVersion,
    };
    /// A limit of processor time.
    pub static CPU: Pattern = Pattern {
        text: "^[0-9]+(\\.[0-9]+)?m?$",
        matches: |s| is_decimal(s.strip_suffix('m').unwrap_or(s)),
        noun: "cpu limit",
        words: "a number of cores like `2` or `0.5`, or thousandths of one like `500m`",
        code: Code::BadQuantity,
    };
    /// A limit of memory.
    pub static MEMORY: Pattern = Pattern {
        text: "^[0-9]+(\\.[0-9]+)?(B|[KkMGT]B?|[KMGT]i)?$",
        matches: |s| {
            let unit = s.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            let known = [
                "", "B", "K", "k", "M", "G", "T", "KB", "kB", "MB", "GB", "TB", "Ki", "Mi", "Gi",
                "Ti",
            ];
            known.contains(&unit) && is_decimal(&s[..s.len() - unit.len()])
        },
        noun: "memory limit",
        words: "a number and a unit like `256Mi`, `1Gi` or `512MB`",
        code: Code::BadQuantity,
    };
    /// A reference to a secret.
    pub static SECRET_REF: Pattern = Pattern {
        text: "^(vault|secret|env|file|keyring)://[^\\s]+$",
        matches: |s| {
            s.split_once("://").is_some_and(|(scheme, rest)| {
                ["vault", "secret", "env", "file", "keyring"].contains(&scheme)
                    && !rest.is_empty()
                    && !rest.contains(is_space)
            })
        },
        noun: "secret reference",
        words: "a reference such as `vault://path#key`, `env://NAME`, `file://path`, `keyring://service/name` or `secret://name`",
        code: Code::BadPattern,
    };
    /// A Python callable.
    pub static CALLABLE: Pattern = Pattern {
        text: "^[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$",
        matches: |s| {
            s.split_once(':').is_some_and(|(module, function)| {
                module.split('.').all(is_identifier) && is_identifier(function)
            })
        },
        noun: "callable",
        words: "`module.sub:function`",
        code: Code::BadPattern,
    };
    /// An http or https URL.
    pub static HTTP_URL: Pattern = Pattern {
        text: "^[Hh][Tt][Tt][Pp][Ss]?://[^\\s/?#]",
        matches: |s| {
            s.split_once("://").is_some_and(|(scheme, rest)| {
                (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
                    && rest.chars().next().is_some_and(|c| !is_space(c) && !"/?#".contains(c))
            })
        },
        noun: "http URL",
        words: "an address that begins with `https://` or `http://` and names a host",
        code: Code::BadUrl,
    };
    /// A decentralised identifier of a publisher.
    pub static DID: Pattern = Pattern {
        text: "^did:(plc|web):[^\\s]",
        matches: |s| {
            let rest = s.strip_prefix("did:plc:").or_else(|| s.strip_prefix("did:web:"));
            rest.and_then(|rest| rest.chars().next()).is_some_and(|c| !is_space(c))
        },
        noun: "decentralised identifier",
        words: "`did:plc:…` or `did:web:…`",
        code: Code::BadPattern,
    };
    /// A host name, as a rule of an allowlist.
    pub static HOST: Pattern = Pattern {
        text: "^(\\*\\.)?[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*(:[0-9]{1,5})?$",
        matches: |s| {
            let s = s.strip_prefix("*.").unwrap_or(s);
            let (host, port) = s.split_once(':').map_or((s, None), |(h, p)| (h, Some(p)));
            let port_is_one =
                port.is_none_or(|p| p.len() <= 5 && filled(p, |b| b.is_ascii_digit()));
            let is_label = |label: &str| {
                all(label, |b| b.is_ascii_alphanumeric() || b == b'-')
                    && ends(label, |b| b.is_ascii_alphanumeric())
            };
            port_is_one && host.split('.').all(is_label)
        },
        noun: "host",
        words: "a host name without scheme or path, perhaps with a port; it covers its subdomains",
        code: Code::BadPattern,
    };

    /// Every grammar, for the test that holds pattern and matcher against each other.
    #[cfg(test)]
    pub(super) static ALL: [&Pattern; 15] = [
        &KEBAB_ID,
        &NAMESPACE,
        &TOOL_VERSION,
        &TAG,
        &SHA256,
        &DIGEST,
        &ENV_NAME,
        &ACTION_NAME,
        &DOTTED_ID,
        &SEMVER,
        &CPU,
        &MEMORY,
        &SECRET_REF,
        &CALLABLE,
        &HTTP_URL,
    ];

    fn is_lower_or_digit(byte: u8) -> bool {
        byte.is_ascii_lowercase() || byte.is_ascii_digit()
    }

    fn all(text: &str, is_allowed: impl Fn(u8) -> bool) -> bool {
        text.bytes().all(is_allowed)
    }

    fn filled(text: &str, is_allowed: impl Fn(u8) -> bool) -> bool {
        !text.is_empty() && all(text, is_allowed)
    }

    fn ends(text: &str, is_allowed: impl Fn(u8) -> bool) -> bool {
        let bytes = text.as_bytes();
        bytes.first().is_some_and(|b| is_allowed(*b))
            && bytes.last().is_some_and(|b| is_allowed(*b))
    }

    fn is_decimal(text: &str) -> bool {
        let (whole, fraction) = text.split_once('.').map_or((text, None), |(w, f)| (w, Some(f)));
        filled(whole, |b| b.is_ascii_digit())
            && fraction.is_none_or(|fraction| filled(fraction, |b| b.is_ascii_digit()))
    }

    fn is_dotted_triple(text: &str) -> bool {
        let mut parts = text.split('.');
        let three = parts.by_ref().take(3).filter(|p| filled(p, |b| b.is_ascii_digit())).count();
        three == 3 && parts.next().is_none()
    }

    fn is_identifier(text: &str) -> bool {
        text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
            && all(text, |b| b.is_ascii_alphanumeric() || b == b'_')
    }

    fn is_semver(text: &str) -> bool {
        let (rest, build) = text.split_once('+').map_or((text, None), |(r, b)| (r, Some(b)));
        let (core, pre) = rest.split_once('-').map_or((rest, None), |(c, p)| (c, Some(p)));
        let is_word = |word: &str| filled(word, |b| b.is_ascii_alphanumeric() || b == b'-');
        let is_number = |word: &str| {
            filled(word, |b| b.is_ascii_digit()) && (word.len() == 1 || !word.starts_with('0'))
        };
        let is_pre =
            |word: &str| is_word(word) && (!all(word, |b| b.is_ascii_digit()) || is_number(word));
        core.split('.').count() == 3
            && core.split('.').all(is_number)
            && pre.is_none_or(|pre| pre.split('.').all(is_pre))
            && build.is_none_or(|build| build.split('.').all(is_word))
    }

    /// What ECMAScript's `\s` matches.
    fn is_space(character: char) -> bool {
        (character.is_whitespace() && character != '\u{85}') || character == '\u{feff}'
    }
}

fn is_date_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes
            .get(range)
            .filter(|part| part.iter().all(u8::is_ascii_digit))
            .and_then(|part| std::str::from_utf8(part).ok()?.parse::<u32>().ok())
    };
    let within = |range, min, max| digits(range).is_some_and(|n| (min..=max).contains(&n));
    let separators = bytes.len() >= 20
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && matches!(bytes[10], b'T' | b't' | b' ')
        && bytes[13] == b':'
        && bytes[16] == b':';
    if !separators
        || digits(0..4).is_none()
        || !within(5..7, 1, 12)
        || !within(8..10, 1, 31)
        || !within(11..13, 0, 23)
        || !within(14..16, 0, 59)
        || !within(17..19, 0, 60)
    {
        return false;
    }
    let mut rest = &text[19..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let end = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
        if end == 0 {
            return false;
        }
        rest = &fraction[end..];
    }
    let is_offset = |rest: &str| {
        let bytes = rest.as_bytes();
        bytes.len() == 6
            && matches!(bytes[0], b'+' | b'-')
            && bytes[3] == b':'
            && [1, 2, 4, 5].iter().all(|at| bytes[*at].is_ascii_digit())
    };
    matches!(rest, "Z" | "z") || is_offset(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that sit on the borders of the grammars, and many small mutations of them.
    fn candidates() -> Vec<String> {
        let seeds = [
            "",
            "a",
            "ab",
            "abc",
            "a-b",
            "-ab",
            "ab-",
            "A",
            "A_B",
            "_A",
            "1A",
            "a_b",
            "a.b",
            "a..b",
            ".a",
            "a.",
            "gmail-yep",
            "demo.echo",
            "tools.pdf.read_local",
            "1.2.3",
            "1.2",
            "1.2.3.4",
            "01.2.3",
            "1.2.3-rc.1",
            "1.2.3-01",
            "1.2.3-",
            "1.2.3+b",
            "1.2.3-a+b.c",
            "1.2.3+",
            "^1.0.0",
            "latest",
            "500m",
            "2",
            "0.5",
            ".5",
            "256Mi",
            "1Gi",
            "512MB",
            "1Zi",
            "1k",
            "1KB",
            "10 M",
            "vault://a#b",
            "vault://",
            "env://X Y",
            "http://x",
            "m:f",
            "m.s:f",
            "m.s:",
            "m.1:f",
            ":f",
            "m:f:g",
            "https://a/b",
            "HTTPS://a",
            "https:///a",
            "ftp://a",
            "https://",
            "example.com",
            "*.example.com",
            "example.com:443",
            "example.com:",
            "http://é",
        ];
        let long = [
            "a".repeat(63),
            "a".repeat(64),
            "a".repeat(65),
            "f".repeat(64),
            "F".repeat(64),
            format!("sha256:{}", "0".repeat(64)),
            "b".repeat(31),
            "b".repeat(32),
            "b".repeat(33),
        ];
        let mut all: Vec<String> = seeds.iter().map(|s| (*s).to_owned()).chain(long).collect();
        for word in all.clone() {
            for (index, _) in word.char_indices().take(12) {
                for extra in ["-", ".", "0", "A", "z", "_", ":", "+", " ", "é", "\n"] {
                    all.push(format!("{}{extra}{}", &word[..index], &word[index..]));
                }
                let next = word[index..].chars().next().unwrap().len_utf8();
                all.push(format!("{}{}", &word[..index], &word[index + next..]));
            }
            all.push(format!("{word}\n"));
        }
        all
    }

    #[test]
    fn matchers_agree_with_their_patterns() {
        for pattern in patterns::ALL.iter().copied().chain([&patterns::HOST]) {
            let rust = jsonschema_regex::to_rust_regex(pattern.text).unwrap();
            let regex = regex::Regex::new(&rust).unwrap();
            for word in candidates() {
                assert_eq!(
                    (pattern.matches)(&word),
                    regex.is_match(&word),
                    "{} {word:?}",
                    pattern.text
                );
            }
        }
    }

    #[test]
    fn formats_are_recognised() {
        assert!(Format::Uri.is_met_by("https://example.com/a?b#c"));
        assert!(!Format::Uri.is_met_by("example.com"));
        assert!(!Format::Uri.is_met_by("https://exa mple.com"));
        assert!(Format::Email.is_met_by("a@example.com"));
        assert!(!Format::Email.is_met_by("a.example.com"));
        assert!(Format::DateTime.is_met_by("2026-11-15T02:00:00Z"));
        assert!(Format::DateTime.is_met_by("2026-11-15T02:00:00.25+01:00"));
        assert!(!Format::DateTime.is_met_by("2026-13-15T02:00:00Z"));
        assert!(!Format::DateTime.is_met_by("2026-11-15"));
        assert!(!Format::DateTime.is_met_by("é026-11-15T02:00:00Z"));
    }
}
