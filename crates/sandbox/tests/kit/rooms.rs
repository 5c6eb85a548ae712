//! How things are started behind the walls.

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use sandbox::{Confinement, Exit, Finished, Launcher, Level, Limits};

use super::machine::slowness;
use super::programs::{launcher_program, program};

/// A launcher whose walls are strong enough for these tests.
pub fn launcher() -> Launcher {
    let launcher = Launcher::start(&launcher_program()).unwrap();
    let walls = launcher.walls();
    assert!(walls.level() >= Level::L2, "{walls:?}");
    launcher
}

/// One for all tests of this process.
pub fn shared_launcher() -> &'static Launcher {
    static LAUNCHER: OnceLock<Launcher> = OnceLock::new();
    LAUNCHER.get_or_init(launcher)
}

/// A process with nothing, that never hangs.
pub fn walled() -> Confinement {
    with_limits(|_| {})
}

/// The same, with other limits.
pub fn with_limits(change: impl FnOnce(&mut Limits)) -> Confinement {
    let deadline = Some(Duration::from_secs(20) * slowness());
    let mut limits = Limits { deadline, ..Limits::default() };
    change(&mut limits);
    Confinement { limits, ..Confinement::default() }
}

/// The same, with one more folder to write.
pub fn walled_with(folder: &Path) -> Confinement {
    Confinement { writable: vec![folder.to_owned()], ..walled() }
}

/// The same, with one of our programs to run.
pub fn with_program(mut confinement: Confinement, name: &str) -> Confinement {
    confinement.readable.push(program(name));
    confinement
}

/// Words as they are passed to a program.
pub fn words<S: Into<OsString>>(words: impl IntoIterator<Item = S>) -> Vec<OsString> {
    words.into_iter().map(Into::into).collect()
}

/// A script for the shell.
pub fn shell(script: &str) -> Vec<OsString> {
    words(["/bin/sh", "-c", script])
}

/// A script for Python.
pub fn python(script: &str) -> Vec<OsString> {
    words(["/usr/bin/python3", "-c", script])
}

/// One of our programs, with its arguments.
pub fn ours(name: &str, arguments: &[&str]) -> Vec<OsString> {
    let program = program(name).into_os_string();
    std::iter::once(program).chain(arguments.iter().map(OsString::from)).collect()
}

/// Runs a program to its end.
pub fn run(launcher: &Launcher, confinement: &Confinement, argv: &[OsString]) -> Finished {
    launcher.spawn(confinement, argv).unwrap().finish(b"").unwrap()
}

/// What a program wrote, as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a program that must end well, and gives what it wrote.
pub fn output_of(launcher: &Launcher, confinement: &Confinement, argv: &[OsString]) -> String {
    let finished = run(launcher, confinement, argv);
    let (stdout, stderr) = (text(&finished.stdout), text(&finished.stderr));
    assert_eq!(finished.ended.exit, Exit::Code(0), "{stdout}\n{stderr}");
    stdout
}

/// An error with its causes, as a person is told.
pub fn told(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
