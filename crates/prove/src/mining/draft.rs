//! A chain that was found, as a package of mcpkg: its manifest, and a test made of its packages' own tests.

use std::collections::BTreeMap;

use manifest::model::{Action, Json, Package};
use serde_json::{Map, Value, json};

use super::{Source, Step, Suggestion};

/// What a step calls, as it is installed.
#[derive(Clone, Copy, Debug)]
pub struct Called<'p> {
    /// The package.
    pub package: &'p Package,
    /// The action.
    pub action: &'p Action,
    /// The input of one of its own tests, where it has any.
    pub tested: Option<&'p Value>,
}

/// The files of a package.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Its manifest.
    pub manifest: Value,
    /// A test of it; none where the tests of its packages do not say what it could be tried with.
    pub test: Option<Value>,
}

/// The path of the test in the package.
pub const TEST: &str = "tests/as-its-steps.test.json";

impl Draft {
    /// A suggestion whose steps call these, under an id.
    pub fn of(suggestion: &Suggestion, called: &[Called<'_>], id: &str) -> Self {
        let names = step_names(called);
        let asked = asked(&suggestion.steps, &names);
        let steps: Vec<_> = suggestion
            .steps
            .iter()
            .zip(called)
            .enumerate()
            .map(|(at, (step, called))| written(at, step, called, &names, &asked))
            .collect();
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for ((at, member), (name, is_needed)) in &asked {
            let schema = called[*at].action.input.as_ref().map(Json::value);
            let known = schema.and_then(|schema| schema["properties"].get(member).cloned());
            properties.insert(name.clone(), known.unwrap_or_else(|| json!({})));
            if *is_needed {
                required.push(name.clone());
            }
        }
        let last = called.last();
        let output =
            last.and_then(|last| last.action.output.as_ref()).map(|output| output.value().clone());
        let output = output.unwrap_or_else(|| json!({}));
        let test = test(&asked, called, &output);
        let mut manifest = json!({
            "toolId": id,
            "name": titled(&names),
            "version": "0.1.0",
            "description": format!("Calls {}, and gives what the last of them gives.", told(called)),
            "capabilities": capabilities(called),
            "chain": steps,
            "input_schema": {"type": "object", "properties": properties, "required": required},
            "output_schema": output,
        });
        if test.is_some() {
            manifest["tests"] = json!([TEST]);
        }
        Self { manifest, test }
    }
}

/// What each member that somebody has to give is called in the chain's own input, by its step and its name, and whether
/// it is always given.
type Asked = BTreeMap<(usize, String), (String, bool)>;

fn asked(steps: &[Step], names: &[String]) -> Asked {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for member in steps.iter().flat_map(|step| step.asks.keys()) {
        *times.entry(member).or_default() += 1;
    }
    let mut asked = Asked::new();
    for (at, step) in steps.iter().enumerate() {
        for (member, is_needed) in &step.asks {
            // Nobody knows whether two that are called alike are the same.
            let is_alone = times[member.as_str()] == 1;
            let name = if is_alone { member.clone() } else { format!("{}_{member}", names[at]) };
            asked.insert((at, member.clone()), (name, *is_needed));
        }
    }
    asked
}

/// A step as a manifest writes it.
fn written(at: usize, step: &Step, called: &Called<'_>, names: &[String], asked: &Asked) -> Value {
    let mut mapping = Map::new();
    for (member, Source { step, path }) in &step.takes {
        let rest = path.strip_prefix('$').unwrap_or(path);
        mapping.insert(member.clone(), format!("$.{}{rest}", names[*step]).into());
    }
    let mut optional = Vec::new();
    for (member, is_needed) in &step.asks {
        let name = &asked[&(at, member.clone())].0;
        mapping.insert(member.clone(), format!("$.input.{name}").into());
        if !is_needed {
            optional.push(member.as_str());
        }
    }
    let mut written = json!({"step": names[at], "tool": called.package.id, "inputMapping": mapping, "outputKey": names[at]});
    if called.package.actions.len() > 1 {
        written["action"] = called.action.name.as_str().into();
    }
    if !optional.is_empty() {
        written["optional"] = json!(optional);
    }
    written
}

/// A test that gives each step what its own package is tested with, and wants of the answer what its schema promises.
fn test(asked: &Asked, called: &[Called<'_>], output: &Value) -> Option<Value> {
    let mut input = Map::new();
    for ((at, member), (name, is_needed)) in asked {
        match called[*at].tested.and_then(|tested| tested.get(member)) {
            Some(value) => drop(input.insert(name.clone(), value.clone())),
            None if *is_needed => return None,
            None => {}
        }
    }
    let required = output["required"].as_array().into_iter().flatten();
    let mut assertions: Vec<_> = required
        .filter_map(Value::as_str)
        .map(|name| json!({"path": format!("$[{}]", Value::from(name)), "exists": true}))
        .collect();
    if assertions.is_empty() {
        assertions.push(json!({"path": "$", "exists": true}));
    }
    Some(json!({
        "name": "as_its_steps",
        "description": "Tried with what its steps are tested with.",
        "input": input,
        "assertions": assertions,
    }))
}

/// The names of the steps: the last word of each id, told apart.
fn step_names(called: &[Called<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for one in called {
        let word = match one.package.actions.len() {
            0 | 1 => one.package.id.rsplit(['.', '/', ':']).next().unwrap_or_default(),
            _ => one.action.name.as_str(),
        };
        let letters =
            word.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
        let mut name: String = letters.collect::<String>().to_ascii_lowercase();
        // `input` is what the chain itself is given.
        if name.is_empty()
            || name == "input"
            || name == "item"
            || name.starts_with(|first: char| first.is_ascii_digit())
        {
            name = format!("step_{name}");
        }
        let plain = name.clone();
        let mut number = 1;
        while names.contains(&name) {
            number += 1;
            name = format!("{plain}_{number}");
        }
        names.push(name);
    }
    names
}

fn titled(names: &[String]) -> String {
    names.join(" then ")
}

fn told(called: &[Called<'_>]) -> String {
    let ids: Vec<_> = called.iter().map(|one| one.package.id.as_str()).collect();
    ids.join(", then ")
}

fn capabilities(called: &[Called<'_>]) -> Vec<String> {
    /// How many a chain is found by.
    const MOST: usize = 8;
    let mut all: Vec<String> = vec!["chain".to_owned()];
    for capability in called.iter().flat_map(|one| &one.package.tags) {
        if all.len() < MOST && !all.contains(capability) {
            all.push(capability.clone());
        }
    }
    all
}
