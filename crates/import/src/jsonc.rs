//! JSON with comments, as clients let people write it, made into JSON of the same length.
//!
//! Comments and commas before a closing bracket become spaces, so whatever is found in the one text stands at the
//! same place in the other, and an edit of the one leaves the comments of the other where they are.

/// The same text without comments and commas that end a list, each byte of them a space. Ends of lines stay.
pub fn blanked(text: &str) -> String {
    let mut bytes = uncommented(text).into_bytes();
    let mut at = 0;
    let mut comma = None;
    // Whether a value stands before: a comma after none ends nothing.
    let mut is_value = false;
    while at < bytes.len() {
        match bytes[at] {
            b' ' | b'\t' | b'\n' | b'\r' => {}
            b',' => {
                comma = is_value.then_some(at);
                is_value = false;
            }
            byte => {
                if matches!(byte, b'}' | b']')
                    && let Some(comma) = comma
                {
                    bytes[comma] = b' ';
                }
                comma = None;
                is_value = !matches!(byte, b'{' | b'[' | b':');
            }
        }
        at = if bytes[at] == b'"' { after_text(&bytes, at) } else { at + 1 };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// The same text without comments, each byte of them a space. Ends of lines stay, and so does every comma.
pub fn uncommented(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    // The mark that some editors put at the beginning of a file.
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes[..3].fill(b' ');
    }
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = after_text(&bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                let end = bytes[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                let end = end.map_or(bytes.len(), |length| at + length);
                blank(&mut bytes[at..end]);
                at = end;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let end = bytes[at + 2..].windows(2).position(|pair| pair == b"*/");
                // A comment that does not end is left for the reader to refuse.
                let Some(length) = end else { break };
                let end = at + 2 + length + 2;
                blank(&mut bytes[at..end]);
                at = end;
            }
            _ => at += 1,
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Spaces in the place of all but the ends of lines.
fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
}

/// The place after a string that begins here.
fn after_text(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comments_and_last_commas_are_spaces_and_texts_are_left_alone() {
        for (text, plain) in [
            (
                r#"{"a": 1, // one
 "b": [1, 2,], /* two
 lines */ "c": "// no, /* comment */,]",
}"#,
                r#"{"a": 1,       
 "b": [1, 2 ],       
          "c": "// no, /* comment */,]" 
}"#,
            ),
            ("[1,/* x */]", "[1        ]"),
            (r#"["\"//",]"#, r#"["\"//" ]"#),
            ("/* never ends", "/* never ends"),
            ("[,1]", "[,1]"),
            ("{,}", "{,}"),
            ("[1,,]", "[1,,]"),
            ("[{},]", "[{} ]"),
        ] {
            assert_eq!(blanked(text), plain);
        }
        assert_eq!(uncommented("[1, /* , */ 2,] // ,"), "[1,         2,]     ");
    }

    proptest! {
        #[test]
        fn nothing_moves_and_plain_json_stays_as_it_is(text in "[\\[\\]{},:\"/*a1 \n\\\\é-]{0,60}") {
            let plain = blanked(&text);
            prop_assert_eq!(plain.len(), text.len());
            if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
                prop_assert_eq!(plain, text);
            }
        }
    }
}
