//! Edits of TOML that leave the rest as it is written.

use std::ops::Range;

use toml_edit::{Array, Document, DocumentMut, Item, Table, TableLike, Value, value};

use super::{OF_LAUNCH, Ours, edited, line_end};
use crate::config::{TABLE, Unreadable, broken};

pub(super) fn replaced(text: &str, entries: &[Ours]) -> Result<String, Unreadable> {
    let mut document = read(text)?;
    let Some(servers) = servers_of(&mut document) else { return Ok(text.to_owned()) };
    for ours in entries {
        let Some(table) = servers.get_mut(&ours.name).and_then(Item::as_table_like_mut) else {
            continue;
        };
        let keys: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
        // What is overwritten in its place keeps the comments around it.
        let kept = ["command", "args"];
        for key in keys
            .iter()
            .filter(|key| OF_LAUNCH.contains(&key.as_str()) && !kept.contains(&key.as_str()))
        {
            table.remove(key);
        }
        put(table, "command", value(ours.program.as_str()));
        put(table, "args", value(Array::from_iter(ours.args())));
    }
    Ok(written(&document, text))
}

/// Sets a value, with what stands around the old one.
fn put(table: &mut dyn TableLike, key: &str, mut item: Item) {
    let decor = table.get(key).and_then(Item::as_value).map(|old| old.decor().clone());
    if let (Some(decor), Some(value)) = (decor, item.as_value_mut()) {
        *value.decor_mut() = decor;
    }
    table.insert(key, item);
}

pub(super) fn taken(text: &str, names: &[String]) -> Result<Vec<(String, String)>, Unreadable> {
    let mut document = read(text)?;
    let Some(servers) = servers_of(&mut document) else { return Ok(Vec::new()) };
    let alone = |name: &String| {
        let item = servers.get(name)?.clone();
        let mut table = Table::new();
        table.set_implicit(true);
        table.insert(name, item);
        let mut document = DocumentMut::new();
        document.insert(TABLE, Item::Table(table));
        Some((name.clone(), document.to_string()))
    };
    Ok(names.iter().filter_map(alone).collect())
}

pub(super) fn restored(text: &str, taken: &str, name: &str) -> Result<String, Unreadable> {
    let (mut document, mut old) = (read(text)?, read(taken)?);
    let (Some(servers), Some(old)) = (servers_of(&mut document), servers_of(&mut old)) else {
        return Ok(text.to_owned());
    };
    if let (Some(place), Some(was)) = (servers.get_mut(name), old.get(name)) {
        let mut item = was.clone();
        put_at(&mut item, place.as_table().and_then(Table::position));
        *place = item;
    }
    Ok(written(&document, text))
}

/// A table of its own at the end, before which everything stays as it is; in one that stands on a line, a value.
pub(super) fn added(text: &str, ours: &Ours) -> Result<String, Unreadable> {
    let mut document = read(text)?;
    if let Some(other) = document.get(TABLE).filter(|item| !item.is_table_like()) {
        let what =
            format!("`{TABLE}` is of the type {}, and servers are in a table", other.type_name());
        return Err(Unreadable::Broken { what, line: None });
    }
    if let Some(servers) = document.get_mut(TABLE).and_then(Item::as_inline_table_mut) {
        servers.insert(&ours.name, Value::InlineTable(started(ours).into_inline_table()));
        return Ok(written(&document, text));
    }
    let mut alone = Table::new();
    alone.set_implicit(true);
    alone.insert(&ours.name, Item::Table(started(ours)));
    let mut block = DocumentMut::new();
    block.insert(TABLE, Item::Table(alone));
    let end = line_end(text);
    let gap = match text.trim_start_matches('\u{feff}') {
        "" => String::new(),
        text if text.ends_with('\n') => end.to_owned(),
        _ => end.repeat(2),
    };
    Ok(format!("{text}{gap}{}", block.to_string().replace('\n', end)))
}

pub(super) fn without(text: &str, name: &str) -> Result<String, Unreadable> {
    let parsed = Document::parse(text).map_err(|error| broken(text, &error))?;
    let servers = parsed.get(TABLE).and_then(Item::as_table_like);
    let Some(item) = servers.and_then(|servers| servers.get(name)) else {
        return Ok(text.to_owned());
    };
    if let Some(ranges) = item.as_table().and_then(|table| blocks(table, text)) {
        return Ok(edited(text, ranges.into_iter().map(|range| (range, String::new())).collect()));
    }
    let mut document = read(text)?;
    servers_of(&mut document).and_then(|servers| servers.remove(name));
    Ok(written(&document, text))
}

/// How a client starts us.
fn started(ours: &Ours) -> Table {
    let mut table = Table::new();
    table.insert("command", value(ours.program.as_str()));
    table.insert("args", value(Array::from_iter(ours.args())));
    table
}

/// The lines of a table and of those in it, from the head of each to its last value, with the empty line before; none where
/// one of them has no head.
fn blocks(table: &Table, text: &str) -> Option<Vec<Range<usize>>> {
    let head = table.span().filter(|_| !table.is_dotted() && !table.is_implicit())?;
    let mut all = Vec::new();
    let mut last = head.end;
    for (_, item) in table {
        match item {
            Item::Table(inner) => all.extend(blocks(inner, text)?),
            Item::Value(value) => last = last.max(value.span()?.end),
            Item::None | Item::ArrayOfTables(_) => return None,
        }
    }
    let start = text[..head.start].rfind('\n').map_or(0, |at| at + 1);
    let start = ["\r\n\r\n", "\n\n"]
        .iter()
        .find(|gap| text[..start].ends_with(**gap))
        .map_or(start, |gap| start - gap.len() / 2);
    let end = text[last..].find('\n').map_or(text.len(), |at| last + at + 1);
    all.push(start..end);
    Some(all)
}

/// A document as text, with the line ends and the mark at the beginning that the old one has.
fn written(document: &DocumentMut, old: &str) -> String {
    let mark = if old.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    format!("{mark}{}", document.to_string().replace("\r\n", "\n").replace('\n', line_end(old)))
}

/// Puts a table and those in it where another stood; they keep their order among themselves.
fn put_at(item: &mut Item, position: Option<isize>) {
    if let Some(table) = item.as_table_mut() {
        table.set_position(position);
        table.iter_mut().for_each(|(_, inner)| put_at(inner, position));
    }
}

fn read(text: &str) -> Result<DocumentMut, Unreadable> {
    text.parse::<DocumentMut>().map_err(|error| broken(text, &error))
}

fn servers_of(document: &mut DocumentMut) -> Option<&mut dyn TableLike> {
    document.get_mut(TABLE)?.as_table_like_mut()
}
