//! Whether a schema is valid JSON Schema 2020-12 that we are willing to run.

use std::collections::HashSet;

use super::keywords::{KEYWORDS, Kind, TYPES, kind};
use super::refs::{Home, Refs, Target};
use super::{Budget, MAX_BYTES, MAX_SUBSCHEMAS, check_regex, cost, instance, quick};
use crate::finding::{Code, Finding, Severity};
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
        refs: &refs,
        findings: Vec::new(),
        subschemas: 0,
        defaults: Vec::new(),
    };
    checker.schema(schema, Home::ROOT, Path::ROOT);
    let Checker { mut findings, subschemas, defaults, .. } = checker;
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

struct Checker<'c, 'n, 't> {
    base: &'c Pointer,
    budget: &'c Budget,
    refs: &'c Refs<'n, 't>,
    findings: Vec<Finding>,
    subschemas: usize,
    defaults: Vec<Default<'n, 't>>,
}

impl<'n, 't> Checker<'_, 'n, 't> {
    fn schema(&mut self, schema: &'n Node<'t>, home: Home, path: Path<'_>) {
        self.subschemas += 1;
        if self.subschemas > MAX_SUBSCHEMAS {
            return;
        }
        let members = match &schema.value {
            Value::Bool(_) => return,
            Value::Object(members) => members,
            _ => {
                let message = "a schema must be an object, true or false";
                return self.bad(path, schema.span, message);
            }
        };
        let home = self.refs.home_of(schema, home);
        for member in members {
            let keyword = member.key.as_ref();
            let path = path.key(keyword);
            match kind(keyword) {
                Some(kind) => self.keyword(kind, keyword, &member.value, home, path),
                None => self.unknown_keyword(keyword, member.key_span, path),
            }
            if keyword == "default" {
                let pointer = path.pointer();
                self.defaults.push(Default { pointer, schema, value: &member.value });
            }
        }
    }

    #[expect(clippy::too_many_lines, reason = "a table reads better in one piece")]
    fn keyword(&mut self, kind: Kind, name: &str, value: &'n Node<'t>, home: Home, path: Path<'_>) {
        match (kind, &value.value) {
            (Kind::Any, _) | (Kind::Flag, Value::Bool(_)) | (Kind::List, Value::List(_)) => {}
            (Kind::Schema, Value::List(_)) if name == "items" => {
                self.bad(
                    path,
                    value.span,
                    "`items` must be one schema; a list of them is `prefixItems` since 2020-12",
                );
            }
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
            (Kind::Regex, Value::Text(text)) => self.regex(text, value.span, path),
            (Kind::Ref, Value::Text(text)) => self.reference(text, value.span, home, path),
            (Kind::Id, Value::Text(text)) => {
                if text.strip_suffix('#').unwrap_or(text).contains('#') {
                    self.bad(path, value.span, "`$id` must not have a fragment");
                } else if let Some(fault) = self.refs.fault_of(value) {
                    self.bad(path, value.span, fault);
                }
            }
            (Kind::Anchor, Value::Text(text)) => {
                let mut bytes = text.bytes();
                let begins = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
                if !begins || !bytes.all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
                    self.bad(path, value.span, format!("`{name}` must be a plain name"));
                } else if let Some(fault) = self.refs.fault_of(value) {
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
            let finding = self.finding(Code::BadRegex, path, span, reason.to_string());
            self.findings.push(finding);
        }
    }

    fn reference(&mut self, text: &str, span: Span, home: Home, path: Path<'_>) {
        const HELP: &str =
            "put the part under `$defs` of this schema and refer to it as `#/$defs/name`";
        let finding = match self.refs.resolve(text, home) {
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
        if !is_current {
            let message =
                format!("`{text}` is not 2020-12; the schema is read as 2020-12 all the same");
            let finding = self.finding(Code::OtherDraft, path, span, message);
            self.findings.push(finding);
        }
    }

    /// Schemas may carry other people's keywords; one that looks mistyped is worth a word.
    fn unknown_keyword(&mut self, name: &str, span: Span, path: Path<'_>) {
        if name.starts_with("x-") || name.len() < 4 || instance::is_known_annotation(name) {
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
        Kind::NamesMap => "an object of lists",
        Kind::Flags => "an object",
        Kind::Any => "any value",
    }
}
