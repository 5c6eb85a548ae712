//! Edits of JSON with comments, by the places of values in the text.

use std::ops::Range;

use manifest::json::{Member, Node};
use serde_json::json;

use super::layout::{Layout, indent};
use super::{OF_LAUNCH, Ours, edited, line_end};
use crate::config::{Unreadable, tree};
use crate::jsonc::{blanked, uncommented};

pub(super) fn replaced(
    text: &str,
    path: &[String],
    entries: &[Ours],
) -> Result<String, Unreadable> {
    let plain = blanked(text);
    let root = tree(&plain)?;
    let edits = members(&root, path).iter().filter_map(|member| {
        let ours = entries.iter().find(|one| one.name == member.key)?;
        Some((member.value.span.range(), rewritten(ours, member, path, text)))
    });
    Ok(edited(text, edits.collect()))
}

pub(super) fn taken(
    text: &str,
    path: &[String],
    names: &[String],
) -> Result<Vec<(String, String)>, Unreadable> {
    let plain = blanked(text);
    let root = tree(&plain)?;
    let meant = members(&root, path).iter().filter(|one| names.iter().any(|name| *name == one.key));
    let document = |member: &Member<'_>| {
        // The places are the same in the text with comments.
        let entry = format!("{}: {}", json!(member.key), &text[member.value.span.range()]);
        let whole =
            path.iter().rev().fold(entry, |inner, key| format!("{}: {{{inner}}}", json!(key)));
        (member.key.to_string(), format!("{{{whole}}}"))
    };
    Ok(meant.map(document).collect())
}

pub(super) fn restored(
    text: &str,
    taken: &str,
    path: &[String],
    name: &str,
) -> Result<String, Unreadable> {
    let (plain, plain_taken) = (blanked(text), blanked(taken));
    let (root, old) = (tree(&plain)?, tree(&plain_taken)?);
    let was = members(&old, path).iter().find(|one| one.key == name);
    let is = members(&root, path).iter().find(|one| one.key == name);
    let (Some(is), Some(was)) = (is, was) else { return Ok(text.to_owned()) };
    let words = taken[was.value.span.range()].to_owned();
    Ok(edited(text, vec![(is.value.span.range(), words)]))
}

pub(super) fn added(text: &str, path: &[String], ours: &Ours) -> Result<String, Unreadable> {
    let chain: Vec<_> = path.iter().chain([&ours.name]).map(String::as_str).collect();
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        let (end, layout) = (line_end(text), Layout::usual(line_end(text)));
        return Ok(chained(&chain, &started(ours, path, &layout), &layout, "") + end);
    }
    let plain = blanked(text);
    let root = tree(&plain)?;
    let (object, depth) = deepest(&root, path, text)?;
    let layout = Layout::of(text, &root, object);
    let inner = layout.within(text, object);
    let below = chained(&chain[depth + 1..], &started(ours, path, &layout), &layout, &inner);
    let member = layout.member(chain[depth], &below);
    Ok(edited(text, appended(text, object, &member, &layout)))
}

pub(super) fn without(text: &str, path: &[String], name: &str) -> Result<String, Unreadable> {
    let plain = blanked(text);
    let root = tree(&plain)?;
    let Some(object) = path.iter().try_fold(&root, |node, key| node.get(key)) else {
        return Ok(text.to_owned());
    };
    let Some(index) = object.members().iter().position(|one| one.key == name) else {
        return Ok(text.to_owned());
    };
    let ranges = cut(text, object, index);
    Ok(edited(text, ranges.into_iter().map(|range| (range, String::new())).collect()))
}

/// The places of a member, of the comma that it needs, and of the blanks before it.
fn cut(text: &str, object: &Node<'_>, index: usize) -> Vec<Range<usize>> {
    let bare = uncommented(text);
    let members = object.members();
    let (member, next) = (&members[index], members.get(index + 1));
    let (key, value) = (member.key_span.range(), member.value.span.range());
    let within = object.span.range().start + 1..object.span.range().end - 1;
    let until = next.map_or(within.end, |next| next.key_span.range().start);
    let comma = |range: Range<usize>| bare[range.clone()].find(',').map(|at| range.start + at);
    let before = index.checked_sub(1).map(|last| members[last].value.span.range().end..key.start);
    // The one after it; that of a last member without any is the one before.
    let comma = comma(value.end..until).or_else(|| before.and_then(comma));
    let comma = comma.map(|at| at..at + 1);
    let is_comma = |at: usize| comma.as_ref().is_some_and(|comma| comma.contains(&at));
    let left = |range: Range<usize>| {
        let letters =
            text[range.clone()].char_indices().filter(|(at, _)| !is_comma(range.start + at));
        letters.map(|(_, letter)| letter).collect::<String>()
    };
    if members.len() == 1
        && (left(within.start..key.start) + &left(value.end..within.end)).trim().is_empty()
    {
        return vec![within];
    }
    let start = text[..key.start].trim_end().len();
    let end_of_line = text[value.end..].find('\n').map_or(text.len(), |at| value.end + at);
    let rest = left(value.end..end_of_line);
    // What follows on its line must not become part of a comment before it, nor a comment one of something else.
    let is_swallowed = || uncommented(&format!("{}x", &text[..start])).ends_with(' ');
    let rest = rest.trim();
    let is_kept_apart = rest.starts_with('/') || (!rest.is_empty() && is_swallowed());
    let start = if is_kept_apart { key.start } else { start };
    std::iter::once(start..value.end).chain(comma).collect()
}

/// The last object on the way that is there, and how many keys lead to it.
fn deepest<'n, 't>(
    root: &'n Node<'t>,
    path: &[String],
    text: &str,
) -> Result<(&'n Node<'t>, usize), Unreadable> {
    let mut object = root;
    for (depth, key) in path.iter().enumerate() {
        let Some(node) = object.get(key) else { return Ok((object, depth)) };
        if !node.is_object() {
            let what =
                format!("`{key}` is a JSON {}, and servers are in an object", node.type_name());
            let line = 1 + text[..node.span.range().start].matches('\n').count();
            return Err(Unreadable::Broken { what, line: Some(line) });
        }
        object = node;
    }
    Ok((object, path.len()))
}

/// Objects one in the other, the last of which has these members.
fn chained(chain: &[&str], members: &[String], layout: &Layout, outer: &str) -> String {
    let Some((key, below)) = chain.split_first() else { return layout.object(members, outer) };
    let value = chained(below, members, layout, &layout.further(outer));
    layout.object(&[layout.member(key, &value)], outer)
}

/// One more member of an object, after the others and their comments.
fn appended(
    text: &str,
    object: &Node<'_>,
    member: &str,
    layout: &Layout,
) -> Vec<(Range<usize>, String)> {
    let within = object.span.range().start + 1..object.span.range().end - 1;
    let lead = layout.before(&layout.within(text, object));
    let Some(last) = object.members().last() else {
        let start = within.start + text[within.clone()].trim_end().len();
        let lead = if lead.contains('\n') { lead } else { String::new() };
        let words = format!("{lead}{member}{}", layout.after(indent(text, within.start)));
        return vec![(start..within.end, words)];
    };
    let end = last.value.span.range().end;
    let place = end + text[end..within.end].trim_end().len();
    if uncommented(text)[end..within.end].contains(',') {
        return vec![(place..place, format!("{lead}{member},"))];
    }
    vec![(end..end, ",".to_owned()), (place..place, format!("{lead}{member}"))]
}

fn members<'n, 't>(root: &'n Node<'t>, path: &[String]) -> &'n [Member<'t>] {
    let at = path.iter().try_fold(root, |node, key| node.get(key));
    at.map_or(&[], Node::members)
}

/// How a client starts us.
fn started(ours: &Ours, path: &[String], layout: &Layout) -> Vec<String> {
    // This client wants to be told.
    let is_told = path.last().is_some_and(|key| key == "servers");
    let kind = is_told.then(|| layout.member("type", &json!("stdio").to_string()));
    let command = layout.member("command", &json!(ours.program).to_string());
    let args = layout.member("args", &layout.list(&ours.args()));
    kind.into_iter().chain([command, args]).collect()
}

/// The text of an entry of ours in the place of another: on lines of their own where the old one has several.
fn rewritten(ours: &Ours, old: &Member<'_>, path: &[String], text: &str) -> String {
    let outer = indent(text, old.key_span.range().start);
    let layout = Layout::like(text, &old.value, outer);
    let own = old.value.members().iter().filter(|one| !OF_LAUNCH.contains(&one.key.as_ref()));
    let own = own
        .map(|one| format!("{}: {}", &text[one.key_span.range()], &text[one.value.span.range()]));
    let members: Vec<_> = started(ours, path, &layout).into_iter().chain(own).collect();
    layout.object(&members, outer)
}
