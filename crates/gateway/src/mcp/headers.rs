//! What the headers of a request say of it in the newer era, so that whoever stands between need not read it. They must not
//! say something else than the request itself.

use axum::http::{HeaderMap, HeaderName};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::error::{Code, Error};

/// How a value is written that cannot stand in a header.
pub(super) const BEFORE: &str = "=?base64?";
pub(super) const AFTER: &str = "?=";

/// How deep parameters are looked for.
const DEEPEST: usize = 16;

/// Refuses a request whose headers say something else.
pub(crate) fn check(
    headers: &HeaderMap,
    method: &str,
    params: &Value,
    schema: Option<&Value>,
) -> Result<(), Error> {
    same(headers, "mcp-method", Some(method))?;
    let named = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        "tasks/get" | "tasks/update" | "tasks/cancel" => params["taskId"].as_str(),
        _ => return Ok(()),
    };
    // Without it there is nothing that a header could say, and the request is refused for that.
    if named.is_some() {
        same(headers, "mcp-name", named)?;
    }
    if let Some(schema) = schema {
        for (name, path) in annotated(schema, DEEPEST) {
            let value = path.iter().try_fold(&params["arguments"], |value, key| value.get(key));
            let written = value.and_then(|value| match value {
                Value::String(text) => Some(text.clone()),
                Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
                _ => None,
            });
            let header = format!("mcp-param-{}", name.to_ascii_lowercase());
            match written {
                Some(written) => same(headers, &header, Some(&written))?,
                None => same(headers, &header, None)?,
            }
        }
    }
    Ok(())
}

fn same(headers: &HeaderMap, name: &str, said: Option<&str>) -> Result<(), Error> {
    let wrong = |words: String| Err(Error::new(Code::Headers, words));
    let Ok(known) = HeaderName::from_bytes(name.as_bytes()) else { return Ok(()) };
    let mut all = headers.get_all(known).iter();
    match (all.next(), all.next(), said) {
        (None, _, None) => Ok(()),
        (None, _, Some(_)) => wrong(format!("the header `{name}` is missing")),
        (Some(_), Some(_), _) => wrong(format!("the header `{name}` is there twice")),
        (Some(_), None, None) => {
            wrong(format!("the header `{name}` says what the request does not"))
        }
        (Some(value), None, Some(said)) => {
            let read = value.to_str().ok().and_then(|text| decoded(text.trim()));
            if read.as_deref() == Some(said) {
                Ok(())
            } else {
                wrong(format!("the header `{name}` says something else than the request"))
            }
        }
    }
}

/// The value of a header.
pub(super) fn decoded(text: &str) -> Option<String> {
    let inner = text.strip_prefix(BEFORE).and_then(|rest| rest.strip_suffix(AFTER));
    match inner {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

/// The parameters that a schema wants in headers: what each is called there, and where it is.
fn annotated(schema: &Value, deepest: usize) -> Vec<(&str, Vec<&str>)> {
    let mut all = Vec::new();
    if deepest == 0 {
        return all;
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(header) = property["x-mcp-header"].as_str().filter(|header| !header.is_empty())
        {
            all.push((header, vec![name.as_str()]));
        }
        for (header, mut path) in annotated(property, deepest - 1) {
            path.insert(0, name);
            all.push((header, path));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use serde_json::json;

    use super::*;

    fn headers(all: &[(&str, &str)]) -> HeaderMap {
        let one = |(name, value): &(&str, &str)| {
            (
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            )
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn headers_say_what_the_request_says() {
        let call =
            json!({ "name": "echo", "arguments": { "region": "Hello", "deep": { "n": 7 } } });
        let schema = json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "properties": { "n": { "type": "integer", "x-mcp-header": "N" } } },
        } });
        let checked = |all: &[(&str, &str)]| {
            check(&headers(all), "tools/call", &call, Some(&schema)).map_err(|error| error.code)
        };
        let right = [
            ("Mcp-Method", "tools/call"),
            ("mcp-name", "  echo "),
            ("mcp-param-region", "Hello"),
            ("mcp-param-n", "7"),
        ];
        assert_eq!(checked(&right), Ok(()));
        let coded = [right[0], right[1], ("mcp-param-region", "=?base64?SGVsbG8=?="), right[3]];
        assert_eq!(checked(&coded), Ok(()));
        for wrong in [
            vec![],
            vec![("mcp-method", "TOOLS/CALL"), right[1], right[2], right[3]],
            vec![right[0], ("mcp-name", "other"), right[2], right[3]],
            vec![right[0], right[2], right[3]],
            vec![right[0], right[1], right[3]],
            vec![right[0], right[1], ("mcp-param-region", "=?base64?SGVsbG8?="), right[3]],
            vec![right[0], right[1], ("mcp-param-region", "=?base64?SGVs!!!bG8=?="), right[3]],
            vec![right[0], right[0], right[1], right[2], right[3]],
        ] {
            assert_eq!(checked(&wrong), Err(Code::Headers), "{wrong:?}");
        }
        assert!(
            check(&headers(&[("mcp-method", "tools/list")]), "tools/list", &json!({}), None)
                .is_ok()
        );
    }
}
