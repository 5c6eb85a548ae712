//! Starts programs under `sandbox-exec`.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::child::Child;
use super::profile::{Profile, is_of_the_system};
use super::rules::{self, Rule};
use super::system::{self, Resource};
use crate::check::{check_absolute, check_arguments, check_variable};
use crate::confinement::{Confinement, Limits, Network, SCRATCH};
use crate::level::{Fault, Finding, Level, Primitive, Walls};
use crate::outcome::{Exit, SpawnError, StartError};
use crate::scratch;
use crate::streams::Streams;

/// Apple's program that enters a sandbox and becomes another. By its full
/// path, so that nothing else is taken for it.
const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// What is started to see whether the walls stand.
const TRIAL: &str = "/usr/bin/true";

/// The host's end of the walls. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Launcher {
    sandbox_exec: PathBuf,
    walls: Walls,
}

impl Launcher {
    /// Tries the walls out. There is no launcher besides the host on this system, so the program is not needed.
    pub fn start(_program: &Path) -> Result<Self, StartError> {
        Self::through(Path::new(SANDBOX_EXEC))
    }

    fn through(sandbox_exec: &Path) -> Result<Self, StartError> {
        if !sandbox_exec.is_file() {
            return Err(StartError::Unsupported);
        }
        let sandbox_exec = sandbox_exec.to_owned();
        let mut launcher = Self { sandbox_exec, walls: Walls { findings: Vec::new() } };
        let finding = match launcher.attempt() {
            Ok(()) => Finding::Works("sandbox-exec".into()),
            Err(fault) => Finding::Fails(fault),
        };
        launcher.walls.findings.push((Primitive::Seatbelt, finding));
        Ok(launcher)
    }

    /// The same: nothing is made ahead on this system.
    pub fn keeping_ready(self, _rooms: usize) -> Self {
        self
    }

    /// What the walls of this machine are made of.
    pub fn walls(&self) -> &Walls {
        &self.walls
    }

    /// Starts a program (an absolute path) with its arguments inside the walls.
    pub fn spawn(&self, confinement: &Confinement, argv: &[OsString]) -> Result<Child, SpawnError> {
        self.spawn_if(confinement, argv, || true)
    }

    /// The same, if it may be started, which is asked when all else is done.
    pub fn spawn_if(
        &self,
        confinement: &Confinement,
        argv: &[OsString],
        may: impl FnOnce() -> bool,
    ) -> Result<Child, SpawnError> {
        if self.walls.level() < confinement.required {
            let (required, walls) = (confinement.required, self.walls.clone());
            return Err(SpawnError::TooWeak { required, walls });
        }
        let began = Instant::now();
        check_possible(confinement)?;
        let scratch = scratch::make().map_err(SpawnError::Host)?;
        let rules = rules::look(confinement, scratch.path())?;
        let folder = folder(confinement, &rules, scratch.path())?;
        check_program(argv, &rules)?;
        let profile =
            Profile::write(&rules, confinement.devices.iter().map(PathBuf::as_path), None);
        let streams = Streams::open(confinement).map_err(SpawnError::Host)?;
        let mut command = Command::new(&self.sandbox_exec);
        command
            .args(profile.arguments())
            .args(argv)
            .env_clear()
            .envs(environment(confinement, scratch.path())?)
            .current_dir(folder)
            .process_group(0);
        limit(&mut command, &confinement.limits);
        let [stdin, stdout, stderr] = streams.inside().map(|end| end.try_clone_to_owned());
        let stream = |end: io::Result<_>| end.map(Stdio::from).map_err(SpawnError::Host);
        command.stdin(stream(stdin)?).stdout(stream(stdout)?).stderr(stream(stderr)?);
        if !may() {
            return Err(SpawnError::Withheld);
        }
        let process = command.spawn().map_err(SpawnError::Host)?;
        // The command holds the inner ends of the pipes, which must close with the program.
        drop(command);
        Child::watch(process, streams.ours(), scratch, &confinement.limits, began)
            .map_err(SpawnError::Host)
    }

    /// Runs a program that does nothing.
    fn attempt(&self) -> Result<(), Fault> {
        let fault = |errno| Fault { doing: "run a program under Seatbelt".into(), errno };
        let confinement = Confinement { required: Level::L0, ..Default::default() };
        let mut child = self.spawn(&confinement, &[TRIAL.into()]).map_err(|error| match error {
            SpawnError::Host(error) => fault(error.raw_os_error().unwrap_or_default()),
            _ => fault(0),
        })?;
        match child.wait().exit {
            Exit::Code(0) => Ok(()),
            _ => Err(fault(0)),
        }
    }
}

/// Refuses what only a root and a network of its own can give a process.
fn check_possible(confinement: &Confinement) -> Result<(), SpawnError> {
    if confinement.network == Network::Allow {
        return Err(SpawnError::Needs("a list of hosts"));
    }
    if confinement.root.is_some() {
        return Err(SpawnError::Needs("a root of its own"));
    }
    for (path, target) in &confinement.links {
        check_absolute(path)?;
        if std::fs::read_link(path).ok().as_ref() != Some(target) {
            return Err(SpawnError::Needs("a symbolic link of its own"));
        }
    }
    for device in &confinement.devices {
        check_absolute(device)?;
        if !device.starts_with("/dev") {
            return Err(SpawnError::BadPath(device.clone()));
        }
    }
    Ok(())
}

/// The folder to start in. The scratch folder is elsewhere than it seems.
fn folder(
    confinement: &Confinement,
    rules: &[Rule],
    scratch: &Path,
) -> Result<PathBuf, SpawnError> {
    let folder = &confinement.folder;
    if folder == Path::new(SCRATCH) {
        return Ok(scratch.to_owned());
    }
    if folder == Path::new("/") {
        return Ok(folder.clone());
    }
    check_absolute(folder)?;
    let refused = |error: io::Error| SpawnError::Folder(folder.clone(), error);
    let real = folder.canonicalize().map_err(refused)?;
    if !real.is_dir() {
        return Err(refused(io::ErrorKind::NotADirectory.into()));
    }
    if !is_visible(rules, &real) {
        return Err(refused(io::ErrorKind::NotFound.into()));
    }
    Ok(real)
}

/// Looks at the program beforehand: `sandbox-exec` would only end with a code of its own.
fn check_program(argv: &[OsString], rules: &[Rule]) -> Result<(), SpawnError> {
    let program = argv.first().map(PathBuf::from).unwrap_or_default();
    check_absolute(&program)?;
    check_arguments(argv)?;
    let refused = |error: io::Error| SpawnError::Program(program.clone(), error);
    let real = program.canonicalize().map_err(refused)?;
    let found = real.metadata().map_err(refused)?;
    if !is_visible(rules, &real) {
        return Err(refused(io::ErrorKind::NotFound.into()));
    }
    if !found.is_file() || found.permissions().mode() & 0o111 == 0 {
        return Err(refused(io::ErrorKind::PermissionDenied.into()));
    }
    Ok(())
}

fn is_visible(rules: &[Rule], path: &Path) -> bool {
    rules::is_visible(rules, path).unwrap_or_else(|| is_of_the_system(path))
}

fn environment(
    confinement: &Confinement,
    scratch: &Path,
) -> Result<Vec<(OsString, OsString)>, SpawnError> {
    let variable = |(name, value): &(OsString, OsString)| {
        check_variable(name, value)?;
        let is_scratch = (name == "HOME" || name == "TMPDIR") && value == SCRATCH;
        let value = if is_scratch { scratch.into() } else { value.clone() };
        Ok((name.clone(), value))
    };
    confinement.environment.iter().map(variable).collect()
}

/// Limits each process by itself, which is what this system can do.
fn limit(command: &mut Command, limits: &Limits) {
    let (open_files, file_size) = (u64::from(limits.open_files), limits.file_size);
    let seconds = limits.cpu_time.map(|time| time.as_millis().div_ceil(1000));
    let seconds = seconds.map(|seconds| u64::try_from(seconds).unwrap_or(u64::MAX >> 1));
    let set = move || {
        system::limit(Resource::Core, 0)?;
        system::limit(Resource::OpenFiles, open_files)?;
        file_size.map_or(Ok(()), |most| system::limit(Resource::FileSize, most))?;
        seconds.map_or(Ok(()), |most| system::limit(Resource::Processor, most))
    };
    // SAFETY: between fork and exec it only makes system calls.
    unsafe { command.pre_exec(set) };
}

#[cfg(test)]
mod tests;
