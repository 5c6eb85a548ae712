//! `haft connect`: one entry of ours in the settings of a client, and the way back.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use super::desk::Desk;

const SECRET: &str = "s3cret-of-mine-4711";

const CURSOR: &str = "{\n  // mine\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"dice\": {\"command\": \"python3\", \"env\": {\"API_KEY\": \"s3cret-of-mine-4711\"}}, // roll\n  },\n}\n";

/// Every client, its file for the user and its file for the project.
const CLIENTS: [(&str, &str, Option<&str>); 6] = [
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", None),
    ("claude-code", ".claude.json", Some("project/.mcp.json")),
    ("cursor", ".cursor/mcp.json", Some("project/.cursor/mcp.json")),
    ("vscode", ".config/Code/User/mcp.json", Some("project/.vscode/mcp.json")),
    ("codex", ".codex/config.toml", Some("project/.codex/config.toml")),
    ("gemini", ".gemini/settings.json", Some("project/.gemini/settings.json")),
];

/// The path of this program, as settings have it.
fn program() -> String {
    let path = assert_cmd::cargo::cargo_bin("haft").canonicalize().unwrap();
    path.to_str().unwrap().to_owned()
}

/// A file that a client may have, with something of its own.
fn some_settings(file: &str) -> String {
    match file.rsplit('.').next().unwrap() {
        "toml" => "model = \"x\" # mine\n\n[mcp_servers.dice]\ncommand = \"python3\" # how\n# the end\n".to_owned(),
        _ if file.contains("ode/") => "{\n\t\"servers\": {\n\t\t// mine\n\t\t\"dice\": {\"type\": \"stdio\", \"command\": \"python3\"}\n\t},\n\t\"inputs\": []\n}\n".to_owned(),
        _ => CURSOR.to_owned(),
    }
}

#[test]
fn every_client_is_connected_and_disconnected_without_a_trace() {
    let desk = Desk::new();
    for (client, own, of_project) in CLIENTS {
        let both = [(Some(own), &[][..]), (of_project, &["--project"])];
        for (file, flag) in both.into_iter().filter_map(|(file, flag)| Some((file?, flag))) {
            let before = some_settings(file);
            desk.write(file, &before);
            let connect = [&["connect", client], flag].concat();
            let told = desk.done(&[&connect[..], &["--json"]].concat()).json();
            let home = desk.path("home");
            let args = json!(["mcp", "--home", home.to_str().unwrap()]);
            assert_eq!(told["entry"], json!({"command": program(), "args": args}));
            assert_eq!((&told["state"], &told["client"]), (&json!("connected"), &json!(client)));
            assert_eq!(told["file"], desk.path(file).to_str().unwrap());
            let written = desk.text(file);
            for line in before.lines() {
                let kept = line.trim_end_matches('}').trim_end();
                assert!(written.contains(kept), "{client}: {line}: {written}");
            }
            assert!(written.contains(&json!(program()).to_string()), "{client}: {written}");
            let backup = told["backup"].as_str().unwrap();
            assert_eq!(fs::read_to_string(backup).unwrap(), before, "{client}");
            let mode = fs::metadata(backup).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "settings may hold secrets");
            // Once more changes nothing.
            let again = desk.done(&[&connect[..], &["--json"]].concat()).json();
            assert_eq!(again["state"], "there", "{client}");
            assert_eq!(desk.text(file), written, "{client}");
            let undone = desk.done(&[&connect[..], &["--undo", "--json"]].concat()).json();
            assert_eq!((&undone["state"], &undone["backup"]), (&json!("restored"), &Value::Null));
            assert_eq!(desk.text(file), before, "{client}");
            assert!(!fs::exists(backup).unwrap(), "what is not needed is not kept");
            let undone = desk.done(&[&connect[..], &["--undo", "--json"]].concat()).json();
            assert_eq!(undone["state"], "absent", "{client}");
        }
    }
    // Nor is there anything to undo of a client that was never here.
    let elsewhere = Desk::new();
    let undone = elsewhere.done(&["connect", "cursor", "--undo", "--json"]).json();
    assert_eq!(undone["state"], "absent");
    assert!(!elsewhere.path(".cursor").exists());
    let ran = desk.haft(&["connect", "claude-desktop", "--project"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("claude-desktop keeps no settings in projects"), "{}", ran.stderr);
}

#[test]
fn what_is_written_is_what_clients_read() {
    let desk = Desk::new();
    desk.write(".cursor/mcp.json", CURSOR);
    let ran = desk.haft_at_home(&["connect", "cursor"]);
    assert_eq!((ran.code, &*ran.stdout), (0, ""), "{}", ran.stderr);
    let file = desk.path(".cursor/mcp.json");
    let expected = format!(
        "Connected cursor: `haft` in {} starts `{} mcp`\nhint: cursor sees it when it is started anew\n",
        file.display(),
        program()
    );
    assert_eq!(ran.stderr, expected);
    // The home is the usual one, so nobody is told of it.
    let entry = format!(
        "    \"haft\": {{\n      \"command\": {},\n      \"args\": [\"mcp\"]\n    }},\n  }},\n}}\n",
        json!(program())
    );
    assert_eq!(desk.text(".cursor/mcp.json"), CURSOR.replace("  },\n}\n", &entry));
    let ran = desk.haft_at_home(&["connect", "cursor"]);
    assert!(ran.stderr.starts_with("cursor is connected already: `haft` in "), "{}", ran.stderr);
    // Who imports from there finds nothing of theirs in it.
    assert_eq!(
        desk.states(&["import", "cursor", "--only", "haft", "--dry-run"], 0),
        super::pairs(&[("haft", "left")])
    );
    // One client wants to be told the kind, and tables have their own way.
    desk.done(&["connect", "vscode", "--project"]);
    let code: Value = serde_json::from_str(&desk.text("project/.vscode/mcp.json")).unwrap();
    assert_eq!(code["servers"]["haft"]["type"], "stdio");
    let none = desk.haft(&["connect", "codex", "--project", "--profile", "work"]);
    assert_eq!(none.code, 3, "{}", none.stderr);
    assert!(
        none.stderr.contains("`haft policy profile add work TOOL…` makes it"),
        "{}",
        none.stderr
    );
    desk.done(&["policy", "profile", "add", "work", "*"]);
    desk.done(&["connect", "codex", "--project", "--profile", "work", "--name", "work"]);
    let home = json!(desk.path("home"));
    let table = format!(
        "[mcp_servers.work]\ncommand = {}\nargs = [\"mcp\", \"--profile\", \"work\", \"--home\", {home}]\n",
        json!(program())
    );
    assert_eq!(desk.text("project/.codex/config.toml"), table);
}

#[test]
fn what_a_client_starts_then_has_what_is_installed() {
    let desk = Desk::new();
    let server = super::common::repository().join("examples/mcpb/coin");
    desk.done(&["install", server.to_str().unwrap(), "--yes"]);
    desk.done(&["approve", "always", "mcpb:coin", "toss"]);
    desk.write(".cursor/mcp.json", "{}");
    desk.done(&["connect", "cursor"]);
    let settings = desk.text(".cursor/mcp.json");
    let [listed, called] = super::served(&settings, "haft", "coin_toss", &json!({}));
    let names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert!(names.contains(&&json!("coin_toss")), "{listed}");
    assert_eq!(called["result"].get("isError").unwrap_or(&json!(false)), &json!(false), "{called}");
}

#[test]
fn a_dry_run_shows_the_difference_and_changes_nothing() {
    let desk = Desk::new();
    let file = desk.write(".cursor/mcp.json", CURSOR);
    let ran = desk.done(&["connect", "cursor", "--dry-run"]);
    let program = json!(program());
    let head = format!("--- {file}\n+++ {file}\n@@ ");
    assert!(ran.stdout.starts_with(&head), "{}", ran.stdout);
    for line in ["+    \"haft\": {\n", &format!("+      \"command\": {program},\n"), "   },\n"] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains(SECRET) && !ran.stdout.contains("\n-"), "{}", ran.stdout);
    assert_eq!(desk.text(".cursor/mcp.json"), CURSOR);
    assert!(!desk.path("home").exists(), "nothing is kept");
    let told = desk.done(&["connect", "cursor", "--dry-run", "--json"]).json();
    assert_eq!((&told["state"], &told["dry_run"]), (&json!("connected"), &json!(true)));
    assert_eq!(told["difference"].as_str().unwrap(), ran.stdout);
    desk.done(&["connect", "cursor"]);
    let written = desk.text(".cursor/mcp.json");
    let ran = desk.done(&["connect", "cursor", "--undo", "--dry-run"]);
    assert!(
        ran.stdout.contains("-    \"haft\": {\n") && !ran.stdout.contains("\n+ "),
        "{}",
        ran.stdout
    );
    assert_eq!(desk.text(".cursor/mcp.json"), written);
}

#[test]
fn a_file_that_was_made_goes_again_with_its_folder() {
    let desk = Desk::new();
    let ran = desk.done(&["connect", "vscode", "--project"]);
    assert!(ran.stderr.contains("names haft by its path on this machine"), "{}", ran.stderr);
    assert!(desk.path("project/.vscode/mcp.json").is_file());
    desk.done(&["connect", "vscode", "--project", "--undo"]);
    assert!(!desk.path("project/.vscode").exists());
    // A folder that was there stays, and a file that somebody else uses too.
    fs::create_dir(desk.path("project/.gemini")).unwrap();
    desk.done(&["connect", "gemini", "--project"]);
    desk.done(&["connect", "gemini", "--project", "--undo"]);
    assert_eq!(super::common::names(&desk.path("project/.gemini")), [""; 0]);
    desk.done(&["connect", "claude-code"]);
    let mode = fs::metadata(desk.path(".claude.json")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "what a client keeps there later may be secret");
    let text = desk.text(".claude.json").replacen('{', "{\n  \"theme\": \"dark\",", 1);
    desk.write(".claude.json", &text);
    let told = desk.done(&["connect", "claude-code", "--undo", "--json"]).json();
    assert_eq!(told["state"], "taken_out");
    assert_eq!(desk.text(".claude.json"), "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {}\n}\n");
    // One that says nothing is as good as none.
    desk.write("project/.mcp.json", "\n");
    desk.done(&["connect", "claude-code", "--project"]);
    desk.done(&["connect", "claude-code", "--project", "--undo"]);
    assert_eq!(desk.text("project/.mcp.json"), "\n");
}

#[test]
fn what_others_changed_meanwhile_stays() {
    let desk = Desk::new();
    for (client, file, more) in [
        ("cursor", ".cursor/mcp.json", ("\"dark\"", "\"light\", // now")),
        ("codex", ".codex/config.toml", ("\"x\" # mine", "\"y\" # theirs")),
    ] {
        let before = some_settings(file);
        desk.write(file, &before);
        desk.done(&["connect", client]);
        desk.write(file, &desk.text(file).replace(more.0, more.1));
        let told = desk.done(&["connect", client, "--undo", "--json"]).json();
        assert_eq!(told["state"], "taken_out");
        assert_eq!(desk.text(file), before.replace(more.0, more.1));
    }
    // Two entries of ours, of which the first goes first.
    desk.done(&["policy", "profile", "add", "work", "*"]);
    let file = ".cursor/mcp.json";
    desk.write(file, CURSOR);
    desk.done(&["connect", "cursor"]);
    desk.done(&["connect", "cursor", "--name", "work", "--profile", "work"]);
    desk.done(&["connect", "cursor", "--undo"]);
    assert!(desk.text(file).contains("\"work\": {") && !desk.text(file).contains("\"haft\": {"));
    desk.done(&["connect", "cursor", "--name", "work", "--undo"]);
    assert_eq!(desk.text(file), CURSOR);
    // Somebody has taken it out themselves.
    desk.done(&["connect", "cursor"]);
    desk.write(file, CURSOR);
    let told = desk.done(&["connect", "cursor", "--undo", "--json"]).json();
    assert_eq!((&told["state"], &told["backup"]), (&json!("absent"), &Value::Null));
}

#[test]
fn an_entry_of_ours_is_brought_up_to_date_and_what_was_before_is_not_forgotten() {
    let desk = Desk::new();
    let file = ".cursor/mcp.json";
    desk.write(file, CURSOR);
    desk.done(&["policy", "profile", "add", "work", "*"]);
    desk.done(&["connect", "cursor"]);
    let told = desk.done(&["connect", "cursor", "--profile", "work", "--json"]).json();
    assert_eq!(told["state"], "updated");
    assert!(desk.text(file).contains("[\"mcp\", \"--profile\", \"work\", \"--home\""));
    assert_eq!(fs::read_to_string(told["backup"].as_str().unwrap()).unwrap(), CURSOR);
    let undone = desk.done(&["connect", "cursor", "--undo", "--json"]).json();
    assert_eq!(undone["state"], "restored");
    assert_eq!(desk.text(file), CURSOR);
    // One that another home has written, or nobody knows when: what the client keeps in it stays until it goes.
    let theirs = "{\"mcpServers\": {\"haft\": {\"command\": \"/old/haft\", \"args\": [\"mcp\"], \"disabled\": true}}}\n";
    desk.write(file, theirs);
    let told = desk.done(&["connect", "cursor", "--json"]).json();
    assert_eq!(told["state"], "updated");
    assert!(desk.text(file).contains("\"disabled\": true"), "{}", desk.text(file));
    assert_eq!(fs::read_to_string(told["backup"].as_str().unwrap()).unwrap(), theirs);
    let ran = desk.done(&["connect", "cursor"]);
    assert!(ran.stderr.contains("warning: `haft` is switched off in"), "{}", ran.stderr);
    desk.done(&["connect", "cursor", "--undo"]);
    assert_eq!(desk.text(file), "{\"mcpServers\": {}}\n");
}

#[test]
fn the_mode_of_a_file_stays() {
    let desk = Desk::new();
    desk.write(".cursor/mcp.json", CURSOR);
    let path = desk.path(".cursor/mcp.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    for arguments in [&["connect", "cursor"][..], &["connect", "cursor", "--undo"]] {
        desk.done(arguments);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
    assert_eq!(
        super::common::names(&desk.path(".cursor")),
        ["mcp.json"],
        "nothing is left beside it"
    );
}

#[test]
fn what_cannot_be_written_is_told_and_left_as_it_is() {
    let desk = Desk::new();
    let file = ".cursor/mcp.json";
    let refused = |arguments: &[&str], code: i32, words: &[&str]| {
        let before = fs::read_to_string(desk.path(file)).ok();
        for more in [&[][..], &["--dry-run"]] {
            let ran = desk.haft(&[&["connect"], arguments, more].concat());
            assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
            for words in words {
                assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
            }
        }
        assert_eq!(fs::read_to_string(desk.path(file)).ok(), before);
        assert!(!desk.path("home/clients").exists(), "nothing is kept");
    };
    // An entry of that name that is not ours.
    for theirs in [
        json!({"command": "node", "args": ["x.js"]}),
        json!({"url": "https://a.example/mcp"}),
        json!({"command": "haft", "args": ["mcp", "--only", "mcpb:x"]}),
        json!({}),
        json!(7),
    ] {
        desk.write(file, &json!({"mcpServers": {"haft": theirs}}).to_string());
        refused(&["cursor"], 5, &["`haft` in", "starts something else", "hint: --name gives"]);
        refused(&["cursor", "--undo"], 5, &["starts something else"]);
    }
    // Files that nobody can read.
    for (text, words) in [
        ("{\n  \"mcpServers\": {,}\n}", "(line 2)"),
        ("{\"mcpServers\": []}", "`mcpServers` is a JSON array"),
        ("[]", "it is a JSON array, and settings are an object"),
        ("{} {}", "cannot be read"),
    ] {
        desk.write(file, text);
        refused(&["cursor"], 2, &["mcp.json` cannot be read", words]);
    }
    fs::write(desk.path(file), b"{\"a\": \"\xff\"}").unwrap();
    refused(&["cursor"], 2, &["is no text"]);
    desk.write(".codex/config.toml", "a = 1\nb = [\n");
    refused(&["codex"], 2, &["config.toml` cannot be read", "line"]);
    refused(&["--undo"], 2, &["no client is named", "claude-code, cursor"]);
    // Links out of bounds, to nowhere, and what is no file.
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("settings.json"), "{}").unwrap();
    fs::create_dir(desk.path(".gemini")).unwrap();
    symlink(outside.path().join("settings.json"), desk.path(".gemini/settings.json")).unwrap();
    refused(
        &["gemini"],
        2,
        &["is a link that leads out of its place, to", "hint: put a file there"],
    );
    desk.write("elsewhere.json", "{}");
    symlink(desk.path("elsewhere.json"), desk.path("project/.mcp.json")).unwrap();
    refused(&["claude-code", "--project"], 2, &["is a link that leads out of its place"]);
    symlink(outside.path(), desk.path("project/.cursor")).unwrap();
    refused(&["cursor", "--project"], 2, &["is a link that leads out of its place"]);
    symlink(outside.path().join("nothing"), desk.path("project/.vscode")).unwrap();
    refused(&["vscode", "--project"], 3, &["there is no folder"]);
    symlink("nowhere", desk.path(".claude.json")).unwrap();
    refused(&["claude-code"], 3, &["failed to read", "it is a link that leads nowhere"]);
    fs::create_dir_all(desk.path("project/.codex/config.toml")).unwrap();
    refused(&["codex", "--project"], 2, &["is no file"]);
    assert_eq!(fs::read_to_string(outside.path().join("settings.json")).unwrap(), "{}");
    // Folders that are not there.
    refused(
        &["vscode"],
        3,
        &[
            "there is no folder",
            "hint: start vscode once, or `mkdir -p ",
            "hint: --project writes `.vscode/mcp.json`",
        ],
    );
    refused(&["claude-desktop"], 3, &["where claude-desktop keeps its settings"]);
    // What was typed.
    refused(&["cursr"], 2, &["did you mean `cursor`?"]);
    refused(&["emacs"], 2, &["there are claude-desktop, claude-code"]);
    refused(&["cursor", "--name", "a b"], 2, &["a name has 1 to 64 letters"]);
    refused(&["cursor", "--undo", "--profile", "x"], 2, &["cannot be used with"]);
}

#[test]
fn a_link_within_bounds_is_written_where_it_leads() {
    let desk = Desk::new();
    desk.write("dotfiles/codex.toml", "model = \"x\"\n");
    fs::create_dir(desk.path(".codex")).unwrap();
    symlink("../dotfiles/codex.toml", desk.path(".codex/config.toml")).unwrap();
    desk.done(&["connect", "codex"]);
    assert!(desk.path(".codex/config.toml").is_symlink());
    assert!(desk.text("dotfiles/codex.toml").contains("[mcp_servers.haft]"));
    desk.done(&["connect", "codex", "--undo"]);
    assert_eq!(desk.text("dotfiles/codex.toml"), "model = \"x\"\n");
}

#[test]
fn where_nothing_can_be_kept_nothing_is_written() {
    let desk = Desk::new();
    desk.write(".cursor/mcp.json", CURSOR);
    desk.write("home/clients", "in the way");
    let ran = desk.haft(&["connect", "cursor", "--json"]);
    assert_eq!(ran.code, 6, "{}", ran.stdout);
    assert_eq!(ran.json()["error"]["code"], "unavailable");
    assert_eq!(desk.text(".cursor/mcp.json"), CURSOR);
    // The copy is the owner's alone, so nobody else may be able to put another there.
    fs::set_permissions(desk.path("home"), fs::Permissions::from_mode(0o777)).unwrap();
    let ran = desk.haft(&["connect", "cursor"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert_eq!(desk.text(".cursor/mcp.json"), CURSOR);
}
