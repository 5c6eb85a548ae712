//! Why nothing was packed, in words.

use std::path::Path;

use package::gather::GatherError;
use package::pack::PackError;
use package::secrets::Leak;

use crate::container;
use crate::exit::{Exit, Failure};

pub(super) fn unpackable(error: &GatherError) -> Failure {
    match error {
        GatherError::Disk { cause, .. } => {
            Failure::new(Exit::Unavailable, error.to_string()).cause(cause)
        }
        GatherError::Links(_) | GatherError::Special(_) | GatherError::NotUtf8(_) => {
            Failure::invalid(error.to_string()).hint("name it in .mcpkgignore to leave it out")
        }
        GatherError::Refused(refusal) => Failure::invalid(format!("{refusal} [{}]", refusal.code))
            .hint("name what is not needed in .mcpkgignore"),
        GatherError::BadRule(_) => Failure::invalid(error.to_string()),
    }
}

pub(in super::super) fn unpacked(error: &PackError, path: &Path) -> Failure {
    match error {
        PackError::Leaks(found) => leaking(found, "packed"),
        PackError::Read { path, cause } => container::refused(Path::new(path), cause),
        PackError::Write(cause) => {
            Failure::new(Exit::Unavailable, format!("failed to write `{}`", path.display()))
                .cause(cause)
        }
    }
}

pub(in super::super) fn leaking(found: &[Leak], done: &str) -> Failure {
    let told = |leak: &Leak| {
        let place = leak.line.map_or(String::new(), |line| format!(":{line}"));
        format!("`{}`{place}: {}", leak.path, leak.what)
    };
    Failure::invalid(format!("these files hold secrets, so nothing was {done}"))
        .details(found.iter().map(told))
        .hint("name them in .mcpkgignore; or, when they are no secrets, with --allow-file PATH")
}
