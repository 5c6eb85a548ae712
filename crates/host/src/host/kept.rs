//! Plans that are kept for a moment: a server that is called again and again is planned the same way each time, and what a plan is
//! made of on the disk takes many looks.
//!
//! A plan is taken again only where everything that it was made of is equal: the decision with all its reasons, every value
//! that the tool is given, the settings, the package by its digest, the folder of the caller. What it says of files is looked at anew
//! after [`FRESH`]; a server that runs was started by such a look, and goes on as it was.
//!
//! Of a call whose arguments nobody has a word about, and whose tool is given no value, the decision follows from what is known of
//! the owner's word alone, so it is taken again with the plan ([`Plans::again`]).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use manifest::model::Trust;
use policy::{Consent, Decision, Verdict};

use super::{Host, Known, Prepared, Settings};
use crate::call::{Call, Tool};
use crate::plan::{Plan, Way};
use crate::template::Variable;

/// How long a plan is taken for what would be planned now.
const FRESH: Duration = Duration::from_secs(1);

/// How many plans are kept.
const MOST: usize = 256;

/// What a plan is made of, beside the arguments.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) digest: String,
    pub(super) implementation: String,
    pub(super) decision: Arc<Decision>,
    pub(super) variables: Vec<(String, Variable)>,
    pub(super) settings: Arc<Settings>,
    pub(super) folder: PathBuf,
}

impl Made {
    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.settings, &other.settings)
            && self.digest == other.digest
            && self.implementation == other.implementation
            && self.folder == other.folder
            && self.variables == other.variables
            && self.decision == other.decision
    }
}

/// What a decision is made of, where it is the same for all arguments.
#[derive(Clone)]
pub(super) struct Decided {
    known: Arc<Known>,
    /// Where the call comes from, as rules name it.
    surface: String,
    consent: Consent,
    trust: Trust,
    hosts: Vec<String>,
}

impl Decided {
    /// What this decision was made of; nothing where the arguments, or a value that others keep, may make it another.
    pub(super) fn of(
        tool: &Tool,
        call: &Call,
        known: &Arc<Known>,
        decision: &Decision,
    ) -> Option<Self> {
        let Known { memory, is_signed_in, .. } = &**known;
        let is_for_all = decision.verdict == Verdict::Allowed
            && memory.answer.is_none()
            && memory.remembered.is_empty()
            && call.within.is_none();
        let is_given_nothing =
            tool.package.inputs.is_empty() && tool.given.values.is_empty() && !is_signed_in;
        let is_installed = matches!(tool.consent, Consent::ByCard { .. });
        (is_for_all && is_given_nothing && is_installed).then(|| Self {
            known: Arc::clone(known),
            surface: call.surface.name().to_owned(),
            consent: tool.consent,
            trust: tool.trust(),
            hosts: tool.given.hosts.clone(),
        })
    }

    fn is_of(&self, tool: &Tool, call: &Call, known: &Arc<Known>) -> bool {
        Arc::ptr_eq(&self.known, known)
            && call.within.is_none()
            && tool.package.enabled
            && self.surface == call.surface.name()
            && self.consent == tool.consent
            && self.trust == tool.trust()
            && self.hosts == tool.given.hosts
    }
}

struct Kept {
    at: Instant,
    of: Made,
    /// Nothing where each call is decided by itself.
    decided: Option<Decided>,
    plan: Arc<Plan>,
}

impl Kept {
    fn is_fresh(&self) -> bool {
        self.at.elapsed() < FRESH
    }
}

/// Plans, by package and action.
#[derive(Default)]
pub(super) struct Plans(Mutex<HashMap<(String, String), Kept>>);

/// Without what is in them.
impl std::fmt::Debug for Plans {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Plans").field("count", &self.lock().len()).finish()
    }
}

impl Plans {
    /// The plan that was made of the same a moment ago. It is remembered what led to it this time.
    pub(super) fn find(
        &self,
        key: &(String, String),
        of: &Made,
        decided: Option<&Decided>,
    ) -> Option<Arc<Plan>> {
        let mut plans = self.lock();
        let kept = plans.get_mut(key).filter(|kept| kept.is_fresh() && kept.of.is_same(of))?;
        kept.decided = decided.cloned();
        Some(Arc::clone(&kept.plan))
    }

    /// The plan of the same call with other arguments, which was made a moment ago and would be decided alike.
    pub(super) fn again(
        &self,
        host: &Host,
        (tool, call): (&Tool, &Call),
        prepared: &Prepared<'_>,
        known: &Arc<Known>,
    ) -> Option<Arc<Plan>> {
        let key = (tool.package.canonical_id(), prepared.action.name.clone());
        let plans = self.lock();
        let kept = plans.get(&key).filter(|kept| kept.is_fresh())?;
        let is_same = kept.decided.as_ref().is_some_and(|one| one.is_of(tool, call, known))
            && Arc::ptr_eq(&kept.of.settings, &host.settings)
            && Some(&kept.of.digest) == tool.digest.as_ref()
            && kept.of.implementation == prepared.implementation.id
            && kept.of.folder == call.folder;
        is_same.then(|| Arc::clone(&kept.plan))
    }

    /// Keeps a plan of a server's tool; others are made for one call.
    pub(super) fn keep(
        &self,
        key: (String, String),
        of: Made,
        decided: Option<Decided>,
        plan: &Arc<Plan>,
    ) {
        let Way::Mcp(one) = &plan.way else { return };
        if one.is_remote() {
            return;
        }
        let mut plans = self.lock();
        // They hold values that are secret, so none is kept for longer than it is of use.
        plans.retain(|_, kept| kept.is_fresh());
        if plans.len() < MOST {
            plans.insert(key, Kept { at: Instant::now(), of, decided, plan: Arc::clone(plan) });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
