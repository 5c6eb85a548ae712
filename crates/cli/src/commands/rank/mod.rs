//! `haft rank`: the best tool of a capability, with its score and each term of it.

mod candidates;
mod replace;
mod told;

use clap::Args;
use policy::policy::RankRules;
use prove::rank::{Facts, Score, score, unmet};

use crate::ask::Ask;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::measured;
use crate::owner;
use crate::printer::Printer;
use crate::remote::{Offline, Which};

#[derive(Args, Debug)]
#[command(
    after_help = "score = 0.30·correctness + 0.25·latency + 0.15·cost + 0.20·safety + 0.10·resilience; what is not known counts 0 and is shown as `?`. Weights and conditions stand in `[rank]` of your policy. See docs/metrics-and-rank.md.\n\nExamples:\n  haft rank pdf local\n  haft rank pdf --installed --explain\n  haft rank --replace demo.text.report --output ./report-2"
)]
pub(crate) struct RankArgs {
    /// What the tool must be able to do: all of these, as capabilities or tags
    #[arg(value_name = "CAPABILITY", required_unless_present = "replace", conflicts_with = "replace", num_args = 1..=16)]
    capability: Vec<String>,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    offline: Offline,
    /// Only what is installed; no registry is asked
    #[arg(long, conflicts_with_all = ["registry", "offline"])]
    installed: bool,
    /// Say of each tool what every term of its score is made of
    #[arg(long)]
    explain: bool,
    /// How many, from 1 to 1000
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    #[command(flatten)]
    replacing: replace::ReplaceArgs,
}

/// A tool that can do what is wanted.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) id: String,
    pub(super) version: String,
    pub(super) place: Place,
    /// Whether it may be called.
    pub(super) enabled: bool,
    pub(super) facts: Facts,
    /// What the facts are made of, by the name of the dimension.
    pub(super) because: Vec<(&'static str, String)>,
    /// What of it got worse, in words.
    pub(super) worse: Vec<String>,
}

/// Where a tool is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Installed,
    Registry(String),
}

/// A tool with its rank.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    pub(super) candidate: Candidate,
    pub(super) score: Score,
    /// The conditions that it does not meet.
    pub(super) unmet: Vec<String>,
}

pub(crate) fn run(
    args: &RankArgs,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    if let Some(chain) = &args.replacing.replace {
        return replace::run(chain, &args.replacing, home, ask, json_wanted, printer);
    }
    args.replacing.check_unused()?;
    let wanted: Vec<_> = args.capability.iter().map(|name| name.trim().to_lowercase()).collect();
    if wanted.iter().any(String::is_empty) {
        return Err(Failure::invalid("a capability is empty"));
    }
    let rules = owner::policy(home)?.rank;
    let runtime = owner::runtime()?;
    let measured = measured::all(home, &runtime)?;
    let mut found = candidates::installed(&wanted, &measured, home, printer)?;
    if !args.installed {
        let here = candidates::Here { measured: &measured, runtime: &runtime, home, ask, printer };
        candidates::add_from_registries(&mut found, &wanted, &here, &args.which, &args.offline)?;
    }
    let total = found.len();
    let mut ranked = ranked(found, &rules);
    ranked.truncate(args.limit.try_into().unwrap_or(usize::MAX));
    if json_wanted {
        printer.json(&told::in_json(&ranked, &wanted, total))?;
        return Ok(Exit::Done);
    }
    if ranked.is_empty() {
        printer.note("nothing found that can do all of this");
        return Ok(Exit::Done);
    }
    printer.result(&told::table_of(&ranked))?;
    if args.explain {
        printer.result(&told::explained(&ranked))?;
    }
    told::notes(&ranked, total, printer);
    Ok(Exit::Done)
}

/// The ids of what is installed, the best first.
pub(crate) fn order(home: &Home, measured: &prove::measured::All) -> Result<Vec<String>, Failure> {
    let rules = owner::policy(home)?.rank;
    let found = candidates::installed(&[], measured, home, Printer::silent())?;
    Ok(ranked(found, &rules).into_iter().map(|one| one.candidate.id).collect())
}

/// The best first; those that do not meet a condition after all that do.
fn ranked(found: Vec<Candidate>, rules: &RankRules) -> Vec<Ranked> {
    let rank = |candidate: Candidate| {
        let score = score(&candidate.facts, &rules.weights);
        let unmet = unmet(&candidate.facts, rules);
        Ranked { candidate, score, unmet }
    };
    let mut ranked: Vec<_> = found.into_iter().map(rank).collect();
    ranked.sort_by(|one, other| {
        let is_left_out = |one: &Ranked| !one.unmet.is_empty() || !one.candidate.enabled;
        let is_away = |one: &Ranked| one.candidate.place != Place::Installed;
        is_left_out(one)
            .cmp(&is_left_out(other))
            .then(other.score.total.total_cmp(&one.score.total))
            .then(is_away(one).cmp(&is_away(other)))
            .then(one.candidate.id.cmp(&other.candidate.id))
    });
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_meet_a_condition_comes_last_however_good_it_is() {
        let candidate = |id: &str, latency: f64, place: Place| Candidate {
            id: id.into(),
            version: "1.0.0".into(),
            place,
            enabled: true,
            facts: Facts { latency_ms: Some(latency), safety: Some(0.5), ..Facts::default() },
            because: Vec::new(),
            worse: Vec::new(),
        };
        let away = || Place::Registry("acme".into());
        let found = vec![
            candidate("slow", 900.0, Place::Installed),
            candidate("away", 100.0, away()),
            candidate("here", 100.0, Place::Installed),
            candidate("fast", 10.0, away()),
            Candidate { enabled: false, ..candidate("off", 1.0, Place::Installed) },
        ];
        let rules = RankRules { max_latency_ms: Some(500), ..RankRules::default() };
        let ranked = ranked(found, &rules);
        let order: Vec<_> = ranked.iter().map(|one| one.candidate.id.as_str()).collect();
        assert_eq!(order, ["fast", "here", "away", "off", "slow"]);
        assert_eq!(ranked[4].unmet.len(), 1);
    }
}
