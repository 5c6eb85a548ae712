//! Agents of our own: the one among the examples, and some that break the protocol.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use host::{Kind, Output};
use serde_json::{Value, json};

use crate::support::{Site, response, result, tool_of};

fn task(id: &str, state: &str) -> Value {
    json!({ "id": id, "contextId": "c", "status": { "state": state } })
}

fn methods(site: &Site) -> Vec<String> {
    site.asked().iter().map(|asked| asked["method"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_example_counts_words() {
    let folder = "../../examples/capability/ask-agent";
    let site = Site::of_script(&format!("{folder}/agent.py"), "0", "".as_ref());
    let text = std::fs::read_to_string(format!("{folder}/manifest.json")).unwrap();
    let manifest = text.replace("127.0.0.1:8731", &format!("127.0.0.1:{}", site.port));
    let tool = tool_of(&serde_json::from_str(&manifest).unwrap());
    let counted = site.call(&tool, &json!({ "text": "one two three" })).await.unwrap();
    assert_eq!(counted, Output::Json(json!({ "words": 3 })));
}

#[tokio::test]
async fn what_is_no_answer_is_told_as_such() {
    let answers: [fn(&Value) -> String; 9] = [
        |_| response("200 OK", "application/json", "garbage"),
        |_| response("200 OK", "text/html", "<html>"),
        |_| response("200 OK", "application/json", r#"{"jsonrpc":"2.0","id":"other","result":{}}"#),
        |asked| result(asked, &json!(null)),
        |asked| result(asked, &json!({ "task": { "id": 7 } })),
        |asked| result(asked, &json!({ "task": task("t", "TASK_STATE_DREAMING") })),
        |asked| result(asked, &json!({ "message": { "parts": [{ "raw": "???" }] } })),
        |asked| result(asked, &json!({ "message": { "parts": "many" } })),
        |asked| {
            let deep = "[".repeat(100_000);
            let id = &asked["id"];
            response(
                "200 OK",
                "application/json",
                &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{deep}"#),
            )
        },
    ];
    for (at, answer) in answers.into_iter().enumerate() {
        let site = Site::answering(answer);
        let error = site.error(json!({})).await;
        assert_eq!(error.kind, Kind::BadOutput, "{at}: {error}");
        assert_eq!(methods(&site), ["SendMessage"], "{at}: it is sent once");
    }
}

#[tokio::test]
async fn what_is_not_promised_is_no_answer() {
    let site = Site::answering(|asked| {
        let part = match asked["params"]["message"]["parts"][0]["text"].as_str().unwrap() {
            "file" => json!({ "raw": "iVBORw0KGgo=", "mediaType": "image/png" }),
            text => json!({ "text": text }),
        };
        result(asked, &json!({ "message": { "parts": [part] } }))
    });
    let outputs = json!({ "type": "object", "required": ["words"] });
    let interfaces = json!({ "inputs": { "type": "object" }, "outputs": outputs });
    let tool = site.tool(json!({ "interfaces": interfaces }));
    for (says, told) in
        [("file", "the answer is 8 bytes of image/png, "), ("hello", "the answer is a text, ")]
    {
        let error = site.call(&tool, &json!({ "text": says })).await.unwrap_err();
        assert_eq!(error.kind, Kind::BadOutput);
        assert!(error.message.starts_with(told), "{error}");
    }
    let said = site.call(&tool, &json!({ "text": "{\"words\":2}" })).await.unwrap();
    assert_eq!(said, Output::Json(json!({ "words": 2 })));
}

#[tokio::test]
async fn who_calls_a_call_off_does_not_wait_for_a_card() {
    let site = Site::silent();
    let began = Instant::now();
    let error = site.calling_off(Duration::from_millis(300)).await.unwrap_err();
    assert_eq!(error.kind, Kind::Cancelled);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_task_is_called_off_also_where_the_call_was_while_the_message_was_on_its_way() {
    let site = Site::answering(|asked| match asked["method"].as_str().unwrap() {
        "SendMessage" => {
            std::thread::sleep(Duration::from_millis(700));
            result(asked, &json!({ "task": task("mine", "TASK_STATE_WORKING") }))
        }
        _ => result(asked, &task("mine", "TASK_STATE_CANCELED")),
    });
    let error = site.calling_off(Duration::from_millis(300)).await.unwrap_err();
    assert_eq!((&error.kind, &error.details["cancelled"]), (&Kind::Cancelled, &json!(true)));
    assert_eq!(methods(&site), ["SendMessage", "CancelTask"]);
    assert_eq!(site.asked()[1]["params"]["id"], "mine");
}

#[tokio::test]
async fn what_nobody_would_read_to_its_end_is_shortened() {
    let site = Site::answering(|asked| {
        let error = json!({ "code": -32603, "message": "x".repeat(500_000) });
        let body = json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error });
        response("200 OK", "application/json", &body.to_string())
    });
    let error = site.error(json!({})).await;
    assert!((1000..5000).contains(&error.message.len()), "{}", error.message.len());
}

#[tokio::test]
async fn a_task_that_becomes_another_one_is_called_off() {
    let site = Site::answering(|asked| match asked["method"].as_str().unwrap() {
        "SendMessage" => result(asked, &json!({ "task": task("mine", "TASK_STATE_WORKING") })),
        "GetTask" => result(asked, &task("theirs", "TASK_STATE_COMPLETED")),
        _ => result(asked, &task("mine", "TASK_STATE_CANCELED")),
    });
    let error = site.error(json!({})).await;
    assert_eq!((&error.kind, &error.details["cancelled"]), (&Kind::BadOutput, &json!(true)));
    assert_eq!(methods(&site), ["SendMessage", "GetTask", "CancelTask"]);
    assert_eq!(site.asked()[2]["params"]["id"], "mine");
}

#[tokio::test]
async fn an_agent_that_only_streams_is_refused_with_a_word() {
    let stream = Site::answering(|_| response("200 OK", "text/event-stream", "data: {}\n\n"));
    let error = stream.error(json!({})).await;
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(error.message.contains("stream"), "{error}");
    let other = Site::answering(|asked| {
        let error = json!({ "code": -32601, "message": "no" });
        let body = json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error });
        response("200 OK", "application/json", &body.to_string())
    });
    let error = other.error(json!({})).await;
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(error.message.contains("message/send"), "{error}");
    assert_eq!(methods(&other), ["SendMessage", "message/send"]);
}

#[tokio::test]
async fn refusals_of_the_agent_are_told_and_nothing_is_sent_twice() {
    for (code, kind) in [(-32602, Kind::BadInput), (-32603, Kind::Failed), (-32005, Kind::BadInput)]
    {
        let site = Site::answering(move |asked| {
            let error = json!({ "code": code, "message": "it is so", "data": { "n": 1 } });
            let body = json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error });
            response("400 Bad Request", "application/json", &body.to_string())
        });
        let error = site.error(json!({})).await;
        assert_eq!((error.kind, &*error.message), (kind, "it is so"));
        assert_eq!(
            (&error.details["code"], &error.details["data"]["n"]),
            (&json!(code), &json!(1))
        );
        assert_eq!(methods(&site), ["SendMessage"]);
    }
    let site = Site::answering(|_| response("503 Service Unavailable", "text/plain", "later"));
    let error = site.error(json!({})).await;
    assert_eq!((&error.kind, &error.details["status"]), (&Kind::Failed, &json!(503)));
    assert_eq!(methods(&site), ["SendMessage"]);
    let elsewhere = Site::answering(|_| {
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n".into()
    });
    assert_eq!(elsewhere.error(json!({})).await.details["status"], 307);
}

#[tokio::test]
async fn a_look_that_fails_is_taken_again() {
    let looks = AtomicUsize::new(0);
    let site = Site::answering(move |asked| match asked["method"].as_str().unwrap() {
        "SendMessage" => result(asked, &json!({ "task": task("t", "TASK_STATE_WORKING") })),
        _ if looks.fetch_add(1, Ordering::SeqCst) < 2 => {
            response("502 Bad Gateway", "text/plain", "later")
        }
        _ => {
            let mut done = task("t", "TASK_STATE_COMPLETED");
            done["artifacts"] = json!([{ "parts": [{ "text": "done" }] }]);
            result(asked, &done)
        }
    });
    let reply = site.call(&site.tool(json!({})), &json!({})).await.unwrap();
    assert_eq!(reply, Output::Text("done".into()));
    assert_eq!(methods(&site), ["SendMessage", "GetTask", "GetTask", "GetTask"]);
}

#[tokio::test]
async fn a_secret_is_not_sent_in_plain_to_another_machine() {
    let site = Site::answering(|asked| result(asked, &json!(null)));
    let tool = site.tool(json!({
        "secrets": [{ "name": "AGENT_TOKEN", "ref": "env://AGENT_TOKEN" }],
        "implementation": { "kind": "a2a_rpc", "a2a": { "endpoint": "http://agent.example.invalid/" } },
    }));
    let error = site.call(&tool, &json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Denied);
    assert!(error.message.contains("over plain `http`"), "{error}");
}

#[tokio::test]
async fn an_answer_must_keep_its_promise() {
    let site = Site::answering(|asked| {
        result(asked, &json!({ "message": { "parts": [{ "data": { "city": 7 } }] } }))
    });
    let outputs = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let interfaces = json!({ "inputs": { "type": "object" }, "outputs": outputs });
    let tool = site.tool(json!({ "interfaces": interfaces }));
    let error = site.call(&tool, &json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::BadOutput, "{error}");
}
