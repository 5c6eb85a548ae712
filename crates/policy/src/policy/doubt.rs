//! What a policy says that never counts as it is written. It can be read, and is hardly meant.

use std::fmt;

use super::table::joined;
use super::{Policy, SandboxRules};

/// Something that may not be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The key it is about, with those of the tables around it.
    pub key: String,
    /// What may not be meant.
    pub message: String,
}

impl Doubt {
    /// What may not be meant by the value of a key.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }

    /// The same of the rules for one package.
    pub fn of_package(id: &str, message: impl Into<String>) -> Self {
        Self::new(of_package(id), message)
    }

    /// The same of the rule for one of its actions.
    pub fn of_action(id: &str, action: &str, message: impl Into<String>) -> Self {
        Self::new(joined(&joined(&of_package(id), "actions"), action), message)
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}`: {}", self.key, self.message)
    }
}

fn of_package(id: &str) -> String {
    joined("package", id)
}

/// Limits that are cut, and budgets that not even one call is within.
pub(super) fn doubts(policy: &Policy) -> Vec<Doubt> {
    let SandboxRules { timeout_ms, max_timeout_ms, memory, max_memory, .. } = policy.sandbox;
    // Where only the most is written, it is meant to cut what nobody wrote.
    let default = Policy::default().sandbox;
    let timeout = Some(timeout_ms).filter(|time| *time != default.timeout_ms);
    let memory = Some(memory).filter(|memory| *memory != default.memory);
    let mut limits = vec![("sandbox".to_owned(), timeout, memory)];
    let packages = &policy.packages;
    limits.extend(packages.iter().map(|(id, one)| (of_package(id), one.timeout_ms, one.memory)));
    let mut found = Vec::new();
    let weights = &policy.rank.weights;
    let sum =
        weights.correctness + weights.latency + weights.cost + weights.safety + weights.resilience;
    if sum > 1.0 + 1e-9 {
        let message = format!("the weights add up to {sum:.2}, and scores are cut off at 1");
        found.push(Doubt::new("rank", message));
    }
    for (table, timeout, memory) in limits {
        for (name, said, most) in
            [("timeout", timeout, max_timeout_ms), ("memory", memory, max_memory)]
        {
            if said.is_some_and(|said| said > most) {
                let message = format!("more than `max_{name}` of `[sandbox]`, and cut to that");
                found.push(Doubt::new(joined(&table, name), message));
            }
        }
    }
    for (id, one) in packages {
        let (costs, own) = (one.cents_per_call, joined(&of_package(id), "budget"));
        for (table, budget) in [(own, &one.budget), ("budget".to_owned(), &policy.budget)] {
            if budget.cents_per_day.is_some_and(|day| day < costs) {
                let message = format!(
                    "less than one call of `{id}` costs (`cents_per_call` is {costs}), so it cannot be called"
                );
                found.push(Doubt::new(joined(&table, "cents_per_day"), message));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        doubts(&Policy::parse(text).unwrap()).iter().map(Doubt::to_string).collect()
    }

    #[test]
    fn limits_that_are_cut_are_told_with_their_key() {
        let cut = |key: &str, name: &str| {
            format!("`{key}`: more than `max_{name}` of `[sandbox]`, and cut to that")
        };
        assert_eq!(
            told("[sandbox]\ntimeout = \"20m\"\nmemory = \"9G\"\n"),
            [cut("sandbox.timeout", "timeout"), cut("sandbox.memory", "memory")]
        );
        let package = "[package.\"mcpkg:a.b\"]\ntimeout = \"1h\"\nmemory = \"16G\"\n";
        let key = |name: &str| format!("package.\"mcpkg:a.b\".{name}");
        assert_eq!(told(package), [cut(&key("timeout"), "timeout"), cut(&key("memory"), "memory")]);
        let wider = "[sandbox]\nmax_timeout = \"1h\"\nmax_memory = \"16G\"\n";
        assert_eq!(told(&format!("{wider}{package}")), [""; 0]);
        // Nobody wrote what is cut here.
        assert_eq!(told("[sandbox]\nmax_timeout = \"1s\"\nmax_memory = \"64M\"\n"), [""; 0]);
    }

    #[test]
    fn a_budget_that_one_call_is_not_within_is_told() {
        let words =
            "less than one call of `a.b` costs (`cents_per_call` is 5), so it cannot be called";
        let of_it = "[package.\"a.b\"]\ncents_per_call = 5\nbudget.cents_per_day = 4\n";
        assert_eq!(told(of_it), [format!("`package.\"a.b\".budget.cents_per_day`: {words}")]);
        let of_all = "[budget]\ncents_per_day = 4\n[package.\"a.b\"]\ncents_per_call = 5\n";
        assert_eq!(told(of_all), [format!("`budget.cents_per_day`: {words}")]);
        assert_eq!(told(&of_all.replace('4', "5")), [""; 0]);
    }
}
