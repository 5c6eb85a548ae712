//! What stands in every room: the system's programs and libraries, and the parts
//! of `/etc` and `/dev` that the launcher puts together once.
//!
//! A [`Workshop`] is where things are put in their places; [`System`] says what there is to be put.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::mounts::{self, Doing, Mounted, Shape};
use crate::confinement::SCRATCH;
use crate::level::Fault;
use crate::protected::{OF_A_REPOSITORY, protected_names};

/// Folders at the top that hold programs and libraries.
const PROGRAMS: [&str; 9] =
    ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix/store", "gnu/store"];

/// What programs read under `/etc` and what holds no secret. `/etc/ssl` is not
/// here as a whole: its private keys are readable to a host that is root.
const SETTINGS: [&str; 20] = [
    "etc/alternatives",
    "etc/ca-certificates",
    "etc/crypto-policies",
    "etc/debian_version",
    "etc/fonts",
    "etc/java-17-openjdk",
    "etc/java-21-openjdk",
    "etc/ld.so.cache",
    "etc/ld.so.conf",
    "etc/ld.so.conf.d",
    "etc/localtime",
    "etc/magic",
    "etc/mime.types",
    "etc/os-release",
    "etc/pki/ca-trust",
    "etc/pki/tls/certs",
    "etc/services",
    "etc/ssl/certs",
    "etc/ssl/openssl.cnf",
    "etc/timezone",
];

/// Files under `/etc` of our own, so that look-ups of users and hosts have an answer.
const WRITTEN: [(&str, &str); 8] = [
    // What keeps others out of a granted folder is not to be committed.
    ("etc/gitconfig", "[core]\n\texcludesFile = /etc/haft.exclude\n"),
    // Covers what must read as nothing.
    ("etc/.empty", ""),
    (
        "etc/passwd",
        "root:x:0:0:root:/:/usr/sbin/nologin\n\
         tool:x:1000:1000:tool:/tmp:/bin/sh\n\
         nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    ),
    ("etc/group", "root:x:0:\ntool:x:1000:\nnogroup:x:65534:\n"),
    ("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n127.0.0.1 haft\n"),
    ("etc/hostname", "haft\n"),
    ("etc/resolv.conf", ""),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
];

/// Devices that every program may expect.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Links under `/dev` that every program may expect. Shared memory by name lives in the scratch folder.
const DEVICE_LINKS: [(&str, &str); 6] = [
    ("dev/fd", "/proc/self/fd"),
    ("dev/stdin", "/proc/self/fd/0"),
    ("dev/stdout", "/proc/self/fd/1"),
    ("dev/stderr", "/proc/self/fd/2"),
    ("dev/ptmx", "pts/ptmx"),
    ("dev/shm", SCRATCH),
];

/// Whether a path is in every room by itself, if the system has it.
pub fn is_in_every_room(path: &Path) -> bool {
    let Ok(path) = path.strip_prefix("/") else { return false };
    let written = WRITTEN.iter().map(|(place, _)| place);
    PROGRAMS.iter().chain(&SETTINGS).chain(written).any(|place| path.starts_with(place))
}

/// What the system has of the lists above; looked up once.
#[derive(Debug)]
pub(crate) struct System {
    pub(crate) programs: Vec<Entry>,
    settings: Vec<Entry>,
}

#[derive(Debug)]
pub(crate) enum Entry {
    Tree(PathBuf, Shape),
    Link(PathBuf, PathBuf),
}

impl System {
    /// Looks at what is there.
    pub(crate) fn find() -> Self {
        let find = |names: &[&str]| names.iter().filter_map(|name| Entry::find(name)).collect();
        Self { programs: find(&PROGRAMS), settings: find(&SETTINGS) }
    }

    /// The paths that every room can read, for walls that only name paths.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.programs.iter().chain(&self.settings).map(|entry| match entry {
            Entry::Tree(path, _) | Entry::Link(path, _) => Path::new("/").join(path),
        })
    }
}

impl Entry {
    fn find(name: &str) -> Option<Self> {
        let outside = Path::new("/").join(name);
        let metadata = std::fs::symlink_metadata(&outside).ok()?;
        Some(if metadata.is_symlink() {
            Self::Link(name.into(), std::fs::read_link(&outside).ok()?)
        } else if metadata.is_dir() {
            Self::Tree(name.into(), Shape::Folder)
        } else {
            Self::Tree(name.into(), Shape::File)
        })
    }
}

/// The furniture of every room, put together once by the launcher: `/etc` and `/dev`, each
/// of which a room then takes whole.
#[derive(Debug)]
pub(crate) struct Furniture {
    _top: OwnedFd,
}

/// Where the launcher keeps the furniture: a folder that is always there and that nobody grants. A
/// room knows it by its path, because a copy of a mount has no other name. It cannot be in `/proc`:
/// the kernel gives no fresh one while a part of the old one is covered.
pub(crate) const STORE: &str = "/sys/kernel";

impl Furniture {
    /// Puts it together, in a mount namespace of the launcher's own.
    pub(crate) fn build(system: &System) -> Result<Self, Fault> {
        let top = Workshop::open(STORE)?;
        for entry in &system.settings {
            match entry {
                Entry::Tree(path, Shape::File) => top.copy(path)?,
                shown => top.enter(shown)?,
            }
        }
        for (path, text) in WRITTEN {
            top.write(path, text).doing(|| format!("write `/{path}`"))?;
        }
        let kept_out = OF_A_REPOSITORY.iter().map(|name| (*name).to_owned());
        let names = protected_names().chain(kept_out);
        let names: String = names.map(|name| format!("/{name}\n")).collect();
        top.write("etc/haft.exclude", &names).doing(|| "write `/etc/haft.exclude`".into())?;
        for name in DEVICES {
            let device = Path::new("/dev").join(name);
            if rustix::fs::access(&device, rustix::fs::Access::EXISTS).is_ok() {
                top.bind(&device, Shape::File, Mounted::Device)?;
            }
        }
        for (path, target) in DEVICE_LINKS {
            top.link(Path::new(path), Path::new(target))?;
        }
        let terminals = top.place(Path::new("dev/pts"), Shape::Folder);
        terminals.doing(|| "make a folder for terminals".into())?;
        mounts::restrict_one(top.top.as_fd(), Mounted::ReadOnly)
            .doing(|| "make the furniture read-only".into())?;
        Ok(Self { _top: top.top })
    }
}

/// A file system in memory in which things are put in their places.
#[derive(Debug)]
pub(crate) struct Workshop {
    pub(crate) top: OwnedFd,
}

impl Workshop {
    /// Makes one and mounts it at a path.
    pub(crate) fn open(path: &str) -> Result<Self, Fault> {
        let doing = || format!("mount a file system in memory on `{path}`");
        let top = mounts::memory(4 << 20, 4096, "755").doing(doing)?;
        let place = mounts::name(CWD, path).doing(doing)?;
        mounts::put(top.as_fd(), place.as_fd()).doing(doing)?;
        Ok(Self { top })
    }

    pub(crate) fn enter(&self, entry: &Entry) -> Result<(), Fault> {
        match entry {
            Entry::Tree(path, shape) => {
                self.bind(&Path::new("/").join(path), *shape, Mounted::ReadOnly)
            }
            Entry::Link(path, target) => self.link(path, target),
        }
    }

    pub(crate) fn place(&self, path: &Path, shape: Shape) -> Result<OwnedFd, Errno> {
        mounts::place(self.top.as_fd(), path, shape)
    }

    /// Shows a path of the outside at the same path inside.
    pub(crate) fn bind(&self, path: &Path, shape: Shape, mounted: Mounted) -> Result<(), Fault> {
        let doing = || format!("mount `{}`", path.display());
        let mount = mounts::copy(CWD, path, mounted).doing(doing)?;
        let place = self.place(path, shape).doing(doing)?;
        mounts::put(mount.as_fd(), place.as_fd()).doing(doing)
    }

    pub(crate) fn link(&self, path: &Path, target: &Path) -> Result<(), Fault> {
        let doing = || format!("link `{}`", path.display());
        let path = path.strip_prefix("/").unwrap_or(path);
        let (parent, name) = (path.parent(), path.file_name().unwrap_or_default());
        let made = match parent.filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => {
                let parent = self.place(parent, Shape::Folder).doing(doing)?;
                rustix::fs::symlinkat(target, &parent, name)
            }
            None => rustix::fs::symlinkat(target, &self.top, name),
        };
        match made {
            Err(Errno::EXIST) => Ok(()),
            made => made.doing(doing),
        }
    }

    /// Copies a file of the outside: a view of it is one more thing for every room to make and to
    /// take down. One that is too long for that is shown.
    fn copy(&self, path: &Path) -> Result<(), Fault> {
        /// A quarter of what a workshop holds.
        const LONGEST: u64 = 1 << 20;
        let outside = Path::new("/").join(path);
        let doing = || format!("copy `{}`", outside.display());
        let mut text = Vec::new();
        let file = std::fs::File::open(&outside).doing(doing)?;
        file.take(LONGEST + 1).read_to_end(&mut text).doing(doing)?;
        if text.len() as u64 > LONGEST {
            return self.bind(&outside, Shape::File, Mounted::ReadOnly);
        }
        self.write(path, &text).doing(doing)
    }

    fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> Result<(), Errno> {
        let path = path.as_ref();
        let parent = self.place(path.parent().unwrap_or(Path::new("")), Shape::Folder)?;
        let name = path.file_name().unwrap_or_default();
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&parent, name, flags, Mode::from_raw_mode(0o644))?;
        let mut rest = text.as_ref();
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&file, rest)?..];
        }
        Ok(())
    }
}
