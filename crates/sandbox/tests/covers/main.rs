//! What lies over protected files in a writable folder: over which, and what happens when it falls off.
//!
//! Each test runs as the user of this process and, where that is root, once more as nobody, because
//! walls are made differently for the two.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod falling;
mod repositories;

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sandbox::{Child, Confinement, Launcher, Limits, Stream};

/// Set where a test was started once more: the folder with what it needs.
const STAGE: &str = "HAFT_COVERS_STAGE";

/// The user without any rights.
const NOBODY: u32 = 65534;

/// Where folders are made: `/tmp` would be the scratch folder of a room.
const OUTSIDE: &str = "/var/tmp";

fn as_each_user<Body: FnOnce()>(body: Body) {
    body();
    // The name of the test that the closure is written in.
    let test = std::any::type_name::<Body>();
    let test = test.split_once("::").map_or(test, |(_program, rest)| rest);
    let test = test.split("::{{closure}}").next().unwrap_or(test);
    if std::env::var_os(STAGE).is_some() || !rustix::process::geteuid().is_root() {
        return;
    }
    let stage = tempfile::tempdir_in(OUTSIDE).unwrap();
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    open(stage.path());
    let tests = std::env::current_exe().unwrap();
    for (from, name) in [(tests, "tests"), (launcher_program(), "haft-launcher")] {
        fs::copy(from, stage.path().join(name)).unwrap();
        open(&stage.path().join(name));
    }
    fs::create_dir(stage.path().join("own")).unwrap();
    std::os::unix::fs::chown(stage.path().join("own"), Some(NOBODY), Some(NOBODY)).unwrap();
    let output = Command::new(stage.path().join("tests"))
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(STAGE, stage.path())
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && said.contains("1 passed"),
        "`{test}` as nobody: {said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn launcher_program() -> PathBuf {
    match std::env::var_os(STAGE) {
        Some(stage) => Path::new(&stage).join("haft-launcher"),
        None => env!("CARGO_BIN_EXE_haft-launcher").into(),
    }
}

/// A folder of this user's with a repository and settings of an agent.
struct Project(tempfile::TempDir);

impl Project {
    fn new() -> Self {
        let parent = std::env::var_os(STAGE)
            .map_or(OUTSIDE.into(), |stage| PathBuf::from(stage).join("own"));
        let project = Self(tempfile::tempdir_in(parent).unwrap());
        for folder in [".git/hooks", ".git/objects", ".git/refs", "secrets", "sources"] {
            fs::create_dir_all(project.at(folder)).unwrap();
        }
        for (file, text) in [
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/config", "[core]\n\tbare = false\n"),
            (".mcp.json", "{}\n"),
            ("README", "read me\n"),
        ] {
            fs::write(project.at(file), text).unwrap();
        }
        project
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn confinement(&self) -> Confinement {
        Confinement {
            writable: vec![self.0.path().into()],
            folder: self.0.path().into(),
            stdout: Stream::Pipe,
            limits: Limits { deadline: Some(Duration::from_secs(30)), ..Limits::default() },
            ..Confinement::default()
        }
    }

    /// Replaces a file as an editor does that saves it.
    fn replace(&self, path: &str) {
        fs::write(self.at("new"), "new\n").unwrap();
        fs::rename(self.at("new"), self.at(path)).unwrap();
    }
}

fn start(confinement: &Confinement, script: &str) -> Child {
    let launcher = Launcher::start(&launcher_program()).unwrap();
    let argv = ["/bin/sh".into(), "-c".into(), script.into()];
    let mut child = launcher.spawn(confinement, &argv).unwrap();
    let mut ready = [0; 6];
    child.take_stdout().unwrap().read_exact(&mut ready).unwrap();
    assert_eq!(&ready, b"ready\n");
    child
}
