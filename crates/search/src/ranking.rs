//! What a word is worth: in a document, and in a query.
//!
//! Both are whole numbers. So a score does not depend on the order of adding, is the same
//! whatever segments the documents are in, and is explained without a rest.

use crate::field::Field;

/// How soon more of the same word stops to count.
const SATURATION: f32 = 1.2;
/// More than 1: a word that is nearly everywhere counts for less than its idf says.
const RARITY: f64 = 1.5;
/// The steps of one idf.
const STEPS: f64 = 256.0;
/// The best impact that a word can have in a document.
pub(crate) const MOST_IMPACT: u8 = u8::MAX;

/// How often a word is in each field of a document.
pub(crate) type Frequencies = [u16; Field::COUNT];

/// How many words each field of a document has.
pub(crate) type Lengths = [u32; Field::COUNT];

/// What one occurrence counts in each field of a document with these lengths.
pub(crate) fn factors(lengths: &Lengths) -> [f32; Field::COUNT] {
    let mut factors = [0.0; Field::COUNT];
    for (factor, ((field, _), length)) in factors.iter_mut().zip(Field::ALL.iter().zip(lengths)) {
        let scale = field.scale();
        #[expect(clippy::cast_precision_loss, reason = "lengths are small")]
        let relative = *length as f32 / scale.usual_length;
        *factor = scale.weight / (1.0 - scale.by_length + scale.by_length * relative);
    }
    factors
}

/// What a word counts in each field: what its impact is made of.
pub(crate) fn shares(
    frequencies: &Frequencies,
    factors: &[f32; Field::COUNT],
) -> [f32; Field::COUNT] {
    std::array::from_fn(|field| f32::from(frequencies[field]) * factors[field])
}

/// What a word is worth in a document, from 1 to 255.
pub(crate) fn impact(shares: &[f32; Field::COUNT]) -> u8 {
    let sum: f32 = shares.iter().sum();
    let part = sum / (SATURATION + sum) * f32::from(MOST_IMPACT);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 0 and 255"
    )]
    let impact = part.round() as u8;
    impact.max(1)
}

/// How rare a word is: that many documents of all have it.
pub(crate) fn idf(having: usize, all: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "there are few millions")]
    let (having, all) = (having.min(all) as f64, all as f64);
    (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
}

/// What a word is worth in a query, at least 1.
pub(crate) fn weight(idf: f64, factor: f64) -> u16 {
    let weight = (idf.powf(RARITY) * STEPS * factor).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is brought within"
    )]
    let weight = weight.clamp(1.0, f64::from(u16::MAX)) as u16;
    weight
}

/// The score that people see: one word of idf 1 that fills a document gives 1.
pub(crate) fn shown(score: u32) -> f64 {
    f64::from(score) / (STEPS * f64::from(MOST_IMPACT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_of_a_word_counts_more_and_ever_less() {
        let factors = factors(&[3, 0, 0, 0, 0, 0, 0, 0]);
        let with = |count| impact(&shares(&[count, 0, 0, 0, 0, 0, 0, 0], &factors));
        assert!(with(1) < with(2) && with(2) < with(4));
        assert!(with(2) - with(1) > with(3) - with(2));
        assert_eq!(with(u16::MAX), MOST_IMPACT);
    }

    #[test]
    fn a_word_in_the_name_counts_more_than_in_a_parameter() {
        let factors = factors(&[3, 0, 0, 0, 0, 0, 6, 0]);
        let name = impact(&shares(&[1, 0, 0, 0, 0, 0, 0, 0], &factors));
        let parameter = impact(&shares(&[0, 0, 0, 0, 0, 0, 1, 0], &factors));
        assert!(name > 2 * parameter && parameter > 0, "{name} {parameter}");
    }

    #[test]
    fn rare_words_weigh_more_and_none_weighs_nothing() {
        assert!(idf(1, 1_000) > idf(10, 1_000));
        assert!(idf(1_000, 1_000) > 0.0);
        assert_eq!(weight(idf(1_000_000, 1_000_000), 1.0), 1);
        assert!(weight(idf(0, crate::limits::DOCUMENTS), 1.0) < u16::MAX);
        // Words of a query are few enough that their sum is a number.
        let most = u64::from(u16::MAX) * 255 * crate::limits::QUERY_WORDS as u64;
        assert!(most < u64::from(u32::MAX));
    }
}
