//! The log as it is written, read and followed.

use std::fs::{self, OpenOptions};
use std::io::Write;

use crate::home::{DAY, Home, at, call, names};
use ledger::audit::{
    Audit, AuditErrorKind, Blocked, BlockedKind, Call, Decision, Durability, Ending, Fault, Filter,
    Follow, Kind, Outcome, Place, page, shape_of, verify,
};
use serde_json::json;

#[test]
fn a_record_says_everything_but_values() {
    let home = Home::new();
    let call = Call {
        tool: "demo_remove".into(),
        package: "demo.files".into(),
        package_digest: "sha256:12".into(),
        action: "remove".into(),
        surface: "mcp".into(),
        session: "agent1".into(),
        decision: Decision::Denied("needs-approval".into()),
        argv: vec!["rm".into(), "[redacted]".into()],
        cwd: "~/project".into(),
        env_keys: vec!["PATH".into()],
        sandbox: "L3".into(),
        arguments: shape_of(&json!({"path": "/home/jane/secret"})),
        ..Call::default()
    };
    let ending = Ending {
        outcome: Outcome::Error("denied".into()),
        exit: Some(2),
        ms: 12,
        stdout_bytes: 1,
        stderr_bytes: 2,
        truncated: true,
        attempts: 1,
        blocked: vec![Blocked { kind: BlockedKind::Host, value: "api.example.com:443".into() }],
        is_cached: false,
    };
    home.audit().record(&call, &ending, at(7)).unwrap();
    let text = home.text();
    let (said, hashes) = text.split_once(",\"prev\":\"").unwrap();
    assert_eq!(
        said,
        "{\"seq\":1,\"ts\":\"2025-11-15T12:00:00.007Z\",\"kind\":\"call\",\"tool\":\"demo_remove\",\
         \"package\":\"demo.files\",\"packageDigest\":\"sha256:12\",\"action\":\"remove\",\
         \"surface\":\"mcp\",\"session\":\"agent1\",\"decision\":\"denied\",\"reason\":\"needs-approval\",\
         \"outcome\":\"denied\",\"argv\":[\"rm\",\"[redacted]\"],\"cwd\":\"~/project\",\"exit\":2,\
         \"ms\":12,\"stdoutBytes\":1,\"stderrBytes\":2,\"truncated\":true,\"envKeys\":[\"PATH\"],\
         \"sandbox\":\"L3\",\"attempts\":1,\"arguments\":{\"path\":\"string(17)\"},\
         \"blocked\":[{\"kind\":\"host\",\"value\":\"api.example.com:443\"}]"
    );
    assert!(hashes.starts_with(&"0".repeat(64)));
    assert_eq!(names(&home.folder()), ["20251115.log", "head", "key", "key.pub", "lock"]);
}

#[test]
fn a_change_of_a_package_says_what_was_done_to_which_version() {
    let home = Home::new();
    let audit = home.audit();
    let mut change = Call {
        package: "mcpkg:demo.echo".into(),
        package_digest: "sha256:12".into(),
        change: "install".into(),
        version: "1.0.0".into(),
        card: "sha256:34".into(),
        surface: "terminal".into(),
        ..Call::default()
    };
    let begun = audit.begin(&change, at(7)).unwrap();
    change.change = "update".into();
    audit.end(begun, &change, &Ending::default(), at(9)).unwrap();
    let text = home.text();
    let (said, _) = text.lines().nth(1).unwrap().split_once(",\"prev\":\"").unwrap();
    assert_eq!(
        said,
        "{\"seq\":2,\"ts\":\"2025-11-15T12:00:00.009Z\",\"kind\":\"end\",\"package\":\"mcpkg:demo.echo\",\
         \"packageDigest\":\"sha256:12\",\"change\":\"update\",\"version\":\"1.0.0\",\"card\":\"sha256:34\",\
         \"surface\":\"terminal\",\"decision\":\"allowed\",\"outcome\":\"ok\",\"ms\":0,\"begin\":1"
    );
}

#[cfg(unix)]
#[test]
fn nobody_but_the_owner_can_read_the_log() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::with([0]);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.folder()), 0o700);
    for name in names(&home.folder()) {
        assert_eq!(mode(&home.folder().join(&name)), 0o600, "{name}");
    }
}

#[test]
fn the_chain_goes_on_over_days_and_handles() {
    let home = Home::new();
    for moment in [0, 1, DAY, 3 * DAY, 3 * DAY + 1] {
        home.audit().record(&call("demo", "a"), &Ending::default(), at(moment)).unwrap();
    }
    let report = verify(&home.folder()).unwrap();
    assert!(report.is_sound() && report.findings.is_empty(), "{report:?}");
    assert_eq!(report.lines, 5);
    assert_eq!(report.head.unwrap().seq, 5);
    let logs = ["20251115.log", "20251116.log", "20251118.log"];
    assert_eq!(names(&home.folder())[..3], logs);
}

#[test]
fn a_clock_that_goes_back_does_not_turn_the_order() {
    let home = Home::with([DAY, 0, -DAY, DAY]);
    assert_eq!(names(&home.folder())[0], "20251116.log");
    assert_eq!(home.faults(), []);
}

#[test]
fn a_call_with_effects_leaves_two_records() {
    let home = Home::new();
    let audit = home.audit();
    let begun = audit.begin(&call("demo.files", "remove"), at(0)).unwrap();
    let report = verify(&home.folder()).unwrap();
    assert_eq!(report.findings[0].fault, Fault::Unfinished { seq: 1 });
    assert!(report.is_sound(), "a call that runs is nothing wrong");
    let seq = begun.seq();
    let call = call("demo.files", "remove");
    audit.end(begun, &call, &Ending { ms: 9, ..Ending::default() }, at(9)).unwrap();
    let records = page(&home.folder(), &Filter::default(), None, 10).unwrap().records;
    assert_eq!(
        records.iter().map(|record| record.kind).collect::<Vec<_>>(),
        [Kind::End, Kind::Begin]
    );
    assert_eq!(records[0].begin, Some(seq));
    assert_eq!(home.faults(), []);
    assert_eq!(records[0].action, "remove");
    assert_eq!(records[1].decision.as_deref(), Some("allowed"));
    assert_eq!(records[1].outcome, None);
}

#[test]
fn a_log_that_cannot_be_written_refuses_before_the_call() {
    let home = Home::new();
    fs::write(home.folder(), "a file where the folder should be").unwrap();
    let audit = home.audit();
    let error = audit.begin(&call("demo", "a"), at(0)).unwrap_err();
    assert_eq!(error.kind(), AuditErrorKind::Unavailable);
    assert!(audit.check_writable(at(0)).is_err());
    let home = Home::with([0]);
    fs::write(home.folder().join("key"), "no key").unwrap();
    let error = home.audit().begin(&call("demo", "a"), at(0)).unwrap_err();
    assert_eq!(error.kind(), AuditErrorKind::Broken);
}

/// `/dev/full` takes no byte, like a disk that is full.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_refuses_and_leaves_the_log_as_it_was() {
    let home = Home::with([0]);
    let head = fs::read(home.folder().join("head")).unwrap();
    std::os::unix::fs::symlink("/dev/full", home.folder().join("20251116.log")).unwrap();
    let error = home.audit().begin(&call("demo", "a"), at(DAY)).unwrap_err();
    assert_eq!(error.kind(), AuditErrorKind::Unavailable);
    fs::remove_file(home.folder().join("20251116.log")).unwrap();
    // The same where the log has room and a new head has none.
    std::os::unix::fs::symlink("/dev/full", home.folder().join("head.new")).unwrap();
    let before = home.text();
    let careful = Audit::new(home.folder(), Durability::Power);
    careful.begin(&call("demo", "a"), at(1)).unwrap_err();
    fs::remove_file(home.folder().join("head.new")).unwrap();
    assert_eq!(home.text(), before);
    assert_eq!(fs::read(home.folder().join("head")).unwrap(), head);
    assert_eq!(home.faults(), []);
}

#[test]
fn whether_it_can_be_written_is_told_without_writing() {
    let home = Home::with([0]);
    let before = home.text();
    home.audit().check_writable(at(1)).unwrap();
    home.audit().check_writable(at(DAY)).unwrap();
    assert_eq!(home.text(), before);
}

#[test]
fn a_busy_service_signs_when_it_has_a_pause() {
    let home = Home::new();
    let audit = home.audit();
    audit.sit_when_busy();
    let ends_in = |word: &str| {
        let head = fs::read_to_string(home.folder().join("head")).unwrap();
        head.contains(&format!("\"{word}\":"))
    };
    let write = |moment| audit.record(&call("demo", "a"), &Ending::default(), at(moment)).unwrap();
    let busy = |moment| {
        let mut written = 0;
        while !(written > 10 && ends_in("ownerSeal")) {
            write(moment);
            written += 1;
        }
    };
    busy(0);
    // Whoever looks whether it can be written has it written down first, and waits for nobody.
    audit.check_writable(at(0)).unwrap();
    assert!(ends_in("signature"));
    // Midnight comes while it is busy.
    busy(0);
    write(DAY);
    busy(DAY);
    while !ends_in("signature") {
        std::thread::yield_now();
    }
    busy(DAY);
    drop(audit);
    assert!(ends_in("signature"));
    assert_eq!(home.faults(), []);
}

#[test]
fn a_half_written_line_is_put_aside_and_noted() {
    let home = Home::with([0, 1]);
    let mut log = OpenOptions::new().append(true).open(home.log()).unwrap();
    log.write_all(b"{\"seq\":3,\"ts\":").unwrap();
    assert_eq!(home.faults(), [(3, Fault::Torn)]);
    home.audit().record(&call("demo", "a"), &Ending::default(), at(2)).unwrap();
    let report = verify(&home.folder()).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert!(matches!(report.findings[0].fault, Fault::PutAside(_)), "{report:?}");
    let aside = names(&home.folder()).into_iter().find(|name| name.starts_with("torn-")).unwrap();
    assert_eq!(fs::read(home.folder().join(aside)).unwrap(), b"{\"seq\":3,\"ts\":");
    // A look alone puts it aside too, and notes it.
    log.write_all(b"{").unwrap();
    home.audit().check_writable(at(3)).unwrap();
    assert_eq!(verify(&home.folder()).unwrap().findings.len(), 2);
}

#[test]
fn a_record_without_its_head_counts() {
    let home = Home::with([0, 1]);
    let head = fs::read(home.folder().join("head")).unwrap();
    home.audit().record(&call("demo", "a"), &Ending::default(), at(2)).unwrap();
    fs::write(home.folder().join("head"), head).unwrap();
    assert_eq!(home.faults(), [(3, Fault::HeadBehind { records: 1 })]);
    home.audit().record(&call("demo", "a"), &Ending::default(), at(3)).unwrap();
    assert_eq!(home.faults(), []);
    // The same for the very first record.
    let home = Home::new();
    home.audit().check_writable(at(0)).unwrap();
    let head = fs::read(home.folder().join("head")).unwrap();
    assert_eq!(home.faults(), [], "a log without records has a head");
    home.audit().record(&call("demo", "a"), &Ending::default(), at(2)).unwrap();
    fs::write(home.folder().join("head"), head).unwrap();
    assert_eq!(home.faults(), [(1, Fault::HeadBehind { records: 1 })]);
    home.audit().record(&call("demo", "a"), &Ending::default(), at(3)).unwrap();
    assert_eq!(home.faults(), []);
}

#[test]
fn a_call_that_began_is_signed_for_with_its_end() {
    let home = Home::with([0, 1]);
    let audit = home.audit();
    let head = || fs::read(home.folder().join("head")).unwrap();
    let before = head();
    let begun = audit.begin(&call("demo", "a"), at(2)).unwrap();
    assert_eq!(head(), before);
    assert_eq!(
        home.faults(),
        [(3, Fault::Unfinished { seq: 3 }), (3, Fault::HeadBehind { records: 1 })]
    );
    assert!(verify(&home.folder()).unwrap().is_sound());
    audit.end(begun, &call("demo", "a"), &Ending::default(), at(3)).unwrap();
    assert_ne!(head(), before);
    assert_eq!(home.faults(), []);
    // There are never two that nothing vouches for, whoever writes them.
    let first = audit.begin(&call("demo", "a"), at(4)).unwrap();
    let second = home.audit().begin(&call("demo", "b"), at(5)).unwrap();
    let third = audit.begin(&call("demo", "c"), at(6)).unwrap();
    let fourth = audit.begin(&call("demo", "d"), at(7)).unwrap();
    assert!(!home.faults().iter().any(|(_, fault)| !fault.is_harmless()), "{:?}", home.faults());
    for begun in [second, fourth, first, third] {
        audit.end(begun, &call("demo", "a"), &Ending::default(), at(8)).unwrap();
        let faults = home.faults();
        assert!(faults.iter().all(|(_, fault)| fault.is_harmless()), "{faults:?}");
    }
    // After the last of them nothing is left open.
    assert_eq!(home.faults(), []);
}

#[test]
fn killed_before_the_head_of_an_end_two_records_count_and_never_more() {
    let home = Home::with([0, 1]);
    let path = home.folder().join("head");
    let kill_at = |head: &[u8]| fs::write(&path, head).unwrap();
    let before = fs::read(&path).unwrap();
    let audit = home.audit();
    let begun = audit.begin(&call("demo", "a"), at(2)).unwrap();
    audit.end(begun, &call("demo", "a"), &Ending::default(), at(3)).unwrap();
    kill_at(&before);
    assert_eq!(home.faults(), [(4, Fault::HeadBehind { records: 2 })]);
    assert!(verify(&home.folder()).unwrap().is_sound());
    // Whoever comes next signs for them before anything else, so that being killed once more does no harm.
    home.audit().check_writable(at(4)).unwrap();
    assert_eq!(home.faults(), []);
    let signed = fs::read(&path).unwrap();
    home.audit().record(&call("demo", "b"), &Ending::default(), at(5)).unwrap();
    kill_at(&signed);
    assert_eq!(home.faults(), [(5, Fault::HeadBehind { records: 1 })]);
    // On the next day it is the same.
    kill_at(&fs::read(&path).unwrap());
    home.audit().check_writable(at(6)).unwrap();
    let signed = fs::read(&path).unwrap();
    let audit = home.audit();
    let begun = audit.begin(&call("demo", "a"), at(7)).unwrap();
    let tomorrow = at(7 + 86_400_000);
    audit.end(begun, &call("demo", "a"), &Ending::default(), tomorrow).unwrap();
    kill_at(&signed);
    assert_eq!(home.faults().len(), 1);
    assert!(verify(&home.folder()).unwrap().is_sound());
    home.audit().record(&call("demo", "c"), &Ending::default(), tomorrow).unwrap();
    assert_eq!(home.faults(), []);
}

#[test]
fn more_than_a_killed_writer_leaves_is_not_taken_for_it() {
    type Writes = fn(&Audit);
    let others: [Writes; 2] = [
        // Two, the first of which is signed for at once.
        |audit| {
            for _ in 0..2 {
                audit.record(&call("demo", "a"), &Ending::default(), at(2)).unwrap();
            }
        },
        // Three.
        |audit| {
            let begun = audit.begin(&call("demo", "a"), at(2)).unwrap();
            audit.end(begun, &call("demo", "a"), &Ending::default(), at(3)).unwrap();
            audit.record(&call("demo", "a"), &Ending::default(), at(4)).unwrap();
        },
    ];
    for write in others {
        let home = Home::with([0, 1]);
        let head = fs::read(home.folder().join("head")).unwrap();
        write(&home.audit());
        fs::write(home.folder().join("head"), head).unwrap();
        assert!(matches!(home.faults()[..], [(1, Fault::Unsigned { from: 3, .. })]));
        home.audit().record(&call("demo", "a"), &Ending::default(), at(5)).unwrap();
        assert!(!verify(&home.folder()).unwrap().is_sound(), "it stays visible");
    }
}

#[test]
fn a_beginning_that_is_taken_away_is_missed_by_who_wrote_it() {
    type Change = fn(&mut Vec<String>);
    let others: [Change; 2] = [
        |lines| drop(lines.pop()),
        // One that somebody else made up, as long as they like, with hashes that fit.
        |lines| {
            let other = Home::with([0, 1]);
            let _ = other.audit().begin(&call("demo", "something else"), at(2)).unwrap();
            *lines.last_mut().unwrap() = other.text().lines().last().unwrap().to_owned();
        },
    ];
    for change in others {
        let home = Home::with([0, 1]);
        let audit = home.audit();
        let begun = audit.begin(&call("demo", "a"), at(2)).unwrap();
        home.change(change);
        audit.end(begun, &call("demo", "a"), &Ending::default(), at(3)).unwrap();
        let report = verify(&home.folder()).unwrap();
        assert!(!report.is_sound(), "{report:?}");
    }
}

#[test]
fn pages_go_backwards_and_filter() {
    let home = Home::new();
    let audit = Audit::new(home.folder(), Durability::Power);
    for number in 0..50 {
        let action = if number % 2 == 0 { "even" } else { "odd" };
        let outcome = if number % 10 == 0 { Outcome::Error("timeout".into()) } else { Outcome::Ok };
        let ending = Ending { outcome, ms: number, ..Ending::default() };
        let moment = at(i64::try_from(number).unwrap() * DAY / 20);
        audit.record(&call("demo", action), &ending, moment).unwrap();
    }
    let all = |filter: &Filter, most| {
        let (mut numbers, mut place) = (Vec::new(), None);
        loop {
            let page = page(&home.folder(), filter, place, most).unwrap();
            assert!(page.records.len() <= most);
            numbers.extend(page.records.iter().map(|record| record.ms.unwrap()));
            place = page.next.map(|next| Place::parse(&next.to_string()).unwrap());
            if place.is_none() {
                return numbers;
            }
        }
    };
    let downwards: Vec<_> = (0..50).rev().collect();
    for most in [1, 7, 50, 1_000] {
        assert_eq!(all(&Filter::default(), most), downwards);
    }
    let even = Filter { action: Some("even".into()), ..Filter::default() };
    assert_eq!(all(&even, 3), (0..50).rev().filter(|n| n % 2 == 0).collect::<Vec<_>>());
    let late =
        Filter { outcome: Some("timeout".into()), since: Some(at(DAY)), ..Filter::default() };
    assert_eq!(all(&late, 3), [40, 30, 20]);
    let nobody = Filter { package: Some("other".into()), ..Filter::default() };
    assert!(all(&nobody, 3).is_empty());
}

#[test]
fn a_follower_sees_each_record_once_and_midnight_too() {
    let home = Home::new();
    let mut follow = Follow::from_end(&home.folder()).unwrap();
    assert_eq!(follow.poll().unwrap(), None);
    let audit = home.audit();
    for (seq, moment) in [(1, 0), (2, 1), (3, DAY), (4, 2 * DAY)] {
        audit.record(&call("demo", "a"), &Ending::default(), at(moment)).unwrap();
        assert_eq!(follow.next().unwrap().unwrap().seq, seq);
        assert_eq!(follow.poll().unwrap(), None);
    }
    let all = Follow::from_start(&home.folder()).take(4).map(|record| record.unwrap().seq);
    assert_eq!(all.collect::<Vec<_>>(), [1, 2, 3, 4]);
    let mut late = Follow::from_end(&home.folder()).unwrap();
    assert_eq!(late.poll().unwrap(), None);
    // Half a line is no record; the whole one is, once.
    let path = home.folder().join("20251117.log");
    let whole = fs::read(&path).unwrap();
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"seq\":5").unwrap();
    assert_eq!(late.poll().unwrap(), None);
    fs::write(&path, whole).unwrap();
    audit.record(&call("demo", "a"), &Ending::default(), at(2 * DAY)).unwrap();
    assert_eq!(late.poll().unwrap().map(|record| record.seq), Some(5));
}
