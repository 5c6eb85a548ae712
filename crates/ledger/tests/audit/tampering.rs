//! What somebody does to a log is found, and named.

use std::fs;

use crate::home::{DAY, Home, at, call, forged};
use crate::processes::killed_while_sitting;
use ledger::audit::line::LineError;
use ledger::audit::{Ending, Fault, verify};

/// A log with six records.
fn log() -> Home {
    Home::with(0..6)
}

#[test]
fn an_edited_line_is_named() {
    let home = log();
    home.change(|lines| lines[2] = lines[2].replace("terminal", "mcp"));
    assert_eq!(home.faults(), [(3, Fault::Edited)]);
    let home = log();
    home.change(|lines| lines[2] = "what is this".into());
    assert_eq!(home.faults(), [(3, Fault::Unreadable(LineError::NoHashes))]);
    let home = log();
    home.change(|lines| lines[5] = lines[5].replace("terminal", "mcp"));
    assert_eq!(home.faults(), [(6, Fault::Edited)]);
}

#[test]
fn an_edited_number_does_not_disturb_the_rest() {
    let home = log();
    home.change(|lines| lines[2] = lines[2].replace("\"seq\":3", "\"seq\":18446744073709551615"));
    assert_eq!(home.faults(), [(3, Fault::Edited)]);
    let home = log();
    home.change(|lines| lines[2] = forged(&lines[2], "\"seq\":3", "\"seq\":18446744073709551615"));
    let faults = home.faults();
    assert!((1..4).contains(&faults.len()), "{faults:?}");
}

#[test]
fn an_edited_line_with_a_new_hash_is_named_by_the_next() {
    let home = log();
    home.change(|lines| lines[2] = forged(&lines[2], "terminal", "mcp"));
    assert_eq!(home.faults(), [(4, Fault::Unlinked { seq: 4 })]);
    let home = log();
    home.change(|lines| lines[5] = forged(&lines[5], "terminal", "mcp"));
    assert_eq!(home.faults(), [(1, Fault::HeadDiffers { seq: 6 })]);
}

#[test]
fn a_call_whose_end_may_be_what_was_changed_is_not_told_to_have_none() {
    // A call of records 1 and 2, one of 3 and 4, and the beginning of a third.
    let calls = || {
        let home = Home::new();
        let audit = home.audit();
        let call = call("demo.files", "remove");
        for at_once in 0..3 {
            let begun = audit.begin(&call, at(at_once)).unwrap();
            if at_once < 2 {
                audit.end(begun, &call, &Ending::default(), at(at_once)).unwrap();
            }
        }
        // Somebody else looks, and signs for what is there.
        home.audit().check_writable(at(3)).unwrap();
        home
    };
    let running = (5, Fault::Unfinished { seq: 5 });
    assert_eq!(calls().faults(), std::slice::from_ref(&running));
    let home = calls();
    home.change(|lines| lines[3] = lines[3].replace("terminal", "mcp"));
    assert_eq!(home.faults(), [(4, Fault::Edited), running.clone()]);
    let home = calls();
    home.change(|lines| drop(lines.remove(3)));
    assert_eq!(
        home.faults(),
        [(4, Fault::Missing { from: 4, to: 4 }), (4, Fault::Unfinished { seq: 5 })]
    );
    let home = calls();
    home.change(|lines| lines.swap(2, 3));
    assert_eq!(home.faults(), [(4, Fault::Misplaced { seq: 3, after: 4 }), running]);
    let home = calls();
    home.change(|lines| lines.truncate(3));
    assert_eq!(home.faults(), [(3, Fault::Cut { from: 4, to: 5 })]);
}

#[test]
fn removed_lines_are_counted() {
    let home = log();
    home.change(|lines| drop(lines.drain(2..4)));
    assert_eq!(home.faults(), [(3, Fault::Missing { from: 3, to: 4 })]);
    let home = log();
    home.change(|lines| drop(lines.drain(..2)));
    assert_eq!(home.faults(), [(1, Fault::Missing { from: 1, to: 2 })]);
}

#[test]
fn a_cut_end_is_known_to_the_head() {
    let home = log();
    home.change(|lines| lines.truncate(4));
    assert_eq!(home.faults(), [(4, Fault::Cut { from: 5, to: 6 })]);
    fs::write(home.log(), "").unwrap();
    assert_eq!(home.faults(), [(0, Fault::Cut { from: 1, to: 6 })]);
    fs::remove_file(home.log()).unwrap();
    assert_eq!(home.faults(), [(0, Fault::Cut { from: 1, to: 6 })]);
}

#[test]
fn moved_lines_are_named() {
    let home = log();
    home.change(|lines| lines.swap(2, 3));
    assert_eq!(home.faults(), [(4, Fault::Misplaced { seq: 3, after: 4 })]);
    let home = log();
    home.change(|lines| {
        let line = lines.remove(0);
        lines.push(line);
    });
    assert_eq!(home.faults(), [(6, Fault::Misplaced { seq: 1, after: 6 })]);
}

#[test]
fn added_lines_are_named() {
    let home = log();
    home.change(|lines| lines.insert(3, lines[2].clone()));
    assert_eq!(home.faults(), [(4, Fault::Repeated { seq: 3 })]);
    let home = log();
    home.change(|lines| {
        let added = forged(&lines[3], "terminal", "mcp");
        lines.insert(3, added);
    });
    let faults = home.faults();
    assert!(faults.contains(&(5, Fault::Repeated { seq: 4 })), "{faults:?}");
    let home = log();
    home.change(|lines| lines.insert(3, "{}".into()));
    assert_eq!(home.faults(), [(4, Fault::Unreadable(LineError::NoHashes))]);
}

#[test]
fn records_after_the_head_are_unsigned() {
    let home = log();
    let head = fs::read(home.folder().join("head")).unwrap();
    for moment in 6..9 {
        home.audit().record(&call("demo", "a"), &Ending::default(), at(moment)).unwrap();
    }
    fs::write(home.folder().join("head"), head).unwrap();
    assert_eq!(home.faults(), [(1, Fault::Unsigned { from: 7, to: 9 })]);
}

#[test]
fn a_missing_day_is_named_by_the_next() {
    let home = Home::with([0, DAY, DAY + 1, 2 * DAY]);
    fs::remove_file(home.folder().join("20251116.log")).unwrap();
    let findings = verify(&home.folder()).unwrap().findings;
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].file, "20251117.log");
    assert_eq!(
        findings[0].to_string(),
        "20251117.log:1: records 2 to 3 are missing before this line"
    );
}

#[test]
fn a_head_that_is_changed_missing_or_by_another_key_is_named() {
    let home = log();
    let path = home.folder().join("head");
    let head = fs::read_to_string(&path).unwrap();
    fs::write(&path, head.replace("\"seq\":6", "\"seq\":5")).unwrap();
    assert_eq!(home.faults(), [(1, Fault::HeadUnsigned)]);
    fs::write(&path, "").unwrap();
    assert_eq!(home.faults(), [(1, Fault::HeadUnsigned)]);
    fs::remove_file(&path).unwrap();
    assert_eq!(home.faults(), [(0, Fault::HeadMissing)]);
    let other = log();
    fs::copy(other.folder().join("head"), &path).unwrap();
    assert_eq!(home.faults(), [(1, Fault::HeadUnsigned)]);
}

#[test]
fn a_head_that_cannot_be_checked_is_told_apart_from_one_that_is_wrong() {
    let home = log();
    let path = home.folder().join("key.pub");
    fs::write(&path, "no key\n").unwrap();
    assert_eq!(home.faults(), [(0, Fault::KeyUnreadable)]);
    fs::remove_file(&path).unwrap();
    assert_eq!(home.faults(), [(0, Fault::KeyMissing)]);
    let told = verify(&home.folder()).unwrap().findings[0].to_string();
    assert!(told.starts_with("key.pub: the public key is missing"), "{told}");
    let home = log();
    fs::remove_file(home.log()).unwrap();
    let told = verify(&home.folder()).unwrap().findings[0].to_string();
    assert_eq!(told, "the log was cut off: records 1 to 6 are missing");
}

#[test]
fn a_sealed_head_is_as_good_as_a_signed_one_to_whoever_has_the_key() {
    let home = killed_while_sitting();
    assert!(verify(&home.folder()).unwrap().is_sound());
    let (head, log) = (home.folder().join("head"), home.log());
    let (sealed, whole) = (fs::read_to_string(&head).unwrap(), home.text());
    // Changed, cut by more than a killed writer leaves, or by another key: none of it is let pass.
    fs::write(&head, sealed.replacen("\"ts\":\"2025", "\"ts\":\"2024", 1)).unwrap();
    assert!(home.faults().contains(&(1, Fault::HeadUnsigned)), "{:?}", home.faults());
    fs::write(&head, &sealed).unwrap();
    let lines: Vec<_> = whole.lines().collect();
    let cut: String = lines[..lines.len() - 4].iter().map(|line| format!("{line}\n")).collect();
    fs::write(&log, cut).unwrap();
    assert!(!verify(&home.folder()).unwrap().is_sound());
    fs::write(&log, whole).unwrap();
    let (key, other) = (home.folder().join("key"), Home::with([0]));
    let kept = fs::read(&key).unwrap();
    fs::copy(other.folder().join("key"), &key).unwrap();
    assert!(home.faults().contains(&(1, Fault::HeadSealed)), "{:?}", home.faults());
    fs::remove_file(&key).unwrap();
    assert!(home.faults().contains(&(1, Fault::HeadSealed)), "{:?}", home.faults());
    // The next writer signs.
    fs::write(&key, kept).unwrap();
    home.audit().record(&call("demo", "a"), &Ending::default(), at(0)).unwrap();
    assert!(fs::read_to_string(&head).unwrap().contains("\"signature\""));
    assert!(verify(&home.folder()).unwrap().is_sound());
}

#[test]
fn a_log_without_its_head_is_not_whole_however_little_is_left() {
    let home = log();
    home.change(|lines| lines.truncate(1));
    fs::remove_file(home.folder().join("head")).unwrap();
    assert_eq!(home.faults(), [(0, Fault::HeadMissing)]);
    fs::remove_file(home.log()).unwrap();
    assert_eq!(home.faults(), [(0, Fault::HeadMissing)], "the key is there");
    fs::remove_file(home.folder().join("key")).unwrap();
    assert_eq!(home.faults(), [(0, Fault::HeadMissing)], "and so is its public half");
    let home = log();
    for name in ["head", "20251115.log"] {
        fs::remove_file(home.folder().join(name)).unwrap();
    }
    home.audit().record(&call("demo", "a"), &Ending::default(), at(9)).unwrap();
    assert!(matches!(home.faults()[..], [(1, Fault::Mended(_))]), "{:?}", home.faults());
}

#[test]
fn a_writer_that_was_killed_before_it_kept_its_key_is_no_tampering() {
    let home = Home::new();
    home.audit().check_writable(at(0)).unwrap();
    for name in ["key.pub", "key"] {
        fs::remove_file(home.folder().join(name)).unwrap();
        assert_eq!(home.faults(), [], "without {name}");
    }
    home.audit().record(&call("demo", "a"), &Ending::default(), at(1)).unwrap();
    assert_eq!(home.faults(), []);
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let home = Home::with(0..20);
    home.change(|lines| {
        lines[2] = lines[2].replace("terminal", "mcp");
        lines.remove(6);
        lines.swap(9, 10);
        lines[14] = "x".repeat(200_000);
        lines.truncate(17);
    });
    let told: Vec<_> = home.faults();
    let expected = [
        (3, Fault::Edited),
        (7, Fault::Missing { from: 7, to: 7 }),
        (11, Fault::Misplaced { seq: 11, after: 12 }),
        (15, Fault::Unreadable(LineError::TooLong)),
        (17, Fault::Cut { from: 19, to: 20 }),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_writer_goes_on_after_a_cut_and_leaves_the_gap_for_all_to_see() {
    let home = log();
    let whole = home.text();
    home.change(|lines| lines.truncate(4));
    home.audit().record(&call("demo", "a"), &Ending::default(), at(9)).unwrap();
    let faults = home.faults();
    assert_eq!(faults[0], (5, Fault::Missing { from: 5, to: 6 }));
    assert!(
        matches!(&faults[1], (5, Fault::Mended(note)) if note.contains("record 6")),
        "{faults:?}"
    );
    assert_eq!(faults.len(), 2);
    // Whoever has the lines still can put them back, and the chain is whole.
    let lines: Vec<_> = home.text().lines().skip(4).map(|line| format!("{line}\n")).collect();
    fs::write(home.log(), whole + &lines.concat()).unwrap();
    assert!(matches!(home.faults()[..], [(7, Fault::Mended(_))]), "{:?}", home.faults());
}

#[test]
fn a_writer_notes_a_head_that_is_gone_or_forged() {
    for head in [None, Some("{}")] {
        let home = log();
        let path = home.folder().join("head");
        fs::remove_file(&path).unwrap();
        if let Some(head) = head {
            fs::write(&path, head).unwrap();
        }
        home.audit().record(&call("demo", "a"), &Ending::default(), at(9)).unwrap();
        assert!(matches!(home.faults()[..], [(7, Fault::Mended(_))]), "{:?}", home.faults());
    }
}

#[test]
fn a_line_cut_in_half_is_no_accident_when_the_head_knew_it() {
    let home = log();
    let text = home.text();
    fs::write(home.log(), &text[..text.len() - 30]).unwrap();
    let faults = home.faults();
    assert!(faults.contains(&(6, Fault::Cut { from: 6, to: 6 })), "{faults:?}");
    home.audit().record(&call("demo", "a"), &Ending::default(), at(9)).unwrap();
    assert!(!verify(&home.folder()).unwrap().is_sound());
}

#[test]
fn a_log_of_nothing_but_garbage_is_read_in_bounds() {
    let home = log();
    fs::write(home.log(), "x\n".repeat(100_000)).unwrap();
    let report = verify(&home.folder()).unwrap();
    assert_eq!(report.findings.len(), 1_000);
    assert!(report.more >= 99_000 && !report.is_sound());
}
