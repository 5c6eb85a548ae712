//! A package of HTTP actions, made of an OpenAPI document of 3.0 or 3.1.
//!
//! | of the document | of the package |
//! |---|---|
//! | `servers` | the one endpoint |
//! | operations | actions; what the method is says what they change |
//! | parameters, JSON bodies | the input of an action |
//! | security schemes | secrets that the owner is asked for, and headers |
//!
//! What is answered is not held against the document: it was written to describe, not to refuse.

mod actions;
mod input;
mod operation;
mod schema;
mod security;
mod words;
mod yaml;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use manifest::json::parse;
use serde_json::{Value, json};
use url::Url;

use self::actions::Gathered;
use self::operation::{METHODS, Operation};
use self::schema::{Document, Revision};
use self::security::Told;
use self::words::cut;
use crate::draft::{Draft, Mark, bytes_of, plain_name, read_back, versioned};

/// The most bytes of a document.
pub const MAX_DOCUMENT: usize = 16 * 1024 * 1024;
/// The most actions of a package.
pub const MOST_ACTIONS: usize = 64;
/// The most operations of a document that are looked at.
const MOST_OPERATIONS: usize = 10_000;

/// Which operations are meant, and where they are reached.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only those with one of these tags.
    pub tags: Vec<String>,
    /// Only those whose path fits one of these globs.
    pub paths: Vec<String>,
    /// Only those with one of these methods.
    pub methods: Vec<String>,
    /// Only those with one of these ids.
    pub operations: Vec<String>,
    /// Where they are reached, instead of where the document says.
    pub base_url: Option<String>,
    /// The operation that the package is tried with.
    pub smoke: Option<String>,
    /// What it is tried with.
    pub smoke_input: Option<Value>,
    /// What the package is called.
    pub name: Option<String>,
}

/// Reads a document: JSON, or YAML where it is no JSON.
///
/// # Errors
/// Where it is too large or broken.
pub fn read(bytes: &[u8]) -> Result<Value, String> {
    if bytes.len() > MAX_DOCUMENT {
        return Err(format!("it has more than {MAX_DOCUMENT} bytes, and no more are read"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no text in UTF-8".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.trim_start().starts_with('{') {
        return yaml::read(text);
    }
    let parsed = parse(text);
    if let Some(fault) = parsed.faults.first() {
        // A mapping of YAML may begin with a brace, too.
        return yaml::read(text).map_err(|_| fault.message.clone());
    }
    parsed.root.map(|root| root.to_value()).ok_or_else(|| "it holds nothing".to_owned())
}

/// Whether a document is one of OpenAPI, by its keys.
pub fn is_openapi(document: &Value) -> bool {
    let has = |key: &str| document.get(key).is_some();
    (has("openapi") || has("swagger")) && (has("info") || has("paths"))
}

/// Makes a package of a document.
///
/// # Errors
/// Says why none can be made, and what would help.
pub fn draft(document: &Value, wanted: &Wanted) -> Result<Draft, String> {
    let version = document.get("openapi").and_then(Value::as_str).unwrap_or_default();
    let revision = match version {
        old if old.starts_with("3.0.") => Revision::V3_0,
        new if new.starts_with("3.1.") => Revision::V3_1,
        "" => return Err("it says no version of OpenAPI 3, and 3.0 and 3.1 are read".to_owned()),
        other => {
            let other = cut(other, 20);
            return Err(format!("it is written in OpenAPI `{other}`, and 3.0 and 3.1 are read"));
        }
    };
    let endpoint = endpoint(document, wanted)?;
    let chosen = chosen(document, wanted)?;
    let mut reader = Document::new(document, revision);
    let mut made = Gathered::default();
    for operation in chosen {
        made.take(operation, &endpoint, wanted, &mut reader);
    }
    if made.actions.is_empty() {
        let why = made.left_out.first().map_or_else(String::new, |first| format!(": {first}"));
        return Err(format!("none of its operations can be carried{why}"));
    }
    let smoke = made.smoke(wanted)?;
    let title = document.pointer("/info/title").and_then(Value::as_str).unwrap_or("API");
    let name = wanted.name.clone().unwrap_or_else(|| id_of(title));
    let core = document
        .pointer("/info/version")
        .and_then(Value::as_str)
        .map_or_else(|| "0.0.0".to_owned(), core_of);
    let manifest = manifest(document, &name, title, &endpoint, &made, &smoke);
    let manifest = versioned(manifest, &core, "/tool/version", Mark::PreRelease);
    let bytes = bytes_of(&manifest);
    let package = read_back(&bytes)?;
    let mut warnings = made.warnings();
    let mut notes: Vec<_> = reader.notes.iter().map(|note| (*note).to_owned()).collect();
    notes.sort();
    warnings.extend(notes);
    let files = vec![("manifest.json".to_owned(), bytes)];
    // Only an address that the owner typed leads into a private network.
    let private_host = wanted
        .base_url
        .as_ref()
        .filter(|_| crate::draft::is_private(&endpoint))
        .map(|_| crate::draft::origin(&endpoint));
    Ok(Draft {
        name,
        package,
        files,
        secrets: Vec::new(),
        reads: Vec::new(),
        private_host,
        warnings,
    })
}

/// Where the operations are reached.
fn endpoint(document: &Value, wanted: &Wanted) -> Result<Url, String> {
    let written = match &wanted.base_url {
        Some(base) => base.clone(),
        None => {
            let first = document.pointer("/servers/0");
            filled(first.ok_or("it names no server; --base-url says where it is reached")?)?
        }
    };
    let url = Url::parse(&written).map_err(|_| {
        format!(
            "its server `{}` is no absolute address; --base-url says where it is reached",
            cut(&written, 120)
        )
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("its server is of `{}`, not of http or https", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err("the address of its server holds a name, a password or a query".to_owned());
    }
    Ok(url)
}

/// The address of a server, its variables as the document has them by default.
fn filled(server: &Value) -> Result<String, String> {
    let mut url = server.get("url").and_then(Value::as_str).unwrap_or_default().to_owned();
    let variables = server.get("variables").and_then(Value::as_object);
    for (name, variable) in variables.into_iter().flatten() {
        let default = variable.get("default").and_then(Value::as_str).unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), default);
    }
    if url.contains('{') {
        return Err(format!(
            "a variable of its server `{}` has no default; --base-url says where it is reached",
            cut(&url, 120)
        ));
    }
    Ok(url)
}

/// The operations that are meant.
fn chosen<'d>(document: &'d Value, wanted: &Wanted) -> Result<Vec<Operation<'d>>, String> {
    let paths = globs(&wanted.paths)?;
    let reader = Document::new(document, Revision::V3_1);
    let items = document.get("paths").and_then(Value::as_object);
    let mut all = Vec::new();
    for (path, item) in items.into_iter().flatten() {
        let item = reader.part(item)?;
        for (method, _) in METHODS {
            if let Some(value) = item.get(method).filter(|value| value.is_object()) {
                all.push(Operation { path, method, item, value });
            }
        }
        if all.len() > MOST_OPERATIONS {
            return Err(format!("it has more than {MOST_OPERATIONS} operations"));
        }
    }
    let count = all.len();
    let is_tagged = |operation: &Operation<'_>| {
        let tags = operation.value.get("tags").and_then(Value::as_array).into_iter().flatten();
        wanted.tags.is_empty()
            || tags.filter_map(Value::as_str).any(|tag| wanted.tags.iter().any(|one| one == tag))
    };
    let is_named = |operation: &Operation<'_>| {
        let is = |id: &String| operation.id() == Some(id) || operation.name() == *id;
        wanted.operations.is_empty() || wanted.operations.iter().any(is)
    };
    let has_method = |operation: &Operation<'_>| {
        let is = |method: &String| method.eq_ignore_ascii_case(operation.method);
        wanted.methods.is_empty() || wanted.methods.iter().any(is)
    };
    let has_path =
        |operation: &Operation<'_>| paths.as_ref().is_none_or(|set| set.is_match(operation.path));
    let missing = wanted
        .operations
        .iter()
        .find(|id| !all.iter().any(|one| one.id() == Some(id) || one.name() == **id));
    if let Some(id) = missing {
        return Err(format!("it has no operation `{}`", cut(id, 80)));
    }
    all.retain(|one| is_tagged(one) && is_named(one) && has_method(one) && has_path(one));
    match all.len() {
        0 if count == 0 => Err("it has no operations".to_owned()),
        0 => Err(format!("none of its {count} operations is among those that you named")),
        found if found > MOST_ACTIONS => Err(format!(
            "it has {found} operations, and a package has at most {MOST_ACTIONS} actions; --include-tag, --include-path, --include-method and --operation say which are meant"
        )),
        _ => Ok(all),
    }
}

fn globs(patterns: &[String]) -> Result<Option<GlobSet>, String> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        // `*` is one segment, and `**` any number of them.
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        let glob =
            glob.map_err(|error| format!("`{}` is no glob: {}", cut(pattern, 80), error.kind()))?;
        set.add(glob);
    }
    set.build().map(Some).map_err(|error| error.to_string())
}

fn manifest(
    document: &Value,
    name: &str,
    title: &str,
    endpoint: &Url,
    made: &Gathered,
    smoke: &Value,
) -> Value {
    let info = |pointer: &str| {
        document
            .pointer(pointer)
            .and_then(Value::as_str)
            .map(str::trim)
            .filter(|text| !text.is_empty())
    };
    let is_page = |text: &&str| text.starts_with("https://") || text.starts_with("http://");
    let page = info("/externalDocs/url").or_else(|| info("/info/contact/url")).filter(is_page);
    let about = info("/info/description");
    let first = about
        .and_then(|text| text.lines().next())
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let summary = first
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| format!("{title}, as its OpenAPI document describes it."));
    let mut tool = json!({
        "id": name,
        "version": "",
        "name": title.chars().take(80).collect::<String>(),
        "summary": summary.chars().take(280).collect::<String>(),
        "homepage": page.map_or_else(|| endpoint.origin().ascii_serialization(), str::to_owned),
    });
    if let Some(about) = about.filter(|about| *about != summary) {
        tool["description"] = about.chars().take(4000).collect::<String>().into();
    }
    let kill_switch = if made.told.is_empty() {
        json!({"kind": "none"})
    } else {
        json!({"kind": "manual", "instructions": "The document names no way to withdraw access. Withdraw the credential where it was issued."})
    };
    let mut manifest = json!({
        "manifest_version": "0.4",
        "tool": tool,
        "runtime": {
            "kind": "shell-binary",
            // Nothing is run here: its actions are requests, and what makes them is haft.
            "install": {"method": "preinstalled", "locator": {"kind": "binary-on-path", "binary": "haft"}},
            "endpoint_url": endpoint.as_str().trim_end_matches('/'),
        },
        "actions": made.actions,
        "smoke": smoke,
        "kill_switch": kill_switch,
    });
    if !made.told.is_empty() {
        manifest["env"] = made.told.iter().map(Told::to_value).collect();
    }
    manifest
}

/// A title as the id of a tool.
fn id_of(title: &str) -> String {
    let lower = plain_name(&title.to_ascii_lowercase()).replace(['.', '_'], "-");
    let id = lower.trim_matches('-');
    if id.len() < 3 { format!("api-{id}").trim_end_matches('-').to_owned() } else { id.to_owned() }
}

/// Three numbers of a version.
fn core_of(version: &str) -> String {
    let numbers: Vec<&str> = version
        .trim_start_matches('v')
        .split(|letter: char| !letter.is_ascii_digit())
        .take(3)
        .collect();
    let is_number = |part: &&str| !part.is_empty() && part.len() <= 9;
    let numbers: Vec<String> = numbers
        .iter()
        .take_while(|part| is_number(part))
        .map(|part| {
            let plain = part.trim_start_matches('0');
            if plain.is_empty() { "0".to_owned() } else { plain.to_owned() }
        })
        .collect();
    let at = |index: usize| numbers.get(index).cloned().unwrap_or_else(|| "0".to_owned());
    format!("{}.{}.{}", at(0), at(1), at(2))
}

#[cfg(test)]
mod tests;
