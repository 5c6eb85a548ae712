//! Single values of a policy: words, folders, times, sizes.

use manifest::shape::suggest;

use super::super::table::Node;
use super::super::{Level, OnViolation, Rule};
use super::Reader;

/// The least memory a call can have: with less, no program starts inside the walls.
const LEAST_MEMORY: u64 = 8 << 20;

const TIME: &str = "a time such as \"500ms\", \"30s\", \"10m\"";
const SIZE: &str = "a size such as \"512M\", \"2G\"";
const FOLDER: &str = "a folder such as \"~/data\"";

impl<'t> Reader<'t> {
    /// Every entry of a list that can be read.
    pub(super) fn each<T>(
        &mut self,
        node: &Node<'t>,
        wanted: &str,
        read: impl Fn(&mut Self, &Node<'t>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let entries = self.document.list(node, wanted)?;
        Some(entries.iter().filter_map(|entry| read(self, entry)).collect())
    }

    pub(super) fn texts(&mut self, node: &Node<'t>, wanted: &str, each: &str) -> Vec<String> {
        let text = |reader: &mut Self, node: &Node<'t>| {
            reader.document.text(node, each).map(str::to_owned)
        };
        self.each(node, wanted, text).unwrap_or_default()
    }

    /// One of the words that there are.
    pub(super) fn one_of(
        &mut self,
        node: &Node<'t>,
        known: &[&'static str],
    ) -> Option<&'static str> {
        let quoted: Vec<_> = known.iter().map(|word| format!("\"{word}\"")).collect();
        let text = self.document.text(node, &format!("one of {}", quoted.join(", ")))?;
        let found = known.iter().find(|word| **word == text).copied();
        if found.is_none() {
            // Of words as short as these no other is near.
            let near = suggest(text, known.iter().copied()).filter(|near| near.len() > 2);
            let near = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
            let message = format!("`{text}` is none of: {}{near}", known.join(", "));
            self.document.wrong(node, message);
        }
        found
    }

    pub(super) fn rule(&mut self, node: &Node<'t>) -> Option<Rule> {
        let word = self.one_of(node, &Rule::ALL.map(|(_, name)| name))?;
        Rule::ALL.iter().find(|(_, name)| *name == word).map(|(rule, _)| *rule)
    }

    pub(super) fn level(&mut self, node: &Node<'t>) -> Option<Level> {
        let word = self.one_of(node, &Level::ALL.map(|(_, name)| name))?;
        Level::ALL.iter().find(|(_, name)| *name == word).map(|(level, _)| *level)
    }

    pub(super) fn on_violation(&mut self, node: &Node<'t>) -> Option<OnViolation> {
        let word = self.one_of(node, &OnViolation::ALL.map(|(_, name)| name))?;
        OnViolation::ALL.iter().find(|(_, name)| *name == word).map(|(then, _)| *then)
    }

    /// Folders are absolute, or begin with `~/`: a policy does not mean another thing elsewhere.
    pub(super) fn folder(&mut self, node: &Node<'t>) -> Option<String> {
        let path = self.document.text(node, FOLDER)?;
        let is_fixed = path.starts_with('/') || path == "~" || path.starts_with("~/");
        let is_plain = !path.split('/').any(|part| part == "..");
        if is_fixed && path.split('/').all(|part| part.is_empty() || part == ".") {
            let message = format!("`{path}` is everything; name the folders that are meant");
            self.document.wrong(node, message);
        } else if !is_fixed || !is_plain {
            let message = format!("`{path}` is no absolute path; `~/` stands for your home folder");
            self.document.wrong(node, message);
        }
        Some(path.to_owned())
    }

    pub(super) fn milliseconds(&mut self, node: &Node<'t>) -> Option<u64> {
        const UNITS: [(&str, u64); 5] =
            [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
        self.quantity(node, &UNITS, TIME)
    }

    pub(super) fn bytes(&mut self, node: &Node<'t>) -> Option<u64> {
        const UNITS: [(&str, u64); 3] = [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];
        self.quantity(node, &UNITS, SIZE)
    }

    /// The size of what may be kept, or nothing.
    pub(super) fn kept(&mut self, node: &Node<'t>) -> Option<u64> {
        const WANTED: &str = "a size such as \"64M\", or \"none\"";
        match self.document.text(node, WANTED)? {
            "none" => Some(0),
            _ => self.bytes(node),
        }
    }

    pub(super) fn memory(&mut self, node: &Node<'t>) -> Option<u64> {
        let size = self.bytes(node)?;
        if size < LEAST_MEMORY {
            self.document.wrong(node, "the least is \"8M\"");
        }
        Some(size)
    }

    pub(super) fn quantity(
        &mut self,
        node: &Node<'t>,
        units: &[(&str, u64)],
        wanted: &str,
    ) -> Option<u64> {
        let text = self.document.text(node, wanted)?;
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        let number = number.parse::<u64>().ok().zip(factor);
        let quantity = number.and_then(|(number, factor)| number.checked_mul(factor));
        match quantity.filter(|quantity| *quantity > 0) {
            Some(quantity) => Some(quantity),
            None => self.document.expected(node, wanted),
        }
    }
}
