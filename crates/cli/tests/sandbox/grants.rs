//! What the program finds of the owner's files: what was granted, and nothing else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::names;
use crate::walls::{Desk, PYTHON, ran};

for_everybody![
    what_is_not_granted_is_not_there,
    what_is_granted_to_be_read_cannot_be_written,
    what_is_granted_to_be_written_is_changed_outside,
    nothing_is_planted_that_another_program_would_run,
    the_hooks_and_settings_of_a_repository_stay_as_they_are,
    a_grant_may_be_relative_or_through_a_link,
    a_grant_that_is_missing_or_everything_is_refused,
    settings_of_the_system_can_be_granted,
    it_starts_here_if_this_is_granted_else_in_the_scratch_folder,
    the_home_is_hidden_unless_a_part_of_it_is_named,
    a_home_that_is_not_made_yet_is_not_made_by_a_program,
    two_share_a_folder,
];

fn what_is_not_granted_is_not_there(desk: &Desk) {
    let secret = desk.write("work/secret", "s3cret");
    let secret = secret.to_str().unwrap();
    let ran = desk.sandbox(&["--", "sh", "-c", &format!("cat {secret}; ls -A /tmp /home /root")]);
    assert!(!ran.stdout.contains("secret"), "{}", ran.stdout);
    assert!(ran.stderr.contains("No such file"), "{}", ran.stderr);
    let here = desk.says(&["--", "sh", "-c", "pwd; ls -A; id -u; hostname"]);
    assert_eq!(here, "/tmp\n1000\nhaft\n");
    let written = desk.says(&["--", "sh", "-c", "echo mine > /tmp/x && cat /tmp/x"]);
    assert_eq!(written, "mine\n");
    assert!(!Path::new("/tmp/x").exists() || fs::read("/tmp/x").unwrap() != b"mine\n");
}

fn what_is_granted_to_be_read_cannot_be_written(desk: &Desk) {
    desk.make_folder("given");
    desk.write("given/file", "inside\n");
    let given = desk.text("given");
    for attack in [
        format!("echo x > {given}/file"),
        format!("touch {given}/new"),
        format!("rm {given}/file"),
        format!("mv {given}/file {given}/other"),
        format!("chmod 777 {given}/file"),
        format!("mkdir {given}/folder"),
    ] {
        let ran = desk.sandbox(&["--read", &given, "--", "sh", "-c", &attack]);
        assert_ne!(ran.code, 0, "{attack}");
    }
    let file = format!("{given}/file");
    assert_eq!(desk.says(&["--read", &given, "--", "cat", &file]), "inside\n");
    assert_eq!(desk.says(&["--read", &file, "--", "cat", &file]), "inside\n");
    assert_eq!(desk.says(&["--read", &file, "--", "ls", &given]), "file\n");
    assert_eq!(
        (names(&desk.path("given")), desk.read("given/file")),
        (vec!["file".into()], "inside\n".into())
    );
}

fn what_is_granted_to_be_written_is_changed_outside(desk: &Desk) {
    desk.make_folder("out");
    desk.write("one", "before\n");
    let (out, one) = (desk.text("out"), desk.text("one"));
    let script = format!("echo made > {out}/made && echo after > {one} && echo x > {out}/../two");
    let ran = desk.sandbox(&["--write", &out, "--write", &one, "--", "sh", "-c", &script]);
    assert_eq!((desk.read("out/made"), desk.read("one")), ("made\n".into(), "after\n".into()));
    assert!(!desk.path("two").exists(), "{}", ran.stderr);
    assert_eq!(names(&desk.path("out")), ["made"], "nothing of ours is left");
}

/// Tries to bring each of the names given to it into this folder, in every way there is.
const PLANT: &str = "
import os, sys
os.mkdir('folder')
for name in sys.argv[1:]:
    for way in (lambda: open(name, 'w').write('evil'), lambda: os.mkdir(name),
                lambda: os.symlink('/tmp/evil', name), lambda: os.rename('folder', name),
                lambda: os.unlink(name), lambda: os.rmdir(name), lambda: os.chmod(name, 0o777),
                lambda: os.rename(name, 'moved'), lambda: os.link('/tmp/evil', name)):
        try: way(); print(name)
        except OSError: pass
os.rmdir('folder')
";

fn nothing_is_planted_that_another_program_would_run(desk: &Desk) {
    let out = desk.make_folder("out");
    desk.write("out/.bashrc", "mine\n");
    let path = desk.text("out");
    let protected: Vec<String> = sandbox::protected_names().collect();
    let at_the_top = protected.iter().map(String::as_str).filter(|name| !name.contains('/'));
    let protected: Vec<&str> = at_the_top.chain([".git"]).collect();
    assert!(protected.len() > 20);
    let client = ["--write", &path, "--folder", &path, "--", PYTHON, "-c", PLANT];
    let said = desk.says(&[&client[..], &protected].concat());
    assert_eq!(said, "", "none of it went well");
    assert_eq!(names(&out), [".bashrc"], "also afterwards");
    assert_eq!(desk.read("out/.bashrc"), "mine\n");
}

fn the_hooks_and_settings_of_a_repository_stay_as_they_are(desk: &Desk) {
    let mut command = desk.command("git");
    command.args(["init", "-q", "."]);
    assert_eq!(ran(command, b"").code, 0);
    let config = desk.read("work/.git/config");
    let hooks = names(&desk.path("work/.git/hooks"));
    let script = "
echo evil > .git/hooks/pre-commit; echo evil >> .git/config; git config core.fsmonitor evil
mv .git .other; mv .git/hooks .git/h; rm -rf .git/config; echo evil > .git/config.worktree
echo text > file && git add file && git -c user.name=a -c user.email=a@b.test commit -q -m one
";
    let ran = desk.sandbox(&["--write", ".", "--", "sh", "-c", script]);
    assert_eq!(ran.code, 0, "work in it goes on: {}", ran.stderr);
    assert_eq!(desk.read("work/.git/config"), config);
    assert_eq!(names(&desk.path("work/.git/hooks")), hooks);
    assert!(!desk.path("work/.git/config.worktree").exists());
    assert_eq!(names(&desk.path("work")), [".git", "file"]);
}

fn a_grant_may_be_relative_or_through_a_link(desk: &Desk) {
    desk.make_folder("work/real");
    desk.write("work/real/file", "found\n");
    symlink("real", desk.path("work/link")).unwrap();
    symlink(desk.path("work/real/file"), desk.path("work/file")).unwrap();
    for (granted, asked) in [
        ("real", "work/real/file"),
        ("./real/", "work/real/file"),
        ("../work/real", "work/real/file"),
        ("link", "work/link/file"),
        ("link", "work/real/file"),
        ("link/file", "work/real/file"),
        ("file", "work/file"),
        (".", "work/link/file"),
    ] {
        let asked = desk.text(asked);
        assert_eq!(desk.says(&["--read", granted, "--", "cat", &asked]), "found\n", "{granted}");
    }
    let typed = desk.text("work/link");
    let script = format!("echo new > {typed}/new");
    desk.says(&["--write", &typed, "--", "sh", "-c", &script]);
    assert_eq!(desk.read("work/real/new"), "new\n");
}

fn a_grant_that_is_missing_or_everything_is_refused(desk: &Desk) {
    assert_said!(desk.refused(&["--read", "missing", "--", "echo", "ran"], 3), @r"
    error: failed to find `missing`
      caused by: No such file or directory (os error 2)
    ");
    symlink("nowhere", desk.path("work/dangling")).unwrap();
    desk.refused(&["--write", "dangling", "--", "echo", "ran"], 3);
    for flag in ["--read", "--write"] {
        assert_said!(desk.refused(&[flag, "/", "--", "echo", "ran"], 2), @r"
        error: `/` as a whole cannot be granted
        hint: name the folders that are needed; all of them at once is no wall
        ");
    }
    desk.refused(&["--read", "/tmp/..", "--", "echo", "ran"], 2);
    // What haft keeps is nobody's.
    let home = desk.make_folder("home/vault");
    for flag in ["--read", "--write"] {
        let said = desk.refused(&[flag, home.to_str().unwrap(), "--", "echo", "ran"], 4);
        assert!(said.contains("keeps keys, secrets and state"), "{said}");
    }
}

/// Settings that a room does not have of its own are shown where they are, and the others stay.
fn settings_of_the_system_can_be_granted(desk: &Desk) {
    let list = ["--read", "/etc/default", "--read", "/etc/fstab", "--", "ls", "/etc"];
    let listed = desk.says(&list);
    for name in ["default", "fstab", "passwd", "hosts"] {
        assert!(listed.lines().any(|line| line == name), "{name}: {listed}");
    }
    let before = desk.says(&["--", "ls", "/etc"]);
    assert_eq!(listed.lines().count(), before.lines().count() + 2, "nothing else is there");
    desk.says(&[
        "--read",
        "/etc/default",
        "--",
        "sh",
        "-c",
        "! touch /etc/new && ! touch /etc/default/new",
    ]);
}

fn it_starts_here_if_this_is_granted_else_in_the_scratch_folder(desk: &Desk) {
    desk.make_folder("work/below");
    let (here, below) = (desk.text("work") + "\n", desk.text("work/below") + "\n");
    assert_eq!(desk.says(&["--", "pwd"]), "/tmp\n");
    for grant in [&["--read", "."], &["--write", "."], &["--read", ".."]] {
        assert_eq!(desk.says(&[&grant[..], &["--", "pwd"]].concat()), here, "{grant:?}");
    }
    assert_eq!(desk.says(&["--read", "below", "--", "pwd"]), here, "on the way to a grant");
    for own in ["/proc", "/dev/null", "/proc/self"] {
        desk.refused(&["--read", own, "--", "echo", "ran"], 2);
    }
    assert_eq!(desk.says(&["--read", "below", "--folder", "below", "--", "pwd"]), below);
    assert_eq!(desk.says(&["--read", ".", "--folder", "/usr/lib", "--", "pwd"]), "/usr/lib\n");
    assert_said!(desk.refused(&["--folder", "below", "--", "pwd"], 3), @r"
    error: failed to start in the folder `[DESK]/work/below`
      caused by: No such file or directory (os error 2)
    ");
    desk.refused(&["--folder", "missing", "--", "pwd"], 3);
}

fn the_home_is_hidden_unless_a_part_of_it_is_named(desk: &Desk) {
    let made = desk.haft(&["key", "new", "alice", "--no-passphrase"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    desk.make_folder("home/tools");
    desk.write("home/tools/tool", "tool\n");
    let (home, above) = (desk.text("home"), desk.text(""));
    let find = ["--", "find", &home, "-mindepth", "1"];
    for grant in ["--read", "--write"] {
        for folder in [&above, &home] {
            let found = desk.says(&[&[grant, folder], &find[..]].concat());
            assert_eq!(found, "", "{grant} {folder}");
        }
    }
    let keys = format!("{home}/keys/alice.key");
    let ran = desk.sandbox(&["--read", &above, "--", "cat", &keys]);
    assert!(ran.code != 0 && ran.stdout.is_empty(), "{}", ran.stdout);
    let (tools, tool) = (format!("{home}/tools"), format!("{home}/tools/tool"));
    for others in [&["--read", &tools][..], &["--read", &above, "--read", &tools]] {
        assert_eq!(desk.says(&[others, &["--", "cat", &tool]].concat()), "tool\n");
        let listed = desk.says(&[others, &["--", "ls", &home]].concat());
        assert_eq!(listed, "tools\n");
    }
    // The same for a home that is named by a flag.
    let ran = desk.haft(&["--home", &home, "sandbox", "--read", &above, "--", "ls", "-A", &home]);
    assert_eq!((ran.code, &*ran.stdout), (0, ""));
}

fn a_home_that_is_not_made_yet_is_not_made_by_a_program(desk: &Desk) {
    let (home, above) = (desk.text("home"), desk.text(""));
    let script = format!("mkdir -p {home}/keys && echo key > {home}/keys/evil.pub");
    let ran = desk.sandbox(&["--write", &above, "--", "sh", "-c", &script]);
    assert_ne!(ran.code, 0);
    assert_eq!(names(&desk.path("home")), Vec::<String>::new());
    // It is not made where nothing could be put into it.
    fs::remove_dir(desk.path("home")).unwrap();
    desk.says(&["--read", &above, "--write", ".", "--", "true"]);
    assert!(!desk.path("home").exists());
    // Nor is another made in its place, when what is around it is moved away.
    let deep = desk.text("work/not/yet/home");
    let script = format!(
        "mkdir -p {deep}/keys || mv not gone || mv not/yet gone || mv not/yet/home gone || rm -r not"
    );
    for _ in ["not made yet", "made"] {
        let arguments = ["--home", &deep, "sandbox", "--write", ".", "--", "sh", "-c", &script];
        assert_ne!(desk.haft(&arguments).code, 0);
        assert_eq!(names(&desk.path("work/not/yet/home")), Vec::<String>::new());
    }
    // And what is granted to be read does not become writable by it.
    let grants = ["--home", &deep, "sandbox", "--write", ".", "--read", "not", "--"];
    let ran = desk.haft(&[&grants[..], &["touch", "not/new", "not/yet/new"]].concat());
    assert_eq!((ran.code, names(&desk.path("work/not"))), (1, vec!["yet".to_owned()]));
    assert_eq!(names(&desk.path("work/not/yet")), ["home"]);
}

fn two_share_a_folder(desk: &Desk) {
    let shared = desk.make_folder("shared");
    let path = shared.to_str().unwrap();
    // Each waits for the other, so both are inside at the same time.
    let script = "echo $1 > $1; n=0; until [ -e $2 ]; do n=$((n+1)); [ $n -gt 2000 ] && exit 9; sleep 0.01; done; cat $2";
    let run = |own: &'static str, other: &'static str| {
        let arguments =
            ["--write", path, "--folder", path, "--", "sh", "-c", script, "sh", own, other];
        desk.sandbox(&arguments)
    };
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| run("one", "two"));
        let two = scope.spawn(|| run("two", "one"));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_eq!((one.code, &*one.stdout), (0, "two\n"), "{}", one.stderr);
    assert_eq!((two.code, &*two.stdout), (0, "one\n"), "{}", two.stderr);
    assert_eq!(names(&shared), ["one", "two"], "nothing of ours is left");
}
