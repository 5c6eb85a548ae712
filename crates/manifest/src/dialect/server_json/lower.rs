//! From a valid server.json to the model.

use super::VERSION;
use crate::dialect::Dialect;
use crate::dialect::lowering::{blank, json, text};
use crate::json::Node;
use crate::model::{Acquire, Entry, Implementation, Input, InputKind, Kind, Package};

/// Lowers a document that has passed its checks.
///
/// Each package and each remote is one way to run. How the first package is had is how the server is had:
/// the model has place for one. `{…}` stays as it is written: only whoever installs it knows what belongs there.
/// What a server offers is asked of the server.
pub(crate) fn lower(document: &Node<'_>, source: &str) -> Package {
    let whole = document.text_at("name").unwrap_or_default();
    let (namespace, name) = whole.split_once('/').unwrap_or(("", whole));
    let mut package = blank(Dialect::ServerJson, name.to_owned(), source);
    package.format_version = Some(VERSION);
    package.namespace = Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty());
    package.version = text(document, "version");
    package.kind = Kind::McpServer;
    package.name = text(document, "title");
    package.summary = text(document, "description");
    let repository = document.get("repository").and_then(|found| text(found, "url"));
    package.homepage = text(document, "websiteUrl").or(repository);
    let packages = document.list_at("packages");
    package.acquire = packages.first().map_or(Acquire::Nothing, acquire);
    for (index, one) in packages.iter().enumerate() {
        package.implementations.push(way(format!("package-{index}"), one, local(one), source));
        for variable in one.list_at("environmentVariables") {
            take_inputs(variable, variable.text_at("name"), &mut package.inputs);
        }
        for key in ["runtimeArguments", "packageArguments"] {
            for argument in one.list_at(key) {
                let called = argument.text_at("valueHint").or_else(|| argument.text_at("name"));
                take_inputs(argument, called, &mut package.inputs);
            }
        }
    }
    for (index, remote) in document.list_at("remotes").iter().enumerate() {
        let headers = remote.list_at("headers").iter().filter_map(header).collect();
        let entry = Entry::McpHttp { url: text(remote, "url").unwrap_or_default(), headers };
        package.implementations.push(way(format!("remote-{index}"), remote, entry, source));
        take_variables(remote, &mut package.inputs);
        for header in remote.list_at("headers") {
            take_inputs(header, header.text_at("name"), &mut package.inputs);
        }
    }
    package
}

fn way(id: String, part: &Node<'_>, entry: Entry, source: &str) -> Implementation {
    let (language, runtime) = match part.text_at("registryType") {
        Some("npm") => (Some("javascript"), Some("node")),
        Some("pypi") => (Some("python"), Some("python")),
        Some("nuget") => (Some("csharp"), Some("dotnet")),
        Some("cargo") => (Some("rust"), None),
        Some("oci") => (None, Some("container")),
        _ => (None, None),
    };
    Implementation {
        id,
        language: language.map(str::to_owned),
        runtime: runtime.map(str::to_owned),
        platforms: Vec::new(),
        entry,
        timeout_ms: None,
        requirements: json(part, "transport", source).filter(|_| part.get("identifier").is_some()),
    }
}

fn acquire(package: &Node<'_>) -> Acquire {
    let identifier = text(package, "identifier").unwrap_or_default();
    let version_spec = text(package, "version");
    match package.text_at("registryType") {
        Some("npm") => Acquire::Npm { package: identifier, version_spec },
        Some("pypi") => Acquire::Pip {
            package: identifier,
            version_spec: version_spec.map(|version| format!("=={version}")),
        },
        Some("oci") => Acquire::Container { image: identifier },
        _ => match text(package, "fileSha256") {
            Some(sha256) => Acquire::Url { url: identifier, sha256 },
            None => Acquire::Nothing,
        },
    }
}

/// The command that starts a package, as the clients of that world make it.
fn local(package: &Node<'_>) -> Entry {
    if let Some(transport) = package.get("transport")
        && transport.text_at("type") != Some("stdio")
    {
        // It is started here and spoken to over HTTP, which nothing in the model says.
        return Entry::Undeclared;
    }
    let identifier = package.text_at("identifier").unwrap_or_default();
    let hint = package.text_at("runtimeHint").filter(|hint| !hint.is_empty());
    let version = package.text_at("version");
    let joined = |sign: &str| match version {
        Some(version) => format!("{identifier}{sign}{version}"),
        None => identifier.to_owned(),
    };
    let variables = package.list_at("environmentVariables");
    let (program, own, subject) = match package.text_at("registryType") {
        Some("npm") => ("npx", vec!["-y".to_owned()], joined("@")),
        Some("pypi") => ("uvx", Vec::new(), joined("==")),
        Some("nuget") => ("dnx", Vec::new(), joined("@")),
        Some("oci") => {
            let named = variables.iter().filter_map(|variable| variable.text_at("name"));
            let mut own = vec!["run".to_owned(), "-i".to_owned(), "--rm".to_owned()];
            own.extend(named.flat_map(|name| ["-e".to_owned(), name.to_owned()]));
            ("docker", own, identifier.to_owned())
        }
        _ => return Entry::Undeclared,
    };
    let mut argv = vec![hint.unwrap_or(program).to_owned()];
    if hint.is_none_or(|hint| hint == program) {
        argv.extend(own);
    }
    argv.extend(package.list_at("runtimeArguments").iter().flat_map(argument));
    argv.push(subject);
    argv.extend(package.list_at("packageArguments").iter().flat_map(argument));
    let set = variables
        .iter()
        .filter_map(|variable| Some((text(variable, "name")?, text(variable, "value")?)));
    Entry::McpStdio { argv, cwd: None, env: set.collect() }
}

/// A header, and its value; what the owner is asked for stands in braces.
fn header(header: &Node<'_>) -> Option<(String, String)> {
    let name = text(header, "name")?;
    let value = text(header, "value").unwrap_or_else(|| format!("{{{name}}}"));
    Some((name, value))
}

/// The words an argument stands for; what the owner is asked for stands in braces.
fn argument(argument: &Node<'_>) -> Vec<String> {
    let value = text(argument, "value").or_else(|| {
        let called = argument.text_at("valueHint").or_else(|| argument.text_at("name"))?;
        let is_asked = ["isRequired", "default", "description", "choices", "valueHint"];
        is_asked.iter().any(|key| argument.get(key).is_some()).then(|| format!("{{{called}}}"))
    });
    text(argument, "name").into_iter().chain(value).collect()
}

/// What the owner is asked for an input: its variables, or itself where it has no value.
fn take_inputs(node: &Node<'_>, called: Option<&str>, into: &mut Vec<Input>) {
    take_variables(node, into);
    if node.get("value").is_none()
        && let Some(called) = called
    {
        take(called, node, into);
    }
}

fn take_variables(node: &Node<'_>, into: &mut Vec<Input>) {
    for member in node.get("variables").map_or(&[][..], Node::members) {
        if member.value.get("value").is_none() {
            take(&member.key, &member.value, into);
        }
    }
}

/// Several packages often ask for the same thing; it is asked for once, and as strictly as any of them does.
fn take(name: &str, node: &Node<'_>, into: &mut Vec<Input>) {
    let is = |key| node.get(key).and_then(Node::as_bool) == Some(true);
    let (secret, required) = (is("isSecret"), is("isRequired"));
    if let Some(known) = into.iter_mut().find(|known| known.name == name) {
        known.secret |= secret;
        known.required &= required;
        return;
    }
    into.push(Input {
        kind: match node.text_at("format") {
            Some("number") => InputKind::Number { min: None, max: None },
            Some("boolean") => InputKind::Flag,
            Some("filepath") => InputKind::File,
            _ => InputKind::Text,
        },
        secret,
        required,
        prompt: text(node, "description").filter(|text| !text.is_empty()),
        default: text(node, "default").filter(|_| !secret),
        ..Input::secret(name)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Options, read};

    fn package(text: &str) -> Package {
        let (report, mut packages) = read(text.as_bytes(), &Options::default()).unwrap();
        assert_eq!(report.dialect, Some(Dialect::ServerJson));
        packages.remove(0)
    }

    #[test]
    fn a_package_of_npm_becomes_the_command_its_clients_run() {
        let package = package(
            r#"{"name": "io.github.acme/weather", "description": "Tells the weather", "version": "1.0.2",
            "title": "Weather", "websiteUrl": "https://acme.example",
            "packages": [{"registryType": "npm", "identifier": "@acme/weather", "version": "1.0.2",
              "transport": {"type": "stdio"},
              "packageArguments": [{"type": "positional", "value": "serve"},
                {"type": "named", "name": "--city", "description": "Where", "isRequired": true}],
              "environmentVariables": [{"name": "KEY", "isSecret": true, "isRequired": true, "description": "A key"},
                {"name": "MODE", "value": "fast"}]}]}"#,
        );
        assert_eq!(package.canonical_id(), "server-json:io.github.acme/weather");
        assert_eq!(package.kind, Kind::McpServer);
        let expected = Entry::McpStdio {
            argv: ["npx", "-y", "@acme/weather@1.0.2", "serve", "--city", "{--city}"]
                .map(str::to_owned)
                .to_vec(),
            cwd: None,
            env: vec![("MODE".to_owned(), "fast".to_owned())],
        };
        assert_eq!(package.implementations[0].entry, expected);
        let names: Vec<_> =
            package.inputs.iter().map(|input| (&*input.name, input.secret)).collect();
        assert_eq!(names, [("KEY", true), ("--city", false)]);
    }

    #[test]
    fn remotes_and_other_packages_are_ways_to_run() {
        let package = package(
            r#"{"name": "a/b", "description": "x", "version": "1.0.0",
            "packages": [
              {"registryType": "oci", "identifier": "acme/b:1", "transport": {"type": "stdio"},
               "environmentVariables": [{"name": "K", "isRequired": true}]},
              {"registryType": "mcpb", "identifier": "https://a.example/b.mcpb",
               "fileSha256": "fe333e598595000ae021bd27117db32ec69af6987f507ba7a63c90638ff633ce",
               "transport": {"type": "stdio"}},
              {"registryType": "pypi", "identifier": "b", "version": "1.0.0", "transport": {"type": "sse", "url": "http://localhost:1/"}}],
            "remotes": [{"type": "streamable-http", "url": "https://{region}.a.example/mcp",
              "variables": {"region": {"isRequired": true}},
              "headers": [{"name": "Authorization", "value": "Bearer {token}", "variables": {"token": {"isSecret": true}}}]}]}"#,
        );
        let entries: Vec<_> = package.implementations.iter().map(|way| &way.entry).collect();
        let docker = ["docker", "run", "-i", "--rm", "-e", "K", "acme/b:1"].map(str::to_owned);
        assert_eq!(
            entries,
            [
                &Entry::McpStdio { argv: docker.to_vec(), cwd: None, env: Vec::new() },
                &Entry::Undeclared,
                &Entry::Undeclared,
                &Entry::McpHttp {
                    url: "https://{region}.a.example/mcp".to_owned(),
                    headers: vec![("Authorization".to_owned(), "Bearer {token}".to_owned())],
                },
            ]
        );
        assert_eq!(package.acquire, Acquire::Container { image: "acme/b:1".to_owned() });
        let names: Vec<_> = package.inputs.iter().map(|input| input.name.as_str()).collect();
        assert_eq!(names, ["K", "region", "token"]);
    }
}
