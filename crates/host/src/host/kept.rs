//! Plans that are kept for a moment: a server that is called again and again is planned the same way each time, and what a plan is
//! made of on the disk takes many looks.
//!
//! A plan is taken again only where everything that it was made of is equal: the decision with all its reasons, every value
//! that the tool is given, the settings, the package by its digest, the folder of the caller. What it says of files is looked at anew
//! after [`FRESH`]; a server that runs was started by such a look, and goes on as it was.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use policy::Decision;
use serde_json::{Map, Value};

use super::Settings;
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

struct Kept {
    at: Instant,
    of: Made,
    plan: Plan,
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
    /// The plan that was made of the same a moment ago, for these arguments.
    pub(super) fn find(
        &self,
        key: &(String, String),
        of: &Made,
        arguments: &Map<String, Value>,
    ) -> Option<Plan> {
        let plans = self.lock();
        let kept =
            plans.get(key).filter(|kept| kept.at.elapsed() < FRESH && kept.of.is_same(of))?;
        let mut plan = kept.plan.clone();
        drop(plans);
        let Way::Mcp(one) = &mut plan.way else { return None };
        one.arguments.clone_from(arguments);
        Some(plan)
    }

    /// Keeps a plan of a server's tool; others are made for one call.
    pub(super) fn keep(&self, key: (String, String), of: Made, plan: &Plan) {
        let Way::Mcp(one) = &plan.way else { return };
        if one.is_remote() {
            return;
        }
        let mut plan = plan.clone();
        if let Way::Mcp(one) = &mut plan.way {
            one.arguments.clear();
        }
        let mut plans = self.lock();
        // They hold values that are secret, so none is kept for longer than it is of use.
        plans.retain(|_, kept| kept.at.elapsed() < FRESH);
        if plans.len() < MOST {
            plans.insert(key, Kept { at: Instant::now(), of, plan });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
