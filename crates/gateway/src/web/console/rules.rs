//! The policy: every rule with what it means, what it says here, and what it decided lately.

use std::cmp::Reverse;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use host::records::now;
use ledger::Time;
use ledger::audit::{BlockedKind, Filter, Record};

use super::Console;
use super::frame::{Frame, Part, page};
use super::log::{Line, Log};
use super::timeline::{Entry, Timeline, Tone, Wanted};
use super::visit::Visit;
use crate::shelf::Stock;

/// What became of a call that its owner is asked about.
const ASKED: &str = "needs_approval";

/// How many decisions of a kind are looked at.
const LOOKED_AT: usize = 100;

/// How many are shown with a part of the policy of what it let through, and how many of what it did not.
const SHOWN: usize = 4;

/// A part of the policy: `[trust]`.
#[derive(Debug, Default)]
struct Section {
    /// As it stands in the file: `trust`, `profile.work`.
    title: String,
    groups: Vec<Group>,
    /// What it decided lately.
    decided: Vec<Decided>,
}

impl Section {
    /// What it is called: the first word of its title.
    fn name(&self) -> &str {
        self.title.split('.').next().unwrap_or_default()
    }

    /// Whether it is of one package or profile, and shown for what there can be of others.
    fn is_example(&self) -> bool {
        self.title.contains('.')
    }
}

/// A decision.
#[derive(Debug)]
struct Decided {
    entry: Entry,
    /// The rule that it comes from, where that is known.
    rule: String,
}

impl Decided {
    /// Whether it was let through.
    fn is_let(&self) -> bool {
        self.entry.tone == Tone::Good
    }

    fn new(line: &Line, now: Time, stock: &Stock) -> Self {
        let rule = rule_of(&line.record).unwrap_or_default().to_owned();
        Self { entry: Entry::new(line, now).linked(stock), rule }
    }
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
    rest: Vec<Decided>,
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
    let mut sections = sections(policy::DEFAULTS, &own);
    let mut rest = Vec::new();
    for line in &decided(&log).await {
        let about = section_of(&line.record);
        let section = sections.iter_mut().find(|one| Some(one.name()) == about);
        let decided = section.map_or(&mut rest, |section| &mut section.decided);
        // What came through crowds out nothing that did not.
        let one = Decided::new(line, now, &stock);
        let alike = decided.iter().filter(|other| other.is_let() == one.is_let()).count();
        if alike < SHOWN {
            decided.push(one);
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

/// What the policy decided lately, the last first: what was refused, what its owner was asked about, and what came through.
async fn decided(log: &Log) -> Vec<Line> {
    let mut decided: Vec<Line> = Vec::new();
    for outcome in [Some("denied"), Some(ASKED), None] {
        let filter = Filter { outcome: outcome.map(str::to_owned), ..Filter::default() };
        let wanted = Wanted { filter, is_without_tests: true, ..Wanted::default() };
        let read = Timeline::read(log, &wanted, None, LOOKED_AT).await.unwrap_or_default();
        let of_policy =
            read.lines.into_iter().filter(|line| outcome.is_some() || !line.record.rule.is_empty());
        for line in of_policy.filter(|line| !line.record.is_change()) {
            let is_known =
                |one: &Line| one.replica == line.replica && one.record.seq == line.record.seq;
            if !decided.iter().any(is_known) {
                decided.push(line);
            }
        }
    }
    decided.sort_by_key(|line| Reverse(line.record.ts));
    decided
}

/// Reads the defaults, whose comments explain every rule, beside what the owner says.
fn sections(defaults: &str, own: &toml::Table) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut about = String::new();
    for line in defaults.lines() {
        let line = line.trim();
        let header = line.strip_prefix("# ").filter(|rest| rest.starts_with('[')).unwrap_or(line);
        if let Some(title) = header.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            sections.push(Section { title: title.to_owned(), ..Section::default() });
            about.clear();
            continue;
        }
        let Some(section) = sections.last_mut() else { continue };
        let is_example = line.starts_with("# ") && assigned(&line[2..]).is_some();
        let text = if is_example { &line[2..] } else { line };
        if let Some((name, value, beside)) =
            assigned(text).filter(|_| is_example || !line.starts_with('#'))
        {
            let owners = own.get(&section.title).and_then(|table| table.get(name)).map(written);
            let default = match (section.is_example(), is_example) {
                (true, _) => format!("such as {value}"),
                (false, true) => "not set".to_owned(),
                (false, false) => value.to_owned(),
            };
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
        let section = sections.iter().find(|one| one.title == section);
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

/// The part of the policy that a decision comes from; none where no part of it made that. What a tool was kept from after it had
/// begun is told by what that was.
fn section_of(record: &Record) -> Option<&str> {
    match (record.rule.split('.').next(), record.blocked.first().map(|one| one.kind)) {
        (_, Some(BlockedKind::Host)) => Some("network"),
        (_, Some(BlockedKind::Path)) => Some("folders"),
        // Records of before the rules were written down.
        (Some(""), None) if record.outcome.as_deref() == Some(ASKED) => Some("approval"),
        (part, None) => part.filter(|name| !name.is_empty()),
    }
}

/// The key of that part which a decision comes from, where that is known.
fn rule_of(record: &Record) -> Option<&str> {
    let (part, key) = record.rule.split_once('.')?;
    (section_of(record) == Some(part)).then_some(key)
}

#[cfg(test)]
mod tests {
    use ledger::Audit;
    use ledger::audit::{Blocked, Call, Durability, Ending, Outcome};

    use super::*;

    #[test]
    fn every_rule_of_the_defaults_is_explained() {
        let own: toml::Table =
            "[trust]\nallow = [\"local\"]\n[approval]\nwrite = \"allow\"\n".parse().unwrap();
        let sections = sections(policy::DEFAULTS, &own);
        let names: Vec<_> = sections.iter().map(Section::name).collect();
        assert!(
            names.starts_with(&["trust", "network", "folders", "approval", "budget", "sandbox"]),
            "{names:?}"
        );
        for section in &sections {
            assert!(!section.groups.is_empty(), "{}", section.title);
            for group in &section.groups {
                for rule in &group.rules {
                    assert!(
                        !group.about.is_empty() || !rule.beside.is_empty(),
                        "{}.{}",
                        section.title,
                        rule.name
                    );
                    assert!(!rule.value.is_empty(), "{}.{}", section.title, rule.name);
                }
            }
        }
        let find = |section: &str, name: &str| {
            let section = sections.iter().find(|one| one.title == section).unwrap();
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

    /// The keys that a table of a policy can have: whoever writes none of them is told all.
    fn keys(table: &str) -> Vec<String> {
        let written =
            if table.is_empty() { "xyzzy = 1".to_owned() } else { format!("[{table}]\nxyzzy = 1") };
        let error = policy::Policy::parse(&written).unwrap_err();
        let (_, known) =
            error.faults[0].message.split_once("there is no such key; there is ").unwrap();
        known.split(", ").map(str::to_owned).collect()
    }

    #[test]
    fn every_key_that_a_policy_can_have_is_on_the_page() {
        let sections = sections(policy::DEFAULTS, &toml::Table::new());
        let tables = keys("");
        assert!(tables.len() > 10, "{tables:?}");
        for table in tables {
            let section = sections.iter().find(|one| one.name() == table);
            let section = section.unwrap_or_else(|| panic!("[{table}] is not on the page"));
            let rules: Vec<_> =
                section.groups.iter().flat_map(|one| &one.rules).map(|rule| &*rule.name).collect();
            for key in keys(&section.title) {
                assert!(rules.contains(&key.as_str()), "{table}.{key} is not on the page");
            }
        }
    }

    #[test]
    fn whatever_the_owner_says_is_shown_somewhere() {
        let own: toml::Table = "[trust]\nallow = [\"local\"]\n[budget]\ncalls_per_day = 5\n[package.\"a.b\"]\nallow = false\n"
            .parse()
            .unwrap();
        let sections = sections(policy::DEFAULTS, &own);
        let more = unexplained(&sections, &own);
        let names: Vec<_> = more.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["package.a.b"]);
        let budget = sections.iter().find(|one| one.name() == "budget").unwrap();
        let mut rules = budget.groups.iter().flat_map(|one| &one.rules);
        let rule = rules.find(|rule| rule.name == "calls_per_day").unwrap();
        assert_eq!((&*rule.value, rule.is_owners), ("5", true));
    }

    #[tokio::test]
    async fn a_decision_is_told_with_the_part_that_it_comes_from() {
        let folder = std::env::temp_dir().join(format!("haft-rules-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let (audit, now) = (Audit::new(&folder, Durability::Process), now());
        let blocked = |kind| vec![Blocked { kind, value: "x".into() }];
        for (action, rule, outcome, blocked) in [
            ("let", "approval.write", "ok", Vec::new()),
            ("asked", "approval.destructive", ASKED, Vec::new()),
            ("often", "budget.calls_per_day", "denied", Vec::new()),
            ("weak", "sandbox.level", "unavailable", Vec::new()),
            ("named", "package.allow", "denied", Vec::new()),
            ("away", "approval.write", "tool_failed", blocked(BlockedKind::Host)),
            ("file", "approval.write", "tool_failed", blocked(BlockedKind::Path)),
            ("off", "", "denied", Vec::new()),
            ("unknown", "", "unknown_tool", Vec::new()),
            ("old", "", ASKED, Vec::new()),
        ] {
            let call = Call { action: action.into(), rule: rule.into(), ..Call::default() };
            let outcome = match outcome {
                "ok" => Outcome::Ok,
                code => Outcome::Error(code.to_owned()),
            };
            audit.record(&call, &Ending { outcome, blocked, ..Ending::default() }, now).unwrap();
        }
        let lines = decided(&Log::Home(folder.clone())).await;
        std::fs::remove_dir_all(&folder).unwrap();
        let mut told: Vec<_> = lines
            .iter()
            .map(|line| {
                let record = &line.record;
                (record.action.as_str(), section_of(record), rule_of(record))
            })
            .collect();
        told.sort_unstable();
        assert_eq!(
            told,
            [
                ("asked", Some("approval"), Some("destructive")),
                ("away", Some("network"), None),
                ("file", Some("folders"), None),
                ("let", Some("approval"), Some("write")),
                ("named", Some("package"), Some("allow")),
                ("off", None, None),
                ("often", Some("budget"), Some("calls_per_day")),
                ("old", Some("approval"), None),
                ("weak", Some("sandbox"), Some("level")),
            ]
        );
    }
}
