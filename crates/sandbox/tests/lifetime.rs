//! How long a walled program lives: never longer than who holds it, whatever it does against it.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod kit;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use kit::folders::{Folder, names};
use kit::machine::{below, kill, launchers_of, number, own, slowness, until, with_word};
use kit::rooms::{launcher, ours, output_of, run, shell, text, walled, walled_with, with_program};
use kit::users::{actor, alone_as_each_user, as_each_user, role};
use sandbox::{Child, Exit, Launcher, Level, SpawnError};

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

/// What is in a folder that none of them wrote.
fn left_but_beats(folder: &Path) -> Vec<String> {
    names(folder).into_iter().filter(|name| !name.starts_with("beats-")).collect()
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

fn check_each(deadline: Option<Duration>, end: impl Fn(Child) -> Option<Exit>) {
    let launcher = launcher();
    let path = Folder::new();
    for (how, processes) in STUBBORN {
        let stubborn = Stubborn::start(&launcher, how, &path, deadline);
        let began = Instant::now();
        assert!(stubborn.is_alive(processes), "{how}: {:?}", with_word(path.to_str().unwrap()));
        let beats = stubborn.beats.clone();
        let since = deadline.map_or_else(Instant::now, |deadline| began + deadline);
        let exit = end(stubborn.child);
        assert!(since.elapsed() < SOON * slowness(), "{how}: {:?}", since.elapsed());
        if exit.is_some() {
            // When the end is known, nothing runs any more.
            assert_eq!(with_word(beats.to_str().unwrap()), [0; 0], "{how}");
        }
        check_gone(&beats, since);
    }
}

#[test]
fn the_whole_tree_dies_at_the_deadline() {
    let deadline = Some(Duration::from_millis(400) * slowness());
    as_each_user(|| {
        check_each(deadline, |mut child| {
            let exit = child.wait().exit;
            assert_eq!(exit, Exit::Deadline);
            Some(exit)
        });
    });
}

#[test]
fn the_whole_tree_dies_at_the_deadline_when_nobody_waits() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
        let deadline = Duration::from_millis(300) * slowness();
        let stubborn = Stubborn::start(&launcher, "many-block", &path, Some(deadline));
        let since = Instant::now() + deadline;
        assert!(until(deadline, || size(&stubborn.beats) > 0));
        std::thread::sleep(since.saturating_duration_since(Instant::now()));
        check_gone(&stubborn.beats, since);
    });
}

#[test]
fn the_whole_tree_dies_when_it_is_killed() {
    as_each_user(|| {
        check_each(None, |mut child| {
            child.kill();
            let exit = child.wait().exit;
            assert_eq!(exit, Exit::Cancelled);
            Some(exit)
        });
    });
}

#[test]
fn a_killer_works_from_another_thread_and_after_the_end() {
    as_each_user(|| {
        let launcher = launcher();
        let mut child = launcher.spawn(&walled(), &shell("exec sleep 60")).unwrap();
        let killer = child.killer();
        let began = Instant::now();
        let thread = std::thread::spawn(move || {
            killer.kill();
            killer
        });
        assert_eq!(child.wait().exit, Exit::Cancelled);
        assert!(began.elapsed() < SOON * slowness());
        let killer = thread.join().unwrap();
        killer.kill();
        drop(child);
        killer.kill();
        assert_eq!(output_of(&launcher, &walled(), &shell("echo fine")), "fine\n");
    });
}

#[test]
fn the_whole_tree_dies_when_the_child_is_dropped() {
    as_each_user(|| {
        check_each(None, |child| {
            let killer = child.killer();
            drop(child);
            // It holds nothing open.
            drop(killer);
            None
        });
    });
}

#[test]
fn the_whole_tree_dies_when_the_child_is_dropped_and_a_killer_is_kept() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
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
    alone_as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
        let stubborn = Stubborn::start(&launcher, "many-block", &path, None);
        drop(launcher);
        assert!(stubborn.is_alive(9));
        assert_eq!(launchers_of(own()).len(), 1);
        drop(stubborn.child);
        check_gone(&stubborn.beats, Instant::now());
        assert_eq!(below(own()).len(), 0, "{:?}", below(own()));
        assert_eq!(names(&path).len(), 1);
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
    if let Some(path) = role() {
        return act_as_host(&path);
    }
    as_each_user(|| {
        let path = Folder::new();
        let mut host = actor(everything_dies_when_the_host_is_killed, path.to_str().unwrap());
        let mut host = host.stdout(Stdio::null()).spawn().unwrap();
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
        assert_eq!(left_but_beats(&path), ["ready"]);
        assert_eq!(groups_of(launchers[0]), Vec::<PathBuf>::new());
    });
}

/// The control groups of a launcher.
fn groups_of(launcher: i32) -> Vec<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let space = std::fs::metadata("/proc/self/ns/pid").unwrap().ino();
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
    alone_as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
        for (how, processes) in STUBBORN {
            let mut stubborn = Stubborn::start(&launcher, how, &path, None);
            assert!(stubborn.is_alive(processes), "{how}");
            let [first] = launchers_of(own())[..] else { panic!("one launcher") };
            assert_eq!(launcher.walls().level() == Level::L3, !groups_of(first).is_empty());
            let since = Instant::now();
            kill(first);
            assert_eq!(stubborn.child.wait().exit, Exit::Lost, "{how}");
            assert!(since.elapsed() < SOON * slowness(), "{how}: {:?}", since.elapsed());
            check_gone(&stubborn.beats, since);
            assert_eq!(output_of(&launcher, &walled_with(&path), &shell("echo fine")), "fine\n");
            let [second] = launchers_of(own())[..] else { panic!("one launcher") };
            assert_ne!(first, second);
            // What the first could not take away, the second does.
            assert_eq!(groups_of(first), Vec::<PathBuf>::new());
        }
        drop(launcher);
        assert_eq!(left_but_beats(&path), [""; 0]);
        assert!(below(own()).is_empty());
    });
}

#[test]
fn a_ready_room_that_was_killed_is_not_taken_for_a_wall() {
    alone_as_each_user(|| {
        let launcher = launcher();
        let [process] = launchers_of(own())[..] else { panic!() };
        assert!(until(SOON, || below(process).len() == 2));
        // It, and who made it.
        for room in below(process) {
            kill(room.pid);
        }
        // The first may fail, if it says so; the next has a new room.
        let path = Folder::new();
        match launcher.spawn(&walled_with(&path), &shell("echo fine")) {
            Ok(child) => assert_eq!(text(&child.finish(b"").unwrap().stdout), "fine\n"),
            Err(error) => assert!(matches!(error, SpawnError::Wall(_)), "{error:?}"),
        }
        assert_eq!(output_of(&launcher, &walled_with(&path), &shell("echo fine")), "fine\n");
    });
}

#[test]
fn a_room_that_is_killed_from_outside_ends_its_program() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
        let mut stubborn = Stubborn::start(&launcher, "many-block", &path, None);
        assert!(stubborn.is_alive(9));
        let since = Instant::now();
        kill(number(&stubborn.child));
        assert_eq!(stubborn.child.wait().exit, Exit::Lost);
        check_gone(&stubborn.beats, since);
    });
}

#[test]
fn a_program_may_refuse_to_end_until_it_is_killed() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
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
fn what_a_program_left_running_dies_with_it() {
    as_each_user(|| {
        let launcher = launcher();
        let path = Folder::new();
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
    as_each_user(|| {
        let launcher = launcher();
        let script = "for signal in KILL STOP TERM HUP SEGV INT; do kill -$signal 1; done; \
                      kill -KILL -1; exit 6";
        let finished = run(&launcher, &walled(), &shell(script));
        let exit = finished.ended.exit;
        assert!(matches!(exit, Exit::Code(6) | Exit::Signal(libc::SIGKILL)), "{exit}");
        assert_eq!(output_of(&launcher, &walled(), &shell("echo fine")), "fine\n");
    });
}
