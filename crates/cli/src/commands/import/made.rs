//! Drafts of what a file holds, and their way into the home.

use std::path::Path;

use host::secrets::place;
use import::config::{read_json, read_toml};
use import::edit::{Form, Serves, serves};
use import::openapi::{self, Wanted};
use import::{Around, Config, Draft, Files, Found, Recognised, of_entry, plain_name, recognise};
use install::acquire::Reach;
use install::{Parcel, Put, Source as From};
use manifest::model::Trust;
use policy::Policy;
use vault::Secret;

use super::ImportArgs;
use super::machine::Disk;
use super::source::Source;
use super::started;
use super::told::{Report, State, Told};
use crate::ask::Ask;
use crate::commands::install::{
    Agreement, Installing, Lent, OnSmokeFail, Similar, check_allowed, put_name,
};
use crate::exit::Failure;
use crate::fetch::{Fetched, Fetching};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::remote::{Offline, Which};
use crate::{installed, owner, shell};

/// All that is needed to import.
pub(super) struct Making<'m> {
    pub(super) args: &'m ImportArgs,
    pub(super) policy: &'m Policy,
    pub(super) home: &'m Home,
    pub(super) ask: Ask,
    pub(super) json_wanted: bool,
    pub(super) printer: Printer,
    /// What was made so far.
    pub(super) made: Vec<Made>,
}

/// What tells one package that was made from another.
pub(super) struct Made {
    id: String,
    version: String,
    secrets: Vec<(String, Secret)>,
}

impl Making<'_> {
    /// Adds what a file holds.
    pub(super) fn gather(
        &mut self,
        index: usize,
        source: &Source,
        wanted: &Wanted,
        report: &mut Report,
    ) {
        let at = report.entries.len();
        if let Err(why) = self.gather_from(source, wanted, report) {
            let name = source.path.file_name().map(|name| name.to_string_lossy().into_owned());
            report.entries.push(told(name.unwrap_or_default(), source, State::Refused(why)));
        }
        for entry in &mut report.entries[at..] {
            entry.source = index;
        }
    }

    fn gather_from(
        &mut self,
        source: &Source,
        wanted: &Wanted,
        report: &mut Report,
    ) -> Result<(), Vec<String>> {
        let bytes = source.read().map_err(|failure| words(&failure))?;
        let said = |why: &dyn std::fmt::Display| vec![why.to_string()];
        let form = match &source.form {
            Some(form) => form.clone(),
            None => match recognise(&bytes).map_err(|why| vec![why])? {
                Recognised::Json(path) => Form::Json(path),
                Recognised::Toml => Form::Toml,
                Recognised::OpenApi(document) => {
                    report.documents += 1;
                    let draft = openapi::draft(&document, wanted).map_err(|why| vec![why])?;
                    self.push(draft.name.clone(), source, Ok(draft), report);
                    return Ok(());
                }
                Recognised::Package => return self.package(source, report),
            },
        };
        let config = match &form {
            Form::Json(path) => read_json(&bytes, path).map_err(|why| said(&why))?,
            Form::Toml => read_toml(&bytes).map_err(|why| said(&why))?,
        };
        report.names.extend(config.entries.iter().map(|found| found.name.clone()));
        for found in &config.entries {
            if self.args.only.is_empty() || self.args.only.contains(&found.name) {
                self.entry(found, &config, source, report);
            }
        }
        Ok(())
    }

    fn entry(&mut self, found: &Found, config: &Config, source: &Source, report: &mut Report) {
        let name = found.name.clone();
        let entry = match &found.entry {
            Ok(entry) => entry,
            Err(why) => {
                report.entries.push(told(name, source, State::Refused(vec![why.clone()])));
                return;
            }
        };
        if let Some(ours) = serves(entry) {
            let mut left = told(name, source, State::Left("it is served by haft already"));
            left.id = match ours {
                Serves::Package(id) => Some(id),
                Serves::Installed { .. } => None,
            };
            report.entries.push(left);
            return;
        }
        if !entry.enabled {
            report.entries.push(told(name, source, State::Left("it is switched off there")));
            return;
        }
        let folder = source.project.as_deref().and_then(Path::to_str);
        let around = Around { inputs: &config.inputs, folder, machine: &Disk };
        let plain = plain_name(self.args.called.as_deref().unwrap_or(&name));
        let made = |plain: &str| of_entry(plain, entry, &around);
        let draft = made(&plain).and_then(|draft| match self.clash(&draft, source) {
            None => Ok(draft),
            // Two clients may call two servers the same.
            Some(why) => match source.client {
                Some(client) if self.args.called.is_none() => {
                    let draft = made(&format!("{plain}-{}", client.name()))?;
                    self.clash(&draft, source).map_or(Ok(draft), Err)
                }
                _ => Err(why),
            },
        });
        self.push(name, source, draft, report);
    }

    fn push(
        &mut self,
        name: String,
        source: &Source,
        draft: Result<Draft, String>,
        report: &mut Report,
    ) {
        let entry = match draft {
            Ok(mut draft) => {
                keep_within(source, &mut draft);
                let id = draft.package.canonical_id();
                let version = draft.package.semver();
                let secrets = draft.secrets.clone();
                self.made.push(Made { id: id.clone(), version: version.clone(), secrets });
                let (warnings, version) = (std::mem::take(&mut draft.warnings), Some(version));
                let state = State::Ready(Box::new(draft));
                Told { id: Some(id), version, warnings, ..told(name, source, state) }
            }
            Err(why) => told(name, source, State::Refused(vec![why])),
        };
        report.entries.push(entry);
    }

    /// Why a draft cannot have its id: another server has it, which is set up otherwise.
    fn clash(&self, draft: &Draft, source: &Source) -> Option<String> {
        let (id, version) = (draft.package.canonical_id(), draft.package.semver());
        if let Some(made) = self.made.iter().find(|made| made.id == id) {
            let is_same = made.version == version && is_equal(&made.secrets, &draft.secrets);
            let why = || format!("another server that is called `{}` is imported, too", draft.name);
            return (!is_same).then(why);
        }
        let contents = installed::home(self.home).read().ok()?;
        let there = contents.called(&id).into_iter().find_map(|one| one.pinned.cloned());
        let there = there.filter(|there| there.id == id)?;
        let is_from_here = matches!(&there.source, From::Imported(path) if *path == source.shown());
        if is_from_here || (there.version == version && self.has_secrets(draft)) {
            return None;
        }
        Some(format!(
            "`{id}` is installed already and comes from elsewhere; --as gives this one another name"
        ))
    }

    /// Whether the secrets of a draft are kept for its package already.
    fn has_secrets(&self, draft: &Draft) -> bool {
        if draft.secrets.is_empty() {
            return true;
        }
        let Ok(vault) = owner::vault(self.home, self.ask) else { return false };
        draft.secrets.iter().all(|(name, secret)| {
            let kept =
                place(&draft.package, name).ok().and_then(|at| vault.get(&at).ok().flatten());
            kept.is_some_and(|kept| kept.expose() == secret.expose())
        })
    }

    /// A file that is a package already.
    fn package(&self, source: &Source, report: &mut Report) -> Result<(), Vec<String>> {
        if let Some(called) = &self.args.called {
            let called = line(called);
            return Err(vec![format!(
                "it is a package, which has a name of its own; --as {called} names what is made of settings and documents"
            )]);
        }
        let fetched = self.fetch(source).map_err(|failure| words(&failure))?;
        for piece in &fetched.parcel.pieces {
            let package = &piece.package;
            report.names.push(package.id.clone());
            if !self.args.only.is_empty() && !self.args.only.contains(&package.id) {
                continue;
            }
            let asked = package.inputs.iter().map(|input| input.name.clone()).collect();
            report.entries.push(Told {
                id: Some(package.canonical_id()),
                version: Some(package.semver()),
                ..told(package.id.clone(), source, State::Package(asked))
            });
        }
        Ok(())
    }

    fn fetch(&self, source: &Source) -> Result<Fetched, Failure> {
        let (which, offline) = (Which::default(), Offline::default());
        let Self { home, ask, json_wanted, printer, .. } = *self;
        let fetching = Fetching {
            home,
            ask,
            which: &which,
            offline: &offline,
            id: None,
            only: None,
            json_wanted,
            printer,
        };
        fetching.fetch(&source.shown())
    }

    fn agreed(&self) -> Agreement {
        if self.args.yes { Agreement::Beforehand } else { Agreement::Asked }
    }

    /// Says of what the policy refuses that it would be refused.
    pub(super) fn foresee(&self, entry: &mut Told) {
        if let State::Ready(draft) = &entry.state
            && let Err(failure) =
                check_allowed(&draft.package, Trust::Local, self.agreed(), self.policy)
        {
            entry.state = State::Refused(words(&failure));
        }
    }

    /// Installs what can be; what cannot says why.
    pub(super) fn install(&self, entry: &mut Told, sources: &[Source]) {
        let source = &sources[entry.source];
        let put = match &entry.state {
            State::Ready(draft) => self.install_draft(draft, source),
            State::Package(_) => self.install_package(entry, source),
            _ => return,
        };
        let id = entry.id.clone().unwrap_or_default();
        entry.state = match put {
            Err(failure) => State::Refused(words(&failure)),
            Ok((put, is_server)) => {
                let asked = if is_server {
                    started::offered(&id, self.home, self.printer).map(Some)
                } else {
                    Ok(None)
                };
                match asked {
                    Ok(tools) => {
                        entry.tools = tools;
                        State::Installed(put_name(put))
                    }
                    Err(failure) => State::Unstarted(words(&failure)),
                }
            }
        };
    }

    fn install_draft(&self, draft: &Draft, source: &Source) -> Result<(Put, bool), Failure> {
        let parcel = Parcel::pack(&Files(&draft.files), &draft.name);
        let parcel = parcel.map_err(|error| Failure::invalid(error.to_string()))?;
        let fetched = Fetched {
            parcel,
            source: From::Imported(source.shown()),
            archive: None,
            trust: Trust::Local,
            because: match source.client {
                Some(client) => format!("it was made of the settings of {}", client.name()),
                None => format!("it was made of {}, which you named", source.shown()),
            },
            signature: "unsigned".to_owned(),
            registry: None,
        };
        let Some(piece) = fetched.parcel.pieces.first() else {
            return Err(Failure::invalid("it would be no package"));
        };
        let mut lent: Vec<_> = draft.reads.iter().cloned().map(Lent::Read).collect();
        if let Some(host) = &draft.private_host {
            lent.push(Lent::Host(owner::host_rule(host)?.to_string()));
        }
        let asks = |name: &String| draft.package.inputs.iter().any(|input| input.name == *name);
        let put = self.put(&fetched, piece, asks, &draft.secrets, &lent)?;
        Ok((put, draft.package.is_server()))
    }

    fn install_package(&self, entry: &Told, source: &Source) -> Result<(Put, bool), Failure> {
        let fetched = self.fetch(source)?;
        let is_meant = |piece: &&install::Piece| Some(piece.package.canonical_id()) == entry.id;
        let Some(piece) = fetched.parcel.pieces.iter().find(is_meant) else {
            return Err(Failure::invalid("the file was changed meanwhile"));
        };
        let asks = |name: &String| piece.package.inputs.iter().any(|input| input.name == *name);
        let put = self.put(&fetched, piece, asks, &[], &[])?;
        Ok((put, piece.package.is_server()))
    }

    /// Puts one package in its place, with the values that it asks for.
    fn put(
        &self,
        fetched: &Fetched,
        piece: &install::Piece,
        asks: impl Fn(&String) -> bool,
        secrets: &[(String, Secret)],
        lent: &[Lent],
    ) -> Result<Put, Failure> {
        let settings: Vec<_> =
            self.args.env.iter().filter(|(name, _)| asks(name)).cloned().collect();
        let installing = Installing {
            policy: self.policy,
            home: self.home,
            ask: self.ask,
            json_wanted: self.json_wanted,
            printer: self.printer,
            agreed: self.agreed(),
            surfaces: self.agreed(),
            cards: None,
            settings: &settings,
            secrets,
            lent,
            similar: Similar::Asked,
            revoke_with: None,
            on_smoke_fail: OnSmokeFail::Refuse,
            reach: Reach::Kept,
        };
        let mut draft = installed::home(self.home).draft()?;
        let prepared = installing.prepare(fetched, piece, None, &mut draft)?;
        let done = installing.put(draft, vec![prepared], &[])?;
        Ok(done.first().map_or(Put::There, |one| one.put))
    }
}

/// Takes back what a file of a project would be lent outside of it: only its owner's word leads there.
fn keep_within(source: &Source, draft: &mut Draft) {
    let Some(project) = source.bounds().and_then(|project| project.canonicalize().ok()) else {
        return;
    };
    let id = shell::word(&draft.package.canonical_id());
    let (within, outside): (Vec<_>, Vec<_>) =
        draft.reads.drain(..).partition(|path| Path::new(path).starts_with(&project));
    draft.reads = within;
    for path in outside {
        let path = shell::word(&path);
        draft.warnings.push(format!("the project has not got it: `haft grant {id} --read {path}`"));
    }
    if let Some(host) = draft.private_host.take() {
        let message = format!("only your word leads there: `haft grant {id} --host {host}`");
        draft.warnings.push(message);
    }
}

fn is_equal(one: &[(String, Secret)], other: &[(String, Secret)]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|((name, secret), (also, same))| name == also && secret.expose() == same.expose())
}

fn told(name: String, source: &Source, state: State) -> Told {
    let from = source.shown();
    Told {
        name,
        from,
        source: 0,
        id: None,
        version: None,
        state,
        warnings: Vec::new(),
        tools: None,
    }
}

/// A failure in a few lines.
fn words(failure: &Failure) -> Vec<String> {
    let mut words = vec![failure.message.clone()];
    words.extend(failure.details.iter().flat_map(|detail| detail.lines()).map(str::to_owned));
    words.extend(failure.causes.iter().map(|cause| format!("caused by: {cause}")));
    words.extend(failure.hints.iter().map(|hint| format!("hint: {hint}")));
    words
}
