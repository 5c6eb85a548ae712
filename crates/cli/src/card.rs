//! The consent card, drawn: everything that a stranger wrote is escaped, and nothing is cut.

use std::fmt::Write;
use std::net::IpAddr;

use install::Source;
use install::card::{ActionShown, Card, InputShown, ScopeShown};
use serde_json::Value;

use crate::commands::install::estimate_words;
use crate::printer::line;
use crate::shell;

/// The card as lines of text.
pub(crate) fn drawn(card: &Card) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<13} {value}");
    };
    let title = match &card.name {
        Some(name) => format!("{} {}  {}", line(&card.id), line(&card.version), line(name)),
        None => format!("{} {}", line(&card.id), line(&card.version)),
    };
    if let Some(summary) = &card.summary {
        row("does", &line(summary));
    }
    for by in &card.by {
        row("by", &line(by));
    }
    if let Some(license) = &card.license {
        row("licence", &line(license));
    }
    if let Some(homepage) = &card.homepage {
        row("page", &line(homepage));
    }
    row("from", &line(&from(&card.source)));
    row("digest", &format!("sha256:{}", card.package.0));
    if let Some(archive) = card.archive {
        row("file", &format!("sha256:{}", archive.0));
    }
    row("signature", &line(&card.signature));
    row("trust", &format!("{}: {}", card.trust, line(&card.trust_because)));
    for scope in &card.scopes {
        row("scope", &drawn_scope(scope));
    }
    match (card.hosts.is_empty(), card.declared) {
        (true, false) => row("network", "none: the author does not say"),
        (true, true) | (false, _) => row("network", &hosts_told(&card.hosts)),
    }
    for (who, hosts) in
        [("smoke test", &card.smoke_hosts), ("kill switch", &card.kill_switch_hosts)]
    {
        if !hosts.is_empty() {
            row("network", &format!("{}, for its {who} alone", hosts_told(hosts)));
        }
    }
    row("reads", &none_or(&card.folders.read));
    row("writes", &none_or(&card.folders.write));
    if let Some(ceiling) = card.folders.ceiling.as_deref().filter(|ceiling| *ceiling != "none") {
        row("folders", &format!("those that you grant, to {}", line(ceiling)));
    }
    if !card.folders.devices.is_empty() {
        row("devices", &none_or(&card.folders.devices));
    }
    for input in &card.inputs {
        row("asks for", &drawn_input(input));
    }
    if card.requires_oauth {
        // Who runs elsewhere says where that is done.
        let how = if card.addresses.is_empty() {
            "`haft login ID --issuer URL`, once it is installed; it is given your token as a secret"
        } else {
            "`haft login ID`, once it is installed"
        };
        row("sign-in", &format!("before it is used: {how}"));
    }
    for action in &card.actions {
        row("action", &drawn_action(action));
    }
    for address in &card.addresses {
        row("reaches", &line(address));
    }
    for step in &card.steps {
        row("step", &line(step));
    }
    if let Some(channel) = &card.channel {
        row("driven", &line(channel));
    }
    row("acquired", &acquired(card));
    for dependency in &card.dependencies {
        row("needs", &line(dependency));
    }
    for command in &card.commands {
        row("runs", &line(command));
    }
    for (name, value) in [
        ("cost", &card.cost),
        ("private data", &card.data_boundary),
        ("smoke test", &card.smoke),
        ("kill switch", &card.kill_switch),
    ] {
        if let Some(value) = value {
            row(name, &line(&said(value)));
        }
    }
    if let Some(estimate) = &card.estimate {
        row("estimate", &line(&estimate_words(estimate)));
    }
    row("walls", &line(&card.sandbox));
    if !card.resources.is_empty() {
        row("limits", &none_or(&card.resources));
    }
    format!("{title}\n{text}")
}

pub(crate) fn from(source: &Source) -> String {
    match source {
        Source::Path(path) => path.clone(),
        Source::Listed(path) => format!("{path}, which a catalog lists"),
        Source::Imported(path) => format!("the settings at {path}"),
        Source::Registry(url) => format!("the registry {url}"),
        Source::Url(url) => url.clone(),
    }
}

/// Hosts, and of private ones that a card does not lead there.
fn hosts_told(hosts: &[String]) -> String {
    let told = |host: &String| {
        let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
        let is_private = match name.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
            Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unique_local(),
            Err(_) => name == "localhost",
        };
        if is_private {
            format!("{host} (private: only by a grant of yours)")
        } else {
            host.clone()
        }
    };
    none_or(&hosts.iter().map(told).collect::<Vec<_>>())
}

fn none_or(values: &[String]) -> String {
    if values.is_empty() { "none".to_owned() } else { line(&values.join(", ")) }
}

fn acquired(card: &Card) -> String {
    match card.acquired_from.as_slice() {
        [] => line(&card.acquired),
        from => line(&format!("{}, from {}", card.acquired, from.join(", "))),
    }
}

fn drawn_scope(scope: &ScopeShown) -> String {
    let provider =
        scope.provider_scope.as_ref().map(|name| format!(" [{name}]")).unwrap_or_default();
    line(&format!("{} {}: {}{provider}", scope.verbs.join(", "), scope.resource, scope.rationale))
}

fn drawn_input(input: &InputShown) -> String {
    let what = if input.secret { "secret" } else { "value" };
    let need = match (input.required, input.signs_in) {
        (true, _) => "",
        (false, true) => ", wanted by its calls",
        (false, false) => ", may be left out",
    };
    let default = input.default.as_ref().map(|value| format!(", else {value}")).unwrap_or_default();
    let prompt = input.prompt.as_ref().map(|words| format!(": {words}")).unwrap_or_default();
    let kept = input.reference.as_ref().map(|place| format!(", kept at {place}"));
    let default = kept.unwrap_or(default);
    let page = input.obtain_url.as_ref().map(|url| format!(" ({url})")).unwrap_or_default();
    line(&format!("{} ({what}{need}{default}){prompt}{page}", input.name))
}

fn drawn_action(action: &ActionShown) -> String {
    let summary = action.summary.as_ref().map(|words| format!(": {words}")).unwrap_or_default();
    let asks = if action.requires_approval == Some(true) { ", asks each time" } else { "" };
    line(&format!("{} (side effects {}{asks}){summary}", action.name, action.side_effects))
}

/// What an object says, as people read it: its keys with their values, one after the other.
fn said(value: &Value) -> String {
    let Value::Object(fields) = value else { return plain(value) };
    let field = |(name, value): (&String, &Value)| match value.as_array() {
        Some(words) if name == "command" => format!("{name} {}", typed(words)),
        _ => format!("{name} {}", plain(value)),
    };
    fields.iter().map(field).collect::<Vec<_>>().join(", ")
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.is_empty() => "none".to_owned(),
        Value::Object(_) => format!("({})", said(value)),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(plain).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

/// A command as it would be typed.
fn typed(words: &[Value]) -> String {
    words.iter().map(|word| shell::word(&plain(word))).collect::<Vec<_>>().join(" ")
}
