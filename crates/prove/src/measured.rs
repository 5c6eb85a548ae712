//! What was measured here: how every version stands, how its tests went, what of it got worse.

use std::collections::{BTreeMap, HashMap};

use ledger::state::metrics::Standing;
use ledger::state::regressions::Regression;
use ledger::state::tested::Tested;
use ledger::{State, StateError, Time};
use manifest::dialect::Dialect;
use policy::policy::Weights;

use crate::rank::{self, Facts};

/// What was measured of one version.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// How its calls went.
    pub standing: Option<Standing>,
    /// How its tests did.
    pub tested: Option<Tested>,
    /// What got worse and is not over.
    pub worse: Vec<Regression>,
}

impl Measured {
    /// What of it counts for a rank. The rest is known elsewhere.
    pub fn facts(&self, now: Time) -> Facts {
        let (latency_ms, resilience) =
            self.standing.as_ref().map(rank::measured).unwrap_or_default();
        let correctness = self.tested.as_ref().and_then(|one| rank::correctness(one, now));
        Facts { correctness, latency_ms, resilience, ..Facts::default() }
    }

    /// How good it is by that, as a part of the best that can be measured; none where nothing was.
    pub fn score(&self, weights: &Weights, now: Time) -> Option<f64> {
        let facts = self.facts(now);
        let best = weights.correctness + weights.latency + weights.resilience;
        let is_known = facts != Facts::default() && best > 0.0;
        is_known.then(|| rank::score(&facts, weights).total / best)
    }
}

/// What was measured of all.
#[derive(Debug, Default)]
pub struct All {
    /// By the id with its dialect, then by version.
    packages: BTreeMap<String, HashMap<String, Measured>>,
    /// By the id without: which packages are called so.
    bare: HashMap<String, Vec<String>>,
}

impl All {
    /// What the ledger knows.
    pub async fn read(state: &State, now: Time) -> Result<Self, StateError> {
        let mut all = Self::default();
        for one in state.standings(now).await? {
            let (package, version) = (one.package.clone(), one.version.clone());
            all.at(package, version).standing = Some(one);
        }
        for one in state.tested(None).await? {
            let (package, version) = (one.package.clone(), one.version.clone());
            all.at(package, version).tested = Some(one);
        }
        for one in state.regressions(None).await? {
            if one.over.is_none() {
                let (package, version) = (one.series.package.clone(), one.series.version.clone());
                all.at(package, version).worse.push(one);
            }
        }
        for id in all.packages.keys() {
            all.bare.entry(bare(id).to_owned()).or_default().push(id.clone());
        }
        Ok(all)
    }

    fn at(&mut self, package: String, version: String) -> &mut Measured {
        self.packages.entry(package).or_default().entry(version).or_default()
    }

    /// What was measured of a version of a package.
    pub fn version(&self, package: &str, version: &str) -> Option<&Measured> {
        self.packages.get(package)?.get(version)
    }

    /// The same of the package that a registry calls so, where one alone is.
    pub fn called(&self, name: &str, version: &str) -> Option<&Measured> {
        match self.bare.get(bare(name))?.as_slice() {
            [only] => self.version(only, version),
            _ => None,
        }
    }
}

/// An id without its dialect, and without what registries put before ids.
pub fn bare(id: &str) -> &str {
    let id = match id.split_once(':') {
        Some((dialect, bare)) if Dialect::named(dialect).is_some() => bare,
        _ => id,
    };
    id.strip_prefix("tool:").unwrap_or(id)
}
