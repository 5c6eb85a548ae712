//! How much a JSON text would weigh in memory: its values, not its bytes, decide that.

/// How many values one message of a stranger may have. Each takes a hundred bytes and more while it is read.
const MOST: usize = 1_000_000;

/// Whether a text can be read as JSON without taking much more memory than it has bytes.
pub(crate) fn is_bearable(text: &[u8]) -> bool {
    let (mut values, mut is_quoted, mut is_escaped) = (1_usize, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            // Every value and every name but the first comes after one of these.
            b',' | b':' | b'[' | b'{' if !is_quoted => values += 1,
            _ => {}
        }
    }
    values <= MOST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_values_weigh_more_than_a_long_text() {
        let text = format!(r#"{{"text":"{}\",[,["}}"#, "[,".repeat(2 * MOST));
        assert!(is_bearable(text.as_bytes()));
        for many in ["[],", "0,", r#""a":0,"#] {
            let most = MOST / many.matches([',', ':', '[']).count();
            assert!(is_bearable(many.repeat(most - 1).as_bytes()), "{many}");
            assert!(!is_bearable(many.repeat(most + 1).as_bytes()), "{many}");
        }
    }
}
