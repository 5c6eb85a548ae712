//! A step of a chain as its author wrote it.

use std::time::Duration;

use serde_json::{Map, Value};

use super::path::Path;

/// How many elements of a list are worked on at once, where the author does not say.
const USUALLY_AT_ONCE: usize = 4;

/// The most that may be.
const MOST_AT_ONCE: u64 = 64;

/// How often a step is tried again at most.
const MOST_RETRIES: u64 = 10;

/// A step of a chain.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// The id of the tool that it calls.
    pub tool: String,
    /// The action of it, where the tool has several.
    pub action: Option<String>,
    /// Where each member of its input comes from.
    pub takes: Vec<(String, Take)>,
    /// Members that are left out when nothing is found for them.
    pub optional: Vec<String>,
    /// The key under which later steps find its answer.
    pub key: Option<String>,
    /// It is skipped where this finds nothing.
    pub when: Option<Path>,
    /// It is called for each element of a list.
    pub each: Option<Each>,
    /// How long one call of it may take.
    pub timeout: Option<Duration>,
    /// How often it is tried again when it fails.
    pub retry: u32,
}

/// Where a value comes from.
#[derive(Clone, Debug)]
pub enum Take {
    /// It stands there.
    Value(Value),
    /// It is found along a path.
    Path {
        /// The path.
        path: Path,
        /// What it is where nothing is found.
        default: Option<Value>,
    },
}

/// The list that a step is called for.
#[derive(Clone, Debug)]
pub struct Each {
    /// Where it is found.
    pub of: Path,
    /// How many of its elements are worked on at once.
    pub at_once: usize,
}

/// A value that a step needs and that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The member of the input.
    pub member: String,
    /// Where it was looked for.
    pub path: String,
}

impl Step {
    /// Reads a step; why not, where it is none.
    pub fn read(written: &Value) -> Result<Self, String> {
        let text = |key: &str| written[key].as_str().map(str::to_owned);
        let path = |key: &str| text(key).map(|text| Path::read(&text)).transpose();
        let number = |key: &str| written[key].as_u64();
        let takes = written["inputMapping"].as_object().into_iter().flatten();
        let takes = takes.map(|(member, take)| Ok((member.clone(), Take::read(take)?)));
        let at_once = number("concurrency").map(|most| most.clamp(1, MOST_AT_ONCE));
        let at_once = at_once.map_or(USUALLY_AT_ONCE, |most| usize::try_from(most).unwrap_or(1));
        let retry = number("retry").unwrap_or_default().min(MOST_RETRIES);
        let optional = written["optional"].as_array().into_iter().flatten();
        Ok(Self {
            name: text("step").ok_or("it has no name")?,
            tool: text("tool").ok_or("it names no tool")?,
            action: text("action"),
            takes: takes.collect::<Result<_, String>>()?,
            optional: optional.filter_map(Value::as_str).map(str::to_owned).collect(),
            key: text("outputKey"),
            when: path("when")?,
            each: path("forEach")?.map(|of| Each { of, at_once }),
            timeout: number("timeoutMs").map(Duration::from_millis),
            retry: u32::try_from(retry).unwrap_or_default(),
        })
    }

    /// Every path that it reads.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let takes = self.takes.iter().filter_map(|(_, take)| match take {
            Take::Value(_) => None,
            Take::Path { path, .. } => Some(path),
        });
        takes.chain(&self.when).chain(self.each.iter().map(|each| &each.of))
    }

    /// Where each member of its input comes from, in words.
    pub fn sources(&self) -> Vec<(String, String)> {
        let from = |take: &Take| match take {
            Take::Value(value) => value.to_string(),
            Take::Path { path, default: None } => path.to_string(),
            Take::Path { path, default: Some(default) } => format!("{path}, else {default}"),
        };
        self.takes.iter().map(|(member, take)| (member.clone(), from(take))).collect()
    }

    /// Its input, from what is known so far.
    pub fn input(&self, known: &Value) -> Result<Map<String, Value>, Missing> {
        let mut input = Map::new();
        for (member, take) in &self.takes {
            let found = match take {
                Take::Value(value) => Some(value.clone()),
                Take::Path { path, default } => path.find(known).or_else(|| default.clone()),
            };
            match (found, take) {
                (Some(value), _) => drop(input.insert(member.clone(), value)),
                (None, Take::Path { path, .. }) if !self.optional.contains(member) => {
                    return Err(Missing { member: member.clone(), path: path.to_string() });
                }
                (None, _) => {}
            }
        }
        Ok(input)
    }
}

impl Take {
    fn read(written: &Value) -> Result<Self, String> {
        match written {
            Value::String(text) => Ok(Self::Path { path: Path::read(text)?, default: None }),
            Value::Object(members) => match (members.get("value"), members.get("path")) {
                (Some(value), None) if members.len() == 1 => Ok(Self::Value(value.clone())),
                (None, Some(Value::String(text)))
                    if members.keys().all(|key| key == "path" || key == "default") =>
                {
                    let default = members.get("default").cloned();
                    Ok(Self::Path { path: Path::read(text)?, default })
                }
                _ => Err(SHAPE.to_owned()),
            },
            _ => Err(SHAPE.to_owned()),
        }
    }
}

/// What a value in `inputMapping` is.
pub(crate) const SHAPE: &str =
    "must be a JSONPath text, `{\"value\": …}` for a literal, or `{\"path\": …, \"default\": …}`";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_input_is_made_of_paths_literals_and_defaults() {
        let step = Step::read(&json!({
            "step": "s", "tool": "t",
            "inputMapping": {
                "text": "$.input.text",
                "mode": {"value": {"deep": [1]}},
                "model": {"path": "$.input.model", "default": "small"},
                "maybe": "$.input.maybe",
                "null": "$.input.nothing",
            },
            "optional": ["maybe"],
        }))
        .unwrap();
        let known = json!({"input": {"text": "hi", "nothing": null}});
        let input = json!({"text": "hi", "mode": {"deep": [1]}, "model": "small", "null": null});
        assert_eq!(Value::Object(step.input(&known).unwrap()), input);
        let missing = Missing { member: "text".into(), path: "$.input.text".into() };
        assert_eq!(step.input(&json!({"input": {"nothing": 1}})), Err(missing));
        // A default of null is one.
        let step = json!({"step": "s", "tool": "t", "inputMapping": {"x": {"path": "$.input.x", "default": null}}});
        let input = Step::read(&step).unwrap().input(&json!({"input": {}})).unwrap();
        assert_eq!(Value::Object(input), json!({"x": null}));
    }

    #[test]
    fn what_is_no_step_is_refused() {
        for take in [
            json!(7),
            json!(null),
            json!({}),
            json!({"value": 1, "path": "$"}),
            json!({"default": 1}),
            json!("no path"),
        ] {
            let step = json!({"step": "s", "tool": "t", "inputMapping": {"x": take}});
            assert!(Step::read(&step).is_err(), "{take}");
        }
        assert!(Step::read(&json!({"tool": "t"})).is_err());
        assert!(Step::read(&json!({"step": "s", "tool": "t", "when": "x"})).is_err());
    }

    /// Values with few names, so that paths lead somewhere.
    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_member_is_what_is_found_else_its_default_else_left_out_else_missed(
            input in values(),
            path in r"\$\.input(\.[a-c]|\[[0-2]\]){0,3}",
            default in prop::option::of(values()),
            is_optional in any::<bool>(),
            literal in values(),
        ) {
            let mut take = json!({"path": path});
            if let Some(default) = &default {
                take["default"] = default.clone();
            }
            let optional: &[&str] = if is_optional { &["x"] } else { &[] };
            let step = json!({
                "step": "s", "tool": "t", "optional": optional,
                "inputMapping": {"x": take, "y": {"value": literal}},
            });
            let known = json!({"input": input});
            // By the other notation for the same place.
            let pointer = path[1..].replace(['.', '['], "/").replace(']', "");
            let expected = known.pointer(&pointer).cloned().or(default);
            let made = Step::read(&step).unwrap().input(&known);
            match (expected, is_optional) {
                (Some(value), _) => {
                    let made = made.unwrap();
                    prop_assert_eq!(&made["x"], &value);
                    prop_assert_eq!(&made["y"], &literal);
                }
                (None, true) => prop_assert!(!made.unwrap().contains_key("x")),
                (None, false) => prop_assert_eq!(made.unwrap_err().path, path),
            }
        }
    }

    #[test]
    fn numbers_stay_within_their_bounds() {
        let read = |at_once: u64, retry: u64| {
            let step = json!({"step": "s", "tool": "t", "forEach": "$.input.l", "concurrency": at_once, "retry": retry, "timeoutMs": 50});
            let step = Step::read(&step).unwrap();
            (step.each.unwrap().at_once, step.retry, step.timeout)
        };
        assert_eq!(read(0, 99), (1, 10, Some(Duration::from_millis(50))));
        assert_eq!(read(1000, 2).0, 64);
    }
}
