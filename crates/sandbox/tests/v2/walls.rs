//! Says what the walls of this machine are made of, and how a program ends that takes twice the
//! memory it may: `walls LAUNCHER [LEVEL]`. Fails where they are not of that level, or it ends otherwise.

#![expect(clippy::print_stdout, reason = "this program prints")]

use std::process::ExitCode;

use std::time::Duration;

use sandbox::{Confinement, Exit, Finding, Launcher, Limits};

/// Small and with much time, because the machine may be emulated.
const MEMORY: u64 = 32 << 20;
const DEADLINE: Duration = Duration::from_mins(1);

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let launcher = Launcher::start(arguments.next().unwrap_or_default().as_ref())?;
    let walls = launcher.walls();
    for (primitive, finding) in &walls.findings {
        match finding {
            Finding::Works(what) => println!("{primitive}: {what}"),
            Finding::Fails(fault) => println!("{primitive}: {fault}"),
        }
    }
    let level = walls.level().to_string();
    println!("level: {level}");
    let limits = Limits { memory: Some(MEMORY), deadline: Some(DEADLINE), ..Limits::default() };
    let confinement = Confinement { limits, ..Confinement::default() };
    let argv = ["/usr/bin/python3", "-c", "bytearray(b'x') * (64 << 20)"].map(Into::into);
    let ended = launcher.spawn(&confinement, &argv)?.finish(b"")?.ended;
    println!("twice the memory: {}, {} KiB at most", ended.exit, ended.usage.peak_memory >> 10);
    let is_held = ended.exit == Exit::Memory;
    let is_expected = is_held && arguments.next().is_none_or(|expected| expected == level.as_str());
    Ok(if is_expected { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
