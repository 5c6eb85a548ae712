//! Where the entry is written: a file within bounds, whether it is there or not.

use std::path::{Path, PathBuf};

use import::edit::Form;

use crate::clients::{Client, Place, Settings, User};
use crate::exit::{Exit, Failure};
use crate::output;

/// The file of a client.
#[derive(Debug)]
pub(super) struct Placed {
    /// Its path without links.
    pub(super) path: PathBuf,
    pub(super) form: Form,
    pub(super) is_there: bool,
    /// The folder that has to be made for it.
    pub(super) folder: Option<PathBuf>,
}

impl Placed {
    /// What it holds.
    pub(super) fn read(&self) -> Result<Settings, Failure> {
        if self.is_there {
            Settings::read(&self.path, &self.form)
        } else {
            Ok(Settings::absent(&self.path, &self.form))
        }
    }

    /// As it is told.
    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }
}

/// Finds the file, and refuses one that a link has put out of bounds: what is in a project may be a stranger's.
/// Whoever takes an entry back needs no place for it.
pub(super) fn find(
    client: Client,
    place: Place,
    user: &User,
    is_undone: bool,
) -> Result<Placed, Failure> {
    let Place { path: typed, form, project } = place;
    let bounds = match &project {
        Some(project) => vec![project.clone()],
        None => vec![user.home.clone(), user.settings.clone()],
    };
    if typed.symlink_metadata().is_ok() {
        let path = typed.canonicalize().map_err(|error| {
            Failure::unread(typed.display(), error).hint("it is a link that leads nowhere")
        })?;
        check_bounds(&typed, &path, &bounds)?;
        if !path.is_file() {
            return Err(Failure::invalid(format!("`{}` is no file", path.display())));
        }
        return Ok(Placed { path, form, is_there: true, folder: None });
    }
    let absent = |path, folder| Placed { path, form, is_there: false, folder };
    let (Some(folder), Some(name)) = (typed.parent(), typed.file_name()) else {
        return Err(Failure::invalid(format!("`{}` is no file", typed.display())));
    };
    if folder.is_dir() {
        let whole =
            folder.canonicalize().map_err(|error| Failure::unread(folder.display(), error))?;
        check_bounds(folder, &whole, &bounds)?;
        return Ok(absent(whole.join(name), None));
    }
    let is_free = folder.symlink_metadata().is_err();
    match folder.parent().and_then(|above| above.canonicalize().ok()) {
        // That a project has none yet says nothing.
        Some(above) if project.is_some() && is_free => {
            let folder = above.join(folder.file_name().unwrap_or_default());
            Ok(absent(folder.join(name), Some(folder)))
        }
        _ if is_undone && is_free => Ok(absent(without_links(&typed), None)),
        _ => Err(no_folder(client, folder)),
    }
}

/// The path to what is not there, by what of it is.
fn without_links(path: &Path) -> PathBuf {
    let whole = path.ancestors().find_map(|above| {
        let rest = path.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(rest))
    });
    whole.unwrap_or_else(|| path.to_owned())
}

fn check_bounds(typed: &Path, path: &Path, bounds: &[PathBuf]) -> Result<(), Failure> {
    let is_within = |bound: &PathBuf| {
        path.starts_with(bound) || bound.canonicalize().is_ok_and(|bound| path.starts_with(bound))
    };
    if bounds.iter().any(is_within) {
        return Ok(());
    }
    let message = format!(
        "`{}` is a link that leads out of its place, to `{}`",
        typed.display(),
        path.display()
    );
    Err(Failure::invalid(message)
        .hint("put a file there, or add the entry to the other one yourself"))
}

fn no_folder(client: Client, folder: &Path) -> Failure {
    let shown = folder.display().to_string();
    let message =
        format!("there is no folder `{shown}`, where {} keeps its settings", client.name());
    let failure = Failure::new(Exit::NotFound, message).hint(format!(
        "start {} once, or {}",
        client.name(),
        output::made_by(&shown)
    ));
    match client.of_project(Path::new("")) {
        Some(place) => {
            failure.hint(format!("--project writes `{}` in this folder", place.path.display()))
        }
        None => failure,
    }
}
