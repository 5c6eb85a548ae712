//! What must not be packed: files that hold secrets by their name, and secrets in their text.
//!
//! The rules know the shapes of keys and tokens that are never anything else.
//! Words such as `password` are no rule: they would cry wolf.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::bytes::Regex;

/// A secret that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    /// The file.
    pub path: String,
    /// What kind of secret.
    pub what: &'static str,
    /// The line it stands in; nothing when the name of the file says it all.
    pub line: Option<usize>,
}

/// Files that are secrets by their whole name.
const NAMES: [(&str, &str); 19] = [
    (".env", "variables with secrets"),
    (".envrc", "variables with secrets"),
    (".netrc", "passwords"),
    ("_netrc", "passwords"),
    (".pgpass", "passwords"),
    (".htpasswd", "passwords"),
    (".pypirc", "passwords of a package index"),
    (".git-credentials", "passwords of git"),
    (".dockercfg", "passwords of a container registry"),
    ("id_rsa", "a private key"),
    ("id_dsa", "a private key"),
    ("id_ecdsa", "a private key"),
    ("id_ecdsa_sk", "a private key"),
    ("id_ed25519", "a private key"),
    ("id_ed25519_sk", "a private key"),
    ("identity.age", "a private key"),
    ("wallet.dat", "a wallet"),
    ("terraform.tfstate", "the state of a cloud, with its secrets"),
    ("kubeconfig", "access to a cluster"),
];

/// Files that are secrets by how their name ends.
const ENDINGS: [(&str, &str); 9] = [
    (".key", "a private key"),
    (".p12", "a private key"),
    (".pfx", "a private key"),
    (".jks", "a store of keys"),
    (".keystore", "a store of keys"),
    (".kdbx", "a store of passwords"),
    (".ppk", "a private key"),
    (".asc.key", "a private key"),
    (".ovpn", "access to a network"),
];

/// Folders whose files are secrets.
const FOLDERS: [(&str, &str); 7] = [
    (".docker", "passwords of a container registry"),
    (".gem", "a token of a package index"),
    (".ssh", "keys of ssh"),
    (".gnupg", "keys of gpg"),
    (".aws", "access to a cloud"),
    (".azure", "access to a cloud"),
    (".kube", "access to a cluster"),
];

/// Endings of `.env` files that only show which variables there are.
const SHOWN: [&str; 5] = ["example", "sample", "template", "dist", "defaults"];

/// How a secret begins, what it looks like as a whole, and what it is.
const RULES: [(&str, &str, &str); 44] = [
    (
        "-----BEGIN ",
        r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\\[rn]|\s|[A-Za-z-]+: [^\n]*\n)*[A-Za-z0-9+/=]{32}",
        "a private key",
    ),
    ("AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}", "a private key"),
    ("haft-secret-key", r#"haft-secret-key-1""#, "a private key of Haft"),
    ("AKIA", r"AKIA[0-9A-Z]{16}\b", "an access key of a cloud"),
    ("ASIA", r"ASIA[0-9A-Z]{16}\b", "an access key of a cloud"),
    ("ghp_", r"ghp_[A-Za-z0-9]{36}", "a token of GitHub"),
    ("gho_", r"gho_[A-Za-z0-9]{36}", "a token of GitHub"),
    ("ghu_", r"ghu_[A-Za-z0-9]{36}", "a token of GitHub"),
    ("ghs_", r"ghs_[A-Za-z0-9]{36}", "a token of GitHub"),
    ("ghr_", r"ghr_[A-Za-z0-9]{36}", "a token of GitHub"),
    ("github_pat_", r"github_pat_[A-Za-z0-9_]{60}", "a token of GitHub"),
    ("glpat-", r"glpat-[A-Za-z0-9_-]{20}", "a token of GitLab"),
    ("xox", r"xox[abeprs]-[A-Za-z0-9-]{20}", "a token of Slack"),
    ("xapp-", r"xapp-[0-9]-[A-Za-z0-9-]{20}", "a token of Slack"),
    ("sk_live_", r"sk_live_[A-Za-z0-9]{20}", "a key of Stripe"),
    ("rk_live_", r"rk_live_[A-Za-z0-9]{20}", "a key of Stripe"),
    ("sk-ant-", r"sk-ant-[A-Za-z0-9_-]{30}", "a key of Anthropic"),
    ("sk-proj-", r"sk-proj-[A-Za-z0-9_-]{30}", "a key of OpenAI"),
    ("T3BlbkFJ", r"T3BlbkFJ[A-Za-z0-9]{20}", "a key of OpenAI"),
    ("AIza", r"AIza[A-Za-z0-9_-]{35}", "a key of Google"),
    ("npm_", r"npm_[A-Za-z0-9]{36}", "a token of a package index"),
    ("pypi-AgEI", r"pypi-AgEI[A-Za-z0-9_-]{50}", "a token of a package index"),
    ("_authToken=", r"_authToken=[A-Za-z0-9_-]{16}", "a token of a package index"),
    ("hf_", r"hf_[A-Za-z0-9]{34}", "a token of Hugging Face"),
    ("SG.", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}", "a key of SendGrid"),
    ("dop_v1_", r"dop_v1_[0-9a-f]{64}", "a token of DigitalOcean"),
    ("gsk_", r"gsk_[A-Za-z0-9]{48}", "a key of Groq"),
    ("sk-or-v1-", r"sk-or-v1-[0-9a-f]{60}", "a key of OpenRouter"),
    ("xai-", r"xai-[A-Za-z0-9]{70}", "a key of xAI"),
    ("pplx-", r"pplx-[A-Za-z0-9]{40}", "a key of Perplexity"),
    ("r8_", r"r8_[A-Za-z0-9]{37}", "a token of Replicate"),
    ("GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{28}", "a secret of Google"),
    ("hvs.", r"hvs\.[A-Za-z0-9_-]{24}", "a token of Vault"),
    ("shpat_", r"shpat_[0-9a-f]{32}", "a token of Shopify"),
    ("AccountKey=", r"AccountKey=[A-Za-z0-9+/]{80}", "a key of Azure"),
    (
        "hooks.slack.com/services/",
        r"hooks\.slack\.com/services/T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{20}",
        "a webhook of Slack",
    ),
    (
        "discord.com/api/webhooks/",
        r"discord\.com/api/webhooks/[0-9]{15,}/[A-Za-z0-9_-]{60}",
        "a webhook of Discord",
    ),
    (
        "npmAuthToken",
        r#"npmAuthToken["']?\s*:\s*["']?[A-Za-z0-9_-]{16}"#,
        "a token of a package index",
    ),
    (
        "index-url",
        r"index-url\s*=\s*https?://[^/\s:@$]+:[^/\s:@$]{6,}@",
        "a password of a package index",
    ),
    (
        "aws_secret_access_key",
        r#"aws_secret_access_key["']?\s*[:=]\s*["']?[A-Za-z0-9/+]{40}"#,
        "a secret key of a cloud",
    ),
    (
        "AWS_SECRET_ACCESS_KEY",
        r#"AWS_SECRET_ACCESS_KEY["']?\s*[:=]\s*["']?[A-Za-z0-9/+]{40}"#,
        "a secret key of a cloud",
    ),
    (
        "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS",
        r"LS0tLS1CRUdJTiBQUklWQVRFIEtFWS[A-Za-z0-9+/]{40}",
        "a private key",
    ),
    (
        "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRV",
        r"LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRV[A-Za-z0-9+/]{40}",
        "a private key",
    ),
    (
        "LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0VZ",
        r"LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0VZ[A-Za-z0-9+/]{40}",
        "a private key",
    ),
];

static BEGINNINGS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    // Only a leftmost search can skip ahead many bytes at a time.
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        .build(RULES.map(|(begins, _, _)| begins))
        .expect("the rules are few and short")
});

static SHAPES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let shape = |(_, shape, _): (&str, &str, &str)| {
        Regex::new(&format!("(?-u)^(?:{shape})")).expect("the rules are regular expressions")
    };
    RULES.map(shape).into()
});

/// How far a secret is looked at from where it begins.
const REACH: usize = 4096;

/// What a file is known to hold by its name alone.
pub fn by_name(path: &str) -> Option<&'static str> {
    let lower = path.to_ascii_lowercase();
    let (above, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
    let in_folder = || {
        let named = |folder: &str| above.split('/').any(|segment| segment == folder);
        FOLDERS.iter().find(|(folder, _)| named(folder))
    };
    let by_ending =
        || ENDINGS.iter().find(|(ending, _)| name.ends_with(ending) && name.len() > ending.len());
    let whole = || NAMES.iter().find(|(whole, _)| *whole == name);
    let variant = || {
        let kind = name.strip_prefix(".env.").or_else(|| name.strip_suffix(".env"))?;
        let is_shown = SHOWN.iter().any(|shown| kind.split(['.', '-']).any(|part| part == *shown));
        (!is_shown).then_some(&NAMES[0])
    };
    let of_cargo = || {
        let is_there = matches!(name, "credentials" | "credentials.toml");
        (is_there && above.rsplit('/').next() == Some(".cargo")).then_some(&FOLDERS[1])
    };
    whole()
        .or_else(variant)
        .or_else(of_cargo)
        .or_else(by_ending)
        .or_else(in_folder)
        .map(|(_, what)| *what)
}

/// The first secret in a file's text, and its line.
pub fn in_text(bytes: &[u8]) -> Option<(&'static str, usize)> {
    match utf16(bytes) {
        Some(text) => in_bytes(text.as_bytes()),
        None => in_bytes(bytes),
    }
}

fn in_bytes(bytes: &[u8]) -> Option<(&'static str, usize)> {
    for hit in BEGINNINGS.find_iter(bytes) {
        let (rule, start) = (hit.pattern().as_usize(), hit.start());
        let part = &bytes[start..bytes.len().min(start + REACH)];
        let before = &bytes[..start];
        let begins = RULES[rule].0;
        let stands_alone = ANYWHERE.contains(&begins) || !is_inside(before);
        if stands_alone
            && SHAPES[rule]
                .find(part)
                .is_some_and(|found| !is_made_up(found.as_bytes(), begins.len()))
        {
            let line = bytes[..start].split(|byte| *byte == b'\n').count();
            return Some((RULES[rule].2, line));
        }
    }
    None
}

/// Beginnings that no word has inside.
const ANYWHERE: [&str; 2] = ["T3BlbkFJ", "-----BEGIN "];

/// Whether what follows is the rest of a word: one that merely ends like the beginning of a
/// token is none. The letter of an escape (`\n`, `%3A`) belongs to no word.
fn is_inside(before: &[u8]) -> bool {
    match before {
        [.., b'\\', b'n' | b'r' | b't'] => false,
        [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => false,
        [.., last] => last.is_ascii_alphanumeric(),
        [] => false,
    }
}

/// The text of a file in UTF-16, which some systems write.
fn utf16(bytes: &[u8]) -> Option<String> {
    let unit = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return None,
    };
    let units = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    Some(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

/// What is written into secrets that are none.
const MADE_UP: [&str; 13] = [
    "example",
    "sample",
    "dummy",
    "placeholder",
    "personal",
    "token",
    "secret",
    "passw",
    "000000",
    "xxxxxx",
    "1234567",
    "abcdefg",
    "changeme",
];

/// Whether a secret is one that only shows what it looks like.
fn is_made_up(secret: &[u8], begins: usize) -> bool {
    // After where it begins: `AccountKey=` and the like are words themselves.
    let rest = secret[begins.min(secret.len())..].to_ascii_lowercase();
    let has = |word: &&str| rest.windows(word.len()).any(|part| part == word.as_bytes());
    let is_example = MADE_UP.iter().any(has);
    let tail = &secret[secret.len().saturating_sub(20)..];
    let mut kinds: Vec<_> = tail.to_vec();
    kinds.sort_unstable();
    kinds.dedup();
    is_example || kinds.len() < 6 && !secret.starts_with(b"haft-")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A secret that is put together here, so that no scanner stumbles over this file.
    fn made(begins: &str, len: usize) -> String {
        let letters = "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zC0fL";
        begins.chars().chain(letters.chars().cycle().take(len)).collect()
    }

    #[test]
    fn files_are_known_by_their_names() {
        for path in [
            ".env",
            "a/.env",
            ".env.local",
            ".env.production",
            "ID_RSA",
            "x/server.key",
            "cert.PFX",
            ".ssh/config",
            "home/.aws/credentials",
            ".netrc",
            "prod.env",
            ".cargo/credentials.toml",
            ".docker/config.json",
            "terraform.tfstate",
        ] {
            assert!(by_name(path).is_some(), "{path}");
        }
        for path in [
            ".env.example",
            ".env.local.sample",
            "example.env",
            ".cargo/config.toml",
            "src/key.js",
            "monkey",
            "environment.ts",
            "id_rsa.pub",
            "keys/readme.md",
            ".key",
            "locale/en.json",
        ] {
            assert_eq!(by_name(path), None, "{path}");
        }
    }

    #[test]
    fn secrets_are_known_by_their_shape() {
        let key = format!("-----BEGIN {}PRIVATE KEY-----\n{}\n", "RSA ", made("", 64));
        let in_json = format!("-----BEGIN {}PRIVATE KEY-----\\n{}", "", made("MII", 64));
        let cloud =
            format!("AKIA{}", made("", 40).to_uppercase().chars().take(16).collect::<String>());
        let cases = [
            key,
            in_json,
            cloud,
            made("ghp_", 36),
            made("github_pat_", 82),
            made("glpat-", 20),
            made("xoxb-", 40),
            made("sk_live_", 24),
            made("sk-ant-", 60),
            made("sk-proj-", 60),
            made("AIza", 35),
            made("npm_", 36),
            made("hf_", 34),
            made("gsk_", 52),
            format!("aws_secret_access_key = {}", made("", 40)),
            made("LS0tLS1CRUdJTiBQUklWQVRFIEtFWS", 60),
            format!("index-url = https://me:{}@index.example.com/simple", made("", 12)),
            format!("//host/:{}", made("_authToken=", 36)),
        ];
        for secret in cases {
            let text = format!("line one\nvalue = \"{secret}\"\n");
            assert_eq!(in_text(text.as_bytes()).map(|(_, line)| line), Some(2), "{secret}");
        }
    }

    #[test]
    fn escapes_and_encodings_hide_nothing() {
        let token = made("ghp_", 36);
        let chained = format!(
            "\"-----END CERTIFICATE-----\\n-----BEGIN {}PRIVATE KEY-----\\n{}\"",
            "",
            made("MII", 64)
        );
        for text in [format!("\"a\\n{token}\""), format!("token%3A{token}"), chained] {
            assert!(in_text(text.as_bytes()).is_some(), "{text}");
        }
        let wide: Vec<u8> =
            format!("\u{feff}x = {token}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(in_text(&wide).is_some());
        // Long runs of what could begin a token do not take long.
        assert_eq!(in_text("npm_".repeat(1_000_000).as_bytes()), None);
    }

    #[test]
    fn text_that_only_speaks_of_secrets_passes() {
        for text in [
            "if (text.startsWith('-----BEGIN PRIVATE KEY-----')) {",
            "set GITHUB_TOKEN to ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "AKIAIOSFODNN7EXAMPLE",
            "auth: \"ghp_PersonalAccessToken01245678900000000\"",
            "createTokenAuth(\"ghs_InstallallationOrActionToken00000000\");",
            "index-url = https://${USER}:${PASSWORD}@index.example.com/simple",
            "//host/:_authToken=${NPM_TOKEN}",
            "const password = process.env.PASSWORD",
            "npm_config_registry",
            "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ2Fy3cC0fLaB3dE5gH7jK9m\n",
            "the_alphabet_AIza",
        ] {
            assert_eq!(in_text(text.as_bytes()), None, "{text}");
        }
    }
}
