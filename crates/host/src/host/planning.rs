//! What a call would be, while nothing of it is run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use manifest::model::{Entry, SignIn};
use policy::{Decision, Verdict};
use serde_json::Value;

use super::foreseeing::{Foreseen, check_foreseen, question};
use super::{Host, Known, Prepared, check_verdict};
use crate::call::{Call, Tool};
use crate::consider::Considered;
use crate::endpoint;
use crate::error::{CallError, Kind, Missing};
use crate::plan::outlook::Outlook;
use crate::plan::{self, Plan, Way};
use crate::run::engine::check_image;
use crate::run::leash::Leash;
use crate::secrets::{self, Collected, Collector, Elsewhere};
use crate::template::Variable;

/// How long an engine may take to say whether it has an image, where nothing is run.
const ENGINE_PATIENCE: Duration = Duration::from_secs(10);

impl Host {
    /// Says exactly what a call would run and whether it may, and runs nothing: not even the hooks of the
    /// tool, so it may want more than this.
    pub async fn plan(&self, tool: &Tool, call: &Call) -> Result<Plan, CallError> {
        let known = self.known(tool, call).await?;
        let choice = self.choose(tool, call).await?;
        let prepared = Self::prepare(tool, call, choice.first())?;
        let decision = self.decide(tool, call, &prepared, &known, &Considered::default());
        let budget = self.records.left(tool, &self.settings.policy).await?;
        let case = Case { tool, call, prepared: &prepared, known: &known };
        let Sketch { mut plan, mut missing, no_secrets } = self.sketch(case, decision).await?;
        // What a sign-in gives is nothing that the owner has to keep.
        if let (true, SignIn::Named(secrets)) =
            (tool.package.requires_oauth, tool.package.sign_in())
            && let [only] = secrets.as_slice()
        {
            missing.retain(|one| one["name"] != **only);
        }
        if let Way::A2a(agent) = &mut plan.way {
            let kept = self.logins().kept(&tool.package.canonical_id()).unwrap_or_default();
            agent.bearer = kept.map(|kept| kept.bearer());
        }
        let steps = self.foresee(tool, call, "").await?;
        if let Some(question) = question(&plan.decision, &steps, &prepared, &self.settings.policy) {
            Arc::make_mut(&mut plan.decision).verdict = Verdict::Ask(question);
        }
        let Prepared { action, implementation, .. } = prepared;
        let decision = &plan.decision;
        let refused = self
            .check_place(tool, &known)
            .and_then(|()| check_verdict(decision, tool))
            .and_then(|()| endpoint::check_secrecy(&tool.package, implementation, action))
            .and_then(|()| endpoint::check(&tool.package, implementation, &decision.allowance))
            .and_then(|()| budget.refusal.clone().map_or(Ok(()), Err))
            .and_then(|()| plan.check_told())
            .and_then(|()| check_foreseen(&steps))
            .err();
        plan.outlook = Some(Outlook {
            level: self.level(),
            budget,
            refused,
            missing,
            no_secrets,
            has_hooks: matches!(implementation.entry, Entry::NodeModule { .. }),
            no_image: no_image(&plan).await,
            steps: steps.iter().map(Foreseen::to_value).collect(),
        });
        Ok(plan)
    }

    /// Refuses a call that lacks a value which its manifest names, as far as that can be told without a passphrase.
    pub(super) async fn check_declared(
        &self,
        case: Case<'_>,
        decision: &Arc<Decision>,
    ) -> Result<(), CallError> {
        // The owner types it for a call that they have agreed to.
        if self.vault.is_sealed().unwrap_or(true) {
            return Ok(());
        }
        let collector =
            Collector { elsewhere: Elsewhere::Left, ..self.collector(case.tool, case.known) };
        let collected = collector.collect(&decision.allowance, &[]).await;
        match collected.and_then(Collected::whole) {
            Err(error) if error.kind == Kind::MissingInput => {
                Err(self.lacking(case, decision.clone(), error).await)
            }
            // What else is wrong with a value is told where it would be given.
            _ => Ok(()),
        }
    }

    /// Plans a call for which no server is asked: nobody is told a secret, so what stands for one does as well.
    pub(super) fn plan_offline(
        &self,
        case: Case<'_>,
        decision: Arc<Decision>,
        collected: Result<Collected<'_>, CallError>,
    ) -> Result<Plan, CallError> {
        let Case { tool, call, prepared, .. } = case;
        let Collected { variables, missing } = match collected {
            Ok(collected) => collected,
            Err(error) if matches!(error.kind, Kind::Cancelled | Kind::TimedOut) => {
                return Err(error);
            }
            // Whoever keeps them does not answer.
            Err(_) => {
                Collected { variables: secrets::stand_ins(&tool.package), missing: Vec::new() }
            }
        };
        if missing.iter().any(|one| !one.is_secret) {
            return Err(CallError::missing(&missing));
        }
        let asked = self.asked(tool, call, prepared, decision, &variables);
        let given = secrets::without_unset(&tool.package, &variables);
        let plan = plan::make(&plan::Asked { variables: &given, ..asked.clone() })
            .or_else(|_| plan::make(&asked))?;
        if !matches!(plan.way, Way::Http(_)) && !missing.is_empty() {
            return Err(CallError::missing(&missing));
        }
        self.check_offline(&plan)?;
        Ok(plan)
    }

    /// Refuses what would reach the network, where nothing is reached.
    pub(super) fn check_offline(&self, plan: &Plan) -> Result<(), CallError> {
        if !self.web.is_offline() {
            return Ok(());
        }
        let reaches = match &plan.way {
            // The steps of a chain are looked at as themselves.
            Way::Http(_) | Way::Chain(_) => false,
            Way::Mcp(one) if one.is_remote() => true,
            Way::A2a(_) => true,
            Way::Process(_) | Way::Worker(_) | Way::Mcp(_) | Way::Engine(_) => {
                !plan.decision.allowance.hosts.is_empty()
            }
        };
        if !reaches {
            return Ok(());
        }
        let message = "it reaches the network by itself, and only the requests of HTTP tools are answered from a recording";
        Err(CallError::new(Kind::Unavailable, message))
    }

    /// Why a call is not made whose values are not all given, with what its manifest says of them.
    pub(super) async fn lacking(
        &self,
        case: Case<'_>,
        decision: Arc<Decision>,
        mut error: CallError,
    ) -> CallError {
        // Who would be refused with a secret is not asked to keep it first.
        if error.kind == Kind::MissingInput
            && let Ok(sketch) = self.sketch(case, decision).await
            && let Err(refusal) = sketch.plan.check_told()
        {
            return refusal;
        }
        if let Some(Value::Array(missing)) = error.details.get_mut("missing") {
            secrets::describe(missing, &case.tool.package, &case.known.grants);
        }
        error
    }

    /// Plans a call with what of its values is at hand; a name stands for every other.
    async fn sketch(&self, case: Case<'_>, decision: Arc<Decision>) -> Result<Sketch, CallError> {
        let Case { tool, call, prepared, known } = case;
        let collector = Collector { elsewhere: Elsewhere::Left, ..self.collector(tool, known) };
        let collected = collector.collect(&decision.allowance, &[]).await;
        let (Collected { variables, missing }, no_secrets) = match collected {
            Ok(collected) => (collected, None),
            Err(error) => {
                let variables = secrets::stand_ins(&tool.package);
                (Collected { variables, missing: Vec::new() }, Some(error))
            }
        };
        let asked = self.asked(tool, call, prepared, decision, &variables);
        let given = secrets::without_unset(&tool.package, &variables);
        // What a manifest calls optional, a request may not be made without.
        let planned = plan::sketch(&plan::Asked { variables: &given, ..asked.clone() })
            .or_else(|_| plan::sketch(&asked));
        let (plan, no_secrets) = match planned {
            Ok(plan) => (plan, no_secrets),
            // What cannot be made with these values, and could be with others, is for the values to answer for.
            Err(error) => {
                let others = secrets::stand_ins(&tool.package);
                let other = plan::Asked { variables: &others, ..asked.clone() };
                let Ok(plan) = plan::sketch(&other) else { return Err(error) };
                (plan, Some(error))
            }
        };
        let mut missing =
            if no_secrets.is_none() { all_missing(&asked, &missing) } else { Vec::new() };
        secrets::describe(&mut missing, &tool.package, &known.grants);
        Ok(Sketch { plan, missing, no_secrets })
    }
}

/// A call that is looked at before it is made, and what is known of it.
#[derive(Clone, Copy)]
pub(super) struct Case<'c> {
    pub(super) tool: &'c Tool,
    pub(super) call: &'c Call,
    pub(super) prepared: &'c Prepared<'c>,
    pub(super) known: &'c Known,
}

/// A call that was only planned, as far as its values are at hand.
struct Sketch {
    plan: Plan,
    /// What it needs and nobody keeps, as it is told.
    missing: Vec<Value>,
    /// Why it cannot be told what of its secrets is there.
    no_secrets: Option<CallError>,
}

/// What a call needs and is not given, as it is told: what was missed, and what the plan is not made without.
fn all_missing(asked: &plan::Asked<'_>, missing: &[Missing<'_>]) -> Vec<Value> {
    let mut missing = Missing::to_values(missing);
    let is_there = |(name, one): &&(String, Variable)| !secrets::is_stand_in(name, one);
    let variables: Vec<_> = asked.variables.iter().filter(is_there).cloned().collect();
    if variables.len() < asked.variables.len()
        && let Err(error) = plan::make(&plan::Asked { variables: &variables, ..asked.clone() })
    {
        for one in error.details["missing"].as_array().into_iter().flatten() {
            if missing.iter().all(|known| known["name"] != one["name"]) {
                missing.push(one.clone());
            }
        }
    }
    missing
}

/// Why an engine would not run the image of a plan, where one is asked to. It starts nothing of the image.
async fn no_image(plan: &Plan) -> Option<String> {
    let Way::Engine(engine) = &plan.way else { return None };
    let (engine, until) = (engine.clone(), Instant::now() + ENGINE_PATIENCE);
    let asked = tokio::task::spawn_blocking(move || {
        check_image(&engine, until, &Leash::default()).err().map(|error| error.message)
    });
    asked.await.unwrap_or_default()
}
