//! `docs/cli.md` is what the program says of itself.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{haft, repository};

/// The verbs in the order of the help, those of a verb after it.
fn verbs() -> Vec<String> {
    below("")
}

/// The verbs of a verb, and theirs.
fn below(above: &str) -> Vec<String> {
    let words: Vec<_> = above.split_whitespace().chain(["--help"]).collect();
    let help = haft(&words).stdout;
    let Some(commands) = help.split("Commands:\n").nth(1) else { return Vec::new() };
    let lines = commands.split("\n\n").next().unwrap().lines();
    // What is longer than a line goes on further in.
    let own =
        lines.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let names = own.filter_map(|line| line.split_whitespace().next());
    let verbs = names.filter(|name| *name != "help").map(|name| format!("{above} {name}"));
    let verbs = verbs.map(|verb| verb.trim_start().to_owned());
    verbs.flat_map(|verb| [vec![verb.clone()], below(&verb)].concat()).collect()
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
        let words: Vec<&str> = verb.split(' ').chain(["--help"]).collect();
        add(&format!("haft {verb}"), &words);
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
        let words: Vec<&str> = verb.split(' ').chain(["--help"]).collect();
        let help = haft(&words).stdout;
        assert!(help.contains("Usage: haft"), "{verb}");
        assert!(help.lines().next().unwrap().len() > 10, "{verb} says what it does first");
    }
}
