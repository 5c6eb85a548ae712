//! How to go on where a value that a call needs is not given.

use host::{CallError, Kind};
use serde_json::Value;

use crate::ask::AT_TERMINAL;
use crate::owner;
use crate::printer::line;
use crate::shell;

/// What would give a call of this package what it lacks, if its error is about that.
pub(super) fn hints(error: &CallError, package: &str) -> Vec<String> {
    let hint = match error.kind {
        Kind::MissingInput => match error.details.get("missing").and_then(Value::as_array) {
            Some(all) => return all.iter().filter_map(|one| missing(one, package)).collect(),
            None => missing(&error.details, package),
        },
        Kind::BadInput => unfit(error, package),
        Kind::Denied | Kind::Unavailable => refused(error, package),
        _ => None,
    };
    hint.into_iter().collect()
}

/// What would give one value.
pub(super) fn missing(value: &Value, package: &str) -> Option<String> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
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

/// Where a value that does not fit was found is where another has its place.
fn unfit(error: &CallError, package: &str) -> Option<String> {
    let kept_as = || {
        let (package, name) = (shell::word(package), shell::word(text(error, "kept_as")?));
        Some(format!("`haft secret set {package} {name}` keeps another"))
    };
    let variable = text(error, "variable");
    variable.map(|name| format!("it is your variable `{}`", line(name))).or_else(kept_as)
}

fn refused(error: &CallError, package: &str) -> Option<String> {
    if let Some((list, value)) = text(error, "list").zip(text(error, "value")) {
        // Quoted as TOML quotes too.
        let value = line(&Value::from(value).to_string());
        return Some(format!(
            "`{list} = [{value}]` below `[secrets]` in policy.toml lets it be given to every tool that names it"
        ));
    }
    if let Some(path) = text(error, "read") {
        let (package, path) = (shell::word(package), shell::word(path));
        return Some(format!("`haft grant {package} --read {path}` lets it be given"));
    }
    let of_vault = [
        ("sealed", owner::without_key as fn(&str) -> String),
        ("writable", owner::without_writers),
        ("open_to_others", owner::without_others),
        ("of_another", owner::as_own),
    ];
    let known = of_vault.into_iter().find_map(|(name, hint)| Some(hint(text(error, name)?)));
    let is_unasked = text(error, "passphrase") == Some("missing");
    known.or_else(|| is_unasked.then(|| AT_TERMINAL.to_owned()))
}

fn text<'e>(error: &'e CallError, name: &str) -> Option<&'e str> {
    error.details.get(name).and_then(Value::as_str)
}
