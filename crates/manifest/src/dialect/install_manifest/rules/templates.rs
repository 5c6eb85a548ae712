//! Texts with `${…}` in them: what they may refer to, and where.

use std::collections::HashSet;

use super::Rules;
use crate::dialect::install_manifest::template::{Piece, Reference, pieces};
use crate::dialect::rules::Judge;
use crate::finding::{Code, Finding};
use crate::json::{Node, Path};
use crate::shape::clip;

/// The declared variables.
pub(super) struct Variables<'n> {
    pub(super) all: HashSet<&'n str>,
    pub(super) secret: HashSet<&'n str>,
}

impl<'n> Variables<'n> {
    pub(super) fn of(document: &'n Node<'_>) -> Self {
        let mut variables = Variables { all: HashSet::new(), secret: HashSet::new() };
        for entry in document.list_at("env") {
            let Some(name) = entry.text_at("name") else { continue };
            variables.all.insert(name);
            if entry.get("secret").and_then(Node::as_bool) != Some(false) {
                variables.secret.insert(name);
            }
        }
        variables
    }
}

/// Where a template stands, which decides what it may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Site {
    /// On a command line that has an input.
    Argv,
    /// On a command line without an input.
    PlainArgv,
    /// In a request that has an input.
    Request,
    /// In a request without an input; `${VAR}` is a variable there.
    PlainRequest,
}

impl Rules<'_, '_> {
    pub(super) fn headers(
        &self,
        holder: &Node<'_>,
        path: Path<'_>,
        site: Site,
        input: Option<&Node<'_>>,
        judge: &mut Judge<'_>,
    ) {
        for member in holder.get("headers").map(Node::members).unwrap_or_default() {
            if let Some(text) = member.value.as_text() {
                let headers = path.key("headers");
                self.template(text, &member.value, headers.key(&member.key), site, input, judge);
            }
        }
    }

    pub(super) fn argv(
        &self,
        argv: &Node<'_>,
        path: Path<'_>,
        site: Site,
        input: Option<&Node<'_>>,
        judge: &mut Judge<'_>,
    ) {
        for (index, element) in argv.items().iter().enumerate() {
            if let Some(text) = element.as_text() {
                self.template(text, element, path.index(index), site, input, judge);
            }
        }
    }

    pub(super) fn template(
        &self,
        text: &str,
        node: &Node<'_>,
        path: Path<'_>,
        site: Site,
        input: Option<&Node<'_>>,
        judge: &mut Judge<'_>,
    ) {
        if !text.contains("${") {
            return;
        }
        let is_argv = matches!(site, Site::Argv | Site::PlainArgv);
        for piece in pieces(text) {
            let finding = match piece {
                Piece::Literal(_) => continue,
                Piece::Nonsense(what) => {
                    let message = format!("`{}` means nothing", clip(what));
                    Finding::new(Code::BadTemplate, path.pointer(), node.span, message)
                        .help("write `${input.name}` or `${env.NAME}`")
                }
                Piece::Reference(Reference::Input(name)) => match site {
                    Site::Argv | Site::Request => match undeclared(input, name) {
                        None => continue,
                        Some(message) => {
                            Finding::new(Code::UndeclaredInput, path.pointer(), node.span, message)
                        }
                    },
                    Site::PlainArgv | Site::PlainRequest => {
                        let message =
                            format!("`${{input.{}}}` stands where there is no input", clip(name));
                        Finding::new(Code::UndeclaredInput, path.pointer(), node.span, message)
                    }
                },
                Piece::Reference(Reference::Env(name) | Reference::Bare(name)) => {
                    if is_argv && self.variables.secret.contains(name) {
                        let message =
                            format!("`{name}` is a secret and would be visible to other processes");
                        Finding::new(Code::SecretInArgv, path.pointer(), node.span, message)
                            .help("the tool finds it in its environment; leave it out here, or use invocation kind `stdin-json`")
                    } else if self.variables.all.contains(name) {
                        continue;
                    } else {
                        let message =
                            format!("the variable `{}` is not declared in `env`", clip(name));
                        let near = crate::shape::suggest(name, self.variables.all.iter().copied());
                        let finding =
                            Finding::new(Code::UndeclaredEnv, path.pointer(), node.span, message);
                        match near {
                            Some(near) => finding.help(format!("did you mean `{near}`?")),
                            None => finding,
                        }
                    }
                }
            };
            judge.push(finding);
        }
    }
}

/// Why an input path is not declared; nothing when it is.
fn undeclared(input: Option<&Node<'_>>, path: &str) -> Option<String> {
    let shown = clip(path);
    let Some(mut schema) = input else {
        return Some(format!("`${{input.{shown}}}` is used, but the action has no input schema"));
    };
    for segment in path.split('.') {
        let is_open = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"]
            .iter()
            .any(|keyword| schema.get(keyword).is_some());
        match schema.get("properties").and_then(|properties| properties.get(segment)) {
            Some(next) => schema = next,
            // What is declared by reference or under alternatives is not chased further.
            None if is_open => return None,
            None if schema.get("items").is_some()
                && segment.bytes().all(|b| b.is_ascii_digit()) =>
            {
                schema = schema.get("items")?;
            }
            None if !schema.is_object() => return None,
            None => {
                return Some(format!(
                    "`${{input.{shown}}}` is used, but the input schema has no property `{}`",
                    clip(segment)
                ));
            }
        }
    }
    None
}
