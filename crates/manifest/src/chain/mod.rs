//! The steps of a chain: where each takes its input from, and which of them wait for which.
//!
//! | module | what it is |
//! |---|---|
//! | [`path`] | a path through what is known so far |
//! | [`step`] | a step as its author wrote it |
//!
//! What is known so far is an object: `input` is what the chain was given, and every other key is the `outputKey` of a
//! step that came to its end.

pub mod path;
pub mod step;

use std::fmt;

use crate::model::Package;

pub use path::Path;
pub use step::{Each, Missing, Step, Take};

/// The most steps of one chain.
pub const MOST_STEPS: usize = 128;

/// The key of what the chain was given.
pub const INPUT: &str = "input";

/// The key of the element that a step with `forEach` is called for.
pub const ITEM: &str = "item";

/// A chain, ready to be followed.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its steps, in the order of the document.
    pub steps: Vec<Step>,
    /// For each step the earlier ones whose answers it reads.
    pub after: Vec<Vec<usize>>,
}

/// Why a chain cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowError {
    /// It has more steps than anybody follows.
    TooLong(usize),
    /// A step is not written as one.
    BadStep {
        /// Its name.
        step: String,
        /// What is wrong with it.
        why: String,
    },
}

impl fmt::Display for FlowError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(steps) => {
                write!(out, "the chain has {steps} steps, and at most {MOST_STEPS} are followed")
            }
            Self::BadStep { step, why } => write!(out, "the step `{step}` cannot be made: {why}"),
        }
    }
}

impl std::error::Error for FlowError {}

impl Flow {
    /// The chain of a package, where it is one.
    pub fn of(package: &Package) -> Option<Result<Self, FlowError>> {
        let chain = package.chain.as_ref()?;
        if chain.steps.len() > MOST_STEPS {
            return Some(Err(FlowError::TooLong(chain.steps.len())));
        }
        let read = |step: &crate::model::Step| {
            Step::read(&step.definition.value())
                .map_err(|why| FlowError::BadStep { step: step.name.clone(), why })
        };
        Some(chain.steps.iter().map(read).collect::<Result<_, _>>().map(Self::new))
    }

    fn new(steps: Vec<Step>) -> Self {
        let after = steps.iter().enumerate().map(|(at, step)| read_by(step, &steps[..at]));
        Self { after: after.collect(), steps }
    }

    /// The ids of the tools that are called, each once, in the order of the steps.
    pub fn tools(&self) -> Vec<&str> {
        let mut tools: Vec<&str> = Vec::new();
        for step in &self.steps {
            if !tools.contains(&step.tool.as_str()) {
                tools.push(&step.tool);
            }
        }
        tools
    }
}

/// The earlier steps whose answers a step reads. A path that names no key may read all of them.
fn read_by(step: &Step, earlier: &[Step]) -> Vec<usize> {
    let mut read: Vec<usize> = Vec::new();
    for path in step.paths() {
        let is_read = |at: &usize| match (path.root(), &earlier[*at].key) {
            (Some(root), Some(key)) => root == key,
            (_, None) => false,
            (None, Some(_)) => true,
        };
        read.extend((0..earlier.len()).filter(is_read));
    }
    read.sort_unstable();
    read.dedup();
    read
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flow(steps: &serde_json::Value) -> Flow {
        let steps = steps.as_array().unwrap().iter();
        Flow::new(steps.map(|step| Step::read(step).unwrap()).collect())
    }

    #[test]
    fn a_step_waits_for_those_whose_answers_it_reads_and_for_no_others() {
        let flow = flow(&json!([
            {"step": "a", "tool": "t.a", "inputMapping": {"x": "$.input.x"}, "outputKey": "one"},
            {"step": "b", "tool": "t.b", "inputMapping": {"x": {"value": 1}}, "outputKey": "two"},
            {"step": "c", "tool": "t.a", "inputMapping": {"x": "$.one.y"}, "when": "$['two'].z", "outputKey": "three"},
            {"step": "d", "tool": "t.c", "inputMapping": {"x": "$..y"}},
            {"step": "e", "tool": "t.c", "forEach": "$.two.list", "inputMapping": {"x": {"path": "$.item", "default": 0}}},
        ]));
        assert_eq!(flow.after, [vec![], vec![], vec![0, 1], vec![0, 1, 2], vec![1]]);
        assert_eq!(flow.tools(), ["t.a", "t.b", "t.c"]);
    }

    #[test]
    fn a_chain_that_is_too_long_is_refused() {
        assert!(FlowError::TooLong(200).to_string().contains("at most 128"));
    }
}
