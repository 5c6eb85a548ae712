//! Tools that run here: the owner says where to sign in, and the tool is given the token as one of its secrets.

use serde_json::{Value, json};

use crate::common::Ran;
use crate::desk::{Desk, browse, ended};
use crate::device::Shown;
use crate::provider::{Provider, fails};

/// A function of Python that proves which token it has, and tells what nobody should see.
const PYTHON: &str = r#"
import os

def prove(given):
    token = os.environ.get("ACME_TOKEN", "")
    return {"proof": token[::-1], "told": token, "all": list(os.environ.values())}
"#;

/// The same as a command.
const COMMAND: &str =
    r#"printf '{"proof":"%s","told":"%s"}' "$(printf %s "$ACME_TOKEN" | rev)" "$ACME_TOKEN""#;

/// A capability that takes a token as a secret, with some changes, in a folder of its own.
fn capability(desk: &Desk, kind: &str, changes: &Value) -> String {
    let implementation = match kind {
        "python" => json!({"kind": "python", "python": {"callable": "report:prove"}}),
        _ => json!({"kind": "command", "command": {"argv": ["sh", "-c", COMMAND]}}),
    };
    let mut manifest = json!({
        "id": "acme.report", "type": "tool", "version": "1.0.0", "description": "Reports.",
        "origin": {"source": "local", "digest": "0".repeat(64)},
        "interfaces": {"inputs": {"type": "object"}, "outputs": {}},
        "permissions": {"network": "deny", "filesystem": "none", "devices": []},
        "runtime": {"sandbox": "process", "resources": {"cpu": "1", "memory": "256Mi"}},
        "secrets": [{"name": "ACME_TOKEN", "ref": "secret://ACME_TOKEN"}],
        "trust_level": "local", "requires_oauth": true,
        "implementation": implementation,
    });
    for (name, value) in changes.as_object().unwrap() {
        manifest[name] = value.clone();
    }
    desk.write("report/report.py", PYTHON);
    desk.write("report/manifest.json", &manifest.to_string())
}

const ID: &str = "capability:acme.report";

/// Signs in for what is installed or at a path, at the authorization server that is named.
fn sign_in(desk: &Desk, what: &[&str], provider: &Provider, more: &[&str]) -> Ran {
    let issuer = format!("http://{}", provider.host());
    let named: &[&str] = &["--issuer", &issuer, "--timeout", "30s"];
    let arguments = [&["login"], what, named, more].concat();
    desk.browsing(&arguments)
}

/// Holds what a call gave against the token that it should have had.
fn proves(ran: &Ran, token: &str) {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let said = ran.json();
    assert_eq!(said["proof"], token.chars().rev().collect::<String>());
    // It is a secret like every other.
    assert_eq!(said["told"], "[secret ACME_TOKEN]");
    assert!(!ran.stdout.contains(token) && !ran.stderr.contains(token), "{}", ran.stdout);
}

fn last_token(provider: &Provider) -> String {
    provider.log()["tokens"].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned()
}

#[test]
fn commands_and_functions_are_given_the_token_as_their_secret() {
    for kind in ["command", "python"] {
        let provider = Provider::new(&json!({}));
        let desk = provider.desk();
        let path = capability(&desk, kind, &json!({}));
        let ran = desk.run(&["validate", &path]);
        assert!(ran.code == 0 && !ran.stdout.contains("oauth"), "{}{}", ran.stdout, ran.stderr);

        // Nobody is signed in: nothing runs, and the hint has the command.
        let call = ["call", "--from", &path, "acme.report", "{}"];
        let ran = desk.run(&call);
        let command = format!("`haft login --from {path} --issuer URL` signs in");
        fails(&ran, 4, &["capability requires oauth onboarding", &command]);
        let told = desk.run(&[&call[..], &["--json"]].concat()).json();
        assert_eq!(told["error"]["code"], "needs_login", "{told}");
        let explained = desk.run(&[&call[..], &["--explain"]].concat());
        let told = explained.stdout + &explained.stderr;
        assert!(told.contains(&command) && !told.contains("haft secret set"), "{told}");

        let ran = sign_in(&desk, &["--from", &path], &provider, &["--scope", "read"]);
        let given = "It is given the token as its secret ACME_TOKEN";
        fails(&ran, 0, &["Secret   ACME_TOKEN", "Signed in for capability:acme.report", given]);
        let log = provider.log();
        assert_eq!(log["asked"], json!([["read"]]));
        // No resource was named, so none is asked for.
        assert!(log["forms"][0].get("resource").is_none(), "{log}");
        assert!(log["forms"][0].get("code_verifier").is_some(), "{log}");

        let token = last_token(&provider);
        proves(&desk.run(&call), &token);
        assert!(!desk.holds(&token));
        let explained = desk.run(&[&call[..], &["--explain"]].concat());
        assert!(!explained.stdout.contains(&token) && explained.code == 0, "{}", explained.stderr);

        // Once they are signed out, it is as before, and the token was given back.
        assert_eq!(desk.run(&["logout", ID]).code, 0);
        assert_eq!(provider.log()["revoked"], json!([token]));
        fails(&desk.run(&call), 4, &[&command]);
    }
}

#[test]
fn a_token_that_would_end_while_the_tool_runs_is_renewed_before() {
    let provider = Provider::new(&json!({"life": 40, "refreshes": true}));
    let desk = provider.desk();
    let path = capability(&desk, "python", &json!({}));
    fails(&sign_in(&desk, &["--from", &path], &provider, &[]), 0, &["Signed in"]);
    let call = ["call", "--from", &path, "acme.report", "{}"];
    for renewed in 1..=2 {
        let ran = desk.run(&call);
        proves(&ran, &last_token(&provider));
        // What it is given is the token, and not what brings another one.
        assert!(!ran.stdout.contains("refresh-"), "{}", ran.stdout);
        assert_eq!(provider.log()["refreshes"], renewed);
        assert_eq!(provider.log()["tokens"].as_array().unwrap().len(), renewed + 1);
    }
    // Whoever only asks what would be run renews nothing.
    assert_eq!(desk.run(&[&call[..], &["--explain"]].concat()).code, 0);
    assert_eq!(provider.log()["refreshes"], 2);

    // What cannot be renewed ends in the command that signs in again, at the same authorization server.
    browse(&format!("http://{}/forget", provider.host()));
    let ran = desk.run(&call);
    fails(&ran, 4, &["the sign-in has ended", &format!("`haft login --from {path}` signs in")]);
    let ran = desk.browsing(&["login", "--from", &path, "--timeout", "30s"]);
    fails(&ran, 0, &["Secret   ACME_TOKEN", "Signed in for capability:acme.report"]);
}

#[test]
fn an_installed_tool_is_told_what_comes_next_and_signed_in_for_by_a_code() {
    let provider = Provider::new(&json!({"code": {}}));
    let desk = provider.desk();
    let path = capability(&desk, "command", &json!({}));
    let command = format!("`haft login {ID} --issuer URL` signs in");
    let ran = desk.run(&["install", &path, "--yes"]);
    let card = "before it is used: `haft login ID --issuer URL`";
    fails(&ran, 0, &[card, &format!("capability requires oauth onboarding: {command}")]);
    fails(&desk.run(&["call", "acme.report", "{}"]), 4, &[&command]);
    let status = || desk.run(&["status", "acme.report"]).stdout;
    assert!(status().contains(&command), "{}", status());
    let issuer = format!("http://{}", provider.host());
    let shown = Shown::new(&desk, &provider, &["acme.report", "--issuer", &issuer]);
    browse(&shown.direct);
    fails(&ended(shown.child), 0, &["Signed in for capability:acme.report"]);
    proves(&desk.run(&["call", "acme.report", "{}"]), &last_token(&provider));
    assert!(status().contains("you are signed in"), "{}", status());
    assert_eq!(desk.run(&["status", "acme.report", "--json"]).json()["signed_in"], true);
    // Who is signed in is told nothing more.
    let ran = desk.run(&["install", &path, "--yes"]);
    assert!(!ran.stderr.contains("requires oauth"), "{}", ran.stderr);
}

#[test]
fn a_package_that_goes_gives_its_token_back() {
    let (removed, revoked) =
        (["remove", "acme.report"], ["revoke", "acme.report", "--yes", "--forget"]);
    for going in [&removed[..], &revoked, &["reset", "--yes"]] {
        let provider = Provider::new(&json!({}));
        let desk = provider.desk();
        let path = capability(&desk, "command", &json!({}));
        assert_eq!(desk.run(&["install", &path, "--yes"]).code, 0);
        fails(&sign_in(&desk, &["acme.report"], &provider, &[]), 0, &["Signed in"]);
        let ran = desk.run(going);
        assert_eq!(ran.code, 0, "{going:?}: {}", ran.stderr);
        assert!(!desk.is_signed_in());
        assert_eq!(provider.log()["revoked"], json!([last_token(&provider)]), "{going:?}");
    }
}

#[test]
fn one_of_several_secrets_has_to_be_named() {
    let provider = Provider::new(&json!({}));
    let desk = provider.desk();
    let secret = |name: &str| json!({"name": name, "ref": format!("secret://{name}")});
    let several = json!({"secrets": [secret("OTHER_KEY"), secret("ACME_TOKEN")]});
    let path = capability(&desk, "command", &several);
    let call = ["call", "--from", &path, "acme.report", "{}"];
    let command = format!("`haft login --from {path} --issuer URL --secret NAME` signs in");
    fails(&desk.run(&call), 4, &[&command]);
    let which = "--secret names one of OTHER_KEY, ACME_TOKEN";
    let ran = sign_in(&desk, &["--from", &path], &provider, &[]);
    fails(&ran, 2, &["it declares several secrets", which]);
    let ran = sign_in(&desk, &["--from", &path], &provider, &["--secret", "ACME_KEY"]);
    fails(&ran, 2, &["it declares no secret `ACME_KEY`", which]);
    assert_eq!(provider.log()["registered"], json!([]));
    let ran = sign_in(&desk, &["--from", &path], &provider, &["--secret", "ACME_TOKEN"]);
    fails(&ran, 0, &["Signed in"]);
    // The other one is kept like any secret, and still missed.
    fails(&desk.run(&call), 2, &["OTHER_KEY"]);
    let home = desk.home();
    let arguments = ["--home", home.to_str().unwrap(), "secret", "set", ID, "OTHER_KEY"];
    assert_eq!(crate::common::run_in(&home, &arguments, Some(b"0ther-value\n")).code, 0);
    proves(&desk.run(&call), &last_token(&provider));
}

#[test]
fn a_tool_without_a_secret_cannot_be_signed_in_for() {
    let provider = Provider::new(&json!({}));
    let desk = provider.desk();
    let path = capability(&desk, "command", &json!({"secrets": []}));
    let ran = desk.run(&["validate", &path]);
    assert!(ran.stdout.contains("oauth-unavailable"), "{}", ran.stdout);
    let hint = "hint: only its author can change that";
    let refusal = "declares no secret that it could be given a token as";
    fails(&desk.run(&["call", "--from", &path, "acme.report", "{}"]), 4, &[refusal, hint]);
    fails(&desk.run(&["login", "--from", &path]), 2, &[refusal, hint]);
    fails(&sign_in(&desk, &["--from", &path], &provider, &[]), 2, &[refusal, hint]);
    assert_eq!(provider.log()["registered"], json!([]));
}

#[test]
fn whom_the_owner_names_is_held_to_every_rule() {
    let provider = Provider::new(&json!({}));
    let desk = provider.desk();
    let path = capability(&desk, "command", &json!({}));
    let login = |more: &[&str]| desk.run(&[&["login", "--from", &path], more].concat());
    let command = format!("`haft login --from {path} --issuer URL` signs in");
    fails(&login(&[]), 2, &["nobody on the network says where to sign in", &command]);
    for url in ["http://login.example.com", "login.example.com", "https://me:pw@login.example.com"]
    {
        fails(&login(&["--issuer", url]), 2, &["--issuer"]);
    }
    fails(&login(&["--secret", "ACME_TOKEN"]), 2, &["--issuer"]);
    fails(&login(&["--resource", "https://api.example.com"]), 2, &["--issuer"]);
    // The page is of a host that nobody agreed to.
    let metadata = json!({"authorization_endpoint": "https://pages.example.com/authorize"});
    let other = Provider::new(&json!({"metadata": metadata}));
    fails(&sign_in(&desk, &["--from", &path], &other, &[]), 4, &["pages.example.com:443"]);
    // It says that it is another one.
    let other = Provider::new(&json!({"metadata": {"issuer": "https://login.example.com"}}));
    fails(&sign_in(&desk, &["--from", &path], &other, &[]), 4, &["says that it is"]);
    // It protects no codes.
    let other = Provider::new(&json!({"metadata": {"code_challenge_methods_supported": []}}));
    fails(&sign_in(&desk, &["--from", &path], &other, &[]), 4, &["PKCE"]);
    // It has no metadata at all.
    let other = Provider::new(&json!({"hidden": true}));
    fails(&sign_in(&desk, &["--from", &path], &other, &[]), 1, &["has no metadata"]);
    assert!(!desk.is_signed_in());
}

#[test]
fn what_the_token_is_for_is_asked_for_where_the_owner_says_so() {
    let provider = Provider::new(&json!({"refreshes": true, "life": 1}));
    let desk = provider.desk();
    let path = capability(&desk, "command", &json!({"requires_oauth": false}));
    let resource = ["--resource", "https://api.acme.example/v1"];
    let ran = sign_in(&desk, &["--from", &path], &provider, &resource);
    fails(&ran, 0, &["Resource https://api.acme.example/v1"]);
    assert_eq!(desk.run(&["call", "--from", &path, "acme.report", "{}"]).code, 0);
    let forms = provider.log()["forms"].clone();
    for form in forms.as_array().unwrap() {
        assert_eq!(form["resource"], resource[1], "{forms}");
    }
    assert_eq!(forms.as_array().unwrap().len(), 2, "{forms}");
}

#[test]
fn requests_of_an_http_tool_carry_the_token() {
    let provider = Provider::new(&json!({}));
    let desk = provider.desk();
    let url = format!("http://{}/api", provider.host());
    let manifest = json!({
        "toolId": "acme.api", "name": "API", "version": "1.0.0", "description": "Asks an API.",
        "capabilities": ["http"], "endpoint": {"type": "http", "method": "GET", "url": url},
        "input_schema": {"type": "object"}, "output_schema": {"type": "object"},
        "auth": {"type": "bearer", "scopes": ["read"], "configHints": {"env": ["ACME_TOKEN"]}},
    });
    let path = desk.write("api/manifest.json", &manifest.to_string());
    let call = ["call", "--from", &path, "acme.api", "{}"];
    assert_eq!(desk.run(&["grant", "mcpkg:acme.api", "--host", &provider.host()]).code, 0);
    assert_ne!(desk.run(&call).code, 0);
    fails(
        &sign_in(&desk, &["--from", &path], &provider, &[]),
        0,
        &["Signed in for mcpkg:acme.api"],
    );
    let ran = desk.run(&call);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["said"], "Bearer [secret ACME_TOKEN]");
}

/// An install-manifest with an action that reads and one that drafts, each with a provider's scope of its own.
fn reports(desk: &Desk) -> String {
    let action = |name: &str, used: &str| {
        json!({
            "name": name, "summary": name, "side_effects": "read", "scopes_used": [used],
            "input": {"type": "object"}, "output": {"format": "json"},
            "invocation": {"kind": "stdin-json", "argv_template": []},
        })
    };
    let scope = |resource: &str, provider: &str| {
        json!({
            "resource": resource, "actions": ["read"], "rationale": "to do it",
            "provider_scope": provider,
        })
    };
    let manifest = json!({
        "manifest_version": "0.4",
        "tool": {
            "id": "reports", "version": "1.0.0", "name": "Reports", "summary": "Reports.",
            "description": "Reports.", "homepage": "https://example.com/reports",
            "author": {"name": "Nobody"}, "license": "MIT",
        },
        "runtime": {
            "kind": "shell-binary", "entrypoint": {"command": ["sh", "-c", COMMAND]},
            "install": {"method": "preinstalled", "locator": {"kind": "binary-on-path", "binary": "sh"}},
        },
        "env": [{"name": "ACME_TOKEN", "secret": true, "required": true, "prompt": "A token."}],
        "scopes": [scope("acme.reports", "read"), scope("acme.drafts", "write")],
        "kill_switch": {"kind": "shell", "command": ["true"]},
        "smoke": {"kind": "shell", "command": ["true"], "timeout_seconds": 10, "success": {"exit_code": 0}},
        "actions": [action("look", "acme.reports"), action("draft", "acme.drafts")],
    });
    desk.write("reports/install.json", &manifest.to_string())
}

#[test]
fn what_was_granted_is_held_against_what_the_actions_of_a_tool_need() {
    // Whatever is asked for first, only reading is granted.
    let provider = Provider::new(&json!({"knows": ["read", "write"], "gives": ["read"]}));
    let desk = provider.desk();
    let path = reports(&desk);
    let ran = sign_in(&desk, &["--from", &path], &provider, &[]);
    let more = format!("`haft login --from {path} --scope write` asks for what is missing");
    fails(&ran, 0, &["(scopes: read)", "Not granted: write (refused until then: draft)", &more]);
    assert_eq!(provider.log()["asked"], json!([["read", "write"]]));
    let call = |action: &str| desk.run(&["call", "--from", &path, action, "{}"]);
    proves(&call("look"), &last_token(&provider));
    let command = format!("`haft login --from {path} --scope write` signs in");
    fails(&call("draft"), 4, &["your sign-in was not granted: `write`", &command]);
    // The command goes to whom the owner named before.
    let ran = desk.browsing(&["login", "--from", &path, "--scope", "write", "--timeout", "30s"]);
    fails(&ran, 0, &["Secret   ACME_TOKEN", "Signed in for install-manifest:reports"]);
}

#[test]
fn whoever_names_another_authorization_server_gives_back_what_the_first_gave() {
    let (first, second) = (Provider::new(&json!({})), Provider::new(&json!({})));
    let desk = first.desk();
    let path = capability(&desk, "command", &json!({}));
    fails(&sign_in(&desk, &["--from", &path], &first, &[]), 0, &["Signed in"]);
    fails(&sign_in(&desk, &["--from", &path], &first, &[]), 0, &["Signed in"]);
    assert_eq!(first.log()["revoked"], json!([]));
    fails(&sign_in(&desk, &["--from", &path], &second, &[]), 0, &["Signed in"]);
    assert_eq!(first.log()["revoked"], json!([last_token(&first)]));
    assert_eq!(second.log()["revoked"], json!([]));
}

#[test]
fn a_sign_in_that_has_ended_keeps_nobody_from_revoking() {
    let provider = Provider::new(&json!({"refreshes": true, "life": 1}));
    let desk = provider.desk();
    let path = reports(&desk);
    fails(&sign_in(&desk, &["--from", &path], &provider, &[]), 0, &["Signed in"]);
    let ran = desk.run(&["install", &path, "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    browse(&format!("http://{}/forget", provider.host()));
    fails(&desk.run(&["call", "reports", "look", "{}"]), 4, &["the sign-in has ended"]);
    let ran = desk.run(&["revoke", "reports", "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!desk.is_signed_in());
}
