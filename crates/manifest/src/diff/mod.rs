//! What changed between two versions of a package, and how much it matters.
//!
//! [`diff`] looks at every field of the model. A promise taken back is breaking; whatever lets
//! the tool do more, or run other code, is put before the owner; the rest is told as what it is.
//! Where something was declared and is not any more, that is a growth: silence promises nothing.

mod access;
mod acquire;
mod action;
mod auth;
mod boundary;
mod chain;
mod changes;
mod cost;
mod identity;
mod input;
mod limits;
mod place;
mod promise;
mod run;
mod schema;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::concept::Concept;
use crate::json::Pointer;
use crate::model::Package;
use crate::shape::clip;
use changes::Changes;
use words::quoted;

/// How much a change matters, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// What worked before may no longer work, or is not what was published.
    Breaking,
    /// The tool may do more than the owner agreed to, or promises less.
    NeedsReview,
    /// Something new that changes nothing for those who do not use it.
    Additive,
    /// Only what people and agents read.
    Cosmetic,
}

impl Class {
    /// Every class, worst first.
    pub const ALL: [Class; 4] =
        [Class::Breaking, Class::NeedsReview, Class::Additive, Class::Cosmetic];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Class::Breaking => "breaking",
            Class::NeedsReview => "needs-review",
            Class::Additive => "additive",
            Class::Cosmetic => "cosmetic",
        }
    }
}

/// One thing that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// How much it matters.
    pub class: Class,
    /// What it is about: `action send_mail`, `scope gmail.messages`.
    pub subject: String,
    /// What happened to it.
    pub message: String,
    /// Where it stands in the new document, or in the old one when it is gone from the new;
    /// in a catalog, as seen from the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<Pointer>,
}

/// Finds what changed from one version of a package to another, worst first.
pub fn diff(old: &Package, new: &Package) -> Vec<Change> {
    let mut changes = compare(old, new);
    if old.raw_sha256 != new.raw_sha256 {
        check_immutable(&mut changes, old, new);
    }
    changes.in_order()
}

/// Finds what changed from one catalog to another, worst first; entries are matched by id.
///
/// The bytes of one entry are not known apart from those of its catalog. So a body under the same
/// version counts as changed when anything in the model did, and not when it was only laid out anew.
pub fn diff_sets(old: &[Package], new: &[Package]) -> Vec<Change> {
    let by_id = |set| -> BTreeMap<&str, &Package> {
        let packages: &[Package] = set;
        packages.iter().map(|package| (package.id.as_str(), package)).collect()
    };
    let (before, after) = (by_id(old), by_id(new));
    let mut all = Changes::default();
    for (id, package) in &before {
        match after.get(id) {
            Some(now) => {
                let mut changes = compare(package, now);
                if !changes.is_empty() {
                    check_immutable(&mut changes, package, now);
                }
                all.extend(changes.in_order().into_iter().map(|change| Change {
                    subject: format!("{}: {}", clip(id), change.subject),
                    ..change
                }));
            }
            None => all.about(format!("package {id}")).tell(
                Class::Breaking,
                Concept::Part,
                format!("{} is no longer in the catalog", quoted(&package.semver())),
            ),
        }
    }
    for (id, package) in after.iter().filter(|(id, _)| !before.contains_key(*id)) {
        all.about(format!("package {id}")).tell(
            Class::NeedsReview,
            Concept::Part,
            format!("{} is new in the catalog", quoted(&package.semver())),
        );
    }
    all.in_order()
}

/// Whether an owner who agreed to the old version need not be asked about the new one.
pub fn is_upgrade_safe(changes: &[Change]) -> bool {
    changes.iter().all(|change| change.class > Class::NeedsReview)
}

/// A published version never changes; whoever has it must be able to rely on that.
fn check_immutable(changes: &mut Changes, old: &Package, new: &Package) {
    if let Some(version) = &old.version
        && old.version == new.version
        && old.canonical_id() == new.canonical_id()
    {
        let message = format!("the body changed under the same version {}", quoted(version));
        changes.about("version").tell(Class::Breaking, Concept::Version, message);
    }
}

#[expect(clippy::too_many_lines, reason = "one line for each field of the model")]
fn compare(old: &Package, new: &Package) -> Changes {
    let mut changes = Changes::between(old, new);
    // Every field by name, so that the compiler points here when the model has a new one.
    let Package {
        dialect,
        format_version,
        id,
        namespace,
        version,
        kind,
        name,
        summary,
        description,
        homepage,
        license,
        author,
        publisher,
        tags,
        acquire,
        implementations: _, // by `run`, with the actions they serve
        chain,
        inputs,
        scopes,
        permissions,
        sandbox,
        resources,
        timeout_ms,
        auth,
        actions: _, // by `action`, with what the package says for all of them
        smoke,
        tests,
        examples,
        kill_switch,
        cost,
        uses_payment,
        dependencies,
        data_boundary,
        verify,
        support,
        trust,
        enabled,
        requires_oauth,
        channel,
        origin,
        files_sha256,
        raw_sha256: _, // by `diff`, with the version
    } = old;
    let on = &mut changes;

    identity::dialect(on, *dialect, new.dialect);
    identity::format_version(on, *format_version, new.format_version);
    identity::id(on, id, &new.id);
    identity::namespace(on, namespace.as_deref(), new.namespace.as_deref());
    identity::version(on, version.as_deref(), new.version.as_deref());
    identity::kind(on, *kind, new.kind);
    for (concept, before, after) in
        [(Concept::DisplayName, name, &new.name), (Concept::Homepage, homepage, &new.homepage)]
    {
        identity::text(on, concept, before.as_deref(), after.as_deref());
    }
    for (concept, before, after) in [
        (Concept::Summary, summary, &new.summary),
        (Concept::Description, description, &new.description),
    ] {
        identity::prose(on, concept, before.as_deref(), after.as_deref());
    }
    identity::license(on, license.as_deref(), new.license.as_deref());
    identity::author(on, author.as_ref(), new.author.as_ref());
    identity::publisher(on, publisher.as_ref(), new.publisher.as_ref());
    identity::names(on, Concept::Tags, tags, &new.tags);
    identity::names(on, Concept::Examples, examples, &new.examples);
    identity::support(on, support.as_ref(), new.support.as_ref());

    let is_told =
        acquire::compare(on, (acquire, version.as_deref()), (&new.acquire, new.version.as_deref()));
    acquire::origin(on, origin.as_ref(), new.origin.as_ref(), is_told);
    if files_sha256 != &new.files_sha256 {
        on.about("files").tell(
            Class::NeedsReview,
            Concept::Files,
            "the bundled files changed: other code would run",
        );
    }
    run::compare(on, old, new);
    chain::compare(on, chain.as_ref(), new.chain.as_ref());
    action::compare(on, old, new);

    input::compare(on, inputs, &new.inputs);
    auth::compare(on, auth.as_ref(), new);
    access::scopes(on, scopes, &new.scopes);
    access::permissions(on, permissions, &new.permissions);
    access::trust(on, *trust, new.trust);
    access::enabled(on, *enabled, new.enabled);
    access::requires_oauth(on, *requires_oauth, new.requires_oauth);
    access::channel(on, *channel, new.channel);
    limits::sandbox(on, *sandbox, new.sandbox);
    limits::resources(on, resources, &new.resources);
    limits::timeout(&mut on.about("time limit"), *timeout_ms, new.timeout_ms);

    promise::smoke(on, smoke.as_ref(), new.smoke.as_ref());
    promise::tests(on, tests, &new.tests);
    promise::kill_switch(on, kill_switch.as_ref(), new.kill_switch.as_ref());
    promise::verify(on, verify.as_ref(), new.verify.as_ref());
    cost::compare(on, cost.as_ref(), new.cost.as_ref());
    cost::payment(on, *uses_payment, new.uses_payment);
    input::dependencies(on, dependencies, &new.dependencies);
    boundary::compare(on, data_boundary.as_ref(), new.data_boundary.as_ref());
    changes
}
