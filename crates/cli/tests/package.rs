//! `haft pack`, `inspect` and `unpack`, as typed.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{Desk, names, repository};
use serde_json::Value;

/// The digest of `examples/mcpkg/echo` as a package. It changes only when the example does: the
/// bytes of a package are part of the contract.
const ECHO: &str = "sha256:cb7c712df2027e27e89bdf924f4faa1082b46a70953db4161c5fe28e6ec33f99";

fn same_files(a: &Path, b: &Path) -> bool {
    Command::new("diff").arg("-r").args([a, b]).status().unwrap().success()
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
    let ran = desk.done(&["pack", "echo", "--provenance", "-o", "none.mcpkg"]);
    assert!(ran.stderr.contains("no commit is known"), "{}", ran.stderr);
    desk.git(&["init", "-q"]);
    desk.git(&["remote", "add", "origin", "https://me:secret@example.com/echo.git"]);
    desk.git(&["add", "."]);
    desk.git(&["commit", "-qm", "one"]);
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
