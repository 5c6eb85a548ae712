use proptest::prelude::*;

use super::*;
use crate::config::{read_json, read_toml};

fn ours(name: &str) -> Ours {
    let (program, id) = ("/opt/haft".to_owned(), format!("mcpb:{name}"));
    Ours { name: name.to_owned(), program, id, home: None }
}

fn below(keys: &[&str]) -> Form {
    Form::Json(keys.iter().map(|&key| key.to_owned()).collect())
}

const DESKTOP: &str = r#"{
  // mine
  "theme": "dark",
  "mcpServers": {
    "weather": { // keep me in mind
      "command": "node",
      "args": ["/srv/w.js"],
      "env": {"API_KEY": "s3cret"},
      "alwaysAllow": ["now"], // rules
    },
    "one": {"url": "https://a.example/mcp", "headers": {"X": "y"}},
    "other": {"command": "x"} /* stays */,
  },
}
"#;

#[test]
fn an_entry_is_swapped_and_everything_else_stays() {
    let form = below(&["mcpServers"]);
    let text = replaced(DESKTOP, &form, &[ours("weather"), ours("one"), ours("absent")]).unwrap();
    let expected = r#"{
  // mine
  "theme": "dark",
  "mcpServers": {
    "weather": {
      "command": "/opt/haft",
      "args": ["mcp", "--only", "mcpb:weather"],
      "alwaysAllow": ["now"]
    },
    "one": {"command": "/opt/haft", "args": ["mcp", "--only", "mcpb:one"]},
    "other": {"command": "x"} /* stays */,
  },
}
"#;
    assert_eq!(text, expected);
    let read = read_json(text.as_bytes(), &["mcpServers".to_owned()]).unwrap();
    let served: Vec<_> =
        read.entries.iter().map(|one| served(one.entry.as_ref().unwrap())).collect();
    assert_eq!(served, [Some("mcpb:weather"), Some("mcpb:one"), None]);
    assert_eq!(
        replaced(&text, &form, &[ours("weather"), ours("one")]).unwrap(),
        text,
        "once is enough"
    );
}

#[test]
fn what_was_swapped_is_put_back_and_later_edits_are_kept() {
    let form = below(&["mcpServers"]);
    let text = replaced(DESKTOP, &form, &[ours("weather"), ours("one")]).unwrap();
    let names = ["weather".to_owned(), "one".to_owned()];
    let taken = taken(DESKTOP, &form, &names).unwrap();
    assert_eq!(
        taken[1].1,
        r#"{"mcpServers": {"one": {"url": "https://a.example/mcp", "headers": {"X": "y"}}}}"#
    );
    let back = |text: &str| {
        let one_by_one = |text: String, (name, was): &(String, String)| {
            restored(&text, was, &form, name).unwrap()
        };
        taken.iter().fold(text.to_owned(), one_by_one)
    };
    assert_eq!(back(&text), DESKTOP);
    let later = text.replace("\"theme\": \"dark\"", "\"theme\": \"light\", \"new\": [1]");
    assert_eq!(
        back(&later),
        DESKTOP.replace("\"theme\": \"dark\"", "\"theme\": \"light\", \"new\": [1]")
    );
}

#[test]
fn one_client_is_told_the_kind_of_an_entry() {
    let text = r#"{"servers": {"a": {"type": "http", "url": "https://a"}}, "inputs": []}"#;
    let swapped = replaced(text, &below(&["servers"]), &[ours("a")]).unwrap();
    assert_eq!(
        swapped,
        r#"{"servers": {"a": {"type": "stdio", "command": "/opt/haft", "args": ["mcp", "--only", "mcpb:a"]}}, "inputs": []}"#
    );
}

const CODEX: &str = r#"model = "x" # mine

[mcp_servers.files] # those
command = "npx" # how
args = ["-y", "files"]
startup_timeout_sec = 20

[mcp_servers.files.env]
API_KEY = "s3cret"

# after
[mcp_servers.other]
url = "https://a.example" # there

[tui]
theme = "dark"
"#;

#[test]
fn tables_are_swapped_and_put_back() {
    let text = replaced(CODEX, &Form::Toml, &[ours("files")]).unwrap();
    let expected = r#"model = "x" # mine

[mcp_servers.files] # those
command = "/opt/haft" # how
args = ["mcp", "--only", "mcpb:files"]
startup_timeout_sec = 20

# after
[mcp_servers.other]
url = "https://a.example" # there

[tui]
theme = "dark"
"#;
    assert_eq!(text, expected);
    let entries = read_toml(text.as_bytes()).unwrap().entries;
    assert_eq!(served(entries[0].entry.as_ref().unwrap()), Some("mcpb:files"));
    let later = text.replace("\"dark\"", "\"light\"");
    let taken = taken(CODEX, &Form::Toml, &["files".to_owned()]).unwrap();
    assert!(taken[0].1.contains("s3cret") && !taken[0].1.contains("after"), "{}", taken[0].1);
    let back = restored(&later, &taken[0].1, &Form::Toml, "files").unwrap();
    assert_eq!(back, CODEX.replace("\"dark\"", "\"light\""));
}

proptest! {
    #[test]
    fn whatever_an_entry_holds_it_comes_back_as_it_was(
        entry in "\\{( |\n|// x\n|/\\* y \\*/)*\"command\": \"[a-z]{1,5}\"( |\n)*,?( |\n|// z\n)*\\}",
        around in "( |\n|// c\n){0,4}",
    ) {
        let text = format!("{{{around}\"mcpServers\": {{{around}\"a\": {entry}{around},{around}\"b\": {{\"command\": \"x\"}}}}}}");
        let form = below(&["mcpServers"]);
        let swapped = replaced(&text, &form, &[ours("a")]).unwrap();
        let before = text.split("\"a\": ").next().unwrap();
        prop_assert!(swapped.starts_with(before));
        let after = format!("{around},{around}\"b\": {{\"command\": \"x\"}}}}}}");
        prop_assert!(swapped.ends_with(&after));
        let was = taken(&text, &form, &["a".to_owned()]).unwrap();
        prop_assert_eq!(restored(&swapped, &was[0].1, &form, "a").unwrap(), text);
    }
}
