use proptest::prelude::*;

use super::*;
use crate::config::{read_json, read_toml};

fn ours(name: &str) -> Ours {
    let serves = Serves::Package(format!("mcpb:{name}"));
    Ours { name: name.to_owned(), program: "/opt/haft".to_owned(), serves, home: None }
}

/// The entry that serves everything.
fn everything() -> Ours {
    let (serves, home) = (Serves::Installed { profile: None }, None);
    Ours { name: "haft".to_owned(), program: "/opt/haft".to_owned(), serves, home }
}

fn served(entry: &Entry) -> Option<String> {
    match serves(entry)? {
        Serves::Package(id) => Some(id),
        Serves::Installed { .. } => None,
    }
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
    assert_eq!(
        served,
        ["mcpb:weather", "mcpb:one"]
            .map(str::to_owned)
            .map(Some)
            .into_iter()
            .chain([None])
            .collect::<Vec<_>>()
    );
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
    assert_eq!(served(entries[0].entry.as_ref().unwrap()).as_deref(), Some("mcpb:files"));
    let later = text.replace("\"dark\"", "\"light\"");
    let taken = taken(CODEX, &Form::Toml, &["files".to_owned()]).unwrap();
    assert!(taken[0].1.contains("s3cret") && !taken[0].1.contains("after"), "{}", taken[0].1);
    let back = restored(&later, &taken[0].1, &Form::Toml, "files").unwrap();
    assert_eq!(back, CODEX.replace("\"dark\"", "\"light\""));
}

#[test]
fn ours_is_known_by_what_it_starts() {
    let entry = |command: &str, args: &[&str]| Entry {
        launch: Launch::Command {
            command: command.to_owned(),
            args: args.iter().map(|&word| word.to_owned()).collect(),
            env: Vec::new(),
            cwd: None,
        },
        enabled: true,
        unknown: Vec::new(),
    };
    let everything =
        |profile: Option<&str>| Serves::Installed { profile: profile.map(str::to_owned) };
    for (command, args, expected) in [
        ("/opt/haft", &["mcp"][..], Some(everything(None))),
        ("C:\\bin\\haft.exe", &["mcp", "--home", "D:\\x"], Some(everything(None))),
        ("mcp", &["mcp", "--profile", "work"], Some(everything(Some("work")))),
        (
            "haft",
            &["mcp", "--only", "a:b", "--home", "/x"],
            Some(Serves::Package("a:b".to_owned())),
        ),
        ("haft", &["mcp", "--only", "a:b", "--profile", "p"], None),
        ("haft", &["mcp", "--profile", "p", "--profile", "q"], None),
        ("haft", &["mcp", "--profile"], None),
        ("haft", &["mcp", "--yes", "x"], None),
        ("haft", &["serve"], None),
        ("haft", &[], None),
        ("node", &["mcp"], None),
    ] {
        assert_eq!(serves(&entry(command, args)), expected, "{command} {args:?}");
    }
}

/// What one more entry makes of a file, after which it is taken out again.
fn both_ways(text: &str, form: &Form, ours: &Ours) -> String {
    let more = added(text, form, ours).unwrap();
    assert_eq!(without(&more, form, &ours.name).unwrap(), text, "{more}");
    more
}

#[test]
fn an_entry_is_added_as_the_others_are_written() {
    let form = below(&["mcpServers"]);
    for (text, expected) in [
        (
            "{\n    \"mcpServers\": {\n        \"a\": {\"command\": \"x\"} // mine\n    },\n    \"theme\": 1\n}\n",
            "{\n    \"mcpServers\": {\n        \"a\": {\"command\": \"x\"}, // mine\n        \"haft\": {\n            \"command\": \"/opt/haft\",\n            \"args\": [\"mcp\"]\n        }\n    },\n    \"theme\": 1\n}\n",
        ),
        (
            "{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {}, /* last */\r\n\t},\r\n}",
            "{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {}, /* last */\r\n\t\t\"haft\": {\r\n\t\t\t\"command\": \"/opt/haft\",\r\n\t\t\t\"args\": [\"mcp\"]\r\n\t\t},\r\n\t},\r\n}",
        ),
        (
            "{\n  \"mcpServers\": {}\n}",
            "{\n  \"mcpServers\": {\n    \"haft\": {\n      \"command\": \"/opt/haft\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}",
        ),
        (
            "{\n  \"mcpServers\": { // none yet\n  }\n}",
            "{\n  \"mcpServers\": { // none yet\n    \"haft\": {\n      \"command\": \"/opt/haft\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}",
        ),
        (
            "{\"mcpServers\":{\"a\":{\"command\":\"x\"}},\"b\":1}",
            "{\"mcpServers\":{\"a\":{\"command\":\"x\"},\"haft\":{\"command\":\"/opt/haft\",\"args\":[\"mcp\"]}},\"b\":1}",
        ),
        (
            "{\"mcpServers\": {\"a\": {},}, \"b\": 1}",
            "{\"mcpServers\": {\"a\": {}, \"haft\": {\"command\": \"/opt/haft\", \"args\": [\"mcp\"]},}, \"b\": 1}",
        ),
    ] {
        assert_eq!(both_ways(text, &form, &everything()), expected);
    }
}

#[test]
fn where_there_are_no_servers_yet_their_place_is_made() {
    let added_to = |text: &str, keys: &[&str]| added(text, &below(keys), &everything()).unwrap();
    let fresh = "{\n  \"mcpServers\": {\n    \"haft\": {\n      \"command\": \"/opt/haft\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}";
    for text in ["", " \n", "\u{feff}"] {
        assert_eq!(added_to(text, &["mcpServers"]), format!("{fresh}\n"));
    }
    assert_eq!(added_to("{}", &["mcpServers"]), fresh);
    assert_eq!(
        added_to("{\"theme\": \"dark\"}", &["mcp", "servers"]),
        "{\"theme\": \"dark\", \"mcp\": {\"servers\": {\"haft\": {\"type\": \"stdio\", \"command\": \"/opt/haft\", \"args\": [\"mcp\"]}}}}"
    );
    assert_eq!(
        added_to("{\n  \"theme\": \"dark\"\n}\n", &["mcpServers"]),
        fresh.replacen("{\n", "{\n  \"theme\": \"dark\",\n", 1) + "\n"
    );
    for (text, words) in [("{\"mcpServers\": []}", "is a JSON array"), ("[]", "array"), ("{", "")] {
        let why = added(text, &below(&["mcpServers"]), &everything()).unwrap_err().to_string();
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn what_others_wrote_around_an_entry_stays() {
    let form = below(&["mcpServers"]);
    for (text, expected) in [
        // First, with a comment on its line, and the only one.
        (
            "{\"mcpServers\": {\n  \"haft\": {},\n  \"a\": {}\n}}",
            "{\"mcpServers\": {\n  \"a\": {}\n}}",
        ),
        (
            "{\"mcpServers\": {\n  \"a\": {}, // a\n  \"haft\": {} // ours\n}}",
            "{\"mcpServers\": {\n  \"a\": {} // a\n   // ours\n}}",
        ),
        (
            "{\"mcpServers\": {\n  \"a\": {}, // a\n  \"haft\": {}}}",
            "{\"mcpServers\": {\n  \"a\": {} // a\n  }}",
        ),
        ("{\"mcpServers\": {\n  // mine\n  \"haft\": {}\n}}", "{\"mcpServers\": {\n  // mine\n}}"),
        ("{\"mcpServers\": {\n  \"haft\": {},\n}}", "{\"mcpServers\": {}}"),
        ("{\"mcpServers\": {\"a\": {}}}", "{\"mcpServers\": {\"a\": {}}}"),
        ("{}", "{}"),
    ] {
        let left = without(text, &form, "haft").unwrap();
        assert_eq!(left, expected);
        read_json(left.as_bytes(), &["mcpServers".to_owned()]).unwrap();
    }
}

#[test]
fn a_table_is_added_at_the_end_and_taken_out_again() {
    let block = "[mcp_servers.haft]\ncommand = \"/opt/haft\"\nargs = [\"mcp\"]\n";
    for text in [
        CODEX,
        "a = 1\n# the end\n",
        "[mcp_servers]\na = { command = \"x\" }\n",
        "mcp_servers.a.command = \"x\"\n",
    ] {
        assert_eq!(both_ways(text, &Form::Toml, &everything()), format!("{text}\n{block}"));
    }
    assert_eq!(both_ways("", &Form::Toml, &everything()), block);
    let windows = CODEX.replace('\n', "\r\n");
    let more = both_ways(&windows, &Form::Toml, &everything());
    assert_eq!(more, format!("{windows}\r\n{}", block.replace('\n', "\r\n")));
    // Without a last line end, and in a table on one line.
    assert_eq!(added("a = 1", &Form::Toml, &everything()).unwrap(), format!("a = 1\n\n{block}"));
    let line = "\u{feff}mcp_servers = { a = { command = \"x\" } }\r\n";
    let more = both_ways(line, &Form::Toml, &everything());
    assert_eq!(read_toml(more.as_bytes()).unwrap().entries.len(), 2, "{more}");
    assert!(more.starts_with("\u{feff}mcp_servers = {") && more.ends_with("}\r\n"), "{more}");
    for text in ["mcp_servers = 1", "mcp_servers = [", "[[mcp_servers]]\na = 1"] {
        assert!(added(text, &Form::Toml, &everything()).is_err(), "{text}");
    }
}

#[test]
fn what_others_wrote_around_a_table_stays() {
    let text = added(CODEX, &Form::Toml, &everything()).unwrap();
    let more = format!(
        "{text}startup_timeout_sec = 9 # slow\n# about the next\n[history]\nmax = 1\n\n[mcp_servers.haft.tools.x]\nallow = true\n"
    );
    let left = without(&more, &Form::Toml, "haft").unwrap();
    // The table between has no head of its own.
    assert_eq!(read_toml(left.as_bytes()).unwrap().entries.len(), 2, "{left}");
    assert!(left.contains("# about the next\n[history]\nmax = 1\n"), "{left}");
    let more = more.replace("[mcp_servers.haft.tools.x]", "[mcp_servers.haft.env]");
    let left = without(&more, &Form::Toml, "haft").unwrap();
    assert_eq!(left, format!("{CODEX}# about the next\n[history]\nmax = 1\n"));
}

#[test]
fn line_ends_of_tables_stay_when_one_is_swapped() {
    let windows = CODEX.replace('\n', "\r\n");
    let swapped = replaced(&windows, &Form::Toml, &[ours("files")]).unwrap();
    assert_eq!(
        swapped,
        replaced(CODEX, &Form::Toml, &[ours("files")]).unwrap().replace('\n', "\r\n")
    );
    let taken = taken(&windows, &Form::Toml, &["files".to_owned()]).unwrap();
    assert_eq!(restored(&swapped, &taken[0].1, &Form::Toml, "files").unwrap(), windows);
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

    #[test]
    fn whatever_a_file_holds_what_is_added_is_gone_without_a_trace(
        around in "( |\n|// c\n|/\\* d \\*/){0,4}",
        after in "( |\n|// e\n|/\\* f \\*/){0,4}",
        comma in ",?",
    ) {
        let text = format!("{{{around}\"mcpServers\": {{{around}\"b\": {{\"command\": \"x\"}}{after}{comma}{around}}}{after}{comma}}}");
        let form = below(&["mcpServers"]);
        let more = added(&text, &form, &everything()).unwrap();
        let read = read_json(more.as_bytes(), &["mcpServers".to_owned()]).unwrap();
        prop_assert_eq!(read.entries.len(), 2, "{}", more);
        prop_assert!(everything().is_started_by(read.entries[1].entry.as_ref().unwrap()));
        prop_assert_eq!(without(&more, &form, "haft").unwrap(), text);
    }
}
