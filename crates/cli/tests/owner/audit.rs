//! `haft audit`: what was called, and whether the log of it is whole.

use serde_json::{Value, json};

use crate::common::repository;
use crate::desk::{Desk, PACKAGE, closed};

#[test]
fn listing_the_tools_of_a_server_is_written_down() {
    let desk = Desk::new();
    let from = repository().join("examples/install-manifest/dice-server");
    let ran = desk.run(&["--json", "call", "--from", from.to_str().unwrap(), "nothing"], None);
    assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
    let log = desk.done(&["audit"]).stdout;
    assert!(log.lines().count() == 1 && log.contains(" tools/list ok, "), "{log}");
    desk.write("home/policy.toml", "[package.\"dice-server\"]\nallow = false\n");
    let ran = desk.run(&["--json", "call", "--from", from.to_str().unwrap(), "nothing"], None);
    let told = ran.json();
    assert_eq!((ran.code, &told["error"]["code"]), (4, &json!("denied")), "{told}");
    assert_eq!(told["attempts"], 0);
    let log = desk.done(&["audit", "--outcome", "denied"]).stdout;
    assert!(log.contains(" terminal install-manifest:dice-server tools/list refused: "), "{log}");
}

#[test]
fn every_call_and_every_refusal_is_in_the_log_and_a_change_is_found() {
    let desk = Desk::new();
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    assert_eq!(desk.call(&manifest).code, 0);
    desk.write("home/policy.toml", "[package.\"demo.tool\"]\nallow = false\n");
    assert_eq!(desk.call(&manifest).code, 4);
    let lines = desk.done(&["audit", "--json"]).stdout;
    let records: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = records.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["begin", "end", "call"]);
    assert_eq!(
        (&records[1]["decision"], &records[2]["decision"]),
        (&json!("allowed"), &json!("denied"))
    );
    // What ran is told whole by its end.
    let fields =
        ["ts", "tool", "argv", "cwd", "exit", "ms", "stdoutBytes", "stderrBytes", "truncated"];
    for field in fields {
        assert!(!records[1][field].is_null(), "{field}: {}", records[1]);
    }
    assert_eq!(records[1]["package"], PACKAGE);
    assert!(records[1]["sandbox"].as_str().unwrap().starts_with('L'));
    let shown = desk.done(&["audit"]).stdout;
    let [ran, refused] = shown.lines().collect::<Vec<_>>()[..] else { panic!("{shown}") };
    assert!(ran.contains(" ok, ") && refused.contains(" refused: denied, "), "{shown}");
    let sound = desk.done(&["audit", "verify"]).stdout;
    assert!(sound.starts_with("3 records in `") && sound.ends_with("`, unbroken\n"), "{sound}");
    let log = desk.log();
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, text.replacen("denied", "allowd", 1)).unwrap();
    let broken = desk.run(&["audit", "verify"], None);
    assert_eq!(broken.code, 1, "{}", broken.stdout);
    assert!(broken.stdout.contains(":3"), "{}", broken.stdout);
    let shown = desk.done(&["audit"]).stderr;
    assert!(shown.contains("1 line is not as it was written"), "{shown}");
}

#[test]
fn a_call_that_a_bad_policy_refuses_is_in_the_log() {
    let desk = Desk::new();
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    desk.write("home/policy.toml", "[nonsense]\n");
    assert_eq!(desk.call(&manifest).code, 2);
    // What is only explained is no call.
    let explained = desk.run(&["call", "--from", &manifest, "--explain", "demo.tool"], None);
    assert_eq!(explained.code, 2);
    let lines = desk.done(&["--json", "audit", "--outcome", "invalid_policy"]).stdout;
    let record: Value = serde_json::from_str(lines.trim_end()).unwrap();
    assert_eq!((&record["decision"], &record["package"]), (&json!("denied"), &json!(PACKAGE)));
    assert_eq!(record["action"], "demo.tool", "{record}");
    let reason = record["reason"].as_str().unwrap();
    assert!(reason.ends_with("is no policy"), "{reason}");
}

#[test]
fn of_a_line_that_was_edited_only_what_is_true_is_told() {
    let desk = Desk::new();
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    for _ in 0..2 {
        assert_eq!(desk.call(&manifest).code, 0);
    }
    let log = desk.log();
    let text = std::fs::read_to_string(&log).unwrap();
    let end = text.lines().nth(1).unwrap();
    assert!(end.contains("\"kind\":\"end\""), "{end}");
    let edited = end.replace("\"outcome\":\"ok\"", "\"outcome\":\"no\"");
    std::fs::write(&log, text.replace(end, &edited)).unwrap();
    let name = log.file_name().unwrap().to_str().unwrap();
    let told = |records: u64| {
        let ran = desk.run(&["audit", "verify"], None);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let folder = desk.home().join("audit");
        let expected = format!(
            "{name}:2: the line was edited: it does not have the hash it names\n{records} records in `{}`, not as they were written\n",
            folder.display()
        );
        assert_eq!(ran.stdout, expected);
        assert_eq!(
            ran.stderr,
            "hint: put the lines that are named back from a copy of the folder; without one, what they said is lost: calls go on all the same, and every check names them\n"
        );
    };
    told(4);
    assert_eq!(desk.call(&manifest).code, 0);
    // The next call does not look at the middle, and notes nothing.
    told(6);
    let hints = &desk.run(&["--json", "audit", "verify"], None).json()["hints"];
    assert!(hints[0].as_str().unwrap().starts_with("put the lines"), "{hints}");
}

#[test]
fn so_many_calls_are_shown_to_people_and_to_programs() {
    let desk = Desk::new();
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    for _ in 0..3 {
        assert_eq!(desk.call(&manifest).code, 0);
    }
    assert_eq!(desk.done(&["audit", "--limit", "2"]).stdout.lines().count(), 2);
    let told = desk.done(&["--json", "audit", "--limit", "2"]).stdout;
    let records = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let numbers: Vec<_> = records.map(|one| one["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [3, 4, 5, 6], "both records of each of the last two calls");
    let one = desk.done(&["--json", "audit", "--limit", "1", "--outcome", "ok"]).stdout;
    assert_eq!(one.lines().count(), 1, "the beginning has no outcome: {one}");
}

#[test]
fn what_is_asked_of_the_log_must_make_sense() {
    let desk = Desk::new();
    for (arguments, words) in [
        (["audit", "--limit", "0"], "write a whole number from 1 on"),
        (["audit", "--limit", "many"], "write a whole number from 1 on"),
        (["audit", "--outcome", "bogus"], "[possible values: ok, allowed, denied, needs_approval"),
        (["audit", "--outcome", "timeout"], "a similar value exists: 'timed_out'"),
        (["audit", "--package", "demo.tool"], "its dialect is missing"),
    ] {
        let ran = desk.run(&arguments, None);
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn every_code_that_the_page_lists_can_be_asked_for() {
    let desk = Desk::new();
    let page = std::fs::read_to_string(repository().join("docs/calls.md")).unwrap();
    let table = page.split("| exit | code | |").nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
    let codes: Vec<&str> =
        rows.flat_map(|row| row.split('|').nth(2).unwrap().split('`').skip(1).step_by(2)).collect();
    assert!(codes.len() > 10, "{codes:?}");
    for code in codes {
        desk.done(&["audit", "--outcome", code]);
    }
}

#[test]
fn what_is_missing_of_a_log_is_told_with_what_to_do() {
    let desk = Desk::new();
    let folder = desk.home().join("audit");
    let verify = || desk.run(&["audit", "verify"], None);
    let nothing = verify();
    assert_eq!(nothing.code, 0, "{}", nothing.stderr);
    let words = format!("there is no log in `{}`", folder.display());
    assert!(nothing.stderr.contains(&words), "{}", nothing.stderr);
    let exists = || desk.run(&["--json", "audit", "verify"], None).json()["exists"].clone();
    assert_eq!(exists(), false);
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    assert_eq!(desk.call(&manifest).code, 0);
    assert_eq!(exists(), true);
    let log = desk.log().file_name().unwrap().to_str().unwrap().to_owned();
    for (name, told, hint) in [
        ("key.pub", "key.pub: the public key is missing", "hint: put `key.pub` back"),
        ("head", "head: the head is missing", "hint: put back what is gone"),
        (&log, "the log was cut off: records 1 to 2 are missing", "hint: put back"),
    ] {
        let content = std::fs::read(folder.join(name)).unwrap();
        std::fs::remove_file(folder.join(name)).unwrap();
        let ran = verify();
        assert_eq!(ran.code, 1, "{name}: {}", ran.stderr);
        assert!(ran.stdout.starts_with(told), "{name}: {}", ran.stdout);
        assert!(ran.stderr.contains(hint), "{name}: {}", ran.stderr);
        std::fs::write(folder.join(name), content).unwrap();
        assert_eq!(verify().code, 0, "{name} is back");
    }
}

#[test]
fn what_is_noted_of_the_log_itself_is_no_call_and_told_in_plain_words() {
    let desk = Desk::new();
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    assert_eq!(desk.call(&manifest).code, 0);
    let head = desk.home().join("audit/head");
    let before = std::fs::read(&head).unwrap();
    for _ in 0..2 {
        assert_eq!(desk.call(&manifest).code, 0);
    }
    // A head of before, further back than anybody leaves it who is killed, and half a line.
    std::fs::write(&head, before).unwrap();
    let mut text = std::fs::read_to_string(desk.log()).unwrap();
    text.push_str("{\"seq\":");
    std::fs::write(desk.log(), text).unwrap();
    assert_eq!(desk.call(&manifest).code, 0);
    let shown = desk.done(&["audit"]).stdout;
    let notes: Vec<_> = shown.lines().filter(|line| line.contains(" (no call) ")).collect();
    let [torn, mended] = notes[..] else { panic!("{shown}") };
    assert!(torn.contains("a line that was left half written was put aside; "), "{torn}");
    assert!(mended.contains("the log did not end as it was signed, so records "), "{mended}");
    let is_hash = |word: &str| word.bytes().filter(u8::is_ascii_hexdigit).count() > 32;
    assert!(!shown.split(' ').any(is_hash), "{shown}");
    // Where it says that all of it is told, it is.
    let told = desk.run(&["audit", "verify"], None).stdout;
    assert!(told.contains("the log did not fit its head: the head names record"), "{told}");
    assert!(told.contains("a line was left half written: 7 bytes"), "{told}");
    let records = desk.done(&["--json", "audit"]).stdout;
    assert!(records.lines().any(|line| line.contains("\"kind\":\"mended\"")), "{records}");
}
