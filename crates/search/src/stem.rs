//! English words without their endings.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};

/// Takes English endings off; other words stay as they are.
pub(crate) struct English(Stemmer);

impl English {
    pub(crate) fn new() -> Self {
        Self(Stemmer::create(Algorithm::English))
    }

    /// What the word has in common with its other forms.
    pub(crate) fn stem<'w>(&self, word: &'w str) -> Cow<'w, str> {
        let is_english = word.len() > 2 && word.bytes().all(|letter| letter.is_ascii_lowercase());
        if is_english { self.0.stem(word) } else { Cow::Borrowed(word) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, prop_assert, proptest};

    #[test]
    fn forms_of_a_word_are_one() {
        let english = English::new();
        for (word, stem) in [
            ("databases", "databas"),
            ("converting", "convert"),
            ("queries", "queri"),
            ("is", "is"),
            ("v2", "v2"),
            ("строки", "строки"),
        ] {
            assert_eq!(english.stem(word), stem);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn any_letters_have_a_stem(word in "[a-z]{0,12}(ing|ed|ly|s|ies|ational|y|e)?") {
            let english = English::new();
            let stem = english.stem(&word);
            prop_assert!(stem.len() <= word.len() + 1);
            prop_assert!(word.is_empty() || !stem.is_empty(), "{word:?}");
        }
    }
}
