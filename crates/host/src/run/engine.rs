//! One container of an engine for one call.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use manifest::dialect::Dialect;
use sandbox::{Ended, Exit, Finished, Usage};
use serde_json::{Map, Value};

use super::leash::Leash;
use crate::error::{CallError, Kind};
use crate::output;
use crate::plan::engine::{Engine, Needs};

/// What engines end with when they could not start the container, or its program.
const NOT_STARTED: i32 = 125;
const NO_PROGRAM: [i32; 2] = [126, 127];

/// How long an engine has to end a container.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether the container has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// The longest description of an image.
const LONGEST_DESCRIPTION: u64 = 1 << 20;

/// Runs a container of an image that was looked at to its end, or ends it when the time of its call is over.
pub(crate) fn run(engine: &Engine, until: Instant, leash: &Leash) -> Result<Finished, CallError> {
    let began = Instant::now();
    let until = until.min(began + engine.timeout);
    let talk = Talk { until, output: engine.output, leash };
    let said = talk.with(client(engine, &engine.arguments), &engine.stdin, |child| {
        end(engine, child);
    })?;
    let Said { exit, stdout, stderr } = said;
    if let Some(why) = not_started(exit, &stdout, &stderr) {
        return Err(CallError::new(Kind::Unavailable, why));
    }
    let output = stdout.len() as u64 + stderr.len() as u64;
    let usage = Usage { wall: began.elapsed(), output, ..Usage::default() };
    Ok(Finished { stdout, stderr, ended: Ended { exit, usage } })
}

/// Asks the engine what the image is like, and refuses what must not be run by it.
pub(crate) fn check_image(engine: &Engine, until: Instant, leash: &Leash) -> Result<(), CallError> {
    let unavailable = |why: String| CallError::new(Kind::Unavailable, why);
    let question = ["image", "inspect", "--format={{json .Config}}", &engine.image];
    let question = question.map(str::to_owned);
    let talk = Talk { until, output: LONGEST_DESCRIPTION, leash };
    let said = talk.with(client(engine, &question), b"", |child| {
        let _ = child.kill();
        let _ = child.wait();
    })?;
    match said.exit {
        Exit::Code(0) => {}
        Exit::Code(_) => {
            let text = String::from_utf8_lossy(&said.stderr);
            let (image, name) = (&engine.image, engine.name());
            let mut ways = engine.instead.clone();
            ways.push(format!("{name} does not have it: {}", text.trim()));
            let why = format!("the image `{image}` cannot be run: {}", ways.join("; "));
            let error = unavailable(why)
                .with("image", image.as_str())
                .with("engine", name)
                .with("ways", ways);
            return Err(match &engine.images {
                Some(images) => error.with("images", images.as_str()),
                None => error,
            });
        }
        exit => return Err(output::ended_by(exit, &said.stderr, Dialect::InstallManifest)),
    }
    check_settings(&said.stdout, engine.needs).map_err(|why| unavailable(why.to_owned()))
}

/// Refuses settings of an image that do not have what is needed, and those that cannot be read: what is not
/// known is not taken for harmless.
fn check_settings(text: &[u8], needs: Needs) -> Result<(), &'static str> {
    let settings: Option<Map<String, Value>> = serde_json::from_slice(text)
        .map_err(|_| "the engine did not say what the image is like")?;
    let setting = |key: &str| settings.as_ref().and_then(|settings| settings.get(key));
    // Engines take one that begins with nothing for none.
    let program = setting("Entrypoint").and_then(|entrypoint| entrypoint.get(0)?.as_str());
    if needs.entrypoint && program.is_none_or(str::is_empty) {
        return Err(
            "the image has no entrypoint and the manifest no command, so an engine would take what the action adds for the program",
        );
    }
    let has_volumes = match setting("Volumes") {
        None | Some(Value::Null) => false,
        Some(Value::Object(volumes)) => !volumes.is_empty(),
        Some(_) => true,
    };
    if needs.no_volumes && has_volumes {
        return Err(
            "the image has volumes, for which this engine would take room on the disk without a limit",
        );
    }
    Ok(())
}

/// Why there was no tool, where the engine itself says so. The image is there, so this is rare.
fn not_started(exit: Exit, stdout: &[u8], stderr: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(stderr);
    let said = said.trim();
    let Exit::Code(code) = exit else { return None };
    if !stdout.is_empty() {
        return None;
    }
    let by_engine = said.starts_with("Error: ") || said.starts_with("docker: ");
    if code == NOT_STARTED && by_engine {
        return Some(format!("the engine did not start the container: {said}"));
    }
    let is_about_program = by_engine && said.contains("OCI ");
    (NO_PROGRAM.contains(&code) && is_about_program)
        .then(|| format!("the engine did not start the program of the container: {said}"))
}

/// The terms on which the engine's program runs.
struct Talk<'t> {
    until: Instant,
    /// Bytes that it may write.
    output: u64,
    leash: &'t Leash,
}

/// What it said, and how it ended.
struct Said {
    exit: Exit,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Talk<'_> {
    /// Runs a command to its end; where that takes too long it is ended.
    fn with(
        &self,
        mut command: Command,
        input: &[u8],
        end: impl FnOnce(&mut Child),
    ) -> Result<Said, CallError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            let program = command.get_program().to_string_lossy();
            let message = format!("failed to start `{program}`: {error}");
            CallError::new(Kind::Unavailable, message)
        })?;
        let written = Arc::new(AtomicU64::new(0));
        let is_too_much = || written.load(Ordering::Relaxed) > self.output;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let stdout = stdout.map(|pipe| collect(pipe, &written, self.output));
        let stderr = stderr.map(|pipe| collect(pipe, &written, self.output));
        if let Some(mut pipe) = child.stdin.take() {
            let input = input.to_vec();
            // A tool that does not read its input ends the writing with its end.
            std::thread::spawn(move || drop(pipe.write_all(&input)));
        }
        let cut = wait(&mut child, self.until, || {
            if self.leash.is_called_off() {
                return Some(Exit::Cancelled);
            }
            is_too_much().then_some(Exit::Output)
        });
        let exit = cut.unwrap_or_else(|exit| {
            end(&mut child);
            exit
        });
        let join = |reader: Option<JoinHandle<Vec<u8>>>| {
            reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
        };
        let (stdout, stderr) = (join(stdout), join(stderr));
        // What it wrote last may have been read after its end.
        let exit = match exit {
            Exit::Code(_) if is_too_much() => Exit::Output,
            exit => exit,
        };
        Ok(Said { exit, stdout, stderr })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entrypoint_that_begins_with_nothing_is_none() {
        let needs = Needs { entrypoint: true, no_volumes: false };
        for none in [
            "null",
            "{}",
            r#"{"Entrypoint":null}"#,
            r#"{"Entrypoint":[]}"#,
            r#"{"Entrypoint":[""]}"#,
            r#"{"Entrypoint":["","sh"]}"#,
            r#"{"Entrypoint":[null]}"#,
        ] {
            let why = check_settings(none.as_bytes(), needs).unwrap_err();
            assert!(why.contains("no entrypoint"), "{none}: {why}");
        }
        assert!(check_settings(br#"{"Entrypoint":["sh"]}"#, needs).is_ok());
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let needs = Needs { entrypoint: false, no_volumes: true };
        for bad in ["", "no json", "[]", "{\"Volumes\":", r#"{"Volumes":["/data"]}"#] {
            assert!(check_settings(bad.as_bytes(), needs).is_err(), "{bad}");
        }
        for fine in ["null\n", "{}", r#"{"Volumes":null}"#, r#"{"Volumes":{}}"#] {
            assert!(check_settings(fine.as_bytes(), needs).is_ok(), "{fine}");
        }
        assert!(check_settings(br#"{"Volumes":{"/data":{}}}"#, needs).is_err());
    }
}
