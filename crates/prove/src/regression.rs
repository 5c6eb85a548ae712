//! Whether a tool got worse: a statistical test, not a feeling.
//!
//! Two things can get worse, and each is held against *before*: the latency of calls that go well, and how many do.
//! Before is the version that was called before this one, and the earlier calls of this one.
//!
//! - **Latency**: Wilcoxon's rank-sum test on the buckets of the histogram, calls of one bucket sharing their rank. Its
//!   probability is not taken from a normal curve, which is wrong exactly where we look (far out, with many ties, with a
//!   few very slow calls), but bounded from above: the true one, over all ways in which the calls could have been dealt
//!   to before and after, is never higher than what [`by_ranks`] gives.
//! - **Success**: Fisher's exact test on how many calls failed ([`by_failures`]).
//!
//! **Looking again and again.** A series is looked at after every [`STEP`]th call and at no other moment: whoever looks in
//! between sees it as it was then. The k-th look may err with a probability of [`LEVEL`] / (2 k (k + 1)) for latency and as much
//! for success, shared equally among the [`WINDOWS`] and the version before. All these together are [`LEVEL`]: a series of which
//! every call is like every other is flagged with a probability of at most 1 %, however long it is called and however
//! often somebody looks. That holds for any latencies, as long as they do not come in an order.
//!
//! **What is too small to matter.** With many calls a test finds what nobody would: so a tool is slower only where its typical
//! latency (the geometric mean) is at least a quarter higher, and fails more only where two more calls of a hundred fail.

use ledger::state::counting::STEP;
use ledger::state::latency::Histogram;
use ledger::state::recent::Ran;
use ledger::state::regressions::What;

/// How likely a series is flagged at all, in its whole life, if nothing changes.
pub const LEVEL: f64 = 0.01;

/// How many of the last calls are held against all before them.
pub const WINDOWS: [usize; 5] = [16, 32, 64, 128, 192];

/// How much slower is worth telling.
const SLOWER: f64 = 1.25;
/// How many more failures are worth telling.
const MORE_FAILURES: f64 = 0.02;
/// What is less far out than this many standard deviations is never beyond the level, and need not be bounded.
const PLAIN: f64 = 3.5;

/// Calls that a tool had a part in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// The latencies of those that went well.
    pub latencies: Histogram,
    /// How many failed.
    pub failed: u64,
}

/// What is worse than before.
#[derive(Clone, Debug, PartialEq)]
pub struct Worse {
    /// What it is.
    pub what: What,
    /// Whether it is the version before that was better, or earlier calls of the same.
    pub than: Than,
    /// How many calls show it.
    pub calls: u64,
    /// How it was: the typical latency in milliseconds, or the part of the calls that went well.
    pub before: f64,
    /// How it is.
    pub after: f64,
    /// How likely calls would look so different, or more, if nothing had changed; at most.
    pub chance: f64,
}

/// What was better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Than {
    /// The version before.
    VersionBefore,
    /// Earlier calls of this one.
    Earlier,
}

impl Calls {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.latencies.count().saturating_add(self.failed)
    }

    /// How many of them went well, from 0 to 1; none without any.
    pub fn success(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| number(self.latencies.count()) / number(count))
    }

    /// The same without these.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self {
            latencies: self.latencies.without(&other.latencies),
            failed: self.failed.saturating_sub(other.failed),
        }
    }
}

impl FromIterator<Ran> for Calls {
    fn from_iter<I: IntoIterator<Item = Ran>>(calls: I) -> Self {
        let mut all = Self::default();
        for call in calls {
            match call {
                Ran::Well(bucket) => all.latencies.add(bucket, 1),
                Ran::Failed => all.failed += 1,
            }
        }
        all
    }
}

/// What is worse than before in a series: of all its calls, the last of which are known one by one, and perhaps those of
/// the version before. At most one finding for latency and one for success, the clearest.
pub fn look(all: &Calls, recent: &[Ran], version_before: Option<&Calls>) -> Vec<Worse> {
    let looks = all.count() / STEP;
    let since = usize::try_from(all.count() % STEP).unwrap_or(0);
    if looks == 0 || recent.len() < since {
        return Vec::new();
    }
    let (recent, after) = recent.split_at(recent.len() - since);
    let all = all.without(&after.iter().copied().collect());
    let looks = number(looks);
    let comparisons = number(WINDOWS.len() as u64 + 1);
    let level = LEVEL / 2.0 / (looks * (looks + 1.0)) / comparisons;
    let mut found: Vec<Worse> = Vec::new();
    let mut note = |than: Than, before: &Calls, after: &Calls| {
        for worse in [slower(before, after), failing(before, after)].into_iter().flatten() {
            let worse = Worse { than, ..worse };
            if worse.chance > level {
                continue;
            }
            match found.iter_mut().find(|known| known.what == worse.what) {
                Some(known) if known.chance <= worse.chance => {}
                Some(known) => *known = worse,
                None => found.push(worse),
            }
        }
    };
    if let Some(before) = version_before {
        note(Than::VersionBefore, before, &all);
    }
    for window in WINDOWS.into_iter().filter(|window| *window <= recent.len()) {
        let last: Calls = recent[recent.len() - window..].iter().copied().collect();
        note(Than::Earlier, &all.without(&last), &last);
    }
    found
}

/// Whether what got worse is as good as before again, by the last calls.
pub fn is_over(what: What, before: f64, recent: &[Ran]) -> bool {
    /// How many calls it takes to say so.
    const ENOUGH: usize = 64;
    let Some(from) = recent.len().checked_sub(ENOUGH) else { return false };
    let last: Calls = recent[from..].iter().copied().collect();
    match what {
        What::Latency => last.latencies.typical().is_some_and(|now| now < before * SLOWER.sqrt()),
        What::Success => last.success().is_some_and(|now| now > before - MORE_FAILURES),
    }
}

fn slower(before: &Calls, after: &Calls) -> Option<Worse> {
    let (was, is) = (before.latencies.typical()?, after.latencies.typical()?);
    (is >= was * SLOWER).then(|| Worse {
        what: What::Latency,
        than: Than::Earlier,
        calls: after.count(),
        before: was,
        after: is,
        chance: by_ranks(&before.latencies, &after.latencies),
    })
}

fn failing(before: &Calls, after: &Calls) -> Option<Worse> {
    let (was, is) = (before.success()?, after.success()?);
    (is <= was - MORE_FAILURES).then(|| Worse {
        what: What::Success,
        than: Than::Earlier,
        calls: after.count(),
        before: was,
        after: is,
        chance: by_failures((before.failed, before.count()), (after.failed, after.count())),
    })
}

/// How likely the ranks of the later calls would be so high or higher, if all calls were dealt to before and after by
/// chance: an upper bound.
///
/// Each latency of the pool is drawn with the same probability f, and what is asked is conditional on as many being drawn as
/// there were: P(S ≥ s | n drawn) ≤ min over θ, η of Π (1 − f + f e^(θ x + η)) e^(−θ s − η n) / P(n drawn). The smaller part drawn
/// with replacement bounds it too (Hoeffding), and better where before is much longer; the lower of both counts.
pub fn by_ranks(before: &Histogram, after: &Histogram) -> f64 {
    let Ranked { pool, m, n, sum } = Ranked::new(before, after);
    let all = m + n;
    let variance = pool.iter().map(|(count, score)| count * score * score).sum::<f64>() / all;
    let deviation = (variance * n * m / (all - 1.0).max(1.0)).sqrt();
    // So near to the middle it is no finding, and the bounds would only say so at length.
    if m < 1.0 || n < 1.0 || sum < PLAIN * deviation || sum <= 0.0 {
        return 1.0;
    }
    bound(&pool, m, n, sum)
}

/// Calls, ranked together.
struct Ranked {
    /// How many have a score: the middle rank of their bucket, from -1/2 to 1/2; the mean of all is 0.
    pool: Vec<(f64, f64)>,
    /// How many were made before, and after.
    m: f64,
    n: f64,
    /// The scores of those after, added up.
    sum: f64,
}

impl Ranked {
    fn new(before: &Histogram, after: &Histogram) -> Self {
        let (m, n) = (number(before.count()), number(after.count()));
        let (mut below, mut pool, mut sum) = (0.0, Vec::new(), 0.0);
        for (first, second) in before.counts().iter().zip(after.counts()) {
            let count = number(*first) + number(*second);
            if count > 0.0 {
                let score = (below + count / 2.0) / (m + n) - 0.5;
                pool.push((count, score));
                sum += number(*second) * score;
                below += count;
            }
        }
        Self { pool, m, n, sum }
    }
}

/// How likely `n` of a pool would add up to a sum or more, while `m` are left: an upper bound.
fn bound(pool: &[(f64, f64)], m: f64, n: f64, sum: f64) -> f64 {
    let drawn_again = if n <= m {
        with_replacement(pool, n, sum)
    } else {
        let mirrored: Vec<_> = pool.iter().map(|(count, score)| (*count, -score)).collect();
        with_replacement(&mirrored, m, sum)
    };
    drawn_again.min(without_replacement(pool, n, sum)).min(0.0).exp()
}

/// The logarithm of a bound on the probability that `n` draws of a pool, each put back, add up to a sum or more.
fn with_replacement(pool: &[(f64, f64)], n: f64, sum: f64) -> f64 {
    let all: f64 = pool.iter().map(|(count, _)| count).sum();
    let moments = |tilt: f64| {
        let weighed = pool.iter().map(|(count, score)| (count * (tilt * score).exp(), score));
        weighed.fold((0.0, 0.0), |(total, sum), (weight, score)| {
            (total + weight, sum + weight * score)
        })
    };
    let tilt = root(|tilt| {
        let (total, sum_of) = moments(tilt);
        sum_of / total * n < sum
    });
    n * (moments(tilt).0 / all).ln() - tilt * sum
}

/// The same for draws that are not put back.
fn without_replacement(pool: &[(f64, f64)], n: f64, sum: f64) -> f64 {
    let all: f64 = pool.iter().map(|(count, _)| count).sum();
    let part = n / all;
    let drawn = |tilt: f64, shift: f64| {
        pool.iter().fold((0.0, 0.0), |(total, sum), (count, score)| {
            let odds = part / (1.0 - part) * (tilt * score + shift).exp();
            let expected = count * odds / (1.0 + odds);
            (total + expected, sum + expected * score)
        })
    };
    // How far the odds of all have to be shifted so that as many are drawn as there were.
    let shift = |tilt: f64| {
        let (mut low, mut high) = (-tilt / 2.0 - 1.0, tilt / 2.0 + 1.0);
        for _ in 0..48 {
            let middle = f64::midpoint(low, high);
            if drawn(tilt, middle).0 < n { low = middle } else { high = middle }
        }
        f64::midpoint(low, high)
    };
    let tilt = root(|tilt| drawn(tilt, shift(tilt)).1 < sum);
    let shift = shift(tilt);
    let product: f64 = pool
        .iter()
        .map(|(count, score)| count * (part * (tilt * score + shift).exp_m1()).ln_1p())
        .sum();
    let as_many = ln_choose(all, n) + n * part.ln() + (all - n) * (1.0 - part).ln();
    product - tilt * sum - shift * n - as_many
}

/// Where a condition that holds for small numbers ceases to; a large number where it never does.
fn root(is_below: impl Fn(f64) -> bool) -> f64 {
    const MOST: f64 = 200.0;
    let (mut low, mut high) = (0.0, 1.0);
    while high < MOST && is_below(high) {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if is_below(middle) { low = middle } else { high = middle }
    }
    low
}

/// How likely so many of the later calls or more would fail, if all failures were dealt to before and after by chance:
/// Fisher's exact test. Each is how many failed, of how many.
pub fn by_failures(before: (u64, u64), after: (u64, u64)) -> f64 {
    let ((failed_before, m), (failed, n)) = (before, after);
    let (all, failures) = (number(m) + number(n), number(failed_before) + number(failed));
    let (n, mut at) = (number(n), number(failed));
    let first = ln_choose(failures, at) + ln_choose(all - failures, n - at) - ln_choose(all, n);
    let (mut term, mut sum) = (1.0, 0.0);
    while term > 0.0 {
        sum += term;
        term *= (failures - at).max(0.0) * (n - at).max(0.0)
            / ((at + 1.0) * (all - failures - n + at + 1.0));
        at += 1.0;
        // What follows is less than a rounding.
        if term < sum * 1e-17 {
            break;
        }
    }
    (first.exp() * sum).min(1.0)
}

/// The logarithm of how many ways there are to choose.
fn ln_choose(of: f64, chosen: f64) -> f64 {
    ln_factorial(of) - ln_factorial(chosen) - ln_factorial(of - chosen)
}

fn ln_factorial(number: f64) -> f64 {
    if number < 16.0 {
        let mut product = 1.0;
        let mut factor = 2.0;
        while factor <= number {
            product *= factor;
            factor += 1.0;
        }
        return product.ln();
    }
    // Stirling's series; the next term is below 10⁻¹⁰ from here on.
    let next = number + 1.0;
    (next - 0.5) * next.ln() - next + 0.5 * std::f64::consts::TAU.ln() + 1.0 / (12.0 * next)
        - 1.0 / (360.0 * next.powi(3))
        + 1.0 / (1_260.0 * next.powi(5))
}

#[expect(clippy::cast_precision_loss, reason = "counts of calls are far below 2^53")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
