//! What was measured, as text and as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ledger::Time;
use ledger::state::latency::Quantile;
use ledger::state::metrics::{Metrics, Series, Span, is_of_tool};
use ledger::state::regressions::Regression;
use ledger::state::tested::Tested;
use prove::columns::Columns;
use serde_json::{Map, Value, json};

use super::columns::sparkline;
use super::{Known, joined};
use crate::commands::installed::table;
use crate::printer::line;

/// How many of what got worse is told.
const MOST_WORSE: usize = 10;

/// All packages, a line for each version.
pub(super) fn all(metrics: &[Metrics], regressions: &[Regression]) -> String {
    let worse = open(regressions);
    let rows = versions(metrics).into_iter().map(|((package, version), total)| {
        let flag = if worse.contains(&(package, version)) { "worse" } else { "" };
        [
            line(package),
            line(version),
            total.calls.to_string(),
            success(&total),
            quantile(&total, 50),
            quantile(&total, 95),
            quantile(&total, 99),
            total.last_used.to_string(),
            flag.to_owned(),
        ]
    });
    table(["PACKAGE", "VERSION", "CALLS", "SUCCESS", "P50", "P95", "P99", "LAST USED", ""], rows)
}

/// The same for programs.
pub(super) fn all_in_json(metrics: &[Metrics], regressions: &[Regression]) -> Value {
    let worse = open(regressions);
    let package = |((package, version), total): ((&str, &str), Metrics)| {
        let mut told = measured(&total);
        told.insert("package".into(), package.into());
        told.insert("version".into(), version.into());
        told.insert("worse".into(), worse.contains(&(package, version)).into());
        Value::Object(told)
    };
    let packages: Vec<_> = versions(metrics).into_iter().map(package).collect();
    json!({ "packages": packages })
}

/// One package.
pub(super) fn one(known: &Known, now: Time) -> String {
    let total = known.total();
    let mut text = format!("{}\n", line(&known.package));
    let mut row = |name: &str, value: &str| text += &format!("  {name:<11} {}\n", line(value));
    row("calls", &format!("{}, {} of them failed", total.calls, total.failed));
    row("success", &success(&total));
    if let Some(mean) = total.mean {
        let quantiles = [50, 95, 99].map(|percent| quantile(&total, percent));
        let [p50, p95, p99] = quantiles;
        row("latency", &format!("p50 {p50}, p95 {p95}, p99 {p99}, mean {}", time(mean)));
    }
    let kinds = |is_told: fn(&str) -> bool| {
        let told = total.failures.iter().filter(|(kind, _)| is_told(kind));
        told.map(|(kind, count)| format!("{kind} {count}")).collect::<Vec<_>>().join(", ")
    };
    for (name, told) in
        [("failures", kinds(is_of_tool)), ("not its own", kinds(|kind| !is_of_tool(kind)))]
    {
        if !told.is_empty() {
            row(name, &told);
        }
    }
    let lately = Columns::lately(&known.spans, now);
    if lately.columns.iter().any(|one| one.calls > 0) {
        let name = if lately.unit() == "hour" { "last day" } else { "last month" };
        drawn(&lately, &mut |said, value| row(if said == "calls" { name } else { "" }, value));
    }
    for tested in &known.tested {
        row("tests", &tests(tested));
    }
    text.push('\n');
    text += &table(
        [
            "VERSION",
            "ACTION",
            "IMPLEMENTATION",
            "CALLS",
            "SUCCESS",
            "P50",
            "P95",
            "P99",
            "LAST USED",
        ],
        // Where only others failed, there is nothing to tell of the tool.
        known.metrics.iter().filter(|one| one.calls > 0).map(|one| {
            let Series { version, action, implementation, .. } = &one.series;
            [
                line(version),
                line(action),
                line(implementation),
                one.calls.to_string(),
                success(one),
                quantile(one, 50),
                quantile(one, 95),
                quantile(one, 99),
                one.last_used.to_string(),
            ]
        }),
    );
    for found in known.regressions.iter().take(MOST_WORSE) {
        text += &format!("{}\n", line(&worse(found)));
    }
    text
}

/// The same for programs.
pub(super) fn in_json(known: &Known) -> Value {
    let mut document = measured(&known.total());
    document.insert("package".into(), known.package.clone().into());
    let series = |one: &Metrics| {
        let mut told = measured(one);
        told.insert("version".into(), one.series.version.clone().into());
        told.insert("action".into(), one.series.action.clone().into());
        told.insert("implementation".into(), one.series.implementation.clone().into());
        Value::Object(told)
    };
    let span = |one: &Span| {
        json!({
            "begins": one.begins.to_string(),
            "lasts_seconds": one.lasts.as_secs(),
            "calls": one.calls,
            "failed": one.failed,
            "p50_ms": one.latencies.percentile(50).map(milliseconds),
            "p95_ms": one.latencies.percentile(95).map(milliseconds),
        })
    };
    document.insert("series".into(), known.metrics.iter().map(series).collect());
    document.insert("spans".into(), known.spans.iter().map(span).collect());
    document.insert("tests".into(), known.tested.iter().map(tests_in_json).collect());
    let regressions = known.regressions.iter().map(regression_in_json).collect();
    document.insert("regressions".into(), regressions);
    Value::Object(document)
}

/// What was measured, for programs.
pub(super) fn measured(metrics: &Metrics) -> Map<String, Value> {
    let quantile = |percent| metrics.latencies.percentile(percent).map(milliseconds);
    let Value::Object(told) = json!({
        "calls": metrics.calls,
        "failed": metrics.failed,
        "success": metrics.success(),
        "mean_ms": metrics.mean.map(milliseconds),
        "p50_ms": quantile(50),
        "p95_ms": quantile(95),
        "p99_ms": quantile(99),
        "failures": metrics.failures,
        "first_used": metrics.first_used.to_string(),
        "last_used": metrics.last_used.to_string(),
    }) else {
        return Map::new();
    };
    told
}

/// What got worse, for programs.
pub(super) fn regression_in_json(found: &Regression) -> Value {
    json!({
        "version": found.series.version,
        "action": found.series.action,
        "implementation": found.series.implementation,
        "what": found.what.name(),
        "against": found.against,
        "calls": found.calls,
        "before": found.before,
        "after": found.after,
        "chance": found.chance,
        "seen": found.seen.to_string(),
        "over": found.over.map(|over| over.to_string()),
        "words": prove::watch::words(found),
    })
}

/// How tests went, for programs.
pub(super) fn tests_in_json(tested: &Tested) -> Value {
    json!({
        "version": tested.version,
        "total": tested.total,
        "passed": tested.passed,
        "flaky": tested.flaky,
        "at": tested.at.to_string(),
    })
}

/// Milliseconds, to the microsecond.
pub(super) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// A latency as people read it.
pub(crate) fn time(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    match millis {
        _ if millis < 10.0 => format!("{millis:.1} ms"),
        _ if millis < 10_000.0 => format!("{millis:.0} ms"),
        _ => format!("{:.1} s", millis / 1e3),
    }
}

fn drawn(columns: &Columns, row: &mut dyn FnMut(&str, &str)) {
    #[expect(clippy::cast_precision_loss, reason = "it is drawn in eight steps")]
    let calls: Vec<_> = columns.columns.iter().map(|one| one.calls as f64).collect();
    let most = columns.columns.iter().map(|one| one.calls).max().unwrap_or_default();
    let unit = columns.unit();
    row("calls", &format!("|{}| calls by {unit}, at most {most}", sparkline(&calls)));
    let p95 = |one: &Span| one.latencies.percentile(95);
    let slow: Vec<_> =
        columns.columns.iter().map(|one| p95(one).map_or(0.0, |time| time.as_secs_f64())).collect();
    if let Some(slowest) = columns.columns.iter().filter_map(p95).max() {
        let line = sparkline(&slow);
        row("p95", &format!("|{line}| p95 by {unit}, at most {}", time(slowest)));
    }
}

fn tests(tested: &Tested) -> String {
    let Tested { total, passed, flaky, version, at, .. } = tested;
    let flaky = match flaky {
        0 => String::new(),
        flaky => format!(", {flaky} flaky"),
    };
    format!("{passed} of {total} passed{flaky} with {version}, {at}")
}

fn worse(found: &Regression) -> String {
    let Series { version, action, implementation, .. } = &found.series;
    let over = match found.over {
        Some(over) => format!("over since {over}"),
        None => "it still is".to_owned(),
    };
    let of: Vec<_> = [version, action, implementation]
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(String::as_str)
        .collect();
    let words = prove::watch::words(found);
    format!("worse since {}: {} is {words} ({over})", found.seen, of.join(" "))
}

fn success(metrics: &Metrics) -> String {
    metrics.success().map_or_else(|| "-".to_owned(), |part| format!("{:.1} %", part * 100.0))
}

fn quantile(metrics: &Metrics, percent: u8) -> String {
    match metrics.latencies.quantile(percent) {
        Some(Quantile::AtMost(most)) => format!("≤ {}", time(most)),
        Some(Quantile::MoreThan(least)) => format!("> {}", time(least)),
        None => "-".to_owned(),
    }
}

/// The series of each version together.
fn versions(metrics: &[Metrics]) -> BTreeMap<(&str, &str), Metrics> {
    let mut of: BTreeMap<(&str, &str), Vec<&Metrics>> = BTreeMap::new();
    for one in metrics {
        of.entry((&one.series.package, &one.series.version)).or_default().push(one);
    }
    of.into_iter().map(|(version, all)| (version, joined(all.into_iter()))).collect()
}

/// The versions of which something got worse and is not over.
fn open(regressions: &[Regression]) -> BTreeSet<(&str, &str)> {
    regressions
        .iter()
        .filter(|one| one.over.is_none())
        .map(|one| (one.series.package.as_str(), one.series.version.as_str()))
        .collect()
}
