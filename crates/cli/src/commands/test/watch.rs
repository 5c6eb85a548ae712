//! Tests that are run again whenever a file changes.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::TestArgs;
use super::round::Round;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Printer, line};
use crate::{disk, fetch, interrupt};

/// How often it is looked whether something changed. To be told by the system takes a watch for every folder, of which
/// it has few; a few hundred files are looked at in a millisecond.
const PACE: Duration = Duration::from_millis(200);

/// How many files are looked at, and how deep below the folder.
const MOST_FILES: usize = 50_000;
const MAX_DEPTH: usize = 32;

/// Runs rounds until somebody ends it.
pub(super) fn run(
    args: &TestArgs,
    round: impl Fn() -> Result<Round, Failure>,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let path = Path::new(&args.what);
    if fetch::is_id(&args.what) {
        let message = "what is installed does not change, so there is nothing to watch";
        return Err(Failure::invalid(message).hint("name the folder that you work in"));
    }
    // A manifest is changed together with what lies beside it.
    let folder = if path.is_file() && path.extension().is_some_and(|kind| kind == "json") {
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
    } else {
        path
    };
    // What we write ourselves is no change.
    let own = args.junit.as_deref().and_then(|file| std::path::absolute(file).ok());
    loop {
        let before = state(folder, own.as_deref());
        match round() {
            Ok(round) if json_wanted => printer.event(&round.json())?,
            Ok(_) => {}
            Err(failure) if failure.exit == Exit::Of(interrupt::CODE) => return Err(failure),
            // It may be mended next.
            Err(failure) if json_wanted => printer.event(&failure.document())?,
            Err(failure) => printer.failure(&failure),
        }
        let place = line(&folder.display().to_string());
        printer.note(&format!("Waiting for a change of {place}; Ctrl-C ends it"));
        wait(folder, own.as_deref(), before);
    }
}

/// Waits until something is not as it was, and then until nothing changes any more.
fn wait(folder: &Path, own: Option<&Path>, before: u64) {
    let mut last = before;
    loop {
        std::thread::sleep(PACE);
        let now = state(folder, own);
        if now != before && now == last {
            return;
        }
        last = now;
    }
}

/// What a folder or a file looks like: which files there are, how large, and when they were changed.
fn state(path: &Path, own: Option<&Path>) -> u64 {
    let mut files = Vec::new();
    look(path, 0, own, &mut files);
    files.sort();
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    hasher.finish()
}

type Seen = (PathBuf, u64, Option<std::time::SystemTime>);

fn look(path: &Path, depth: usize, own: Option<&Path>, files: &mut Vec<Seen>) {
    let Ok(found) = path.symlink_metadata() else { return };
    if !found.is_dir() {
        let is_own = own.is_some_and(|own| std::path::absolute(path).is_ok_and(|path| path == own));
        if !is_own && files.len() < MOST_FILES {
            files.push((path.to_owned(), found.len(), found.modified().ok()));
        }
        return;
    }
    let Ok(entries) = path.read_dir() else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && !disk::SKIPPED.contains(&&*name) && depth < MAX_DEPTH {
            look(&entry.path(), depth + 1, own, files);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_file_is_seen_and_that_of_our_own_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        };
        file("a/b.json", "1");
        let own = file("results.xml", "");
        let now = || state(folder.path(), Some(&own));
        let before = now();
        file("results.xml", "other");
        file(".git/index", "x");
        file("node_modules/x.js", "x");
        assert_eq!(now(), before);
        file("a/b.json", "12");
        let changed = now();
        assert_ne!(changed, before);
        file("a/c.json", "");
        assert_ne!(now(), changed);
    }
}
