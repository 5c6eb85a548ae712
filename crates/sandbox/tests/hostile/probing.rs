//! Programs that try things: the probes, behind the walls and without any.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use sandbox::{Child, Confinement, Exit, Launcher};

use crate::kit::programs::program;
use crate::kit::rooms::{ours, shared_launcher, text, with_program};

/// How long a probe may take before it counts as stuck.
const PATIENCE: Duration = Duration::from_mins(1);

/// Starts a probe inside the walls.
pub(crate) fn start_probe(launcher: &Launcher, confinement: &Confinement, words: &[&str]) -> Child {
    let mut confinement = with_program(confinement.clone(), "probes");
    confinement.limits.deadline.get_or_insert(PATIENCE);
    match launcher.spawn(&confinement, &ours("probes", words)) {
        Ok(child) => child,
        Err(error) => panic!("`{}` was not started: {error} ({error:?})", words.join(" ")),
    }
}

/// Runs a probe inside the walls: what it said, and how it ended.
pub(crate) fn probe(confinement: &Confinement, words: &[&str]) -> (String, Exit) {
    let finished = start_probe(shared_launcher(), confinement, words).finish(b"").unwrap();
    let errors = text(&finished.stderr);
    assert!(errors.is_empty(), "`{}` complained: {errors}", words.join(" "));
    (text(&finished.stdout).trim_end().to_owned(), finished.ended.exit)
}

/// Runs a probe inside the walls and expects that it was denied what it tried. Gives what it said.
pub(crate) fn assert_held(confinement: &Confinement, words: &[&str]) -> String {
    let (said, exit) = probe(confinement, words);
    let is_held = said.starts_with("held: ") && exit == Exit::Code(0);
    assert!(is_held, "`{}` was not held: {said} ({exit})", words.join(" "));
    said
}

/// Runs a probe without any walls, as the child of a shell: what it said, and its exit status.
pub(crate) fn probe_outside(folder: &Path, words: &[&str]) -> (String, Option<i32>) {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "\"$0\" \"$@\"; exit $?"]).arg(program("probes")).args(words);
    let output = command.current_dir(folder).stdin(Stdio::null()).output().unwrap();
    (text(&output.stdout).trim_end().to_owned(), output.status.code())
}

/// Asserts that a probe can fail: without walls it does what it tries.
pub(crate) fn assert_escapes_outside(folder: &Path, words: &[&str]) {
    let (said, code) = probe_outside(folder, words);
    // A kernel may be built or booted without something; the walls cannot be thanked for that.
    let is_missing = said.starts_with("held: ") && said.ends_with(": ENOSYS");
    let is_out = is_missing || (said.starts_with("ESCAPED: ") && code == Some(42));
    assert!(is_out, "`{}` is denied even without walls: {said}", words.join(" "));
}

/// Whether a folder leads to the probe itself, which is granted: wherever somebody builds this, that much of the way is seen.
pub(crate) fn leads_to_the_probe(folder: &str) -> bool {
    program("probes").starts_with(folder)
}

/// A path as the word that a probe takes.
pub(crate) fn word(path: &Path) -> &str {
    path.to_str().unwrap()
}
