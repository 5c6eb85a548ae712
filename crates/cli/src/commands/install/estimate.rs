//! What the author of a package estimates that it costs, for its card.

use egress::Rule;
use install::Card;
use install::acquire::Reach;
use install::estimate::{Estimate, Gate, estimate};
use policy::Policy;

use crate::exit::Failure;
use crate::owner;
use crate::sources::trusted_certificates;

/// Asks for the estimate that a card speaks of, where it speaks of one. Whatever becomes of it stands on the card.
pub(super) fn ask(card: &mut Card, policy: &Policy, reach: Reach) -> Result<(), Failure> {
    let Some(url) = card.cost.as_ref().and_then(|cost| cost["estimate_url"].as_str()) else {
        return Ok(());
    };
    card.estimate = Some(match reach {
        Reach::Offline => Estimate::NotAsked,
        Reach::Kept | Reach::Fresh => {
            let rules = |hosts: &[String]| -> Vec<Rule> {
                hosts.iter().filter_map(|host| Rule::parse(host).ok()).collect()
            };
            let gate = Gate {
                typed: rules(&policy.network.allow),
                denied: rules(&policy.network.deny),
                certificates: trusted_certificates(&policy.sources),
            };
            owner::runtime()?.block_on(estimate(url, &gate))
        }
    });
    Ok(())
}

/// An estimate in words.
pub(crate) fn words(estimate: &Estimate) -> String {
    match estimate {
        Estimate::Given { monthly_estimate_cents: cents, basis } => {
            let basis = basis.as_ref().map(|words| format!(": {words}")).unwrap_or_default();
            let (dollars, cents) = (cents / 100, cents % 100);
            format!("{dollars}.{cents:02} USD a month, as its author says now{basis}")
        }
        Estimate::Unavailable { why } => format!("could not be had: {why}"),
        Estimate::NotAsked => "not asked for: nobody is asked with --offline".to_owned(),
    }
}
