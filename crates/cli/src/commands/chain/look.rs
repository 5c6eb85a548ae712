//! A chain as it is looked at: its steps, what flows where, and whether what they call is here. Nothing of it runs.

use host::Tool;
use manifest::chain::{Each, Flow, Step};
use manifest::model::{Action, SideEffects};
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::home::Home;
use crate::printer::Printer;
use crate::steps;

/// A chain, looked at.
pub(super) struct Look {
    pub(super) id: String,
    pub(super) version: String,
    pub(super) description: String,
    pub(super) steps: Vec<Seen>,
    /// Why it cannot be called as it is, where it cannot.
    pub(super) problem: Option<String>,
}

/// A step of it.
pub(super) struct Seen {
    pub(super) step: Step,
    /// The steps whose answers it reads, by number.
    pub(super) after: Vec<usize>,
    /// How many rounds of steps come before it at least; those of one round may run side by side.
    pub(super) round: usize,
    /// Whether its answer is the result, unless it is left out.
    pub(super) is_result: bool,
    /// The tool that it calls, where that is here.
    pub(super) tool: Option<Box<Tool>>,
}

impl Look {
    /// Looks at a chain.
    pub(super) fn at(
        tool: &Tool,
        beside: &[Tool],
        home: &Home,
        printer: Printer,
    ) -> Result<Self, Failure> {
        let package = &tool.package;
        let flow = Flow::of(package).ok_or_else(|| {
            Failure::invalid(format!("`{}` is no chain", package.id))
                .hint("a chain is an mcpkg package whose manifest has `chain`; see docs/chains.md")
        })?;
        let flow = flow.map_err(|error| Failure::invalid(error.to_string()))?;
        let rounds = rounds(&flow);
        let last = flow.steps.len().saturating_sub(1);
        let seen = flow.steps.into_iter().zip(flow.after).enumerate().map(|(at, (step, after))| {
            let tool = steps::find(&step.tool, beside, home, printer).ok().map(Box::new);
            Seen { step, after, round: rounds[at], is_result: at == last, tool }
        });
        Ok(Self {
            id: package.id.clone(),
            version: package.version.clone().unwrap_or_default(),
            description: package.description.clone().unwrap_or_default(),
            steps: seen.collect(),
            problem: tool
                .links
                .as_ref()
                .and_then(|links| links.as_ref().err())
                .map(ToString::to_string),
        })
    }

    /// The tools that are not here, each once.
    pub(super) fn missing(&self) -> Vec<&str> {
        let mut missing: Vec<&str> = Vec::new();
        for one in self.steps.iter().filter(|one| one.tool.is_none()) {
            if !missing.contains(&one.step.tool.as_str()) {
                missing.push(&one.step.tool);
            }
        }
        missing
    }

    /// The same for programs.
    pub(super) fn to_value(&self) -> Value {
        let name = |at: &usize| self.steps[*at].step.name.clone();
        let step = |one: &Seen| {
            let action = one.action();
            json!({
                "step": one.step.name,
                "tool": one.step.tool,
                "action": one.step.action,
                "installed": one.tool.is_some(),
                "version": one.tool.as_ref().and_then(|tool| tool.package.version.clone()),
                "sideEffects": action.and_then(|action| action.side_effects).map(SideEffects::name),
                "idempotent": action.and_then(|action| action.idempotent),
                "round": one.round + 1,
                "after": one.after.iter().map(name).collect::<Vec<_>>(),
                "takes": one.step.sources().into_iter().map(|(to, from)| (to, Value::from(from))).collect::<Value>(),
                "outputKey": one.step.key,
                "when": one.step.when.as_ref().map(ToString::to_string),
                "forEach": one.step.each.as_ref().map(|each| each.of.to_string()),
                "concurrency": one.step.each.as_ref().map(|each| each.at_once),
                "timeoutMs": one.step.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
                "retry": one.step.retry,
            })
        };
        json!({
            "id": self.id,
            "version": self.version,
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
            "missing": self.missing(),
            "problem": self.problem,
        })
    }
}

impl Seen {
    /// The action that it calls, where that is known.
    pub(super) fn action(&self) -> Option<&Action> {
        let tool = self.tool.as_ref()?;
        match &self.step.action {
            Some(name) => tool.action(name),
            None => tool.package.actions.first().filter(|_| tool.package.actions.len() == 1),
        }
    }

    /// How it is called beside being called once.
    pub(super) fn manner(&self) -> Vec<String> {
        let step = &self.step;
        let each = step
            .each
            .as_ref()
            .map(|Each { of, at_once }| format!("for each element of {of}, {at_once} at a time"));
        let when = step.when.as_ref().map(|when| format!("only where {when} finds something"));
        let timeout = step.timeout.map(|time| format!("within {} ms", time.as_millis()));
        let is_idempotent = self.action().is_some_and(|action| action.idempotent == Some(true));
        let times = crate::commands::count(step.retry, "time");
        let retry = match (step.retry, is_idempotent) {
            (0, _) => None,
            (_, true) => Some(format!("tried again up to {times}")),
            (_, false) => {
                Some("tried once: its action does not say that it is idempotent".to_owned())
            }
        };
        when.into_iter().chain(each).chain(timeout).chain(retry).collect()
    }
}

/// For each step how many rounds come before it.
fn rounds(flow: &Flow) -> Vec<usize> {
    let mut rounds: Vec<usize> = Vec::with_capacity(flow.steps.len());
    for after in &flow.after {
        rounds.push(after.iter().map(|one| rounds[*one] + 1).max().unwrap_or(0));
    }
    rounds
}
