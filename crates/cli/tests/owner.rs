//! What the owner allows and keeps: grants, secrets, approvals, the policy and the log.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::{Path, PathBuf};

use common::{Ran, repository, run_in};
use serde_json::{Value, json};

/// A home of its own, and a folder for packages.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::Builder::new().prefix("haft-owner-").tempdir_in("/var/tmp").unwrap())
    }

    fn home(&self) -> PathBuf {
        self.0.path().join("home")
    }

    fn write(&self, name: &str, text: &str) -> String {
        common::write_below(self.0.path(), name, text)
    }

    fn run(&self, arguments: &[&str], stdin: Option<&[u8]>) -> Ran {
        let home = self.home();
        let mut all = vec!["--home", home.to_str().unwrap(), "--non-interactive"];
        all.extend(arguments);
        run_in(&repository(), &all, stdin)
    }

    fn done(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments, None);
        assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        ran
    }

    /// A capability whose command is a shell script, with these permissions and secrets.
    fn capability(&self, script: &str, permissions: &Value, secrets: &Value) -> String {
        let manifest = json!({
            "id": "demo.tool", "type": "tool", "version": "1.0.0", "description": "A test",
            "origin": {"source": "local", "digest": "0".repeat(64)},
            "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
            "permissions": permissions,
            "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "256Mi"},
                "timeout_seconds": 20},
            "trust_level": "local",
            "secrets": secrets,
            "implementation": {"kind": "command", "command": {"argv": ["sh", "-c", script]}}
        });
        self.write("pkg/manifest.json", &manifest.to_string())
    }

    fn call(&self, manifest: &str) -> Ran {
        self.run(&["call", "--from", manifest, "demo.tool", "{}"], None)
    }
}

const PACKAGE: &str = "capability:demo.tool";

fn closed() -> Value {
    json!({"network": "deny", "filesystem": "none", "devices": []})
}

fn open() -> Value {
    json!({"network": "allowlist", "network_allowlist": ["api.example.com"],
        "filesystem": "write", "devices": []})
}

#[test]
fn a_folder_is_there_while_it_is_granted() {
    let desk = Desk::new();
    let file = desk.write("data/note.txt", "hello");
    let folder = Path::new(&file).parent().unwrap().to_str().unwrap().to_owned();
    let script = format!("cat {file} | sed 's/.*/\"&\"/'");
    let manifest = desk.capability(&script, &open(), &json!([]));
    assert_eq!(desk.call(&manifest).code, 1);
    desk.done(&["grant", PACKAGE, "--read", &folder]);
    assert_eq!(desk.call(&manifest).json(), json!("hello"));
    let package = Path::new(&manifest).parent().unwrap().display();
    let granted = format!("from {package}\nread {folder}\n");
    assert_eq!(desk.done(&["grant", PACKAGE]).stdout, granted);
    desk.done(&["ungrant", PACKAGE, "--read", &folder]);
    assert_eq!(desk.call(&manifest).code, 1);
    // What the package says it does not need, it does not get.
    desk.done(&["grant", PACKAGE, "--read", &folder]);
    let modest = desk.capability(&script, &closed(), &json!([]));
    assert_eq!(desk.call(&modest).code, 1);
}

#[test]
fn a_device_is_there_while_it_is_granted_and_the_package_asks_for_it() {
    let desk = Desk::new();
    let devices = ["/dev/kmsg", "/dev/autofs", "/dev/fuse", "/dev/net/tun"];
    let Some(device) = devices.into_iter().find(|device| Path::new(device).exists()) else {
        return;
    };
    let script = format!("test -c {device} && echo true || echo false; echo x > /dev/null");
    let asking = json!({"network": "deny", "filesystem": "none", "devices": [device]});
    let manifest = desk.capability(&script, &asking, &json!([]));
    assert_eq!(desk.call(&manifest).json(), json!(false));
    desk.done(&["grant", PACKAGE, "--device", device]);
    assert_eq!(desk.call(&manifest).json(), json!(true));
    let modest = desk.capability(&script, &closed(), &json!([]));
    assert_eq!(desk.call(&modest).json(), json!(false));
    let asking = desk.capability(&script, &asking, &json!([]));
    desk.done(&["ungrant", PACKAGE, "--device", device]);
    assert_eq!(desk.call(&asking).json(), json!(false));
}

#[test]
fn what_was_blocked_is_told_with_the_command_that_allows_it() {
    let desk = Desk::new();
    let script = "curl -sS -m 5 http://127.0.0.1:9/ >/dev/null 2>&1; curl -sS -m 5 https://other.example.net/ >/dev/null 2>&1; echo '{}'";
    let manifest = desk.capability(script, &open(), &json!([]));
    let ran = desk.call(&manifest);
    let wanted = format!("haft grant {PACKAGE} --host other.example.net:443");
    assert!(ran.stderr.contains(&wanted), "{}{}", ran.stdout, ran.stderr);
    let learned = desk.done(&["grant", "--learn", PACKAGE]).stdout;
    assert!(learned.lines().any(|line| line == wanted), "{learned}");
    let record = desk.done(&["audit", "--json"]).stdout;
    let record: Value = serde_json::from_str(record.lines().last().unwrap()).unwrap();
    assert_eq!(record["blocked"][0]["value"], "other.example.net:443", "{record}");
}

#[test]
fn grants_are_checked_before_they_are_kept() {
    let desk = Desk::new();
    for (arguments, code, words) in [
        (vec!["grant", "demo.tool", "--env", "X"], 2, "write the dialect and the id"),
        (vec!["grant", PACKAGE, "--host", "https://x.example/"], 2, "is a URL"),
        (vec!["grant", PACKAGE, "--read", "/no/such/place"], 3, "failed to find"),
        (vec!["grant", PACKAGE, "--write", "/"], 2, "cannot be granted"),
        (vec!["grant", PACKAGE, "--device", "/etc/passwd"], 2, "no device"),
        (vec!["grant", PACKAGE, "--env", "A=b"], 2, "no name of a variable"),
        (vec!["ungrant", PACKAGE, "--host", "x.example"], 3, "is not granted"),
        (vec!["ungrant", PACKAGE], 2, "nothing to take back"),
    ] {
        let ran = desk.run(&arguments, None);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(desk.done(&["grant", PACKAGE]).stdout, "");
}

/// A value that must be found nowhere.
const CANARY: &str = "c4n4ry-7Zq!x/9Kp";

#[test]
fn a_secret_reaches_its_tool_and_nothing_else() {
    let desk = Desk::new();
    let secrets = json!([{"name": "TOKEN", "ref": "secret://TOKEN"}]);
    let script = "printf '{\"length\":%s,\"said\":\"%s\",\"coded\":\"%s\"}' ${#TOKEN} \"$TOKEN\" $(printf %s \"$TOKEN\" | base64)";
    let manifest = desk.capability(script, &closed(), &secrets);
    let missing = desk.call(&manifest);
    assert_eq!(missing.code, 2, "{}", missing.stderr);
    assert!(missing.stderr.contains("Missing required secret: TOKEN"), "{}", missing.stderr);
    let hint = format!("`haft secret set {PACKAGE} TOKEN` keeps it");
    assert!(missing.stderr.contains(&hint), "{}", missing.stderr);

    let kept =
        desk.run(&["secret", "set", PACKAGE, "TOKEN"], Some(format!("{CANARY}\n").as_bytes()));
    assert_eq!(kept.code, 0, "{}", kept.stderr);
    let listed = desk.done(&["secret", "list"]).stdout;
    assert!(listed.starts_with(&format!("{PACKAGE} TOKEN 20")), "{listed}");
    let result = desk.call(&manifest).json();
    assert_eq!(result["length"], CANARY.len());
    assert_eq!(result["said"], "[secret TOKEN]");
    // The last letters of base64 hold bits of what follows, so they stay.
    assert!(result["coded"].as_str().unwrap().starts_with("[secret TOKEN]"), "{result}");
    // Another package is not given it.
    let text = std::fs::read_to_string(&manifest).unwrap().replace("demo.tool", "demo.other");
    let other = desk.write("other/manifest.json", &text);
    let denied = desk.run(&["call", "--from", &other, "demo.other", "{}"], None);
    assert_eq!(denied.code, 2, "{}", denied.stderr);

    desk.done(&["secret", "rotate"]);
    assert_eq!(desk.call(&manifest).json()["length"], CANARY.len());
    let told = desk.done(&["audit", "--json"]).stdout;
    assert!(!told.contains(CANARY));
    assert_nowhere(&desk.home());
    desk.done(&["secret", "rm", PACKAGE, "TOKEN"]);
    assert_eq!(desk.call(&manifest).code, 2);
}

/// Looks through every file of a folder for the canary, as it is and in hexadecimal and base64.
fn assert_nowhere(folder: &Path) {
    use std::fmt::Write;
    let hex = CANARY.bytes().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    // The middle of its base64, whatever it is aligned to, is among these.
    let coded = ["YzRuNHJ5LTdacSF4LzlL", "M0bjRyeS03WnEheC85S", "jNG40cnktN1pxIXgvOU"];
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            assert_nowhere(&path);
            continue;
        }
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).into_owned();
        for form in [CANARY, &hex].into_iter().chain(coded) {
            assert!(!text.contains(form), "{form} in {}", path.display());
        }
    }
}

#[test]
fn references_outside_the_vault_need_the_owners_word() {
    let desk = Desk::new();
    let file = desk.write("token.txt", CANARY);
    for (reference, words) in [
        ("env://HOME".to_owned(), "your policy does not name it"),
        (format!("file://{file}"), "was not granted for reading"),
        ("vault://kv/a#b".to_owned(), "your policy does not name it"),
        ("keyring://a/b".to_owned(), "your policy does not name it"),
    ] {
        let secrets = json!([{"name": "TOKEN", "ref": reference}]);
        let manifest = desk.capability("echo '{}'", &closed(), &secrets);
        let ran = desk.call(&manifest);
        assert_eq!(ran.code, 4, "{reference}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{reference}: {}", ran.stderr);
    }
    let secrets = json!([{"name": "TOKEN", "ref": format!("file://{file}")}]);
    let manifest = desk.capability("printf %s ${#TOKEN}", &closed(), &secrets);
    desk.done(&["grant", PACKAGE, "--read", &file]);
    assert_eq!(desk.call(&manifest).json(), json!(CANARY.len()));
}

#[test]
fn a_rule_spares_the_question_it_is_about() {
    let desk = Desk::new();
    let manifest = desk.capability("cat", &closed(), &json!([]));
    desk.write("home/policy.toml", "[package.\"demo.tool\"]\napproval = \"ask\"\n");
    let call = |input: &str| desk.run(&["call", "--from", &manifest, "demo.tool", input], None);
    assert_eq!(call(r#"{"to":"a@example.com"}"#).code, 4);
    desk.done(&["approve", "always", PACKAGE, "demo.tool", r#"{"to":"*@example.com"}"#]);
    assert_eq!(call(r#"{"to":"a@example.com"}"#).code, 0);
    assert_eq!(call(r#"{"to":"a@example.org"}"#).code, 4);
    let rules = desk.done(&["approve", "rules"]).stdout;
    let number = rules.split(' ').next().unwrap().to_owned();
    desk.done(&["approve", "forget", &number]);
    assert_eq!(call(r#"{"to":"a@example.com"}"#).code, 4);
    assert_eq!(desk.run(&["approve", "forget", "99"], None).code, 3);
}

#[test]
fn the_owner_answers_at_the_terminal_for_once_or_for_good() {
    let desk = Desk::new();
    let manifest = desk.capability("cat", &closed(), &json!([]));
    desk.write("home/policy.toml", "[package.\"demo.tool\"]\napproval = \"ask\"\n");
    let script = repository().join("crates/cli/tests/terminal.py");
    let home = desk.home();
    let at_terminal = |answers: &[&str], input: &str| {
        let mut command = std::process::Command::new("python3");
        command.arg(&script).args(answers).arg("--").arg(assert_cmd::cargo::cargo_bin("haft"));
        command.arg("--home").arg(&home);
        let output = command.args(["call", "--from", &manifest, "demo.tool", input]).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let input = r#"{"to":"a@example.com"}"#;
    let (code, screen) = at_terminal(&["n"], input);
    assert_eq!(code, Some(4), "{screen}");
    assert!(screen.contains(input) && screen.contains("your policy asks for it"), "{screen}");
    let (code, screen) = at_terminal(&["y"], input);
    assert_eq!(code, Some(0), "{screen}");
    let (code, _) = at_terminal(&["a"], input);
    assert_eq!(code, Some(0), "it was asked again");
    let (code, screen) = at_terminal(&[], input);
    assert!(code == Some(0) && !screen.contains("Allow it?"), "{screen}");
    assert_eq!(at_terminal(&["n"], r#"{"to":"b@example.com"}"#).0, Some(4));
    // For good is for exactly this: neither a star nor what is not named stands for anything else.
    for (approved, other) in [
        (r#"{"to":"*"}"#, r#"{"to":"b@example.com"}"#),
        ("{}", r#"{"force":true}"#),
        (input, r#"{"force":true,"to":"a@example.com"}"#),
    ] {
        assert_eq!(at_terminal(&["a"], approved).0, Some(0), "{approved}");
        let (code, screen) = at_terminal(&["n"], other);
        assert!(code == Some(4) && screen.contains("Allow it?"), "{approved}: {screen}");
    }
    let rules = desk.done(&["approve", "rules"]).stdout;
    assert!(rules.contains(r#"demo.tool ={"to":"*"}"#), "{rules}");
    // A call that was approved is one call.
    let log = desk.done(&["audit", "--outcome", "ok"]).stdout;
    assert!(log.lines().all(|line| line.contains(" demo.tool ok, ")), "{log}");
    let log = desk.done(&["audit"]).stdout;
    assert!(!log.contains("began") && !log.contains("needs_approval"), "{log}");
}

#[test]
fn the_owner_is_shown_the_arguments_that_will_be_used() {
    let desk = Desk::new();
    let manifest = desk.capability("cat", &closed(), &json!([]));
    let text = std::fs::read_to_string(&manifest).unwrap();
    let schema = r#""inputs":{"type":"object","properties":{"path":{"default":"/everything"}}}"#;
    let text = text.replace(r#""inputs":{"type":"object"}"#, schema);
    assert!(text.contains(schema), "{text}");
    std::fs::write(&manifest, text).unwrap();
    desk.write("home/policy.toml", "[package.\"demo.tool\"]\napproval = \"ask\"\n");
    let call = ["call", "--from", &manifest, "demo.tool", "{}"];
    let (code, screen) = at_terminal(&desk, &["n"], &call);
    assert!(code == Some(4) && screen.contains(r#"{"path":"/everything"}"#), "{screen}");
}

#[test]
fn a_first_call_is_asked_about_once_at_the_terminal() {
    let desk = Desk::new();
    let manifest = desk.capability("cat", &closed(), &json!([]));
    desk.write("home/policy.toml", "[package.\"demo.tool\"]\napproval = \"first\"\n");
    let call = ["call", "--from", &manifest, "demo.tool", "{}"];
    assert_eq!(desk.run(&call, None).code, 4);
    let (code, screen) = at_terminal(&desk, &["y"], &call);
    assert!(code == Some(0) && screen.contains("do not ask again"), "{screen}");
    assert_eq!(desk.run(&call, None).code, 0);
    let rules = desk.done(&["approve", "rules"]).stdout;
    assert!(rules.contains("by terminal, after its first call"), "{rules}");
    desk.done(&["approve", "forget", rules.split(' ').next().unwrap()]);
    assert_eq!(desk.run(&call, None).code, 4);
}

#[test]
fn a_yes_counts_when_the_owner_has_shown_who_they_are() {
    let desk = Desk::new();
    let manifest = desk.capability("cat", &closed(), &json!([]));
    let set = ["secret", "passphrase", "--passphrase-stdin"];
    assert_eq!(without_terminal(&desk, &set, "open sesame\n").code, 0);
    desk.write(
        "home/policy.toml",
        "[approval]\nowner_presence = \"passphrase\"\n[package.\"demo.tool\"]\napproval = \"ask\"\n",
    );
    let call = ["call", "--from", &manifest, "demo.tool", "{}"];
    for answers in [["y", "wrong"], ["a", "wrong"]] {
        let (code, screen) = at_terminal(&desk, &answers, &call);
        assert!(code == Some(4) && screen.contains("Passphrase for the vault:"), "{screen}");
    }
    assert_eq!(desk.done(&["approve", "rules"]).stdout, "");
    let (code, screen) = at_terminal(&desk, &["y", "open sesame"], &call);
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(screen.matches("Passphrase for").count(), 1, "{screen}");
    let (code, screen) = at_terminal(&desk, &["n"], &call);
    assert!(code == Some(4) && !screen.contains("Passphrase for"), "{screen}");
}

#[test]
fn nothing_a_stranger_chose_is_a_command_in_what_is_shown() {
    let desk = Desk::new();
    let script = "printf 'CONNECT $(touch${IFS}/x):443 HTTP/1.1\\r\\n\\r\\n' | timeout 5 bash -c 'p=${HTTPS_PROXY#http://}; p=${p%/}; exec 3<>/dev/tcp/${p%:*}/${p##*:}; cat >&3; head -1 <&3' >/dev/null; curl -sS -m 5 https://other.example.net/ >/dev/null 2>&1; echo '{}'";
    let manifest = desk.capability(script, &open(), &json!([]));
    let text = std::fs::read_to_string(&manifest).unwrap().replace("demo.tool", "demo.$(x)");
    std::fs::write(&manifest, text).unwrap();
    let ran = desk.run(&["call", "--from", &manifest, "demo.$(x)", "{}"], None);
    let wanted = "haft grant 'capability:demo.$(x)' --host other.example.net:443";
    assert!(ran.stderr.contains(wanted), "{}{}", ran.stdout, ran.stderr);
    let learned = desk.done(&["grant", "--learn", "capability:demo.$(x)"]);
    assert_eq!(learned.stdout, format!("{wanted}\n"), "{}", learned.stderr);
    let words = "$(touch${IFS}/x):443: it is no host that can be granted";
    assert!(learned.stderr.contains(words), "{}", learned.stderr);
    let secrets = json!([{"name": "A$(id)", "ref": "secret://A"}]);
    let manifest = desk.capability("echo '{}'", &closed(), &secrets);
    let missing = desk.call(&manifest);
    let hint = format!("`haft secret set {PACKAGE} 'A$(id)'` keeps it");
    assert!(missing.stderr.contains(&hint), "{}", missing.stderr);
}

#[test]
fn a_call_in_json_is_one_document_in_any_case() {
    let desk = Desk::new();
    let manifest = desk.capability("cat", &closed(), &json!([]));
    let call = |from: &str, name: &str| {
        let ran = desk.run(&["--json", "call", "--from", from, name, "{}"], None);
        let told = ran.json();
        assert_eq!(told["ok"], false, "{told}");
        assert!(told["ms"].is_u64() && told["attempts"] == 0, "{told}");
        (ran.code, told["error"]["code"].as_str().unwrap().to_owned())
    };
    let is = |code: i32, name: &str| (code, name.to_owned());
    assert_eq!(call(&manifest, "nothing"), is(3, "unknown_tool"));
    assert_eq!(call("no/such/file.json", "demo.tool"), is(3, "not_found"));
    desk.write("home/policy.toml", "[package.\"demo.tool\"]\napproval = \"ask\"\n");
    assert_eq!(call(&manifest, "demo.tool"), is(4, "needs_approval"));
    desk.write("home/policy.toml", "[nonsense]\n");
    assert_eq!(call(&manifest, "demo.tool"), is(2, "bad_input"));
}

#[test]
fn listing_the_tools_of_a_server_is_written_down() {
    let desk = Desk::new();
    let from = repository().join("examples/install-manifest/dice-server");
    let ran = desk.run(&["--json", "call", "--from", from.to_str().unwrap(), "nothing"], None);
    assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
    let log = desk.done(&["audit"]).stdout;
    assert!(log.lines().count() == 1 && log.contains(" tools/list ok, "), "{log}");
    desk.write("home/policy.toml", "[package.\"dice-server\"]\nallow = false\n");
    let ran = desk.run(&["--json", "call", "--from", from.to_str().unwrap(), "nothing"], None);
    let told = ran.json();
    assert_eq!((ran.code, &told["error"]["code"]), (4, &json!("denied")), "{told}");
    assert_eq!(told["attempts"], 0);
    let log = desk.done(&["audit", "--outcome", "denied"]).stdout;
    assert!(log.contains(" terminal install-manifest:dice-server tools/list refused: "), "{log}");
}

/// Leaves a question as an agent's call does; its ticket.
fn leave(home: &Path, action: &str) -> String {
    use ledger::state::approvals::{Asked, Shown};
    std::fs::create_dir_all(home).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let records = host::Records::open(home).await.unwrap();
        let asked = Asked {
            package: "sha256:1".into(),
            action: action.into(),
            arguments: "sha256:2".into(),
            surface: "mcp".into(),
        };
        let text = json!({"package": PACKAGE, "input": {"to": "a\u{1b}[2J"}, "because": "of this"});
        let shown = Shown { text: text.to_string(), session: "s1".into() };
        let now = host::records::now();
        let expires = now.plus(std::time::Duration::from_mins(10));
        records.state.ask(&asked, &shown, now, expires).await.unwrap().to_string()
    })
}

#[test]
fn questions_of_agents_are_shown_and_answered() {
    let desk = Desk::new();
    assert!(desk.done(&["approve", "waiting"]).stderr.contains("nothing waits"));
    let [first, second, third] = ["one", "two", "three"].map(|name| leave(&desk.home(), name));
    let shown = desk.done(&["approve", "waiting"]).stdout;
    assert!(shown.contains(&first) && shown.contains("because of this"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "nothing of it steers the terminal");
    let listed = desk.done(&["--json", "approve", "waiting"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 3);
    desk.done(&["approve", "allow", &first[..12]]);
    desk.done(&["approve", "allow", &second, "--session"]);
    desk.done(&["approve", "refuse", &third]);
    assert!(desk.done(&["approve", "waiting"]).stdout.is_empty());
    assert_eq!(desk.run(&["approve", "allow", &first], None).code, 3, "it is answered already");
    let rules = desk.done(&["--json", "approve", "rules"]).json();
    assert_eq!((&rules[0]["action"], &rules[0]["session"]), (&json!("two"), &json!("s1")));
    let fourth = leave(&desk.home(), "four");
    desk.done(&["approve", "allow", &fourth, "--always", r#"{"to":"*@example.com"}"#]);
    let rules = desk.done(&["approve", "rules"]).stdout;
    assert!(rules.contains("four {\"to\":\"*@example.com\"}"), "{rules}");
    let fifth = leave(&desk.home(), "five");
    let refused = desk.run(&["approve", "allow", &fifth, "--always"], None);
    assert_eq!(refused.code, 2, "what is shown is not what the ticket is for: {}", refused.stderr);
    assert_eq!(desk.run(&["approve", "allow", "zz"], None).code, 3);
    assert_eq!(desk.run(&["approve", "allow", "x", "--always", "no"], None).code, 2);
}

#[test]
fn a_policy_is_explained_for_the_owner_and_for_an_agent() {
    let desk = Desk::new();
    let explain = |caller: &str| {
        let example = "examples/jumith/dice.bundle.json";
        let words = ["--json", "policy", "explain", "--from", example, "demo.dice", "--as", caller];
        desk.done(&words).json()
    };
    assert_eq!(explain("owner")["decision"], "allowed");
    assert_eq!(explain("agent")["decision"], "ask");
}

#[test]
fn a_budget_is_used_up() {
    let desk = Desk::new();
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    desk.write("home/policy.toml", "[package.\"demo.tool\"]\nbudget.calls_per_day = 2\n");
    assert_eq!(desk.call(&manifest).code, 0);
    assert_eq!(desk.call(&manifest).code, 0);
    let third = desk.call(&manifest);
    assert_eq!(third.code, 4);
    assert!(third.stderr.contains("for today are used up"), "{}", third.stderr);
    let priced = "[budget]\ncents_per_day = 7\n[package.\"demo.tool\"]\ncents_per_call = 5\n";
    desk.write("home/policy.toml", priced);
    let day = desk.call(&manifest);
    assert_eq!(day.code, 0, "{}", day.stderr);
    assert!(desk.call(&manifest).stderr.contains("the cents your policy allows for today"));
    desk.write("home/policy.toml", "[budget]\ncalls_per_minute = 1\n");
    assert_eq!(desk.call(&manifest).code, 0);
    assert!(desk.call(&manifest).stderr.contains("calls a minute"));
}

#[test]
fn every_call_and_every_refusal_is_in_the_log_and_a_change_is_found() {
    let desk = Desk::new();
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    assert_eq!(desk.call(&manifest).code, 0);
    desk.write("home/policy.toml", "[package.\"demo.tool\"]\nallow = false\n");
    assert_eq!(desk.call(&manifest).code, 4);
    let lines = desk.done(&["audit", "--json"]).stdout;
    let records: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = records.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["begin", "end", "call"]);
    assert_eq!(
        (&records[1]["decision"], &records[2]["decision"]),
        (&json!("allowed"), &json!("denied"))
    );
    // What ran is told whole by its end.
    let fields =
        ["ts", "tool", "argv", "cwd", "exit", "ms", "stdoutBytes", "stderrBytes", "truncated"];
    for field in fields {
        assert!(!records[1][field].is_null(), "{field}: {}", records[1]);
    }
    assert_eq!(records[1]["package"], PACKAGE);
    assert!(records[1]["sandbox"].as_str().unwrap().starts_with('L'));
    let shown = desk.done(&["audit"]).stdout;
    let [ran, refused] = shown.lines().collect::<Vec<_>>()[..] else { panic!("{shown}") };
    assert!(ran.contains(" ok, ") && refused.contains(" refused: denied, "), "{shown}");
    assert_eq!(desk.done(&["audit", "verify"]).stdout, "");
    let log = std::fs::read_dir(desk.home().join("audit")).unwrap().flatten();
    let log =
        log.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|e| e == "log"));
    let log = log.unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, text.replacen("denied", "allowd", 1)).unwrap();
    let broken = desk.run(&["audit", "verify"], None);
    assert_eq!(broken.code, 1, "{}", broken.stdout);
    assert!(broken.stdout.contains(":3"), "{}", broken.stdout);
    let shown = desk.done(&["audit"]).stderr;
    assert!(shown.contains("1 line is not as it was written"), "{shown}");
}

#[test]
fn a_passphrase_guards_what_the_policy_says() {
    let desk = Desk::new();
    desk.write("home/policy.toml", "[approval]\nowner_presence = \"passphrase\"\n");
    for arguments in [
        vec!["grant", PACKAGE, "--env", "X"],
        vec!["approve", "always", PACKAGE, "demo.tool"],
        vec!["secret", "rm", PACKAGE, "X"],
    ] {
        let ran = desk.run(&arguments, None);
        assert_eq!(ran.code, 4, "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(desk.done(&["grant", PACKAGE]).stdout, "");
    assert_eq!(desk.run(&["policy", "check"], None).code, 0);
    desk.write("home/policy.toml", "[aproval]\n");
    let bad = desk.run(&["policy", "check"], None);
    assert_eq!(bad.code, 2);
    assert!(bad.stderr.contains("line 1: unknown field `aproval`"), "{}", bad.stderr);
}

/// Runs it in a session of its own, which has no terminal.
fn without_terminal(desk: &Desk, arguments: &[&str], stdin: &str) -> Ran {
    let home = desk.home();
    let mut command = std::process::Command::new("setsid");
    command.arg("--wait").arg(assert_cmd::cargo::cargo_bin("haft")).arg("--home").arg(home);
    command.args(arguments).current_dir(repository());
    let output = assert_cmd::Command::from_std(command).write_stdin(stdin).output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs it at a terminal, where these answers are typed; its code and what the screen showed.
fn at_terminal(desk: &Desk, answers: &[&str], arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = std::process::Command::new("python3");
    command.arg(repository().join("crates/cli/tests/terminal.py")).args(answers).arg("--");
    command.arg(assert_cmd::cargo::cargo_bin("haft")).arg("--home").arg(desk.home());
    let output = command.args(arguments).current_dir(repository()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_terminal_is_needed_where_the_policy_says_so() {
    let desk = Desk::new();
    let grant = ["grant", PACKAGE, "--env", "X"];
    assert_eq!(without_terminal(&desk, &grant, "").code, 0, "by default scripts may grant");
    desk.done(&["ungrant", PACKAGE, "--all"]);
    let manifest = desk.capability("cat", &closed(), &json!([]));
    desk.write(
        "home/policy.toml",
        "[approval]\nowner_presence = \"terminal\"\n[package.\"demo.tool\"]\napproval = \"ask\"\n",
    );
    let call = ["call", "--approve", "--from", &manifest, "demo.tool", "{}"];
    let ticket = leave(&desk.home(), "one");
    for arguments in [
        &grant[..],
        &["approve", "always", PACKAGE, "demo.tool"],
        &["approve", "allow", &ticket],
        &["secret", "set", PACKAGE, "X"],
        &["secret", "rm", PACKAGE, "X"],
        &["secret", "rotate"],
        &["secret", "passphrase", "--passphrase-stdin"],
        &["secret", "passphrase", "--remove"],
        &["login", "--from", &manifest],
        &call,
    ] {
        let ran = without_terminal(&desk, arguments, "value\n");
        assert_eq!(ran.code, 4, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("wants a terminal"), "{arguments:?}: {}", ran.stderr);
    }
    for list in [&["grant", PACKAGE][..], &["approve", "rules"], &["secret", "list"]] {
        assert_eq!(without_terminal(&desk, list, "").stdout, "", "{list:?}");
    }
    let (code, screen) = at_terminal(&desk, &[], &grant);
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(without_terminal(&desk, &["ungrant", PACKAGE, "--all"], "").code, 0);
    let (code, screen) = at_terminal(&desk, &[], &call);
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn a_passphrase_is_set_from_standard_input_and_asked_for_at_a_terminal_alone() {
    let desk = Desk::new();
    desk.write("home/policy.toml", "[approval]\nowner_presence = \"passphrase\"\n");
    let grant = ["grant", PACKAGE, "--env", "X"];
    // Nobody is asked for a passphrase that there is not.
    let (code, screen) = at_terminal(&desk, &[], &grant);
    assert!(code == Some(4) && !screen.contains("Passphrase for"), "{screen}");
    assert!(screen.contains("`haft secret passphrase` sets one"), "{screen}");
    let nobody = without_terminal(&desk, &["secret", "passphrase"], "");
    assert_eq!(nobody.code, 2, "{}", nobody.stderr);
    assert!(nobody.stderr.contains("hint: --passphrase-stdin reads it"), "{}", nobody.stderr);
    assert!(!nobody.stderr.contains("--no-passphrase"), "{}", nobody.stderr);
    let set = ["secret", "passphrase", "--passphrase-stdin"];
    assert_eq!(without_terminal(&desk, &set, "open sesame\n").code, 0);
    let again = without_terminal(&desk, &set, "another\n");
    assert_eq!(again.code, 4, "whoever changes it knows the old one: {}", again.stderr);
    let nobody = without_terminal(&desk, &grant, "open sesame\n");
    assert_eq!(nobody.code, 4, "{}", nobody.stderr);
    assert!(nobody.stderr.contains("hint: run it at a terminal"), "{}", nobody.stderr);
    assert!(!nobody.stderr.contains("--passphrase"), "{}", nobody.stderr);
    assert_eq!(at_terminal(&desk, &["wrong"], &grant).0, Some(4));
    let (code, screen) = at_terminal(&desk, &["open sesame"], &grant);
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("Passphrase for the vault:"), "{screen}");
}

#[test]
fn a_policy_that_would_fail_later_is_refused_by_every_command() {
    let desk = Desk::new();
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    for (text, words) in [
        ("[network]\nallow = [\"https://x.example/\"]", "[network] allow: `https://x.example/`"),
        ("[network]\ndeny = [\"*\"]", "[network] deny: `*`"),
        ("[sandbox]\nmemory = \"1M\"", "line 2: `1M`: the least is \"8M\""),
        ("[folders]\nread = [\"/\"]", "line 2: `/` is everything"),
        ("[secrets]\nbackend = \"keyring\"", "line 2: unknown field `backend`"),
        ("[secrets]\nvault_address = \"http://v.example\"", "[secrets] vault_address: `http://v"),
        ("[secrets]\nvault_address = \"http://localhost.example\"", "only to this machine"),
        (
            "[secrets]\nvault_address = \"v.example\"",
            "[secrets] vault_address: `v.example`: write https://HOST",
        ),
    ] {
        let path = desk.write("home/policy.toml", text);
        for arguments in [
            &["policy", "check"][..],
            &["grant", PACKAGE, "--env", "X"],
            &["call", "--from", &manifest, "demo.tool", "{}"],
        ] {
            let ran = desk.run(arguments, None);
            assert_eq!(ran.code, 2, "{text}, {arguments:?}: {}", ran.stderr);
            assert!(ran.stderr.contains(words), "{text}, {arguments:?}: {}", ran.stderr);
            assert!(ran.stderr.contains(&path), "{text}, {arguments:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn no_grant_is_offered_for_what_the_policy_refuses() {
    let desk = Desk::new();
    let script = "curl -sS -m 5 https://other.example.net/ >/dev/null 2>&1; echo '{}'";
    let manifest = desk.capability(script, &open(), &json!([]));
    desk.write("home/policy.toml", "[network]\ndeny = [\"*.example.net\"]\n");
    let ran = desk.call(&manifest);
    let words = "other.example.net:443 was not reached: your policy refuses it";
    assert!(ran.stderr.contains(words), "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stderr.contains("haft grant"), "{}", ran.stderr);
    let learned = desk.done(&["grant", "--learn", PACKAGE]);
    assert!(learned.stdout.is_empty() && learned.stderr.contains("no grant helps"));
    let granted = desk.done(&["grant", PACKAGE, "--host", "other.example.net"]);
    assert!(granted.stderr.contains("no grant helps"), "{}", granted.stderr);
}

#[test]
fn a_package_that_is_trusted_too_little_is_told_with_the_key_that_decides() {
    let desk = Desk::new();
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    desk.write("home/policy.toml", "[trust]\nallow = [\"verified\"]\n");
    let ran = desk.call(&manifest);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: `[trust] allow` in policy.toml"), "{}", ran.stderr);
}

#[test]
fn what_was_done_is_told_with_what_it_means() {
    let desk = Desk::new();
    for (arguments, code, words) in [
        (vec!["grant", PACKAGE, "--env", "LD_PRELOAD"], 4, "[environment] allow"),
        (vec!["grant", PACKAGE, "--device", "/dev/nope"], 0, "`/dev/nope` is not there"),
        (vec!["grant", PACKAGE, "--host", "https://x.example/v1"], 2, "write `x.example`"),
        (vec!["grant", PACKAGE, "--host", "a..b"], 2, "hosts are written"),
        (vec!["grant", "foo:acme.weather"], 2, "`foo` is no dialect; write one of"),
        (vec!["grant", PACKAGE, "--host", "API.Example.com"], 0, "--host api.example.com"),
        (vec!["ungrant", PACKAGE, "--host", "API.Example.com"], 0, "Took back"),
        (vec!["ungrant", PACKAGE, "--all"], 0, "Took back"),
        (vec!["ungrant", PACKAGE, "--all"], 0, "nothing was granted to"),
        (vec!["approve", "always", PACKAGE, "send"], 0, "whatever its arguments"),
        (vec!["approve", "always", PACKAGE, "send", r#"{"to":"*"}"#], 0, r#"fit {"to":"*"}"#),
        (vec!["approve", "always", PACKAGE, "send", r#"={"a":1}"#], 0, r#"exactly {"a":1}"#),
        (vec!["audit"], 0, "there are no records"),
        (vec!["audit", "--package", "x"], 0, "no record fits"),
    ] {
        let ran = desk.run(&arguments, None);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn a_policy_of_others_and_a_grant_of_our_own_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    let policy = desk.write("home/policy.toml", "");
    desk.done(&["policy", "check"]);
    std::fs::set_permissions(&policy, std::fs::Permissions::from_mode(0o666)).unwrap();
    let ran = desk.run(&["policy", "check"], None);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("others may write"), "{}", ran.stderr);
    std::fs::set_permissions(&policy, std::fs::Permissions::from_mode(0o600)).unwrap();
    desk.write("home/vault/key", "x");
    let vault = desk.home().join("vault");
    for path in [vault.to_str().unwrap(), desk.home().to_str().unwrap()] {
        let ran = desk.run(&["grant", PACKAGE, "--read", path], None);
        assert_eq!(ran.code, 4, "{path}: {}", ran.stderr);
    }
}
