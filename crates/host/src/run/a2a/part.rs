//! A piece of a message or of an artifact.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// A piece of a message or of an artifact.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    /// Text.
    Text(String),
    /// A JSON value.
    Data(Value),
    /// A file.
    File { bytes: Vec<u8>, media_type: Option<String>, name: Option<String> },
    /// A file that lies elsewhere. It is told and never fetched.
    Link { url: String, media_type: Option<String>, name: Option<String> },
}

/// What an agent takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// JSON, and text.
    Data,
    /// Text and nothing else.
    OnlyText,
}

impl Part {
    /// What an input is sent as: the text of `{"text": "…"}` as text, everything else as data, or as the
    /// text of its JSON to an agent that takes only text.
    pub(super) fn of_input(input: &Map<String, Value>, takes: Takes) -> Self {
        match (input.get("text"), input.len(), takes) {
            (Some(Value::String(text)), 1, _) => Self::Text(text.clone()),
            (.., Takes::Data) => Self::Data(Value::Object(input.clone())),
            (.., Takes::OnlyText) => Self::Text(Value::Object(input.clone()).to_string()),
        }
    }

    /// Reads a part as either version writes it.
    pub(super) fn read(part: &Value) -> Result<Self, &'static str> {
        // 0.3 keeps a file in an object of its own.
        let file = part.get("file").filter(|file| file.is_object()).unwrap_or(part);
        let text = |names: [&str; 2]| {
            names.iter().find_map(|name| file.get(*name)?.as_str()).map(str::to_owned)
        };
        let media_type = text(["mediaType", "mimeType"]).filter(|text| !text.is_empty());
        let name = text(["filename", "name"]).filter(|text| !text.is_empty());
        if let Some(text) = part.get("text") {
            let text = text.as_str().ok_or("the text of a part is none")?;
            return Ok(Self::Text(text.to_owned()));
        }
        if let Some(data) = part.get("data") {
            return Ok(Self::Data(data.clone()));
        }
        if let Some(encoded) = text(["raw", "bytes"]) {
            let bytes =
                STANDARD.decode(encoded).map_err(|_| "the bytes of a part are no base64")?;
            return Ok(Self::File { bytes, media_type, name });
        }
        match text(["url", "uri"]) {
            Some(url) => Ok(Self::Link { url, media_type, name }),
            None => Err("a part is neither text nor data nor a file"),
        }
    }

    /// The part as version 1.0 writes it.
    pub(super) fn to_value(&self) -> Value {
        let (mut value, media_type, name) = match self {
            Self::Text(text) => return json!({ "text": text }),
            Self::Data(data) => return json!({ "data": data }),
            Self::File { bytes, media_type, name } => {
                (json!({ "raw": STANDARD.encode(bytes) }), media_type, name)
            }
            Self::Link { url, media_type, name } => (json!({ "url": url }), media_type, name),
        };
        for (key, text) in [("mediaType", media_type), ("filename", name)] {
            if let Some(text) = text {
                value[key] = text.as_str().into();
            }
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_that_is_only_text_is_sent_as_text() {
        use Takes::{Data, OnlyText};
        let of = |value: Value, takes| Part::of_input(value.as_object().unwrap(), takes).to_value();
        assert_eq!(of(json!({ "text": "hi" }), Data), json!({ "text": "hi" }));
        assert_eq!(of(json!({ "text": 1 }), Data), json!({ "data": { "text": 1 } }));
        let several = json!({ "text": "hi", "n": 1 });
        assert_eq!(of(several.clone(), Data), json!({ "data": several }));
        assert_eq!(of(several.clone(), OnlyText), json!({ "text": several.to_string() }));
        assert_eq!(of(json!({}), Data), json!({ "data": {} }));
    }

    #[test]
    fn both_versions_of_a_file_are_read() {
        let hi = Part::File {
            bytes: b"hi".into(),
            media_type: Some("text/css".into()),
            name: Some("a.css".into()),
        };
        let new = json!({ "raw": "aGk=", "mediaType": "text/css", "filename": "a.css" });
        let old = json!({ "kind": "file", "file": { "bytes": "aGk=", "mimeType": "text/css", "name": "a.css" } });
        assert_eq!(Part::read(&new), Ok(hi.clone()));
        assert_eq!(Part::read(&old), Ok(hi.clone()));
        assert_eq!(hi.to_value(), new);
        let link = json!({ "kind": "file", "file": { "uri": "https://a.test/x" } });
        assert_eq!(Part::read(&link).unwrap().to_value(), json!({ "url": "https://a.test/x" }));
        for odd in [json!({}), json!(7), json!({ "raw": "?" }), json!({ "text": 7 })] {
            assert!(Part::read(&odd).is_err(), "{odd}");
        }
    }
}
