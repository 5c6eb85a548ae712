//! Agents made of the library of the protocol, in both of its versions.

use std::time::{Duration, Instant};

use host::{Call, Kind, Output, TraceContext, Warmth};
use policy::Grants;
use serde_json::{Value, json};

use crate::kit;
use crate::support::{Site, VERSIONS};

/// Waits until the agent says that it called off a task.
async fn cancelled(site: &Site) -> Value {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let told = site.json(json!({ "do": "cancelled" })).await["cancelled"].clone();
        if told != json!([]) || Instant::now() > until {
            return told;
        }
    }
}

#[tokio::test]
async fn what_an_agent_makes_is_the_result() {
    for version in VERSIONS {
        let site = Site::of_library(version, "card");
        let tool = site.tool(json!({}));
        let call = async |input: Value| site.call(&tool, &input).await.unwrap();
        let said = call(json!({ "text": "hello" })).await;
        assert_eq!(said, Output::Text("you said hello".into()), "{version}");
        let echoed = call(json!({ "do": "echo", "n": 3 })).await.into_value();
        assert_eq!(
            (&echoed["told"]["do"], echoed["told"]["n"].as_f64()),
            (&json!("echo"), Some(3.0))
        );
        let header = echoed["headers"]["a2a-version"].as_str();
        assert_eq!(header, (version == "1").then_some("1.0"));
        assert_eq!(call(json!({ "do": "message" })).await, Output::Text("just words".into()));
        let media_type = Some("image/png".to_owned());
        let picture = Output::Binary { bytes: b"\x89PNG".into(), media_type };
        assert_eq!(call(json!({ "do": "file" })).await, picture);
        let several = call(json!({ "do": "several" })).await.into_value();
        assert_eq!(several[0], json!({ "text": "one" }), "{version}");
        assert_eq!(several[1]["data"]["two"].as_f64(), Some(2.0));
        assert_eq!(
            call(json!({ "do": "echo", "seconds": 0.5 })).await.into_value()["told"]["do"],
            "echo"
        );
    }
}

#[tokio::test]
async fn an_agent_is_told_where_a_call_belongs() {
    for version in VERSIONS {
        let site = Site::of_library(version, "card");
        let tool = site.tool(json!({}));
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned();
        let context = TraceContext { parent: parent.clone(), state: Some("a=1".to_owned()) };
        // The agent is granted with its first call.
        site.call(&tool, &json!({ "text": "hello" })).await.unwrap();
        let call = kit::call_of(&tool, &json!({ "do": "echo" }));
        let call = Call { context: Some(context), ..call };
        let echoed = site.host.call(&tool, &call, Warmth::Cold).await.reply.unwrap().into_value();
        let headers = &echoed["headers"];
        let told = (headers["traceparent"].as_str(), headers["tracestate"].as_str());
        assert_eq!(told, (Some(&*parent), Some("a=1")), "{version}");
    }
}

#[tokio::test]
async fn the_version_is_found_without_a_card() {
    for version in VERSIONS {
        let site = Site::of_library(version, "none");
        for words in ["once", "again"] {
            let said = site.json(json!({ "text": words })).await;
            assert_eq!(said, format!("you said {words}"), "{version}");
        }
    }
}

#[tokio::test]
async fn what_an_agent_does_not_do_is_told_in_its_words() {
    for version in VERSIONS {
        let site = Site::of_library(version, "card");
        for (does, message, state) in [
            ("fail", "it broke", "failed"),
            ("reject", "the agent does not take the task: not mine to do", "rejected"),
            ("ask", "the agent asks before it goes on: Which city?", "input-required"),
            (
                "login",
                "the agent asks for a sign-in before it goes on: Sign in at the desk.",
                "auth-required",
            ),
        ] {
            let error = site.error(json!({ "do": does })).await;
            assert_eq!((&error.kind, &*error.message), (&Kind::Failed, message), "{version}");
            assert_eq!(error.details["state"], state);
            assert!(error.details["task"].is_string() && error.details["context"].is_string());
        }
    }
}

#[tokio::test]
async fn a_task_that_takes_too_long_is_called_off() {
    for version in VERSIONS {
        let site = Site::of_library(version, "card");
        let runtime = json!({
            "sandbox": "process", "resources": { "cpu": "1", "memory": "256Mi" }, "timeout_seconds": 1,
        });
        let tool = site.tool(json!({ "runtime": runtime }));
        let began = Instant::now();
        let error = site.call(&tool, &json!({ "do": "hang" })).await.unwrap_err();
        assert_eq!((&error.kind, &error.details["cancelled"]), (&Kind::TimedOut, &json!(true)));
        assert!(began.elapsed() < Duration::from_secs(10));
        assert_eq!(cancelled(&site).await, json!([error.details["task"]]), "{version}");
    }
}

#[tokio::test]
async fn a_task_that_nobody_waits_for_is_called_off() {
    for version in VERSIONS {
        let site = Site::of_library(version, "card");
        let tool = site.tool(json!({}));
        site.json(json!({ "text": "so that it is known" })).await;
        let input = json!({ "do": "hang" });
        let waiting = tokio::time::timeout(Duration::from_secs(1), site.call(&tool, &input));
        assert!(waiting.await.is_err(), "it must hang");
        assert_eq!(cancelled(&site).await.as_array().map(Vec::len), Some(1), "{version}");
    }
}

#[tokio::test]
async fn a_secret_goes_where_the_card_says_and_comes_back_nowhere() {
    let secrets = json!({ "secrets": [{ "name": "AGENT_TOKEN", "ref": "env://AGENT_TOKEN" }] });
    for version in VERSIONS {
        for (card, header, sent) in [
            ("card", "authorization", "Bearer [secret AGENT_TOKEN]"),
            ("key", "x-agent-key", "[secret AGENT_TOKEN]"),
        ] {
            let site = Site::of_library(version, card);
            let tool = site.tool(secrets.clone());
            let echoed = site.call(&tool, &json!({ "do": "echo" })).await.unwrap();
            assert_eq!(echoed.into_value()["headers"][header], sent, "{version}");
            let error = site.call(&tool, &json!({ "do": "fail" })).await.unwrap_err();
            assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
        }
    }
    let site = Site::of_library("1", "card");
    let both = json!({ "secrets": [
        { "name": "AGENT_TOKEN", "ref": "env://AGENT_TOKEN" }, { "name": "OTHER", "ref": "env://OTHER" },
    ] });
    let error = site.call(&site.tool(both), &json!({ "do": "echo" })).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unavailable);
}

#[tokio::test]
async fn an_answer_that_is_too_large_ends_the_call() {
    for version in VERSIONS {
        let site = Site::of_library(version, "card");
        let error = site.error(json!({ "do": "large" })).await;
        assert_eq!(error.kind, Kind::TooMuchOutput, "{version} {error}");
    }
}

#[tokio::test]
async fn an_agent_that_was_not_granted_is_not_asked() {
    let site = Site::of_library("1", "card");
    let tool = site.tool(json!({}));
    let (reply, blocked) = site.call_granting(&tool, &json!({}), &Grants::default()).await;
    assert_eq!(reply.unwrap_err().kind.code(), "denied");
    assert_eq!(blocked[0].asked, format!("127.0.0.1:{}", site.port));
    let offline = site.tool(json!({
        "permissions": { "network": "deny", "filesystem": "none", "devices": [] },
    }));
    let error = site.call(&offline, &json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Denied);
    assert_eq!(error.message, "network denied by capability permissions");
}
