//! A call of a tool that is a container image, run by podman or docker, as it is planned.
//!
//! An engine builds walls of its own, which count as L2. What ours hold and its cannot is refused here: a list of hosts, folders
//! to write (in which nothing may be planted), hidden parts of a granted folder, devices, and secrets, because an engine writes
//! the variables of a container into its own files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use image::{Reference, Settings as ImageSettings};
use manifest::model::Entry;
use policy::Level;
use sandbox::runtime::Word;
use sandbox::{Confinement, SCRATCH, runtime};
use serde_json::{Value, json};

use super::container::{Command, folder};
use super::{Asked, lent, unavailable};
use crate::error::{CallError, Kind};
use crate::secrets::is_stand_in;

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

/// What the walls of an engine are worth: namespaces, no capabilities and a filter of system calls, and nothing of ours.
const WORTH: Level = Level::L2;

/// Variables that steer an engine or what it starts, and so are never lent to it with a secret, and what begins the names of others.
const STEERING: [&str; 9] =
    ["HOME", "PATH", "TMPDIR", "ENV", "TERM", "GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT"];
const STEERING_STARTS: [&str; 19] = [
    "XDG_",
    "DBUS_",
    "CONTAINER",
    "DOCKER",
    "PODMAN",
    "STORAGE_",
    "BUILDAH_",
    "REGISTRY_",
    "LD_",
    "GOTRACE",
    "SSL_",
    "NOTIFY_",
    "LISTEN_",
    "OTEL_",
    "BASH_",
    "SYSTEMD_",
    "CONMON",
    "NETAVARK",
    "_OCI",
];

/// Whether a variable of that name would steer an engine.
fn is_steering(name: &str) -> bool {
    STEERING.contains(&name)
        || STEERING_STARTS.iter().any(|start| name.starts_with(start))
        || name.to_ascii_uppercase().ends_with("_PROXY")
}

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
    /// The image.
    pub(crate) image: String,
    /// Why it is not run in another way, which came first.
    pub(crate) instead: Vec<String>,
    /// Where images are looked for that need no engine, where the policy has that way.
    pub(crate) images: Option<String>,
    /// What the image must be like.
    pub(crate) needs: Needs,
    /// The whole environment of the engine's program; the tool's secrets are among it.
    pub(crate) environment: Vec<(String, String)>,
    /// The names of the tool's variables.
    pub(crate) names: Vec<String>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) timeout: Duration,
    /// Bytes that it may write.
    pub(crate) output: u64,
}

/// What an image must be like to be run by an engine. Only the engine can tell, and is asked before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// It must say itself what is started: what an action adds would be taken for the program.
    pub(crate) entrypoint: bool,
    /// It must have no volumes: this engine would give it folders of the disk for them.
    pub(crate) no_volumes: bool,
}

impl Engine {
    /// What the engine is called.
    pub(crate) fn name(&self) -> String {
        let name = self.program.file_name().unwrap_or(self.program.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// What is told of it.
    pub(super) fn to_value(&self) -> Value {
        json!({
            "runs": format!("a container of an engine, inside the walls of the engine, which count as {WORTH}"),
            "image": { "reference": self.image, "from": format!("the images of {}", self.name()) },
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
            return Ok(Err("neither podman nor docker is on your PATH".to_owned()));
        };
        let (argv, cwd) = match &self.implementation.entry {
            Entry::Argv { argv, cwd, .. } => (&**argv, cwd.as_deref()),
            Entry::McpStdio { .. } => {
                let why = "a server runs from an image on disk only, not by an engine";
                return Ok(Err(why.to_owned()));
            }
            _ => (&[][..], None),
        };
        let is_root = rustix::process::geteuid().is_root();
        let has_version_2 = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
        if name == "podman" && !is_root && !has_version_2 {
            // It says so on standard error, and goes on.
            let why = "podman without root holds no limits where control groups are of version 1";
            return Ok(Err(why.to_owned()));
        }
        if let Err(why) = self.check_engine(cwd) {
            return Ok(Err(why));
        }
        let walls = self.image_walls(reference, &ImageSettings::default(), SCRATCH.into())?;
        if walls.rules.iter().next().is_some() {
            let why = "an engine cannot hold it to a list of hosts, and this call has one";
            return Ok(Err(why.to_owned()));
        }
        if let Err(why) = check_holds(&walls.confinement) {
            return Ok(Err(why));
        }
        let command = match argv {
            [] => self.added()?,
            argv => self.command(argv, &ImageSettings::default())?,
        };
        let Variables { options: variables, environment, names } = self.lent(&walls.confinement)?;
        let container = container_name();
        let mut options = self.options(name, &walls.confinement);
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
        let start = |name: String, variables: &[String], rest: &[String]| {
            let mut all = vec!["run".to_owned(), format!("--name={name}")];
            all.extend(options.iter().chain(variables).cloned());
            all.push(reference.to_string());
            all.extend(rest.iter().skip(skipped).cloned());
            all
        };
        let named: Vec<_> = names.iter().map(|name| format!("--env={name}")).collect();
        let mut shown = start("haft-…".to_owned(), &named, &told);
        shown.insert(0, name.to_owned());
        let needs = Needs {
            entrypoint: argv.is_empty() && !whole.is_empty(),
            // podman can be told to leave them out.
            no_volumes: name != "podman",
        };
        let allowance = &self.decision.allowance;
        Ok(Ok(Engine {
            program,
            arguments: start(container.clone(), &variables, &whole),
            shown,
            container,
            image: reference.to_string(),
            instead: Vec::new(),
            images: self.images(),
            needs,
            environment,
            names,
            stdin,
            timeout: Duration::from_millis(allowance.timeout_ms),
            output: allowance.output,
        }))
    }

    /// Whether an engine is good enough for this call.
    fn check_engine(&self, cwd: Option<&str>) -> Result<(), String> {
        let level = self.decision.allowance.level;
        if level > WORTH {
            return Err(format!(
                "the walls of an engine count as {WORTH}, and {level} is required"
            ));
        }
        if cwd.is_some_and(|cwd| !cwd.starts_with('/')) {
            let why = "an engine does not know a folder that is named from the image's own (`entrypoint.cwd`)";
            return Err(why.to_owned());
        }
        let mut secrets = self.variables.iter().filter(|(_, one)| one.is_secret);
        let secret = secrets.find(|(name, one)| !is_stand_in(name, one));
        match secret {
            Some((name, _)) if !self.settings.policy.containers.engine_secrets => Err(format!(
                "an engine writes variables into its own files as they are, and `{name}` is a secret (`engine_secrets = true` of `[containers]` in the policy lets it)"
            )),
            _ => Ok(()),
        }
    }

    /// The walls, as engines take them.
    fn options(&self, engine: &str, confinement: &Confinement) -> Vec<String> {
        let allowance = &self.decision.allowance;
        let mut options: Vec<String> = [
            "--rm",
            "--interactive",
            "--pull=never",
            // What a tool writes is ours to keep or to forget.
            "--log-driver=none",
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
            // Volumes would be folders of the disk, without a limit.
            options.push("--image-volume=ignore".to_owned());
            // What ends it when we are killed.
            options.push(format!("--timeout={}", allowance.timeout_ms.div_ceil(1000) + 2));
        }
        // What is mounted below since it was looked at stays out, where an engine can be told so.
        let alone = if engine == "podman" { ",bind-nonrecursive" } else { "" };
        for path in &confinement.readable {
            let path = path.display();
            options.push(format!("--mount=type=bind,src={path},dst={path},readonly{alone}"));
        }
        options
    }

    /// How variables reach the container: as they are, and secrets by their names, with the values in the environment of the
    /// engine's program alone.
    fn lent(&self, confinement: &Confinement) -> Result<Variables, CallError> {
        let known = |name: &str| self.settings.variable(name).map(str::to_owned);
        let own = OF_ENGINES.iter().filter_map(|name| Some(((*name).to_owned(), known(name)?)));
        let mut environment: Vec<(String, String)> = own.collect();
        environment.push(("PATH".into(), self.settings.search_path.to_string_lossy().into_owned()));
        let (mut options, mut names) = (Vec::new(), Vec::new());
        for (name, value) in &confinement.environment {
            let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
            let of_tool = self.variables.iter().find(|(known, _)| *known == *name);
            match of_tool {
                // The image knows where its programs are.
                None if name == "PATH" => continue,
                Some((_, one)) if one.is_secret => {
                    if is_steering(&name) {
                        let message = format!("the secret `{name}` would steer the engine");
                        return Err(CallError::new(Kind::Denied, message));
                    }
                    options.push(format!("--env={name}"));
                    environment.push((name.clone().into_owned(), one.value.clone()));
                }
                _ => options.push(format!("--env={name}={value}")),
            }
            names.push(name.into_owned());
        }
        Ok(Variables { options, environment, names })
    }
}

/// The variables of a container.
struct Variables {
    /// How the engine is told of them.
    options: Vec<String>,
    /// The whole environment of the engine's program.
    environment: Vec<(String, String)>,
    /// Their names.
    names: Vec<String>,
}

/// Whether an engine can hold what was allowed.
fn check_holds(confinement: &Confinement) -> Result<(), String> {
    if !confinement.writable.is_empty() {
        let why = "an engine cannot keep it from planting files in a folder it may write, and one is granted";
        return Err(why.to_owned());
    }
    if !confinement.devices.is_empty() {
        return Err("devices are not lent to an engine".to_owned());
    }
    let granted = &confinement.readable;
    if confinement.hidden.iter().any(|one| granted.iter().any(|grant| one.starts_with(grant))) {
        return Err("an engine cannot hide a part of a granted folder".to_owned());
    }
    let is_plain = |path: &PathBuf| path.to_str().is_some_and(|text| !text.contains([',', '"']));
    if !granted.iter().all(is_plain) {
        return Err("a granted path has a comma or is no text".to_owned());
    }
    lent::check(granted)
}

/// A name that no other container has.
fn container_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map(|time| time.as_nanos()).unwrap_or_default();
    format!("haft-{}-{next}-{now:x}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_engines_listen_to_are_known_from_those_of_services() {
        for name in ["HOME", "PODMAN_USERNS", "LISTEN_FDS", "https_proxy", "OTEL_X", "BASH_ENV"] {
            assert!(is_steering(name), "{name}");
        }
        for name in ["GOOGLE_API_KEY", "HOMEASSISTANT_TOKEN", "PATHFINDER_KEY", "ENVATO_TOKEN"] {
            assert!(!is_steering(name), "{name}");
        }
    }
}
