//! Tools whose secrets could not be told apart by their names.

use host::secrets::names_told;
use install::{Contents, Installed};
use manifest::dialect::Dialect;
use manifest::model::Package;

use crate::exit::{Exit, Failure};
use crate::printer::line;

/// Refuses a tool that would find a secret under the same name as another one that is installed: `a` with `b-c`, and
/// `a-b` with `c`.
pub(super) fn check(
    package: &Package,
    contents: &Contents,
    at: &install::Home,
) -> Result<(), Failure> {
    let (id, own) = (package.canonical_id(), names_told(package));
    if own.is_empty() {
        return Ok(());
    }
    let is_other = |pinned: &&install::Pinned| {
        pinned.id != id && pinned.parted().is_some_and(|(dialect, _)| dialect == Dialect::Jumith)
    };
    for pinned in contents.lock.packages().iter().filter(is_other) {
        // What cannot be read is not called either, and its owner is told of it elsewhere.
        let Ok(other) = Installed::load(at, pinned) else { continue };
        let others = names_told(&other.package);
        if let Some(shared) = own.iter().find(|name| others.contains(name)) {
            let (id, other) = (line(&id), line(&pinned.id));
            let message = format!(
                "`{id}` and `{other}`, which is installed, would both find a secret as `{}`",
                line(shared)
            );
            return Err(Failure::new(Exit::Conflict, message).hint(
                "one of them needs another name: whoever has both could not tell them apart",
            ));
        }
    }
    Ok(())
}
