//! The home of the project around the working folder, as far as its owner trusts it.

use std::path::{Path, PathBuf};

use install::project::{Project, Standing, Trusted, View, around};

use crate::exit::Failure;
use crate::home::Home;
use crate::installed;
use crate::printer::{Printer, line};
use crate::shell;

/// What can be called in the working folder. A project's home that counts for nothing is told of.
pub(crate) fn view(home: &Home, printer: Printer) -> Result<View, Failure> {
    let at = installed::home(home);
    let project = match found(home) {
        None => None,
        Some(folder) => match counted(&folder, &at) {
            Ok(project) => Some(project),
            Err(why) => {
                printer.warn(&why);
                None
            }
        },
    };
    Ok(View::new(&at, project)?)
}

/// Where the home of the project around the working folder is.
fn found(home: &Home) -> Option<PathBuf> {
    let folder = std::env::current_dir().ok()?;
    let usual = std::env::home_dir().map(|path| path.join(install::project::FOLDER));
    let own = [Some(home.path()), usual.as_deref()];
    around(&folder, &own.into_iter().flatten().collect::<Vec<_>>())
}

/// A project's home that is trusted as it is, or why it counts for nothing.
fn counted(folder: &Path, at: &install::Home) -> Result<Project, String> {
    let shown = line(&folder.display().to_string());
    let parent = folder.parent().unwrap_or(folder).display().to_string();
    let trust = format!("`haft trust {}`", line(&shell::word(&parent)));
    let trusted = Trusted::load(at)
        .map_err(|error| format!("`{shown}` counts for nothing: {}", line(&error.to_string())))?;
    let project = Project::read(folder);
    let project = project
        .map_err(|error| format!("`{shown}` counts for nothing: {}", line(&error.to_string())))?;
    match trusted.standing(&project) {
        Standing::Trusted => Ok(project),
        Standing::Changed => Err(format!(
            "`{shown}` has changed since you trusted it, and counts for nothing; {trust} trusts it as it is now"
        )),
        Standing::Unknown => Err(format!(
            "`{shown}` is the home of a project that you do not trust, and counts for nothing; {trust} changes that"
        )),
    }
}
