//! `metadata.json`: what was measured of an installed version, beside its files.
//!
//! It lies where other programs look for it, `tools/<key>/metadata.json` in the home. It is no file of the package: what was
//! agreed to is the list in its record, and a package that has such a file itself keeps it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use host::records::now;
use install::Pinned;
use ledger::state::metrics::{Metrics, is_of_tool};
use prove::measured::bare;
use serde_json::{Map, Value, json};

use super::told::{milliseconds, regression_in_json};
use super::{Known, joined};
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::printer::line;
use crate::{installed, output};

/// What the file is called.
const NAME: &str = "metadata.json";

/// Writes what was measured of the version that is installed; where to.
pub(super) fn write(known: &Known, home: &Home) -> Result<PathBuf, Failure> {
    let at = installed::home(home);
    let named = installed::named(&known.package, &at)?;
    let pinned = named.pinned.as_ref().ok_or_else(|| {
        let message = format!("`{}` is only declared, and has no files", line(&named.id));
        Failure::new(Exit::NotFound, message)
    })?;
    // Nobody takes the version away meanwhile.
    let _changing = at.lock()?;
    let record = at.record_of(pinned)?;
    let key = pinned.key().map_err(|error| Failure::invalid(error.to_string()))?;
    let path = at.folder(&key, &pinned.folder()).join(NAME);
    let is_its_own = record.files.iter().any(|file| file.path.eq_ignore_ascii_case(NAME));
    if is_its_own || path.is_dir() {
        let id = line(&named.id);
        let message = format!("`{id}` has a `{NAME}` of its own, which is not written over");
        return Err(Failure::new(Exit::Conflict, message)
            .hint(format!("`haft metrics {id} --json` prints what would be in it")));
    }
    let mut bytes = serde_json::to_vec_pretty(&document(known, pinned)).unwrap_or_default();
    bytes.push(b'\n');
    output::replace(&path, &bytes)?;
    Ok(path)
}

fn document(known: &Known, pinned: &Pinned) -> Value {
    let of_version: Vec<_> =
        known.metrics.iter().filter(|one| one.series.version == pinned.version).collect();
    let mut document = Map::new();
    document.insert("toolId".into(), bare(&pinned.id).into());
    document.insert("version".into(), pinned.version.clone().into());
    document.insert("updatedAt".into(), now().to_string().into());
    document.insert("writtenBy".into(), concat!("haft ", env!("CARGO_PKG_VERSION")).into());
    document.extend(measured(&joined(of_version.iter().copied())));
    let ids: BTreeSet<_> = of_version
        .iter()
        .map(|one| one.series.implementation.as_str())
        .filter(|id| !id.is_empty())
        .collect();
    let implementations: BTreeMap<_, _> = ids
        .into_iter()
        .map(|id| {
            let own = of_version.iter().copied().filter(|one| one.series.implementation == id);
            (id, measured(&joined(own)))
        })
        .collect();
    document.insert("implementations".into(), json!(implementations));
    if let Some(tested) = known.tested.iter().find(|one| one.version == pinned.version) {
        let failed = tested.total.saturating_sub(tested.passed);
        let told = json!({
            "total": tested.total, "passed": tested.passed, "failed": failed,
            "flaky": tested.flaky, "ranAt": tested.at.to_string(),
        });
        document.insert("tests".into(), told);
    }
    let is_open = |one: &&ledger::state::regressions::Regression| {
        one.over.is_none() && one.series.version == pinned.version
    };
    let regressions: Vec<_> =
        known.regressions.iter().filter(is_open).map(regression_in_json).collect();
    document.insert("regressions".into(), regressions.into());
    Value::Object(document)
}

fn measured(metrics: &Metrics) -> Map<String, Value> {
    let quantile = |percent| metrics.latencies.percentile(percent).map(milliseconds);
    let failures: BTreeMap<_, _> =
        metrics.failures.iter().filter(|(kind, _)| is_of_tool(kind)).collect();
    let told = json!({
        "calls": metrics.calls,
        "successRate": metrics.success(),
        "latencyMs": {
            "mean": metrics.mean.map(milliseconds),
            "p50": quantile(50),
            "p95": quantile(95),
            "p99": quantile(99),
        },
        "failures": failures,
    });
    match told {
        Value::Object(told) => told,
        _ => Map::new(),
    }
}
