//! Signing in by a code that is typed at a browser on any machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::Ran;
use crate::desk::{Desk, PACKAGE, browse, ended};
use crate::provider::{Provider, fails};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// `haft login --device`, which waits for somebody.
pub(crate) struct Shown {
    pub(crate) child: Child,
    page: String,
    code: String,
    pub(crate) direct: String,
}

impl Shown {
    /// Begins to sign in for what is named, up to what is shown.
    pub(crate) fn new(desk: &Desk, provider: &Provider, what: &[&str]) -> Self {
        let host = provider.host();
        let words = ["login", "--device", "--allow-host", &host];
        let mut child = desk.start(&[&words, what].concat());
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let mut next = |label: &str| {
            let line = lines.next().map(Result::unwrap).unwrap_or_default();
            line.strip_prefix(label).unwrap_or_default().trim().to_owned()
        };
        let (page, code, direct) = (next("Page "), next("Code "), next("Direct "));
        Self { child, page, code, direct }
    }
}

/// Tries to sign in, and nobody comes.
fn refused(desk: &Desk, more: &[&str]) -> Ran {
    let manifest = desk.manifest();
    let ran = desk.run(&[&["login", "--from", &manifest, "--device"], more].concat());
    assert!(!desk.is_signed_in());
    ran
}

/// Waits until somebody asked after the code.
fn await_question(provider: &Provider) {
    let until = Instant::now() + Duration::from_secs(20);
    while provider.log()["polls"] == json!([]) {
        assert!(Instant::now() < until, "nobody asks");
    }
}

#[test]
fn somebody_signs_in_at_a_browser_elsewhere_and_the_token_is_used_and_renewed() {
    let provider = Provider::new(&json!({"code": {}, "gives": ["read"]}));
    let desk = provider.desk();
    let shown = Shown::new(&desk, &provider, &["--from", &desk.manifest()]);
    let page = format!("http://{}/device", provider.host());
    assert_eq!((&shown.page, &*shown.code), (&page, "WDJB-MJHT"));
    assert_eq!(shown.direct, format!("{page}?user_code=WDJB-MJHT"));
    await_question(&provider);
    assert!(!desk.is_signed_in());
    browse(&shown.direct);
    let ran = ended(shown.child);
    let command = format!("haft login --from {} --device --scope write", desk.manifest());
    fails(
        &ran,
        0,
        &[
            "It is waited for 10 minutes",
            "Signed in for install-manifest:trial (scopes: read)",
            "Not granted: write (refused until then: change)",
            &command,
        ],
    );
    let log = provider.log();
    let about = &log["registered"][0];
    assert_eq!(about["grant_types"], json!([GRANT, "refresh_token"]));
    assert_eq!((&about["response_types"], &about["redirect_uris"]), (&json!([]), &Value::Null));
    let resource = format!("http://{}/mcp", provider.host());
    let asked = json!({"client_id": "x", "scope": "read write", "resource": resource});
    assert_eq!(log["devices"], json!([asked]));
    let poll = &log["polls"][0];
    assert_eq!((&poll["resource"], &poll["grant_type"]), (&json!(resource), &json!(GRANT)));
    // What we ask with is nobody's to see.
    let secret = poll["device_code"].as_str().unwrap();
    assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret) && !desk.holds(secret));

    let ran = desk.call("look", &json!({}));
    assert_eq!((ran.code, ran.stdout.trim()), (0, "did look"), "{}", ran.stderr);
    fails(&desk.call("change", &json!({})), 4, &["not granted: `write`"]);
    browse(&format!("http://{}/end", provider.host()));
    let ran = desk.call("look", &json!({}));
    assert_eq!((ran.code, &provider.log()["refreshes"]), (0, &json!(1)), "{}", ran.stderr);
    assert_eq!(desk.run(&["logout", PACKAGE]).code, 0);
    assert!(!desk.is_signed_in());
}

#[test]
fn programs_are_told_the_code_first_and_how_it_went_then() {
    let provider = Provider::new(&json!({"code": {}}));
    let desk = provider.desk();
    let (host, manifest) = (provider.host(), desk.manifest());
    let words = ["login", "--from", &manifest, "--allow-host", &host, "--device", "--json"];
    let mut child = desk.start(&words);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let event: Value = serde_json::from_str(&line).unwrap();
    let page = format!("http://{host}/device");
    let expected = json!({
        "event": "device_code",
        "resource": format!("http://{host}/mcp"),
        "secret": null,
        "issuer": format!("http://{host}"),
        "scopes": ["read", "write"],
        "verification_uri": page,
        "verification_uri_complete": format!("{page}?user_code=WDJB-MJHT"),
        "user_code": "WDJB-MJHT",
        "expires_in": 600,
    });
    assert_eq!(event, expected);
    browse(&format!("{page}?user_code=WDJB-MJHT"));
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    let told: Value = serde_json::from_str(&rest).unwrap();
    assert_eq!((&told["package"], &told["renews"]), (&json!(PACKAGE), &json!(true)), "{told}");
    assert_eq!(told["missing"], json!([{"scope": "admin", "actions": ["rule"]}]));

    // That it failed is told in the same way.
    let provider = Provider::new(&json!({"code": {}, "polls": ["access_denied"]}));
    let desk = provider.desk();
    let ran = refused(&desk, &["--json"]);
    let (event, told) = ran.stdout.split_once('\n').unwrap();
    assert!(event.contains("device_code"), "{event}");
    let told: Value = serde_json::from_str(told).unwrap();
    assert_eq!((ran.code, &told["error"]["code"]), (4, &json!("denied")), "{told}");
}

#[test]
fn whoever_says_no_or_is_too_late_is_not_signed_in() {
    for (polls, code, words) in [
        (&["access_denied"], 4, "signing in was refused: access_denied\n"),
        (&["expired_token"], 1, "hint: the same command again gives another code\n"),
        (&["invalid_grant"], 1, "the token endpoint answered 400: invalid_grant\n"),
    ] {
        let provider = Provider::new(&json!({"code": {}, "polls": polls}));
        let desk = provider.desk();
        let ran = refused(&desk, &[]);
        fails(&ran, code, &[words]);
        // The server's other words have the secret in them.
        assert!(!ran.stderr.contains("device-"), "{}", ran.stderr);
        assert_eq!(provider.log()["polls"].as_array().unwrap().len(), 1);
    }
    // Somebody says it at the page.
    let provider = Provider::new(&json!({"code": {}}));
    let desk = provider.desk();
    let shown = Shown::new(&desk, &provider, &["--from", &desk.manifest()]);
    browse(&shown.page);
    fails(&ended(shown.child), 4, &["access_denied"]);
    // The code holds no longer than the server says, nor is it waited for longer than the owner does.
    let short = Provider::new(&json!({"code": {"expires_in": 1}}));
    fails(&refused(&short.desk(), &[]), 1, &["the code ended before", "for 1 second;"]);
    let ran = refused(&provider.desk(), &["--timeout", "500ms"]);
    fails(&ran, 1, &["in time", "hint: --timeout waits longer"]);
}

#[test]
fn a_server_that_gives_no_codes_is_left_alone() {
    let grants = json!({"grant_types_supported": ["authorization_code", "refresh_token"]});
    for setup in [json!({}), json!({"code": {}, "metadata": grants})] {
        let provider = Provider::new(&setup);
        let desk = provider.desk();
        let ran = refused(&desk, &[]);
        fails(
            &ran,
            2,
            &[
                "signs nobody in by device code\n",
                "hint: without --device it signs in by a browser",
            ],
        );
        let log = provider.log();
        assert_eq!(
            (&*ran.stdout, &log["registered"], &log["devices"]),
            ("", &json!([]), &json!([]))
        );
        // Nor is it hinted at.
        let manifest = desk.manifest();
        let ran = desk.run(&["login", "--from", &manifest, "--timeout", "500ms"]);
        fails(&ran, 1, &["in time"]);
        assert!(!ran.stderr.contains("--device"), "{}", ran.stderr);
    }
}

#[test]
fn a_registration_for_less_is_not_used() {
    for (grants, is_enough) in [(json!([GRANT]), true), (json!(["authorization_code"]), false)] {
        let registers = json!({"grant_types": grants});
        let setup = json!({"code": {}, "registers": registers, "polls": ["access_denied"]});
        let provider = Provider::new(&setup);
        let ran = refused(&provider.desk(), &[]);
        let words = "it does not let us sign in by device code\n";
        assert_eq!(ran.stderr.contains(words), !is_enough, "{}", ran.stderr);
        assert_eq!(ran.code, if is_enough { 4 } else { 1 }, "{}", ran.stderr);
        let asked = provider.log()["devices"].as_array().unwrap().len();
        assert_eq!(asked, usize::from(is_enough));
    }
}

#[test]
fn where_no_browser_here_can_be_waited_for_the_other_way_is_told() {
    let provider = Provider::new(&json!({"code": {}}));
    let desk = provider.desk();
    let manifest = desk.manifest();
    let hint = "hint: --device signs in by a code, at a browser on any machine\n";
    let ran = desk.run(&["login", "--from", &manifest, "--timeout", "500ms"]);
    fails(&ran, 1, &["in time", hint]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ran = desk.run(&["login", "--from", &manifest, "--port", &port]);
    fails(&ran, 6, &["failed to listen", hint]);
    // Nobody has to wait in vain first where there is no browser at all.
    let nothing = desk.home();
    let words = ["login", "--from", &manifest, "--timeout", "500ms"];
    let (code, screen) = desk.at_terminal(nothing.to_str().unwrap(), &[], &words);
    assert_eq!(code, Some(1), "{screen}");
    assert!(screen.contains("No browser was opened here; --device signs in"), "{screen}");
    // Codes of a redirect that nobody protects are not asked for; these need no protection of that kind.
    let bare = json!({"code_challenge_methods_supported": null, "authorization_endpoint": null});
    let provider = Provider::new(&json!({"code": {}, "metadata": bare}));
    let desk = provider.desk();
    let manifest = desk.manifest();
    fails(&desk.run(&["login", "--from", &manifest]), 4, &["PKCE", hint]);
    assert_eq!(provider.log()["registered"], json!([]));
    let shown = Shown::new(&desk, &provider, &["--from", &manifest]);
    browse(&shown.direct);
    fails(&ended(shown.child), 0, &["Signed in for"]);
}

#[test]
fn what_a_server_would_have_shown_is_looked_at_first() {
    let far = "http://as.example/device";
    for (change, code, words) in [
        (json!({"user_code": "A\u{1b}[2JB"}), 1, "no code that can be typed"),
        (json!({"user_code": "A".repeat(500)}), 1, "no code that can be typed"),
        (json!({"verification_uri": far}), 4, "must be of `https`"),
        (json!({"verification_uri_complete": far}), 4, "must be of `https`"),
        (json!({"verification_uri": "https://as.example/\u{1b}[2J"}), 4, "as.example:443"),
        (
            json!({"verification_uri": format!("https://{}.example", "a".repeat(4096))}),
            1,
            "too long",
        ),
        (json!({"verification_uri": "http://127.0.0.1:631/admin"}), 4, "private"),
        (json!({"expires_in": null}), 1, "how long its code holds"),
    ] {
        let provider = Provider::new(&json!({"code": change}));
        let ran = refused(&provider.desk(), &[]);
        fails(&ran, code, &[words]);
        assert_eq!((&*ran.stdout, ran.stderr.contains('\u{1b}')), ("", false), "{}", ran.stderr);
        assert_eq!(provider.log()["polls"], json!([]), "{change}");
    }
    // Nothing is asked of a place in plain, or of one that nobody agreed to.
    for (place, words) in [
        ("http://as.example/device_authorization", "must be of `https`"),
        ("https://as.example/device_authorization", "--allow-host as.example:443"),
        ("https://10.0.0.1/device_authorization", "private"),
    ] {
        let change = json!({"device_authorization_endpoint": place});
        let provider = Provider::new(&json!({"code": {}, "metadata": change}));
        let ran = refused(&provider.desk(), &[]);
        fails(&ran, 4, &[words]);
        assert_eq!((&*ran.stdout, &provider.log()["registered"]), ("", &json!([])));
    }
}

#[test]
fn a_page_of_another_server_is_shown_only_where_the_owner_says_that_it_is_not() {
    let elsewhere = json!({"verification_uri": "https://honest.example/device"});
    // That it names itself in redirects says nothing here, where there are none.
    let names = json!({"authorization_response_iss_parameter_supported": true});
    let setup = json!({"code": elsewhere, "metadata": names, "polls": ["access_denied"]});
    let provider = Provider::new(&setup);
    let desk = provider.desk();
    assert_eq!(desk.run(&["grant", PACKAGE, "--host", "honest.example:443"]).code, 0);
    let ran = refused(&desk, &[]);
    fails(&ran, 4, &["may be of another server than", "--allow-host honest.example:443"]);
    assert_eq!((&*ran.stdout, &provider.log()["polls"]), ("", &json!([])));
    let ran = refused(&desk, &["--allow-host", "honest.example:443"]);
    fails(&ran, 4, &["access_denied"]);
    assert!(ran.stdout.contains("https://honest.example/device\n"), "{}", ran.stdout);
    // Or says so when asked.
    let manifest = desk.manifest();
    for (answer, is_shown) in [("y", true), ("n", false)] {
        let words = ["login", "--from", &manifest, "--device", "--timeout", "500ms"];
        let (code, screen) = desk.at_terminal("/usr/bin", &[answer], &words);
        assert!(screen.contains("Do both belong together?"), "{screen}");
        assert_eq!(screen.contains("WDJB-MJHT"), is_shown, "{screen}");
        assert_eq!(code, Some(if is_shown { 1 } else { 4 }), "{screen}");
    }
}

#[test]
fn a_registration_of_the_owners_own_is_used() {
    let provider = Provider::new(&json!({"code": {}}));
    let desk = provider.desk();
    let (host, manifest) = (provider.host(), desk.manifest());
    let words = ["login", "--from", &manifest, "--allow-host", &host, "--device"];
    let own = ["--client-id", "mine", "--client-secret"];
    let mut child = desk.start(&[words.as_slice(), own.as_slice()].concat());
    child.stdin.as_mut().unwrap().write_all(b"s3cret & co\n").unwrap();
    browse(&format!("http://{host}/device?user_code=WDJB-MJHT"));
    let ran = ended(child);
    fails(&ran, 0, &["Signed in for"]);
    let log = provider.log();
    assert_eq!((&log["registered"], &log["devices"][0]["client_id"]), (&json!([]), &json!("mine")));
    assert!(log["basic"][0].as_str().unwrap().starts_with("Basic "), "{log}");
    assert!(!desk.holds("s3cret & co"));
    for flag in [&["--no-browser"][..], &["--port", "4711"]] {
        let ran = desk.run(&[words.as_slice(), flag].concat());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
    }
}

#[test]
fn a_capability_that_requires_it_is_signed_in_for_so() {
    let provider = Provider::new(&json!({"code": {}}));
    let desk = provider.desk();
    let path = provider.capability(&desk);
    assert_eq!(desk.run(&["install", &path, "--yes"]).code, 0);
    fails(&desk.run(&["call", "files", "{}"]), 4, &["capability requires oauth onboarding"]);
    let shown = Shown::new(&desk, &provider, &["files"]);
    browse(&shown.direct);
    fails(&ended(shown.child), 0, &["Signed in for capability:files"]);
    let ran = desk.run(&["call", "files", "{}"]);
    assert_eq!((ran.code, ran.stdout.trim()), (0, "did look"), "{}", ran.stderr);
}

#[test]
fn what_is_called_off_leaves_nothing() {
    let provider = Provider::new(&json!({"code": {}}));
    let desk = provider.desk();
    let shown = Shown::new(&desk, &provider, &["--from", &desk.manifest()]);
    await_question(&provider);
    let stopped = Command::new("kill").args(["-INT", &shown.child.id().to_string()]).status();
    assert!(stopped.unwrap().success());
    let ran = ended(shown.child);
    fails(&ran, 130, &["cancelled: nobody is signed in"]);
    assert!(!desk.is_signed_in());
    fails(&desk.call("look", &json!({})), 4, &["haft login"]);
}
