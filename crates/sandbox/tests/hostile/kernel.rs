//! The kernel's own doors: system calls, terminals, files that it makes up, rights.

use std::os::fd::OwnedFd;

use sandbox::{Confinement, Stream};

use crate::kit::folders::{Folder, assert_settles};
use crate::kit::rooms::{output_of, shared_launcher, words};
use crate::kit::users::{actor, as_each_user, assert_passes, role};
use crate::probing::{assert_escapes_outside, assert_held, leads_to_the_probe, word};
use crate::table::{self, assert_all_held};

#[test]
fn no_namespace_is_made_or_entered_and_no_mount_changed() {
    as_each_user(|| assert_all_held(&Confinement::default(), table::NAMESPACES));
}

#[test]
fn parts_of_the_kernel_that_no_tool_needs_are_closed() {
    as_each_user(|| assert_all_held(&Confinement::default(), table::KERNEL));
}

#[test]
fn no_right_and_no_limit_can_be_gained() {
    as_each_user(|| {
        let folder = Folder::outside();
        let work = folder.make("work");
        let writing = Confinement {
            writable: vec![work.clone()],
            folder: work.clone(),
            ..Confinement::default()
        };
        for confinement in [Confinement::default(), writing] {
            assert_all_held(&confinement, table::IDENTITY);
        }
        assert_settles(&work, &[]);
    });
}

#[test]
fn files_that_the_kernel_makes_up_tell_nothing_and_take_nothing() {
    as_each_user(|| assert_all_held(&Confinement::default(), table::MADE_UP_FILES));
}

#[test]
fn the_table_of_mounts_names_no_path_that_was_not_granted() {
    as_each_user(|| {
        let folder = Folder::outside();
        let (granted, hidden) = (folder.make("granted"), folder.make("granted/hidden"));
        let secret = folder.make("customer-name");
        let confinement = Confinement {
            readable: vec![granted.clone()],
            hidden: vec![hidden],
            ..Confinement::default()
        };
        let paths =
            [word(&secret), "customer-name", "/home/", "/root", "/var/lib", "/haft-launcher"];
        for path in paths.into_iter().filter(|path| !leads_to_the_probe(path)) {
            assert_held(&confinement, &["mountinfo-has", path]);
        }
        // A grant is named where it is, so the test can fail.
        let read = words(["/bin/cat", "/proc/self/mountinfo"]);
        let table = output_of(shared_launcher(), &confinement, &read);
        assert!(table.contains(word(&granted)), "{table}");
        assert_escapes_outside(&folder, &["mountinfo-has", " / "]);
    });
}

#[test]
fn a_terminal_that_is_passed_on_is_not_typed_into() {
    if role().is_some() {
        return type_into_standard_input();
    }
    as_each_user(|| {
        let (_ours, theirs) = terminal();
        let mut actor = actor(a_terminal_that_is_passed_on_is_not_typed_into, "at a terminal");
        assert_passes(actor.stdin(theirs), "at a terminal");
    });
}

fn type_into_standard_input() {
    let confinement = Confinement { stdin: Stream::Inherit, ..Confinement::default() };
    for probe in ["tiocsti", "tioclinux"] {
        let said = assert_held(&confinement, &[probe]);
        for place in ["on fd 0", "on fd 0, upper bits", "on own pty, upper bits"] {
            assert!(said.contains(place), "`{probe}` was not tried {place}: {said}");
        }
    }
}

/// Both ends of a new terminal.
fn terminal() -> (OwnedFd, OwnedFd) {
    use rustix::pty::OpenptFlags;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = rustix::pty::openpt(flags).unwrap();
    rustix::pty::grantpt(&ours).unwrap();
    rustix::pty::unlockpt(&ours).unwrap();
    let name = rustix::pty::ptsname(&ours, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let theirs = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty()).unwrap();
    (ours, theirs)
}
