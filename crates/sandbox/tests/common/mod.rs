//! Rooms for tests, and programs that try things in them.
//!
//! A test runs in this process and, where this is root, once more in a copy of itself that
//! belongs to an ordinary user: walls are made differently for the two. The programs
//! are the probes of `tests/probes`, compiled when the first test needs them.

#![allow(dead_code, clippy::allow_attributes, reason = "each test file uses a part of it")]

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use sandbox::{Child, Confinement, Exit, Launcher};

/// Where the programs of a test lie that runs as another user. Whoever has it is that user.
const STAGE: &str = "HAFT_TEST_STAGE";

/// Nobody: an ordinary user that every system has.
const ANOTHER: u32 = 65534;

/// Where folders are made: anybody may, and it is no folder that a room has of its own, as `/tmp` is.
const OUTSIDE: &str = "/var/tmp";

/// How long a probe may take before it counts as stuck.
const PATIENCE: Duration = Duration::from_mins(1);

/// Runs the body of a test, and where this is root, once more as an ordinary user.
pub(crate) fn as_each_user<Body: FnOnce()>(body: Body) {
    body();
    if std::env::var_os(STAGE).is_none() && rustix::process::geteuid().is_root() {
        let stage = Stage::build();
        stage.run(test_of::<Body>());
    }
}

/// The name of the test that a closure is written in, as the test program takes it.
fn test_of<Body>() -> &'static str {
    let name = std::any::type_name::<Body>();
    let name = name.split_once("::").map_or(name, |(_program, rest)| rest);
    name.split("::{{closure}}").next().unwrap_or(name)
}

/// Runs one test of this program in a process of its own, as `command` says, and expects it to pass.
pub(crate) fn assert_passes(command: &mut Command, test: &str) {
    let command = command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    let output = command.output().expect("a copy of this program can be started");
    let (stdout, stderr) = both(&output);
    assert!(
        output.status.success() && stdout.contains("test result: ok. 1 passed"),
        "`{test}` as another process: {}\n{stdout}\n{stderr}",
        output.status
    );
}

/// A copy of these programs that anybody may run, and a folder of another user's.
struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn build() -> Self {
        let folder = tempfile::tempdir_in(OUTSIDE).unwrap();
        set_mode(folder.path(), 0o755);
        let tests = std::env::current_exe().unwrap();
        let programs =
            [(tests.as_path(), "tests"), (launcher_program(), "launcher"), (probes(), "probes")];
        for (program, name) in programs {
            fs::copy(program, folder.path().join(name)).unwrap();
            set_mode(&folder.path().join(name), 0o755);
        }
        let own = folder.path().join("own");
        fs::create_dir(&own).unwrap();
        std::os::unix::fs::chown(&own, Some(ANOTHER), Some(ANOTHER)).unwrap();
        Self { folder }
    }

    fn run(&self, test: &str) {
        let (folder, own) = (self.folder.path(), self.folder.path().join("own"));
        let mut command = Command::new(folder.join("tests"));
        // With a user, the groups of root are given up as well.
        command.uid(ANOTHER).gid(ANOTHER).current_dir(&own);
        command.env(STAGE, folder).env("TMPDIR", &own).env("HOME", &own);
        assert_passes(&mut command, test);
    }
}

fn staged(name: &str) -> Option<PathBuf> {
    std::env::var_os(STAGE).map(|stage| Path::new(&stage).join(name))
}

/// The program that becomes the launcher.
pub(crate) fn launcher_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        staged("launcher").unwrap_or_else(|| env!("CARGO_BIN_EXE_haft-launcher").into())
    })
}

/// One launcher for all tests of this process.
pub(crate) fn launcher() -> &'static Launcher {
    static LAUNCHER: OnceLock<Launcher> = OnceLock::new();
    LAUNCHER.get_or_init(|| Launcher::start(launcher_program()).expect("the launcher starts"))
}

/// The program with the probes, at a path without links.
pub(crate) fn probes() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| staged("probes").unwrap_or_else(compile).canonicalize().unwrap())
}

/// Compiles the probes, unless they have been since they were last changed.
fn compile() -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/probes");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join("probes");
    let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let entries = fs::read_dir(&sources).unwrap();
    let sources: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    if changed(&program) > sources.iter().filter_map(|source| changed(source)).max() {
        return program;
    }
    let fresh = tempfile::Builder::new().prefix("probes-").tempdir_in(folder).unwrap();
    let made = fresh.path().join("probes");
    let files = sources.iter().filter(|path| path.extension().is_some_and(|kind| kind == "c"));
    let output = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-pthread", "-o"])
        .arg(&made)
        .args(files)
        .output()
        .expect("a C compiler is installed");
    let (stdout, stderr) = both(&output);
    assert!(output.status.success(), "the probes do not compile\n{stdout}\n{stderr}");
    fs::rename(made, &program).unwrap();
    program
}

/// Starts a probe inside the walls.
pub(crate) fn start_probe(confinement: &Confinement, words: &[&str]) -> Child {
    let mut confinement = confinement.clone();
    confinement.readable.push(probes().to_owned());
    confinement.limits.deadline.get_or_insert(PATIENCE);
    let argv: Vec<OsString> = [probes().as_os_str()]
        .into_iter()
        .chain(words.iter().map(AsRef::as_ref))
        .map(Into::into)
        .collect();
    match launcher().spawn(&confinement, &argv) {
        Ok(child) => child,
        Err(error) => panic!("`{}` was not started: {error} ({error:?})", words.join(" ")),
    }
}

/// Runs a probe inside the walls: what it said, and how it ended.
pub(crate) fn probe(confinement: &Confinement, words: &[&str]) -> (String, Exit) {
    let finished = start_probe(confinement, words).finish(b"").unwrap();
    let text = String::from_utf8_lossy(&finished.stdout).trim_end().to_owned();
    let errors = String::from_utf8_lossy(&finished.stderr);
    assert!(errors.is_empty(), "`{}` complained: {errors}", words.join(" "));
    (text, finished.ended.exit)
}

/// Runs a probe inside the walls and expects that it was denied what it tried. Gives what it said.
pub(crate) fn assert_held(confinement: &Confinement, words: &[&str]) -> String {
    let (text, exit) = probe(confinement, words);
    let is_held = text.starts_with("held: ") && exit == Exit::Code(0);
    assert!(is_held, "`{}` was not held: {text} ({exit})", words.join(" "));
    text
}

/// Runs a program of the system inside the walls: what it wrote, and how it ended.
pub(crate) fn run(confinement: &Confinement, argv: &[&str]) -> (String, Exit) {
    let argv: Vec<OsString> = argv.iter().map(Into::into).collect();
    let finished = launcher().spawn(confinement, &argv).unwrap().finish(b"").unwrap();
    (String::from_utf8_lossy(&finished.stdout).into_owned(), finished.ended.exit)
}

/// Runs a probe without any walls, as the child of a shell: what it said, and its exit status.
pub(crate) fn probe_outside(folder: &Path, words: &[&str]) -> (String, Option<i32>) {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "\"$0\" \"$@\"; exit $?"]).arg(probes()).args(words).current_dir(folder);
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    (both(&output).0.trim_end().to_owned(), output.status.code())
}

/// Asserts that a probe can fail: without walls it does what it tries.
pub(crate) fn assert_escapes_outside(folder: &Path, words: &[&str]) {
    let (text, code) = probe_outside(folder, words);
    let is_out = text.starts_with("ESCAPED: ") && code == Some(42);
    assert!(is_out, "`{}` is denied even without walls: {text}", words.join(" "));
}

/// A temporary folder at a path without links.
pub(crate) struct Folder {
    _folder: tempfile::TempDir,
    /// Where it is.
    pub(crate) path: PathBuf,
}

impl Folder {
    /// An empty one.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir_in(OUTSIDE).unwrap();
        let path = folder.path().canonicalize().unwrap();
        Self { _folder: folder, path }
    }

    /// The path of something in it.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file in it, with the folders on the way.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Makes a folder in it, with those on the way.
    pub(crate) fn make(&self, name: &str) -> PathBuf {
        fs::create_dir_all(self.at(name)).unwrap();
        self.at(name)
    }
}

/// Every name below a folder with its kind, mode and content: what must be the same afterwards.
pub(crate) fn listing(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        // What goes away while we look is not there.
        for path in fs::read_dir(&next).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            let content = if metadata.is_symlink() {
                format!("-> {}", fs::read_link(&path).unwrap_or_default().display())
            } else if metadata.is_dir() {
                folders.push(path.clone());
                "folder".to_owned()
            } else {
                String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned()
            };
            let mode = metadata.permissions().mode();
            let name = path.strip_prefix(folder).unwrap().display();
            found.push(format!("{name} {mode:o} {content:?}"));
        }
    }
    found.sort();
    found
}

/// Expects a folder to be as it was. Its room is cleaned up a moment after it has ended.
pub(crate) fn assert_settles(folder: &Path, before: &[String]) {
    let until = Instant::now() + Duration::from_secs(5);
    while listing(folder) != before && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(listing(folder), before);
}

/// A path as the text that a probe takes.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Sets the mode of a file or a folder.
pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn both(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}
