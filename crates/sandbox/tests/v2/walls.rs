//! Says what the walls of this machine are made of: `walls LAUNCHER [LEVEL]`. Fails where they are
//! not of that level.

#![expect(clippy::print_stdout, reason = "this program prints")]

use std::process::ExitCode;

use sandbox::{Finding, Launcher, StartError};

fn main() -> Result<ExitCode, StartError> {
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
    let is_expected = arguments.next().is_none_or(|expected| expected == level.as_str());
    Ok(if is_expected { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
