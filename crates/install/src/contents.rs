//! What is in a home: what was installed, what its catalogs declare, what was revoked.

use manifest::dialect::Dialect;
use manifest::model::Trust;

use crate::catalog::{Brief, id_in_catalog};
use crate::lockfile::Lockfile;
use crate::pinned::Pinned;
use crate::revoked::Revocations;

/// What is in a home.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// What is installed.
    pub lock: Lockfile,
    /// What was revoked.
    pub revoked: Revocations,
    pub(crate) local: Vec<Brief>,
    pub(crate) base: Vec<Brief>,
}

/// A package that can be called, or could be if it were switched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<'c> {
    /// Its id, with its dialect.
    pub id: String,
    /// Its version.
    pub version: &'c str,
    /// Its dialect.
    pub dialect: Dialect,
    /// What kind of capability it is.
    pub kind: &'c str,
    /// Which layer it is in.
    pub layer: Layer,
    /// Whether it may be called.
    pub enabled: bool,
    /// How far it is trusted.
    pub trust: Trust,
    /// What can be called, by name.
    pub actions: Vec<&'c str>,
    /// What is installed, where it is not only declared.
    pub pinned: Option<&'c Pinned>,
}

/// A layer of what can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The baseline.
    Base,
    /// What was installed, or written above the baseline.
    Local,
    /// What the home of a project adds.
    Project,
}

impl Layer {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Local => "local",
            Self::Project => "project",
        }
    }
}

impl Contents {
    /// Everything that can be called, by id.
    pub fn listed(&self) -> Vec<Listed<'_>> {
        let installed: std::collections::HashMap<&str, &Pinned> =
            self.lock.packages().iter().map(|pinned| (id_in_catalog(pinned), pinned)).collect();
        let over: std::collections::HashSet<&str> =
            self.local.iter().map(|brief| brief.id.as_str()).collect();
        let under: std::collections::HashMap<&str, &Brief> =
            self.base.iter().map(|brief| (brief.id.as_str(), brief)).collect();
        let mut listed: Vec<_> = self
            .local
            .iter()
            .map(|brief| {
                let trust = under.get(brief.id.as_str()).map_or(Trust::Local, |base| base.trust());
                let pinned = installed.get(brief.id.as_str()).copied();
                Listed::new(brief, pinned, Layer::Local, trust)
            })
            .chain(
                self.base
                    .iter()
                    .filter(|brief| !over.contains(brief.id.as_str()))
                    .map(|brief| Listed::new(brief, None, Layer::Base, Trust::Local)),
            )
            .collect();
        listed.sort_by(|a, b| a.id.cmp(&b.id));
        listed
    }

    /// The ids in the local catalog.
    pub(crate) fn listed_locally(&self) -> impl Iterator<Item = &str> {
        self.local.iter().map(|brief| brief.id.as_str())
    }

    /// Those that a name stands for: an id as a whole first, then without its dialect or namespace.
    pub fn called(&self, name: &str) -> Vec<Listed<'_>> {
        called(self.listed(), name)
    }
}

/// Those of a list that a name stands for.
pub(crate) fn called<'c>(mut listed: Vec<Listed<'c>>, name: &str) -> Vec<Listed<'c>> {
    if let Some(at) = listed.iter().position(|one| one.id == name) {
        return vec![listed.swap_remove(at)];
    }
    let is_meant = |one: &Listed<'_>| {
        let bare = one.id.split_once(':').map_or(one.id.as_str(), |(_, id)| id);
        // What a registry calls `tool:x` is called `x` by people.
        let bare = bare.strip_prefix("tool:").filter(|last| *last == name).unwrap_or(bare);
        bare == name || bare.split_once('/').is_some_and(|(_, last)| last == name)
    };
    listed.retain(is_meant);
    listed
}

impl<'c> Listed<'c> {
    pub(crate) fn new(
        brief: &'c Brief,
        pinned: Option<&'c Pinned>,
        layer: Layer,
        most: Trust,
    ) -> Self {
        let trust = brief.trust().min(most);
        let (dialect, id) = match pinned.and_then(|one| Some((one.parted()?.0, one.id.clone()))) {
            Some(known) => known,
            None => (Dialect::Capability, format!("{}:{}", Dialect::Capability.name(), brief.id)),
        };
        let actions = match pinned {
            Some(pinned) => pinned.actions.iter().map(String::as_str).collect(),
            // A capability has one action, of its own name.
            None => vec![brief.id.as_str()],
        };
        let (version, kind) = (brief.version.as_str(), brief.kind.as_str());
        Self { id, version, dialect, kind, layer, enabled: brief.enabled, trust, actions, pinned }
    }
}
