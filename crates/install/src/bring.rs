//! What was acquired, as part of a version that is made ready.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::acquire::Acquired;
use crate::changing::Ready;
use crate::error::{Doing, HomeError};
use crate::record::{ACQUIRED, ACQUIRED_FILES};
use crate::whole::listed;

/// Where Node looks for packages, from a file upwards.
const NODE: &str = "node_modules";

/// Makes the empty folder that is filled with what is acquired.
pub fn make_room(ready: &Ready) -> Result<PathBuf, HomeError> {
    let room = ready.folder.join(ACQUIRED);
    fs::create_dir_all(&room).map_err(|cause| Doing::Make(room.clone()).failed(cause))?;
    Ok(room)
}

/// Takes what was acquired into the version: its digests, and where the package finds it.
pub fn bring(ready: &mut Ready, acquired: Acquired) -> Result<(), HomeError> {
    let root = ready.folder.clone();
    let room = root.join(ACQUIRED);
    let doing = Doing::Read(room.clone());
    let files = listed(&room).map_err(|cause| doing.failed(cause))?;
    let text = serde_json::to_vec(&files).expect("a list of files is plain data");
    let place = root.join(ACQUIRED_FILES);
    fs::write(&place, text).map_err(|cause| Doing::Write(place.clone()).failed(cause))?;
    // Modules of a package look for others in the folders around them, and nowhere else.
    if acquired.node.is_some() && root.join(NODE).symlink_metadata().is_err() {
        let (link, to) = (root.join(NODE), Path::new(ACQUIRED).join(NODE));
        link_folder(&to, &link).map_err(|cause| Doing::Write(link.clone()).failed(cause))?;
    }
    ready.record.pinned.artefacts.clone_from(&acquired.artefacts);
    ready.record.acquired = Some(acquired);
    Ok(())
}

#[cfg(unix)]
fn link_folder(to: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, link)
}

#[cfg(not(unix))]
fn link_folder(to: &Path, link: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_dir(to, link)
}
