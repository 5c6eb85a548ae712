//! The paths of a document, and whether their parameters are those that are declared.

use std::collections::{HashMap, HashSet};

use super::rules::operations;
use super::walk::Walk;
use crate::finding::{Code, Finding};
use crate::json::{Node, Path};
use crate::shape::clip;

/// Holds the paths of a document against each other and against their parameters.
pub(super) fn check<'n, 't>(walk: &mut Walk<'_, 'n, 't>, paths: &'n Node<'t>, path: Path<'_>) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for member in paths.members().iter().filter(|member| !member.key.starts_with("x-")) {
        let template = member.key.as_ref();
        let path = path.key(template);
        let fault = |code, message| Finding::new(code, path.pointer(), member.key_span, message);
        if !template.starts_with('/') {
            let message = format!("`{}` is no path", clip(template));
            walk.push(fault(Code::BadPattern, message).help("begin it with `/`"));
            continue;
        }
        let Ok(names) = variables(template) else {
            let message = format!("the braces of `{}` do not match", clip(template));
            walk.push(fault(Code::PathTemplate, message));
            continue;
        };
        if let Some(first) = seen.insert(nameless(template), template)
            && first != template
        {
            let message = format!(
                "`{}` and `{}` are the same path but for the names in braces",
                clip(first),
                clip(template)
            );
            walk.push(fault(Code::EquivalentPaths, message).help("keep one of them"));
        }
        // What a path item by reference declares is not the business of this path alone.
        if member.value.get("$ref").is_none() {
            item(walk, &names, &member.value, path);
        }
    }
}

/// The names in braces; an error when the braces do not match or hold nothing.
pub(super) fn variables(template: &str) -> Result<HashSet<&str>, Unmatched> {
    let mut names = HashSet::new();
    let mut pieces = template.split('{');
    if pieces.next().is_some_and(|first| first.contains('}')) {
        return Err(Unmatched);
    }
    for piece in pieces {
        let (name, rest) = piece.split_once('}').ok_or(Unmatched)?;
        if name.is_empty() || rest.contains('}') {
            return Err(Unmatched);
        }
        names.insert(name);
    }
    Ok(names)
}

/// The braces of a template do not match.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unmatched;

/// How many names that are not declared are told of one operation.
const MAX_MISSING: usize = 100;

/// The path with nothing in its braces.
fn nameless(template: &str) -> String {
    let mut pieces = template.split('{');
    let mut nameless = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        nameless.push('{');
        nameless.extend(piece.split_once('}').map(|(_, rest)| rest));
    }
    nameless
}

/// Holds the parameters of a path item against the names in its path.
fn item<'n, 't>(
    walk: &mut Walk<'_, 'n, 't>,
    names: &HashSet<&str>,
    item: &'n Node<'t>,
    path: Path<'_>,
) {
    let shared = declared(walk, names, item, path);
    for operation in operations(item) {
        let path = path.key(&operation.key);
        let own = declared(walk, names, &operation.value, path);
        let (Some(shared), Some(own)) = (&shared, own) else { continue };
        let mut missing: Vec<_> =
            names.iter().filter(|name| !shared.contains(*name) && !own.contains(*name)).collect();
        missing.sort();
        for name in missing.into_iter().take(MAX_MISSING) {
            let name = clip(name);
            let message = format!("`{}` declares no path parameter `{name}`", operation.key);
            let span = operation.key_span;
            let finding = Finding::new(Code::PathTemplate, path.pointer(), span, message);
            walk.push(finding.help(format!("`{{{name}}}` stands in the path")));
        }
    }
}

/// The path parameters that an object declares; none when one of them cannot be read.
fn declared<'n, 't>(
    walk: &mut Walk<'_, 'n, 't>,
    names: &HashSet<&str>,
    holder: &'n Node<'t>,
    path: Path<'_>,
) -> Option<HashSet<&'n str>> {
    let mut found = HashSet::new();
    let mut is_sure = true;
    for (index, entry) in holder.list_at("parameters").iter().enumerate() {
        let Some(parameter) = walk.document.settled(entry) else {
            is_sure = false;
            continue;
        };
        let (Some(name), Some(place)) = (parameter.text_at("name"), parameter.text_at("in")) else {
            is_sure = false;
            continue;
        };
        if place != "path" {
            continue;
        }
        found.insert(name);
        if !names.contains(name) && !walk.is_done() {
            let message = format!("the path has no `{{{}}}`", clip(name));
            let list = path.key("parameters");
            let span = entry.get("name").unwrap_or(entry).span;
            walk.say(Code::PathTemplate, list.index(index), span, message);
        }
    }
    is_sure.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_braces_are_found() {
        let names = |template| variables(template).map(|names| names.len());
        assert_eq!(names("/a/b"), Ok(0));
        assert_eq!(names("/a/{b}/{c}.json"), Ok(2));
        assert_eq!(names("/a/{b}/{b}"), Ok(1));
        for template in ["/a/{b", "/a/b}", "/a/{}", "/{a}}", "/{{a}", "/{a}b}"] {
            assert_eq!(names(template), Err(Unmatched), "{template}");
        }
    }

    #[test]
    fn paths_are_compared_without_their_names() {
        assert_eq!(nameless("/a/{b}/c{d}"), nameless("/a/{x}/c{yz}"));
        assert_ne!(nameless("/a/{b}"), nameless("/a/b"));
        assert_ne!(nameless("/a/{b}"), nameless("/a/{b}/"));
    }
}
