//! Many short texts in one piece of memory, in order.

use std::ops::Range;

/// Texts, each once, in order.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    letters: String,
    ends: Vec<u32>,
}

impl Texts {
    /// Adds one that comes after all others; the caller sees to that.
    pub(crate) fn push(&mut self, text: &str) {
        self.letters.push_str(text);
        let end = u32::try_from(self.letters.len()).expect("a segment is kept far below 4 GiB");
        self.ends.push(end);
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.letters[start..self.ends[at] as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|at| self.get(at))
    }

    /// Where a text is.
    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        let at = self.first_from(text);
        (at < self.len() && self.get(at) == text).then_some(at)
    }

    /// Where the texts are that begin like this.
    pub(crate) fn beginning_with(&self, prefix: &str) -> Range<usize> {
        let start = self.first_from(prefix);
        let (mut low, mut high) = (start, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.get(middle).starts_with(prefix) { low = middle + 1 } else { high = middle }
        }
        start..low
    }

    /// Where the first text is that does not come before this one.
    pub(crate) fn first_from(&self, text: &str) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.get(middle) < text { low = middle + 1 } else { high = middle }
        }
        low
    }

    pub(crate) fn letters(&self) -> usize {
        self.letters.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.letters.capacity() + self.ends.capacity() * 4
    }

    pub(crate) fn shrink(&mut self) {
        self.letters.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_whole_and_by_their_beginning() {
        let mut texts = Texts::default();
        for text in ["a", "ab", "abc", "b", "é"] {
            texts.push(text);
        }
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["a", "ab", "abc", "b", "é"]);
        assert_eq!(texts.find("abc"), Some(2));
        assert_eq!(texts.find("abd"), None);
        assert_eq!(texts.find("z"), None);
        assert_eq!(texts.beginning_with("ab"), 1..3);
        assert_eq!(texts.beginning_with(""), 0..5);
        assert_eq!(texts.beginning_with("x"), 4..4);
        assert_eq!(Texts::default().find("a"), None);
    }
}
