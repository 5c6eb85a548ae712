//! Holds values against schemas that may take long, in a process of its own, which is ended after a while.
//!
//! A schema comes from a stranger. What it may cost is counted before ([`manifest::schema::effort`]), and what
//! is little is done at once; for the rest nothing counts but a clock. The program is our own, started anew.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use manifest::json::{self, Node};
use manifest::schema::{Effort, Unknowns, effort, judge};
use serde_json::{Value, json};

/// How long it may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(2);

/// How long a turn and an answer are waited for together, where nobody knows the time of the call.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// From this length on reading alone takes a while.
const LONG: usize = 64 << 10;

/// How many processes judge at a time; whoever comes later waits.
const MOST: usize = 4;

/// The same, as the kernel counts it, should nobody be left to look at the clock.
const PROCESSOR_SECONDS: u64 = 3;

/// How much memory it may take.
const MEMORY: u64 = 1 << 30;

/// The word by which the program knows what it was started for.
const WORD: &str = "--haft-judge";

/// A place, and what is wrong there.
pub(crate) type Mismatch = (String, String);

/// It would take too long to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Names the program that is started, where it is not this one. It calls [`enter_if_judge`] first of all.
pub fn set_program(path: PathBuf) {
    let _ = PROGRAM.set(path);
}

/// What of a JSON text does not fit a schema. Past `until` nobody waits for the answer.
pub(crate) fn mismatches(
    schema: &str,
    text: &str,
    unknowns: Unknowns,
    until: Instant,
) -> Result<Vec<Mismatch>, TooLong> {
    let parse_and_look = || match &json::parse(text).root {
        Some(value) => look(schema, (text, value), unknowns, until),
        None => Ok(vec![(String::new(), "it is nested too deeply".to_owned())]),
    };
    in_time(schema.len().max(text.len()), until, parse_and_look)
}

/// The same of a text that was read.
pub(crate) fn mismatches_of(
    schema: &str,
    read: (&str, &Node<'_>),
    unknowns: Unknowns,
    until: Instant,
) -> Result<Vec<Mismatch>, TooLong> {
    in_time(schema.len().max(read.0.len()), until, || look(schema, read, unknowns, until))
}

/// Looks at what is so long, unless it is too late; nobody else waits for that.
fn in_time<T>(
    length: usize,
    until: Instant,
    look: impl FnOnce() -> Result<T, TooLong>,
) -> Result<T, TooLong> {
    if Instant::now() >= until {
        return Err(TooLong);
    }
    if length > LONG { without_holding_up_others(look) } else { look() }
}

/// Whether a pattern is found in a text. It is a stranger's, so it is judged as schemas are: within a time.
pub(crate) fn matches(pattern: &str, text: &str, until: Instant) -> Result<bool, TooLong> {
    let schema = json!({ "type": "string", "pattern": pattern }).to_string();
    let text = json!(text).to_string();
    mismatches(&schema, &text, Unknowns::AsTheSchemaSays, until).map(|found| found.is_empty())
}

fn look(
    schema: &str,
    (text, value): (&str, &Node<'_>),
    unknowns: Unknowns,
    until: Instant,
) -> Result<Vec<Mismatch>, TooLong> {
    let schema_node = json::parse(schema);
    let Some(schema_node) = &schema_node.root else { return Ok(Vec::new()) };
    match effort(schema_node, value) {
        Effort::Little => {
            let found = judge(schema_node, value, unknowns).map_err(|_| TooLong)?;
            Ok(found.into_iter().map(|one| (one.pointer.as_str().into(), one.message)).collect())
        }
        Effort::Much => without_holding_up_others(|| elsewhere(schema, text, unknowns, until)),
    }
}

/// How many processes judge now, and the word that there is one less.
static JUDGING: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// The turn to start a process. The next comes when it is dropped.
#[derive(Debug)]
struct Turn;

impl Turn {
    fn wait(until: Instant) -> Result<Self, TooLong> {
        let (judging, is_free) = &JUDGING;
        let judging = judging.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.saturating_duration_since(Instant::now());
        let waited = is_free.wait_timeout_while(judging, left, |judging| *judging >= MOST);
        let (mut judging, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return Err(TooLong);
        }
        *judging += 1;
        Ok(Self)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (judging, is_free) = &JUDGING;
        *judging.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        is_free.notify_one();
    }
}

/// Blocks, and lets the calls that share this thread go on where they can.
pub(crate) fn without_holding_up_others<T>(run: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(run),
        _ => run(),
    }
}

fn elsewhere(
    schema: &str,
    text: &str,
    unknowns: Unknowns,
    until: Instant,
) -> Result<Vec<Mismatch>, TooLong> {
    let _turn = Turn::wait(until)?;
    let refuse = unknowns == Unknowns::Refused;
    let order = json!({ "schema": schema, "value": text, "refuse": refuse }).to_string();
    let program = match PROGRAM.get() {
        Some(program) => program.clone(),
        None => sandbox::own_program().map_err(|_| TooLong)?,
    };
    let mut command = Command::new(program);
    command.arg(WORD).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|_| TooLong)?;
    let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(TooLong);
    };
    let (sender, answer) = mpsc::channel();
    let spawned = std::thread::Builder::new().name("judge".into()).spawn(move || {
        let mut said = Vec::new();
        let _ = stdin.write_all(order.as_bytes());
        drop(stdin);
        let _ = stdout.read_to_end(&mut said);
        let _ = sender.send(said);
    });
    let patience = DEADLINE.min(until.saturating_duration_since(Instant::now()));
    let said = spawned.ok().and_then(|_| answer.recv_timeout(patience).ok());
    // It has said all it has to say, or takes too long.
    let _ = child.kill();
    let _ = child.wait();
    said.and_then(|said| serde_json::from_slice(&said).ok()).ok_or(TooLong)
}

/// If this process was started to judge, it does, and ends.
pub fn enter_if_judge() {
    if std::env::args_os().nth(1).is_none_or(|word| word != WORD) {
        return;
    }
    #[cfg(unix)]
    limit();
    let mut order = Vec::new();
    let judged = std::io::stdin().lock().read_to_end(&mut order).ok().and_then(|_| decide(&order));
    let code = match judged {
        Some(answer) => {
            let written = std::io::stdout().lock().write_all(answer.to_string().as_bytes());
            i32::from(written.is_err())
        }
        None => 1,
    };
    std::process::exit(code);
}

fn decide(order: &[u8]) -> Option<Value> {
    let order: Value = serde_json::from_slice(order).ok()?;
    let (schema, value) =
        (json::parse(order["schema"].as_str()?), json::parse(order["value"].as_str()?));
    let refuses = order["refuse"].as_bool()?;
    let unknowns = if refuses { Unknowns::Refused } else { Unknowns::AsTheSchemaSays };
    let found = judge(schema.root.as_ref()?, value.root.as_ref()?, unknowns).ok()?;
    let found = found.into_iter().map(|one| json!([one.pointer.as_str(), one.message]));
    Some(found.collect())
}

#[cfg(unix)]
fn limit() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let to = |most| Rlimit { current: Some(most), maximum: Some(most) };
    let _ = setrlimit(Resource::Cpu, to(PROCESSOR_SECONDS));
    let _ = setrlimit(Resource::As, to(reserved().saturating_add(MEMORY)));
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

/// What this process has reserved before it reads anything: some allocators begin with a gigabyte, and use none of it.
#[cfg(unix)]
fn reserved() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default().saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_judge_at_a_time_and_the_others_wait_for_their_turn() {
        let soon = || Instant::now() + Duration::from_millis(20);
        let mut turns: Vec<_> = (0..MOST).map(|_| Turn::wait(soon()).unwrap()).collect();
        assert_eq!(Turn::wait(soon()).unwrap_err(), TooLong);
        let waiting = std::thread::spawn(|| Turn::wait(Instant::now() + Duration::from_mins(1)));
        turns.pop();
        assert!(waiting.join().unwrap().is_ok());
    }
}
