//! Other processes: those of the host are not there, and the first one of a room is out of reach.

use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType};
use sandbox::{Confinement, Exit, Finding, Primitive};

use crate::kit::folders::Folder;
use crate::kit::rooms::{launcher, shared_launcher, text};
use crate::kit::users::as_each_user;
use crate::probing::{assert_held, probe, probe_outside, start_probe, word};
use crate::table::{self, assert_all_held};

#[test]
fn the_first_process_of_a_room_is_out_of_reach() {
    as_each_user(|| {
        assert_all_held(&Confinement::default(), table::PROCESSES);
        let every_signal = ["signal-every", "1"];
        if keeps_signals_in() {
            assert_all_held(&Confinement::default(), table::SIGNALS);
            let said = assert_held(&Confinement::default(), &every_signal);
            for call in ["kill", "tgkill", "rt_sigqueueinfo", "pidfd_send_signal"] {
                assert!(said.contains(call), "`{call}` was not tried: {said}");
            }
        } else {
            // They arrive, and do nothing: the room tells how the probe ended.
            let (said, exit) = probe(&Confinement::default(), &every_signal);
            assert_eq!(exit, Exit::Code(42), "{said}");
        }
    });
}

/// Whether the kernel can keep signals within a program: Landlock can from its sixth version on.
fn keeps_signals_in() -> bool {
    let walls = shared_launcher().walls();
    walls.findings.iter().any(|(primitive, finding)| {
        let version = match finding {
            Finding::Works(what) => what.strip_prefix("ABI ").and_then(|text| text.parse().ok()),
            Finding::Fails(_) => None,
        };
        *primitive == Primitive::Landlock && version.is_some_and(|version: u32| version >= 6)
    })
}

#[test]
fn processes_of_the_host_do_not_exist() {
    as_each_user(|| {
        let another =
            start_probe(shared_launcher(), &Confinement::default(), &["sleep-stubborn", "30"]);
        for pid in [std::process::id(), another.id()] {
            let pid = pid.to_string();
            for words in [
                vec!["read-proc", &pid, "all"],
                vec!["ptrace-attach", &pid],
                vec!["process-vm-readv", &pid],
                vec!["signal", &pid],
                vec!["signal-every", &pid],
                vec!["pidfd-getfd", &pid],
                vec!["proc-exe-write", &pid],
            ] {
                assert_held(&Confinement::default(), &words);
            }
        }
    });
}

#[test]
fn killing_everybody_does_not_end_the_room() {
    as_each_user(|| {
        let (said, exit) = probe(&Confinement::default(), &["kill-everyone"]);
        assert_eq!(said, "works: kill(-1) reached its own child only");
        assert_eq!(exit, Exit::Code(0));
        let (said, code) = probe_outside(std::path::Path::new("/"), &["kill-everyone"]);
        assert_eq!((said.as_str(), code), ("skipped: only in a room", Some(43)));
    });
}

#[test]
fn descriptors_of_the_host_are_not_inherited() {
    as_each_user(|| {
        let folder = Folder::outside();
        let secret = folder.write("secret", "secret");
        let _open = without_close_on_exec(&secret);
        // The one launcher was started before they were open or after; this one certainly after.
        for launcher in [shared_launcher(), &launcher()] {
            let child = start_probe(launcher, &Confinement::default(), &["inherited-descriptors"]);
            let said = text(&child.finish(b"").unwrap().stdout);
            assert_eq!(said, "held: descriptors: only 0, 1, 2\n");
        }
        let (said, code) = probe_outside(&folder, &["inherited-descriptors"]);
        assert_eq!(code, Some(42), "{said}");
    });
}

/// A file, a folder, sockets and a pipe that every child gets.
fn without_close_on_exec(file: &std::path::Path) -> Vec<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    let open = |path: &str| rustix::fs::open(path, OFlags::RDONLY, Mode::empty()).unwrap();
    let socket = |family, kind| rustix::net::socket(family, kind, None).unwrap();
    let (read, write) = rustix::pipe::pipe().unwrap();
    vec![
        open(word(file)),
        open("/"),
        open("/proc/self/ns/mnt"),
        socket(AddressFamily::INET, SocketType::STREAM),
        socket(AddressFamily::INET, SocketType::DGRAM),
        socket(AddressFamily::UNIX, SocketType::STREAM),
        read,
        write,
    ]
}
