use serde_json::{Value, json};

use super::Edit::{Remove, Set};
use super::{check_basics, check_nothing_goes_unseen, check_rows, edited, read};
use crate::diff::Class::{Additive, Breaking, Cosmetic, NeedsReview};
use crate::diff::{Class, diff, is_upgrade_safe};

pub(super) fn sample(version: &str) -> Value {
    json!({
        "manifest_version": "0.4",
        "tool": {
            "namespace": "acme", "id": "mail", "version": version, "name": "Mail",
            "summary": "Reads and sends mail.", "description": "More words.",
            "homepage": "https://acme.test", "license": "MIT", "tags": ["mail"],
            "author": {"name": "Ann", "email": "ann@acme.test"}
        },
        "publisher": {"did": "did:web:acme.test", "signature": "x"},
        "runtime": {
            "kind": "python-module",
            "install": {"method": "git", "url": "https://acme.test/mail.git", "ref": "a".repeat(40)},
            "entrypoint": {"command": ["python3", "mail.py"], "cwd": "app"}
        },
        "env": [
            {"name": "API_KEY", "prompt": "Key?", "secret": true, "obtain_url": "https://acme.test/keys"},
            {"name": "REGION", "prompt": "Region?", "secret": false, "required": false, "default": "eu"}
        ],
        "scopes": [
            {"resource": "gmail.messages", "actions": ["read"], "rationale": "To read.",
             "provider_scope": "gmail.readonly"}
        ],
        "actions": [
            {
                "name": "list_mail", "summary": "Lists mail.", "description": "Newest first.",
                "invocation": {"kind": "subcommand", "argv_template": ["list", "${input.folder}"]},
                "input": {
                    "type": "object", "required": ["folder"],
                    "properties": {"folder": {"type": "string", "maxLength": 80},
                                   "limit": {"type": "integer"}, "mark": {"type": "boolean"}}
                },
                "output": {"format": "json", "schema": {
                    "type": "object", "required": ["mails"], "properties": {"mails": {"type": "array"}}
                }},
                "side_effects": "read", "idempotent": true, "scopes_used": ["gmail.messages"],
                "error_envelope": "standard", "docs": {"goal": "See mail."},
                "examples": [{"description": "One.", "input": {"folder": "inbox"}}]
            },
            {
                "name": "send_mail", "summary": "Sends a mail.",
                "invocation": {"kind": "stdin-json"},
                "output": {"format": "none"}, "side_effects": "write"
            }
        ],
        "verify": {
            "suite": {"ref": "cases.jsonl", "format": "jsonl-cases", "pass_threshold": 0.9},
            "sla": {"p95_latency_ms": 900}, "schedule": {"cadence": "weekly"}
        },
        "data_boundary": {
            "reads": [{"resource": "gmail.messages", "sensitivity": "medium"}],
            "transmits": [{"to": "api.acme.test", "fields": ["subject"], "purpose": "To sort.",
                           "third_party_retention": "persistent-30d"}],
            "persists": [{"where": "tool_local", "fields": ["subject"]}],
            "retention": {"tool_local_days": 7}
        },
        "smoke": {"kind": "action-call", "action": "list_mail", "arguments": {"folder": "inbox", "limit": 1},
                  "timeout_seconds": 10, "success": {"no_error_field": true}},
        "kill_switch": {"kind": "url", "url": "https://acme.test/revoke"},
        "cost": {"install_fee_cents": 0, "monthly_fee_cents": 500, "usage_model": "per-call",
                 "estimate_url": "https://acme.test/estimate"},
        "support": {"issues_url": "https://acme.test/issues"}
    })
}

#[test]
fn nothing_but_the_version_changes_nothing() {
    check_basics(&sample("1.0.0"), &sample("1.1.0"));
}

#[test]
fn every_value_that_may_change_is_looked_at() {
    // The model does not hold these; under the same version the digest of the bytes shows them.
    let unseen = ["/publisher/signature"];
    check_nothing_goes_unseen(&sample("1.0.0"), &sample("1.1.0"), &unseen);
}

#[test]
fn another_body_under_the_same_version_breaks() {
    let old = sample("1.0.0");
    let noted = edited(&old, "/actions/0/docs/goal", Set(json!("See all mail.")));
    let changes = diff(&read(&old)[0], &read(&noted)[0]);
    assert_eq!((changes.len(), changes[0].class), (2, Class::Breaking));
    assert_eq!(
        (changes[1].class, changes[1].message.as_str()),
        (Class::Cosmetic, "its notes changed; agents read them")
    );
    assert_eq!(changes[0].message, "the body changed under the same version `1.0.0`");
    assert_eq!(changes[0].pointer.as_ref().unwrap().as_str(), "/tool/version");
    assert!(!is_upgrade_safe(&changes));
}

#[test]
fn a_version_that_goes_back_breaks() {
    let changes = diff(&read(&sample("1.10.0"))[0], &read(&sample("1.9.0"))[0]);
    assert_eq!(changes[0].class, Class::Breaking);
    assert_eq!(changes[0].message, "went back from `1.10.0` to `1.9.0`");
}

#[test]
fn who_it_is_and_how_it_comes_here() {
    check_rows(
        &sample("1.0.0"),
        &sample("1.1.0"),
        vec![
            ("/tool/id", Set(json!("mails")), Breaking, "id"),
            ("/tool/namespace", Set(json!("evil")), Breaking, "namespace"),
            ("/tool/name", Set(json!("Post")), Cosmetic, "display name"),
            ("/tool/summary", Set(json!("Post.")), Cosmetic, "summary"),
            ("/tool/description", Remove, Cosmetic, "description"),
            ("/tool/homepage", Set(json!("https://b.test")), Cosmetic, "homepage"),
            ("/tool/license", Set(json!("PROPRIETARY")), NeedsReview, "licence"),
            ("/tool/tags/-", Set(json!("post")), Cosmetic, "tags"),
            ("/tool/author/name", Set(json!("Bob")), Cosmetic, "author"),
            ("/publisher/did", Set(json!("did:web:b.test")), NeedsReview, "publisher"),
            ("/runtime/kind", Set(json!("node-module")), NeedsReview, "implementation main"),
            ("/runtime/install/ref", Set(json!("main")), NeedsReview, "acquisition"),
            (
                "/runtime/install",
                Set(json!({"method": "npm", "package": "x"})),
                NeedsReview,
                "acquisition",
            ),
            (
                "/runtime/entrypoint/command/1",
                Set(json!("m.py")),
                NeedsReview,
                "implementation main",
            ),
            ("/support", Remove, Cosmetic, "support"),
        ],
    );
}

#[test]
fn what_it_is_given_and_may_do() {
    let variable =
        |required| json!({"name": "NEW", "prompt": "?", "secret": false, "required": required});
    let secret = json!({"name": "NEW", "prompt": "?", "secret": true, "required": false});
    let scope = json!({"resource": "crm", "actions": ["read"], "rationale": "r"});
    check_rows(
        &sample("1.0.0"),
        &sample("1.1.0"),
        vec![
            ("/env/-", Set(variable(true)), Breaking, "variable NEW"),
            ("/env/-", Set(variable(false)), Additive, "variable NEW"),
            ("/env/-", Set(secret), NeedsReview, "secret NEW"),
            ("/env/0", Remove, Additive, "secret API_KEY"),
            ("/env/0/secret", Set(json!(false)), NeedsReview, "secret API_KEY"),
            ("/env/0/obtain_url", Set(json!("https://b.test")), NeedsReview, "secret API_KEY"),
            ("/env/1/required", Set(json!(true)), Breaking, "variable REGION"),
            ("/env/1/default", Set(json!("us")), Additive, "variable REGION"),
            ("/env/1/validation_regex", Set(json!("^[a-z]+$")), Breaking, "variable REGION"),
            ("/scopes/-", Set(scope), NeedsReview, "scope crm"),
            ("/scopes/0/actions/-", Set(json!("send")), NeedsReview, "scope gmail.messages"),
            (
                "/scopes/0/provider_scope",
                Set(json!("gmail.all")),
                NeedsReview,
                "scope gmail.messages",
            ),
            ("/scopes/0/provider_scope", Remove, NeedsReview, "scope gmail.messages"),
            ("/scopes/0/rationale", Set(json!("Why not.")), Cosmetic, "scope gmail.messages"),
        ],
    );
}

#[test]
fn what_can_be_called() {
    let action = |effects: &str, scopes: Value| {
        json!({"name": "more", "summary": "s", "invocation": {"kind": "stdin-json"},
               "side_effects": effects, "scopes_used": scopes})
    };
    let schema = "input schema of list_mail";
    check_rows(
        &sample("1.0.0"),
        &sample("1.1.0"),
        vec![
            ("/actions/1", Remove, Breaking, "action send_mail"),
            ("/actions/-", Set(action("none", json!([]))), Additive, "action more"),
            ("/actions/-", Set(action("read", json!(["gmail.messages"]))), Additive, "action more"),
            ("/actions/-", Set(action("read", json!(["crm"]))), NeedsReview, "action more"),
            ("/actions/-", Set(action("write", json!([]))), NeedsReview, "action more"),
            ("/actions/1/side_effects", Set(json!("destructive")), NeedsReview, "action send_mail"),
            ("/actions/1/side_effects", Set(json!("none")), Additive, "action send_mail"),
            ("/actions/0/idempotent", Set(json!(false)), NeedsReview, "action list_mail"),
            ("/actions/1/idempotent", Set(json!(true)), Additive, "action send_mail"),
            (
                "/actions/1/scopes_used",
                Set(json!(["gmail.messages"])),
                NeedsReview,
                "action send_mail",
            ),
            ("/actions/0/scopes_used", Set(json!([])), Additive, "action list_mail"),
            ("/actions/0/error_envelope", Remove, Breaking, "action list_mail"),
            ("/actions/0/summary", Set(json!("Lists.")), Cosmetic, "action list_mail"),
            ("/actions/0/examples", Remove, Cosmetic, "action list_mail"),
            (
                "/actions/0/invocation/argv_template/0",
                Set(json!("ls")),
                NeedsReview,
                "action list_mail",
            ),
            ("/actions/0/output/format", Set(json!("text")), Breaking, "action list_mail"),
            ("/actions/0/output/schema", Remove, Breaking, "output schema of list_mail"),
            (
                "/actions/0/output/schema/required",
                Set(json!([])),
                Breaking,
                "output schema of list_mail at /properties/mails",
            ),
            (
                "/actions/0/input/properties/more",
                Set(json!({})),
                Additive,
                "input schema of list_mail at /properties/more",
            ),
            (
                "/actions/0/input/required/-",
                Set(json!("limit")),
                Breaking,
                "input schema of list_mail at /properties/limit",
            ),
            (
                "/actions/0/input/properties/mark",
                Remove,
                Breaking,
                "input schema of list_mail at /properties/mark",
            ),
            (
                "/actions/0/input/properties/folder/maxLength",
                Set(json!(9)),
                Breaking,
                "input schema of list_mail at /properties/folder",
            ),
            ("/actions/0/input/description", Set(json!("d")), Cosmetic, schema),
            (
                "/actions/0/input/anyOf",
                Set(json!([{}])),
                NeedsReview,
                "input schema of list_mail at /anyOf",
            ),
            (
                "/actions/1/input",
                Set(json!({"required": ["to"], "properties": {"to": {}}})),
                Breaking,
                "input schema of send_mail",
            ),
            (
                "/actions/1/input",
                Set(json!({"type": "object"})),
                NeedsReview,
                "input schema of send_mail",
            ),
        ],
    );
}
