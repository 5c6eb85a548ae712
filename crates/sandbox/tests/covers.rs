//! Covers that fall off: somebody outside moves or replaces what is protected while a program runs.
//!
//! Each test runs as the user of this process and, where that is root, once more as nobody, because
//! walls are made differently for the two.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sandbox::{Child, Confinement, Exit, Launcher, Limits, Stream};

/// Set where a test was started once more: the folder with what it needs.
const STAGE: &str = "HAFT_COVERS_STAGE";

/// The user without any rights.
const NOBODY: u32 = 65534;

/// Where folders are made: `/tmp` would be the scratch folder of a room.
const OUTSIDE: &str = "/var/tmp";

/// Says that it runs, and then waits to be ended.
const WAIT: &str = "echo ready; exec sleep 60";

fn as_each_user(test: &str, body: impl FnOnce()) {
    body();
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

/// What somebody does outside.
type Change = fn(&Project);

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

#[test]
fn a_program_is_ended_when_a_protected_name_is_replaced_moved_or_removed_outside() {
    as_each_user(
        "a_program_is_ended_when_a_protected_name_is_replaced_moved_or_removed_outside",
        || {
            let changes: [(&str, Change); 9] = [
                ("a file is replaced", |project| project.replace(".mcp.json")),
                ("a placeholder is replaced", |project| project.replace(".envrc")),
                ("settings in a repository are replaced", |project| project.replace(".git/config")),
                ("a file is removed", |project| fs::remove_file(project.at(".mcp.json")).unwrap()),
                ("a placeholder is removed", |project| {
                    fs::remove_dir(project.at(".vscode")).unwrap();
                }),
                ("a file is moved", |project| {
                    fs::rename(project.at(".mcp.json"), project.at("old.json")).unwrap();
                }),
                ("a folder is moved", |project| {
                    fs::rename(project.at(".git/hooks"), project.at(".git/old")).unwrap();
                }),
                ("the repository is moved", |project| {
                    fs::rename(project.at(".git"), project.at("old")).unwrap();
                }),
                ("a placeholder is moved", |project| {
                    fs::rename(project.at(".npmrc"), project.at("sources/npmrc")).unwrap();
                }),
            ];
            for (what, change) in changes {
                let project = Project::new();
                let mut child = start(&project.confinement(), WAIT);
                change(&project);
                assert_eq!(child.wait().exit, Exit::Uncovered, "{what}");
            }
        },
    );
}

#[test]
fn a_program_is_ended_when_what_is_hidden_or_closed_in_its_folder_is_moved_outside() {
    as_each_user(
        "a_program_is_ended_when_what_is_hidden_or_closed_in_its_folder_is_moved_outside",
        || {
            for moved in ["secrets", "secrets/deep", "secrets/deep/er"] {
                let project = Project::new();
                fs::create_dir_all(project.at("secrets/deep/er")).unwrap();
                let hidden = vec![project.at("secrets/deep/er")];
                let mut child = start(&Confinement { hidden, ..project.confinement() }, WAIT);
                fs::rename(project.at(moved), project.at("elsewhere")).unwrap();
                assert_eq!(child.wait().exit, Exit::Uncovered, "{moved}");
            }
            let project = Project::new();
            let readable = vec![project.at("README")];
            let mut child = start(&Confinement { readable, ..project.confinement() }, WAIT);
            project.replace("README");
            assert_eq!(child.wait().exit, Exit::Uncovered);
        },
    );
}

#[test]
fn a_program_that_ends_itself_before_it_is_ended_has_not_succeeded() {
    as_each_user("a_program_that_ends_itself_before_it_is_ended_has_not_succeeded", || {
        for _ in 0..5 {
            let project = Project::new();
            let script = "echo ready; while [ -s .mcp.json ]; do :; done; exit 0";
            let mut child = start(&project.confinement(), script);
            fs::write(project.at("new"), "").unwrap();
            fs::rename(project.at("new"), project.at(".mcp.json")).unwrap();
            assert_eq!(child.wait().exit, Exit::Uncovered);
        }
    });
}

#[test]
fn what_others_do_beside_the_protected_names_ends_nothing() {
    as_each_user("what_others_do_beside_the_protected_names_ends_nothing", || {
        let project = Project::new();
        fs::hard_link(project.at(".mcp.json"), project.at("twin.json")).unwrap();
        let odd = project.at("a \\ folder\twith\nall");
        fs::create_dir(&odd).unwrap();
        let mut confinement = project.confinement();
        confinement.readable.push(odd.clone());
        let script = "echo ready; while ! [ -e go ]; do sleep 0.01; done; mv README moved; exit 7";
        let mut child = start(&confinement, script);
        // What is written in place is seen inside, and stays covered.
        fs::write(project.at(".mcp.json"), "{\"by\": \"the owner\"}\n").unwrap();
        fs::rename(project.at("twin.json"), project.at("triplet.json")).unwrap();
        fs::rename(project.at("sources"), project.at("src")).unwrap();
        fs::remove_dir(project.at("src")).unwrap();
        fs::write(project.at(".git/hooks/pre-commit"), "#!/bin/sh\n").unwrap();
        fs::write(odd.join("file"), "").unwrap();
        project.replace(".git/HEAD");
        fs::write(project.at("go"), "").unwrap();
        assert_eq!(child.wait().exit, Exit::Code(7));
        assert!(project.at("moved").exists());
    });
}

#[test]
fn two_programs_in_one_folder_do_not_end_each_other() {
    as_each_user("two_programs_in_one_folder_do_not_end_each_other", || {
        let project = Project::new();
        let mut first = start(&project.confinement(), "echo ready; exit 0");
        let mut second = start(
            &project.confinement(),
            "echo ready; while ! [ -e go ]; do sleep 0.01; done; exit 0",
        );
        assert_eq!(first.wait().exit, Exit::Code(0));
        let mut third = start(&project.confinement(), "echo ready; exit 0");
        assert_eq!(third.wait().exit, Exit::Code(0));
        fs::write(project.at("go"), "").unwrap();
        assert_eq!(second.wait().exit, Exit::Code(0));
    });
}

#[test]
fn a_room_without_a_writable_folder_watches_no_mounts() {
    // Nobody but root may look at what a room has open.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let watched = |confinement: &Confinement| {
        let child = start(confinement, WAIT);
        let opened = fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().flatten();
        let names = opened.filter_map(|entry| fs::read_link(entry.path()).ok());
        names
            .filter(|name| {
                let name = name.to_string_lossy();
                name.contains("mountinfo") || name.contains("inotify")
            })
            .count()
    };
    let project = Project::new();
    assert_eq!(watched(&project.confinement()), 2);
    let readable = vec![project.0.path().to_owned()];
    let reading = Confinement { readable, writable: Vec::new(), ..project.confinement() };
    assert_eq!(watched(&reading), 0);
}
