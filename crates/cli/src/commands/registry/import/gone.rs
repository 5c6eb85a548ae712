//! What is here and not, or not any more, at the source.

use std::path::{Path, PathBuf};

use package::digest::Digest;
use registry::client::error::Kind;
use registry::import::seen::{Gone, Seen};
use registry::{Version, Yank, identity};
use serde_json::Value;

use super::{Fate, Import, ImportArgs, count, told};
use crate::exit::Failure;
use crate::home::Home;
use crate::printer::line;
use crate::{output, owner, remote};

/// Where in the home it is kept what came from which source.
const FOLDER: &str = "imports";

impl Import<'_> {
    /// Tells of versions here that a source does not list which lists all versions of what it has. Who put them here is
    /// not known, so they are left alone.
    pub(super) fn look_for_missing(&mut self) -> Result<(), Failure> {
        let ImportArgs { latest, updated_since, cursor, .. } = self.args;
        if *latest || updated_since.is_some() || cursor.is_some() {
            return Ok(());
        }
        let runtime = owner::runtime()?;
        for name in self.told.names() {
            let Some(listed) = self.listed.get(&name) else { continue };
            let here = match runtime.block_on(self.remote.versions(&name)) {
                Ok(here) => here,
                // It would be imported.
                Err(error) if error.kind() == Kind::NotFound => continue,
                Err(error) => return Err(remote::failed(self.remote.name(), &error)),
            };
            let is_missing = |one: &&Version| !one.yanked && !listed.contains(&one.version);
            let missing: Vec<Value> = here
                .versions
                .iter()
                .filter(is_missing)
                .map(|one| told::known(&here.id, &here.name, &one.version, &one.sha256))
                .collect();
            missing.into_iter().try_for_each(|known| self.miss(known))?;
        }
        Ok(())
    }

    /// Takes back what came from the source before and is not listed there any more, and remembers what has come from
    /// it, also where the import was broken off: then nothing is known to be gone.
    pub(super) fn remember(
        &mut self,
        home: &Home,
        done: Result<(), Failure>,
    ) -> Result<(), Failure> {
        let path = self.record(home);
        let mut seen = self.seen(&path);
        let before = seen.clone();
        // What was there already may be of others.
        for one in &self.told.imported {
            let text = |key: &str| one[key].as_str().unwrap_or_default();
            if self.listed.contains_key(text("name")) {
                seen.note(text("name"), text("version"), text("sha256"));
            }
        }
        let done = done.and_then(|()| self.look_for_gone(&mut seen));
        if !self.args.dry_run && seen != before {
            let folder = output::make_private_folder(&home.path().join(FOLDER));
            if let Err(failure) = folder.and_then(|()| output::replace(&path, &seen.to_bytes())) {
                // What was imported is there all the same.
                self.warn(&format!("{}, so nothing of it is missed later", failure.message));
            }
        }
        done
    }

    fn look_for_gone(&mut self, seen: &mut Seen) -> Result<(), Failure> {
        let ImportArgs { latest, updated_since, cursor, search, .. } = self.args;
        let is_whole = self.is_list && updated_since.is_none() && cursor.is_none();
        if !is_whole || *latest || search.is_some() {
            return Ok(());
        }
        let gone = match seen.gone(|name| self.listed.contains_key(name)) {
            Gone::Versions(gone) => gone,
            Gone::TooMany(gone, all) => {
                let source = line(&self.source());
                let message = format!(
                    "{gone} of {} that came from `{source}` are not listed there any more: so \
                     many that the list may be cut, and nothing is taken back",
                    count(all, "tool")
                );
                self.warn(&message);
                return self.miss_all(seen);
            }
        };
        let reason = format!("not listed in {} any more", self.source());
        for (name, version, digest) in gone {
            let said = "it is not listed there any more";
            let what = (name.as_str(), version.as_str(), digest.as_str());
            match self.take_back(what, said, &Yank::because(&reason))? {
                // What is not here as it was there is nobody's business any more.
                Fate::Skipped(_) => seen.forget(&name, &version),
                fate => {
                    if matches!(fate, Fate::Yanked(_)) {
                        seen.forget(&name, &version);
                    }
                    self.settle(&format!("{name} {version}"), fate)?;
                }
            }
        }
        Ok(())
    }

    fn miss_all(&mut self, seen: &Seen) -> Result<(), Failure> {
        let versions = seen.versions().filter(|(name, ..)| !self.listed.contains_key(*name));
        let missing: Vec<Value> = versions
            .map(|(name, version, sha256)| {
                told::known(&identity::with_prefix(name), name, version, sha256)
            })
            .collect();
        missing.into_iter().try_for_each(|known| self.miss(known))
    }

    fn miss(&mut self, known: Value) -> Result<(), Failure> {
        self.say("missing", &told::name(&known))?;
        self.told.missing.push(known);
        Ok(())
    }

    /// The file that says what came from this source into this registry.
    fn record(&self, home: &Home) -> PathBuf {
        let source = &self.args.source;
        let path = Path::new(source).canonicalize().ok().filter(|_| !source.contains("://"));
        let source = path.map_or_else(|| source.clone(), |path| path.display().to_string());
        let both = format!("{}\n{source}", self.remote.address().url());
        home.path().join(FOLDER).join(format!("{}.json", Digest::of(both.as_bytes())))
    }

    /// What the file says. One that cannot be read is begun anew: then nothing is known to be gone.
    fn seen(&self, path: &Path) -> Seen {
        let read = match std::fs::read(path) {
            Ok(bytes) => Seen::read(&bytes).map_err(|error| error.to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Seen::default()),
            Err(error) => Err(error.to_string()),
        };
        read.unwrap_or_else(|why| {
            self.warn(&format!("`{}` cannot be read and is begun anew: {why}", path.display()));
            Seen::default()
        })
    }

    fn warn(&self, message: &str) {
        self.bar.aside(|| self.printer.warn(message));
    }
}
