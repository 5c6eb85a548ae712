//! How much memory a walled program may use: it is counted for the whole of it, wherever it hides.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod kit;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kit::machine::{below, kibibytes, number, slowness};
use kit::rooms::{launcher, ours, python, run, text, with_limits, with_program};
use kit::users::{as_each_user, in_turn_as_each_user};
use sandbox::{Confinement, Exit, Finished, Launcher};

const MIB: u64 = 1 << 20;

/// The memory that the programs here may use.
const MEMORY: u64 = 256 * MIB;

/// How far over its limit the machine may be used before somebody notices.
const SLACK: u64 = 300 * MIB;

/// A program that takes memory, and may use so much.
fn hog() -> Confinement {
    with_program(with_limits(|limits| limits.memory = Some(MEMORY)), "hog")
}

/// Runs one way to take ten gibibytes, and looks at the machine meanwhile.
fn take_too_much(launcher: &Launcher, how: &str) -> (Finished, u64) {
    let confinement = Confinement { scratch: 128 * MIB, ..hog() };
    let before = in_files_of_memory();
    let child = launcher.spawn(&confinement, &ours("hog", &[how])).unwrap();
    let (room, is_over) = (number(&child), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let gauge = scope.spawn(|| {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                let own: u64 = below(room).iter().map(|one| one.own_memory).sum();
                most = most.max(own + in_files_of_memory().saturating_sub(before));
                std::thread::sleep(Duration::from_millis(5));
            }
            most
        });
        let finished = child.finish(b"").unwrap();
        is_over.store(true, Ordering::Relaxed);
        (finished, gauge.join().unwrap())
    })
}

/// What the machine has in files in memory, of whatever kind.
fn in_files_of_memory() -> u64 {
    kibibytes(&std::fs::read_to_string("/proc/meminfo").unwrap(), "Shmem:").unwrap()
}

/// How often it is tried to see it noticed in time: a machine that is shared may hold up whoever looks, but not each time.
const TRIES: u32 = 3;

/// Ten gibibytes are refused each time, quickly, and never were there.
fn check_refused(how: &str) {
    let launcher = launcher();
    let mut late = Vec::new();
    for _ in 0..TRIES {
        let began = Instant::now();
        let (finished, peak) = take_too_much(&launcher, how);
        let took = began.elapsed();
        let (exit, errors) = (finished.ended.exit, text(&finished.stderr));
        // The last is for files without a path, which are not to be had where nobody counts them.
        let words = ["annot allocate memory", "No space left", "Function not implemented"];
        let is_told = words.iter().any(|word| errors.contains(word));
        let is_refused = exit == Exit::Memory || (exit == Exit::Code(3) && is_told);
        assert!(is_refused, "{how}: {exit} with {} MiB at most: {errors}", peak / MIB);
        let told = finished.ended.usage.peak_memory;
        let most = peak.max(told);
        if most < MEMORY + SLACK && took < Duration::from_secs(10) * slowness() {
            return;
        }
        late.push(format!("{} MiB used, {} MiB told, {took:?}", peak / MIB, told / MIB));
    }
    panic!("{how}: {late:?}");
}

#[test]
fn ten_gibibytes_at_once_are_refused() {
    in_turn_as_each_user(|| check_refused("once"));
}

#[test]
fn ten_gibibytes_in_pieces_are_refused() {
    in_turn_as_each_user(|| check_refused("pieces"));
}

#[test]
fn ten_gibibytes_of_shared_memory_are_refused() {
    in_turn_as_each_user(|| check_refused("shared"));
}

#[test]
fn ten_gibibytes_spread_over_processes_are_refused() {
    in_turn_as_each_user(|| check_refused("spread"));
}

#[test]
fn ten_gibibytes_in_a_file_that_is_never_mapped_are_refused() {
    in_turn_as_each_user(|| check_refused("memfd"));
}

#[test]
fn ten_gibibytes_in_many_files_without_a_name_are_refused() {
    in_turn_as_each_user(|| check_refused("memfds"));
}

#[test]
fn ten_gibibytes_in_a_process_that_cannot_be_looked_at_are_refused() {
    in_turn_as_each_user(|| check_refused("undumpable"));
}

#[test]
fn a_child_that_nobody_waits_for_hides_nothing() {
    as_each_user(|| {
        let confinement = with_limits(|limits| limits.memory = Some(MEMORY));
        let script = "import os, time\nif os.fork() == 0: os._exit(0)\ntime.sleep(0.6)";
        assert_eq!(run(&launcher(), &confinement, &python(script)).ended.exit, Exit::Code(0));
    });
}

#[test]
fn what_several_processes_share_counts_once_and_they_go_on() {
    as_each_user(|| {
        let confinement = with_limits(|limits| limits.memory = Some(MEMORY));
        let script = "import os, time\nkept = b'x' * (100 << 20)\nfor _ in range(5):\n    if os.fork() == 0:\n        time.sleep(0.6); assert kept[-1:] == b'x'; os._exit(0)\nfor _ in range(5): assert os.wait()[1] == 0";
        assert_eq!(run(&launcher(), &confinement, &python(script)).ended.exit, Exit::Code(0));
    });
}

#[test]
fn ten_gibibytes_that_nobody_has_resident_are_refused() {
    in_turn_as_each_user(|| check_refused("left-behind"));
}

#[test]
fn ten_gibibytes_in_files_under_way_in_a_socket_are_refused() {
    in_turn_as_each_user(|| check_refused("travelling"));
}

#[test]
fn ten_gibibytes_in_files_that_are_mapped_closed_and_not_touched_are_refused() {
    in_turn_as_each_user(|| check_refused("mapped-and-closed"));
}

#[test]
fn ten_gibibytes_in_segments_that_nobody_is_attached_to_are_refused() {
    in_turn_as_each_user(|| check_refused("segments"));
}

#[test]
fn ten_gibibytes_in_the_scratch_folder_are_refused() {
    in_turn_as_each_user(|| check_refused("scratch"));
}

#[test]
fn pipes_hold_little_memory() {
    in_turn_as_each_user(|| {
        let before = available_memory();
        let finished = run(&launcher(), &hog(), &ours("hog", &["pipes"]));
        let exit = finished.ended.exit;
        assert!(matches!(exit, Exit::Memory | Exit::Code(3)), "{exit}: {}", text(&finished.stderr));
        // Other programs come and go meanwhile.
        let now = available_memory();
        assert!(before.saturating_sub(now) < 2 << 30, "{} MiB", before.saturating_sub(now) / MIB);
    });
}

fn available_memory() -> u64 {
    kibibytes(&std::fs::read_to_string("/proc/meminfo").unwrap(), "MemAvailable:").unwrap()
}

#[test]
fn a_child_over_the_memory_limit_takes_the_whole_tree_with_it() {
    in_turn_as_each_user(|| {
        let mut confinement = hog();
        confinement.limits.deadline = Some(Duration::from_secs(5) * slowness());
        let finished = run(&launcher(), &confinement, &ours("hog", &["child"]));
        assert_eq!(finished.ended.exit, Exit::Memory);
    });
}

#[test]
fn memory_that_processes_share_is_counted_once() {
    in_turn_as_each_user(|| {
        let finished = run(&launcher(), &hog(), &ours("hog", &["share", "160", "4"]));
        assert_eq!(finished.ended.exit, Exit::Code(0), "{:?}", finished.ended.usage);
    });
}

#[test]
fn a_program_below_its_memory_limit_is_left_alone() {
    in_turn_as_each_user(|| {
        let finished = run(&launcher(), &hog(), &ours("hog", &["touch", "200"]));
        assert_eq!(finished.ended.exit, Exit::Code(0), "{:?}", finished.ended.usage);
        let peak = finished.ended.usage.peak_memory;
        assert!((200 * MIB..MEMORY).contains(&peak), "{} MiB", peak / MIB);
    });
}
