//! The forms in which a value turns up: as it is, and as programs write it.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// Values shorter than this are not looked for inside other text: they would be found everywhere.
pub(super) const SHORTEST: usize = 4;
/// A line of a value that is at least this long is looked for by itself.
const SHORTEST_LINE: usize = 8;

/// Every form of a value that is long enough; some may be equal.
pub(super) fn of(value: &str) -> Vec<Vec<u8>> {
    if value.len() < SHORTEST {
        return Vec::new();
    }
    let mut forms = written(value);
    forms.extend(encoded(value.as_bytes()));
    if value.contains('\n') {
        // Logs and protocols go by lines.
        let lines = value.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        forms.extend(lines.filter(|line| line.len() >= SHORTEST_LINE).flat_map(written));
    }
    forms
}

/// As it is, and escaped for JSON, HTML and addresses.
fn written(value: &str) -> Vec<Vec<u8>> {
    let json = json(value);
    let html = |quote, apostrophe| html(value, quote, apostrophe);
    let percent = |kept, space, case| percent(value, kept, space, case);
    let mut forms = vec![
        value.to_owned(),
        ascii(&json, Case::Lower),
        ascii(&json, Case::Upper),
        json.replace('/', "\\/"),
        ascii(&json.replace('/', "\\/"), Case::Lower),
        json,
        html("\"", "'"),
        html("&quot;", "'"),
        html("&quot;", "&#39;"),
        html("&quot;", "&#x27;"),
        html("&quot;", "&#039;"),
        html("&#34;", "&#39;"),
    ];
    for case in [Case::Upper, Case::Lower] {
        // What RFC 3986 leaves alone, what browsers do, what forms do, and what is left in a whole address.
        forms.push(percent("-._~", "%20", case));
        forms.push(percent("-._~!'()*", "%20", case));
        forms.push(percent("-._*", "+", case));
        forms.push(percent("-._~", "+", case));
        forms.push(percent("-._~/", "%20", case));
        forms.push(percent("-._~!*'();:@&=+$,/?#", "%20", case));
    }
    forms.into_iter().map(String::into_bytes).collect()
}

/// In hex, and in base64 wherever it begins within other bytes.
fn encoded(value: &[u8]) -> Vec<Vec<u8>> {
    let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![hex.to_uppercase(), hex];
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend(value);
        let first = (before * 8).div_ceil(6);
        let end = bytes.len() * 8 / 6;
        for text in [STANDARD.encode(&bytes), URL_SAFE.encode(&bytes)] {
            // Whatever follows the value, these letters stand for nothing but bits of it. Where nothing follows,
            // the next letter does too, and there may be padding after it.
            for text in [&text[first..end], text[first..].trim_end_matches('='), &text[first..]] {
                forms.extend(escaped(text));
                if before == 0 {
                    forms.extend(in_lines(text));
                }
            }
        }
    }
    forms.into_iter().map(String::into_bytes).collect()
}

/// Base64 as it is, in an address, and in JSON whose slashes are escaped.
fn escaped(text: &str) -> [String; 4] {
    let percent =
        |plus, slash, padding| text.replace('+', plus).replace('/', slash).replace('=', padding);
    [
        text.to_owned(),
        percent("%2B", "%2F", "%3D"),
        percent("%2b", "%2f", "%3d"),
        text.replace('/', "\\/"),
    ]
}

/// Base64 as programs break it into lines, from its beginning on.
fn in_lines(text: &str) -> [String; 4] {
    let broken = |(width, end)| {
        let starts = (0..text.len()).step_by(width);
        let lines: Vec<_> = starts.map(|at| &text[at..text.len().min(at + width)]).collect();
        lines.join(end)
    };
    [(76, "\n"), (76, "\r\n"), (64, "\n"), (64, "\r\n")].map(broken)
}

#[derive(Clone, Copy)]
enum Case {
    Upper,
    Lower,
}

/// What stands between the quotes of a JSON text.
fn json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// JSON in which only ASCII is left.
fn ascii(json: &str, case: Case) -> String {
    let mut units = [0; 2];
    let mut out = String::new();
    for char in json.chars() {
        if char.is_ascii() {
            out.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut units) {
            out += &match case {
                Case::Upper => format!("\\u{unit:04X}"),
                Case::Lower => format!("\\u{unit:04x}"),
            };
        }
    }
    out
}

fn html(value: &str, quote: &str, apostrophe: &str) -> String {
    let escaped = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('"', quote).replace('\'', apostrophe)
}

fn percent(value: &str, kept: &str, space: &str, case: Case) -> String {
    let byte = |byte: u8| match byte {
        b' ' => space.to_owned(),
        _ if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) => {
            char::from(byte).to_string()
        }
        _ => match case {
            Case::Upper => format!("%{byte:02X}"),
            Case::Lower => format!("%{byte:02x}"),
        },
    };
    value.bytes().map(byte).collect()
}
