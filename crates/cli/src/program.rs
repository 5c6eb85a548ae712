//! A program run for a short while: text in, text out, and an end.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a program may run.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(30);

/// How much of each of its outputs is kept, in bytes.
const MAX_OUTPUT: usize = 16 * 1024 * 1024;

/// How long an output is waited for once the program has ended: what it has started may hold it open.
const GRACE: Duration = Duration::from_millis(500);

/// How often to look whether it has ended.
const INTERVAL: Duration = Duration::from_millis(5);

/// What came of a program that ended by itself.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The last lines it said beside its result, for an error message.
    pub(crate) fn last_words(&self) -> Vec<&str> {
        let lines: Vec<_> = self.stderr.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(5)..].to_vec()
    }
}

/// Why nothing came of a program.
#[derive(Debug)]
pub(crate) enum RunError {
    /// There is none of that name.
    Missing,
    /// It could not be started or waited for.
    Start(io::Error),
    /// It was still running at the time limit, and was ended.
    TooSlow,
}

/// Runs a program in a folder, with a text on its standard input.
pub(crate) fn run<A: AsRef<OsStr>>(
    name: &str,
    arguments: &[A],
    folder: &Path,
    input: &str,
    time_limit: Duration,
) -> Result<Ended, RunError> {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(folder);
    run_command(command, input, time_limit)
}

/// Runs a command that somebody else has put together.
pub(crate) fn run_command(
    mut command: Command,
    input: &str,
    time_limit: Duration,
) -> Result<Ended, RunError> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => RunError::Missing,
            _ => RunError::Start(error),
        })?;
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_owned();
        // A program that does not read its input to the end is fine.
        std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    }
    let stdout = child.stdout.take().map(Output::of);
    let stderr = child.stderr.take().map(Output::of);
    let success = wait(&mut child, time_limit)?;
    let text = |output: Option<Output>| output.map(Output::text).unwrap_or_default();
    Ok(Ended { success, stdout: text(stdout), stderr: text(stderr) })
}

/// Waits for the end, and brings it about at the time limit. Says whether it ended well.
fn wait(child: &mut Child, time_limit: Duration) -> Result<bool, RunError> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if begun.elapsed() < time_limit => std::thread::sleep(INTERVAL),
            outcome => {
                // Both fail only when it has ended in the meantime.
                let _ = child.kill();
                let _ = child.wait();
                return Err(outcome.err().map_or(RunError::TooSlow, RunError::Start));
            }
        }
    }
}

/// What a program says, read beside it so that it never has to wait.
struct Output {
    kept: Arc<Mutex<Vec<u8>>>,
    end: Receiver<()>,
}

impl Output {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (at_end, end) = channel();
        let mine = Arc::clone(&kept);
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                let mut kept = mine.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MAX_OUTPUT - kept.len();
                kept.extend_from_slice(&buffer[..length.min(room)]);
            }
            // Nobody may be waiting any more.
            let _ = at_end.send(());
        });
        Self { kept, end }
    }

    fn text(self) -> String {
        // Whatever is there after that is what there is.
        let _ = self.end.recv_timeout(GRACE);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, input: &str, limit: Duration) -> Result<Ended, RunError> {
        run("sh", &["-c", script], Path::new("."), input, limit)
    }

    #[test]
    fn a_program_gets_its_input_and_gives_both_outputs() {
        let ended = shell("cat; echo oops >&2; exit 3", "hello", TIME_LIMIT).unwrap();
        assert!(!ended.success);
        assert_eq!((ended.stdout.as_str(), ended.last_words()), ("hello", vec!["oops"]));
    }

    #[test]
    fn a_program_that_never_ends_is_ended() {
        let begun = Instant::now();
        let outcome = shell("exec sleep 60", "", Duration::from_millis(50));
        assert!(matches!(outcome, Err(RunError::TooSlow)));
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn what_a_program_leaves_running_is_not_waited_for() {
        let begun = Instant::now();
        let ended = shell("echo done; sleep 60 &", "", TIME_LIMIT).unwrap();
        assert_eq!(ended.stdout, "done\n");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_program_that_is_not_there_is_told_apart() {
        let nothing: [&str; 0] = [];
        let outcome = run("haft-no-such-program", &nothing, Path::new("."), "", TIME_LIMIT);
        assert!(matches!(outcome, Err(RunError::Missing)));
    }
}
