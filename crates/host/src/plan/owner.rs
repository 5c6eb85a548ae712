//! Who a process that is kept for more than one call belongs to.

use std::path::PathBuf;

use crate::call::Tool;

/// Who a process that is kept for more than one call belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The package.
    pub(crate) package: String,
    /// What its manifest is, and the files it begins with: a process that was started with others is not asked
    /// any more.
    pub(crate) state: String,
}

impl Owner {
    /// The owner of a process that begins with these files, as far as they are there.
    pub(crate) fn of(tool: &Tool, begins_with: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut state = tool.package.raw_sha256.clone();
        for path in begins_with {
            if let Ok(found) = tool.root.join(path).metadata()
                && found.is_file()
            {
                state += &format!(" {} {:?}", found.len(), found.modified().ok());
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
