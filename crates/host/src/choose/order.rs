//! In which order implementations are tried that run here.
//!
//! First those that lack nothing as far as anybody can tell, then those with a requirement that nobody here can look at, then the
//! `endpoint` beside the implementations, and last those that broke the last times. Among equals it is the author's order; those
//! of them that were measured take their places by what was measured.

use std::time::Duration;

use ledger::Time;
use ledger::state::implementations::Broken;
use policy::policy::Weights;
use policy::rank::{Facts, score};

use super::Prospect;

/// What the calls of an implementation have to weigh, in fresh ones, for it to be measured.
const MEASURED: f64 = 10.0;

/// By how many hundredths one has to be better to come first.
const FELT: u8 = 2;

/// How many breaks in a row make it broken, where each could be a chance.
const MOST_BREAKS: u64 = 3;

/// After how long one that broke is tried again in its place.
const FORGIVEN: Duration = Duration::from_hours(1);

/// The id of the `endpoint` beside the implementations of an mcpkg.
const ENDPOINT: &str = "endpoint";

impl Prospect<'_> {
    /// How good it is by what was measured, in hundredths; none where too little was.
    pub(crate) fn score(&self, weights: &Weights) -> Option<u8> {
        let past = Some(&self.past).filter(|past| past.weight >= MEASURED)?;
        let facts =
            Facts { latency_ms: past.mean_ms, resilience: past.success, ..Facts::default() };
        let best = weights.latency + weights.resilience;
        let part = if best > 0.0 { score(&facts, weights).total / best } else { 0.0 };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is from 0 to 100"
        )]
        let hundredths = (part.clamp(0.0, 1.0) * 100.0).round() as u8;
        Some(hundredths)
    }

    /// That it broke so lately, and so surely, that the others go first.
    pub(crate) fn broken(&self, now: Time) -> Option<&Broken> {
        let is_so = |one: &&Broken| {
            (one.is_sure || one.times >= MOST_BREAKS) && now < one.at.plus(FORGIVEN)
        };
        self.past.broken.as_ref().filter(is_so)
    }

    fn rung(&self, now: Time) -> u8 {
        if self.broken(now).is_some() {
            3
        } else if self.implementation.id == ENDPOINT {
            2
        } else {
            u8::from(!self.unknown.is_empty())
        }
    }
}

/// Puts them in the order in which they are tried.
pub(super) fn sort(all: &mut Vec<Prospect<'_>>, weights: &Weights, now: Time) {
    all.sort_by_key(|one| one.rung(now));
    let mut sorted = Vec::with_capacity(all.len());
    for rung in 0..=3 {
        let here = all.iter().take_while(|one| one.rung(now) == rung).count();
        let here: Vec<_> = all.drain(..here).collect();
        let is_measured: Vec<_> = here.iter().map(|one| one.score(weights).is_some()).collect();
        let (measured, others): (Vec<_>, Vec<_>) =
            here.into_iter().partition(|one| one.score(weights).is_some());
        let mut ranked: Vec<Prospect<'_>> = Vec::with_capacity(measured.len());
        for one in measured {
            let is_worse = |other: &&Prospect<'_>| {
                one.score(weights) > other.score(weights).map(|score| score + FELT)
            };
            let worse = ranked.iter().rev().take_while(is_worse).count();
            ranked.insert(ranked.len() - worse, one);
        }
        let (mut measured, mut others) = (ranked.into_iter(), others.into_iter());
        for is_measured in is_measured {
            sorted.extend(if is_measured { measured.next() } else { others.next() });
        }
    }
    *all = sorted;
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use ledger::state::implementations::Past;
    use manifest::model::{Entry, Implementation};
    use policy::policy::RankRules;

    use super::*;

    const NOW: i64 = 1_794_000_000_000;

    fn at(hours: i64) -> Time {
        Time::from_unix_millis(NOW + hours * 3_600_000)
    }

    fn one(id: &str) -> Prospect<'static> {
        let implementation = Implementation {
            id: id.to_owned(),
            language: None,
            runtime: None,
            platforms: Vec::new(),
            entry: Entry::Undeclared,
            timeout_ms: None,
            requirements: None,
        };
        Prospect::new(Cow::Owned(implementation), Vec::new())
    }

    fn measured(id: &str, mean_ms: f64, success: f64) -> Prospect<'static> {
        let (mean_ms, success) = (Some(mean_ms), Some(success));
        Prospect { past: Past { weight: 40.0, success, mean_ms, broken: None }, ..one(id) }
    }

    fn broken(id: &str, times: u64, is_sure: bool) -> Prospect<'static> {
        let broken = Some(Broken { times, is_sure, why: "it broke".into(), at: at(0) });
        Prospect { past: Past { broken, ..Past::default() }, ..one(id) }
    }

    fn sorted(mut all: Vec<Prospect<'_>>, now: Time) -> Vec<String> {
        sort(&mut all, &RankRules::default().weights, now);
        all.iter().map(|one| one.implementation.id.clone()).collect()
    }

    #[test]
    fn the_authors_order_holds_where_nothing_was_measured() {
        assert_eq!(sorted(vec![one("b"), one("a"), one("c")], at(0)), ["b", "a", "c"]);
        // A few calls say nothing.
        let mut fast = measured("c", 1.0, 1.0);
        fast.past.weight = 9.0;
        assert_eq!(sorted(vec![measured("b", 900.0, 0.5), one("a"), fast], at(0)), ["b", "a", "c"]);
    }

    #[test]
    fn those_that_were_measured_take_their_places_by_that() {
        let all = vec![measured("slow", 500.0, 1.0), one("new"), measured("fast", 20.0, 1.0)];
        assert_eq!(sorted(all, at(0)), ["fast", "new", "slow"]);
        let all = vec![measured("frail", 20.0, 0.5), measured("sound", 40.0, 1.0)];
        assert_eq!(sorted(all, at(0)), ["sound", "frail"]);
        // What nobody would feel moves nothing.
        let all = vec![measured("a", 23.0, 1.0), measured("b", 21.0, 1.0)];
        assert_eq!(sorted(all, at(0)), ["a", "b"]);
    }

    #[test]
    fn what_may_lack_something_comes_later_the_endpoint_after_it_and_what_broke_last() {
        let unsure = Prospect { unknown: vec!["minFlux".into()], ..measured("unsure", 1.0, 1.0) };
        let all = vec![
            broken("surely", 1, true),
            unsure,
            measured("endpoint", 1.0, 1.0),
            broken("thrice", 3, false),
            broken("once", 1, false),
            one("plain"),
        ];
        let order = ["once", "plain", "unsure", "endpoint", "surely", "thrice"];
        assert_eq!(sorted(all, at(0)), order);
        // It may work again by then.
        let all = vec![broken("surely", 1, true), one("plain")];
        assert_eq!(sorted(all, at(1)), ["surely", "plain"]);
    }
}
