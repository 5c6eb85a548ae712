//! Results, as the era of a client knows them.

use host::Output;
use serde_json::{Map, Value, json};

use super::revision::Revision;

/// How long what is listed may be taken for what there is. Whoever wants to know sooner listens.
pub(crate) const TTL_MS: u64 = 5_000;

/// A result as it is sent.
pub(crate) fn whole(result: Value, revision: Revision) -> String {
    in_era(result, revision).to_string()
}

/// A result as an era knows it: of the newer each says that it is whole.
pub(crate) fn in_era(mut result: Value, revision: Revision) -> Value {
    if let Value::Object(all) = &mut result {
        mark(all, revision);
    }
    result
}

/// A result as it is sent, that may be kept for a while, and for its client alone: who may see it depends on who they are, whatever a
/// server says of it.
pub(crate) fn kept(mut result: Value, revision: Revision) -> String {
    if let Value::Object(all) = &mut result {
        mark(all, revision);
        if revision.is_stateless() {
            all.entry("ttlMs").or_insert(TTL_MS.into());
            all.insert("cacheScope".to_owned(), "private".into());
        } else {
            all.remove("ttlMs");
            all.remove("cacheScope");
        }
    }
    result.to_string()
}

fn mark(all: &mut Map<String, Value>, revision: Revision) {
    if revision.is_stateless() {
        all.entry("resultType").or_insert("complete".into());
    } else {
        all.remove("resultType");
    }
}

/// The result of a tool that is no server: an object as it is, and everything in words.
pub(crate) fn of_output(output: Output) -> Value {
    match output {
        Output::Json(value @ Value::Object(_)) => {
            json!({ "content": [text(&value.to_string())], "structuredContent": value })
        }
        Output::Text(words) => json!({ "content": [text(&words)] }),
        Output::Nothing => json!({ "content": [] }),
        Output::Binary { bytes, media_type } => {
            json!({ "content": [of_bytes(&bytes, media_type)] })
        }
        other => json!({ "content": [text(&other.into_value().to_string())] }),
    }
}

/// Bytes: pictures and sounds as what they are, anything else as a resource that is embedded.
fn of_bytes(bytes: &[u8], media_type: Option<String>) -> Value {
    use base64::Engine;
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    let media_type = media_type.unwrap_or_else(|| "application/octet-stream".to_owned());
    match media_type.split_once('/').map(|(kind, _)| kind) {
        Some("image") => json!({ "type": "image", "data": data, "mimeType": media_type }),
        Some("audio") => json!({ "type": "audio", "data": data, "mimeType": media_type }),
        _ => json!({
            "type": "resource",
            "resource": { "uri": "haft:result", "blob": data, "mimeType": media_type },
        }),
    }
}

pub(crate) fn text(words: &str) -> Value {
    json!({ "type": "text", "text": words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_era_gets_what_it_knows() {
        let (old, new) = (Revision::V2025_11_25, Revision::V2026_07_28);
        assert_eq!(
            whole(json!({ "content": [] }), new),
            r#"{"content":[],"resultType":"complete"}"#
        );
        assert_eq!(whole(json!({ "resultType": "complete", "a": 1 }), old), r#"{"a":1}"#);
        assert_eq!(kept(json!({ "tools": [], "ttlMs": 1 }), old), r#"{"tools":[]}"#);
        for said in [json!({ "ttlMs": 1 }), json!({ "ttlMs": 1, "cacheScope": "public" })] {
            let told: Value = serde_json::from_str(&kept(said, new)).unwrap();
            let expected = json!({ "resultType": "complete", "ttlMs": 1, "cacheScope": "private" });
            assert_eq!(told, expected);
        }
    }

    #[test]
    fn outputs_of_every_kind_are_contents() {
        let object = of_output(Output::Json(json!({ "a": 1 })));
        assert_eq!(object["structuredContent"], json!({ "a": 1 }));
        assert_eq!(object["content"][0]["text"], "{\"a\":1}");
        let list = of_output(Output::Json(json!([1])));
        assert_eq!(
            (list.get("structuredContent"), &list["content"][0]["text"]),
            (None, &json!("[1]"))
        );
        let picture = of_output(Output::Binary {
            bytes: b"hi".to_vec(),
            media_type: Some("image/png".into()),
        });
        assert_eq!(
            picture["content"][0],
            json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" })
        );
        let bytes = of_output(Output::Binary { bytes: b"hi".to_vec(), media_type: None });
        assert_eq!(bytes["content"][0]["resource"]["blob"], "aGk=");
    }
}
