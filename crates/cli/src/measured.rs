//! What was measured here, and whether anything got worse.

use host::Records;
use host::records::{now, whole};
use prove::measured::All;
use tokio::runtime::Runtime;

use crate::exit::Failure;
use crate::home::Home;
use crate::owner;
use crate::printer::{Printer, line};

/// What the ledger of a home knows. Where there is none, none is made.
pub(crate) fn all(home: &Home, runtime: &Runtime) -> Result<All, Failure> {
    let Some(records) = owner::records_there(home, runtime)? else {
        return Ok(All::default());
    };
    let read = runtime.block_on(All::read(&records.state, now()));
    read.map_err(|error| owner::of_state(&error))
}

/// Looks whether packages got worse of which enough further calls were counted, and tells what is new. What keeps it from
/// being looked at is told and no more: the call itself was made.
pub(crate) fn watch(records: &Records, runtime: &Runtime, printer: Printer) {
    for package in records.take_due() {
        let at = now();
        let seen = prove::watch::watch(&records.state, &records.audit, &package, at);
        match runtime.block_on(seen) {
            Ok(seen) => {
                for one in seen.regressions.iter().filter(|one| one.seen == at) {
                    let (package, words) = (line(&package), prove::watch::words(one));
                    printer.warn(&format!("`{package}` is {}", line(&words)));
                }
                if let Some(error) = seen.unwritten {
                    printer
                        .alarm(&format!("it could not be written down: {}", line(&whole(&error))));
                }
            }
            Err(error) => {
                printer.warn(&format!(
                    "nobody could look whether it got worse: {}",
                    line(&whole(&error))
                ));
            }
        }
    }
}
