//! Where the ordinary verbs are typed, until somebody wants the whole to stop.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use host::CancellationToken;

use super::NAME;
use super::examples::{ALL, Example, INSTALLED};
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::interrupt;
use crate::printer::Printer;

/// How often it is looked whether a verb has ended.
const LOOK: Duration = Duration::from_millis(10);

/// A home in which verbs are typed.
pub(super) struct Desk<'d> {
    pub(super) home: &'d Home,
    pub(super) stopping: &'d CancellationToken,
    pub(super) printer: Printer,
}

impl Desk<'_> {
    /// Signs, tests and publishes the examples.
    pub(super) fn publish(&self, url: &str) -> Result<(), Failure> {
        self.quietly(&["key", "new", NAME, "--no-passphrase"], None)?;
        let token = self.quietly(&["registry", "token", "new", "--namespace", "*", "-q"], None)?;
        self.quietly(&["registry", "add", NAME, url], None)?;
        self.quietly(&["registry", "login", NAME], Some(token.trim()))?;
        for example in &ALL {
            let folder = self.home.path().join("examples").join(example.name);
            write(example, &folder)?;
            let folder = folder.display().to_string();
            self.quietly(&["publish", &folder, "--registry", NAME, "--key", NAME], None)?;
            self.printer.note(&format!("Signed, tested and published {}", example.id));
        }
        Ok(())
    }

    /// Installs the examples that are not installed yet.
    pub(super) fn install(&self) -> Result<(), Failure> {
        for example in &ALL[..INSTALLED] {
            match self.quietly(&["status", example.id], None) {
                Ok(_) => {}
                Err(failure) if failure.exit == interrupt::cancelled().exit => return Err(failure),
                Err(_) => {
                    self.quietly(&["install", example.id, "--yes"], None)?;
                    self.printer.note(&format!("Installed {}", example.id));
                }
            }
        }
        Ok(())
    }

    /// Runs a verb; what it prints comes back, and what goes wrong is told in its words.
    pub(super) fn quietly(&self, words: &[&str], typed: Option<&str>) -> Result<String, Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(Exit::Unavailable, format!("failed to run `haft {}`", words[0]))
                .cause(error)
        };
        if self.stopping.is_cancelled() {
            return Err(interrupt::cancelled());
        }
        let mut command = Command::new(sandbox::own_program().map_err(failed)?);
        command.arg("--home").arg(self.home.path()).arg("--non-interactive").args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // What the newcomer has set for their own home is not meant.
        for name in ["HAFT_HOME", "HAFT_DATABASE_URL", "REGISTRY_BASE_URL", "REGISTRY_TOKEN"] {
            command.env_remove(name);
        }
        let mut child = command.spawn().map_err(failed)?;
        if let (Some(mut stdin), Some(typed)) = (child.stdin.take(), typed) {
            let _ = stdin.write_all(typed.as_bytes());
        }
        let (out, err) = (aside(child.stdout.take()), aside(child.stderr.take()));
        let ended = self.wait(&mut child).map_err(failed)?;
        let (out, err) = (told(out), told(err));
        if ended.success() {
            return Ok(out);
        }
        // A terminal tells both of us to stop.
        if self.stopping.is_cancelled() || ended.code() == Some(interrupt::CODE.into()) {
            return Err(interrupt::cancelled());
        }
        Err(Failure::new(Exit::Unavailable, format!("`haft {}` failed", words.join(" ")))
            .cause(err.trim()))
    }

    /// Waits for a verb; it is told when it is to stop.
    fn wait(&self, child: &mut Child) -> std::io::Result<ExitStatus> {
        let mut is_told = false;
        loop {
            if let Some(ended) = child.try_wait()? {
                return Ok(ended);
            }
            if self.stopping.is_cancelled() && !is_told {
                is_told = true;
                tell_to_stop(child);
            }
            std::thread::sleep(LOOK);
        }
    }
}

#[cfg(unix)]
fn tell_to_stop(child: &mut Child) {
    let process = rustix::process::Pid::from_child(child);
    let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
}

#[cfg(not(unix))]
fn tell_to_stop(child: &mut Child) {
    let _ = child.kill();
}

/// Reads what a verb says, so that it never waits for us.
fn aside(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut said);
        }
        said
    })
}

fn told(reading: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&reading.join().unwrap_or_default()).into_owned()
}

/// Writes an example into a folder.
fn write(example: &Example, folder: &Path) -> Result<(), Failure> {
    for (path, text) in example.files {
        let path = folder.join(path);
        let failed = |error: std::io::Error| {
            Failure::new(Exit::Unavailable, format!("failed to write `{}`", path.display()))
                .cause(error)
        };
        std::fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
        std::fs::write(&path, text).map_err(failed)?;
    }
    Ok(())
}
