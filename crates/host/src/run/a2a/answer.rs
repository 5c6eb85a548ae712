//! From what an agent made to a result, or to why there is none.

use manifest::model::Action;
use serde_json::{Value, json};

use super::part::Part;
use super::task::{Artifact, State, Task};
use crate::call::Output;
use crate::error::{CallError, Kind};
use crate::promise::check_promise;

/// Reads a task that goes on no further by itself.
pub(super) fn of_task(task: Task, action: &Action) -> Result<Output, CallError> {
    match task.state {
        State::Completed => {}
        state => return Err(not_done(&task, state)),
    }
    let Task { words, mut artifacts, .. } = task;
    artifacts.retain(|artifact| !artifact.parts.is_empty());
    if artifacts.len() > 1 {
        let all: Vec<_> = artifacts.iter().map(to_value).collect();
        return check_promise(Output::Json(Value::Array(all)), action);
    }
    // What the agent says about its work is the answer only where there is nothing else.
    of_parts(artifacts.pop().map_or(words, |artifact| artifact.parts), action)
}

/// Reads parts: a sole one is what it is, several are a list.
pub(super) fn of_parts(mut parts: Vec<Part>, action: &Action) -> Result<Output, CallError> {
    let output = match (parts.len(), parts.pop()) {
        (1, Some(Part::Text(text))) => Output::Text(text),
        (1, Some(Part::Data(data))) => Output::Json(data),
        (1, Some(Part::File { bytes, media_type, .. })) => {
            Output::binary(bytes, media_type.as_deref())
        }
        (_, Some(last)) => {
            let all = parts.iter().chain([&last]).map(Part::to_value);
            Output::Json(all.collect())
        }
        (_, None) => Output::Nothing,
    };
    check_promise(output, action)
}

fn to_value(artifact: &Artifact) -> Value {
    let parts: Vec<_> = artifact.parts.iter().map(Part::to_value).collect();
    json!({ "name": artifact.name, "parts": parts })
}

/// The agent ended the task without a result, or waits for somebody.
fn not_done(task: &Task, state: State) -> CallError {
    let texts = task.words.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.trim()),
        _ => None,
    });
    let said = texts.collect::<Vec<_>>().join("\n");
    let (kind, what) = match state {
        State::Rejected => (Kind::Failed, "the agent does not take the task"),
        State::Canceled => (Kind::Cancelled, "the agent called the task off"),
        State::InputRequired => (Kind::Failed, "the agent asks before it goes on"),
        State::AuthRequired => (Kind::Failed, "the agent asks for a sign-in before it goes on"),
        State::Failed | State::Open | State::Completed => (Kind::Failed, "the agent failed"),
    };
    let message = match (state, &*said) {
        (_, "") => format!("{what}, and does not say more"),
        (State::Failed, said) => said.to_owned(),
        (_, said) => format!("{what}: {said}"),
    };
    let error = CallError::new(kind, message).with("state", state.name()).with("task", &*task.id);
    let error = match &task.context {
        Some(context) => error.with("context", &**context),
        None => error,
    };
    let more: Vec<_> = task
        .words
        .iter()
        .filter(|part| !matches!(part, Part::Text(_)))
        .map(Part::to_value)
        .collect();
    if more.is_empty() { error } else { error.with("parts", more) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(outputs: &Value) -> Action {
        let manifest = json!({
            "id": "demo.agent", "type": "a2a_peer", "version": "1.0.0", "description": "A test",
            "origin": { "source": "local", "digest": "0".repeat(64) },
            "interfaces": { "inputs": { "type": "object" }, "outputs": outputs },
            "permissions": { "network": "allowlist", "network_allowlist": ["a.test"], "filesystem": "none", "devices": [] },
            "runtime": { "sandbox": "process", "resources": { "cpu": "1", "memory": "256Mi" } },
            "trust_level": "local",
            "implementation": { "kind": "a2a_rpc", "a2a": { "endpoint": "https://a.test/" } },
        });
        let options = manifest::document::Options::default();
        let (_, mut packages) =
            manifest::document::read(manifest.to_string().as_bytes(), &options).unwrap();
        packages.remove(0).actions.remove(0)
    }

    fn task(state: State, words: &[Part], artifacts: &[&[Part]]) -> Task {
        let artifact = |parts: &&[Part]| Artifact { name: None, parts: parts.to_vec() };
        Task {
            id: "t".into(),
            context: None,
            state,
            words: words.to_vec(),
            artifacts: artifacts.iter().map(artifact).collect(),
        }
    }

    #[test]
    fn a_sole_part_is_what_it_is_and_several_are_a_list() {
        let (anything, words) = (action(&json!({})), [Part::Text("done".into())]);
        let read = |artifacts: &[&[Part]]| {
            of_task(task(State::Completed, &words, artifacts), &anything).unwrap()
        };
        let (text, data) = (Part::Text("a".into()), Part::Data(json!({ "n": 1 })));
        let file =
            Part::File { bytes: b"hi".into(), media_type: Some("image/png".into()), name: None };
        assert_eq!(read(&[]), Output::Text("done".into()));
        assert_eq!(read(&[&[]]), Output::Text("done".into()));
        assert_eq!(read(&[std::slice::from_ref(&text)]), Output::Text("a".into()));
        assert_eq!(read(&[std::slice::from_ref(&data)]), Output::Json(json!({ "n": 1 })));
        assert_eq!(
            read(&[&[file]]),
            Output::Binary { bytes: b"hi".into(), media_type: Some("image/png".into()) }
        );
        let both = [text, data];
        assert_eq!(read(&[&both]), Output::Json(json!([{ "text": "a" }, { "data": { "n": 1 } }])));
        assert_eq!(
            read(&[&both[..1], &both[1..]]),
            Output::Json(json!([
                { "name": null, "parts": [{ "text": "a" }] },
                { "name": null, "parts": [{ "data": { "n": 1 } }] },
            ]))
        );
        let nothing = of_task(task(State::Completed, &[], &[]), &anything).unwrap();
        assert_eq!(nothing, Output::Nothing);
    }

    #[test]
    fn whatever_the_agent_made_has_to_be_what_is_promised() {
        let words = action(&json!({ "type": "object", "required": ["words"] }));
        let made = |parts: &[Part]| of_task(task(State::Completed, &[], &[parts]), &words);
        let text = Part::Text("{\"words\":2}".into());
        assert_eq!(made(&[text]).unwrap(), Output::Json(json!({ "words": 2 })));
        let file =
            Part::File { bytes: b"hi".into(), media_type: Some("image/png".into()), name: None };
        for (parts, what) in [
            (&[file][..], "is 2 bytes of image/png, which does not fit"),
            (&[Part::Text("two words".into())], "is a text, which does not fit"),
            (&[Part::Data(json!({ "n": 1 }))], "does not fit its schema: \"words\" is a required"),
            (&[], "is empty, which does not fit"),
        ] {
            let error = made(parts).unwrap_err();
            assert_eq!(error.kind, Kind::BadOutput);
            assert!(error.message.starts_with(&format!("the answer {what}")), "{error}");
        }
    }

    #[test]
    fn what_is_no_result_is_told_in_the_agents_words() {
        let anything = action(&json!({}));
        let error =
            |state, words: &[Part]| of_task(task(state, words, &[]), &anything).unwrap_err();
        let words = [Part::Text("no room".into()), Part::Data(json!({ "n": 1 }))];
        let failed = error(State::Failed, &words);
        assert_eq!((failed.kind, &*failed.message), (Kind::Failed, "no room"));
        assert_eq!(failed.details["state"], "failed");
        assert_eq!(failed.details["parts"], json!([{ "data": { "n": 1 } }]));
        let silent = error(State::Failed, &[]);
        assert_eq!(silent.message, "the agent failed, and does not say more");
        assert_eq!(error(State::Canceled, &words).kind, Kind::Cancelled);
        let asks = error(State::InputRequired, &[Part::Text("Which one?".into())]);
        assert_eq!(asks.message, "the agent asks before it goes on: Which one?");
        assert_eq!((&asks.details["task"], asks.kind), (&json!("t"), Kind::Failed));
    }
}
