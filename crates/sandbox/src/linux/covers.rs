//! What lies over a name in a granted folder, and whether it still does.
//!
//! A cover is a mount on a file of the outside. Whoever removes or replaces that file out there makes
//! the kernel take the cover away; whoever moves it takes the cover along and leaves its name bare.
//! Neither can be kept from happening here. A [`Lookout`] is told of the first by the list of our mounts,
//! and looks there every second for the second. (A watch on the file would tell at once, but to
//! close one takes the kernel ten milliseconds, which every run would wait for.)

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, SeekFrom, StatxFlags};

use super::mounts::Doing;
use crate::level::Fault;

/// How often to look, because nobody tells of a file that is moved.
const PAUSE: Duration = Duration::from_secs(1);

/// The covers of a room under construction.
#[derive(Debug, Default)]
pub(crate) struct Covers {
    placed: Vec<Cover>,
}

#[derive(Debug)]
struct Cover {
    /// The kernel's number of the mount.
    mount: u64,
    /// Where it lies, as the kernel writes it.
    place: Vec<u8>,
}

impl Covers {
    /// Notes a cover that lies, or is about to lie, on a path. Paths still lead to the outside.
    pub(crate) fn note(&mut self, cover: BorrowedFd<'_>, path: &Path) -> Result<(), Fault> {
        let stat = rustix::fs::statx(cover, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)
            .doing(|| format!("look at the cover of `{}`", path.display()))?;
        self.placed.push(Cover { mount: stat.stx_mnt_id, place: escaped(path) });
        Ok(())
    }

    /// Begins to look out for them, from inside the new root; `None` where there are none.
    pub(crate) fn look_out(self) -> Result<Option<Lookout>, Fault> {
        if self.placed.is_empty() {
            return Ok(None);
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mounts = rustix::fs::openat(CWD, "/proc/self/mountinfo", flags, Mode::empty());
        let mounts = mounts.doing(|| "open the list of mounts".into())?;
        Ok(Some(Lookout { covers: self, mounts }))
    }
}

/// The eyes of a room on its covers.
#[derive(Debug)]
pub(crate) struct Lookout {
    covers: Covers,
    /// The list of the room's mounts.
    mounts: OwnedFd,
}

impl Lookout {
    /// What to wait for.
    pub(crate) fn news(&self) -> PollFd<'_> {
        PollFd::new(&self.mounts, PollFlags::PRI | PollFlags::ERR)
    }

    /// How long one may look away.
    pub(crate) fn pause() -> Duration {
        PAUSE
    }

    /// Looks whether every cover lies where it was placed.
    pub(crate) fn is_whole(&self) -> bool {
        // Whoever cannot look must assume the worst.
        let Some(text) = self.read() else { return false };
        let lies: HashMap<u64, &[u8]> =
            text.split(|byte| *byte == b'\n').filter_map(mount_of).collect();
        self.covers.placed.iter().all(|one| lies.get(&one.mount) == Some(&one.place.as_slice()))
    }

    fn read(&self) -> Option<Vec<u8>> {
        rustix::fs::seek(self.mounts.as_fd(), SeekFrom::Start(0)).ok()?;
        let mut text = Vec::with_capacity(32 << 10);
        loop {
            let mut buffer = [0; 8192];
            match rustix::io::read(&self.mounts, &mut buffer).ok()? {
                0 => return Some(text),
                count => text.extend_from_slice(&buffer[..count]),
            }
        }
    }
}

/// The number and the place of a mount, from its line in the kernel's list.
fn mount_of(line: &[u8]) -> Option<(u64, &[u8])> {
    let mut words = line.split(|byte| *byte == b' ');
    let number = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    Some((number, words.nth(3)?))
}

/// A path as the kernel writes it in its lists.
fn escaped(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => text.extend(format!("\\{byte:03o}").into_bytes()),
            byte => text.push(*byte),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_read_from_its_line() {
        let line = b"36 35 98:0 /mnt1 /mnt/a\\040b rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(mount_of(line), Some((36, b"/mnt/a\\040b".as_slice())));
        assert_eq!(escaped(Path::new("/mnt/a b")), b"/mnt/a\\040b");
        for line in [b"".as_slice(), b"36 35 98:0 /", b"x 35 98:0 / /mnt rw"] {
            assert_eq!(mount_of(line), None);
        }
    }
}
