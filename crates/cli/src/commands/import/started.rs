//! Whether a server that was installed starts inside the walls, and what it offers.

use host::{CancellationToken, Host};
use policy::Surface;

use crate::ask::Ask;
use crate::commands::call::{failure, settings};
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::{installed, interrupt, owner, walls};

/// Starts or reaches a server, and asks it for its tools: how many there are, or what it tried in vain.
pub(super) fn ask(id: &str, home: &Home, ask: Ask) -> Result<usize, Failure> {
    let mut found = installed::found(id, home)?;
    let Some(tool) = found.tools.pop() else {
        return Err(Failure::new(Exit::NotFound, format!("`{id}` is not installed")));
    };
    let runtime = owner::runtime()?;
    let records = owner::records(home, &runtime)?;
    let vault = owner::vault(home, ask)?;
    let host = Host::new(settings(home)?, walls::launcher()?, vault, records);
    let called_off = CancellationToken::new();
    let token = called_off.clone();
    interrupt::end_first(move || token.cancel());
    let discovered = runtime.block_on(host.discover(&tool, &Surface::Terminal, None, &called_off));
    runtime.block_on(host.settle());
    let _ = runtime.block_on(host.records().settle());
    interrupt::nothing_runs();
    match discovered {
        Ok(discovered) => Ok(discovered.actions.len()),
        Err(error) => Err(failure(&error, &error.blocked, &tool)),
    }
}
