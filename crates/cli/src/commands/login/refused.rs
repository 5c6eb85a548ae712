//! Why nobody is signed in, as the person sees it.

use host::login::{LoginError, Server};

use crate::commands::call;
use crate::exit::Failure;
use crate::printer::line;

/// Why nobody is signed in, as the person sees it.
pub(super) fn failure(error: &LoginError) -> Failure {
    let failure = Failure::of(call::exit_of(&error.kind()), error);
    match error {
        LoginError::NotWanted { looked, .. } => failure
            .details(looked.iter().map(|one| line(one)))
            .hint("one that wants you to sign in answers 401, or the card of an agent says where; --issuer names the authorization server of one that does neither, and any other is called without"),
        LoginError::NoMetadata { looked, .. } => failure
            .details(looked.iter().map(|one| line(one)))
            .hint("whoever runs it can put its metadata there (RFC 9728 of a server, RFC 8414 of who signs people in); --issuer names the authorization server where you know it"),
        LoginError::NoClient => failure.hint("--client-id names one that you registered"),
        LoginError::NoDevice => failure.hint(
            "without --device it signs in by a browser here; --no-browser reads from standard input where one was sent to",
        ),
        LoginError::TimedOut => failure.hint("--timeout waits longer"),
        LoginError::Expired => failure.hint("the same command again gives another code"),
        LoginError::Ended => failure.hint("`haft login` signs in again"),
        LoginError::Insecure(_) => failure.hint("no token was asked for and none was sent"),
        error => match error.refused_host() {
            Some(host) => failure.hint(format!("--allow-host {} agrees to it", line(host))),
            None => failure,
        },
    }
}

/// The same of what keeps a browser on this machine from signing in, with the ways that are left.
pub(super) fn refused_here(error: &LoginError, server: &Server) -> Failure {
    let failure = failure(error);
    let failure = match error {
        LoginError::TimedOut => failure.hint("--no-browser reads the answer from standard input"),
        // A port is taken for that as well.
        LoginError::Listen(_) | LoginError::NoPkce => failure,
        _ => return failure,
    };
    match server.device() {
        Ok(_) => failure.hint("--device signs in by a code, at a browser on any machine"),
        Err(_) => failure,
    }
}
