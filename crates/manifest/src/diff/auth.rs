//! How requests are authenticated.

use std::collections::BTreeSet;

use super::Class;
use super::changes::Changes;
use super::words::{gained, listed, quoted};
use crate::concept::Concept;
use crate::model::{Auth, AuthKind, Package};

/// Compares how requests are authenticated. New variables are told with the inputs they become.
pub(super) fn compare(changes: &mut Changes, old: Option<&Auth>, package: &Package) {
    let mut topic = changes.about("authentication");
    let (old, new) = match (old, &package.auth) {
        (Some(old), Some(new)) => (old, new),
        (None, None) => return,
        (Some(old), None) => {
            let message = format!("was {} and is not needed any more", quoted(old.kind.name()));
            return topic.tell(Class::Additive, Concept::Auth, message);
        }
        (None, Some(new)) => {
            let is_needed = new.kind != AuthKind::None || !new.scopes.is_empty();
            let class = if is_needed { Class::NeedsReview } else { Class::Additive };
            let scopes = match new.scopes.as_slice() {
                [] => String::new(),
                scopes => format!(" with {}", listed(scopes.iter().map(String::as_str))),
            };
            let message = format!("is {} now{scopes}", quoted(new.kind.name()));
            return topic.tell(class, Concept::Auth, message);
        }
    };
    let Auth { kind, scopes, env, docs_url } = old;
    if *kind != new.kind {
        let class = if new.kind == AuthKind::None { Class::Additive } else { Class::NeedsReview };
        topic.replaced(class, Concept::Auth, kind.name(), new.kind.name());
    }
    for scope in gained(scopes, &new.scopes) {
        let message = format!("the credential needs the scope {} too", quoted(scope));
        topic.tell(Class::NeedsReview, Concept::Auth, message);
    }
    for scope in gained(&new.scopes, scopes) {
        let message = format!("the credential needs the scope {} no more", quoted(scope));
        topic.tell(Class::Additive, Concept::Auth, message);
    }
    let inputs: BTreeSet<&str> = package.inputs.iter().map(|input| input.name.as_str()).collect();
    let silent: Vec<&str> =
        gained(env, &new.env).into_iter().filter(|name| !inputs.contains(name)).collect();
    if !silent.is_empty() {
        let message = format!("the credential may also be in {}", listed(silent));
        topic.tell(Class::NeedsReview, Concept::Auth, message);
    }
    if gained(env, &new.env).is_empty() && *env != new.env {
        let names = |env: &[String]| listed(env.iter().map(String::as_str));
        let message =
            format!("the credential was looked for in {}, now in {}", names(env), names(&new.env));
        topic.tell(Class::Cosmetic, Concept::Auth, message);
    }
    topic.text(Class::Cosmetic, Concept::AuthHints, docs_url.as_deref(), new.docs_url.as_deref());
}
