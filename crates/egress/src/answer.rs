//! What the tool is told when its request goes nowhere.

use crate::attempt::Outcome;
use crate::head::HeadError;
use crate::resolve::ResolveError;

/// A whole HTTP response that says why, or none if there is nobody left to tell.
pub(crate) fn answer(asked: &str, outcome: &Outcome) -> Option<Vec<u8>> {
    // Most programs show the reason of a failed CONNECT, few its body.
    let status = match outcome {
        Outcome::Completed | Outcome::ClientLeft | Outcome::Stopped => return None,
        Outcome::Refused(_) => "403 Forbidden by Haft",
        Outcome::Malformed(HeadError::TimedOut) => "408 Request Timeout",
        Outcome::Malformed(HeadError::TooLarge) => "431 Request Header Fields Too Large",
        Outcome::Malformed(_) | Outcome::BadBody => "400 Bad Request",
        Outcome::Unresolved(ResolveError::TimedOut) | Outcome::ConnectTimedOut | Outcome::Idle => {
            "504 Gateway Timeout"
        }
        Outcome::Unresolved(_)
        | Outcome::Unreachable(..)
        | Outcome::BadResponse(_)
        | Outcome::Failed(_)
        | Outcome::ServerLeft => "502 Bad Gateway",
    };
    let body = match outcome {
        Outcome::Refused(why) => {
            format!("haft: `{asked}` is refused: {why}\nThe owner of this machine can grant it.\n")
        }
        _ => format!("haft: `{asked}` failed: {outcome}\n"),
    };
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    Some(response.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Refusal;

    #[test]
    fn a_refusal_names_the_host_the_reason_and_who_can_change_it() {
        let text = answer("evil.test:443", &Outcome::Refused(Refusal::Host)).unwrap();
        let text = String::from_utf8(text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert_eq!(
            body,
            "haft: `evil.test:443` is refused: no grant names this host\n\
             The owner of this machine can grant it.\n"
        );
    }
}
