//! Measures a walled run of a trivial program against a plain one, bubblewrap and
//! sandbox-runtime, all in one run, taking turns. Prints ratios; a goal that is missed makes it fail.
//!
//! `measure LAUNCHER TRIVIAL IDLE [SRT…]`: our launcher, a static program that ends at once, one
//! that waits for ever, and the command of sandbox-runtime.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints and may panic")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sandbox::{Confinement, Exit, Launcher, Stream};

const ROUNDS: usize = 400;
const SRT_ROUNDS: usize = 5;
const CALLERS: usize = 4;
const READY: usize = 3;
const CALLS: usize = 100;
const TURNS: usize = 9;
/// What a rival leaves to the kernel (networks to be destroyed) must not be paid by the next.
const PAUSE: Duration = Duration::from_millis(700);
const CHILDREN: usize = 256;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let mut next = || PathBuf::from(arguments.next().expect("LAUNCHER TRIVIAL IDLE [SRT…]"));
    let (launcher, trivial, idle) = (next(), next(), next());
    let srt: Vec<OsString> = arguments.collect();
    let launcher = Launcher::start(&launcher).unwrap();
    println!("walls of level {}, {} processors", launcher.walls().level(), processors());
    let mut missed = 0;
    let mut goal = |name: &str, ratio: f64, holds: bool| {
        println!("{:<6} {name}: {ratio:.2}", if holds { "ok" } else { "MISSED" });
        missed += i32::from(!holds);
    };

    let ours = confinement(&trivial);
    let (mut plain_times, mut bwrap_times, mut our_times) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..20 {
        time(|| run(&launcher, &ours, &trivial));
    }
    for _ in 0..ROUNDS {
        plain_times.push(time(|| plain(&trivial)));
        bwrap_times.push(time(|| bwrap(&trivial)));
        our_times.push(time(|| run(&launcher, &ours, &trivial)));
    }
    let (plain_p50, bwrap_p50, our_p50) =
        (median(&mut plain_times), median(&mut bwrap_times), median(&mut our_times));
    println!("p50: plain {plain_p50:.3} ms, bwrap {bwrap_p50:.3} ms, haft {our_p50:.3} ms");
    goal("haft / bwrap, p50, at most 0.65", our_p50 / bwrap_p50, our_p50 <= 0.65 * bwrap_p50);
    goal("haft - plain in ms, p50, at most 2.5", our_p50 - plain_p50, our_p50 - plain_p50 <= 2.5);

    if !srt.is_empty() {
        let mut srt_times: Vec<_> =
            (0..SRT_ROUNDS).map(|_| time(|| other(&srt, &trivial))).collect();
        let srt_p50 = median(&mut srt_times);
        println!("p50: sandbox-runtime {srt_p50:.0} ms");
        goal("sandbox-runtime / haft, at least 100", srt_p50 / our_p50, srt_p50 >= 100.0 * our_p50);
    }

    let (mut bwrap_rates, mut our_rates) = (Vec::new(), Vec::new());
    let busy = launcher.clone().keeping_ready(READY);
    for _ in 0..TURNS {
        bwrap_rates.push(rate(&|| bwrap(&trivial)));
        our_rates.push(rate(&|| run(&busy, &ours, &trivial)));
    }
    let (bwrap_rate, our_rate) = (middle(&mut bwrap_rates), middle(&mut our_rates));
    println!("{CALLERS} callers: bwrap {bwrap_rate:.0}/s, haft {our_rate:.0}/s");
    goal(
        "haft / bwrap, runs a second, at least 1.5",
        our_rate / bwrap_rate,
        our_rate >= 1.5 * bwrap_rate,
    );

    let each = memory_of_idle(&launcher, &idle);
    goal("MB of memory for each idle child, at most 3", each, each <= 3.0);
    std::process::exit(i32::from(missed > 0));
}

fn confinement(program: &Path) -> Confinement {
    Confinement {
        readable: vec![program.to_owned()],
        stdout: Stream::Null,
        stderr: Stream::Null,
        ..Confinement::default()
    }
}

fn run(launcher: &Launcher, confinement: &Confinement, program: &Path) {
    let ended = launcher.spawn(confinement, &[program.into()]).unwrap().wait();
    assert_eq!(ended.exit, Exit::Code(0));
}

fn plain(program: &Path) {
    assert!(Command::new(program).status().unwrap().success());
}

fn bwrap(program: &Path) {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-all", "--ro-bind"]).arg(program).args(["/program", "/program"]);
    assert!(command.status().unwrap().success());
}

fn other(argv: &[OsString], program: &Path) {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).arg(program).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().unwrap().success(), "sandbox-runtime failed");
}

fn time(run: impl FnOnce()) -> Duration {
    let began = Instant::now();
    run();
    began.elapsed()
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

fn middle(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn rate(run: &(dyn Fn() + Sync)) -> f64 {
    std::thread::sleep(PAUSE);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| (0..CALLS).for_each(|_| run()));
        }
    });
    f64::from(u32::try_from(CALLERS * CALLS).unwrap()) / began.elapsed().as_secs_f64()
}

/// How much less memory the machine has for each child that waits.
fn memory_of_idle(launcher: &Launcher, idle: &Path) -> f64 {
    let confinement = confinement(idle);
    let mut first = launcher.spawn(&confinement, &[idle.into()]).unwrap();
    let before = available();
    let children: Vec<_> =
        (0..CHILDREN).map(|_| launcher.spawn(&confinement, &[idle.into()]).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(300));
    let used = before.saturating_sub(available());
    drop(children);
    first.kill();
    first.wait();
    f64::from(u32::try_from(used / 1024).unwrap()) / f64::from(u32::try_from(CHILDREN).unwrap())
}

/// Kilobytes that the machine could still give.
fn available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
