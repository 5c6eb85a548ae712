//! Whether a package and the paths granted to it are still those that the owner spoke of.

use std::path::Path;

use policy::{Consent, GrantKind, Grants};
use vault::Owner;

use super::{Host, Known};
use crate::call::Tool;
use crate::confine::unmoved;
use crate::error::{CallError, Kind};
use crate::secrets::refusal;

impl Host {
    /// Refuses a package that has the id of another: what the owner granted and keeps for an id is for
    /// what they had called by it when they did, or else call by it first, until they say otherwise.
    pub(super) fn check_place(&self, tool: &Tool, known: &Known) -> Result<(), CallError> {
        let Some(first) = known.places.first().or(known.last_place.as_ref()) else { return Ok(()) };
        if is_at_home(tool, known) || !self.is_kept(tool, known)? {
            return Ok(());
        }
        let (id, place) = (tool.package.canonical_id(), tool.place.display());
        let message = match first.as_str() {
            "" => format!(
                "you took back where `{id}` is called from, so what you granted and keep for it is for none, and this is `{place}`"
            ),
            first => format!(
                "`{id}` was called from `{first}` so far, and this is `{place}`; what you granted and keep for it is not for another"
            ),
        };
        Err(CallError::new(Kind::Denied, message)
            .with("granted", "from")
            .with("path", place.to_string()))
    }

    /// Whether there is anything that a package of this id would be given, or spared.
    fn is_kept(&self, tool: &Tool, known: &Known) -> Result<bool, CallError> {
        let id = tool.package.canonical_id();
        let is_said = known.grants.iter().next().is_some()
            || known.memory.is_known
            || !known.memory.remembered.is_empty()
            || known.is_signed_in
            || self.settings.policy.of(&id, &tool.package.id).is_some();
        if is_said {
            return Ok(true);
        }
        let listed = self.vault.list().map_err(|error| {
            refusal::of_vault(format!("the vault cannot be used: {error}"), &error)
        })?;
        Ok(listed.iter().any(|one| *one.place.owner() == Owner::Package(id.clone())))
    }

    /// Remembers where a package is called from first, where anything is kept for it.
    pub(super) async fn note_place(&self, tool: &Tool, known: &Known) -> Result<(), CallError> {
        if known.places.is_empty()
            && tool.consent == Consent::ByPath
            && self.is_kept(tool, known)?
        {
            self.records.note_place(tool).await?;
        }
        Ok(())
    }
}

/// Whether a package is where it was called from before; one that was installed is where we put it.
fn is_at_home(tool: &Tool, known: &Known) -> bool {
    let is_here = |place: &String| Path::new(place) == tool.place;
    // What was kept since the last call is for what was called then.
    let is_last = known.places.is_empty() && known.last_place.as_ref().is_some_and(is_here);
    matches!(tool.consent, Consent::ByCard { .. }) || is_last || known.places.iter().any(is_here)
}

/// Refuses a granted path that has become a link since.
pub(super) fn check_unmoved(grants: &Grants) -> Result<(), CallError> {
    let paths = grants.iter().filter(|one| matches!(one.kind, GrantKind::Read | GrantKind::Write));
    for grant in paths {
        unmoved(&grant.value, grant.kind)?;
    }
    Ok(())
}
