//! Answers held against what was declared of them, whichever kind they are.

use host::{Kind, Output};
use manifest::model::OutputFormat;
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

#[tokio::test]
async fn an_answer_has_to_be_of_the_declared_format() {
    let bench = bench().promising(Some(OutputFormat::Text), None);
    let error = bench.call("act", picture()).await.unwrap_err();
    let told = "the answer is 8 bytes of image/png, and `text` is declared";
    assert_eq!((error.kind, &*error.message), (Kind::BadOutput, told));
    assert_eq!(error.details["declared"], "text");
    let record = json!({ "type": "object", "required": ["i"] });
    let bench = bench.promising(Some(OutputFormat::NdjsonStream), Some(&record));
    let told = bench.call("act", words("{\"i\":1}\n{\"i\":2}")).await.unwrap();
    assert_eq!(told, Output::Records(vec![json!({ "i": 1 }), json!({ "i": 2 })]));
    for answer in ["just words", "{\"i\":1}\n{\"j\":2}"] {
        let error = bench.call("act", words(answer)).await.unwrap_err();
        assert_eq!(error.kind, Kind::BadOutput, "{answer}");
    }
}

#[tokio::test]
async fn a_failure_in_the_standard_shape_is_the_same_however_it_is_reported() {
    let mut bench = bench().promising(Some(OutputFormat::Json), None);
    bench.tool.package.actions[0].standard_errors = true;
    let said =
        json!({ "error": { "code": "QUOTA", "message": "used up", "details": { "left": 0 } } });
    for is_error in [true, false] {
        let mut answer = words(&said.to_string());
        answer["isError"] = is_error.into();
        let error = bench.call("act", answer).await.unwrap_err();
        assert_eq!((error.kind, &*error.message), (Kind::Failed, "used up"), "{is_error}");
        assert_eq!(error.details["code"], "QUOTA");
        assert_eq!(error.details["details"], json!({ "left": 0 }));
    }
}

#[tokio::test]
async fn the_command_of_a_server_is_filled_in() {
    let text =
        "def act(id, arguments, request):\n    say(id, ' '.join(sys.argv[1:]))\nserve(act)\n";
    let text = format!("{BEGIN}{text}");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let command = ["python3", "-c", &text, "--space=${env.TRIAL_SPACE}"];
    let bench = Bench::command(folder.path(), &command).declaring("act");
    let said = bench.call("act", json!({})).await.unwrap();
    assert_eq!(said, Output::Text("--space=main".into()));
}
