//! A call of a tool that is a container image, run by podman or docker, as it is planned.
//!
//! An engine builds walls of its own. What ours hold and its cannot is refused here: a list of hosts, folders to write (in which
//! nothing may be planted), hidden parts of a granted folder, devices.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use image::{Reference, Settings as ImageSettings};
use manifest::model::Entry;
use sandbox::runtime::Word;
use sandbox::{Confinement, SCRATCH, runtime};
use serde_json::{Value, json};

use super::container::{Command, folder};
use super::{Asked, unavailable};
use crate::error::{CallError, Kind};

/// The engines, the one that needs no service first.
const ENGINES: [&str; 2] = ["podman", "docker"];

/// Variables of the caller by which engines find their images and services.
const OF_ENGINES: [&str; 11] = [
    "HOME",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "CONTAINER_HOST",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
];

/// What begins the names of variables that steer an engine, and so are never lent to it with a tool's value.
const STEERING: [&str; 14] = [
    "HOME",
    "PATH",
    "TMPDIR",
    "XDG_",
    "DBUS_",
    "CONTAINER",
    "DOCKER",
    "STORAGE_",
    "BUILDAH_",
    "REGISTRY_",
    "LD_",
    "GO",
    "SSL_",
    "NOTIFY_",
];

/// A call that an engine runs.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    /// The engine's program.
    pub(crate) program: PathBuf,
    /// What it is told. No secret is in it.
    pub(crate) arguments: Vec<String>,
    /// The same, without what is only known to this call.
    pub(crate) shown: Vec<String>,
    /// The name of the container, by which it is ended.
    pub(crate) container: String,
    /// The whole environment of the engine's program; the tool's variables are among it.
    pub(crate) environment: Vec<(String, String)>,
    /// The names of the tool's variables.
    pub(crate) names: Vec<String>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) timeout: Duration,
    /// Bytes that it may write.
    pub(crate) output: u64,
}

impl Engine {
    /// What is told of it.
    pub(super) fn to_value(&self) -> Value {
        json!({
            "runs": "a container of an engine, inside the walls of the engine",
            "argv": self.shown,
            "environment": self.names,
            "timeout_ms": u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
            "output": self.output,
        })
    }
}

impl Asked<'_> {
    /// Plans a call by an engine, or says why there is none for it.
    pub(super) fn by_an_engine(
        &self,
        reference: &Reference,
    ) -> Result<Result<Engine, String>, CallError> {
        let search = &self.settings.search_path;
        let find = |name: &'static str| {
            let found =
                runtime::find(OsStr::new(name), search, Path::new("/"), Word::Owner).ok()?;
            Some((name, found.path))
        };
        let Some((name, program)) = ENGINES.into_iter().find_map(find) else {
            return Ok(Err("there is neither podman nor docker".to_owned()));
        };
        let (argv, cwd) = match &self.implementation.entry {
            Entry::Argv { argv, cwd, .. } => (&**argv, cwd.as_deref()),
            Entry::McpStdio { .. } => {
                let why = "a server runs from an image on disk only, not by an engine";
                return Ok(Err(why.to_owned()));
            }
            _ => (&[][..], None),
        };
        let walls = self.image_walls(reference, &ImageSettings::default(), SCRATCH.into())?;
        if walls.rules.iter().next().is_some() {
            let why = "an engine cannot hold it to a list of hosts, and this call has one";
            return Ok(Err(why.to_owned()));
        }
        if let Err(why) = check_holds(&walls.confinement) {
            return Ok(Err(why.to_owned()));
        }
        let command = match argv {
            [] => self.added()?,
            argv => self.command(argv, &ImageSettings::default())?,
        };
        let (variables, environment, names) = self.lent(&walls.confinement)?;
        let container = container_name();
        let mut options = self.options(name, &walls.confinement);
        options.extend(variables);
        if let Some(cwd) = cwd {
            options.push(format!("--workdir={}", folder(None, Some(cwd))?.display()));
        }
        let Command { argv: whole, shown: told, stdin } = command;
        let entrypoint = match (argv.is_empty(), whole.first()) {
            (false, Some(first)) if !first.starts_with('[') => {
                Some(format!("--entrypoint={first}"))
            }
            (false, _) => return Err(unavailable("its program has no plain name")),
            (true, _) => None,
        };
        let skipped = usize::from(entrypoint.is_some());
        options.extend(entrypoint);
        let start = |name: String, rest: &[String]| {
            let mut all = vec!["run".to_owned(), format!("--name={name}")];
            all.extend(options.iter().cloned());
            all.push(reference.to_string());
            all.extend(rest.iter().skip(skipped).cloned());
            all
        };
        let mut shown = start("haft-…".to_owned(), &told);
        shown.insert(0, name.to_owned());
        let allowance = &self.decision.allowance;
        Ok(Ok(Engine {
            program,
            arguments: start(container.clone(), &whole),
            shown,
            container,
            environment,
            names,
            stdin,
            timeout: Duration::from_millis(allowance.timeout_ms),
            output: allowance.output,
        }))
    }

    /// The walls, as engines take them.
    fn options(&self, engine: &str, confinement: &Confinement) -> Vec<String> {
        let allowance = &self.decision.allowance;
        let mut options: Vec<String> = [
            "--rm",
            "--interactive",
            "--pull=never",
            "--network=none",
            "--read-only",
            "--cap-drop=all",
            "--security-opt=no-new-privileges",
            "--ulimit=nofile=1024:1024",
            // Engines ask for more than a host may have; the number of processes is bound below.
            "--ulimit=nproc=16384:16384",
            "--ulimit=core=0:0",
        ]
        .map(str::to_owned)
        .to_vec();
        options.push(format!("--memory={}b", allowance.memory));
        options.push(format!("--memory-swap={}b", allowance.memory));
        options.push(format!("--pids-limit={}", allowance.processes));
        let scratch = allowance.scratch;
        options.push(format!("--tmpfs={SCRATCH}:rw,nosuid,nodev,mode=1777,size={scratch}"));
        if let Some(share) = allowance.cpu_share {
            options.push(format!("--cpus={}.{:02}", share / 100, share % 100));
        }
        if engine == "podman" {
            options.push("--read-only-tmpfs=false".to_owned());
            options.push("--http-proxy=false".to_owned());
            // What ends it when we are killed.
            options.push(format!("--timeout={}", allowance.timeout_ms.div_ceil(1000) + 2));
        }
        for path in &confinement.readable {
            let path = path.display();
            options.push(format!("--mount=type=bind,src={path},dst={path},readonly"));
        }
        options
    }

    /// How variables reach the container: those of ours as they are, those of the tool by their names, with the values in the
    /// environment of the engine's program alone.
    #[expect(clippy::type_complexity, reason = "options, the environment, and the names")]
    fn lent(
        &self,
        confinement: &Confinement,
    ) -> Result<(Vec<String>, Vec<(String, String)>, Vec<String>), CallError> {
        let known = |name: &str| self.settings.variable(name).map(str::to_owned);
        let own = OF_ENGINES.iter().filter_map(|name| Some(((*name).to_owned(), known(name)?)));
        let mut environment: Vec<(String, String)> = own.collect();
        environment.push(("PATH".into(), self.settings.search_path.to_string_lossy().into_owned()));
        let (mut options, mut names) = (Vec::new(), Vec::new());
        for (name, value) in &confinement.environment {
            let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
            let of_tool = self.variables.iter().find(|(known, _)| *known == *name);
            let is_steering = STEERING.iter().any(|start| name.starts_with(start));
            match of_tool {
                // The image knows where its programs are.
                None if name == "PATH" => continue,
                None => options.push(format!("--env={name}={value}")),
                Some((_, one)) if is_steering && one.is_secret => {
                    let message = format!("the secret `{name}` would steer the engine");
                    return Err(CallError::new(Kind::Denied, message));
                }
                Some(_) if is_steering => options.push(format!("--env={name}={value}")),
                Some((_, one)) => {
                    options.push(format!("--env={name}"));
                    environment.push((name.clone().into_owned(), one.value.clone()));
                }
            }
            names.push(name.into_owned());
        }
        Ok((options, environment, names))
    }
}

/// Whether an engine can hold what was allowed.
fn check_holds(confinement: &Confinement) -> Result<(), &'static str> {
    if !confinement.writable.is_empty() {
        return Err(
            "an engine cannot keep it from planting files in a folder it may write, and one is granted",
        );
    }
    if !confinement.devices.is_empty() {
        return Err("devices are not lent to an engine");
    }
    let granted = &confinement.readable;
    if confinement.hidden.iter().any(|one| granted.iter().any(|grant| one.starts_with(grant))) {
        return Err("an engine cannot hide a part of a granted folder");
    }
    let is_plain = |path: &PathBuf| path.to_str().is_some_and(|text| !text.contains([',', '"']));
    if !granted.iter().all(is_plain) {
        return Err("a granted path has a comma or is no text");
    }
    Ok(())
}

/// A name that no other container has.
fn container_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map(|time| time.as_nanos()).unwrap_or_default();
    format!("haft-{}-{next}-{now:x}", std::process::id())
}
