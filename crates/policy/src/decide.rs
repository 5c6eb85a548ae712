//! Whether a call may go ahead, and with what.

mod environment;
mod resources;

use manifest::dialect::Dialect;
use manifest::model::{Action, Implementation, Package, Sandbox, SideEffects, SignIn, Trust};

use crate::approval::{Answer, Memory, Question, Surface, Why};
use crate::arguments::Arguments;
use crate::decision::{Allowance, Decision, Denial, HostAllowance, Reason, SetBy, Verdict};
use crate::grants::{Grants, Kind};
use crate::policy::{ApprovalRules, Level, PackageRules, Policy, Rule};

pub use environment::{may_be_passed, steers_programs};

/// The key of the policy for actions that do not say what they change.
const UNDECLARED: &str = "approval.undeclared";

/// A call, as far as it matters for the decision.
#[derive(Clone)]
pub struct Asked<'a> {
    /// What is called.
    pub package: &'a Package,
    /// Which action of it.
    pub action: &'a Action,
    /// The way it will be run.
    pub implementation: Option<&'a Implementation>,
    /// How far the package is trusted: the lower of what it claims and what is known.
    pub trust: Trust,
    /// How the owner came to have it.
    pub consent: Consent,
    /// Hosts of its own endpoints.
    pub endpoints: &'a [String],
    /// Hosts on its card, which the owner accepted: a package chose them, so they lead to no private one either.
    pub agreed: &'a [String],
    /// Whether a host is a private one: what a package says of itself leads to none.
    pub is_private: fn(&str) -> bool,
    /// Whether the policy refuses a host, whoever grants it.
    pub is_denied: &'a dyn Fn(&str) -> bool,
    /// Whether a path is one that no tool gets, whoever grants it.
    pub is_hidden: &'a dyn Fn(&str) -> bool,
    /// Where the call comes from.
    pub surface: &'a Surface,
    /// What it is called with.
    pub arguments: &'a Arguments,
    /// Why the tool itself wants the owner asked about these arguments, if it does.
    pub wants_approval: Option<&'a Why>,
    /// Whether the owner is signed in, where that is needed.
    pub is_signed_in: bool,
    /// What the action needs of a provider and the owner's sign-in was not granted.
    pub missing_scopes: &'a [String],
}

/// How the owner came to have a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// They typed its path: what it declares is agreed to, so far as it is public.
    ByPath,
    /// They accepted its card: what it declares is agreed to, so far as it is public, and so is trust from there up.
    ByCard {
        /// The least that they let in with it.
        admitted: Trust,
    },
}

/// Decides about a call.
pub fn decide(asked: &Asked<'_>, policy: &Policy, grants: &Grants, memory: &Memory) -> Decision {
    let package = asked.package;
    let rules = policy.of_package(package);
    let mut reasons = Vec::new();
    let allowance = allow(asked, policy, rules, grants, &mut reasons);
    let (verdict, rule) = match gate(asked, policy, rules, &mut reasons) {
        Some(denial) => {
            let rule = denial.rule();
            (Verdict::Denied(denial), rule)
        }
        None => approve(asked, policy, rules, memory, &mut reasons),
    };
    Decision { verdict, allowance, reasons, rule }
}

/// Whether the package may be called at all.
fn gate(
    asked: &Asked<'_>,
    policy: &Policy,
    rules: Option<&PackageRules>,
    reasons: &mut Vec<Reason>,
) -> Option<Denial> {
    if !asked.package.enabled {
        return Some(Denial::Disabled);
    }
    match rules.and_then(|rules| rules.allow) {
        Some(false) => {
            say(reasons, "trust", "`allow = false` of this package in policy.toml refuses it");
            return Some(Denial::Package);
        }
        Some(true) => say(reasons, "trust", "your policy allows this package by name"),
        None if policy.trust.allow.contains(&asked.trust) => {
            say(reasons, "trust", format!("{} passes", asked.trust.name()));
        }
        // A card lets in what the owner was asked about, and only that: what they allow later counts for everything else.
        None if asked.trust == Trust::Community
            && matches!(asked.consent, Consent::ByCard { admitted } if asked.trust >= admitted) =>
        {
            let says = format!("{}, and the owner let it in with its card", asked.trust.name());
            say(reasons, "trust", says);
        }
        None => {
            let says =
                format!("`[trust] allow` in policy.toml does not name {}", asked.trust.name());
            say(reasons, "trust", says);
            return Some(Denial::Trust(asked.trust));
        }
    }
    if asked.package.requires_oauth && !asked.is_signed_in {
        let can_sign_in = asked.package.sign_in() != SignIn::Impossible;
        return Some(if can_sign_in { Denial::Login } else { Denial::NoLogin });
    }
    if !asked.missing_scopes.is_empty() {
        return Some(Denial::Scopes(asked.missing_scopes.to_vec()));
    }
    let refused = asked.action.environment.iter().find(|name| !may_be_passed(name, policy));
    refused.map(|name| Denial::environment(name, policy))
}

/// Whether the owner has to be asked, and what they said; and by which key of the policy.
fn approve(
    asked: &Asked<'_>,
    policy: &Policy,
    rules: Option<&PackageRules>,
    memory: &Memory,
    reasons: &mut Vec<Reason>,
) -> (Verdict, &'static str) {
    let (key, rule, why) = rule_for(asked, policy, rules, reasons);
    (verdict(asked, policy, (key, rule, why), memory, reasons), key)
}

/// What becomes of a call of an action that this is to be done about.
fn verdict(
    asked: &Asked<'_>,
    policy: &Policy,
    (key, rule, why): (&'static str, Rule, Why),
    memory: &Memory,
    reasons: &mut Vec<Reason>,
) -> Verdict {
    if memory.answer == Some(Answer::Refused) {
        return Verdict::Denied(Denial::Refused);
    }
    match rule {
        Rule::Allow => return Verdict::Allowed,
        Rule::Deny => return Verdict::Denied(Denial::Action(asked.action.name.clone())),
        Rule::First if memory.is_known => {
            say(reasons, "approval", "the owner let it be called from here before");
            return Verdict::Allowed;
        }
        Rule::First | Rule::Ask => {}
    }
    if let Some(Answer::Approved { digest }) = &memory.answer {
        if digest == asked.arguments.digest() {
            say(reasons, "approval", "the owner approved these arguments");
            return Verdict::Allowed;
        }
        return Verdict::Denied(Denial::OtherArguments);
    }
    if let Some(one) = memory.covers(&asked.action.name, asked.arguments, asked.surface) {
        say(reasons, "approval", format!("the owner approved {} before", one.pattern));
        return Verdict::Allowed;
    }
    Verdict::Ask(Question {
        action: asked.action.name.clone(),
        why,
        digest: asked.arguments.digest().to_owned(),
        rule: key,
        expires_seconds: policy.approval.expires_seconds,
        is_first: rule == Rule::First,
    })
}

/// What is to be done about an action. The owner's word about this very package or action stands alone, also
/// where the package wants them asked: they named it. Else the strictest of all that have a say counts, and
/// nothing a package says of itself makes it milder. It comes with the key of the policy that says it.
fn rule_for(
    asked: &Asked<'_>,
    policy: &Policy,
    rules: Option<&PackageRules>,
    reasons: &mut Vec<Reason>,
) -> (&'static str, Rule, Why) {
    let declared = (asked.action.requires_approval == Some(true)).then_some(&Why::Declared);
    let wanted = asked.wants_approval.or(declared);
    if let Some(why @ Why::Failed(_)) = wanted {
        say(reasons, "approval", why.words());
    }
    let name = &asked.action.name;
    let of_action =
        rules.and_then(|rules| Some((*rules.actions.get(name)?, format!("actions.{name}"))));
    let of_package = || rules.and_then(|rules| Some((rules.approval?, "approval".to_owned())));
    let by_name = if of_action.is_some() { "package.actions" } else { "package.approval" };
    if let Some((rule, key)) = of_action.or_else(of_package) {
        let says = format!("{}, by `{key}` of this package in policy.toml", rule.name());
        say(reasons, "approval", says);
        if wanted.is_some() && rule < Rule::Ask {
            say(reasons, "approval", "the package wants the owner asked, but your policy names it");
        }
        return (by_name, rule, by_policy(rule));
    }
    let by_effects = match asked.action.side_effects {
        Some(effects) => {
            let rule = policy.approval.of(effects);
            let says = format!("side effects `{}`: {}", effects.name(), rule.name());
            say(reasons, "approval", says);
            let why = match effects {
                SideEffects::Destructive => Why::Destructive,
                _ => by_policy(rule),
            };
            (ApprovalRules::key_of(effects), rule, why)
        }
        None => match asked.surface {
            Surface::Terminal | Surface::Test => {
                say(reasons, "approval", "side effects undeclared, called by the owner: allow");
                ("", Rule::Allow, Why::FirstCall)
            }
            Surface::Agent { .. } => {
                let rule = policy.approval.undeclared;
                let says = format!("side effects undeclared, called by an agent: {}", rule.name());
                say(reasons, "approval", says);
                let is_first = rule == Rule::First;
                (UNDECLARED, rule, if is_first { Why::FirstCall } else { Why::Policy })
            }
        },
    };
    match wanted {
        Some(why) if by_effects.1 < Rule::Ask => {
            say(reasons, "approval", "the package wants the owner asked");
            ("approval", Rule::Ask, why.clone())
        }
        _ => by_effects,
    }
}

/// Why the owner is asked where their own rule says so.
fn by_policy(rule: Rule) -> Why {
    if rule == Rule::First { Why::PolicyFirst } else { Why::Policy }
}

/// What the call would have.
fn allow(
    asked: &Asked<'_>,
    policy: &Policy,
    rules: Option<&PackageRules>,
    grants: &Grants,
    reasons: &mut Vec<Reason>,
) -> Allowance {
    let package = asked.package;
    let (read, write) = folders(asked, policy, grants, reasons);
    let (level, level_by) = match rules.and_then(|rules| rules.level) {
        Some(level) => (level, "package.level"),
        None => (policy.sandbox.level, "sandbox.level"),
    };
    let (level, level_by) = match package.sandbox {
        // Walls of a process that are as good as a container's.
        Some(Sandbox::Container) if level < Level::L2 => (Level::L2, ""),
        Some(Sandbox::Container | Sandbox::Process) | None => (level, level_by),
    };
    say(reasons, "walls", format!("at least {level}"));
    // As with its rules: what the owner says of this very package counts, whatever it says itself.
    let by_name = (rules.and_then(|rules| rules.timeout_ms), rules.and_then(|rules| rules.memory));
    let (timeout_ms, timeout_by) = limit(
        by_name.0,
        (asked.action.timeout_ms)
            .or(asked.implementation.and_then(|one| one.timeout_ms))
            .or(package.timeout_ms),
        policy.sandbox.timeout_ms,
        policy.sandbox.max_timeout_ms,
    );
    let (memory, memory_by) = limit(
        by_name.1,
        package.resources.memory.as_deref().and_then(resources::bytes),
        policy.sandbox.memory,
        policy.sandbox.max_memory,
    );
    for (named, what) in [(by_name.0, "time"), (by_name.1, "memory")] {
        if named.is_some() {
            say(reasons, "limits", format!("your policy sets the {what} by name"));
        }
    }
    let is_device = |device: &&str| may_have_device(package, device);
    let passed = grants.of(Kind::Environment).filter(|name| {
        let may_be = may_be_passed(name, policy);
        if !may_be {
            say(reasons, "environment", format!("{name}: granted, but it steers programs"));
        }
        may_be
    });
    let passed: Vec<_> = passed.map(str::to_owned).collect();
    Allowance {
        hosts: hosts(asked, policy, grants, reasons),
        denied_hosts: policy.network.deny.clone(),
        read,
        write,
        hidden: policy.folders.deny.clone(),
        devices: grants.of(Kind::Device).filter(is_device).map(str::to_owned).collect(),
        environment: asked.action.environment.iter().cloned().chain(passed).collect(),
        level,
        timeout_ms,
        timeout_by,
        level_by,
        memory,
        memory_by,
        cpu_share: package.resources.cpu.as_deref().and_then(resources::share),
        processes: policy.sandbox.processes,
        scratch: policy.sandbox.scratch,
        output: policy.sandbox.output,
    }
}

/// A limit and who set it: what the policy says of this package, else the manifest, else the policy of all; but never more than the most.
fn limit(package: Option<u64>, manifest: Option<u64>, policy: u64, most: u64) -> (u64, SetBy) {
    let (value, by) = (package.map(|value| (value, SetBy::Package)))
        .or(manifest.map(|value| (value, SetBy::Manifest)))
        .unwrap_or((policy, SetBy::Policy));
    if value > most { (most, SetBy::Most) } else { (value, by) }
}

/// Whether a package says itself that it does without something of this kind, so that no grant gives it any.
pub fn denies(package: &Package, kind: Kind) -> bool {
    match (kind, package.permissions.filesystem.as_deref()) {
        (Kind::Host, _) => denies_network(package),
        (Kind::Read, said) => said == Some("none"),
        (Kind::Write, said) => matches!(said, Some("none" | "read")),
        _ => false,
    }
}

/// Whether a grant gives a package a device: one that says which it needs gets no other.
pub fn may_have_device(package: &Package, device: &str) -> bool {
    package.dialect != Dialect::Capability
        || package.permissions.devices.iter().any(|one| one == device)
}

/// Whether a package says itself that it must not reach anybody.
pub fn denies_network(package: &Package) -> bool {
    package.dialect == Dialect::Capability
        && package.permissions.declared
        && package.permissions.hosts.is_empty()
}

fn hosts(
    asked: &Asked<'_>,
    policy: &Policy,
    grants: &Grants,
    reasons: &mut Vec<Reason>,
) -> Vec<HostAllowance> {
    if denies_network(asked.package) {
        say(reasons, "network", "network denied by capability permissions");
        return Vec::new();
    }
    let mut hosts: Vec<HostAllowance> = Vec::new();
    let mut add = |rule: &str, may_be_private: bool, why: &str, reasons: &mut Vec<Reason>| {
        if (asked.is_denied)(rule) {
            return say(reasons, "network", format!("{rule}: {why}, but {DENIED}"));
        }
        if !may_be_private && (asked.is_private)(rule) {
            return say(reasons, "network", format!("{rule}: {why}, but {PRIVATE}"));
        }
        say(reasons, "network", format!("{rule}: {why}"));
        match hosts.iter_mut().find(|one| one.rule == rule) {
            Some(one) => one.may_be_private |= may_be_private,
            None => hosts.push(HostAllowance { rule: rule.to_owned(), may_be_private }),
        }
    };
    let (own, declared) = match asked.consent {
        Consent::ByPath => ("its own endpoint", "declared by the package you named"),
        Consent::ByCard { .. } => ("its own endpoint, on its card", "on the card you accepted"),
    };
    for host in asked.endpoints {
        add(host, false, own, reasons);
    }
    for host in &asked.package.permissions.hosts {
        add(host, false, declared, reasons);
        let is_name = host.rsplit('.').next().is_some_and(|label| !is_number(label));
        let is_name = is_name && host.contains('.') && !host.starts_with("*.");
        if is_name && asked.package.permissions.domains.contains(host) {
            add(&format!("*.{host}"), false, "below a declared host", reasons);
        }
    }
    for host in asked.agreed {
        add(host, false, "on its card, which you accepted", reasons);
    }
    for host in &policy.network.allow {
        add(host, true, "your policy, for every package", reasons);
    }
    for host in grants.of(Kind::Host) {
        add(host, true, "granted", reasons);
    }
    if hosts.is_empty() {
        say(reasons, "network", "none");
    }
    hosts
}

/// What is granted, below the ceiling the package sets itself.
fn folders(
    asked: &Asked<'_>,
    policy: &Policy,
    grants: &Grants,
    reasons: &mut Vec<Reason>,
) -> (Vec<String>, Vec<String>) {
    let package = asked.package;
    let all = |of_policy: &[String], kind| -> Vec<String> {
        of_policy.iter().cloned().chain(grants.of(kind).map(str::to_owned)).collect()
    };
    let mut read = all(&policy.folders.read, Kind::Read);
    let mut write = all(&policy.folders.write, Kind::Write);
    for paths in [&mut read, &mut write] {
        paths.retain(|path| {
            let is_hidden = (asked.is_hidden)(path);
            if is_hidden {
                say(reasons, "folders", format!("{path}: {HIDDEN}"));
            }
            !is_hidden
        });
    }
    match package.permissions.filesystem.as_deref() {
        Some("none") if !(read.is_empty() && write.is_empty()) => {
            say(reasons, "folders", "the package says it needs none, so it gets none");
            (read, write) = (Vec::new(), Vec::new());
        }
        Some("read") if !write.is_empty() => {
            say(reasons, "folders", "the package says it only reads, so it only reads");
            read.append(&mut write);
        }
        _ => {}
    }
    for (paths, how) in [(&read, "read"), (&write, "write")] {
        for path in paths {
            say(reasons, "folders", format!("{path}: {how}"));
        }
    }
    (read, write)
}

const DENIED: &str = "your policy refuses it ([network] deny)";
const HIDDEN: &str = "no tool gets it: your policy hides it ([folders] deny), or it is haft's own";
const PRIVATE: &str = "on a private network, where only your own word leads";

fn is_number(label: &str) -> bool {
    label.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
}

fn say(reasons: &mut Vec<Reason>, rule: &'static str, says: impl Into<String>) {
    reasons.push(Reason { rule, says: says.into() });
}

#[cfg(test)]
mod tests;
