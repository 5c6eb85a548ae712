//! What a sign-in was granted, told beside what the package names, and what comes next.

use host::login::scopes::{Difference, Missing};

use serde_json::{Value, json};

use crate::printer::{Printer, line};

/// What was not granted, for programs.
pub(super) fn missing(found: &Difference) -> Value {
    let row = |one: &Missing| json!({"scope": one.scope, "actions": one.actions});
    found.missing.iter().map(row).collect()
}

/// Tells where what was granted differs from what the package names.
pub(super) fn tell(found: &Difference, command: &str, printer: Printer) {
    if !found.beyond.is_empty() {
        let scopes = line(&found.beyond.join(" "));
        printer.note(&format!("More was granted than its manifest names: {scopes}"));
    }
    for Missing { scope, actions } in &found.missing {
        let scope = line(scope);
        let effect = match actions.as_slice() {
            [] => "no action of its names it".to_owned(),
            actions => format!("refused until then: {}", line(&actions.join(", "))),
        };
        printer.note(&format!("Not granted: {scope} ({effect})"));
    }
    if !found.missing.is_empty() {
        let scopes = found.missing.iter().map(|one| crate::shell::word(&one.scope));
        let scopes: String = scopes.map(|scope| format!(" --scope {scope}")).collect();
        printer.note(&format!("`{command}{scopes}` asks for what is missing"));
    }
}
