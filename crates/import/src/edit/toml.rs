//! Edits of TOML that leave the rest as it is written.

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

use super::{OF_LAUNCH, Ours};
use crate::config::{TABLE, Unreadable, broken};

pub(super) fn replaced(text: &str, entries: &[Ours]) -> Result<String, Unreadable> {
    let mut document = read(text)?;
    let Some(servers) = servers(&mut document) else { return Ok(text.to_owned()) };
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
    Ok(document.to_string())
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
    let Some(servers) = servers(&mut document) else { return Ok(Vec::new()) };
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
    let (Some(servers), Some(old)) = (servers(&mut document), servers(&mut old)) else {
        return Ok(text.to_owned());
    };
    if let (Some(place), Some(was)) = (servers.get_mut(name), old.get(name)) {
        let mut item = was.clone();
        put_at(&mut item, place.as_table().and_then(Table::position));
        *place = item;
    }
    Ok(document.to_string())
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

fn servers(document: &mut DocumentMut) -> Option<&mut dyn TableLike> {
    document.get_mut(TABLE)?.as_table_like_mut()
}
