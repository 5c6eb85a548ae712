//! What a manifest and an operation say of input and answer, held against each other.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use super::calls::{Call, Schema};
use super::routes::Route;
use super::view::{Reader, View};
use crate::finding::{Code, Finding};
use crate::json::{Member, Node, Path, Pointer, Span};
use crate::openapi::lookup::Document;
use crate::schema::Words;
use crate::shape::clip;

/// How many schemas are looked at for one manifest.
const MAX_STEPS: u32 = 200_000;

/// How deep properties of properties are compared.
const MAX_DEPTH: usize = 6;

/// The work that may still be done.
pub(super) struct Work(Cell<u32>);

impl Default for Work {
    fn default() -> Self {
        Self(Cell::new(MAX_STEPS))
    }
}

/// Holds the schemas of a call against those of the operation it means.
pub(super) fn check<'n, 't>(
    document: &Document<'n, 't>,
    route: &Route<'n, 't>,
    call: &Call<'_, '_>,
    work: &Work,
) -> Vec<Finding> {
    let side = Side {
        document,
        reader: Reader::new(document.root, document.words(), &work.0),
        operation: format!("{} {}", route.method.to_ascii_uppercase(), clip(route.template)),
    };
    let mut findings = Vec::new();
    if let Some(input) = &call.input {
        let reader = Reader::new(input.node, Words::Draft2020, &work.0);
        let mut against = Against { side: &side, reader, schema: input, findings: Vec::new() };
        against.input(route, &call.placed);
        findings.extend(against.findings);
    }
    if let Some(output) = &call.output {
        let reader = Reader::new(output.node, Words::Draft2020, &work.0);
        let mut against = Against { side: &side, reader, schema: output, findings: Vec::new() };
        against.output(route);
        findings.extend(against.findings);
    }
    findings
}

/// The side of the document.
struct Side<'s, 'n, 't> {
    document: &'s Document<'n, 't>,
    reader: Reader<'s, 'n, 't>,
    /// The operation, in words.
    operation: String,
}

/// What an operation takes.
#[derive(Default)]
struct Taken<'n, 't> {
    /// What each name may be, wherever it goes.
    schemas: HashMap<&'n str, Vec<&'n Node<'t>>>,
    /// The names that must be given.
    required: Vec<&'n str>,
    /// The JSON body, when there is no other.
    body: Option<View<'n, 't>>,
}

impl<'n, 't> Side<'_, 'n, 't> {
    /// What an operation takes; none when some of it cannot be read.
    fn taken(&self, route: &Route<'n, 't>) -> Option<Taken<'n, 't>> {
        let mut taken = Taken::default();
        let mut seen = HashSet::new();
        // A parameter of the operation stands for the one of the path.
        let own = route.operation.list_at("parameters").iter();
        for entry in own.chain(route.item.list_at("parameters")) {
            let parameter = self.document.settled(entry)?;
            let (name, place) = (parameter.text_at("name")?, parameter.text_at("in")?);
            if !seen.insert((name, place)) {
                continue;
            }
            let content = parameter.get("content").and_then(|content| content.members().first());
            let schema = parameter.get("schema");
            let schema = schema.or_else(|| content.and_then(|entry| entry.value.get("schema")));
            taken.schemas.entry(name).or_default().extend(schema);
            // Headers and cookies may come from elsewhere, and the path may be filled in already.
            let is_required = parameter.get("required").and_then(Node::as_bool) == Some(true);
            if place == "query" && is_required {
                taken.required.push(name);
            }
        }
        let Some(body) = route.operation.get("requestBody") else { return Some(taken) };
        let body = self.document.settled(body)?;
        let view = self.reader.view(json(body)?);
        for (name, members) in &view.properties {
            // Each statement holds, so any one of them may be compared; the first is.
            taken.schemas.entry(name).or_default().extend(members.first().map(|m| &m.value));
        }
        if body.get("required").and_then(Node::as_bool) == Some(true) {
            let is_given = |name: &&&str| !self.is_read_only(&view, name);
            taken.required.extend(view.required.iter().filter(is_given));
        }
        taken.body = Some(view);
        Some(taken)
    }

    /// A property that only answers have.
    fn is_read_only(&self, view: &View<'n, 't>, name: &str) -> bool {
        let said = view.properties.get(name).map(Vec::as_slice).unwrap_or_default();
        said.iter().any(|member| {
            let target = self.document.settled(&member.value);
            [Some(&member.value), target]
                .into_iter()
                .flatten()
                .any(|schema| schema.get("readOnly").and_then(Node::as_bool) == Some(true))
        })
    }

    /// The schemas of the answers that mean success; none when there is one of another kind.
    fn answers(&self, route: &Route<'n, 't>) -> Option<Vec<&'n Node<'t>>> {
        let mut schemas = Vec::new();
        for answer in route.operation.get("responses").map(Node::members).unwrap_or_default() {
            if !answer.key.starts_with('2') {
                continue;
            }
            let response = self.document.settled(&answer.value)?;
            if response.get("content").is_some_and(|content| !content.members().is_empty()) {
                schemas.push(json(response)?);
            }
        }
        Some(schemas)
    }
}

/// The schema of a body that is JSON and nothing else.
fn json<'n, 't>(holder: &'n Node<'t>) -> Option<&'n Node<'t>> {
    let mut schemas = Vec::new();
    for media in holder.get("content").map(Node::members).unwrap_or_default() {
        let name = media.key.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if name != "application/json" && !name.ends_with("+json") {
            return None;
        }
        schemas.push(media.value.get("schema")?);
    }
    if schemas.len() == 1 { schemas.pop() } else { None }
}

/// One schema of the manifest, held against the document.
struct Against<'a, 'd, 'n, 't, 'm, 'u> {
    side: &'a Side<'d, 'n, 't>,
    reader: Reader<'a, 'm, 'u>,
    schema: &'a Schema<'m, 'u>,
    findings: Vec<Finding>,
}

impl<'n, 't, 'm, 'u> Against<'_, '_, 'n, 't, 'm, 'u> {
    fn input(&mut self, route: &Route<'n, 't>, placed: &[String]) {
        let Some(taken) = self.side.taken(route) else { return };
        let view = self.reader.view(self.schema.node);
        let is_placed = |name: &str| placed.iter().any(|placed| placed == name);
        // Some manifests hand over the body as one property.
        let is_wrapped =
            view.properties.contains_key("body") && !taken.schemas.contains_key("body");
        let mut ours: Vec<_> = view.properties.iter().collect();
        ours.sort_by_key(|(_, members)| members.first().map(|member| member.key_span));
        for (name, members) in ours {
            let Some(member) = members.first() else { continue };
            match taken.schemas.get(name) {
                Some(theirs) if theirs.len() == 1 => self.compare(member, theirs[0], 0),
                Some(_) => {}
                None if is_placed(name) || is_wrapped => {}
                None if taken.body.as_ref().is_some_and(|body| body.refuses(name)) => {
                    let message = format!(
                        "`{}` is nothing that `{}` of openapi.json takes",
                        clip(name),
                        self.side.operation
                    );
                    self.say(member.key_span, message);
                }
                None => {}
            }
        }
        let says_all = (view.has_list || view.is_closed()) && !view.is_vague && !is_wrapped;
        if !says_all {
            return;
        }
        for name in taken.required {
            if !view.properties.contains_key(name) && !is_placed(name) {
                let message = format!(
                    "`{}` of openapi.json requires `{}`, which the schema does not know",
                    self.side.operation,
                    clip(name)
                );
                let span = self.schema.node.member("properties").map(|member| member.key_span);
                self.say(span.unwrap_or(self.schema.node.span.first_byte()), message);
            }
        }
    }

    fn output(&mut self, route: &Route<'n, 't>) {
        let Some(answers) = self.side.answers(route) else { return };
        let [answer] = answers.as_slice() else { return };
        let ours = self.reader.types(self.schema.node);
        let theirs = self.side.reader.types(answer);
        if ours.exclude(theirs) {
            let message = format!(
                "the answer is `{}` here, but `{}` in openapi.json (`{}`)",
                ours.words(),
                theirs.words(),
                self.side.operation
            );
            return self.say(self.schema.node.span.first_byte(), message);
        }
        self.properties(self.schema.node, answer, 0);
        let view = self.reader.view(self.schema.node);
        let given = self.side.reader.view(answer);
        for name in &view.required {
            if given.refuses(name) {
                let message = format!(
                    "`{}` is required here, but the answer of `{}` in openapi.json cannot have it",
                    clip(name),
                    self.side.operation
                );
                let member = view.properties.get(name).and_then(|members| members.first());
                let required = || self.schema.node.get("required").map(|list| list.span);
                let span = member.map(|member| member.key_span).or_else(required);
                self.say(span.unwrap_or(self.schema.node.span.first_byte()), message);
            }
        }
    }

    /// Compares what both sides say of one property, and of what is in it.
    fn compare(&mut self, ours: &'m Member<'u>, theirs: &'n Node<'t>, depth: usize) {
        let (here, there) = (self.reader.types(&ours.value), self.side.reader.types(theirs));
        if here.exclude(there) {
            let message = format!(
                "`{}` is `{}` here, but `{}` in openapi.json (`{}`)",
                clip(&ours.key),
                here.words(),
                there.words(),
                self.side.operation
            );
            self.say(ours.key_span, message);
        } else {
            self.properties(&ours.value, theirs, depth + 1);
        }
    }

    /// Compares the properties, or the elements, that both sides speak of.
    fn properties(&mut self, ours: &'m Node<'u>, theirs: &'n Node<'t>, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let (here, there) = (self.reader.types(ours), self.side.reader.types(theirs));
        if here.may_be_object() && there.may_be_object() {
            let (ours, theirs) = (self.reader.view(ours), self.side.reader.view(theirs));
            let mut both: Vec<_> = ours
                .properties
                .iter()
                .filter_map(|(name, members)| {
                    Some((*members.first()?, *theirs.properties.get(name)?.first()?))
                })
                .collect();
            both.sort_by_key(|(member, _)| member.key_span);
            for (ours, theirs) in both {
                self.compare(ours, &theirs.value, depth);
            }
        }
        if here.may_be_array()
            && there.may_be_array()
            && let (Some(ours), Some(theirs)) = (ours.member("items"), theirs.get("items"))
        {
            self.compare(ours, theirs, depth);
        }
    }

    fn say(&mut self, span: Span, message: String) {
        let pointer = pointer_to(self.schema.node, span).beneath(&self.schema.pointer);
        self.findings.push(Finding::new(Code::OpenapiSchema, pointer, span, message));
    }
}

/// The pointer to the member whose key stands at a place, or to the value there.
fn pointer_to(node: &Node<'_>, span: Span) -> Pointer {
    fn down(node: &Node<'_>, span: Span, path: Path<'_>) -> Pointer {
        let is_within = |outer: Span| outer.start <= span.start && span.end <= outer.end;
        for member in node.members() {
            let path = path.key(&member.key);
            if member.key_span == span {
                return path.pointer();
            }
            if is_within(member.value.span) {
                return down(&member.value, span, path);
            }
        }
        for (index, item) in node.items().iter().enumerate() {
            if is_within(item.span) {
                return down(item, span, path.index(index));
            }
        }
        path.pointer()
    }
    down(node, span, Path::ROOT)
}
