//! What programs are told: one document of what was done, or of why not.

use serde_json::{Value, json};

use crate::desk::{Desk, PACKAGE, closed, leave, open};

impl Desk {
    /// What is told in JSON; nothing else is said.
    fn told(&self, arguments: &[&str], stdin: Option<&[u8]>, code: i32) -> Value {
        let ran = self.run(&[&["--json"], arguments].concat(), stdin);
        assert_eq!(ran.code, code, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stderr, "", "{arguments:?}");
        ran.json()
    }

    fn done_in_json(&self, arguments: &[&str]) -> Value {
        self.told(arguments, None, 0)
    }
}

#[test]
fn what_was_done_is_one_document() {
    let desk = Desk::new();
    let unseen = format!("no package `{PACKAGE}` is known here");
    let unset = "`X` is not set now; it is passed on as it is when the package is called";
    let grant = ["grant", PACKAGE, "--env", "X", "--host", "API.example.com"];
    let [host, env] =
        [json!({"kind": "host", "value": "api.example.com"}), json!({"kind": "env", "value": "X"})];
    let granted = |is_new: bool| {
        [&host, &env].map(|one| {
            let mut one = one.clone();
            one["new"] = is_new.into();
            one
        })
    };
    assert_eq!(
        desk.done_in_json(&grant),
        json!({"package": PACKAGE, "granted": granted(true), "warnings": [&unseen, unset]})
    );
    assert_eq!(
        desk.done_in_json(&grant),
        json!({"package": PACKAGE, "granted": granted(false), "warnings": [unset]})
    );
    assert_eq!(
        desk.done_in_json(&["ungrant", PACKAGE, "--env", "X"]),
        json!({"package": PACKAGE, "taken_back": [env], "warnings": []})
    );
    assert_eq!(
        desk.done_in_json(&["ungrant", PACKAGE, "--all"]),
        json!({"package": PACKAGE, "taken_back": [host], "warnings": []})
    );
    assert_eq!(
        desk.done_in_json(&["ungrant", PACKAGE, "--all"]),
        json!({"package": PACKAGE, "taken_back": [], "warnings": [unseen]})
    );
    let remembered = desk.done_in_json(&["approve", "always", PACKAGE, "send", r#"{"to":"*"}"#]);
    let rule = &remembered["remembered"];
    assert_eq!(
        (&rule["number"], &rule["action"], &rule["pattern"]),
        (&json!(1), &json!("send"), &json!(r#"{"to":"*"}"#))
    );
    assert_eq!(remembered["warnings"], json!([unseen]));
    assert_eq!(&desk.done_in_json(&["approve", "rules"])[0], rule);
    assert_eq!(
        desk.done_in_json(&["approve", "forget", "1"]),
        json!({"forgotten": rule, "warnings": []})
    );
    let [first, second] = ["one", "two"].map(|name| leave(&desk.home(), name));
    let waiting = desk.done_in_json(&["approve", "waiting"]);
    let allowed = desk.done_in_json(&["approve", "allow", &first, "--session"]);
    assert_eq!(allowed["allowed"], waiting[0]);
    assert_eq!(allowed["remembered"], desk.done_in_json(&["approve", "rules"])[0]);
    let refused = desk.done_in_json(&["approve", "refuse", &second]);
    assert_eq!(refused, json!({"refused": waiting[1], "warnings": []}));
    let kept = desk.told(&["secret", "set", PACKAGE, "TOKEN"], Some(b"hunter2"), 0);
    let secret = &kept["kept"];
    assert_eq!((&secret["package"], &secret["name"]), (&json!(PACKAGE), &json!("TOKEN")));
    assert_eq!(desk.done_in_json(&["secret", "list"]), json!([secret]));
    assert_eq!(
        desk.done_in_json(&["secret", "rotate"]),
        json!({"rotated": [secret], "warnings": []})
    );
    assert_eq!(
        desk.done_in_json(&["secret", "rm", PACKAGE, "TOKEN"]),
        json!({"forgotten": secret, "warnings": []})
    );
    assert!(!kept.to_string().contains("hunter2"));
}

#[test]
fn a_call_that_fails_is_told_with_the_hints_that_people_see() {
    let desk = Desk::new();
    let call = |manifest: &str| {
        let arguments = ["call", "--from", manifest, "demo.tool", "{}"];
        let shown = desk.run(&arguments, None);
        let error = desk.run(&[&["--json"], &arguments[..]].concat(), None).json()["error"].clone();
        let hints = shown.stderr.lines().filter_map(|line| line.strip_prefix("hint: "));
        assert_eq!(error["hints"], json!(hints.collect::<Vec<_>>()), "{}", shown.stderr);
        error
    };
    let secrets = json!([{"name": "TOKEN", "ref": "secret://TOKEN"}]);
    let missing = call(&desk.capability("echo '{}'", &closed(), &secrets));
    assert_eq!(missing["code"], "missing_input");
    assert_eq!(missing["hints"], json!([format!("`haft secret set {PACKAGE} TOKEN` keeps it")]));
    let script = "curl -sS -m 5 https://other.example.net/ >/dev/null 2>&1; exit 1";
    let blocked = call(&desk.capability(script, &open(), &json!([])));
    assert!(blocked["hints"][0].as_str().unwrap().contains("haft grant"), "{blocked}");
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    desk.write("home/policy.toml", "[package.\"demo.tool\"]\napproval = \"ask\"\n");
    let asked = call(&manifest);
    assert_eq!(
        (&asked["code"], &asked["hints"]),
        (&json!("needs_approval"), &json!(["--approve approves this one call"]))
    );
    desk.write("home/policy.toml", "[package.\"demo.tool\"]\nallow = false\n");
    let refused = call(&manifest);
    assert_eq!(
        refused["hints"],
        json!(["`haft policy show` shows your policy; `allow` of this package in it says so"])
    );
    desk.write("home/policy.toml", "[package.\"demo.tool\"]\nactions.\"demo.tool\" = \"deny\"\n");
    let refused = call(&manifest);
    assert!(refused["hints"][0].as_str().unwrap().starts_with("`haft policy show`"), "{refused}");
    let steering = json!([{"name": "LD_PRELOAD", "ref": "secret://X"}]);
    let manifest = desk.capability("echo '{}'", &closed(), &steering);
    std::fs::remove_file(desk.home().join("policy.toml")).unwrap();
    assert_eq!(desk.run(&["secret", "set", PACKAGE, "X"], Some(b"value")).code, 0);
    desk.write("home/policy.toml", "[environment]\nallow = [\"RUBYLIB\"]\n");
    let refused = call(&manifest);
    assert_eq!(
        refused["hints"],
        json!([
            "`allow = [\"RUBYLIB\", \"LD_PRELOAD\"]` below `[environment]` in policy.toml lets it be given to every tool that names it"
        ])
    );
    let policy = "[approval]\nowner_presence = \"passphrase\"\n[package.\"demo.tool\"]\napproval = \"ask\"\n";
    desk.write("home/policy.toml", policy);
    let word = desk.told(&["call", "--from", &manifest, "demo.tool", "{}", "--approve"], None, 4);
    let hints = &word["error"]["hints"];
    assert_eq!(hints, &json!(["`haft secret passphrase` sets one"]), "{word}");
    let unknown = desk.told(&["call", "--from", &manifest, "nothing"], None, 3);
    assert_eq!(unknown["error"]["hints"], json!(["there is demo.tool"]));
}

#[test]
fn a_failure_is_one_document_and_says_what_kind_it_is() {
    let desk = Desk::new();
    let manifest = desk.capability("echo '{}'", &closed(), &json!([]));
    let missing = desk.told(&["approve", "forget", "99"], None, 3);
    assert_eq!(
        missing,
        json!({"ok": false, "error": {
            "code": "not_found", "message": "there is no rule `99`", "details": {},
            "hints": ["`haft approve rules` shows which there are"],
        }})
    );
    let path = desk.write("home/policy.toml", "[nonsense]\n");
    for arguments in
        [&["grant", PACKAGE, "--env", "X"][..], &["call", "--from", &manifest, "demo.tool", "{}"]]
    {
        let told = desk.told(arguments, None, 2);
        let error = &told["error"];
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!("invalid_policy"), &json!(format!("`{path}` is no policy"))),
            "{told}"
        );
        let problems = &error["details"]["problems"];
        assert!(problems[0].as_str().unwrap().starts_with("line 1, column 2: "), "{told}");
        assert!(error["details"]["details"].is_null(), "{told}");
        assert!(error["hints"][0].as_str().unwrap().starts_with("until it is mended"), "{told}");
    }
    std::fs::write(&path, b"# \xff\n").unwrap();
    let told = desk.told(&["grant", PACKAGE, "--env", "X"], None, 2);
    assert_eq!(told["error"]["code"], "invalid_policy", "{told}");
}

#[test]
fn what_was_typed_wrong_is_one_document_too() {
    let desk = Desk::new();
    for (arguments, message, hint) in [
        (
            &["grant", "x:demo.tool"][..],
            "invalid value 'x:demo.tool' for '<PACKAGE>': `x` is no dialect",
            "",
        ),
        (
            &["audit", "--outcome", "timeout"],
            "invalid value 'timeout'",
            "a similar value exists: 'timed_out'",
        ),
        (&["nosuch"], "unrecognized subcommand 'nosuch'", "Usage: haft"),
        (
            &["secret", "set"],
            "the following required arguments were not provided: <PACKAGE> <NAME>",
            "Usage: haft secret set",
        ),
        (&["secret"], "a verb is missing", "Usage: haft secret"),
    ] {
        let told = desk.told(arguments, None, 2);
        let error = &told["error"];
        assert_eq!((&told["ok"], &error["code"]), (&json!(false), &json!("bad_usage")), "{told}");
        assert!(error["message"].as_str().unwrap().starts_with(message), "{told}");
        let hints = error["hints"].as_array().unwrap();
        assert!(
            hint.is_empty() || hints.iter().any(|one| one.as_str().unwrap().starts_with(hint)),
            "{told}"
        );
    }
    // Help is no failure, and what belongs to another program is not for us.
    assert!(desk.done(&["--json", "grant", "--help"]).stdout.contains("Usage: haft grant"));
    let ran = desk.run(&["sandbox", "--nosuch", "--", "x", "--json"], None);
    assert_eq!((ran.code, &*ran.stdout), (2, ""), "{}", ran.stderr);
}
