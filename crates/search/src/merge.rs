//! Segments, made into one.

use crate::labels::Labels;
use crate::part::Part;
use crate::rows::Rows;
use crate::segment::Segment;
use crate::texts::Texts;

/// One segment of all documents that are left in these; they must be few enough for one.
pub(crate) fn merge(parts: &[&Part]) -> Segment {
    let (words, numbers) = merge_words(parts);
    let mut order: Vec<(usize, u16)> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        order.extend(part.living().map(|document| (at, document)));
    }
    order.sort_unstable_by(|one, other| key(parts, *one).cmp(key(parts, *other)));
    let mut places: Vec<Vec<u16>> = parts.iter().map(|part| vec![0; part.segment.len()]).collect();
    let (mut keys, mut ranks, mut rows) = (Texts::default(), Vec::new(), Rows::default());
    let mut row = Vec::new();
    for (place, (at, document)) in (0..=u16::MAX).zip(&order) {
        let segment = &parts[*at].segment;
        keys.push(segment.key(*document));
        ranks.push(segment.rank(*document));
        segment.rows.words(usize::from(*document), &mut row);
        // Words are in order in both, so those of a row stay in order.
        for (word, _) in &mut row {
            *word = numbers[*at][*word as usize];
        }
        rows.push(&row);
        places[*at][usize::from(*document)] = place;
    }
    let mut labels = Vec::new();
    for (part, places) in parts.iter().zip(&places) {
        for (label, holders) in part.segment.labels.iter() {
            let living = holders.iter().filter(|document| part.is_living(*document));
            labels.extend(living.map(|document| (label, places[usize::from(document)])));
        }
    }
    labels.sort_unstable();
    let labels = Labels::new(&labels, ranks.len());
    Segment::new(words, keys, ranks, rows, labels)
}

/// The words that are still in use, and for each part the new number of each of its words.
fn merge_words(parts: &[&Part]) -> (Texts, Vec<Vec<u32>>) {
    let mut numbers: Vec<Vec<u32>> = Vec::new();
    let mut used: Vec<(&str, usize, usize)> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let all = part.segment.dictionary.words();
        let living = (0..all.len()).filter(|word| part.count(*word) > 0);
        used.extend(living.map(|word| (all.get(word), at, word)));
        numbers.push(vec![0; all.len()]);
    }
    used.sort_unstable();
    let mut words = Texts::default();
    let mut last = None;
    for (text, at, word) in used {
        if last != Some(text) {
            words.push(text);
            last = Some(text);
        }
        numbers[at][word] = u32::try_from(words.len() - 1).unwrap_or(u32::MAX);
    }
    words.shrink();
    (words, numbers)
}

fn key<'p>(parts: &[&'p Part], (at, document): (usize, u16)) -> &'p str {
    parts[at].segment.key(document)
}
