//! Answers held against what was declared of them, whichever kind they are.

use host::{Kind, Output};
use serde_json::{Value, json};

use crate::hostile::BEGIN;
use crate::support::Bench;

/// A server that answers with what it is given.
fn bench() -> Bench {
    let act = "def act(id, arguments, request): answer(id, arguments)\nserve(act)";
    Bench::script(&format!("{BEGIN}{act}")).declaring("act")
}

fn words(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn picture() -> Value {
    json!({ "content": [{ "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" }] })
}

#[tokio::test]
async fn an_answer_of_any_kind_has_to_fit_the_schema() {
    let schema = json!({ "type": "object", "required": ["n"] });
    let bench = bench().promising(None, Some(&schema));
    for (answer, told) in [
        (words("words"), "the answer is a text, which"),
        (words("{\"x\":1}"), "the answer does not fit its schema: \"n\" is a required property"),
        (picture(), "the answer is 8 bytes of image/png, which"),
        (json!({ "content": [] }), "the answer is empty, which"),
    ] {
        let error = bench.call("act", answer).await.unwrap_err();
        assert_eq!(error.kind, Kind::BadOutput);
        assert!(error.message.starts_with(told), "{error}");
    }
    let fits = bench.call("act", words("{\"n\":1}")).await.unwrap();
    assert_eq!(fits, Output::Json(json!({ "n": 1 })));
    // One that says nothing is kept by anything.
    let bench = bench.promising(None, Some(&json!({})));
    assert_eq!(bench.call("act", words("words")).await.unwrap(), Output::Text("words".into()));
    assert!(matches!(bench.call("act", picture()).await, Ok(Output::Binary { .. })));
    let nothing = bench.call("act", json!({ "content": [] })).await.unwrap();
    assert_eq!(nothing, Output::Nothing);
}
