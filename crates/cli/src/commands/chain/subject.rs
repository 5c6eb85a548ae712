//! What is meant by a name: an installed package, one of its versions that are still here, or what lies at a path.

use std::path::Path;

use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::load::Loading;
use crate::printer::{Printer, line};
use crate::tools::{self, Found};
use crate::{disk, fetch, installed, steps};

/// The one tool that is meant, with what its steps call where it is a chain.
pub(in crate::commands) fn find(
    what: &str,
    with: &[Found],
    home: &Home,
    printer: Printer,
) -> Result<Found, Failure> {
    let path = Path::new(what);
    let versioned = what.rsplit_once('@').filter(|(id, _)| fetch::is_id(id) && !path.exists());
    let mut found = if let Some((id, version)) = versioned {
        installed::version(id, version, home, printer)?
    } else if fetch::is_id(what) {
        installed::unlinked(what, home, printer)?
    } else {
        // One folder is one package.
        let manifest = if path.is_dir() { disk::manifest_in(path).ok() } else { None };
        let loading = Loading { dialect: None, id: None };
        tools::at(manifest.as_deref().unwrap_or(path), loading, home, printer)?
    };
    if found.tools.len() != 1 {
        let message = format!("`{}` holds {} packages", line(what), found.tools.len());
        return Err(Failure::new(Exit::Invalid, message).hint("name one of them"));
    }
    steps::link_all(&mut found, with, home, printer);
    Ok(found)
}
