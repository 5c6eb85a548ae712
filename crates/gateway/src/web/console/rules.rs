//! The policy: every rule with what it means, what it says here, and what it decided lately.

use std::cmp::Reverse;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use host::records::now;
use ledger::audit::Filter;

use super::Console;
use super::frame::{Frame, Part, page};
use super::timeline::{Entry, Timeline, Wanted};
use super::visit::Visit;

/// What became of a call that its owner is asked about.
const ASKED: &str = "needs_approval";

/// How many decisions of a kind are looked at.
const LOOKED_AT: usize = 100;

/// How many are shown with a part of the policy.
const SHOWN: usize = 5;

/// A part of the policy: `[trust]`.
#[derive(Debug, Default)]
struct Section {
    name: String,
    groups: Vec<Group>,
    /// What it decided lately.
    decided: Vec<Entry>,
}

/// Rules that are explained together.
#[derive(Debug, Default)]
struct Group {
    /// What they mean, in the words of the defaults.
    about: String,
    rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Default)]
struct Rule {
    name: String,
    /// What stands beside it.
    beside: String,
    /// What counts.
    value: String,
    /// What counts where nobody says otherwise.
    default: String,
    is_owners: bool,
}

#[derive(Template)]
#[template(path = "policy.html")]
struct PolicyPage {
    frame: Frame,
    path: String,
    sections: Vec<Section>,
    /// What the owner says of single packages and profiles, and whatever else has no place above.
    more: Vec<(String, String)>,
    /// What was refused by no part of it.
    rest: Vec<Entry>,
    has_file: bool,
    /// What is wrong with it, each with its line.
    faults: Vec<String>,
}

pub(super) async fn show(State(console): State<Arc<Console>>, visit: Visit) -> Response {
    let (stock, now) = (console.gateway.stock().await, now());
    let path = stock.home.join("policy.toml");
    let text = std::fs::read_to_string(&path).ok();
    let said = text.as_deref().unwrap_or_default();
    let own = said.parse::<toml::Table>().unwrap_or_default();
    let faults = policy::Policy::parse(said).err().map(|error| error.faults).unwrap_or_default();
    let mut faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
    // What is no text, and values that others have a say about, are told by whoever reads it for calls.
    let of_file = format!("`{}`", path.display());
    let trouble = stock.trouble.as_ref().filter(|(_, words)| words.starts_with(&of_file));
    if faults.is_empty() {
        faults.extend(trouble.map(|(_, words)| words.clone()));
    }
    let log = console.log().await;
    let mut decided = Vec::new();
    for outcome in ["denied", ASKED] {
        let filter = Filter { outcome: Some(outcome.to_owned()), ..Filter::default() };
        let wanted = Wanted { filter, ..Wanted::default() };
        let read = Timeline::read(&log, &wanted, None, LOOKED_AT).await.unwrap_or_default();
        decided.extend(read.lines);
    }
    decided.sort_by_key(|line| Reverse(line.record.ts));
    let mut sections = sections(policy::DEFAULTS, &own);
    let mut rest = Vec::new();
    for line in &decided {
        let record = &line.record;
        let reason = record.reason.as_deref().unwrap_or_default();
        let about = match record.outcome.as_deref() {
            Some(ASKED) => "approval",
            _ => section_of(reason, !record.blocked.is_empty()),
        };
        let section = sections.iter_mut().find(|one| one.name == about);
        let decided = section.map_or(&mut rest, |section| &mut section.decided);
        if decided.len() < SHOWN {
            decided.push(Entry::new(line, now).linked(&stock));
        }
    }
    let more = unexplained(&sections, &own);
    page(&PolicyPage {
        frame: Frame::new(&console, &visit, Part::Policy, "Policy").await,
        path: path.display().to_string(),
        more,
        rest,
        sections,
        has_file: path.exists(),
        faults,
    })
}

/// Reads the defaults, whose comments explain every rule, beside what the owner says.
fn sections(defaults: &str, own: &toml::Table) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut about = String::new();
    for line in defaults.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            sections.push(Section { name: name.to_owned(), ..Section::default() });
            about.clear();
            continue;
        }
        let Some(section) = sections.last_mut() else { continue };
        let is_example = line.starts_with("# ") && assigned(&line[2..]).is_some();
        let text = if is_example { &line[2..] } else { line };
        if let Some((name, value, beside)) =
            assigned(text).filter(|_| is_example || !line.starts_with('#'))
        {
            let owners = own.get(&section.name).and_then(|table| table.get(name)).map(written);
            let default = if is_example { "not set".to_owned() } else { value.to_owned() };
            if section.groups.last().is_none_or(|group| group.about != about) {
                section.groups.push(Group { about: about.clone(), rules: Vec::new() });
            }
            let Some(group) = section.groups.last_mut() else { continue };
            group.rules.push(Rule {
                name: name.to_owned(),
                beside: beside.to_owned(),
                value: owners.clone().unwrap_or_else(|| default.clone()),
                is_owners: owners.is_some_and(|value| value != default),
                default,
            });
        } else if let Some(comment) = line.strip_prefix('#') {
            // A comment after a rule is about the next one.
            if section.groups.last().is_some_and(|group| group.about == about) {
                about.clear();
            }
            if !about.is_empty() {
                about.push(' ');
            }
            about.push_str(comment.trim());
        } else if line.is_empty() {
            about.clear();
        }
    }
    sections
}

/// What the owner says and no default explains: of packages, profiles and budgets, and what has no default.
fn unexplained(sections: &[Section], own: &toml::Table) -> Vec<(String, String)> {
    let is_explained = |section: &str, name: &str| {
        let section = sections.iter().find(|one| one.name == section);
        let mut rules = section.into_iter().flat_map(|one| &one.groups).flat_map(|one| &one.rules);
        rules.any(|rule| rule.name == name)
    };
    let told = |(name, value): (&String, &toml::Value)| match value {
        toml::Value::Table(all) => all
            .iter()
            .filter(|(key, _)| !is_explained(name, key))
            .map(|(key, value)| (format!("{name}.{key}"), written(value)))
            .collect(),
        value => vec![(name.clone(), written(value))],
    };
    own.iter().flat_map(told).collect()
}

/// A value, as it stands in the file.
fn written(value: &toml::Value) -> String {
    use toml::Value;
    let all = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::String(text) => serde_json::Value::from(text.as_str()).to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(is_so) => is_so.to_string(),
        Value::Datetime(moment) => moment.to_string(),
        Value::Array(values) => format!("[{}]", all(values.iter().map(written).collect())),
        Value::Table(table) => {
            all(table.iter().map(|(key, value)| format!("{key} = {}", written(value))).collect())
        }
    }
}

/// A rule: its name, its value, and what stands beside it.
fn assigned(line: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = line.split_once(" = ")?;
    let is_name =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let (value, beside) = match rest.split_once(" #") {
        Some((value, beside)) => (value.trim(), beside.trim()),
        None => (rest.trim(), ""),
    };
    is_name.then_some((name, value, beside))
}

/// The part of the policy that a refusal comes from, as far as its words tell.
fn section_of(reason: &str, is_blocked: bool) -> &'static str {
    match reason {
        // Of the tools of a server the owner decides one by one, and no rule does.
        _ if reason.contains("other tools than you approved") => "",
        _ if reason.contains("trust") => "trust",
        _ if reason.contains("owner said no")
            || reason.contains("approv")
            || reason.contains("your policy refuses the action") =>
        {
            "approval"
        }
        _ if reason.contains("changes what programs execute") => "environment",
        _ if reason.contains("walls") || reason.contains("sandbox") => "sandbox",
        _ if reason.contains("folder") => "folders",
        _ if is_blocked || reason.contains("host") || reason.contains("network") => "network",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_of_the_defaults_is_explained() {
        let own: toml::Table =
            "[trust]\nallow = [\"local\"]\n[approval]\nwrite = \"allow\"\n".parse().unwrap();
        let sections = sections(policy::DEFAULTS, &own);
        let names: Vec<_> = sections.iter().map(|one| one.name.as_str()).collect();
        assert!(
            names.starts_with(&["trust", "network", "folders", "approval", "sandbox"]),
            "{names:?}"
        );
        for section in &sections {
            assert!(!section.groups.is_empty(), "{}", section.name);
            for group in &section.groups {
                for rule in &group.rules {
                    assert!(
                        !group.about.is_empty() || !rule.beside.is_empty(),
                        "{}.{}",
                        section.name,
                        rule.name
                    );
                    assert!(!rule.value.is_empty(), "{}.{}", section.name, rule.name);
                }
            }
        }
        let find = |section: &str, name: &str| {
            let section = sections.iter().find(|one| one.name == section).unwrap();
            let group = section
                .groups
                .iter()
                .find(|one| one.rules.iter().any(|one| one.name == name))
                .unwrap();
            (group.about.clone(), group.rules.iter().find(|one| one.name == name).unwrap())
        };
        assert!(
            find("trust", "allow").1.is_owners && find("trust", "allow").1.value == "[\"local\"]"
        );
        assert!(
            !find("approval", "write").1.is_owners,
            "what is said as it is anyway is no difference"
        );
        assert_eq!(find("approval", "owner_presence").1.default, "\"any\"");
        assert!(find("approval", "owner_presence").0.starts_with("What granting, approving"));
        assert_eq!(find("rank", "max_latency").1.value, "not set");
        assert_eq!(find("rank", "max_latency").1.beside, "on the average");
    }

    #[test]
    fn whatever_the_owner_says_is_shown_somewhere() {
        let own: toml::Table = "[secrets]\nvault_address = \"https://v\"\n[trust]\nallow = [\"local\"]\n[budget]\ncalls_per_day = 5\n[package.\"a.b\"]\nenabled = false\n"
            .parse()
            .unwrap();
        let more = unexplained(&sections(policy::DEFAULTS, &own), &own);
        let names: Vec<_> = more.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["budget.calls_per_day", "package.a.b", "secrets.vault_address"]);
    }

    #[test]
    fn a_refusal_is_told_with_the_rule_that_it_comes_from() {
        for (reason, section) in [
            ("trust_level not allowed by policy: community", "trust"),
            ("the owner said no", "approval"),
            (
                "`LD_PRELOAD` changes what programs execute, and your policy does not let it be passed on",
                "environment",
            ),
            ("its server offers other tools than you approved: `act` changed", ""),
            ("the folder `/x` is denied by your policy", "folders"),
            ("capability disabled", ""),
        ] {
            assert_eq!(section_of(reason, false), section, "{reason}");
        }
        assert_eq!(section_of("", true), "network");
    }
}
