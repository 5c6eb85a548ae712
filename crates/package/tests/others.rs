//! Archives that other tools really made: accepted when they are clean.
//!
//! Info-ZIP, Python, git and the packer of MCPB are run here, on a folder made here.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use package::archive::{Archive, Trailer};
use package::digest::Digest;
use package::limits::Limits;
use package::refusal::{ReadError, RefusalCode};
use tempfile::TempDir;

/// The files that the tools pack.
fn content() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("empty", Vec::new()),
        ("manifest.json", b"{\"name\": \"demo\"}\n".to_vec()),
        ("run.sh", b"#!/bin/sh\necho demo\n".to_vec()),
        ("src/deep/text.txt", b"text that shrinks, text that shrinks\n".repeat(3_000)),
        ("src/noise.bin", testkit::archives::deflate::noise(200_000)),
    ]
}

/// A file whose name is beyond ASCII.
const FOREIGN: (&str, &[u8]) = ("docs/grüße-日本.md", b"content");

/// A folder with these files.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in content() {
        put(folder.path(), path, &content);
    }
    let runs = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path().join("run.sh"), runs).unwrap();
    folder
}

fn put(folder: &Path, path: &str, content: &[u8]) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Runs a tool in a folder; gives what it wrote to stdout.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> Vec<u8> {
    let done = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("LC_ALL", "C.UTF-8")
        .env("HOME", folder)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("`{program}` cannot be run: {error}"));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{program} {arguments:?}: {said}");
    done.stdout
}

fn open(bytes: &[u8], trailer: Trailer) -> Result<Archive, ReadError> {
    Archive::from_bytes(bytes.to_vec(), trailer, &Limits::DEFAULT)
}

/// The files of an archive are exactly these.
fn check(name: &str, bytes: &[u8], files: &[(&str, Vec<u8>)]) -> Archive {
    let archive = open(bytes, Trailer::Refused).unwrap_or_else(|error| panic!("{name}: {error}"));
    check_files(name, archive, files)
}

fn check_files(name: &str, archive: Archive, files: &[(&str, Vec<u8>)]) -> Archive {
    let listing = archive.listing().unwrap_or_else(|error| panic!("{name}: {error}"));
    let ours = listing.files().iter().map(|file| (file.path.as_str(), file.sha256));
    let mut expected: Vec<_> =
        files.iter().map(|(path, content)| (*path, Digest::of(content))).collect();
    expected.sort();
    assert_eq!(ours.collect::<Vec<_>>(), expected, "{name}");
    archive
}

fn check_runs(name: &str, archive: &Archive) {
    let runs: Vec<_> = archive.entries().iter().filter(|entry| entry.executable).collect();
    assert_eq!(
        runs.iter().map(|entry| entry.path.as_str()).collect::<Vec<_>>(),
        ["run.sh"],
        "{name}"
    );
}

/// What Info-ZIP makes of a folder, in a file.
fn zipped(folder: &Path, options: &[&str]) -> Vec<u8> {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("out.zip");
    run(folder, "zip", &[&["-q", "-r"], options, &[path.to_str().unwrap(), "."]].concat());
    fs::read(path).unwrap()
}

/// What Info-ZIP makes of a folder, when it cannot go back in what it writes.
fn piped(folder: &Path, options: &[&str]) -> Vec<u8> {
    run(folder, "zip", &[&["-q", "-r"], options, &["-", "."]].concat())
}

#[test]
fn archives_of_info_zip_are_accepted() {
    for options in [&[][..], &["-9"], &["-0"], &["-1"], &["-X"], &["-D"], &["-UN=UTF8"], &["-fd"]] {
        let archive =
            check(&format!("zip {options:?}"), &zipped(folder().path(), options), &content());
        check_runs("zip", &archive);
    }
}

#[test]
fn archives_that_info_zip_writes_to_a_pipe_are_accepted() {
    for options in [&[][..], &["-9"], &["-1"], &["-X"], &["-D"]] {
        let archive =
            check(&format!("zip {options:?} -"), &piped(folder().path(), options), &content());
        check_runs("zip", &archive);
    }
}

/// Where the locale lets it, Info-ZIP marks such names as UTF-8; unmarked, Python would read
/// another name.
#[test]
fn foreign_names_of_info_zip_are_read_as_they_are_or_refused() {
    let folder = folder();
    put(folder.path(), FOREIGN.0, FOREIGN.1);
    let files = [content(), vec![(FOREIGN.0, FOREIGN.1.to_vec())]].concat();
    for options in [&[][..], &["-UN=UTF8"]] {
        for bytes in [zipped(folder.path(), options), piped(folder.path(), options)] {
            match open(&bytes, Trailer::Refused) {
                Ok(archive) => drop(check_files("zip", archive, &files)),
                Err(error) => assert_eq!(error.code(), Some(RefusalCode::NameEncoding)),
            }
        }
    }
}

#[test]
fn what_info_zip_makes_of_links_passwords_and_words_is_refused() {
    let code = |bytes: &[u8]| open(bytes, Trailer::Refused).err().and_then(|error| error.code());
    let linked = folder();
    symlink("/etc/passwd", linked.path().join("link")).unwrap();
    assert_eq!(code(&zipped(linked.path(), &["-y"])), Some(RefusalCode::Link));
    // Without `-y` it follows the link, and what it packs is a file.
    assert_eq!(code(&zipped(linked.path(), &[])), None);
    assert_eq!(code(&zipped(folder().path(), &["-P", "secret"])), Some(RefusalCode::Encrypted));
    let odd = folder();
    run(odd.path(), "chmod", &["u+s", "run.sh"]);
    assert_eq!(code(&zipped(odd.path(), &[])), Some(RefusalCode::Setuid));
    let worded = folder();
    run(worded.path(), "sh", &["-c", "zip -q -r out.zip . && echo words | zip -q -z out.zip"]);
    let bytes = fs::read(worded.path().join("out.zip")).unwrap();
    assert_eq!(code(&bytes), Some(RefusalCode::ArchiveComment));
}

#[test]
fn archives_of_python_are_accepted() {
    let folder = folder();
    put(folder.path(), FOREIGN.0, FOREIGN.1);
    let out = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/others.py");
    let arguments = [script.to_str().unwrap(), ".", out.path().to_str().unwrap()];
    run(folder.path(), "python3", &arguments);
    let files = [content(), vec![(FOREIGN.0, FOREIGN.1.to_vec())]].concat();
    let mut made: Vec<_> =
        fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    made.sort();
    assert!(made.len() >= 12, "{made:?}");
    for path in made {
        if path.ends_with("refused.zip") {
            let error = open(&fs::read(&path).unwrap(), Trailer::Refused).unwrap_err();
            assert_eq!(error.code(), Some(RefusalCode::BadDescriptor));
            continue;
        }
        check(&path.display().to_string(), &fs::read(&path).unwrap(), &files);
    }
}

#[test]
fn archives_of_git_are_accepted() {
    for format in ["sha1", "sha256"] {
        let folder = folder();
        put(folder.path(), FOREIGN.0, FOREIGN.1);
        let git = |arguments: &[&str]| {
            let who = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
            run(folder.path(), "git", &[&who[..], arguments].concat())
        };
        git(&["init", "-q", &format!("--object-format={format}")]);
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", "all"]);
        let files = [content(), vec![(FOREIGN.0, FOREIGN.1.to_vec())]].concat();
        for options in [&["-9"][..], &["-0"], &[]] {
            let bytes = git(&[&["archive", "--format=zip"], options, &["HEAD"]].concat());
            let archive = check(&format!("git {format} {options:?}"), &bytes, &files);
            check_runs("git", &archive);
        }
        let prefixed = git(&["archive", "--format=zip", "--prefix=demo-1.0/", "HEAD"]);
        let moved: Vec<_> = files
            .iter()
            .map(|(path, content)| (format!("demo-1.0/{path}"), content.clone()))
            .collect();
        let moved: Vec<_> =
            moved.iter().map(|(path, content)| (path.as_str(), content.clone())).collect();
        check("git with a prefix", &prefixed, &moved);
        // A tree has no commit, and the archive no comment.
        check("git, a tree", &git(&["archive", "--format=zip", "HEAD^{tree}"]), &files);
        symlink("/etc/passwd", folder.path().join("link")).unwrap();
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", "a link"]);
        let linked = open(&git(&["archive", "--format=zip", "HEAD"]), Trailer::Refused);
        assert_eq!(linked.err().and_then(|error| error.code()), Some(RefusalCode::Link));
    }
}

#[test]
fn archives_of_the_mcpb_packer_are_accepted_and_their_signature_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = serde_json::json!({
        "manifest_version": "0.2", "name": "demo", "version": "1.0.0", "description": "Says hello.",
        "author": {"name": "T"},
        "server": {"type": "node", "entry_point": "server/index.js",
            "mcp_config": {"command": "node", "args": ["${__dirname}/server/index.js"]}},
    });
    let manifest = manifest.to_string().into_bytes();
    let files = [
        ("manifest.json", manifest),
        ("server/index.js", b"console.error('hello');\n".repeat(500)),
        ("server/run.sh", b"#!/bin/sh\n".to_vec()),
        (FOREIGN.0, FOREIGN.1.to_vec()),
        ("empty", Vec::new()),
    ];
    let inside = folder.path().join("inside");
    for (path, content) in &files {
        put(&inside, path, content);
    }
    fs::set_permissions(inside.join("server/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let mcpb = mcpb();
    run(folder.path(), mcpb.to_str().unwrap(), &["pack", "inside", "demo.mcpb"]);
    let path = folder.path().join("demo.mcpb");
    let plain = fs::read(&path).unwrap();
    let archive = check("mcpb pack", &plain, &files);
    assert!(archive.get("server/run.sh").unwrap().executable);
    run(folder.path(), mcpb.to_str().unwrap(), &["sign", "--self-signed", "demo.mcpb"]);
    let signed = fs::read(&path).unwrap();
    assert!(signed.starts_with(&plain) && signed.len() > plain.len());
    let refused = open(&signed, Trailer::Refused).err().and_then(|error| error.code());
    assert_eq!(refused, Some(RefusalCode::TrailingData));
    let archive = open(&signed, Trailer::Mcpb).unwrap();
    assert_eq!(archive.trailer_len(), (signed.len() - plain.len()) as u64);
    check_files("mcpb sign", archive, &files);
}

/// The packer: where the variable says, or where `./test` puts it.
fn mcpb() -> PathBuf {
    let installed = testkit::repo().join("target/tools/mcpb/node_modules/.bin/mcpb");
    let path = std::env::var_os("HAFT_MCPB").map_or(installed, PathBuf::from);
    assert!(
        path.exists(),
        "the packer of MCPB is not at `{}`: run `./test`, or \
         `npm install --prefix target/tools/mcpb @anthropic-ai/mcpb`, or name it in HAFT_MCPB",
        path.display()
    );
    path.canonicalize().unwrap()
}
