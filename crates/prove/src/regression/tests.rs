use std::time::Duration;

use ledger::state::latency::bucket_of;
use ledger::state::recent::KEPT;

use super::*;
use crate::random::Random;

impl Random {
    fn part(&mut self) -> f64 {
        (number(self.next() >> 11) + 0.5) / number(1 << 53)
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.part().ln()).sqrt() * (std::f64::consts::TAU * self.part()).cos()
    }
}

/// How a tool behaves.
#[derive(Clone, Copy)]
struct Tool {
    /// The median, in milliseconds, and how wide latencies spread around it.
    median: f64,
    spread: f64,
    /// How many calls go well.
    success: f64,
    /// How many of them start something first, which takes 40 times as long.
    cold: f64,
}

impl Tool {
    fn call(self, random: &mut Random) -> Ran {
        if random.part() > self.success {
            return Ran::Failed;
        }
        let cold = if random.part() < self.cold { 40.0 } else { 1.0 };
        let millis = self.median * cold * (self.spread * random.normal()).exp();
        Ran::Well(bucket_of(Duration::from_secs_f64(millis / 1_000.0)))
    }
}

/// A series as it grows.
#[derive(Default)]
struct Watched {
    all: Calls,
    recent: Vec<Ran>,
    before: Option<Calls>,
}

impl Watched {
    fn call(&mut self, tool: Tool, random: &mut Random) {
        let ran = tool.call(random);
        match ran {
            Ran::Well(bucket) => self.all.latencies.add(bucket, 1),
            Ran::Failed => self.all.failed += 1,
        }
        self.recent.push(ran);
        if self.recent.len() > KEPT {
            self.recent.remove(0);
        }
    }

    /// Whoever looks in between sees no more.
    fn is_due(&self) -> bool {
        self.all.count().is_multiple_of(STEP)
    }

    fn look(&self) -> Vec<Worse> {
        look(&self.all, &self.recent, self.before.as_ref())
    }

    /// After how many calls of a tool it is found that this got worse.
    fn until(&mut self, what: What, tool: Tool, most: usize, random: &mut Random) -> Option<usize> {
        (1..=most).find(|_| {
            self.call(tool, random);
            self.is_due() && self.look().iter().any(|worse| worse.what == what)
        })
    }
}

#[test]
fn an_unchanged_tool_is_flagged_in_less_than_one_of_a_hundred_histories() {
    let mut random = Random(1);
    let mut flagged = 0;
    for history in 0..1_000 {
        let spread = [0.0, 0.1, 0.25, 0.5, 0.8, 1.0, 1.5][history % 7];
        let tool = Tool {
            median: 3.0 * 1.37_f64.powi(i32::try_from(history % 13).unwrap()),
            spread,
            success: [1.0, 0.99, 0.95, 0.6][history % 4],
            cold: [0.0, 0.02, 0.1][history % 3],
        };
        let mut watched = Watched::default();
        let mut is_flagged = false;
        for call in 0..1_000 {
            watched.call(tool, &mut random);
            is_flagged |= watched.is_due() && !watched.look().is_empty();
            // Half of them publish a new version that behaves like the old one.
            if call == 400 && history % 2 == 0 {
                watched = Watched { before: Some(watched.all), ..Watched::default() };
            }
        }
        flagged += usize::from(is_flagged);
    }
    assert!(flagged <= 10, "{flagged} of 1000");
}

#[test]
fn a_tool_that_became_twice_as_slow_is_found_within_200_calls() {
    let mut random = Random(2);
    let mut slowest = 0;
    for run in 0..200 {
        let tool = Tool {
            median: 20.0 + f64::from(run),
            spread: [0.1, 0.25, 0.4, 0.6][usize::try_from(run).unwrap() % 4],
            success: 0.99,
            cold: 0.01,
        };
        let slow = Tool { median: tool.median * 2.0, ..tool };
        let mut watched = Watched::default();
        (0..400).for_each(|_| watched.call(tool, &mut random));
        let found = watched.until(What::Latency, slow, 200, &mut random);
        slowest = slowest.max(found.unwrap_or_else(|| panic!("run {run} was not found")));
    }
    // Also where calls spread widely, once there is enough to hold them against.
    let mut missed = 0;
    for _ in 0..200 {
        let tool = Tool { median: 80.0, spread: 1.0, success: 1.0, cold: 0.0 };
        let slow = Tool { median: 160.0, ..tool };
        let mut watched = Watched::default();
        (0..1_000).for_each(|_| watched.call(tool, &mut random));
        missed += usize::from(watched.until(What::Latency, slow, 200, &mut random).is_none());
    }
    assert!(slowest <= 200 && missed <= 4, "{slowest} calls, {missed} missed");
}

#[test]
fn a_tool_that_began_to_fail_is_found_within_200_calls() {
    let mut random = Random(3);
    for run in 0..200 {
        let tool = Tool { median: 50.0, spread: 0.5, success: 0.99, cold: 0.0 };
        let mut watched = Watched::default();
        (0..400).for_each(|_| watched.call(tool, &mut random));
        let failing = Tool { success: 0.8, ..tool };
        let found = watched.until(What::Success, failing, 200, &mut random);
        assert!(found.is_some(), "run {run} was not found");
    }
}

#[test]
fn whoever_looks_in_between_sees_what_was_at_the_last_step() {
    let mut random = Random(8);
    let tool = Tool { median: 50.0, spread: 0.5, success: 0.99, cold: 0.0 };
    let slow = Tool { median: 110.0, ..tool };
    let mut watched = Watched::default();
    (0..320).for_each(|_| watched.call(tool, &mut random));
    let mut last = Vec::new();
    let mut found = 0;
    for _ in 0..200 {
        watched.call(slow, &mut random);
        if watched.is_due() {
            last = watched.look();
            found += last.len();
        }
        assert_eq!(watched.look(), last);
    }
    assert!(found > 0);
}

#[test]
fn a_slower_version_is_held_against_the_one_before() {
    let mut random = Random(4);
    let tool = Tool { median: 50.0, spread: 0.5, success: 0.99, cold: 0.0 };
    let mut watched = Watched::default();
    (0..300).for_each(|_| watched.call(tool, &mut random));
    let mut next = Watched { before: Some(watched.all), ..Watched::default() };
    let slow = Tool { median: 100.0, ..tool };
    let found = next.until(What::Latency, slow, 200, &mut random).unwrap();
    assert!(found.is_multiple_of(16), "{found}");
    let worse = &next.look()[0];
    assert_eq!((worse.what, worse.than), (What::Latency, Than::VersionBefore));
    assert!(worse.after > 1.6 * worse.before, "{worse:?}");
}

#[test]
fn what_got_worse_is_over_once_the_last_calls_are_as_before() {
    let mut random = Random(5);
    let tool = Tool { median: 50.0, spread: 0.3, success: 1.0, cold: 0.0 };
    let slow = Tool { median: 100.0, ..tool };
    let recent = |tool: Tool, count: usize, random: &mut Random| {
        (0..count).map(|_| tool.call(random)).collect::<Vec<_>>()
    };
    let before = recent(tool, 200, &mut random).into_iter().collect::<Calls>().latencies.typical();
    let before = before.unwrap();
    assert!(!is_over(What::Latency, before, &recent(slow, 100, &mut random)));
    assert!(is_over(What::Latency, before, &recent(tool, 100, &mut random)));
    assert!(!is_over(What::Latency, before, &recent(tool, 63, &mut random)), "too few to say");
    let failing = Tool { success: 0.5, ..tool };
    assert!(!is_over(What::Success, 0.99, &recent(failing, 100, &mut random)));
    assert!(is_over(What::Success, 0.99, &recent(tool, 100, &mut random)));
}

#[test]
fn a_little_slower_is_not_told_however_many_calls_there_are() {
    let mut random = Random(6);
    let tool = Tool { median: 50.0, spread: 0.3, success: 1.0, cold: 0.0 };
    let before: Calls = (0..20_000).map(|_| tool.call(&mut random)).collect();
    let slow = Tool { median: 55.0, ..tool };
    let recent: Vec<_> = (0..KEPT).map(|_| slow.call(&mut random)).collect();
    let mut all = before.clone();
    all.latencies.join(&recent.iter().copied().collect::<Calls>().latencies);
    assert!(look(&all, &recent, Some(&before)).is_empty());
}

#[test]
fn fishers_test_gives_what_can_be_counted_by_hand() {
    // Of 8 calls 4 failed, and they are the last 4: one way of 70.
    assert!((by_failures((0, 4), (4, 4)) - 1.0 / 70.0).abs() < 1e-12);
    // At least 3 of them: 16 more ways.
    assert!((by_failures((1, 4), (3, 4)) - 17.0 / 70.0).abs() < 1e-12);
    assert!((by_failures((0, 10), (0, 10)) - 1.0).abs() < 1e-12);
    // So many that no factorial is a number.
    let chance = by_failures((1_000, 100_000), (40, 192));
    assert!(chance > 0.0 && chance < 1e-20, "{chance}");
}

/// All ways to deal small pools, against the bound.
#[test]
fn the_bound_on_ranks_is_never_below_the_probability() {
    let mut random = Random(7);
    let mut told = 0;
    for _ in 0..60 {
        let (n, m) = (3 + random.next() % 4, 4 + random.next() % 4);
        let pool: Vec<usize> = (0..n + m)
            .map(|_| {
                usize::try_from(random.next() % 6).unwrap() + 10 * usize::from(random.part() < 0.1)
            })
            .collect();
        let mut sorted = pool.clone();
        sorted.sort_unstable();
        let score = |bucket: usize| {
            let below = sorted.partition_point(|one| *one < bucket);
            number((below + sorted.partition_point(|one| *one <= bucket)) as u64) / 2.0
        };
        // The highest ones were drawn, so that the bound has something to say.
        let n = usize::try_from(n).unwrap();
        let after: Histogram = sorted[sorted.len() - n..].iter().copied().collect();
        let before: Histogram = sorted[..sorted.len() - n].iter().copied().collect();
        let drawn: f64 = sorted[sorted.len() - n..].iter().map(|one| score(*one)).sum();
        let (mut as_high, mut ways) = (0_u64, 0_u64);
        for dealt in 0_u32..1 << pool.len() {
            if dealt.count_ones() as usize == n {
                let sum: f64 = (0..pool.len())
                    .filter(|at| dealt >> at & 1 == 1)
                    .map(|at| score(pool[at]))
                    .sum();
                ways += 1;
                as_high += u64::from(sum > drawn - 1e-9);
            }
        }
        let ranked = Ranked::new(&before, &after);
        let bound = bound(&ranked.pool, ranked.m, ranked.n, ranked.sum);
        let exact = number(as_high) / number(ways);
        assert!(bound >= exact * 0.999_999, "{bound} {exact} {before:?} {after:?}");
        told += usize::from(bound < 0.5);
    }
    assert!(told > 30, "the bound says something: {told}");
}
