//! Tools that somebody else than the owner has installed or removed: within what the policy lets in, and only by their ids.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::refusal::of_owner;
use crate::steward::{By, Deed, Trouble};

/// The longest id.
const LONGEST: usize = 256;

/// Installs a package of a registry, for somebody of this name.
pub(crate) async fn install(gateway: &Gateway, by: &str, id: &str) -> Result<Value, Trouble> {
    if !is_id(id) {
        let message = format!("`{id}` is no id of a package in a registry");
        let hints = vec!["paths and addresses are installed by the owner".to_owned()];
        let code = "bad_input".to_owned();
        return Err(Trouble { code, message, hints, ..Trouble::default() });
    }
    deed(gateway, by, Deed::Bring { id: id.to_owned() }).await
}

/// Has the program that runs the gateway do something for somebody, which takes its time.
pub(crate) async fn deed(gateway: &Gateway, by: &str, deed: Deed) -> Result<Value, Trouble> {
    let (steward, by) = (Arc::clone(gateway.shelf.steward()), By::Token(by.to_owned()));
    let done = tokio::task::spawn_blocking(move || steward.deed(&by, &deed)).await;
    done.unwrap_or_else(|error| {
        Err(Trouble { message: format!("it broke off: {error}"), ..Trouble::default() })
    })
}

/// What is told of something that was not done: what is wrong, who can change that, and whether to try again.
pub(crate) fn told(trouble: &Trouble) -> Value {
    let Trouble { code, message, causes, hints } = trouble;
    let code = if code.is_empty() { "unavailable" } else { code };
    let all = |texts: &[String]| texts.iter().map(|text| of_owner(text)).collect::<Vec<_>>();
    let mut told = json!({
        "code": code,
        "message": of_owner(message),
        "causes": all(causes),
        "hints": all(hints),
        "retry": match code {
            // Nothing that an agent could say instead would be found anywhere.
            "no_registry" => "Do not try again before the owner has named a registry.",
            "bad_input" | "not_found" => "Try again with another id.",
            "denied" => "Do not try again: it stays refused.",
            _ => "Try again later.",
        },
    });
    if code == "no_registry" {
        told["who"] = "owner".into();
        told["grant"] = "The owner names a registry with `haft registry add NAME URL`.".into();
    }
    if code == "denied" {
        told["who"] = "owner".into();
        told["grant"] = "The owner can do it at a terminal or in the console.".into();
    }
    told
}

/// The same to its owner, of what they asked for themselves.
pub(crate) fn told_to_owner(trouble: &Trouble) -> Value {
    let Trouble { code, message, causes, hints } = trouble;
    let code = if code.is_empty() { "unavailable" } else { code };
    let retry = "Ask for it again once that is put right.";
    json!({ "code": code, "message": message, "causes": causes, "hints": hints, "retry": retry })
}

/// What agents are told, in a few sentences. What would mend it is said to whoever owns the gateway.
pub(crate) fn in_words(trouble: &Trouble) -> String {
    let told = told(trouble);
    let texts = |key: &str| {
        let all = told[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        all.collect::<Vec<_>>().join("; ")
    };
    let mut words = told["message"].as_str().unwrap_or_default().to_owned();
    let text = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
    let rest = [
        (": ", texts("causes")),
        (". ", text("grant")),
        (if told["grant"].is_null() { ". " } else { " " }, text("retry")),
        (" For the owner: ", texts("hints")),
    ];
    for (before, said) in rest.into_iter().filter(|(_, said)| !said.is_empty()) {
        words += before;
        words += &said;
    }
    format!("{words} (code: {})", text("code"))
}

/// Whether a text can only be an id: with a dot or a dialect in it, and nothing that paths and addresses have.
fn is_id(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:@-+".contains(c);
    (1..=LONGEST).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.chars().all(is_plain)
        && (text.contains('.') || text.contains(':'))
        && !text.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_names_ids_and_nothing_else() {
        for good in ["acme.pdf.read", "mcpkg:acme.pdf", "acme.pdf@1.2.0", "tool:x.y"] {
            assert!(is_id(good), "{good}");
        }
        for bad in [
            "",
            "etc",
            "/etc/x.y",
            "./a.b",
            "a/b.c",
            "https://a.b",
            "--yes",
            "a b.c",
            "..",
            "a..b",
            ".a",
        ] {
            assert!(!is_id(bad), "{bad}");
        }
    }
}
