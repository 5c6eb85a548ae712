//! What is left of a value that was encoded in base64 together with its neighbours.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use base64::Engine;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use vault::{Redactor, Secret};

const ENGINES: [GeneralPurpose; 4] = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
/// Of every length that matters, and with letters in which the two alphabets differ.
const VALUES: [&str; 3] = ["~~>?v4lue>>>???", "~~>?v4lue>>>???~", "~~>?v4lue>>>???~z"];

fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned()).unwrap()
}

/// Redacts a text that comes in two pieces, and wants the same wherever it is cut.
fn redacted(redactor: &Redactor, text: &str) -> String {
    let whole = redactor.text(text);
    for cut in 0..=text.len() {
        let mut stream = redactor.stream();
        let mut out = stream.push(&text.as_bytes()[..cut]);
        out.extend(stream.push(&text.as_bytes()[cut..]));
        out.extend(stream.finish());
        assert_eq!(String::from_utf8(out).unwrap(), whole, "{text} cut at {cut}");
    }
    whole
}

#[test]
fn only_letters_that_hold_bits_of_a_neighbour_are_left() {
    for value in VALUES {
        let known = secret(value);
        let redactor = Redactor::new([("V", &known)]);
        for (before, after) in (0..=3).flat_map(|before| (0..=3).map(move |after| (before, after)))
        {
            let plain = format!("{}{value}{}", &"nop"[..before], &"qrs"[..after]);
            // The first letter without a bit of what is before, and the first with one of what is after.
            let first = (before * 8).div_ceil(6);
            let end = (before + value.len()) * 8 / 6;
            for engine in &ENGINES {
                let text = engine.encode(&plain);
                let rest = if after == 0 { "" } else { &text[end..] };
                let expected = format!("<{}[secret V]{rest}>", &text[..first]);
                let told = redacted(&redactor, &format!("<{text}>"));
                assert_eq!(told, expected, "{plain} as {text}");
            }
        }
    }
}

#[test]
fn base64_is_found_in_an_address_and_in_json_that_escapes_slashes() {
    for value in VALUES {
        let known = secret(value);
        let redactor = Redactor::new([("V", &known)]);
        let text = STANDARD.encode(value);
        assert!(text.contains('/') && text.contains('+'), "{text}");
        for escapes in [["%2B", "%2F", "%3D"], ["%2b", "%2f", "%3d"]] {
            let form = text.replace('+', escapes[0]).replace('/', escapes[1]);
            let form = form.replace('=', escapes[2]);
            assert_eq!(redacted(&redactor, &format!("?t={form}&")), "?t=[secret V]&");
        }
        let escaped = text.replace('/', "\\/");
        assert_eq!(redacted(&redactor, &format!("\"{escaped}\"")), "\"[secret V]\"");
    }
}

#[test]
fn base64_is_found_in_lines_as_programs_break_it() {
    let value = VALUES[1].repeat(12);
    let known = secret(&value);
    let redactor = Redactor::new([("V", &known)]);
    for after in ["", "\n"] {
        let text = STANDARD.encode(format!("{value}{after}"));
        for (width, end) in [(76, "\n"), (76, "\r\n"), (64, "\n"), (64, "\r\n")] {
            let lines: Vec<_> = text
                .as_bytes()
                .chunks(width)
                .map(|line| std::str::from_utf8(line).unwrap())
                .collect();
            let told = redacted(&redactor, &format!("<{}>", lines.join(end)));
            let rest = if after.is_empty() { "" } else { &text[value.len() * 8 / 6..] };
            assert_eq!(told.replace(['\r', '\n'], ""), format!("<[secret V]{rest}>"));
        }
    }
}
