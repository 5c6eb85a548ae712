//! A package of npm or `PyPI`, or an image, as a server.json.

use serde_json::{Map, Value, json};

use super::asked::{Asked, Part, Sink};
use super::command::{Manager, Wanted, check_argument};
use super::{Draft, Mark, bytes_of, read_back, versioned};

/// The namespace of servers that nobody published.
const NAMESPACE: &str = "imported";

/// The schema that a server.json is written by.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

pub(super) fn draft(name: &str, wanted: Wanted, mut asked: Asked<'_>) -> Result<Draft, String> {
    let Wanted { manager, package, version, before, after, env, warnings } = wanted;
    asked.warnings.extend(warnings);
    let mut one = json!({
        "registryType": manager.registry_type(),
        "identifier": package,
        "transport": {"type": "stdio"},
    });
    if let Some(version) = &version {
        one["version"] = version.as_str().into();
    }
    if !before.is_empty() {
        one["runtimeArguments"] = arguments(&before, &mut asked)?;
    }
    if !after.is_empty() {
        one["packageArguments"] = arguments(&after, &mut asked)?;
    }
    let mut variables = Vec::new();
    for (name, value) in &env {
        variables.push(variable(name, value, &mut asked)?);
    }
    if !variables.is_empty() {
        one["environmentVariables"] = variables.into();
    }
    asked.check_open()?;
    let Asked { secrets, warnings, .. } = asked;
    let about = match manager {
        Manager::Npm | Manager::Pypi => {
            format!("The package {package}, from the settings of a client.")
        }
        Manager::Oci => "An image, from the settings of a client.".to_owned(),
    };
    let about: String = about.chars().take(100).collect();
    let mut document = document(name, &about);
    document["packages"] = json!([one]);
    let core = version.filter(|version| is_core(version)).unwrap_or_else(|| "0.0.0".to_owned());
    let document = versioned(document, &core, "/version", Mark::Build);
    let bytes = bytes_of(&document);
    let package = read_back(&bytes)?;
    let files = vec![("server.json".to_owned(), bytes)];
    let name = name.to_owned();
    Ok(Draft { name, package, files, secrets, reads: Vec::new(), private_host: None, warnings })
}

/// The beginning of a server.json.
pub(super) fn document(name: &str, about: &str) -> Value {
    json!({
        "$schema": SCHEMA,
        "name": format!("{NAMESPACE}/{name}"),
        "description": about,
        "version": "",
    })
}

/// What is asked for in some parts, as a server.json declares it.
pub(super) fn variables(parts: &[Part], asked: &Asked<'_>) -> Map<String, Value> {
    let mut variables = Map::new();
    for part in parts {
        let Part::Wanted(name) = part else { continue };
        let Some(want) = asked.wanted.iter().find(|one| one.name == *name) else { continue };
        let mut told = json!({"description": want.prompt, "isRequired": want.required, "isSecret": want.secret});
        if let Some(default) = &want.default {
            told["default"] = default.as_str().into();
        }
        variables.insert(name.clone(), told);
    }
    variables
}

fn arguments(texts: &[String], asked: &mut Asked<'_>) -> Result<Value, String> {
    let mut arguments = Vec::new();
    let mut before: Option<&String> = None;
    for text in texts {
        check_argument(text, before)?;
        before = Some(text);
        let parts = asked.parts(text, Sink::Open("its command line"))?;
        let mut argument = json!({"type": "positional", "value": filled(&parts)});
        let variables = variables(&parts, asked);
        if !variables.is_empty() {
            argument["variables"] = variables.into();
        }
        arguments.push(argument);
    }
    Ok(arguments.into())
}

fn variable(name: &str, value: &str, asked: &mut Asked<'_>) -> Result<Value, String> {
    let parts = asked.variable(name, value)?;
    let mut told = json!({"name": name});
    // What is asked for under its own name needs no template.
    if let [Part::Wanted(own)] = parts.as_slice()
        && own == name
    {
        let own = variables(&parts, asked);
        for (key, value) in own.get(name).and_then(Value::as_object).into_iter().flatten() {
            told[key.as_str()] = value.clone();
        }
        return Ok(told);
    }
    told["value"] = filled(&parts).into();
    told["variables"] = variables(&parts, asked).into();
    Ok(told)
}

/// A value as a server.json writes it: what is asked for stands in braces.
fn filled(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text(literal) => literal.clone(),
        Part::Wanted(name) => format!("{{{name}}}"),
    };
    parts.iter().map(text).collect()
}

/// Whether a version is three numbers.
fn is_core(version: &str) -> bool {
    let is_number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    version.split('.').count() == 3 && version.split('.').all(is_number)
}
