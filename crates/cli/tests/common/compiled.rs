//! What the tests need that is written in C: a program that makes one call of another program fail, and a clock that is off.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The program of `fault.c`.
pub fn fault() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| compiled("fault", &[])).clone()
}

/// The library of `clock.c`, to be loaded before all others.
pub fn clock() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| compiled("clock", &["-shared", "-fPIC"])).clone()
}

/// Compiles a file beside this one with the compiler that links Rust programs too.
fn compiled(name: &str, flags: &[&str]) -> PathBuf {
    let source = super::repository().join(format!("crates/cli/tests/common/{name}.c"));
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    // Other test programs may make the same: each its own, and the last one gets the name.
    let beside = place.join(format!("{name}-{}", std::process::id()));
    let mut command = Command::new("cc");
    command.args(["-O1", "-Wall", "-Wextra", "-Werror"]).args(flags).arg("-o").arg(&beside);
    let output =
        command.arg(source).arg("-ldl").output().expect("cc is there, since Rust links with it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let made = place.join(name);
    std::fs::rename(beside, &made).unwrap();
    made
}
