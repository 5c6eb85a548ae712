//! What entries of a client's file were before they were swapped, kept in the vault: they may hold secrets.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use import::edit::Form;
use package::digest::Digest;
use vault::{FileVault, Owner, Place, Secret};

use crate::ask::Ask;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::owner::{self, vault_failure};

/// Whose they are: no package has an id without its dialect.
const OWNER: &str = "clients";

/// The longest path that is a name by itself.
const LONGEST: usize = 200;

/// The entries of one file, by what they are below and by their names.
pub(super) struct Originals {
    vault: Arc<FileVault>,
    place: Place,
    kept: BTreeMap<String, BTreeMap<String, String>>,
}

impl Originals {
    /// Those that are kept of a file.
    pub(super) fn of(path: &Path, home: &Home, ask: Ask) -> Result<Self, Failure> {
        let shown = path.display().to_string();
        let is_name = shown.chars().count() <= LONGEST && !shown.contains(char::is_control);
        let name = if is_name {
            shown
        } else {
            Digest::of(path.as_os_str().as_encoded_bytes()).to_string()
        };
        let place = Place::new(Owner::Package(OWNER.to_owned()), &name)
            .map_err(|error| Failure::invalid(error.to_string()))?;
        let vault = owner::vault(home, ask)?;
        let kept = vault.get(&place).map_err(|error| vault_failure(&error))?;
        let kept = kept.map(|text| serde_json::from_str(text.expose())).transpose();
        let kept = kept.map_err(|error| {
            Failure::new(Exit::Unavailable, format!("what is kept of `{name}` cannot be read"))
                .cause(error)
        })?;
        Ok(Self { vault, place, kept: kept.unwrap_or_default() })
    }

    /// What an entry was.
    pub(super) fn get(&self, form: &Form, name: &str) -> Option<&String> {
        self.kept.get(&key(form))?.get(name)
    }

    /// Keeps what entries are now; what is kept of one already is older, and gone.
    pub(super) fn keep(
        &mut self,
        form: &Form,
        entries: Vec<(String, String)>,
    ) -> Result<(), Failure> {
        self.kept.entry(key(form)).or_default().extend(entries);
        self.save()
    }

    /// Forgets what an entry was.
    pub(super) fn forget(&mut self, form: &Form, name: &str) {
        if let Some(entries) = self.kept.get_mut(&key(form)) {
            entries.remove(name);
        }
        self.kept.retain(|_, entries| !entries.is_empty());
    }

    /// Puts it on the disk.
    pub(super) fn save(&self) -> Result<(), Failure> {
        if self.kept.is_empty() {
            return self.vault.remove(&self.place).map(drop).map_err(|error| vault_failure(&error));
        }
        let text = serde_json::to_string(&self.kept).unwrap_or_default();
        let secret = Secret::new(text).map_err(|error| {
            let message = "what the file of the client was cannot be kept, so it is left as it is";
            Failure::invalid(message).cause(error)
        })?;
        self.vault.set(&self.place, &secret).map_err(|error| vault_failure(&error))
    }
}

/// What entries are below.
fn key(form: &Form) -> String {
    match form {
        Form::Json(path) => path.join("/"),
        Form::Toml => "toml".to_owned(),
    }
}
