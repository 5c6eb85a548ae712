//! The steps of a tool that is made of other tools.

use std::collections::BTreeMap;

use super::Class;
use super::changes::Changes;
use super::words::{both, listed, quoted};
use crate::concept::Concept;
use crate::model::{Chain, Step};

/// Compares the steps by name. Whatever they do, they do with the owner's other tools: any change
/// is put before the owner.
pub(super) fn compare(changes: &mut Changes, old: Option<&Chain>, new: Option<&Chain>) {
    let (old, new) = match (old, new) {
        (None, None) => return,
        (Some(Chain { steps }), None) => {
            let message = format!("the chain of {} is gone; it runs by itself now", tools(steps));
            return changes.about("chain").tell(Class::NeedsReview, Concept::Chain, message);
        }
        (None, Some(Chain { steps })) => {
            let message = format!("is made of other tools now: {}", tools(steps));
            return changes.about("chain").tell(Class::NeedsReview, Concept::Chain, message);
        }
        (Some(old), Some(new)) => (&old.steps, &new.steps),
    };
    let (before, after) = (by_name(old), by_name(new));
    for (name, step) in &before {
        let mut topic = changes.about(format!("chain step {name}"));
        let Some(now) = after.get(name) else {
            let message = format!("no longer calls {}: the step is gone", quoted(&step.tool));
            topic.tell(Class::NeedsReview, Concept::Chain, message);
            continue;
        };
        let Step { name: _, tool, definition } = step;
        if *tool != now.tool {
            let message = format!("called {} and now calls {}", quoted(tool), quoted(&now.tool));
            topic.tell(Class::NeedsReview, Concept::Chain, message);
        } else if definition.value() != now.definition.value() {
            let (old, new) = both(definition.text(), now.definition.text());
            let message = format!("was {old} and is now {new}");
            topic.tell(Class::NeedsReview, Concept::Chain, message);
        }
    }
    for (name, step) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
        let message = format!("is new and calls {}", quoted(&step.tool));
        let mut topic = changes.about(format!("chain step {name}"));
        topic.tell(Class::NeedsReview, Concept::Chain, message);
    }
    let order = |steps: &[Step], others: &BTreeMap<&str, &Step>| -> Vec<String> {
        let names = steps.iter().map(|step| step.name.clone());
        names.filter(|name| others.contains_key(name.as_str())).collect()
    };
    let (was, is) = (order(old, &after), order(new, &before));
    if was != is {
        let names = |names: &[String]| listed(names.iter().map(String::as_str));
        let message = format!("the order was {} and is now {}", names(&was), names(&is));
        changes.about("chain").tell(Class::NeedsReview, Concept::Chain, message);
    }
}

fn by_name(steps: &[Step]) -> BTreeMap<&str, &Step> {
    steps.iter().map(|step| (step.name.as_str(), step)).collect()
}

fn tools(steps: &[Step]) -> String {
    listed(steps.iter().map(|step| step.tool.as_str()))
}
