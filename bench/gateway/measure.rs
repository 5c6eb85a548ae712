//! Measures the gateway against the least that stands between HTTP and a server, and against what others put there: the same
//! echo server behind each, the same calls, one run.
//!
//! `measure-gateway FOLDER [NAME=KIND=URL=PIDS…]`: a folder with the programs and homes that `bench/gateway/measure` puts there, which
//! also starts and names the others.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "it is a measurement"
)]

mod floor;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How many calls are made one after the other, and how many by all callers together.
const ALONE: usize = 2_000;
const TOGETHER: usize = 16_000;
const CALLERS: usize = 16;

/// The revision of the newer era.
const NEWER: &str = "2026-07-28";

/// How often the floor and ours take turns: a machine that is shared is not the same from minute to minute.
const TURNS: usize = 7;

/// The same for a tool alone and beside those that nobody wants.
const STROLLS: usize = 5;

/// How many of them those make who take long.
const FEW: usize = 16;

/// The neighbours that nobody wants, those of one measurement together, as they are called in the home and by `echo-server`.
const STREETS: [&[&str]; 5] = [&["hang", "flood"], &["die"], &["lie"], &["change"], &["pretend"]];

/// How many call each of them, and how long each waits between two calls: a refusal costs next to nothing, and whoever asked
/// for more at once would be measured instead of the neighbour.
const VISITORS: usize = 2;
const BETWEEN: Duration = Duration::from_millis(5);

/// For how long nobody calls.
const REST: Duration = Duration::from_secs(15);

/// What was measured.
#[derive(Clone, Copy, Debug)]
struct Measured {
    p50: Duration,
    p99: Duration,
    /// Processor time of what stands before the server, for each call.
    cpu: Duration,
    per_second: f64,
    resident: u64,
}

/// Something that stands before the server.
struct Subject {
    name: String,
    address: String,
    path: String,
    /// The processes whose time counts.
    processes: Vec<u32>,
    tool: &'static str,
    /// How many calls are made for one that is measured in full.
    share: usize,
    how: How,
    headers: String,
}

/// How it is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// By MCP, in a session of the older era.
    Session,
    /// By MCP of the newer era, where every request says all.
    Stateless,
    /// By a plain request for each tool.
    Plain,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "floor") {
        return floor::main(&arguments[1]);
    }
    let [folder, others @ ..] = &arguments[..] else {
        panic!("measure-gateway FOLDER [NAME=KIND=URL=PIDS…]")
    };
    let within = |name: &str| format!("{folder}/{name}");
    let (haft, home) = (&*within("haft"), &*within("home"));
    let cold = cold_start(haft, home);
    let (floor_process, floor) = start_floor(&within("echo-server"));
    let (gate, subject) = start_gateway(haft, home);
    // The other era, and somebody who shows a token.
    let newer = stateless(haft, home, &subject);
    let turn = |_| [measure(&floor), measure(&subject), measure(&newer)];
    let turns: Vec<_> = (0..TURNS).map(turn).collect();
    drop(floor_process);
    let of = |which: usize| middle(&turns.iter().map(|all| all[which]).collect::<Vec<_>>());
    let [floor, ours, by_newer] = [0, 1, 2].map(of);
    tell("floor", floor, floor);
    tell("haft", ours, floor);
    tell(&newer.name, by_newer, floor);
    // What counts is each turn against the one beside it.
    let of_turns_of = |which: usize, name: &str, ratio: fn(&Measured, &Measured) -> f64| {
        let mut all: Vec<_> = turns.iter().map(|all| ratio(&all[which], &all[0])).collect();
        all.sort_by(f64::total_cmp);
        println!(
            "{name:<24} {:.2} times the floor ({:.2} to {:.2})",
            all[TURNS / 2],
            all[0],
            all[TURNS - 1]
        );
        all[TURNS / 2]
    };
    let of_turns = |which: usize, name: &str| {
        let cpu = |ours: &Measured, floor: &Measured| ratio(ours.cpu, floor.cpu);
        let p50 = |ours: &Measured, floor: &Measured| ratio(ours.p50, floor.p50);
        let calls = |ours: &Measured, floor: &Measured| ours.per_second / floor.per_second;
        [
            of_turns_of(which, &format!("{name}, cpu"), cpu),
            of_turns_of(which, &format!("{name}, p50"), p50),
            of_turns_of(which, &format!("{name}, throughput"), calls),
        ]
    };
    let of_both = [("", of_turns(1, "haft")), (" (stateless, token)", of_turns(2, &newer.name))];
    let (at_rest, again) = rest(&subject);
    println!(
        "haft at rest             {:.1} MB resident, first call {again:?}",
        at_rest as f64 / 1e6
    );
    drop(gate);
    let many = list(haft, &within("many"));
    many.tell("a thousand tools");
    let packages = list(haft, &within("packages"));
    packages.tell("a thousand packages");
    let (whole, kept) = (list(haft, &within("unfolded")), list(haft, &within("folded")));
    println!(
        "five hundred tools       about {:.0} tokens as they are, {:.0} kept out of sight",
        whole.tokens(),
        kept.tokens()
    );
    let worst = streets(haft, &within("street"));
    let best = best_of(others, floor);
    let mut is_missed = false;
    let mut goal = |what: &str, value: f64, most: f64| {
        let is_met = value <= most;
        is_missed |= !is_met;
        let word = if is_met { "met" } else { "MISSED" };
        println!("goal {what}: {value:.2} (at most {most:.2}) {word}");
    };
    for (how, [cpu, p50, calls]) in of_both {
        goal(&format!("cpu of a call, times the floor{how}"), cpu, 2.5);
        goal(&format!("p50, times the floor{how}"), p50, 3.0);
        goal(&format!("throughput of the floor, times ours{how}"), 1.0 / calls, 2.5);
    }
    if let Some(best) = best {
        goal(
            "throughput of the best other, times ten, by ours",
            best.per_second * 10.0 / ours.per_second,
            1.0,
        );
        goal("cpu of ours, times five, by the best other", 5.0 * ratio(ours.cpu, best.cpu), 1.0);
    }
    goal("p50 beside bad neighbours, times alone", worst.0, 2.0);
    goal("p99 beside bad neighbours, times alone", worst.1, 5.0);
    goal("cold start to the first list, ms", cold.as_secs_f64() * 1000.0, 50.0);
    goal("resident at rest, MB", at_rest as f64 / 1e6, 30.0);
    goal("resident after a load, MB", ours.resident as f64 / 1e6, 30.0);
    for (what, listed) in [("tools", &many), ("packages", &packages)] {
        let took = listed.took.as_secs_f64() * 1000.0;
        goal(&format!("list of a thousand {what}, ms"), took, 5.0);
        goal(&format!("resident with a thousand {what}, MB"), listed.resident as f64 / 1e6, 100.0);
    }
    std::process::exit(i32::from(is_missed));
}

/// The best that any of the others does.
fn best_of(others: &[String], floor: Measured) -> Option<Measured> {
    let each = others.iter().map(|other| {
        let subject = other_subject(other);
        let measured = measure(&subject);
        tell(&subject.name, measured, floor);
        measured
    });
    each.reduce(|best, measured| Measured {
        per_second: best.per_second.max(measured.per_second),
        cpu: best.cpu.min(measured.cpu),
        ..best
    })
}

/// Measures a tool beside each kind of bad neighbour, and says the worst p50 and the worst p99, as times what they are alone.
fn streets(haft: &str, home: &str) -> (f64, f64) {
    let mut worst = (0.0_f64, 0.0_f64);
    for bad in STREETS {
        let turns = neighbours(haft, home, bad);
        let [p50, p99] = [|one: &Percentiles| one.0, |one: &Percentiles| one.1].map(|value| {
            let mut all = turns.map(|[quiet, beside]| ratio(value(&beside), value(&quiet)));
            all.sort_by(f64::total_cmp);
            all
        });
        let shown = |all: [f64; STROLLS]| {
            format!("{:.2} ({:.2} to {:.2})", all[STROLLS / 2], all[0], all[STROLLS - 1])
        };
        let name = format!("beside {}", bad.join(" and "));
        println!("{name:<24} p50 {}, p99 {} times what they are alone", shown(p50), shown(p99));
        worst = (worst.0.max(p50[STROLLS / 2]), worst.1.max(p99[STROLLS / 2]));
    }
    worst
}

/// What is in the middle of all turns, and the memory after the last.
fn middle(turns: &[Measured]) -> Measured {
    fn of<T: PartialOrd + Copy>(turns: &[Measured], value: fn(&Measured) -> T) -> T {
        let mut all: Vec<_> = turns.iter().map(value).collect();
        all.sort_by(|one, other| one.partial_cmp(other).unwrap());
        all[all.len() / 2]
    }
    Measured {
        p50: of(turns, |one| one.p50),
        p99: of(turns, |one| one.p99),
        cpu: of(turns, |one| one.cpu),
        per_second: of(turns, |one| one.per_second),
        resident: turns[turns.len() - 1].resident,
    }
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn tell(name: &str, one: Measured, floor: Measured) {
    println!(
        "{name:<24} p50 {:>8.1} us ({:>5.2}x)  p99 {:>8.1} us  cpu {:>7.1} us ({:>5.2}x)  {:>8.0}/s ({:>4.0} %)  {:>5.1} MB",
        one.p50.as_secs_f64() * 1e6,
        ratio(one.p50, floor.p50),
        one.p99.as_secs_f64() * 1e6,
        one.cpu.as_secs_f64() * 1e6,
        ratio(one.cpu, floor.cpu),
        one.per_second,
        100.0 * one.per_second / floor.per_second,
        one.resident as f64 / 1e6,
    );
}

/// A process that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_floor(echo: &str) -> (Running, Subject) {
    let own = std::env::current_exe().unwrap();
    let mut child = Command::new(own).args(["floor", echo]).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let subject = Subject {
        name: "floor".to_owned(),
        address: address.trim().to_owned(),
        path: "/".to_owned(),
        processes: vec![child.id()],
        tool: "echo",
        share: 1,
        how: How::Session,
        headers: String::new(),
    };
    (Running(child), subject)
}

fn start_gateway(haft: &str, home: &str) -> (Running, Subject) {
    let serve = ["--home", home, "serve", "--listen", "127.0.0.1:0", "--without-token", "--json"];
    let mut child = Command::new(haft).args(serve).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    while !said.contains('}') {
        out.read_line(&mut said).unwrap();
    }
    let said: Value = serde_json::from_str(&said).unwrap();
    let url = said["mcp"].as_str().unwrap();
    let subject = Subject {
        name: "haft".to_owned(),
        address: url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned(),
        path: "/mcp".to_owned(),
        processes: vec![child.id()],
        tool: "echo_echo",
        share: 1,
        how: How::Session,
        headers: String::new(),
    };
    (Running(child), subject)
}

/// The same gateway, as a client of the newer era finds it that shows a token.
fn stateless(haft: &str, home: &str, subject: &Subject) -> Subject {
    let token = |arguments: &[&str]| {
        let made = Command::new(haft).args(["--home", home, "token"]).args(arguments).output();
        String::from_utf8(made.unwrap().stdout).unwrap()
    };
    token(&["rm", "bench"]);
    let token = token(&["new", "bench"]);
    let tool = subject.tool;
    Subject {
        name: "haft, stateless".to_owned(),
        address: subject.address.clone(),
        path: subject.path.clone(),
        processes: subject.processes.clone(),
        tool,
        share: 1,
        how: How::Stateless,
        headers: format!(
            "authorization: Bearer {}\r\nmcp-protocol-version: {NEWER}\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n",
            token.trim()
        ),
    }
}

/// `NAME=KIND=URL=PID,PID`.
fn other_subject(text: &str) -> Subject {
    let parts: Vec<_> = text.splitn(4, '=').collect();
    let [name, kind, url, processes] = parts[..] else { panic!("{text}") };
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    Subject {
        name: name.to_owned(),
        address: address.to_owned(),
        path: format!("/{path}"),
        processes: processes.split(',').map(|one| one.parse().unwrap()).collect(),
        tool: "echo",
        share: FEW,
        how: if kind == "plain" { How::Plain } else { How::Session },
        headers: String::new(),
    }
}

/// From nothing to the first list of tools, as a client has it: the best of several, since the first reads the disk.
fn cold_start(haft: &str, home: &str) -> Duration {
    let greeting = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } } });
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let mut all: Vec<_> = (0..5)
        .map(|_| {
            let _ = std::fs::remove_file(Path::new(home).join("host.sock"));
            std::thread::sleep(Duration::from_millis(1500));
            let began = Instant::now();
            let mut child = Command::new(haft)
                .args(["--home", home, "mcp"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut to = child.stdin.take().unwrap();
            writeln!(to, "{greeting}\n{list}").unwrap();
            let mut from = BufReader::new(child.stdout.take().unwrap());
            let mut line = String::new();
            while !line.contains("\"tools\":[") {
                line.clear();
                assert!(from.read_line(&mut line).unwrap() > 0, "it ended");
            }
            let took = began.elapsed();
            let _ = child.kill();
            let _ = child.wait();
            took
        })
        .collect();
    all.sort();
    println!("cold start               {all:?}");
    all[all.len() / 2]
}

fn measure(subject: &Subject) -> Measured {
    let mut caller = Caller::new(subject);
    for _ in 0..200 / subject.share.min(10) {
        caller.call();
    }
    let before = cpu(&subject.processes);
    let calls = ALONE / subject.share;
    let (p50, p99) = caller.timed(calls);
    let alone = cpu(&subject.processes).saturating_sub(before);
    let each = TOGETHER / subject.share / CALLERS;
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                let mut caller = Caller::new(subject);
                for _ in 0..each {
                    caller.call();
                }
            });
        }
    });
    Measured {
        p50,
        p99,
        cpu: alone / u32::try_from(calls).unwrap(),
        per_second: (each * CALLERS) as f64 / began.elapsed().as_secs_f64(),
        resident: subject.processes.iter().map(|one| resident(*one)).sum(),
    }
}

/// How much memory it takes when nobody has called for a while, and how long the next call takes.
fn rest(subject: &Subject) -> (u64, Duration) {
    let mut caller = Caller::new(subject);
    std::thread::sleep(REST);
    let resident = subject.processes.iter().map(|one| resident(*one)).sum();
    let began = Instant::now();
    caller.call();
    (resident, began.elapsed())
}

/// The p50 and the p99 of a tool.
type Percentiles = (Duration, Duration);

/// What a tool takes alone and while others call these servers, in turns.
fn neighbours(haft: &str, street: &str, bad: &[&str]) -> [[Percentiles; 2]; STROLLS] {
    let (_gate, subject) = start_gateway(haft, street);
    let mut caller = Caller::new(&subject);
    caller.timed(ALONE);
    let mut turn = || {
        let quiet = caller.timed(ALONE);
        let is_over = AtomicBool::new(false);
        let beside = std::thread::scope(|scope| {
            for name in bad.iter().flat_map(|name| [*name; VISITORS]) {
                let (subject, is_over) = (&subject, &is_over);
                scope.spawn(move || visit(subject, name, is_over));
            }
            std::thread::sleep(Duration::from_millis(500));
            let beside = caller.timed(ALONE);
            is_over.store(true, Ordering::Relaxed);
            beside
        });
        [quiet, beside]
    };
    std::array::from_fn(|_| turn())
}

/// Calls a neighbour that nobody wants, until it is over.
fn visit(subject: &Subject, name: &str, is_over: &AtomicBool) {
    let mut caller = Caller::new(subject);
    caller.body = caller.body.replace("echo_echo", &format!("{name}_echo"));
    // The first may still go well.
    caller.expected = Expected::Anything;
    while !is_over.load(Ordering::Relaxed) {
        caller.call();
        caller.expected = Expected::Refusal;
        std::thread::sleep(BETWEEN);
    }
}

/// A list of tools.
struct Listed {
    took: Duration,
    bytes: usize,
    /// How much memory it takes to have them.
    resident: u64,
}

impl Listed {
    /// How many tokens it takes, as `haft export --budget` estimates it.
    fn tokens(&self) -> f64 {
        self.bytes as f64 / 3.5
    }

    fn tell(&self, what: &str) {
        println!(
            "{what:<24} listed in {:?}, {} bytes, {:.1} MB resident",
            self.took,
            self.bytes,
            self.resident as f64 / 1e6
        );
    }
}

fn list(haft: &str, home: &str) -> Listed {
    let (gate, subject) = start_gateway(haft, home);
    let mut caller = Caller::new(&subject);
    caller.body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    caller.call();
    let (took, _) = caller.timed(200);
    Listed { took, bytes: caller.length, resident: resident(gate.0.id()) }
}

/// Processor time of processes until now.
fn cpu(processes: &[u32]) -> Duration {
    let of_one = |process: &u32| {
        // In nanoseconds, of all threads together.
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
        let each = tasks.flatten().filter_map(|task| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(each.sum())
    };
    processes.iter().map(of_one).sum()
}

fn resident(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

/// One client, on one connection.
struct Caller {
    to: TcpStream,
    from: BufReader<TcpStream>,
    head: String,
    body: String,
    /// How long the last answer was.
    length: usize,
    expected: Expected,
}

fn call_with(params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// What is answered, or it is not what is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Success,
    Refusal,
    Anything,
}

impl Caller {
    fn new(subject: &Subject) -> Self {
        let to = TcpStream::connect(&subject.address).unwrap();
        to.set_nodelay(true).unwrap();
        let from = BufReader::new(to.try_clone().unwrap());
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{}",
            subject.path, subject.address, subject.headers
        );
        let (body, expected) = (String::new(), Expected::Success);
        let mut caller = Self { to, from, head, body, length: 0, expected };
        let mut params = json!({ "name": subject.tool, "arguments": { "text": "hello" } });
        match subject.how {
            How::Session => {}
            How::Plain => {
                caller.body = params["arguments"].to_string();
                return caller;
            }
            How::Stateless => {
                params["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": NEWER,
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
                });
                caller.body = call_with(&params);
                return caller;
            }
        }
        let greeting = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } } });
        if let Some(session) = caller.ask(&greeting.to_string()) {
            caller.head +=
                &format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-06-18\r\n");
        }
        caller.ask(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        caller.body = call_with(&params);
        caller
    }

    fn call(&mut self) {
        let body = std::mem::take(&mut self.body);
        self.ask(&body);
        self.body = body;
    }

    /// The p50 and the p99 of so many calls.
    fn timed(&mut self, calls: usize) -> (Duration, Duration) {
        let mut all: Vec<_> = (0..calls)
            .map(|_| {
                let began = Instant::now();
                self.call();
                began.elapsed()
            })
            .collect();
        all.sort();
        (all[all.len() / 2], all[all.len() * 99 / 100])
    }

    /// Posts a message, and says which session it belongs to.
    fn ask(&mut self, body: &str) -> Option<String> {
        let text = format!("{}content-length: {}\r\n\r\n{body}", self.head, body.len());
        self.to.write_all(text.as_bytes()).unwrap();
        let (mut length, mut is_chunked, mut session) = (0, false, None);
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        assert!(line.contains(" 20"), "{line}");
        loop {
            line.clear();
            self.from.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match (&*name.to_ascii_lowercase(), value.trim()) {
                ("content-length", value) => length = value.parse().unwrap(),
                ("transfer-encoding", "chunked") => is_chunked = true,
                ("mcp-session-id", value) => session = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        if is_chunked {
            loop {
                line.clear();
                self.from.read_line(&mut line).unwrap();
                let size = usize::from_str_radix(line.trim(), 16).unwrap();
                let mut piece = vec![0; size + 2];
                self.from.read_exact(&mut piece).unwrap();
                body.extend_from_slice(&piece[..size]);
                if size == 0 {
                    break;
                }
            }
        } else {
            self.from.read_exact(&mut body).unwrap();
        }
        self.length = body.len();
        let text = String::from_utf8_lossy(&body);
        let is_well = !text.contains("\"isError\":true") && !text.contains("\"error\":");
        let found = if is_well { Expected::Success } else { Expected::Refusal };
        let is_expected = [found, Expected::Anything].contains(&self.expected);
        assert!(is_expected || session.is_some(), "{text}");
        session
    }
}
