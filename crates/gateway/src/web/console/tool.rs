//! One tool: its state, what it may do, how it does, and what can be done about it.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use host::records::now;
use ledger::Time;
use ledger::audit::Filter;
use ledger::state::metrics::Metrics;
use manifest::model::{Action, Package, SideEffects};
use manifest::words::{self, Author, Fact};
use serde_json::Value;

use super::Console;
use super::frame::{Frame, Part, done, missing, of_trouble, page, see, sentence};
use super::graph::{self, Graph};
use super::link;
use super::moment::{Moment, count, grouped, percent, quantile};
use super::plot::{self, Plots};
use super::timeline::{Entry, Timeline, Tone, Wanted};
use super::tools::{name, standing};
use super::visit::{Posted, Visit};
use crate::door::Note;
use crate::shelf::{Shelved, Stock};
use crate::steward::{Deed, Standing};

/// How many of its calls are shown.
const SHOWN: usize = 6;

/// An action.
#[derive(Debug)]
struct Shown {
    name: String,
    /// What agents call it.
    offered: Option<String>,
    about: String,
    effect: &'static str,
    tone: Tone,
    asks: bool,
    /// What it takes, as JSON Schema.
    input: Option<String>,
}

/// What was counted of one version and action.
#[derive(Debug)]
struct Series {
    version: String,
    action: String,
    calls: String,
    success: String,
    p50: String,
    p95: String,
    p99: String,
}

/// A term of a score.
#[derive(Debug)]
struct Term {
    name: String,
    value: String,
    weight: String,
    worth: String,
    because: String,
}

/// How good it is among those that can do the same.
#[derive(Debug)]
struct Rank {
    score: String,
    capability: String,
    place: String,
    terms: Vec<Term>,
    unmet: Vec<String>,
}

/// What is known of how it came here.
#[derive(Debug, Default)]
struct Known {
    why: Option<String>,
    by_hand: Option<String>,
    taken_back: Option<String>,
    changed: Vec<String>,
    facts: Vec<(&'static str, String)>,
    /// Whether there is a version before this one.
    has_before: bool,
}

#[derive(Template)]
#[template(path = "tool.html")]
struct ToolPage {
    frame: Frame,
    id: String,
    name: String,
    address: String,
    calls: String,
    version: String,
    standing: &'static str,
    tone: Tone,
    is_on: bool,
    is_revoked: bool,
    /// Whether that was confirmed.
    is_over: bool,
    trust: &'static str,
    trouble: Option<String>,
    about: String,
    facts: Vec<Fact>,
    scopes: Vec<(String, String, String)>,
    grants: Vec<(String, String)>,
    attempts: Vec<(String, String)>,
    actions: Vec<Shown>,
    known: Known,
    plots: Option<Plots>,
    series: Vec<Series>,
    worse: Vec<(bool, String)>,
    tests: Vec<String>,
    rank: Option<Result<Rank, String>>,
    graph: Option<Graph>,
    entries: Vec<Entry>,
}

pub(super) async fn show(
    State(console): State<Arc<Console>>,
    Path(id): Path<String>,
    visit: Visit,
) -> Response {
    let (stock, now) = (console.gateway.stock().await, now());
    let Some(package) = stock.package(&id).cloned() else {
        return missing("No such tool is installed.");
    };
    let id = package.id.clone();
    let model = package.tool.as_ref().ok().map(|tool| &tool.package);
    let status = console.deed(Deed::Status { id: id.clone() });
    let (status, rank) = tokio::join!(status, rank(&console, &id, model));
    let state = &stock.host.records().state;
    let metrics = state.metrics(Some(&id)).await.unwrap_or_default();
    let spans = state.over_time(&id, None).await.unwrap_or_default();
    let tested = state.tested(Some(&id)).await.unwrap_or_default();
    let worse = state.regressions(Some(&id)).await.unwrap_or_default();
    let grants = state.grants(Some(&id)).await.unwrap_or_default();
    let attempts = state.blocked(&id).await.unwrap_or_default();
    let log = console.log().await;
    let wanted = Wanted {
        filter: Filter { package: Some(id.clone()), ..Filter::default() },
        ..Wanted::default()
    };
    let timeline = Timeline::read(&log, &wanted, None, SHOWN).await.unwrap_or_default();
    let (standing, tone) = standing(&package);
    page(&ToolPage {
        frame: Frame::new(&console, &visit, Part::Tools, name(&package)).await,
        name: name(&package),
        address: link::tool(&id),
        calls: link::calls(&id),
        version: package.version.clone().unwrap_or_default(),
        standing,
        tone,
        is_on: package.standing == Standing::Enabled,
        is_revoked: matches!(package.standing, Standing::Revoked | Standing::Unconfirmed),
        is_over: package.standing == Standing::Revoked,
        trust: package.trust.name(),
        trouble: package.tool.as_ref().err().cloned(),
        about: model.and_then(Package::blurb).unwrap_or_default().to_owned(),
        facts: model.map(facts).unwrap_or_default(),
        scopes: model.map(scopes).unwrap_or_default(),
        grants: grants.iter().map(|one| (one.kind.name().to_owned(), one.value.clone())).collect(),
        attempts: attempts.iter().map(|one| attempt(one, &id)).collect(),
        actions: actions(&package, &stock),
        known: status.map(|told| known(&told, now)).unwrap_or_default(),
        plots: plot::draw(&spans, now),
        series: metrics.iter().filter(|one| one.calls > 0).map(series).collect(),
        worse: worse
            .iter()
            .take(5)
            .map(|one| {
                (
                    one.over.is_none(),
                    format!(
                        "{} {} is {}",
                        one.series.version,
                        one.series.action,
                        prove::watch::words(one)
                    ),
                )
            })
            .collect(),
        tests: tested
            .iter()
            .map(|one| {
                format!(
                    "{}: {} of {} passed, {}",
                    one.version,
                    one.passed,
                    one.total,
                    Moment::new(one.at, now).short
                )
            })
            .collect(),
        rank,
        graph: model.and_then(|model| graph::draw(model, &stock)),
        entries: timeline
            .lines
            .iter()
            .take(SHOWN)
            .map(|one| Entry::new(one, now).linked(&stock))
            .collect(),
        id,
    })
}

/// What a package may do. It reaches its own endpoints too, as its card has it.
pub(super) fn facts(package: &Package) -> Vec<Fact> {
    let mut hosts = host::endpoints(package);
    let named = package.permissions.hosts.iter().filter(|host| !hosts.contains(*host));
    let named: Vec<_> = named.cloned().collect();
    hosts.extend(named);
    let author = if package.permissions.declared { Author::Says } else { Author::IsSilent };
    let network = words::network(&hosts, author);
    let mut facts = words::facts(package);
    facts.iter_mut().filter(|fact| fact.about == network.about).for_each(|fact| {
        fact.clone_from(&network);
    });
    facts
}

/// What an action changes, in a word or two, and how bad that may be: as the card of a package has it.
pub(super) fn effect(action: &Action) -> (&'static str, Tone) {
    let tone = match action.side_effects {
        Some(SideEffects::None | SideEffects::Read) => Tone::Good,
        Some(SideEffects::Write) | None => Tone::Warn,
        Some(SideEffects::Destructive) => Tone::Stop,
    };
    (words::effect(action).0, tone)
}

fn scopes(package: &Package) -> Vec<(String, String, String)> {
    let scope = |scope: &manifest::model::Scope| {
        let verbs: Vec<String> = scope.verbs.clone();
        (scope.resource.clone(), verbs.join(", "), scope.rationale.clone())
    };
    package.scopes.iter().map(scope).collect()
}

/// What it reached for in vain, and what would grant it.
fn attempt(one: &ledger::state::grants::Attempt, id: &str) -> (String, String) {
    let command =
        format!("haft grant {} --{} {}", link::word(id), one.kind.name(), link::word(&one.value));
    (one.value.clone(), command)
}

fn actions(package: &Arc<Shelved>, stock: &Stock) -> Vec<Shown> {
    let Ok(tool) = &package.tool else { return Vec::new() };
    let shown = |action: &Action| {
        let (effect, tone) = effect(action);
        let offer = stock
            .offers
            .iter()
            .find(|one| one.package.id == package.id && one.action == action.name);
        let schema = action.input.as_ref().map(manifest::model::Json::value);
        Shown {
            name: action.name.clone(),
            offered: offer.map(|offer| offer.name.clone()),
            about: action
                .summary
                .clone()
                .or_else(|| action.description.clone())
                .unwrap_or_default(),
            effect,
            tone,
            asks: words::asks(action),
            input: schema.and_then(|schema| serde_json::to_string_pretty(&schema).ok()),
        }
    };
    tool.package.actions.iter().map(shown).collect()
}

fn known(told: &Value, now: Time) -> Known {
    let text = |name: &str| told[name].as_str().map(str::to_owned);
    let moment = |text: String| Moment::told(text, now).short;
    let source = told["source"].as_object().and_then(|source| source.iter().next());
    let source =
        source.map(|(kind, place)| format!("{kind} {}", place.as_str().unwrap_or_default()));
    let changed = told["changed"].as_array().into_iter().flatten();
    let facts = [
        ("Installed", text("installed").map(moment)),
        ("From", source),
        ("Digest of its files", text("package")),
        ("Digest of the card that you accepted", text("card")),
        ("Version before", text("before")),
        ("Folder", text("folder")),
    ];
    Known {
        why: text("why").or_else(|| told["revoked"]["why"].as_str().map(str::to_owned)),
        by_hand: told["revoked"]["by_hand"].as_str().map(str::to_owned),
        taken_back: text("taken_back"),
        changed: changed.filter_map(Value::as_str).map(str::to_owned).collect(),
        has_before: !told["before"].is_null(),
        facts: facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
    }
}

fn series(one: &Metrics) -> Series {
    let quantile = |percent| quantile(&one.latencies, percent);
    Series {
        version: one.series.version.clone(),
        action: one.series.action.clone(),
        calls: grouped(one.calls),
        success: one.success().map_or_else(|| "–".to_owned(), percent),
        p50: quantile(50),
        p95: quantile(95),
        p99: quantile(99),
    }
}

/// How good it is among the installed tools with the first of its tags, or why nobody can say; nothing where it has no tag.
async fn rank(
    console: &Console,
    id: &str,
    model: Option<&Package>,
) -> Option<Result<Rank, String>> {
    let model = model?;
    let scope = || model.scopes.first().map(|one| one.resource.clone());
    let capability = model.tags.first().cloned().or_else(scope)?;
    let told = console.deed(Deed::Rank { capability: capability.clone() }).await;
    let told = told.map_err(|trouble| sentence(&trouble.message));
    Some(told.and_then(|told| ranked(&told, id, capability)))
}

/// The place of a tool among those that were ranked.
fn ranked(told: &Value, id: &str, capability: String) -> Result<Rank, String> {
    let tools = told["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(at) = tools.iter().position(|one| one["id"] == id) else {
        return Err(format!(
            "It is not among the {} that were ranked.",
            count(tools.len(), "tool")
        ));
    };
    let own = &tools[at];
    let term = |one: &Value| {
        let number = |name: &str| one[name].as_f64();
        Term {
            name: one["dimension"].as_str().unwrap_or_default().to_owned(),
            value: number("value").map_or_else(|| "–".to_owned(), |value| format!("{value:.2}")),
            weight: format!("{:.2}", number("weight").unwrap_or_default()),
            worth: format!("{:.3}", number("worth").unwrap_or_default()),
            because: one["because"].as_str().unwrap_or("not known, so it counts 0").to_owned(),
        }
    };
    let unmet = own["unmet"].as_array().into_iter().flatten();
    Ok(Rank {
        score: format!("{:.3}", own["score"].as_f64().unwrap_or_default()),
        place: format!("{} of {}", at + 1, tools.len()),
        terms: own["terms"].as_array().into_iter().flatten().map(term).collect(),
        unmet: unmet.filter_map(Value::as_str).map(str::to_owned).collect(),
        capability,
    })
}

/// Switches it on or off, takes it away, or goes back to the version before.
pub(super) async fn change(
    State(console): State<Arc<Console>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Response {
    let here = link::tool(&id);
    let (deed, words, then) = match posted.fields.get("what") {
        Some("enable") => {
            (Deed::Enable { id: id.clone() }, "is enabled: agents can call it.", here.as_str())
        }
        Some("disable") => {
            (Deed::Disable { id: id.clone() }, "is disabled: nobody can call it.", here.as_str())
        }
        Some("rollback") => (
            Deed::Rollback { id: id.clone() },
            "is rolled back to the version before.",
            here.as_str(),
        ),
        Some("remove") => (Deed::Remove { id: id.clone() }, "is removed.", "/tools"),
        _ => return see(&here),
    };
    let (note, then): (Note, &str) = match console.deed(deed).await {
        Ok(_) => (done(format!("{id} {words}")), then),
        Err(trouble) => (of_trouble(&trouble), here.as_str()),
    };
    console.gateway.door.note(&posted.visit.session, note);
    see(then)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rank_has_every_term_and_one_that_cannot_be_told_is_not_left_out() {
        let told = json!({ "tools": [{ "id": "mcpkg:other" }, {
            "id": "mcpkg:own", "score": 0.5, "unmet": ["latency is not known"],
            "terms": [
                { "dimension": "latency", "weight": 0.25, "value": 0.8, "worth": 0.2, "because": "80 ms" },
                { "dimension": "cost", "weight": 0.15, "value": null, "worth": 0.0 },
            ],
        }] });
        let rank = ranked(&told, "mcpkg:own", "pdf".to_owned()).unwrap();
        assert_eq!((&*rank.score, &*rank.place, &*rank.capability), ("0.500", "2 of 2", "pdf"));
        let told_of: Vec<_> = rank.terms.iter().map(|one| (&*one.value, &*one.because)).collect();
        assert_eq!(told_of, [("0.80", "80 ms"), ("–", "not known, so it counts 0")]);
        assert_eq!(rank.unmet, ["latency is not known"]);
        for told in [told, json!({ "tools": [] }), Value::Null] {
            let why = ranked(&told, "mcpkg:third", "pdf".to_owned()).unwrap_err();
            assert!(why.starts_with("It is not among the "), "{why}");
        }
    }
}
