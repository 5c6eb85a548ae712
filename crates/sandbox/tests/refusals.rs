//! Why a program was not started, in the words a person reads.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod kit;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use kit::folders::{Folder, set_mode};
use kit::rooms::{launcher, output_of, shell, text, told, walled, words};
use kit::users::{as_each_user, is_root};
use sandbox::{Confinement, Launcher, Level, SpawnError};

/// The error and its causes, with the folder of the test left out.
fn refused(
    launcher: &Launcher,
    confinement: &Confinement,
    argv: &[OsString],
    folder: &Path,
) -> String {
    let error = launcher.spawn(confinement, argv).err();
    let error = error.unwrap_or_else(|| panic!("{argv:?} was started"));
    told(&error).replace(folder.to_str().unwrap(), "~")
}

#[test]
fn a_program_that_cannot_be_executed_is_named() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
        let file = |name: &str, text: &str, mode: u32| {
            let path = path.write(name, text);
            set_mode(&path, mode);
            path.into_os_string()
        };
        let plain = file("plain", "#!/bin/sh\n", 0o644);
        let nonsense = file("nonsense", "nothing that runs", 0o755);
        let without = file("without", "#!/missing/interpreter\n", 0o755);
        let hidden = file("hidden", "#!/bin/sh\n", 0o755);
        let granted = Confinement {
            readable: vec![path.clone()],
            hidden: vec![hidden.clone().into()],
            ..walled()
        };
        for (confinement, program, expected) in [
            (
                walled(),
                "/bin/missing".into(),
                "failed to execute `/bin/missing` inside the walls: No such file or directory (os error 2)",
            ),
            (
                // It is there, but not for the program.
                walled(),
                nonsense.clone(),
                "failed to execute `~/nonsense` inside the walls: No such file or directory (os error 2)",
            ),
            (
                granted.clone(),
                plain,
                "failed to execute `~/plain` inside the walls: Permission denied (os error 13)",
            ),
            (
                granted.clone(),
                nonsense,
                "failed to execute `~/nonsense` inside the walls: it has no first line such as `#!/bin/sh`",
            ),
            (
                walled(),
                without.clone(),
                "failed to execute `~/without` inside the walls: No such file or directory (os error 2)",
            ),
            (
                granted.clone(),
                without,
                "failed to execute `~/without` inside the walls: its first line asks for `/missing/interpreter`, which is not inside the walls",
            ),
            (
                granted.clone(),
                hidden,
                "failed to execute `~/hidden` inside the walls: Permission denied (os error 13)",
            ),
            (
                granted,
                path.clone().into(),
                "failed to execute `~` inside the walls: Permission denied (os error 13)",
            ),
            (walled(), "true".into(), "`true` is not an absolute path"),
            (walled(), "./true".into(), "`./true` is not an absolute path"),
            (walled(), "/".into(), "`/` as a whole cannot be granted"),
            (walled(), "/bin/../bin/true".into(), "`/bin/../bin/true` is not an absolute path"),
        ] {
            assert_eq!(refused(&launcher, &confinement, &[program], &path), expected);
        }
        let nothing = refused(&launcher, &walled(), &[], &path);
        assert_eq!(nothing, "`` is not an absolute path");
    });
}

#[test]
fn a_folder_that_cannot_be_started_in_is_named() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
        path.write("file", "");
        let cases = [
            (
                PathBuf::from("/missing"),
                "failed to start in the folder `/missing`: No such file or directory (os error 2)",
            ),
            (
                // It is there, but not for the program.
                path.clone(),
                "failed to start in the folder `~`: No such file or directory (os error 2)",
            ),
            (
                "/etc/passwd".into(),
                "failed to start in the folder `/etc/passwd`: Not a directory (os error 20)",
            ),
            ("tmp".into(), "`tmp` is not an absolute path"),
            ("/tmp/..".into(), "`/tmp/..` is not an absolute path"),
        ];
        for (folder, expected) in cases {
            let confinement = Confinement { folder, ..walled() };
            assert_eq!(refused(&launcher, &confinement, &words(["/bin/true"]), &path), expected);
        }
        let at_the_root = Confinement { folder: "/".into(), ..walled() };
        assert_eq!(output_of(&launcher, &at_the_root, &shell("pwd")), "/\n");
    });
}

#[test]
fn a_path_that_cannot_be_granted_is_named() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
        path.write("file", "");
        path.make("real/inner");
        symlink("real", path.join("link")).unwrap();
        symlink("nowhere", path.join("dangling")).unwrap();
        symlink("/proc/self", path.join("magic")).unwrap();
        let cases = [
            (
                path.join("missing"),
                "failed to look at `~/missing`: No such file or directory (os error 2)",
            ),
            (
                path.join("missing/below"),
                "failed to look at `~/missing/below`: No such file or directory (os error 2)",
            ),
            (
                path.join("file/below"),
                "failed to look at `~/file/below`: Not a directory (os error 20)",
            ),
            (path.join("link"), "`~/link` leads through a symbolic link"),
            (path.join("link/inner"), "`~/link/inner` leads through a symbolic link"),
            (path.join("dangling"), "`~/dangling` leads through a symbolic link"),
            (path.join("magic/root"), "`~/magic/root` leads through a symbolic link"),
            (
                "/proc/self/root".into(),
                "`/proc/self/root` cannot be granted: the program has its own",
            ),
            (
                "/proc/self/fd/0".into(),
                "`/proc/self/fd/0` cannot be granted: the program has its own",
            ),
            ("/".into(), "`/` as a whole cannot be granted"),
            ("//".into(), "`//` is not an absolute path"),
            ("/./".into(), "`/./` is not an absolute path"),
            ("".into(), "`` is not an absolute path"),
            ("real".into(), "`real` is not an absolute path"),
            (path.join("real/.."), "`~/real/..` is not an absolute path"),
        ];
        for (granted, expected) in cases {
            let readable = Confinement { readable: vec![granted.clone()], ..walled() };
            assert_eq!(refused(&launcher, &readable, &words(["/bin/true"]), &path), expected);
            let writable = Confinement { writable: vec![granted], ..walled() };
            assert_eq!(refused(&launcher, &writable, &words(["/bin/true"]), &path), expected);
        }
        if !is_root() {
            set_mode(&path.join("real"), 0o0);
            let confinement = Confinement { readable: vec![path.join("real/inner")], ..walled() };
            let told = refused(&launcher, &confinement, &words(["/bin/true"]), &path);
            set_mode(&path.join("real"), 0o755);
            assert_eq!(told, "failed to look at `~/real/inner`: Permission denied (os error 13)");
        }
    });
}

#[test]
fn a_hidden_path_that_is_not_there_is_no_reason_to_refuse() {
    as_each_user(|| {
        let path = Folder::new();
        let confinement = Confinement {
            readable: vec![path.clone()],
            hidden: vec![path.join("missing")],
            ..walled()
        };
        assert_eq!(output_of(&launcher(), &confinement, &shell("echo fine")), "fine\n");
    });
}

#[test]
fn devices_and_links_are_checked_too() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
        for (device, expected) in [
            ("/etc/passwd", "`/etc/passwd` is not an absolute path"),
            ("/dev/../etc/passwd", "`/dev/../etc/passwd` is not an absolute path"),
            ("null", "`null` is not an absolute path"),
            (
                "/dev/missing",
                "the walls could not be built: failed to mount `/dev/missing`: no such file or directory",
            ),
        ] {
            let confinement = Confinement { devices: vec![device.into()], ..walled() };
            assert_eq!(refused(&launcher, &confinement, &words(["/bin/true"]), &path), expected);
        }
        let confinement = Confinement { links: vec![("here".into(), "/usr".into())], ..walled() };
        assert_eq!(
            refused(&launcher, &confinement, &words(["/bin/true"]), &path),
            "`here` is not an absolute path"
        );
    });
}

#[test]
fn text_that_no_process_can_have_is_refused() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
        let zero = OsString::from_vec(b"a\0b".to_vec());
        let argv = [OsString::from("/bin/echo"), zero.clone()];
        let expected = "argument 1 holds a character that no process can have";
        assert_eq!(refused(&launcher, &walled(), &argv, &path), expected);
        for (name, value, shown) in [
            ("A".into(), zero.clone(), "A"),
            (zero, "a".into(), "a\\0b"),
            ("A=B".into(), "a".into(), "A=B"),
            ("".into(), "a".into(), ""),
        ] {
            let confinement = Confinement { environment: vec![(name, value)], ..walled() };
            let expected =
                format!("the variable `{shown}` holds a character that no process can have");
            assert_eq!(refused(&launcher, &confinement, &words(["/bin/true"]), &path), expected);
        }
    });
}

#[test]
fn arguments_that_no_process_can_have_room_for_are_refused() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
        // One argument has at most 128 KiB.
        let argv = [OsString::from("/bin/echo"), "a".repeat(200_000).into()];
        assert_eq!(
            refused(&launcher, &walled(), &argv, &path),
            "failed to execute `/bin/echo` inside the walls: Argument list too long (os error 7)"
        );
        let argv: Vec<_> = std::iter::once("/bin/echo".into())
            .chain((0..180).map(|_| "a".repeat(100_000).into()))
            .collect();
        let told = refused(&launcher, &walled(), &argv, &path);
        assert_eq!(
            told,
            "failed to execute `/bin/echo` inside the walls: Argument list too long (os error 7)"
        );
        assert_eq!(output_of(&launcher, &walled(), &shell("echo fine")), "fine\n");
    });
}

#[test]
fn walls_that_are_stronger_than_there_are_refuse_everything() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
        let confinement = Confinement { required: Level::L3, ..walled() };
        match launcher.walls().level() {
            Level::L3 => assert_eq!(output_of(&launcher, &confinement, &shell("echo 3")), "3\n"),
            level => {
                assert_eq!(level, Level::L2);
                assert_eq!(
                    refused(&launcher, &confinement, &words(["/bin/true"]), &path),
                    "the walls of this machine reach L2, L3 is required"
                );
            }
        }
    });
}

#[test]
fn a_path_that_is_replaced_is_never_granted_in_its_new_shape() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
        let (granted, secret) = (path.make("granted"), path.join("secret"));
        path.write("secret/file", "secret");
        let confinement = Confinement { readable: vec![granted.clone()], ..walled() };
        let read = shell(&format!("cat '{}/file' 2>/dev/null; exit 0", granted.display()));
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Somebody exchanges the folder for a link to another, as fast as can be.
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    std::fs::rename(&granted, path.join("aside")).unwrap();
                    symlink(&secret, &granted).unwrap();
                    std::fs::remove_file(&granted).unwrap();
                    std::fs::rename(path.join("aside"), &granted).unwrap();
                }
            });
            for _ in 0..60 {
                match launcher.spawn(&confinement, &read) {
                    Ok(child) => {
                        let finished = child.finish(b"").unwrap();
                        assert_eq!(text(&finished.stdout), "");
                    }
                    Err(
                        SpawnError::Link(_)
                        | SpawnError::Missing(..)
                        | SpawnError::Moved(_)
                        | SpawnError::Wall(_),
                    ) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    });
}
