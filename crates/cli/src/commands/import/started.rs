//! What a server offers that was installed: it was started or reached for that, inside the walls.

use crate::exit::Failure;
use crate::home::Home;
use crate::installed;
use crate::printer::Printer;

/// How many tools it has; why it is not known, where it could not be asked.
pub(super) fn offered(id: &str, home: &Home, printer: Printer) -> Result<usize, Failure> {
    let found = installed::found(id, home, printer)?;
    let surface = found.tools.first().and_then(|tool| tool.surface.as_ref());
    Ok(surface.map_or(0, |surface| surface.to_value().as_array().map_or(0, Vec::len)))
}
