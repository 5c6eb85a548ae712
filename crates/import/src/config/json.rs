//! Servers in JSON: `mcpServers`, and `servers` with `inputs`.

use manifest::json::{Member, Node, Value, parse};

use super::{AskedFor, Config, Entry, Found, MAX_ENTRIES, Parts, Unreadable, check_name};
use crate::jsonc::blanked;

pub(super) fn read(text: &str, path: &[String]) -> Result<Config, Unreadable> {
    let plain = blanked(text);
    let root = tree(&plain)?;
    let mut at = Some(&root);
    let mut above = &root;
    for key in path {
        above = at.unwrap_or(above);
        at = at.and_then(|node| node.get(key));
    }
    let members = at.map_or(&[][..], Node::members);
    if members.len() > MAX_ENTRIES {
        return Err(Unreadable::TooMany(members.len()));
    }
    let entries = members.iter().map(|member| Found {
        name: member.key.to_string(),
        entry: check_name(&member.key).and_then(|()| entry(&member.value)),
    });
    let inputs = above.list_at("inputs").iter().take(MAX_ENTRIES).filter_map(asked_for);
    Ok(Config { entries: entries.collect(), inputs: inputs.collect() })
}

/// The tree of a text that is whole.
pub(crate) fn tree(plain: &str) -> Result<Node<'_>, Unreadable> {
    let parsed = parse(plain);
    let line = |offset: u32| 1 + plain[..offset as usize].matches('\n').count();
    if let Some(fault) = parsed.faults.first() {
        let at = (fault.span.start as usize).min(plain.len());
        let at = u32::try_from(at).unwrap_or_default();
        return Err(Unreadable::Broken { what: fault.message.clone(), line: Some(line(at)) });
    }
    let nothing = || Unreadable::Broken { what: "it holds nothing".to_owned(), line: None };
    let root = parsed.root.ok_or_else(nothing)?;
    if !root.is_object() {
        let what = format!("it is a JSON {}, and settings are an object", root.type_name());
        return Err(Unreadable::Broken { what, line: None });
    }
    Ok(root)
}

fn entry(node: &Node<'_>) -> Result<Entry, String> {
    if !node.is_object() {
        return Err(format!("it is a JSON {}, and a server is an object", node.type_name()));
    }
    let mut parts = Parts::default();
    let mut kind = None;
    for member in node.members() {
        let value = &member.value;
        match &*member.key {
            "command" => parts.command = Some(text(member)?),
            "args" => parts.args = texts(member)?,
            "env" => parts.env = pairs(member)?,
            "cwd" => parts.cwd = Some(text(member)?).filter(|folder| !folder.is_empty()),
            "url" | "serverUrl" => {
                if parts.url.is_none() {
                    parts.url = Some(text(member)?);
                }
            }
            // Beside a `url` this one is what the client takes.
            "httpUrl" => {
                parts.url = Some(text(member)?);
                kind = Some("http".to_owned());
            }
            "headers" => parts.headers = pairs(member)?,
            "type" | "transport" => {
                if kind.is_none() {
                    kind = Some(text(member)?);
                }
            }
            "disabled" => parts.off = value.as_bool() == Some(true),
            "enabled" => parts.off = value.as_bool() == Some(false),
            "envFile" => {
                return Err(
                    "its variables are in a file of their own (`envFile`); write them in `env`"
                        .to_owned(),
                );
            }
            "headersHelper" => {
                return Err("its headers are made by a program (`headersHelper`)".to_owned());
            }
            // What only a client's windows and logs have.
            "description" | "name" | "icon" | "gallery" | "version" | "timeout" | "note"
            | "$comment" => {}
            other => parts.unknown.push(other.to_owned()),
        }
    }
    match kind.as_deref() {
        None
        | Some("stdio" | "http" | "streamable-http" | "streamableHttp" | "streamable_http") => {}
        Some("sse") => parts.sse = true,
        Some(other) => {
            return Err(format!("it is of the type `{other}`, which nothing here speaks"));
        }
    }
    parts.entry()
}

fn text(member: &Member<'_>) -> Result<String, String> {
    let wrong = || format!("`{}` is no text", member.key);
    member.value.as_text().map(str::to_owned).ok_or_else(wrong)
}

fn texts(member: &Member<'_>) -> Result<Vec<String>, String> {
    let wrong = || format!("`{}` is no list of texts", member.key);
    if !matches!(member.value.value, Value::List(_)) {
        return Err(wrong());
    }
    let texts = member.value.items().iter().map(|item| plain(item).ok_or_else(wrong));
    texts.collect()
}

fn pairs(member: &Member<'_>) -> Result<Vec<(String, String)>, String> {
    let wrong = |name: &str| format!("`{}` of `{}` is no text", name, member.key);
    if !member.value.is_object() {
        return Err(format!("`{}` is no object of texts", member.key));
    }
    // A variable that is null is one that is not set.
    let set = member.value.members().iter().filter(|one| !one.value.is_null());
    set.map(|one| Ok((one.key.to_string(), plain(&one.value).ok_or_else(|| wrong(&one.key))?)))
        .collect()
}

/// A value as a program would be given it: clients take numbers and switches for texts.
fn plain(node: &Node<'_>) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.to_string()),
        Value::Bool(_) | Value::Number(_) => Some(node.to_value().to_string()),
        Value::Null | Value::List(_) | Value::Object(_) => None,
    }
}

fn asked_for(node: &Node<'_>) -> Option<AskedFor> {
    let text = |key| node.text_at(key).map(str::to_owned);
    Some(AskedFor {
        id: text("id")?,
        description: text("description").filter(|text| !text.is_empty()),
        password: node.get("password").and_then(Node::as_bool) == Some(true),
        default: text("default"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Launch, Transport};
    use super::*;

    fn below(text: &str, path: &[&str]) -> Config {
        let path: Vec<_> = path.iter().map(|&key| key.to_owned()).collect();
        read(text, &path).unwrap()
    }

    #[test]
    fn servers_of_every_client_are_read() {
        let config = below(
            r#"{ // mine
            "mcpServers": {
              "local": {"command": "node", "args": ["a.js", 8080], "env": {"A": "1", "B": null, "C": true}, "cwd": "/srv"},
              "remote": {"type": "sse", "url": "https://a.example/sse", "headers": {"X": "y"}},
              "gemini": {"httpUrl": "https://b.example/mcp", "url": "https://b.example/sse", "trust": true},
              "off": {"command": "x", "disabled": true},
              "broken": {"args": []}, "both": {"command": "x", "url": "https://a"}, "ws": {"type": "ws", "url": "wss://x"},
            },}"#,
            &["mcpServers"],
        );
        let of = |name: &str| &config.entries.iter().find(|one| one.name == name).unwrap().entry;
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            of("local").as_ref().unwrap().launch,
            Launch::Command {
                command: "node".to_owned(),
                args: vec!["a.js".to_owned(), "8080".to_owned()],
                env: vec![pair("A", "1"), pair("C", "true")],
                cwd: Some("/srv".to_owned()),
            }
        );
        let remote = |url: &str, headers, transport| Launch::Remote {
            url: url.to_owned(),
            headers,
            transport,
        };
        assert_eq!(
            of("remote").as_ref().unwrap().launch,
            remote("https://a.example/sse", vec![pair("X", "y")], Transport::Sse)
        );
        let gemini = of("gemini").as_ref().unwrap();
        assert_eq!(gemini.launch, remote("https://b.example/mcp", vec![], Transport::Http));
        assert_eq!(gemini.unknown, ["trust"]);
        assert!(!of("off").as_ref().unwrap().enabled);
        for (name, words) in [("broken", "neither"), ("both", "both"), ("ws", "`ws`")] {
            assert!(of(name).as_ref().unwrap_err().contains(words), "{name}");
        }
    }

    #[test]
    fn what_a_client_asks_for_stands_beside_its_servers() {
        let text = r#"{"mcp": {"inputs": [{"id": "k", "type": "promptString", "description": "Key", "password": true}, {}],
            "servers": {"a": {"command": "x"}}}}"#;
        let config = below(text, &["mcp", "servers"]);
        assert_eq!(config.entries.len(), 1);
        let key = AskedFor {
            id: "k".to_owned(),
            description: Some("Key".to_owned()),
            password: true,
            default: None,
        };
        assert_eq!(config.inputs, [key]);
    }

    #[test]
    fn a_broken_file_is_told_with_its_line() {
        let broken = |text: &str| read(text, &["mcpServers".to_owned()]).unwrap_err();
        let twice = broken("{\"mcpServers\": {\n\"a\": {},\n\"a\": {}}}");
        assert!(matches!(&twice, Unreadable::Broken { line: Some(3), .. }), "{twice}");
        assert!(broken("[]").to_string().contains("array"));
        assert!(matches!(broken("{\"a\": "), Unreadable::Broken { .. }));
    }
}
