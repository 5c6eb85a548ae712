//! Every part of a document, looked at once.

use std::collections::HashSet;

use super::lookup::{Document, Lead, Lookup};
use super::parts::{Inside, Kind};
use super::version_to_read;
use crate::finding::{Code, Finding, Findings};
use crate::json::{Member, Node, Path, Span, Value};
use crate::schema::{Budget, Fault, Home, Surroundings, Words, check_part};
use crate::shape::{check_at, clip};

/// Finds everything that is wrong with a document.
pub(crate) fn check(root: &Node<'_>, findings: &mut Findings) {
    let version = match version_to_read(root) {
        Ok(version) => version,
        Err(finding) => return findings.push(*finding),
    };
    let document = Document::new(root, version);
    let mut walk = Walk {
        document: &document,
        findings,
        budget: Budget::default(),
        operations: HashSet::new(),
        suggestions: 0,
        strays: Vec::new(),
        seen: HashSet::new(),
        reads_schemas: has_known_dialect(root),
    };
    walk.part(Kind::Document, root, Path::ROOT);
    // What is referred to in a place of which OpenAPI says nothing is looked at as what it is used
    // for; it may refer to more of the kind.
    while let Some((kind, reference)) = walk.strays.pop() {
        let steps = Lookup::steps(reference).unwrap_or_default();
        walk.stray(kind, root, &steps, Path::ROOT);
    }
}

/// Whether the schemas are written in words that are known here.
fn has_known_dialect(root: &Node<'_>) -> bool {
    root.text_at("jsonSchemaDialect").is_none_or(|dialect| {
        dialect.contains("spec.openapis.org/oas/3.1/dialect/")
            || dialect.contains("json-schema.org/draft/2020-12/")
    })
}

pub(super) struct Walk<'w, 'n, 't> {
    pub(super) document: &'w Document<'n, 't>,
    findings: &'w mut Findings,
    budget: Budget,
    /// The ids of the operations met so far.
    pub(super) operations: HashSet<&'n str>,
    /// How often a near name was looked for.
    pub(super) suggestions: usize,
    strays: Vec<(Kind, &'n str)>,
    /// What stands in `strays`, or did.
    seen: HashSet<(Kind, *const Node<'t>)>,
    reads_schemas: bool,
}

impl<'n, 't> Walk<'_, 'n, 't> {
    fn part(&mut self, kind: Kind, node: &'n Node<'t>, path: Path<'_>) {
        if self.is_done() {
            return;
        }
        if kind == Kind::Schema {
            return self.schema(node, path);
        }
        let version = self.document.version;
        if kind.may_be_referred_to()
            && let Some(member) = node.member("$ref")
        {
            check_at(&Kind::Reference.part(version).shape, node, path, self.findings);
            return self.reference(kind, member, path);
        }
        if kind == Kind::PathItem
            && let Some(member) = node.member("$ref")
        {
            self.reference(kind, member, path);
        }
        let part = kind.part(version);
        check_at(&part.shape, node, path, self.findings);
        self.rules(kind, node, path);
        for member in node.members() {
            let path = path.key(&member.key);
            match (part.inside(&member.key), &member.value.value) {
                (Some(Inside::One(kind)), _) => self.part(kind, &member.value, path),
                (Some(Inside::Each(kind)), Value::List(items)) => {
                    for (index, item) in items.iter().enumerate() {
                        self.part(kind, item, path.index(index));
                    }
                }
                (Some(Inside::Named(kind)), Value::Object(members)) => {
                    for entry in members {
                        self.part(kind, &entry.value, path.key(&entry.key));
                    }
                }
                _ => {}
            }
        }
    }

    fn schema(&mut self, node: &'n Node<'t>, path: Path<'_>) {
        let mut found = Findings::default();
        let words = self.document.words();
        let mut around = Parts { document: self.document, strays: Vec::new() };
        let findings = if self.reads_schemas { &mut *self.findings } else { &mut found };
        check_part(node, path, words, &self.budget, &mut around, findings);
        for (reference, target) in around.strays {
            self.remember(Kind::Schema, reference, target);
        }
        // In other words than ours, only references are sure to mean what we think.
        if !self.reads_schemas && words == Words::Draft2020 {
            let (found, _) = found.into_list();
            let is_reference =
                |finding: &Finding| matches!(finding.code, Code::RemoteRef | Code::UnresolvedRef);
            self.findings.extend(found.into_iter().filter(is_reference));
        }
    }

    fn reference(&mut self, kind: Kind, member: &'n Member<'t>, path: Path<'_>) {
        let Some(text) = member.value.as_text() else { return };
        match target(self.document, kind, text) {
            Ok(Some(stray)) => self.remember(kind, text, stray),
            Ok(None) => {}
            Err(Fault { code, message, help }) => {
                let pointer = path.key("$ref").pointer();
                self.push(Finding::new(code, pointer, member.value.span, message).help(help));
            }
        }
    }

    fn remember(&mut self, kind: Kind, reference: &'n str, target: &'n Node<'t>) {
        if self.seen.insert((kind, std::ptr::from_ref(target))) {
            self.strays.push((kind, reference));
        }
    }

    fn stray(&mut self, kind: Kind, node: &'n Node<'t>, steps: &[String], path: Path<'_>) {
        let Some((step, rest)) = steps.split_first() else { return self.part(kind, node, path) };
        if let Some(next) = self.document.step(node, step) {
            self.stray(kind, next, rest, path.key(step));
        }
    }

    /// Whether looking further tells nothing new.
    pub(super) fn is_done(&self) -> bool {
        self.findings.are_enough()
    }

    pub(super) fn say(&mut self, code: Code, path: Path<'_>, span: Span, message: String) {
        self.push(Finding::new(code, path.pointer(), span, message));
    }

    pub(super) fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}

/// The document around a schema.
struct Parts<'w, 'n, 't> {
    document: &'w Document<'n, 't>,
    strays: Vec<(&'n str, &'n Node<'t>)>,
}

impl<'n> Surroundings<'n> for Parts<'_, 'n, '_> {
    fn fault(&mut self, reference: &'n str, home: Home) -> Option<Fault> {
        match target(self.document, Kind::Schema, reference) {
            Ok(stray) => {
                self.strays.extend(stray.map(|target| (reference, target)));
                None
            }
            // A schema with an address of its own reads its references from there.
            Err(fault) => (home == Home::ROOT).then_some(fault),
        }
    }
}

/// Follows a reference in the place of an object of this kind; gives the target when it must still
/// be looked at as one.
fn target<'n, 't>(
    document: &Document<'n, 't>,
    kind: Kind,
    text: &str,
) -> Result<Option<&'n Node<'t>>, Fault> {
    let shown = clip(text);
    let unresolved = |message| {
        let help = "put the part under `components` and refer to it as `#/components/…`";
        Fault { code: Code::UnresolvedRef, message, help }
    };
    let is_object =
        |node: &Node<'_>| node.is_object() || (kind == Kind::Schema && node.as_bool().is_some());
    let (node, stray) = match document.lead(text) {
        Lead::Named if kind == Kind::Schema => return Ok(None),
        Lead::Part(found, node) if found == kind => (node, None),
        Lead::Stray(node) if is_object(node) => (node, Some(node)),
        Lead::Part(found, _) => {
            let message = format!("`{shown}` leads to {}, not to {}", found.noun(), kind.noun());
            return Err(unresolved(message));
        }
        Lead::Group | Lead::Stray(_) | Lead::Named => {
            let message = format!("`{shown}` leads to something that is not {}", kind.noun());
            return Err(unresolved(message));
        }
        Lead::Missing => {
            return Err(unresolved(format!("`{shown}` leads nowhere in this document")));
        }
        Lead::Remote => {
            let message = format!("`{shown}` lies outside the document and is never fetched");
            let help = "copy what it means under `components`";
            return Err(Fault { code: Code::RemoteRef, message, help });
        }
    };
    if node.get("$ref").is_some() && document.is_endless(node) {
        return Err(unresolved(format!("`{shown}` leads to references that never end")));
    }
    Ok(stray)
}
