//! Who runs a test: the user it finds itself and, where that is root, an ordinary one as well.
//!
//! Walls differ by who builds them: root has control groups, everybody else a watchdog. To run a
//! test as another is to start this program again, with a kit of programs that anybody may execute.

use std::io::{Read, Seek};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::folders::{names, set_mode};
use super::machine::until;
use super::programs::{launcher_program, program, program_names};

/// The user without any rights, which every system has.
const NOBODY: u32 = 65534;

/// Set where a test was started by another: the folder with what it needs.
const KIT: &str = "HAFT_TEST_KIT";

/// Set where a test acts as something else.
const ROLE: &str = "HAFT_TEST_ROLE";

/// The longest that one test takes as one user.
const PATIENCE: Duration = Duration::from_secs(100);

/// Runs the body of a test as the user of this process and, when that is root, as nobody too.
pub fn as_each_user<Body: FnOnce()>(body: Body) {
    body();
    if is_root() && kit().is_none() {
        again(test_of::<Body>(), NOBODY);
    }
}

/// The same, each in a process where nothing else goes on.
pub fn alone_as_each_user<Body: FnOnce()>(body: Body) {
    if kit().is_some() {
        return body();
    }
    again(test_of::<Body>(), rustix::process::geteuid().as_raw());
    if is_root() {
        again(test_of::<Body>(), NOBODY);
    }
}

/// The same, one after another: for tests that look at the whole machine.
pub fn in_turn_as_each_user<Body: FnOnce()>(body: Body) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    as_each_user(body);
}

/// Whether this process is root, and so has control groups.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The folder with what this process needs, if it was started by another.
pub fn kit() -> Option<PathBuf> {
    std::env::var_os(KIT).map(Into::into)
}

/// The name of a test as this program takes it, from the test itself or a closure written in it.
fn test_of<Test>() -> &'static str {
    let (_program, name) = std::any::type_name::<Test>().split_once("::").unwrap();
    name.split("::{{closure}}").next().unwrap()
}

/// Runs one test of this program in a process of its own, and expects it to leave nothing.
fn again(test: &str, user: u32) {
    let kit = tempfile::Builder::new().prefix("haft-kit-").tempdir().unwrap();
    set_mode(kit.path(), 0o755);
    let at = |name: &str| kit.path().join(name);
    link(&std::env::current_exe().unwrap(), &at("tests"));
    link(&launcher_program(), &at("haft-launcher"));
    for name in program_names() {
        link(&program(&name), &at(&name));
    }
    let temporary = at("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = one_test(&at("tests"), test);
    command.env(KIT, kit.path()).env("TMPDIR", &temporary).env("HOME", &temporary);
    command.current_dir("/");
    if user != rustix::process::geteuid().as_raw() {
        chown(&temporary, Some(user), Some(user)).unwrap();
        // The standard library gives up root's other groups with this.
        command.uid(user).gid(user);
    }
    assert_passes(&mut command, &format!("`{test}` as user {user}"));
    let left = names(&temporary);
    assert!(left.is_empty(), "`{test}` as user {user} left {left:?}");
}

fn link(from: &Path, to: &Path) {
    std::fs::hard_link(from, to).or_else(|_| std::fs::copy(from, to).map(drop)).unwrap();
    set_mode(to, 0o755);
}

fn one_test(program: &Path, test: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).stdin(Stdio::null());
    command
}

/// A process that runs this test, which finds a role to act.
pub fn actor<Test: Fn()>(_test: Test, role: &str) -> Command {
    let mut command = one_test(&std::env::current_exe().unwrap(), test_of::<Test>());
    command.env(ROLE, role);
    command
}

/// What this process was started to act as.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Runs one test in a process of its own, as `command` says, and expects it to pass.
pub fn assert_passes(command: &mut Command, who: &str) {
    let mut output = tempfile::tempfile().unwrap();
    command.stdout(output.try_clone().unwrap()).stderr(output.try_clone().unwrap());
    let status = finish_within(command, PATIENCE);
    let mut said = Vec::new();
    output.rewind().unwrap();
    output.read_to_end(&mut said).unwrap();
    let said = String::from_utf8_lossy(&said);
    let ended = status.map_or("did not end in time".into(), |status| status.to_string());
    assert!(
        status.is_some_and(|status| status.success()) && said.contains("ok. 1 passed"),
        "{who}: {ended}\n{said}"
    );
}

/// Waits for a process that must not hang; `None` if it did and was killed.
pub fn finish_within(command: &mut Command, limit: Duration) -> Option<ExitStatus> {
    let mut process = command.spawn().unwrap();
    let has_ended = until(limit, || process.try_wait().unwrap().is_some());
    if !has_ended {
        process.kill().unwrap();
    }
    let status = process.wait().unwrap();
    has_ended.then_some(status)
}
