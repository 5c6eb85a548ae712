//! `docs/cli.md` is what the program says of itself.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{haft, repository};

/// The verbs in the order of the help.
fn verbs() -> Vec<String> {
    let help = haft(&["--help"]).stdout;
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = commands.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn the_reference_is_current() {
    let mut page = String::from(
        "# Command line\n\nWritten from the program's own help: `HAFT_UPDATE=1 cargo test -p cli --test reference`.\n",
    );
    let mut add = |title: &str, arguments: &[&str]| {
        let ran = haft(arguments);
        assert_eq!(ran.code, 0);
        let lines: Vec<_> = ran.stdout.lines().map(str::trim_end).collect();
        page.push_str(&format!("\n## {title}\n\n```text\n{}\n```\n", lines.join("\n").trim_end()));
    };
    add("haft", &["--help"]);
    for verb in verbs() {
        add(&format!("haft {verb}"), &[&verb, "--help"]);
    }
    let path = repository().join("docs/cli.md");
    if std::env::var_os("HAFT_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(current, page, "run HAFT_UPDATE=1 cargo test -p cli --test reference");
}

#[test]
fn every_verb_explains_itself() {
    for verb in verbs() {
        let help = haft(&[&verb, "--help"]).stdout;
        assert!(help.contains("Usage: haft"), "{verb}");
        assert!(help.lines().next().unwrap().len() > 10, "{verb} says what it does first");
    }
}
