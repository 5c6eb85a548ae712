//! What the tool may do on the owner's behalf, and what it may touch.

use std::collections::{BTreeMap, BTreeSet};

use super::Class;
use super::changes::Changes;
use super::words::{gained, listed, quoted};
use crate::concept::Concept;
use crate::model::{Channel, Permissions, Scope, Trust};

/// What all scopes of one resource allow together.
#[derive(Default)]
struct Access<'s> {
    verbs: BTreeSet<&'s str>,
    provider: BTreeSet<&'s str>,
    rationale: BTreeSet<&'s str>,
}

/// Compares scopes by resource; any growth is put before the owner.
pub(super) fn scopes(changes: &mut Changes, old: &[Scope], new: &[Scope]) {
    let (before, after) = (by_resource(old), by_resource(new));
    for (resource, was) in &before {
        let mut topic = changes.about(format!("scope {resource}"));
        let Some(is) = after.get(resource) else {
            let message = format!("is gone, with {}", listed(was.verbs.iter().copied()));
            topic.tell(Class::Additive, Concept::Scopes, message);
            continue;
        };
        let more: Vec<_> = is.verbs.difference(&was.verbs).copied().collect();
        if !more.is_empty() {
            let verbs = listed(was.verbs.iter().copied());
            let message = format!("allowed {verbs} and now {} too", listed(more));
            topic.tell(Class::NeedsReview, Concept::Scopes, message);
        }
        let less: Vec<_> = was.verbs.difference(&is.verbs).copied().collect();
        if !less.is_empty() {
            let message = format!("no longer allows {}", listed(less));
            topic.tell(Class::Additive, Concept::Scopes, message);
        }
        for name in is.provider.difference(&was.provider) {
            let message = format!("asks the provider for {} now", quoted(name));
            topic.tell(Class::NeedsReview, Concept::Scopes, message);
        }
        for name in was.provider.difference(&is.provider) {
            // Where the provider's name is no longer said, what is asked of it is unknown.
            let class = if is.provider.is_empty() { Class::NeedsReview } else { Class::Additive };
            let message = format!("no longer names {} of the provider", quoted(name));
            topic.tell(class, Concept::Scopes, message);
        }
        if was.rationale != is.rationale {
            let reasons = |access: &Access<'_>| listed(access.rationale.iter().copied());
            let message = format!("the rationale was {} and is now {}", reasons(was), reasons(is));
            topic.tell(Class::Cosmetic, Concept::Scopes, message);
        }
    }
    for (resource, is) in after.iter().filter(|(resource, _)| !before.contains_key(*resource)) {
        let message = format!("is new, with {}", listed(is.verbs.iter().copied()));
        let mut topic = changes.about(format!("scope {resource}"));
        topic.tell(Class::NeedsReview, Concept::Scopes, message);
    }
}

fn by_resource(scopes: &[Scope]) -> BTreeMap<&str, Access<'_>> {
    let mut by_resource: BTreeMap<&str, Access<'_>> = BTreeMap::new();
    for Scope { resource, verbs, rationale, provider_scope } in scopes {
        let access = by_resource.entry(resource).or_default();
        access.verbs.extend(verbs.iter().map(String::as_str));
        access.provider.extend(provider_scope.as_deref());
        access.rationale.insert(rationale);
    }
    by_resource
}

/// Compares what the tool may touch; any growth is put before the owner.
pub(super) fn permissions(changes: &mut Changes, old: &Permissions, new: &Permissions) {
    let Permissions { declared, hosts, domains, read, write, devices, filesystem } = old;
    match (*declared, new.declared) {
        (true, false) => changes.about("permissions").tell(
            Class::NeedsReview,
            Concept::Permissions,
            "are not declared any more",
        ),
        (false, true) => changes.about("permissions").tell(
            Class::Additive,
            Concept::Permissions,
            "are declared now",
        ),
        (true, true) | (false, false) => {}
    }
    let lower = |hosts: &[String]| -> Vec<String> {
        hosts.iter().map(|host| host.to_ascii_lowercase()).collect()
    };
    // A host that comes or goes is told once.
    let stays = |host: &String| lower(hosts).contains(host) && lower(&new.hosts).contains(host);
    let staying = |domains: &[String]| -> Vec<String> {
        lower(domains).into_iter().filter(|host| stays(host)).collect()
    };
    for (noun, was, is) in [
        ("host", &lower(hosts), &lower(&new.hosts)),
        ("domain", &staying(domains), &staying(&new.domains)),
        ("readable folder", read, &new.read),
        ("writable folder", write, &new.write),
        ("device", devices, &new.devices),
    ] {
        for name in gained(was, is) {
            let message = format!("the {noun} {} is new", quoted(name));
            let mut topic = changes.about(format!("{noun} {name}"));
            topic.tell(Class::NeedsReview, Concept::Permissions, message);
        }
        for name in gained(is, was) {
            let message = format!("the {noun} {} is gone", quoted(name));
            let mut topic = changes.about(format!("{noun} {name}"));
            topic.tell(Class::Additive, Concept::Permissions, message);
        }
    }
    // The ceiling is none where the author says nothing: the walls give nothing by themselves.
    let height = |ceiling: Option<&str>| match ceiling {
        None | Some("none") => 0,
        Some("read") => 1,
        Some(_) => 2,
    };
    let (was, is) = (filesystem.as_deref(), new.filesystem.as_deref());
    if was != is {
        let class = match height(is).cmp(&height(was)) {
            std::cmp::Ordering::Greater => Class::NeedsReview,
            std::cmp::Ordering::Less => Class::Additive,
            std::cmp::Ordering::Equal => Class::Cosmetic,
        };
        let show = |ceiling: Option<&str>| quoted(ceiling.unwrap_or("undeclared"));
        let message = format!("the ceiling was {} and is now {}", show(was), show(is));
        changes.about("filesystem").tell(class, Concept::Permissions, message);
    }
}

/// A claim of more trust is put before the owner, though it never raises trust by itself.
pub(super) fn trust(changes: &mut Changes, old: Trust, new: Trust) {
    if old != new {
        let class = if new > old { Class::NeedsReview } else { Class::Additive };
        let verb = if new > old { "raised" } else { "lowered" };
        let message = format!("the claim was {verb} from `{}` to `{}`", old.name(), new.name());
        changes.about("trust").tell(class, Concept::Trust, message);
    }
}

/// A tool that was switched off may be called again, or the other way round.
pub(super) fn enabled(changes: &mut Changes, old: bool, new: bool) {
    let (class, message) = match (old, new) {
        (false, true) => (Class::NeedsReview, "was disabled and may be called now"),
        (true, false) => (Class::Breaking, "is disabled now and cannot be called"),
        (true, true) | (false, false) => return,
    };
    changes.about("enabled").tell(class, Concept::Enabled, message);
}

/// To sign in is to hand over an account.
pub(super) fn requires_oauth(changes: &mut Changes, old: bool, new: bool) {
    let (class, message) = match (old, new) {
        (false, true) => (Class::NeedsReview, "the owner must sign in first now"),
        (true, false) => (Class::Additive, "the owner need not sign in any more"),
        (true, true) | (false, false) => return,
    };
    changes.about("sign-in").tell(class, Concept::Oauth, message);
}

/// What is driven through a screen cannot be called by program.
pub(super) fn channel(changes: &mut Changes, old: Channel, new: Channel) {
    let (class, message) = match (old, new) {
        (Channel::Programmatic, Channel::VdiVpn) => {
            (Class::Breaking, "was driven by program and is now through a screen")
        }
        (Channel::VdiVpn, Channel::Programmatic) => {
            (Class::NeedsReview, "was driven through a screen and is now by program")
        }
        (Channel::Programmatic, Channel::Programmatic) | (Channel::VdiVpn, Channel::VdiVpn) => {
            return;
        }
    };
    changes.about("channel").tell(class, Concept::Channel, message);
}
