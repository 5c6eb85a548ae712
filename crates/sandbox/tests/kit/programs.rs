//! Small programs in C: each folder of `tests/programs` is one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use super::folders::names;
use super::users::kit;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs");

/// The program that is the launcher.
pub fn launcher_program() -> PathBuf {
    kit()
        .map_or_else(|| env!("CARGO_BIN_EXE_haft-launcher").into(), |kit| kit.join("haft-launcher"))
}

/// All that there are.
pub fn program_names() -> Vec<String> {
    names(Path::new(SOURCES))
}

/// One of them, compiled when it has to be.
pub fn program(name: &str) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    if let Some(kit) = kit() {
        return kit.join(name);
    }
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let sources = Path::new(SOURCES).join(name);
    let sources: Vec<_> = names(&sources).iter().map(|file| sources.join(file)).collect();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).canonicalize().unwrap();
    let made = folder.join(name);
    let changed = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    if changed(&made) < sources.iter().filter_map(|file| changed(file)).max() {
        // Other test binaries may run the old one right now.
        let fresh = folder.join(format!("{name}.{}", std::process::id()));
        let status = Command::new("cc")
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-pthread", "-o"])
            .arg(&fresh)
            .args(sources.iter().filter(|file| file.extension().is_some_and(|kind| kind == "c")))
            .status()
            .expect("a C compiler is installed");
        assert!(status.success(), "`{name}` does not compile");
        std::fs::rename(&fresh, &made).unwrap();
    }
    made
}
