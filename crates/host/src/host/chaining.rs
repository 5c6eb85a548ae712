//! A chain that runs: each step by the path of every call, as soon as what it reads is there.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, stream};
use manifest::chain::{INPUT, ITEM, Missing, Step};
use policy::{Surface, Why};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::foreseeing::of_step;
use super::running::{Ran, Running};
use super::{Host, Made};
use crate::blocked::Blocked;
use crate::call::{Advance, Approver, AskedStep, Call, Matter, Output, Said, Tool};
use crate::chain::order::Order;
use crate::chain::trace::Trace;
use crate::chain::{Linked, Target};
use crate::error::{CallError, Kind};
use crate::plan::Chain;
use crate::promise::check_promise;
use crate::violation::Violation;

/// How many elements of a list a step is called for at most.
const MOST_ELEMENTS: usize = 1_024;

/// How much all answers of one chain may take in memory, about.
const MOST_KNOWN: usize = 64 << 20;

/// How long to wait before a step is tried again; twice as long each further time.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// What the steps of a chain leave beside its result.
#[derive(Debug, Default)]
pub(super) struct OfSteps {
    /// What the step that failed was kept from.
    pub(super) blocked: Vec<Blocked>,
    /// What steps reached for by themselves, each with its tool.
    pub(super) violations: Vec<(Arc<Tool>, Violation)>,
    /// What could not be written down.
    pub(super) unwritten: Vec<String>,
    /// The weakest walls that a step had.
    pub(super) level: Option<sandbox::Level>,
}

/// A chain on its way.
struct Following<'f> {
    host: &'f Host,
    running: &'f Running<'f>,
    linked: &'f Linked,
    trace: &'f Trace,
    until: Instant,
    /// Called off with the call, or because a step failed.
    off: CancellationToken,
    aside: Mutex<OfSteps>,
}

/// What a step gave.
type Ended = (usize, Result<Value, CallError>);

type Stepping<'f> = Pin<Box<dyn Future<Output = Ended> + Send + 'f>>;

impl Host {
    /// Follows a chain until its last step has ended, or one has failed. What runs besides is called off then, and
    /// waited for, so that the log says how it ended.
    pub(super) async fn follow(&self, running: &Running<'_>, chain: &Chain, until: Instant) -> Ran {
        let Some(trace) = running.trace else { return Ran::refused(untraced()) };
        let following = Following {
            host: self,
            running,
            linked: &chain.linked,
            trace,
            until,
            off: running.call.called_off.child_token(),
            aside: Mutex::default(),
        };
        let result = following.run(&chain.input).await;
        let output = match result {
            _ if running.call.called_off.is_cancelled() => Err(CallError::called_off()),
            Ok(value) => check_promise(Output::Json(value), running.action),
            Err(error) => Err(error),
        };
        let aside = following.aside.into_inner().unwrap_or_else(PoisonError::into_inner);
        // What steps were kept from is theirs, and noted with them.
        let (blocked, steps) = (Vec::new(), aside);
        Ran { is_walled: false, steps, ..Ran::of(output, blocked) }
    }

    /// Makes the call of a step. It is boxed here, because a step may be a chain.
    fn make_step<'m>(
        &'m self,
        target: &'m Target,
        call: &'m Call,
        running: &'m Running<'m>,
        trace: &'m Trace,
    ) -> Pin<Box<dyn Future<Output = Made> + Send + 'm>> {
        Box::pin(self.make(&target.tool, call, running.warmth, Some(trace)))
    }
}

impl Following<'_> {
    async fn run(&self, input: &Value) -> Result<Value, CallError> {
        let steps = &self.linked.flow.steps;
        let mut known = Value::Object(Map::from_iter([(INPUT.to_owned(), input.clone())]));
        let (mut weight, mut done) = (0_usize, 0_usize);
        // The last step of the document that ran, and its answer where no key keeps it.
        let (mut last, mut answer): (Option<usize>, Value) = (None, Value::Null);
        let mut order = Order::new(&self.linked.flow.after);
        let mut under_way = FuturesUnordered::new();
        let mut failure = None;
        loop {
            if failure.is_none() {
                match self.begin(&mut order, &known) {
                    Ok(begun) => under_way.extend(begun),
                    Err(error) => failure = Some(self.give_up(error)),
                }
            }
            let Some((at, ended)) = under_way.next().await else { break };
            let value = match ended {
                Ok(value) if failure.is_none() => value,
                Err(error) if failure.is_none() => {
                    failure = Some(self.give_up(error));
                    continue;
                }
                _ => continue,
            };
            weight = weight.saturating_add(weigh(&value));
            if weight > MOST_KNOWN {
                let most = MOST_KNOWN >> 20;
                let message = format!("the answers of its steps take more than {most} MiB");
                failure = Some(self.give_up(CallError::new(Kind::TooMuchOutput, message)));
                continue;
            }
            done += 1;
            self.tell(done, &steps[at]);
            let is_last = last.is_none_or(|last| last < at);
            match &steps[at].key {
                Some(key) => known[key] = value,
                None if is_last => answer = value,
                None => {}
            }
            if is_last {
                last = Some(at);
            }
            order.end(at);
        }
        if let Some(error) = failure {
            return Err(error);
        }
        Ok(match last.map(|at| &steps[at].key) {
            Some(Some(key)) => known[key].take(),
            Some(None) => answer,
            None => Value::Null,
        })
    }

    /// Begins what may begin now. Nothing of it does where one of them cannot.
    fn begin<'s>(
        &'s self,
        order: &mut Order,
        known: &Value,
    ) -> Result<Vec<Stepping<'s>>, CallError> {
        let mut begun: Vec<Stepping<'s>> = Vec::new();
        while let Some(at) = order.next() {
            let step = &self.linked.flow.steps[at];
            // For each element of a list it is looked at when its turn comes.
            let is_left_out =
                step.each.is_none() && step.when.as_ref().is_some_and(|when| !when.matches(known));
            if is_left_out {
                order.end(at);
                continue;
            }
            begun.push(match &step.each {
                None => {
                    let input = step.input(known).map_err(|missing| self.lacking(at, &missing))?;
                    Box::pin(async move { (at, self.one(at, input, &self.off).await) })
                }
                Some(each) => {
                    let elements = self.elements(at, each.of.find(known))?;
                    let view = view(step, known);
                    Box::pin(async move { (at, self.each(at, elements, view).await) })
                }
            });
        }
        Ok(begun)
    }

    /// The list that a step is called for.
    fn elements(&self, at: usize, found: Option<Value>) -> Result<Vec<Value>, CallError> {
        let wrong = |words: String| {
            let name = &self.linked.flow.steps[at].name;
            let message = format!("`forEach` of the step `{name}` {words}");
            CallError::new(Kind::BadChain, message)
        };
        match found {
            Some(Value::Array(elements)) if elements.len() <= MOST_ELEMENTS => Ok(elements),
            Some(Value::Array(elements)) => Err(wrong(format!(
                "finds {} elements, and a step is called for at most {MOST_ELEMENTS}",
                elements.len()
            ))),
            Some(_) => Err(wrong("finds something that is no list".to_owned())),
            None => Err(wrong("finds nothing".to_owned())),
        }
    }

    /// Calls a step for each element of a list, some at a time; the answers are in the order of the list.
    async fn each(
        &self,
        at: usize,
        elements: Vec<Value>,
        mut view: Value,
    ) -> Result<Value, CallError> {
        let step = &self.linked.flow.steps[at];
        let at_once = step.each.as_ref().map_or(1, |each| each.at_once);
        let off = &self.off.child_token();
        let inputs = elements.into_iter().take_while(|_| !off.is_cancelled()).map(|element| {
            view[ITEM] = element;
            if step.when.as_ref().is_some_and(|when| !when.matches(&view)) {
                return Ok(None);
            }
            step.input(&view).map(Some).map_err(|missing| self.lacking(at, &missing))
        });
        let calls = stream::iter(inputs).map(|input| async move {
            match input? {
                Some(input) => self.one(at, input, off).await.map(Some),
                None => Ok(None),
            }
        });
        let mut calls = std::pin::pin!(calls.buffered(at_once));
        let (mut answers, mut failure) = (Vec::new(), None);
        let mut number = 0;
        while let Some(called) = calls.next().await {
            match called {
                Ok(answer) => answers.extend(answer),
                Err(error) if failure.is_none() => {
                    off.cancel();
                    failure = Some(error.with("element", number));
                }
                Err(_) => {}
            }
            number += 1;
        }
        failure.map_or(Ok(Value::Array(answers)), Err)
    }

    /// Calls a step once, and again where that is safe and its author wants it.
    async fn one(
        &self,
        at: usize,
        input: Map<String, Value>,
        off: &CancellationToken,
    ) -> Result<Value, CallError> {
        let (step, target) = (&self.linked.flow.steps[at], &self.linked.targets[at]);
        let (trace, input) = (self.trace.of(&step.name), Value::Object(input));
        let call = self.call(&trace, target, &input, off);
        let mut left = retries(step, target, &call.surface);
        let mut wait = FIRST_WAIT;
        loop {
            trace.count()?;
            let within = self.until.saturating_duration_since(Instant::now());
            let within = step.timeout.map_or(within, |timeout| timeout.min(within));
            let call = Call { within: Some(within), ..call.clone() };
            let made = self.host.make_step(target, &call, self.running, &trace).await;
            let (reply, blocked) = self.note(target, made);
            let error = match reply {
                Ok(output) => return Ok(output.into_value()),
                Err(error) if step.timeout == Some(within) => {
                    error.timed_by("`timeoutMs` of the step")
                }
                Err(error) => error,
            };
            if left == 0 || !may_pass(&error) || Instant::now() + wait >= self.until {
                self.aside().blocked.extend(blocked);
                return Err(of_step(error, &trace.step, target, Some(&input)));
            }
            left -= 1;
            tokio::select! {
                () = tokio::time::sleep(wait) => wait *= 2,
                () = off.cancelled() => return Err(CallError::called_off()),
            }
        }
    }

    /// The call that a step is. It comes from where the chain was called, so nothing is allowed to it that would not be
    /// allowed to its caller.
    fn call(&self, trace: &Trace, target: &Target, input: &Value, off: &CancellationToken) -> Call {
        let Running { call, agreed, .. } = self.running;
        let below = format!("{}/", trace.step);
        let is_of_it = |one: &&AskedStep| one.step == trace.step || one.step.starts_with(&below);
        let shown: Vec<_> = agreed.iter().filter(is_of_it).cloned().collect();
        let mut step = call.of_step(&target.action, input.to_string());
        step.called_off = off.clone();
        if !shown.is_empty() {
            step.approver = Some(Arc::new(Shown { steps: shown, owner: step.approver.take() }));
        }
        step
    }

    /// Takes from a call that was made what is told with the chain.
    fn note(&self, target: &Target, made: Made) -> (Result<Output, CallError>, Vec<Blocked>) {
        let mut aside = self.aside();
        aside.unwritten.extend(made.unwritten);
        aside.level = aside.level.into_iter().chain(made.level).min();
        aside.violations.extend(made.violation.map(|one| (Arc::clone(&target.tool), one)));
        aside.violations.extend(made.step_violations);
        (made.reply, made.blocked)
    }

    fn aside(&self) -> std::sync::MutexGuard<'_, OfSteps> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A step needs something that is not there.
    fn lacking(&self, at: usize, missing: &Missing) -> CallError {
        let Missing { member, path } = missing;
        let message = format!("nothing is found for its `{member}` at `{path}`");
        let (step, target) = (&self.linked.flow.steps[at], &self.linked.targets[at]);
        let error = CallError::new(Kind::BadChain, message);
        of_step(error, &self.trace.of(&step.name).step, target, None)
    }

    /// Calls off whatever runs besides.
    fn give_up(&self, error: CallError) -> CallError {
        self.off.cancel();
        error
    }

    /// Tells whoever watches how far it is.
    fn tell(&self, done: usize, step: &Step) {
        if let Some(progress) = &self.running.call.progress {
            #[expect(clippy::cast_precision_loss, reason = "a chain has few steps")]
            let [done, total] = [done, self.linked.flow.steps.len()].map(|count| count as f64);
            let message = Some(step.name.clone());
            progress.advanced(&Advance { done, total: Some(total), message });
        }
    }
}

/// How often a step may be tried again: as its author says, where the action says that this is safe. A test is to show
/// how often things go wrong.
pub(super) fn retries(step: &Step, target: &Target, surface: &Surface) -> u32 {
    let is_idempotent = target.action().is_some_and(|action| action.idempotent == Some(true));
    if is_idempotent && *surface != Surface::Test { step.retry } else { 0 }
}

/// Whether the same call may go well the next time.
fn may_pass(error: &CallError) -> bool {
    matches!(error.kind, Kind::Failed | Kind::TimedOut | Kind::Unavailable)
}

/// What a step reads of all that is known.
fn view(step: &Step, known: &Value) -> Value {
    let roots: Option<Vec<&str>> = step.paths().map(manifest::chain::Path::root).collect();
    let Some(roots) = roots else { return known.clone() };
    let found =
        roots.into_iter().filter_map(|root| Some((root.to_owned(), known.get(root)?.clone())));
    Value::Object(found.collect())
}

/// What a value takes in memory, about.
fn weigh(value: &Value) -> usize {
    const NODE: usize = 32;
    NODE + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weigh).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| NODE + name.len() + weigh(member)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn untraced() -> CallError {
    CallError::new(Kind::Unavailable, "a chain is not followed without a trace of it")
}

/// Says yes to the steps that the owner was shown when they approved of this very call of the chain; about everything
/// else the owner is asked.
#[derive(Debug)]
struct Shown {
    steps: Vec<AskedStep>,
    owner: Option<Arc<dyn Approver>>,
}

impl Shown {
    fn covers(&self, matter: &Matter) -> bool {
        let is_it = |one: &AskedStep| one.package == matter.package && one.action == matter.action;
        // A chain among the steps is asked about for the sake of its own.
        let is_for_steps = matter.question.why == Why::Steps && !matter.steps.is_empty();
        let is_shown = self.steps.iter().any(is_it) || is_for_steps;
        is_shown && matter.steps.iter().all(|step| self.steps.contains(step))
    }
}

impl Approver for Shown {
    fn ask(&self, matter: &Matter) -> Result<Option<Said>, CallError> {
        match &self.owner {
            _ if self.covers(matter) => Ok(Some(Said::Once)),
            Some(owner) => owner.ask(matter),
            None => Ok(None),
        }
    }

    fn is_there(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use policy::Question;
    use serde_json::json;

    use super::*;

    fn asked(step: &str, package: &str) -> AskedStep {
        AskedStep {
            step: step.to_owned(),
            package: package.to_owned(),
            action: "run".to_owned(),
            takes: Vec::new(),
            each: None,
            because: "the action is destructive".to_owned(),
        }
    }

    fn matter(package: &str, why: Why, steps: Vec<AskedStep>) -> Matter {
        let (action, digest) = ("run".to_owned(), String::new());
        let question = Question {
            action: action.clone(),
            why,
            digest,
            expires_seconds: 1,
            rule: "",
            is_first: false,
        };
        let (package, input) = (package.to_owned(), "{}".to_owned());
        Matter { package, action, input, question, message: None, can_be_remembered: true, steps }
    }

    #[test]
    fn a_yes_to_a_chain_is_for_the_steps_that_were_shown_and_for_no_others() {
        let shown = Shown { steps: vec![asked("a", "x"), asked("a/b", "y")], owner: None };
        let says = |matter: &Matter| shown.ask(matter).unwrap();
        assert_eq!(says(&matter("x", Why::Destructive, Vec::new())), Some(Said::Once));
        assert_eq!(says(&matter("z", Why::Destructive, Vec::new())), None);
        let inner = |step: &str, package: &str| matter("c", Why::Steps, vec![asked(step, package)]);
        assert_eq!(says(&inner("a/b", "y")), Some(Said::Once));
        assert_eq!(says(&inner("a/c", "y")), None);
        assert_eq!(says(&inner("a/b", "z")), None);
        assert_eq!(says(&matter("c", Why::Steps, Vec::new())), None);
    }

    #[test]
    fn a_step_for_each_element_sees_what_it_reads_and_nothing_else() {
        let read = |path: &str| {
            let step =
                json!({"step": "s", "tool": "t", "forEach": "$.list", "inputMapping": {"x": path}});
            view(&Step::read(&step).unwrap(), &json!({"input": 1, "list": [2], "big": "…"}))
        };
        assert_eq!(read("$.item"), json!({"list": [2]}));
        assert_eq!(read("$.input"), json!({"input": 1, "list": [2]}));
        assert_eq!(read("$..x"), json!({"input": 1, "list": [2], "big": "…"}));
    }

    #[test]
    fn a_value_weighs_at_least_what_its_texts_do() {
        assert!(weigh(&json!({"a": ["x".repeat(1000), {"b": "y".repeat(500)}]})) > 1_500);
    }
}
