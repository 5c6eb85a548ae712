//! Who a process that is kept for more than one call belongs to.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use sandbox::Confinement;

use crate::call::Tool;

/// Who a process that is kept for more than one call belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The package.
    pub(crate) package: String,
    /// What its manifest is, the files it begins with and what is at the paths it was given: a process that was
    /// started with others is not asked any more.
    pub(crate) state: String,
}

impl Owner {
    /// The owner of a process that begins with these files, as far as they are there, and is given these paths.
    pub(crate) fn of(
        tool: &Tool,
        begins_with: impl IntoIterator<Item = PathBuf>,
        given: Option<&Confinement>,
    ) -> Self {
        let mut state = tool.package.raw_sha256.clone();
        for path in begins_with {
            if let Ok(found) = tool.root.join(path).metadata()
                && found.is_file()
            {
                state += &format!(" {} {:?}", found.len(), found.modified().ok());
            }
        }
        // Walls hold what was at a path when they were built, and another may be there now. A number is used again
        // for what comes later, so the time of its making is told too.
        for path in given.iter().flat_map(|given| given.readable.iter().chain(&given.writable)) {
            if let Ok(found) = path.metadata() {
                state += &format!(" {}:{} {:?}", found.dev(), found.ino(), found.created().ok());
            }
        }
        Self { package: tool.package.canonical_id(), state }
    }
}

/// The files that a Python callable can be in: `pack.age:name` is in `pack/age.py`, or in the folder `pack/age`.
pub(crate) fn files_of(callable: &str) -> [PathBuf; 2] {
    let module = callable.split(':').next().unwrap_or_default();
    let path: PathBuf = module.split('.').collect();
    [path.with_extension("py"), path.join("__init__.py")]
}
