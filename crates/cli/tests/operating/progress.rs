//! How far long work is: shown at a terminal, and nowhere else.

use std::path::Path;
use std::process::Command;

use super::process::{Served, done, haft, package, run};

/// `haft` at a terminal of its own: its code, and what the screen showed.
fn at_terminal(words: &[String], token: &str) -> (Option<i32>, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/terminal.py");
    let mut command = Command::new("python3");
    command.arg(script).arg("--").arg(assert_cmd::cargo::cargo_bin("haft")).args(words);
    let output = command.env("HAFT_TOKEN", token).env("TERM", "xterm").output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn long_work_is_shown_at_a_terminal_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (home, file) = (at("home"), at("demo.mcpkg"));
    let made =
        done(haft(Path::new(&home)).args(["registry", "token", "new", "--namespace", "acme"]));
    let token = made["token"].as_str().unwrap();
    let served = Served::at(Path::new(&home), &[]);
    std::fs::write(&file, package("acme.pdf", "1.0.0", "").0).unwrap();
    let url = served.url.as_str();
    for (shown, words) in [
        ("Publishing [=", "publish FILE --registry URL"),
        ("Checking [", "registry check"),
        ("Looking for unused files: 1 of 1 (", "registry gc"),
        ("Keeping [", "registry backup NEW"),
        ("Restoring [", "registry restore BACKUP --home NEW"),
        ("Downloading [", "registry get acme.pdf --registry URL --output NEW --home CACHE"),
        ("Importing tools: 1 of 1 (", "registry import FILE --registry URL"),
    ] {
        let typed = |number: u8, more: Option<&str>| -> Vec<String> {
            let word = |word: &str| match word {
                "FILE" => file.clone(),
                "URL" => url.to_owned(),
                "NEW" => at(&format!("{}-{number}", shown.split(' ').next().unwrap_or_default())),
                "CACHE" => at(&format!("cache-{number}")),
                "BACKUP" => at("whole.tar"),
                plain => plain.to_owned(),
            };
            let has_home = words.contains("--home");
            let own = (!has_home).then(|| ["--home".to_owned(), home.clone()]);
            let more = more.map(str::to_owned);
            words.split(' ').map(word).chain(own.into_iter().flatten()).chain(more).collect()
        };
        let (code, screen) = at_terminal(&typed(1, None), token);
        assert_eq!(code, Some(0), "{words}: {screen}");
        assert!(screen.contains(shown), "{words}: {screen:?}");
        // It is taken away again.
        let end = screen.rfind(shown).unwrap();
        assert!(screen[end..].contains("\u{1b}[2K"), "{words}: {screen:?}");
        for (number, quiet) in [(2, "--quiet"), (3, "--json")] {
            let (code, screen) = at_terminal(&typed(number, Some(quiet)), token);
            assert_eq!(code, Some(0), "{words} {quiet}: {screen}");
            assert!(!screen.contains(shown), "{words} {quiet}: {screen:?}");
        }
        let mut plain = Command::new(assert_cmd::cargo::cargo_bin("haft"));
        let (code, stdout, stderr) = run(plain.args(typed(4, None)).env("HAFT_TOKEN", token));
        assert_eq!(code, 0, "{words}: {stderr}");
        assert!(!stdout.contains('\u{1b}') && !stderr.contains('\u{1b}'), "{stdout}{stderr}");
        assert!(!stderr.contains(shown), "{words}: {stderr}");
        if words.contains("publish") {
            done(haft(Path::new(&home)).args(["registry", "backup", &at("whole.tar")]));
        }
    }
}
