//! The small texts of a new package: names made from ids, ids made from names, templates.

/// A template with its marks replaced, in one pass: what is put in is never looked into again.
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((at, mark, value)) = values
        .iter()
        .filter_map(|(mark, value)| Some((rest.find(mark)?, mark, value)))
        .min_by_key(|(at, ..)| *at)
    {
        filled += &rest[..at];
        filled += value;
        rest = &rest[at + mark.len()..];
    }
    filled + rest
}

/// The name of the folder for a package: the last part of its id.
pub fn folder_name(id: &str) -> &str {
    let mut parts = id.rsplit(['.', ':', '/']).map(|part| part.trim_start_matches(['-', '_']));
    parts.find(|part| !part.is_empty()).unwrap_or("tool")
}

/// The mcpkg id of something made on this machine, from the names that lead to it.
pub fn local_id<'p>(parts: impl IntoIterator<Item = &'p str>) -> String {
    let segments = parts.into_iter().map(segment);
    std::iter::once("local".to_owned()).chain(segments).collect::<Vec<_>>().join(".")
}

/// A name as one segment of an id: `readFile` becomes `read_file`.
pub(super) fn segment(name: &str) -> String {
    let mut segment = String::with_capacity(name.len());
    let mut before = '_';
    for character in name.chars() {
        let begins_word = character.is_ascii_uppercase()
            && (before.is_ascii_lowercase() || before.is_ascii_digit());
        let letter = match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => character.to_ascii_lowercase(),
            _ => '_',
        };
        if begins_word || (letter == '_' && !segment.ends_with('_')) {
            segment.push('_');
        }
        if letter != '_' {
            segment.push(letter);
        }
        before = character;
    }
    match segment.trim_matches(['_', '-']) {
        "" => "tool".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

/// A name for people: `word_count` becomes `Word Count`.
pub(super) fn title(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>())
    };
    name.split(['_', '-']).filter_map(capital).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::patterns;

    #[test]
    fn what_is_filled_in_is_not_filled_again() {
        let filled = fill("a @X@ b @Y@ @X@", &[("@X@", "@Y@"), ("@Y@", "@X@")]);
        assert_eq!(filled, "a @Y@ b @X@ @Y@");
    }

    #[test]
    fn folders_are_named_after_the_last_part() {
        for (id, folder) in [
            ("word-count", "word-count"),
            ("acme.text.count", "count"),
            ("tool:email.send", "send"),
            ("a/../..", "a"),
            ("a.-rf", "rf"),
            ("...", "tool"),
        ] {
            assert_eq!(folder_name(id), folder);
        }
    }

    #[test]
    fn ids_made_from_names_follow_the_grammar() {
        for (parts, id) in [
            (vec!["calc", "add"], "local.calc.add"),
            (vec!["my-lib", "readFile"], "local.my-lib.read_file"),
            (vec!["_private", "__do__it"], "local.private.do_it"),
            (vec!["größe", "$"], "local.gr_e.tool"),
            (vec!["2HTMLParser2X"], "local.2_htmlparser2_x"),
        ] {
            assert_eq!(local_id(parts), id);
            assert!((patterns::DOTTED_ID.matches)(id));
        }
    }

    #[test]
    fn titles_read_like_names() {
        assert_eq!(title("word_count"), "Word Count");
        assert_eq!(title("a--b"), "A B");
    }
}
