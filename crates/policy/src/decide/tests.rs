use manifest::document::{Options, read};
use manifest::model::{Package, Trust};
use serde_json::json;

use super::*;
use crate::approval::{Remembered, Who, Why};
use crate::arguments::Pattern;
use crate::grants::Grant;

/// One tool in the dialect that can say least.
fn silent(environment: &str) -> Package {
    package(&format!(
        r#"{{"tools":[{{"name":"look","command":["./tools/bin/look"],"envPassthrough":{environment}}}]}}"#
    ))
}

fn capability(changes: &[(&str, serde_json::Value)]) -> Package {
    let mut manifest = json!({
        "id": "demo.greet", "type": "tool", "version": "1.0.0", "description": "Greets.",
        "origin": {"source": "local", "digest": "0".repeat(64)},
        "interfaces": {"inputs": {"type": "object"}, "outputs": {"type": "object"}},
        "permissions": {"network": "deny", "filesystem": "none", "devices": []},
        "runtime": {"sandbox": "process", "resources": {"cpu": "500m", "memory": "256Mi"}},
        "trust_level": "local",
        "implementation": {"kind": "command", "command": {"argv": ["true"]}}
    });
    for (pointer, value) in changes {
        match manifest.pointer_mut(pointer) {
            Some(place) => *place = value.clone(),
            None => manifest[&pointer[1..]] = value.clone(),
        }
    }
    package(&manifest.to_string())
}

fn acting(effects: &str) -> Package {
    let mut package = silent("[]");
    package.actions[0].side_effects = SideEffects::named(effects);
    package
}

fn package(text: &str) -> Package {
    let options = Options { fallback_id: Some("demo"), ..Options::default() };
    let (_, mut packages) = read(text.as_bytes(), &options).expect("a valid manifest");
    packages.remove(0)
}

fn agent() -> Surface {
    Surface::Agent { name: "mcp".into(), session: "s1".into(), who: Who::default() }
}

/// A call with everything at its mildest; a test changes what it is about.
struct Case {
    package: Package,
    surface: Surface,
    policy: Policy,
    grants: Vec<(Kind, &'static str)>,
    memory: Memory,
    trust: Trust,
    consent: Consent,
    agreed: Vec<String>,
    wants_approval: Option<Why>,
    is_signed_in: bool,
    missing_scopes: Vec<String>,
}

impl Case {
    fn of(package: Package) -> Self {
        Self {
            package,
            surface: Surface::Terminal,
            policy: Policy::default(),
            grants: Vec::new(),
            memory: Memory::default(),
            trust: Trust::Local,
            consent: Consent::ByPath,
            agreed: Vec::new(),
            wants_approval: None,
            is_signed_in: false,
            missing_scopes: Vec::new(),
        }
    }

    fn policy(mut self, text: &str) -> Self {
        self.policy = Policy::parse(text).expect("a valid policy");
        self
    }

    fn decide(&self) -> Decision {
        let arguments = Arguments::new(json!({"to": "ann@example.com"}));
        let endpoints = ["api.example.com".to_owned()];
        let asked = Asked {
            package: &self.package,
            action: &self.package.actions[0],
            implementation: self.package.implementations.first(),
            trust: self.trust,
            consent: self.consent,
            endpoints: &endpoints,
            agreed: &self.agreed,
            is_private: |host| host.starts_with("127."),
            is_denied: &|host| host.starts_with("denied."),
            is_hidden: &|path| path.starts_with("/hidden"),
            surface: &self.surface,
            arguments: &arguments,
            wants_approval: self.wants_approval.as_ref(),
            is_signed_in: self.is_signed_in,
            missing_scopes: &self.missing_scopes,
        };
        let grants = self.grants.iter();
        let grants =
            grants.map(|(kind, value)| Grant { kind: *kind, value: (*value).to_owned() }).collect();
        decide(&asked, &self.policy, &grants, &self.memory)
    }

    fn verdict(&self) -> Verdict {
        self.decide().verdict
    }

    fn why(&self) -> Why {
        match self.verdict() {
            Verdict::Ask(question) => question.why,
            other => panic!("a question was expected, not {other:?}"),
        }
    }
}

fn digest() -> String {
    Arguments::new(json!({"to": "ann@example.com"})).digest().to_owned()
}

#[test]
fn a_package_that_is_off_or_trusted_too_little_is_denied_in_the_fixed_words() {
    let mut off = capability(&[]);
    off.enabled = false;
    assert_eq!(Case::of(off).verdict(), Verdict::Denied(Denial::Disabled));
    assert_eq!(Denial::Disabled.to_string(), "capability disabled");
    for trust in [Trust::Untrusted, Trust::Community] {
        let mut case = Case::of(capability(&[]));
        case.trust = trust;
        let Verdict::Denied(denial) = case.verdict() else { panic!("{trust:?} passed") };
        let words = format!("trust_level not allowed by policy: {}", trust.name());
        assert_eq!(denial.to_string(), words);
        let mut named = case.policy("[package.\"demo.greet\"]\nallow = true");
        assert_eq!(named.verdict(), Verdict::Allowed);
        named.policy = Policy::parse("[trust]\nallow = [\"untrusted\", \"community\"]").unwrap();
        assert_eq!(named.verdict(), Verdict::Allowed);
    }
    let refused = Case::of(capability(&[])).policy("[package.\"demo.greet\"]\nallow = false");
    assert_eq!(refused.verdict(), Verdict::Denied(Denial::Package));
    assert_eq!(Denial::Login.to_string(), "capability requires oauth onboarding");
}

#[test]
fn who_must_sign_in_is_told_whether_that_can_be_done() {
    let server = json!({
        "kind": "mcp_tool", "mcp": {"registry_url": "https://r.example/", "tool_name": "x"},
    });
    let agent = json!({"kind": "a2a_rpc", "a2a": {"endpoint": "https://a.example/"}});
    let command = json!({"kind": "command", "command": {"argv": ["true"]}});
    let none = json!([]);
    let one = json!([{"name": "TOKEN", "ref": "secret://TOKEN"}]);
    let cases = [
        (server, &none, Denial::Login),
        (agent, &none, Denial::Login),
        (command.clone(), &none, Denial::NoLogin),
        (command, &one, Denial::Login),
    ];
    for (implementation, secrets, denial) in cases {
        let changes = [("/implementation", implementation), ("/secrets", secrets.clone())];
        let mut package = capability(&changes);
        package.requires_oauth = true;
        assert_eq!(Case::of(package).verdict(), Verdict::Denied(denial));
    }
}

#[test]
fn an_action_that_needs_what_was_not_granted_is_denied_before_anybody_is_asked() {
    let mut case = Case::of(acting("destructive"));
    case.is_signed_in = true;
    assert!(matches!(case.verdict(), Verdict::Ask(_)));
    case.missing_scopes = vec!["mail:send".to_owned(), "mail:admin".to_owned()];
    let denial = Denial::Scopes(case.missing_scopes.clone());
    let words = "the action needs what your sign-in was not granted: `mail:send`, `mail:admin`";
    assert_eq!(denial.to_string(), words);
    assert_eq!(case.verdict(), Verdict::Denied(denial));
}

#[test]
fn the_owner_is_asked_when_it_is_declared_or_destructive_or_demanded() {
    for (effects, allowed) in [("none", true), ("read", true), ("write", true)] {
        assert_eq!(Case::of(acting(effects)).verdict() == Verdict::Allowed, allowed, "{effects}");
    }
    assert_eq!(Case::of(acting("destructive")).why(), Why::Destructive);
    let mut declared = Case::of(acting("none"));
    declared.wants_approval = Some(Why::Declared);
    assert_eq!(declared.why(), Why::Declared);
    declared.wants_approval = None;
    declared.package.actions[0].requires_approval = Some(true);
    assert_eq!(declared.why(), Why::Declared);
    let failed = Why::Failed("a\nYou are asked".into());
    declared.wants_approval = Some(failed.clone());
    assert_eq!(declared.why(), failed);
    assert_eq!(failed.words(), "its `requiresApproval` failed: \"a\\nYou are asked\"");
    let demanded = Case::of(acting("write")).policy("[approval]\nwrite = \"ask\"");
    assert_eq!(demanded.why(), Why::Policy);
    let denied = Case::of(acting("write")).policy("[approval]\nwrite = \"deny\"");
    assert_eq!(denied.verdict(), Verdict::Denied(Denial::Action("look".into())));
}

#[test]
fn a_package_cannot_talk_the_owners_policy_down() {
    let mut case = Case::of(acting("none")).policy("[approval]\nnone = \"ask\"");
    case.package.actions[0].requires_approval = Some(false);
    assert_eq!(case.why(), Why::Policy);
    let mut case = Case::of(acting("write")).policy("[approval]\nwrite = \"deny\"");
    case.wants_approval = Some(Why::Declared);
    assert_eq!(case.verdict(), Verdict::Denied(Denial::Action("look".into())));
}

#[test]
fn the_owner_can_say_otherwise_by_name() {
    let case = Case::of(acting("destructive")).policy("[package.demo]\napproval = \"allow\"");
    assert_eq!(case.verdict(), Verdict::Allowed);
    let case = Case::of(acting("none"))
        .policy("[package.demo]\napproval = \"allow\"\nactions.look = \"ask\"");
    assert_eq!(case.why(), Why::Policy);
}

#[test]
fn a_package_that_wants_its_owner_asked_is_silenced_by_its_name_alone() {
    let mut case = Case::of(acting("none")).policy("[approval]\nnone = \"allow\"");
    case.wants_approval = Some(Why::Declared);
    assert_eq!(case.why(), Why::Declared);
    for policy in ["approval = \"allow\"", "actions.look = \"allow\""] {
        let mut case = Case::of(acting("none")).policy(&format!("[package.demo]\n{policy}"));
        case.package.actions[0].requires_approval = Some(true);
        let decision = case.decide();
        assert_eq!(decision.verdict, Verdict::Allowed);
        let told =
            decision.reasons.iter().any(|one| one.says.ends_with("but your policy names it"));
        assert!(told, "{:?}", decision.reasons);
    }
}

#[test]
fn a_rule_that_asks_the_first_time_says_so_in_its_question() {
    let is_first = |case: &Case| match case.verdict() {
        Verdict::Ask(question) => question.is_first,
        other => panic!("{other:?}"),
    };
    let mut case = Case::of(acting("none")).policy("[approval]\nnone = \"first\"");
    assert!(is_first(&case));
    case.memory.is_known = true;
    assert_eq!(case.verdict(), Verdict::Allowed);
    // Whoever wants to be asked about is asked about each time.
    case.wants_approval = Some(Why::Declared);
    assert!(!is_first(&case));
    assert!(!is_first(&Case::of(acting("destructive"))));
}

#[test]
fn undeclared_effects_are_no_question_to_the_owner_and_one_to_an_agent() {
    assert_eq!(Case::of(silent("[]")).verdict(), Verdict::Allowed);
    let mut case = Case::of(silent("[]"));
    case.surface = agent();
    assert_eq!(case.why(), Why::FirstCall);
    case.memory.is_known = true;
    assert_eq!(case.verdict(), Verdict::Allowed);
    let mut strict = case.policy("[approval]\nundeclared = \"ask\"");
    assert_eq!(strict.why(), Why::Policy);
    strict.policy = Policy::parse("[approval]\nundeclared = \"deny\"").unwrap();
    assert_eq!(strict.verdict(), Verdict::Denied(Denial::Action("look".into())));
}

#[test]
fn an_answer_is_for_these_arguments_alone() {
    let mut case = Case::of(acting("destructive"));
    case.memory.answer = Some(Answer::Approved { digest: digest() });
    assert_eq!(case.verdict(), Verdict::Allowed);
    case.memory.answer = Some(Answer::Approved { digest: "another".into() });
    assert_eq!(case.verdict(), Verdict::Denied(Denial::OtherArguments));
    case.memory.answer = Some(Answer::Refused);
    assert_eq!(case.verdict(), Verdict::Denied(Denial::Refused));
}

#[test]
fn a_remembered_answer_counts_for_its_action_arguments_and_session() {
    let mut case = Case::of(acting("destructive"));
    case.surface = agent();
    let remembered = |action: &str, pattern: &str, session: Option<&str>| Remembered {
        action: action.into(),
        pattern: Pattern::parse(pattern).unwrap(),
        session: session.map(str::to_owned),
    };
    for (one, counts) in [
        (remembered("look", "{}", None), true),
        (remembered("look", r#"{"to":"*@example.com"}"#, None), true),
        (remembered("look", "{}", Some("s1")), true),
        (remembered("look", "{}", Some("s2")), false),
        (remembered("other", "{}", None), false),
        (remembered("look", r#"{"to":"*@example.org"}"#, None), false),
    ] {
        case.memory.remembered = vec![one.clone()];
        assert_eq!(case.verdict() == Verdict::Allowed, counts, "{one:?}");
    }
    case.memory.remembered = vec![remembered("look", "{}", Some("s1"))];
    case.surface = Surface::Terminal;
    assert_eq!(case.why(), Why::Destructive, "a session of an agent is not the terminal's");
}

#[test]
fn variables_that_steer_programs_are_refused_unless_the_policy_names_them() {
    for name in ["LD_PRELOAD", "LD_LIBRARY_PATH", "NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP"]
        .into_iter()
        .chain(["BASH_ENV", "GIT_SSH_COMMAND", "HTTPS_PROXY", "ALL_PROXY"])
    {
        let case = Case::of(silent(&format!("[\"{name}\"]")));
        let case = case.policy("[environment]\nallow = [\"RUBYLIB\"]");
        let allowed = vec!["RUBYLIB".to_owned()];
        let denied = Verdict::Denied(Denial::Environment { name: name.into(), allowed });
        assert_eq!(case.verdict(), denied, "{name}");
        let allowed = case.policy(&format!("[environment]\nallow = [\"{name}\"]"));
        assert_eq!(allowed.verdict(), Verdict::Allowed, "{name}");
        assert_eq!(allowed.decide().allowance.environment, [name]);
    }
    assert_eq!(Case::of(silent("[\"TZ\"]")).verdict(), Verdict::Allowed);
    // A grant does not pass them on either.
    let mut granted = Case::of(silent("[]"));
    granted.grants = vec![(Kind::Environment, "LD_PRELOAD"), (Kind::Environment, "TZ")];
    assert_eq!(granted.decide().allowance.environment, ["TZ"]);
    let granted = granted.policy("[environment]\nallow = [\"LD_PRELOAD\"]");
    assert_eq!(granted.decide().allowance.environment, ["LD_PRELOAD", "TZ"]);
}

#[test]
fn hosts_come_from_the_endpoint_the_declaration_the_policy_and_grants() {
    let mut case =
        Case::of(silent("[]")).policy("[network]\nallow = [\"p.example\"]\ndeny=[\"d\"]");
    case.package.permissions.hosts = vec!["declared.example".into()];
    case.grants = vec![(Kind::Host, "10.0.0.7:80"), (Kind::Host, "declared.example")];
    let allowance = case.decide().allowance;
    let found: Vec<_> =
        allowance.hosts.iter().map(|one| (&*one.rule, one.may_be_private)).collect();
    let expected = [
        ("api.example.com", false),
        ("declared.example", true),
        ("p.example", true),
        ("10.0.0.7:80", true),
    ];
    assert_eq!(found, expected);
    assert_eq!(allowance.denied_hosts, ["d"]);
    case.consent = Consent::ByCard { admitted: Trust::Local };
    assert_eq!(case.decide().allowance, allowance);
}

#[test]
fn what_is_on_a_card_leads_to_no_private_place_unless_the_owner_grants_it_too() {
    let mut case = Case::of(silent("[]"));
    case.consent = Consent::ByCard { admitted: Trust::Local };
    case.agreed = ["a.example", "127.0.0.1:80", "denied.example"].map(str::to_owned).into();
    let found = |case: &Case| -> Vec<_> {
        let hosts = case.decide().allowance.hosts.into_iter();
        hosts.map(|one| (one.rule, one.may_be_private)).collect()
    };
    let own = ("api.example.com".to_owned(), false);
    assert_eq!(found(&case), [own.clone(), ("a.example".to_owned(), false)]);
    case.grants = vec![(Kind::Host, "a.example"), (Kind::Host, "127.0.0.1:80")];
    let both = [own, ("a.example".to_owned(), true), ("127.0.0.1:80".to_owned(), true)];
    assert_eq!(found(&case), both);
}

#[test]
fn a_host_of_a_companion_stands_for_those_below_it_and_one_of_an_endpoint_does_not() {
    let mut case = Case::of(silent("[]"));
    case.package.permissions.hosts = vec!["endpoint.example".into()];
    let mut companion = manifest::companion::Companion::default();
    companion.permissions.hosts =
        ["a.example", "a.example:8443", "*.b.example", "10.0.0.1"].map(str::to_owned).into();
    companion.permissions.domains = companion.permissions.hosts.clone();
    manifest::companion::apply(&companion, &mut case.package);
    let decision = case.decide();
    let hosts: Vec<_> = decision.allowance.hosts.iter().map(|one| &*one.rule).collect();
    let expected = [
        "api.example.com",
        "*.b.example",
        "10.0.0.1",
        "a.example",
        "*.a.example",
        "a.example:8443",
        "*.a.example:8443",
        "endpoint.example",
    ];
    assert_eq!(hosts, expected);
}

#[test]
fn what_a_capability_denies_itself_stays_denied() {
    let mut case = Case::of(capability(&[])).policy("[folders]\nread = [\"/srv\"]");
    case.grants = vec![
        (Kind::Host, "api.example.com"),
        (Kind::Write, "/data"),
        (Kind::Device, "/dev/video0"),
    ];
    let decision = case.decide();
    assert_eq!(decision.allowance.hosts, []);
    assert!(decision.allowance.read.is_empty() && decision.allowance.write.is_empty());
    assert!(decision.allowance.devices.is_empty());
    let text: Vec<_> = decision.reasons.iter().map(ToString::to_string).collect();
    assert!(text.contains(&"network: network denied by capability permissions".to_owned()));

    case.package = capability(&[(
        "/permissions",
        json!({"network": "allowlist", "network_allowlist": ["a.example"],
            "filesystem": "read", "devices": ["/dev/video0"]}),
    )]);
    let allowance = case.decide().allowance;
    let hosts: Vec<_> = allowance.hosts.iter().map(|one| &*one.rule).collect();
    assert_eq!(hosts, ["api.example.com", "a.example", "*.a.example"]);
    assert_eq!(allowance.read, ["/srv", "/data"]);
    assert!(allowance.write.is_empty());
    assert_eq!(allowance.devices, ["/dev/video0"]);

    case.package = capability(&[(
        "/permissions",
        json!({"network": "allowlist", "network_allowlist": ["*.b.example", "10.0.0.1"],
            "filesystem": "none", "devices": []}),
    )]);
    let allowance = case.decide().allowance;
    let hosts: Vec<_> = allowance.hosts.iter().map(|one| &*one.rule).collect();
    assert_eq!(hosts, ["api.example.com", "*.b.example", "10.0.0.1"], "no rule is made up");
}

#[test]
fn limits_are_the_packages_within_the_policys() {
    let allowance = Case::of(capability(&[])).decide().allowance;
    assert_eq!((allowance.memory, allowance.cpu_share), (256 << 20, Some(50)));
    assert_eq!((allowance.timeout_ms, allowance.level), (30_000, Level::L2));
    assert_eq!((allowance.memory_by, allowance.timeout_by), (SetBy::Manifest, SetBy::Policy));
    let case = Case::of(capability(&[(
        "/runtime",
        json!({"sandbox": "container", "resources": {"cpu": "1", "memory": "64Gi"},
            "timeout_seconds": 7200}),
    )]))
    .policy("[sandbox]\nlevel = \"L1\"\nmax_timeout = \"1m\"\nmax_memory = \"2G\"");
    let allowance = case.decide().allowance;
    assert_eq!((allowance.memory, allowance.timeout_ms), (2 << 30, 60_000));
    assert_eq!((allowance.memory_by, allowance.timeout_by), (SetBy::Most, SetBy::Most));
    assert_eq!(allowance.level, Level::L2, "a container is asked for");
    let case = Case::of(silent("[]")).policy("[package.demo]\nlevel = \"L1\"\nmemory = \"9M\"");
    let allowance = case.decide().allowance;
    assert_eq!((allowance.level, allowance.memory), (Level::L1, 9 << 20));
    assert_eq!((allowance.memory_by, allowance.timeout_by), (SetBy::Package, SetBy::Policy));
}

#[test]
fn limits_that_the_owner_sets_by_name_count_whatever_the_package_says() {
    let greedy = || {
        let runtime = json!({"sandbox": "process", "resources": {"cpu": "1", "memory": "256Mi"},
            "timeout_seconds": 3});
        Case::of(capability(&[("/runtime", runtime)]))
    };
    let id = greedy().package.canonical_id();
    for (timeout, memory, expected) in [
        ("1s", "32M", (1_000, 32 << 20)),
        ("9s", "1G", (9_000, 1 << 30)),
        // The most that any may have stays the most.
        ("20m", "64G", (600_000, 8 << 30)),
    ] {
        let text = format!("[package.\"{id}\"]\ntimeout = \"{timeout}\"\nmemory = \"{memory}\"");
        let decision = greedy().policy(&text).decide();
        let allowance = decision.allowance;
        assert_eq!((allowance.timeout_ms, allowance.memory), expected);
        let by_name = decision.reasons.iter().filter(|one| one.rule == "limits");
        assert_eq!(by_name.count(), 2);
    }
    let allowance = greedy().decide().allowance;
    assert_eq!((allowance.timeout_ms, allowance.memory), (3_000, 256 << 20));
}

#[test]
fn every_decision_says_why() {
    for case in [Case::of(silent("[]")), Case::of(capability(&[])), Case::of(acting("write"))] {
        let decision = case.decide();
        for rule in ["trust", "network", "walls", "approval"] {
            let said = decision.reasons.iter().any(|reason| reason.rule == rule);
            assert!(said, "{rule}: {:?}", decision.reasons);
        }
    }
}

#[test]
fn the_ways_to_run_an_image_are_tried_in_the_order_of_the_policy() {
    use crate::ContainerWay::{Engine, Image};
    let order = |text: &str| Policy::parse(text).map(|policy| policy.containers.order);
    assert_eq!(order("").unwrap(), [Image, Engine]);
    assert_eq!(order("[containers]\norder = [\"engine\"]").unwrap(), [Engine]);
    assert_eq!(order("[containers]\norder = []").unwrap(), []);
    let unknown = order("[containers]\norder = [\"image\",\n \"cloud\"]").unwrap_err();
    assert_eq!(unknown.faults[0].line, 3, "{unknown}");
    assert!(order("[containers]\npull = true").is_err());
    let secrets = |text: &str| Policy::parse(text).map(|policy| policy.containers.engine_secrets);
    assert!(!secrets("").unwrap());
    assert!(secrets("[containers]\nengine_secrets = true").unwrap());
    assert_eq!(order("[containers]\nengine_secrets = true").unwrap(), [Image, Engine]);
}

#[test]
fn no_package_takes_the_rules_of_another_by_its_id() {
    let policy = "[package.\"mcpkg:acme.mail\"]\napproval = \"allow\"\nlevel = \"L0\"\n";
    let mut spoof = acting("destructive");
    spoof.id = "mcpkg:acme.mail".into();
    spoof.dialect = Dialect::Jumith;
    let case = Case::of(spoof).policy(policy);
    assert_eq!(case.why(), Why::Destructive);
    assert_eq!(case.decide().allowance.level, Level::L2);
    let by_name = policy.replace("mcpkg:acme.mail", "jumith:mcpkg:acme.mail");
    assert_eq!(case.policy(&by_name).verdict(), Verdict::Allowed);
    let mut meant = acting("destructive");
    meant.id = "acme.mail".into();
    meant.dialect = Dialect::Mcpkg;
    assert_eq!(Case::of(meant.clone()).policy(policy).verdict(), Verdict::Allowed);
    let bare = policy.replace("mcpkg:acme.mail", "acme.mail");
    assert_eq!(Case::of(meant).policy(&bare).verdict(), Verdict::Allowed);
    // A colon alone makes no dialect.
    let mut tool = acting("destructive");
    tool.id = "tool:acme.mail".into();
    let bare = policy.replace("mcpkg:acme.mail", "tool:acme.mail");
    assert_eq!(Case::of(tool).policy(&bare).verdict(), Verdict::Allowed);
}

#[test]
fn what_the_policy_refuses_whoever_grants_it_is_said_and_not_given() {
    let mut case = Case::of(silent("[]"));
    case.grants = vec![
        (Kind::Host, "denied.example"),
        (Kind::Host, "a.example"),
        (Kind::Read, "/hidden/a"),
        (Kind::Read, "/data"),
    ];
    let decision = case.decide();
    let hosts: Vec<_> = decision.allowance.hosts.iter().map(|one| one.rule.as_str()).collect();
    assert!(hosts.contains(&"a.example") && !hosts.contains(&"denied.example"));
    assert_eq!(decision.allowance.read, ["/data"]);
    let said: Vec<_> = decision.reasons.iter().map(ToString::to_string).collect();
    assert!(said.contains(
        &"network: denied.example: granted, but your policy refuses it ([network] deny)".to_owned()
    ));
    assert!(said.iter().any(|one| one.starts_with("folders: /hidden/a: no tool gets it")));
}
