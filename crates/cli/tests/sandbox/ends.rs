//! How it ends, by itself or because it must, and what is reported of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::names;
use crate::walls::{Desk, PATIENCE, PYTHON, ended, eventually, ran, send};

for_everybody![
    exit_codes_are_passed_on,
    a_signal_is_told_as_128_and_its_number,
    a_program_past_its_deadline_is_ended,
    a_program_past_its_memory_is_ended,
    a_program_gets_no_more_processes_than_it_may,
    the_scratch_folder_holds_what_it_may,
    the_walls_are_never_lowered,
    a_report_says_how_it_ended_and_what_it_used,
    a_report_is_not_written_where_the_program_leads_it,
    an_interrupt_ends_all_of_it,
    nothing_outlives_haft,
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

fn a_report_is_not_written_where_the_program_leads_it(desk: &Desk) {
    let elsewhere = desk.make_folder("elsewhere");
    let report = "below/report.json";
    for script in ["rm -rf below; ln -s ../elsewhere below", "mv below b; ln -s ../elsewhere below"]
    {
        desk.make_folder("work/below");
        let said = desk.refused(&["--write", ".", "--report", report, "--", "sh", "-c", script], 5);
        assert!(
            said.starts_with("error: `[DESK]/work/below` is not the folder it was\n"),
            "{said}"
        );
        assert_eq!(names(&elsewhere), Vec::<String>::new());
        fs::remove_file(desk.path("work/below")).unwrap();
    }
    desk.make_folder("work/below");
    // A link in the file's own place is replaced, not followed.
    let script = "ln -s ../elsewhere/report.json below/report.json";
    desk.says(&["--write", ".", "--report", report, "--", "sh", "-c", script]);
    assert_eq!(names(&elsewhere), Vec::<String>::new());
    assert!(desk.read("work/below/report.json").starts_with('{'));
    desk.refused(&["--report", "..", "--", "echo", "ran"], 2);
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
fn beating(desk: &Desk) -> (Child, PathBuf) {
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
