//! A kernel that refuses a part of the walls.
//!
//! The refusals are made by `strace`, which answers a system call in the kernel's place.

use std::path::{Path, PathBuf};

use sandbox::{Confinement, Exit, Launcher, Level, SpawnError};

use crate::kit::folders::Folder;
use crate::kit::programs::launcher_program;
use crate::kit::rooms::{shell, text, walled_with};

/// A program that starts the launcher under `strace`, with some calls answered for the kernel.
pub(crate) fn tampering(folder: &Folder, injections: &[&str]) -> PathBuf {
    let launcher = launcher_program();
    let flags: String = injections.iter().map(|one| format!(" -e inject={one}")).collect();
    let calls: Vec<_> =
        injections.iter().map(|one| one.split(':').next().unwrap().to_owned()).collect();
    // `strace` looks a bare name up and passes it on as it is, and the launcher knows itself by it.
    let script = format!(
        "#!/bin/sh\nPATH='{}':/usr/bin:/bin\nexport PATH\n\
         exec strace -f -qq -o /dev/null -e trace={}{flags} haft-launcher\n",
        launcher.parent().unwrap().display(),
        calls.join(","),
    );
    folder.write_program("tampering", &script)
}

/// Tries to start a program that would leave a mark.
pub(crate) fn attempt(
    launcher: &Launcher,
    folder: &Path,
    required: Level,
) -> Result<Exit, SpawnError> {
    let mark = folder.join("mark");
    let confinement = Confinement { required, ..walled_with(folder) };
    let spawned = launcher.spawn(&confinement, &shell(&format!("echo >'{}'", mark.display())));
    let finished = spawned.map(|child| child.finish(b"").unwrap());
    let was_there = mark.exists();
    let _ = std::fs::remove_file(&mark);
    match finished {
        Ok(finished) => {
            assert!(was_there, "it ran: {}", text(&finished.stderr));
            Ok(finished.ended.exit)
        }
        Err(error) => {
            assert!(!was_there, "it ran: {error:?}");
            Err(error)
        }
    }
}
