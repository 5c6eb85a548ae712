//! "Did you mean": the known word nearest to one that was mistyped.

/// How many candidates are looked at: no format has more words, but an author may declare more.
const MAX_CANDIDATES: usize = 200;

/// The candidate nearest to the word, when it is near enough to be what was meant.
pub fn suggest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if word.len() < 2 || word.len() > 64 {
        return None;
    }
    let plain = plain(word);
    let allowed = (plain.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        // What is so much longer than any word looked for is not near it.
        .filter(|candidate| candidate.len() <= 4 * 64)
        .filter_map(|candidate| {
            let distance = distance(&plain, &self::plain(candidate));
            (distance <= allowed).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The word without case and separators: `inputSchema`, `input-schema` and `input_schema` are one.
fn plain(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// How many letters must be added, dropped, changed or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, b) in right.iter().enumerate() {
            let changed = last[column] + usize::from(a != b);
            let mut best = changed.min(last[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && *a == right[column - 1] && left[row - 1] == *b;
            if swapped {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let fields = ["name", "summary", "description", "homepage", "input_schema"];
        let found = |word| suggest(word, fields);
        assert_eq!(found("nmae"), Some("name"));
        assert_eq!(found("sumary"), Some("summary"));
        assert_eq!(found("inputSchema"), Some("input_schema"));
        assert_eq!(found("home_page"), Some("homepage"));
        assert_eq!(found("colour"), None);
        assert_eq!(found(""), None);
        assert_eq!(found(&"n".repeat(10_000)), None);
    }
}
