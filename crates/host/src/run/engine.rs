//! One container of an engine for one call.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sandbox::{Ended, Exit, Finished, Usage};

use super::leash::Leash;
use crate::error::{CallError, Kind};
use crate::plan::engine::Engine;

/// What engines end with when they could not start the container.
const NOT_STARTED: i32 = 125;

/// How long an engine has to end a container.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether the container has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// Runs a container to its end, or ends it.
pub(crate) fn run(engine: &Engine, leash: &Leash) -> Result<Finished, CallError> {
    let began = Instant::now();
    let mut command = client(engine, &engine.arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        let message = format!("failed to start `{}`: {error}", engine.program.display());
        CallError::new(Kind::Unavailable, message)
    })?;
    let written = Arc::new(AtomicU64::new(0));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let stdout = stdout.map(|pipe| collect(pipe, &written, engine.output));
    let stderr = stderr.map(|pipe| collect(pipe, &written, engine.output));
    if let Some(mut pipe) = child.stdin.take() {
        let input = engine.stdin.clone();
        // A tool that does not read its input ends the writing with its end.
        std::thread::spawn(move || drop(pipe.write_all(&input)));
    }
    let until = began + engine.timeout;
    let cut = wait(&mut child, until, || {
        if leash.is_called_off() {
            return Some(Exit::Cancelled);
        }
        (written.load(Ordering::Relaxed) > engine.output).then_some(Exit::Output)
    });
    let exit = match cut {
        Ok(exit) => exit,
        Err(exit) => {
            end(engine, &mut child);
            exit
        }
    };
    let join = |reader: Option<JoinHandle<Vec<u8>>>| {
        reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    };
    let (stdout, stderr) = (join(stdout), join(stderr));
    if exit == Exit::Code(NOT_STARTED) && stdout.is_empty() {
        let text = String::from_utf8_lossy(&stderr);
        let message = format!("the engine did not start the container: {}", text.trim());
        return Err(CallError::new(Kind::Unavailable, message));
    }
    let output = stdout.len() as u64 + stderr.len() as u64;
    let usage = Usage { wall: began.elapsed(), output, ..Usage::default() };
    Ok(Finished { stdout, stderr, ended: Ended { exit, usage } })
}

/// The engine's program, which has only what it is given and gets no signals of ours.
fn client(engine: &Engine, arguments: &[String]) -> Command {
    let mut command = Command::new(&engine.program);
    command.args(arguments).env_clear().envs(engine.environment.iter().cloned());
    command.current_dir("/").process_group(0);
    command
}

/// Waits for the end; the error is why it has to be brought about.
fn wait(child: &mut Child, until: Instant, cut: impl Fn() -> Option<Exit>) -> Result<Exit, Exit> {
    loop {
        if let Some(exit) = cut() {
            return Err(exit);
        }
        match child.try_wait() {
            Ok(Some(status)) => {
                let signal = status.signal().map(Exit::Signal);
                return Ok(status.code().map(Exit::Code).or(signal).unwrap_or(Exit::Lost));
            }
            Ok(None) if Instant::now() < until => std::thread::sleep(PAUSE),
            Ok(None) => return Err(Exit::Deadline),
            Err(_) => return Err(Exit::Lost),
        }
    }
}

/// Ends the container by its name, then the engine's program.
fn end(engine: &Engine, child: &mut Child) {
    for words in [&["kill"][..], &["rm", "--force"]] {
        let mut arguments: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        arguments.push(engine.container.clone());
        let mut command = client(engine, &arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut killer) = command.spawn() else { continue };
        let until = Instant::now() + PATIENCE;
        while matches!(killer.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
        let _ = killer.kill();
        let _ = killer.wait();
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Keeps what is written, but no more than is allowed; the rest is counted.
fn collect(
    mut pipe: impl Read + Send + 'static,
    written: &Arc<AtomicU64>,
    most: u64,
) -> JoinHandle<Vec<u8>> {
    let written = Arc::clone(written);
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            if written.fetch_add(count as u64, Ordering::Relaxed) + count as u64 <= most {
                kept.extend_from_slice(&buffer[..count]);
            }
        }
        kept
    })
}
