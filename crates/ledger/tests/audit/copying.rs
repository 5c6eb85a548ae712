//! A log that is copied elsewhere.

use ledger::audit::copy::{Checking, Lines, Signed, signed_end};
use ledger::audit::{Fault, Report};

use crate::home::{DAY, Home};

/// A log with so many calls a day, over some days.
fn written(days: i64, each: i64) -> Home {
    Home::with((0..days).flat_map(|day| (0..each).map(move |number| day * DAY + number)))
}

fn copied(home: &Home, after: u64, to: u64) -> Vec<(u64, String)> {
    let mut lines = Lines::between(&home.folder(), after, to).unwrap();
    let mut all = Vec::new();
    loop {
        let few = lines.next_few(7).unwrap();
        if few.is_empty() {
            return all;
        }
        all.extend(few);
    }
}

fn checked(end: &Signed, lines: &[(u64, String)]) -> Report {
    let mut checking = Checking::begin(&end.key, &end.head);
    for (seq, line) in lines {
        checking.line(*seq, line);
    }
    checking.end()
}

#[test]
fn whoever_has_some_is_given_the_rest_and_the_copy_is_whole() {
    let home = written(3, 20);
    let end = signed_end(&home.folder()).unwrap().unwrap();
    assert_eq!(end.seq, 60);
    for after in [0, 1, 19, 20, 21, 40, 59, 60] {
        let numbers: Vec<_> = copied(&home, after, 60).into_iter().map(|(seq, _)| seq).collect();
        assert_eq!(numbers, (after + 1..=60).collect::<Vec<_>>(), "after {after}");
    }
    assert_eq!(copied(&home, 10, 12).len(), 2, "what the end does not vouch for yet comes later");
    let report = checked(&end, &copied(&home, 0, 60));
    assert!(report.findings.is_empty() && report.lines == 60, "{report:?}");
}

#[test]
fn what_was_changed_in_a_copy_is_found_and_named_by_its_log() {
    let home = written(2, 10);
    let end = signed_end(&home.folder()).unwrap().unwrap();
    let whole = copied(&home, 0, 20);
    let faults = |lines: &[(u64, String)]| -> Vec<_> {
        checked(&end, lines).findings.into_iter().map(|found| (found.line, found.fault)).collect()
    };
    let mut edited = whole.clone();
    edited[4].1 = edited[4].1.replace("\"call\"", "\"caII\"");
    assert_eq!(faults(&edited), [(5, Fault::Edited)]);
    let mut gap = whole.clone();
    gap.remove(4);
    assert_eq!(faults(&gap), [(6, Fault::Missing { from: 5, to: 5 })]);
    assert_eq!(faults(&whole[..18]), [(18, Fault::Cut { from: 19, to: 20 })]);
    // Another's key has not signed it, and where there is no end nothing vouches for it.
    let other = signed_end(&written(1, 1).folder()).unwrap().unwrap();
    let stolen = checked(&Signed { key: other.key, ..end.clone() }, &whole);
    assert_eq!(stolen.findings[0].fault, Fault::HeadUnsigned);
    let headless = checked(&Signed { head: String::new(), ..end.clone() }, &whole);
    assert_eq!(headless.findings[0].fault, Fault::HeadMissing);
    assert!(checked(&end, &edited).findings[0].to_string().starts_with(&end.key));
}

#[test]
fn a_log_that_nobody_wrote_has_no_end() {
    assert_eq!(signed_end(&Home::new().folder()).unwrap(), None);
}
