//! The protocol's own show of everything, a server of the older era in Node.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use host::{Advance, Kind, Output, Progress, Warmth};
use serde_json::json;

use crate::support::{Bench, node_servers};

const INDEX: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

fn everything() -> Bench {
    Bench::command(&node_servers(), &["node", INDEX, "stdio"]).within(Duration::from_mins(1))
}

#[tokio::test]
async fn every_kind_of_content_comes_back_as_what_it_is() {
    let mut bench = everything();
    let names = bench.discover().await;
    assert!(names.iter().any(|name| name == "echo"), "{names:?}");
    assert!(bench.tool.package.actions.iter().all(|one| one.side_effects.is_none()));
    let echoed = bench.call("echo", json!({ "message": "héllo" })).await.unwrap();
    assert_eq!(echoed, Output::Text("Echo: héllo".into()));
    let sum = bench.call("get-sum", json!({ "a": 2, "b": 40 })).await.unwrap();
    assert!(matches!(&sum, Output::Text(text) if text.contains("42")), "{sum:?}");
    let weather = bench.call("get-structured-content", json!({ "location": "Chicago" })).await;
    assert!(matches!(&weather, Ok(Output::Json(value)) if value["temperature"].is_number()));
    let image = bench.call("get-tiny-image", json!({})).await.unwrap();
    let Output::Json(contents) = image else { panic!("{image:?}") };
    assert!(contents.as_array().unwrap().iter().any(|one| one["type"] == "image"));
    let links = bench.call("get-resource-links", json!({ "count": 2 })).await.unwrap();
    let Output::Json(contents) = links else { panic!("{links:?}") };
    assert!(contents.as_array().unwrap().iter().any(|one| one["type"] == "resource_link"));
}

#[tokio::test]
async fn what_does_not_fit_is_refused_before_and_by_the_server() {
    let mut bench = everything();
    bench.discover().await;
    let error = bench.call("get-sum", json!({ "a": "two", "b": 1 })).await.unwrap_err();
    assert_eq!(error.kind, Kind::BadInput);
    let error = bench.call("no-such-tool", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unknown);
    let bench = bench.declaring("no-such-tool");
    let error = bench.call("no-such-tool", json!({})).await.unwrap_err();
    assert!(matches!(error.kind, Kind::Unknown | Kind::Failed), "{error:?}");
    assert!(error.message.contains("no-such-tool"), "{error}");
}

#[tokio::test]
async fn a_server_stays_between_calls_unless_it_must_not() {
    let mut bench = everything();
    bench.discover().await;
    let timed = async |warmth| {
        let began = Instant::now();
        bench.ask("echo", json!({ "message": "x" }), warmth, None).await.0.unwrap();
        began.elapsed()
    };
    let cold = timed(Warmth::Cold).await;
    let mut warm = Duration::MAX;
    for _ in 0..5 {
        warm = warm.min(timed(Warmth::Warm).await);
    }
    assert!(warm * 5 < cold, "cold {cold:?}, warm {warm:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_callers_share_one_server() {
    let mut bench = everything();
    bench.discover().await;
    let bench = Arc::new(bench);
    let began = Instant::now();
    let callers: Vec<_> = (0..64)
        .map(|caller| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move {
                for turn in 0..10 {
                    let message = format!("{caller}.{turn}");
                    let echoed = bench.call("echo", json!({ "message": message })).await.unwrap();
                    assert_eq!(echoed, Output::Text(format!("Echo: {message}")));
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    eprintln!("640 calls of 64 callers in {:?}", began.elapsed());
}

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<Advance>>);

impl Progress for Heard {
    fn advanced(&self, advance: &Advance) {
        self.0.lock().unwrap().push(advance.clone());
    }

    fn recorded(&self, record: &serde_json::Value) {
        panic!("an MCP server has no records: {record}");
    }
}

#[tokio::test]
async fn progress_is_passed_on_while_the_call_runs() {
    let mut bench = everything();
    bench.discover().await;
    let heard = Arc::new(Heard::default());
    let listener: Arc<dyn Progress> = heard.clone();
    let input = json!({ "duration": 0.5, "steps": 5 });
    let name = "trigger-long-running-operation";
    let (reply, _) = bench.ask(name, input, Warmth::Warm, Some(listener)).await;
    reply.unwrap();
    let heard = heard.0.lock().unwrap();
    assert!(heard.len() >= 4, "{heard:?}");
    assert!(heard.iter().all(|advance| advance.total == Some(5.0)));
}

#[tokio::test]
async fn a_call_whose_time_is_over_is_called_off_and_the_others_go_on() {
    let mut bench = everything();
    bench.discover().await;
    let name = "trigger-long-running-operation";
    let action = bench.tool.package.actions.iter_mut().find(|one| one.name == name).unwrap();
    action.timeout_ms = Some(300);
    let long = bench.call(name, json!({ "duration": 30, "steps": 3 }));
    let echo = bench.call("echo", json!({ "message": "meanwhile" }));
    let (long, echoed) = tokio::join!(long, echo);
    assert_eq!(long.unwrap_err().kind, Kind::TimedOut);
    assert_eq!(echoed.unwrap(), Output::Text("Echo: meanwhile".into()));
    let again = bench.call("echo", json!({ "message": "after" })).await;
    assert_eq!(again.unwrap(), Output::Text("Echo: after".into()));
}
