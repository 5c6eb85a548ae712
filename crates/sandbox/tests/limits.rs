//! What a walled program may use: each limit holds for the whole of it, and the machine stays usable.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod kit;

use std::time::{Duration, Instant};

use kit::folders::{Folder, names};
use kit::machine::{below, kibibytes, number, slowness, until};
use kit::rooms::{
    launcher, ours, output_of, python, run, shell, text, walled, walled_with, with_limits,
    with_program,
};
use kit::users::{as_each_user, is_root};
use sandbox::{Confinement, Exit, Limits};

const MIB: u64 = 1 << 20;

#[test]
fn a_fork_bomb_stays_small_and_others_go_on() {
    as_each_user(|| {
        let launcher = launcher();
        let confinement = with_limits(|limits| {
            limits.processes = 40;
            limits.deadline = Some(Duration::from_millis(1500));
        });
        let confinement = with_program(confinement, "busy");
        let mut bomb = launcher.spawn(&confinement, &ours("busy", &["bomb"])).unwrap();
        let began = Instant::now();
        let mut most = 0;
        while bomb.wait_until(Some(Instant::now() + Duration::from_millis(50))).is_none() {
            most = most.max(below(number(&bomb)).len());
            if began.elapsed() < Duration::from_millis(500) {
                let asked = Instant::now();
                assert_eq!(output_of(&launcher, &walled(), &shell("echo fine")), "fine\n");
                assert!(std::process::Command::new("/bin/true").status().unwrap().success());
                assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
            }
        }
        let exit = bomb.wait().exit;
        assert!(matches!(exit, Exit::Deadline | Exit::Processes), "{exit}");
        // Whoever is ended for having too many may be so before anybody looks.
        let least = if matches!(exit, Exit::Processes) { 0 } else { 2 };
        assert!((least..=41).contains(&most), "{most} processes");
        assert!(below(number(&bomb)).is_empty());
    });
}

#[test]
fn processes_and_threads_are_counted_alike() {
    as_each_user(|| {
        let launcher = launcher();
        let confinement = with_limits(|limits| limits.processes = 40);
        let confinement = with_program(confinement, "busy");
        for how in ["fork", "start-threads"] {
            let finished = run(&launcher, &confinement, &ours("busy", &[how]));
            if finished.ended.exit == Exit::Processes {
                continue;
            }
            assert_eq!(finished.ended.exit, Exit::Code(0), "{how}");
            let made: u32 = text(&finished.stdout).trim().parse().unwrap();
            assert!((30..40).contains(&made), "{how}: {made}");
        }
    });
}

#[test]
fn two_programs_do_not_count_against_each_other() {
    as_each_user(|| {
        let launcher = launcher();
        let confinement = with_limits(|limits| limits.processes = 40);
        let sleepers = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 10 & done; \
                        echo started; wait";
        let first = launcher.spawn(&confinement, &shell(sleepers)).unwrap();
        let second = launcher.spawn(&confinement, &shell(sleepers)).unwrap();
        let third = launcher.spawn(&confinement, &shell(sleepers)).unwrap();
        for child in [&first, &second, &third] {
            assert!(until(Duration::from_secs(5), || below(number(child)).len() == 16));
        }
    });
}

#[test]
fn the_scratch_folder_has_a_size_in_bytes_and_in_files() {
    as_each_user(|| {
        let launcher = launcher();
        let confinement = Confinement { scratch: 8 * MIB, ..walled() };
        let filled = output_of(
            &launcher,
            &confinement,
            &shell(
                "cat /dev/zero >/tmp/all 2>/tmp/why; stat -c %s /tmp/all; rm /tmp/all; echo ok >/tmp/again && cat /tmp/again",
            ),
        );
        let size: u64 = filled.lines().next().unwrap().parse().unwrap();
        assert!((7 * MIB..=8 * MIB).contains(&size), "{filled}");
        assert!(filled.ends_with("ok\n"), "{filled}");
        let script = "import errno\n\
             made = 0\n\
             try:\n    \
                 while made < 200000:\n        \
                     open(f'/tmp/{made}', 'w').close()\n        \
                     made += 1\n\
             except OSError as error:\n    \
                 print(made, errno.errorcode[error.errno])";
        let filled = output_of(&launcher, &confinement, &python(script));
        let (made, why) = filled.trim().split_once(' ').unwrap();
        assert_eq!(why, "ENOSPC");
        assert!(made.parse::<u64>().unwrap() <= 8 * 1024, "{made} files");
    });
}

#[test]
fn a_file_in_a_granted_folder_has_a_largest_size() {
    as_each_user(|| {
        let path = Folder::new();
        let mut confinement = walled_with(&path);
        confinement.limits.file_size = Some(MIB);
        confinement.folder.clone_from(&path);
        let finished = run(&launcher(), &confinement, &shell("exec cat /dev/zero >large"));
        assert_eq!(finished.ended.exit, Exit::Signal(libc::SIGXFSZ));
        assert_eq!(std::fs::metadata(path.join("large")).unwrap().len(), MIB);
        let sparse = "import os\nos.truncate(os.open('sparse', os.O_CREAT | os.O_RDWR), 1 << 30)";
        let finished = run(&launcher(), &confinement, &python(sparse));
        assert_ne!(finished.ended.exit, Exit::Code(0));
        assert!(std::fs::metadata(path.join("sparse")).unwrap().len() <= MIB);
    });
}

#[test]
fn descriptors_run_out_and_the_limit_cannot_be_raised() {
    as_each_user(|| {
        let confinement = with_limits(|limits| limits.open_files = 100);
        let confinement = with_program(confinement, "busy");
        let said = output_of(&launcher(), &confinement, &ours("busy", &["descriptors"]));
        assert_eq!(said, "0 97 EMFILE\n");
    });
}

/// The most memory this process has had.
fn own_peak() -> u64 {
    kibibytes(&std::fs::read_to_string("/proc/self/status").unwrap(), "VmHWM:").unwrap()
}

fn check_flood(script: &str) {
    let launcher = launcher();
    let confinement = with_limits(|limits| limits.output = Some(MIB));
    let (began, before) = (Instant::now(), own_peak());
    let finished = run(&launcher, &confinement, &shell(script));
    assert_eq!(finished.ended.exit, Exit::Output, "{script}");
    let (kept, told) = (finished.stdout.len() + finished.stderr.len(), finished.ended.usage.output);
    assert!(kept as u64 <= MIB, "{script}: {kept} bytes were kept");
    assert!((MIB..2 * MIB).contains(&told), "{script}: {told} bytes were read");
    let most = Duration::from_secs(3) * slowness();
    assert!(began.elapsed() < most, "{script}: {:?}", began.elapsed());
    assert!(own_peak() - before < 64 * MIB, "{script}: {} MiB", (own_peak() - before) / MIB);
}

#[test]
fn a_flood_of_output_without_a_line_ends_the_program() {
    as_each_user(|| {
        check_flood("exec cat /dev/zero");
        check_flood("exec cat /dev/zero >&2");
        check_flood("cat /dev/zero & cat /dev/zero >&2 & trap '' TERM INT; wait");
        check_flood(
            "while :; do printf aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done",
        );
    });
}

#[test]
fn output_up_to_the_limit_is_all_there() {
    as_each_user(|| {
        let launcher = launcher();
        let confinement = with_limits(|limits| limits.output = Some(MIB));
        let script = "head -c 524288 /dev/zero; head -c 524288 /dev/zero >&2";
        let finished = run(&launcher, &confinement, &shell(script));
        assert_eq!(finished.ended.exit, Exit::Code(0));
        assert_eq!((finished.stdout.len(), finished.stderr.len()), (524_288, 524_288));
        assert_eq!(finished.ended.usage.output, MIB);
        let finished = run(&launcher, &confinement, &shell("head -c 1048577 /dev/zero"));
        assert_eq!(finished.ended.exit, Exit::Output);
    });
}

#[test]
fn output_that_nobody_reads_is_held_back() {
    as_each_user(|| {
        let launcher = launcher();
        let confinement = with_limits(|limits| limits.deadline = Some(Duration::from_millis(300)));
        let before = own_peak();
        let mut child = launcher.spawn(&confinement, &shell("exec cat /dev/zero")).unwrap();
        assert_eq!(child.wait().exit, Exit::Deadline);
        assert!(own_peak() - before < 64 * MIB);
    });
}

fn check_processor_time(how: &str) {
    let launcher = launcher();
    let confinement = with_limits(|limits| {
        limits.cpu_time = Some(Duration::from_millis(600));
        limits.deadline = Some(Duration::from_secs(8));
    });
    let confinement = with_program(confinement, "busy");
    let began = Instant::now();
    let finished = run(&launcher, &confinement, &ours("busy", &[how]));
    let usage = finished.ended.usage;
    let used = usage.user + usage.system;
    assert_eq!(finished.ended.exit, Exit::Processor, "{how}: {used:?} in {:?}", began.elapsed());
    assert!(used > Duration::from_millis(400), "{how}: {used:?}");
    assert!(used < Duration::from_millis(1600), "{how}: {used:?}");
}

#[test]
fn processor_time_of_threads_is_counted() {
    as_each_user(|| check_processor_time("threads"));
}

#[test]
fn processor_time_of_children_is_counted() {
    as_each_user(|| check_processor_time("children"));
}

#[test]
fn processor_time_of_children_that_nobody_waits_for_is_counted() {
    // Without control groups nobody counts them.
    if is_root() {
        check_processor_time("unwaited");
    }
}

#[test]
fn a_share_of_the_processors_is_kept() {
    as_each_user(|| {
        let launcher = launcher();
        // Without control groups a program is kept to whole processors.
        for share in if is_root() { vec![50, 100] } else { vec![100] } {
            let confinement = with_limits(|limits| {
                limits.cpu_share = Some(share);
                limits.deadline = Some(Duration::from_secs(1));
            });
            let confinement = with_program(confinement, "busy");
            let finished = run(&launcher, &confinement, &ours("busy", &["threads"]));
            assert_eq!(finished.ended.exit, Exit::Deadline);
            let usage = finished.ended.usage;
            let used = (usage.user + usage.system).as_secs_f64();
            let most = f64::from(share) / 100.0 * usage.wall.as_secs_f64();
            assert!(used <= most * 1.2, "{used:.2} s of {most:.2} s");
        }
    });
}

#[test]
fn absurd_limits_are_no_limits() {
    as_each_user(|| {
        let launcher = launcher();
        let confinement = Confinement {
            limits: Limits {
                memory: Some(u64::MAX),
                cpu_time: Some(Duration::MAX),
                cpu_share: Some(u32::MAX),
                processes: u32::MAX,
                open_files: u32::MAX,
                file_size: Some(u64::MAX),
                output: Some(u64::MAX),
                deadline: Some(Duration::MAX),
            },
            ..Confinement::default()
        };
        assert_eq!(output_of(&launcher, &confinement, &shell("echo fine")), "fine\n");
        let confinement = Confinement {
            limits: Limits {
                memory: None,
                cpu_time: None,
                cpu_share: None,
                file_size: None,
                output: None,
                deadline: None,
                ..Limits::default()
            },
            ..Confinement::default()
        };
        assert_eq!(output_of(&launcher, &confinement, &shell("echo fine")), "fine\n");
    });
}

#[test]
fn limits_of_nothing_start_nothing_that_goes_on() {
    as_each_user(|| {
        let launcher = launcher();
        let deadline = with_limits(|limits| limits.deadline = Some(Duration::ZERO));
        let ended = run(&launcher, &deadline, &shell("sleep 10")).ended;
        assert_eq!(ended.exit, Exit::Deadline);
        let output = with_limits(|limits| limits.output = Some(0));
        assert_eq!(run(&launcher, &output, &shell("echo a; sleep 10")).ended.exit, Exit::Output);
        let time = with_limits(|limits| limits.cpu_time = Some(Duration::ZERO));
        let ended = run(&launcher, &time, &shell("while :; do :; done")).ended;
        assert_eq!(ended.exit, Exit::Processor);
    });
}

#[test]
fn the_deadline_ends_a_program_that_does_nothing() {
    as_each_user(|| {
        let confinement = with_limits(|limits| limits.deadline = Some(Duration::from_millis(300)));
        let finished = run(&launcher(), &confinement, &shell("exec sleep 60"));
        assert_eq!(finished.ended.exit, Exit::Deadline);
        let wall = finished.ended.usage.wall;
        assert!(wall >= Duration::from_millis(300) && wall < Duration::from_secs(1), "{wall:?}");
    });
}

#[test]
fn core_dumps_are_not_written() {
    as_each_user(|| {
        let path = Folder::new();
        let mut confinement = walled_with(&path);
        confinement.folder.clone_from(&path);
        let finished =
            run(&launcher(), &confinement, &shell("ulimit -c unlimited 2>&1; kill -SEGV $$"));
        assert_eq!(finished.ended.exit, Exit::Signal(libc::SIGSEGV));
        // The launcher takes its own files away a moment after the end.
        assert!(until(Duration::from_secs(2), || names(&path).is_empty()), "{:?}", names(&path));
    });
}
