//! What an agent answers with: a message, or a task and how far it is.

use serde_json::Value;

use super::part::Part;

/// What an agent answers a message with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    /// A message, which is all there is.
    Message(Vec<Part>),
    /// A task.
    Task(Task),
}

/// A task of an agent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) context: Option<String>,
    pub(super) state: State,
    /// What the agent says about the state.
    pub(super) words: Vec<Part>,
    pub(super) artifacts: Vec<Artifact>,
}

/// Something that a task made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Artifact {
    pub(super) name: Option<String>,
    pub(super) parts: Vec<Part>,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It waits or is worked on.
    Open,
    /// It is done.
    Completed,
    /// It was tried in vain.
    Failed,
    /// The agent does not want to do it.
    Rejected,
    /// Somebody called it off.
    Canceled,
    /// The agent asks for something.
    InputRequired,
    /// The agent asks for a sign-in.
    AuthRequired,
}

impl State {
    /// Reads a state as either version writes it: `TASK_STATE_INPUT_REQUIRED`, `input-required`.
    fn named(text: &str) -> Option<Self> {
        let text = text.strip_prefix("TASK_STATE_").unwrap_or(text).to_ascii_lowercase();
        Some(match &*text.replace('_', "-") {
            "submitted" | "working" | "unknown" => Self::Open,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "rejected" => Self::Rejected,
            "canceled" => Self::Canceled,
            "input-required" => Self::InputRequired,
            "auth-required" => Self::AuthRequired,
            _ => return None,
        })
    }

    /// The state as people and programs are told it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Open => "working",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Canceled => "canceled",
            Self::InputRequired => "input-required",
            Self::AuthRequired => "auth-required",
        }
    }
}

impl Said {
    /// Reads the answer to a message as either version writes it.
    pub(super) fn read(result: &Value) -> Result<Self, &'static str> {
        let kind = result.get("kind").and_then(Value::as_str);
        match (kind, result.get("task"), result.get("message")) {
            (Some("task"), ..) => Task::read(result).map(Self::Task),
            (Some("message"), ..) => parts(result).map(Self::Message),
            (_, Some(task), None) => Task::read(task).map(Self::Task),
            (_, None, Some(message)) => parts(message).map(Self::Message),
            _ => Err("it is neither a message nor a task"),
        }
    }
}

impl Task {
    /// Reads a task as either version writes it.
    pub(super) fn read(task: &Value) -> Result<Self, &'static str> {
        let text = |name: &str| task.get(name).and_then(Value::as_str).map(str::to_owned);
        let id = text("id").filter(|id| !id.is_empty()).ok_or("a task has no id")?;
        let state = task.pointer("/status/state").and_then(Value::as_str).and_then(State::named);
        let words = match task.pointer("/status/message") {
            Some(Value::Null) | None => Vec::new(),
            Some(message) => parts(message)?,
        };
        let artifacts = match task.get("artifacts") {
            Some(Value::Array(artifacts)) => artifacts.iter().map(Artifact::read).collect(),
            Some(Value::Null) | None => Ok(Vec::new()),
            Some(_) => Err("the artifacts of a task are no list"),
        };
        Ok(Self {
            id,
            context: text("contextId"),
            state: state.ok_or("a task has no state that is known")?,
            words,
            artifacts: artifacts?,
        })
    }
}

impl Artifact {
    fn read(artifact: &Value) -> Result<Self, &'static str> {
        let name = artifact.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        Ok(Self { name: name.map(str::to_owned), parts: parts(artifact)? })
    }
}

/// The parts of a message or of an artifact.
fn parts(of: &Value) -> Result<Vec<Part>, &'static str> {
    match of.get("parts") {
        Some(Value::Array(parts)) => parts.iter().map(Part::read).collect(),
        Some(Value::Null) | None if of.is_object() => Ok(Vec::new()),
        _ => Err("the parts of a message are no list"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_versions_of_a_task_are_read() {
        let new = json!({ "task": {
            "id": "t", "contextId": "c",
            "status": { "state": "TASK_STATE_AUTH_REQUIRED", "message": { "parts": [{ "text": "who?" }] } },
            "artifacts": [{ "name": "a", "parts": [{ "data": 1 }] }],
        } });
        let old = json!({
            "kind": "task", "id": "t", "contextId": "c",
            "status": { "state": "auth-required", "message": { "kind": "message", "parts": [{ "kind": "text", "text": "who?" }] } },
            "artifacts": [{ "name": "a", "parts": [{ "kind": "data", "data": 1 }] }],
        });
        let task = Said::Task(Task {
            id: "t".into(),
            context: Some("c".into()),
            state: State::AuthRequired,
            words: vec![Part::Text("who?".into())],
            artifacts: vec![Artifact { name: Some("a".into()), parts: vec![Part::Data(json!(1))] }],
        });
        assert_eq!(Said::read(&new), Ok(task.clone()));
        assert_eq!(Said::read(&old), Ok(task));
    }

    #[test]
    fn garbage_is_neither() {
        for odd in [
            json!(null),
            json!([]),
            json!({}),
            json!({ "task": {} }),
            json!({ "task": { "id": "t" } }),
            json!({ "task": { "id": "t", "status": { "state": "TASK_STATE_UNSPECIFIED" } } }),
            json!({ "task": { "id": "t", "status": { "state": "working" }, "artifacts": 7 } }),
            json!({ "task": { "id": "t", "status": { "state": "working" } }, "message": {} }),
            json!({ "message": { "parts": [{}] } }),
            json!({ "message": 7 }),
        ] {
            assert!(Said::read(&odd).is_err(), "{odd}");
        }
    }
}
