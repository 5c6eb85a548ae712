//! What the tests of limits, lifetimes and leftovers share.
//!
//! Walls differ by who builds them: root has control groups, everybody else a
//! watchdog. So a test runs as the user it finds itself, and when that is root once more as nobody.
#![allow(dead_code, clippy::allow_attributes, reason = "each test file uses a part of it")]
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test may panic, and this is no library"
)]

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sandbox::{Confinement, Finished, Launcher, Level, Limits};

/// The user without any rights.
const NOBODY: u32 = 65534;

/// Set where a test binary was started by another: the folder with what it needs.
const KIT: &str = "HAFT_TEST_KIT";

/// Set where a test acts as something else.
const ROLE: &str = "HAFT_TEST_ROLE";

/// The longest that one test takes as one user.
const PATIENCE: Duration = Duration::from_secs(100);

/// Runs a test as the user of this process and, when that is root, as nobody too.
pub fn as_each_user(name: &str, body: impl FnOnce()) {
    body();
    if is_root() && std::env::var_os(KIT).is_none() {
        again(name, NOBODY);
    }
}

/// The same, each in a process where nothing else goes on.
pub fn alone_as_each_user(name: &str, body: impl FnOnce()) {
    if std::env::var_os(KIT).is_some() {
        return body();
    }
    again(name, rustix::process::geteuid().as_raw());
    if is_root() {
        again(name, NOBODY);
    }
}

/// Whether this process is root, and so has control groups.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Keeps tests apart that look at the whole machine.
pub fn alone_on_the_machine() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one test of this binary in a process of its own.
fn again(name: &str, user: u32) {
    let kit = tempfile::Builder::new().prefix("haft-kit-").tempdir().unwrap();
    std::fs::set_permissions(kit.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let binary = kit.path().join("tests");
    link(&std::env::current_exe().unwrap(), &binary);
    link(&launcher_program(), &kit.path().join("haft-launcher"));
    for source in sources() {
        let made = program(&source);
        link(&made, &kit.path().join(&source));
    }
    let temporary = kit.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    if user != rustix::process::geteuid().as_raw() {
        std::os::unix::fs::chown(&temporary, Some(user), Some(user)).unwrap();
    }
    let said = kit.path().join("said");
    let output = File::create(&said).unwrap();
    let mut command = Command::new(&binary);
    command
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(KIT, kit.path())
        .env("TMPDIR", &temporary)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output);
    if user != rustix::process::geteuid().as_raw() {
        // The standard library gives up root's other groups with this.
        command.uid(user).gid(user);
    }
    let status = finish_within(&mut command, PATIENCE);
    let said = String::from_utf8_lossy(&std::fs::read(&said).unwrap()).into_owned();
    let is_one = said.contains("running 1 test") && said.contains("test result: ok. 1 passed");
    let ended = status.map_or("did not end in time".into(), |status| status.to_string());
    assert!(
        status.is_some_and(|status| status.success()) && is_one,
        "`{name}` as user {user}: {ended}\n{said}"
    );
    let left: Vec<_> =
        std::fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "`{name}` as user {user} left {left:?}");
}

/// Waits for a process that must not hang; `None` if it did and was killed.
pub fn finish_within(command: &mut Command, limit: Duration) -> Option<ExitStatus> {
    let mut process = command.spawn().unwrap();
    let mut status = None;
    until(limit, || {
        status = process.try_wait().unwrap();
        status.is_some()
    });
    if status.is_none() {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    status
}

fn link(from: &Path, to: &Path) {
    std::fs::hard_link(from, to).or_else(|_| std::fs::copy(from, to).map(drop)).unwrap();
}

/// What this process was started to act as.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// A process that runs one test of this binary, which finds a role to act.
pub fn actor(name: &str, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .stdin(Stdio::null());
    command
}

/// The program that is the launcher.
pub fn launcher_program() -> PathBuf {
    match std::env::var_os(KIT) {
        Some(kit) => Path::new(&kit).join("haft-launcher"),
        None => env!("CARGO_BIN_EXE_haft-launcher").into(),
    }
}

/// A launcher whose walls are strong enough for these tests.
pub fn launcher() -> Launcher {
    let launcher = Launcher::start(&launcher_program()).unwrap();
    let walls = launcher.walls();
    assert!(walls.level() >= Level::L2, "{walls:?}");
    launcher
}

/// A process with nothing, that never hangs.
pub fn walled() -> Confinement {
    let limits = Limits { deadline: Some(Duration::from_secs(20)), ..Limits::default() };
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
    assert_eq!(finished.ended.exit, sandbox::Exit::Code(0), "{stdout}\n{stderr}");
    stdout
}

/// Looks again and again until something holds; `false` if it never did.
pub fn until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A folder that is removed at the end, by its real path.
pub fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

/// One of our small programs in C, compiled when it has to be.
pub fn program(name: &str) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    if let Some(kit) = std::env::var_os(KIT) {
        return Path::new(&kit).join(name);
    }
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let source = Path::new(SOURCES).join(format!("{name}.c"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).canonicalize().unwrap();
    let made = folder.join(name);
    let age = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    if age(&made) < age(&source) {
        // Other test binaries may run the old one right now.
        let fresh = folder.join(format!("{name}.{}", std::process::id()));
        let status = Command::new("cc")
            .args(["-O1", "-Wall", "-Werror", "-pthread", "-o"])
            .args([&fresh, &source])
            .status()
            .unwrap();
        assert!(status.success(), "{name}.c");
        std::fs::rename(&fresh, &made).unwrap();
    }
    made
}

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs");

fn sources() -> Vec<String> {
    std::fs::read_dir(SOURCES)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "c"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect()
}

/// One process as `/proc` shows it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Its number.
    pub pid: i32,
    /// Its parent's number.
    pub parent: i32,
    /// Its arguments.
    pub words: String,
    /// Memory that is its own, in bytes.
    pub own_memory: u64,
}

/// Every process there is that has not ended.
pub fn processes() -> Vec<Seen> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| {
            let folder = entry.ok()?.path();
            let pid = folder.file_name()?.to_str()?.parse().ok()?;
            let words = text(&std::fs::read(folder.join("cmdline")).ok()?);
            let status = std::fs::read_to_string(folder.join("status")).ok()?;
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                line.map(|line| line.trim().to_owned())
            };
            if field("State:")?.starts_with(['Z', 'X']) {
                return None;
            }
            let kilobytes = field("RssAnon:").unwrap_or_default();
            let kilobytes: u64 = kilobytes.trim_end_matches(" kB").parse().unwrap_or(0);
            let parent = field("PPid:")?.parse().ok()?;
            Some(Seen { pid, parent, words, own_memory: kilobytes * 1024 })
        })
        .collect()
}

/// The processes below one.
pub fn below(ancestor: i32) -> Vec<Seen> {
    let all = processes();
    let mut found: Vec<Seen> = Vec::new();
    let mut next = vec![ancestor];
    while let Some(parent) = next.pop() {
        for one in all.iter().filter(|one| one.parent == parent) {
            next.push(one.pid);
            found.push(one.clone());
        }
    }
    found
}

/// The processes that have a word among their arguments.
pub fn with_word(word: &str) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let all = processes().into_iter();
    all.filter(|one| one.words.contains(word) && one.pid != own).map(|one| one.pid).collect()
}

/// The launchers that a process has started.
pub fn launchers_of(parent: i32) -> Vec<i32> {
    let is_one = |one: &Seen| one.parent == parent && one.words.starts_with("haft-launcher\0");
    processes().iter().filter(|one| is_one(one)).map(|one| one.pid).collect()
}

/// Kills a process as nothing can be killed harder.
pub fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// The number of a child, as `/proc` counts.
pub fn number(child: &sandbox::Child) -> i32 {
    child.id().cast_signed()
}
