//! Several processes write at once, and are killed at any moment.

use std::process::{Child, Command, Stdio};

use ledger::audit::{Audit, Durability, Ending, Fault, Filter, page, verify};

use crate::home::{Home, at, call};

/// Tells the worker where to write, and how much.
const FOLDER: &str = "LEDGER_TEST_AUDIT";
const RECORDS: &str = "LEDGER_TEST_RECORDS";
/// Whether it keeps the lock for a while.
const SITS: &str = "LEDGER_TEST_SITS";

/// Not a test: what the other processes do.
#[test]
#[ignore = "other tests run it as a process of its own"]
fn worker() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let records = std::env::var(RECORDS).unwrap().parse().unwrap();
    let audit = Audit::new(folder, Durability::Process);
    if std::env::var_os(SITS).is_some() {
        audit.sit_when_busy();
    }
    for number in 0..records {
        let call = call(&format!("demo.{}", std::process::id()), "write");
        let begun = audit.begin(&call, at(number)).unwrap();
        audit.end(begun, &call, &Ending::default(), at(number)).unwrap();
    }
}

fn worker_of(home: &Home, records: i64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["processes::worker", "--exact", "--ignored"])
        .env(FOLDER, home.folder())
        .env(RECORDS, records.to_string())
        .stdout(Stdio::null());
    command
}

fn start(home: &Home, records: i64) -> Child {
    worker_of(home, records).spawn().unwrap()
}

/// The same for one that keeps the lock for a while.
fn start_sitting(home: &Home, records: i64) -> Child {
    worker_of(home, records).env(SITS, "").spawn().unwrap()
}

#[test]
fn four_processes_write_one_chain() {
    let home = Home::new();
    let workers: Vec<_> = (0..4).map(|_| start(&home, 200)).collect();
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    let report = verify(&home.folder()).unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(report.lines, 4 * 200 * 2);
}

#[test]
fn those_who_sit_leave_the_others_their_turn() {
    let home = Home::new();
    // It goes on for as long as the others need.
    let mut sitting = start_sitting(&home, 1_000_000);
    while records(&home) < 200 {
        std::thread::yield_now();
    }
    for mut worker in [start(&home, 100), start_sitting(&home, 100)] {
        assert!(worker.wait().unwrap().success());
    }
    // Whoever verifies waits for the end of a sitting, so the head is signed.
    for _ in 0..5 {
        let report = verify(&home.folder()).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        let signed = ledger::audit::copy::signed_end(&home.folder()).unwrap();
        assert!(signed.is_some(), "a head that is not signed was seen");
    }
    sitting.kill().unwrap();
    sitting.wait().unwrap();
    assert!(verify(&home.folder()).unwrap().is_sound());
}

#[test]
fn threads_of_one_process_write_one_chain() {
    let home = Home::new();
    let audit = home.audit();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..50 {
                    audit.record(&call("demo", "a"), &Ending::default(), at(number)).unwrap();
                }
            });
        }
    });
    let report = verify(&home.folder()).unwrap();
    assert_eq!((report.lines, report.findings), (200, Vec::new()));
}

#[test]
fn writers_that_are_killed_lose_nothing_that_was_acknowledged() {
    let home = Home::new();
    let mut acknowledged = 0;
    for round in 0..30 {
        let start = if round % 2 == 0 { start } else { start_sitting };
        let mut worker = start(&home, 1_000_000);
        // The next one is killed wherever it is once there are some more records.
        while records(&home) < acknowledged + 20 + round {
            std::thread::yield_now();
        }
        worker.kill().unwrap();
        worker.wait().unwrap();
        let report = verify(&home.folder()).unwrap();
        assert!(report.is_sound(), "round {round}: {:?}", report.findings);
        // Whoever comes next can write at once, and nothing is lost by it.
        let before = report.lines;
        let seq = home.audit().record(&call("demo", "a"), &Ending::default(), at(0)).unwrap();
        let report = verify(&home.folder()).unwrap();
        assert!(seq > before && report.is_sound(), "round {round}: {report:?}");
        let left: Vec<_> = report
            .findings
            .iter()
            .filter(|finding| {
                !matches!(finding.fault, Fault::PutAside(_) | Fault::Unfinished { .. })
            })
            .collect();
        assert!(left.is_empty(), "{left:?}");
        acknowledged = seq;
    }
}

/// A home whose writer was killed while it sat, so that its head is sealed.
pub(crate) fn killed_while_sitting() -> Home {
    loop {
        let home = Home::new();
        let mut worker = start_sitting(&home, 1_000_000);
        while records(&home) < 50 {
            std::thread::yield_now();
        }
        worker.kill().unwrap();
        worker.wait().unwrap();
        let head = std::fs::read_to_string(home.folder().join("head")).unwrap();
        if head.contains("\"ownerSeal\"") {
            return home;
        }
    }
}

/// The number of the last record that can be read.
fn records(home: &Home) -> u64 {
    let last = page(&home.folder(), &Filter::default(), None, 1).unwrap().records;
    last.first().map_or(0, |record| record.seq)
}

#[test]
fn one_that_keeps_the_lock_does_not_stop_readers_for_ever() {
    let home = Home::with([0]);
    // Readers of pages and followers need no lock.
    let lock = std::fs::File::open(home.folder().join("lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(records(&home), 1);
}
