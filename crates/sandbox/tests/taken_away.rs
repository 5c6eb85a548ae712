//! What happens when the kernel refuses a part of the walls: nothing is started behind weaker ones,
//! and who asks is told what was missing.
//!
//! The refusals are made by `strace`, which answers a system call in the kernel's
//! place: from the launcher's first moment on, or only when it has found its walls good.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use harness::{
    alone_as_each_user, as_each_user, below, folder, kill, launcher, launcher_program,
    launchers_of, ours, python, run, shell, text, until, walled, walled_with, with_program,
    with_word,
};
use sandbox::{Confinement, Exit, Launcher, Level, Primitive, SpawnError, StartError};

/// How long a refusal may take; `strace` makes everything slow.
const SOON: Duration = Duration::from_secs(8);

/// A program that starts the launcher under `strace`, with some calls answered for the kernel.
fn tampering(folder: &Path, injections: &[&str]) -> PathBuf {
    let launcher = launcher_program();
    let flags: String = injections.iter().map(|one| format!(" -e inject={one}")).collect();
    let calls: Vec<_> =
        injections.iter().map(|one| one.split(':').next().unwrap().to_owned()).collect();
    // `strace` looks a bare name up and passes it on as it is, and the launcher knows itself by it.
    let script = format!(
        "#!/bin/sh\nPATH='{}':/usr/bin:/bin\nexport PATH\n\
         exec strace -f -qq -o /dev/null -e trace={}{flags} haft-launcher\n",
        launcher.parent().unwrap().display(),
        calls.join(","),
    );
    script_in(folder, "tampering", &script)
}

fn script_in(folder: &Path, name: &str, script: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The whole of what a person would be told.
fn told(error: &SpawnError) -> String {
    let mut told = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        told += &format!(": {error}");
        cause = error.source();
    }
    if let SpawnError::TooWeak { walls, .. } = error {
        for (primitive, fault) in walls.missing() {
            told += &format!(" ({primitive}: {fault})");
        }
    }
    told
}

/// Tries to start a program that would leave a mark.
fn attempt(launcher: &Launcher, folder: &Path, required: Level) -> Result<Exit, SpawnError> {
    let mark = folder.join("mark");
    let confinement = Confinement { required, ..walled_with(folder) };
    let spawned = launcher.spawn(&confinement, &shell(&format!("echo >'{}'", mark.display())));
    let finished = spawned.map(|child| child.finish(b"").unwrap());
    let was_there = mark.exists();
    let _ = std::fs::remove_file(&mark);
    match finished {
        Ok(finished) => {
            assert!(was_there, "it ran: {}", text(&finished.stderr));
            Ok(finished.ended.exit)
        }
        Err(error) => {
            assert!(!was_there, "it ran: {error:?}");
            Err(error)
        }
    }
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
    as_each_user("nothing_starts_behind_walls_that_were_found_too_weak", || {
        let (_kept, scripts) = folder();
        let (_folder, path) = folder();
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
        let own = std::process::id().cast_signed();
        let [process] = launchers_of(own)[..] else { panic!("one launcher") };
        let call = injection.split(':').next().unwrap();
        // Its porters too, which make the rooms; not the room that stands, which has processes of its own.
        let space = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let children = below(process).into_iter().map(|one| one.pid);
        let porters = children.filter(|pid| space(*pid) == space(own));
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
    alone_as_each_user("nothing_starts_when_one_wall_fails_later", || {
        let (_folder, path) = folder();
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
                let left = || std::fs::read_dir(&path).unwrap().count();
                assert!(until(SOON, || left() == 0), "{call}: {} files", left());
            }
        }
    });
}

#[test]
fn a_limit_that_cannot_be_set_is_a_wall() {
    alone_as_each_user("a_limit_that_cannot_be_set_is_a_wall", || {
        let (_folder, path) = folder();
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

/// A launcher for which there are no namespaces.
fn without_namespaces(folder: &Path, more: &[&str]) -> Launcher {
    let mut all = vec!["unshare:error=EPERM"];
    all.extend(more);
    let launcher = Launcher::start(&tampering(folder, &all)).unwrap();
    assert!(!launcher.walls().has(Primitive::Namespaces));
    launcher
}

fn at(level: Level) -> Confinement {
    Confinement { required: level, ..walled() }
}

#[test]
fn without_namespaces_files_and_connections_are_still_held() {
    as_each_user("without_namespaces_files_and_connections_are_still_held", || {
        let (_kept, scripts) = folder();
        let (_folder, path) = folder();
        std::fs::write(path.join("secret"), "secret").unwrap();
        std::fs::create_dir(path.join("granted")).unwrap();
        std::fs::write(path.join("granted/letter"), "hello").unwrap();
        let launcher = without_namespaces(&scripts, &[]);
        assert_eq!(launcher.walls().level(), Level::L1);
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let script = format!(
            "import os, socket\n\
             def attempt(name, do):\n    \
                 try:\n        \
                     print(name, do())\n    \
                 except OSError as error:\n        \
                     print(name, type(error).__name__)\n\
             here = '{}'\n\
             attempt('letter', lambda: open(here + '/granted/letter').read())\n\
             attempt('write', lambda: open(here + '/granted/new', 'w').write('x'))\n\
             attempt('secret', lambda: open(here + '/secret').read())\n\
             attempt('beside', lambda: open(here + '/new', 'w').write('x'))\n\
             attempt('shadow', lambda: open('/etc/shadow').read())\n\
             attempt('home', lambda: os.listdir('/root'))\n\
             attempt('connect', lambda: socket.create_connection(('127.0.0.1', {port}), 2))\n\
             attempt('socket', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))\n\
             attempt('six', lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM))\n\
             attempt('scratch', lambda: open(os.environ['TMPDIR'] + '/file', 'w').write('xy'))\n\
             attempt('namespace', lambda: os.unshare(os.CLONE_NEWUSER) if hasattr(os, 'unshare') else 'PermissionError')",
            path.display()
        );
        let confinement = Confinement { writable: vec![path.join("granted")], ..at(Level::L1) };
        let said = harness::output_of(&launcher, &confinement, &python(&script));
        assert_eq!(
            said,
            "letter hello\nwrite 1\nsecret PermissionError\nbeside PermissionError\n\
             shadow PermissionError\nhome PermissionError\nconnect PermissionError\n\
             socket PermissionError\nsix PermissionError\nscratch 2\nnamespace PermissionError\n"
        );
        assert!(!path.join("new").exists());
        assert_eq!(std::fs::read_to_string(path.join("granted/new")).unwrap(), "x");
    });
}

#[test]
fn without_namespaces_the_whole_tree_dies_too() {
    as_each_user("without_namespaces_the_whole_tree_dies_too", || {
        let (_kept, scripts) = folder();
        let (_folder, path) = folder();
        let launcher = without_namespaces(&scripts, &[]);
        for how in ["orphan-ignore-block", "many-block", "leave-orphan-many"] {
            let beats = path.join(how);
            let word = beats.to_str().unwrap();
            let mut confinement = with_program(
                Confinement { writable: vec![path.clone()], ..at(Level::L1) },
                "stubborn",
            );
            confinement.limits.deadline = Some(Duration::from_millis(1500));
            let mut child = launcher.spawn(&confinement, &ours("stubborn", &[how, word])).unwrap();
            let began = Instant::now();
            let exit = child.wait().exit;
            let expected = if how.starts_with("leave") { Exit::Code(5) } else { Exit::Deadline };
            assert_eq!(exit, expected, "{how}");
            assert!(began.elapsed() < Duration::from_millis(3500), "{how}: {:?}", began.elapsed());
            assert!(std::fs::metadata(&beats).unwrap().len() > 0, "{how}");
            assert_eq!(with_word(word), [0; 0], "{how}");
        }
    });
}

/// Starts a tree of ten without namespaces, has something happen to it, and looks for what is left.
fn check_tree_without_namespaces(name: &str, happen: impl Fn(Launcher, sandbox::Child)) {
    alone_as_each_user(name, || {
        let (_kept, scripts) = folder();
        let (_folder, path) = folder();
        let launcher = without_namespaces(&scripts, &[]);
        let beats = path.join("beats");
        let word = beats.to_str().unwrap();
        let child = start_tree(&launcher, &path);
        assert!(until(Duration::from_secs(5), || with_word(word).len() == 10));
        happen(launcher, child);
        check_nothing_left(word);
    });
}

fn start_tree(launcher: &Launcher, path: &Path) -> sandbox::Child {
    let confinement = Confinement { writable: vec![path.to_owned()], ..at(Level::L1) };
    let beats = path.join("beats");
    let argv = ours("stubborn", &["orphan-many-block", beats.to_str().unwrap()]);
    launcher.spawn(&with_program(confinement, "stubborn"), &argv).unwrap()
}

fn check_nothing_left(word: &str) {
    let is_gone = until(Duration::from_secs(2), || with_word(word).is_empty());
    let left = with_word(word);
    for pid in &left {
        kill(*pid);
    }
    assert!(is_gone, "{} processes are left", left.len());
}

#[test]
fn without_namespaces_the_whole_tree_dies_when_the_child_is_dropped() {
    let name = "without_namespaces_the_whole_tree_dies_when_the_child_is_dropped";
    check_tree_without_namespaces(name, |launcher, child| {
        drop(child);
        drop(launcher);
    });
}

#[test]
fn without_namespaces_the_whole_tree_dies_with_its_room() {
    let name = "without_namespaces_the_whole_tree_dies_with_its_room";
    check_tree_without_namespaces(name, |launcher, mut child| {
        kill(harness::number(&child));
        assert_eq!(child.wait().exit, Exit::Lost);
        drop(child);
        drop(launcher);
    });
}

#[test]
fn without_namespaces_the_whole_tree_dies_with_the_launcher() {
    let name = "without_namespaces_the_whole_tree_dies_with_the_launcher";
    check_tree_without_namespaces(name, |launcher, mut child| {
        let own = std::process::id().cast_signed();
        let is_launcher = |one: &harness::Seen| one.words.starts_with("haft-launcher\0");
        let room = harness::number(&child);
        let below = harness::below(own);
        let process = below.iter().find(|one| is_launcher(one) && one.pid != room).unwrap();
        kill(process.pid);
        child.wait();
        drop(launcher);
    });
}

#[test]
fn without_namespaces_the_whole_tree_dies_with_the_host() {
    let name = "without_namespaces_the_whole_tree_dies_with_the_host";
    if let Some(path) = harness::role() {
        let (kept, scripts) = folder();
        let launcher = without_namespaces(&scripts, &[]);
        let _child = start_tree(&launcher, Path::new(&path));
        drop(kept);
        std::fs::write(Path::new(&path).join("ready"), "").unwrap();
        std::thread::sleep(Duration::from_secs(30));
        panic!("the host was not killed");
    }
    as_each_user(name, || {
        for _ in 0..3 {
            let (_folder, path) = folder();
            let mut host = harness::actor(name, path.to_str().unwrap());
            let mut host = host.stdout(Stdio::null()).env("TMPDIR", &path).spawn().unwrap();
            let beats = path.join("beats");
            let word = beats.to_str().unwrap();
            let is_ready = until(Duration::from_secs(10), || {
                path.join("ready").exists() && with_word(word).len() == 10
            });
            host.kill().unwrap();
            host.wait().unwrap();
            check_nothing_left(word);
            assert!(is_ready);
        }
    });
}

#[test]
fn without_namespaces_the_scratch_folder_of_a_killed_host_goes_with_the_next_run() {
    let name = "without_namespaces_the_scratch_folder_of_a_killed_host_goes_with_the_next_run";
    let scratch = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        entries.filter(|name| name.to_str().unwrap().starts_with("haft-scratch-")).count()
    };
    if let Some(path) = harness::role() {
        let (kept, scripts) = folder();
        let launcher = without_namespaces(&scripts, &[]);
        let _child = launcher.spawn(&at(Level::L1), &shell("exec sleep 60")).unwrap();
        drop(kept);
        match std::fs::read_dir(&path).unwrap().count() {
            1 => std::process::abort(),
            many => panic!("{many}"),
        }
    }
    as_each_user(name, || {
        let (_folder, path) = folder();
        for _ in 0..2 {
            let mut host = harness::actor(name, path.to_str().unwrap());
            host.stdout(Stdio::null()).env("TMPDIR", &path);
            let status = harness::finish_within(&mut host, SOON).unwrap();
            assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGABRT));
            // That of the first is gone, that of the last is there.
            assert_eq!(scratch(&path), 1);
        }
    });
}

#[test]
fn with_nothing_left_a_program_starts_only_where_nothing_is_required() {
    as_each_user("with_nothing_left_a_program_starts_only_where_nothing_is_required", || {
        let (_kept, scripts) = folder();
        let (_folder, path) = folder();
        let more = ["landlock_create_ruleset:error=ENOSYS", "seccomp:error=ENOSYS"];
        let launcher = without_namespaces(&scripts, &more);
        assert_eq!(launcher.walls().level(), Level::L0);
        for required in [Level::L1, Level::L2, Level::L3] {
            let refused = attempt(&launcher, &path, required).unwrap_err();
            assert!(matches!(refused, SpawnError::TooWeak { .. }), "{refused:?}");
        }
        assert_eq!(attempt(&launcher, &path, Level::L0).unwrap(), Exit::Code(0));
    });
}

#[test]
fn landlock_and_seccomp_stand_without_each_other_where_nothing_is_required() {
    let name = "landlock_and_seccomp_stand_without_each_other_where_nothing_is_required";
    as_each_user(name, || {
        let (_kept, scripts) = folder();
        let (_folder, path) = folder();
        std::fs::write(path.join("secret"), "secret").unwrap();
        let read = shell(&format!("cat '{}/secret'; echo $?", path.display()));
        let launcher = without_namespaces(&scripts, &["seccomp:error=ENOSYS"]);
        assert_eq!(launcher.walls().level(), Level::L0);
        let finished = run(&launcher, &at(Level::L0), &read);
        assert_eq!(text(&finished.stdout), "1\n");
        let launcher = without_namespaces(&scripts, &["landlock_create_ruleset:error=ENOSYS"]);
        assert_eq!(launcher.walls().level(), Level::L0);
        let connect = "import socket\n\
             try:\n    socket.socket(socket.AF_INET)\n\
             except PermissionError:\n    print('refused')";
        let finished = run(&launcher, &at(Level::L0), &python(connect));
        assert_eq!(text(&finished.stdout), "refused\n");
    });
}

#[test]
fn what_only_namespaces_can_do_is_refused_without_them() {
    as_each_user("what_only_namespaces_can_do_is_refused_without_them", || {
        let (_kept, scripts) = folder();
        let (_folder, path) = folder();
        let hidden = path.join("hidden");
        std::fs::create_dir(&hidden).unwrap();
        let launcher = without_namespaces(&scripts, &[]);
        let refused = |confinement: &Confinement| {
            launcher.spawn(confinement, &shell("exit 0")).unwrap_err().to_string()
        };
        let confinement = Confinement { network: sandbox::Network::Allow, ..at(Level::L1) };
        assert_eq!(
            refused(&confinement),
            "a list of hosts needs namespaces, which do not work here"
        );
        let confinement =
            Confinement { readable: vec![path.clone()], hidden: vec![hidden], ..at(Level::L1) };
        assert_eq!(
            refused(&confinement),
            "hiding a part of a granted folder needs namespaces, which do not work here"
        );
    });
}

#[test]
fn a_new_launcher_with_weaker_walls_does_not_stand_in_for_the_old() {
    alone_as_each_user("a_new_launcher_with_weaker_walls_does_not_stand_in_for_the_old", || {
        let (_kept, scripts) = folder();
        let (_folder, path) = folder();
        let weak = tampering(&scripts, &["unshare:error=EPERM"]);
        // Strong the first time, weak after that.
        let program = scripts.join("haft-launcher");
        std::os::unix::fs::symlink(launcher_program(), &program).unwrap();
        let launcher = Launcher::start(&program).unwrap();
        assert!(launcher.walls().level() >= Level::L2);
        assert_eq!(attempt(&launcher, &path, Level::L2).unwrap(), Exit::Code(0));
        std::fs::remove_file(&program).unwrap();
        std::os::unix::fs::symlink(weak, &program).unwrap();
        let [process] = launchers_of(std::process::id().cast_signed())[..] else { panic!() };
        kill(process);
        for _ in 0..2 {
            let refused = attempt(&launcher, &path, Level::L2).unwrap_err();
            assert!(matches!(refused, SpawnError::TooWeak { .. }), "{refused:?}");
        }
        // When they are strong again, so is the next launcher.
        std::fs::remove_file(&program).unwrap();
        std::os::unix::fs::symlink(launcher_program(), &program).unwrap();
        assert_eq!(attempt(&launcher, &path, Level::L2).unwrap(), Exit::Code(0));
    });
}

#[test]
fn a_launcher_that_dies_while_it_starts_is_an_error() {
    as_each_user("a_launcher_that_dies_while_it_starts_is_an_error", || {
        let (_kept, scripts) = folder();
        for script in ["#!/bin/sh\nexit 0\n", "#!/bin/sh\nkill -9 $$\n", "#!/bin/sh\necho x >&0\n"]
        {
            let began = Instant::now();
            let started = Launcher::start(&script_in(&scripts, "dying", script));
            assert!(matches!(started, Err(StartError::Silent)), "{started:?}");
            assert!(began.elapsed() < SOON);
        }
    });
}
