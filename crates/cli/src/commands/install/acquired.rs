//! What is acquired for a package beside its own files: told on its card, then done inside the walls.

use std::sync::{Arc, Mutex, PoisonError};

use install::acquire::{
    AcquireError, Acquired, Acquiring, Kind, Reach, Sources, acquire, commands, from,
};
use install::report::Reporter;
use install::{Pinned, Ready, bring, make_room};
use manifest::model::Package;
use policy::Policy;

use crate::bar::Bar;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::sources::{Needed, images};
use crate::{interrupt, owner, walls};

/// What is needed, and where it is had.
#[derive(Debug)]
pub(crate) struct Acquisition<'p> {
    needed: Needed<'p>,
    sources: Sources,
}

impl<'p> Acquisition<'p> {
    /// What a package needs; nothing where it brings everything itself.
    pub(crate) fn of(
        package: &'p Package,
        policy: &Policy,
        reach: Reach,
        at: &install::Home,
    ) -> Result<Option<Self>, Failure> {
        let Some(needed) = Needed::of(package)? else { return Ok(None) };
        let contents = at.read()?;
        let servers = contents.listed().into_iter().filter(|one| one.kind == "mcp_server");
        let servers = servers.flat_map(|one| {
            let bare = one.id.split_once(':').map(|(_, bare)| bare.to_owned());
            std::iter::once(one.id).chain(bare)
        });
        let mut sources = needed.sources(&policy.sources, reach, servers.collect())?;
        sources.images = images(policy, at.path())?;
        Ok(Some(Self { needed, sources }))
    }

    /// Exactly what would be run.
    pub(crate) fn commands(&self) -> Result<Vec<String>, Failure> {
        let told = commands(self.needed.acquire, &self.needed.packages, &self.sources);
        told.map_err(|error| failed(&error))
    }

    /// Who would be asked for it.
    pub(crate) fn from(&self) -> Vec<String> {
        from(self.needed.acquire, &self.needed.packages, &self.sources)
    }

    /// Acquires it, into the version that is made ready.
    pub(crate) fn acquire(
        &self,
        ready: &mut Ready,
        locked: Option<&Pinned>,
        home: &Home,
        json_wanted: bool,
        printer: Printer,
    ) -> Result<(), Failure> {
        let room = make_room(ready)?;
        let beside = ready.folder.clone();
        let cache = home.path().join("cache/acquired");
        let launcher = walls::launcher()?;
        let told = Arc::new(Told { bar: Mutex::new(None), json_wanted, printer });
        let acquiring = Acquiring {
            what: self.needed.acquire,
            packages: self.needed.packages.clone(),
            into: &room,
            beside: Some(&beside),
            cache: &cache,
            sources: &self.sources,
            launcher: &launcher,
            reporter: told,
            locked: locked.map(|pinned| pinned.artefacts.as_slice()),
        };
        let runtime = owner::runtime()?;
        let called_off = interrupt::calling_off();
        let acquired = runtime.block_on(async {
            tokio::select! {
                acquired = acquire(acquiring) => Some(acquired),
                () = called_off.cancelled() => None,
            }
        });
        interrupt::nothing_runs();
        let called_off = || Failure::new(Exit::Failed, "it was called off, so it is not installed");
        let acquired: Acquired =
            acquired.ok_or_else(called_off)?.map_err(|error| failed(&error))?;
        bring(ready, acquired)?;
        Ok(())
    }
}

fn failed(error: &AcquireError) -> Failure {
    let exit = match error.kind() {
        Kind::Invalid | Kind::Untrustworthy => Exit::Invalid,
        Kind::NotFound => Exit::NotFound,
        Kind::Unavailable => Exit::Unavailable,
    };
    let text = error.to_string();
    let mut said = text.lines();
    let told = Failure::new(exit, "what it needs could not be had, so it is not installed")
        .cause(line(said.next().unwrap_or_default()))
        .details(said.map(line));
    let mut source = std::error::Error::source(error);
    let mut told = told;
    while let Some(cause) = source {
        told = told.cause(line(&cause.to_string()));
        source = cause.source();
    }
    match error {
        AcquireError::Offline(_) => told.hint("without --offline it is fetched"),
        AcquireError::Hostile { .. } => told.hint(
            "`run_scripts` below `[sources]` in policy.toml names packages that may run code of their own",
        ),
        AcquireError::Failed { said, .. } if said.contains("No matching distribution") => told.hint(
            "only wheels are taken, since to build something is to run it: where there is none, `run_scripts = [\"pip:NAME\"]` below `[sources]` in policy.toml lets it be built from its source",
        ),
        _ => told,
    }
}

/// Shows how far it is.
struct Told {
    bar: Mutex<Option<Bar>>,
    json_wanted: bool,
    printer: Printer,
}

impl std::fmt::Debug for Told {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Told")
    }
}

impl Reporter for Told {
    fn begins(&self, what: &str) {
        let mut bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        // One at a time is shown.
        drop(bar.take());
        *bar = Some(Bar::begin(&line(what), None, self.json_wanted, self.printer));
    }

    fn passed(&self, done: u64, total: Option<u64>) {
        let bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = bar.as_ref() {
            bar.at(done, total);
        }
    }
}
