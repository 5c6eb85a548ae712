//! What a tool was kept from, and what would allow it.

use host::{Blocked, Tool};

use crate::printer::line;
use crate::shell;

/// What a tool was kept from, and the command that would allow it, where one can.
pub(super) fn blocked_words(one: &Blocked, tool: &Tool) -> String {
    let (asked, why) = (line(&one.asked), one.why);
    if why == egress::Refusal::Denied {
        return format!(
            "{asked} was not reached: your policy refuses it ([network] deny), and no grant helps"
        );
    }
    if egress::Rule::parse(&one.asked).is_err() {
        return format!("{asked} was not reached ({why}); it is no host that can be granted");
    }
    let (id, host) = (shell::word(&tool.package.canonical_id()), shell::word(&one.asked));
    format!("{asked} was not reached ({why}); `haft grant {id} --host {host}` allows it")
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
