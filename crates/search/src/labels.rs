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
    pub(crate) fn new(pairs: &[(&Label, u16)], all: usize) -> Self {
        let mut labels = Self::default();
        for group in pairs.chunk_by(|one, other| one.0 == other.0) {
            let holders: Vec<u16> = group.iter().map(|(_, document)| *document).collect();
            labels.push(group[0].0.clone(), &holders, all);
        }
        labels.labels.shrink_to_fit();
        labels
    }

    /// Adds a value that comes after all others, and the documents that have it, in order.
    pub(crate) fn push(&mut self, label: Label, holders: &[u16], all: usize) {
        self.labels.push((label, Holders::new(holders, all)));
    }

    pub(crate) fn last(&self) -> Option<&Label> {
        self.labels.last().map(|(label, _)| label)
    }

    pub(crate) fn find(&self, facet: Facet, value: &str) -> Option<&Holders> {
        let at = self.labels.binary_search_by(|((known, its_value), _)| {
            known.cmp(&facet).then_with(|| (**its_value).cmp(value))
        });
        at.ok().map(|at| &self.labels[at].1)
    }

    /// The values of one facet, in order.
    pub(crate) fn of_facet(&self, facet: Facet) -> &[(Label, Holders)] {
        let start = self.labels.partition_point(|((known, _), _)| *known < facet);
        let end = self.labels.partition_point(|((known, _), _)| *known <= facet);
        &self.labels[start..end]
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
        for document in few {
            many.insert(*document);
        }
        Holders::Many(Box::new(many))
    }

    pub(crate) fn add_to(&self, documents: &mut Documents) {
        match self {
            Holders::Few(few) => few.iter().for_each(|document| documents.insert(*document)),
            Holders::Many(many) => documents.join(many),
        }
    }

    /// How many of them are among these.
    pub(crate) fn count_in(&self, documents: &Documents) -> usize {
        match self {
            Holders::Few(few) => few.iter().filter(|one| documents.contains(**one)).count(),
            Holders::Many(many) => documents.count_both(many),
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
