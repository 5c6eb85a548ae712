//! Access to files by Landlock, negotiated with the kernel's version of it.
//!
//! Inside namespaces this is a second wall behind the mounts: what the mounts
//! show, Landlock lets be read, and only what was granted be written. Without namespaces it is the first.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};

use crate::level::Fault;

/// The newest version of Landlock that is known here.
const NEWEST: ABI = ABI::V6;

/// Rights to name in a ruleset.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rights {
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
    /// Folders with devices: read, write and control them, make nothing.
    pub(crate) devices: Vec<PathBuf>,
}

/// Whether connections over TCP are for Landlock to refuse, because there is no network namespace to do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connections {
    Refused,
    HeldElsewhere,
}

/// The version of Landlock this kernel has, or why it has none.
pub(crate) fn version() -> Result<u32, Fault> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel reads no memory and only answers a number.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION)
    };
    match u32::try_from(version) {
        Ok(version) if version > 0 => Ok(version),
        _ => {
            let error = std::io::Error::last_os_error();
            Err(Fault { doing: "use Landlock".into(), errno: error.raw_os_error().unwrap_or(0) })
        }
    }
}

/// A ruleset that only has to be entered.
pub(crate) fn prepare(rights: &Rights, connections: Connections) -> Result<RulesetCreated, Fault> {
    rules(rights, connections).map_err(|error| fault("describe the files it may use", &error))
}

/// Enters a ruleset for good: this process and all it starts.
pub(crate) fn enter(ruleset: RulesetCreated) -> Result<(), Fault> {
    let status =
        ruleset.restrict_self().map_err(|error| fault("enter the Landlock rules", &error))?;
    match status.ruleset {
        RulesetStatus::NotEnforced => {
            Err(Fault { doing: "enter the Landlock rules".into(), errno: libc::ENOSYS })
        }
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

fn rules(
    rights: &Rights,
    connections: Connections,
) -> Result<RulesetCreated, landlock::RulesetError> {
    // The first version is demanded; what later ones add is taken where the kernel has it.
    let all = AccessFs::from_all(NEWEST);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(NEWEST))?;
    if connections == Connections::Refused {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut created = ruleset.create()?;
    let read = AccessFs::from_read(NEWEST);
    let write = all & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    let device = AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::IoctlDev;
    for (paths, access) in
        [(&rights.readable, read), (&rights.writable, write), (&rights.devices, device)]
    {
        for path in paths {
            created = add(created, path, access)?;
        }
    }
    Ok(created)
}

fn add(
    created: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    // A path that is gone needs no rule: without one it is refused.
    let Ok(opened) = PathFd::new(path) else { return Ok(created) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    created.add_rule(PathBeneath::new(opened, access))
}

fn fault(doing: &str, error: &(dyn std::error::Error + 'static)) -> Fault {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(system) = error.downcast_ref::<std::io::Error>() {
            return Fault { doing: doing.into(), errno: system.raw_os_error().unwrap_or(0) };
        }
        cause = error.source();
    }
    Fault { doing: format!("{doing} ({error})"), errno: 0 }
}
