//! What is left of walled programs: nothing.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod kit;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use kit::folders::{Folder, assert_settles, listing, names, set_mode};
use kit::machine::{below, launchers_of, own, slowness, until};
use kit::rooms::{launcher, output_of, run, shell, told, walled, walled_with, words};
use kit::users::{actor, alone_as_each_user, assert_passes, role};
use sandbox::{Confinement, Exit, Network, Stream};

/// All of this process and its surroundings that a run could add to.
#[derive(Debug, PartialEq)]
struct Traces {
    descriptors: usize,
    threads: usize,
    processes: usize,
    mounts: BTreeSet<String>,
    groups: BTreeSet<PathBuf>,
    temporary: BTreeSet<PathBuf>,
}

impl Traces {
    /// What there is now.
    fn now() -> Self {
        let count = |path: &str| std::fs::read_dir(path).unwrap().count();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let temporary = std::fs::read_dir(std::env::temp_dir()).unwrap();
        Self {
            descriptors: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
            processes: below(own()).len(),
            mounts: mounts.lines().map(str::to_owned).collect(),
            groups: groups_below(own()),
            temporary: temporary.map(|entry| entry.unwrap().path()).collect(),
        }
    }

    /// Compares with what was before, after some time to clean up.
    fn check_same(&self) {
        // What a launcher that another test killed has left is removed by the next one.
        let now = || {
            let mut now = Self::now();
            if now.groups.is_subset(&self.groups) {
                now.groups.clone_from(&self.groups);
            }
            now
        };
        until(Duration::from_secs(3), || &now() == self);
        assert_eq!(&now(), self);
    }
}

/// The control groups of the launchers that this process has, and of launchers that are gone.
fn groups_below(parent: i32) -> BTreeSet<PathBuf> {
    let launchers = launchers_of(parent);
    let mut found = BTreeSet::new();
    let mut next = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = next.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let owner = entry.file_name().to_str().and_then(|name| {
                name.strip_prefix("haft-")
                    .and_then(|name| name.rsplit('-').next()?.parse::<i32>().ok())
            });
            if let Some(owner) = owner {
                // Those of other tests that run at the same time are none of ours.
                let is_gone = !Path::new("/proc").join(owner.to_string()).exists();
                if launchers.contains(&owner) || is_gone {
                    let rooms = std::fs::read_dir(&path).into_iter().flatten().flatten();
                    let rooms = rooms.filter(|one| one.file_type().is_ok_and(|kind| kind.is_dir()));
                    found.extend(rooms.map(|one| one.path()));
                    found.insert(path);
                }
            } else {
                next.push(path);
            }
        }
    }
    found
}

#[test]
fn a_thousand_runs_one_after_another_leave_nothing() {
    alone_as_each_user(|| {
        let before = Traces::now();
        let launcher = launcher();
        let [process] = launchers_of(own())[..] else { panic!("one launcher") };
        let path = Folder::new();
        let settle = || {
            // The launcher, a room made ahead, and who made it and those before.
            assert!(until(Duration::from_secs(3), || below(own()).len() <= 10));
            (
                Traces::now(),
                std::fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count),
            )
        };
        let confinement = walled_with(&path);
        for _ in 0..50 {
            assert_eq!(
                run(&launcher, &confinement, &words(["/bin/true"])).ended.exit,
                Exit::Code(0)
            );
        }
        let (few, few_descriptors) = settle();
        for _ in 0..950 {
            assert_eq!(run(&launcher, &walled(), &words(["/bin/true"])).ended.exit, Exit::Code(0));
        }
        let (many, many_descriptors) = settle();
        // A room that was made ahead may be in hand or still under way.
        assert!(
            many.descriptors <= few.descriptors + 2,
            "{} {}",
            many.descriptors,
            few.descriptors
        );
        assert_eq!(many.threads, few.threads);
        assert_eq!(many.mounts, before.mounts);
        assert_eq!(many.temporary, few.temporary);
        assert!(many.groups.len() <= few.groups.len() + 8, "{:?}", many.groups);
        // Two for each porter that is kept.
        assert!(many_descriptors <= few_descriptors + 16, "{few_descriptors}, {many_descriptors}");
        assert!(names(&path).is_empty());
        drop((path, launcher));
        before.check_same();
    });
}

#[test]
fn many_runs_at_a_time_leave_nothing() {
    alone_as_each_user(|| {
        let before = Traces::now();
        let launcher = launcher().keeping_ready(8);
        let path = Folder::new();
        std::thread::scope(|scope| {
            for _ in 0..64 {
                let (launcher, path) = (launcher.clone(), &path);
                scope.spawn(move || {
                    let child = launcher.spawn(&walled_with(path), &shell("sleep 0.2")).unwrap();
                    assert_eq!(child.finish(b"").unwrap().ended.exit, Exit::Code(0));
                });
            }
        });
        let is_empty = || names(&path).is_empty();
        assert!(until(Duration::from_secs(2), is_empty), "placeholders are left");
        drop((path, launcher));
        before.check_same();
    });
}

#[test]
fn programs_that_are_cut_off_leave_nothing() {
    alone_as_each_user(|| {
        let before = Traces::now();
        let launcher = launcher();
        let path = Folder::new();
        for round in 0..40 {
            let confinement = Confinement {
                stdin: Stream::Pipe,
                network: if round % 2 == 0 { Network::Allow } else { Network::Deny },
                ..walled_with(&path)
            };
            let script = "echo scratch >/tmp/file; (sleep 60 &) ; exec sleep 60";
            let mut child = launcher.spawn(&confinement, &shell(script)).unwrap();
            let killer = child.killer();
            match round % 4 {
                0 => child.kill(),
                1 => killer.kill(),
                2 => drop(child.take_network()),
                _ => {}
            }
            drop(child);
        }
        let is_empty = || names(&path).is_empty();
        assert!(until(Duration::from_secs(2), is_empty), "placeholders are left");
        drop((path, launcher));
        before.check_same();
    });
}

#[test]
fn programs_that_were_not_started_leave_nothing() {
    alone_as_each_user(|| {
        let before = Traces::now();
        let launcher = launcher();
        let path = Folder::new();
        std::os::unix::fs::symlink("/usr", path.join("link")).unwrap();
        let settle = || {
            // The launcher, a room made ahead, and who made it and those before.
            assert!(until(Duration::from_secs(3), || below(own()).len() <= 10));
            Traces::now()
        };
        assert_eq!(run(&launcher, &walled(), &words(["/bin/true"])).ended.exit, Exit::Code(0));
        let first = settle();
        let with_folder =
            |folder: &Path| Confinement { folder: folder.into(), ..walled_with(&path) };
        let refused = [
            (walled_with(&path), words(["/bin/missing"])),
            (walled_with(&path), words(["/etc/passwd"])),
            (walled_with(&path), words(["true"])),
            (walled_with(&path), words([""; 0])),
            (with_folder(Path::new("/missing")), words(["/bin/true"])),
            (with_folder(Path::new("/etc/passwd")), words(["/bin/true"])),
            (walled_with(&path.join("missing")), words(["/bin/true"])),
            (walled_with(&path.join("link")), words(["/bin/true"])),
            (walled_with(Path::new("/")), words(["/bin/true"])),
            (walled_with(Path::new("relative")), words(["/bin/true"])),
        ];
        for _ in 0..10 {
            for (confinement, argv) in &refused {
                let spawned = launcher.spawn(confinement, argv);
                assert!(spawned.is_err(), "{argv:?}");
            }
        }
        let now = settle();
        assert!(
            now.descriptors <= first.descriptors + 2,
            "{} {}",
            now.descriptors,
            first.descriptors
        );
        assert!(now.groups.len() <= first.groups.len() + 8, "{:?}", now.groups);
        assert_eq!(now.mounts, before.mounts);
        assert_eq!(names(&path), ["link"]);
        drop((path, launcher));
        before.check_same();
    });
}

/// Fills the disk that a repository is on, and expects that a program which cannot be started then
/// leaves it as it was. This process is root in namespaces of its own.
fn fill_the_disk() {
    let folder = Folder::outside();
    let mount = ["-t", "tmpfs", "-o", "size=256k", "none", folder.to_str().unwrap()];
    assert!(Command::new("mount").args(mount).status().unwrap().success());
    for name in ["objects", "refs"] {
        folder.make(&format!(".git/{name}"));
    }
    folder.write(".git/HEAD", "ref: refs/heads/main\n");
    folder.write(".git/config", "[core]\n");
    let before = listing(&folder);
    let full = folder.join("full");
    assert!(std::fs::write(&full, vec![0; 1 << 20]).is_err());
    let launcher = launcher();
    let refused = launcher.spawn(&walled_with(&folder), &shell("true")).unwrap_err();
    assert!(told(&refused).ends_with("no space left on device"), "{refused:?}");
    std::fs::remove_file(&full).unwrap();
    assert_settles(&folder, &before);
    assert_eq!(output_of(&launcher, &walled_with(&folder), &shell("echo fine")), "fine\n");
    assert_settles(&folder, &before);
}

#[test]
fn a_full_disk_leaves_a_repository_as_it_was() {
    if role().is_some() {
        return fill_the_disk();
    }
    let actor = actor(a_full_disk_leaves_a_repository_as_it_was, "full");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount"]);
    command.arg(actor.get_program()).args(actor.get_args());
    for (name, value) in actor.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    assert_passes(&mut command, "who fills the disk");
}

#[test]
fn a_placeholder_that_was_not_filled_is_made_anew_and_taken_away() {
    alone_as_each_user(|| {
        let folder = Folder::new();
        for name in ["objects", "refs"] {
            folder.make(&format!(".git/{name}"));
        }
        folder.write(".git/HEAD", "ref: refs/heads/main\n");
        let before = listing(&folder);
        let common = folder.write(".git/commondir", "");
        // As a launcher leaves it that is killed between two system calls.
        set_mode(&common, 0o1400);
        let launcher = launcher();
        let said = output_of(
            &launcher,
            &walled_with(&folder),
            &words(["/bin/cat", common.to_str().unwrap()]),
        );
        assert_eq!(said, ".\n");
        assert_settles(&folder, &before);
    });
}

#[test]
fn the_scratch_folder_of_one_run_is_not_there_in_the_next() {
    alone_as_each_user(|| {
        let launcher = launcher();
        let write = "touch /tmp/file /dev/shm/other; ls /tmp";
        for _ in 0..5 {
            let said = output_of(&launcher, &walled(), &shell(write));
            assert_eq!(said, "file\nother\n");
            let said = output_of(&launcher, &walled(), &shell("ls -A /tmp"));
            assert_eq!(said, "");
        }
    });
}

#[test]
fn a_launcher_alone_comes_and_goes_without_a_trace() {
    alone_as_each_user(|| {
        let before = Traces::now();
        for _ in 0..20 {
            let began = Instant::now();
            drop(launcher());
            let most = Duration::from_secs(2) * slowness();
            assert!(began.elapsed() < most, "{:?}", began.elapsed());
        }
        before.check_same();
        let missing = sandbox::Launcher::start(Path::new("/bin/missing"));
        assert!(matches!(missing, Err(sandbox::StartError::Program(_))));
        for silent in ["/bin/true", "/bin/false"] {
            let silent = sandbox::Launcher::start(Path::new(silent));
            assert!(matches!(silent, Err(sandbox::StartError::Silent)));
        }
        before.check_same();
    });
}
