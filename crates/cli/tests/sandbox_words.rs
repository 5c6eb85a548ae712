//! What `haft sandbox` says when it is asked for something that it does not do.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;
#[macro_use]
mod walls;

use std::process::Stdio;
use std::time::Duration;

use walls::{Desk, PATIENCE, ended, eventually, send};

for_everybody![
    a_host_that_is_none_is_explained,
    a_number_below_nothing_is_explained,
    one_document_of_json_is_not_to_be_had,
    a_report_needs_a_file,
    a_report_is_written_when_haft_is_told_to_stop,
    a_script_without_its_interpreter_is_explained,
    walls_inside_walls_are_explained,
    a_program_whose_protected_files_are_replaced_is_ended,
];

fn a_host_that_is_none_is_explained(desk: &Desk) {
    for (host, words) in [
        (
            "https://api.example.com/v1",
            "it has a scheme or a path, and a host has neither; write `api.example.com`",
        ),
        (
            "a..example.com",
            "a label of the name is empty; hosts are written api.example.com, *.example.com, example.com:8443, 10.0.0.0/8",
        ),
        (
            "example.com:99999",
            "the port is no plain number from 1 to 65535; hosts are written api.example.com, *.example.com, example.com:8443, 10.0.0.0/8",
        ),
    ] {
        for flag in ["--allow-host", "--allow-private-host"] {
            let said = desk.refused(&[flag, host, "--", "true"], 2);
            let first = format!("error: invalid value '{host}' for '{flag} <HOST>': {words}");
            assert_eq!(said.lines().next(), Some(&*first));
        }
    }
}

fn a_number_below_nothing_is_explained(desk: &Desk) {
    for (flag, words) in [
        (
            "--timeout",
            "'--timeout <TIME>': write a time such as 90 (seconds), 500ms, 5m, 2h or 30d",
        ),
        ("--memory", "'--memory <SIZE>': write a size such as 64K, 512M or 2G"),
        ("--scratch", "'--scratch <SIZE>': write a size such as 64K, 512M or 2G"),
        ("--cpus", "'--cpus <N>': write a number from 0.01 to 1024"),
        ("--processes", "'--processes <N>': -1 is not in 1..=32000"),
    ] {
        let said = desk.refused(&[flag, "-1", "--", "true"], 2);
        assert_eq!(said.lines().next(), Some(&*format!("error: invalid value '-1' for {words}")));
    }
    for (flag, value, words) in [
        ("--timeout", "0", "it must be more than nothing"),
        ("--timeout", "99999999999999999999", "that is longer than can be counted"),
        ("--memory", "99999999999999999T", "that is more than there can be"),
        ("--scratch", "0", "it must be more than nothing"),
    ] {
        let said = desk.refused(&[flag, value, "--", "true"], 2);
        assert!(said.lines().next().is_some_and(|line| line.ends_with(words)), "{flag}: {said}");
    }
}

fn one_document_of_json_is_not_to_be_had(desk: &Desk) {
    for arguments in [["--json", "sandbox", "--", "true"], ["sandbox", "--json", "--", "true"]] {
        let ran = desk.haft(&arguments);
        assert_eq!((ran.code, &*ran.stderr), (2, ""));
        let error = &ran.json()["error"];
        assert_eq!(
            error["message"],
            "what is printed is the program's own, so --json has no meaning here"
        );
        assert_eq!(
            error["hints"][0],
            "--report FILE writes what it used and whom it tried to reach as JSON"
        );
    }
    assert_eq!(desk.says(&["--", "echo", "--json"]), "--json\n");
}

fn a_report_needs_a_file(desk: &Desk) {
    assert_said!(desk.refused(&["--report", "-", "--", "true"], 2), @r"
    error: standard output is the program's own, so the report needs a file
    hint: --report ./- names a file called `-`
    ");
    assert_eq!(desk.says(&["--report", "./-", "--", "true"]), "");
    assert!(desk.read("work/-").contains("ended with code 0"));
}

fn a_report_is_written_when_haft_is_told_to_stop(desk: &Desk) {
    for signal in ["INT", "TERM"] {
        let (report, folder) = (desk.text("report.json"), desk.make_folder("out"));
        let script = "touch begun; exec sleep 1000";
        let mut command = desk.haft_command(&["sandbox", "--report", &report, "--write"]);
        command.arg(&folder).arg("--folder").arg(&folder).args(["--", "sh", "-c", script]);
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        assert!(eventually(PATIENCE, || folder.join("begun").exists()), "it begins");
        send(signal, &child);
        let status = ended(&mut child, Duration::from_secs(10)).expect("haft ends");
        assert_eq!(status.code(), Some(130), "{signal}");
        let report: serde_json::Value = serde_json::from_str(&desk.read("report.json")).unwrap();
        assert_eq!(report["ended"], "was cancelled", "{signal}");
        assert_eq!(common::names(&folder), ["begun"], "nothing of ours is left");
        std::fs::remove_file(folder.join("begun")).unwrap();
        std::fs::remove_file(desk.path("report.json")).unwrap();
    }
}

fn a_script_without_its_interpreter_is_explained(desk: &Desk) {
    desk.write_program("work/script", "#!/opt/no-such/interpreter -x\n");
    assert_said!(desk.refused(&["--", "./script"], 3), @r"
    error: failed to execute `[DESK]/work/script` inside the walls
      caused by: its first line asks for `/opt/no-such/interpreter`, which is not inside the walls
    hint: write one that is inside the walls into its first line, such as `/bin/sh`
    ");
    desk.write_program("work/script", "#!/bin/sh\r\n");
    assert_said!(desk.refused(&["--", "./script"], 3), @r"
    error: failed to execute `[DESK]/work/script` inside the walls
      caused by: its first line ends with a carriage return, and what it asks for is not inside the walls
    hint: save it with the line ends of Unix
    ");
    desk.write_program("work/script", "\x7fELF of nobody\n");
    assert_said!(desk.refused(&["--", "./script"], 2), @r"
    error: failed to execute `[DESK]/work/script` inside the walls
      caused by: it is made for another processor or system
    hint: get the one that is made for this machine
    ");
    desk.write_program("work/script", "echo there is no first line\n");
    assert_said!(desk.refused(&["--", "./script"], 2), @r"
    error: failed to execute `[DESK]/work/script` inside the walls
      caused by: it has no first line such as `#!/bin/sh`
    hint: write the program that runs it into a first line, after `#!`
    ");
}

fn walls_inside_walls_are_explained(desk: &Desk) {
    let ran = desk.sandbox(&["--", desk.program(), "sandbox", "--", "true"]);
    assert_eq!((ran.code, &*ran.stdout), (6, ""), "{}", ran.stderr);
    assert_said!(ran.stderr, @r"
    error: this is inside the walls of another haft, and none can be built in there
    hint: start the program itself: the walls around this one hold it too
    ");
    let inside = desk.sandbox(&["--", desk.program(), "schema"]);
    assert_eq!(inside.code, 0, "everything else works: {}", inside.stderr);
    let ran = desk.sandbox(&["--", desk.program(), "doctor"]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_said!(ran.stderr, @r"
    error: this is inside the walls of another haft, and none can be built in there
    hint: start the program itself: the walls around this one hold it too
    ");
}

fn a_program_whose_protected_files_are_replaced_is_ended(desk: &Desk) {
    let folder = desk.make_folder("out");
    desk.write("out/.mcp.json", "{}\n");
    let mut command = desk.haft_command(&["sandbox", "--write"]);
    command.arg(&folder).arg("--folder").arg(&folder);
    command.args(["--", "sh", "-c", "touch begun; exec sleep 1000"]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(eventually(PATIENCE, || folder.join("begun").exists()), "it begins");
    desk.write("out/new", "{}\n");
    std::fs::rename(folder.join("new"), folder.join(".mcp.json")).unwrap();
    let status = ended(&mut child, Duration::from_secs(10)).expect("haft ends");
    assert_eq!(status.code(), Some(1));
    let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert_said!(said, @r"
    error: `sh` was ended, because something protected in a folder it may write was moved or replaced from outside
    hint: while it runs, leave what docs/sandbox.md lists alone in the folders of --write; then run it again
    ");
}
