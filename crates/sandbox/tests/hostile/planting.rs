//! What must not be planted: files in a writable folder that other programs of the owner run or trust.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use sandbox::{Child, Confinement, Exit, Launcher, SpawnError, protected_names};

use crate::kit::folders::{Folder, assert_settles, listing, set_mode};
use crate::kit::machine::{kill, number, processes};
use crate::kit::rooms::{launcher, output_of, shared_launcher, shell, text};
use crate::kit::users::{as_each_user, is_root};
use crate::probing::{
    assert_escapes_outside, assert_held, probe, probe_outside, start_probe, word,
};

/// The ways of the `plant` probe.
const WAYS: [&str; 14] = [
    "create",
    "write",
    "append",
    "rename-over",
    "unlink-create",
    "symlink",
    "hardlink",
    "exchange-file",
    "exchange-folder",
    "chmod",
    "chmod-parent",
    "move-parent",
    "link-parent",
    "exchange-parent",
];

/// What the owner has in a file; it must stay byte for byte.
const OWNERS: &str = "the owner's\n";

fn writing(folder: &Path) -> Confinement {
    Confinement {
        writable: vec![folder.to_owned()],
        folder: folder.to_owned(),
        ..Confinement::default()
    }
}

/// Tries to plant a name in a folder in every way, and expects all as it was before.
fn assert_not_planted(folder: &Path, name: &str) {
    let before = listing(folder);
    assert_held(&writing(folder), &["plant", word(folder), name]);
    assert_settles(folder, &before);
}

/// A repository as `git init` leaves it, with a hook and without.
fn repository(folder: &Folder, at: &str) {
    folder.write(&format!("{at}/HEAD"), "ref: refs/heads/main\n");
    folder.write(&format!("{at}/config"), "[core]\n\tbare = false\n");
    folder.write(&format!("{at}/index"), "index");
    folder.make(&format!("{at}/objects/info"));
    folder.make(&format!("{at}/refs/heads"));
}

#[test]
fn a_name_that_is_not_there_is_not_planted_in_any_way() {
    as_each_user(|| {
        for name in protected_names() {
            let folder = Folder::outside();
            folder.write("README", "a folder to work in\n");
            assert_not_planted(&folder, &name);
        }
    });
}

#[test]
fn a_file_that_is_there_stays_byte_for_byte() {
    as_each_user(|| {
        for name in protected_names() {
            let folder = Folder::outside();
            folder.write(&name, OWNERS);
            assert_not_planted(&folder, &name);
        }
    });
}

#[test]
fn a_folder_that_is_there_stays_with_all_that_is_in_it() {
    as_each_user(|| {
        for name in protected_names() {
            let folder = Folder::outside();
            folder.write(&format!("{name}/inner/settings.json"), OWNERS);
            assert_not_planted(&folder, &name);
            assert_not_planted(&folder, &format!("{name}/inner/settings.json"));
            assert_not_planted(&folder, &format!("{name}/new.json"));
        }
    });
}

#[test]
fn a_name_that_is_a_link_stays_one_and_is_not_followed() {
    as_each_user(|| {
        for name in protected_names() {
            for target in ["dotfiles/target", "dotfiles", "/nowhere/at/all"] {
                let folder = Folder::outside();
                let elsewhere = Folder::outside();
                elsewhere.write("dotfiles/target", OWNERS);
                fs::create_dir_all(folder.join(&name).parent().unwrap()).unwrap();
                symlink(elsewhere.join(target), folder.join(&name)).unwrap();
                let before = listing(&elsewhere);
                assert_not_planted(&folder, &name);
                assert_eq!(listing(&elsewhere), before, "`{name}`");
            }
        }
    });
}

#[test]
fn a_repository_is_worked_in_and_nothing_is_planted_in_it() {
    as_each_user(|| {
        let names = [".git/hooks/pre-commit", ".git/hooks", ".git/config", ".git/config.worktree"];
        for has_hooks in [false, true] {
            for name in names {
                let folder = Folder::outside();
                repository(&folder, ".git");
                if has_hooks {
                    folder.write(".git/hooks/pre-commit", OWNERS);
                    folder.write(".git/config.worktree", OWNERS);
                }
                assert_not_planted(&folder, name);
            }
        }
        let folder = Folder::outside();
        repository(&folder, ".git");
        let write = "echo one > .git/index && echo two > .git/refs/heads/main && echo three > file";
        output_of(shared_launcher(), &writing(&folder), &shell(write));
        assert_eq!(fs::read_to_string(folder.join(".git/index")).unwrap(), "one\n");
        assert_eq!(fs::read_to_string(folder.join(".git/refs/heads/main")).unwrap(), "two\n");
    });
}

#[test]
fn a_repository_does_not_take_its_orders_from_elsewhere() {
    as_each_user(|| {
        // Git looks for settings and hooks in the folder that the first names, and takes the
        // folder itself for a repository by the second when `.git` has been made useless.
        for name in [".git/commondir", "refs"] {
            let folder = Folder::outside();
            repository(&folder, ".git");
            assert_not_planted(&folder, name);
            fs::remove_file(folder.join(".git/HEAD")).unwrap();
            assert_not_planted(&folder, name);
        }
    });
}

/// Runs git outside the walls: what it said.
fn git(folder: &Path, words: &str) -> String {
    let mut command = Command::new("git");
    command.args(words.split(' ')).current_dir(folder).env("HOME", "/nowhere");
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {words}: {output:?}");
    text(&output.stdout)
}

#[test]
fn git_works_in_a_room_and_next_to_it() {
    if Command::new("git").arg("--version").output().is_err() {
        return;
    }
    as_each_user(|| {
        let folder = Folder::outside();
        let git = |words: &str| git(&folder, words);
        git("init -q");
        let room = stay(shared_launcher(), &folder);
        folder.write("outside.txt", "one");
        let identity = "-c user.name=owner -c user.email=owner@example.com";
        git("add outside.txt");
        git(&format!("{identity} commit -q -m outside"));
        let inside = format!(
            "echo two > inside.txt && git add inside.txt && git diff --stat HEAD && \
             git {identity} commit -qm inside"
        );
        output_of(shared_launcher(), &writing(&folder), &shell(&inside));
        git("status");
        git("show HEAD:inside.txt");
        drop(room);
        git("fsck");
    });
}

#[test]
fn a_worktree_keeps_pointing_to_its_repository() {
    as_each_user(|| {
        let folder = Folder::outside();
        folder.write(".git", "gitdir: /somewhere/.git/worktrees/one\n");
        assert_not_planted(&folder, ".git");
        assert_not_planted(&folder, ".git/hooks/pre-commit");
    });
}

#[test]
fn a_folder_that_is_no_repository_does_not_become_one() {
    as_each_user(|| {
        for name in [".git", ".git/config", ".git/hooks/pre-commit", ".git/HEAD", "refs"] {
            let folder = Folder::outside();
            folder.write("README", "no repository\n");
            assert_not_planted(&folder, name);
        }
    });
}

#[test]
fn a_folder_that_is_a_bare_repository_itself_keeps_its_hooks_and_settings() {
    as_each_user(|| {
        for has_hooks in [false, true] {
            for name in
                ["hooks/pre-receive", "hooks", "config", "config.worktree", "commondir", ".git"]
            {
                let folder = Folder::outside();
                repository(&folder, ".");
                if has_hooks {
                    folder.write("hooks/pre-receive", OWNERS);
                }
                assert_not_planted(&folder, name);
            }
        }
    });
}

#[test]
fn a_folder_that_its_owner_has_closed_is_not_opened_to_plant_in_it() {
    as_each_user(|| {
        for name in [".bashrc", ".vscode", ".git", ".git/config", ".git/hooks/pre-commit"] {
            let folder = Folder::outside();
            repository(&folder, "with/.git");
            fs::remove_file(folder.join("with/.git/config")).unwrap();
            folder.make("without");
            set_mode(&folder.join("with/.git"), 0o555);
            for closed in ["with", "without"] {
                set_mode(&folder.join(closed), 0o555);
                assert_not_planted(&folder.join(closed), name);
                set_mode(&folder.join(closed), 0o755);
            }
            set_mode(&folder.join("with/.git"), 0o755);
        }
    });
}

#[test]
fn a_closed_folder_in_which_nothing_can_be_protected_is_not_granted() {
    as_each_user(|| {
        // Only root can give a folder to a group it is not in.
        if !is_root() {
            return;
        }
        let folder = Folder::outside();
        std::os::unix::fs::chown(&*folder, None, Some(12345)).unwrap();
        assert_not_planted(&folder, ".bashrc");
        set_mode(&folder, 0o555);
        let refused = shared_launcher().spawn(&writing(&folder), &["/bin/true".into()]);
        assert!(matches!(refused, Err(SpawnError::Wall(_))), "{refused:?}");
    });
}

#[test]
fn what_is_not_protected_can_be_written() {
    as_each_user(|| {
        let folder = Folder::outside();
        folder.write("Makefile", "all:\n");
        let (said, exit) = probe(&writing(&folder), &["plant", word(&folder), "Makefile"]);
        assert!(said.starts_with("ESCAPED: plant Makefile"), "{said}");
        assert_eq!(exit, Exit::Code(42));
    });
}

#[test]
fn every_way_to_plant_works_where_there_are_no_walls() {
    as_each_user(|| {
        for way in WAYS {
            let folder = Folder::outside();
            let name = ".git/hooks/pre-commit";
            if way != "create" {
                folder.write(name, OWNERS);
            }
            assert_escapes_outside(&folder, &["plant", word(&folder), name, way]);
        }
        let (said, code) =
            probe_outside(Path::new("/"), &["plant", "/nowhere", "x", "no-such-way"]);
        assert_eq!(code, Some(64), "{said}");
    });
}

/// Starts a program that stays until it is killed, in a writable folder.
fn stay(launcher: &Launcher, folder: &Path) -> Child {
    start_probe(launcher, &writing(folder), &["sleep-stubborn", "60"])
}

#[test]
fn two_rooms_in_one_folder_protect_it_until_the_last_has_ended() {
    as_each_user(|| {
        let folder = Folder::outside();
        folder.write("README", "a folder to work in\n");
        let before = listing(&folder);
        let another = launcher();
        let (first, second) = (stay(&another, &folder), stay(&another, &folder));
        let third = stay(shared_launcher(), &folder);
        let during = listing(&folder);
        assert_ne!(during, before, "there are no placeholders");
        for mut child in [first, third] {
            child.kill();
            assert_eq!(child.wait().exit, Exit::Cancelled);
            drop(child);
            // A whole run in between, after which the ended room has been cleaned up as well.
            assert_held(&writing(&folder), &["plant", word(&folder), ".bashrc"]);
            assert_eq!(listing(&folder), during);
        }
        let mut second = second;
        second.kill();
        second.wait();
        assert_settles(&folder, &before);
    });
}

#[test]
fn what_a_killed_launcher_left_behind_goes_with_the_next_run() {
    as_each_user(|| {
        let folder = Folder::outside();
        folder.write("README", "a folder to work in\n");
        repository(&folder, ".git");
        let before = listing(&folder);
        let doomed = launcher();
        let mut child = stay(&doomed, &folder);
        let room = processes().into_iter().find(|one| one.pid == number(&child));
        kill(room.unwrap().parent);
        assert_eq!(child.wait().exit, Exit::Lost);
        assert_ne!(listing(&folder), before, "nothing was left behind");
        drop((child, doomed));
        for name in [".bashrc", ".vscode/settings.json", ".git/hooks/pre-commit"] {
            assert_held(&writing(&folder), &["plant", word(&folder), name]);
        }
        assert_settles(&folder, &before);
    });
}

#[test]
fn what_the_owner_puts_in_a_placeholders_place_meanwhile_is_left_alone() {
    as_each_user(|| {
        let folder = Folder::outside();
        let launcher = launcher();
        let mut child = stay(&launcher, &folder);
        let own = folder.write("aside", OWNERS);
        fs::rename(own, folder.join(".bashrc")).unwrap();
        folder.make("folder/inner");
        fs::rename(folder.join("folder"), folder.join(".vscode")).unwrap();
        child.kill();
        child.wait();
        drop((child, launcher));
        let left = listing(&folder);
        let names: Vec<_> = left.iter().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(names, [".bashrc", ".vscode", ".vscode/inner"]);
        assert_eq!(fs::read_to_string(folder.join(".bashrc")).unwrap(), OWNERS);
    });
}

#[test]
fn a_commit_made_in_a_room_holds_nothing_of_ours() {
    as_each_user(|| {
        let folder = Folder::outside();
        git(&folder, "init -q");
        let script = "echo one > file && git add -A && \
                      git -c user.name=o -c user.email=o@example.com commit -qm work";
        output_of(shared_launcher(), &writing(&folder), &shell(script));
        assert_eq!(git(&folder, "ls-tree --name-only HEAD"), "file\n");
    });
}

#[test]
fn what_is_granted_or_hidden_deep_in_a_writable_folder_keeps_its_place() {
    as_each_user(|| {
        let folder = Folder::outside();
        let (read, hidden) = (folder.join("a/b/read"), folder.join("c/d/hidden"));
        for path in [&read, &hidden] {
            fs::create_dir_all(path).unwrap();
            fs::write(path.join("file"), "the owner's").unwrap();
        }
        let confinement = Confinement {
            readable: vec![read.clone()],
            hidden: vec![hidden.clone()],
            ..writing(&folder)
        };
        let script = "for way in a a/b c c/d; do mv $way gone && exit 1; done
                      mkdir -p a/b/read c/d/hidden
                      echo evil > a/b/read/file; echo evil > c/d/hidden/file
                      echo fine > a/b/beside && mv a/b/beside a/b/moved";
        output_of(shared_launcher(), &confinement, &shell(script));
        for path in [&read, &hidden] {
            assert_eq!(fs::read_to_string(path.join("file")).unwrap(), "the owner's");
        }
        assert!(folder.join("a/b/moved").exists());
    });
}
