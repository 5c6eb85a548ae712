//! What was measured here: how every version stands, how its tests went, what of it got worse.

use std::collections::{BTreeMap, HashMap};

use host::Records;
use host::records::{now, whole};
use ledger::StateError;
use ledger::state::metrics::Standing;
use ledger::state::regressions::Regression;
use ledger::state::tested::Tested;
use manifest::dialect::Dialect;
use policy::policy::Weights;
use prove::rank::{self, Facts};
use tokio::runtime::Runtime;

use crate::exit::Failure;
use crate::home::Home;
use crate::owner;
use crate::printer::{Printer, line};

/// What was measured of one version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) standing: Option<Standing>,
    pub(crate) tested: Option<Tested>,
    /// What got worse and is not over.
    pub(crate) worse: Vec<Regression>,
}

impl Measured {
    /// What of it counts for a rank. The rest is known elsewhere.
    pub(crate) fn facts(&self) -> Facts {
        let (latency_ms, resilience) =
            self.standing.as_ref().map(rank::measured).unwrap_or_default();
        let correctness = self.tested.as_ref().and_then(|one| rank::correctness(one, now()));
        Facts { correctness, latency_ms, resilience, ..Facts::default() }
    }
}

/// What was measured of all.
#[derive(Debug, Default)]
pub(crate) struct All {
    /// By the id with its dialect, then by version.
    packages: BTreeMap<String, HashMap<String, Measured>>,
    /// By the id without: which packages are called so.
    bare: HashMap<String, Vec<String>>,
}

impl All {
    /// What the ledger of a home knows. Where there is none, none is made.
    pub(crate) fn of(home: &Home, runtime: &Runtime) -> Result<Self, Failure> {
        let Some(records) = owner::records_there(home, runtime)? else {
            return Ok(Self::default());
        };
        let read = runtime.block_on(Self::read(&records));
        read.map_err(|error| owner::of_state(&error))
    }

    async fn read(records: &Records) -> Result<Self, StateError> {
        let mut all = Self::default();
        for one in records.state.standings(now()).await? {
            let (package, version) = (one.package.clone(), one.version.clone());
            all.at(package, version).standing = Some(one);
        }
        for one in records.state.tested(None).await? {
            let (package, version) = (one.package.clone(), one.version.clone());
            all.at(package, version).tested = Some(one);
        }
        for one in records.state.regressions(None).await? {
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
    pub(crate) fn version(&self, package: &str, version: &str) -> Option<&Measured> {
        self.packages.get(package)?.get(version)
    }

    /// The same of the package that a registry calls so, where one alone is.
    pub(crate) fn called(&self, name: &str, version: &str) -> Option<&Measured> {
        match self.bare.get(bare(name))?.as_slice() {
            [only] => self.version(only, version),
            _ => None,
        }
    }

    /// How good a tool of a registry is by what was measured here, as a part of the best that can be measured; none where
    /// nothing was.
    pub(crate) fn score(&self, name: &str, version: &str, weights: &Weights) -> Option<f64> {
        let facts = self.called(name, version)?.facts();
        let best = weights.correctness + weights.latency + weights.resilience;
        let is_known = facts != Facts::default() && best > 0.0;
        is_known.then(|| rank::score(&facts, weights).total / best)
    }
}

/// An id without its dialect, and without what registries put before ids.
pub(crate) fn bare(id: &str) -> &str {
    let id = match id.split_once(':') {
        Some((dialect, bare)) if Dialect::named(dialect).is_some() => bare,
        _ => id,
    };
    id.strip_prefix("tool:").unwrap_or(id)
}

/// Looks whether packages got worse of which enough further calls were counted, and tells what is new. What keeps it from
/// being looked at is told and no more: the call itself was made.
pub(crate) fn watch(records: &Records, runtime: &Runtime, printer: Printer) {
    for package in records.take_due() {
        let at = now();
        let seen = prove::watch::watch(&records.state, &records.audit, &package, at);
        match runtime.block_on(seen) {
            Ok(seen) => {
                for one in seen.regressions.iter().filter(|one| one.seen == at) {
                    let (package, words) = (line(&package), prove::watch::words(one));
                    printer.warn(&format!("`{package}` is {}", line(&words)));
                }
                if let Some(error) = seen.unwritten {
                    printer
                        .alarm(&format!("it could not be written down: {}", line(&whole(&error))));
                }
            }
            Err(error) => {
                printer.warn(&format!(
                    "nobody could look whether it got worse: {}",
                    line(&whole(&error))
                ));
            }
        }
    }
}
