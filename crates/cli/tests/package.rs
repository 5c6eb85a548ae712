//! `haft pack`, `inspect`, `unpack`, `key`, `sign` and `verify`, as typed.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{Ran, repository, run_in};
use serde_json::Value;

/// The digest of `examples/mcpkg/echo` as a package. It changes only when the example does: the
/// bytes of a package are part of the contract.
const ECHO: &str = "sha256:cb7c712df2027e27e89bdf924f4faa1082b46a70953db4161c5fe28e6ec33f99";

/// A folder to work in, with a home of its own.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn haft(&self, arguments: &[&str]) -> Ran {
        self.haft_with(arguments, None)
    }

    fn haft_with(&self, arguments: &[&str], stdin: Option<&str>) -> Ran {
        let home = self.path("home");
        let all = [&["--home", home.to_str().unwrap()], arguments].concat();
        run_in(self.0.path(), &all, stdin.map(str::as_bytes))
    }

    /// Runs a verb that must succeed.
    fn done(&self, arguments: &[&str]) -> Ran {
        let ran = self.haft(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        ran
    }

    /// A copy of the echo example.
    fn echo(&self) -> std::path::PathBuf {
        let folder = self.path("echo");
        copy(&repository().join("examples/mcpkg/echo"), &folder);
        folder
    }

    fn names(&self) -> Vec<String> {
        names(self.0.path())
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn same_files(a: &Path, b: &Path) -> bool {
    Command::new("diff").arg("-r").args([a, b]).status().unwrap().success()
}

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
fn a_package_has_the_same_bytes_every_time() {
    let desk = Desk::new();
    let echo = repository().join("examples/mcpkg/echo");
    let ran = desk.done(&["pack", echo.to_str().unwrap()]);
    assert_eq!(ran.stdout, "demo.echo-0.1.0.mcpkg\n");
    let first = fs::read(desk.path("demo.echo-0.1.0.mcpkg")).unwrap();
    // Another folder, other times, other modes of reading: the same package.
    let copy = desk.echo();
    for path in ["manifest.json", "tests/echo.test.json"] {
        let file = fs::File::options().append(true).open(copy.join(path)).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }
    desk.done(&["pack", "echo", "-o", "again.mcpkg"]);
    assert_eq!(fs::read(desk.path("again.mcpkg")).unwrap(), first);
    let inspected = desk.done(&["inspect", "again.mcpkg", "--json"]).json();
    assert_eq!(inspected["digest"], ECHO);
}

#[test]
fn inspect_tells_what_a_package_holds() {
    let desk = Desk::new();
    desk.echo();
    desk.done(&["pack", "echo"]);
    let inspected = desk.done(&["inspect", "demo.echo-0.1.0.mcpkg", "--json"]).json();
    assert_eq!(
        (&inspected["id"], &inspected["version"], &inspected["dialect"]),
        (&"demo.echo".into(), &"0.1.0".into(), &"mcpkg".into())
    );
    assert_eq!(inspected["signature"]["state"], "unsigned");
    assert_eq!(inspected["signature"]["key"], Value::Null);
    let files = inspected["files"].as_array().unwrap();
    let paths: Vec<_> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(
        paths,
        [
            "README.md",
            "echo.mjs",
            "echo.py",
            "examples/basic.md",
            "manifest.json",
            "tests/echo.test.json"
        ]
    );
    for file in files {
        let content = fs::read(desk.path("echo").join(file["path"].as_str().unwrap())).unwrap();
        assert_eq!(file["size"], content.len());
        assert_eq!(file["sha256"], package::digest::Digest::of(&content).to_string());
    }
    let page = desk.done(&["inspect", "demo.echo-0.1.0.mcpkg"]).stdout;
    assert!(page.starts_with("demo.echo 0.1.0  mcpkg 0.2\n"), "{page}");
    assert!(page.contains("signature   unsigned\n"), "{page}");
}

#[test]
fn unpack_gives_the_folder_back() {
    let desk = Desk::new();
    desk.echo();
    desk.done(&["pack", "echo"]);
    let ran = desk.done(&["unpack", "demo.echo-0.1.0.mcpkg", "-o", "out/"]);
    assert_eq!(ran.stdout, "out/\n");
    assert!(same_files(&desk.path("echo"), &desk.path("out")));
    // A second time something is there already, and stays as it is.
    fs::write(desk.path("out/mine"), "mine").unwrap();
    let ran = desk.haft(&["unpack", "demo.echo-0.1.0.mcpkg", "-o", "out"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert_eq!(fs::read(desk.path("out/mine")).unwrap(), b"mine");
    desk.done(&["unpack", "demo.echo-0.1.0.mcpkg", "-o", "new/parents/out", "--no-sync"]);
    assert!(same_files(&desk.path("echo"), &desk.path("new/parents/out")));
}

#[test]
fn every_dialect_can_be_packed_and_unpacked() {
    let desk = Desk::new();
    let examples = repository().join("examples");
    for (folder, name, dialect) in [
        ("mcpkg/text-stats", "demo.text.stats-1.0.0.mcpkg", "mcpkg"),
        ("install-manifest/word-count", "word-count-1.2.0.mcpkg", "install-manifest"),
        ("agentcli-text", "agentcli-text-0.0.0+fd12c99df14f.mcpkg", "agentcli"),
        ("capability/greet", "demo.greet-0.2.0-rc.1.mcpkg", "capability"),
        ("jumith/slugify", "tool%3Atext.slugify-1.0.0.mcpkg", "jumith"),
        ("mcpb/line-finder", "line-finder-1.0.0.mcpkg", "mcpb"),
    ] {
        let source = examples.join(folder);
        let ran = desk.done(&["pack", source.to_str().unwrap()]);
        assert_eq!(ran.stdout, format!("{name}\n"));
        let inspected = desk.done(&["inspect", name, "--json"]).json();
        assert_eq!((&inspected["dialect"], &inspected["valid"]), (&dialect.into(), &true.into()));
        desk.done(&["unpack", name, "-o", dialect]);
        assert!(same_files(&source, &desk.path(dialect)), "{folder}");
    }
    // A tools.json has no id of its own; the file's name keeps it.
    let ran = desk.done(&["inspect", "agentcli-text-0.0.0+fd12c99df14f.mcpkg", "--json"]);
    assert_eq!(ran.json()["id"], "agentcli-text");
    let ran = desk.haft(&["pack", examples.join("capability/catalog").to_str().unwrap()]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn programs_stay_programs() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    let source = repository().join("examples/agentcli-text");
    desk.done(&["pack", source.to_str().unwrap(), "-o", "text.mcpkg"]);
    desk.done(&["unpack", "text.mcpkg", "-o", "out"]);
    let mode = |path: &str| fs::metadata(desk.path(path)).unwrap().permissions().mode() & 0o100;
    assert_eq!((mode("out/tools/bin/slug"), mode("out/tools.json")), (0o100, 0));
}

#[test]
fn what_is_not_valid_is_not_packed() {
    let desk = Desk::new();
    let echo = desk.echo();
    let manifest = fs::read_to_string(echo.join("manifest.json")).unwrap();
    fs::write(echo.join("manifest.json"), manifest.replace("\"0.1.0\"", "\"latest\"")).unwrap();
    let ran = desk.haft(&["pack", "echo"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("manifest.json:4:14"), "{}", ran.stderr);
    assert_eq!(desk.names(), ["echo"]);
    // A listed test that an ignore rule keeps out is missing in the package.
    fs::write(echo.join("manifest.json"), manifest).unwrap();
    fs::write(echo.join(".mcpkgignore"), "tests/\n").unwrap();
    let ran = desk.haft(&["pack", "echo"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("error[missing-file]"), "{}", ran.stderr);
    assert_eq!(desk.names(), ["echo"]);
    let ran = desk.haft(&["pack", "nothing"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    fs::create_dir(desk.path("empty")).unwrap();
    let ran = desk.haft(&["pack", "empty"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("there is no manifest"), "{}", ran.stderr);
}

#[test]
fn secrets_are_named_and_nothing_is_packed() {
    let desk = Desk::new();
    let echo = desk.echo();
    fs::write(echo.join(".env"), "KEY=1\n").unwrap();
    // Put together here, so that no scanner stumbles over this file.
    let token = format!("ghp{}aB3dE5gH7jK9mN1pQ2sT4vW6xY8zC0fLaaBB", '_');
    fs::write(echo.join("notes.txt"), format!("hello\ntoken {token}\n")).unwrap();
    fs::create_dir(echo.join(".git")).unwrap();
    fs::write(echo.join(".git/config"), token).unwrap();
    let ran = desk.haft(&["pack", "echo"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("`.env`: variables with secrets"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`notes.txt`:2: a token of GitHub"), "{}", ran.stderr);
    assert!(!ran.stderr.contains(".git/"), "{}", ran.stderr);
    assert_eq!(desk.names(), ["echo"]);
    // One is known to be none; the other stays out.
    fs::write(echo.join(".mcpkgignore"), ".env\n").unwrap();
    desk.done(&["pack", "echo", "--allow-file", "notes.txt"]);
    let inspected = desk.done(&["inspect", "demo.echo-0.1.0.mcpkg", "--json"]).stdout;
    assert!(inspected.contains("notes.txt") && !inspected.contains(".env"));
    let ran = desk.haft(&["pack", "echo", "--allow-file", "note.txt"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    // The same rules hold for a bundle.
    let ran = desk.haft(&["pack", "echo", "--bundle", "--set", "/entry/main=echo.mjs"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("a token of GitHub"), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn links_are_refused_by_name() {
    let desk = Desk::new();
    let echo = desk.echo();
    std::os::unix::fs::symlink("/etc/hosts", echo.join("hosts")).unwrap();
    let ran = desk.haft(&["pack", "echo"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("`hosts` is a link"), "{}", ran.stderr);
    assert_eq!(desk.names(), ["echo"]);
}

#[test]
fn an_earlier_build_is_replaced_and_nothing_else() {
    let desk = Desk::new();
    let echo = desk.echo();
    desk.done(&["pack", "echo"]);
    fs::write(echo.join("README.md"), "other\n").unwrap();
    desk.done(&["pack", "echo"]);
    desk.done(&["unpack", "demo.echo-0.1.0.mcpkg", "-o", "out"]);
    assert_eq!(fs::read(desk.path("out/README.md")).unwrap(), b"other\n");
    // A signed package stays, unless the files are still the same.
    desk.done(&["key", "new", "alice", "--no-passphrase"]);
    desk.done(&["sign", "demo.echo-0.1.0.mcpkg", "--key", "alice"]);
    let ran = desk.done(&["pack", "echo"]);
    assert!(ran.stderr.contains("Unchanged"), "{}", ran.stderr);
    desk.done(&["verify", "demo.echo-0.1.0.mcpkg"]);
    fs::write(echo.join("README.md"), "new\n").unwrap();
    assert_eq!(desk.haft(&["pack", "echo"]).code, 5);
    desk.done(&["verify", "demo.echo-0.1.0.mcpkg"]);
    fs::write(desk.path("notes"), "mine").unwrap();
    assert_eq!(desk.haft(&["pack", "echo", "-o", "notes"]).code, 5);
    assert_eq!(fs::read(desk.path("notes")).unwrap(), b"mine");
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
    // A statement over the manifest alone, made by the documented rules.
    let key = package::key::PrivateKey::generate().unwrap();
    let content = fs::read(desk.path("echo/manifest.json")).unwrap();
    let digest = package::digest::Digest::of(&content);
    let message = format!(
        "haft package signature 1\ncovers files\n{digest} {} manifest.json\n",
        content.len()
    );
    let statement = serde_json::json!({
        "format": "haft-signature-1",
        "statements": [{
            "covers": "files",
            "files": [{"path": "manifest.json", "size": content.len(), "sha256": digest.to_string()}],
            "signatures": [{
                "key": key.public().to_string(),
                "signature": base64(&key.sign(message.as_bytes())),
            }],
        }],
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

fn base64(bytes: &[u8]) -> String {
    let script = "import base64, sys; print(base64.b64encode(bytes.fromhex(sys.argv[1])).decode())";
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let ran = Command::new("python3").args(["-c", script, &hex]).output().unwrap();
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
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

#[test]
fn a_bundle_and_a_package_become_each_other() {
    let desk = Desk::new();
    let source = repository().join("examples/jumith/dice.bundle.json");
    desk.done(&["pack", source.to_str().unwrap(), "-o", "dice.mcpkg"]);
    desk.done(&["pack", "dice.mcpkg", "--bundle", "-o", "dice.bundle.json"]);
    let read = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let (before, after) = (read(&source), read(&desk.path("dice.bundle.json")));
    assert_eq!(before["manifest"], after["manifest"]);
    let contents = |name: &str| desk.done(&["inspect", name, "--json"]).json()["contents"].clone();
    assert_eq!(contents("dice.mcpkg"), contents("dice.bundle.json"));
    // A signature travels with the files.
    desk.done(&["key", "new", "alice", "--no-passphrase"]);
    desk.done(&["sign", "dice.mcpkg", "--key", "alice"]);
    desk.done(&["pack", "dice.mcpkg", "--bundle", "-o", "signed.bundle.json"]);
    desk.done(&["verify", "signed.bundle.json"]);
    desk.done(&["pack", "signed.bundle.json", "-o", "back.mcpkg"]);
    assert_eq!(
        fs::read(desk.path("back.mcpkg")).unwrap(),
        fs::read(desk.path("dice.mcpkg")).unwrap()
    );
    desk.done(&["unpack", "signed.bundle.json", "-o", "out"]);
    assert!(names(&desk.path("out")).contains(&"tool.json".to_owned()));
    // A package of another dialect says what is missing, and comes back whole.
    desk.echo();
    desk.done(&["pack", "echo"]);
    let ran = desk.haft(&["pack", "echo", "--bundle"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("/entry/main"), "{}", ran.stderr);
    desk.done(&[
        "pack",
        "echo",
        "--bundle",
        "-o",
        "echo.bundle.json",
        "--set",
        "/entry/main=echo.mjs",
    ]);
    desk.done(&["unpack", "echo.bundle.json", "-o", "echo-again"]);
    fs::remove_dir_all(desk.path("echo-again/meta")).unwrap();
    assert!(same_files(&desk.path("echo"), &desk.path("echo-again")));
}

#[test]
fn provenance_is_what_git_says() {
    let desk = Desk::new();
    let echo = desk.echo();
    let git = |arguments: &[&str]| {
        let status = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
            .args(arguments)
            .current_dir(&echo)
            .env("GIT_COMMITTER_DATE", "2026-01-02T03:04:05+01:00")
            .env("GIT_AUTHOR_DATE", "2026-01-02T03:04:05+01:00")
            .status();
        assert!(status.unwrap().success());
    };
    let ran = desk.done(&["pack", "echo", "--provenance", "-o", "none.mcpkg"]);
    assert!(ran.stderr.contains("no commit is known"), "{}", ran.stderr);
    git(&["init", "-q"]);
    git(&["remote", "add", "origin", "https://me:secret@example.com/echo.git"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    desk.done(&["pack", "echo", "--provenance"]);
    let provenance =
        desk.done(&["inspect", "demo.echo-0.1.0.mcpkg", "--json"]).json()["provenance"].clone();
    assert_eq!(provenance["sourceRepo"], "https://example.com/echo.git");
    assert_eq!(provenance["builtAt"], "2026-01-02T02:04:05Z");
    assert_eq!(provenance["commit"].as_str().unwrap().len(), 40);
    let first = fs::read(desk.path("demo.echo-0.1.0.mcpkg")).unwrap();
    desk.done(&["pack", "echo", "--provenance", "-o", "again.mcpkg"]);
    assert_eq!(fs::read(desk.path("again.mcpkg")).unwrap(), first);
    fs::write(echo.join("README.md"), "changed\n").unwrap();
    let ran = desk.haft(&["pack", "echo", "--provenance"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("`README.md` differs from the commit"), "{}", ran.stderr);
}

#[test]
fn a_hostile_archive_is_refused_with_its_code() {
    let desk = Desk::new();
    let script = "import zipfile\n\
        archive = zipfile.ZipFile('evil.mcpkg', 'w')\n\
        archive.writestr('manifest.json', '{}')\n\
        archive.writestr('a/../b', 'x')\n\
        archive.close()\n";
    let status =
        Command::new("python3").args(["-c", script]).current_dir(desk.0.path()).status().unwrap();
    assert!(status.success());
    for verb in [
        &["inspect", "evil.mcpkg"][..],
        &["unpack", "evil.mcpkg", "-o", "out"],
        &["verify", "evil.mcpkg"],
        &["validate", "evil.mcpkg"],
    ] {
        let ran = desk.haft(verb);
        assert_eq!(ran.code, 2, "{verb:?}");
        let words = "entry `a/../b` has a `..` segment [parent-segment]";
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    assert_eq!(desk.names(), ["evil.mcpkg"]);
    fs::write(desk.path("text.mcpkg"), "hello").unwrap();
    let ran = desk.haft(&["inspect", "text.mcpkg"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("[not-an-archive]"), "{}", ran.stderr);
    assert_eq!(desk.haft(&["inspect", "missing.mcpkg"]).code, 3);
    fs::create_dir(desk.path("folder")).unwrap();
    assert_eq!(desk.haft(&["inspect", "folder"]).code, 2);
}

#[test]
fn other_verbs_read_packages_too() {
    let desk = Desk::new();
    desk.echo();
    desk.done(&["pack", "echo"]);
    let name = "demo.echo-0.1.0.mcpkg";
    let ran = desk.done(&["validate", name]);
    assert!(ran.stdout.contains("tests/echo.test.json"), "{}", ran.stdout);
    let ran = desk.done(&["diff", name, "echo/manifest.json"]);
    assert!(ran.stderr.contains("no changes"), "{} {}", ran.stdout, ran.stderr);
    let ran = desk.done(&["export", name, "--format", "mcp"]);
    assert!(ran.stdout.contains("demo_echo") || ran.stdout.contains("demo.echo"), "{}", ran.stdout);
    let ran = desk.done(&["convert", name, "--to", "mcpkg"]);
    assert_eq!(ran.stdout, fs::read_to_string(desk.path("echo/manifest.json")).unwrap());
}
