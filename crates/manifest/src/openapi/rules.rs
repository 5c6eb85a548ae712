//! What the parts of a document must hold beyond their tables.

use std::collections::HashSet;

use super::lookup::Lead;
use super::parts::Kind;
use super::walk::Walk;
use super::{METHODS, Version, paths};
use crate::finding::{Code, Finding, Severity};
use crate::json::{Member, Node, Path, Value};
use crate::shape::{clip, suggest};

/// How many near names are looked for, and among how many: it costs more than to see that a name is
/// not there.
const MAX_SUGGESTIONS: usize = 100;

/// How many variables that are not declared are told of one server.
const MAX_MISSING: usize = 100;

impl<'n, 't> Walk<'_, 'n, 't> {
    /// Holds a part against the rules of its kind.
    pub(super) fn rules(&mut self, kind: Kind, node: &'n Node<'t>, path: Path<'_>) {
        match kind {
            Kind::Components => self.component_names(node, path),
            Kind::Paths => paths::check(self, node, path),
            Kind::PathItem => self.parameters_differ(node, path),
            Kind::Operation => {
                self.operation_id(node, path);
                self.parameters_differ(node, path);
            }
            Kind::Parameter => {
                self.path_parameter(node, path);
                self.one_content(node, path);
            }
            Kind::Header => self.one_content(node, path),
            Kind::Responses => self.responses(node, path),
            Kind::Server => self.server(node, path),
            Kind::Variable => self.variable(node, path),
            Kind::Requirement => self.requirement(node, path),
            Kind::Link => self.link(node, path),
            _ => {}
        }
    }

    fn component_names(&mut self, node: &Node<'_>, path: Path<'_>) {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        for section in node.members().iter().filter(|member| !is_extension(member)) {
            for Member { key, key_span, .. } in section.value.members() {
                if (key.is_empty() || !key.bytes().all(is_allowed)) && !self.is_done() {
                    let message = format!("`{}` is no name of a component", clip(key));
                    let pointer = path.key(&section.key).key(key).pointer();
                    let finding = Finding::new(Code::BadPattern, pointer, *key_span, message);
                    self.push(finding.help("write letters, digits, `.`, `_` and `-`"));
                }
            }
        }
    }

    fn operation_id(&mut self, node: &'n Node<'t>, path: Path<'_>) {
        let Some(id) = node.get("operationId") else { return };
        if let Some(text) = id.as_text()
            && !self.operations.insert(text)
        {
            let message = format!("two operations have the id `{}`", clip(text));
            self.say(Code::DuplicateOperation, path.key("operationId"), id.span, message);
        }
    }

    /// No two parameters of one list have the same name and place.
    fn parameters_differ(&mut self, node: &'n Node<'t>, path: Path<'_>) {
        let mut seen = HashSet::new();
        for (index, entry) in node.list_at("parameters").iter().enumerate() {
            let Some(parameter) = self.document.settled(entry) else { continue };
            let (Some(name), Some(place)) = (parameter.text_at("name"), parameter.text_at("in"))
            else {
                continue;
            };
            if !seen.insert((name, place)) && !self.is_done() {
                let message = format!("two parameters are called `{}` in `{place}`", clip(name));
                let list = path.key("parameters");
                let span = entry.span.first_byte();
                self.say(Code::DuplicateParameter, list.index(index), span, message);
            }
        }
    }

    fn path_parameter(&mut self, node: &Node<'_>, path: Path<'_>) {
        if node.text_at("in") != Some("path") {
            return;
        }
        let name = clip(node.text_at("name").unwrap_or_default()).into_owned();
        match node.get("required") {
            None => {
                let message = format!("the path parameter `{name}` needs `required`");
                let pointer = path.pointer();
                let span = node.span.first_byte();
                let finding = Finding::new(Code::MissingField, pointer, span, message);
                self.push(finding.help("add `\"required\": true`"));
            }
            Some(flag) if flag.as_bool() == Some(false) => {
                let message = format!("the path parameter `{name}` cannot be left out");
                let pointer = path.key("required").pointer();
                let finding = Finding::new(Code::BadValue, pointer, flag.span, message);
                self.push(finding.help("write `true`"));
            }
            Some(_) => {}
        }
    }

    fn one_content(&mut self, node: &Node<'_>, path: Path<'_>) {
        let Some(content) = node.get("content").filter(|content| content.is_object()) else {
            return;
        };
        let code = match content.members().len() {
            0 => Code::TooFew,
            1 => return,
            _ => Code::TooMany,
        };
        let message = "must have exactly one media type".to_owned();
        self.say(code, path.key("content"), content.span.first_byte(), message);
    }

    fn responses(&mut self, node: &Node<'_>, path: Path<'_>) {
        if !node.is_object() {
            return;
        }
        let mut count = 0;
        for member in node.members().iter().filter(|member| !is_extension(member)) {
            count += 1;
            if !is_status(&member.key) && !self.is_done() {
                let message = format!("`{}` is no status", clip(&member.key));
                let pointer = path.key(&member.key).pointer();
                let finding = Finding::new(Code::BadPattern, pointer, member.key_span, message);
                self.push(finding.help("write `200`, `2XX` or `default`"));
            }
        }
        if count == 0 {
            let message = "must have at least one response".to_owned();
            self.say(Code::TooFew, path, node.span.first_byte(), message);
        }
    }

    fn server(&mut self, node: &Node<'_>, path: Path<'_>) {
        let Some(url) = node.get("url") else { return };
        let Some(text) = url.as_text() else { return };
        let Ok(variables) = paths::variables(text) else {
            let message = format!("the braces of `{}` do not match", clip(text));
            return self.say(Code::UndeclaredVariable, path.key("url"), url.span, message);
        };
        let declared = node.get("variables").map(Node::members).unwrap_or_default();
        let declared: HashSet<&str> = declared.iter().map(|member| member.key.as_ref()).collect();
        let mut missing: Vec<_> = variables.difference(&declared).collect();
        missing.sort();
        for name in missing.into_iter().take(MAX_MISSING) {
            let message = format!("`{{{}}}` is used, but `variables` does not have it", clip(name));
            self.say(Code::UndeclaredVariable, path.key("url"), url.span, message);
        }
    }

    fn variable(&mut self, node: &Node<'_>, path: Path<'_>) {
        let (Some(default), Some(allowed)) = (node.get("default"), node.get("enum")) else {
            return;
        };
        let Some(text) = default.as_text() else { return };
        let is_among = allowed.items().iter().any(|item| item.as_text() == Some(text));
        if !is_among && !allowed.items().is_empty() {
            let message = format!("`{}` is not among what the variable may be", clip(text));
            let pointer = path.key("default").pointer();
            let mut finding = Finding::new(Code::BadValue, pointer, default.span, message);
            if self.document.version == Version::V3_0 {
                finding.severity = Severity::Warning;
            }
            self.push(finding);
        }
    }

    fn requirement(&mut self, node: &Node<'_>, path: Path<'_>) {
        for member in node.members() {
            let name = member.key.as_ref();
            if self.document.schemes.contains(name) || self.is_done() {
                continue;
            }
            let message = format!("there is no security scheme `{}`", clip(name));
            let pointer = path.key(name).pointer();
            let finding = Finding::new(Code::UndeclaredSecurity, pointer, member.key_span, message);
            self.suggestions += 1;
            let schemes = self.document.schemes.iter().copied();
            let schemes = schemes.take(MAX_SUGGESTIONS.saturating_sub(self.suggestions));
            let help = match suggest(name, schemes) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "declare it under `components.securitySchemes`".to_owned(),
            };
            self.push(finding.help(help));
        }
    }

    fn link(&mut self, node: &Node<'_>, path: Path<'_>) {
        if let Some(id) = node.get("operationId")
            && let Some(text) = id.as_text()
            && !self.document.operations.contains(text)
        {
            let message = format!("there is no operation `{}`", clip(text));
            self.say(Code::UnresolvedRef, path.key("operationId"), id.span, message);
        }
        if let Some(reference) = node.get("operationRef")
            && let Some(text) = reference.as_text()
            && text.starts_with('#')
            && !matches!(self.document.lead(text), Lead::Part(Kind::Operation, _))
        {
            let message = format!("`{}` leads to no operation", clip(text));
            self.say(Code::UnresolvedRef, path.key("operationRef"), reference.span, message);
        }
    }
}

/// The operations of a path item, each with its method.
pub(super) fn operations<'n, 't>(
    item: &'n Node<'t>,
) -> impl Iterator<Item = &'n Member<'t>> + use<'n, 't> {
    item.members().iter().filter(|member| {
        METHODS.contains(&member.key.as_ref()) && matches!(member.value.value, Value::Object(_))
    })
}

fn is_extension(member: &Member<'_>) -> bool {
    member.key.starts_with("x-")
}

/// Whether a key is a status, a range of them, or what holds for all others.
fn is_status(key: &str) -> bool {
    let bytes = key.as_bytes();
    let is_three = bytes.len() == 3 && (b'1'..=b'5').contains(&bytes[0]);
    key == "default"
        || (is_three && (&bytes[1..] == b"XX" || bytes[1..].iter().all(u8::is_ascii_digit)))
}
