//! What one agent is shown of all that can be called.

use std::sync::Arc;

use policy::policy::Which;

use crate::offer::{Offer, own};
use crate::shelf::Stock;

/// What is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum View {
    /// Everything.
    #[default]
    All,
    /// A profile of the policy.
    Profile(String),
    /// One package, whose tools keep their own names.
    Raw(String),
}

impl View {
    /// In a few words, for the log.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
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
        let held: Vec<_> = match view {
            View::All => all(stock, |_| true),
            View::Profile(name) => match policy.profiles.get(name) {
                Some(profile) => {
                    all(stock, |offer| profile.holds(&offer.package.id, &offer.action))
                }
                None => Vec::new(),
            },
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
            View::All => &no_pins,
            View::Profile(name) => policy.profiles.get(name).map_or(&no_pins, |one| &one.pinned),
            View::Raw(_) => &no_pins,
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
                View::All | View::Profile(_) => offer.text.clone(),
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
    if let Some(own) = own(&offer.tool, &offer.action) {
        return own.to_string();
    }
    let mut definition = offer.definition.clone();
    definition["name"] = offer.action.clone().into();
    definition.to_string()
}
