//! Attacks on the verbs around packages, as a reviewer or a stranger would try them.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use common::{Desk, names, repository, statement_over};

/// Makes an archive of some files with Python.
fn zip(path: &Path, files: &[(&str, &str)]) {
    let script = "import json, sys, zipfile\n\
        archive = zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED)\n\
        [archive.writestr(name, content) for name, content in json.load(open(sys.argv[1] + '.json'))]\n\
        archive.close()\n";
    fs::write(format!("{}.json", path.display()), serde_json::to_string(files).unwrap()).unwrap();
    let mut command = Command::new("python3");
    assert!(command.args(["-c", script]).arg(path).status().unwrap().success());
}

#[test]
fn a_repository_makes_nothing_run() {
    let desk = Desk::with_alice();
    desk.git(&["init", "-q"]);
    desk.git(&["add", "."]);
    desk.git(&["commit", "-qm", "one"]);
    let marker = desk.path("ran");
    let program = desk.path("program");
    fs::write(&program, format!("#!/bin/sh\ntouch {}\ncat\n", marker.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    for (key, value) in [
        ("filter.x.clean", program),
        ("filter.x.process", program),
        ("diff.external", program),
        ("core.fsmonitor", program),
        ("core.pager", program),
        ("log.showSignature", "true"),
        ("gpg.program", program),
        ("core.sshCommand", program),
    ] {
        desk.git(&["config", key, value]);
    }
    fs::create_dir_all(desk.path("echo/.git/info")).unwrap();
    fs::write(desk.path("echo/.git/info/attributes"), "* filter=x diff=x\n").unwrap();
    // Git believes that the file may have changed, and would look at it through the filter.
    let readme = fs::File::options().append(true).open(desk.path("echo/README.md")).unwrap();
    readme.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    desk.done(&["pack", "echo", "--provenance"]);
    assert!(!marker.exists(), "a program of the repository ran");
}

#[test]
fn provenance_is_not_fooled() {
    let desk = Desk::with_alice();
    fs::write(desk.path("echo/.gitignore"), "dist/\n").unwrap();
    desk.git(&["init", "-q"]);
    desk.git(&["add", "."]);
    desk.git(&["commit", "-qm", "one"]);
    // What the commit does not have is listed, also when git is told to ignore it.
    fs::create_dir(desk.path("echo/dist")).unwrap();
    fs::write(desk.path("echo/dist/built.js"), "x").unwrap();
    desk.done(&["pack", "echo", "--provenance"]);
    let inspected = desk.done(&["inspect", "demo.echo-0.1.0.mcpkg", "--json"]).json();
    assert_eq!(inspected["provenance"]["notInCommit"], serde_json::json!(["dist/built.js"]));
    // A change is seen, whatever the index says of it.
    desk.git(&["update-index", "--assume-unchanged", "README.md"]);
    fs::write(desk.path("echo/README.md"), "other\n").unwrap();
    desk.refused(&["pack", "echo", "--provenance"], 2, "`README.md` differs from the commit");
    fs::write(desk.path("echo/.git/index"), "broken").unwrap();
    desk.refused(&["pack", "echo", "--provenance"], 2, "`README.md` differs from the commit");
    desk.refused(&["pack", "demo.echo-0.1.0.mcpkg", "--provenance"], 2, "needs the folder");
}

#[test]
fn a_file_beside_the_package_does_not_stand_for_a_key_of_the_home() {
    let desk = Desk::with_alice();
    let other = Desk::with_alice();
    desk.done(&["pack", "echo"]);
    let name = "demo.echo-0.1.0.mcpkg";
    fs::copy(desk.path(name), other.path(name)).unwrap();
    other.done(&["sign", name, "--key", "alice"]);
    fs::copy(other.path(name), desk.path(name)).unwrap();
    let theirs = other.done(&["key", "show", "alice"]).stdout;
    for file in ["alice", "alice.pub"] {
        fs::write(desk.path(file), &theirs).unwrap();
    }
    desk.refused(&["verify", name, "--key", "alice"], 4, "another key");
    desk.refused(&["verify", name, "--key", "alice.pub"], 5, "not the key `alice` of your home");
    desk.done(&["verify", name, "--key", "./alice.pub"]);
    desk.refused(&["verify", name, "--key", "../home/keys/alice"], 3, "failed to read");
    desk.refused(&["sign", name, "--key", "../keys/alice"], 2, "a key's name");
    desk.refused(&["key", "new", "bob.pub", "--no-passphrase"], 2, "does not end in");
}

#[test]
fn the_key_that_is_told_is_the_one_that_vouches_for_all() {
    let desk = Desk::with_alice();
    desk.done(&["pack", "echo"]);
    let name = "demo.echo-0.1.0.mcpkg";
    desk.done(&["key", "new", "mallory", "--no-passphrase"]);
    desk.done(&["sign", name, "--key", "mallory"]);
    // A statement of alice's over one file is put before it.
    desk.done(&["unpack", name, "-o", "out"]);
    let path = desk.path("out/meta/signature.sig");
    let mut file: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let text = fs::read_to_string(desk.path("home/keys/alice.key")).unwrap();
    let alice = package::key::PrivateKey::from_file(&text, None).unwrap();
    let readme = fs::read(desk.path("echo/README.md")).unwrap();
    let statement = statement_over("README.md", &readme, &alice);
    file["statements"].as_array_mut().unwrap().insert(0, statement);
    fs::write(&path, file.to_string()).unwrap();
    fs::remove_file(desk.path(name)).unwrap();
    desk.done(&["pack", "out"]);
    let inspected = desk.done(&["inspect", name, "--json"]).json();
    let mallory = desk.done(&["key", "show", "mallory"]).stdout;
    assert_eq!(inspected["signature"]["state"], "valid");
    assert_eq!(inspected["signature"]["key"].as_str(), mallory.split(' ').next());
    desk.refused(&["verify", name, "--key", "alice"], 4, "another key");
    let page = desk.done(&["inspect", name]).stdout;
    assert!(page.contains("partial"), "{page}");
}

#[test]
fn a_strangers_text_cannot_pass_for_a_line_of_ours() {
    let desk = Desk::with_alice();
    fs::create_dir(desk.path("echo/meta")).unwrap();
    let publisher = "{\"name\": \"Acme\\nsignature   signed, by `alice`\\u009b31m\"}";
    fs::write(desk.path("echo/meta/publisher.json"), publisher).unwrap();
    desk.done(&["pack", "echo"]);
    let page = desk.done(&["inspect", "demo.echo-0.1.0.mcpkg"]).stdout;
    let lines: Vec<_> = page.lines().filter(|line| line.starts_with("signature")).collect();
    assert_eq!(lines, ["signature   unsigned"]);
    let json = desk.done(&["inspect", "demo.echo-0.1.0.mcpkg", "--json"]);
    assert!(!json.stdout.contains('\u{9b}'));
    assert!(json.json()["publisher"]["name"].as_str().unwrap().contains('\u{9b}'));
}

#[test]
fn two_manifests_are_refused_however_the_second_is_spelt() {
    let desk = Desk::with_alice();
    let manifest = fs::read_to_string(desk.path("echo/manifest.json")).unwrap();
    let tool = fs::read_to_string(repository().join("examples/jumith/slugify/tool.json")).unwrap();
    let with_mark = format!("\u{feff}{manifest}");
    let trailing = manifest.replacen("\"demo.echo\",", "\"demo.echo\",,", 1);
    let numbers: String = (0..200_000).map(|number| format!("{number} ")).collect();
    let large = format!("{manifest}{numbers}");
    for (name, content) in [
        ("manifest.json", &manifest),
        ("manifest.json", &with_mark),
        ("manifest.json", &trailing),
        ("manifest.json", &large),
        ("Manifest.json", &manifest),
    ] {
        zip(&desk.path("two.mcpkg"), &[(name, content), ("tool.json", &tool)]);
        desk.refused(&["inspect", "two.mcpkg"], 2, "[several-manifests]");
    }
    // A file that is plainly something else may have the name.
    zip(
        &desk.path("two.mcpkg"),
        &[("manifest.json", "{\"start_url\": \"/\"}"), ("tool.json", &tool)],
    );
    assert_eq!(desk.done(&["inspect", "two.mcpkg", "--json"]).json()["manifest"], "tool.json");
}

#[test]
fn nothing_is_written_that_would_be_refused() {
    let desk = Desk::with_alice();
    // What would be taken for a bomb is stored as it is.
    fs::write(desk.path("echo/zeros"), vec![0; 3 * 1024 * 1024]).unwrap();
    desk.done(&["pack", "echo", "-o", "zeros.mcpkg"]);
    desk.done(&["inspect", "zeros.mcpkg"]);
    fs::remove_file(desk.path("echo/zeros")).unwrap();
    let script = "import gzip, sys; open(sys.argv[1], 'wb').write(gzip.compress(bytes(20 << 20)))";
    let bomb = desk.path("echo/bomb.gz");
    assert!(Command::new("python3").args(["-c", script]).arg(&bomb).status().unwrap().success());
    desk.refused(&["pack", "echo"], 2, "[nested-bomb]");
    assert!(!desk.path("demo.echo-0.1.0.mcpkg").exists());
    fs::remove_file(bomb).unwrap();
    // A repository in an archive is never packed again, nor unpacked.
    let manifest = fs::read_to_string(desk.path("echo/manifest.json")).unwrap();
    zip(&desk.path("repo.mcpkg"), &[("manifest.json", &manifest), (".git/config", "[core]")]);
    for verb in [&["pack", "repo.mcpkg"][..], &["unpack", "repo.mcpkg", "-o", "out"]] {
        desk.refused(verb, 2, "[repository]");
    }
    // A package may be full, and is then left as it was.
    for number in 0..4_088 {
        fs::write(desk.path(&format!("echo/{number}.txt")), "").unwrap();
    }
    desk.done(&["pack", "echo"]);
    desk.done(&["sign", "demo.echo-0.1.0.mcpkg", "--key", "alice"]);
    desk.done(&["verify", "demo.echo-0.1.0.mcpkg"]);
    fs::write(desk.path("echo/one-more"), "").unwrap();
    desk.refused(&["pack", "echo"], 2, "[too-many-entries]");
}

#[test]
fn signing_keeps_the_mode_and_follows_a_link() {
    let desk = Desk::with_alice();
    desk.done(&["pack", "echo"]);
    let package = desk.path("demo.echo-0.1.0.mcpkg");
    fs::set_permissions(&package, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&package, desk.path("link.mcpkg")).unwrap();
    desk.done(&["sign", "link.mcpkg", "--key", "alice"]);
    assert!(desk.path("link.mcpkg").symlink_metadata().unwrap().is_symlink());
    desk.done(&["verify", "demo.echo-0.1.0.mcpkg"]);
    assert_eq!(fs::metadata(&package).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn one_bad_key_file_does_not_spoil_the_others() {
    let desk = Desk::with_alice();
    desk.done(&["pack", "echo"]);
    desk.done(&["sign", "demo.echo-0.1.0.mcpkg", "--key", "alice"]);
    fs::write(desk.path("home/keys/bob.pub"), "junk").unwrap();
    let ran = desk.done(&["verify", "demo.echo-0.1.0.mcpkg"]);
    assert!(ran.stderr.contains("`bob`") || ran.stderr.contains("bob.pub"), "{}", ran.stderr);
    desk.done(&["key", "remove", "bob"]);
    assert_eq!(desk.done(&["verify", "demo.echo-0.1.0.mcpkg"]).stderr, "");
}

#[test]
fn a_signature_of_many_lines_does_not_keep_us_busy() {
    let desk = Desk::with_alice();
    let line = r#"{"path":"NAME","size":0,"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}"#;
    let lines: Vec<_> = (0..60_000).map(|n| line.replace("NAME", &format!("gone/{n}"))).collect();
    let statement = format!(
        r#"{{"format":"haft-signature-1","statements":[{{"covers":"package","files":[{}],"signatures":[{{"key":"x","signature":"y"}}]}}]}}"#,
        lines.join(",")
    );
    fs::create_dir(desk.path("echo/meta")).unwrap();
    fs::write(desk.path("echo/meta/signature.sig"), statement).unwrap();
    let ran = desk.done(&["pack", "echo"]);
    assert!(ran.stderr.contains("left meta/signature.sig out"), "{}", ran.stderr);
}

#[test]
fn a_bundle_says_where_it_comes_from_too() {
    let desk = Desk::with_alice();
    desk.git(&["init", "-q"]);
    desk.git(&["add", "."]);
    desk.git(&["commit", "-qm", "one"]);
    let arguments = ["--bundle", "-o", "echo.bundle.json", "--set", "/entry/main=echo.mjs"];
    desk.done(&[&["pack", "echo", "--provenance"][..], &arguments].concat());
    let bundle = fs::read_to_string(desk.path("echo.bundle.json")).unwrap();
    assert!(bundle.contains("meta/provenance.json"));
    desk.done(&[&["pack", "echo", "--provenance"][..], &arguments].concat());
}

#[test]
fn a_package_does_not_hold_itself() {
    let desk = Desk::with_alice();
    fs::create_dir(desk.path("echo/dist")).unwrap();
    let pack = || {
        desk.done(&["pack", "echo", "-o", "echo/dist/x.zip"]);
        fs::read(desk.path("echo/dist/x.zip")).unwrap()
    };
    assert_eq!(pack(), pack());
    desk.refused(&["pack", "echo", "-o", "echo"], 5, "is no file");
    let pipe = desk.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    desk.refused(&["pack", "echo", "-o", "pipe"], 5, "is no file");
    desk.refused(&["inspect", "pipe"], 2, "is no file");
    desk.refused(&["unpack", "echo/dist/x.zip", "-o", "."], 5, "the current folder");
}

#[test]
fn a_diff_of_packages_tells_what_happened_to_their_files() {
    let desk = Desk::with_alice();
    desk.done(&["pack", "echo", "-o", "old.mcpkg"]);
    fs::write(desk.path("echo/echo.py"), "other").unwrap();
    fs::write(desk.path("echo/new.py"), "new").unwrap();
    desk.done(&["pack", "echo", "-o", "new.mcpkg"]);
    let ran = desk.haft(&["diff", "old.mcpkg", "new.mcpkg", "--upgrade-safe"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stdout.contains("needs-review  file echo.py: was changed"), "{}", ran.stdout);
    assert!(ran.stdout.contains("needs-review  file new.py: is new"), "{}", ran.stdout);
    // A broken signature ends the comparison.
    desk.done(&["sign", "new.mcpkg", "--key", "alice"]);
    let script = "import sys, zipfile\n\
        archive = zipfile.ZipFile(sys.argv[1], 'a')\n\
        archive.writestr('evil.py', '')\n\
        archive.close()\n";
    let mut python = Command::new("python3");
    assert!(python.args(["-c", script]).arg(desk.path("new.mcpkg")).status().unwrap().success());
    for verb in
        [&["diff", "old.mcpkg", "new.mcpkg"][..], &["export", "new.mcpkg", "--format", "mcp"]]
    {
        desk.refused(verb, 2, "`evil.py` was added");
    }
}

#[test]
fn links_are_told_all_at_once_and_those_of_npm_stay_out() {
    let desk = Desk::with_alice();
    fs::create_dir_all(desk.path("echo/server/node_modules/.bin")).unwrap();
    for link in ["server/node_modules/.bin/x", "b", "a"] {
        std::os::unix::fs::symlink("echo.py", desk.path("echo").join(link)).unwrap();
    }
    desk.refused(&["pack", "echo"], 2, "`a`, `b` are links");
}

#[test]
fn known_secrets_are_allowed_by_folder_and_by_pattern() {
    let desk = Desk::with_alice();
    let token = format!("ghp{}aB3dE5gH7jK9mN1pQ2sT4vW6xY8zC0fLaaBB", '_');
    fs::create_dir_all(desk.path("echo/lib/tests")).unwrap();
    fs::write(desk.path("echo/lib/tests/a.txt"), &token).unwrap();
    desk.refused(&["pack", "echo"], 2, "`lib/tests/a.txt`:1");
    for pattern in ["lib/tests/a.txt", "./lib/", "lib/**", "lib/tests/*.txt"] {
        desk.done(&["pack", "echo", "--allow-file", pattern]);
    }
    for pattern in ["a.txt", "lib/*.md"] {
        desk.refused(&["pack", "echo", "--allow-file", pattern], 3, "not among the files");
    }
}

#[test]
fn others_must_not_be_able_to_change_whom_we_trust() {
    let desk = Desk::with_alice();
    desk.done(&["pack", "echo"]);
    desk.done(&["sign", "demo.echo-0.1.0.mcpkg", "--key", "alice"]);
    let keys = desk.path("home/keys");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o777)).unwrap();
    desk.refused(&["verify", "demo.echo-0.1.0.mcpkg"], 4, "others can change");
}

#[test]
fn being_told_to_stop_leaves_nothing_behind() {
    let desk = Desk::with_alice();
    // Large enough that there is time to stop it.
    let noise: Vec<u8> =
        (0..40_000_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[2]).collect();
    fs::write(desk.path("echo/noise.bin"), noise).unwrap();
    desk.done(&["pack", "echo", "-o", "whole.mcpkg"]);
    let verbs: [&[&str]; 2] =
        [&["pack", "echo", "-o", "x.mcpkg"], &["unpack", "whole.mcpkg", "-o", "x"]];
    let mut stopped = 0;
    for verb in verbs {
        let before: Vec<_> = names(desk.0.path());
        for signal in ["-INT", "-TERM", "-HUP"] {
            let mut child = Command::new(assert_cmd::cargo::cargo_bin("haft"))
                .args(verb)
                .current_dir(desk.0.path())
                .env("HAFT_HOME", desk.path("home"))
                .stderr(std::process::Stdio::null())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            // As soon as something of its own is there, it is told to stop.
            while child.try_wait().unwrap().is_none() {
                if names(desk.0.path()).len() > before.len() {
                    let id = child.id().to_string();
                    let _ = Command::new("kill").args([signal, &id]).status();
                    break;
                }
            }
            let status = child.wait().unwrap();
            stopped += u32::from(status.code() == Some(130));
            // It may have been done just before; then it is whole.
            if desk.path("x.mcpkg").exists() {
                desk.done(&["inspect", "x.mcpkg"]);
                fs::remove_file(desk.path("x.mcpkg")).unwrap();
            }
            if desk.path("x").exists() {
                assert_eq!(fs::metadata(desk.path("x/noise.bin")).unwrap().len(), 40_000_000);
                fs::remove_dir_all(desk.path("x")).unwrap();
            }
            assert_eq!(names(desk.0.path()), before, "{verb:?} {signal}");
        }
    }
    assert!(stopped > 0, "at least one run was stopped while it worked");
}

#[test]
fn being_stopped_at_the_passphrase_leaves_the_terminal_as_it_was() {
    let desk = Desk::with_alice();
    let script = "import os, pty, select, signal, sys, termios, time\n\
        signal.alarm(90)\n\
        child, terminal = pty.fork()\n\
        if child == 0: os.execv(sys.argv[1], sys.argv[1:])\n\
        echoes = lambda: bool(termios.tcgetattr(terminal)[3] & termios.ECHO)\n\
        end = time.monotonic() + 60\n\
        while echoes() and time.monotonic() < end:\n\
        \x20   if select.select([terminal], [], [], 0.05)[0]: os.read(terminal, 1024)\n\
        os.write(terminal, b'\\x03')\n\
        status = os.waitpid(child, 0)[1]\n\
        print(os.waitstatus_to_exitcode(status), echoes())\n";
    let ran = Command::new("python3")
        .args(["-c", script])
        .arg(assert_cmd::cargo::cargo_bin("haft"))
        .args(["--home", desk.path("home").to_str().unwrap(), "key", "new", "bob"])
        .output()
        .unwrap();
    // The question itself may be interrupted first, and then fails; the terminal echoes either way.
    let ended = String::from_utf8(ran.stdout).unwrap();
    assert!(["130 True\n", "2 True\n"].contains(&ended.as_str()), "{ended}");
}
