//! A package that is staged is tried: its server says what it offers, and its smoke test is run. What fails leaves no trace.

use std::path::PathBuf;
use std::sync::Arc;

use host::smoke::Verdict;
use host::surface::Surface as Offered;
use host::{CallError, CancellationToken, Given, Host, Kind, Records, Smoked, Tool};
use install::{Ready, Sha256};
use manifest::model::{Action, Entry, Invocation, Package, Trust};
use package::digest::Digest;
use policy::{Consent, Surface};

use super::inputs::Values;
use crate::ask::Ask;
use crate::commands::call;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::installed::{brought, run_from};
use crate::printer::{Printer, indented, line};
use crate::{interrupt, owner, walls};

/// A package that is tried, and with what.
pub(super) struct Trying<'t> {
    pub(super) package: &'t Package,
    pub(super) trust: Trust,
    pub(super) values: &'t Values,
    /// What is granted together with the card.
    pub(super) grants: Vec<policy::Grant>,
    pub(super) home: &'t Home,
    pub(super) ask: Ask,
    pub(super) printer: Printer,
}

/// Why a package is not what it should be.
pub(super) enum Untried {
    /// Its server or its smoke test failed: whoever wants to find out why may keep it.
    Smoke(Failure),
    /// It could not be tried.
    Failed(Failure),
}

impl Untried {
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Self::Smoke(failure) | Self::Failed(failure) => failure,
        }
    }
}

impl From<Failure> for Untried {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Trying<'_> {
    /// Runs it inside the walls, as the package would be run; what has neither a server nor a smoke test passes.
    pub(super) fn check(&self, ready: &mut Ready) -> Result<(), Untried> {
        let package = self.package;
        let asks_server = has_server(package);
        if package.smoke.is_none() && !asks_server {
            return Ok(());
        }
        let mut tool = self.tool(ready)?;
        let runtime = owner::runtime()?;
        // What fails leaves no trace but in the log: it is counted in a copy that nobody keeps.
        let copy = tempfile::tempdir().map_err(|error| {
            Failure::new(Exit::Unavailable, "failed to make a temporary folder").cause(error)
        })?;
        let records = runtime.block_on(Records::for_trial(self.home.path(), copy.path()));
        let records = Arc::new(records.map_err(|error| owner::of_state(&error))?);
        let vault = owner::vault(self.home, self.ask)?;
        let settings = call::settings(self.home)?;
        let host = Host::new(settings, walls::launcher()?, vault, records);
        let called_off = interrupt::calling_off();
        let tried = runtime.block_on(async {
            let tried = async {
                if asks_server {
                    self.ask_server(&mut tool, ready, &host, &called_off).await?;
                }
                if package.smoke.is_some() {
                    self.smoke(&tool, &host, &called_off).await?;
                }
                Ok(())
            };
            let tried = tried.await;
            host.settle().await;
            let _ = host.records().settle().await;
            tried
        });
        interrupt::nothing_runs();
        tried
    }

    /// The package as it is staged, as a tool.
    fn tool(&self, ready: &Ready) -> Result<Tool, Failure> {
        let found = |path: PathBuf| {
            path.canonicalize().map_err(|error| {
                let message = format!("failed to find `{}`", path.display());
                Failure::new(Exit::Unavailable, message).cause(error)
            })
        };
        let place = found(ready.folder.clone())?;
        Ok(Tool {
            package: self.package.clone(),
            root: found(run_from(&place, &ready.record))?,
            brought: brought(&place, &ready.record),
            place,
            // It was let in by now, however far it is trusted.
            consent: Consent::ByCard { admitted: self.trust },
            source_trust: self.trust,
            given: Given {
                values: self.values.clone(),
                hosts: ready.record.beside.smoke.clone(),
                grants: self.grants.clone(),
            },
            surface: None,
        })
    }

    /// Asks a server for everything that it offers; that is what is approved of.
    async fn ask_server(
        &self,
        tool: &mut Tool,
        ready: &mut Ready,
        host: &Host,
        called_off: &CancellationToken,
    ) -> Result<(), Untried> {
        match host.discover(tool, &Surface::Test, None, called_off).await {
            Ok(found) => {
                if let Some(surface) = found.surface {
                    pin(ready, &surface);
                    tool.surface = Some(surface);
                }
                take_actions(ready, self.package, &found.actions);
                let number = crate::commands::count(found.actions.len(), "tool");
                self.printer.note(&format!("Its server offers {number}"));
                Ok(())
            }
            // Whoever runs elsewhere may be asked later, and is not called before.
            Err(error) if may_wait(&error, self.package) => {
                let id = line(&self.package.canonical_id());
                let mut words = format!("Its server was not asked what it offers: {error}");
                if error.kind == Kind::NeedsLogin {
                    words += &format!("\n`haft login {id}` signs in");
                }
                words += &format!(
                    "\nIt is called once you have approved that: `haft approve surface {id}`"
                );
                self.printer.note(&words);
                Ok(())
            }
            Err(error) => {
                let message =
                    "its server could not be asked what it offers, so it is not installed";
                Err(Untried::Smoke(failure(&error, message, tool)))
            }
        }
    }

    async fn smoke(
        &self,
        tool: &Tool,
        host: &Host,
        called_off: &CancellationToken,
    ) -> Result<(), Untried> {
        match host.smoke(tool, called_off).await {
            Ok(smoked) if smoked.passed => {
                self.printer.note(&format!(
                    "Smoke test passed ({}, {} ms)",
                    smoked.kind,
                    smoked.took.as_millis()
                ));
                Ok(())
            }
            Ok(smoked) => Err(Untried::Smoke(failed(&smoked))),
            Err(error) => {
                let message = "its smoke test could not be run, so it is not installed";
                Err(Untried::Smoke(failure(&error, message, tool)))
            }
        }
    }
}

/// Whether a package has a server of its own that can be asked what it offers.
pub(crate) fn has_server(package: &Package) -> bool {
    let is_tool = |action: &Action| matches!(action.invocation, Invocation::McpTool { .. });
    package.is_server() && (package.actions.is_empty() || package.actions.iter().any(is_tool))
}

/// Pins what a server offers.
pub(crate) fn pin(ready: &mut Ready, surface: &Offered) {
    ready.record.pinned.surface = Digest::parse(surface.digest()).map(Sha256);
    ready.record.surface = Some(surface.to_value());
}

/// A package that does not say what can be called has what its server offers.
fn take_actions(ready: &mut Ready, package: &Package, actions: &[Action]) {
    if package.actions.is_empty() {
        ready.record.pinned.actions = actions.iter().map(|one| one.name.clone()).collect();
    }
}

fn may_wait(error: &CallError, package: &Package) -> bool {
    let is_elsewhere = package
        .implementations
        .iter()
        .any(|one| matches!(one.entry, Entry::McpHttp { .. } | Entry::McpTool { .. }));
    is_elsewhere && matches!(error.kind, Kind::NeedsLogin | Kind::Unavailable | Kind::TimedOut)
}

fn failed(smoked: &Smoked) -> Failure {
    let wrong = smoked.checks.iter().filter(|check| check.verdict == Verdict::Failed);
    let wrong = wrong.map(|check| {
        line(&format!("{}: expected {}, found {}", check.what, check.expected, check.found))
    });
    let printed = smoked.output.trim_end();
    let printed = (!printed.is_empty()).then(|| format!("it printed:\n{}", indented(printed)));
    Failure::new(Exit::Failed, "its smoke test failed, so it is not installed")
        .details(wrong.chain(printed))
}

/// Why it could not be run, with what it tried in vain.
fn failure(error: &CallError, message: &str, tool: &Tool) -> Failure {
    let mut told = call::failure(error, &error.blocked, tool);
    let cause = std::mem::replace(&mut told.message, message.to_owned());
    told.causes.insert(0, cause);
    match error.kind {
        Kind::NeedsLogin => told.hint("`haft login --from PATH` signs in before; --on-smoke-fail=keep-disabled keeps it, and `haft login ID` signs in"),
        _ => told,
    }
}
