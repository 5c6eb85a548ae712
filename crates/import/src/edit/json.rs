//! Edits of JSON with comments, by the places of values in the text.

use manifest::json::{Member, Node};
use serde_json::json;

use super::{OF_LAUNCH, Ours};
use crate::config::{Unreadable, tree};
use crate::jsonc::blanked;

pub(super) fn replaced(
    text: &str,
    path: &[String],
    entries: &[Ours],
) -> Result<String, Unreadable> {
    let plain = blanked(text);
    let root = tree(&plain)?;
    let edits = members(&root, path).iter().filter_map(|member| {
        let ours = entries.iter().find(|one| one.name == member.key)?;
        Some((member.value.span.range(), written(ours, member, path, text)))
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

fn members<'n, 't>(root: &'n Node<'t>, path: &[String]) -> &'n [Member<'t>] {
    let at = path.iter().try_fold(root, |node, key| node.get(key));
    at.map_or(&[], Node::members)
}

/// The text of an entry of ours: on lines of their own where the old one has several.
fn written(ours: &Ours, old: &Member<'_>, path: &[String], text: &str) -> String {
    let mut members = Vec::new();
    // This client wants to be told.
    if path.last().is_some_and(|key| key == "servers") {
        members.push("\"type\": \"stdio\"".to_owned());
    }
    members.push(format!("\"command\": {}", json!(ours.program)));
    let args: Vec<_> = ours.args().iter().map(|word| json!(word).to_string()).collect();
    members.push(format!("\"args\": [{}]", args.join(", ")));
    let own = old.value.members().iter().filter(|one| !OF_LAUNCH.contains(&one.key.as_ref()));
    members.extend(
        own.map(|one| {
            format!("{}: {}", &text[one.key_span.range()], &text[one.value.span.range()])
        }),
    );
    let was = &text[old.value.span.range()];
    if !was.contains('\n') {
        return format!("{{{}}}", members.join(", "));
    }
    let line = text[..old.key_span.range().start].rsplit('\n').next().unwrap_or_default();
    let outer: String = line.chars().take_while(|letter| letter.is_whitespace()).collect();
    let inner = old.value.members().first().map(|first| {
        let line = text[..first.key_span.range().start].rsplit('\n').next().unwrap_or_default();
        line.chars().take_while(|letter| letter.is_whitespace()).collect::<String>()
    });
    let inner =
        inner.filter(|inner| inner.len() > outer.len()).unwrap_or_else(|| format!("{outer}  "));
    let end = if was.contains("\r\n") { "\r\n" } else { "\n" };
    let members: Vec<_> = members.iter().map(|member| format!("{inner}{member}")).collect();
    format!("{{{end}{}{end}{outer}}}", members.join(&format!(",{end}")))
}

/// The text with other words in some places.
fn edited(text: &str, mut edits: Vec<(std::ops::Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut whole = String::with_capacity(text.len());
    let mut at = 0;
    for (range, words) in edits {
        whole.push_str(&text[at..range.start]);
        whole.push_str(&words);
        at = range.end;
    }
    whole.push_str(&text[at..]);
    whole
}
