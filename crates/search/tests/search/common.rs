//! Documents and questions that several tests need.

use search::{Change, Entry, Field, Index, Page, Query};

/// A document with a name and a description.
pub(crate) fn tool(key: &str, name: &str, description: &str) -> Entry {
    Entry::new(key).unwrap().text(Field::Name, name).text(Field::Description, description)
}

/// An index of these.
pub(crate) fn index_of(entries: impl IntoIterator<Item = Entry>) -> Index {
    let index = Index::new();
    index.apply(entries.into_iter().map(Change::Put)).unwrap();
    index
}

/// The keys of the first hits.
pub(crate) fn found(index: &Index, text: &str) -> Vec<String> {
    keys(&index.search(&Query::new(text)))
}

/// The keys of a page.
pub(crate) fn keys(page: &Page) -> Vec<String> {
    page.hits.iter().map(|hit| hit.key.clone()).collect()
}
