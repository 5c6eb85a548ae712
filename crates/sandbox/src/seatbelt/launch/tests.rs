use super::*;
use std::os::fd::AsFd;
use std::time::Duration;

use crate::confinement::Stream;

/// A launcher with a stand-in for `sandbox-exec` that drops the profile. It holds nothing; what
/// is tried here is everything around the walls.
fn launcher() -> (tempfile::TempDir, Launcher) {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("sandbox-exec");
    let text = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";
    // Written by another process, so that no other test's fork holds it open for writing.
    let status = Command::new("/bin/sh")
        .args(["-c", "printf %s \"$1\" > \"$2\" && chmod 700 \"$2\"", "sh", text])
        .arg(&script)
        .status();
    assert!(status.unwrap().success());
    let launcher = Launcher::through(&script).unwrap();
    (folder, launcher)
}

fn l1() -> Confinement {
    Confinement { required: Level::L1, ..Default::default() }
}

fn shell(script: &str) -> Vec<OsString> {
    ["/bin/sh", "-c", script].map(Into::into).to_vec()
}

fn spawn(confinement: &Confinement, script: &str) -> (tempfile::TempDir, Child) {
    let (folder, launcher) = launcher();
    let child = launcher.spawn(confinement, &shell(script)).unwrap();
    (folder, child)
}

#[test]
fn walls_are_found_by_trying() {
    let (_folder, working) = launcher();
    assert_eq!(working.walls().level(), Level::L1);
    let broken = Launcher::through(Path::new("/usr/bin/false")).unwrap();
    assert_eq!(broken.walls().level(), Level::L0);
    assert_eq!(broken.walls().missing().count(), 1);
    let refused = broken.spawn(&l1(), &shell("true"));
    assert!(matches!(refused, Err(SpawnError::TooWeak { .. })));
    let absent = Launcher::through(Path::new("/nonexistent/sandbox-exec"));
    assert!(matches!(absent, Err(StartError::Unsupported)));
    let refused = working.spawn(&Confinement::default(), &shell("true"));
    assert!(matches!(refused, Err(SpawnError::TooWeak { required: Level::L2, .. })));
}

#[test]
fn a_program_ends_with_its_code_or_signal() {
    let (_folder, mut child) = spawn(&l1(), "exit 7");
    assert_eq!(child.wait().exit, Exit::Code(7));
    assert_eq!(child.wait().exit, Exit::Code(7));
    let (_folder, mut child) = spawn(&l1(), "kill -USR1 $$");
    assert!(matches!(child.wait().exit, Exit::Signal(_)));
}

#[test]
fn input_goes_in_and_both_outputs_come_out() {
    let confinement = Confinement { stdin: Stream::Pipe, ..l1() };
    let (_folder, child) = spawn(&confinement, "cat; echo oops >&2");
    let input = vec![b'x'; 300_000];
    let finished = child.finish(&input).unwrap();
    assert_eq!(finished.stdout, input);
    assert_eq!(finished.stderr, b"oops\n");
    assert_eq!(finished.ended.exit, Exit::Code(0));
    assert_eq!(finished.ended.usage.output, 300_005);
}

#[test]
fn past_the_deadline_the_program_is_ended() {
    let mut confinement = l1();
    confinement.limits.deadline = Some(Duration::from_millis(100));
    let (_folder, child) = spawn(&confinement, "echo begun; sleep 600");
    let finished = child.finish(&[]).unwrap();
    assert_eq!(finished.ended.exit, Exit::Deadline);
    assert!(finished.ended.usage.wall < Duration::from_mins(1));
}

#[test]
fn past_the_limit_of_output_the_program_is_ended() {
    let mut confinement = l1();
    confinement.limits.output = Some(1000);
    let (_folder, child) = spawn(&confinement, "while :; do echo many words; done");
    let finished = child.finish(&[]).unwrap();
    assert_eq!(finished.ended.exit, Exit::Output);
    assert!(finished.stdout.len() <= 1000);
}

#[test]
fn past_its_processor_time_the_program_is_ended() {
    let mut confinement = l1();
    confinement.limits.cpu_time = Some(Duration::from_millis(900));
    let (_folder, child) = spawn(&confinement, "while :; do :; done");
    assert_eq!(child.finish(&[]).unwrap().ended.exit, Exit::Processor);
}

#[test]
fn a_kill_reaches_the_whole_group() {
    let (_folder, mut child) = spawn(&l1(), "sleep 600 & sleep 600 & echo begun; wait");
    let mut begun = [0; 6];
    let mut stdout = child.take_stdout().unwrap();
    io::Read::read_exact(&mut stdout, &mut begun).unwrap();
    assert!(child.try_wait().is_none());
    child.killer().kill();
    assert_eq!(child.wait().exit, Exit::Cancelled);
    // The pipe is at its end only when all who could write to it are gone.
    assert_eq!(io::Read::read(&mut stdout, &mut begun).unwrap(), 0);
}

#[test]
fn what_a_program_leaves_in_the_background_ends_with_it() {
    let began = Instant::now();
    let (_folder, mut child) = spawn(&l1(), "sleep 60 & echo done");
    let mut stdout = child.take_stdout().unwrap();
    assert_eq!(child.wait().exit, Exit::Code(0));
    // The pipe is at its end only when the background is gone too.
    let mut text = String::new();
    io::Read::read_to_string(&mut stdout, &mut text).unwrap();
    assert_eq!(text, "done\n");
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_program_can_be_asked_to_end() {
    let script = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done";
    let (_folder, mut child) = spawn(&l1(), script);
    let mut stdout = child.take_stdout().unwrap();
    io::Read::read_exact(&mut stdout, &mut [0; 6]).unwrap();
    child.terminate();
    assert_eq!(child.wait().exit, Exit::Code(3));
}

#[test]
fn the_scratch_folder_is_private_empty_and_gone_afterwards() {
    let script = "pwd -P; echo $HOME; echo $TMPDIR; stat -c %a . 2>/dev/null || stat -f %Lp .; \
                  ls -A | wc -l; mkdir -p a/b; echo x > a/b/c";
    let (_folder, child) = spawn(&l1(), script);
    let finished = child.finish(&[]).unwrap();
    let text = String::from_utf8(finished.stdout).unwrap();
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    assert_eq!(lines[0], lines[1]);
    assert_eq!(lines[0], lines[2]);
    assert_eq!(lines[3..], ["700", "0"]);
    assert!(lines[0].contains("haft-scratch-") && !Path::new(lines[0]).exists());
}

#[test]
fn a_dropped_program_is_ended_and_its_scratch_folder_removed() {
    let (_folder, mut child) = spawn(&l1(), "pwd -P; exec sleep 600");
    let mut stdout = child.take_stdout().unwrap();
    let mut text = Vec::new();
    while text.last() != Some(&b'\n') {
        let mut byte = [0];
        io::Read::read_exact(&mut stdout, &mut byte).unwrap();
        text.extend(byte);
    }
    drop(child);
    assert!(!Path::new(String::from_utf8(text).unwrap().trim()).exists());
    assert_eq!(io::Read::read(&mut stdout, &mut [0]).unwrap(), 0);
}

#[test]
fn its_descriptor_is_at_its_end_when_the_program_is() {
    let (_folder, mut child) = spawn(&l1(), "exit 0");
    let mut end = std::fs::File::from(child.as_fd().try_clone_to_owned().unwrap());
    assert_eq!(io::Read::read(&mut end, &mut [0]).unwrap(), 0);
    assert_eq!(child.try_wait().unwrap().exit, Exit::Code(0));
}

#[test]
fn the_environment_is_what_was_said_and_no_more() {
    let mut confinement = l1();
    confinement.environment =
        vec![("PATH".into(), "/usr/bin:/bin".into()), ("A".into(), "1".into())];
    let (_folder, launcher) = launcher();
    let child = launcher.spawn(&confinement, &["/usr/bin/env".into()]).unwrap();
    let text = String::from_utf8(child.finish(&[]).unwrap().stdout).unwrap();
    let names = |line: &str| line.split('=').next().unwrap().to_owned();
    let mut names: Vec<_> = text.lines().map(names).collect();
    // The shell of the stand-in adds some of its own.
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(&name.as_str()));
    names.sort();
    assert_eq!(names, ["A", "PATH"]);
}

#[test]
fn what_cannot_be_had_here_is_refused() {
    let (_folder, launcher) = launcher();
    let needs = |confinement| {
        let refused = launcher.spawn(&confinement, &shell("true"));
        assert!(matches!(refused, Err(SpawnError::Needs(_))), "{refused:?}");
    };
    needs(Confinement { network: Network::Allow, ..l1() });
    needs(Confinement { root: Some("/usr".into()), ..l1() });
    needs(Confinement { links: vec![("/nowhere/link".into(), "/x".into())], ..l1() });
}

#[test]
fn a_program_or_folder_that_is_not_visible_is_refused() {
    let (folder, launcher) = launcher();
    let folder = folder.path().canonicalize().unwrap();
    let program = folder.join("sandbox-exec");
    let refused = launcher.spawn(&l1(), &[program.clone().into()]);
    assert!(matches!(refused, Err(SpawnError::Program(..))), "{refused:?}");
    let refused = launcher.spawn(&l1(), &["/bin/nonexistent".into()]);
    assert!(matches!(refused, Err(SpawnError::Program(..))), "{refused:?}");
    let outside = Confinement { folder: folder.clone(), ..l1() };
    let refused = launcher.spawn(&outside, &shell("true"));
    assert!(matches!(refused, Err(SpawnError::Folder(..))), "{refused:?}");
    let hidden =
        Confinement { hidden: vec![program.clone()], readable: vec![folder.clone()], ..l1() };
    let refused = launcher.spawn(&hidden, &[program.into()]);
    assert!(matches!(refused, Err(SpawnError::Program(..))), "{refused:?}");
    let inside = Confinement { folder: folder.clone(), readable: vec![folder], ..l1() };
    let mut child = launcher.spawn(&inside, &shell("true")).unwrap();
    assert_eq!(child.wait().exit, Exit::Code(0));
}

#[test]
fn text_that_no_process_can_have_is_refused() {
    let (_folder, launcher) = launcher();
    let refused = launcher.spawn(&l1(), &shell("a\0b"));
    assert!(matches!(refused, Err(SpawnError::BadArgument(_))));
    let environment = vec![("A=B".into(), "x".into())];
    let refused = launcher.spawn(&Confinement { environment, ..l1() }, &shell("true"));
    assert!(matches!(refused, Err(SpawnError::BadVariable(_))));
}
