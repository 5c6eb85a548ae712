//! What is refused whoever agrees to it: by the policy, or by a lock.

use install::record::How;
use install::{Pinned, Ready};
use manifest::model::{Package, Trust};
use policy::Policy;

use super::Agreement;
use crate::exit::{Exit, Failure};
use crate::printer::line;

/// Refuses what the policy does not let in, whoever agrees to it.
pub(crate) fn check_allowed(
    package: &Package,
    trust: Trust,
    agreed: Agreement,
    policy: &Policy,
) -> Result<(), Failure> {
    let id = package.canonical_id();
    let rules = policy.of(&id, &package.id);
    if rules.is_some_and(|rules| rules.locked) {
        let message = format!("your policy locks `{}` to what the baseline says of it", line(&id));
        return Err(Failure::new(Exit::Denied, message));
    }
    match rules.and_then(|rules| rules.allow) {
        Some(true) => return Ok(()),
        Some(false) => {
            let message = format!("your policy refuses `{}`", line(&id));
            return Err(Failure::new(Exit::Denied, message));
        }
        None => {}
    }
    let is_asked =
        matches!(agreed, Agreement::Asked | Agreement::Elsewhere | Agreement::Before(How::Asked));
    if policy.trust.allow.contains(&trust) || (trust == Trust::Community && is_asked) {
        return Ok(());
    }
    let failure =
        Failure::new(Exit::Denied, format!("trust_level not allowed by policy: {}", trust.name()));
    Err(match trust {
        Trust::Community => failure
            .hint("without --yes you are shown its card, and may accept it")
            .hint("`allow = [\"local\", \"verified\", \"community\"]` below `[trust]` in policy.toml lets such packages in"),
        _ => failure.hint(format!(
            "`allow = true` below `[package.\"{}\"]` in policy.toml lets this one in",
            line(&id)
        )),
    })
}

/// Refuses what is not what a lock says.
pub(super) fn check_locked(
    ready: &Ready,
    locked: &Pinned,
    package: &Package,
) -> Result<(), Failure> {
    let found = &ready.record.pinned;
    if (&found.version, &found.kind) != (&locked.version, &locked.kind)
        || (locked.surface.is_none() && found.actions != locked.actions)
    {
        let message = format!(
            "`{}` {} is not what the lock says of it: that is {} with {}",
            line(&found.id),
            line(&found.version),
            line(&locked.version),
            crate::commands::count(locked.actions.len(), "action")
        );
        return Err(Failure::invalid(message)
            .hint("`haft lock` writes a lockfile; it is not written by hand"));
    }
    let differs = if found.package != locked.package {
        Some(("its files", found.package, locked.package))
    } else if found.manifest != locked.manifest {
        Some(("its manifest", found.manifest, locked.manifest))
    } else {
        match (found.surface, locked.surface) {
            (Some(found), Some(locked)) if found != locked => {
                Some(("what its server offers", found, locked))
            }
            (None, Some(_)) if !package.requires_oauth => {
                let message = format!(
                    "the server of `{}` was not asked what it offers, and the lock says what that has to be",
                    line(&locked.id)
                );
                return Err(Failure::new(Exit::Unavailable, message));
            }
            _ => None,
        }
    };
    let Some((what, found, wanted)) = differs else { return Ok(()) };
    let message = format!(
        "{what} of `{}` {} differ from the lock: sha256:{} was locked, sha256:{} is there",
        line(&locked.id),
        line(&locked.version),
        wanted.0,
        found.0
    );
    Err(Failure::invalid(message))
}
