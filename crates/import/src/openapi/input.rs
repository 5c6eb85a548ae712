//! What an operation takes: parameters and a body, as the input of an action and the request that is made with it.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::schema::Document;
use super::security::Told;
use super::words::{cut, encoded};

/// A request, put together from what is declared.
pub(super) struct Request {
    pub(super) input: Input,
    pub(super) notes: Vec<String>,
    path: String,
    query: Vec<String>,
    /// Headers that the owner says once.
    pub(super) told: Vec<Told>,
    /// Names that the members of the body have; nothing where there can be none.
    body: Option<HashSet<String>>,
}

impl Request {
    pub(super) fn new(method: &str, path: &str, body: Option<&Body>, notes: Vec<String>) -> Self {
        let takes_body = matches!(method, "post" | "put" | "patch");
        let names = || body.map(|body| body.properties.keys().cloned().collect());
        Self {
            input: Input::default(),
            notes,
            path: path.to_owned(),
            query: Vec::new(),
            told: Vec::new(),
            body: takes_body.then(|| names().unwrap_or_default()),
        }
    }

    /// Puts a parameter in its place.
    pub(super) fn take(&mut self, parameter: Parameter) -> Result<(), String> {
        let Parameter { name, place, required, odd, .. } = &parameter;
        let mut leave = |why: String| {
            if *required {
                return Err(why);
            }
            self.notes.push(format!("left out: {why}"));
            Ok(())
        };
        match place {
            Place::Cookie => leave(format!("the cookie `{name}`")),
            Place::Query | Place::Header if *odd => {
                leave(format!("`{name}`, which is written in a way that is not carried"))
            }
            Place::Query if self.body.is_some() && !required => leave(format!(
                "`{name}`: beside a body only what is required goes into the address"
            )),
            Place::Query if self.body.is_some() => {
                let property = self.free(name);
                self.query.push(format!("{}=${{input.{property}}}", encoded(name)));
                self.input.add(property, parameter);
                Ok(())
            }
            // What is left of the input is the query, each by its own name.
            Place::Query if self.input.properties.contains_key(name) => {
                Err(format!("`{name}` is the name of two parameters"))
            }
            Place::Query => {
                self.input.add(name.clone(), parameter);
                Ok(())
            }
            Place::Header if is_ours(name) => Ok(()),
            Place::Header => {
                check_header(name)?;
                let about = parameter.schema.get("description").and_then(Value::as_str);
                let default = parameter.schema.get("default");
                let about = about.unwrap_or_default();
                let told = Told::header(name, about, default);
                self.told.push(if *required { told.needed() } else { told });
                self.notes.push(format!("you are asked once for the header `{name}`"));
                Ok(())
            }
            Place::Path => {
                let written = format!("{{{name}}}");
                if !self.path.contains(&written) {
                    self.notes.push(format!("left out: `{name}`, which is not in the path"));
                    return Ok(());
                }
                let property = self.free(name);
                self.path = self.path.replace(&written, &format!("${{input.{property}}}"));
                self.input.add(property, parameter);
                Ok(())
            }
        }
    }

    /// The path with its query, and the headers.
    pub(super) fn written(
        &self,
        body: Option<&Body>,
        credentials: &[Told],
    ) -> Result<(String, Map<String, Value>), String> {
        if self.path.replace("${input.", "").contains('{') {
            return Err("a part of its path is declared nowhere".to_owned());
        }
        let query = self.query.join("&");
        let mark = if query.is_empty() { "" } else { "?" };
        let mut headers = Map::new();
        if let Some(kind) = body.and_then(|body| body.kind.as_ref()) {
            headers.insert("Content-Type".to_owned(), kind.as_str().into());
        }
        for one in self.told.iter().chain(credentials) {
            check_header(&one.header)?;
            headers.insert(one.header.clone(), one.value.as_str().into());
        }
        Ok((format!("{}{mark}{query}", self.path), headers))
    }

    /// A name that templates take, and that neither the body nor another parameter has.
    fn free(&self, name: &str) -> String {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let plain: String =
            name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
        let is_free = |name: &String| {
            let in_body = self.body.as_ref().is_some_and(|names| names.contains(name));
            !in_body && !self.input.properties.contains_key(name)
        };
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let mut names = std::iter::once(plain.clone()).chain(numbered);
        names.find(is_free).unwrap_or_default()
    }
}

/// What an action takes.
#[derive(Default)]
pub(super) struct Input {
    properties: Map<String, Value>,
    required: Vec<String>,
    examples: Map<String, Value>,
    open: bool,
}

impl Input {
    fn add(&mut self, name: String, parameter: Parameter) {
        if parameter.required {
            self.required.push(name.clone());
        }
        if let Some(example) = parameter.example {
            self.examples.insert(name.clone(), example);
        }
        self.properties.insert(name, parameter.schema);
    }

    /// Takes the members of a body.
    pub(super) fn take(&mut self, body: Body) {
        self.open |= body.open;
        for (name, schema) in body.properties {
            if body.required.contains(&name) {
                self.required.push(name.clone());
            }
            if let Some(example) = body.example.get(&name) {
                self.examples.insert(name.clone(), example.clone());
            }
            self.properties.insert(name, schema);
        }
    }

    pub(super) fn schema(&self) -> Value {
        let mut schema = json!({"type": "object", "properties": self.properties});
        if !self.required.is_empty() {
            schema["required"] = self.required.clone().into();
        }
        schema["additionalProperties"] = self.open.into();
        schema
    }

    /// What it can be tried with: what is required, as the document gives it.
    pub(super) fn trial(&self) -> Option<Map<String, Value>> {
        let given = |name: &String| Some((name.clone(), self.examples.get(name)?.clone()));
        self.required.iter().map(given).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) place: Place,
    required: bool,
    schema: Value,
    example: Option<Value>,
    /// Whether it is written in a way that requests here are not.
    odd: bool,
}

pub(super) fn parameter<'d>(
    part: &'d Value,
    document: &mut Document<'d>,
) -> Result<Parameter, String> {
    let text = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default();
    let name = text("name").to_owned();
    let place = match text("in") {
        "path" => Place::Path,
        "query" => Place::Query,
        "header" => Place::Header,
        "cookie" => Place::Cookie,
        other => return Err(format!("the parameter `{name}` is in `{other}`, which is nowhere")),
    };
    if name.is_empty() {
        return Err("a parameter has no name".to_owned());
    }
    let mut schema = match part.get("schema") {
        Some(schema) => document.schema(schema)?,
        None => json!({}),
    };
    let about = cut(text("description"), 1000);
    if !about.is_empty()
        && let Some(object) = schema.as_object_mut()
    {
        object.entry("description").or_insert_with(|| about.into());
    }
    let first = || part.get("examples")?.as_object()?.values().next()?.get("value");
    let example = part.get("example").or_else(first).or_else(|| part.get("schema")?.get("example"));
    let example = example.or_else(|| part.get("schema")?.get("default")).cloned();
    let is_list = schema.get("type").and_then(Value::as_str) == Some("array");
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    let joined = part.get("explode") == Some(&Value::Bool(false)) && is_list;
    let styled = !matches!(text("style"), "" | "form" | "simple");
    let odd = part.get("content").is_some() || joined || is_object || styled;
    let required = place == Place::Path || part.get("required") == Some(&Value::Bool(true));
    Ok(Parameter { name, place, required, schema, example, odd })
}

/// The members of a body that is an object.
#[derive(Default)]
pub(super) struct Body {
    properties: Map<String, Value>,
    pub(super) required: HashSet<String>,
    open: bool,
    /// Its media type, where that is not the usual one.
    pub(super) kind: Option<String>,
    pub(super) example: Map<String, Value>,
}

impl Body {
    /// Takes the members of a schema, and of those it is made of; whether it can be one of an object.
    pub(super) fn gather(&mut self, schema: &Value, depth: usize) -> bool {
        if depth > 8 {
            return true;
        }
        let is_object = match schema.get("type") {
            None => true,
            Some(Value::String(kind)) => kind == "object",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            Some(_) => false,
        };
        if !is_object {
            return false;
        }
        if let Some(Value::Object(properties)) = schema.get("properties") {
            self.properties
                .extend(properties.iter().map(|(name, one)| (name.clone(), one.clone())));
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        self.required.extend(required.filter_map(Value::as_str).map(str::to_owned));
        let says_more =
            schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
        let has_choice = schema.get("anyOf").is_some() || schema.get("oneOf").is_some();
        let says_nothing = schema.get("properties").is_none() && schema.get("allOf").is_none();
        // Which of several it is, only the server says; whatever is given is passed on.
        self.open |= says_more || has_choice || says_nothing;
        let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        parts.into_iter().all(|part| self.gather(part, depth + 1))
    }
}

/// Headers that are no parameters, by the rules of the format or because requests set them themselves.
fn is_ours(name: &str) -> bool {
    [
        "accept",
        "content-type",
        "authorization",
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "te",
        "upgrade",
    ]
    .contains(&name.to_ascii_lowercase().as_str())
}

/// Refuses what is no name of a header, or one that requests have of their own.
fn check_header(name: &str) -> Result<(), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_own = is_ours(name) && !name.eq_ignore_ascii_case("authorization");
    if name.is_empty() || !name.bytes().all(is_token) || is_own {
        return Err(format!("`{}` is no header that can be set", cut(name, 80)));
    }
    Ok(())
}
