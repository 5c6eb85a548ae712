//! Headers of requests that hold what the owner is asked for: who is asking, and what every request says alike.

use serde_json::{Value, json};

use super::schema::Document;
use super::words::cut;
use crate::secret::is_secret_name;

/// A value that the owner is asked for, and the header that it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// What it is called.
    pub(super) env: String,
    /// What the owner is told.
    pub(super) prompt: String,
    /// The header.
    pub(super) header: String,
    /// Its value, with what is asked for as a variable.
    pub(super) value: String,
    /// Whether it must not be shown.
    pub(super) secret: bool,
    /// Whether requests cannot do without.
    pub(super) required: bool,
    /// The value when the owner gives none.
    pub(super) default: Option<String>,
}

impl Told {
    fn secret(env: String, prompt: String, header: &str, scheme: &str) -> Self {
        let value = format!("{scheme}${{env.{env}}}");
        let header = header.to_owned();
        Self { env, prompt, header, value, secret: true, required: true, default: None }
    }

    /// A header that is declared as a parameter. What is given with a call would stand in the query or the body as well, so the
    /// owner says it once.
    pub(super) fn header(name: &str, about: &str, default: Option<&Value>) -> Self {
        let secret = is_secret_name(name);
        let env = variable(&format!("HEADER_{name}"), "");
        let about = if about.is_empty() { String::new() } else { format!(": {about}") };
        let default = default.filter(|_| !secret).and_then(|default| match default {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(default.to_string()),
            _ => None,
        });
        let prompt = cut(&format!("The header `{name}` of every request{about}"), 800);
        let value = format!("${{env.{env}}}");
        let header = name.to_owned();
        Self { env, prompt, header, value, secret, required: false, default }
    }

    /// The same where requests cannot do without it.
    pub(super) fn needed(self) -> Self {
        Self { required: self.default.is_none(), ..self }
    }

    /// As a manifest asks for it.
    pub(super) fn to_value(&self) -> Value {
        let mut told = json!({
            "name": self.env, "prompt": self.prompt, "secret": self.secret, "required": self.required,
        });
        if let Some(default) = &self.default {
            told["default"] = default.as_str().into();
        }
        told
    }
}

/// What an operation needs: the first of its alternatives that can be carried.
pub(super) fn credentials<'d>(
    operation: &'d Value,
    document: &Document<'d>,
) -> Result<Vec<Told>, String> {
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

fn is_apart(found: &[Told]) -> bool {
    let name = |one: &Told| one.header.to_ascii_lowercase();
    found
        .iter()
        .enumerate()
        .all(|(index, one)| found[..index].iter().all(|other| name(other) != name(one)))
}

fn credential(name: &str, document: &Document<'_>) -> Result<Told, String> {
    let missing = || format!("the security scheme `{name}` is declared nowhere");
    let schemes = document.root.pointer("/components/securitySchemes");
    let scheme = schemes.and_then(|schemes| schemes.get(name)).ok_or_else(missing)?;
    let scheme = document.part(scheme)?;
    let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
    let bearer = |about: &str| {
        let prompt = format!("{about} (`{name}`)");
        Told::secret(variable(name, "TOKEN"), prompt, "Authorization", "Bearer ")
    };
    match (text("type"), text("in"), text("scheme").to_ascii_lowercase().as_str()) {
        ("apiKey", "header", _) => {
            let header = text("name");
            let prompt = format!("The key that is sent in the header `{header}` (`{name}`)");
            Ok(Told::secret(variable(name, "KEY"), prompt, header, ""))
        }
        ("apiKey", "query", _) => Err(format!(
            "the key `{name}` would stand in addresses, which are written down in many places"
        )),
        ("apiKey", place, _) => {
            Err(format!("the key `{name}` is sent in a {place}, which is not carried"))
        }
        ("http", _, "bearer") => Ok(bearer("The bearer token of the service")),
        ("http", _, "basic") => {
            let prompt = format!("User and password, joined by a colon and in base64 (`{name}`)");
            Ok(Told::secret(variable(name, "BASIC"), prompt, "Authorization", "Basic "))
        }
        ("oauth2" | "openIdConnect", ..) => {
            Ok(bearer("An access token of the service, which you renew yourself"))
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
