//! Chains.

use manifest::chain::{Flow, MOST_STEPS};
use manifest::document::{Options, read};
use proptest::prelude::prop_assert;

use super::{Kept, halves};

/// A chain, then, after a NUL, what is known when a step is about to be made: a step waits only for earlier ones, and what a
/// mapping makes of values is an input or a member that is missed, whatever they are.
pub fn chain(bytes: &[u8]) -> Kept {
    let (manifest, known) = halves(bytes);
    let Ok((_, packages)) = read(manifest, &Options::default()) else { return Ok(()) };
    let known = serde_json::from_slice(known).unwrap_or_default();
    for flow in packages.iter().filter_map(Flow::of) {
        let flow = match flow {
            Ok(flow) => flow,
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                continue;
            }
        };
        prop_assert!(flow.steps.len() <= MOST_STEPS && flow.steps.len() == flow.after.len());
        for (at, (step, after)) in flow.steps.iter().zip(&flow.after).enumerate() {
            prop_assert!(after.iter().all(|earlier| *earlier < at), "{after:?} at {at}");
            match step.input(&known) {
                Ok(input) => prop_assert!(input.len() <= step.takes.len()),
                Err(missing) => {
                    prop_assert!(step.takes.iter().any(|(member, _)| *member == missing.member));
                    prop_assert!(!step.optional.contains(&missing.member));
                }
            }
            for path in step.paths() {
                prop_assert!(!path.matches(&known) || path.find(&known).is_some(), "{path}");
            }
        }
    }
    Ok(())
}
