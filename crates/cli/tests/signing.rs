//! `haft key`, `sign` and `verify`, as typed.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{Desk, statement_over};

/// Rewrites a package with Python: the files a function makes of those that were there.
fn rewrite(package: &Path, change: &str) {
    let script = format!(
        "import sys, zipfile\n\
         path = sys.argv[1]\n\
         old = zipfile.ZipFile(path)\n\
         files = {{name: old.read(name) for name in old.namelist()}}\n\
         {change}\n\
         new = zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED)\n\
         [new.writestr(name, content) for name, content in files.items()]\n\
         new.close()\n"
    );
    let status = Command::new("python3").args(["-c", &script]).arg(package).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_signature_holds_until_anything_is_changed() {
    let desk = Desk::new();
    desk.echo();
    desk.done(&["pack", "echo"]);
    let name = "demo.echo-0.1.0.mcpkg";
    let ran = desk.haft(&["verify", name]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    desk.done(&["key", "new", "alice", "--no-passphrase"]);
    let public = desk.done(&["key", "show", "alice"]).stdout;
    fs::write(desk.path("alice.pub"), &public).unwrap();
    desk.done(&["sign", name, "--key", "alice"]);
    desk.done(&["verify", name]);
    desk.done(&["verify", name, "--key", "alice.pub"]);
    desk.done(&["verify", name, "--key", "alice"]);
    let inspected = desk.done(&["inspect", name, "--json"]).json();
    assert_eq!(inspected["signature"]["state"], "valid");
    assert_eq!(Some(inspected["signature"]["key"].as_str().unwrap()), public.split(' ').next());
    let signed = fs::read(desk.path(name)).unwrap();
    for (change, fault) in [
        ("files['echo.py'] += b'#'", "`echo.py` was changed"),
        ("files['evil.py'] = b''", "`evil.py` was added"),
        ("del files['README.md']", "`README.md` was removed"),
        ("files['b.mjs'] = files.pop('echo.mjs')", "`echo.mjs` was renamed to `b.mjs`"),
        ("files['manifest.json'] += b' '", "`manifest.json` was changed"),
    ] {
        fs::write(desk.path(name), &signed).unwrap();
        rewrite(&desk.path(name), change);
        let ran = desk.haft(&["verify", name]);
        assert_eq!(ran.code, 2, "{change}: {}", ran.stderr);
        assert!(ran.stderr.contains(fault), "{change}: {}", ran.stderr);
        let inspected = desk.done(&["inspect", name, "--json"]).json();
        assert_eq!(inspected["signature"]["state"], "invalid");
        let ran = desk.haft(&["unpack", name, "-o", "out"]);
        assert_eq!(ran.code, 2);
        assert!(!desk.path("out").exists());
        let ran = desk.haft(&["sign", name, "--key", "alice"]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
    }
    // Whoever has looked can start anew.
    desk.done(&["sign", name, "--key", "alice", "--replace"]);
    desk.done(&["verify", name]);
}

#[test]
fn only_trusted_keys_count() {
    let desk = Desk::new();
    let other = Desk::new();
    desk.echo();
    desk.done(&["pack", "echo"]);
    let name = "demo.echo-0.1.0.mcpkg";
    desk.done(&["key", "new", "alice", "--no-passphrase"]);
    desk.done(&["sign", name, "--key", "alice"]);
    fs::copy(desk.path(name), other.path(name)).unwrap();
    let ran = other.haft(&["verify", name]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("a key you do not trust"), "{}", ran.stderr);
    assert!(!other.path("home").exists(), "looking makes no home");
    let public = desk.done(&["key", "show", "alice"]).stdout;
    fs::write(other.path("alice.pub"), public).unwrap();
    other.done(&["verify", name, "--key", "alice.pub"]);
    other.done(&["key", "add", "alice.pub", "--name", "alice-of-acme"]);
    let ran = other.done(&["verify", name]);
    assert!(ran.stdout.contains("alice-of-acme"), "{}", ran.stdout);
    // Another key may sign too; naming one trusts no other.
    other.done(&["key", "new", "bob", "--no-passphrase"]);
    other.done(&["sign", name, "--key", "bob"]);
    other.done(&["verify", name, "--key", "bob"]);
    other.done(&["verify", name, "--key", "alice-of-acme"]);
    other.done(&["key", "new", "carol", "--no-passphrase"]);
    assert_eq!(other.haft(&["verify", name, "--key", "carol"]).code, 4);
    other.done(&["key", "remove", "alice-of-acme"]);
    assert_eq!(other.haft(&["key", "remove", "bob"]).code, 4);
    other.done(&["key", "remove", "bob", "--yes"]);
    assert_eq!(other.haft(&["verify", name]).code, 4);
    assert_eq!(other.haft(&["key", "remove", "bob"]).code, 3);
}

#[test]
fn a_partial_signature_counts_as_none() {
    let desk = Desk::new();
    desk.echo();
    desk.done(&["pack", "echo"]);
    let name = "demo.echo-0.1.0.mcpkg";
    let key = package::key::PrivateKey::generate().unwrap();
    let content = fs::read(desk.path("echo/manifest.json")).unwrap();
    let statement = serde_json::json!({
        "format": "haft-signature-1",
        "statements": [statement_over("manifest.json", &content, &key)],
    });
    fs::create_dir(desk.path("echo/meta")).unwrap();
    fs::write(desk.path("echo/meta/signature.sig"), statement.to_string()).unwrap();
    desk.done(&["pack", "echo"]);
    fs::write(desk.path("author.pub"), format!("{} author\n", key.public())).unwrap();
    desk.done(&["key", "add", "author.pub"]);
    let ran = desk.haft(&["verify", name]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("covers only a part of the files"), "{}", ran.stderr);
    let inspected = desk.done(&["inspect", name, "--json"]).json();
    assert_eq!(inspected["signature"]["state"], "partial");
}

#[cfg(unix)]
#[test]
fn a_private_key_is_sealed_and_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    desk.echo();
    desk.done(&["pack", "echo"]);
    let name = "demo.echo-0.1.0.mcpkg";
    let ran = desk.haft(&["key", "new", "alice"]);
    assert_eq!(ran.code, 2, "nobody can be asked: {}", ran.stderr);
    assert!(!desk.path("home").exists());
    let ran = desk.haft_with(&["key", "new", "alice", "--passphrase-stdin"], Some("open sesame\n"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let file = desk.path("home/keys/alice.key");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&desk.path("home/keys"))), (0o600, 0o700));
    assert_eq!(desk.haft(&["key", "new", "alice", "--no-passphrase"]).code, 5);
    let sign = |passphrase| {
        desk.haft_with(&["sign", name, "--key", "alice", "--passphrase-stdin"], Some(passphrase))
    };
    let before = fs::read(desk.path(name)).unwrap();
    let ran = sign("wrong\n");
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert_eq!(fs::read(desk.path(name)).unwrap(), before);
    assert_eq!(sign("open sesame\n").code, 0);
    desk.done(&["verify", name]);
    // Others could read it: it is not used.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let ran = sign("open sesame\n");
    assert_eq!(ran.code, 4);
    assert!(ran.stderr.contains("chmod 600"), "{}", ran.stderr);
}

#[test]
fn a_passphrase_is_asked_for_at_the_terminal_and_never_shown() {
    let desk = Desk::new();
    let talk = |arguments: &[&str], answers: &[&str]| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/terminal.py");
        let binary = assert_cmd::cargo::cargo_bin("haft");
        let home = desk.path("home");
        let ran = Command::new("python3")
            .arg(script)
            .args(answers)
            .arg("--")
            .arg(binary)
            .args(["--home", home.to_str().unwrap()])
            .args(arguments)
            .current_dir(desk.0.path())
            .output()
            .unwrap();
        (ran.status.code().unwrap(), String::from_utf8(ran.stdout).unwrap())
    };
    let (code, screen) = talk(&["key", "new", "alice"], &["open sesame", "open sesame"]);
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("Passphrase for `alice`:") && screen.contains("ed25519:"), "{screen}");
    assert!(!screen.contains("sesame"), "{screen}");
    let (code, screen) = talk(&["key", "new", "bob"], &["one", "two"]);
    assert_eq!(code, 2, "{screen}");
    assert!(screen.contains("differ"), "{screen}");
    let (code, screen) = talk(&["key", "new", "bob", "--non-interactive"], &[]);
    assert_eq!(code, 2, "{screen}");
    desk.echo();
    desk.done(&["pack", "echo"]);
    let (code, screen) =
        talk(&["sign", "demo.echo-0.1.0.mcpkg", "--key", "alice"], &["open sesame"]);
    assert_eq!(code, 0, "{screen}");
    desk.done(&["verify", "demo.echo-0.1.0.mcpkg"]);
}
