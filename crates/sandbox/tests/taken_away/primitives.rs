//! Each part of the walls, refused from the launcher's first moment on, or only when the launcher has
//! found its walls good.

use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sandbox::{Exit, Launcher, Level, SpawnError, StartError};

use crate::kit::folders::{Folder, names};
use crate::kit::machine::{below, kill, launchers_of, own, until};
use crate::kit::programs::launcher_program;
use crate::kit::rooms::{self, launcher};
use crate::kit::users::{alone_as_each_user, as_each_user};
use crate::tampering::{attempt, tampering};

/// How long a refusal may take; `strace` makes everything slow.
const SOON: Duration = Duration::from_secs(8);

/// The whole of what a person would be told.
fn told(error: &SpawnError) -> String {
    let mut told = rooms::told(error);
    if let SpawnError::TooWeak { walls, .. } = error {
        for (primitive, fault) in walls.missing() {
            told += &format!(" ({primitive}: {fault})");
        }
    }
    told
}

/// What is taken away from the first moment on, the level that is found then, and what is said.
const FROM_THE_START: [(&str, Level, &str); 14] = [
    ("unshare", Level::L1, "make a user namespace"),
    ("clone3", Level::L1, "start a porter"),
    ("fsopen", Level::L1, "mount a file system in memory"),
    ("fsconfig", Level::L1, "mount a file system in memory"),
    ("fsmount", Level::L1, "mount a file system in memory"),
    ("move_mount", Level::L1, "mount a file system in memory"),
    ("open_tree", Level::L1, "mount `/"),
    ("mount_setattr", Level::L1, "mount `/"),
    ("landlock_create_ruleset", Level::L0, "use Landlock"),
    ("landlock_add_rule", Level::L0, "describe the files it may use"),
    ("landlock_restrict_self", Level::L0, "enter the Landlock rules"),
    ("seccomp", Level::L0, "put on the list of system calls"),
    // These are only needed once there is an order.
    ("pivot_root", Level::L2, "change the root"),
    ("capset", Level::L2, "drop capabilities"),
];

#[test]
fn nothing_starts_behind_walls_that_were_found_too_weak() {
    as_each_user(|| {
        let scripts = Folder::new();
        let path = Folder::new();
        for (call, level, missing) in FROM_THE_START {
            for error in ["ENOSYS", "EPERM"] {
                let began = Instant::now();
                let program = tampering(&scripts, &[&format!("{call}:error={error}")]);
                let launcher = Launcher::start(&program).unwrap();
                let found = launcher.walls().level();
                if level == Level::L2 {
                    assert!(found >= level, "{call}: {found}");
                } else {
                    assert_eq!(found, level, "{call}: {:?}", launcher.walls());
                    let faults: Vec<_> = launcher.walls().missing().collect();
                    let is_told = faults.iter().any(|(_, fault)| fault.doing.contains(missing));
                    assert!(is_told, "{call}: {faults:?}");
                }
                let refused = attempt(&launcher, &path, Level::L2);
                let refused = refused.expect_err(call);
                assert!(told(&refused).contains(missing), "{call}: {}", told(&refused));
                let cause = if error == "EPERM" { "not permitted" } else { "not implemented" };
                assert!(told(&refused).contains(cause), "{call}: {}", told(&refused));
                drop(launcher);
                assert!(began.elapsed() < SOON, "{call}: {:?}", began.elapsed());
            }
        }
    });
}

/// A launcher that found its walls good, and from then on is refused a call.
struct Betrayed {
    launcher: Launcher,
    strace: std::process::Child,
}

impl Betrayed {
    fn start(injection: &str) -> Self {
        let launcher = launcher();
        let [process] = launchers_of(own())[..] else { panic!("one launcher") };
        let call = injection.split(':').next().unwrap();
        // Its porters too, which make the rooms; not the room that stands, which has processes of its own.
        let space = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let children = below(process).into_iter().map(|one| one.pid);
        let porters = children.filter(|pid| space(*pid) == space(own()));
        let traced: Vec<i32> = porters.chain([process]).collect();
        assert_eq!(traced.len(), 2);
        let strace = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")])
            .args(["-e", &format!("inject={injection}")])
            .args(traced.iter().flat_map(|pid| ["-p".to_owned(), pid.to_string()]))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let is_traced = || {
            traced.iter().all(|pid| {
                let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
                !status.contains("TracerPid:\t0\n")
            })
        };
        assert!(until(Duration::from_secs(5), is_traced), "{injection}: strace does not attach");
        Self { launcher, strace }
    }
}

impl Drop for Betrayed {
    fn drop(&mut self) {
        // It ends by itself with the launcher, which ends when the field is dropped after this.
        let _ = self.strace.kill();
        let _ = self.strace.wait();
    }
}

/// What is taken away when the walls were found good, and what is said.
const LATER: [(&str, &str); 15] = [
    ("unshare", "make a"),
    ("clone3", "start a porter"),
    ("fsopen", "in memory"),
    ("fsconfig", "in memory"),
    ("fsmount", "in memory"),
    ("move_mount", "mount"),
    ("open_tree", "mount"),
    ("mount_setattr", "mount"),
    ("pivot_root", "change the root"),
    ("umount2", "leave the host's root"),
    ("landlock_create_ruleset", "describe the files it may use"),
    ("landlock_add_rule", "describe the files it may use"),
    ("landlock_restrict_self", "enter the Landlock rules"),
    ("seccomp", "put on the list of system calls"),
    ("capset", "drop capabilities"),
];

#[test]
fn nothing_starts_when_one_wall_fails_later() {
    alone_as_each_user(|| {
        let path = Folder::new();
        for (call, missing) in LATER {
            for error in ["ENOSYS", "EPERM"] {
                let began = Instant::now();
                let betrayed = Betrayed::start(&format!("{call}:error={error}"));
                let launcher = &betrayed.launcher;
                assert!(launcher.walls().level() >= Level::L2);
                // The first room was built before. When the wall fails at the order it fails all
                // the same if the room is one that `strace` has seen the birth of.
                let first = attempt(launcher, &path, Level::L2);
                assert!(matches!(first, Ok(Exit::Code(0))), "{call}: {first:?}");
                for _ in 0..2 {
                    let refused = attempt(launcher, &path, Level::L2).expect_err(call);
                    assert!(told(&refused).contains(missing), "{call}: {}", told(&refused));
                    let cause = match (call, error) {
                        // The library only says that it found no version of it.
                        ("landlock_create_ruleset", _) => "fully incompatible",
                        (_, "EPERM") => "not permitted",
                        _ => "not implemented",
                    };
                    assert!(told(&refused).contains(cause), "{call}: {}", told(&refused));
                }
                drop(betrayed);
                assert!(began.elapsed() < SOON, "{call}: {:?}", began.elapsed());
                assert!(until(SOON, || names(&path).is_empty()), "{call}: {:?}", names(&path));
            }
        }
    });
}

#[test]
fn a_limit_that_cannot_be_set_is_a_wall() {
    alone_as_each_user(|| {
        let path = Folder::new();
        // Each limit is read and then set; every second call is a setting.
        for nth in [2, 4, 6, 8] {
            let betrayed = Betrayed::start(&format!("prlimit64:error=EPERM:when={nth}"));
            assert!(attempt(&betrayed.launcher, &path, Level::L2).is_ok());
            let refused = attempt(&betrayed.launcher, &path, Level::L2).unwrap_err();
            let told = told(&refused);
            assert!(told.starts_with("the walls could not be built: failed to limit"), "{told}");
        }
        let betrayed = Betrayed::start("prlimit64:error=ENOSYS");
        assert!(attempt(&betrayed.launcher, &path, Level::L2).is_ok());
        let refused = attempt(&betrayed.launcher, &path, Level::L2).unwrap_err();
        assert!(matches!(refused, SpawnError::Wall(_)), "{refused:?}");
    });
}

#[test]
fn a_new_launcher_with_weaker_walls_does_not_stand_in_for_the_old() {
    alone_as_each_user(|| {
        let scripts = Folder::new();
        let path = Folder::new();
        let weak = tampering(&scripts, &["unshare:error=EPERM"]);
        // Strong the first time, weak after that.
        let program = scripts.join("haft-launcher");
        symlink(launcher_program(), &program).unwrap();
        let launcher = Launcher::start(&program).unwrap();
        assert!(launcher.walls().level() >= Level::L2);
        assert_eq!(attempt(&launcher, &path, Level::L2).unwrap(), Exit::Code(0));
        std::fs::remove_file(&program).unwrap();
        symlink(weak, &program).unwrap();
        let [process] = launchers_of(own())[..] else { panic!() };
        kill(process);
        for _ in 0..2 {
            let refused = attempt(&launcher, &path, Level::L2).unwrap_err();
            assert!(matches!(refused, SpawnError::TooWeak { .. }), "{refused:?}");
        }
        // When they are strong again, so is the next launcher.
        std::fs::remove_file(&program).unwrap();
        symlink(launcher_program(), &program).unwrap();
        assert_eq!(attempt(&launcher, &path, Level::L2).unwrap(), Exit::Code(0));
    });
}

#[test]
fn a_launcher_that_dies_while_it_starts_is_an_error() {
    as_each_user(|| {
        let scripts = Folder::new();
        for script in ["#!/bin/sh\nexit 0\n", "#!/bin/sh\nkill -9 $$\n", "#!/bin/sh\necho x >&0\n"]
        {
            let began = Instant::now();
            let started = Launcher::start(&scripts.write_program("dying", script));
            assert!(matches!(started, Err(StartError::Silent)), "{started:?}");
            assert!(began.elapsed() < SOON);
        }
    });
}
