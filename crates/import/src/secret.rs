//! Whether a value of somebody's settings is a secret: by what it is called, or by what it looks like.

use package::secrets::in_text;

use crate::config::{Entry, Launch};
use crate::draft::command::check_argument;

/// What a part of a name ends with when a value so called is a secret.
const ENDINGS: [&str; 12] = [
    "KEY",
    "KEYS",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "AUTHORIZATION",
    "COOKIE",
    "DSN",
];

/// Parts of a name that are such a word, and the end of many others.
const WORDS: [&str; 7] = ["PAT", "PASS", "PWD", "AUTH", "CREDENTIAL", "CREDENTIALS", "BEARER"];

/// The last part of a name when it speaks of a secret, and is none.
const ABOUT: [&str; 12] = [
    "PATH", "FILE", "DIR", "FOLDER", "URL", "URI", "ENDPOINT", "NAME", "ID", "TYPE", "HEADER",
    "LIMIT",
];

/// Whether a value of that name is a secret. What is empty, a switch, a small number or a path is none.
pub fn is_secret(name: &str, value: &str) -> bool {
    !value.is_empty() && (is_secret_value(value) || (is_secret_name(name) && !is_harmless(value)))
}

/// Whether what is called so is a secret, whatever it is.
pub fn is_secret_name(name: &str) -> bool {
    let parts = parts(name);
    let Some(last) = parts.last() else { return false };
    if parts.len() > 1 && ABOUT.contains(&last.as_str()) {
        return false;
    }
    parts.iter().any(|part| {
        WORDS.contains(&part.as_str()) || ENDINGS.iter().any(|ending| part.ends_with(ending))
    })
}

/// Whether a value looks like a secret, whatever it is called.
pub fn is_secret_value(value: &str) -> bool {
    in_text(value.as_bytes()).is_some() || has_password(value) || is_signed_token(value)
}

/// Whether an address in a text has a password.
fn has_password(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        rest = &rest[at + 3..];
        let authority = rest.split(['/', '?', '#', ' ', '"', '\'']).next().unwrap_or_default();
        let Some((user, _)) = authority.rsplit_once('@') else { continue };
        if user.split_once(':').is_some_and(|(_, password)| is_written_out(password)) {
            return true;
        }
    }
    false
}

/// Whether something is there, and no variable.
fn is_written_out(text: &str) -> bool {
    !text.is_empty() && !text.contains("${")
}

/// Whether a text is a token of three parts, the first of which is JSON.
fn is_signed_token(text: &str) -> bool {
    let mut parts = text.split('.');
    let is_part = |part: Option<&str>| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        part.is_some_and(|part| part.len() >= 8 && part.bytes().all(is_plain))
    };
    text.starts_with("eyJ") && (0..3).all(|_| is_part(parts.next())) && parts.next().is_none()
}

fn is_harmless(value: &str) -> bool {
    let is_number = value.len() <= 8 && value.bytes().all(|byte| byte.is_ascii_digit());
    let lower = value.to_ascii_lowercase();
    let is_switch = ["true", "false", "yes", "no", "on", "off", "none", "null"].contains(&&*lower);
    let is_path = ["/", "./", "../", "~/"].iter().any(|start| value.starts_with(start))
        && !value.contains(char::is_whitespace);
    is_number || is_switch || is_path
}

/// The parts of a name in upper case: `apiKey`, `api-key` and `API_KEY` have the same two.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| letter.is_alphanumeric()) {
            part.extend(letter.to_uppercase());
        }
        was_lower = letter.is_lowercase();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The values of a server's settings that are secrets, to be left out of what is shown.
pub fn values(entry: &Entry) -> Vec<String> {
    let (named, args) = match &entry.launch {
        Launch::Command { env, args, .. } => (env, args.as_slice()),
        Launch::Remote { headers, .. } => (headers, &[][..]),
    };
    let named = named.iter().filter(|(name, value)| is_secret(name, value));
    let before = std::iter::once(None).chain(args.iter().map(Some));
    let shown = args.iter().zip(before).filter(|(argument, before)| {
        is_secret_value(argument) || check_argument(argument, *before).is_err()
    });
    // Of an option with its value, the value is the secret.
    let value = |argument: &String| match argument.split_once(['=', ':']) {
        Some((_, value)) if !is_secret_value(argument) => value.trim().to_owned(),
        _ => argument.clone(),
    };
    let shown = shown.map(|(argument, _)| value(argument));
    named.map(|(_, value)| value.clone()).chain(shown).collect()
}

/// A line of settings without the secrets that stand in it, of whatever they are.
pub fn masked(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut key = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['"', '\'']) {
        let (before, quoted) = rest.split_at(at);
        shown.push_str(before);
        // In TOML a key may be bare.
        if let Some(bare) = before.trim_end().strip_suffix('=') {
            let word = bare.trim_end().rsplit([' ', '\t', ',', '{', '.']).next();
            key = word.filter(|word| !word.is_empty()).unwrap_or(&key).to_owned();
        }
        let length = quoted_length(quoted);
        let (text, after) = quoted.split_at(length);
        let value = text.trim_matches(['"', '\'']);
        rest = after;
        if after.trim_start().starts_with([':', '=']) {
            value.clone_into(&mut key);
            shown.push_str(text);
        } else if is_secret(&key, value) {
            let quote = &text[..1];
            shown.push_str(&format!("{quote}…{quote}"));
        } else {
            shown.push_str(text);
        }
    }
    shown + rest
}

/// How long the text is that begins with a quote, with both of them.
fn quoted_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() && bytes[at] != bytes[0] {
        at += if bytes[at] == b'\\' && bytes[0] == b'"' { 2 } else { 1 };
    }
    // What does not end here ends with the line.
    (at + 1).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shown_without_its_secrets() {
        for (line, shown) in [
            (r#"  "primaryApiKey": "v4lue", // x"#, r#"  "primaryApiKey": "…", // x"#),
            (r#"{"a":"b","token":"v4l\"ue","n":1}"#, r#"{"a":"b","token":"…","n":1}"#),
            ("API_KEY = 'v4lue' # mine", "API_KEY = '…' # mine"),
            (
                "env = { MODE = \"fast\", set.API_KEY = \"v4lue\" }",
                "env = { MODE = \"fast\", set.API_KEY = \"…\" }",
            ),
            ("args = [\"postgres://ann:s3cret@db/app\", \"x\"]", "args = [\"…\", \"x\"]"),
            (r#""token": "no end"#, r#""token": "…""#),
            (r#""token": "\"#, r#""token": "…""#),
            ("theme = \"dark\" # don't", "theme = \"dark\" # don't"),
        ] {
            assert_eq!(masked(line), shown);
        }
    }

    #[test]
    fn a_secret_among_arguments_is_left_out_of_what_is_shown() {
        let args = [
            "--token",
            "v4lue-one",
            "--api-key=v4lue-two",
            "--mode",
            "fast",
            "Authorization: v4lue-three",
        ];
        let launch = Launch::Command {
            command: "x".to_owned(),
            args: args.iter().map(|one| (*one).to_owned()).collect(),
            env: Vec::new(),
            cwd: None,
        };
        let entry = Entry { launch, enabled: true, unknown: Vec::new() };
        assert_eq!(values(&entry), ["v4lue-one", "v4lue-two", "v4lue-three"]);
    }

    #[test]
    fn what_is_called_like_a_secret_is_one() {
        for name in [
            "API_KEY",
            "apiKey",
            "OPENAI_APIKEY",
            "GITHUB_TOKEN",
            "x-api-key",
            "Authorization",
            "DB_PASSWORD",
            "client_secret",
            "GITHUB_PAT",
            "SENTRY_DSN",
            "Cookie",
            "--token",
        ] {
            assert!(is_secret(name, "v4lue"), "{name}");
        }
        for name in ["MODE", "LOG_LEVEL", "KEY_FILE", "TOKEN_URL", "CLIENT_ID", "PATH", "LANG", ""]
        {
            assert!(!is_secret(name, "v4lue"), "{name}");
        }
        for value in ["", "4096", "true", "/etc/keys/mine", "~/key"] {
            assert!(!is_secret("MAX_TOKENS", value), "{value}");
        }
    }

    #[test]
    fn what_looks_like_a_secret_is_one_whatever_it_is_called() {
        let token = format!("ghp_{}", "q7Zt2Lm9Xv4Rb8Nc1Wd6".repeat(2));
        for value in [
            token.as_str(),
            "postgres://ann:s3cret@db.internal/app",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0xx.c2lnbmF0dXJlMTIz",
        ] {
            assert!(is_secret("MODE", value), "{value}");
        }
        for value in
            ["https://example.com/a:b@c", "postgres://ann@db", "postgres://ann:${PW}@db", "eyJ.a.b"]
        {
            assert!(!is_secret("MODE", value), "{value}");
        }
    }
}
