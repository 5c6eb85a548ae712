//! Whether an explained call says what the real one would come to.

use serde_json::{Value, json};

use super::desk::{Desk, shell};

/// The plan of a call, for programs.
fn plan(desk: &Desk, arguments: &[&str]) -> Value {
    desk.result(&[arguments, &["--explain", "--json"]].concat())
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

#[test]
fn an_endpoint_that_may_not_be_reached_is_a_refusal_before_and_in_the_call() {
    let desk = Desk::new();
    desk.write("home/policy.toml", "[budget]\ncalls_per_day = 1\n");
    let ask = ["examples/capability/ask-agent", r#"{"text":"x"}"#];
    let told = plan(&desk, &ask);
    let words = "`127.0.0.1:8731` is refused: no grant names this host";
    assert_eq!((&told["decision"], &told["because"]), (&json!("denied"), &json!(words)), "{told}");
    let grant = "`haft grant capability:demo.ask-agent --host 127.0.0.1:8731` allows it";
    assert!(texts(&told["hints"]).iter().any(|hint| hint.contains(grant)), "{told}");
    let own = texts(&told["reasons"]);
    let private = "network: 127.0.0.1:8731: its own endpoint, but on a private network, where only your own word leads";
    assert!(own.contains(&private), "{told}");
    assert!(own.iter().all(|one| !one.ends_with("declared by the package you named")), "{told}");
    // Nothing is sent, so nothing is spent: the second one is refused for the same reason.
    for _ in 0..2 {
        let ran = desk.call(&[&ask[..], &["--json"]].concat());
        let made = ran.json();
        assert_eq!((ran.code, &made["attempts"]), (4, &json!(0)), "{made}");
        assert_eq!(made["error"]["message"], words);
    }
    let log = desk.run(&["audit"]).stdout;
    assert_eq!(log.matches("refused: denied").count(), 2, "{log}");
    desk.done(&["grant", "capability:demo.ask-agent", "--host", "127.0.0.1:8731"]);
    assert_eq!(plan(&desk, &ask)["decision"], "allowed");
}

/// An mcpkg that signs in by an account at a token endpoint.
fn with_account(desk: &Desk) -> String {
    let manifest = json!({
        "toolId": "demo.account", "name": "Account", "version": "0.1.0", "description": "A test.",
        "capabilities": ["http"],
        "endpoint": {"type": "http", "method": "GET", "url": "https://example.com/", "timeoutMs": 8000},
        "input_schema": {"type": "object"}, "output_schema": {"type": "object"},
        "auth": {"type": "oauth2", "scopes": ["read"],
            "configHints": {"env": ["A_TOKEN_URL", "A_CLIENT_ID", "A_CLIENT_SECRET"]}},
        "meta": {"publisher": {"id": "demo", "name": "Demo"}, "license": "MIT"},
    });
    desk.write("account/manifest.json", &manifest.to_string())
}

#[test]
fn all_that_is_missing_of_an_account_is_named_at_once() {
    let desk = Desk::new();
    let tool = with_account(&desk);
    let told = plan(&desk, &[&tool]);
    let missing = told["missing"].as_array().unwrap().iter().map(|one| one["name"].clone());
    let names = ["A_TOKEN_URL", "A_CLIENT_ID", "A_CLIENT_SECRET"];
    assert_eq!(missing.collect::<Vec<_>>(), names, "{told}");
    let ran = desk.call(&[&tool]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    for name in names {
        let hint = format!("hint: `haft secret set mcpkg:demo.account {name}` keeps it\n");
        assert!(ran.stderr.contains(&hint), "{}", ran.stderr);
    }
    let told = desk.call(&[&tool, "--json"]).json();
    let missing = told["error"]["details"]["missing"].as_array().unwrap();
    let told_names: Vec<_> = missing.iter().map(|one| one["name"].clone()).collect();
    assert_eq!(told_names, names, "{told}");
}

#[test]
fn several_secrets_that_are_missing_are_one_error() {
    let desk = Desk::new();
    let secrets = json!([
        {"name": "ONE", "ref": "secret://ONE"}, {"name": "TWO", "ref": "secret://TWO"}
    ]);
    let tool = desk.capability(&shell("true"), "none", &secrets);
    let ran = desk.call(&[&tool]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("ONE, TWO"), "{}", ran.stderr);
    for name in ["ONE", "TWO"] {
        let hint = format!("hint: `haft secret set capability:demo.tool {name}` keeps it\n");
        assert!(ran.stderr.contains(&hint), "{}", ran.stderr);
    }
}

#[test]
fn a_server_that_was_not_asked_is_said_to_be_unasked() {
    let desk = Desk::new();
    let dice = "examples/install-manifest/dice-server";
    let ran = desk.call(&[dice, "--explain"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let words = "error: `install-manifest:dice-server` has to be asked which tools it has, and --explain runs nothing\n";
    assert!(ran.stderr.starts_with(words), "{}", ran.stderr);
    let weather = "examples/server-json/weather";
    let (made, explained) = (desk.call(&[weather]), desk.call(&[weather, "--explain"]));
    assert_eq!((made.code, &made.stderr), (6, &explained.stderr));
    assert_eq!(explained.code, 6);
    let told = plan(&desk, &[dice, "nosuch"]);
    let unasked = "the server has not been asked whether it has this tool, nor what it takes";
    assert_eq!((&told["unasked"], &told["tool"]), (&json!(unasked), &json!("nosuch")), "{told}");
}

#[test]
fn a_plan_names_every_limit_of_the_walls() {
    let desk = Desk::new();
    let tool = desk.capability(&shell("echo {}"), "none", &json!([]));
    let walls = plan(&desk, &[&tool, "demo.tool"])["walls"].clone();
    let limits = ["timeout_ms", "memory", "cpu", "processes", "scratch", "output"];
    assert_eq!(walls["cpu"], json!(1.0), "{walls}");
    assert!(limits.iter().all(|name| walls[name].is_number()), "{walls}");
}

#[test]
fn a_plan_names_what_a_worker_loads() {
    let desk = Desk::new();
    let told = plan(&desk, &["examples/jumith/dice.bundle.json"]);
    let loads = told["loads"].as_object().unwrap();
    let main = std::path::Path::new(loads["main"].as_str().unwrap());
    assert_eq!(main.extension().unwrap(), "js", "{told}");
    assert!(loads.contains_key("export"), "{told}");
    let callable = desk.call(&["examples/capability/greet", r#"{"name":"Ann"}"#, "--explain"]);
    assert!(callable.stdout.contains("  callable: greet:hello\n"), "{}", callable.stdout);
}

#[test]
fn a_refusal_is_explained_with_the_rule_that_made_it() {
    let desk = Desk::new();
    let tool = desk.capability(&shell("true"), "none", &json!([]));
    for (policy, reason) in [
        (
            "[package.\"demo.tool\"]\nallow = false\n",
            "trust: `allow = false` of this package in policy.toml refuses it",
        ),
        (
            "[trust]\nallow = [\"verified\"]\n",
            "trust: `[trust] allow` in policy.toml does not name local",
        ),
        (
            "[package.\"demo.tool\"]\napproval = \"deny\"\n",
            "approval: deny, by `approval` of this package in policy.toml",
        ),
        (
            "[package.\"demo.tool\"]\nactions.\"demo.tool\" = \"deny\"\n",
            "approval: deny, by `actions.demo.tool` of this package in policy.toml",
        ),
    ] {
        desk.write("home/policy.toml", policy);
        let told = plan(&desk, &[&tool]);
        assert_eq!(told["decision"], "denied", "{told}");
        assert!(texts(&told["reasons"]).contains(&reason), "{told}");
        assert!(!texts(&told["hints"]).is_empty(), "{told}");
    }
}

#[test]
fn only_what_a_tool_would_get_is_in_its_environment() {
    let desk = Desk::new();
    let env = json!([
        {"name": "NEEDED", "prompt": "x", "secret": true, "required": true},
        {"name": "OPTIONAL", "prompt": "x", "secret": true, "required": false},
        {"name": "PLAIN", "prompt": "x", "secret": false, "required": false},
    ]);
    let tool = desk.install_manifest("env\n", "text", &env);
    let names = || {
        let told = plan(&desk, &[&tool, "show"]);
        let names = texts(&told["walls"]["environment"]).into_iter().map(str::to_owned);
        let own = names.filter(|name| ["NEEDED", "OPTIONAL", "PLAIN"].contains(&&**name));
        own.collect::<Vec<_>>()
    };
    assert_eq!(names(), ["NEEDED"]);
    for name in ["NEEDED", "OPTIONAL"] {
        let set = ["secret", "set", "install-manifest:demo-tool", name];
        assert_eq!(desk.run_with(&set, Some(b"value")).code, 0);
    }
    assert_eq!(names(), ["NEEDED", "OPTIONAL"]);
    let said = desk.call(&[&tool, "show"]).stdout;
    assert!(said.contains("\nOPTIONAL=") && !said.contains("PLAIN="), "{said}");
}

#[test]
fn a_secret_that_would_be_told_in_plain_is_explained_as_a_refusal() {
    let desk = Desk::new();
    let manifest = std::fs::read_to_string(with_account(&desk)).unwrap();
    let manifest = manifest
        .replace("https://example.com/", "http://example.com/")
        .replace("oauth2", "bearer")
        .replace(r#""A_TOKEN_URL","A_CLIENT_ID","A_CLIENT_SECRET""#, r#""A_TOKEN""#);
    let tool = desk.write("plain/manifest.json", &manifest);
    let words = "a secret is not sent to `example.com` over plain `http`, only over `https`";
    let refused = |told: &Value| {
        let because = (&told["decision"], &told["because"]);
        assert_eq!(because, (&json!("denied"), &json!(words)), "{told}");
        let reason = format!("secrets: {words}");
        assert!(texts(&told["reasons"]).contains(&&*reason), "{told}");
        assert_eq!(told["url"], "http://example.com/", "{told}");
    };
    let refused_twice = || {
        refused(&plan(&desk, &[&tool]));
        let ran = desk.call(&[&tool, "--json"]);
        let made = ran.json();
        assert_eq!((ran.code, &made["attempts"]), (4, &json!(0)), "{made}");
        assert_eq!(made["error"]["message"], words);
    };
    // Also before it is there.
    refused_twice();
    let set = ["secret", "set", "mcpkg:demo.account", "A_TOKEN"];
    assert_eq!(desk.run_with(&set, Some(b"value")).code, 0);
    refused_twice();
}

#[test]
fn a_grant_that_would_not_help_is_not_offered() {
    let desk = Desk::new();
    let secret = |name: &str, value: &str| {
        let set = ["secret", "set", "mcpkg:demo.account", name];
        assert_eq!(desk.run_with(&set, Some(value.as_bytes())).code, 0);
    };
    let plain = |tool: &str| {
        let words = "a secret is not sent to `10.1.2.3` over plain `http`, only over `https`";
        let told = plan(&desk, &[tool]);
        assert_eq!((&told["because"], &told["hints"]), (&json!(words), &json!([])), "{told}");
        let ran = desk.call(&[tool]);
        assert_eq!((ran.code, ran.stderr), (4, format!("error: {words}\n")));
    };
    // Of a token endpoint that is known to be there.
    let tool = with_account(&desk);
    secret("A_TOKEN_URL", "http://10.1.2.3:8080/token");
    secret("A_CLIENT_ID", "somebody");
    secret("A_CLIENT_SECRET", "s3cret-word");
    plain(&tool);
    // Of the endpoint itself.
    let text = std::fs::read_to_string(&tool).unwrap();
    let own = text.replace("https://example.com/", "http://10.1.2.3:8080/");
    assert_ne!(own, text);
    plain(&desk.write("account/manifest.json", &own));
}

#[test]
fn a_key_without_a_name_is_kept_under_one_of_ours() {
    let desk = Desk::new();
    let manifest = with_account(&desk);
    let text = std::fs::read_to_string(&manifest).unwrap();
    for (kind, names) in [
        ("bearer", &["API_KEY"][..]),
        ("api_key", &["API_KEY"]),
        ("oauth2", &["TOKEN_URL", "CLIENT_ID", "CLIENT_SECRET"]),
    ] {
        let mut own: Value = serde_json::from_str(&text).unwrap();
        own["toolId"] = json!(format!("demo.{kind}"));
        own["auth"] = json!({"type": kind});
        let tool = desk.write("unnamed/manifest.json", &own.to_string());
        let package = format!("mcpkg:demo.{kind}");
        let hints = names.iter().map(|name| format!("`haft secret set {package} {name}` keeps it"));
        let hints: Vec<_> = hints.collect();
        let told = plan(&desk, &[&tool]);
        let missing = told["missing"].as_array().unwrap().iter();
        assert_eq!(missing.map(|one| one["hint"].clone()).collect::<Vec<_>>(), hints, "{told}");
        let ran = desk.call(&[&tool]);
        let error = format!("error: Missing required secret: {}\n", names.join(", "));
        assert!(ran.code == 2 && ran.stderr.starts_with(&error), "{}", ran.stderr);
        for hint in &hints {
            assert!(ran.stderr.contains(hint), "{}", ran.stderr);
        }
        let values = ["https://example.com/token", "somebody", "s3cret-word"];
        for (name, value) in names.iter().zip(values) {
            let set = ["secret", "set", &package, name];
            assert_eq!(desk.run_with(&set, Some(value.as_bytes())).code, 0);
        }
        let told = plan(&desk, &[&tool]);
        assert_eq!(
            (&told["decision"], &told["missing"]),
            (&json!("allowed"), &json!([])),
            "{told}"
        );
        let header = if kind == "api_key" { "x-api-key" } else { "authorization" };
        assert!(texts(&told["headers"]).contains(&header), "{told}");
    }
}

#[test]
fn a_token_endpoint_that_may_not_be_reached_is_a_refusal_before_and_in_the_call() {
    let desk = Desk::new();
    desk.write("home/policy.toml", "[budget]\ncalls_per_day = 1\n");
    let tool = with_account(&desk);
    for (name, value) in [
        ("A_TOKEN_URL", "https://login.example.net/token"),
        ("A_CLIENT_ID", "somebody"),
        ("A_CLIENT_SECRET", "s3cret-word"),
    ] {
        let set = ["secret", "set", "mcpkg:demo.account", name];
        assert_eq!(desk.run_with(&set, Some(value.as_bytes())).code, 0);
    }
    let words = "`login.example.net:443` is refused: no grant names this host";
    let told = plan(&desk, &[&tool]);
    assert_eq!((&told["decision"], &told["because"]), (&json!("denied"), &json!(words)), "{told}");
    let grant = "`haft grant mcpkg:demo.account --host login.example.net:443` allows it";
    assert!(texts(&told["hints"]).iter().any(|hint| hint.contains(grant)), "{told}");
    // Nothing is sent, so nothing is spent.
    for _ in 0..2 {
        let ran = desk.call(&[&tool, "--json"]);
        let made = ran.json();
        assert_eq!((ran.code, &made["attempts"]), (4, &json!(0)), "{made}");
        assert_eq!(made["error"]["message"], words);
    }
    let log = desk.run(&["audit"]).stdout;
    assert_eq!(log.matches("refused: denied").count(), 2, "{log}");
    desk.done(&["grant", "mcpkg:demo.account", "--host", "login.example.net"]);
    let told = plan(&desk, &[&tool]);
    assert_eq!(told["decision"], "allowed", "{told}");
    assert!(told["budget"].to_string().contains("1 left"), "{told}");
}

#[test]
fn a_call_that_lacks_a_secret_costs_nothing() {
    let desk = Desk::new();
    desk.write("home/policy.toml", "[budget]\ncalls_per_day = 1\n");
    let secrets = json!([{"name": "ONE", "ref": "secret://ONE"}]);
    let tool = desk.capability(&shell("echo 1"), "none", &secrets);
    assert_eq!(desk.call(&[&tool]).code, 2);
    let set = ["secret", "set", "capability:demo.tool", "ONE"];
    assert_eq!(desk.run_with(&set, Some(b"something")).code, 0);
    assert_eq!(desk.result(&[&tool]), json!(1));
    let spent = desk.call(&[&tool]);
    assert_eq!(spent.code, 4, "{}", spent.stderr);
}

#[test]
fn a_vault_server_that_nobody_named_is_told_with_the_setting_before_and_in_the_call() {
    let desk = Desk::new();
    desk.write("home/policy.toml", "[secrets]\nreferences = [\"vault://kv/a#b\"]\n");
    let secrets = json!([{"name": "TOKEN", "ref": "vault://kv/a#b"}]);
    let tool = desk.capability(&shell("true"), "none", &secrets);
    let words = "`vault://kv/a#b` is not to be had: your policy has no [secrets] vault_address";
    let hint = "`vault_address = \"https://HOST:PORT\"` below `[secrets]` in policy.toml says where your Vault server is";
    let told = plan(&desk, &[&tool]);
    assert_eq!((&told["secrets"], &told["hints"]), (&json!(words), &json!([hint])), "{told}");
    let ran = desk.call(&[&tool]);
    assert_eq!((ran.code, ran.stderr), (6, format!("error: {words}\nhint: {hint}\n")));
}

#[test]
fn what_is_only_explained_puts_nothing_into_the_home() {
    let desk = Desk::new();
    for (tool, input, is_packed) in [
        ("examples/capability/greet", r#"{"name":"Ann"}"#, false),
        ("examples/jumith/dice.bundle.json", "{}", true),
    ] {
        let told = plan(&desk, &[tool, input]);
        assert_eq!(told["decision"], "allowed", "{told}");
        assert!(!desk.path("home").exists(), "{tool}");
        let read = &told["walls"]["read"][0];
        let is_there = std::path::Path::new(read.as_str().unwrap()).exists();
        assert_eq!(is_there, !is_packed, "what was unpacked is gone: {read}");
    }
    // Also where nobody reads it.
    let (haft, folder) = (assert_cmd::cargo::cargo_bin("haft"), desk.path("temporary"));
    std::fs::create_dir(&folder).unwrap();
    let line = "\"$0\" call --from examples/jumith/dice.bundle.json --explain | head -c 0";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", line]).arg(haft).current_dir(super::common::repository());
    command.env("HAFT_HOME", desk.path("home")).env("TMPDIR", &folder);
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(super::common::names(&folder), [""; 0]);
}
