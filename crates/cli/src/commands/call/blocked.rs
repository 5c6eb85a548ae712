//! What a tool was kept from, and what would allow it.

use std::path::Path;

use host::{Blocked, CallError, Tool, Why};
use serde_json::Value;

use crate::printer::line;
use crate::private::is_private;
use crate::shell;

/// What a tool was kept from, and the command that would allow it, where one can.
pub(super) fn blocked_words(one: &Blocked, tool: &Tool) -> String {
    let (asked, why) = (line(&one.asked), one.why);
    let id = tool.package.canonical_id();
    let allows = format!("`{}` allows it", granting(&id, one.kind().name(), &one.asked));
    let is_denied = policy::denies(&tool.package, one.kind());
    match why {
        Why::Network(egress::Refusal::Denied) => format!(
            "{asked} may not be reached: your policy refuses it ([network] deny), and no grant helps"
        ),
        Why::Network(_) if is_denied => format!(
            "{asked} may not be reached: its manifest says that it needs no network, and no grant changes that"
        ),
        Why::Hidden | Why::HiddenToWriting | Why::HiddenPerhapsToWriting | Why::ReadOnly
            if is_denied =>
        {
            format!(
                "{asked}: {why}; its manifest says that it does without, and no grant changes that"
            )
        }
        Why::Network(_) if egress::Rule::parse(&one.asked).is_err() => {
            format!("{asked} may not be reached ({why}); it is no host that can be granted")
        }
        // Who asks for a name does not say at which port.
        Why::Network(_) if !one.asked.contains(':') => format!(
            "{asked} may not be reached ({why}); {allows} at ports 80 and 443, {asked}:PORT at another"
        ),
        Why::Network(_) => format!("{asked} may not be reached ({why}); {allows}"),
        // What a tool complains of is its own word, and may be bait.
        Why::Hidden | Why::HiddenToWriting | Why::HiddenPerhapsToWriting | Why::ReadOnly
            if is_private(Path::new(&one.asked), std::env::home_dir().as_deref()) =>
        {
            format!(
                "{asked} is not inside its walls, and holds keys or settings: ask yourself why it wants that before you grant anything"
            )
        }
        Why::Hidden => format!("{asked} is not inside its walls; if it is there, {allows}"),
        Why::HiddenToWriting | Why::HiddenPerhapsToWriting => {
            format!("{asked} is not inside its walls; if it is to be written, {allows}")
        }
        Why::ReadOnly => format!("{asked} may only be read; {allows}"),
    }
}

/// What may be done about something that was granted and is not there.
pub(super) fn absent_words(kind: &str, value: &str, tool: &Tool) -> String {
    let (id, word) = (shell::word(&tool.package.canonical_id()), shell::word(value));
    let value = line(value);
    let cure = if kind == "device" { "plug it in" } else { "bring it back" };
    format!(
        "`{value}` was granted and is not there; {cure}, or `haft ungrant {id} --{kind} {word}` takes it back"
    )
}

/// The command that grants something.
pub(in crate::commands) fn granting(package: &str, kind: &str, asked: &str) -> String {
    format!("haft grant {} --{kind} {}", shell::word(package), shell::word(asked))
}

/// What to do about a tool that would write beside itself.
pub(super) fn own_folder_words(error: &CallError, tool: &Tool) -> Option<String> {
    let id = shell::word(&tool.package.canonical_id());
    (error.details.get("own_folder") == Some(&Value::Bool(true))).then(|| {
        format!("a tool does not write into its own folder: /tmp is its own while it runs, and `haft grant {id} --write FOLDER` gives it one to keep things in")
    })
}

/// Where a tool looks for paths of its input that are not whole, which is not where the caller is.
pub(super) fn relative_words(error: &CallError) -> Vec<String> {
    let given = error.details.get("relative").and_then(Value::as_array);
    let given = given.into_iter().flatten().filter_map(Value::as_str);
    let words = |text: &str| {
        let whole = match text.strip_prefix("~/") {
            Some(rest) => std::env::home_dir()?.join(rest),
            None => std::env::current_dir().ok()?.join(text.trim_start_matches("./")),
        };
        let (text, whole) = (line(text), line(&whole.display().to_string()));
        let why = if text.starts_with('~') {
            "no tool knows where your home is"
        } else {
            "a tool runs in a folder of its own"
        };
        Some(format!("{why}: if you mean `{whole}`, write that instead of `{text}`"))
    };
    given.filter_map(words).collect()
}

/// Whether a tool complains in the words of those who find no network, where names lead nowhere.
pub(super) fn is_about_network(said: &str) -> bool {
    const WORDS: [&str; 7] = [
        "resolve host",
        "name resolution",
        "Name or service not known",
        "getaddrinfo",
        "EAI_AGAIN",
        "fetch failed",
        "Network is unreachable",
    ];
    WORDS.iter().any(|words| said.contains(words))
}
