//! How long a walled program lives: never longer than who holds it, whatever it does against it.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use harness::{
    actor, as_each_user, below, folder, is_root, kill, launcher, launchers_of, number, ours,
    output_of, role, run, shell, text, until, walled, walled_with, with_program, with_word, words,
};
use sandbox::{Child, Confinement, Exit, Launcher, Stream};

/// The ways not to want to end, and how many processes each has.
const STUBBORN: [(&str, usize); 5] =
    [("plain", 1), ("ignore", 1), ("block", 1), ("orphan-ignore-block", 2), ("many-block", 9)];

/// How long anything may outlive who held it.
const SOON: Duration = Duration::from_secs(2);

/// A walled program that does not want to end, and the file in which one sees it live.
struct Stubborn {
    child: Child,
    beats: PathBuf,
}

impl Stubborn {
    fn start(launcher: &Launcher, how: &str, folder: &Path, deadline: Option<Duration>) -> Self {
        let mut confinement = with_program(walled_with(folder), "stubborn");
        confinement.limits.deadline = deadline;
        let beats = folder.join(format!("beats-{how}"));
        let argv = ours("stubborn", &[how, beats.to_str().unwrap()]);
        let child = launcher.spawn(&confinement, &argv).unwrap();
        Self { child, beats }
    }

    /// Waits until all its processes are there and beat.
    fn is_alive(&self, processes: usize) -> bool {
        let word = self.beats.to_str().unwrap();
        until(Duration::from_secs(5), || {
            with_word(word).len() == processes && size(&self.beats) > 0
        })
    }
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

/// Nothing of it is left soon, and nothing is written any more.
fn check_gone(beats: &Path, since: Instant) {
    let word = beats.to_str().unwrap();
    let is_gone = until(SOON.saturating_sub(since.elapsed()), || with_word(word).is_empty());
    assert!(is_gone, "{word}: {:?} is left after {:?}", with_word(word), since.elapsed());
    let before = size(beats);
    // Ten times the time between two beats.
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(size(beats), before, "{word} still grows");
}

fn check_each(name: &str, deadline: Option<Duration>, end: impl Fn(Child) -> Option<Exit>) {
    as_each_user(name, || {
        let launcher = launcher();
        let (_folder, path) = folder();
        for (how, processes) in STUBBORN {
            let stubborn = Stubborn::start(&launcher, how, &path, deadline);
            let began = Instant::now();
            assert!(stubborn.is_alive(processes), "{how}: {:?}", with_word(path.to_str().unwrap()));
            let beats = stubborn.beats.clone();
            let since = deadline.map_or_else(Instant::now, |deadline| began + deadline);
            let exit = end(stubborn.child);
            assert!(since.elapsed() < SOON, "{how}: {:?}", since.elapsed());
            if exit.is_some() {
                // When the end is known, nothing runs any more.
                assert_eq!(with_word(beats.to_str().unwrap()), [0; 0], "{how}");
            }
            check_gone(&beats, since);
        }
    });
}

#[test]
fn the_whole_tree_dies_at_the_deadline() {
    let deadline = Some(Duration::from_millis(400));
    check_each("the_whole_tree_dies_at_the_deadline", deadline, |mut child| {
        let exit = child.wait().exit;
        assert_eq!(exit, Exit::Deadline);
        Some(exit)
    });
}

#[test]
fn the_whole_tree_dies_at_the_deadline_when_nobody_waits() {
    let name = "the_whole_tree_dies_at_the_deadline_when_nobody_waits";
    as_each_user(name, || {
        let launcher = launcher();
        let (_folder, path) = folder();
        let deadline = Duration::from_millis(300);
        let stubborn = Stubborn::start(&launcher, "many-block", &path, Some(deadline));
        let since = Instant::now() + deadline;
        assert!(until(deadline, || size(&stubborn.beats) > 0));
        std::thread::sleep(since.saturating_duration_since(Instant::now()));
        check_gone(&stubborn.beats, since);
    });
}

#[test]
fn the_whole_tree_dies_when_it_is_killed() {
    check_each("the_whole_tree_dies_when_it_is_killed", None, |mut child| {
        child.kill();
        let exit = child.wait().exit;
        assert_eq!(exit, Exit::Cancelled);
        Some(exit)
    });
}

#[test]
fn a_killer_works_from_another_thread_and_after_the_end() {
    as_each_user("a_killer_works_from_another_thread_and_after_the_end", || {
        let launcher = launcher();
        let mut child = launcher.spawn(&walled(), &shell("exec sleep 60")).unwrap();
        let killer = child.killer();
        let began = Instant::now();
        let thread = std::thread::spawn(move || {
            killer.kill();
            killer
        });
        assert_eq!(child.wait().exit, Exit::Cancelled);
        assert!(began.elapsed() < SOON);
        let killer = thread.join().unwrap();
        killer.kill();
        drop(child);
        killer.kill();
        assert_eq!(output_of(&launcher, &walled(), &shell("echo fine")), "fine\n");
    });
}

#[test]
fn the_whole_tree_dies_when_the_child_is_dropped() {
    check_each("the_whole_tree_dies_when_the_child_is_dropped", None, |child| {
        let killer = child.killer();
        drop(child);
        // It holds nothing open.
        drop(killer);
        None
    });
}

#[test]
fn the_whole_tree_dies_when_the_child_is_dropped_and_a_killer_is_kept() {
    let name = "the_whole_tree_dies_when_the_child_is_dropped_and_a_killer_is_kept";
    as_each_user(name, || {
        let launcher = launcher();
        let (_folder, path) = folder();
        let stubborn = Stubborn::start(&launcher, "many-block", &path, None);
        assert!(stubborn.is_alive(9));
        let killer = stubborn.child.killer();
        drop(stubborn.child);
        check_gone(&stubborn.beats, Instant::now());
        drop(killer);
    });
}

#[test]
fn a_child_outlives_the_name_of_its_launcher_and_takes_the_launcher_with_it() {
    let name = "a_child_outlives_the_name_of_its_launcher_and_takes_the_launcher_with_it";
    harness::alone_as_each_user(name, || {
        let launcher = launcher();
        let (_folder, path) = folder();
        let stubborn = Stubborn::start(&launcher, "many-block", &path, None);
        drop(launcher);
        assert!(stubborn.is_alive(9));
        let own = std::process::id().cast_signed();
        assert_eq!(launchers_of(own).len(), 1);
        drop(stubborn.child);
        check_gone(&stubborn.beats, Instant::now());
        assert_eq!(below(own).len(), 0, "{:?}", below(own));
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
    });
}

/// What the host does that is killed: it starts programs, and waits for its own end.
fn act_as_host(path: &str) {
    let launcher = launcher();
    let path = Path::new(path);
    let all: Vec<_> = STUBBORN
        .into_iter()
        .map(|(how, processes)| (Stubborn::start(&launcher, how, path, None), processes))
        .collect();
    for (stubborn, processes) in &all {
        assert!(stubborn.is_alive(*processes));
    }
    std::fs::write(path.join("ready"), "").unwrap();
    std::thread::sleep(Duration::from_secs(30));
    panic!("the host was not killed");
}

#[test]
fn everything_dies_when_the_host_is_killed() {
    let name = "everything_dies_when_the_host_is_killed";
    if let Some(path) = role() {
        return act_as_host(&path);
    }
    as_each_user(name, || {
        let (_folder, path) = folder();
        let mut host = actor(name, path.to_str().unwrap());
        let mut host = host.stdout(std::process::Stdio::null()).spawn().unwrap();
        let is_ready = until(Duration::from_secs(10), || path.join("ready").exists());
        assert!(is_ready, "{:?}", host.try_wait());
        let id = host.id().cast_signed();
        let launchers = launchers_of(id);
        assert_eq!(launchers.len(), 1);
        let all = below(id);
        assert!(all.len() > 14, "{}", all.len());
        let since = Instant::now();
        host.kill().unwrap();
        host.wait().unwrap();
        for (how, _) in STUBBORN {
            check_gone(&path.join(format!("beats-{how}")), since);
        }
        let is_left = |pid: i32| Path::new("/proc").join(pid.to_string()).exists();
        let is_gone = until(SOON, || !all.iter().any(|one| is_left(one.pid)));
        assert!(is_gone, "{:?}", all.iter().filter(|one| is_left(one.pid)).collect::<Vec<_>>());
        let left: Vec<_> = std::fs::read_dir(&path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.starts_with("beats-") && name != "ready")
            .collect();
        assert_eq!(left, [""; 0]);
        assert_eq!(groups_of(launchers[0]), Vec::<PathBuf>::new());
    });
}

/// The control groups of a launcher.
fn groups_of(launcher: i32) -> Vec<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let space =
        std::os::unix::fs::MetadataExt::ino(&std::fs::metadata("/proc/self/ns/pid").unwrap());
    let name = format!("haft-{space:x}-{launcher}");
    let mut found = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (kind, path) = (parts.next().unwrap(), parts.next().unwrap());
        // The unified hierarchy is alone there, or beside the old ones.
        let root = Path::new("/sys/fs/cgroup");
        let is_alone = kind.is_empty() && root.join("cgroup.controllers").exists();
        let kind = if kind.is_empty() { "unified" } else { kind };
        let base = if is_alone { root.to_owned() } else { root.join(kind) };
        for folder in Path::new(path.trim_start_matches('/')).ancestors() {
            found.extend(Some(base.join(folder).join(&name)).filter(|path| path.exists()));
        }
    }
    found.dedup();
    found
}

#[test]
fn rooms_die_with_a_killed_launcher_and_the_next_spawn_has_a_new_one() {
    let name = "rooms_die_with_a_killed_launcher_and_the_next_spawn_has_a_new_one";
    harness::alone_as_each_user(name, || {
        let launcher = launcher();
        let (_folder, path) = folder();
        let own = std::process::id().cast_signed();
        for (how, processes) in STUBBORN {
            let mut stubborn = Stubborn::start(&launcher, how, &path, None);
            assert!(stubborn.is_alive(processes), "{how}");
            let [first] = launchers_of(own)[..] else { panic!("one launcher") };
            assert_eq!(is_root(), !groups_of(first).is_empty());
            let since = Instant::now();
            kill(first);
            assert_eq!(stubborn.child.wait().exit, Exit::Lost, "{how}");
            assert!(since.elapsed() < SOON, "{how}: {:?}", since.elapsed());
            check_gone(&stubborn.beats, since);
            assert_eq!(output_of(&launcher, &walled_with(&path), &shell("echo fine")), "fine\n");
            let [second] = launchers_of(own)[..] else { panic!("one launcher") };
            assert_ne!(first, second);
            // What the first could not take away, the second does.
            assert_eq!(groups_of(first), Vec::<PathBuf>::new());
        }
        drop(launcher);
        let names = || {
            let entries = std::fs::read_dir(&path).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap())
        };
        let strange: Vec<_> = names().filter(|name| !name.starts_with("beats-")).collect();
        assert_eq!(strange, [""; 0]);
        assert!(below(own).is_empty());
    });
}

#[test]
fn a_ready_room_that_was_killed_is_not_taken_for_a_wall() {
    let name = "a_ready_room_that_was_killed_is_not_taken_for_a_wall";
    harness::alone_as_each_user(name, || {
        let launcher = launcher();
        let [process] = launchers_of(std::process::id().cast_signed())[..] else { panic!() };
        assert!(until(SOON, || below(process).len() == 2));
        // It, and who made it.
        for room in below(process) {
            kill(room.pid);
        }
        // The first may fail, if it says so; the next has a new room.
        let (_folder, path) = folder();
        match launcher.spawn(&walled_with(&path), &shell("echo fine")) {
            Ok(child) => assert_eq!(text(&child.finish(b"").unwrap().stdout), "fine\n"),
            Err(error) => assert!(matches!(error, sandbox::SpawnError::Wall(_)), "{error:?}"),
        }
        assert_eq!(output_of(&launcher, &walled_with(&path), &shell("echo fine")), "fine\n");
    });
}

#[test]
fn a_room_that_is_killed_from_outside_ends_its_program() {
    as_each_user("a_room_that_is_killed_from_outside_ends_its_program", || {
        let launcher = launcher();
        let (_folder, path) = folder();
        let mut stubborn = Stubborn::start(&launcher, "many-block", &path, None);
        assert!(stubborn.is_alive(9));
        let since = Instant::now();
        kill(number(&stubborn.child));
        assert_eq!(stubborn.child.wait().exit, Exit::Lost);
        check_gone(&stubborn.beats, since);
    });
}

#[test]
fn a_program_that_is_asked_to_end_may_do_so_in_its_own_way() {
    as_each_user("a_program_that_is_asked_to_end_may_do_so_in_its_own_way", || {
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
fn a_program_may_refuse_to_end_until_it_is_killed() {
    as_each_user("a_program_may_refuse_to_end_until_it_is_killed", || {
        let launcher = launcher();
        let (_folder, path) = folder();
        let mut stubborn = Stubborn::start(&launcher, "ignore", &path, None);
        assert!(stubborn.is_alive(1));
        for _ in 0..1000 {
            stubborn.child.terminate();
        }
        let until = Instant::now() + Duration::from_millis(100);
        assert_eq!(stubborn.child.wait_until(Some(until)), None);
        assert!(stubborn.is_alive(1));
        stubborn.child.kill();
        assert_eq!(stubborn.child.wait().exit, Exit::Cancelled);
    });
}

#[test]
fn waiting_can_be_cut_short_and_repeated() {
    as_each_user("waiting_can_be_cut_short_and_repeated", || {
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
    as_each_user("a_child_can_be_polled_like_any_descriptor", || {
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
    as_each_user("usage_is_told_about_right", || {
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
        assert!((300..1000).contains(&slept.wall.as_millis()), "{slept:?}");
        assert!(slept.user + slept.system < Duration::from_millis(100), "{slept:?}");
    });
}

#[test]
fn a_server_answers_many_requests() {
    as_each_user("a_server_answers_many_requests", || {
        let launcher = launcher();
        let mut confinement = Confinement { stdin: Stream::Pipe, ..walled() };
        confinement.limits.deadline = None;
        let script =
            "import sys\nfor line in sys.stdin:\n    print(line.strip()[::-1], flush=True)";
        let mut child = launcher.spawn(&confinement, &harness::python(script)).unwrap();
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
    as_each_user("input_comes_whole_and_ends", || {
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
    as_each_user("streams_that_lead_nowhere_are_not_there_to_take", || {
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
    as_each_user("codes_and_signals_are_told_apart", || {
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
fn what_a_program_left_running_dies_with_it() {
    as_each_user("what_a_program_left_running_dies_with_it", || {
        let launcher = launcher();
        let (_folder, path) = folder();
        for how in ["leave-orphan-block", "leave-many-ignore"] {
            let mut stubborn = Stubborn::start(&launcher, how, &path, None);
            // Its children hold the pipes; that does not keep it.
            assert_eq!(stubborn.child.wait().exit, Exit::Code(5));
            assert!(size(&stubborn.beats) > 0);
            check_gone(&stubborn.beats, Instant::now());
        }
        let finished = run(&launcher, &walled(), &shell("sleep 60 & setsid sleep 60 & echo done"));
        assert_eq!((finished.ended.exit, &*text(&finished.stdout)), (Exit::Code(0), "done\n"));
    });
}

#[test]
fn a_program_cannot_end_its_room() {
    as_each_user("a_program_cannot_end_its_room", || {
        let launcher = launcher();
        let script = "for signal in KILL STOP TERM HUP SEGV INT; do kill -$signal 1; done; \
                      kill -KILL -1; exit 6";
        let finished = run(&launcher, &walled(), &shell(script));
        let exit = finished.ended.exit;
        assert!(matches!(exit, Exit::Code(6) | Exit::Signal(libc::SIGKILL)), "{exit}");
        assert_eq!(output_of(&launcher, &walled(), &shell("echo fine")), "fine\n");
    });
}

#[test]
fn the_signals_that_the_host_ignores_are_not_the_programs() {
    as_each_user("the_signals_that_the_host_ignores_are_not_the_programs", || {
        let status = output_of(&launcher(), &walled(), &words(["/bin/cat", "/proc/self/status"]));
        for field in ["SigBlk", "SigIgn", "SigPnd"] {
            let line = status.lines().find(|line| line.starts_with(field)).unwrap();
            let set = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
            // The C library ignores two signals of its own in whatever it starts.
            let its_own = (1 << 31) | (1 << 32);
            assert_eq!(set & !its_own, 0, "{line}");
        }
    });
}
