//! Being told to stop: what was being made is taken away, and the terminal is left as it was.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use host::CancellationToken;

use crate::exit::{Exit, Failure};

/// The code we end with when we are told to stop.
pub(crate) const CODE: u8 = 130;

/// How long a program of ours may take to end, and we to keep and to say what became of it.
const PATIENCE: Duration = Duration::from_secs(15);

/// Whether we were told to stop while a program of ours ran.
static IS_STOPPING: AtomicBool = AtomicBool::new(false);

/// What to put right when we are told to stop.
static CARE: Mutex<Care> = Mutex::new(Care { folders: Vec::new(), program: None, terminal: None });

struct Care {
    /// Folders in which something of ours may stand.
    folders: Vec<PathBuf>,
    /// What ends a program that runs inside walls of ours.
    program: Option<(Box<dyn FnOnce() + Send>, Duration)>,
    #[cfg(unix)]
    terminal: Option<rustix::termios::Termios>,
    #[cfg(not(unix))]
    terminal: Option<()>,
}

/// A token that is cancelled when we are told to stop, until nothing runs any more.
pub(crate) fn calling_off() -> CancellationToken {
    let called_off = CancellationToken::new();
    let cancelled = called_off.clone();
    end_first(move || cancelled.cancel());
    called_off
}

/// Listens for being told to stop: by Ctrl-C, by `kill`, by the end of the terminal. Whoever wants us to outlive that (`nohup`) has
/// said so before we began.
#[cfg(unix)]
pub(crate) fn listen() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let all = [SIGINT, SIGTERM, SIGHUP];
    let heard = all.into_iter().filter(|signal| *signal != SIGHUP || !is_ignored(SIGHUP));
    // Without a listener the program ends all the same, only less tidily.
    let Ok(mut signals) = Signals::new(heard) else { return };
    let listening = std::thread::Builder::new().name("signals".to_owned());
    let _ = listening.spawn(move || {
        if signals.forever().next().is_some() {
            stop();
        }
    });
}

/// The same: by Ctrl-C.
#[cfg(not(unix))]
pub(crate) fn listen() {
    let _ = ctrlc::set_handler(stop);
}

/// Whether a signal does nothing to us, as far as the system says.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let told = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = told.lines().filter_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = lines.next().and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    ignored.is_some_and(|bits| bits >> (signal - 1) & 1 == 1)
}

/// Ends what runs, puts right what was begun, and leaves.
fn stop() {
    end_program();
    let care = CARE.lock().unwrap_or_else(PoisonError::into_inner);
    care.folders.iter().for_each(|folder| sweep(folder));
    drop(care);
    restore_terminal();
    std::process::exit(CODE.into());
}

/// A program runs. When we are told to stop it is ended first, so, and whoever waits for it has the last word.
pub(crate) fn end_first(end: impl FnOnce() + Send + 'static) {
    end_first_within(PATIENCE, end);
}

/// The same, for what may take longer to end.
pub(crate) fn end_first_within(patience: Duration, end: impl FnOnce() + Send + 'static) {
    let program: Box<dyn FnOnce() + Send> = Box::new(end);
    CARE.lock().unwrap_or_else(PoisonError::into_inner).program = Some((program, patience));
}

/// No program runs any more, so nothing is waited for when we are told to stop.
pub(crate) fn nothing_runs() {
    CARE.lock().unwrap_or_else(PoisonError::into_inner).program = None;
}

/// Whether a program was ended because we were told to stop.
pub(crate) fn was_told_to_stop() -> bool {
    IS_STOPPING.load(Ordering::Acquire)
}

/// What is said where somebody told us to stop.
pub(crate) fn cancelled() -> Failure {
    Failure::new(Exit::Of(CODE), "cancelled")
}

/// Ends the program that runs, if there is one, and leaves the rest to whoever waits for it.
fn end_program() {
    let mut care = CARE.lock().unwrap_or_else(PoisonError::into_inner);
    let program = care.program.take();
    if program.is_some() {
        // Whoever lends us the next program sees it.
        IS_STOPPING.store(true, Ordering::Release);
    }
    drop(care);
    if let Some((program, patience)) = program {
        program();
        // The process ends meanwhile. If it does not, somebody reads nothing of what we write.
        std::thread::sleep(patience);
    }
}

/// Something of ours is about to stand in a folder until it is finished.
pub(crate) fn watch(folder: &Path) {
    let mut care = CARE.lock().unwrap_or_else(PoisonError::into_inner);
    care.folders.push(folder.to_owned());
}

/// The terminal is about to show nothing of what is typed.
pub(crate) fn keep_terminal() {
    #[cfg(unix)]
    if let Ok(terminal) = rustix::termios::tcgetattr(std::io::stdin()) {
        CARE.lock().unwrap_or_else(PoisonError::into_inner).terminal = Some(terminal);
    }
}

/// The terminal shows again what is typed. Whoever was told to stop leaves it so.
pub(crate) fn restore_terminal() {
    #[cfg(unix)]
    if let Some(terminal) = &CARE.lock().unwrap_or_else(PoisonError::into_inner).terminal {
        let now = rustix::termios::OptionalActions::Now;
        let _ = rustix::termios::tcsetattr(std::io::stdin(), now, terminal);
    }
}

/// What a file or folder of ours is called until it is finished.
pub(crate) fn prefix() -> String {
    format!(".haft-{}-", std::process::id())
}

/// Removes what is ours in a folder. Others may still be writing there, so it is tried again.
fn sweep(folder: &Path) {
    let staged = format!(".haft-unpack-{}-", std::process::id());
    for _ in 0..20 {
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut found = false;
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(&prefix()) || name.starts_with(&staged) {
                found = true;
                let path = entry.path();
                let _ =
                    if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            }
        }
        if !found {
            return;
        }
    }
}
