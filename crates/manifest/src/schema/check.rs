//! Whether a schema is valid JSON Schema 2020-12 that we are willing to run.

use std::collections::HashSet;

use super::keywords::{KEYWORDS, Kind, TYPES, Words};
use super::refs::{Home, Refs, Target};
use super::{Budget, MAX_BYTES, MAX_SUBSCHEMAS, check_regex, cost, instance, quick};
use crate::finding::{Code, Finding, Findings, Severity};
use crate::json::{Node, Path, Pointer, Span, Value};
use crate::shape::{clip, suggest};

/// Finds everything wrong with the schema that stands at `base` in its document.
pub fn check(schema: &Node<'_>, base: &Pointer, budget: &Budget) -> Vec<Finding> {
    let size = schema.span.range().len();
    if size > MAX_BYTES {
        let message = format!("the schema has {size} bytes; at most {MAX_BYTES} are allowed");
        let span = schema.span.first_byte();
        return vec![Finding::new(Code::SchemaTooLarge, base.clone(), span, message)];
    }
    let refs = Refs::of(schema);
    let mut checker = Checker {
        base,
        budget,
        words: Words::Draft2020,
        around: Around::Nothing(&refs),
        findings: Findings::default(),
        subschemas: 0,
        defaults: Vec::new(),
    };
    checker.schema(schema, Home::ROOT, Path::ROOT);
    let Checker { findings, subschemas, defaults, .. } = checker;
    let (mut findings, _) = findings.into_list();
    if subschemas > MAX_SUBSCHEMAS {
        let message =
            format!("the schema has {subschemas} subschemas; at most {MAX_SUBSCHEMAS} are allowed");
        let span = schema.span.first_byte();
        findings.push(Finding::new(Code::SchemaTooLarge, base.clone(), span, message));
        return findings;
    }
    let is_sound = !findings.iter().any(|finding| finding.severity == Severity::Error);
    if refs.are_used()
        && let Some(cost) = cost::find(schema, &refs)
    {
        let span = schema.span.first_byte();
        findings.push(Finding::new(Code::SchemaTooCostly, base.clone(), span, cost.message()));
        return findings;
    }
    if is_sound && refs.are_used() && !refs.are_plain() {
        findings.extend(compile(schema, base));
    }
    if is_sound && findings.is_empty() && refs.are_in_one_resource() {
        findings.extend(defaults.into_iter().filter_map(|default| default.judge(base, schema)));
    }
    findings
}

/// The document that a schema is a part of: its references lead into it.
pub(crate) trait Surroundings<'n> {
    /// What is wrong with a reference that stands in the resource `home`.
    fn fault(&mut self, reference: &'n str, home: Home) -> Option<Fault>;
}

/// What is wrong with a reference.
#[derive(Debug)]
pub(crate) struct Fault {
    /// What kind of thing.
    pub(crate) code: Code,
    /// What is wrong, naming the reference.
    pub(crate) message: String,
    /// How to mend it.
    pub(crate) help: &'static str,
}

/// Finds what is wrong with a schema that is a part of a document and is never run by us.
///
/// The document bounds its size, so it has no limits of its own; a pattern in another flavour of
/// regular expression is only a warning.
pub(crate) fn check_part<'n>(
    schema: &'n Node<'_>,
    path: Path<'_>,
    words: Words,
    budget: &Budget,
    document: &mut dyn Surroundings<'n>,
    findings: &mut Findings,
) {
    let mut checker = Checker {
        base: &Pointer::root(),
        budget,
        words,
        around: Around::Document(document),
        findings: std::mem::take(findings),
        subschemas: 0,
        defaults: Vec::new(),
    };
    checker.schema(schema, Home::ROOT, path);
    *findings = checker.findings;
}

/// What the careful look could miss about references, the library that will run the schema says.
fn compile(schema: &Node<'_>, base: &Pointer) -> Option<Finding> {
    let error = instance::validator(schema).err()?;
    let span = schema.span.first_byte();
    let message = format!("the schema does not compile: {}", clip(&error));
    Some(Finding::new(Code::BadSchema, base.clone(), span, message))
}

/// A default and the schema it stands in.
struct Default<'n, 't> {
    pointer: Pointer,
    schema: &'n Node<'t>,
    value: &'n Node<'t>,
}

impl Default<'_, '_> {
    fn judge(self, base: &Pointer, root: &Node<'_>) -> Option<Finding> {
        let fits = quick::satisfies(self.schema, self.value, root).unwrap_or(true);
        (!fits).then(|| {
            let pointer = self.pointer.beneath(base);
            let message = "the default does not satisfy the schema it stands in";
            Finding::new(Code::DefaultMismatch, pointer, self.value.span, message)
        })
    }
}

/// Where the references of a schema lead.
enum Around<'c, 'n, 't> {
    /// Into the schema itself.
    Nothing(&'c Refs<'n, 't>),
    /// Into the document it is a part of.
    Document(&'c mut dyn Surroundings<'n>),
}

struct Checker<'c, 'n, 't> {
    base: &'c Pointer,
    budget: &'c Budget,
    words: Words,
    around: Around<'c, 'n, 't>,
    findings: Findings,
    subschemas: usize,
    defaults: Vec<Default<'n, 't>>,
}

impl<'n, 't> Checker<'_, 'n, 't> {
    fn schema(&mut self, schema: &'n Node<'t>, home: Home, path: Path<'_>) {
        self.subschemas += 1;
        if self.is_done() {
            return;
        }
        let members = match &schema.value {
            Value::Bool(_) if self.words == Words::Draft2020 => return,
            Value::Object(members) => members,
            _ => {
                let message = match self.words {
                    Words::Draft2020 => "a schema must be an object, true or false",
                    Words::OpenApi30 => "a schema must be an object",
                };
                return self.bad(path, schema.span, message);
            }
        };
        let home = match &self.around {
            Around::Nothing(refs) => refs.home_of(schema, home),
            Around::Document(_) if schema.text_at("$id").is_some() => Home::WITHIN,
            Around::Document(_) => home,
        };
        let is_reference = self.words == Words::OpenApi30 && schema.get("$ref").is_some();
        for member in members {
            let keyword = member.key.as_ref();
            // What stands beside a reference was not read before 3.1.
            if is_reference && keyword != "$ref" {
                continue;
            }
            let path = path.key(keyword);
            match self.words.kind(keyword) {
                Some(kind) => self.keyword(kind, keyword, &member.value, home, path),
                None => self.unknown_keyword(keyword, member.key_span, path),
            }
            if keyword == "default" && matches!(self.around, Around::Nothing(_)) {
                let pointer = path.pointer();
                self.defaults.push(Default { pointer, schema, value: &member.value });
            }
        }
    }

    /// Whether looking further tells nothing new.
    fn is_done(&self) -> bool {
        match self.around {
            Around::Nothing(_) => self.subschemas > MAX_SUBSCHEMAS,
            Around::Document(_) => self.findings.are_enough(),
        }
    }

    #[expect(clippy::too_many_lines, reason = "a table reads better in one piece")]
    fn keyword(&mut self, kind: Kind, name: &str, value: &'n Node<'t>, home: Home, path: Path<'_>) {
        match (kind, &value.value) {
            (Kind::Any, _) | (Kind::Flag, Value::Bool(_)) | (Kind::List, Value::List(_)) => {}
            (Kind::Schema, Value::List(_)) if name == "items" => {
                let message = match self.words {
                    Words::Draft2020 => {
                        "`items` must be one schema; a list of them is `prefixItems` since 2020-12"
                    }
                    Words::OpenApi30 => "`items` must be one schema",
                };
                self.bad(path, value.span, message);
            }
            (Kind::Schema, Value::Bool(_))
                if name == "additionalProperties" && self.words == Words::OpenApi30 => {}
            (Kind::Schema, _) => self.schema(value, home, path),
            (Kind::Schemas, Value::List(items)) => {
                if items.is_empty() {
                    self.bad(path, value.span, format!("`{name}` must not be empty"));
                }
                for (index, item) in items.iter().enumerate() {
                    self.schema(item, home, path.index(index));
                }
            }
            (Kind::SchemaMap, Value::Object(members)) => {
                for member in members {
                    self.schema(&member.value, home, path.key(&member.key));
                }
            }
            (Kind::PatternMap, Value::Object(members)) => {
                for member in members {
                    let path = path.key(&member.key);
                    self.regex(&member.key, member.key_span, path);
                    self.schema(&member.value, home, path);
                }
            }
            (Kind::Dependencies, Value::Object(members)) => {
                for member in members {
                    let path = path.key(&member.key);
                    match &member.value.value {
                        Value::List(_) => self.names(name, &member.value, path),
                        _ => self.schema(&member.value, home, path),
                    }
                }
            }
            (Kind::Count, _) => {
                let is_count = value
                    .as_number()
                    .is_some_and(|number| number.is_integer() && number.as_f64() >= 0.0);
                if !is_count {
                    self.bad(
                        path,
                        value.span,
                        format!("`{name}` must be a whole number, not negative"),
                    );
                }
            }
            (Kind::Number, Value::Number(_)) => {}
            (Kind::Positive, Value::Number(number)) => {
                if number.as_f64() <= 0.0 {
                    self.bad(path, value.span, format!("`{name}` must be above zero"));
                }
            }
            (Kind::Text, Value::Text(text)) => {
                if name == "$schema" {
                    self.draft(text, value.span, path);
                }
            }
            (Kind::Names, Value::List(_)) => self.names(name, value, path),
            (Kind::NamesMap, Value::Object(members)) => {
                for member in members {
                    self.names(name, &member.value, path.key(&member.key));
                }
            }
            (Kind::Types, _) => self.types(value, path),
            (Kind::Type, Value::Text(text)) if text == "null" => {
                let message = "`null` is no type in OpenAPI 3.0; `nullable` allows it";
                self.bad(path, value.span, message);
            }
            (Kind::Type, Value::Text(text)) => self.type_name(text, value.span, path),
            (Kind::Type, Value::List(_)) => {
                let message = "`type` must be one type in OpenAPI 3.0; `nullable` allows null";
                self.bad(path, value.span, message);
            }
            (Kind::Regex, Value::Text(text)) => self.regex(text, value.span, path),
            (Kind::Ref, Value::Text(text)) => self.reference(text, value.span, home, path),
            (Kind::Id, Value::Text(text)) => {
                if text.strip_suffix('#').unwrap_or(text).contains('#') {
                    self.bad(path, value.span, "`$id` must not have a fragment");
                } else if let Some(fault) = self.fault_of(value) {
                    self.bad(path, value.span, fault);
                }
            }
            (Kind::Anchor, Value::Text(text)) => {
                let mut bytes = text.bytes();
                let begins = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
                if !begins || !bytes.all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
                    self.bad(path, value.span, format!("`{name}` must be a plain name"));
                } else if let Some(fault) = self.fault_of(value) {
                    self.bad(path, value.span, fault);
                }
            }
            (Kind::Flags, Value::Object(members)) => {
                for member in members {
                    if member.value.as_bool().is_none() {
                        self.bad(
                            path,
                            member.value.span,
                            format!("`{name}` must hold true or false"),
                        );
                    }
                }
            }
            _ => self.bad(
                path,
                value.span,
                format!("`{name}` must be {}, not {}", words(kind), value.type_name()),
            ),
        }
    }

    fn fault_of(&self, value: &Node<'_>) -> Option<&'static str> {
        match &self.around {
            Around::Nothing(refs) => refs.fault_of(value),
            Around::Document(_) => None,
        }
    }

    fn names(&mut self, name: &str, value: &Node<'_>, path: Path<'_>) {
        let mut seen = HashSet::new();
        let is_set = matches!(value.value, Value::List(_))
            && value
                .items()
                .iter()
                .all(|item| item.as_text().is_some_and(|text| seen.insert(text)));
        if !is_set {
            let mut message = format!("`{name}` must be a list of different names");
            if name == "required" && value.as_bool().is_some() {
                message.push_str("; it belongs to the object, not to its property");
            }
            self.bad(path, value.span, message);
        }
    }

    fn types(&mut self, value: &Node<'_>, path: Path<'_>) {
        match &value.value {
            Value::Text(text) => self.type_name(text, value.span, path),
            Value::List(items) if !items.is_empty() => {
                let mut seen = HashSet::new();
                for (index, item) in items.iter().enumerate() {
                    match item.as_text() {
                        Some(text) if !seen.insert(text) => {
                            self.bad(
                                path.index(index),
                                item.span,
                                format!("`{text}` appears twice"),
                            );
                        }
                        Some(text) => self.type_name(text, item.span, path.index(index)),
                        None => self.bad(path.index(index), item.span, "a type must be a string"),
                    }
                }
            }
            _ => self.bad(path, value.span, "`type` must be a type, or a list of types"),
        }
    }

    fn type_name(&mut self, text: &str, span: Span, path: Path<'_>) {
        if TYPES.contains(&text) {
            return;
        }
        let finding =
            self.finding(Code::BadSchema, path, span, format!("`{text}` is no JSON Schema type"));
        let help = match suggest(text, TYPES) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("allowed: {}", TYPES.map(|name| format!("`{name}`")).join(", ")),
        };
        self.findings.push(finding.help(help));
    }

    fn regex(&mut self, pattern: &str, span: Span, path: Path<'_>) {
        if let Err(reason) = check_regex(pattern, self.budget) {
            let mut finding = self.finding(Code::BadRegex, path, span, reason.to_string());
            if matches!(self.around, Around::Document(_)) {
                finding.severity = Severity::Warning;
            }
            self.findings.push(finding);
        }
    }

    fn reference(&mut self, text: &'n str, span: Span, home: Home, path: Path<'_>) {
        const HELP: &str =
            "put the part under `$defs` of this schema and refer to it as `#/$defs/name`";
        let refs = match &mut self.around {
            Around::Nothing(refs) => refs,
            Around::Document(document) => {
                if let Some(Fault { code, message, help }) = document.fault(text, home) {
                    let finding = self.finding(code, path, span, message).help(help);
                    self.findings.push(finding);
                }
                return;
            }
        };
        let finding = match refs.resolve(text, home) {
            Target::Found(..) => return,
            Target::NotASchema => {
                let message = format!("`{text}` leads to something that is no schema");
                self.finding(Code::UnresolvedRef, path, span, message).help(HELP)
            }
            Target::Missing => {
                let message = format!("`{text}` leads nowhere in this schema");
                self.finding(Code::UnresolvedRef, path, span, message).help(HELP)
            }
            Target::Remote => {
                let message = format!("`{text}` lies outside the document and is never fetched");
                self.finding(Code::RemoteRef, path, span, message)
                    .help("copy the schema it means under `$defs`")
            }
        };
        self.findings.push(finding);
    }

    fn draft(&mut self, text: &str, span: Span, path: Path<'_>) {
        let is_current =
            text.trim_end_matches('#').ends_with("json-schema.org/draft/2020-12/schema");
        // The base dialect of OpenAPI 3.1 is 2020-12 with a few annotations.
        let is_base = text.contains("spec.openapis.org/oas/3.1/dialect/")
            && matches!(self.around, Around::Document(_));
        if !is_current && !is_base {
            let message =
                format!("`{text}` is not 2020-12; the schema is read as 2020-12 all the same");
            let finding = self.finding(Code::OtherDraft, path, span, message);
            self.findings.push(finding);
        }
    }

    /// Schemas may carry other people's keywords; one that looks mistyped is worth a word.
    fn unknown_keyword(&mut self, name: &str, span: Span, path: Path<'_>) {
        if name.starts_with("x-") {
            return;
        }
        if self.words == Words::OpenApi30 {
            if self.findings.is_beyond(Severity::Warning) {
                return;
            }
            let message =
                format!("`{}` is no keyword of OpenAPI 3.0 schemas; it is ignored", clip(name));
            let mut finding = self.finding(Code::UnknownField, path, span, message);
            finding.severity = Severity::Warning;
            return self.findings.push(finding);
        }
        if name.len() < 4 || instance::is_known_annotation(name) {
            return;
        }
        if let Some(near) = suggest(name, KEYWORDS.iter().copied()) {
            let message = format!("`{name}` is no keyword of JSON Schema; it is ignored");
            let mut finding = self.finding(Code::UnknownField, path, span, message);
            finding.severity = Severity::Warning;
            self.findings.push(finding.help(format!("did you mean `{near}`?")));
        }
    }

    fn bad(&mut self, path: Path<'_>, span: Span, message: impl Into<String>) {
        let finding = self.finding(Code::BadSchema, path, span, message);
        self.findings.push(finding);
    }

    fn finding(
        &self,
        code: Code,
        path: Path<'_>,
        span: Span,
        message: impl Into<String>,
    ) -> Finding {
        Finding::new(code, path.pointer().beneath(self.base), span, message)
    }
}

fn words(kind: Kind) -> &'static str {
    match kind {
        Kind::Schema => "a schema",
        Kind::Schemas => "a list of schemas",
        Kind::SchemaMap | Kind::PatternMap | Kind::Dependencies => "an object of schemas",
        Kind::Count | Kind::Number | Kind::Positive => "a number",
        Kind::Flag => "true or false",
        Kind::Text | Kind::Regex | Kind::Ref | Kind::Id | Kind::Anchor => "a string",
        Kind::Names | Kind::Types | Kind::List => "a list",
        Kind::Type => "a type",
        Kind::NamesMap => "an object of lists",
        Kind::Flags => "an object",
        Kind::Any => "any value",
    }
}
