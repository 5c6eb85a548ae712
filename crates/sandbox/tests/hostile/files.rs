//! Files and folders: what was not granted is not there, what may be read is not written.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sandbox::{Confinement, SpawnError};

use crate::kit::folders::{Folder, assert_settles, listing};
use crate::kit::rooms::{output_of, shared_launcher, words};
use crate::kit::users::as_each_user;
use crate::probing::{assert_escapes_outside, assert_held, leads_to_the_probe, word};

/// What lies around on a machine and is nobody's business.
const SECRETS: [&str; 5] = [
    "home/.ssh/id_x",
    "home/.aws/credentials",
    "tools/other/token",
    "store/receipts/today",
    "store/secrets.age",
];

fn machine() -> Folder {
    let folder = Folder::outside();
    for secret in SECRETS {
        folder.write(secret, "secret");
    }
    folder.write("tools/mine/tool.txt", "of the tool");
    folder.make("work");
    folder
}

/// Expects that a file can be neither read, written nor seen in its folder.
fn assert_gone(confinement: &Confinement, machine: &Folder, secret: &str) {
    let path = machine.join(secret);
    let parent = path.parent().unwrap();
    assert_held(confinement, &["read-file", word(&path)]);
    assert_held(confinement, &["write-file", word(&path)]);
    assert_held(confinement, &["list-folder", word(parent)]);
    assert_held(confinement, &["write-file", word(parent)]);
}

#[test]
fn what_was_not_granted_is_not_there() {
    as_each_user(|| {
        let machine = machine();
        let (mine, work) = (machine.join("tools/mine"), machine.join("work"));
        let confinement = Confinement {
            readable: vec![mine.clone()],
            writable: vec![work.clone()],
            folder: work,
            ..Confinement::default()
        };
        let before = listing(&machine);
        for secret in SECRETS {
            assert_gone(&confinement, &machine, secret);
            let up = format!("../{secret}");
            assert_held(&confinement, &["read-file", &up]);
            let through = format!("/proc/self/root{}", word(&machine.join(secret)));
            assert_held(&confinement, &["read-file", &through]);
        }
        for folder in ["home", "store"] {
            assert_held(&confinement, &["list-folder", word(&machine.join(folder))]);
        }
        assert_settles(&machine, &before);
        let read = words(["/bin/cat", word(&mine.join("tool.txt"))]);
        let tool = output_of(shared_launcher(), &confinement, &read);
        assert_eq!(tool, "of the tool");
        let secret = machine.join(SECRETS[0]);
        for probe in ["read-file", "write-file"] {
            assert_escapes_outside(&machine, &[probe, word(&secret)]);
        }
        assert_escapes_outside(&machine, &["list-folder", word(&machine.join("home"))]);
        assert_escapes_outside(&machine, &["write-file", word(&machine.join("home"))]);
    });
}

#[test]
fn what_is_hidden_below_a_grant_is_empty_and_what_is_granted_below_it_is_there_again() {
    as_each_user(|| {
        let machine = machine();
        let again = machine.write("store/tools/mine/kept.txt", "kept");
        for is_writable in [false, true] {
            let granted = vec![machine.clone()];
            let (readable, writable) =
                if is_writable { (Vec::new(), granted) } else { (granted, Vec::new()) };
            let mut confinement = Confinement {
                readable,
                writable,
                hidden: vec![
                    machine.join("home/.ssh"),
                    machine.join("home/.aws/credentials"),
                    machine.join("tools/other"),
                    machine.join("store"),
                    machine.join("nothing-is-here"),
                ],
                ..Confinement::default()
            };
            confinement.readable.push(machine.join("store/tools/mine"));
            let before = listing(&machine);
            for secret in SECRETS {
                assert_held(&confinement, &["read-file", word(&machine.join(secret))]);
                assert_held(&confinement, &["write-file", word(&machine.join(secret))]);
            }
            for folder in ["home/.ssh", "tools/other"] {
                assert_held(&confinement, &["list-folder", word(&machine.join(folder))]);
                assert_held(&confinement, &["write-file", word(&machine.join(folder))]);
            }
            let said = |argv: &[&str]| output_of(shared_launcher(), &confinement, &words(argv));
            assert_eq!(said(&["/bin/cat", word(&again)]), "kept");
            let names = said(&["/bin/ls", "-A", word(&machine.join("store"))]);
            assert_eq!(names, "tools\n", "only the way to the grant is seen");
            assert_held(&confinement, &["write-file", word(&again)]);
            assert_settles(&machine, &before);
        }
    });
}

#[test]
fn what_may_be_read_is_not_written() {
    as_each_user(|| {
        let machine = machine();
        let file = machine.write("tools/mine/deep/file.txt", "content");
        let alone = machine.write("alone.txt", "content");
        let confinement = Confinement {
            readable: vec![machine.join("tools/mine"), alone.clone()],
            ..Confinement::default()
        };
        let before = listing(&machine);
        for path in [&file, &alone, &machine.join("tools/mine"), &machine.join("tools/mine/deep")] {
            assert_held(&confinement, &["write-file", word(path)]);
        }
        assert_held(&confinement, &["plant", word(&machine.join("tools/mine")), "deep/file.txt"]);
        assert_held(&confinement, &["plant", word(&machine.join("tools/mine")), "new.txt"]);
        assert_settles(&machine, &before);
    });
}

#[test]
fn the_machine_keeps_its_own_secrets_and_stays_as_it_is() {
    as_each_user(|| {
        let confinement = Confinement::default();
        for file in ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/machine-id", "/etc/fstab"]
        {
            assert_held(&confinement, &["read-file", file]);
        }
        let folders =
            ["/etc/ssl/private", "/root", "/home", "/var/log", "/run", "/sys", "/mnt", "/opt"];
        for folder in folders.into_iter().filter(|folder| !leads_to_the_probe(folder)) {
            assert_held(&confinement, &["list-folder", folder]);
        }
        let written =
            ["/", "/etc", "/etc/passwd", "/etc/ld.so.cache", "/usr", "/usr/bin", "/usr/bin/tac"];
        for path in written.into_iter().chain(["/dev", "/proc", "/home", "/root", "/var/tmp"]) {
            assert_held(&confinement, &["write-file", path]);
        }
    });
}

#[test]
fn a_writable_folder_does_not_lead_out_while_it_is_swapped_for_a_link() {
    as_each_user(|| {
        let machine = machine();
        machine.write("target/file", "theirs");
        let (work, target) = (machine.join("work"), machine.join("target"));
        let confinement = Confinement { writable: vec![work.clone()], ..Confinement::default() };
        assert_held(&confinement, &["swap-race", word(&work), word(&target), "300"]);
        assert_eq!(listing(&target).len(), 1);
        assert_escapes_outside(&machine, &["swap-race", word(&work), word(&target), "5000"]);
    });
}

#[test]
fn a_grant_that_is_a_link_is_refused() {
    as_each_user(|| {
        let machine = machine();
        symlink(machine.join("home"), machine.join("link")).unwrap();
        for path in [machine.join("link"), machine.join("link/.ssh")] {
            let granting = |readable: Vec<PathBuf>, writable: Vec<PathBuf>| Confinement {
                readable,
                writable,
                ..Confinement::default()
            };
            for confinement in
                [granting(vec![path.clone()], Vec::new()), granting(Vec::new(), vec![path.clone()])]
            {
                let refused = shared_launcher().spawn(&confinement, &["/bin/true".into()]);
                assert!(matches!(refused, Err(SpawnError::Link(_))), "{refused:?}");
            }
        }
    });
}

#[test]
fn a_grant_that_is_swapped_for_a_link_meanwhile_never_shows_what_the_link_leads_to() {
    as_each_user(|| {
        let machine = machine();
        let (work, aside) = (machine.join("work"), machine.join("aside"));
        machine.write("work/mark", "own");
        machine.write("home/mark", "foreign");
        symlink(machine.join("home"), &aside).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let swapper = std::thread::spawn({
            let (work, aside, is_over) = (work.clone(), aside.clone(), Arc::clone(&is_over));
            move || {
                use rustix::fs::{CWD, RenameFlags, renameat_with};
                while !is_over.load(Ordering::Relaxed) {
                    renameat_with(CWD, &work, CWD, &aside, RenameFlags::EXCHANGE).unwrap();
                }
            }
        });
        let confinement = Confinement { writable: vec![work.clone()], ..Confinement::default() };
        let (mut started, mut refused) = (0, 0);
        for _ in 0..60 {
            let argv = ["/bin/cat".into(), work.join("mark").into()];
            match shared_launcher().spawn(&confinement, &argv) {
                Ok(child) => {
                    let finished = child.finish(b"").unwrap();
                    assert_ne!(finished.stdout, b"foreign");
                    started += 1;
                }
                Err(SpawnError::Link(_) | SpawnError::Moved(_) | SpawnError::Wall(_)) => {
                    refused += 1;
                }
                Err(other) => panic!("{other} ({other:?})"),
            }
        }
        is_over.store(true, Ordering::Relaxed);
        swapper.join().unwrap();
        assert!(refused > 0, "the race was never met ({started} started)");
    });
}
