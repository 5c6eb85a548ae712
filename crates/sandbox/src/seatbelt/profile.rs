//! What a process may have, as a profile in Seatbelt's language.
//!
//! The text of a profile is the same whatever the paths are called: a path is
//! a parameter beside it and never a part of it, so no path can say anything
//! in it. Of all clauses about one thing the last one holds.

use std::ffi::OsString;
use std::path::Path;

use super::names;
use super::rules::{Access, Rule, Shape};

/// A profile and its parameters.
#[derive(Debug)]
pub(crate) struct Profile {
    text: String,
    /// The path that each parameter stands for.
    parameters: Vec<OsString>,
}

/// What a program may do with what it sees.
const SEE: &str = "file-read* file-map-executable process-exec*";

/// Folders of the system: programs, libraries, frameworks, and the caches of the
/// dynamic linker. Nothing in them is the owner's; `/System/Volumes` would hold all that is.
const SYSTEM_FOLDERS: [&str; 14] = [
    "/Library/Apple/System",
    "/Library/Developer/CommandLineTools",
    "/System/Cryptexes",
    "/System/Library",
    "/System/Volumes/Preboot/Cryptexes",
    "/System/iOSSupport",
    "/bin",
    "/private/etc/ssl",
    "/private/var/db/dyld",
    "/private/var/db/timezone",
    "/sbin",
    "/usr/bin",
    "/usr/lib",
    "/usr/share",
];

/// Programs of the system that other programs start.
const SYSTEM_HELPERS: [&str; 2] = ["/usr/libexec", "/usr/sbin"];

/// Files of the system, and the root, which the dynamic linker must read to start at all. The root
/// is read as itself: what is in it is another question.
const SYSTEM_FILES: [&str; 8] = [
    "/",
    "/private/etc/group",
    "/private/etc/hosts",
    "/private/etc/localtime",
    "/private/etc/passwd",
    "/private/etc/protocols",
    "/private/etc/services",
    "/private/etc/shells",
];

/// Links of the system to folders in `/private`, of which no more is seen than that they are there.
const LINKS: [&str; 3] = ["/etc", "/tmp", "/var"];

/// Devices, which take what is written to them and keep nothing.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"];

/// The services that the system library asks who the user is and in which groups.
const SERVICES: [&str; 2] =
    ["com.apple.system.opendirectoryd.libinfo", "com.apple.system.opendirectoryd.membership"];

/// What a program may ask of the kernel: the machine and the version, nothing of other processes.
const QUESTIONS: [&str; 13] = [
    "kern.argmax",
    "kern.hostname",
    "kern.maxfilesperproc",
    "kern.maxproc",
    "kern.ngroups",
    "kern.osproductversion",
    "kern.osrelease",
    "kern.ostype",
    "kern.osvariant_status",
    "kern.osversion",
    "kern.usrstack64",
    "kern.version",
    "sysctl.proc_cputype",
];

/// Whether a path is one of the system's, which every program sees.
pub(crate) fn is_of_the_system(path: &Path) -> bool {
    SYSTEM_FOLDERS.iter().chain(&SYSTEM_HELPERS).any(|folder| path.starts_with(folder))
}

impl Profile {
    /// Writes the profile for these rules, parents before children. A `proxy` is
    /// the one port of this machine that can be reached.
    pub(crate) fn write<'a>(
        rules: &[Rule],
        devices: impl IntoIterator<Item = &'a Path>,
        proxy: Option<u16>,
    ) -> Self {
        let mut profile = Self { text: base(), parameters: Vec::new() };
        for device in devices {
            let device = profile.literal(device);
            profile.say(&format!("(allow file-read* file-write-data file-ioctl {device})"));
        }
        for rule in rules {
            profile.apply(rule);
        }
        profile.fix(rules);
        if let Some(port) = proxy {
            profile.say(&format!("(allow network-outbound (remote tcp \"localhost:{port}\"))"));
        }
        profile
    }

    /// The arguments of `sandbox-exec` before the program.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut arguments = vec![OsString::from("-p"), OsString::from(&self.text)];
        for (number, path) in self.parameters.iter().enumerate() {
            let mut argument = OsString::from(format!("-DP{number}="));
            argument.push(path);
            arguments.push(argument);
        }
        arguments.push("--".into());
        arguments
    }

    fn apply(&mut self, rule: &Rule) {
        let what = match rule.shape {
            Shape::File => self.literal(&rule.path),
            Shape::Folder | Shape::Repository => {
                format!("(subpath {})", self.parameter(&rule.path))
            }
        };
        match rule.access {
            Access::Read => {
                self.say(&format!("(deny file-write* {what})"));
                self.say(&format!("(allow {SEE} {what})"));
            }
            Access::Write => {
                self.say(&format!("(allow file-write* {SEE} {what})"));
                self.protect(rule, &what);
            }
            Access::Hide => self.say(&format!("(deny file-write* {SEE} {what})")),
        }
    }

    /// Keeps what must not be planted out of a writable folder.
    fn protect(&mut self, rule: &Rule, what: &str) {
        let depth = rule.path.components().count() - 1;
        let mut expressions =
            vec![names::at_top(depth), names::repository(), names::in_repository()];
        match rule.shape {
            Shape::File => return,
            Shape::Folder => {}
            Shape::Repository => expressions.push(names::in_bare_repository(depth)),
        }
        for expression in expressions {
            self.say(&format!("(deny file-write* (require-all {what} (regex #\"{expression}\")))"));
        }
    }

    /// Rules go by paths, so what has a rule stays where it is: neither it nor a folder above
    /// it can be moved away or removed. That the folders above are there can be seen.
    fn fix(&mut self, rules: &[Rule]) {
        let mut fixed: Vec<&Path> = rules.iter().flat_map(|rule| rule.path.ancestors()).collect();
        fixed.retain(|path| path.parent().is_some());
        fixed.sort_unstable();
        fixed.dedup();
        let is_way = |path: &Path| {
            rules.iter().any(|rule| {
                rule.access != Access::Hide && rule.path != path && rule.path.starts_with(path)
            })
        };
        for path in fixed {
            let what = self.literal(path);
            self.say(&format!("(deny file-write-unlink {what})"));
            if is_way(path) {
                self.say(&format!("(allow file-read-metadata {what})"));
            }
        }
    }

    fn literal(&mut self, path: &Path) -> String {
        format!("(literal {})", self.parameter(path))
    }

    /// The parameter that stands for a path.
    fn parameter(&mut self, path: &Path) -> String {
        let known = self.parameters.iter().position(|known| known == path.as_os_str());
        let number = known.unwrap_or_else(|| {
            self.parameters.push(path.into());
            self.parameters.len() - 1
        });
        format!("(param \"P{number}\")")
    }

    fn say(&mut self, clause: &str) {
        self.text.push_str(clause);
        self.text.push('\n');
    }
}

/// What every program has: the system to read, itself to handle, and nothing to reach.
fn base() -> String {
    let each = |filter: &str, names: &[&str]| -> String {
        names.iter().map(|name| format!(" ({filter} \"{name}\")")).collect()
    };
    let folders = each("subpath", &SYSTEM_FOLDERS) + &each("subpath", &SYSTEM_HELPERS);
    let lines = [
        "(version 1)".to_owned(),
        "(deny default)".to_owned(),
        "(allow process-fork)".to_owned(),
        "(allow process-info* (target self))".to_owned(),
        "(allow signal (target same-sandbox))".to_owned(),
        format!("(allow {SEE}{folders})"),
        format!("(allow file-read*{})", each("literal", &SYSTEM_FILES)),
        format!("(allow file-read-metadata{})", each("literal", &ways())),
        format!("(allow file-read* file-write-data{})", each("literal", &DEVICES)),
        format!(
            "(allow sysctl-read (sysctl-name-prefix \"hw.\") (sysctl-name-prefix \"machdep.cpu.\"){})",
            each("sysctl-name", &QUESTIONS)
        ),
        format!("(allow mach-lookup{})", each("global-name", &SERVICES)),
    ];
    lines.join("\n") + "\n"
}

/// The folders above all that is of the system, and its links.
fn ways() -> Vec<&'static str> {
    let system = SYSTEM_FOLDERS.iter().chain(&SYSTEM_HELPERS).chain(&SYSTEM_FILES).chain(&DEVICES);
    let above = system.flat_map(|path| Path::new(path).ancestors().skip(1));
    let mut ways: Vec<_> = above.filter_map(Path::to_str).chain(LINKS).collect();
    ways.sort_unstable();
    ways.dedup();
    ways
}

#[cfg(test)]
mod tests;
