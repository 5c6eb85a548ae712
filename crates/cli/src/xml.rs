//! Texts in reports and drawings.

/// A text in XML. A character that XML cannot have becomes one that stands for it.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&apos;",
            // In an attribute they would become spaces.
            '\n' | '\r' | '\t' => safe += &format!("&#{};", u32::from(character)),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                safe.push('\u{fffd}');
            }
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_gets_out_of_its_place_in_xml() {
        assert_eq!(
            escaped("a<b> & \"c\" 'd'\n\u{1b}[31m\u{0}\u{ffff}\u{e9}\u{1f600}"),
            "a&lt;b&gt; &amp; &quot;c&quot; &apos;d&apos;&#10;\u{fffd}[31m\u{fffd}\u{fffd}\u{e9}\u{1f600}"
        );
    }
}
