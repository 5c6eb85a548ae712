//! What a home that was named has of the demonstration: the address of its registry, and trust in its key.
//!
//! What is lent is written down in the home first. So it is taken back also where we were killed, and nothing else is: what the
//! owner has under the same name is not what is written there.

use std::fs;
use std::io::ErrorKind;

use package::key::PublicKey;
use registry::client::Registries;

use super::NAME;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::output;
use crate::printer::Printer;
use crate::remote;

/// What is lent: the address on the first line, the key on the second.
const FILE: &str = "lent";

/// Takes back what is lent when it is dropped.
pub(super) struct Lent<'h> {
    home: &'h Home,
    text: String,
    printer: Printer,
}

impl<'h> Lent<'h> {
    /// Lends a home the key, and whatever `add` adds of the registry at that address.
    pub(super) fn lend(
        home: &'h Home,
        url: &str,
        key: PublicKey,
        printer: Printer,
        add: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        let text = format!("{url}\n{key}\n");
        output::keep(&home.path().join(FILE), text.as_bytes())?;
        let lent = Self { home, text, printer };
        add()?;
        home.trust(NAME, key)?;
        Ok(lent)
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // Whoever came after us has lent it something of their own.
        if !fs::read_to_string(self.home.path().join(FILE)).is_ok_and(|text| text == self.text) {
            return;
        }
        if let Err(failure) = take_back(self.home) {
            self.printer.failure(&failure);
        }
    }
}

/// Takes back what was lent to a home, where anything was.
pub(super) fn take_back(home: &Home) -> Result<(), Failure> {
    let path = home.path().join(FILE);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        read => read.map_err(|error| Failure::unread(path.display(), error))?,
    };
    let mut lines = text.lines();
    let (url, key) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let list = Registries::load(home.path()).map_err(|error| remote::list_failure(&error))?;
    if list.get(NAME).is_some_and(|one| is_at(&one.url, url)) {
        let forgotten = Registries::change(home.path(), |list| list.remove(NAME));
        forgotten.map_err(|error| remote::list_failure(&error))?;
    }
    if !home.is_own(NAME) && home.public(NAME).is_ok_and(|found| found.to_string() == key) {
        home.forget(NAME)?;
    }
    fs::remove_file(&path).map_err(|error| {
        Failure::new(Exit::Unavailable, format!("failed to remove `{}`", path.display()))
            .cause(error)
    })?;
    output::sync_folder(home.path())
}

fn is_at(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// Refuses a home that has something of the owner's under the name of the demonstration.
pub(super) fn check_free(home: &Home) -> Result<(), Failure> {
    let list = Registries::load(home.path()).map_err(|error| remote::list_failure(&error))?;
    let (key, registry) = (home.check_free(NAME).is_err(), list.get(NAME).is_some());
    let taken = match (key, registry) {
        (false, false) => return Ok(()),
        (true, false) => format!("a key `{NAME}` already, and `haft up` uses that name"),
        (false, true) => format!("a registry `{NAME}` already, and `haft up` uses that name"),
        (true, true) => {
            format!(
                "a key and a registry `{NAME}` already, and `haft up` uses that name for its own"
            )
        }
    };
    Err(Failure::new(Exit::Conflict, format!("this home has {taken}"))
        .hint("`haft up` without --home has a folder of its own, and leaves this one alone"))
}
