//! The gateway, as agents meet it: over standard input and output and over HTTP, by clients of both eras.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;

mod api;
mod approving;
mod bringing;
mod chaos;
mod clientele;
mod clients;
mod conformance;
mod definitions;
mod doors;
mod finding;
mod fleet;
mod gate;
mod joined;
mod lasting;
mod leaving;
mod listening;
mod mending;
mod neighbours;
mod onboarding;
mod plain;
#[path = "../login/program.rs"]
mod program;
mod refusals;
mod rounds;
mod sealed;
mod several;
mod shutdown;
mod strangers;
mod taking_back;
mod telling;
mod up;
mod views;
