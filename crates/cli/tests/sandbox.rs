//! `haft sandbox`: any program, inside the walls. Everything is done twice: by the user who runs
//! the tests, and, where that is root, by an ordinary user. Walls below L2 fail every test here.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;
#[macro_use]
mod walls;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Ran, names};
use walls::{Desk, PATIENCE, PYTHON, ended, eventually, ran, send};

for_everybody![
    exit_codes_are_passed_on,
    a_signal_is_told_as_128_and_its_number,
    a_program_past_its_deadline_is_ended,
    a_program_past_its_memory_is_ended,
    a_program_gets_no_more_processes_than_it_may,
    the_scratch_folder_holds_what_it_may,
    what_is_not_granted_is_not_there,
    what_is_granted_to_be_read_cannot_be_written,
    what_is_granted_to_be_written_is_changed_outside,
    nothing_is_planted_that_another_program_would_run,
    the_hooks_and_settings_of_a_repository_stay_as_they_are,
    a_grant_may_be_relative_or_through_a_link,
    a_grant_that_is_missing_or_everything_is_refused,
    it_starts_here_if_this_is_granted_else_in_the_scratch_folder,
    the_environment_is_not_passed_on,
    variables_are_given_by_name_and_by_value,
    standard_input_is_passed_on,
    large_output_is_passed_on_whole,
    a_reader_that_leaves_ends_the_program,
    a_program_that_is_none_is_told,
    what_follows_the_program_is_its_own,
    the_walls_are_never_lowered,
    a_report_says_how_it_ended_and_what_it_used,
    the_home_is_hidden_unless_a_part_of_it_is_named,
    a_home_that_is_not_made_yet_is_not_made_by_a_program,
    a_report_is_not_written_where_the_program_leads_it,
    a_script_is_found_by_its_relative_path,
    a_virtual_environment_is_found_and_nothing_beside_it,
    an_argument_that_is_not_granted_is_hinted_at,
    an_interrupt_ends_all_of_it,
    nothing_outlives_haft,
    two_share_a_folder,
    a_terminal_is_seen_and_cannot_be_typed_into,
    what_is_typed_is_read_and_ctrl_c_ends_it,
];

fn exit_codes_are_passed_on(desk: &Desk) {
    for code in [0, 1, 2, 7, 70, 127, 255] {
        let ran = desk.sandbox(&["--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (code, "", ""));
    }
}

fn a_signal_is_told_as_128_and_its_number(desk: &Desk) {
    for (name, code) in [("KILL", 137), ("TERM", 143), ("SEGV", 139), ("HUP", 129), ("INT", 130)] {
        let ran = desk.sandbox(&["--", "sh", "-c", &format!("kill -{name} $$")]);
        assert_eq!((ran.code, &*ran.stderr), (code, ""), "{name}");
    }
}

fn a_program_past_its_deadline_is_ended(desk: &Desk) {
    let began = Instant::now();
    let said = desk.refused(&["--timeout", "300ms", "--", "sleep", "1000"], 1);
    assert_said!(said, @r"
    error: `sleep` ran past its deadline
    hint: --timeout sets how long it may run
    ");
    assert!(began.elapsed() < Duration::from_secs(20));
}

fn a_program_past_its_memory_is_ended(desk: &Desk) {
    let greedy = "x = bytearray(400 << 20); print(len(x))";
    let said = desk.refused(&["--memory", "64M", "--", PYTHON, "-c", greedy], 1);
    assert_said!(said, @r"
    error: `/usr/bin/python3` used more memory than it may
    hint: --memory gives it more
    ");
    let modest = desk.says(&["--memory", "600M", "--", PYTHON, "-c", greedy]);
    assert_eq!(modest, "419430400\n");
}

/// Starts as many as it can; says how many, and ends with 5 when it is refused one.
const MANY: &str = "
import os, signal
count = 0
try:
    while count < 100:
        if os.fork() == 0:
            signal.pause()
        count += 1
except BlockingIOError:
    print(count, flush=True)
    os._exit(5)
signal.alarm(20)
signal.pause()
";

fn a_program_gets_no_more_processes_than_it_may(desk: &Desk) {
    let ran = desk.sandbox(&["--processes", "20", "--", PYTHON, "-c", MANY]);
    assert_eq!((ran.code, &*ran.stderr), (5, ""));
    let count: u32 = ran.stdout.trim().parse().unwrap();
    assert!((10..20).contains(&count), "{count} beside the first");
}

#[test]
fn where_the_kernel_refuses_root_no_process_the_watchdog_ends_it() {
    let desk = Desk::of_ours();
    if !desk.is_of_root() {
        return; // An ordinary user is refused by the kernel, always.
    }
    // Without control groups nothing else bounds the processes of root.
    let mut command = desk.command("strace");
    command.args(["-f", "-o", "/dev/null", "-e", "trace=mkdir", "-e", "inject=mkdir:error=EACCES"]);
    command.args([desk.program(), "sandbox", "--processes", "20", "--", PYTHON, "-c", MANY]);
    let ran = ran(command, b"");
    assert_eq!((ran.code, &*ran.stdout), (1, ""));
    assert_said!(ran.stderr, @r"
    error: `/usr/bin/python3` started more processes than it may
    hint: --processes allows more
    ");
}

fn the_scratch_folder_holds_what_it_may(desk: &Desk) {
    let fill = ["--", "sh", "-c", "head -c 3000000 /dev/zero > /tmp/file"];
    let ran = desk.sandbox(&[&["--scratch", "1M"], &fill[..]].concat());
    assert!(ran.code != 0 && ran.stderr.contains("No space left"), "{}", ran.stderr);
    desk.says(&[&["--scratch", "4M"], &fill[..]].concat());
}

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

fn the_environment_is_not_passed_on(desk: &Desk) {
    let mut command = desk.haft_command(&["sandbox", "--", "env"]);
    command.env("API_KEY", "s3cret").env("SSH_AUTH_SOCK", "/run/agent").env("LD_PRELOAD", "");
    command.env("TERM", "dumb").env("LANG", "de_DE.UTF-8").env("TZ", "UTC");
    let ran = ran(command, b"");
    let mut lines: Vec<_> = ran.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "HOME=/tmp",
            "LANG=de_DE.UTF-8",
            "PATH=/usr/local/bin:/usr/bin:/bin",
            "TERM=dumb",
            "TMPDIR=/tmp",
            "TZ=UTC"
        ],
        "each once, and nothing of ours"
    );
}

fn variables_are_given_by_name_and_by_value(desk: &Desk) {
    let given = ["--env", "MINE", "--env", "A=1=2", "--env", "EMPTY=", "--env", "HOME=/elsewhere"];
    let show =
        "import os; print(*[os.environ[n] for n in ('MINE', 'A', 'EMPTY', 'HOME')], sep='|')";
    let mut command =
        desk.haft_command(&[&["sandbox"], &given[..], &["--", PYTHON, "-c", show]].concat());
    command.env("MINE", "s3cret");
    let ran = ran(command, b"");
    assert_eq!((ran.code, &*ran.stdout), (0, "s3cret|1=2||/elsewhere\n"), "{}", ran.stderr);
    assert_eq!(desk.says(&["--env", "A=1", "--env", "A=2", "--", "printenv", "A"]), "2\n");
    assert_said!(desk.refused(&["--env", "NOT_HERE", "--", "echo", "ran"], 2), @r"
    error: there is no variable `NOT_HERE` to pass on
    hint: --env NOT_HERE=VALUE sets it
    ");
    desk.refused(&["--env", "=x", "--", "echo", "ran"], 2);
}

fn standard_input_is_passed_on(desk: &Desk) {
    let given: Vec<u8> = (0..3_000_000_u32).map(|n| b'a' + (n % 26) as u8).collect();
    let counting = ran(desk.haft_command(&["sandbox", "--", "sha256sum"]), &given);
    let outside = ran(desk.command("sha256sum"), &given);
    assert_eq!((counting.code, counting.stdout), (0, outside.stdout));
    assert_eq!(ran(desk.haft_command(&["sandbox", "--", "cat"]), b"").stdout, "");
}

fn large_output_is_passed_on_whole(desk: &Desk) {
    // More than a program may write whose output we read ourselves.
    let script = "head -c 80000000 /dev/zero; head -c 1000000 /dev/zero >&2; exit 3";
    let ran = desk.sandbox(&["--", "sh", "-c", script]);
    assert_eq!((ran.code, ran.stdout.len(), ran.stderr.len()), (3, 80_000_000, 1_000_000));
}

fn a_reader_that_leaves_ends_the_program(desk: &Desk) {
    let mut command = desk.command("bash");
    command.args(["-c", "\"$0\" sandbox -- yes | head -1; echo ${PIPESTATUS[0]}", desk.program()]);
    let Ran { stdout, stderr, .. } = ran(command, b"");
    assert_eq!((&*stdout, &*stderr), ("y\n141\n", ""), "128 and the number of SIGPIPE");
}

fn a_program_that_is_none_is_told(desk: &Desk) {
    assert_said!(desk.refused(&["--", "no-such-program"], 3), @"error: there is no program `no-such-program`");
    assert_said!(desk.refused(&["--", "./missing"], 3), @"error: there is no program `./missing`");
    desk.write("work/text", "hello");
    let said = desk.refused(&["--", &desk.text("work/text")], 3);
    assert_said!(said, @"error: `[DESK]/work/text` is not a program that can be executed");
    desk.refused(&["--", "/usr"], 3);
    desk.write_program("work/garbage", "\x01\x02 nothing a kernel knows");
    assert_said!(desk.refused(&["--", "./garbage"], 2), @r"
    error: failed to execute `[DESK]/work/garbage` inside the walls
      caused by: Exec format error (os error 8)
    hint: it has no first line such as `#!/bin/sh`, or is made for another processor
    ");
    let ran = desk.sandbox(&[]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("<CMD>..."), "{}", ran.stderr);
}

fn what_follows_the_program_is_its_own(desk: &Desk) {
    assert_eq!(desk.says(&["--", "echo", "--read", "/", "-q"]), "--read / -q\n");
    assert_eq!(desk.says(&["echo", "--timeout", "1ms", "--help"]), "--timeout 1ms --help\n");
    assert_eq!(desk.says(&["--", "sh", "-c", "echo \"$@\"", "sh", "--", "a b"]), "-- a b\n");
    assert_eq!(desk.says(&["--", "printf", "%s|", "a b", "", "$HOME"]), "a b||$HOME|");
    for typo in ["--tiemout", "-x"] {
        let said = desk.refused(&[typo, "--", "echo", "ran"], 2);
        assert!(said.starts_with(&format!("error: unexpected argument '{typo}'")), "{said}");
    }
}

fn the_walls_are_never_lowered(desk: &Desk) {
    for level in ["L0", "L1"] {
        let said = desk.refused(&["--require", level, "--", "echo", "ran"], 2);
        let words = format!(
            "error: invalid value '{level}' for '--require <LEVEL>': only L2 and L3; no flag lowers the walls\n"
        );
        assert!(said.starts_with(&words), "{said}");
    }
    desk.refused(&["--require", "3", "--", "echo", "ran"], 2);
    assert_eq!(desk.says(&["--require", "L2", "--", "echo", "ran"]), "ran\n");
    let (ran, report) = desk.reported(&["--", "true"]);
    assert_eq!(ran.code, 0);
    if report["level"] == "L3" {
        assert_eq!(desk.says(&["--require", "L3", "--", "echo", "ran"]), "ran\n");
        return;
    }
    let said = desk.refused(&["--require", "L3", "--", "echo", "ran"], 6);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[0], "error: the walls of this machine reach L2, L3 is required");
    assert!(lines[1].starts_with("  control groups: failed to "), "{said}");
    assert_eq!(lines[2], "hint: `haft doctor` shows what is missing and how to get it");
    assert_eq!(lines.len(), 3);
}

fn a_report_says_how_it_ended_and_what_it_used(desk: &Desk) {
    let busy = "import time; x = bytearray(50 << 20); t = time.process_time()\nwhile time.process_time() - t < 0.2: pass\nraise SystemExit(9)";
    let (ran, report) = desk.reported(&["--", PYTHON, "-c", busy]);
    assert_eq!((ran.code, &*ran.stderr), (9, ""));
    let keys: Vec<_> = report.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["level", "ended", "code", "signal", "usage", "network"]);
    assert_eq!(report["ended"], "ended with code 9");
    assert_eq!((&report["code"], &report["signal"]), (&9.into(), &serde_json::Value::Null));
    let used = |name: &str| report["usage"][name].as_u64().unwrap();
    assert!(used("wall_ms") >= 190 && used("user_ms") + used("system_ms") >= 190, "{report}");
    assert!((40 << 20..400 << 20).contains(&used("peak_memory")), "{report}");
    assert_eq!(report["network"], serde_json::json!([]));
    assert!(["L2", "L3"].contains(&report["level"].as_str().unwrap()), "{report}");
    let (_, report) = desk.reported(&["--", "sh", "-c", "kill -9 $$"]);
    assert_eq!((&report["ended"], &report["signal"]), (&"was ended by signal 9".into(), &9.into()));
    let (ran, report) = desk.reported(&["--timeout", "100ms", "--", "sleep", "100"]);
    assert_eq!((ran.code, &report["ended"]), (1, &"ran past its deadline".into()));
    assert!(report["code"].is_null() && report["signal"].is_null());
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

fn a_report_is_not_written_where_the_program_leads_it(desk: &Desk) {
    let elsewhere = desk.make_folder("elsewhere");
    let report = "below/report.json";
    for script in ["rm -rf below; ln -s ../elsewhere below", "mv below b; ln -s ../elsewhere below"]
    {
        let said = desk.refused(&["--write", ".", "--report", report, "--", "sh", "-c", script], 5);
        assert!(
            said.starts_with("error: `[DESK]/work/below` is not the folder it was\n"),
            "{said}"
        );
        assert_eq!(names(&elsewhere), Vec::<String>::new());
        fs::remove_file(desk.path("work/below")).unwrap();
    }
    // A link in the file's own place is replaced, not followed.
    let script = "ln -s ../elsewhere/report.json below/report.json";
    desk.says(&["--write", ".", "--report", report, "--", "sh", "-c", script]);
    assert_eq!(names(&elsewhere), Vec::<String>::new());
    assert!(desk.read("work/below/report.json").starts_with('{'));
    desk.refused(&["--report", "..", "--", "echo", "ran"], 2);
}

fn a_script_is_found_by_its_relative_path(desk: &Desk) {
    desk.write_program("work/x.sh", "#!/bin/sh\necho \"$0\" \"$@\"; pwd; ls -A $(dirname $0)\n");
    desk.write("work/beside", "");
    let path = desk.text("work/x.sh");
    let said = desk.says(&["--", "./x.sh", "a", "b"]);
    let here = desk.text("work");
    assert_eq!(said, format!("{path} a b\n{here}\nx.sh\n"), "it alone is granted");
    desk.write_program("work/y.py", "#!/usr/bin/env python3\nimport sys; print(sys.argv[1])\n");
    assert_eq!(desk.says(&["./y.py", "c"]), "c\n");
}

fn a_virtual_environment_is_found_and_nothing_beside_it(desk: &Desk) {
    let mut command = desk.command(PYTHON);
    command.args(["-m", "venv", "--without-pip", "venv"]);
    let made = ran(command, b"");
    assert_eq!(made.code, 0, "{}{}", made.stdout, made.stderr);
    let venv = desk.text("work/venv");
    let lib = fs::read_dir(desk.path("work/venv/lib")).unwrap().next().unwrap().unwrap().path();
    fs::write(lib.join("site-packages/own.py"), "word = 'from the venv'").unwrap();
    desk.write("work/venv/private", "s3cret");
    let script = "import sys, os, own; print(sys.prefix, own.word, os.path.exists(sys.prefix + '/private'), os.environ['PATH'].split(':')[0])";
    let expected = format!("{venv} from the venv False {venv}/bin\n");
    assert_eq!(desk.says(&["--", "venv/bin/python", "-c", script]), expected);
    desk.write_program("work/venv/bin/tool", format!("#!{venv}/bin/python\n{script}\n"));
    let mut command = desk.haft_command(&["sandbox", "--", "tool"]);
    command.env("PATH", format!("{venv}/bin:/usr/bin:/bin"));
    assert_eq!(ran(command, b"").stdout, expected);
}

fn an_argument_that_is_not_granted_is_hinted_at(desk: &Desk) {
    desk.write("work/notes.txt", "notes\n");
    let hint = "hint: `notes.txt` is here but not inside the walls; --read or --write grants it\n";
    let ran = desk.sandbox(&["--", "cat", "notes.txt"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.ends_with(hint), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 2);
    // Not where it is granted, is the system's, is not there, or nothing failed.
    for arguments in [
        &["--read", ".", "--", "sh", "-c", "exit 1", "notes.txt"][..],
        &["--", "sh", "-c", "exit 1", "/usr/bin/env", "missing", ""],
        &["--", "echo", "notes.txt"],
    ] {
        assert_eq!(desk.sandbox(arguments).stderr, "", "{arguments:?}");
    }
    let ran = desk.haft(&["--quiet", "sandbox", "--", "sh", "-c", "exit 1", "notes.txt"]);
    assert_eq!((ran.code, &*ran.stderr), (1, ""));
}

/// Writes a growing file for as long as it lives, also when its parent is gone and signals come.
const HEART: &str = "
import os, signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
if os.fork() == 0: os.setsid()
with open(sys.argv[1], 'a') as file:
    while True:
        file.write('.'); file.flush(); time.sleep(0.01)
";

/// Starts one whose heart beats, and waits for it.
fn beating(desk: &Desk) -> (std::process::Child, std::path::PathBuf) {
    let folder = desk.make_folder("beat");
    let path = folder.join("beat");
    let (folder, shown) = (desk.text("beat"), desk.text("beat/beat"));
    let mut command =
        desk.haft_command(&["sandbox", "--write", &folder, "--", PYTHON, "-c", HEART, &shown]);
    let child = command.stdin(Stdio::null()).spawn().unwrap();
    assert!(eventually(PATIENCE, || length(&path) > 5), "it begins");
    (child, path)
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

/// Whether a file stops growing within two seconds: nothing is added for as long as 30 beats.
fn stops(path: &Path) -> bool {
    let until = Instant::now() + Duration::from_secs(2);
    let (mut last, mut since) = (length(path), Instant::now());
    eventually(Duration::from_secs(3), || {
        if length(path) != last {
            (last, since) = (length(path), Instant::now());
        }
        since.elapsed() > Duration::from_millis(300)
    }) && since < until
}

fn an_interrupt_ends_all_of_it(desk: &Desk) {
    for signal in ["INT", "TERM"] {
        let (mut child, path) = beating(desk);
        send(signal, &child);
        let status = ended(&mut child, Duration::from_secs(10)).expect("haft ends");
        assert_eq!(status.code(), Some(130), "{signal}");
        assert!(stops(&path), "{signal}");
        assert_eq!(names(&desk.path("beat")), ["beat"], "nothing of ours is left");
        fs::remove_file(&path).unwrap();
    }
}

fn nothing_outlives_haft(desk: &Desk) {
    let (mut child, path) = beating(desk);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(stops(&path));
    let is_clean = || names(&desk.path("beat")) == ["beat"];
    assert!(eventually(Duration::from_secs(5), is_clean), "{:?}", names(&desk.path("beat")));
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

/// Runs a program at a terminal of 97 columns and 31 lines, types a text (in hex) when it is asked
/// something, and prints what the screen shows.
const SCREEN: &str = "
import fcntl, os, pty, signal, struct, sys, termios
signal.alarm(60)
typed = bytes.fromhex(sys.argv.pop(1))
ready, go = os.pipe()
child, terminal = pty.fork()
if child == 0:
    os.read(ready, 1)
    os.execv(sys.argv[1], sys.argv[1:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', 31, 97, 0, 0))
os.write(go, b'.')
screen = b''
try:
    while piece := os.read(terminal, 4096):
        screen += piece
        if screen.endswith(b'? '):
            os.write(terminal, typed)
except OSError: pass
sys.stdout.write(screen.decode().replace('\\r', ''))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";

/// Looks at its terminal, and tries to type into it.
const AT_THE_TERMINAL: &str = "
import fcntl, os, termios
print([os.isatty(number) for number in range(3)], os.get_terminal_size(0))
for request in (termios.TIOCSTI, termios.TIOCSTI | 1 << 32, 0x541C, termios.TIOCSETD):
    try:
        fcntl.ioctl(0, request - (1 << 32) if request >> 32 else request, b'x')
        print('typed')
    except OSError as error: print(error.strerror)
try: print('its own' if open('/dev/tty').isatty() else 'none')
except OSError as error: print(error.strerror)
";

fn a_terminal_is_seen_and_cannot_be_typed_into(desk: &Desk) {
    let ran = at_a_terminal(desk, "", AT_THE_TERMINAL);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_said!(ran.stdout, @r"
    [True, True, True] os.terminal_size(columns=97, lines=31)
    Operation not permitted
    Operation not permitted
    Operation not permitted
    Operation not permitted
    its own
    ");
}

/// Runs a script of Python inside the walls at a terminal, at which this is typed.
fn at_a_terminal(desk: &Desk, typed: &str, script: &str) -> Ran {
    let hex: String = typed.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut command = desk.command(PYTHON);
    command.args(["-c", SCREEN, &hex, desk.program(), "sandbox", "--", PYTHON, "-c", script]);
    ran(command, b"")
}

fn what_is_typed_is_read_and_ctrl_c_ends_it(desk: &Desk) {
    let ask = "print('hello', input('who? '))";
    let ran = at_a_terminal(desk, "you\n", ask);
    assert_eq!((ran.code, &*ran.stdout), (0, "who? you\nhello you\n"), "{}", ran.stderr);
    let plain = "import signal; signal.signal(2, signal.SIG_DFL); input('who? ')";
    let ran = at_a_terminal(desk, "\x03", plain);
    assert_eq!((ran.code, &*ran.stdout), (130, "who? ^C"), "{}", ran.stderr);
    // One that does not listen is ended when it is told again.
    let deaf = "import signal; signal.signal(2, signal.SIG_IGN); input('who? '); input()";
    let ran = at_a_terminal(desk, "\x03\x03\x03", deaf);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("was cancelled"), "{}", ran.stdout);
}
