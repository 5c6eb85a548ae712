//! The tools that can do what is wanted: those that are installed, and those of the registries.

use std::collections::HashSet;

use host::Level;
use host::records::now;
use install::Installed;
use manifest::dialect::Dialect;
use manifest::model::{Entry, Json, Package, Trust};
use policy::Policy;
use prove::measured::{All, Measured, bare};
use prove::rank::{Facts, Walls, price, safety};
use rayon::prelude::*;
use registry::client::{FindError, FoundIn, Question, Source};
use tokio::runtime::Runtime;

use super::{Candidate, Place};
use crate::ask::Ask;
use crate::exit::Failure;
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::remote::{self, Known, Offline, Which};
use crate::{installed, owner, project, walls};

/// How many tools of the registries are looked at.
const MOST_FOUND: usize = 100;

/// What is at hand to look for tools elsewhere.
pub(super) struct Here<'h> {
    pub(super) measured: &'h All,
    pub(super) runtime: &'h Runtime,
    pub(super) home: &'h Home,
    pub(super) ask: Ask,
    pub(super) printer: Printer,
}

/// The installed packages that can do all of this.
pub(super) fn installed(
    wanted: &[String],
    measured: &All,
    home: &Home,
    printer: Printer,
) -> Result<Vec<Candidate>, Failure> {
    let policy = owner::policy(home)?;
    let level = level();
    let at = installed::home(home);
    let view = project::view(home, printer)?;
    let looked: Vec<_> = view
        .listed()
        .par_iter()
        .filter_map(|listed| {
            // What a catalog only declares has no capabilities to go by.
            let pinned = listed.pinned?;
            let package = match Installed::load(&at, pinned) {
                Ok(installed) => installed.package,
                Err(error) => return Some(Err((listed.id.clone(), error))),
            };
            can_do(&package, wanted).then(|| {
                let mut candidate = Candidate {
                    id: listed.id.clone(),
                    version: package.semver(),
                    place: Place::Installed,
                    enabled: listed.enabled && package.enabled,
                    facts: Facts::default(),
                    because: Vec::new(),
                    worse: Vec::new(),
                };
                put_measured(&mut candidate, measured.version(&listed.id, &package.semver()));
                put_price(&mut candidate, &package, &policy);
                // What a package claims itself can only lower it.
                let trust = match package.dialect {
                    Dialect::Capability => listed.trust.min(package.trust),
                    _ => listed.trust,
                };
                put_safety(&mut candidate, trust, walls_of(&package, level));
                Ok(candidate)
            })
        })
        .collect();
    let mut found = Vec::new();
    for one in looked {
        match one {
            Ok(candidate) => found.push(candidate),
            Err((id, error)) => {
                let (id, why) = (line(&id), line(&host::records::whole(&error)));
                printer.warn(&format!("`{id}` is passed over: {why}"));
            }
        }
    }
    Ok(found)
}

/// Adds the tools of the registries that can do all of this and are not installed. Who does not answer is told of.
pub(super) fn add_from_registries(
    found: &mut Vec<Candidate>,
    wanted: &[String],
    here: &Here<'_>,
    which: &Which,
    offline: &Offline,
) -> Result<(), Failure> {
    let known = Known::new(here.home, here.ask)?.with(offline);
    let Some(client) = known.client_if_any(which)? else { return Ok(()) };
    let Some((first, others)) = wanted.split_first() else { return Ok(()) };
    // A registry filters by any of several values, so one of them is its part; the others make what has them come first.
    let question = Question {
        words: others.join(" "),
        filters: vec![("capability".to_owned(), first.clone())],
        offset: 0,
        limit: MOST_FOUND,
    };
    let results = match here.runtime.block_on(client.search(&question)) {
        Ok(results) => results,
        Err(FindError::Failed(name, cause)) => {
            tell(&remote::failed(&name, &cause), here.printer);
            return Ok(());
        }
        Err(error) => return Err(Failure::of(crate::exit::Exit::Invalid, &error)),
    };
    for (name, error) in &results.failed {
        tell(&remote::failed(name, error), here.printer);
    }
    if results.total > MOST_FOUND as u64 {
        let words = format!(
            "the registries have {} tools for `{}`; the first {MOST_FOUND} are looked at",
            results.total,
            line(first)
        );
        here.printer.warn(&words);
    }
    let here_already: HashSet<String> = found.iter().map(|one| bare(&one.id).to_owned()).collect();
    let is_catalog = |name: &str| {
        client.sources().iter().any(|one| matches!(one, Source::Catalog(_)) && one.name() == name)
    };
    let level = level();
    for FoundIn { registry, found: tool } in results.results {
        let tags: HashSet<String> = tool.tags.iter().map(|tag| tag.to_lowercase()).collect();
        if here_already.contains(bare(&tool.id)) || !others.iter().all(|one| tags.contains(one)) {
            continue;
        }
        let mut candidate = Candidate {
            id: tool.name.clone(),
            version: tool.version.clone(),
            place: Place::Registry(registry.clone()),
            enabled: true,
            facts: Facts::default(),
            because: Vec::new(),
            worse: Vec::new(),
        };
        put_measured(&mut candidate, here.measured.called(&tool.name, &tool.version));
        if tool.uses_payment == Some(false) {
            candidate.facts.price = price(None, Some(false), 0);
            candidate.facts.cost = candidate.facts.price.map(prove::rank::Price::cheapness);
            candidate.because.push(("cost", "it says that it spends no money".to_owned()));
        }
        let trust = if is_catalog(&registry) { Trust::Untrusted } else { Trust::Community };
        // How it runs is not known before it is fetched: the weaker of both.
        put_safety(&mut candidate, trust, Walls::Here(level.min(Level::L2)));
        found.push(candidate);
    }
    Ok(())
}

fn tell(failure: &Failure, printer: Printer) {
    let causes: String = failure.causes.iter().map(|cause| format!(": {cause}")).collect();
    printer.warn(&format!("{}{}", line(&failure.message), line(&causes)));
}

/// What the walls of this machine are worth; nothing where none can be built.
fn level() -> Level {
    walls::launcher().map_or(Level::L0, |launcher| launcher.walls().level())
}

/// Whether a package has all of these as capabilities.
fn can_do(package: &Package, wanted: &[String]) -> bool {
    let scopes = package.scopes.iter().map(|scope| &scope.resource);
    let has: HashSet<String> =
        package.tags.iter().chain(scopes).map(|name| name.trim().to_lowercase()).collect();
    wanted.iter().all(|one| has.contains(one))
}

/// Where a package runs: elsewhere only if nothing of it can run here.
fn walls_of(package: &Package, level: Level) -> Walls {
    let is_away = |entry: &Entry| {
        matches!(
            entry,
            Entry::Http { .. } | Entry::McpHttp { .. } | Entry::McpTool { .. } | Entry::A2a { .. }
        )
    };
    let all = &package.implementations;
    if !all.is_empty() && all.iter().all(|one| is_away(&one.entry)) {
        Walls::Elsewhere
    } else {
        Walls::Here(level)
    }
}

fn put_measured(candidate: &mut Candidate, measured: Option<&Measured>) {
    let Some(measured) = measured else { return };
    candidate.facts = measured.facts(now());
    let because = &mut candidate.because;
    if let (Some(_), Some(tested)) = (candidate.facts.correctness, &measured.tested) {
        because
            .push(("correctness", format!("{} of {} tests passed", tested.passed, tested.total)));
    }
    if let Some(standing) = &measured.standing {
        let calls = super::super::count(standing.calls, "call");
        if let Some(ms) = candidate.facts.latency_ms {
            because.push((
                "latency",
                format!("{ms:.0} ms on the average, of those of {calls} that went well"),
            ));
        }
        if let Some(part) = candidate.facts.resilience {
            because.push(("resilience", format!("{:.1} % of {calls} went well", part * 100.0)));
        }
    }
    candidate.worse = measured.worse.iter().map(prove::watch::words).collect();
}

fn put_price(candidate: &mut Candidate, package: &Package, policy: &Policy) {
    let rules = policy.of_package(package);
    let call = rules.map_or(0, |rules| rules.cents_per_call);
    let cost = package.cost.as_ref().map(Json::value);
    let price = price(cost.as_ref(), package.uses_payment, call);
    candidate.facts.price = price;
    candidate.facts.cost = price.map(prove::rank::Price::cheapness);
    if let Some(price) = price {
        let words = format!(
            "{:.0} cents a month and {:.0} a call",
            price.cents_per_month, price.cents_per_call
        );
        candidate.because.push(("cost", words));
    }
}

fn put_safety(candidate: &mut Candidate, trust: Trust, walls: Walls) {
    candidate.facts.safety = Some(safety(trust, walls));
    let walls = match walls {
        Walls::Here(level) => format!("walls {level}"),
        Walls::Elsewhere => "runs elsewhere".to_owned(),
    };
    candidate.because.push(("safety", format!("trust {}, {walls}", trust.name())));
}
