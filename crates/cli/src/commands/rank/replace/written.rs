//! The next version of a chain, as a package.

use std::path::{Path, PathBuf};

use host::Tool;
use manifest::starter::StarterFile;
use package::contents::{Contents, MANIFEST_NAMES};
use package::gather::gather;
use package::limits::Limits;
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::new_folder;

/// What stands for the version that it was, and not for this one: its signature, what was measured of it.
const LEFT_OUT: &str = "meta";

/// Refuses a folder that is there, before anything is run.
pub(super) fn check(folder: &Path) -> Result<(), Failure> {
    new_folder::check_free(folder, [MANIFEST_NAMES[0]])
}

/// Writes the files of a chain with another manifest; where.
pub(super) fn write(folder: &Path, tool: &Tool, manifest: &Value) -> Result<PathBuf, Failure> {
    let root = tool.folder();
    let unread = |error: &dyn std::error::Error| {
        let message = format!("failed to read `{}`", root.display());
        Failure::new(Exit::Unavailable, message).cause(error.to_string())
    };
    let gathered = gather(root, &Limits::DEFAULT).map_err(|error| unread(&error))?;
    let file = |path: &str, content: Vec<u8>| StarterFile {
        path: path.to_owned(),
        content,
        executable: false,
    };
    let mut files = vec![file(MANIFEST_NAMES[0], format!("{manifest:#}\n").into_bytes())];
    let is_taken =
        |path: &&str| !MANIFEST_NAMES.contains(path) && !Path::new(path).starts_with(LEFT_OUT);
    for path in gathered.paths().into_iter().filter(is_taken) {
        files.push(file(path, gathered.read(path).map_err(|error| unread(&error))?));
    }
    new_folder::write(folder, &files)?;
    // A bare name would be taken for an id.
    let is_bare = folder.components().count() == 1 && folder.is_relative();
    Ok(if is_bare { Path::new(".").join(folder) } else { folder.to_owned() })
}
