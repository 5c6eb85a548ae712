//! Values that packages ask for: collected before they are installed, and kept with them.

use std::sync::Arc;

use manifest::model::Package;
use vault::{FileVault, Secret};

use super::inputs::{self, Values};
use super::place::{Installing, Prepared};
use crate::exit::Failure;
use crate::printer::line;
use crate::{installed, login_words, owner};

impl Installing<'_> {
    /// The values that a package asks for, and the vault, where it asks for any.
    pub(super) fn values(
        &self,
        package: &Package,
    ) -> Result<(Option<Arc<FileVault>>, Values), Failure> {
        if package.inputs.is_empty() && self.settings.is_empty() {
            return Ok((None, Vec::new()));
        }
        let vault = owner::vault(self.home, self.ask)?;
        let token = login_words::given_secret(package, &vault, self.home);
        let (typed, secrets, token) = (self.settings, self.secrets, token.as_deref());
        let given = inputs::Known { typed, secrets, token };
        let values = inputs::collect(package, given, &vault, self.ask, self.printer)?;
        Ok((Some(vault), values))
    }

    /// Refuses packages of which any lacks a value, where nobody can be asked: all that is missing at once.
    pub(crate) fn check_values<'p>(
        &self,
        packages: impl Iterator<Item = &'p Package>,
    ) -> Result<(), Failure> {
        if self.ask.is_possible() {
            return Ok(());
        }
        let mut failed: Vec<(String, Failure)> = packages
            .filter_map(|package| Some((package.canonical_id(), self.values(package).err()?)))
            .collect();
        match failed.len() {
            0 => Ok(()),
            1 => Err(failed.remove(0).1),
            number => {
                let message = format!("{} lack values", crate::commands::count(number, "package"));
                let exit = failed[0].1.exit;
                let told =
                    failed.iter().map(|(id, one)| format!("`{}`: {}", line(id), one.message));
                let failure = Failure::new(exit, message).details(told.collect::<Vec<_>>());
                let hints = failed.into_iter().flat_map(|(_, one)| one.hints);
                Err(hints.fold(failure, Failure::hint))
            }
        }
    }

    /// Keeps what was given for packages that are there already.
    pub(super) fn keep<'p>(
        &self,
        there: impl Iterator<Item = &'p Prepared> + Clone,
    ) -> Result<(), Failure> {
        if let Some(secret) = self.revoke_with {
            for one in there.clone() {
                self.revoke_with(secret, &one.card.id)?;
            }
        }
        let given = places(there)?;
        if given.is_empty() {
            return Ok(());
        }
        let vault = owner::vault(self.home, self.ask)?;
        for (place, value) in &given {
            vault.set(place, value).map_err(|error| owner::vault_failure(&error))?;
        }
        Ok(())
    }

    /// Writes down which secret revokes a package that is there already.
    fn revoke_with(&self, secret: &str, id: &str) -> Result<(), Failure> {
        let at = installed::home(self.home);
        let mut changing = at.lock()?;
        let Some(pinned) = changing.contents().lock.get(id).cloned() else { return Ok(()) };
        let key = pinned.key().map_err(|error| Failure::invalid(line(&error.to_string())))?;
        let mut record = at.record(&key, &pinned.folder())?;
        if record.beside.secret.as_deref() != Some(secret) {
            record.beside.secret = Some(secret.to_owned());
            changing.amend(record)?;
        }
        Ok(())
    }
}

/// Whether any value is another one than is kept.
pub(super) fn differ(prepared: &Prepared, vault: Option<&FileVault>) -> Result<bool, Failure> {
    let Some(vault) = vault else { return Ok(false) };
    for (place, value) in places([prepared])? {
        let kept = vault.get(&place).map_err(|error| owner::vault_failure(&error))?;
        if kept.is_none_or(|kept| kept.expose() != value.expose()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Where the values are kept that were given.
pub(super) fn places<'p>(
    prepared: impl IntoIterator<Item = &'p Prepared>,
) -> Result<Vec<(vault::Place, Secret)>, Failure> {
    let mut all = Vec::new();
    for Prepared { package, values, .. } in prepared {
        for (name, value) in values {
            let place = host::secrets::place(package, name);
            let place = place.map_err(|error| Failure::invalid(error.to_string()))?;
            all.push((place, value.clone()));
        }
    }
    Ok(all)
}
