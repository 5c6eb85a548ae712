//! `haft`: the face for people. One thin file per verb; the only place that
//! prints, reads the environment, or exits.

mod approver;
mod args;
mod ask;
mod bar;
mod card;
mod changes;
mod clients;
mod commands;
mod container;
mod declared;
mod disk;
mod done;
mod draw;
mod exit;
mod fetch;
mod git;
mod home;
mod hosts;
mod installed;
mod interrupt;
mod keyring;
mod lean;
mod load;
mod login_words;
mod measured;
mod names;
mod new_folder;
mod output;
mod owner;
mod policy_doubts;
mod policy_file;
mod printer;
mod private;
mod program;
mod progress;
mod project;
mod remote;
mod revoking;
mod seen;
mod shell;
mod signing_out;
mod sources;
mod steps;
#[cfg(target_os = "linux")]
mod steward;
#[cfg(unix)]
mod terminal;
mod time;
mod tools;
mod trouble;
mod typed;
mod walls;
mod xml;

use std::process::ExitCode;

use args::{Command, Haft};
use ask::Ask;
use exit::Outcome;
use home::Home;
use printer::Printer;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The launcher of the walls is this program too, and must have one thread only.
    sandbox::enter_if_launcher();
    // So is the one that holds values against schemas.
    host::judge::enter_if_judge();
    walls::begin_early();
    // Keys and secrets pass through this process; where it cannot be closed, it runs all the same.
    // Inside walls a watchdog would take closed memory for hidden memory, and end it.
    if !sandbox::is_walled() {
        let _ = sandbox::close_memory();
    }
    let haft = match typed::read() {
        Ok(haft) => haft,
        Err(failure) => {
            let printer = Printer::new(printer::ColorChoice::Auto, false);
            if typed::wants_json() {
                printer.failure_in_json(&failure);
            } else {
                printer.failure(&failure);
            }
            return ExitCode::from(failure.exit.code());
        }
    };
    interrupt::listen();
    let printer = Printer::new(haft.global.color, haft.global.quiet);
    match dispatch(&haft, printer) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(failure) => {
            let home = Home::find(haft.global.home.as_deref());
            let failure = match home {
                Ok(home) => home.place(failure),
                Err(_) => failure,
            };
            if haft.global.json {
                printer.failure_in_json(&failure);
            } else {
                printer.failure(&failure);
            }
            ExitCode::from(failure.exit.code())
        }
    }
}

fn dispatch(haft: &Haft, printer: Printer) -> Outcome {
    let json = haft.global.json;
    let home = || Home::find(haft.global.home.as_deref())?.sharing(haft.global.state.as_deref());
    let ask = Ask::new(haft.global.non_interactive);
    match &haft.command {
        Command::Init(args) => commands::init::run(args, json, printer),
        Command::Validate(args) => commands::validate::run(args, json, printer),
        Command::Convert(args) => commands::convert::run(args, json, printer),
        Command::Diff(args) => commands::diff::run(args, json, printer),
        Command::Export(args) => commands::export::run(args, home, json, printer),
        Command::Pack(args) => commands::pack::run(args, json, printer),
        Command::Unpack(args) => commands::unpack::run(args, &home()?, json, printer),
        Command::Inspect(args) => commands::inspect::run(args, &home()?, json, printer),
        Command::Key(args) => commands::key::run(args, &home()?, ask, json, printer),
        Command::Sign(args) => commands::sign::run(args, &home()?, ask, json, printer),
        Command::Verify(args) => commands::verify::run(args, &home()?, json, printer),
        Command::Schema(args) => commands::schema::run(args, json, printer),
        Command::Index(args) => commands::index::run(args, json, printer),
        Command::Publish(args) => commands::publish::run(args, &home()?, ask, json, printer),
        Command::Yank(args) => commands::yank::run(args, &home()?, ask, json, printer),
        Command::Search(args) => commands::search::run(args, &home()?, ask, json, printer),
        Command::Show(args) => commands::install::show(args, &home()?, ask, json, printer),
        Command::Install(args) => commands::install::run(args, &home()?, ask, json, printer),
        Command::Import(args) => commands::import::run(args, &home()?, ask, json, printer),
        Command::Connect(args) => commands::connect::run(args, &home()?, json, printer),
        Command::List(args) => commands::installed::list(args, &home()?, json, printer),
        Command::Status(args) => commands::status::run(args, &home()?, json, printer),
        Command::Enable(args) => commands::installed::switch(args, true, &home()?, json, printer),
        Command::Disable(args) => commands::installed::switch(args, false, &home()?, json, printer),
        Command::Revoke(args) => commands::revoke::run(args, &home()?, ask, json, printer),
        Command::Rollback(args) => commands::installed::rollback(args, &home()?, json, printer),
        Command::Remove(args) => commands::installed::remove(args, &home()?, ask, json, printer),
        Command::Reset(args) => commands::installed::reset(args, &home()?, ask, json, printer),
        Command::Lock(args) => commands::installed::lock(args, &home()?, json, printer),
        Command::Sync(args) => commands::sync::run(args, &home()?, ask, json, printer),
        Command::Update(args) => commands::update::run(args, &home()?, ask, json, printer),
        Command::Trust(args) => commands::trust::run(args, &home()?, ask, json, printer),
        Command::Mcp(args) => commands::mcp::run(args, &home()?, printer),
        Command::Up(args) => commands::up::run(args, &home()?, json, printer),
        Command::Serve(args) => commands::serve::run(args, &home()?, json, printer),
        Command::Console(args) => commands::console::run(args, &home()?, json, printer),
        Command::Token(args) => commands::token::run(args, &home()?, ask, json, printer),
        Command::Call(args) => commands::call::run(args, &home()?, ask, json, printer),
        Command::Chain(args) => commands::chain::run(args, &home()?, ask, json, printer),
        Command::Test(args) => commands::test::run(args, &home()?, ask, json, printer),
        Command::Grant(args) => commands::grant::run(args, &home()?, ask, json, printer),
        Command::Ungrant(args) => commands::grant::ungrant(args, &home()?, json, printer),
        Command::Approve(args) => commands::approve::run(args, &home()?, ask, json, printer),
        Command::Secret(args) => commands::secret::run(args, &home()?, ask, json, printer),
        Command::Login(args) => commands::login::run(args, &home()?, ask, json, printer),
        Command::Logout(args) => commands::login::logout(args, &home()?, ask, printer),
        Command::Policy(args) => commands::policy::run(args, &home()?, ask, json, printer),
        Command::Rank(args) => commands::rank::run(args, &home()?, ask, json, printer),
        Command::Metrics(args) => commands::metrics::run(args, &home()?, json, printer),
        Command::Audit(args) => commands::audit::run(args, &home()?, json, printer),
        Command::Sandbox(args) => commands::sandbox::run(args, &home()?, json, printer),
        Command::Registry(args) => commands::registry::run(args, &home()?, ask, json, printer),
        Command::Doctor(args) => commands::doctor::run(args, &home()?, json, printer),
    }
}
