//! The changes found so far, and the words most of them are told in.

use super::place::Places;
use super::words::{both, quoted};
use super::{Change, Class};
use crate::concept::Concept;
use crate::json::Pointer;
use crate::model::{Action, Package};
use crate::shape::clip;

/// The changes found so far.
#[derive(Debug, Default)]
pub(super) struct Changes {
    list: Vec<Change>,
    places: Places,
}

impl Changes {
    /// None yet, between two documents. Those of two dialects have no places in common.
    pub(super) fn between(old: &Package, new: &Package) -> Self {
        let is_same = old.dialect == new.dialect;
        let places = if is_same { Places::of(new) } else { Places::default() };
        Self { list: Vec::new(), places }
    }

    /// Opens a subject of the package.
    pub(super) fn about(&mut self, subject: impl AsRef<str>) -> Topic<'_> {
        // It may hold a name of the author's choosing, of any length.
        let subject = clip(subject.as_ref()).into_owned();
        Topic { list: &mut self.list, places: self.places, action: None, subject }
    }

    /// Opens a subject of an action.
    pub(super) fn about_action<'c>(
        &'c mut self,
        subject: impl AsRef<str>,
        action: &'c Action,
    ) -> Topic<'c> {
        Topic { action: Some(&action.pointer), ..self.about(subject) }
    }

    /// Where something about an action stands.
    pub(super) fn place_in(&self, action: &Action, concept: Concept) -> Option<Pointer> {
        self.places.in_action(&action.pointer, concept)
    }

    /// Takes over changes found elsewhere.
    pub(super) fn extend(&mut self, more: impl IntoIterator<Item = Change>) {
        self.list.extend(more);
    }

    /// Whether nothing was found.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The changes, worst first, then by subject.
    pub(super) fn in_order(self) -> Vec<Change> {
        let mut list = self.list;
        list.sort_by(|a, b| {
            (a.class, &a.subject, &a.message, &a.pointer)
                .cmp(&(b.class, &b.subject, &b.message, &b.pointer))
        });
        list.dedup();
        list
    }
}

/// A subject, ready to be spoken of.
pub(super) struct Topic<'c> {
    list: &'c mut Vec<Change>,
    places: Places,
    action: Option<&'c Pointer>,
    subject: String,
}

impl Topic<'_> {
    /// Tells of a change; the concept says where to look.
    pub(super) fn tell(&mut self, class: Class, concept: Concept, message: impl Into<String>) {
        let pointer = match self.action {
            Some(action) => self.places.in_action(action, concept),
            None => self.places.in_package(concept),
        };
        let (subject, message) = (self.subject.clone(), message.into());
        self.list.push(Change { class, subject, message, pointer });
    }

    /// Tells that one value took the place of another.
    pub(super) fn replaced(&mut self, class: Class, concept: Concept, old: &str, new: &str) {
        let (old, new) = both(old, new);
        self.tell(class, concept, format!("{} was {old} and is now {new}", concept.words()));
    }

    /// Tells how a text that may be absent changed, if it did; the class is the same either way.
    pub(super) fn text(
        &mut self,
        class: Class,
        concept: Concept,
        old: Option<&str>,
        new: Option<&str>,
    ) {
        match (old, new) {
            (Some(old), Some(new)) if old != new => self.replaced(class, concept, old, new),
            (None, Some(new)) => self.added(class, concept, new),
            (Some(old), None) => self.removed(class, concept, old),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    /// Tells how a text changed that agents read, and may be steered by.
    pub(super) fn prose(&mut self, concept: Concept, old: Option<&str>, new: Option<&str>) {
        let told = self.list.len();
        self.text(Class::Cosmetic, concept, old, new);
        for change in &mut self.list[told..] {
            change.message.push_str("; agents read it");
        }
    }

    /// Tells that there is a value where there was none.
    pub(super) fn added(&mut self, class: Class, concept: Concept, new: &str) {
        self.tell(class, concept, format!("{} was added: {}", concept.words(), quoted(new)));
    }

    /// Tells that there is no value where there was one.
    pub(super) fn removed(&mut self, class: Class, concept: Concept, old: &str) {
        self.tell(class, concept, format!("{} was removed: {}", concept.words(), quoted(old)));
    }
}
