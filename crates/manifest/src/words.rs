//! What a tool may do and what it needs, in plain words.
//!
//! What the author does not say is told as not said; it is never taken for harmless.

use crate::inert::short;
use crate::model::{Action, AuthKind, Channel, Input, Package, Permissions, Sandbox, SideEffects};

/// A number, its thousands apart.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How much a fact should weigh with whoever reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Nothing to think about.
    Calm,
    /// To be known.
    Plain,
    /// To be thought about.
    Ask,
}

impl Weight {
    /// The class of its mark.
    pub fn class(self) -> &'static str {
        match self {
            Weight::Calm => "calm",
            Weight::Plain => "plain",
            Weight::Ask => "ask",
        }
    }
}

/// What is told where the author says nothing: that is what the tool is given then.
const SILENT: &str = "The author does not say, so it is given none.";

/// Whether the author of a package says what it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// They do; what is not named is not wanted.
    Says,
    /// They do not.
    IsSilent,
}

/// One thing about a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What it is about: `Network`.
    pub about: &'static str,
    /// What is said, in a sentence.
    pub says: String,
    /// How much that should weigh.
    pub weight: Weight,
    /// The exact names behind the words.
    pub exact: Vec<String>,
}

fn fact(about: &'static str, weight: Weight, says: impl Into<String>) -> Fact {
    Fact { about, says: says.into(), weight, exact: Vec::new() }
}

/// All facts about a package, the weightiest subjects first.
pub fn facts(package: &Package) -> Vec<Fact> {
    let permissions = &package.permissions;
    let author = if permissions.declared { Author::Says } else { Author::IsSilent };
    let mut facts = vec![effects(&package.actions), network(&permissions.hosts, author)];
    facts.push(files(&package.permissions));
    if !package.permissions.devices.is_empty() {
        let mut devices = fact("Devices", Weight::Ask, "Uses devices of this machine.");
        devices.exact.clone_from(&package.permissions.devices);
        facts.push(devices);
    }
    facts.push(secrets(package));
    facts.push(approval(&package.actions));
    facts.extend(money(package));
    facts.extend(sign_in(package));
    if package.channel == Channel::VdiVpn {
        let says = "Is driven through a screen or a private network.";
        facts.push(fact("Channel", Weight::Ask, says));
    }
    if let Some(walls) = package.sandbox {
        let says = match walls {
            Sandbox::Process => "Asks for walls around its process.",
            Sandbox::Container => "Asks to run in a container.",
        };
        facts.push(fact("Walls", Weight::Calm, says));
    }
    let resources = [&package.resources.memory, &package.resources.cpu];
    let time = package.timeout_ms.map(|time| format!("{} per call", duration(time)));
    let memory = resources[0].as_ref().map(|memory| format!("{memory} of memory"));
    let processor = resources[1].as_ref().map(|cpu| format!("processor {cpu}"));
    let limits: Vec<String> = [time, memory, processor].into_iter().flatten().collect();
    if !limits.is_empty() {
        facts.push(fact("Limits", Weight::Calm, format!("At most {}.", limits.join(", "))));
    }
    facts
}

/// The worst that its actions do.
fn effects(actions: &[Action]) -> Fact {
    let silent = actions.iter().filter(|action| action.side_effects.is_none()).count();
    let worst = actions.iter().filter_map(|action| action.side_effects).max();
    let named = |effects: SideEffects| -> Vec<String> {
        let same = actions.iter().filter(|action| action.side_effects == Some(effects));
        same.map(|action| action.name.clone()).collect()
    };
    let mut effect = match worst {
        Some(SideEffects::Destructive) => {
            let mut fact = fact(
                "Changes",
                Weight::Ask,
                "Can change or delete things for good; each such call asks first.",
            );
            fact.exact = named(SideEffects::Destructive);
            fact
        }
        Some(SideEffects::Write) => {
            let mut fact =
                fact("Changes", Weight::Ask, "Changes things, in a way that can be undone.");
            fact.exact = named(SideEffects::Write);
            fact
        }
        Some(SideEffects::Read) if silent == 0 => {
            fact("Changes", Weight::Calm, "Changes nothing; looks at your data.")
        }
        Some(SideEffects::None) if silent == 0 => fact("Changes", Weight::Calm, "Changes nothing."),
        _ => fact("Changes", Weight::Ask, "The author does not say what it changes."),
    };
    if silent > 0 && matches!(worst, Some(SideEffects::Write | SideEffects::Destructive)) {
        effect.says.push_str(" Of some actions the author does not say.");
    }
    effect
}

/// What a package reaches. Without a word of its author it is given no network, and whoever reads that should know why.
pub fn network(hosts: &[String], author: Author) -> Fact {
    if hosts.iter().any(|host| host == "*") {
        return fact("Network", Weight::Ask, "Asks to reach any host.");
    }
    if hosts.iter().any(|host| host.contains('*')) {
        let says = "Reaches every host of these names.";
        return exact("Network", Weight::Plain, says, hosts);
    }
    match (hosts.len(), author) {
        (0, Author::Says) => fact("Network", Weight::Calm, "None."),
        (0, Author::IsSilent) => fact("Network", Weight::Ask, SILENT),
        (1, _) => exact("Network", Weight::Plain, "Reaches one host.", hosts),
        (many, _) => exact("Network", Weight::Plain, format!("Reaches {many} hosts."), hosts),
    }
}

/// Which files a package wants.
pub fn files(permissions: &Permissions) -> Fact {
    let ceiling = permissions.filesystem.as_deref();
    let (read, write) = (&permissions.read, &permissions.write);
    if !write.is_empty() {
        let says = if read.is_empty() { "Writes files in:" } else { "Reads and writes files in:" };
        let mut all = write.clone();
        all.extend(read.iter().filter(|folder| !write.contains(folder)).cloned());
        return exact("Files", Weight::Ask, says, &all);
    }
    match ceiling {
        _ if !read.is_empty() => {
            exact("Files", Weight::Plain, "Reads files and writes none. Reads in:", read)
        }
        Some("write") => fact("Files", Weight::Ask, "Asks to write in the folders you grant."),
        Some("read") => {
            fact("Files", Weight::Plain, "Reads the folders you grant; writes nothing.")
        }
        _ if permissions.declared => fact("Files", Weight::Calm, "None."),
        _ => fact("Files", Weight::Ask, SILENT),
    }
}

fn secrets(package: &Package) -> Fact {
    let secret = |input: &&Input| input.secret;
    let names: Vec<String> =
        package.inputs.iter().filter(secret).map(|input| input.name.clone()).collect();
    match names.len() {
        0 => fact("Secrets", Weight::Calm, "None."),
        1 => exact("Secrets", Weight::Plain, "Needs one secret of yours.", &names),
        many => exact("Secrets", Weight::Plain, format!("Needs {many} secrets of yours."), &names),
    }
}

fn approval(actions: &[Action]) -> Fact {
    let asking = actions.iter().filter(|action| asks(action));
    let names: Vec<String> = asking.map(|action| action.name.clone()).collect();
    if names.is_empty() {
        return fact(
            "Approval",
            Weight::Plain,
            "Its author wants no call to wait for your word; your policy may.",
        );
    }
    if names.len() == actions.len() {
        return fact("Approval", Weight::Calm, "Every call waits for your word.");
    }
    exact("Approval", Weight::Calm, "Some calls wait for your word:", &names)
}

/// Whether each call of an action waits for the owner's word: its author says so, or it cannot be undone.
pub fn asks(action: &Action) -> bool {
    action.requires_approval == Some(true) || action.side_effects == Some(SideEffects::Destructive)
}

fn money(package: &Package) -> Option<Fact> {
    match (package.uses_payment, &package.cost) {
        (Some(true), _) => Some(fact("Money", Weight::Ask, "Spends money.")),
        (Some(false), _) => Some(fact("Money", Weight::Calm, "Spends none.")),
        (None, Some(cost)) if is_free(&cost.value()) => {
            Some(fact("Money", Weight::Calm, "Costs nothing, its author says."))
        }
        (None, Some(cost)) => {
            let mut told = fact("Money", Weight::Plain, "Its author names a price.");
            told.exact.push(short(cost.text(), 300));
            Some(told)
        }
        (None, None) => None,
    }
}

/// Whether a price is none: no number but zero, and nothing that is metered.
fn is_free(cost: &serde_json::Value) -> bool {
    use serde_json::Value;
    let Some(parts) = cost.as_object() else { return false };
    let mut numbers = parts.values().filter_map(Value::as_f64);
    let usage = parts.get("usage_model").and_then(Value::as_str);
    let is_told =
        usage == Some("none") || (usage.is_none() && parts.values().any(Value::is_number));
    is_told && numbers.all(|number| number == 0.0)
}

fn sign_in(package: &Package) -> Option<Fact> {
    if package.requires_oauth {
        return Some(fact("Sign-in", Weight::Plain, "You sign in with its service first."));
    }
    let auth = package.auth.as_ref()?;
    let says = match auth.kind {
        AuthKind::None => return None,
        AuthKind::Bearer => "Its requests carry a token of yours.",
        AuthKind::ApiKey => "Its requests carry an API key of yours.",
        AuthKind::Oauth2 => "You sign in with its service first.",
    };
    Some(exact("Sign-in", Weight::Plain, says, &auth.scopes))
}

fn exact(about: &'static str, weight: Weight, says: impl Into<String>, names: &[String]) -> Fact {
    Fact { exact: names.to_vec(), ..fact(about, weight, says) }
}

/// What an action does, in a word or two, and how much that weighs.
pub fn effect(action: &Action) -> (&'static str, Weight) {
    match action.side_effects {
        Some(SideEffects::None) => ("changes nothing", Weight::Calm),
        Some(SideEffects::Read) => ("reads", Weight::Calm),
        Some(SideEffects::Write) => ("writes", Weight::Ask),
        Some(SideEffects::Destructive) => ("cannot be undone", Weight::Ask),
        None => ("effects not said", Weight::Plain),
    }
}

/// A time as people say it.
pub fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..120_000 if milliseconds.is_multiple_of(1_000) => {
            format!("{} s", milliseconds / 1_000)
        }
        1_000..120_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        _ => format!("{} min", milliseconds / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Options, read};

    fn package(change: impl FnOnce(&mut Package)) -> Package {
        let manifest = r#"{"id":"tool:a.b","name":"a.b","version":"1.0.0","summary":"Does it",
            "requiredSecrets":["key"],"requiresApproval":true,
            "entry":{"runtime":"node","main":"index.js","export":"tool"},"schema":{"input":{"type":"object"}}}"#;
        let (_, mut packages) = read(manifest.as_bytes(), &Options::default()).unwrap();
        change(&mut packages[0]);
        packages.remove(0)
    }

    fn says(package: &Package, about: &str) -> (String, Weight) {
        let facts = facts(package);
        let fact = facts.iter().find(|fact| fact.about == about).unwrap();
        (fact.says.clone(), fact.weight)
    }

    #[test]
    fn what_is_not_said_is_not_taken_for_harmless() {
        let silent = package(|package| {
            package.permissions = Permissions::default();
            package.actions[0].side_effects = None;
        });
        for about in ["Changes", "Network", "Files"] {
            let (says, weight) = says(&silent, about);
            assert!(says.starts_with("The author does not say"), "{about}: {says}");
            assert_eq!(weight, Weight::Ask);
        }
    }

    #[test]
    fn what_is_said_is_told_in_words_and_by_name() {
        let told = package(|package| {
            package.permissions = Permissions {
                declared: true,
                hosts: vec!["api.example.com".to_owned()],
                read: vec!["/data".to_owned()],
                ..Permissions::default()
            };
            package.actions[0].side_effects = Some(SideEffects::Destructive);
            package.uses_payment = Some(true);
        });
        assert_eq!(says(&told, "Network"), ("Reaches one host.".to_owned(), Weight::Plain));
        assert!(asks(&told.actions[0]), "what cannot be undone asks, whatever its author says");
        let many = package(|package| {
            package.permissions = Permissions {
                declared: true,
                hosts: vec!["*.example.com".to_owned()],
                ..Permissions::default()
            };
        });
        assert_eq!(says(&many, "Network").0, "Reaches every host of these names.");
        assert!(says(&told, "Files").0.starts_with("Reads files and writes none"));
        assert_eq!(says(&told, "Changes").1, Weight::Ask);
        assert_eq!(says(&told, "Approval").0, "Every call waits for your word.");
        assert_eq!(says(&told, "Money"), ("Spends money.".to_owned(), Weight::Ask));
        let facts = facts(&told);
        let secrets = facts.iter().find(|fact| fact.about == "Secrets").unwrap();
        assert_eq!(secrets.exact, ["key"]);
        let calm = package(|package| {
            package.permissions = Permissions { declared: true, ..Permissions::default() };
        });
        assert_eq!(says(&calm, "Network"), ("None.".to_owned(), Weight::Calm));
        assert_eq!(says(&calm, "Files"), ("None.".to_owned(), Weight::Calm));
    }

    #[test]
    fn only_a_price_of_nothing_is_free() {
        use serde_json::json;
        assert!(is_free(&json!({"fee": 0})) && is_free(&json!({"usage_model": "none"})));
        for cost in [
            json!({"fee": 0, "more": 0.01}),
            json!({"fee": 0, "usage_model": "metered"}),
            json!({}),
            json!(0),
        ] {
            assert!(!is_free(&cost), "{cost}");
        }
    }

    #[test]
    fn times_are_said_as_people_say_them() {
        for (time, said) in
            [(500, "500 ms"), (10_000, "10 s"), (1_500, "1.5 s"), (300_000, "5 min")]
        {
            assert_eq!(duration(time), said);
        }
    }
}
