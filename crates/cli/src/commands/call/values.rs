//! How to go on where a value that a call needs is not given.

use std::collections::HashSet;

use host::CallError;
use serde_json::Value;

use crate::declared;
use crate::owner::{self, Passphrase};
use crate::printer::line;
use crate::shell;

/// What would give a call of this package what it lacks, if its error is about that. What would give several is said once.
pub(super) fn hints(error: &CallError, package: &str, passphrase: Passphrase) -> Vec<String> {
    if let Some(all) = error.details.get("missing").and_then(Value::as_array) {
        let one = |one| missing(one, package, passphrase);
        let mut hints: Vec<_> = all.iter().filter_map(one).collect();
        let mut known = HashSet::new();
        hints.retain(|hint| known.insert(hint.clone()));
        return hints;
    }
    of_code(error.kind.code(), &error.details, package, passphrase).into_iter().collect()
}

/// What would give one value, by what is told of it.
pub(super) fn missing(value: &Value, package: &str, passphrase: Passphrase) -> Option<String> {
    of_code(text(value, "code").unwrap_or("missing_input"), value, package, passphrase)
}

fn of_code(code: &str, told: &Value, package: &str, passphrase: Passphrase) -> Option<String> {
    match code {
        "missing_input" => Some(unkept(told, package)? + &said(told)),
        "bad_input" => unfit(told, package),
        "denied" | "unavailable" => refused(told, package, passphrase),
        _ => None,
    }
}

/// What would give a value that nobody keeps.
fn unkept(value: &Value, package: &str) -> Option<String> {
    let text = |name: &str| text(value, name);
    if let Some(name) = text("variable") {
        return Some(format!(
            "set the variable `{}` of your environment: it is read from there",
            line(name)
        ));
    }
    let name = text("name")?;
    let owner = shell::word(text("owner").unwrap_or(package));
    let kept_as = shell::word(text("kept_as").unwrap_or(name));
    let keep = format!("`haft secret set {owner} {kept_as}` keeps it");
    Some(match value.get("secret") {
        Some(Value::Bool(false)) => format!(
            "`haft grant {owner} --env {}` passes on your variable of that name; {keep}",
            shell::word(name)
        ),
        _ => keep,
    })
}

/// What the manifest says of a value, after what would give it.
fn said(told: &Value) -> String {
    let prompt = text(told, "prompt").map(|words| format!("; {}", declared::asked_for(words)));
    let page = text(told, "obtain_url").map(|page| format!("; {}", declared::to_be_had(page)));
    prompt.into_iter().chain(page).collect()
}

/// Where a value that does not fit was found is where another has its place.
fn unfit(told: &Value, package: &str) -> Option<String> {
    let kept_as = || {
        let (package, name) = (shell::word(package), shell::word(text(told, "kept_as")?));
        Some(format!("`haft secret set {package} {name}` keeps another"))
    };
    let variable = text(told, "variable");
    variable.map(|name| format!("it is your variable `{}`", line(name))).or_else(kept_as)
}

fn refused(told: &Value, package: &str, passphrase: Passphrase) -> Option<String> {
    if let Some((table, list)) = text(told, "table").zip(text(told, "list")) {
        // Quoted as TOML quotes too.
        let names = told.get("names").and_then(Value::as_array).into_iter().flatten();
        let names: Vec<_> = names.map(Value::to_string).collect();
        let names = line(&names.join(", "));
        return Some(format!(
            "`{list} = [{names}]` below `[{table}]` in policy.toml lets it be given to every tool that names it"
        ));
    }
    if let Some(path) = text(told, "read") {
        let (package, path) = (shell::word(package), shell::word(path));
        return Some(format!("`haft grant {package} --read {path}` lets it be given"));
    }
    let of_vault = [
        ("sealed", owner::without_key as fn(&str) -> String),
        ("writable", owner::without_writers),
        ("open_to_others", owner::without_others),
        ("of_another", owner::as_own),
    ];
    let known = of_vault.into_iter().find_map(|(name, hint)| Some(hint(text(told, name)?)));
    known.or_else(|| passphrase.hint(text(told, "passphrase")?))
}

fn text<'t>(told: &'t Value, name: &str) -> Option<&'t str> {
    told.get(name).and_then(Value::as_str)
}
