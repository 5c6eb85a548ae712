//! Whether a result is what its action promised.
//!
//! A schema describes JSON. Text keeps such a promise as a string, or as the JSON it holds; nothing keeps it as
//! `null`; bytes keep only one that anything would.

use std::time::Instant;

use manifest::json;
use manifest::model::{Action, Json, OutputFormat};
use serde_json::{Value, json};

use crate::call::Output;
use crate::error::{CallError, Kind};
use crate::input::{check_output, unfit};
use crate::output::envelope;
use crate::stream::Stream;
use crate::strict;

/// Holds a result against what the action promised.
pub(crate) fn check_promise(output: Output, action: &Action) -> Result<Output, CallError> {
    check_heard(output, action, Instant::now(), None)
}

/// The same until the time of the call ends. What a stream has heard it has looked at.
pub(crate) fn check_heard(
    output: Output,
    action: &Action,
    until: Instant,
    stream: Option<&Stream>,
) -> Result<Output, CallError> {
    if action.standard_errors
        && let Output::Json(value) = &output
        && let Some(error) = envelope(value)
    {
        return Err(error);
    }
    let Some(schema) = action.output.as_ref().map(Json::text) else {
        return Ok(output);
    };
    let format = action.output_format;
    match &output {
        // What is declared as bytes, or as nothing, is not JSON by its author's own word.
        _ if matches!(format, Some(OutputFormat::Binary | OutputFormat::None)) => {}
        Output::Json(value) => check_output("the answer", value, schema, until)?,
        Output::Records(records) => match stream {
            Some(stream) => stream.verdict()?,
            None => records
                .iter()
                .try_for_each(|record| check_output("the answer", record, schema, until))?,
        },
        Output::Text(text) => {
            let held = check_text(text, schema, until)?;
            if let Some(value) = held.filter(|_| format != Some(OutputFormat::Text)) {
                return Ok(Output::Json(value));
            }
        }
        Output::Nothing => {
            check_output("the answer is empty, which", &Value::Null, schema, until)?;
        }
        Output::Binary { bytes, media_type } => {
            check_bytes(&bytes_in_words(bytes, media_type.as_deref()), schema, until)?;
        }
    }
    Ok(output)
}

/// Why something of another format than the declared one is no answer.
pub(crate) fn not_declared(came: &str, format: OutputFormat) -> CallError {
    let declared = format.name();
    CallError::new(Kind::BadOutput, format!("the answer is {came}, and `{declared}` is declared"))
        .with("declared", declared)
}

/// Bytes, as people are told of them.
pub(crate) fn bytes_in_words(bytes: &[u8], media_type: Option<&str>) -> String {
    let of = media_type.map(|kind| format!(" of {kind}")).unwrap_or_default();
    match bytes.len() {
        1 => format!("1 byte{of}"),
        count => format!("{count} bytes{of}"),
    }
}

/// Holds a text against a schema; the JSON it holds, where that is what fits.
fn check_text(text: &str, schema: &str, until: Instant) -> Result<Option<Value>, CallError> {
    let as_text = check_output("the answer is a text, which", &json!(text), schema, until);
    let Err(unfit) = as_text else { return Ok(None) };
    match strict::tree(text) {
        Ok(node) => {
            let value = node.to_value();
            check_output("the answer", &value, schema, until).map(|()| Some(value))
        }
        Err(fault) if fault.is_json => Err(fault.in_answer("the answer")),
        Err(_) => Err(unfit),
    }
}

/// Holds bytes against a schema. They are no JSON, so it has to be one that takes whatever there is.
fn check_bytes(came: &str, schema: &str, until: Instant) -> Result<(), CallError> {
    for one in [json!(null), json!(true), json!(0), json!(""), json!([]), json!({})] {
        if !unfit(&one, schema, until)?.is_empty() {
            let parsed = json::parse(schema);
            let declared = parsed.root.as_ref().and_then(|root| root.get("type"));
            let why = match declared {
                Some(kind) => format!("bytes are not of type {}", kind.to_value()),
                None => "bytes are no JSON".to_owned(),
            };
            let message = format!("the answer is {came}, which does not fit its schema: {why}");
            return Err(CallError::new(Kind::BadOutput, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An action that promises this.
    fn action(schema: &Value, format: Option<OutputFormat>) -> Action {
        let mut action = crate::run::mcp::assumed("look");
        let text = schema.to_string();
        let root = json::parse(&text).root.unwrap();
        action.output = Some(Json::of(&root, &text));
        action.output_format = format;
        action
    }

    fn check(output: Output, schema: &Value) -> Result<Output, String> {
        checked(output, schema, None)
    }

    fn checked(
        output: Output,
        schema: &Value,
        format: Option<OutputFormat>,
    ) -> Result<Output, String> {
        check_promise(output, &action(schema, format)).map_err(|error| {
            assert_eq!(error.kind, Kind::BadOutput);
            error.message
        })
    }

    fn text(text: &str) -> Output {
        Output::Text(text.to_owned())
    }

    fn picture() -> Output {
        Output::binary(b"\x89PNG".into(), Some("image/png"))
    }

    #[test]
    fn text_bytes_and_nothing_are_held_against_the_schema_and_told_for_what_they_are() {
        let object = json!({ "type": "object", "required": ["n"] });
        let refused = |output| check(output, &object).unwrap_err();
        assert_eq!(
            refused(text("words")),
            "the answer is a text, which does not fit its schema: \"words\" is not of type \"object\""
        );
        assert_eq!(
            refused(picture()),
            "the answer is 4 bytes of image/png, which does not fit its schema: bytes are not of type \"object\""
        );
        assert_eq!(
            refused(Output::Nothing),
            "the answer is empty, which does not fit its schema: null is not of type \"object\""
        );
        let no_type = json!({ "required": ["n"] });
        assert_eq!(
            check(Output::binary(vec![7], None), &no_type).unwrap_err(),
            "the answer is 1 byte, which does not fit its schema: bytes are no JSON"
        );
    }

    #[test]
    fn what_a_schema_leaves_open_is_taken_as_it_is() {
        for schema in [json!({}), json!({ "description": "Whatever it is." })] {
            for output in [text("words"), text("{\"n\":1}"), picture(), Output::Nothing] {
                assert_eq!(check(output.clone(), &schema), Ok(output));
            }
        }
        let nullable = json!({ "type": ["object", "null"] });
        assert_eq!(check(Output::Nothing, &nullable), Ok(Output::Nothing));
    }

    #[test]
    fn text_keeps_a_promise_by_itself_or_as_the_json_it_holds() {
        let object = json!({ "type": "object" });
        let held = text("{\"n\":1}");
        assert_eq!(check(held.clone(), &json!({ "type": "string" })), Ok(held.clone()));
        assert_eq!(check(held.clone(), &object), Ok(Output::Json(json!({ "n": 1 }))));
        assert_eq!(checked(held.clone(), &object, Some(OutputFormat::Text)), Ok(held));
        assert_eq!(
            check(text("[1]"), &object).unwrap_err(),
            "the answer does not fit its schema: [1] is not of type \"object\""
        );
        assert_eq!(
            check(text("{\"n\":1,\"n\":2}"), &object).unwrap_err(),
            "the answer cannot be used: the key `n` appears twice in one object (line 1, column 8)"
        );
    }

    #[test]
    fn what_is_declared_as_bytes_or_nothing_is_held_against_no_schema() {
        let object = json!({ "type": "object" });
        assert_eq!(checked(picture(), &object, Some(OutputFormat::Binary)), Ok(picture()));
        let none = Some(OutputFormat::None);
        assert_eq!(checked(Output::Nothing, &object, none), Ok(Output::Nothing));
    }
}
