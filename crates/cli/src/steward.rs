//! What a gateway has done for it: the packages of the home are found, and what the policy wants done is done.

use std::path::PathBuf;

use gateway::steward::{Package, Steward};
use host::{Settings, Tool, Violation};
use install::{Installed, catalog};

use crate::ask::Ask;
use crate::commands::call::act;
use crate::exit::Failure;
use crate::home::Home;
use crate::installed::{self, Named};
use crate::printer::Printer;
use crate::{owner, steps};

/// The owner's program, which works for a gateway.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) home: Home,
    pub(crate) printer: Printer,
}

impl Steward for Owner {
    fn files(&self) -> Vec<PathBuf> {
        let names = [catalog::BASE, catalog::LOCAL, install::lockfile::NAME, "policy.toml"];
        names.iter().map(|name| self.home.path().join(name)).collect()
    }

    fn settings(&self) -> Result<Settings, String> {
        owner::settings(&self.home).map_err(|failure| words(&failure))
    }

    fn packages(&self) -> Result<Vec<Package>, String> {
        let at = installed::home(&self.home);
        let contents = at.read().map_err(|error| error.to_string())?;
        let all = contents.listed();
        Ok(all.iter().map(|one| self.package(&installed::named_of(one), &at)).collect())
    }

    fn violated(&self, tool: &Tool, violation: &Violation) {
        act(violation, tool, &self.home, Ask::Nobody, self.printer);
    }
}

impl Owner {
    fn package(&self, named: &Named, at: &install::Home) -> Package {
        let mut files = Vec::new();
        let tool = self.tool(named, at, &mut files).map_err(|failure| words(&failure));
        let version = named.pinned.as_ref().map(|pinned| pinned.version.clone());
        Package { id: named.id.clone(), version, is_enabled: named.enabled, tool, files }
    }

    fn tool(
        &self,
        named: &Named,
        at: &install::Home,
        files: &mut Vec<PathBuf>,
    ) -> Result<Tool, Failure> {
        installed::check_not_locked(named, &self.home)?;
        let mut tool = match &named.pinned {
            None => installed::declared(named, at)?,
            Some(pinned) => {
                let found = Installed::load(at, pinned)?;
                installed::check_unchanged(&found, named)?;
                files.extend(found.record.files.iter().map(|file| found.root.join(&file.path)));
                installed::tool(found, named)?
            }
        };
        if tool.package.chain.is_some() {
            steps::link_one(&mut tool, &[], &self.home, Printer::silent());
        }
        Ok(tool)
    }
}

/// What is wrong, and what would mend it.
fn words(failure: &Failure) -> String {
    let hints = failure.hints.iter().map(|hint| format!("; {hint}"));
    format!("{}{}", failure.message, hints.collect::<String>())
}
