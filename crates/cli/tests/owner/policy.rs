//! `haft policy`, and what a policy does to calls.

use serde_json::json;

use crate::desk::{Desk, PACKAGE, closed};

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
    assert_eq!(call(&manifest, "demo.tool"), is(2, "invalid_policy"));
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
    assert!(
        third.stderr.contains("your policy allows 2 calls a day, and none is left"),
        "{}",
        third.stderr
    );
    let priced = "[budget]\ncents_per_day = 7\n[package.\"demo.tool\"]\ncents_per_call = 5\n";
    desk.write("home/policy.toml", priced);
    let day = desk.call(&manifest);
    assert_eq!(day.code, 0, "{}", day.stderr);
    let words = "your policy allows 7 cents a day, of which 2 are left, and the call costs 5";
    assert!(desk.call(&manifest).stderr.contains(words));
    desk.write("home/policy.toml", "[budget]\ncalls_per_minute = 1\n");
    assert_eq!(desk.call(&manifest).code, 0);
    let refused = desk.call(&manifest);
    assert!(refused.stderr.contains("your policy allows 1 call a minute ("), "{}", refused.stderr);
    let hint = "hint: `calls_per_minute` of `[budget]` in policy.toml sets the limit; the next call fits in at 2";
    assert!(refused.stderr.contains(hint), "{}", refused.stderr);
    let explained = desk.done(&["--json", "call", "--from", &manifest, "--explain"]).json();
    assert_eq!(explained["decision"], "denied");
    let rule = explained["reasons"].as_array().unwrap().last().unwrap().as_str().unwrap();
    assert!(rule.starts_with("budget: your policy allows 1 call a minute ("), "{rule}");
    let left = "1 call a minute, 0 left (`calls_per_minute` of `[budget]` in policy.toml)";
    assert_eq!(explained["budget"], json!([left]));
}

#[test]
fn a_policy_that_would_fail_later_is_refused_by_every_command() {
    let desk = Desk::new();
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    for (text, words) in [
        (
            "[network]\nallow = [\"a.example\", \"https://x.example/\"]",
            "line 2, column 23: `network.allow`: `https://x.example/` is no host",
        ),
        ("[network]\ndeny = [\"*\"]", "line 2, column 9: `network.deny`: `*` is no host"),
        ("[sandbox]\nmemory = \"1M\"", "line 2, column 10: `sandbox.memory`: the least is \"8M\""),
        ("[folders]\nread = [\"/\"]", "line 2, column 9: `folders.read`: `/` is everything"),
        (
            "[secrets]\nbackend = \"keyring\"",
            "line 2, column 1: `secrets.backend`: there is no such key",
        ),
        ("[secrets]\nvault_address = \"http://v.example\"", "`secrets.vault_address`: `http://v"),
        ("[secrets]\nvault_address = \"http://localhost.example\"", "only to this machine"),
        (
            "[secrets]\nvault_address = \"v.example\"",
            "line 2, column 17: `secrets.vault_address`: `v.example`: write https://HOST",
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
fn a_package_that_is_trusted_too_little_is_told_with_lines_that_can_be_pasted() {
    let desk = Desk::new();
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    let policy = "[trust]\nallow = [\"verified\"]\n";
    desk.write("home/policy.toml", policy);
    let ran = desk.call(&manifest);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let hint = "hint: `allow` below `[trust]` in policy.toml says who is trusted enough; ";
    let own = ran.stderr.lines().last().and_then(|line| line.strip_prefix(hint)).unwrap();
    let quoted: Vec<_> = own.split('`').collect();
    assert_eq!(quoted[1..4], ["allow = true", " below ", &format!("[package.\"{PACKAGE}\"]")]);
    desk.write("home/policy.toml", &format!("{policy}{}\n{}\n", quoted[3], quoted[1]));
    let ran = desk.call(&manifest);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
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
    let audit = desk.home().join("audit");
    std::fs::create_dir(&audit).unwrap();
    std::fs::set_permissions(&audit, std::fs::Permissions::from_mode(0o777)).unwrap();
    for arguments in [&["audit"][..], &["audit", "verify"]] {
        let ran = desk.run(arguments, None);
        assert_eq!(ran.code, 4, "{arguments:?}: {}", ran.stderr);
    }
    std::fs::set_permissions(&audit, std::fs::Permissions::from_mode(0o700)).unwrap();
    desk.write("home/vault/key", "x");
    let vault = desk.home().join("vault");
    for path in [vault.to_str().unwrap(), desk.home().to_str().unwrap()] {
        let ran = desk.run(&["grant", PACKAGE, "--read", path], None);
        assert_eq!(ran.code, 4, "{path}: {}", ran.stderr);
    }
}

#[test]
fn a_policy_that_cannot_be_read_is_shown_with_what_holds_meanwhile() {
    let desk = Desk::new();
    let text = "[sandbox]\nlevel = 3\n[trust]\nallow = [\"lokal\"]\n";
    let path = desk.write("home/policy.toml", text);
    let shown = desk.run(&["policy", "show"], None);
    assert_eq!((shown.code, shown.stdout.as_str()), (2, text), "{}", shown.stderr);
    for words in [
        path.as_str(),
        "line 2, column 9: `sandbox.level`: write one of \"L0\", \"L1\", \"L2\", \"L3\", not the number 3",
        "line 4, column 10: `trust.allow`: `lokal` is none of: untrusted, community, verified, local; did you mean \"local\"?",
        "until it is mended nothing is called",
    ] {
        assert!(shown.stderr.contains(words), "{words}: {}", shown.stderr);
    }
    for verb in ["show", "check"] {
        let ran = desk.run(&["--json", "policy", verb], None);
        let told = ran.json();
        assert_eq!((ran.code, &told["ok"]), (2, &json!(false)), "{told}");
        assert_eq!(told["error"]["code"], "invalid_policy", "{told}");
        let place = &told["error"]["details"]["faults"][0];
        assert_eq!((&place["line"], &place["key"]), (&json!(2), &json!("sandbox.level")), "{told}");
    }
    std::fs::write(&path, b"[trust]\n# \xff\n").unwrap();
    let ran = desk.run(&["policy", "check"], None);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("line 2: this is not UTF-8 text"), "{}", ran.stderr);
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    for verb in ["show", "check"] {
        let ran = desk.run(&["--json", "policy", verb], None);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (2, &json!("invalid_policy")));
    }
}

#[test]
fn the_defaults_are_one_document_for_programs() {
    let desk = Desk::new();
    let told = desk.done(&["--json", "policy", "show", "--defaults"]).json();
    let text = desk.done(&["policy", "show", "--defaults"]).stdout;
    assert_eq!(told["text"], text);
    let own = desk.done(&["--json", "policy", "show"]).json();
    for key in ["level", "timeout_ms", "trust", "approval", "packages"] {
        assert!(!told[key].is_null() && told[key] == own[key], "{key}: {told}");
    }
}

#[test]
fn what_never_counts_as_it_is_written_is_told_with_its_key() {
    let desk = Desk::new();
    let tool = desk.write("kit/tools/bin/run", "#!/bin/sh\necho '{}'\n");
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let tools = json!({"tools": [{"name": "run", "command": ["./tools/bin/run"]}]});
    let tools = desk.write("kit/tools.json", &tools.to_string());
    desk.done(&["call", "--from", &tools, "run"]);
    let there = desk.home().to_str().unwrap().to_owned();
    desk.write(
        "home/policy.toml",
        &format!(
            "[folders]\nread = [\"/no/such/folder\", \"{there}\"]\n[sandbox]\ntimeout = \"2h\"\n[package.\"kit\"]\ncents_per_call = 5\nbudget.cents_per_day = 4\nactions.run = \"ask\"\nactions.rnu = \"deny\"\n"
        ),
    );
    let told = desk.done(&["--json", "policy", "check"]).json();
    assert_eq!(
        told["warnings"],
        json!([
            "`sandbox.timeout`: more than `max_timeout` of `[sandbox]`, and cut to that",
            "`package.kit.budget.cents_per_day`: less than one call of `kit` costs (`cents_per_call` is 5), so it cannot be called",
            "`folders.read`: `/no/such/folder` is not there",
            "`package.kit.actions.rnu`: agentcli:kit has no action `rnu`; did you mean `run`?",
        ])
    );
    let told = desk.done(&["policy", "check"]).stderr;
    assert_eq!(told.matches("warning: `").count(), 4, "{told}");
}

#[test]
fn a_package_of_the_policy_that_nobody_has_is_told_of() {
    let desk = Desk::new();
    let manifest = desk.capability("cat", &closed(), &json!([]));
    desk.write("home/policy.toml", "[package.\"demo.tol\"]\nallow = true\n");
    let fresh = desk.done(&["policy", "check"]).stderr;
    assert!(fresh.contains("no package `demo.tol` is known here"), "{fresh}");
    assert!(!desk.home().join("state.db").exists(), "looking makes nothing");
    assert_eq!(desk.call(&manifest).code, 0);
    let told = desk.done(&["policy", "check"]).stderr;
    assert!(told.contains("did you mean `demo.tool`?"), "{told}");
    let told = desk.done(&["--json", "policy", "check"]).json();
    assert_eq!(told["warnings"].as_array().unwrap().len(), 1, "{told}");
    for id in ["demo.tool", "capability:demo.tool"] {
        desk.write("home/policy.toml", &format!("[package.\"{id}\"]\nallow = true\n"));
        let told = desk.done(&["policy", "check"]).stderr;
        assert!(!told.contains("warning"), "{told}");
    }
}
