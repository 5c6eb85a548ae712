//! How old and new values are shown, and how lists of them are held against each other.

use std::collections::BTreeSet;

use crate::shape::clip;

/// How many characters before the first difference are shown.
const LEAD: usize = 20;

/// A text in backticks, cut when it is long.
pub(super) fn quoted(text: &str) -> String {
    format!("`{}`", clip(text))
}

/// Two texts in backticks; of long ones, the part where they begin to differ.
pub(super) fn both(old: &str, new: &str) -> (String, String) {
    let shared = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count();
    if shared <= 2 * LEAD {
        return (quoted(old), quoted(new));
    }
    let from = |text: &str| {
        let tail: String = text.chars().skip(shared - LEAD).collect();
        format!("`…{}`", clip(&tail))
    };
    (from(old), from(new))
}

/// Texts in backticks, one after the other.
pub(super) fn listed<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    texts.into_iter().map(quoted).collect::<Vec<_>>().join(", ")
}

/// What the second list has and the first has not, each once and in alphabetical order.
pub(super) fn gained<'t>(old: &'t [String], new: &'t [String]) -> BTreeSet<&'t str> {
    let before: BTreeSet<&str> = old.iter().map(String::as_str).collect();
    new.iter().map(String::as_str).filter(|text| !before.contains(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shown_from_where_they_differ() {
        let start = "the same words again and again and again and again and again and then ";
        let (old, new) = both(&format!("{start}a cat"), &format!("{start}a dog"));
        assert_eq!(old, "`…nd again and then a cat`");
        assert!(new.ends_with("a dog`"), "{new}");
        assert_eq!(both("cat", "dog"), ("`cat`".to_owned(), "`dog`".to_owned()));
    }

    #[test]
    fn a_list_gains_what_it_did_not_have() {
        let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
        let (old, new) = (list(&["a", "b"]), list(&["c", "b", "c", "a", "0"]));
        assert_eq!(gained(&old, &new).into_iter().collect::<Vec<_>>(), ["0", "c"]);
        assert!(gained(&new, &old).is_empty());
    }
}
