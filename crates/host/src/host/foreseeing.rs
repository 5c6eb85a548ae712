//! What would be decided of the steps of a chain, before anything of it runs. What their inputs will be is not known then,
//! so a step may be asked about here whose arguments the owner has approved before; it is never the other way round,
//! because every step is decided about again when it is made.

use std::fmt;
use std::pin::Pin;

use manifest::shape::escaped;
use policy::{Arguments, Decision, Policy, Question, Verdict, Why};
use serde_json::{Value, json};

use super::planning::Case;
use super::{Host, Prepared, check_verdict};
use crate::call::{AskedStep, Call, Tool};
use crate::chain::trace::joined;
use crate::chain::{Linked, Target};
use crate::consider::Considered;
use crate::endpoint;
use crate::error::{CallError, Kind};
use crate::input::Input;
use crate::ticket::step_words;

/// A step, and what would be decided of it.
#[derive(Clone, Debug)]
pub(crate) struct Foreseen {
    /// Its name, after those of the chains around it.
    pub(crate) path: String,
    /// What it calls.
    pub(crate) target: Target,
    /// Where its input comes from.
    pub(crate) takes: Vec<(String, String)>,
    /// The list that it is made for each element of.
    pub(crate) each: Option<String>,
    /// Whether it may turn out that it is not made.
    pub(crate) may_be_left_out: bool,
    /// What would be decided.
    pub(crate) sight: Sight,
}

/// What would be decided of a step.
#[derive(Clone, Debug)]
pub(crate) enum Sight {
    /// It may be made.
    Allowed,
    /// The owner has to be asked.
    Ask(Box<Question>),
    /// It may not be made.
    Refused(CallError),
}

type Foreseeing<'f> = Pin<Box<dyn Future<Output = Result<Vec<Foreseen>, CallError>> + Send + 'f>>;

impl Host {
    /// What would be decided of the steps of a tool, and of those of the chains among them; nothing where it is no chain.
    pub(super) fn foresee<'f>(
        &'f self,
        tool: &'f Tool,
        call: &'f Call,
        around: &'f str,
    ) -> Foreseeing<'f> {
        if tool.package.chain.is_none() {
            return Box::pin(std::future::ready(Ok(Vec::new())));
        }
        Box::pin(async move { self.foresee_steps(tool.linked()?, call, around, false).await })
    }

    async fn foresee_steps(
        &self,
        linked: &Linked,
        call: &Call,
        around: &str,
        may_be_left_out: bool,
    ) -> Result<Vec<Foreseen>, CallError> {
        let mut all = Vec::new();
        for (step, target) in linked.steps() {
            let path = joined(around, &step.name);
            let may_be_left_out = may_be_left_out || step.when.is_some();
            let sight = self.sight(target, call).await?;
            let is_refused = matches!(sight, Sight::Refused(_));
            all.push(Foreseen {
                path: path.clone(),
                target: target.clone(),
                takes: step.sources(),
                each: step.each.as_ref().map(|each| each.of.to_string()),
                may_be_left_out,
                sight,
            });
            if let Some(inner) = target.chain().filter(|_| !is_refused) {
                let inner = self.foresee_steps(inner, call, &path, may_be_left_out);
                all.extend(Box::pin(inner).await?);
            }
        }
        Ok(all)
    }

    /// What would be decided of one step. Only what keeps anybody from deciding is an error.
    async fn sight(&self, target: &Target, call: &Call) -> Result<Sight, CallError> {
        let tool = &*target.tool;
        let call = call.of_step(&target.action, String::new());
        let Some(action) = target.action() else {
            let message = format!("unknown tool: {}", target.action);
            return Ok(Sight::Refused(CallError::new(Kind::Unknown, message)));
        };
        let choice = match self.choose(tool, &call).await {
            Ok(choice) => choice,
            Err(error) => return Ok(Sight::Refused(error)),
        };
        let implementation = choice.first();
        let known = self.known(tool, &call).await?;
        let arguments = Arguments::new(json!({}));
        let input = Input { verbatim: String::new(), arguments };
        let prepared = Prepared { action, implementation, input };
        let decision = self.decide(tool, &call, &prepared, &known, &Considered::default());
        let refused = self
            .check_place(tool, &known)
            .and_then(|()| check_verdict(&decision, tool))
            .and_then(|()| endpoint::check_secrecy(&tool.package, implementation, action))
            .and_then(|()| endpoint::check(&tool.package, implementation, &decision.allowance));
        let refused = match refused {
            Ok(()) => self.records.check_left(tool, &self.settings.policy).await,
            refused => refused,
        };
        let case = Case { tool, call: &call, prepared: &prepared, known: &known };
        let refused = match refused {
            // Where no server is asked, nobody is told a secret.
            Ok(()) if !tool.package.inputs.is_empty() && !self.web.is_offline() => {
                self.check_declared(case, &decision).await
            }
            refused => refused,
        };
        Ok(match (refused, decision.verdict.clone()) {
            (Err(error), _) => Sight::Refused(error),
            (Ok(()), Verdict::Ask(question)) => Sight::Ask(Box::new(question)),
            (Ok(()), _) => Sight::Allowed,
        })
    }
}

/// Refuses a chain with a step that is surely made and may not be.
pub(super) fn check_foreseen(steps: &[Foreseen]) -> Result<(), CallError> {
    for one in steps.iter().filter(|one| !one.may_be_left_out) {
        if let Sight::Refused(error) = &one.sight {
            return Err(of_step(error.clone(), &one.path, &one.target, None));
        }
    }
    Ok(())
}

/// What the owner has to be asked about a call: for its own sake, or for that of its steps.
pub(super) fn question(
    decision: &Decision,
    steps: &[Foreseen],
    prepared: &Prepared<'_>,
    policy: &Policy,
) -> Option<Question> {
    let mut asked = steps.iter().filter_map(Foreseen::question).peekable();
    let is_asked = asked.peek().is_some();
    let is_first = asked.all(|question| question.is_first);
    match &decision.verdict {
        Verdict::Ask(own) => Some(Question { is_first: own.is_first && is_first, ..own.clone() }),
        Verdict::Allowed if is_asked => Some(Question {
            action: prepared.action.name.clone(),
            why: Why::Steps,
            digest: prepared.input.arguments.digest().to_owned(),
            expires_seconds: policy.approval.expires_seconds,
            rule: "approval",
            is_first,
        }),
        Verdict::Allowed | Verdict::Denied(_) => None,
    }
}

impl Foreseen {
    /// What the owner has to be asked about it.
    pub(super) fn question(&self) -> Option<&Question> {
        match &self.sight {
            Sight::Ask(question) => Some(question),
            Sight::Allowed | Sight::Refused(_) => None,
        }
    }

    /// The step as the owner is shown it, where they have to be asked.
    fn asked(&self) -> Option<AskedStep> {
        self.question().map(|question| AskedStep {
            step: self.path.clone(),
            package: self.target.tool.package.canonical_id(),
            action: self.target.action.clone(),
            takes: self.takes.clone(),
            each: self.each.clone(),
            because: question.why.words().into_owned(),
        })
    }

    /// The step, for programs and for people who look at a plan.
    pub(crate) fn to_value(&self) -> Value {
        let (decision, because) = match &self.sight {
            Sight::Allowed => ("allowed", None),
            Sight::Ask(question) => ("ask", Some(question.why.words().into_owned())),
            Sight::Refused(error) => ("denied", Some(error.message.clone())),
        };
        json!({
            "step": self.path,
            "package": self.target.tool.package.canonical_id(),
            "action": self.target.action,
            "takes": takes_to_value(&self.takes),
            "forEach": self.each,
            "decision": decision,
            "because": because,
        })
    }
}

/// The steps that the owner has to be asked about.
pub(super) fn asked(steps: &[Foreseen]) -> Vec<AskedStep> {
    steps.iter().filter_map(Foreseen::asked).collect()
}

impl AskedStep {
    /// The step, for programs and for whoever looks at a question later.
    pub fn to_value(&self) -> Value {
        json!({
            "step": self.step,
            "package": self.package,
            "action": self.action,
            "takes": takes_to_value(&self.takes),
            "forEach": self.each,
            "because": self.because,
        })
    }
}

/// What it calls with what, and why that is asked about; nothing of it steers whatever shows it.
impl fmt::Display for AskedStep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (step, because) = (escaped(&self.step), escaped(&self.because));
        write!(out, "{}, as step `{step}`, because {because}", step_words(&self.to_value()))
    }
}

fn takes_to_value(takes: &[(String, String)]) -> Value {
    takes.iter().map(|(member, from)| (member.clone(), Value::from(from.as_str()))).collect()
}

/// Why there is no result of a chain: which step, what it calls, and what its input looks like.
pub(super) fn of_step(
    error: CallError,
    path: &str,
    target: &Target,
    input: Option<&Value>,
) -> CallError {
    let name = path.rsplit('/').next().unwrap_or(path);
    let id = &target.tool.package.id;
    let how = if error.kind.is_refusal() { "is refused" } else { "failed" };
    let message = format!("the step `{name}` (`{id}`) {how}: {}", error.message);
    let mut error = CallError { message, passes_after: None, ..error };
    // What is said of the package of a step is said of no other.
    if error.rule.starts_with("package.") {
        error.rule = "".into();
    }
    // A step of a chain in it is told by that.
    if error.details.get("step").is_none() {
        error.details["step"] = json!({
            "name": path,
            "package": target.tool.package.canonical_id(),
            "action": target.action,
            "input": input.map(ledger::audit::shape_of),
        });
    }
    error
}
