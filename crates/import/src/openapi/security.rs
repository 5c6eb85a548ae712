//! How requests of a document say who is asking: secrets that the owner is asked for, and headers that hold them.

use serde_json::{Value, json};

use super::schema::Document;

/// A secret, and the header that it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Credential {
    /// What it is called.
    pub(super) env: String,
    /// What the owner is told.
    pub(super) prompt: String,
    /// The header.
    pub(super) header: String,
    /// Its value, with the secret as a variable.
    pub(super) value: String,
}

impl Credential {
    /// As a manifest asks for it.
    pub(super) fn to_value(&self) -> Value {
        json!({"name": self.env, "prompt": self.prompt, "secret": true, "required": true})
    }
}

/// What an operation needs: the first of its alternatives that can be carried.
pub(super) fn credentials<'d>(
    operation: &'d Value,
    document: &Document<'d>,
) -> Result<Vec<Credential>, String> {
    let wanted = operation.get("security").or_else(|| document.root.get("security"));
    let Some(alternatives) = wanted.and_then(Value::as_array) else { return Ok(Vec::new()) };
    let mut why = None;
    for alternative in alternatives {
        let Some(schemes) = alternative.as_object() else { continue };
        let found: Result<Vec<_>, String> =
            schemes.keys().map(|name| credential(name, document)).collect();
        match found {
            Ok(found) if is_apart(&found) => return Ok(found),
            Ok(_) => why = Some("two credentials stand in one header".to_owned()),
            Err(reason) => why = why.or(Some(reason)),
        }
    }
    why.map_or(Ok(Vec::new()), Err)
}

fn is_apart(found: &[Credential]) -> bool {
    let name = |one: &Credential| one.header.to_ascii_lowercase();
    found
        .iter()
        .enumerate()
        .all(|(index, one)| found[..index].iter().all(|other| name(other) != name(one)))
}

fn credential(name: &str, document: &Document<'_>) -> Result<Credential, String> {
    let missing = || format!("the security scheme `{name}` is declared nowhere");
    let schemes = document.root.pointer("/components/securitySchemes");
    let scheme = schemes.and_then(|schemes| schemes.get(name)).ok_or_else(missing)?;
    let scheme = document.part(scheme)?;
    let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
    let bearer = |ending: &str, prompt: &str| Credential {
        env: variable(name, ending),
        prompt: format!("{prompt} (`{name}`)"),
        header: "Authorization".to_owned(),
        value: format!("Bearer ${{env.{}}}", variable(name, ending)),
    };
    match (text("type"), text("in"), text("scheme").to_ascii_lowercase().as_str()) {
        ("apiKey", "header", _) => {
            let (env, header) = (variable(name, "KEY"), text("name").to_owned());
            let prompt = format!("The key that is sent in the header `{header}` (`{name}`)");
            let value = format!("${{env.{env}}}");
            Ok(Credential { env, prompt, header, value })
        }
        ("apiKey", "query", _) => Err(format!(
            "the key `{name}` would stand in addresses, which are written down in many places"
        )),
        ("apiKey", place, _) => {
            Err(format!("the key `{name}` is sent in a {place}, which is not carried"))
        }
        ("http", _, "bearer") => Ok(bearer("TOKEN", "The bearer token of the service")),
        ("http", _, "basic") => {
            let env = variable(name, "BASIC");
            let prompt = format!("User and password, joined by a colon and in base64 (`{name}`)");
            let (header, value) = ("Authorization".to_owned(), format!("Basic ${{env.{env}}}"));
            Ok(Credential { env, prompt, header, value })
        }
        ("oauth2" | "openIdConnect", ..) => {
            Ok(bearer("TOKEN", "An access token of the service, which you renew yourself"))
        }
        (other, ..) => Err(format!(
            "the security scheme `{name}` is of the type `{other}`, which is not carried"
        )),
    }
}

/// What a secret is called: after its scheme, and ending with what it is.
fn variable(scheme: &str, ending: &str) -> String {
    let mut name = String::new();
    for letter in scheme.chars().take(60) {
        let is_inside = name.chars().last().is_some_and(|last| last != '_');
        if letter.is_ascii_alphanumeric() {
            name.push(letter.to_ascii_uppercase());
        } else if is_inside {
            name.push('_');
        }
    }
    let name = name.trim_matches('_');
    let name = if name.starts_with(|first: char| first.is_ascii_uppercase()) {
        name.to_owned()
    } else {
        format!("API_{name}")
    };
    if name.ends_with(ending) { name } else { format!("{name}_{ending}") }
}
