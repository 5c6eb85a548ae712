//! The consent card, as it is shown: first in plain words, then everything that it says, nothing cut.

use manifest::model::Permissions;
use manifest::words::{self, Author, Fact};
use serde_json::{Map, Value};

/// A line of the card.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) says: String,
    /// The exact names behind the words.
    pub(super) exact: Vec<String>,
    /// `calm`, `plain` or `ask`: how much it should weigh.
    pub(super) weight: &'static str,
}

/// A value that it asks for.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) name: String,
    pub(super) is_secret: bool,
    pub(super) is_required: bool,
    pub(super) about: String,
    pub(super) default: String,
    pub(super) obtain: Option<String>,
}

/// An action.
#[derive(Debug)]
pub(super) struct Action {
    pub(super) name: String,
    pub(super) summary: String,
    pub(super) effect: &'static str,
    pub(super) weight: &'static str,
    pub(super) asks: bool,
}

/// The card of one package.
#[derive(Debug)]
pub(super) struct Card {
    pub(super) id: String,
    pub(super) version: String,
    pub(super) name: String,
    pub(super) summary: String,
    /// Stands for everything that it says.
    pub(super) digest: String,
    pub(super) trust: String,
    pub(super) is_trusted: bool,
    /// What it may do.
    pub(super) may: Vec<Line>,
    /// Who made it, where it comes from, what will be run.
    pub(super) facts: Vec<Line>,
    pub(super) actions: Vec<Action>,
    pub(super) inputs: Vec<Input>,
    /// All of it, as programs are told.
    pub(super) raw: String,
}

impl Card {
    /// Reads what `haft show --json` prints of a card.
    pub(super) fn read(told: &Value) -> Self {
        let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
        let (id, trust) = (text("id"), text("trust"));
        let name = told["name"].as_str().map_or_else(|| id.clone(), str::to_owned);
        Self {
            version: text("version"),
            name,
            summary: text("summary"),
            digest: text("card"),
            is_trusted: matches!(trust.as_str(), "local" | "verified"),
            may: may(told),
            facts: facts(told),
            actions: list(&told["actions"]).map(action).collect(),
            inputs: list(&told["inputs"]).map(input).collect(),
            raw: serde_json::to_string_pretty(told).unwrap_or_default(),
            id,
            trust,
        }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn texts(value: &Value) -> Vec<String> {
    list(value).map(plain).collect()
}

/// What it may do.
fn may(told: &Value) -> Vec<Line> {
    let is_declared = told["declared"] == true;
    let author = if is_declared { Author::Says } else { Author::IsSilent };
    let mut lines = vec![of_fact(words::network(&texts(&told["hosts"]), author))];
    for (of, key) in [("smoke test", "smoke_hosts"), ("kill switch", "kill_switch_hosts")] {
        let hosts = texts(&told[key]);
        if !hosts.is_empty() {
            lines.push(with("Network", "plain", format!("For its {of} alone:"), hosts));
        }
    }
    let folders = &told["folders"];
    let (read, write) = (texts(&folders["read"]), texts(&folders["write"]));
    if read.is_empty() && write.is_empty() {
        let filesystem = folders["ceiling"].as_str().map(str::to_owned);
        let wanted = Permissions { declared: is_declared, filesystem, ..Permissions::default() };
        lines.push(of_fact(words::files(&wanted)));
    }
    if !read.is_empty() {
        lines.push(with("Files", "plain", "Reads in:", read));
    }
    if !write.is_empty() {
        lines.push(with("Files", "ask", "Writes in:", write));
    }
    let devices = texts(&folders["devices"]);
    if !devices.is_empty() {
        lines.push(with("Devices", "ask", "Uses:", devices));
    }
    for scope in list(&told["scopes"]) {
        let verbs = texts(&scope["verbs"]).join(", ");
        let says = format!("{verbs} {}: {}", plain(&scope["resource"]), plain(&scope["rationale"]));
        let provider = scope["provider_scope"].as_str().map(str::to_owned);
        lines.push(with("On your behalf", "plain", says, provider.into_iter().collect()));
    }
    let secrets: Vec<_> = list(&told["inputs"])
        .filter(|one| one["secret"] == true)
        .map(|one| plain(&one["name"]))
        .collect();
    lines.push(match secrets.len() {
        0 => line("Secrets", "calm", "None."),
        _ => with("Secrets", "plain", "Asks for:", secrets),
    });
    if told["requires_oauth"] == true {
        lines.push(line("Sign-in", "plain", "You sign in with its service before it is used."));
    }
    lines
}

/// Who made it, where it comes from, what will be run, and what else it says.
fn facts(told: &Value) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut put = |name: &'static str, key: &str| match &told[key] {
        Value::Null => {}
        Value::Array(all) if all.is_empty() => {}
        Value::Array(_) => lines.push(with(name, "plain", "", texts(&told[key]))),
        value => lines.push(line(name, "plain", said(value))),
    };
    put("By", "by");
    put("Licence", "license");
    put("Page", "homepage");
    put("From", "source");
    put("Signature", "signature");
    put("Trusted because", "trust_because");
    put("Acquired", "acquired");
    put("Acquired from", "acquired_from");
    put("Needs", "dependencies");
    put("Runs", "commands");
    put("Reaches", "addresses");
    put("Steps", "steps");
    put("Driven", "channel");
    put("Walls", "sandbox");
    put("Limits", "resources");
    put("Cost", "cost");
    put("Estimate", "estimate");
    put("Private data", "data_boundary");
    put("Smoke test", "smoke");
    put("Kill switch", "kill_switch");
    put("Digest of its files", "package");
    put("Digest of its archive", "archive");
    lines
}

fn action(told: &Value) -> Action {
    let (effect, weight) = match told["side_effects"].as_str() {
        Some("none") => ("changes nothing", "good"),
        Some("read") => ("reads", "good"),
        Some("write") => ("writes", "warn"),
        Some("destructive") => ("cannot be undone", "stop"),
        _ => ("effects not said", "warn"),
    };
    Action {
        name: plain(&told["name"]),
        summary: plain(&told["summary"]),
        effect,
        weight,
        asks: told["requires_approval"] == true,
    }
}

fn input(told: &Value) -> Input {
    Input {
        name: plain(&told["name"]),
        is_secret: told["secret"] == true,
        is_required: told["required"] == true && told["default"].is_null(),
        about: plain(&told["prompt"]),
        default: plain(&told["default"]),
        obtain: told["obtain_url"].as_str().map(str::to_owned),
    }
}

/// A fact as a line, in the words of the page of the tool.
fn of_fact(fact: Fact) -> Line {
    Line { name: fact.about, says: fact.says, exact: fact.exact, weight: fact.weight.class() }
}

fn line(name: &'static str, weight: &'static str, says: impl Into<String>) -> Line {
    Line { name, says: says.into(), exact: Vec::new(), weight }
}

fn with(
    name: &'static str,
    weight: &'static str,
    says: impl Into<String>,
    exact: Vec<String>,
) -> Line {
    Line { exact, ..line(name, weight, says) }
}

/// What an object says, as people read it: its keys with their values, one after the other.
fn said(value: &Value) -> String {
    let Value::Object(fields) = value else { return plain(value) };
    said_of(fields)
}

fn said_of(fields: &Map<String, Value>) -> String {
    let field =
        |(name, value): (&String, &Value)| format!("{} {}", name.replace('_', " "), plain(value));
    fields.iter().map(field).collect::<Vec<_>>().join(", ")
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.is_empty() => "none".to_owned(),
        Value::Object(fields) => format!("({})", said_of(fields)),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_author_does_not_say_is_told_as_on_the_page_of_the_tool() {
        let told = |declared: bool| {
            let card = Card::read(&json!({ "id": "mcpkg:a.b", "hosts": [], "declared": declared }));
            let says = |name: &str| {
                let line = card.may.iter().find(|one| one.name == name).unwrap();
                (line.says.clone(), line.weight)
            };
            [says("Network"), says("Files")]
        };
        let silent = ("The author does not say, so it is given none.".to_owned(), "ask");
        assert_eq!(told(false), [silent.clone(), silent]);
        let none = ("None.".to_owned(), "calm");
        assert_eq!(told(true), [none.clone(), none]);
    }

    #[test]
    fn a_card_is_told_in_words_and_nothing_of_it_is_cut() {
        let long = "x".repeat(5_000);
        let told = json!({
            "id": "mcpkg:a.b", "version": "1.0.0", "kind": "tool", "summary": long, "card": "sha256:0",
            "source": {"registry": "http://127.0.0.1:1"}, "package": "sha256:1", "signature": "unsigned",
            "trust": "community", "trust_because": "it came from a registry", "hosts": ["api.example.com"],
            "folders": {"read": [], "write": ["/data"], "devices": []},
            "inputs": [{"name": "KEY", "secret": true, "required": true, "signs_in": false, "prompt": "Yours"}],
            "actions": [{"name": "send", "side_effects": "destructive"}], "acquired": "with the package",
            "commands": ["node main.mjs"], "requires_oauth": false, "sandbox": "walls",
            "kill_switch": {"kind": "none"},
        });
        let card = Card::read(&told);
        assert_eq!((card.name.as_str(), card.summary.len()), ("mcpkg:a.b", 5_000));
        assert!(!card.is_trusted);
        let find = |name: &str| card.may.iter().find(|one| one.name == name).unwrap();
        assert_eq!(find("Network").exact, ["api.example.com"]);
        assert_eq!((find("Files").weight, find("Files").exact[0].as_str()), ("ask", "/data"));
        assert_eq!(find("Secrets").exact, ["KEY"]);
        assert_eq!(card.actions[0].effect, "cannot be undone");
        assert!(card.inputs[0].is_secret && card.inputs[0].is_required);
        let fact = |name: &str| card.facts.iter().find(|one| one.name == name).unwrap();
        assert_eq!(fact("From").says, "registry http://127.0.0.1:1");
        assert_eq!(fact("Runs").exact, ["node main.mjs"]);
        assert_eq!(fact("Kill switch").says, "kind none");
    }
}
