//! Which program is run, with which words, variables and streams.

use std::fs;

use crate::common::Ran;
use crate::walls::{Desk, PYTHON, ran};

for_everybody![
    the_environment_is_not_passed_on,
    variables_are_given_by_name_and_by_value,
    standard_input_is_passed_on,
    large_output_is_passed_on_whole,
    a_reader_that_leaves_ends_the_program,
    a_program_that_is_none_is_told,
    what_follows_the_program_is_its_own,
    a_script_is_found_by_its_relative_path,
    a_virtual_environment_is_found_and_nothing_beside_it,
    an_argument_that_is_not_granted_is_hinted_at,
];

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
    assert_said!(said, @r"
    error: `[DESK]/work/text` is not a program that can be executed
    hint: `chmod +x [DESK]/work/text` lets it be executed
    ");
    desk.refused(&["--", "/usr"], 3);
    desk.write_program("work/garbage", "\x01\x02 nothing a kernel knows");
    assert_said!(desk.refused(&["--", "./garbage"], 2), @r"
    error: failed to execute `[DESK]/work/garbage` inside the walls
      caused by: it has no first line such as `#!/bin/sh`
    hint: write the program that runs it into a first line, after `#!`
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
