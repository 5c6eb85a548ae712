//! What must hold for any bytes at all: the bodies of the fuzz targets, and redaction of several values.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use common::secret;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof};
use proptest::sample::select;
use serde_json::json;
use testkit::draws::holds;
use testkit::fuzz;
use vault::Redactor;

/// How many cases of each kind are tried.
const CASES: u32 = 4_000;

/// Pieces that references are made of.
const REFERENCE: &[&str] = &[
    "vault",
    "secret",
    "env",
    "file",
    "keyring",
    "://",
    "/",
    "//",
    "#",
    "a",
    "b",
    "..",
    ".",
    "%2e",
    "?",
    " ",
    "\\",
    "\n",
    "\u{202e}",
    "\0",
    "ü",
    "A_1",
    ":",
    "@",
    "vault://kv/",
    "secret://",
    "env://",
    "file:///",
];

/// Pieces that files of vaults are made of.
const FILE: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"format\":\"haft-vault\"",
    "\"version\":1",
    "\"version\":2",
    "\"key\":",
    "{\"file\":{\"id\":\"AAAAAAAAAAAAAAAAAAAAAA==\"}}",
    "\"entries\":",
    "[]",
    "\"owner\":\"shared\"",
    "\"owner\":{\"package\":\"a\"}",
    "\"name\":\"n\"",
    "\"created\":1,\"changed\":2",
    "\"value\":",
    "{\"nonce\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\",\"sealed\":\"\"}",
    "null",
    "0",
    "\"\\u0000\"",
    "\0",
];

/// A sound file.
const SOUND: &str = r#"{"format":"haft-vault","version":1,"key":{"file":{"id":"AAAAAAAAAAAAAAAAAAAAAA=="}},
"entries":[{"owner":"shared","name":"n","created":1,"changed":2,
"value":{"nonce":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","sealed":"AAAA"}},
{"owner":{"package":"a"},"name":"n","created":1,"changed":2,
"value":{"nonce":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","sealed":"AAAA"}}]}"#;

fn joined(pieces: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        9 => select(pieces).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 1..4),
    ];
    vec(piece, 0..most).prop_map(|pieces| pieces.concat())
}

#[test]
fn every_promise_is_kept_for_references() {
    holds(CASES * 4, &joined(REFERENCE, 8), |bytes| fuzz::reference(&bytes));
}

#[test]
fn every_promise_is_kept_for_files() {
    assert_eq!(vault::file::listed_in(SOUND.as_bytes()).unwrap().len(), 2);
    holds(CASES, &joined(FILE, 12), |bytes| fuzz::vault(&bytes));
    let damaged = (0..SOUND.len(), joined(FILE, 2), 0..20_usize).prop_map(|(at, piece, cut)| {
        let after = (at + cut).min(SOUND.len());
        [&SOUND.as_bytes()[..at], &piece, &SOUND.as_bytes()[after..]].concat()
    });
    holds(CASES, &damaged, |bytes| fuzz::vault(&bytes));
}

/// Values of few letters, so that they overlap, contain each other and begin like what replaces them.
fn a_value() -> impl Strategy<Value = String> {
    let piece = select(
        &["a", "b", "ab", "\"", "<", "&", "]", "[", "\n", " ", "/", "é", "secret", "*", "12"][..],
    );
    vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

#[test]
fn every_promise_is_kept_for_redaction() {
    let bytes = (a_value(), vec(a_value(), 0..6), 0..4_usize).prop_map(|(value, around, form)| {
        let mut text = around.concat().into_bytes();
        let at = text.len() / 2;
        text.splice(at..at, in_form(&value, form));
        [value.as_bytes(), b"\0", &text].concat()
    });
    holds(CASES, &bytes, |bytes| fuzz::redaction(&bytes));
}

fn in_form(value: &str, form: usize) -> Vec<u8> {
    match form {
        0 => value.as_bytes().to_vec(),
        1 => json!(value).to_string().into_bytes(),
        2 => STANDARD.encode(format!("x{value}y")).into_bytes(),
        _ => [value, value].concat().into_bytes(),
    }
}

#[test]
fn several_values_are_redacted_alike_however_the_text_is_cut() {
    let cases = (vec(a_value(), 1..4), vec(a_value(), 0..8), vec(0..9_usize, 1..6));
    let cases = cases.prop_map(|(values, around, cuts)| {
        let text: String =
            values.iter().chain(&around).chain(&values).map(String::as_str).collect();
        (values, text, cuts)
    });
    holds(CASES, &cases, |(values, text, cuts)| {
        let secrets: Vec<_> = values.iter().map(|value| secret(value)).collect();
        let redactor = Redactor::new(secrets.iter().map(|secret| ("N", secret)));
        let mut stream = redactor.stream();
        let (mut left, mut redacted, mut cuts) = (text.as_bytes(), Vec::new(), cuts.iter().cycle());
        while !left.is_empty() {
            let (now, later) = left.split_at((cuts.next().unwrap() + 1).min(left.len()));
            redacted.extend(stream.push(now));
            left = later;
        }
        redacted.extend(stream.finish());
        let redacted = String::from_utf8(redacted).expect("what is left of a text is a text");
        for value in values.iter().filter(|value| value.len() >= 4) {
            prop_assert!(!redacted.contains(value.as_str()), "{redacted:?} shows {value:?}");
        }
        // Whole texts are also compared with values that are too short to be looked for.
        if !values.contains(&text) {
            prop_assert_eq!(redactor.text(&text), redacted);
        }
        Ok(())
    });
}

#[test]
fn a_value_is_found_in_every_form() {
    let plain = "p@ss/w0rd \"ü\" <&'> ?";
    let value = secret(plain);
    let redactor = Redactor::new([("DB", &value)]);
    let hex: String = plain.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![
        plain.to_owned(),
        json!(plain).to_string(),
        "p@ss\\/w0rd \\\"\\u00fc\\\" <&'> ?".to_owned(),
        "p%40ss%2Fw0rd%20%22%C3%BC%22%20%3C%26%27%3E%20%3F".to_owned(),
        "p%40ss%2fw0rd%20%22%c3%bc%22%20%3c%26%27%3e%20%3f".to_owned(),
        "p%40ss%2Fw0rd+%22%C3%BC%22+%3C%26%27%3E+%3F".to_owned(),
        "p@ss/w0rd &quot;ü&quot; &lt;&amp;&#39;&gt; ?".to_owned(),
        "p@ss/w0rd &quot;ü&quot; &lt;&amp;&#x27;&gt; ?".to_owned(),
        "p@ss/w0rd &#34;ü&#34; &lt;&amp;&#39;&gt; ?".to_owned(),
        hex.to_uppercase(),
        hex,
    ];
    for around in ["", "u", "us", "user:", "é", "user:x"] {
        forms.push(STANDARD.encode(format!("{around}{plain}")));
        forms.push(STANDARD.encode(format!("{around}{plain}{around}")));
        forms.push(URL_SAFE_NO_PAD.encode(format!("{around}{plain}@{around}")));
    }
    for form in forms {
        let text = format!("before {form} after");
        let redacted = redactor.text(&text);
        assert!(redacted.contains("[secret DB]"), "{form} stays: {redacted}");
        // Only letters that also hold bits of what is around the value may be left.
        let left = redacted.replace("[secret DB]", "").len() - "before  after".len();
        let around = form.len() - longest_of(plain, &form);
        assert!(left <= around, "{redacted}");
    }
}

/// At least how many bytes of a form belong to the value alone.
fn longest_of(plain: &str, form: &str) -> usize {
    if form.contains(' ') || form.contains('%') { plain.len() } else { plain.len() * 8 / 6 - 2 }
}

#[test]
fn lines_of_a_value_are_found_alone() {
    let value = secret("-----BEGIN KEY-----\r\nMIIEvQIBADANBg\nshort\nAoGBAKx3Yz0=\n");
    let redactor = Redactor::new([("PEM", &value)]);
    assert_eq!(redactor.text("log: MIIEvQIBADANBg | short"), "log: [secret PEM] | short");
    assert_eq!(redactor.text("AoGBAKx3Yz0="), "[secret PEM]");
    let whole = redactor.text(&format!("<{}>", value.expose()));
    assert_eq!(whole, "<[secret PEM]>");
}

#[test]
fn short_values_are_replaced_only_where_they_are_everything() {
    let value = secret("123");
    let redactor = Redactor::new([("PIN", &value)]);
    assert_eq!(redactor.text("123"), "[secret PIN]");
    assert_eq!(redactor.text("1234"), "1234");
    let mut document = json!({ "pin": "123", "n": 123, "123": ["0123"] });
    redactor.json(&mut document);
    let expected = json!({ "pin": "[secret PIN]", "n": "[secret PIN]", "[secret PIN]": ["0123"] });
    assert_eq!(document, expected);
}

#[test]
fn values_that_overlap_leave_nothing_of_either() {
    let (a, b) = (secret("abcdef"), secret("defghi"));
    let redactor = Redactor::new([("A", &a), ("B", &b)]);
    assert_eq!(redactor.text("_abcdefghi_"), "_[secret A]_");
    assert_eq!(redactor.text("_abcdefdefghi_"), "_[secret A][secret B]_");
}

#[test]
fn keys_that_become_equal_are_both_kept() {
    let (a, b) = (secret("first value"), secret("second value"));
    let redactor = Redactor::new([("X", &a), ("X", &b)]);
    let mut document = json!({ "first value": 1, "second value": [null, true, "a first value"] });
    redactor.json(&mut document);
    let expected = json!({ "[secret X]": 1, "[secret X]_": [null, true, "a [secret X]"] });
    assert_eq!(document, expected);
}

#[test]
fn what_replaces_a_value_never_shows_one() {
    for value in ["secret", "[secret", "DB]!", "password", "]]]]"] {
        let known = secret(value);
        let redactor = Redactor::new([("password DB", &known)]);
        let redacted = redactor.text(&format!("-{value}-"));
        assert!(!redacted.contains(value), "{redacted}");
    }
}

#[test]
fn no_more_is_held_back_than_the_longest_form() {
    let value = secret(&"v".repeat(100));
    let redactor = Redactor::new([("V", &value)]);
    let mut stream = redactor.stream();
    // In hex a byte is two letters, which is as long as a form of these letters gets.
    let out = stream.push(&b"x".repeat(1_000));
    assert_eq!(out.len(), 1_000 - 199);
    // Even where values overlap without end.
    for _ in 0..100 {
        stream.push(&b"v".repeat(1_000));
    }
    let rest = stream.finish();
    assert!(rest.len() <= 199, "{}", rest.len());
}

#[test]
fn nothing_known_changes_nothing() {
    let redactor = Redactor::new([]);
    let mut stream = redactor.stream();
    assert_eq!(stream.push(b"any text"), b"any text");
    assert_eq!(stream.finish(), b"");
}
