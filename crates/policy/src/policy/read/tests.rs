//! What a policy may say, and what is told of one that says something else.

use super::super::{Level, OnInstall, OnViolation, Rule, Weights};
use super::*;

fn parse(text: &str) -> Result<Policy, PolicyError> {
    Policy::parse(text)
}

#[test]
fn an_empty_file_is_the_default_policy() {
    assert_eq!(parse("").unwrap(), Policy::default());
}

#[test]
fn every_key_is_read() {
    let policy = parse(
        r#"
        [trust]
        allow = ["local", "community"]
        [network]
        allow = ["api.example.com"]
        deny = ["*.tracker.example"]
        [folders]
        read = ["~/data"]
        write = ["/srv/out"]
        deny = ["~/.ssh"]
        [approval]
        none = "allow"
        read = "first"
        write = "ask"
        destructive = "deny"
        undeclared = "ask"
        expires = "5m"
        owner_presence = "passphrase"
        [budget]
        calls_per_day = 100
        cents_per_day = 50
        calls_per_minute = 10
        [sandbox]
        level = "L3"
        timeout = "10s"
        max_timeout = "1m"
        memory = "512M"
        max_memory = "1G"
        processes = 64
        scratch = "64M"
        output = "1M"
        on_violation = "disable"
        [environment]
        allow = ["HTTPS_PROXY"]
        [secrets]
        environment = ["TOKEN"]
        references = ["vault://kv/a#b", "keyring://a/b"]
        vault_address = "https://vault.example"
        vault_token_file = "~/.vault-token"
        vault_namespace = "team"
        vault_version = 1
        [rank]
        correctness = 0.5
        latency = 1
        max_latency = "2s"
        max_cents_per_call = 5
        min_safety = 0.25
        [tests]
        on_install = "run"
        [chains]
        cache = "2M"
        [package."mcpkg:demo.echo"]
        allow = true
        level = "L2"
        timeout = "2s"
        memory = "64M"
        approval = "ask"
        on_violation = "revoke"
        actions.send = "deny"
        budget.calls_per_day = 3
        "#,
    )
    .unwrap();
    assert_eq!(policy.trust.allow, [Trust::Local, Trust::Community]);
    assert_eq!(policy.approval.destructive, Rule::Deny);
    assert_eq!(policy.approval.expires_seconds, 300);
    assert_eq!(policy.approval.owner_presence, Presence::Passphrase);
    assert_eq!(policy.sandbox.level, Level::L3);
    assert_eq!(policy.sandbox.timeout_ms, 10_000);
    assert_eq!(policy.sandbox.output, 1 << 20);
    assert_eq!(policy.budget.cents_per_day, Some(50));
    assert_eq!(policy.tests.on_install, OnInstall::Run);
    assert_eq!(policy.chains.cache, 2 << 20);
    assert_eq!(parse("[chains]\ncache = \"none\"\n").unwrap().chains.cache, 0);
    assert!(parse("[chains]\ncache = \"0\"\n").is_err());
    assert_eq!(policy.secrets.references, ["vault://kv/a#b", "keyring://a/b"]);
    let server = policy.secrets.server.as_ref().unwrap();
    assert_eq!(server.address, "https://vault.example");
    assert_eq!(server.token_file.as_deref(), Some("~/.vault-token"));
    assert_eq!((server.namespace.as_deref(), server.store), (Some("team"), Store::First));
    let weights = Weights { correctness: 0.5, latency: 1.0, ..Weights::default() };
    assert_eq!(policy.rank.weights, weights);
    assert_eq!(policy.rank.max_latency_ms, Some(2_000));
    assert_eq!((policy.rank.max_cents_per_call, policy.rank.max_cents_per_month), (Some(5), None));
    assert_eq!((policy.rank.min_safety, policy.rank.min_correctness), (Some(0.25), None));
    let echo = policy.of("mcpkg:demo.echo", "demo.echo").unwrap();
    assert_eq!(echo.actions["send"], Rule::Deny);
    assert_eq!(echo.budget.calls_per_day, Some(3));
    assert_eq!(echo.timeout_ms, Some(2000));
    assert_eq!(policy.on_violation("mcpkg:demo.echo", "demo.echo"), OnViolation::Revoke);
    assert_eq!(policy.on_violation("mcpkg:demo.other", "demo.other"), OnViolation::Disable);
    assert_eq!(Policy::default().on_violation("mcpkg:x.y", "x.y"), OnViolation::Nothing);
}

#[test]
fn a_weight_is_a_number_from_0_to_1() {
    for wrong in ["1.5", "-0.1", "nan", "inf", "\"0.5\"", "0x1"] {
        let error = parse(&format!("[rank]\nlatency = {wrong}\n")).unwrap_err();
        assert_eq!(error.faults.len(), 1, "{wrong}");
        assert!(error.faults[0].message.contains("a number from 0 to 1"), "{wrong}: {error:?}");
    }
    let error = parse("[rank]\nlatencies = 1\n").unwrap_err();
    assert!(error.faults[0].message.contains("did you mean `latency`?"), "{error:?}");
}

#[test]
fn the_policies_of_the_documentation_are_policies() {
    let page = include_str!("../../../../../docs/policy.md");
    let blocks: Vec<_> = page
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().expect("a block has an end"))
        .collect();
    assert_eq!(blocks.len(), 5);
    assert_eq!(blocks[0], crate::DEFAULTS, "the page shows the defaults");
    assert_eq!(parse(crate::DEFAULTS).unwrap(), Policy::default());
    for block in blocks {
        parse(block).unwrap_or_else(|error| panic!("{error}: {block}"));
    }
}

/// A text, the place and the key of the one thing that is wrong with it, and words of what is told.
type Case = (&'static str, usize, usize, &'static str, &'static str);

fn check(cases: &[Case]) {
    for (text, line, column, key, words) in cases {
        let error = parse(text).unwrap_err();
        let [fault] = &error.faults[..] else { panic!("{text}: {error}") };
        assert_eq!(
            (&fault.line, &fault.column, &&*fault.key),
            (line, column, key),
            "{text}: {error}"
        );
        assert!(fault.message.contains(words), "{text}: {error}");
    }
}

#[test]
fn a_key_that_there_is_not_is_told_with_the_one_that_was_meant() {
    check(&[
        ("[sandbx]", 1, 2, "sandbx", "there is no such key; did you mean `sandbox`?"),
        ("[sandbox]\nlevl = \"L2\"", 2, 1, "sandbox.levl", "did you mean `level`?"),
        ("[trust]\nx = 1", 2, 1, "trust.x", "there is no such key; there is allow"),
        ("[package.x]\nbudget.calls = 1", 2, 8, "package.x.budget.calls", "there is no such key"),
        (
            "\n[package.\"agentcl:x\"]\nallow = false",
            2,
            10,
            "package.\"agentcl:x\"",
            "`agentcl` is no dialect",
        ),
        ("[secrets]\nbackend = \"keyring\"", 2, 1, "secrets.backend", "there is no such key"),
        ("[trust\n", 1, 7, "", "this is no TOML: "),
        ("[budget]\nä = \"é\"", 2, 1, "", "this is no TOML: "),
    ]);
}

#[test]
fn a_value_of_another_kind_is_told_with_what_is_expected_there() {
    check(&[
        (
            "[sandbox]\nlevel = 3",
            2,
            9,
            "sandbox.level",
            "write one of \"L0\", \"L1\", \"L2\", \"L3\", not the number 3",
        ),
        ("[sandbox]\ntimeout = 10", 2, 11, "sandbox.timeout", "not the number 10"),
        (
            "[sandbox]\nprocesses = 0",
            2,
            13,
            "sandbox.processes",
            "from 1 to 32000, not the number 0",
        ),
        (
            "[sandbox]\nprocesses = 1.5",
            2,
            13,
            "sandbox.processes",
            "from 1 to 32000, not the number 1.5",
        ),
        (
            "[package.x]\nallow = \"yes\"",
            2,
            9,
            "package.x.allow",
            "write true or false, not the text \"yes\"",
        ),
        (
            "[package.x]\nactions.send = 1",
            2,
            16,
            "package.x.actions.send",
            "write one of \"allow\"",
        ),
        ("[package]\nx = 3", 2, 5, "package.x", "write a table for each package"),
        ("[folders]\nread = [7]", 2, 9, "folders.read", "write a folder such as"),
        (
            "[secrets]\nvault_address = \"https://v\"\nvault_version = 3",
            3,
            17,
            "secrets.vault_version",
            "write 1 or 2, not the number 3",
        ),
        (
            "[trust]\nallow = \"local\"",
            2,
            9,
            "trust.allow",
            "write a list such as [\"local\", \"verified\"], not the text",
        ),
        ("trust = 3", 1, 9, "trust", "write a table with keys of its own, not the number 3"),
        ("[[trust]]", 1, 1, "trust", "not a list"),
        (
            "[budget]\ncalls_per_day = -1",
            2,
            17,
            "budget.calls_per_day",
            "write a whole number that is not negative, not the number -1",
        ),
    ]);
}

#[test]
fn a_value_that_makes_no_sense_is_told_with_its_place() {
    check(&[
        ("\n[sandbox]\nlevel = \"L9\"", 3, 9, "sandbox.level", "is none of: L0, L1, L2, L3"),
        ("[sandbox]\ntimeout = \"10\"", 2, 11, "sandbox.timeout", "write a time such as"),
        (
            "[sandbox]\non_violation = \"kill\"",
            2,
            16,
            "sandbox.on_violation",
            "is none of: none, disable, revoke",
        ),
        ("[sandbox]\nmemory = \"0M\"", 2, 10, "sandbox.memory", "write a size such as"),
        ("[sandbox]\nprocesses = 99999999999", 2, 13, "sandbox.processes", "from 1 to 32000"),
        ("[sandbox]\nmemory = \"4M\"", 2, 10, "sandbox.memory", "the least is \"8M\""),
        ("[sandbox]\nmax_memory = \"8191K\"", 2, 14, "sandbox.max_memory", "the least is \"8M\""),
        ("[package.x]\nmemory = \"1M\"", 2, 10, "package.x.memory", "the least is \"8M\""),
        ("[folders]\nwrite = [\"/\"]", 2, 10, "folders.write", "`/` is everything"),
        ("[folders]\nread = [\"~/a\",\n\"/./\"]", 3, 1, "folders.read", "is everything"),
        ("[folders]\nread = [\"data\"]", 2, 9, "folders.read", "no absolute path"),
        ("[folders]\nread = [\"/a/../b\"]", 2, 9, "folders.read", "no absolute path"),
        (
            "[approval]\nowner_presence = \"me\"",
            2,
            18,
            "approval.owner_presence",
            "is none of: any, terminal, passphrase",
        ),
        (
            "[approval]\nwrite = \"alow\"",
            2,
            9,
            "approval.write",
            "is none of: allow, first, ask, deny; did you mean \"allow\"?",
        ),
        (
            "[secrets]\nreferences = [\"env://A\"]",
            2,
            15,
            "secrets.references",
            "begins with neither",
        ),
        (
            "[secrets]\nvault_version = 2",
            2,
            17,
            "secrets.vault_version",
            "there is no `vault_address`",
        ),
        (
            "[secrets]\nvault_address = \"https://v\"\nvault_token_file = \"t\"",
            3,
            20,
            "secrets.vault_token_file",
            "no absolute path",
        ),
        ("[trust]\nallow = [\"all\"]", 2, 10, "trust.allow", "`all` is none of"),
    ]);
}

#[test]
fn a_policy_is_not_too_large() {
    assert!(parse(&"#".repeat(LARGEST + 1)).is_err());
}

#[test]
fn all_that_is_wrong_is_told_in_the_order_of_the_text() {
    let text =
        "[trust]\nallow = [\"lokal\", 3]\n[network]\nallow = [\"a\", \"b\"]\n[sandbox]\nlevel = 2";
    let judges = Judges {
        host: |text| if text == "b" { Err("`b` is no host".to_owned()) } else { Ok(()) },
        server: |_| Ok(()),
    };
    let error = Policy::parse_with(text, &judges).unwrap_err();
    let places: Vec<_> = error.faults.iter().map(|one| (one.line, one.column)).collect();
    assert_eq!(places, [(2, 10), (2, 19), (4, 15), (6, 9)], "{error}");
    let told = "line 4, column 15: `network.allow`: `b` is no host";
    assert_eq!(error.faults[2].to_string(), told);
}
