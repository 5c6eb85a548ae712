//! What whoever starts a walled program sees of it: its streams, how it ends, and what it used.
#![cfg(target_os = "linux")]

mod kit;

use std::io::{BufRead, BufReader, Read, Write};
use std::time::{Duration, Instant};

use kit::folders::Folder;
use kit::machine::{field, slowness};
use kit::rooms::{launcher, ours, output_of, python, run, shell, walled, with_program, words};
use kit::users::as_each_user;
use sandbox::{Confinement, Exit, Stream};

#[test]
fn a_program_that_is_asked_to_end_may_do_so_in_its_own_way() {
    as_each_user(|| {
        let launcher = launcher();
        let script = "trap 'echo asked; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
        let mut child = launcher.spawn(&walled(), &shell(script)).unwrap();
        let mut lines = BufReader::new(child.take_stdout().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        child.terminate();
        assert_eq!(lines.next().unwrap().unwrap(), "asked");
        assert_eq!(child.wait().exit, Exit::Code(7));
        let mut child = launcher.spawn(&walled(), &words(["/bin/sleep", "60"])).unwrap();
        child.terminate();
        assert_eq!(child.wait().exit, Exit::Signal(libc::SIGTERM));
        // Asking again is nothing.
        child.terminate();
        assert_eq!(child.wait().exit, Exit::Signal(libc::SIGTERM));
    });
}

#[test]
fn output_that_was_lent_to_another_program_ends_with_its_own() {
    as_each_user(|| {
        let launcher = launcher();
        let folder = Folder::new();
        let confinement = Confinement { writable: vec![folder.clone()], ..walled() };
        let place = folder.join("socket");
        let holding = python(&format!(
            "import os, socket, time
while True:
    try:
        lender = socket.socket(socket.AF_UNIX)
        lender.connect({place:?})
        lent = socket.recv_fds(lender, 1, 1)[1][0]
        break
    except OSError:
        time.sleep(0.001)
while True:
    os.write(lent, b'another')
    time.sleep(0.0001)"
        ));
        let lending = python(&format!(
            "import os, socket
os.write(1, b'own')
listener = socket.socket(socket.AF_UNIX)
listener.bind({place:?})
listener.listen()
borrower = listener.accept()[0]
os.unlink({place:?})
socket.send_fds(borrower, [b'x'], [1])
borrower.recv(1)"
        ));
        for reads_itself in [false, true] {
            // It is there first: a socket that a room finds in a folder is covered.
            let holder = launcher.spawn(&confinement, &holding).unwrap();
            let mut confinement = confinement.clone();
            confinement.limits.deadline = Some(Duration::from_secs(2) * slowness());
            let mut lender = launcher.spawn(&confinement, &lending).unwrap();
            let began = Instant::now();
            let mut written = Vec::new();
            let exit = if reads_itself {
                lender.take_stdout().unwrap().read_to_end(&mut written).unwrap();
                lender.wait().exit
            } else {
                let finished = lender.finish(b"").unwrap();
                written = finished.stdout;
                finished.ended.exit
            };
            assert!(began.elapsed() < Duration::from_secs(6) * slowness(), "{:?}", began.elapsed());
            assert_eq!(exit, Exit::Deadline);
            assert!(written.starts_with(b"own"));
            drop(holder);
        }
    });
}

#[test]
fn waiting_can_be_cut_short_and_repeated() {
    as_each_user(|| {
        let launcher = launcher();
        let confinement = Confinement { stdin: Stream::Pipe, ..walled() };
        let mut child = launcher.spawn(&confinement, &shell("read line; exit 3")).unwrap();
        assert_eq!(child.try_wait(), None);
        let began = Instant::now();
        let until_then = began + Duration::from_millis(100);
        assert_eq!(child.wait_until(Some(until_then)), None);
        assert!((100..1000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
        child.take_stdin().unwrap().write_all(b"go\n").unwrap();
        let ended = child.wait_until(Some(Instant::now() + Duration::from_secs(5))).unwrap();
        assert_eq!(ended.exit, Exit::Code(3));
        assert_eq!(child.wait(), ended);
        assert_eq!(child.try_wait(), Some(ended));
    });
}

#[test]
fn a_child_can_be_polled_like_any_descriptor() {
    as_each_user(|| {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let launcher = launcher();
        let mut child = launcher.spawn(&walled(), &shell("sleep 0.1; exit 4")).unwrap();
        let is_ready = |seconds| {
            let mut ready = [PollFd::new(&child, PollFlags::IN)];
            poll(&mut ready, Some(&Timespec { tv_sec: seconds, tv_nsec: 0 })).unwrap() == 1
        };
        assert!(!is_ready(0));
        assert!(is_ready(5));
        assert_eq!(child.try_wait().map(|ended| ended.exit), Some(Exit::Code(4)));
    });
}

#[test]
fn usage_is_told_about_right() {
    as_each_user(|| {
        let launcher = launcher();
        let confinement = with_program(with_program(walled(), "busy"), "hog");
        let spun = run(&launcher, &confinement, &ours("busy", &["spin", "0.4"])).ended;
        let used = spun.usage.user + spun.usage.system;
        assert!((380..700).contains(&used.as_millis()), "{:?}", spun.usage);
        assert!(spun.usage.wall >= Duration::from_millis(390), "{:?}", spun.usage);
        let touched = run(&launcher, &confinement, &ours("hog", &["touch", "100"])).ended;
        assert!(touched.usage.peak_memory >= 100 << 20, "{:?}", touched.usage);
        assert!(touched.usage.peak_memory < 160 << 20, "{:?}", touched.usage);
        let wrote = run(&launcher, &confinement, &shell("echo four; echo five5 >&2")).ended;
        assert_eq!(wrote.usage.output, 11);
        let slept = run(&launcher, &confinement, &shell("sleep 0.3")).ended.usage;
        let longest = u128::from(1000 * slowness());
        assert!((300..longest).contains(&slept.wall.as_millis()), "{slept:?}");
        let most = Duration::from_millis(100) * slowness();
        assert!(slept.user + slept.system < most, "{slept:?}");
    });
}

#[test]
fn a_server_answers_many_requests() {
    as_each_user(|| {
        let launcher = launcher();
        let mut confinement = Confinement { stdin: Stream::Pipe, ..walled() };
        confinement.limits.deadline = None;
        let script =
            "import sys\nfor line in sys.stdin:\n    print(line.strip()[::-1], flush=True)";
        let mut child = launcher.spawn(&confinement, &python(script)).unwrap();
        let mut requests = child.take_stdin().unwrap();
        let mut answers = BufReader::new(child.take_stdout().unwrap()).lines();
        for number in 0..2000 {
            writeln!(requests, "{number:04}").unwrap();
            let expected: String = format!("{number:04}").chars().rev().collect();
            assert_eq!(answers.next().unwrap().unwrap(), expected);
        }
        assert_eq!(child.try_wait(), None);
        drop(requests);
        assert_eq!(child.wait().exit, Exit::Code(0));
        assert!(answers.next().is_none());
        assert_eq!(child.wait().usage.output, 2000 * 5);
    });
}

#[test]
fn input_comes_whole_and_ends() {
    as_each_user(|| {
        let launcher = launcher();
        let confinement = Confinement { stdin: Stream::Pipe, ..walled() };
        let input: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let child = launcher.spawn(&confinement, &words(["/bin/cat"])).unwrap();
        let finished = child.finish(&input).unwrap();
        assert_eq!(finished.ended.exit, Exit::Code(0));
        assert!(finished.stdout == input);
        // A program need not read what it is given.
        let child = launcher.spawn(&confinement, &words(["/bin/true"])).unwrap();
        assert_eq!(child.finish(&input).unwrap().ended.exit, Exit::Code(0));
        let nothing = run(&launcher, &walled(), &words(["/bin/cat"]));
        assert_eq!((nothing.ended.exit, nothing.stdout.len()), (Exit::Code(0), 0));
    });
}

#[test]
fn streams_that_lead_nowhere_are_not_there_to_take() {
    as_each_user(|| {
        let launcher = launcher();
        let confinement = Confinement { stdout: Stream::Null, stderr: Stream::Null, ..walled() };
        let mut child = launcher.spawn(&confinement, &shell("echo a; echo b >&2")).unwrap();
        assert!(child.take_stdin().is_none());
        assert!(child.take_stdout().is_none() && child.take_stderr().is_none());
        assert!(child.take_network().is_none());
        assert_eq!(child.wait().exit, Exit::Code(0));
        assert_eq!(child.wait().usage.output, 0);
        let mut child = launcher.spawn(&walled(), &shell("echo a")).unwrap();
        let mut text = String::new();
        child.take_stdout().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "a\n");
        assert!(child.take_stdout().is_none());
    });
}

#[test]
fn codes_and_signals_are_told_apart() {
    as_each_user(|| {
        let launcher = launcher();
        for code in [0, 1, 42, 126, 127, 137, 255] {
            let ended = run(&launcher, &walled(), &shell(&format!("exit {code}"))).ended;
            assert_eq!(ended.exit, Exit::Code(code));
        }
        for (name, signal) in [
            ("SEGV", libc::SIGSEGV),
            ("KILL", libc::SIGKILL),
            ("TERM", libc::SIGTERM),
            ("PIPE", libc::SIGPIPE),
            ("USR1", libc::SIGUSR1),
            ("ABRT", libc::SIGABRT),
        ] {
            let ended = run(&launcher, &walled(), &shell(&format!("kill -{name} $$"))).ended;
            assert_eq!(ended.exit, Exit::Signal(signal), "{name}");
        }
        // To stop is not to end.
        let mut child = launcher.spawn(&walled(), &shell("kill -STOP $$")).unwrap();
        assert_eq!(child.wait_until(Some(Instant::now() + Duration::from_millis(200))), None);
        child.kill();
        assert_eq!(child.wait().exit, Exit::Cancelled);
    });
}

#[test]
fn the_signals_that_the_host_ignores_are_not_the_programs() {
    as_each_user(|| {
        let status = output_of(&launcher(), &walled(), &words(["/bin/cat", "/proc/self/status"]));
        for name in ["SigBlk:", "SigIgn:", "SigPnd:"] {
            let set = u64::from_str_radix(field(&status, name).unwrap(), 16).unwrap();
            // The C library ignores two signals of its own in whatever it starts.
            let its_own = (1 << 31) | (1 << 32);
            assert_eq!(set & !its_own, 0, "{name} {set:x}");
        }
    });
}
