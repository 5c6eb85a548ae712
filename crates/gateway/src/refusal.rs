//! What an agent is told of a call that came to nothing: what happened, who can change that, and whether to try again.

use std::borrow::Cow;

use host::surface::in_short;
use host::{CallError, Kind, Tool};
use ledger::audit;
use policy::Denial;
use policy::policy::Presence;
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::shelf::{Shelved, Stock};
use crate::steward::Standing;

/// Whether to try again what the owner can do something about.
const DONE: &str = "Make the same call again once that is done.";

/// Whether to try what is switched off again.
const OFF: &str = "Do not try again before they have done that.";

/// Whether to try what is broken again.
const BROKEN: &str = "Do not try again before they have mended it.";

/// The result of a call that came to nothing.
pub(crate) fn told(error: &CallError, tool: &Tool, gateway: &Gateway) -> Value {
    let refusal = value(error, tool, gateway);
    let text = |key: &str| refusal[key].as_str().map(|words| format!(" {words}"));
    let words = format!(
        "{}.{}{} (code: {})",
        message(error).trim_end_matches('.'),
        text("grant").unwrap_or_default(),
        text("retry").unwrap_or_default(),
        error.kind.code(),
    );
    in_result(&words, &refusal)
}

/// What came to nothing as a result, in words and for programs.
pub(crate) fn in_result(words: &str, error: &Value) -> Value {
    json!({
        "content": [{ "type": "text", "text": words }],
        "structuredContent": { "error": error },
        "isError": true,
    })
}

/// Why nothing can be called, for programs.
pub(crate) fn closed(words: &str) -> Value {
    json!({
        "code": Kind::Unavailable.code(),
        "message": words,
        "who": "owner",
        "grant": "Its owner mends it; `haft doctor` says what is wrong.",
        "retry": BROKEN,
    })
}

/// The same as [`told`], for programs.
pub(crate) fn value(error: &CallError, tool: &Tool, gateway: &Gateway) -> Value {
    let (id, console) = (tool.package.canonical_id(), gateway.console_told());
    // Where the owner has to be at a terminal, the console only shows what waits.
    let presence = gateway.shelf.newest().policy.approval.owner_presence;
    let console = console.filter(|_| presence == Presence::Any);
    let remedies = gateway.shelf.steward().remedies(error, tool);
    let mut told = json!({ "code": error.kind.code(), "message": message(error) });
    if let Some(grant) = grant(error, &id, console, &remedies) {
        let is_of_author = is(error, &Denial::NoLogin);
        told["who"] = if is_of_author { "author" } else { "owner" }.into();
        told["grant"] = grant.into();
    }
    told["retry"] = retry(error, &remedies).into();
    if let Some(details) = error.details.as_object().filter(|details| !details.is_empty()) {
        let mut details = details.clone();
        details.shift_remove("surface");
        told["details"] = Value::Object(details);
    }
    told
}

/// What happened.
fn message(error: &CallError) -> Cow<'_, str> {
    // What a server says of itself is nothing that an agent should read before the owner has.
    if let Some(words) = in_short(error) {
        return format!("the server offers other tools than its owner approved: {words}").into();
    }
    if error.kind.is_refusal() { of_owner(&error.message).into() } else { (&*error.message).into() }
}

/// What is said to the owner, as it is said of them.
pub(crate) fn of_owner(words: &str) -> String {
    words
        .replace("your policy", "the owner's policy")
        .replace("your sign-in", "the owner's sign-in")
        .replace("wants you to sign in", "wants its owner to sign in")
}

/// Who can change that, and how: in the words that the owner would read at a terminal, where there are any.
fn grant(
    error: &CallError,
    id: &str,
    console: Option<&str>,
    remedies: &[String],
) -> Option<String> {
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
        Kind::Denied if is(error, &Denial::NoLogin) => {
            "Only whoever wrote the package can change that: it has to say which secret the token is."
                .to_owned()
        }
        _ if error.details.get("surface").is_some() => {
            let page = console.map(|url| format!(", or at {url}")).unwrap_or_default();
            format!(
                "The owner looks at it, and decides, with `haft approve surface {named}`{page}."
            )
        }
        _ if !remedies.is_empty() => format!("For the owner: {}.", remedies.join("; ")),
        Kind::MissingInput => format!("The owner sets it with `haft secret set {named} NAME`."),
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

/// When that comes back which a call had no more of.
pub(crate) fn free_at(error: &CallError) -> Option<&str> {
    error.details["limit"]["free_at"].as_str()
}

/// Whether to try again, and when.
fn retry(error: &CallError, remedies: &[String]) -> Cow<'static, str> {
    // What was used up comes back.
    if let Some(free) = free_at(error) {
        return format!("Make the same call again after {free}, and not before.").into();
    }
    let words = match &error.kind {
        Kind::NeedsApproval(_) => "Make exactly the same call again once they have answered.",
        Kind::NeedsLogin | Kind::MissingInput | Kind::Blocked(_) => DONE,
        Kind::Denied if is(error, &Denial::Refused) => {
            "Do not make this call again unless they ask you to."
        }
        Kind::Denied if is(error, &Denial::Disabled) => OFF,
        _ if !remedies.is_empty() => DONE,
        Kind::Denied | Kind::Distrusted => "Do not try again: it stays refused.",
        Kind::BadInput => "Call it again with other arguments.",
        Kind::Unavailable | Kind::TimedOut if error.passes_after.is_some() => {
            "It may work if you try again."
        }
        Kind::Unknown | Kind::BadChain => "Do not try again.",
        Kind::Cancelled if error.message == host::SWITCHED_OFF => {
            "Do not try again unless its owner says so."
        }
        Kind::Cancelled => "It was ended before it was done; try again if it is still wanted.",
        Kind::Failed
        | Kind::TimedOut
        | Kind::TooMuchOutput
        | Kind::BadOutput
        | Kind::Unfinished
        | Kind::Unavailable => "The same call will most likely fail again.",
    };
    words.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One kind of each; whoever adds one has to say what is told of it.
    fn kinds() -> Vec<Kind> {
        use Kind::{
            BadChain, BadInput, BadOutput, Blocked, Cancelled, Denied, Distrusted, Failed,
            MissingInput, NeedsApproval, NeedsLogin, TimedOut, TooMuchOutput, Unavailable,
            Unfinished, Unknown,
        };
        let why = host::Why::Hidden;
        let blocked = host::Blocked { asked: "/x".to_owned(), why };
        let question = policy::Question {
            action: "act".to_owned(),
            why: policy::Why::Policy,
            digest: String::new(),
            expires_seconds: 1,
            rule: "approval.write",
            is_first: false,
        };
        let open = host::Unasked { question, input: None, steps: Vec::new() };
        let all = vec![
            Failed,
            TimedOut,
            TooMuchOutput,
            BadOutput,
            BadInput,
            MissingInput,
            BadChain,
            Unknown,
            Denied,
            Distrusted,
            Blocked(Box::new(blocked)),
            NeedsApproval(Box::new(open)),
            NeedsLogin,
            Unfinished,
            Unavailable,
            Cancelled,
        ];
        for kind in &all {
            match kind {
                Failed | TimedOut | TooMuchOutput | BadOutput | BadInput | MissingInput
                | BadChain | Unknown | Denied | Distrusted | Blocked(_) | NeedsApproval(_)
                | NeedsLogin | Unfinished | Unavailable | Cancelled => {}
            }
        }
        all
    }

    /// One denial of each.
    fn denials() -> Vec<Denial> {
        use Denial::{
            Action, Disabled, Environment, Login, NoLogin, OtherArguments, Package, Refused,
            Scopes, Trust,
        };
        let all = vec![
            Disabled,
            Trust(manifest::model::Trust::Community),
            Package,
            Action("act".to_owned()),
            Login,
            NoLogin,
            Scopes(vec!["mail".to_owned()]),
            Environment { name: "LD_PRELOAD".to_owned(), allowed: Vec::new() },
            Refused,
            OtherArguments,
        ];
        for denial in &all {
            match denial {
                Disabled
                | Trust(_)
                | Package
                | Action(_)
                | Login
                | NoLogin
                | Scopes(_)
                | Environment { .. }
                | Refused
                | OtherArguments => {}
            }
        }
        all
    }

    #[test]
    fn whatever_is_refused_says_who_can_change_that_and_whether_to_try_again() {
        let refusals = kinds().into_iter().map(|kind| CallError::new(kind, "no"));
        let denied = denials().into_iter().map(|one| match one {
            Denial::Login | Denial::Scopes(_) => CallError::new(Kind::NeedsLogin, one.to_string()),
            Denial::Trust(_) => CallError::new(Kind::Distrusted, one.to_string()),
            _ => CallError::new(Kind::Denied, one.to_string()),
        });
        for error in refusals.chain(denied) {
            let error = error.with("ticket", "haft-1");
            assert!(!error.kind.code().is_empty() && !retry(&error, &[]).is_empty(), "{error:?}");
            let grant = grant(&error, "mcpb:a", None, &[]);
            let is_refusal = error.kind.is_refusal() || error.kind == Kind::MissingInput;
            assert_eq!(grant.is_some(), is_refusal, "{error:?}: {grant:?}");
        }
    }

    #[test]
    fn a_no_of_the_owner_is_told_as_one_and_so_is_a_tool_that_is_switched_off() {
        let no = CallError::new(Kind::Denied, Denial::Refused.to_string());
        assert_eq!(
            grant(&no, "mcpb:a", None, &[]).unwrap() + " " + &retry(&no, &[]),
            "They were asked about this very call, and their no stands. Do not make this call again unless they ask you to."
        );
        let off = format!("the step `b` (`mcpb:b`) is refused: {}", Denial::Disabled);
        let off = CallError::new(Kind::Denied, off).with("step", json!({ "package": "mcpb:b" }));
        let told = grant(&off, "mcpb:a", Some("http://127.0.0.1:1"), &[]).unwrap();
        assert!(told.contains("`haft enable mcpb:b`, or at http://127.0.0.1:1/tools."), "{told}");
        let policy = CallError::new(Kind::Denied, Denial::Package.to_string());
        assert!(grant(&policy, "mcpb:a", None, &[]).unwrap().contains("policy.toml"));
        assert_eq!(retry(&policy, &[]), "Do not try again: it stays refused.");
    }

    #[test]
    fn a_call_that_was_ended_may_be_made_again_but_not_of_what_was_switched_off() {
        let ended = |words: &str| CallError::new(Kind::Cancelled, words);
        assert!(retry(&ended("the call was called off"), &[]).contains("try again if it is"));
        assert!(retry(&ended(host::SWITCHED_OFF), &[]).starts_with("Do not try again"));
    }

    #[test]
    fn what_the_owner_can_do_is_told_in_their_words_and_is_worth_another_call() {
        let words = "`haft grant mcpb:a --read /k` lets it be given";
        for kind in [Kind::Denied, Kind::Unavailable, Kind::MissingInput, Kind::BadInput] {
            let (error, words) =
                (CallError::new(kind, "the secret is not given"), [words.to_owned()]);
            let told = grant(&error, "mcpb:a", None, &words).unwrap();
            assert_eq!(told, format!("For the owner: {}.", words[0]));
            assert_eq!(retry(&error, &words), DONE);
        }
        // A no stands, whatever else would be needed.
        let no = CallError::new(Kind::Denied, Denial::Refused.to_string());
        assert!(
            grant(&no, "mcpb:a", None, &[words.to_owned()]).unwrap().contains("their no stands")
        );
    }

    #[test]
    fn who_has_used_up_what_they_may_is_told_when_to_come_back() {
        let free = "2026-03-01T00:00:00.000Z";
        let error = CallError::new(Kind::Denied, "your policy allows 3 calls a day")
            .with("limit", json!({ "free_at": free }));
        assert_eq!(
            retry(&error, &[]),
            format!("Make the same call again after {free}, and not before.")
        );
        let never = CallError::new(Kind::Denied, "your policy allows 0 calls a day")
            .with("limit", json!({ "free_at": null }));
        assert_eq!(retry(&never, &[]), "Do not try again: it stays refused.");
    }

    #[test]
    fn the_policy_is_that_of_the_owner_and_the_words_of_a_tool_are_its_own() {
        let refused = CallError::new(Kind::Denied, Denial::Package.to_string());
        assert_eq!(message(&refused), "the owner's policy refuses this package");
        let failed = CallError::new(Kind::Failed, "your policy has run out");
        assert_eq!(message(&failed), "your policy has run out");
    }

    #[test]
    fn whoever_signs_in_is_told_the_scopes_that_a_shell_reads_as_words() {
        let error = CallError::new(Kind::NeedsLogin, "the server wants you to be granted more")
            .with("scopes", ["mcp:write", "$(rm)", "--help", "https://a.test/mail.read", "a b"]);
        let told = grant(&error, "mcpb:mail", None, &[]).unwrap();
        let command = "haft login mcpb:mail --scope mcp:write --scope https://a.test/mail.read";
        assert_eq!(told, format!("The owner signs in with `{command}`."));
    }
}
