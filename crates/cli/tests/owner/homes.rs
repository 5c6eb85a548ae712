//! A home that cannot be made or written: what is told of it, and what goes on all the same.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::common::{Ran, repository, run_in};
use crate::desk::{Desk, PACKAGE, closed};

fn hint(home: &str) -> String {
    format!("haft keeps its files in `{home}`; --home or HAFT_HOME names another folder")
}

#[test]
fn a_home_that_cannot_be_made_is_named_with_where_it_is_set() {
    let home = "/proc/haft";
    let run = |arguments: &[&str]| {
        let all = [&["--home", home, "--non-interactive"], arguments].concat();
        run_in(&repository(), &all, Some(b"value"))
    };
    let call = ["call", "--from", "examples/capability/greet", r#"{"name":"Ann"}"#];
    for arguments in [
        &call[..],
        &["grant", PACKAGE, "--env", "X"],
        &["approve", "always", PACKAGE, "demo.tool"],
        &["secret", "set", PACKAGE, "X"],
        &["secret", "passphrase", "--passphrase-stdin"],
        &["key", "new", "me", "--no-passphrase"],
        &["registry", "add", "here", "http://127.0.0.1:1"],
        &["registry", "serve"],
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, 6, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("error: failed to make `/proc/haft"), "{}", ran.stderr);
        let hint = format!("hint: {}\n", hint(home));
        assert!(ran.stderr.ends_with(&hint), "{arguments:?}: {}", ran.stderr);
    }
    let told = run(&[&["--json"], &call[..]].concat()).json();
    assert_eq!(told["error"]["hints"], json!([hint(home)]), "{told}");
}

/// Somebody who may not write everything, with a home and a program of theirs.
struct Ordinary {
    desk: Desk,
    program: PathBuf,
    /// Root may write everything, so another is taken then.
    user: Option<u32>,
}

impl Ordinary {
    fn new() -> Self {
        let desk = Desk::new();
        let program = PathBuf::from(desk.write("haft", ""));
        // By another process: one that is started meanwhile would hold the file open for writing, and nobody could run it.
        let mut copy = Command::new("cp");
        copy.arg("--remove-destination").arg(assert_cmd::cargo::cargo_bin("haft")).arg(&program);
        assert!(copy.status().unwrap().success());
        set_mode(&program, 0o755);
        set_mode(program.parent().unwrap(), 0o755);
        std::fs::create_dir(desk.home()).unwrap();
        let user = rustix::process::geteuid().is_root().then_some(65534);
        chown(desk.home(), user, user).unwrap();
        Self { desk, program, user }
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new(&self.program);
        command.arg("--home").arg(self.desk.home()).arg("--non-interactive").args(arguments);
        command.current_dir("/").env("HOME", "/nonexistent");
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let output = command.output().unwrap();
        Ran {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_home_that_can_only_be_read_is_enough_to_look_and_says_what_cannot_be_kept() {
    let ordinary = Ordinary::new();
    let (desk, home) = (&ordinary.desk, ordinary.desk.home());
    let state = home.join("state.db");
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    let bundle = std::fs::read(repository().join("examples/jumith/dice.bundle.json")).unwrap();
    let bundle = desk.write("dice.bundle.json", &String::from_utf8(bundle).unwrap());
    let call = ["call", "--from", &manifest, "demo.tool"];
    let explain = [&call[..], &["--explain"]].concat();
    for arguments in [&["grant", PACKAGE, "--env", "X"][..], &call] {
        assert_eq!(ordinary.run(arguments).code, 0);
    }
    for file in ["state.db", "state.db-wal", "state.db-shm"] {
        set_mode(&home.join(file), 0o444);
    }
    set_mode(&home, 0o555);
    let read_only = format!("`{}` can only be read", state.display());
    let hint = format!("hint: {}\n", hint(home.to_str().unwrap()));
    // The log can be written, so the call can be made; that it was not counted is told.
    let made = ordinary.run(&call);
    assert_eq!((made.code, &*made.stdout), (0, "{}\n"), "{}", made.stderr);
    let warning = "warning: the call could not be written down: failed to count a call in the state of the home: ";
    assert_eq!(made.stderr, format!("{warning}{read_only}\n"));
    let refused = ordinary.run(&["grant", PACKAGE, "--env", "Y"]);
    assert_eq!(refused.code, 6, "{}", refused.stderr);
    assert!(refused.stderr.contains(&read_only) && refused.stderr.ends_with(&hint));
    assert!(ordinary.run(&["grant", PACKAGE]).stdout.starts_with("env X\n"));
    for explained in [&explain[..], &["call", "--from", &bundle, "--explain"]] {
        let told = ordinary.run(explained);
        assert_eq!(told.code, 0, "{explained:?}: {}", told.stderr);
    }
    // Nobody has it open any more, so there is no journal, and no room for one.
    set_mode(&home, 0o755);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        set_mode(&state, 0o644);
        ledger::State::open(&state).await.unwrap().close().await.unwrap();
    });
    assert!(!home.join("state.db-wal").exists());
    set_mode(&state, 0o444);
    set_mode(&home, 0o555);
    let told = ordinary.run(&explain);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let refused = ordinary.run(&call);
    assert_eq!(refused.code, 6, "{}", refused.stderr);
    assert!(refused.stderr.contains(&read_only) && refused.stderr.ends_with(&hint));
    set_mode(&home, 0o755);
}

#[test]
fn a_state_that_is_damaged_is_told_with_what_to_do_and_what_that_costs() {
    let desk = Desk::new();
    desk.done(&["grant", PACKAGE, "--env", "X"]);
    let path = desk.home().join("state.db");
    for kind in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(desk.home().join(format!("state.db{kind}")));
    }
    std::fs::write(&path, "no database\n".repeat(100)).unwrap();
    let hint = format!(
        "hint: move `{}` away, with its `-wal` and `-shm`, and an empty one is made: grants, ",
        path.display()
    );
    let tool = desk.capability("true", &closed(), &json!([]));
    for arguments in [&["grant", PACKAGE][..], &["approve", "rules"], &["call", "--from", &tool]] {
        let ran = desk.run(arguments, None);
        assert_eq!(ran.code, 6, "{arguments:?}: {}", ran.stderr);
        let hints: Vec<_> = ran.stderr.lines().filter(|line| line.starts_with("hint: ")).collect();
        assert!(matches!(&hints[..], [one] if one.starts_with(&hint)), "{}", ran.stderr);
    }
    std::fs::rename(&path, desk.home().join("old.db")).unwrap();
    assert_eq!(desk.done(&["grant", PACKAGE]).stdout, "");
}

#[test]
fn nothing_is_said_in_quiet_beside_results_and_errors() {
    let desk = Desk::new();
    let grant = ["grant", PACKAGE, "--env", "NOT_SET_ANYWHERE"];
    let loud = desk.done(&grant);
    assert!(loud.stderr.contains("warning: "), "{}", loud.stderr);
    assert_eq!(desk.done(&[&["--quiet"], &grant[..]].concat()).stderr, "");
    let unknown = desk.run(&["--quiet", "approve", "forget", "1"], None);
    assert!(unknown.code == 3 && unknown.stderr.starts_with("error: "), "{}", unknown.stderr);
}
