//! A server.json, or a list of them as a registry of the MCP world answers it.

use manifest::dialect::Dialect;
use manifest::document::{Options, check};
use manifest::finding::Severity;
use package::archive::{Archive, Trailer};
use package::contents::Contents;
use package::limits::Limits;
use serde_json::Value;

use super::{Deleted, Item, NoPackage, packed};
use crate::error::found;
use crate::mcp::{Meta, Official, Server};
use crate::versions::Yank;

/// What the manifest of a package is called that is nothing but a server.json.
const FILE: &str = "server.json";

const NOT_TOLD: &str =
    "it has neither `packages` nor `remotes`, and no `$schema` that says it is a server.json";

/// The packages of a list of servers, each with or without what a registry adds.
pub fn of_list(listed: &[Value], from: &str) -> Vec<Item> {
    let entry = |(at, value): (usize, &Value)| match of_value(value) {
        Some(entry) => of_entry(&entry, from, at),
        None => Item::refused(format!("{from}#{at}"), "it is no server"),
    };
    listed.iter().enumerate().map(entry).collect()
}

/// The packages of a dump: `{"servers": […]}`, or a list of servers, each with or without what a registry adds.
/// Nothing where it is something else.
pub fn of_dump(document: &Value, from: &str) -> Option<Vec<Item>> {
    let listed = match document {
        Value::Array(listed) => listed,
        Value::Object(members) => members.get("servers")?.as_array()?,
        _ => return None,
    };
    Some(of_list(listed, from))
}

/// One server of a dump.
fn of_value(value: &Value) -> Option<Server> {
    if value.get("server").is_some_and(Value::is_object) {
        return serde_json::from_value(value.clone()).ok();
    }
    let is_one = value.get("name").is_some_and(Value::is_string);
    is_one.then(|| Server { server: value.clone(), meta: Meta::default() })
}

fn of_entry(entry: &Server, from: &str, at: usize) -> Item {
    let text = |key: &str| entry.server.get(key).and_then(Value::as_str);
    let (name, version) = (text("name"), text("version"));
    let called = [name, version].into_iter().flatten().map(|part| format!(" {part}"));
    let from = format!("{from}#{at}{}", called.collect::<String>());
    let official = entry.meta.official.as_ref();
    let deleted = official.filter(|official| official.status == Official::DELETED);
    let package = match (of_server(&entry.server), deleted) {
        (Ok(package), None) => Ok(package),
        (Err(why), None) => Err(NoPackage::Refused(why)),
        (Ok(package), Some(official)) => {
            let why = official.status_message.as_deref().unwrap_or_default();
            let reason = why.chars().filter(|c| !c.is_control()).take(Official::MESSAGE).collect();
            let ours = entry.meta.others.get(Meta::OURS);
            let security = ours.is_some_and(|ours| ours[Meta::SECURITY] == true);
            let why = Yank { reason, security };
            Err(NoPackage::Deleted(Deleted { package, why }))
        }
        (Err(_), Some(_)) => Err(NoPackage::Skipped("it was deleted there".to_owned())),
    };
    let listed = name.map(str::to_owned).zip(version.map(str::to_owned));
    Item { listed, ..Item::new(from, package) }
}

/// The package of a server.json. Keys stand in the order of their letters, so that it does not matter in which
/// order a registry tells them.
pub fn of_server(server: &Value) -> Result<Vec<u8>, String> {
    let mut text = serde_json::to_vec_pretty(&sorted(server)).map_err(|error| error.to_string())?;
    text.push(b'\n');
    let options = Options { dialect: Some(Dialect::ServerJson), ..Options::default() };
    let report = check(&text, &options);
    if let Some(finding) = report.findings.iter().find(|found| found.severity == Severity::Error) {
        return Err(found(finding.pointer.as_str(), &finding.message));
    }
    // Whoever opens the package knows what it is by these alone.
    if check(&text, &Options::default()).dialect != Some(Dialect::ServerJson) {
        return Err(NOT_TOLD.to_owned());
    }
    packed(vec![(FILE, &text)])
}

/// The server that a package tells of: the same, whatever the order of its keys and whatever lies beside it.
pub fn told_by(package: Vec<u8>) -> Option<Value> {
    let archive = Archive::from_bytes(package, Trailer::Refused, &Limits::DEFAULT).ok()?;
    serde_json::from_slice(&Contents::read(&archive, FILE).ok()?).ok()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut keys: Vec<_> = members.iter().collect();
            keys.sort_by_key(|(key, _)| *key);
            keys.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn weather() -> Value {
        json!({"name": "com.example/weather", "description": "Weather", "version": "1.0.0",
            "remotes": [{"type": "sse", "url": "https://example.com/sse"}]})
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let other = json!({"remotes": [{"url": "https://example.com/sse", "type": "sse"}],
            "version": "1.0.0", "description": "Weather", "name": "com.example/weather"});
        assert_eq!(of_server(&weather()), of_server(&other));
        assert!(of_server(&weather()).is_ok());
    }

    #[test]
    fn what_is_wrong_with_an_entry_is_told_as_it_stands_there() {
        let bare = json!({"name": "com.example/bare", "description": "x", "version": "1.0.0"});
        assert_eq!(of_server(&bare).unwrap_err(), NOT_TOLD);
        let mut empty = bare.clone();
        empty["remotes"] = json!([]);
        assert!(of_server(&empty).is_ok(), "what has them is known for what it is");
        let items = of_list(&[json!({"name": "bad"}), json!({"server": {}})], "dump.json");
        let told: Vec<_> = items
            .iter()
            .map(|item| match &item.package {
                Err(NoPackage::Refused(why)) => format!("{}: {why}", item.from),
                _ => String::new(),
            })
            .collect();
        assert!(told[0].starts_with("dump.json#0 bad: "), "{told:?}");
        assert!(told[1].starts_with("dump.json#1: "), "{told:?}");
        assert!(told.iter().all(|line| !line.contains(": :") && !line.contains('?')), "{told:?}");
    }

    #[test]
    fn what_an_author_published_is_the_same_server() {
        let text = weather().to_string();
        let published = packed(vec![(FILE, text.as_bytes()), ("README.md", b"# Weather")]).unwrap();
        assert_ne!(Ok(&published), of_server(&weather()).as_ref());
        assert_eq!(told_by(published), told_by(of_server(&weather()).unwrap()));
        let other = packed(vec![("README.md", b"# Weather")]).unwrap();
        assert_eq!((told_by(other), told_by(b"no archive".to_vec())), (None, None));
    }

    #[test]
    fn a_bad_entry_stops_no_other_and_a_deleted_one_is_told_as_such() {
        let official = "io.modelcontextprotocol.registry/official";
        let dump = json!({"servers": [
            {"server": weather()},
            {"server": {"name": "no-slash", "description": "x", "version": "1"}},
            42,
            weather(),
            {"server": weather(), "_meta": {official: {"status": "deleted", "statusMessage": "it\u{7} rains"}}},
            {"server": {"name": "no-slash"}, "_meta": {official: {"status": "deleted"}}},
        ]});
        let items = of_dump(&dump, "dump").unwrap_or_default();
        let kinds: Vec<_> = items
            .iter()
            .map(|item| match &item.package {
                Ok(_) => "made",
                Err(NoPackage::Skipped(_)) => "skipped",
                Err(NoPackage::Refused(_)) => "refused",
                Err(NoPackage::Deleted(_)) => "deleted",
            })
            .collect();
        assert_eq!(kinds, ["made", "refused", "refused", "made", "deleted", "skipped"]);
        let package = of_server(&weather()).unwrap();
        let deleted = Deleted { package, why: Yank::because("it rains") };
        assert_eq!(items[4].package, Err(NoPackage::Deleted(deleted)));
        let listed = Some(("com.example/weather".to_owned(), "1.0.0".to_owned()));
        assert_eq!((&items[4].listed, &items[5].listed), (&listed, &None));
        assert!(items[0].from.contains("com.example/weather 1.0.0"));
        assert_eq!(of_dump(&json!({"tools": []}), "x"), None);
        assert_eq!(of_dump(&json!("x"), "x"), None);
    }
}
