//! The words of a segment.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use crate::spelling::{distance, signature};
use crate::texts::Texts;

/// Words in order, found whole, by their beginning, and by how they look.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    words: Texts,
    /// Where each word is, by its hash: in its place, or in the next that was free. Twice as many places as words;
    /// what is past the last word is none.
    places: Vec<u32>,
    /// Words are strangers' words, who could make many of one hash if they knew how it is made.
    hasher: RandomState,
    /// The words by their number of letters, each with its signature.
    by_length: Vec<(u32, u32)>,
    /// Where words of so many letters begin there.
    starts: Vec<u32>,
}

impl Dictionary {
    pub(crate) fn new(words: Texts) -> Self {
        let lengths: Vec<u8> = words.iter().map(letters).collect();
        let longest = lengths.iter().copied().max().map_or(0, usize::from);
        let mut starts = vec![0_u32; longest + 2];
        for length in &lengths {
            starts[usize::from(*length) + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut by_length = vec![(0, 0); words.len()];
        for (word, length) in (0_u32..).zip(&lengths) {
            let place = &mut next[usize::from(*length)];
            by_length[*place as usize] = (word, signature(words.get(word as usize)));
            *place += 1;
        }
        let hasher = RandomState::new();
        let places = places(&words, &hasher);
        Self { words, places, hasher, by_length, starts }
    }

    pub(crate) fn words(&self) -> &Texts {
        &self.words
    }

    pub(crate) fn find(&self, word: &str) -> Option<usize> {
        let last = self.places.len().checked_sub(1)?;
        let mut place = place(word, &self.hasher) & last;
        loop {
            let at = self.places[place] as usize;
            if at == self.words.len() {
                return None;
            }
            if self.words.get(at) == word {
                return Some(at);
            }
            place = (place + 1) & last;
        }
    }

    pub(crate) fn beginning_with(&self, prefix: &str) -> Range<usize> {
        self.words.beginning_with(prefix)
    }

    /// Hands over each word that is at most so many slips away, but not the word itself. Whoever
    /// makes two slips hits at least the first letter.
    pub(crate) fn near(&self, word: &str, most: usize, mut each: impl FnMut(usize, usize)) {
        let wanted: Vec<char> = word.chars().collect();
        let bits = signature(word);
        let longest = self.starts.len().saturating_sub(2);
        let lengths = wanted.len().saturating_sub(most)..=(wanted.len() + most).min(longest);
        if lengths.is_empty() {
            return;
        }
        let mut letters = Vec::new();
        for length in lengths {
            for (known, its_bits) in self.candidates(word, length, most) {
                if differs_in_more(bits ^ its_bits, 2 * most) {
                    continue;
                }
                let text = self.words.get(*known as usize);
                let slips = if word.is_ascii() && text.is_ascii() {
                    distance(word.as_bytes(), text.as_bytes(), most)
                } else {
                    letters.clear();
                    letters.extend(text.chars());
                    distance(&wanted, &letters, most)
                };
                if let Some(slips @ 1..) = slips {
                    each(*known as usize, slips);
                }
            }
        }
    }

    /// The words of so many letters; for more than one slip those that begin with the same letter, or it
    /// would take too long.
    fn candidates(&self, word: &str, length: usize, most: usize) -> &[(u32, u32)] {
        let range = self.starts[length] as usize..self.starts[length + 1] as usize;
        let all = &self.by_length[range];
        let (Some(first), true) = (word.chars().next(), most > 1) else { return all };
        // Words of one length are in order too.
        let its_first = |known: &(u32, u32)| self.words.get(known.0 as usize).chars().next();
        let start = all.partition_point(|known| its_first(known) < Some(first));
        let end = all.partition_point(|known| its_first(known) <= Some(first));
        &all[start..end]
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.bytes()
            + self.by_length.capacity() * 8
            + (self.starts.capacity() + self.places.capacity()) * 4
    }
}

/// Puts each word into its place.
fn places(words: &Texts, hasher: &RandomState) -> Vec<u32> {
    let none = u32::try_from(words.len()).expect("a segment is kept far below 4 GiB");
    let mut places = vec![none; (words.len() * 2).next_power_of_two()];
    let last = places.len() - 1;
    for (at, word) in (0_u32..).zip(words.iter()) {
        let mut place = place(word, hasher) & last;
        while places[place] != none {
            place = (place + 1) & last;
        }
        places[place] = at;
    }
    places
}

/// Where a word is looked for first, as far as there are so many places.
#[expect(clippy::cast_possible_truncation, reason = "any bits of it will do")]
fn place(word: &str, hasher: &RandomState) -> usize {
    hasher.hash_one(word) as usize
}

/// Whether more than so many bits are set; counting them all takes longer where there is no instruction for it.
fn differs_in_more(mut bits: u32, most: usize) -> bool {
    for _ in 0..most {
        bits &= bits.wrapping_sub(1);
    }
    bits != 0
}

/// A word has at most as many letters as bytes, which are few.
fn letters(word: &str) -> u8 {
    u8::try_from(word.chars().count()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_look_alike_are_found() {
        let mut words = Texts::default();
        for word in ["databas", "git", "github", "gitlab", "é"] {
            words.push(word);
        }
        let dictionary = Dictionary::new(words);
        let near = |word: &str, most| {
            let mut found = Vec::new();
            dictionary.near(word, most, |at, slips| {
                found.push((dictionary.words().get(at), slips));
            });
            found
        };
        assert_eq!(near("gihtub", 1), [("github", 1)]);
        assert_eq!(near("github", 2), [("gitlab", 2)], "not the word itself");
        assert_eq!(near("gitlub", 2), [("github", 1), ("gitlab", 1)]);
        assert_eq!(near("databs", 1), [("databas", 1)]);
        assert_eq!(near(&"x".repeat(64), 2), []);
        assert_eq!(Dictionary::new(Texts::default()).find("a"), None);
        Dictionary::new(Texts::default()).near("word", 1, |_, _| panic!("there is no word"));
    }
}
