//! What calls may spend: calls and cents of a day, and calls of a minute.

use std::time::Duration;

use ledger::Time;
use ledger::state::budgets::{Budget, Paced, Rate, Reserved, Scope, Spent};
use policy::{Policy, Reason};
use serde_json::json;

use crate::call::Tool;
use crate::error::{CallError, Kind};
use crate::records::{Records, broken, now};

/// What is left to spend, as it is told before a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Left {
    /// Each limit, and what is left of it.
    pub(crate) limits: Vec<String>,
    /// Why a call would be refused now, where it would be: by the limit that is free last.
    pub(crate) refusal: Option<CallError>,
}

/// Why a limit refuses a call.
struct Refusal {
    error: CallError,
    /// When it would not, unless it always does.
    free_at: Option<Time>,
}

impl Refusal {
    /// The one that stands for longer; the first where both end at once.
    fn last(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        let until = |one: &Self| (one.free_at.is_none(), one.free_at);
        match (first, second) {
            (Some(first), Some(second)) if until(&second) > until(&first) => Some(second),
            (first, second) => first.or(second),
        }
    }
}

impl Records {
    /// Counts a call against what may be spent, where there is a limit.
    pub(crate) async fn reserve(&self, tool: &Tool, policy: &Policy) -> Result<(), CallError> {
        if has_no_limit(policy, tool) {
            return Ok(());
        }
        Box::pin(self.reserve_within(tool, policy)).await
    }

    async fn reserve_within(&self, tool: &Tool, policy: &Policy) -> Result<(), CallError> {
        let (id, now) = (tool.package.canonical_id(), now());
        // Who is refused by one limit has used up nothing of another.
        self.check_left(tool, policy).await?;
        let scopes = budgets(policy, tool);
        for (scope, budget) in scopes {
            let Some(most) = budget.calls_per_minute else { continue };
            let wait = match rate(most) {
                Some(rate) => self.state.pace(bucket(scope, &id), rate, now).await,
                None => Ok(Paced::Wait(Duration::ZERO)),
            };
            if let Paced::Wait(time) = wait.map_err(|error| broken(&error))? {
                return Err(too_soon(scope, most, time, now).error);
            }
        }
        let [package, overall] = scopes.map(|(_, one)| of_a_day(one));
        if package == Budget::default() && overall == Budget::default() {
            return Ok(());
        }
        let price = price(policy, tool);
        let reserved = self.state.reserve(now.day(), &id, price, package, overall).await;
        match reserved.map_err(|error| broken(&error))? {
            Reserved::Yes => Ok(()),
            Reserved::NoCalls(_) | Reserved::NoCents(_) => {
                self.check_left(tool, policy).await?;
                let why = "what your policy allows for today was just used up by another call";
                Err(CallError::new(Kind::Denied, why).by("budget"))
            }
        }
    }

    /// Refuses a call that nothing is left for. Nothing is counted.
    pub(crate) async fn check_left(&self, tool: &Tool, policy: &Policy) -> Result<(), CallError> {
        if has_no_limit(policy, tool) {
            return Ok(());
        }
        self.left(tool, policy).await?.refusal.map_or(Ok(()), Err)
    }

    /// What is left to spend by a package.
    pub(crate) async fn left(&self, tool: &Tool, policy: &Policy) -> Result<Left, CallError> {
        let (id, now) = (tool.package.canonical_id(), now());
        let (price, mut left, mut refusal) = (price(policy, tool), Left::default(), None);
        for (scope, budget) in budgets(policy, tool) {
            let a_day = of_a_day(budget);
            // Whoever has no limit need not be counted.
            let spent = match a_day {
                Budget { calls: None, cents: None } => Spent::default(),
                _ => self.spent(scope, &id, now).await?,
            };
            for (limit, most, spent) in
                [(CALLS_A_DAY, a_day.calls, spent.calls), (CENTS_A_DAY, a_day.cents, spent.cents)]
            {
                let Some(most) = most else { continue };
                left.limits.push(limit.left(scope, most, most.saturating_sub(spent)));
            }
            refusal = Refusal::last(refusal, too_much(scope, a_day, spent, price, now));
            let Some(most) = budget.calls_per_minute else { continue };
            let (rest, wait) = match rate(most) {
                Some(rate) => {
                    let paced = self.state.paced(bucket(scope, &id), rate, now).await;
                    paced.map_err(|error| broken(&error))?
                }
                None => (0, Duration::ZERO),
            };
            left.limits.push(CALLS_A_MINUTE.left(scope, most, rest.into()));
            if rest == 0 {
                refusal = Refusal::last(refusal, Some(too_soon(scope, most, wait, now)));
            }
        }
        left.refusal = refusal.map(|refusal| refusal.error);
        Ok(left)
    }

    async fn spent(&self, scope: Scope, id: &str, now: Time) -> Result<Spent, CallError> {
        let row = (scope == Scope::Package).then_some(id);
        self.state.spent(now.day(), row).await.map_err(|error| broken(&error))
    }
}

/// A limit of what may be spent.
#[derive(Clone, Copy)]
struct Limit {
    /// Its key in the policy.
    key: &'static str,
    what: &'static str,
    period: &'static str,
}

const CALLS_A_DAY: Limit = Limit { key: "calls_per_day", what: "call", period: "day" };
const CENTS_A_DAY: Limit = Limit { key: "cents_per_day", what: "cent", period: "day" };
const CALLS_A_MINUTE: Limit = Limit { key: "calls_per_minute", what: "call", period: "minute" };

impl Limit {
    /// How much may be spent.
    fn words(self, most: u64) -> String {
        let Self { what, period, .. } = self;
        format!("{most} {what}{} a {period}", if most == 1 { "" } else { "s" })
    }

    /// The key of the policy that sets it.
    fn set_by(self, scope: Scope) -> String {
        match scope {
            Scope::Package => format!("`budget.{}` of this package in policy.toml", self.key),
            Scope::Overall => format!("`{}` of `[budget]` in policy.toml", self.key),
        }
    }

    /// The same, for the log.
    fn rule(self, scope: Scope) -> String {
        match scope {
            Scope::Package => "package.budget".to_owned(),
            Scope::Overall => format!("budget.{}", self.key),
        }
    }

    /// What is left of it.
    fn left(self, scope: Scope, most: u64, rest: u64) -> String {
        format!("{}, {rest} left ({})", self.words(most), self.set_by(scope))
    }

    /// Why a call is refused by it, and when it would not be, unless it always is.
    fn refusal(self, scope: Scope, most: u64, why: &str, free_at: Option<Time>) -> Refusal {
        let (words, set_by) = (self.words(most), self.set_by(scope));
        let message = format!("your policy allows {words}{why} ({set_by})");
        let reason = Reason { rule: "budget", says: message.clone() };
        let free = free_at.map(|time| time.to_string());
        let error = CallError::new(Kind::Denied, message).with("reasons", vec![reason.to_string()]);
        let limit = json!({ "name": self.key, "allowed": most, "words": words, "set_by": set_by, "free_at": free });
        Refusal { error: error.with("limit", limit).by(self.rule(scope)), free_at }
    }
}

/// What a package may spend, and all of them together.
fn budgets(policy: &Policy, tool: &Tool) -> [(Scope, policy::policy::Budget); 2] {
    let rules = policy.of_package(&tool.package);
    let of_package = rules.map(|rules| rules.budget).unwrap_or_default();
    [(Scope::Package, of_package), (Scope::Overall, policy.budget)]
}

/// Whether a package may spend as it likes.
fn has_no_limit(policy: &Policy, tool: &Tool) -> bool {
    budgets(policy, tool).iter().all(|(_, budget)| *budget == policy::policy::Budget::default())
}

fn of_a_day(budget: policy::policy::Budget) -> Budget {
    Budget { calls: budget.calls_per_day, cents: budget.cents_per_day }
}

/// What a call costs, in cents.
fn price(policy: &Policy, tool: &Tool) -> u64 {
    let rules = policy.of_package(&tool.package);
    rules.map_or(0, |rules| rules.cents_per_call)
}

/// So many calls a minute, unless there are none.
fn rate(most: u64) -> Option<Rate> {
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    (most > 0).then(|| Rate { burst: most, every: Duration::from_mins(1) / most })
}

/// The name that calls of a minute are counted under.
fn bucket(scope: Scope, id: &str) -> &str {
    if scope == Scope::Package { id } else { "" }
}

/// Why a call comes too soon.
fn too_soon(scope: Scope, most: u64, wait: Duration, now: Time) -> Refusal {
    let limit = CALLS_A_MINUTE;
    if most == 0 {
        return limit.refusal(scope, most, "", None);
    }
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let Refusal { mut error, free_at } = limit.refusal(scope, most, "", Some(now.plus(wait)));
    error.message += &format!("; try again in {} s", wait.as_secs() + 1);
    Refusal { error: error.with("retry_after_ms", wait_ms), free_at }
}

/// Why a call is too much for a day, where it is.
fn too_much(scope: Scope, budget: Budget, spent: Spent, price: u64, now: Time) -> Option<Refusal> {
    let tomorrow = |most: u64, price: u64| (price <= most).then(|| now.next_day());
    let calls = budget
        .calls
        .filter(|most| spent.calls >= *most)
        .map(|most| CALLS_A_DAY.refusal(scope, most, ", and none is left", tomorrow(most, 1)));
    let cents = budget.cents.filter(|most| spent.cents.saturating_add(price) > *most).map(|most| {
        let left = match most.saturating_sub(spent.cents) {
            0 => ", and none is left".to_owned(),
            1 => format!(", of which 1 is left, and the call costs {price}"),
            left => format!(", of which {left} are left, and the call costs {price}"),
        };
        CENTS_A_DAY.refusal(scope, most, &left, tomorrow(most, price))
    });
    Refusal::last(calls, cents)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget { calls: Some(1), cents: Some(5) };

    fn refusal(calls: u64, cents: u64, price: u64) -> Option<CallError> {
        let now = Time::parse("2026-02-28T12:00:00.000Z").unwrap();
        Some(too_much(Scope::Overall, BUDGET, Spent { calls, cents }, price, now)?.error)
    }

    #[test]
    fn what_is_left_is_told_as_it_is() {
        let told = |calls, cents, price| {
            let told = refusal(calls, cents, price)?.message;
            Some(told.split(" (`").next().unwrap_or_default().to_owned())
        };
        assert_eq!(told(0, 3, 2), None);
        assert_eq!(told(1, 0, 2).unwrap(), "your policy allows 1 call a day, and none is left");
        assert_eq!(
            told(0, 4, 2).unwrap(),
            "your policy allows 5 cents a day, of which 1 is left, and the call costs 2"
        );
        assert_eq!(told(0, 5, 1).unwrap(), "your policy allows 5 cents a day, and none is left");
        // Of both, what is free last: more calls come tomorrow, so many cents never.
        let never = "your policy allows 5 cents a day, of which 5 are left, and the call costs 6";
        assert_eq!(told(1, 0, 6).unwrap(), never);
        // A free call is free where nothing is left.
        assert_eq!(told(0, 5, 0), None);
    }

    #[test]
    fn a_limit_says_when_it_is_free_again_unless_it_never_is() {
        let limit = |calls, cents, price| refusal(calls, cents, price).unwrap().details;
        let told = limit(1, 0, 0);
        let rule = "budget: your policy allows 1 call a day, and none is left (`calls_per_day` of `[budget]` in policy.toml)";
        assert_eq!(told["reasons"], json!([rule]));
        assert_eq!(told["limit"]["name"], "calls_per_day");
        assert_eq!(told["limit"]["free_at"], "2026-03-01T00:00:00.000Z");
        assert_eq!(limit(0, 4, 2)["limit"]["free_at"], "2026-03-01T00:00:00.000Z");
        assert_eq!(limit(0, 0, 6)["limit"]["free_at"], json!(null), "it costs too much on any day");
        let now = Time::default();
        let paced = too_soon(Scope::Package, 30, Duration::from_millis(1_500), now).error;
        assert_eq!(paced.details["limit"]["free_at"], "1970-01-01T00:00:01.500Z");
        assert_eq!(paced.details["retry_after_ms"], 1_500);
        let never = too_soon(Scope::Package, 0, Duration::ZERO, now).error;
        assert_eq!(never.details["limit"]["free_at"], json!(null));
        let words = "your policy allows 0 calls a minute (`budget.calls_per_minute` of this package in policy.toml)";
        assert_eq!(never.message, words);
    }
}
