//! How the MCP world is told of a server: a server.json, made from a package of any dialect.
//!
//! Nothing is invented. A package of npm, pypi or a container registry is told only where its command is the
//! one that clients of that world would make of it; what cannot be told is left out.

use manifest::dialect::{Dialect, server_json};
use manifest::model::{Acquire, Entry, Input, InputKind, Kind, Package};
use package::digest::Digest;
use serde_json::{Map, Value, json};

use crate::identity;

/// Where the schema of what is written is published.
pub const SCHEMA: &str =
    "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
/// The longest description and the longest title, in characters.
const TEXT: usize = 100;
/// The longest name, in bytes.
const NAME: usize = 200;
/// The longest server.json that is told, in bytes.
pub const MOST: usize = 128 << 10;

/// A server, as the MCP world is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Its name there.
    pub name: String,
    /// The server.json.
    pub server: Value,
}

/// What a package is told as; nothing where it is no MCP server. `manifest` is its document as it was written.
///
/// The address of an MCP bundle is not known here: [`offer_bundle`] adds it.
pub fn of_package(package: &Package, manifest: &[u8]) -> Option<Told> {
    if package.kind != Kind::McpServer {
        return None;
    }
    let name = name(package);
    let server = match package.dialect {
        Dialect::ServerJson => serde_json::from_slice(manifest).ok()?,
        _ => written(package, &name),
    };
    if server.to_string().len() > MOST {
        return None;
    }
    Some(Told { name, server })
}

/// Adds the package file itself, where it is an MCP bundle that the registry hands out at this address.
pub fn offer_bundle(server: &mut Value, address: &str, sha256: &str) {
    let package = json!({
        "registryType": "mcpb",
        "identifier": address,
        "fileSha256": sha256,
        "transport": {"type": "stdio"},
    });
    if let Some(members) = server.as_object_mut() {
        members.insert("packages".to_owned(), json!([package]));
    }
}

/// The name of a server: its namespace, a slash, its id. Where letters have no place in such a name, others
/// stand for them, and a few digits of a digest keep two names apart.
pub fn name(package: &Package) -> String {
    let source = identity::source_id(package);
    if package.dialect == Dialect::ServerJson && (server_json::NAME.matches)(&source) {
        return source;
    }
    let namespace = identity::namespace(package).trim_start_matches(identity::PREFIX);
    let id = package.id.trim_start_matches(identity::PREFIX);
    let wanted = format!("{namespace}/{id}");
    if wanted.len() <= NAME && (server_json::NAME.matches)(&wanted) {
        return wanted;
    }
    let plain = |text: &str, others: &str, most: usize| -> String {
        let fit = |c: char| if c.is_ascii_alphanumeric() || others.contains(c) { c } else { '-' };
        text.chars().map(fit).take(most).collect()
    };
    let digits = Digest::of(wanted.as_bytes()).to_string();
    let namespace = plain(namespace, ".-", 80);
    let namespace = if namespace.is_empty() { "-".to_owned() } else { namespace };
    format!("{namespace}/{}-{}", plain(id, "._-", 80), &digits[..8])
}

fn written(package: &Package, name: &str) -> Value {
    let mut server = Map::new();
    server.insert("$schema".to_owned(), SCHEMA.into());
    server.insert("name".to_owned(), name.into());
    let line = [&package.summary, &package.description, &package.name]
        .into_iter()
        .flatten()
        .find_map(|text| text.lines().map(str::trim).find(|line| !line.is_empty()));
    server.insert("description".to_owned(), cut(line.unwrap_or(name)).into());
    if let Some(title) = package.name.as_deref().map(str::trim).filter(|title| !title.is_empty()) {
        server.insert("title".to_owned(), cut(title).into());
    }
    server.insert("version".to_owned(), package.semver().into());
    let is_address = |page: &&String| page.starts_with("https://") || page.starts_with("http://");
    if let Some(page) = package.homepage.as_ref().filter(is_address) {
        server.insert("websiteUrl".to_owned(), page.as_str().into());
    }
    let packages: Vec<Value> = package
        .implementations
        .iter()
        .filter_map(|way| match &way.entry {
            Entry::McpStdio { argv, cwd: None, env } => local(package, argv, env),
            _ => None,
        })
        .collect();
    if !packages.is_empty() {
        server.insert("packages".to_owned(), packages.into());
    }
    let remotes: Vec<Value> = package
        .implementations
        .iter()
        .filter_map(|way| match &way.entry {
            Entry::McpHttp { url, .. } if is_plain_address(url) => {
                Some(json!({"type": "streamable-http", "url": url}))
            }
            _ => None,
        })
        .collect();
    if !remotes.is_empty() {
        server.insert("remotes".to_owned(), remotes.into());
    }
    Value::Object(server)
}

/// A line of at most as many characters as there is place for.
fn cut(line: &str) -> String {
    if line.chars().count() <= TEXT {
        return line.to_owned();
    }
    line.chars().take(TEXT - 1).chain(['…']).collect()
}

/// In a server.json braces stand for something else.
fn is_plain_address(url: &str) -> bool {
    (url.starts_with("https://") || url.starts_with("http://"))
        && !url.contains(['{', '}'])
        && !url.chars().any(char::is_whitespace)
}

/// A package that is started here, where the clients of that world would start it by the same command.
fn local(package: &Package, argv: &[String], env: &[(String, String)]) -> Option<Value> {
    let is_plain = |text: &String| !text.contains(['{', '}']) && !text.contains("${");
    if !argv.iter().all(is_plain) || !env.iter().all(|(_, value)| is_plain(value)) {
        return None;
    }
    let mut told = Map::new();
    match &package.acquire {
        Acquire::Npm { package: name, version_spec } => {
            let arguments =
                after_runner(argv, name, &[&["npx"], &["npx", "-y"], &["npx", "--yes"]])?;
            told.insert("registryType".to_owned(), "npm".into());
            told.insert("identifier".to_owned(), name.as_str().into());
            put_version(&mut told, version_spec.as_deref());
            told.insert("runtimeHint".to_owned(), "npx".into());
            put_arguments(&mut told, "packageArguments", arguments);
        }
        Acquire::Pip { package: name, version_spec } => {
            let arguments = after_runner(argv, name, &[&["uvx"], &["pipx", "run"]])?;
            told.insert("registryType".to_owned(), "pypi".into());
            told.insert("identifier".to_owned(), name.as_str().into());
            put_version(&mut told, version_spec.as_deref());
            told.insert("runtimeHint".to_owned(), "uvx".into());
            put_arguments(&mut told, "packageArguments", arguments);
        }
        Acquire::Container { image } => {
            let (program, arguments) = argv.split_first()?;
            told.insert("registryType".to_owned(), "oci".into());
            told.insert("identifier".to_owned(), image.as_str().into());
            told.insert("runtimeHint".to_owned(), "docker".into());
            let entry = json!([{"type": "named", "name": "--entrypoint", "value": program}]);
            told.insert("runtimeArguments".to_owned(), entry);
            put_arguments(&mut told, "packageArguments", arguments);
        }
        Acquire::Bundle
        | Acquire::Git { .. }
        | Acquire::Url { .. }
        | Acquire::Preinstalled { .. }
        | Acquire::LocalPath { .. }
        | Acquire::Nothing => return None,
    }
    told.insert("transport".to_owned(), json!({"type": "stdio"}));
    let set = env.iter().map(|(name, value)| json!({"name": name, "value": value}));
    let variables: Vec<Value> = set.chain(package.inputs.iter().map(variable)).collect();
    if !variables.is_empty() {
        told.insert("environmentVariables".to_owned(), variables.into());
    }
    Some(Value::Object(told))
}

/// What follows the package in a command: after a runner and its name, or after the program that is called as
/// the package is.
fn after_runner<'a>(argv: &'a [String], name: &str, runners: &[&[&str]]) -> Option<&'a [String]> {
    for runner in runners {
        let begins = argv.len() > runner.len() && argv.iter().zip(*runner).all(|(a, b)| a == b);
        let subject = argv.get(runner.len()).filter(|_| begins);
        let is_it = |subject: &&String| {
            let rest = subject.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['@', '=']))
        };
        if subject.is_some_and(|subject| is_it(&subject)) {
            return Some(&argv[runner.len() + 1..]);
        }
    }
    let called = name.rsplit('/').next().unwrap_or(name);
    let (program, arguments) = argv.split_first()?;
    (program == called).then_some(arguments)
}

/// A version is told when it is exactly one.
fn put_version(told: &mut Map<String, Value>, spec: Option<&str>) {
    let exact = spec.map(|spec| spec.trim().trim_start_matches('=').trim());
    let is_exact = |version: &&str| {
        version.starts_with(|c: char| c.is_ascii_digit())
            && version.contains('.')
            && version.bytes().all(|b| b.is_ascii_alphanumeric() || b".-+".contains(&b))
            && !version.split('.').any(|part| part == "x" || part == "X")
    };
    if let Some(version) = exact.filter(is_exact) {
        told.insert("version".to_owned(), version.into());
    }
}

fn put_arguments(told: &mut Map<String, Value>, key: &str, arguments: &[String]) {
    if arguments.is_empty() {
        return;
    }
    let listed: Vec<Value> =
        arguments.iter().map(|value| json!({"type": "positional", "value": value})).collect();
    told.insert(key.to_owned(), listed.into());
}

fn variable(input: &Input) -> Value {
    let mut told = Map::new();
    told.insert("name".to_owned(), input.name.as_str().into());
    if let Some(prompt) = &input.prompt {
        told.insert("description".to_owned(), prompt.as_str().into());
    }
    told.insert("isRequired".to_owned(), input.required.into());
    told.insert("isSecret".to_owned(), input.secret.into());
    let format = match input.kind {
        InputKind::Number { .. } => Some("number"),
        InputKind::Flag => Some("boolean"),
        InputKind::File | InputKind::Folder => Some("filepath"),
        InputKind::Text => None,
    };
    if let Some(format) = format {
        told.insert("format".to_owned(), format.into());
    }
    if let Some(default) = input.default.as_ref().filter(|_| !input.secret) {
        told.insert("default".to_owned(), default.as_str().into());
    }
    Value::Object(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_command_is_told_only_when_clients_would_make_the_same() {
        let npx: &[&[&str]] = &[&["npx"], &["npx", "-y"]];
        for (argv, name, expected) in [
            (&["npx", "-y", "@a/b", "x"][..], "@a/b", Some(&["x"][..])),
            (&["npx", "@a/b@1.0.0"], "@a/b", Some(&[])),
            (&["b", "serve"], "@a/b", Some(&["serve"])),
            (&["npx", "-y", "@a/bc"], "@a/b", None),
            (&["npx", "--package=evil", "@a/b"], "@a/b", None),
            (&["node", "server.js"], "@a/b", None),
            (&["npx"], "npx2", None),
        ] {
            let argv = texts(argv);
            let found = after_runner(&argv, name, npx).map(<[String]>::to_vec);
            assert_eq!(found, expected.map(texts), "{argv:?}");
        }
    }

    #[test]
    fn a_version_is_told_when_it_is_exactly_one() {
        for (spec, expected) in [
            ("==1.2.3", Some("1.2.3")),
            ("1.2.3-rc.1", Some("1.2.3-rc.1")),
            ("^1.2.3", None),
            (">=1.2", None),
            ("1.x", None),
            ("latest", None),
            ("1.2,<2", None),
        ] {
            let mut told = Map::new();
            put_version(&mut told, Some(spec));
            assert_eq!(told.get("version").and_then(Value::as_str), expected, "{spec}");
        }
    }

    #[test]
    fn long_lines_are_cut_to_a_hundred_characters() {
        assert_eq!(cut(&"é".repeat(100)).chars().count(), 100);
        let shortened = cut(&"é".repeat(101));
        assert_eq!((shortened.chars().count(), shortened.ends_with('…')), (100, true));
    }
}
