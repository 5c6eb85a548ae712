//! Who runs `haft` in the tests of the walls: the tests' own user, and an ordinary one.
//!
//! Whatever is started here has a time limit, so a test that should fail does not hang.
#![allow(
    dead_code,
    unused_macros,
    clippy::allow_attributes,
    reason = "each test file uses a part of it"
)]
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test may panic, and this is no library"
)]

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::common::Ran;

/// The ordinary user, and its group.
pub const ORDINARY: u32 = 65534;

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(100);

/// The system's own Python: one behind a shim is another program.
pub const PYTHON: &str = "/usr/bin/python3";

/// Where the system's programs are.
const SEARCH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Runs each of these functions as the tests' own user and as an ordinary one.
macro_rules! for_everybody {
    ($($test:ident),+ $(,)?) => {
        mod as_ourselves {
            $(#[test] fn $test() { super::$test(&crate::walls::Desk::of_ours()); })+
        }
        mod as_an_ordinary_user {
            $(#[test] fn $test() { super::$test(&crate::walls::Desk::of_an_ordinary_user()); })+
        }
    };
}

/// A small snapshot of what a person sees, the same for everybody.
macro_rules! assert_said {
    ($said:expr, @$expected:literal) => {
        insta::allow_duplicates! { insta::assert_snapshot!($said, @$expected) }
    };
}

/// A folder to work in, which belongs to who works there.
pub struct Desk {
    folder: TempDir,
    /// The program, where its user can execute it.
    program: PathBuf,
    /// The user, if it is another than ours.
    user: Option<u32>,
    _copy: Option<Arc<TempDir>>,
}

impl Desk {
    /// One of the user who runs the tests.
    pub fn of_ours() -> Self {
        let program = env!("CARGO_BIN_EXE_haft").into();
        Self::new(program, None, None)
    }

    /// One of a user without any rights. Only root can become another.
    pub fn of_an_ordinary_user() -> Self {
        if !is_root() {
            return Self::of_ours();
        }
        let copy = copy_of_the_program();
        Self::new(copy.path().join("haft"), Some(ORDINARY), Some(copy))
    }

    fn new(program: PathBuf, user: Option<u32>, copy: Option<Arc<TempDir>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let desk = Self { folder, program, user, _copy: copy };
        desk.own(desk.folder.path());
        for name in ["tmp", "user", "work"] {
            desk.make_folder(name);
        }
        desk
    }

    /// Whether root works here.
    pub fn is_of_root(&self) -> bool {
        self.user.is_none() && is_root()
    }

    /// A path on it, without links.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// The same as text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().unwrap()
    }

    /// Makes a folder.
    pub fn make_folder(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        self.own(&path);
        path
    }

    /// Writes a file.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        self.own(&path);
        path
    }

    /// Writes a program.
    pub fn write_program(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.write(name, content);
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// What a file holds.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn own(&self, path: &Path) {
        if let Some(user) = self.user {
            chown(path, Some(user), Some(user)).unwrap();
        }
    }

    /// A program run by who works here, in the folder `work`, with little in its environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path("work")).env_clear().env("PATH", SEARCH);
        command.env("HOME", self.path("user")).env("TMPDIR", self.path("tmp"));
        command.env("HAFT_HOME", self.path("home"));
        if let Some(user) = self.user {
            // The groups of root are given up with it.
            command.uid(user).gid(user);
        }
        command
    }

    /// `haft` with these arguments.
    pub fn haft_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.program);
        command.args(arguments);
        command
    }

    /// Where the program is that is run here.
    pub fn program(&self) -> &str {
        self.program.to_str().unwrap()
    }

    /// Runs `haft`.
    pub fn haft(&self, arguments: &[&str]) -> Ran {
        ran(self.haft_command(arguments), b"")
    }

    /// Runs `haft sandbox`.
    pub fn sandbox(&self, arguments: &[&str]) -> Ran {
        self.haft(&[&["sandbox"], arguments].concat())
    }

    /// Runs `haft sandbox` that must end with 0; what it printed.
    pub fn says(&self, arguments: &[&str]) -> String {
        let ran = self.sandbox(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    /// Runs `haft sandbox` that must end with this code; what it said, with the desk's own path left out.
    pub fn refused(&self, arguments: &[&str], code: i32) -> String {
        let ran = self.sandbox(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stdout, "", "{arguments:?}");
        ran.stderr.replace(&self.text(""), "[DESK]/")
    }

    /// Runs `haft sandbox` that writes a report; the run, and the report.
    pub fn reported(&self, arguments: &[&str]) -> (Ran, serde_json::Value) {
        let path = self.text("report.json");
        let ran = self.sandbox(&[&["--report", &path], arguments].concat());
        let text = fs::read_to_string(&path);
        let text = text.unwrap_or_else(|error| panic!("{error}: {}", ran.stderr));
        (ran, serde_json::from_str(&text).unwrap())
    }
}

/// Runs a command to its end; one that takes too long is a failure.
pub fn ran(mut command: Command, stdin: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (mut pipe, stdin) = (child.stdin.take().unwrap(), stdin.to_vec());
    // One that does not read all is none of our concern.
    let feeding = std::thread::spawn(move || pipe.write_all(&stdin).is_ok());
    let stdout = reader(child.stdout.take().unwrap());
    let stderr = reader(child.stderr.take().unwrap());
    let status = ended(&mut child, PATIENCE).unwrap_or_else(|| panic!("{command:?} never ends"));
    let _ = feeding.join();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran {
        code: status.code().unwrap_or_else(|| -status.signal().unwrap()),
        stdout: text(stdout.join().unwrap()),
        stderr: text(stderr.join().unwrap()),
    }
}

fn reader(mut pipe: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// Waits for the end of a process; one that does not end in time is killed.
pub fn ended(child: &mut Child, patience: Duration) -> Option<std::process::ExitStatus> {
    let mut status = None;
    eventually(patience, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    status
}

/// Asks again and again until it is so; whether it came to be.
pub fn eventually(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + patience;
    while !is_so() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Sends a signal to a process.
pub fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Whether the tests are run by root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A copy of the program that everybody can execute. It is gone with the last desk that uses it.
fn copy_of_the_program() -> Arc<TempDir> {
    static COPY: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());
    let mut copy = COPY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = copy.upgrade() {
        return folder;
    }
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    open(folder.path());
    let program = folder.path().join("haft");
    // By another process: what this one writes stays open in whatever another test starts meanwhile, and a program that
    // is open to be written is not executed.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_haft")).arg(&program).status();
    assert!(copied.unwrap().success());
    open(&program);
    let folder = Arc::new(folder);
    *copy = Arc::downgrade(&folder);
    folder
}
