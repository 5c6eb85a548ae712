//! What was typed: files of clients, or a file by its path.

use std::path::{Path, PathBuf};

use import::edit::Form;

use crate::clients::{self, Client, User, names};
use crate::exit::{Exit, Failure};
use crate::printer::line;

/// A file to import from.
#[derive(Debug)]
pub(super) struct Source {
    /// Its path without links.
    pub(super) path: PathBuf,
    /// Whose it is, where it was named by its client.
    pub(super) client: Option<Client>,
    /// Where its servers are; of a file that was typed, its content says.
    pub(super) form: Option<Form>,
    /// The project of it.
    pub(super) project: Option<PathBuf>,
}

impl Source {
    /// What it holds; a file that grew meanwhile is cut, and refused by whoever reads it.
    pub(super) fn read(&self) -> Result<Vec<u8>, Failure> {
        clients::read(&self.path)
    }

    /// The project whose file it is, where nobody typed its path: who cloned a project said nothing of what is in it, so it
    /// is lent nothing outside.
    pub(super) fn bounds(&self) -> Option<&Path> {
        self.project.as_deref().filter(|_| self.client.is_some())
    }

    /// As it is told.
    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }
}

/// The files that a word stands for: a client's, as far as they are there, or the one at a path.
pub(super) fn find(what: &str) -> Result<Vec<Source>, Failure> {
    let clients = Client::named(what);
    if clients.is_empty() || what.contains('/') {
        return of_path(what).map(|source| vec![source]);
    }
    let user = User::of_process()?;
    let project = clients::project()?;
    let mut sources: Vec<Source> = Vec::new();
    let mut looked = Vec::new();
    for client in clients {
        for place in client.places(&user, &project) {
            looked.push(place.path.display().to_string());
            let Ok(path) = place.path.canonicalize() else { continue };
            let form = Some(place.form);
            // The folder of a project may be the user's own.
            if !sources.iter().any(|one| one.path == path && one.form == form) {
                sources.push(Source { path, client: Some(client), form, project: place.project });
            }
        }
    }
    if sources.is_empty() {
        looked.dedup();
        let message = format!("there are no settings of `{what}`");
        let failure = Failure::new(Exit::NotFound, message);
        return Err(failure.details(looked.into_iter().map(|path| format!("looked at {path}"))));
    }
    Ok(sources)
}

fn of_path(text: &str) -> Result<Source, Failure> {
    let typed = Path::new(text);
    let path = typed.canonicalize().map_err(|error| {
        let failure = Failure::unread(line(text), error);
        if text.contains(['/', '.']) {
            failure
        } else {
            failure.hint(format!("it is no client either: there is {}", names()))
        }
    })?;
    if path.is_dir() {
        let message = format!("`{}` is a folder, and what is imported is a file", line(text));
        let hint = "name the settings, the server.json, the .mcpb or the OpenAPI document; `haft install` takes the folder of a package";
        return Err(Failure::invalid(message).hint(hint));
    }
    // A file of a project stands in it, or in a hidden folder of it.
    let folder = path.parent().map(Path::to_owned);
    let is_hidden = |folder: &Path| {
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
    };
    let project = match folder {
        Some(folder) if is_hidden(&folder) => folder.parent().map(Path::to_owned),
        folder => folder,
    };
    Ok(Source { path, client: None, form: None, project })
}
