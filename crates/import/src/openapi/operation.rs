//! One operation of a document as an action.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::schema::Document;
use super::security::{Credential, credentials};

/// The methods that an action may have, with what they change.
pub(super) const METHODS: [(&str, &str); 5] = [
    ("get", "read"),
    ("post", "write"),
    ("put", "write"),
    ("patch", "write"),
    ("delete", "destructive"),
];

/// An operation, where it stands.
#[derive(Clone, Copy)]
pub(super) struct Operation<'d> {
    pub(super) path: &'d str,
    pub(super) method: &'static str,
    pub(super) item: &'d Value,
    pub(super) value: &'d Value,
}

/// An action that was made of one.
pub(super) struct Made {
    pub(super) action: Value,
    pub(super) credentials: Vec<Credential>,
    /// Arguments it can be tried with, where it changes nothing and the document says with which.
    pub(super) trial: Option<Map<String, Value>>,
    pub(super) notes: Vec<String>,
}

impl<'d> Operation<'d> {
    /// What it is called by its author.
    pub(super) fn id(&self) -> Option<&'d str> {
        self.value.get("operationId").and_then(Value::as_str).filter(|id| !id.is_empty())
    }

    /// As it is told.
    pub(super) fn words(&self) -> String {
        format!("{} {}", self.method.to_ascii_uppercase(), self.path)
    }

    /// The words of its author or of its address, from which an action is named.
    pub(super) fn name(&self) -> String {
        let words =
            self.id().map_or_else(|| format!("{} {}", self.method, self.path), str::to_owned);
        portable(&words)
    }

    /// The action, under a name that no other has.
    pub(super) fn action(&self, name: &str, document: &mut Document<'d>) -> Result<Made, String> {
        let mut notes = Vec::new();
        let mut input = Input::default();
        let body = self.body(document, &mut notes)?;
        let takes_body = matches!(self.method, "post" | "put" | "patch");
        let taken: HashSet<String> =
            body.as_ref().map(|body| body.properties.keys().cloned().collect()).unwrap_or_default();
        let mut path = self.path.to_owned();
        let mut query = Vec::new();
        let mut headers = Map::new();
        for parameter in self.parameters(document)? {
            let Parameter { name, place, required, schema, example, odd } = parameter;
            let property = input.free(&name, &taken, matches!(place, Place::Query) && !takes_body);
            match place {
                Place::Cookie if required => {
                    return Err(format!("it needs the cookie `{name}`"));
                }
                Place::Cookie => {
                    notes.push(format!("the cookie `{name}` is left out"));
                    continue;
                }
                Place::Query if odd => {
                    if required {
                        return Err(format!("`{name}` is written in a way that is not carried"));
                    }
                    notes.push(format!(
                        "`{name}` is left out: it is written in a way that is not carried"
                    ));
                    continue;
                }
                Place::Query if takes_body && !required => {
                    notes.push(format!("`{name}` is left out: beside a body only what is required goes into the address"));
                    continue;
                }
                Place::Query if takes_body => {
                    query.push(format!("{}=${{input.{property}}}", encoded(&name)));
                }
                Place::Query => {}
                Place::Header if is_ours(&name) => continue,
                Place::Header => {
                    headers.insert(name.clone(), format!("${{input.{property}}}").into());
                }
                Place::Path => {
                    let written = format!("{{{name}}}");
                    if !path.contains(&written) {
                        notes.push(format!("`{name}` is not in the path, and is left out"));
                        continue;
                    }
                    path = path.replace(&written, &format!("${{input.{property}}}"));
                }
            }
            input.add(property, schema, required, example);
        }
        if path.replace("${input.", "").contains('{') {
            return Err("a part of its path is declared nowhere".to_owned());
        }
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        if let Some(body) = body {
            if let Some(kind) = &body.kind {
                headers.insert("Content-Type".to_owned(), kind.as_str().into());
            }
            input.open |= body.open;
            for (name, schema) in body.properties {
                let required = body.required.contains(&name);
                let example = body.example.get(&name).cloned();
                input.add(name, schema, required, example);
            }
        }
        let found = credentials(self.value, document)?;
        for one in &found {
            headers.insert(one.header.clone(), one.value.as_str().into());
        }
        let (summary, description) = self.texts();
        let mut invocation =
            json!({"kind": "http", "method": self.method.to_ascii_uppercase(), "path": path});
        if !headers.is_empty() {
            invocation["headers"] = headers.into();
        }
        let effects = METHODS
            .iter()
            .find(|(method, _)| *method == self.method)
            .map_or("write", |(_, effects)| effects);
        let trial = (effects == "read").then(|| input.trial()).flatten();
        let mut action = json!({
            "name": name,
            "summary": summary,
            "invocation": invocation,
            "input": input.schema(),
            "side_effects": effects,
            "idempotent": matches!(self.method, "get" | "put" | "delete"),
        });
        if let Some(description) = description {
            action["description"] = description.into();
        }
        if let Some(format) = self.output(document) {
            action["output"] = json!({"format": format});
        }
        Ok(Made { action, credentials: found, trial, notes })
    }

    /// What it takes beside its body; what stands at the operation takes the place of what stands at the path.
    fn parameters(&self, document: &mut Document<'d>) -> Result<Vec<Parameter>, String> {
        let listed = |value: &'d Value| value.get("parameters").and_then(Value::as_array);
        let mut found: Vec<Parameter> = Vec::new();
        for part in listed(self.item).into_iter().chain(listed(self.value)).flatten() {
            let parameter = parameter(document.part(part)?, document)?;
            match found
                .iter_mut()
                .find(|one| one.name == parameter.name && one.place == parameter.place)
            {
                Some(one) => *one = parameter,
                None => found.push(parameter),
            }
        }
        Ok(found)
    }

    fn body(
        &self,
        document: &mut Document<'d>,
        notes: &mut Vec<String>,
    ) -> Result<Option<Body>, String> {
        let Some(body) = self.value.get("requestBody") else { return Ok(None) };
        let body = document.part(body)?;
        let is_required = body.get("required") == Some(&Value::Bool(true));
        if !matches!(self.method, "post" | "put" | "patch") {
            if is_required {
                return Err("it has a body, and its method has none here".to_owned());
            }
            notes.push("its body is left out: its method has none here".to_owned());
            return Ok(None);
        }
        let content = body.get("content").and_then(Value::as_object);
        let is_json = |kind: &str| {
            let kind = kind.split(';').next().unwrap_or_default().trim();
            kind == "application/json" || kind == "*/*" || kind.ends_with("+json")
        };
        let best = content
            .into_iter()
            .flatten()
            .filter(|(kind, _)| is_json(kind))
            .min_by_key(|(kind, _)| !kind.starts_with("application/json"));
        let Some((kind, media)) = best else {
            if !is_required && content.is_none_or(Map::is_empty) {
                return Ok(None);
            }
            return Err("its body is no JSON".to_owned());
        };
        let nothing = &Value::Null;
        let schema = media.get("schema").unwrap_or(nothing);
        let plain = if schema.is_null() { json!({}) } else { document.schema(schema)? };
        let mut whole = Body::default();
        if !whole.gather(&plain, 0) {
            return Err("its body is no object, and the input of an action is one".to_owned());
        }
        if !is_required {
            whole.required.clear();
        }
        whole.kind = kind.ends_with("+json").then(|| kind.clone());
        if let Some(Value::Object(example)) = media.get("example") {
            whole.example = example.clone();
        }
        Ok(Some(whole))
    }

    /// One sentence, and the rest where there is more.
    fn texts(&self) -> (String, Option<String>) {
        let text = |key: &str| {
            self.value
                .get(key)
                .and_then(Value::as_str)
                .map(str::trim)
                .filter(|text| !text.is_empty())
        };
        let first = text("summary").or_else(|| text("description")?.lines().next());
        let summary = cut(&first.map_or_else(|| self.words(), flat), 280);
        let description =
            text("description").filter(|text| *text != summary).map(|text| cut(text, 4000));
        (summary, description)
    }

    /// What it answers when all went well.
    fn output(&self, document: &Document<'d>) -> Option<&'static str> {
        let responses = self.value.get("responses")?.as_object()?;
        let good =
            responses.iter().filter(|(status, _)| status.starts_with('2') || *status == "default");
        let parts: Vec<_> = good.filter_map(|(_, part)| document.part(part).ok()).collect();
        let kinds: Vec<_> = parts
            .iter()
            .filter_map(|part| part.get("content")?.as_object())
            .flat_map(Map::keys)
            .collect();
        let is = |test: &dyn Fn(&str) -> bool| kinds.iter().any(|kind| test(kind));
        if is(&|kind| kind.starts_with("application/json") || kind.contains("+json")) {
            Some("json")
        } else if is(&|kind| kind.starts_with("text/")) {
            Some("text")
        } else {
            None
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

struct Parameter {
    name: String,
    place: Place,
    required: bool,
    schema: Value,
    example: Option<Value>,
    /// Whether it is written in a way that requests here are not.
    odd: bool,
}

fn parameter<'d>(part: &'d Value, document: &mut Document<'d>) -> Result<Parameter, String> {
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
struct Body {
    properties: Map<String, Value>,
    required: HashSet<String>,
    open: bool,
    kind: Option<String>,
    example: Map<String, Value>,
}

impl Body {
    /// Takes the members of a schema, and of those it is made of; whether it can be one of an object.
    fn gather(&mut self, schema: &Value, depth: usize) -> bool {
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
        parts.fold(true, |all, part| self.gather(part, depth + 1) && all)
    }
}

/// What an action takes.
#[derive(Default)]
struct Input {
    properties: Map<String, Value>,
    required: Vec<String>,
    examples: Map<String, Value>,
    open: bool,
}

impl Input {
    /// A name of a parameter that neither the body nor another parameter has. One that goes into the query by its own
    /// name keeps it.
    fn free(&self, name: &str, taken: &HashSet<String>, keeps: bool) -> String {
        let plain: String = name
            .chars()
            .map(
                |letter| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '_' },
            )
            .collect();
        let wanted = if keeps { name.to_owned() } else { plain };
        if keeps {
            return wanted;
        }
        let is_free = |name: &str| !taken.contains(name) && !self.properties.contains_key(name);
        let mut free = wanted.clone();
        let mut number = 2;
        while !is_free(&free) {
            free = format!("{wanted}_{number}");
            number += 1;
        }
        free
    }

    fn add(&mut self, name: String, schema: Value, required: bool, example: Option<Value>) {
        if required && !self.required.contains(&name) {
            self.required.push(name.clone());
        }
        if let Some(example) = example {
            self.examples.insert(name.clone(), example);
        }
        self.properties.insert(name, schema);
    }

    fn schema(&self) -> Value {
        let mut schema = json!({"type": "object", "properties": self.properties});
        if !self.required.is_empty() {
            schema["required"] = self.required.clone().into();
        }
        schema["additionalProperties"] = self.open.into();
        schema
    }

    /// What it can be tried with: what is required, as the document gives it.
    fn trial(&self) -> Option<Map<String, Value>> {
        let given = |name: &String| Some((name.clone(), self.examples.get(name)?.clone()));
        self.required.iter().map(given).collect()
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

/// A name of a query as it is written in an address.
fn encoded(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes()
        .map(
            |byte| {
                if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
            },
        )
        .collect()
}

/// A name as every client takes it: lower-case words joined by underscores.
pub(super) fn portable(words: &str) -> String {
    let mut name = String::new();
    let mut before = '_';
    for letter in words.chars() {
        let is_break = !letter.is_ascii_alphanumeric()
            || (letter.is_ascii_uppercase() && before.is_ascii_lowercase());
        if is_break && !name.ends_with('_') && !name.is_empty() {
            name.push('_');
        }
        if letter.is_ascii_alphanumeric() {
            name.push(letter.to_ascii_lowercase());
        }
        before = letter;
    }
    let name: String = name.trim_matches('_').chars().take(56).collect();
    let name = name.trim_end_matches('_');
    if name.starts_with(|first: char| first.is_ascii_lowercase()) {
        name.to_owned()
    } else {
        format!("do_{name}").trim_end_matches('_').to_owned()
    }
}

/// A text of at most so many characters, on one line where it has several.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(most - 1).collect();
    cut.push('…');
    cut
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
