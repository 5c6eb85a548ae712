//! Sequences of calls in which one result really became the next input, found in what is kept of calls: digests of what
//! went in and came out, never the values.
//!
//! 1. A **flow** is a member of an input whose digest came out of an earlier call, and out of nowhere else before: what a
//!    caller had already told somebody is not news, and a tool that gives back what it was told is not where it came from.
//! 2. A flow counts as a **habit** once it was seen often enough, with different values: one value that is passed around
//!    all day (a region, a project) is a setting, not a result.
//! 3. Calls that habits connect are one **errand**. Errands of the same shape are counted; one that is seen often enough
//!    is a chain that nobody has written down yet.
//!
//! Everything here is pure: the same calls give the same suggestions, in the same order.

pub mod draft;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What stands for a value.
pub type Digest = u64;

/// One call, as far as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// What was called.
    pub tool: Tool,
    /// When it began, in milliseconds.
    pub began: u64,
    /// When it ended.
    pub ended: u64,
    /// The members of its input, by name.
    pub inputs: Vec<(String, Digest)>,
    /// The places of its result, by path.
    pub outputs: Vec<(String, Digest)>,
}

/// An action of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tool {
    /// The package, by its id with the dialect.
    pub package: String,
    /// The action.
    pub action: String,
}

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How often something must have been seen.
    pub least: usize,
    /// How many calls may lie between a result and its use.
    pub reach: usize,
    /// How long may, in milliseconds.
    pub patience: u64,
    /// The longest chain.
    pub longest: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { least: 3, reach: 64, patience: 30 * 60 * 1000, longest: 8 }
    }
}

/// A sequence that was seen again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// What was called, in the order in which it was.
    pub steps: Vec<Step>,
    /// How often.
    pub seen: usize,
    /// How many calls of an agent it would have saved.
    pub calls: usize,
    /// How long agents took between one result and its use, in milliseconds: what it would have saved.
    pub millis: u64,
}

/// One step of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// What is called.
    pub tool: Tool,
    /// What it takes from earlier steps, by the member of its input.
    pub takes: BTreeMap<String, Source>,
    /// Its other members, which somebody else has to give, and whether they were given each time.
    pub asks: BTreeMap<String, bool>,
}

/// Where a member comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The step, counted from 0.
    pub step: usize,
    /// The path in its result.
    pub path: String,
}

/// A member of a call's input that came out of an earlier call.
#[derive(Clone, Debug)]
struct Flow {
    to: usize,
    member: String,
    from: usize,
    path: String,
    digest: Digest,
}

/// What errands have in common: what is called in which order, and what each takes from which.
type Shape = Vec<(Tool, BTreeMap<String, Source>)>;

/// How often errands of one shape were seen.
#[derive(Default)]
struct Often {
    seen: usize,
    millis: u64,
    /// For each step, how often each member of its input was given.
    given: Vec<BTreeMap<String, usize>>,
}

impl Often {
    fn suggestion(self, shape: Shape) -> Suggestion {
        let Self { seen, millis, given } = self;
        let step = |((tool, takes), given): ((Tool, BTreeMap<String, Source>), BTreeMap<_, _>)| {
            let others = given.into_iter().filter(|(member, _)| !takes.contains_key(member));
            let asks = others.map(|(member, times)| (member, times == seen)).collect();
            Step { tool, takes, asks }
        };
        let steps: Vec<_> = shape.into_iter().zip(given).map(step).collect();
        Suggestion { calls: seen * (steps.len() - 1), steps, seen, millis }
    }
}

/// Flows of one kind: from a path of a tool's result into a member of another's input.
type Kind<'c> = (&'c Tool, &'c str, &'c Tool, &'c str);

/// The sequences in calls that are in the order in which they began; those that save most first.
pub fn suggest(calls: &[Seen], bounds: &Bounds) -> Vec<Suggestion> {
    let flows = habits(calls, flows(calls, bounds), bounds);
    let mut into: HashMap<usize, Vec<&Flow>> = HashMap::new();
    for flow in &flows {
        into.entry(flow.to).or_default().push(flow);
    }
    let sources: HashSet<usize> = flows.iter().map(|flow| flow.from).collect();
    let mut found: BTreeMap<Shape, Often> = BTreeMap::new();
    for last in into.keys().filter(|call| !sources.contains(call)) {
        let Some(errand) = errand(*last, &into, bounds.longest) else { continue };
        let often = found.entry(shape(&errand, &into, calls)).or_default();
        often.seen += 1;
        often.millis += waits(&errand, calls);
        often.given.resize_with(errand.len(), BTreeMap::new);
        for (given, call) in often.given.iter_mut().zip(&errand) {
            for (member, _) in &calls[*call].inputs {
                *given.entry(member.clone()).or_default() += 1;
            }
        }
    }
    let mut suggestions: Vec<_> = found
        .into_iter()
        .filter(|(_, often)| often.seen >= bounds.least)
        .map(|(shape, often)| often.suggestion(shape))
        .collect();
    suggestions.sort_by(|a, b| {
        b.calls.cmp(&a.calls).then(b.millis.cmp(&a.millis)).then_with(|| a.steps.cmp(&b.steps))
    });
    suggestions
}

/// All flows: for each member of an input, the last call before it that gave out its value as news.
fn flows(calls: &[Seen], bounds: &Bounds) -> Vec<Flow> {
    let mut flows = Vec::new();
    // Where each value was last given out as news.
    let mut news: HashMap<Digest, (usize, &str)> = HashMap::new();
    let mut told: HashSet<Digest> = HashSet::new();
    for (to, call) in calls.iter().enumerate() {
        for (member, digest) in &call.inputs {
            if let Some((from, path)) = news.get(digest)
                && to - from <= bounds.reach
                && calls[*from].ended <= call.began
                && call.began - calls[*from].ended <= bounds.patience
            {
                let (member, path) = (member.clone(), (*path).to_owned());
                flows.push(Flow { to, member, from: *from, path, digest: *digest });
            }
        }
        told.extend(call.inputs.iter().map(|(_, digest)| *digest));
        let mut own: HashSet<Digest> = HashSet::new();
        for (path, digest) in &call.outputs {
            // What was said before is no news, and the first place of several is the one that is meant.
            let is_news = !told.contains(digest) || news.contains_key(digest);
            if is_news && own.insert(*digest) {
                news.insert(*digest, (to, path));
            }
        }
    }
    flows
}

/// Those flows that were seen often enough, with values of their own.
fn habits(calls: &[Seen], flows: Vec<Flow>, bounds: &Bounds) -> Vec<Flow> {
    fn kind<'c>(calls: &'c [Seen], flow: &'c Flow) -> Kind<'c> {
        (&calls[flow.from].tool, &flow.path, &calls[flow.to].tool, &flow.member)
    }
    let mut values: HashMap<Kind<'_>, (usize, HashSet<Digest>)> = HashMap::new();
    for flow in &flows {
        let (number, different) = values.entry(kind(calls, flow)).or_default();
        *number += 1;
        different.insert(flow.digest);
    }
    let mut members: HashMap<(&Tool, &str), (usize, HashSet<Digest>)> = HashMap::new();
    for call in calls {
        for (member, digest) in &call.inputs {
            let (number, different) = members.entry((&call.tool, member)).or_default();
            *number += 1;
            different.insert(*digest);
        }
    }
    let is_habit: Vec<bool> = flows
        .iter()
        .map(|flow| {
            let (number, different) = &values[&kind(calls, flow)];
            let (told, known) = &members[&(&calls[flow.to].tool, flow.member.as_str())];
            // Of results, most are new each time; a setting comes again and again, and so does a small number.
            different.len() >= bounds.least
                && 2 * different.len() > *number
                && 2 * known.len() > *told
        })
        .collect();
    drop(values);
    flows
        .into_iter()
        .zip(is_habit)
        .filter(|(_, is_habit)| *is_habit)
        .map(|(flow, _)| flow)
        .collect()
}

/// The calls that led to one, in the order in which they began, with it; none where they are too many.
fn errand(last: usize, into: &HashMap<usize, Vec<&Flow>>, longest: usize) -> Option<Vec<usize>> {
    let mut errand = BTreeSet::from([last]);
    let mut left = vec![last];
    while let Some(call) = left.pop() {
        for flow in into.get(&call).into_iter().flatten() {
            if errand.insert(flow.from) {
                left.push(flow.from);
            }
        }
        if errand.len() > longest {
            return None;
        }
    }
    Some(errand.into_iter().collect())
}

/// What an errand has in common with others.
fn shape(errand: &[usize], into: &HashMap<usize, Vec<&Flow>>, calls: &[Seen]) -> Shape {
    let step = |call: &usize| {
        let flows = into.get(call).into_iter().flatten();
        let takes = flows.filter_map(|flow| {
            let step = errand.binary_search(&flow.from).ok()?;
            Some((flow.member.clone(), Source { step, path: flow.path.clone() }))
        });
        (calls[*call].tool.clone(), takes.collect())
    };
    errand.iter().map(step).collect()
}

/// How long nothing of an errand ran before its next call.
fn waits(errand: &[usize], calls: &[Seen]) -> u64 {
    let mut until = errand.first().map_or(0, |first| calls[*first].ended);
    let mut waited = 0;
    for call in errand.iter().skip(1).map(|call| &calls[*call]) {
        waited += call.began.saturating_sub(until);
        until = until.max(call.ended);
    }
    waited
}

#[cfg(test)]
mod tests;
