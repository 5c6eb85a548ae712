//! A scratch folder on the host, where a process has no root of its own.

use std::io;

use crate::held::HeldFolder;

/// What the names of such folders begin with.
pub(crate) const PREFIX: &str = "haft-scratch-";

/// Makes one in the temporary folder.
pub(crate) fn make() -> io::Result<HeldFolder> {
    HeldFolder::make(&std::env::temp_dir().canonicalize()?, PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held;

    #[test]
    fn a_scratch_folder_is_swept_when_nobody_holds_it() {
        let used = make().unwrap();
        let parent = used.path().parent().unwrap().to_owned();
        // What a host leaves that is killed, whoever has its number now.
        let left = parent.join(format!("{PREFIX}{}-99999", std::process::id()));
        std::fs::create_dir_all(left.join("inner")).unwrap();
        held::sweep(&parent, PREFIX);
        assert!(used.path().exists() && !left.exists());
    }
}
