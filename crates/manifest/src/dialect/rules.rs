//! What the rules of several dialects share.

use std::collections::HashSet;

use crate::finding::{Code, Finding, Findings, Severity};
use crate::json::{Node, Pointer, Span, Value};
use crate::schema::{self, Budget, TooCostly, Unknowns};
use crate::shape::{SchemaSite, clip};

/// Gathers findings, and holds values against the schemas of the document.
pub(crate) struct Judge<'f> {
    findings: &'f mut Findings,
    unsound: HashSet<Span>,
    budget: Budget,
}

impl<'f> Judge<'f> {
    /// Checks the schemas of a document, then stands ready to judge by the sound ones.
    pub(crate) fn new(findings: &'f mut Findings, schemas: &[SchemaSite<'_, '_>]) -> Self {
        let mut unsound = HashSet::new();
        let budget = Budget::default();
        for site in schemas {
            if findings.are_enough() {
                break;
            }
            let found = schema::check(site.node, &site.pointer, &budget);
            if found.iter().any(|finding| finding.severity == Severity::Error) {
                unsound.insert(site.node.span);
            }
            findings.extend(found);
        }
        Self { findings, unsound, budget }
    }

    /// Counts a finding that there is no room for; whether there was none. To look for what was
    /// meant costs more than to see that something is wrong.
    pub(crate) fn is_beyond(&mut self, severity: Severity) -> bool {
        self.findings.is_beyond(severity)
    }

    /// Adds a finding.
    pub(crate) fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Holds a value against a schema, unless the schema itself is at fault.
    pub(crate) fn instance(
        &mut self,
        schema: &Node<'_>,
        value: &Node<'_>,
        pointer: &Pointer,
        code: Code,
        unknowns: Unknowns,
    ) {
        if !schema.is_object() || self.unsound.contains(&schema.span) {
            return;
        }
        match schema::judge(schema, value, unknowns) {
            Ok(mismatches) => {
                for mismatch in mismatches {
                    let span = beneath(value, &mismatch.pointer).span;
                    let pointer = mismatch.pointer.beneath(pointer);
                    self.push(Finding::new(code, pointer, span, mismatch.message));
                }
            }
            Err(TooCostly) => {
                let message =
                    "checking this value against its schema could take practically forever";
                self.push(
                    Finding::new(
                        Code::SchemaTooCostly,
                        pointer.clone(),
                        value.span.first_byte(),
                        message,
                    )
                    .help("the schema refers to itself, or doubles at every step"),
                );
            }
        }
    }
}

/// The part of a value that a pointer leads to, as far as it goes.
fn beneath<'n, 't>(value: &'n Node<'t>, pointer: &Pointer) -> &'n Node<'t> {
    let mut node = value;
    for step in pointer.steps() {
        let next = match &node.value {
            Value::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => node.get(&step),
        };
        match next {
            Some(next) => node = next,
            None => break,
        }
    }
    node
}

/// Checks a text as a regular expression.
pub(crate) fn check_regex_at(node: &Node<'_>, pointer: Pointer, judge: &mut Judge<'_>) {
    if let Some(pattern) = node.as_text()
        && let Err(error) = schema::check_regex(pattern, &judge.budget)
    {
        judge.push(Finding::new(Code::BadRegex, pointer, node.span, error.to_string()));
    }
}

/// Checks a text as a licence.
pub(crate) fn check_license(node: &Node<'_>, pointer: Pointer, judge: &mut Judge<'_>) {
    if let Some(text) = node.as_text()
        && spdx::Expression::parse(text).is_err()
    {
        let message = format!("`{}` is no SPDX expression", clip(text));
        let finding = Finding::new(Code::BadLicense, pointer, node.span, message);
        judge.push(
            finding
                .help("write for example `MIT`, `Apache-2.0`, or `PROPRIETARY` for closed source"),
        );
    }
}

/// Whether a relative path could lead out of its folder, on any system.
pub(crate) fn path_escapes(path: &str) -> bool {
    path.is_empty()
        || path.starts_with('/')
        || path.contains(['\\', '\0'])
        || path.as_bytes().get(1) == Some(&b':')
        || path.split('/').any(|segment| segment == "..")
}
