//! JSON as text, and text that is damaged.

use proptest::strategy::Strategy;

use crate::draws::{Draws, made};

/// JSON texts: odd spaces, every way to write a number and a string, now and then a twin key.
pub fn json_texts() -> impl Strategy<Value = String> {
    made(80, |draws| {
        let mut text = String::new();
        write_value(&mut text, draws, 4);
        text
    })
}

/// Texts that were JSON before a few bytes were changed.
pub fn damaged_texts() -> impl Strategy<Value = Vec<u8>> {
    made(120, |draws| {
        let damages = 1 + draws.below(3);
        let mut text = String::new();
        write_value(&mut text, draws, 4);
        let mut bytes = text.into_bytes();
        for _ in 0..damages {
            damage(&mut bytes, draws);
        }
        bytes
    })
}

/// What a seed becomes when a few of its bytes are changed.
pub fn damaged(seed: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    made(24, move |draws| {
        let mut bytes = seed.clone();
        for _ in 0..=draws.below(4) {
            damage(&mut bytes, draws);
        }
        bytes
    })
}

/// Changes a few bytes somewhere.
pub fn damage(bytes: &mut Vec<u8>, draws: &mut Draws<'_>) {
    const TOKENS: [&[u8]; 24] = [
        b"\"",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"0",
        b"-",
        b".",
        b"e",
        b"1e999",
        b"null",
        b"true",
        b"\\u",
        b"\\ud800",
        b" ",
        b"\n",
        b"\x00",
        b"\xff",
        b"\xc3\xa9",
        b"\"a\":1,",
        b"[[[[",
    ];
    let from = draws.below(bytes.len() + 1);
    let to = (from + draws.below(16)).min(bytes.len());
    match draws.below(6) {
        0 => drop(bytes.drain(from..to)),
        1 => bytes.truncate(from),
        2 => drop(bytes.splice(from..from, draws.pick(&TOKENS).iter().copied())),
        3 => drop(bytes.splice(from..to, draws.pick(&TOKENS).iter().copied())),
        4 => {
            let again = bytes[from..to].to_vec();
            drop(bytes.splice(from..from, again));
        }
        _ => {
            if let Some(byte) = bytes.get_mut(from) {
                *byte ^= 1 << draws.below(8);
            }
        }
    }
}

fn write_value(text: &mut String, draws: &mut Draws<'_>, depth: usize) {
    const SCALARS: [&str; 24] = [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "-1",
        "1.0",
        "0.1",
        "-0.0",
        "1e2",
        "1E+2",
        "12.5e-3",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "-9223372036854775809",
        "123456789012345678901234567890",
        "1e308",
        "1e309",
        "1e-400",
        "0e99999999999",
        "9007199254740993",
        "2.2250738585072011e-308",
    ];
    write_space(text, draws);
    match draws.below(if depth == 0 { 2 } else { 4 }) {
        0 => text.push_str(draws.pick(&SCALARS)),
        1 => write_string(text, draws),
        2 => {
            text.push('[');
            for index in 0..draws.below(4) {
                if index > 0 {
                    text.push(',');
                }
                write_value(text, draws, depth - 1);
            }
            write_space(text, draws);
            text.push(']');
        }
        _ => {
            text.push('{');
            for index in 0..draws.below(4) {
                if index > 0 {
                    text.push(',');
                }
                write_space(text, draws);
                write_string(text, draws);
                write_space(text, draws);
                text.push(':');
                write_value(text, draws, depth - 1);
            }
            write_space(text, draws);
            text.push('}');
        }
    }
    write_space(text, draws);
}

fn write_space(text: &mut String, draws: &mut Draws<'_>) {
    text.push_str(draws.pick(&["", "", "", " ", "\n", "\r\n\t", "  "]));
}

fn write_string(text: &mut String, draws: &mut Draws<'_>) {
    const PARTS: [&str; 22] = [
        "a",
        "b",
        "a plain run that is longer than eight bytes",
        "é",
        "\u{1f600}",
        "\\n",
        "\\\"",
        "\\\\",
        "\\/",
        "\\b\\f\\r\\t",
        "\\u0061",
        "\\u00E9",
        "\\ud83d\\ude00",
        "\\uD83D\\uDE00",
        "\\ud800",
        "\\ude00",
        "\\ud800\\u0061",
        "\\u0000",
        "\u{7f}",
        "\u{2028}",
        "\u{feff}",
        "\\u+061",
    ];
    text.push('"');
    for _ in 0..draws.below(4) {
        text.push_str(draws.pick(&PARTS));
    }
    text.push('"');
}
