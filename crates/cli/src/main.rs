//! `haft`: the face for people. One thin file per verb; the only place that
//! prints, reads the environment, or exits.

mod args;
mod commands;
mod disk;
mod draw;
mod exit;
mod load;
mod new_folder;
mod output;
mod printer;
mod program;

use std::process::ExitCode;

use args::{Command, Haft};
use clap::Parser;
use exit::Outcome;
use printer::Printer;

fn main() -> ExitCode {
    let haft = Haft::parse();
    let printer = Printer::new(haft.global.color, haft.global.quiet);
    match dispatch(&haft, printer) {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(failure) => {
            printer.failure(&failure);
            ExitCode::from(failure.exit as u8)
        }
    }
}

fn dispatch(haft: &Haft, printer: Printer) -> Outcome {
    let json = haft.global.json;
    match &haft.command {
        Command::Init(args) => commands::init::run(args, json, printer),
        Command::Validate(args) => commands::validate::run(args, json, printer),
        Command::Convert(args) => commands::convert::run(args, json, printer),
        Command::Diff(args) => commands::diff::run(args, json, printer),
        Command::Export(args) => commands::export::run(args, json, printer),
        Command::Schema(args) => commands::schema::run(args, json, printer),
        Command::Index(args) => commands::index::run(args, json, printer),
    }
}
