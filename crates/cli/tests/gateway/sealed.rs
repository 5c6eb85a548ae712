//! Secrets behind a gateway that nobody watches: the vault opens by what was passed on, and where it does not, the call is
//! refused at once and says what its owner can do.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Desk, write_below};
use crate::gate::{Gate, OPEN, home, words};

const PACKAGE: &str = "capability:demo.tool";

/// A home with a tool that tells how long its one secret is, which this reference leads to.
pub(crate) fn with_secret(reference: &str) -> Desk {
    let desk = home(&[], OPEN);
    let manifest = json!({
        "id": "demo.tool", "type": "tool", "version": "1.0.0", "description": "A test",
        "origin": { "source": "local", "digest": "0".repeat(64) },
        "interfaces": { "inputs": { "type": "object" }, "outputs": {} },
        "permissions": { "network": "deny", "filesystem": "none", "devices": [] },
        "runtime": {
            "sandbox": "process", "resources": { "cpu": "1", "memory": "256Mi" }, "timeout_seconds": 20,
        },
        "trust_level": "local",
        "secrets": [{ "name": "X", "ref": reference }],
        "implementation": {
            "kind": "command", "command": { "argv": ["sh", "-c", "echo \"{\\\"length\\\": ${#X}}\""] },
        },
    });
    let file = write_below(desk.0.path(), "pkg/manifest.json", &manifest.to_string());
    keep(&desk, "KEPT");
    desk.done(&["install", &file, "--yes"]);
    desk
}

fn keep(desk: &Desk, name: &str) {
    let kept = desk.haft_with(&["secret", "set", PACKAGE, name], Some("five!"));
    assert_eq!(kept.code, 0, "{}", kept.stderr);
}

/// The same, kept in a vault with a passphrase.
fn sealed() -> Desk {
    let desk = with_secret("secret://KEPT");
    let set = ["secret", "passphrase", "--passphrase-stdin"];
    let set = desk.haft_with(&set, Some("open sesame\n"));
    assert_eq!(set.code, 0, "{}", set.stderr);
    desk
}

/// A gateway that is started as a manager of services does, which passes this on.
fn started_by_a_manager(desk: &Desk, passphrase: &str) -> Gate {
    let folder = desk.path("credentials");
    write_below(&folder, "haft-vault", passphrase);
    let variables = [("CREDENTIALS_DIRECTORY", folder.to_str().unwrap())];
    Gate::open_with(desk, &["--without-token"], &variables)
}

fn call(gate: &Gate) -> Value {
    gate.call("/mcp", "demo_tool", json!({}))
}

/// What an agent and a program are told of a call that has to be refused with this fix.
pub(crate) fn assert_refused(gate: &Gate, code: &str, fix: &str) {
    let told = call(gate);
    let error = &told["structuredContent"]["error"];
    assert_eq!((&told["isError"], &error["code"]), (&json!(true), &json!(code)), "{told}");
    assert_eq!(error["who"], "owner");
    let grant = error["grant"].as_str().unwrap();
    assert!(grant.contains(fix), "{grant}");
    assert_eq!(error["retry"], "Make the same call again once that is done.");
    assert!(words(&told).contains(grant), "{told}");
    assert!(!words(&told).contains("policy.toml") || fix.contains("policy.toml"), "{told}");
    let plain = gate.post("/v1/tools/demo_tool/call", &[], &json!({})).last();
    assert_eq!((&plain["error"]["code"], &plain["error"]["grant"]), (&json!(code), &json!(grant)));
}

pub(crate) fn assert_made(gate: &Gate) {
    let told = call(gate);
    assert_eq!(told["structuredContent"], json!({ "length": 5 }), "{told}");
}

#[test]
fn a_vault_that_nobody_opened_is_told_with_what_opens_it() {
    let desk = sealed();
    let gate = Gate::open(&desk, &["--without-token"]);
    assert_refused(&gate, "denied", "`LoadCredentialEncrypted=haft-vault:FILE`");
    // The other way that is named is enough, and nothing is started again for it.
    let (code, screen) = desk.at_terminal(&["open sesame"], &["secret", "passphrase", "--remove"]);
    assert_eq!(code, Some(0), "{screen}");
    assert_made(&gate);
}

#[test]
fn a_vault_is_opened_by_the_credential_of_a_service() {
    let desk = sealed();
    assert_made(&started_by_a_manager(&desk, "open sesame\n"));
    let gate = started_by_a_manager(&desk, "another\n");
    assert_refused(
        &gate,
        "denied",
        "what opens the vault for the gateway is another than its passphrase",
    );
}

#[test]
fn what_the_console_has_done_opens_the_vault_as_the_gateway_does() {
    let desk = sealed();
    let folder = desk.path("credentials");
    // As the console starts it; what it has from whoever started the gateway is passed on.
    let set = |passphrase: &str| {
        write_below(&folder, "haft-vault", passphrase);
        let mut command = assert_cmd::Command::cargo_bin("haft").unwrap();
        command.arg("--home").arg(desk.path("home"));
        command.args(["--json", "--non-interactive", "secret", "set", PACKAGE, "OTHER"]);
        command.env("HAFT_ASKED_BY", "console").env("CREDENTIALS_DIRECTORY", &folder);
        let output = command.write_stdin("six").output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, told) = set("another\n");
    assert_eq!(code, Some(4), "{told}");
    let (code, told) = set("open sesame\n");
    assert_eq!(code, Some(0), "{told}");
    // Where the owner has to show that they are there, that does not do it.
    let wanted = format!("{OPEN}owner_presence = \"passphrase\"\n");
    write_below(&desk.path("home"), "policy.toml", &wanted);
    let (code, told) = set("open sesame\n");
    assert!(code == Some(4) && told.contains("typed at a terminal"), "{told}");
}

#[test]
fn what_keeps_a_secret_from_a_call_is_told_with_what_gives_it() {
    let set_mode = |path: &Path, mode| {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    let desk = with_secret("secret://OTHER");
    let gate = Gate::open(&desk, &["--without-token"]);
    assert_refused(&gate, "missing_input", &format!("`haft secret set {PACKAGE} OTHER` keeps it"));
    keep(&desk, "OTHER");
    assert_made(&gate);
    let vault = desk.path("home/vault");
    set_mode(&vault, 0o755);
    assert_refused(
        &gate,
        "denied",
        &format!("`chmod go-rwx {}` keeps them from it", vault.display()),
    );
    set_mode(&vault, 0o700);
    assert_made(&gate);
    drop(gate);
    let folder = Desk::new();
    let file = write_below(folder.0.path(), "key", "five!");
    let desk = with_secret(&format!("file://{file}"));
    let gate = Gate::open(&desk, &["--without-token"]);
    assert_refused(
        &gate,
        "denied",
        &format!("`haft grant {PACKAGE} --read {file}` lets it be given"),
    );
    desk.done(&["grant", PACKAGE, "--read", &file]);
    assert_made(&gate);
    set_mode(Path::new(&file), 0o666);
    assert_refused(&gate, "denied", &format!("`chmod go-w {file}` keeps them from it"));
    drop(gate);
    let desk = with_secret("env://OF_THE_OWNER");
    let gate = Gate::open_with(&desk, &["--without-token"], &[("OF_THE_OWNER", "five!")]);
    let line = "environment = [\"OF_THE_OWNER\"]";
    assert_refused(&gate, "denied", &format!("`{line}` below `[secrets]` in policy.toml"));
    write_below(&desk.path("home"), "policy.toml", &format!("{OPEN}[secrets]\n{line}\n"));
    set_mode(&desk.path("home/policy.toml"), 0o600);
    assert_made(&gate);
}
