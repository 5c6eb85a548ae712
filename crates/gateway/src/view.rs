//! What one agent is shown of all that can be called.

use std::borrow::Cow;
use std::sync::Arc;

use policy::policy::{Policy, Profile, Which};
use serde::{Deserialize, Serialize};

use crate::offer::Offer;
use crate::shelf::{Shelved, Stock};

/// What is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum View {
    /// What the policy shows where no profile is named: everything, if it says nothing of that.
    #[default]
    Usual,
    /// Everything.
    All,
    /// A profile of the policy.
    Profile(String),
    /// One package, whose tools keep their own names.
    Raw(String),
}

impl View {
    /// What is looked at under a policy.
    pub(crate) fn under(&self, policy: &Policy) -> Cow<'_, Self> {
        match self {
            Self::Usual if policy.profiles.contains_key(Profile::USUAL) => {
                Cow::Owned(Self::Profile(Profile::USUAL.to_owned()))
            }
            Self::Usual => Cow::Owned(Self::All),
            Self::All | Self::Profile(_) | Self::Raw(_) => Cow::Borrowed(self),
        }
    }

    /// Whether it shows an action of a package.
    pub(crate) fn holds(&self, policy: &Policy, package: &str, action: &str) -> bool {
        self.shows(policy, |profile| profile.holds(package, action))
    }

    /// Whether it shows anything of a package, be it switched off or broken.
    pub(crate) fn knows(&self, policy: &Policy, package: &Shelved) -> bool {
        self.shows(policy, |profile| match &package.tool {
            Ok(tool) => {
                tool.package.actions.iter().any(|one| profile.holds(&package.id, &one.name))
            }
            Err(_) => profile.tools.iter().any(|which| which.is_of(&package.id)),
        })
    }

    fn shows(&self, policy: &Policy, is_in: impl FnOnce(&Profile) -> bool) -> bool {
        match &*self.under(policy) {
            Self::Usual | Self::All | Self::Raw(_) => true,
            Self::Profile(name) => policy.profiles.get(name).is_some_and(is_in),
        }
    }

    /// In a few words, for the log.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Usual | Self::All => "all".to_owned(),
            Self::Profile(name) => name.clone(),
            Self::Raw(package) => format!("raw {package}"),
        }
    }
}

/// What a view shows.
#[derive(Debug)]
pub(crate) struct List {
    /// What can be called, and what it is called here.
    pub(crate) offers: Vec<(String, Arc<Offer>)>,
    /// Whether there is too much of it to be shown: then only this much is.
    pub(crate) is_folded: bool,
    /// The definitions that are shown, without brackets around them.
    pub(crate) text: String,
}

impl List {
    pub(crate) fn of(view: &View, stock: &Stock) -> Self {
        let (policy, no_pins) = (&stock.policy, Vec::new());
        let view = &*view.under(policy);
        let held: Vec<_> = match view {
            View::Usual | View::All | View::Profile(_) => {
                all(stock, |offer| view.holds(policy, &offer.package.id, &offer.action))
            }
            View::Raw(id) => {
                let package = stock.package(id);
                let is_its = |offer: &Offer| package.is_some_and(|one| one.id == offer.package.id);
                all(stock, is_its)
                    .into_iter()
                    .map(|(_, offer)| (offer.action.clone(), offer))
                    .collect()
            }
        };
        let pins: Vec<&Which> = match view {
            View::Usual | View::All | View::Raw(_) => &no_pins,
            View::Profile(name) => policy.profiles.get(name).map_or(&no_pins, |one| &one.pinned),
        }
        .iter()
        .chain(&policy.agents.pinned)
        .collect();
        let most = usize::try_from(policy.agents.tools).unwrap_or(usize::MAX);
        let is_folded = !matches!(view, View::Raw(_)) && held.len() > most;
        let is_pinned =
            |offer: &Offer| pins.iter().any(|which| which.is(&offer.package.id, &offer.action));
        let shown: Vec<_> = held
            .iter()
            .filter(|(_, offer)| !is_folded || is_pinned(offer))
            .map(|(_, offer)| match view {
                View::Raw(_) => raw(offer),
                View::Usual | View::All | View::Profile(_) => offer.text.clone(),
            })
            .collect();
        Self { is_folded, text: shown.join(","), offers: held }
    }

    /// What is called so here.
    pub(crate) fn offer(&self, name: &str) -> Option<&Arc<Offer>> {
        self.offers.iter().find(|(known, _)| known == name).map(|(_, offer)| offer)
    }
}

fn all(stock: &Stock, is_shown: impl Fn(&Offer) -> bool) -> Vec<(String, Arc<Offer>)> {
    let shown = stock.offers.iter().filter(|offer| is_shown(offer));
    shown.map(|offer| (offer.name.clone(), Arc::clone(offer))).collect()
}

/// A definition under its own name: of a server, exactly what it said.
fn raw(offer: &Offer) -> String {
    let said = offer.declared().and_then(|action| offer.tool.said_of(action));
    let mut definition = said.unwrap_or(&offer.definition).clone();
    definition["name"] = offer.action.clone().into();
    definition.to_string()
}
