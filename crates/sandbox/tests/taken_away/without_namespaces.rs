//! What still holds where the kernel makes no namespaces, and what is refused then.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sandbox::{Child, Confinement, Exit, Launcher, Level, Network, Primitive, SpawnError};

use crate::kit::folders::{Folder, names};
use crate::kit::machine::{Seen, below, kill, number, own, until, with_word};
use crate::kit::rooms::{ours, output_of, python, run, shell, text, walled, with_program};
use crate::kit::users::{actor, alone_as_each_user, as_each_user, finish_within, role};
use crate::tampering::{attempt, tampering};

/// How long a refusal may take; `strace` makes everything slow.
const SOON: Duration = Duration::from_secs(8);

/// A launcher for which there are no namespaces.
fn without_namespaces(folder: &Folder, more: &[&str]) -> Launcher {
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
    as_each_user(|| {
        let scripts = Folder::new();
        let path = Folder::new();
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
        let said = output_of(&launcher, &confinement, &python(&script));
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
    as_each_user(|| {
        let scripts = Folder::new();
        let path = Folder::new();
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
fn check_tree(happen: impl FnOnce(Launcher, Child)) {
    let scripts = Folder::new();
    let path = Folder::new();
    let launcher = without_namespaces(&scripts, &[]);
    let beats = path.join("beats");
    let word = beats.to_str().unwrap();
    let child = start_tree(&launcher, &path);
    assert!(until(Duration::from_secs(5), || with_word(word).len() == 10));
    happen(launcher, child);
    check_nothing_left(word);
}

fn start_tree(launcher: &Launcher, path: &Path) -> Child {
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
    alone_as_each_user(|| {
        check_tree(|launcher, child| {
            drop(child);
            drop(launcher);
        });
    });
}

#[test]
fn without_namespaces_the_whole_tree_dies_with_its_room() {
    alone_as_each_user(|| {
        check_tree(|launcher, mut child| {
            kill(number(&child));
            assert_eq!(child.wait().exit, Exit::Lost);
            drop(child);
            drop(launcher);
        });
    });
}

#[test]
fn without_namespaces_the_whole_tree_dies_with_the_launcher() {
    alone_as_each_user(|| {
        check_tree(|launcher, mut child| {
            let is_launcher = |one: &Seen| one.words.starts_with("haft-launcher\0");
            let room = number(&child);
            let below = below(own());
            let process = below.iter().find(|one| is_launcher(one) && one.pid != room).unwrap();
            kill(process.pid);
            child.wait();
            drop(launcher);
        });
    });
}

#[test]
fn without_namespaces_the_whole_tree_dies_with_the_host() {
    if let Some(path) = role() {
        let scripts = Folder::new();
        let launcher = without_namespaces(&scripts, &[]);
        let _child = start_tree(&launcher, Path::new(&path));
        drop(scripts);
        std::fs::write(Path::new(&path).join("ready"), "").unwrap();
        std::thread::sleep(Duration::from_secs(30));
        panic!("the host was not killed");
    }
    as_each_user(|| {
        for _ in 0..3 {
            let path = Folder::new();
            let test = without_namespaces_the_whole_tree_dies_with_the_host;
            let mut host = actor(test, path.to_str().unwrap());
            let mut host = host.stdout(Stdio::null()).env("TMPDIR", &*path).spawn().unwrap();
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
    let scratch = |folder: &Path| {
        names(folder).iter().filter(|name| name.starts_with("haft-scratch-")).count()
    };
    if let Some(path) = role() {
        let scripts = Folder::new();
        let launcher = without_namespaces(&scripts, &[]);
        let _child = launcher.spawn(&at(Level::L1), &shell("exec sleep 60")).unwrap();
        drop(scripts);
        match names(Path::new(&path)).len() {
            1 => std::process::abort(),
            many => panic!("{many}"),
        }
    }
    as_each_user(|| {
        let path = Folder::new();
        for _ in 0..2 {
            let test =
                without_namespaces_the_scratch_folder_of_a_killed_host_goes_with_the_next_run;
            let mut host = actor(test, path.to_str().unwrap());
            host.stdout(Stdio::null()).env("TMPDIR", &*path);
            let status = finish_within(&mut host, SOON).unwrap();
            assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGABRT));
            // That of the first is gone, that of the last is there.
            assert_eq!(scratch(&path), 1);
        }
    });
}

#[test]
fn with_nothing_left_a_program_starts_only_where_nothing_is_required() {
    as_each_user(|| {
        let scripts = Folder::new();
        let path = Folder::new();
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
    as_each_user(|| {
        let scripts = Folder::new();
        let path = Folder::new();
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
    as_each_user(|| {
        let scripts = Folder::new();
        let path = Folder::new();
        let hidden = path.join("hidden");
        std::fs::create_dir(&hidden).unwrap();
        let launcher = without_namespaces(&scripts, &[]);
        let refused = |confinement: &Confinement| {
            launcher.spawn(confinement, &shell("exit 0")).unwrap_err().to_string()
        };
        let confinement = Confinement { network: Network::Allow, ..at(Level::L1) };
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
