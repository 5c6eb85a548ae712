//! What can be called in a folder: what the user's home has, and what the home of a project lays over it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use manifest::model::Trust;

use super::Project;
use crate::catalog::{Brief, id_in_catalog};
use crate::contents::{Contents, Layer, Listed, called};
use crate::error::HomeError;
use crate::home::Home;
use crate::pinned::Pinned;
use crate::record::Record;

/// What the user's home has, with the home of a project over it where one counts.
#[derive(Debug)]
pub struct View {
    home: Home,
    user: Contents,
    project: Option<Project>,
}

impl View {
    /// The user's home, and the home of a project that is trusted.
    pub fn new(home: &Home, project: Option<Project>) -> Result<Self, HomeError> {
        Ok(Self { home: home.clone(), user: home.read()?, project })
    }

    /// What the user's home has.
    pub fn user(&self) -> &Contents {
        &self.user
    }

    /// Where the project's home is, where one counts.
    pub fn place(&self) -> Option<&Path> {
        self.project.as_ref().map(Project::folder)
    }

    /// Everything that can be called, by id. What a project lays over something may only narrow it: what is switched off
    /// stays so, and nothing is trusted further than the user's home says.
    pub fn listed(&self) -> Vec<Listed<'_>> {
        let mut listed = self.user.listed();
        for mut over in self.of_project() {
            match listed.iter_mut().find(|one| one.id == over.id) {
                Some(under) => {
                    over.enabled &= under.enabled;
                    over.trust = over.trust.min(under.trust);
                    *under = over;
                }
                None => listed.push(over),
            }
        }
        listed.sort_by(|a, b| a.id.cmp(&b.id));
        listed
    }

    /// Those that a name stands for: an id as a whole first, then without its dialect or namespace.
    pub fn called(&self, name: &str) -> Vec<Listed<'_>> {
        called(self.listed(), name)
    }

    /// How a package that is pinned came into the user's home, where it is there with the same digests. What lies in
    /// the folder of a project is never run: nobody has agreed to it.
    pub fn agreed(&self, pinned: &Pinned) -> Option<Record> {
        let key = pinned.key().ok()?;
        let record = self.home.record(&key, &pinned.folder()).ok()?;
        let same = |one: &Pinned| (one.id.clone(), one.version.clone(), one.package, one.manifest);
        (same(&record.pinned) == same(pinned)).then_some(record)
    }

    fn of_project(&self) -> Vec<Listed<'_>> {
        let Some(project) = &self.project else { return Vec::new() };
        let by_id = |contents: &'_ Contents| -> HashMap<String, usize> {
            let ids = contents.lock.packages().iter().map(id_in_catalog).map(str::to_owned);
            ids.zip(0..).collect()
        };
        let contents = project.contents();
        let (locked, of_user) = (by_id(contents), by_id(&self.user));
        let pinned = |id: &str| {
            let own = locked.get(id).map(|at| &contents.lock.packages()[*at]);
            own.or_else(|| of_user.get(id).map(|at| &self.user.lock.packages()[*at]))
        };
        let mut entries: BTreeMap<&str, (&Brief, Trust)> = BTreeMap::new();
        for brief in contents.base.iter().chain(&contents.local) {
            let under = entries.get(brief.id.as_str()).map_or(Trust::Local, |(_, trust)| *trust);
            entries.insert(&brief.id, (brief, brief.trust().min(under)));
        }
        let most = |pinned: Option<&Pinned>| {
            let agreed = pinned.and_then(|pinned| self.agreed(pinned));
            let trust = agreed.and_then(|record| Trust::named(&record.trust));
            trust.unwrap_or(Trust::Untrusted)
        };
        let declared = entries.iter().map(|(id, (brief, trust))| {
            let pinned = pinned(id);
            let mut one = Listed::new(brief, pinned, Layer::Project, (*trust).min(most(pinned)));
            if let Some(pinned) = pinned {
                one.version = &pinned.version;
            }
            one
        });
        let is_bare = |pinned: &&Pinned| !entries.contains_key(id_in_catalog(pinned));
        let only_locked = contents.lock.packages().iter().filter(is_bare).filter_map(|pinned| {
            Some(Listed {
                id: pinned.id.clone(),
                version: &pinned.version,
                dialect: pinned.parted()?.0,
                kind: &pinned.kind,
                layer: Layer::Project,
                enabled: true,
                trust: most(Some(pinned)),
                actions: pinned.actions.iter().map(String::as_str).collect(),
                pinned: Some(pinned),
            })
        });
        declared.chain(only_locked).collect()
    }
}
