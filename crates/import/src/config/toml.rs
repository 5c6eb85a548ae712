//! Servers in TOML: `[mcp_servers.NAME]`.

use toml_edit::{Document, Item, TableLike, Value};

use super::{Config, Entry, Found, MAX_ENTRIES, Parts, Unreadable, check_name};

/// The table below which the servers are.
pub(crate) const TABLE: &str = "mcp_servers";

pub(super) fn read(text: &str) -> Result<Config, Unreadable> {
    let document = Document::parse(text).map_err(|error| broken(text, &error))?;
    let servers = document.get(TABLE).and_then(Item::as_table_like);
    let count = servers.map_or(0, TableLike::len);
    if count > MAX_ENTRIES {
        return Err(Unreadable::TooMany(count));
    }
    let found = servers.into_iter().flat_map(TableLike::iter).map(|(name, item)| Found {
        name: name.to_owned(),
        entry: check_name(name).and_then(|()| entry(item)),
    });
    Ok(Config { entries: found.collect(), inputs: Vec::new() })
}

/// What is wrong with a text, and where.
pub(crate) fn broken(text: &str, error: &toml_edit::TomlError) -> Unreadable {
    let line = error.span().map(|span| {
        let before = text.get(..span.start).unwrap_or(text);
        1 + before.matches('\n').count()
    });
    Unreadable::Broken { what: error.message().to_owned(), line }
}

fn entry(item: &Item) -> Result<Entry, String> {
    let table = item.as_table_like().ok_or("it is no table")?;
    let mut parts = Parts::default();
    for (key, item) in table.iter() {
        match key {
            "command" => parts.command = Some(text(key, item)?),
            "args" => parts.args = texts(key, item)?,
            "env" => parts.env.extend(pairs(key, item)?),
            // Variables of the owner's that are passed on.
            "env_vars" => {
                let named = texts(key, item)?.into_iter();
                parts.env.extend(named.map(|name| (name.clone(), format!("${{{name}}}"))));
            }
            "cwd" => parts.cwd = Some(text(key, item)?),
            "url" => parts.url = Some(text(key, item)?),
            "http_headers" => parts.headers.extend(pairs(key, item)?),
            "env_http_headers" => {
                let named = pairs(key, item)?.into_iter();
                parts.headers.extend(named.map(|(header, name)| (header, format!("${{{name}}}"))));
            }
            "bearer_token_env_var" => {
                let value = format!("Bearer ${{{}}}", text(key, item)?);
                parts.headers.push(("Authorization".to_owned(), value));
            }
            "enabled" => parts.off = item.as_bool() == Some(false),
            "startup_timeout_sec" | "startup_timeout_ms" | "tool_timeout_sec" => {}
            other => parts.unknown.push(other.to_owned()),
        }
    }
    parts.entry()
}

fn text(key: &str, item: &Item) -> Result<String, String> {
    item.as_str().map(str::to_owned).ok_or_else(|| format!("`{key}` is no text"))
}

fn texts(key: &str, item: &Item) -> Result<Vec<String>, String> {
    let wrong = || format!("`{key}` is no list of texts");
    let items = item.as_array().ok_or_else(wrong)?;
    items.iter().map(|one| plain(one).ok_or_else(wrong)).collect()
}

fn pairs(key: &str, item: &Item) -> Result<Vec<(String, String)>, String> {
    let table = item.as_table_like().ok_or_else(|| format!("`{key}` is no table of texts"))?;
    let pair = |(name, item): (&str, &Item)| {
        let value = item.as_value().and_then(plain);
        let value = value.ok_or_else(|| format!("`{name}` of `{key}` is no text"))?;
        Ok((name.to_owned(), value))
    };
    table.iter().map(pair).collect()
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Boolean(flag) => Some(flag.value().to_string()),
        Value::Float(number) => Some(number.value().to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::InlineTable(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Launch, Transport};
    use super::*;

    #[test]
    fn servers_of_codex_are_read() {
        let config = read(
            r#"model = "x"
[mcp_servers.files]
command = "npx"
args = ["-y", "files@1.2.3"]
startup_timeout_sec = 20
env_vars = ["LANG"]
[mcp_servers.files.env]
API_KEY = "abc"

[mcp_servers."my docs"]
url = "https://docs.example/mcp"
bearer_token_env_var = "DOCS_TOKEN"
http_headers = { "X-Team" = "a" }
env_http_headers = { "X-Key" = "DOCS_KEY" }
enabled = false
enabled_tools = ["a"]
[mcp_servers.none]
"#,
        )
        .unwrap();
        let [files, docs, none] = &config.entries[..] else { panic!("{config:?}") };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            files.entry.as_ref().unwrap().launch,
            Launch::Command {
                command: "npx".to_owned(),
                args: vec!["-y".to_owned(), "files@1.2.3".to_owned()],
                env: vec![pair("LANG", "${LANG}"), pair("API_KEY", "abc")],
                cwd: None,
            }
        );
        let entry = docs.entry.as_ref().unwrap();
        assert_eq!(
            entry.launch,
            Launch::Remote {
                url: "https://docs.example/mcp".to_owned(),
                headers: vec![
                    pair("Authorization", "Bearer ${DOCS_TOKEN}"),
                    pair("X-Team", "a"),
                    pair("X-Key", "${DOCS_KEY}"),
                ],
                transport: Transport::Http,
            }
        );
        assert_eq!((entry.enabled, &*entry.unknown), (false, &["enabled_tools".to_owned()][..]));
        assert!(none.entry.is_err());
    }

    #[test]
    fn a_broken_file_is_told_with_its_line() {
        assert!(matches!(read("a = 1\nb = ["), Err(Unreadable::Broken { line: Some(2), .. })));
    }
}
