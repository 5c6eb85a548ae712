//! From a request to a call that may be run: its action, its input, the decision, the owner's word, its secrets, its plan.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::audit;
use manifest::model::{Action, Implementation};
use policy::{Answer, Decision, Surface, Verdict};
use tokio_util::sync::CancellationToken;

use super::asking::{self, Asking};
use super::foreseeing::{self, check_foreseen};
use super::kept::{Decided, Made};
use super::planning::Case;
use super::running::context_of;
use super::{Host, Known, Prepared, broken_off, check_verdict};
use crate::call::{AskedStep, Call, Tool};
use crate::chain::cache::Key;
use crate::chain::trace::Trace;
use crate::consider::{Considered, consider, question};
use crate::endpoint;
use crate::error::CallError;
use crate::input::Input;
use crate::limit;
use crate::plan::{self, Plan, Way, Worker};
use crate::run::leash::Leash;
use crate::run::worker::{self, Warmth};
use crate::secrets::{Collected, Variables};

impl Host {
    /// Approval, then secrets; then it may be run.
    pub(super) async fn ready<'t>(
        &self,
        tool: &'t Tool,
        call: &Call,
        by: &'t Implementation,
        warmth: Warmth,
        trace: Option<&Trace>,
        noted: &mut Noted,
    ) -> Result<Ready<'t>, CallError> {
        let prepared = Self::prepare(tool, call, by)?;
        let record = &mut noted.record;
        record.action.clone_from(&prepared.action.name);
        record.implementation.clone_from(&prepared.implementation.id);
        record.arguments = audit::shape_of(prepared.input.arguments.value());
        let known = with_answer(self.known(tool, call).await?, noted.answer.as_ref());
        let may_be_again = warmth == Warmth::Warm && trace.is_none() && !self.web.is_offline();
        let again = may_be_again.then(|| self.plans.again(self, (tool, call), &prepared, &known));
        let Some(plan) = again.flatten() else {
            let prepared = (prepared, known, may_be_again);
            return Box::pin(self.ready_anew(tool, call, prepared, warmth, trace, noted)).await;
        };
        let allowed = Duration::from_millis(plan.decision.allowance.timeout_ms);
        allow(record, &plan.decision);
        let plan = self.take_up(tool, call, plan, record).await?;
        let Prepared { action, input, .. } = prepared;
        Ok(Ready { plan, action, input, allowed, agreed: Vec::new(), key: None })
    }

    /// The same where nothing of a moment ago can be taken again.
    async fn ready_anew<'t>(
        &self,
        tool: &'t Tool,
        call: &Call,
        (prepared, mut known, may_be_again): (Prepared<'t>, Arc<Known>, bool),
        warmth: Warmth,
        trace: Option<&Trace>,
        noted: &mut Noted,
    ) -> Result<Ready<'t>, CallError> {
        let Noted { record, waited, begun, answer } = noted;
        self.check_place(tool, &known)?;
        let open = self.decide(tool, call, &prepared, &known, &Considered::default());
        check_verdict(&open, tool)?;
        let (action, implementation) = (prepared.action, prepared.implementation);
        endpoint::check_secrecy(&tool.package, implementation, action)?;
        endpoint::check(&tool.package, implementation, &open.allowance)?;
        let mut allowed = Duration::from_millis(open.allowance.timeout_ms);
        let hooks = self.asked(tool, call, &prepared, open, &[]);
        let policy = &self.settings.policy;
        let (considered, mut decision) = match question(&hooks)? {
            Some(question) => {
                let allowance = &hooks.decision.allowance;
                // They are the tool's own code: they run only where nothing else refuses the call, and with them it
                // begins. What it costs is taken once it is known that it goes on.
                self.records.check_left(tool, policy).await?;
                Self::check_askable(&hooks.decision, call)?;
                let case = Case { tool, call, prepared: &prepared, known: &known };
                Box::pin(self.check_declared(case, &hooks.decision)).await?;
                record.sandbox = self.level().to_string();
                *begun = Some(self.records.begin(record)?);
                let began = Instant::now();
                let considered = self.consider(question, warmth, began + allowed, call);
                let considered = match Box::pin(considered).await {
                    Ok(considered) => considered,
                    Err(mut error) => {
                        // Nobody refused it: it ran, and failed.
                        self.records.reserve(tool, policy).await?;
                        limit::tell(&mut error, allowance, tool.package.dialect);
                        return Err(error);
                    }
                };
                allowed = allowed.saturating_sub(began.elapsed());
                let decision = self.decide(tool, call, &prepared, &known, &considered);
                (considered, decision)
            }
            None => (Considered::default(), hooks.decision),
        };
        let steps = self.foresee(tool, call, trace.map_or("", |trace| &trace.step)).await?;
        check_foreseen(&steps)?;
        let mut agreed = Vec::new();
        if let Some(question) = foreseeing::question(&decision, &steps, &prepared, policy) {
            let message = considered.message.as_deref();
            let asking = Asking { question: &question, message, steps: &steps };
            let began = Instant::now();
            let said = Box::pin(self.ask_owner(tool, call, &prepared, asking)).await;
            *waited = began.elapsed();
            *answer = Some(said?);
            known = with_answer(known, answer.as_ref());
            decision = self.decide(tool, call, &prepared, &known, &considered);
            agreed = foreseeing::asked(&steps);
        }
        check_allowed(&decision, tool)?;
        allow(record, &decision);
        self.note_place(tool, &known).await?;
        if begun.is_none() {
            // Nobody is asked for secrets of a call that nothing is left for.
            self.records.check_left(tool, policy).await?;
        }
        let (collector, asked) = (self.collector(tool, &known), self.vault.waited());
        let collected = collector.collect(&decision.allowance, &considered.secrets);
        let collected = while_awaited(collected, allowed, call).await;
        *waited += self.vault.waited().saturating_sub(asked);
        let case = Case { tool, call, prepared: &prepared, known: &known };
        let planned = if self.web.is_offline() {
            self.plan_offline(case, decision.clone(), collected).map(Arc::new)
        } else {
            let decided =
                may_be_again.then(|| Decided::of(tool, call, &known, &decision)).flatten();
            collected
                .and_then(Collected::whole)
                .and_then(|variables| self.planned(case, &decision, decided, variables, warmth))
        };
        let plan = match planned {
            Ok(plan) => self.take_up(tool, call, plan, record).await?,
            Err(error) => return Err(Box::pin(self.lacking(case, decision, error)).await),
        };
        let is_step = trace.is_some_and(|trace| !trace.step.is_empty());
        let may_be_kept = is_step && warmth == Warmth::Warm && call.surface != Surface::Test;
        let input = prepared.input.arguments.value();
        let key = Key::of(tool, prepared.action, &plan, input).filter(|_| may_be_kept);
        Ok(Ready { plan, action, input: prepared.input, allowed, agreed, key })
    }

    /// Takes what a call costs, and writes down what is about to be run.
    async fn take_up(
        &self,
        tool: &Tool,
        call: &Call,
        mut plan: Arc<Plan>,
        record: &mut audit::Call,
    ) -> Result<Arc<Plan>, CallError> {
        self.records.reserve(tool, &self.settings.policy).await?;
        if plan.image.is_some() {
            let own = Arc::unwrap_or_clone(plan);
            plan = Arc::new(Box::pin(prepare_image(own, &call.called_off)).await?);
        }
        self.note_plan(record, &plan);
        let action = tool.action(&call.action);
        let context = action.and_then(|action| context_of(call, tool.package.dialect, action));
        if let (Some(context), Way::Process(_) | Way::Worker(_)) = (&context, &plan.way) {
            let names = context.variables().map(|(name, _)| name.to_owned());
            let unknown = names.filter(|name| !record.env_keys.contains(name)).collect::<Vec<_>>();
            record.env_keys.extend(unknown);
        }
        if call.called_off.is_cancelled() {
            return Err(CallError::called_off());
        }
        Ok(plan)
    }

    /// The plan of a call: the one of a moment ago, where it was made of the same.
    fn planned(
        &self,
        case: Case<'_>,
        decision: &Arc<Decision>,
        decided: Option<Decided>,
        variables: Variables,
        warmth: Warmth,
    ) -> Result<Arc<Plan>, CallError> {
        let Case { tool, call, prepared, .. } = case;
        let make = |variables: &Variables| {
            let asked = self.asked(tool, call, prepared, Arc::clone(decision), variables);
            plan::make(&asked).map(Arc::new)
        };
        let (Some(digest), Warmth::Warm, Some(_)) = (&tool.digest, warmth, &tool.surface) else {
            return make(&variables);
        };
        let key = (tool.package.canonical_id(), prepared.action.name.clone());
        let of = Made {
            digest: digest.clone(),
            implementation: prepared.implementation.id.clone(),
            decision: Arc::clone(decision),
            variables,
            settings: Arc::clone(&self.settings),
            folder: call.folder.clone(),
        };
        if let Some(plan) = self.plans.find(&key, &of, decided.as_ref()) {
            return Ok(plan);
        }
        let plan = make(&of.variables)?;
        self.plans.keep(key, of, decided, &plan);
        Ok(plan)
    }

    /// Asks a tool what it has to say of a call, within the time of the call and as long as somebody waits for it.
    async fn consider(
        &self,
        question: Worker,
        warmth: Warmth,
        until: Instant,
        call: &Call,
    ) -> Result<Considered, CallError> {
        let turn = self.turns.wait(&question.owner.package, worker::MOST_OF_ONE, until).await?;
        let (host, leash) = (self.clone(), Leash::default());
        let _guard = leash.guard();
        let asked = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            consider(&question, &host.launcher, &host.workers, warmth, until, &leash)
        });
        tokio::select! {
            asked = asked => asked.unwrap_or_else(|error| Err(broken_off(&error))),
            () = call.called_off.cancelled() => Err(CallError::called_off()),
        }
    }

    /// Writes down what is about to be run, where, and inside which walls.
    pub(super) fn note_plan(&self, record: &mut audit::Call, plan: &Plan) {
        (record.argv, record.env_keys) = plan.shown();
        match (plan.confinement(), &plan.way) {
            (Some(confinement), _) => {
                record.cwd = confinement.folder.display().to_string();
                record.sandbox = self.level().to_string();
            }
            (None, Way::Engine(_)) => "engine".clone_into(&mut record.sandbox),
            (None, _) => {}
        }
    }
}

/// A call that may be run.
pub(super) struct Ready<'t> {
    pub(super) plan: Arc<Plan>,
    pub(super) action: &'t Action,
    pub(super) input: Input,
    /// How long it may run.
    pub(super) allowed: Duration,
    /// The steps that the owner was shown and said yes to.
    pub(super) agreed: Vec<AskedStep>,
    /// What its answer is kept under, of a pure step.
    pub(super) key: Option<Key>,
}

/// What is noted of a call while it is made ready.
pub(super) struct Noted {
    pub(super) record: audit::Call,
    /// How long the owner took to answer.
    pub(super) waited: Duration,
    /// That it is in the log, from when anything of the tool may run.
    pub(super) begun: Option<audit::Begun>,
    /// What the owner said to it.
    pub(super) answer: Option<Answer>,
}

/// The values of a call, within its time and as long as somebody waits for it.
async fn while_awaited<T>(
    collected: impl Future<Output = Result<T, CallError>>,
    allowed: Duration,
    call: &Call,
) -> Result<T, CallError> {
    tokio::select! {
        collected = tokio::time::timeout(allowed, collected) => collected.unwrap_or_else(|_| {
            Err(limit::too_late("it waited for its secrets"))
        }),
        () = call.called_off.cancelled() => Err(CallError::called_off()),
    }
}

/// What is known of a package, with what the owner said to this very call.
fn with_answer(mut known: Arc<Known>, answer: Option<&Answer>) -> Arc<Known> {
    if answer.is_some() {
        Arc::make_mut(&mut known).memory.answer = answer.cloned();
    }
    known
}

/// Has the image of a call unpacked, where it runs in one, as long as somebody waits for it.
pub(super) async fn prepare_image(
    mut plan: Plan,
    off: &CancellationToken,
) -> Result<Plan, CallError> {
    if plan.image.is_none() {
        return Ok(plan);
    }
    let leash = Leash::default();
    let _guard = leash.guard();
    let prepared = tokio::task::spawn_blocking(move || {
        plan::container::prepare(&mut plan, &leash)?;
        Ok(plan)
    });
    tokio::select! {
        prepared = prepared => prepared.unwrap_or_else(|error| Err(broken_off(&error))),
        () = off.cancelled() => Err(CallError::called_off()),
    }
}

/// Writes down that a call may run, and by which rule.
fn allow(record: &mut audit::Call, decision: &Decision) {
    record.decision = audit::Decision::Allowed;
    decision.rule.clone_into(&mut record.rule);
}

/// Refuses what may not go ahead, or not yet.
fn check_allowed(decision: &Decision, tool: &Tool) -> Result<(), CallError> {
    match &decision.verdict {
        Verdict::Ask(question) => Err(asking::needed(question)),
        Verdict::Allowed | Verdict::Denied(_) => check_verdict(decision, tool),
    }
}
