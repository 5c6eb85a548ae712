//! Which documents have a value of a facet.

use crate::documents::Documents;
use crate::facet::Facet;

/// A value of a facet, in order of facet and value.
pub(crate) type Label = (Facet, Box<str>);

/// Documents by value.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    labels: Vec<(Label, Holders)>,
}

/// The documents that have a value.
#[derive(Debug)]
pub(crate) enum Holders {
    Few(Box<[u16]>),
    Many(Box<Documents>),
}

impl Labels {
    /// Made from pairs of value and document, in order, each once; of so many documents.
    pub(crate) fn new(pairs: impl IntoIterator<Item = (Label, u16)>, all: usize) -> Self {
        let mut labels: Vec<(Label, Holders)> = Vec::new();
        let mut few = Vec::new();
        let mut last: Option<Label> = None;
        let mut finish = |label: Option<Label>, few: &mut Vec<u16>| {
            if let Some(label) = label {
                labels.push((label, Holders::new(few, all)));
                few.clear();
            }
        };
        for (label, document) in pairs {
            if last.as_ref() != Some(&label) {
                finish(last.replace(label), &mut few);
            }
            few.push(document);
        }
        finish(last, &mut few);
        labels.shrink_to_fit();
        Self { labels }
    }

    pub(crate) fn find(&self, facet: Facet, value: &str) -> Option<&Holders> {
        let at = self.labels.binary_search_by(|((known, its_value), _)| {
            known.cmp(&facet).then_with(|| (**its_value).cmp(value))
        });
        at.ok().map(|at| &self.labels[at].1)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &(Label, Holders)> {
        self.labels.iter()
    }

    pub(crate) fn bytes(&self) -> usize {
        let each = self.labels.iter().map(|((_, value), holders)| value.len() + holders.bytes());
        each.sum::<usize>() + self.labels.capacity() * size_of::<(Label, Holders)>()
    }
}

impl Holders {
    fn new(few: &[u16], all: usize) -> Self {
        // A set of bits takes a sixteenth of a list of everything.
        if few.len() * 16 <= all {
            return Holders::Few(few.into());
        }
        let mut many = Documents::none(all);
        few.iter().for_each(|document| many.insert(*document));
        Holders::Many(Box::new(many))
    }

    pub(crate) fn add_to(&self, documents: &mut Documents) {
        match self {
            Holders::Few(few) => few.iter().for_each(|document| documents.insert(*document)),
            Holders::Many(many) => documents.join(many),
        }
    }

    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = u16> + '_> {
        match self {
            Holders::Few(few) => Box::new(few.iter().copied()),
            Holders::Many(many) => Box::new(many.iter()),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Holders::Few(few) => few.len() * 2,
            Holders::Many(many) => many.bytes(),
        }
    }
}
