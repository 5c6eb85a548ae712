//! One operation of a document as an action.

use serde_json::{Map, Value, json};

use super::input::{Body, Parameter, Request, parameter};
use super::schema::Document;
use super::security::{Told, credentials};
use super::words::{cut, flat, portable};

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
    /// What the owner is asked for.
    pub(super) told: Vec<Told>,
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
        let body = self.body(document, &mut notes)?;
        let mut request = Request::new(self.method, self.path, body.as_ref(), notes);
        for parameter in self.parameters(document)? {
            request.take(parameter)?;
        }
        let credentials = credentials(self.value, document)?;
        let (path, headers) = request.written(body.as_ref(), &credentials)?;
        let Request { mut input, notes, mut told, .. } = request;
        told.extend(credentials);
        if let Some(body) = body {
            input.take(body);
        }
        let mut invocation =
            json!({"kind": "http", "method": self.method.to_ascii_uppercase(), "path": path});
        if !headers.is_empty() {
            invocation["headers"] = headers.into();
        }
        let effects = METHODS.iter().find(|(method, _)| *method == self.method);
        let effects = effects.map_or("destructive", |(_, effects)| effects);
        let (summary, description) = self.texts();
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
        let trial = (effects == "read").then(|| input.trial()).flatten();
        Ok(Made { action, told, trial, notes })
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
            whole.example.clone_from(example);
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
