//! What must hold for any bytes at all: the body of the fuzz target, as an ordinary test.

use ledger::audit::Ending;
use testkit::bytes::damaged;
use testkit::draws::holds;
use testkit::fuzz;

use crate::home::{Home, at, call};

#[test]
fn every_promise_is_kept_for_damaged_lines() {
    let home = Home::new();
    home.audit().record(&call("demo", "a"), &Ending::default(), at(0)).unwrap();
    let line = home.text().into_bytes();
    fuzz::audit_line(line.trim_ascii_end()).unwrap();
    holds(4_000, &damaged(line.trim_ascii_end().to_vec()), |bytes| fuzz::audit_line(&bytes));
}
