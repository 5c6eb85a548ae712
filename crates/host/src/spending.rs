//! What calls may spend: calls and cents of a day, and calls of a minute.

use std::time::Duration;

use ledger::state::budgets::{Budget, Paced, Rate, Reserved, Scope, Spent};
use policy::Policy;

use crate::call::Tool;
use crate::error::{CallError, Kind};
use crate::records::{Records, broken, now};

/// What is left to spend, as it is told before a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Left {
    /// Each limit, and what is left of it.
    pub(crate) limits: Vec<String>,
    /// Why a call would be refused now, where it would be.
    pub(crate) refusal: Option<String>,
}

impl Records {
    /// Counts a call against what may be spent, where there is a limit.
    pub(crate) async fn reserve(&self, tool: &Tool, policy: &Policy) -> Result<(), CallError> {
        let id = tool.package.canonical_id();
        let scopes = budgets(policy, tool);
        for (scope, budget) in scopes {
            let Some(most) = budget.calls_per_minute else { continue };
            let wait = match rate(most) {
                Some(rate) => self.state.pace(bucket(scope, &id), rate, now()).await,
                None => Ok(Paced::Wait(Duration::ZERO)),
            };
            if let Paced::Wait(time) = wait.map_err(|error| broken(&error))? {
                let error = denied(too_soon(scope, most, time));
                let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                return Err(if most == 0 { error } else { error.with("retry_after_ms", time) });
            }
        }
        let [package, overall] = scopes.map(|(_, one)| of_a_day(one));
        if package == Budget::default() && overall == Budget::default() {
            return Ok(());
        }
        let price = price(policy, tool);
        let reserved = self.state.reserve(now().day(), &id, price, package, overall).await;
        let (Reserved::NoCalls(scope) | Reserved::NoCents(scope)) =
            reserved.map_err(|error| broken(&error))?
        else {
            return Ok(());
        };
        let budget = if scope == Scope::Package { package } else { overall };
        let spent = self.spent(scope, &id).await?;
        Err(denied(too_much(scope, budget, spent, price).unwrap_or_else(|| {
            "what your policy allows for today was just used up by another call".to_owned()
        })))
    }

    /// What is left to spend by a package.
    pub(crate) async fn left(&self, tool: &Tool, policy: &Policy) -> Result<Left, CallError> {
        let (id, price, mut left) =
            (tool.package.canonical_id(), price(policy, tool), Left::default());
        for (scope, budget) in budgets(policy, tool) {
            let (a_day, spent) = (of_a_day(budget), self.spent(scope, &id).await?);
            for (what, most, spent) in
                [("call", a_day.calls, spent.calls), ("cent", a_day.cents, spent.cents)]
            {
                let Some(most) = most else { continue };
                let (rest, key) =
                    (most.saturating_sub(spent), key(scope, &format!("{what}s_per_day")));
                left.limits.push(format!("{} a day, {rest} left ({key})", count(most, what)));
            }
            left.refusal = left.refusal.or_else(|| too_much(scope, a_day, spent, price));
            let Some(most) = budget.calls_per_minute else { continue };
            let (rest, wait) = match rate(most) {
                Some(rate) => {
                    let paced = self.state.paced(bucket(scope, &id), rate, now()).await;
                    paced.map_err(|error| broken(&error))?
                }
                None => (0, Duration::ZERO),
            };
            let key = key(scope, "calls_per_minute");
            left.limits.push(format!("{} a minute, {rest} left ({key})", count(most, "call")));
            if rest == 0 {
                left.refusal = left.refusal.or_else(|| Some(too_soon(scope, most, wait)));
            }
        }
        Ok(left)
    }

    async fn spent(&self, scope: Scope, id: &str) -> Result<Spent, CallError> {
        let row = (scope == Scope::Package).then_some(id);
        self.state.spent(now().day(), row).await.map_err(|error| broken(&error))
    }
}

fn denied(why: String) -> CallError {
    CallError::new(Kind::Denied, why)
}

/// What a package may spend, and all of them together.
fn budgets(policy: &Policy, tool: &Tool) -> [(Scope, policy::policy::Budget); 2] {
    let rules = policy.of(&tool.package.canonical_id(), &tool.package.id);
    let of_package = rules.map(|rules| rules.budget).unwrap_or_default();
    [(Scope::Package, of_package), (Scope::Overall, policy.budget)]
}

fn of_a_day(budget: policy::policy::Budget) -> Budget {
    Budget { calls: budget.calls_per_day, cents: budget.cents_per_day }
}

/// What a call costs, in cents.
fn price(policy: &Policy, tool: &Tool) -> u64 {
    let rules = policy.of(&tool.package.canonical_id(), &tool.package.id);
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

/// The key of the policy that sets a budget.
fn key(scope: Scope, name: &str) -> String {
    match scope {
        Scope::Package => format!("`budget.{name}` of this package in policy.toml"),
        Scope::Overall => format!("`{name}` of `[budget]` in policy.toml"),
    }
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Why a call comes too soon.
fn too_soon(scope: Scope, most: u64, wait: Duration) -> String {
    let key = key(scope, "calls_per_minute");
    match most {
        0 => format!("your policy allows no calls a minute ({key})"),
        _ => format!(
            "your policy allows {} a minute ({key}); try again in {} s",
            count(most, "call"),
            wait.as_secs() + 1
        ),
    }
}

/// Why a call is too much for a day, where it is.
fn too_much(scope: Scope, budget: Budget, spent: Spent, price: u64) -> Option<String> {
    if let Some(most) = budget.calls.filter(|most| spent.calls >= *most) {
        let (calls, key) = (count(most, "call"), key(scope, "calls_per_day"));
        return Some(format!("your policy allows {calls} a day, and none is left ({key})"));
    }
    let most = budget.cents.filter(|most| spent.cents.saturating_add(price) > *most)?;
    let (cents, key) = (count(most, "cent"), key(scope, "cents_per_day"));
    let left = match most.saturating_sub(spent.cents) {
        0 => "and none is left".to_owned(),
        1 => format!("of which 1 is left, and the call costs {price}"),
        left => format!("of which {left} are left, and the call costs {price}"),
    };
    Some(format!("your policy allows {cents} a day, {left} ({key})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_as_it_is() {
        let budget = Budget { calls: Some(1), cents: Some(5) };
        let told = |calls, cents, price| {
            let told = too_much(Scope::Overall, budget, Spent { calls, cents }, price)?;
            Some(told.split(" (`").next().unwrap_or_default().to_owned())
        };
        assert_eq!(told(0, 3, 2), None);
        assert_eq!(told(1, 0, 2).unwrap(), "your policy allows 1 call a day, and none is left");
        assert_eq!(
            told(0, 4, 2).unwrap(),
            "your policy allows 5 cents a day, of which 1 is left, and the call costs 2"
        );
        assert_eq!(told(0, 5, 1).unwrap(), "your policy allows 5 cents a day, and none is left");
        // A free call is free where nothing is left.
        assert_eq!(told(0, 5, 0), None);
    }
}
