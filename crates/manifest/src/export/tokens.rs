//! How many tokens a definition takes, as far as that can be said without the tokenizer of a model.

use serde_json::Value;

/// How it is estimated, in words.
pub const HOW_ESTIMATED: &str = "a token for every 3.5 bytes of a definition";

/// About how many tokens a definition takes: one for every 3.5 bytes of its JSON without blanks. Tokenizers of models
/// take one for 4 to 5 bytes of such texts, so it is more than most of them need and rarely less.
pub fn estimated(definition: &Value) -> u64 {
    let bytes = definition.to_string().len() as u64;
    (bytes * 2).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn seven_bytes_are_two_tokens() {
        for (text, tokens) in [("abcde", 2), ("abcdef", 3), ("größe", 3)] {
            assert_eq!(estimated(&json!(text)), tokens, "{text}");
        }
    }
}
