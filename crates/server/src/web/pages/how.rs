//! How a tool is put to use, client by client.
//!
//! Commands are made for a shell and files for a client from what a stranger wrote, so every part is quoted; where a
//! part cannot be quoted so that people see what they paste, there is no command.

use manifest::model::{Acquire, Entry, Package};
use registry::{Describe, identity};
use serde_json::{Value, json};

use super::{inert, link};

/// One way to use a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// The client.
    pub(super) client: &'static str,
    /// What is to be known before.
    pub(super) says: String,
    /// What is copied; where there is nothing to copy, what was said is all.
    pub(super) text: Option<String>,
}

/// The ways to use a version, which is to be had at this origin.
pub(super) fn ways(package: Option<&Package>, describe: &Describe, origin: &str) -> Vec<Way> {
    let plain = describe.id.strip_prefix(identity::PREFIX).unwrap_or(&describe.id);
    let file = format!("{}-{}.mcpkg", name_for(plain, "._-"), name_for(&describe.version, "._-+"));
    let url = format!("{origin}{}/package", link::api(&describe.id, &describe.version));
    let get = format!("curl -fsSL -o {} {}", quoted(&file), quoted(&url));
    let is_signed = describe.signature.as_ref().is_some_and(|signature| signature.state == "valid");
    let verify = if is_signed { format!("haft verify {}\n", quoted(&file)) } else { String::new() };
    let mut ways = vec![Way {
        client: "Haft",
        says: "Fetch it, see what a call would run and with which rights, then call it inside the walls.".to_owned(),
        text: Some(format!(
            "{get}\n{verify}haft inspect {0}\nhaft call --from {0} --explain",
            quoted(&file)
        )),
    }];
    ways.extend(clients(package, plain));
    let check = describe.sha256.as_ref().map_or_else(String::new, |digest| {
        format!("\necho {} | sha256sum --check", quoted(&format!("{digest}  {file}")))
    });
    ways.push(Way {
        client: "curl",
        says: "The package file, checked against the digest on this page.".to_owned(),
        text: Some(format!("{get}{check}")),
    });
    ways
}

/// What an MCP server is started or reached by.
enum Server<'p> {
    Url(&'p str),
    Command(&'p [String], &'p [(String, String)]),
}

fn clients(package: Option<&Package>, id: &str) -> Vec<Way> {
    const NAMES: [&str; 4] = ["Claude Code", "Codex", "Cursor", "VS Code"];
    let refusal = |says: &str| {
        NAMES.iter().map(|client| Way { client, says: says.replace("{client}", client), text: None }).collect()
    };
    let Some(package) = package else { return Vec::new() };
    let entry = package.implementations.first().map(|implementation| &implementation.entry);
    let mut before = String::new();
    let server = match entry {
        Some(Entry::McpHttp { url }) => link::outside(url).map(Server::Url),
        Some(Entry::McpStdio { argv, env, .. }) => {
            let Some(prepared) = prepare(&package.acquire) else {
                return refusal(
                    "Its files must be fetched first, so {client} cannot start it by name. Haft calls it inside the walls: see Haft above.",
                );
            };
            before = prepared;
            let parts = argv.iter().chain(env.iter().flat_map(|(name, value)| [name, value]));
            let mut parts = parts.chain([&before]);
            let is_seen = |part: &String| !part.contains(['\n', '\t']) && !part.chars().any(inert::is_hidden);
            (!argv.is_empty() && parts.all(is_seen)).then_some(Server::Command(argv, env))
        }
        _ => {
            return refusal("It is no MCP server, so {client} cannot start it. Haft calls it inside the walls: see Haft above.");
        }
    };
    let Some(server) = server else {
        return refusal("What it is started by cannot be shown as a command for {client}.");
    };
    let name = name_for(id, "_-");
    let (claude, codex, one, typed) = match server {
        Server::Url(url) => (
            format!("claude mcp add --transport http {} {}", quoted(&name), quoted(url)),
            format!("[mcp_servers.{name}]\nurl = {}", Value::from(url)),
            json!({"url": url}),
            json!({"type": "http", "url": url}),
        ),
        Server::Command(argv, env) => {
            let command: Vec<String> = argv.iter().map(|part| quoted(part)).collect();
            let given: String = env
                .iter()
                .map(|(name, value)| format!(" --env {}", quoted(&format!("{name}={value}"))))
                .collect();
            let variables: serde_json::Map<String, Value> =
                env.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
            let mut codex = format!(
                "[mcp_servers.{name}]\ncommand = {}\nargs = {}",
                Value::from(argv[0].as_str()),
                json!(argv[1..])
            );
            if !variables.is_empty() {
                let pairs: Vec<String> = variables
                    .iter()
                    .map(|(name, value)| format!("{} = {value}", Value::from(name.as_str())))
                    .collect();
                codex.push_str(&format!("\nenv = {{ {} }}", pairs.join(", ")));
            }
            let mut one = json!({"command": argv[0], "args": argv[1..]});
            if !variables.is_empty() {
                one["env"] = variables.into();
            }
            let mut typed = one.clone();
            typed["type"] = "stdio".into();
            (format!("claude mcp add {}{given} -- {}", quoted(&name), command.join(" ")), codex, one, typed)
        }
    };
    let written = |value: Value| serde_json::to_string_pretty(&value).unwrap_or_default();
    let first = if before.is_empty() { String::new() } else { format!(" First: {before}") };
    let walls = match server {
        Server::Url(_) => "",
        Server::Command(..) => " Started like this it runs as you, without Haft's walls.",
    };
    let way = |client, says: &str, text| Way { client, says: format!("{says}{walls}{first}"), text: Some(text) };
    vec![
        way(NAMES[0], "In a terminal.", claude),
        way(NAMES[1], "In ~/.codex/config.toml.", codex),
        way(NAMES[2], "In ~/.cursor/mcp.json.", written(json!({"mcpServers": { name.as_str(): one }}))),
        way(NAMES[3], "In .vscode/mcp.json.", written(json!({"servers": { name.as_str(): typed }}))),
    ]
}

/// What is to be done before a server can be started by its name; none when that is not enough.
fn prepare(acquire: &Acquire) -> Option<String> {
    match acquire {
        Acquire::Nothing | Acquire::Preinstalled { .. } => Some(String::new()),
        Acquire::Npm { package, version_spec } => {
            let version = version_spec.as_ref().map_or_else(String::new, |spec| format!("@{spec}"));
            Some(format!("npm install --global {}", quoted(&format!("{package}{version}"))))
        }
        Acquire::Pip { package, version_spec } => {
            let version = version_spec.as_deref().unwrap_or_default();
            Some(format!("pipx install {}", quoted(&format!("{package}{version}"))))
        }
        Acquire::Bundle
        | Acquire::Git { .. }
        | Acquire::Container { .. }
        | Acquire::Url { .. }
        | Acquire::LocalPath { .. } => None,
    }
}

/// A text for a shell: as it is where that is plain, else in quotes.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn name_for(text: &str, also: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || also.contains(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_pasted_into_a_shell_stays_one_word() {
        for (text, shown) in [
            ("plain-1.0_a/b", "plain-1.0_a/b"),
            ("--flag=x", "--flag=x"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$(rm -rf ~)", "'$(rm -rf ~)'"),
            ("a'; rm -rf ~; '", r"'a'\''; rm -rf ~; '\'''"),
            ("`x`", "'`x`'"),
            ("a&b", "'a&b'"),
        ] {
            assert_eq!(quoted(text), shown);
        }
    }
}
