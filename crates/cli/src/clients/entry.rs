//! The entry in a client's settings that starts us.

use import::edit::{Ours, Serves};

use crate::exit::{Exit, Failure};
use crate::home::Home;

/// An entry that starts this program with a home.
pub(crate) fn ours(name: &str, program: &str, serves: Serves, home: &Home) -> Ours {
    Ours { name: name.to_owned(), program: program.to_owned(), serves, home: home.unusual() }
}

/// The path of this program.
pub(crate) fn program() -> Result<String, Failure> {
    let unknown = || Failure::new(Exit::Unavailable, "it is not known where this program is");
    let path = std::env::current_exe().map_err(|error| unknown().cause(error))?;
    if !path.exists() {
        return Err(unknown().hint("another was put in its place while it ran; start that one"));
    }
    path.into_os_string().into_string().map_err(|_| unknown())
}
