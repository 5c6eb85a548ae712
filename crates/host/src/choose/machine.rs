//! What this machine has: programs, the versions they say, packages that they find, and what it is made of.
//!
//! A program is asked inside the walls, with nothing of the package within its reach, so that nothing of a stranger runs
//! before the owner was asked. What it said is kept until its file looks otherwise.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use ledger::state::machine::Said;
use pep440_rs::{Version as PythonVersion, VersionSpecifiers};
use sandbox::runtime::{self, Word};
use sandbox::{Confinement, Exit, Launcher};
use semver::{Version, VersionReq};
use serde_json::Value;

use super::needs::{RuntimeKind, Wanted, version_in};
use crate::call::Tool;
use crate::records::{Records, now};

/// How long a program has to say its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long what a program said is believed: one that only leads to others may lead elsewhere by then.
const BELIEVED: Duration = Duration::from_hours(1);

/// How many bytes of an answer are read.
const MOST_SAID: usize = 64 << 10;

/// The largest description of a Node package that is read.
const MOST_DESCRIBED: u64 = 1 << 20;

/// Asks a Python which packages it finds.
const PYTHON: &str = include_str!("packages.py");

/// This machine, as a tool finds it.
pub(super) struct Machine<'m> {
    pub(super) tool: &'m Tool,
    pub(super) launcher: &'m Launcher,
    pub(super) records: &'m Records,
    /// Where programs are looked for.
    pub(super) search: Cow<'m, OsStr>,
}

impl Machine<'_> {
    /// Whether a program of that name can be found.
    pub(super) fn has(&self, name: &str) -> bool {
        runtime::is_there(OsStr::new(name), &self.search, &self.tool.root)
    }

    /// The versions of a runtime that a program says it is; none where it does not say, and nothing where it does not even
    /// run: what stands for a runtime may lead nowhere.
    pub(super) async fn versions(&self, kind: &RuntimeKind, program: &str) -> Option<Vec<Version>> {
        let question = match kind {
            RuntimeKind::Dotnet => "--list-runtimes",
            RuntimeKind::Other(name) if name == "go" => "version",
            _ => "--version",
        };
        let said = match self.asked(program, &[question.into()], &[]).await {
            Heard::Said(said) => said,
            Heard::Nothing => String::new(),
            Heard::NotRun => return None,
        };
        Some(match kind {
            RuntimeKind::Dotnet => {
                let of_core =
                    |line: &str| line.strip_prefix("Microsoft.NETCore.App ").and_then(version_in);
                said.lines().filter_map(of_core).collect()
            }
            RuntimeKind::Other(name) if name == "go" => {
                version_in(&said.replace(" go1", " 1")).into_iter().collect()
            }
            _ => version_in(&said).into_iter().collect(),
        })
    }

    /// What of these packages a Python does not find, each in words; nothing where it cannot be asked.
    pub(super) async fn lacking_in_python(
        &self,
        program: &str,
        wanted: &[Wanted],
    ) -> Option<Vec<String>> {
        let names: Vec<_> = wanted.iter().map(|one| one.name.as_str()).collect();
        let libraries = self.tool.brought.python.clone();
        let mut question: Vec<OsString> = ["-I", "-c", PYTHON].map(OsString::from).into();
        question.push(serde_json::to_string(&names).ok()?.into());
        question.extend(libraries.iter().map(|folder| folder.clone().into_os_string()));
        let readable: Vec<PathBuf> = libraries.into_iter().collect();
        let Heard::Said(said) = self.asked(program, &question, &readable).await else {
            return None;
        };
        let said: Value = serde_json::from_str(&said).ok()?;
        let found: BTreeMap<String, Option<String>> =
            serde_json::from_value(said["packages"].clone()).ok()?;
        let lacking = wanted.iter().filter_map(|one| {
            let found = found.get(&one.name).cloned().flatten();
            let does = |found: &str| {
                let specifiers = VersionSpecifiers::from_str(&one.versions).ok();
                let version = PythonVersion::from_str(found).ok();
                specifiers.zip(version).is_none_or(|(those, version)| those.contains(&version))
            };
            missed(one, found.as_deref(), does)
        });
        Some(lacking.collect())
    }

    /// What of these packages is not among those of the tool, each in words.
    pub(super) fn lacking_in_node(&self, wanted: &[Wanted]) -> Vec<String> {
        let own = self.tool.root.join("node_modules");
        let folders: Vec<PathBuf> =
            [Some(own), self.tool.brought.node.clone()].into_iter().flatten().collect();
        let lacking = wanted.iter().filter_map(|one| {
            let found =
                folders.iter().find_map(|folder| self.node_version(&folder.join(&one.name)));
            let does = |found: &str| {
                let range = VersionReq::parse(&one.versions).ok();
                let version = Version::parse(found).ok();
                one.versions.is_empty()
                    || range.zip(version).is_none_or(|(range, version)| range.matches(&version))
            };
            missed(one, found.as_deref(), does)
        });
        lacking.collect()
    }

    /// The version of the Node package in a folder of the tool.
    fn node_version(&self, folder: &Path) -> Option<String> {
        let described = folder.join("package.json").canonicalize().ok()?;
        // A link leads where the tool itself cannot look.
        if !self.tool.holds(&described) || described.metadata().ok()?.len() > MOST_DESCRIBED {
            return None;
        }
        let described: Value = serde_json::from_slice(&std::fs::read(described).ok()?).ok()?;
        Some(described["version"].as_str().unwrap_or("0.0.0").to_owned())
    }

    /// What a program answers to arguments, inside the walls, or answered before.
    async fn asked(&self, program: &str, arguments: &[OsString], readable: &[PathBuf]) -> Heard {
        let found =
            runtime::find(OsStr::new(program), &self.search, &self.tool.root, Word::Package);
        let Ok(found) = found else { return Heard::NotRun };
        let question = format!("{} {arguments:?}", found.path.display());
        let kept = self.records.state.said(&question).await.ok().flatten();
        if let Some(kept) = kept
            && now() < kept.at.plus(BELIEVED)
            && stamp(&found.path, &folders_in(&kept.said)) == kept.stamp
        {
            return Heard::Said(kept.said);
        }
        let mut confinement = Confinement::default();
        confinement.limits.deadline = Some(PATIENCE);
        confinement.limits.output = Some(MOST_SAID as u64);
        confinement.readable.extend(readable.iter().cloned());
        found.allow(&mut confinement);
        let mut argv = vec![found.path.clone().into_os_string()];
        argv.extend(arguments.iter().cloned());
        let launcher = self.launcher.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let finished = launcher.spawn(&confinement, &argv).ok()?.finish(b"").ok()?;
            let said = if finished.stdout.is_empty() { &finished.stderr } else { &finished.stdout };
            Some(match finished.ended.exit {
                Exit::Code(0) => Heard::Said(String::from_utf8_lossy(said).into_owned()),
                // So says what only leads to a program that is not there.
                Exit::Code(126 | 127) => Heard::NotRun,
                _ => Heard::Nothing,
            })
        });
        // Where there are no walls, nobody is asked.
        let said = match asked.await.ok().flatten().unwrap_or(Heard::Nothing) {
            Heard::Said(said) => said,
            other => return other,
        };
        let stamp = stamp(&found.path, &folders_in(&said));
        let kept = Said { stamp, said, at: now() };
        // Who cannot keep it asks again.
        let _ = self.records.state.note_said(&question, &kept).await;
        Heard::Said(kept.said)
    }

    /// Whether there is a graphics card that something could compute on.
    pub(super) fn has_gpu() -> bool {
        let named = ["/dev/nvidiactl", "/dev/kfd", "/dev/dxg"];
        let rendering = std::fs::read_dir("/dev/dri").into_iter().flatten().flatten();
        named.iter().any(|path| Path::new(path).exists())
            || rendering
                .into_iter()
                .any(|one| one.file_name().to_string_lossy().starts_with("renderD"))
    }

    /// How much memory there is, in MiB.
    pub(super) fn memory() -> Option<u64> {
        let told = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = told.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib >> 10)
    }

    /// How many processors there are.
    pub(super) fn cores() -> Option<u64> {
        std::thread::available_parallelism().ok().map(|count| count.get() as u64)
    }
}

/// What a program says when it is asked.
enum Heard {
    Said(String),
    /// It does not say.
    Nothing,
    /// There is none, or what there is leads to none.
    NotRun,
}

/// What is wrong with a package that was found, or was not.
fn missed(wanted: &Wanted, found: Option<&str>, does: impl Fn(&str) -> bool) -> Option<String> {
    let Wanted { name, versions } = wanted;
    match found {
        None => Some(format!("`{name}`, which is not installed")),
        Some(found) if !does(found) => Some(format!("`{name}` {versions}, which is {found}")),
        Some(_) => None,
    }
}

/// The folders that an answer depends on, where it names any.
fn folders_in(said: &str) -> Vec<PathBuf> {
    let said: Option<Value> = serde_json::from_str(said).ok();
    let folders = said.as_ref().and_then(|said| said.get("folders")?.as_array());
    folders.into_iter().flatten().filter_map(Value::as_str).map(PathBuf::from).collect()
}

/// What the files look like that an answer comes from.
pub(crate) fn stamp(program: &Path, folders: &[PathBuf]) -> String {
    let mut stamp = String::new();
    for path in std::iter::once(program).chain(folders.iter().map(PathBuf::as_path)) {
        match path.metadata() {
            Ok(found) => {
                let (number, size) = (found.ino(), found.size());
                let _ = write!(stamp, "{number}.{size}.{}.{} ", found.mtime(), found.mtime_nsec());
            }
            Err(_) => stamp.push_str("- "),
        }
    }
    stamp
}
