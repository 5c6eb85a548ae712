//! The names that servers have in the MCP world, in order, so that a part of one is looked for without the database.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// All names of servers, whether anything of them is offered or not: that is for whoever looks them up.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<Box<str>, Named>);

/// What is known of one.
#[derive(Debug)]
struct Named {
    /// Whose names it is among.
    namespace: Arc<str>,
    /// The name in small letters, where that is another text.
    small: Option<Box<str>>,
}

impl Names {
    /// Takes in a name. A package keeps the one it was given first.
    pub(super) fn put(&mut self, name: String, namespace: &Arc<str>) {
        let small = name.to_ascii_lowercase();
        let small = (small != name).then(|| small.into());
        self.0.insert(name.into(), Named { namespace: Arc::clone(namespace), small });
    }

    /// The first names that hold these small letters, in the order of their bytes: among those of a namespace, where
    /// one is named.
    pub(super) fn holding(
        &self,
        part: &str,
        from: Bound<&str>,
        namespace: Option<&str>,
        most: usize,
    ) -> Vec<String> {
        let names = self.0.range::<str, _>((from, Bound::Unbounded)).filter(|(name, named)| {
            namespace.is_none_or(|namespace| *named.namespace == *namespace)
                && named.small.as_ref().unwrap_or(name).contains(part)
        });
        names.take(most).map(|(name, _)| name.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_name_is_found_in_the_order_of_the_names() {
        let mut names = Names::default();
        let (ours, theirs): (Arc<str>, Arc<str>) = ("ours".into(), "theirs".into());
        for (name, namespace) in
            [("b/Pdf", &ours), ("a/pdf", &theirs), ("b/pdf-x", &ours), ("c/mail", &ours)]
        {
            names.put(name.to_owned(), namespace);
        }
        let from_start = Bound::Included("");
        assert_eq!(names.holding("pdf", from_start, None, 9), ["a/pdf", "b/Pdf", "b/pdf-x"]);
        assert_eq!(names.holding("pdf", from_start, None, 2), ["a/pdf", "b/Pdf"]);
        assert_eq!(names.holding("pdf", from_start, Some("ours"), 1), ["b/Pdf"]);
        assert_eq!(names.holding("pdf", Bound::Included("b/Pdf"), None, 9).len(), 2);
        assert_eq!(names.holding("pdf", Bound::Excluded("b/Pdf"), None, 9), ["b/pdf-x"]);
        assert!(names.holding("PDF", from_start, None, 9).is_empty(), "they are small letters");
        assert_eq!(names.holding("", from_start, None, 9).len(), 4);
    }
}
