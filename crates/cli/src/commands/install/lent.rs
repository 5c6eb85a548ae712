//! What a package is granted together with its card: what has to be read so that a program of this machine starts, and a host
//! of a private network that the owner wrote down. It is withdrawn if the package is not installed after all.

use host::Records;
use host::records::now;
use ledger::state::grants::{Grant, GrantKind};
use std::sync::Arc;
use tokio::runtime::Runtime;

use crate::ask::Ask;
use crate::exit::Failure;
use crate::home::Home;
use crate::owner;

/// What was granted, and is withdrawn unless it is kept.
pub(super) struct Lent {
    package: String,
    granted: Vec<(GrantKind, String)>,
    ledger: Option<(Runtime, Arc<Records>)>,
}

impl Lent {
    /// Grants it; what was granted before stays so in any case.
    pub(super) fn new(
        package: &str,
        things: &[(GrantKind, String)],
        home: &Home,
        ask: Ask,
    ) -> Result<Self, Failure> {
        let mut lent = Self { package: package.to_owned(), granted: Vec::new(), ledger: None };
        if things.is_empty() {
            return Ok(lent);
        }
        owner::check_presence(home, ask)?;
        let runtime = owner::runtime()?;
        let records = owner::records(home, &runtime)?;
        lent.ledger = Some((runtime, Arc::clone(&records)));
        for (kind, value) in things {
            let grant = Grant {
                package: package.to_owned(),
                kind: *kind,
                value: value.clone(),
                by: "import".to_owned(),
                created: now(),
            };
            let Some((runtime, _)) = &lent.ledger else { break };
            let granted = runtime.block_on(records.state.grant(&grant));
            if granted.map_err(|error| owner::of_state(&error))? {
                lent.granted.push((*kind, value.clone()));
            }
        }
        Ok(lent)
    }

    /// Lets it stay granted.
    pub(super) fn keep(mut self) {
        self.granted.clear();
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some((runtime, records)) = &self.ledger else { return };
        for (kind, value) in &self.granted {
            // Nobody is there to be told; what is granted to nothing installed lets nobody in.
            let _ = runtime.block_on(records.state.revoke(&self.package, *kind, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(home: &Home) -> usize {
        let runtime = owner::runtime().unwrap();
        let records = owner::records(home, &runtime).unwrap();
        runtime.block_on(records.state.grants(Some("mcpb:x"))).unwrap().len()
    }

    #[test]
    fn what_is_not_kept_is_withdrawn_and_what_was_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::find(Some(&folder.path().join("home"))).unwrap();
        let ask = Ask::new(true);
        let thing = |path: &str| [(GrantKind::Read, path.to_owned())];
        drop(Lent::new("mcpb:x", &thing("/a"), &home, ask).unwrap());
        assert_eq!(granted(&home), 0);
        Lent::new("mcpb:x", &thing("/a"), &home, ask).unwrap().keep();
        drop(Lent::new("mcpb:x", &thing("/a"), &home, ask).unwrap());
        assert_eq!(granted(&home), 1);
    }
}
