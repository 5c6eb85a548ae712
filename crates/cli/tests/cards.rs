//! What is on a card, and what is told once it was accepted.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{Desk, greeting, repository, write_below};
use serde_json::{Value, json};

fn example(name: &str) -> String {
    repository().join("examples").join(name).to_str().unwrap().to_owned()
}

/// The rows of a card that begin so, without the name.
fn rows(text: &str, name: &str) -> Vec<String> {
    let name = format!("  {name:<13} ");
    text.lines().filter_map(|line| line.strip_prefix(&name)).map(str::to_owned).collect()
}

#[test]
fn a_tool_that_is_asked_elsewhere_says_where_and_what_its_calls_sign_in_with() {
    let desk = Desk::new();
    let card = desk.done(&["show", &example("mcpkg/http-status")]).stdout;
    assert_eq!(rows(&card, "reaches"), ["GET https://example.com/haft/status"]);
    assert_eq!(
        rows(&card, "asks for"),
        [
            "STATUS_TOKEN (secret, wanted by its calls): A token that may read the status of services. (https://example.com/haft/status/tokens)"
        ]
    );
    assert!(rows(&card, "walls")[0].starts_with("nothing of it runs here"), "{card}");
    let ran = desk.done(&["install", &example("mcpkg/http-status"), "--yes"]);
    assert!(ran.stderr.contains("Its calls want STATUS_TOKEN"), "{}", ran.stderr);
    // Once it is kept nobody speaks of it; a bare id stands for what is installed.
    let kept =
        desk.haft_with(&["secret", "set", "demo.http.status", "STATUS_TOKEN"], Some("t0ken"));
    assert_eq!(kept.code, 0, "{}", kept.stderr);
    let ran = desk.done(&["install", &example("mcpkg/http-status"), "--yes"]);
    assert!(!ran.stderr.contains("Its calls want"), "{}", ran.stderr);
    desk.refused(&["secret", "set", "demo.nobody", "X"], 2, "its dialect is missing");
}

#[test]
fn the_steps_of_a_chain_are_shown_and_those_that_are_not_here_told() {
    let desk = Desk::new();
    let pipeline = example("mcpkg/pipeline");
    let card = desk.done(&["show", &pipeline, "--json"]).json()["cards"][0].clone();
    let steps: Vec<_> =
        card["steps"].as_array().unwrap().iter().map(|step| step.as_str().unwrap()).collect();
    assert!(steps.iter().any(|step| step.ends_with(": demo.text.clean")), "{steps:?}");
    let missing = |ran: &common::Ran| ran.stderr.matches("which is not installed").count();
    assert_eq!(missing(&desk.done(&["install", &pipeline, "--yes"])), 2);
    for step in ["mcpkg/text-clean", "mcpkg/text-stats"] {
        desk.done(&["install", &example(step), "--yes", "-q"]);
    }
    assert_eq!(missing(&desk.done(&["install", &pipeline, "--yes"])), 0);
}

#[test]
fn commands_are_shown_as_they_would_be_typed_and_nothing_as_json() {
    let desk = Desk::new();
    let mut manifest = greeting("shown");
    manifest["runtime"]["entrypoint"]["command"] = json!(["echo", "a b", "it's"]);
    manifest["smoke"]["command"] = json!(["sh", "-c", "exit 0"]);
    write_below(&desk.path("tool"), "manifest.json", &manifest.to_string());
    let card = desk.done(&["show", "./tool"]).stdout;
    assert!(rows(&card, "runs").contains(&r"echo 'a b' 'it'\''s'".to_owned()), "{card}");
    assert_eq!(rows(&card, "acquired"), ["it must be there already: binary-on-path echo"]);
    assert_eq!(rows(&card, "private data"), ["reads none, transmits none, persists none"]);
    let smoke = &rows(&card, "smoke test")[0];
    assert!(smoke.contains("command sh -c 'exit 0'"), "{smoke}");
    assert!(smoke.contains("success (exit_code 0)"), "{smoke}");
    // A smoke test that fails shows what was printed, line by line.
    manifest["smoke"]["command"] = json!(["sh", "-c", "echo one; echo two >&2; exit 3"]);
    write_below(&desk.path("tool"), "manifest.json", &manifest.to_string());
    let ran = desk.haft(&["install", "./tool", "--yes"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("  it printed:\n    one\n    two\n"), "{}", ran.stderr);
}

#[test]
fn what_is_installed_is_shown_without_asking_anybody() {
    let desk = Desk::new();
    desk.echo();
    desk.done(&["install", "./echo", "--yes", "-q"]);
    std::fs::remove_dir_all(desk.path("echo")).unwrap();
    let ran = desk.done(&["show", "demo.echo"]);
    assert!(ran.stderr.contains("It is installed"), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("mcpkg:demo.echo 0.1.0"), "{}", ran.stdout);
    assert_eq!(rows(&ran.stdout, "runs"), ["python3 ./echo.py", "node ./echo.mjs"]);
    // Another version, or another place, is not what is installed.
    for words in [&["demo.echo@9.0.0"][..], &["demo.echo", "--registry", "http://127.0.0.1:9"]] {
        let ran = desk.haft(&[&["show"][..], words].concat());
        assert_ne!(ran.code, 0, "{words:?}: {}", ran.stdout);
    }
}

#[test]
fn a_value_that_does_not_fit_is_refused_before_a_secret_is_asked_for() {
    let desk = Desk::new();
    let mut manifest = greeting("shown");
    manifest["kill_switch"] = json!({"kind": "manual", "instructions": "Ask for another key."});
    manifest["env"] = json!([
        {"name": "KEY", "secret": true, "required": true, "prompt": "A key."},
        {"name": "SIDES", "secret": false, "required": true, "prompt": "How many.", "validation_regex": "^[0-9]+$"},
    ]);
    write_below(&desk.path("tool"), "manifest.json", &manifest.to_string());
    let typed = ["install", "./tool", "--yes", "--env", "SIDES=many"];
    let (code, screen) = desk.at_terminal(&["s3cret"], &typed);
    assert_eq!(code, Some(2), "{screen}");
    assert!(screen.contains("the value of `SIDES` does not fit"), "{screen}");
    assert!(!screen.contains("Value of `KEY`"), "{screen}");
    // What is no secret is seen while it is typed.
    let (code, screen) = desk.at_terminal(&["s3cret", "6"], &typed[..3]);
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("Value of `SIDES` = \n6"), "{screen}");
    assert!(!screen.contains("s3cret"), "{screen}");
}

#[test]
fn what_is_wrong_with_a_manifest_is_told_in_quiet_too() {
    let desk = Desk::new();
    write_below(&desk.path("tool"), "manifest.json", r#"{"toolId": 7}"#);
    for words in [&["install", "./tool", "--yes"][..], &["install", "./tool", "--yes", "-q"]] {
        let ran = desk.haft(words);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains("manifest.json:1:"), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn a_folder_that_is_given_as_a_value_is_not_seen_before_it_is_granted() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.path("notes")).unwrap();
    let notes = desk.path("notes").to_str().unwrap().to_owned();
    let value = format!("folders=[{}]", Value::from(notes.clone()));
    let ran = desk.done(&["install", &example("mcpb/line-finder"), "--yes", "--env", &value]);
    let words = format!(
        "It does not see {notes} yet: `haft grant mcpb:line-finder --read {notes}` lets it"
    );
    assert!(ran.stderr.contains(&words), "{}", ran.stderr);
}

#[test]
fn addresses_of_other_schemes_and_folders_to_import_are_told_as_such() {
    let desk = Desk::new();
    desk.refused(&["install", "ftp://example.com/x"], 2, "an address begins with https://");
    std::fs::create_dir_all(desk.path("folder")).unwrap();
    desk.refused(&["import", "./folder"], 2, "is a folder, and what is imported is a file");
    desk.refused(&["sync", "./folder"], 2, "failed to read `./folder`");
    desk.refused(&["sync", "./nothing"], 3, "failed to read `./nothing`");
    let ran = desk.done(&["trust", "--list"]);
    assert!(ran.stderr.contains("no project is trusted"), "{}", ran.stderr);
    assert!(desk.done(&["update"]).stderr.contains("nothing is installed"));
}

#[test]
fn a_card_that_grants_something_wants_the_owner_where_the_policy_says_so() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("home")).unwrap();
    let policy = desk.path("home/policy.toml");
    std::fs::write(&policy, "[approval]\nowner_presence = \"passphrase\"\n").unwrap();
    let ran = desk.haft(&["--non-interactive", "install", &example("mcpkg/http-status"), "--yes"]);
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("wants the passphrase"), "{}", ran.stderr);
    desk.done(&["--non-interactive", "install", &example("mcpkg/echo"), "--yes", "-q"]);
}

#[test]
fn what_the_policy_no_longer_trusts_is_not_called() {
    let desk = Desk::new();
    desk.echo();
    desk.done(&["install", "./echo", "--yes", "-q"]);
    let policy = desk.path("home/policy.toml");
    std::fs::write(&policy, "[trust]\nallow = [\"verified\"]\n").unwrap();
    desk.refused(
        &["call", "demo.echo", r#"{"message":"hi"}"#],
        4,
        "trust_level not allowed by policy: local",
    );
    for (sources, words) in [
        ("pip = [\"ftp://x\"]", "ftp://x"),
        ("npm = \"nonsense\"", "nonsense"),
        ("hosts = [\"bad host\"]", "bad host"),
        ("run_scripts = [\"gem:x\"]", "gem:x"),
        ("certificates = \"/no/such.pem\"", "/no/such.pem"),
    ] {
        std::fs::write(&policy, format!("[sources]\n{sources}\n")).unwrap();
        desk.refused(&["policy", "check"], 2, words);
    }
}

#[test]
fn what_a_capability_wants_of_the_machine_is_on_its_card() {
    let desk = Desk::new();
    let path = repository().join("examples/capability/greet");
    let card = desk.done(&["show", path.to_str().unwrap()]).stdout;
    let limits = &rows(&card, "limits")[0];
    assert!(limits.contains("cpu ") && limits.contains("memory "), "{card}");
    let manifest = json!({
        "id": "acme.kept", "type": "tool", "version": "1.0.0", "description": "A test.",
        "origin": {"source": "local", "digest": "0".repeat(64)},
        "interfaces": {"inputs": {"type": "object"}, "outputs": {"type": "object"}},
        "permissions": {"network": "deny", "filesystem": "write", "devices": []},
        "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "64Mi"}, "timeout_seconds": 10},
        "secrets": [{"name": "GH", "ref": "env://GH_TOKEN"}],
        "trust_level": "local",
        "implementation": {"kind": "command", "command": {"argv": ["cat"]}},
        "execution": {"channel": "vdi_vpn"},
    });
    write_below(&desk.path("kept"), "manifest.json", &manifest.to_string());
    let card = desk.done(&["show", "./kept/manifest.json"]).stdout;
    assert_eq!(rows(&card, "limits"), ["cpu 1, memory 64Mi"]);
    assert_eq!(rows(&card, "folders"), ["those that you grant, to write"]);
    assert!(rows(&card, "driven")[0].contains("vdi_vpn"), "{card}");
    assert_eq!(rows(&card, "asks for"), ["GH (secret, kept at env://GH_TOKEN)"]);
}
