//! What to do about walls that are missing.

use std::fmt;
use std::path::{Path, PathBuf};

use sandbox::{Primitive, Walls};

use super::is_missing;
use crate::exit::{Exit, Failure};

/// The settings of a machine that decide over user namespaces. Tests bring a folder of their own.
#[derive(Debug)]
pub(super) struct Machine {
    root: PathBuf,
    program: PathBuf,
}

/// One thing that makes the walls stronger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Remedy {
    /// An AppArmor profile that lets this program use user namespaces (Ubuntu 23.10 and later).
    AppArmor { program: PathBuf },
    /// A setting of the kernel that forbids user namespaces, set to another value.
    Setting { name: &'static str, value: &'static str },
    /// Something for the owner to do.
    Advice(&'static str),
}

/// Where our profile is kept, and our settings.
const PROFILE: &str = "etc/apparmor.d/haft";
const SETTINGS: &str = "etc/sysctl.d/60-haft.conf";

/// Settings of several distributions that forbid user namespaces: the name, the value that
/// forbids, the value that allows.
const FORBIDDING: [(&str, &str, &str); 2] =
    [("kernel.unprivileged_userns_clone", "0", "1"), ("user.max_user_namespaces", "0", "15000")];

impl Machine {
    /// The machine this runs on.
    pub(super) fn this() -> Self {
        let program = std::env::current_exe().unwrap_or_else(|_| "/usr/local/bin/haft".into());
        Self { root: PathBuf::from("/"), program }
    }

    pub(super) fn is_root(&self) -> bool {
        #[cfg(unix)]
        return self.root != Path::new("/") || rustix::process::geteuid().is_root();
        #[cfg(not(unix))]
        false
    }

    fn setting(&self, name: &str) -> Option<String> {
        let path = self.root.join("proc/sys").join(name.replace('.', "/"));
        Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
    }

    /// Whether control groups are mounted one by one, as they were before version 2.
    fn has_old_groups(&self) -> bool {
        let groups = self.root.join("sys/fs/cgroup");
        groups.join("memory").is_dir() && !groups.join("cgroup.controllers").exists()
    }

    fn is_container(&self) -> bool {
        ["run/.containerenv", ".dockerenv"].iter().any(|name| self.root.join(name).exists())
    }
}

/// The settings of a machine that keep ordinary users from having walls.
pub(super) fn settings(machine: &Machine) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    let restricted = machine.setting("kernel.apparmor_restrict_unprivileged_userns");
    if restricted.as_deref() == Some("1") && !machine.root.join(PROFILE).exists() {
        remedies.push(Remedy::AppArmor { program: machine.program.clone() });
    }
    for (name, forbids, value) in FORBIDDING {
        if machine.setting(name).as_deref() == Some(forbids) {
            remedies.push(Remedy::Setting { name, value });
        }
    }
    remedies
}

/// What would make these walls stronger.
pub(super) fn of(walls: &Walls, machine: &Machine) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if is_missing(walls, Primitive::Namespaces) {
        remedies.extend(settings(machine));
        if machine.is_container() {
            remedies.push(Remedy::Advice(
                "in a container: podman run --security-opt unmask=ALL …; docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined …, and --security-opt apparmor=unconfined where the host has AppArmor",
            ));
        }
    }
    if is_missing(walls, Primitive::Landlock) {
        remedies.push(Remedy::Advice(
            "Landlock: a kernel from 5.13 on with CONFIG_SECURITY_LANDLOCK, and `landlock` in the list of its lsm= parameter",
        ));
    }
    if is_missing(walls, Primitive::ControlGroups) && !is_missing(walls, Primitive::Namespaces) {
        remedies.push(Remedy::Advice(if machine.has_old_groups() {
            "for L3: this machine has control groups v1, which only root can use and only where they can be written; boot it with the unified hierarchy (v2), `systemd.unified_cgroup_hierarchy=1` on the kernel's command line; without it, limits are held by rlimits and a watchdog"
        } else {
            "for L3: start haft in a group of its own, `systemd-run --user --scope -p Delegate=yes haft …`; without it, limits are held by rlimits and a watchdog"
        }));
    }
    remedies
}

impl Remedy {
    /// Does it, for good.
    pub(super) fn apply(&self, machine: &Machine) -> Result<(), Failure> {
        match self {
            Self::AppArmor { program } => {
                let path = machine.root.join(PROFILE);
                write(&path, &profile(program)?)?;
                load(&path, machine)
            }
            Self::Setting { name, value } => {
                let path = machine.root.join(SETTINGS);
                let before = std::fs::read_to_string(&path).unwrap_or_default();
                let kept: String = before
                    .lines()
                    .filter(|line| !line.starts_with(name))
                    .map(|line| format!("{line}\n"))
                    .collect();
                write(&path, &format!("{kept}{name} = {value}\n"))?;
                write(&machine.root.join("proc/sys").join(name.replace('.', "/")), value)
            }
            Self::Advice(_) => Ok(()),
        }
    }
}

/// A profile that confines nothing and allows user namespaces, for one program.
fn profile(program: &Path) -> Result<String, Failure> {
    let path = program.to_str().filter(|path| {
        path.starts_with('/')
            && path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+".contains(c))
    });
    let path = path.ok_or_else(|| {
        let message = format!("`{}` cannot be named in an AppArmor profile", program.display());
        Failure::invalid(message).hint("put haft at a plain path, such as /usr/local/bin/haft")
    })?;
    Ok(format!(
        "# Written by `haft doctor --fix`. Haft builds walls around tools, and needs user\n\
         # namespaces for that; nothing else about it is confined by this profile.\n\
         abi <abi/4.0>,\n\
         include <tunables/global>\n\n\
         profile haft {path} flags=(unconfined) {{\n  userns,\n\n  include if exists <local/haft>\n}}\n"
    ))
}

fn load(path: &Path, machine: &Machine) -> Result<(), Failure> {
    if machine.root != Path::new("/") {
        return Ok(());
    }
    let failed = |cause: String| {
        Failure::new(Exit::Unavailable, "failed to load the AppArmor profile")
            .cause(cause)
            .hint(format!("apparmor_parser -r {}", path.display()))
    };
    let output = std::process::Command::new("apparmor_parser")
        .arg("-r")
        .arg(path)
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| {
        Failure::new(Exit::Unavailable, format!("failed to write `{}`", path.display()))
            .cause(error)
    })
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AppArmor { program } => write!(
                f,
                "`sudo haft doctor --fix` writes /{PROFILE}, which lets `{}` use user namespaces",
                program.display()
            ),
            Self::Setting { name, value } => {
                write!(f, "`sudo haft doctor --fix` sets {name} = {value}, now and in /{SETTINGS}")
            }
            Self::Advice(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox::{Fault, Finding};

    fn walls(missing: &[Primitive]) -> Walls {
        let all = [
            Primitive::Namespaces,
            Primitive::Landlock,
            Primitive::Seccomp,
            Primitive::ControlGroups,
        ];
        let finding = |primitive: Primitive| {
            if missing.contains(&primitive) {
                Finding::Fails(Fault { doing: "try".into(), errno: 1 })
            } else {
                Finding::Works(String::new())
            }
        };
        Walls { findings: all.map(|primitive| (primitive, finding(primitive))).to_vec() }
    }

    fn machine(settings: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        for name in ["etc/apparmor.d", "etc/sysctl.d", "proc/sys/kernel", "proc/sys/user"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        for (name, value) in settings {
            let path = root.join("proc/sys").join(name.replace('.', "/"));
            std::fs::write(path, format!("{value}\n")).unwrap();
        }
        (folder, Machine { root, program: "/usr/local/bin/haft".into() })
    }

    #[test]
    fn a_machine_with_walls_needs_nothing() {
        let (_folder, machine) = machine(&[("kernel.apparmor_restrict_unprivileged_userns", "1")]);
        assert_eq!(of(&walls(&[]), &machine), []);
        // Root has walls; those who are not root are meant.
        assert_eq!(settings(&machine).len(), 1);
    }

    #[test]
    fn the_profile_of_ubuntu_is_written_once() {
        let (_folder, machine) = machine(&[("kernel.apparmor_restrict_unprivileged_userns", "1")]);
        let walls = walls(&[Primitive::Namespaces]);
        let remedies = of(&walls, &machine);
        assert!(matches!(&remedies[..], [Remedy::AppArmor { .. }]), "{remedies:?}");
        remedies[0].apply(&machine).unwrap();
        let written = std::fs::read_to_string(machine.root.join(PROFILE)).unwrap();
        assert!(
            written.contains("profile haft /usr/local/bin/haft flags=(unconfined) {\n  userns,")
        );
        assert_eq!(of(&walls, &machine), []);
    }

    #[test]
    fn a_program_with_an_odd_path_gets_no_profile() {
        for path in ["/opt/a b/haft", "/opt/{haft}", "haft", "/opt/ha\"ft"] {
            assert!(profile(Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn a_setting_that_forbids_is_changed_now_and_for_good_and_others_stay() {
        let (_folder, machine) = machine(&[
            ("kernel.unprivileged_userns_clone", "0"),
            ("user.max_user_namespaces", "0"),
        ]);
        std::fs::write(machine.root.join(SETTINGS), "vm.swappiness = 1\n").unwrap();
        let walls = walls(&[Primitive::Namespaces]);
        for remedy in of(&walls, &machine) {
            remedy.apply(&machine).unwrap();
        }
        assert_eq!(machine.setting("kernel.unprivileged_userns_clone").unwrap(), "1");
        assert_eq!(
            std::fs::read_to_string(machine.root.join(SETTINGS)).unwrap(),
            "vm.swappiness = 1\nkernel.unprivileged_userns_clone = 1\nuser.max_user_namespaces = 15000\n"
        );
        assert_eq!(of(&walls, &machine), []);
    }

    #[test]
    fn what_only_the_owner_can_do_is_advice() {
        let (_folder, machine) = machine(&[]);
        std::fs::write(machine.root.join(".dockerenv"), "").unwrap();
        let missing = [Primitive::Namespaces, Primitive::Landlock];
        let remedies = of(&walls(&missing), &machine);
        assert_eq!(remedies.len(), 2);
        assert!(remedies.iter().all(|remedy| matches!(remedy, Remedy::Advice(_))));
        let without_groups = of(&walls(&[Primitive::ControlGroups]), &machine);
        assert!(without_groups[0].to_string().contains("systemd-run"));
        std::fs::create_dir_all(machine.root.join("sys/fs/cgroup/memory")).unwrap();
        let with_old_groups = of(&walls(&[Primitive::ControlGroups]), &machine);
        assert!(with_old_groups[0].to_string().contains("unified_cgroup_hierarchy=1"));
        std::fs::write(machine.root.join("sys/fs/cgroup/cgroup.controllers"), "memory\n").unwrap();
        assert_eq!(of(&walls(&[Primitive::ControlGroups]), &machine), without_groups);
    }
}
