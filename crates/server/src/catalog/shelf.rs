//! Answers by id, and what they have in common, counted as they come and go.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::quality::RandomState;
use registry::{Counted, Found};

/// One tool.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// What finding it answers.
    pub(super) found: Arc<str>,
    /// Whose names it is among.
    pub(super) namespace: Arc<str>,
}

/// Tools, by id.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    rows: HashMap<Arc<str>, Row, RandomState>,
    all: Group,
    namespaces: HashMap<Arc<str>, Group>,
}

/// Some tools: those of one namespace, or all.
#[derive(Debug, Default)]
struct Group {
    /// In order.
    ids: BTreeSet<Arc<str>>,
    counts: Counts,
}

impl Group {
    fn add(&mut self, id: &Arc<str>, found: &Found) {
        self.counts.change(found, Counting::More);
        self.ids.insert(Arc::clone(id));
    }

    fn remove(&mut self, id: &str, found: &Found) {
        self.counts.change(found, Counting::Less);
        self.ids.remove(id);
    }
}

/// How many tools have a word.
#[derive(Debug, Default)]
pub(super) struct Counts {
    tags: HashMap<Arc<str>, u64>,
    providers: HashMap<Arc<str>, u64>,
}

impl Shelf {
    /// Puts a tool in its place, or takes it out.
    pub(super) fn put(&mut self, id: &str, new: Option<(Row, &Found)>) {
        if let Some(old) = self.rows.remove(id) {
            // It was read when it was put in.
            if let Ok(found) = serde_json::from_str::<Found>(&old.found) {
                self.all.remove(id, &found);
                if let Some(group) = self.namespaces.get_mut(&old.namespace) {
                    group.remove(id, &found);
                    if group.ids.is_empty() {
                        self.namespaces.remove(&old.namespace);
                    }
                }
            }
        }
        if let Some((row, found)) = new {
            let id: Arc<str> = id.into();
            self.all.add(&id, found);
            self.namespaces.entry(Arc::clone(&row.namespace)).or_default().add(&id, found);
            self.rows.insert(id, row);
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<&Row> {
        self.rows.get(id)
    }

    /// Those of one namespace, or all.
    fn group(&self, namespace: Option<&str>) -> Option<&Group> {
        namespace.map_or(Some(&self.all), |name| self.namespaces.get(name))
    }

    /// The ids, in order: of one namespace, or all.
    pub(super) fn ids(&self, namespace: Option<&str>) -> impl Iterator<Item = &Arc<str>> {
        self.group(namespace).into_iter().flat_map(|group| &group.ids)
    }

    /// How many there are: of one namespace, or all.
    pub(super) fn len(&self, namespace: Option<&str>) -> usize {
        self.group(namespace).map_or(0, |group| group.ids.len())
    }

    /// What the tools have in common: of one namespace, or all.
    pub(super) fn counts(&self, namespace: Option<&str>) -> Option<&Counts> {
        self.group(namespace).map(|group| &group.counts)
    }
}

#[derive(Clone, Copy)]
enum Counting {
    More,
    Less,
}

impl Counts {
    fn change(&mut self, found: &Found, counting: Counting) {
        // Tags that differ in case alone are one.
        let tags: BTreeSet<String> =
            found.tags.iter().map(|tag| tag.trim().to_lowercase()).collect();
        for tag in &tags {
            count(&mut self.tags, tag, counting);
        }
        if let Some(provider) = &found.provider {
            count(&mut self.providers, provider, counting);
        }
    }

    /// All tags, most frequent first.
    pub(super) fn tags(&self) -> Vec<Counted> {
        sorted(&self.tags)
    }

    /// Everybody who provides tools, most frequent first.
    pub(super) fn providers(&self) -> Vec<Counted> {
        sorted(&self.providers)
    }
}

fn count(counts: &mut HashMap<Arc<str>, u64>, word: &str, counting: Counting) {
    if word.is_empty() {
        return;
    }
    match (counting, counts.get_mut(word)) {
        (Counting::More, Some(count)) => *count += 1,
        (Counting::More, None) => drop(counts.insert(word.into(), 1)),
        (Counting::Less, Some(count)) if *count > 1 => *count -= 1,
        (Counting::Less, _) => drop(counts.remove(word)),
    }
}

fn sorted(counts: &HashMap<Arc<str>, u64>) -> Vec<Counted> {
    let counted =
        |(name, count): (&Arc<str>, &u64)| Counted { name: name.to_string(), count: *count };
    let mut all: Vec<Counted> = counts.iter().map(counted).collect();
    all.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(shelf: &mut Shelf, id: &str, namespace: &str, tags: &[&str]) {
        let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let text = serde_json::json!({"id": id, "name": id, "version": "1.0.0", "summary": "x",
            "tags": tags, "provider": namespace})
        .to_string();
        let found: Found = serde_json::from_str(&text).unwrap();
        let row = Row { found: text.into(), namespace: namespace.into() };
        shelf.put(id, Some((row, &found)));
    }

    fn told(counted: &[Counted]) -> Vec<(&str, u64)> {
        counted.iter().map(|counted| (counted.name.as_str(), counted.count)).collect()
    }

    #[test]
    fn what_comes_and_goes_is_counted() {
        let mut shelf = Shelf::default();
        put(&mut shelf, "b", "acme", &["PDF", "pdf", " "]);
        put(&mut shelf, "a", "acme", &["pdf", "mail"]);
        put(&mut shelf, "c", "other", &["mail"]);
        assert_eq!(told(&shelf.counts(None).unwrap().tags()), [("mail", 2), ("pdf", 2)]);
        assert_eq!(told(&shelf.counts(Some("acme")).unwrap().tags()), [("pdf", 2), ("mail", 1)]);
        assert_eq!(told(&shelf.counts(None).unwrap().providers()), [("acme", 2), ("other", 1)]);
        put(&mut shelf, "a", "acme", &["new"]);
        assert_eq!(
            told(&shelf.counts(None).unwrap().tags()),
            [("mail", 1), ("new", 1), ("pdf", 1)]
        );
        shelf.put("b", None);
        shelf.put("nobody", None);
        let ids = |namespace| shelf.ids(namespace).map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            (ids(None), ids(Some("acme"))),
            (vec!["a".into(), "c".into()], vec!["a".into()])
        );
        assert_eq!((shelf.len(None), shelf.len(Some("acme")), shelf.len(Some("x"))), (2, 1, 0));
        shelf.put("c", None);
        assert!(shelf.counts(Some("other")).is_none(), "an empty namespace leaves nothing behind");
    }
}
