//! What an agent is told of a call that came to nothing: what happened, who can change that, and whether to try again.

use std::borrow::Cow;

use host::{CallError, Kind, Tool};
use ledger::audit;
use policy::Denial;
use serde_json::{Value, json};

use crate::shelf::{Shelved, Stock};
use crate::steward::Standing;

/// Whether to try what is switched off again.
const OFF: &str = "Do not try again before they have done that.";

/// Whether to try what is broken again.
const BROKEN: &str = "Do not try again before they have mended it.";

/// The result of a call that came to nothing.
pub(crate) fn told(error: &CallError, tool: &Tool, console: Option<&str>) -> Value {
    let refusal = value(error, tool, console);
    let text = |key: &str| refusal[key].as_str().map(|words| format!(" {words}"));
    let words = format!(
        "{}.{}{} (code: {})",
        error.message.trim_end_matches('.'),
        text("grant").unwrap_or_default(),
        text("retry").unwrap_or_default(),
        error.kind.code(),
    );
    json!({
        "content": [{ "type": "text", "text": words }],
        "structuredContent": { "error": refusal },
        "isError": true,
    })
}

/// The same, for programs.
pub(crate) fn value(error: &CallError, tool: &Tool, console: Option<&str>) -> Value {
    let id = tool.package.canonical_id();
    let mut told = json!({ "code": error.kind.code(), "message": error.message });
    if let Some(grant) = grant(error, &id, console) {
        told["who"] = "owner".into();
        told["grant"] = grant.into();
    }
    told["retry"] = retry(error).into();
    if let Some(details) = error.details.as_object().filter(|details| !details.is_empty()) {
        told["details"] = Value::Object(details.clone());
    }
    told
}

/// Who can change that, and how.
fn grant(error: &CallError, id: &str, console: Option<&str>) -> Option<String> {
    let named = error.details["step"]["package"].as_str().unwrap_or(id);
    Some(match &error.kind {
        Kind::NeedsApproval(_) => {
            let ticket = error.details["ticket"].as_str()?;
            let page = console.map(|url| format!(", or at {url}")).unwrap_or_default();
            format!(
                "It waits for the owner, who answers with `haft approve allow {ticket}` or `haft approve deny {ticket}`{page}."
            )
        }
        Kind::NeedsLogin => {
            format!("The owner signs in with `haft login {named}{}`.", scopes(error))
        }
        Kind::MissingInput => format!("The owner sets it with `haft secret set {named} NAME`."),
        Kind::Blocked(place) => {
            let kind = place.kind().name();
            format!("The owner grants it with `haft grant {named} --{kind} {}`.", place.asked)
        }
        Kind::Distrusted => {
            "The owner decides in policy.toml whom to trust (`[trust]`, or `allow` of the package)."
                .to_owned()
        }
        Kind::Denied if is(error, &Denial::Refused) => {
            "They were asked about this very call, and their no stands.".to_owned()
        }
        Kind::Denied if is(error, &Denial::Disabled) => switched_on_by(named, console),
        Kind::Denied => "The owner decides that in policy.toml.".to_owned(),
        _ => return None,
    })
}

/// Whether a call was refused for this reason, itself or a step of it.
fn is(error: &CallError, denial: &Denial) -> bool {
    error.message.ends_with(&denial.to_string())
}

/// What an agent is told of a package that cannot be called, because it is switched off or broken: as an error, for programs.
pub(crate) fn out_of_reach(package: &Shelved, console: Option<&str>) -> Value {
    let id = &package.id;
    if let (true, Err(words)) = (package.is_enabled, &package.tool) {
        return json!({
            "code": Kind::Unavailable.code(),
            "message": format!("`{id}` cannot be called: {words}"),
            "who": "owner",
            "grant": format!("Its owner finds out more with `haft status {id}`."),
            "retry": BROKEN,
        });
    }
    let (message, grant) = match package.standing {
        Standing::Revoked | Standing::Unconfirmed => (
            format!("`{id}` was revoked by its owner, and is not called any more"),
            "It comes back only when they install it again.".to_owned(),
        ),
        Standing::Enabled | Standing::Disabled => {
            (format!("`{id}` cannot be called"), switched_on_by(id, console))
        }
    };
    json!({ "code": "denied", "message": message, "who": "owner", "grant": grant, "retry": OFF })
}

/// The same in words.
pub(crate) fn out_of_reach_in_words(package: &Shelved, console: Option<&str>) -> String {
    let told = out_of_reach(package, console);
    let text = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
    format!("{}. {} {}", text("message"), text("grant"), text("retry"))
}

/// Writes down that somebody called what cannot be called: like any call that was refused, it leaves a record. Where that cannot be
/// written, nothing else was to be done either.
pub(crate) fn note_out_of_reach(
    stock: &Stock,
    package: &Shelved,
    (name, action): (&str, &str),
    (surface, client): (&str, &str),
) {
    let told = out_of_reach(package, None);
    let text = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
    let call = audit::Call {
        tool: name.to_owned(),
        package: package.id.clone(),
        action: action.to_owned(),
        surface: surface.to_owned(),
        session: client.to_owned(),
        decision: audit::Decision::Denied(text("message")),
        ..audit::Call::default()
    };
    let outcome = audit::Outcome::Error(text("code"));
    let ending = audit::Ending { outcome, ..audit::Ending::default() };
    let _ = stock.host.records().audit.record(&call, &ending, host::records::now());
}

/// Who switches a package on, and how.
fn switched_on_by(id: &str, console: Option<&str>) -> String {
    let page = console.map(|url| format!(", or at {url}/tools")).unwrap_or_default();
    format!(
        "Its owner has switched it off in this home; they switch it on with `haft enable {id}`{page}."
    )
}

/// The scopes that signing in has to ask for. A server named them, so one that is more than a word to a shell stays among
/// the details.
fn scopes(error: &CallError) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._:/-".contains(letter);
    let is_word = |scope: &&str| !scope.starts_with('-') && scope.chars().all(is_plain);
    let named = error.details["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    named.filter(is_word).map(|scope| format!(" --scope {scope}")).collect()
}

/// Whether to try again, and when.
fn retry(error: &CallError) -> Cow<'static, str> {
    // What was used up comes back.
    if let Some(free) = error.details["limit"]["free_at"].as_str() {
        return format!("Make the same call again after {free}, and not before.").into();
    }
    let words = match &error.kind {
        Kind::NeedsApproval(_) => "Make exactly the same call again once they have answered.",
        Kind::NeedsLogin | Kind::MissingInput | Kind::Blocked(_) => {
            "Make the same call again once that is done."
        }
        Kind::Denied if is(error, &Denial::Refused) => {
            "Do not make this call again unless they ask you to."
        }
        Kind::Denied if is(error, &Denial::Disabled) => OFF,
        Kind::Denied | Kind::Distrusted => "Do not try again: it stays refused.",
        Kind::BadInput => "Call it again with other arguments.",
        Kind::Unavailable | Kind::TimedOut if error.passes_after.is_some() => {
            "It may work if you try again."
        }
        Kind::Unknown | Kind::BadChain => "Do not try again.",
        Kind::Failed
        | Kind::TimedOut
        | Kind::TooMuchOutput
        | Kind::BadOutput
        | Kind::Unfinished
        | Kind::Unavailable
        | Kind::Cancelled => "The same call will most likely fail again.",
    };
    words.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_no_of_the_owner_is_told_as_one_and_so_is_a_tool_that_is_switched_off() {
        let no = CallError::new(Kind::Denied, Denial::Refused.to_string());
        assert_eq!(
            grant(&no, "mcpb:a", None).unwrap() + " " + &retry(&no),
            "They were asked about this very call, and their no stands. Do not make this call again unless they ask you to."
        );
        let off = format!("the step `b` (`mcpb:b`) is refused: {}", Denial::Disabled);
        let off = CallError::new(Kind::Denied, off).with("step", json!({ "package": "mcpb:b" }));
        let told = grant(&off, "mcpb:a", Some("http://127.0.0.1:1")).unwrap();
        assert!(told.contains("`haft enable mcpb:b`, or at http://127.0.0.1:1/tools."), "{told}");
        let policy = CallError::new(Kind::Denied, Denial::Package.to_string());
        assert!(grant(&policy, "mcpb:a", None).unwrap().contains("policy.toml"));
        assert_eq!(retry(&policy), "Do not try again: it stays refused.");
    }

    #[test]
    fn who_has_used_up_what_they_may_is_told_when_to_come_back() {
        let free = "2026-03-01T00:00:00.000Z";
        let error = CallError::new(Kind::Denied, "your policy allows 3 calls a day")
            .with("limit", json!({ "free_at": free }));
        assert_eq!(
            retry(&error),
            format!("Make the same call again after {free}, and not before.")
        );
        let never = CallError::new(Kind::Denied, "your policy allows 0 calls a day")
            .with("limit", json!({ "free_at": null }));
        assert_eq!(retry(&never), "Do not try again: it stays refused.");
    }

    #[test]
    fn whoever_signs_in_is_told_the_scopes_that_a_shell_reads_as_words() {
        let error = CallError::new(Kind::NeedsLogin, "the server wants you to be granted more")
            .with("scopes", ["mcp:write", "$(rm)", "--help", "https://a.test/mail.read", "a b"]);
        let told = grant(&error, "mcpb:mail", None).unwrap();
        let command = "haft login mcpb:mail --scope mcp:write --scope https://a.test/mail.read";
        assert_eq!(told, format!("The owner signs in with `{command}`."));
    }
}
