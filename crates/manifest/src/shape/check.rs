//! Holds a document against a shape and finds everything that does not fit.

use super::{
    Bounds, Branch, Choice, Field, List, Object, Presence, Rule, Shape, Text, Unknown, suggest,
};
use crate::finding::{Code, Finding, Findings, Severity};
use crate::json::{Node, Number, Path, Pointer, Span, Value};

/// What a look at the structure gives.
#[derive(Debug)]
pub struct Structure<'n, 't> {
    /// Everything that does not fit.
    pub(crate) findings: Findings,
    /// The JSON Schemas met on the way; they are checked by their own rules.
    pub schemas: Vec<SchemaSite<'n, 't>>,
}

/// A JSON Schema inside a document.
#[derive(Debug)]
pub struct SchemaSite<'n, 't> {
    /// Where it is.
    pub pointer: Pointer,
    /// The schema.
    pub node: &'n Node<'t>,
}

/// Holds a document against a shape.
pub fn check<'n, 't>(shape: &Shape, node: &'n Node<'t>) -> Structure<'n, 't> {
    let mut checker =
        Checker { found: Structure { findings: Findings::default(), schemas: Vec::new() } };
    checker.value(shape, node, Path::ROOT, None);
    checker.found
}

/// Holds a part of a document against a shape, and adds what does not fit to what was found before.
pub(crate) fn check_at(shape: &Shape, node: &Node<'_>, path: Path<'_>, findings: &mut Findings) {
    let found = Structure { findings: std::mem::take(findings), schemas: Vec::new() };
    let mut checker = Checker { found };
    checker.value(shape, node, path, None);
    *findings = checker.found.findings;
}

/// Fixed words for every fault beneath a field.
type Says = Option<(Code, &'static str)>;

struct Checker<'n, 't> {
    found: Structure<'n, 't>,
}

impl<'n, 't> Checker<'n, 't> {
    fn value(&mut self, shape: &Shape, node: &'n Node<'t>, path: Path<'_>, says: Says) {
        if self.found.findings.are_enough() {
            return;
        }
        match (shape, &node.value) {
            (Shape::Anything, _)
            | (Shape::Flag, Value::Bool(_))
            | (Shape::Nullable(_), Value::Null) => {}
            (Shape::Nullable(inner), _) => self.value(inner, node, path, says),
            (Shape::Ruled(inner), _) => {
                if !is_of_type(inner, node) {
                    self.wrong_type(inner, node, path, says);
                }
            }
            (Shape::Text(limits), Value::Text(text)) => {
                self.text(limits, text, node.span, path, says);
            }
            (Shape::Word(words), Value::Text(text)) => {
                if !words.contains(&text.as_ref()) {
                    self.bad_word(words, text, node.span, path, says);
                }
            }
            (Shape::Integer(bounds), Value::Number(number)) if number.is_integer() => {
                self.number(*bounds, *number, node.span, path, says);
            }
            (Shape::Number(bounds), Value::Number(number)) => {
                self.number(*bounds, *number, node.span, path, says);
            }
            (Shape::List(limits), Value::List(items)) => self.list(limits, items, node, path, says),
            (Shape::Object(object), Value::Object(_)) => {
                self.object(object, None, node, path, says);
            }
            (Shape::Map(inner), Value::Object(members)) => {
                for member in members {
                    self.value(inner, &member.value, path.key(&member.key), says);
                }
            }
            (Shape::Choice(choice), Value::Object(_)) => self.choice(choice, node, path, says),
            (Shape::Schema, Value::Object(_)) => {
                self.found.schemas.push(SchemaSite { pointer: path.pointer(), node });
            }
            _ => self.wrong_type(shape, node, path, says),
        }
    }

    fn text(&mut self, limits: &Text, text: &str, span: Span, path: Path<'_>, says: Says) {
        // Bytes are never fewer than characters, so most strings need no count.
        if text.len() < limits.min || (limits.min > 0 && text.chars().count() < limits.min) {
            let message = if limits.min == 1 {
                "must not be empty".to_owned()
            } else {
                format!("must have at least {} characters", limits.min)
            };
            self.say(Code::TooShort, path, span, says, message);
        }
        if let Some(max) = limits.max
            && text.len() > max
        {
            let length = text.chars().count();
            if length > max {
                let message = format!("has {length} characters; at most {max} are allowed");
                self.say(Code::TooLong, path, span, says, message);
            }
        }
        if let Some(pattern) = limits.pattern
            && !(pattern.matches)(text)
        {
            let message = format!("`{}` is no {}", clip(text), pattern.noun);
            let finding = Finding::new(pattern.code, path.pointer(), span, message);
            self.push(finding.help(format!("write {}", pattern.words)), says);
        }
        if let Some(format) = limits.format
            && !format.is_met_by(text)
        {
            let message = format!("`{}` is no {}", clip(text), format.noun());
            self.found.findings.push(Finding::new(Code::BadFormat, path.pointer(), span, message));
        }
    }

    fn bad_word(&mut self, words: &[&str], text: &str, span: Span, path: Path<'_>, says: Says) {
        let message = format!("`{}` is not allowed here", clip(text));
        let finding = Finding::new(Code::BadValue, path.pointer(), span, message);
        self.push(finding.help(did_you_mean(text, words)), says);
    }

    fn number(&mut self, bounds: Bounds, number: Number, span: Span, path: Path<'_>, says: Says) {
        let value = number.as_f64();
        let fault = match bounds {
            Bounds { min: Some(min), .. } if value < min => format!("must be at least {min}"),
            Bounds { max: Some(max), .. } if value > max => format!("must be at most {max}"),
            Bounds { above: Some(above), .. } if value <= above => {
                format!("must be greater than {above}")
            }
            _ => return,
        };
        self.say(Code::OutOfRange, path, span, says, fault);
    }

    fn list(
        &mut self,
        limits: &List,
        items: &'n [Node<'t>],
        node: &Node<'_>,
        path: Path<'_>,
        says: Says,
    ) {
        if items.len() < limits.min {
            let message = if limits.min == 1 {
                "must not be empty".to_owned()
            } else {
                format!("must have at least {} elements", limits.min)
            };
            self.say(Code::TooFew, path, node.span, says, message);
        }
        if let Some(max) = limits.max.filter(|max| items.len() > *max) {
            let message = format!("has {} elements; at most {max} are allowed", items.len());
            self.say(Code::TooMany, path, node.span.first_byte(), says, message);
        }
        for (index, item) in items.iter().enumerate() {
            self.value(&limits.item, item, path.index(index), says);
        }
    }

    /// Checks an object; `tag` is the deciding field when it is an alternative of a choice.
    fn object(
        &mut self,
        object: &Object,
        tag: Option<&str>,
        node: &'n Node<'t>,
        path: Path<'_>,
        says: Says,
    ) {
        for member in node.members() {
            let key = member.key.as_ref();
            if let Some(field) = object.fields.iter().find(|field| field.name == key) {
                self.value(&field.shape, &member.value, path.key(key), field.says.or(says));
            } else if Some(key) != tag {
                self.unknown_key(object, key, member.key_span, path, says);
            }
        }
        for field in &object.fields {
            if field.presence == Presence::Required && node.get(field.name).is_none() {
                self.missing(field, node, path, says);
            }
        }
        for rule in &object.rules {
            self.rule(rule, node, path);
        }
    }

    fn unknown_key(&mut self, object: &Object, key: &str, span: Span, path: Path<'_>, says: Says) {
        let severity = match object.unknown {
            Unknown::Allow => return,
            Unknown::Warn if is_annotation(key) => return,
            Unknown::Warn => Severity::Warning,
            Unknown::Refuse => Severity::Error,
        };
        // To word a finding and look for what was meant costs more than to see that there is one.
        if self.found.findings.is_beyond(severity) {
            return;
        }
        let names: Vec<_> = object.fields.iter().map(|field| field.name).collect();
        let ignored = if severity == Severity::Warning { "; it is ignored" } else { "" };
        let message = format!("`{}` is not a field {}{ignored}", clip(key), of(path));
        let mut finding = Finding::new(Code::UnknownField, path.key(key).pointer(), span, message)
            .help(did_you_mean(key, &names));
        finding.severity = severity;
        let says = if severity == Severity::Error { says } else { None };
        self.push(finding, says);
    }

    fn missing(&mut self, field: &Field, node: &Node<'_>, path: Path<'_>, says: Says) {
        let message = format!("the field `{}` {} is missing", field.name, of(path));
        let finding =
            Finding::new(Code::MissingField, path.pointer(), node.span.first_byte(), message);
        self.push(finding.help(format!("`{}`: {}", field.name, field.about)), says);
    }

    fn choice(&mut self, choice: &Choice, node: &'n Node<'t>, path: Path<'_>, says: Says) {
        let names: Vec<_> = choice.branches.iter().map(|branch| branch.name).collect();
        let branch = match node.member(choice.tag) {
            Some(member) => match member.value.as_text() {
                Some(text) => match named(choice, text) {
                    Some(branch) => Some(branch),
                    None => {
                        self.bad_word(&names, text, member.value.span, path.key(choice.tag), says);
                        suggest(text, names.iter().copied())
                            .and_then(|name| named(choice, name))
                            .or_else(|| meant(choice, node))
                    }
                },
                None => {
                    self.wrong_type(
                        &Shape::Word(Vec::new()),
                        &member.value,
                        path.key(choice.tag),
                        says,
                    );
                    meant(choice, node)
                }
            },
            None => {
                let message = format!("the field `{}` {} is missing", choice.tag, of(path));
                let help = format!("`{}` is one of {}", choice.tag, quoted(&names));
                let pointer = path.pointer();
                let span = node.span.first_byte();
                let finding = Finding::new(Code::MissingField, pointer, span, message);
                self.push(finding.help(help), says);
                meant(choice, node)
            }
        };
        if let Some(branch) = branch {
            self.object(&branch.object, Some(choice.tag), node, path, says);
        }
    }

    fn rule(&mut self, rule: &Rule, node: &Node<'_>, path: Path<'_>) {
        let has = |name: &&str| node.get(name).is_some();
        match rule {
            Rule::ExactlyOne(names) => match names.iter().filter(|name| has(name)).count() {
                1 => {}
                0 => {
                    let message = format!("one of {} is needed {}", quoted(names), of(path));
                    self.say(Code::MissingField, path, node.span.first_byte(), None, message);
                }
                _ => self.conflict(names, node, path),
            },
            Rule::Excludes(name, others) => {
                if has(name)
                    && let Some(other) = others.iter().find(|other| has(other))
                {
                    self.conflict(&[name, other], node, path);
                }
            }
            Rule::AnyOf(names, code, message) => {
                let is_filled = |name: &&str| match node.get(name).map(|value| &value.value) {
                    Some(Value::List(items)) => !items.is_empty(),
                    value => value.is_some(),
                };
                if !names.iter().any(is_filled) {
                    let span = node.span.first_byte();
                    self.say(*code, path, span, None, (*message).to_owned());
                }
            }
            Rule::Needs(field, word, other) => {
                if node.text_at(field) == Some(word) && !has(other) {
                    let message = format!("`{field}` is `{word}`, which needs `{other}`");
                    self.say(Code::MissingField, path, node.span.first_byte(), None, message);
                }
            }
            Rule::NeedsList { path: keys, among, field, code } => {
                let Some(word) = node.at(keys).and_then(Node::as_text) else { return };
                let is_filled = match node.get(field).map(|list| &list.value) {
                    Some(Value::List(items)) => !items.is_empty(),
                    // Another type is told as such.
                    Some(_) => true,
                    None => false,
                };
                if among.contains(&word) && !is_filled {
                    let keys = keys.join(".");
                    let message = format!("`{keys}` is `{word}`, which needs `{field}`");
                    let span = node.get(field).unwrap_or(node).span.first_byte();
                    let help = format!(
                        "add `{field}` with at least one entry: the format has a `{word}` say what it offers"
                    );
                    let finding = Finding::new(*code, path.pointer(), span, message);
                    self.push(finding.help(help), None);
                }
            }
        }
    }

    fn conflict(&mut self, names: &[&str], node: &Node<'_>, path: Path<'_>) {
        let present: Vec<_> = names.iter().filter_map(|name| node.member(name)).collect();
        let keys: Vec<_> = present.iter().map(|member| member.key.as_ref()).collect();
        let last = present.last().expect("a conflict is between fields that are there");
        let message = format!("{} exclude each other", quoted(&keys));
        let finding = Finding::new(
            Code::ConflictingFields,
            path.key(&last.key).pointer(),
            last.key_span,
            message,
        );
        self.push(finding.help("keep one of them"), None);
    }

    fn wrong_type(&mut self, shape: &Shape, node: &Node<'_>, path: Path<'_>, says: Says) {
        let found = match node.type_name() {
            "null" => "null",
            "boolean" => "a boolean",
            "number" if matches!(shape, Shape::Integer(_)) => "a fraction",
            "number" => "a number",
            "string" => "a string",
            "array" => "an array",
            _ => "an object",
        };
        let message = format!("must be {}, not {found}", shape.type_words());
        self.say(Code::WrongType, path, node.span, says, message);
    }

    fn say(&mut self, code: Code, path: Path<'_>, span: Span, says: Says, message: String) {
        self.push(Finding::new(code, path.pointer(), span, message), says);
    }

    fn push(&mut self, mut finding: Finding, says: Says) {
        if let Some((code, message)) = says {
            let detail = std::mem::replace(&mut finding.message, message.to_owned());
            finding.help = Some(finding.help.unwrap_or(detail));
            finding.code = code;
        }
        self.found.findings.push(finding);
    }
}

fn is_of_type(shape: &Shape, node: &Node<'_>) -> bool {
    match (shape, &node.value) {
        (Shape::Nullable(_), Value::Null) => true,
        (Shape::Nullable(inner) | Shape::Ruled(inner), _) => is_of_type(inner, node),
        (Shape::List(limits), Value::List(items)) => {
            items.iter().all(|item| is_of_type(&limits.item, item))
        }
        (Shape::Anything, _)
        | (Shape::Text(_) | Shape::Word(_), Value::Text(_))
        | (Shape::Flag, Value::Bool(_))
        | (Shape::Number(_), Value::Number(_))
        | (Shape::Object(_) | Shape::Map(_) | Shape::Choice(_) | Shape::Schema, Value::Object(_)) => {
            true
        }
        (Shape::Integer(_), Value::Number(number)) => number.is_integer(),
        _ => false,
    }
}

fn named<'c>(choice: &'c Choice, name: &str) -> Option<&'c Branch> {
    choice.branches.iter().find(|branch| branch.name == name)
}

/// The alternative whose fields are most like those that were written.
fn meant<'c>(choice: &'c Choice, node: &Node<'_>) -> Option<&'c Branch> {
    let likeness = |branch: &&Branch| {
        branch.object.fields.iter().filter(|field| node.get(field.name).is_some()).count()
    };
    let best = choice.branches.iter().max_by_key(likeness)?;
    let most = likeness(&best);
    let is_only_one = choice.branches.iter().filter(|branch| likeness(branch) == most).count() == 1;
    (most > 0 && is_only_one).then_some(best)
}

/// Keys by which authors and editors leave notes that no reader minds.
fn is_annotation(key: &str) -> bool {
    key.starts_with(['$', '_']) || key.starts_with("x-") || key.starts_with("//")
}

fn of(path: Path<'_>) -> String {
    let pointer = path.pointer();
    if pointer.as_str().is_empty() {
        "of the document".to_owned()
    } else {
        format!("of `{}`", clip(pointer.as_str()))
    }
}

fn did_you_mean(word: &str, candidates: &[&str]) -> String {
    match suggest(word, candidates.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if candidates.is_empty() => "nothing is allowed here".to_owned(),
        None => format!("allowed: {}", quoted(candidates)),
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// A text short enough for a message.
pub fn clip(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}
