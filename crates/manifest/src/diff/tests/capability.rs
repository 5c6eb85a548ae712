use serde_json::{Value, json};

use super::Edit::{Remove, Set};
use super::{check_basics, check_nothing_goes_unseen, check_rows};
use crate::diff::Class::{Additive, Breaking, Cosmetic, NeedsReview};

pub(super) fn sample(version: &str) -> Value {
    json!({
        "id": "demo.greet", "type": "tool", "version": version, "description": "Greets.",
        "origin": {"source": "local", "digest": "0".repeat(64), "signature": "s", "path": "greet"},
        "interfaces": {
            "inputs": {"type": "object", "properties": {"name": {"type": "string"}}},
            "outputs": {"type": "object", "properties": {"text": {"type": "string"}}}
        },
        "permissions": {"network": "allowlist", "network_allowlist": ["a.test"],
                        "filesystem": "read", "devices": ["camera"]},
        "runtime": {"sandbox": "container", "resources": {"cpu": "500m", "memory": "1Gi"},
                    "timeout_seconds": 5},
        "trust_level": "community",
        "execution": {"channel": "programmatic"},
        "secrets": [{"name": "TOKEN", "ref": "vault://kv/a#token"}],
        "implementation": {"kind": "command", "command": {"argv": ["./greet"]}},
        "enabled": true, "requires_oauth": false
    })
}

#[test]
fn nothing_but_the_version_changes_nothing() {
    check_basics(&sample("1.0.0"), &sample("1.1.0"));
}

#[test]
fn every_value_that_may_change_is_looked_at() {
    // These are what silence means.
    let unseen = ["/execution/channel", "/enabled", "/requires_oauth", "/implementation/kind"];
    check_nothing_goes_unseen(&sample("1.0.0"), &sample("1.1.0"), &unseen);
}

#[test]
fn each_field_is_classed() {
    let secret = json!({"name": "MORE", "ref": "env://MORE"});
    let url = json!({"source": "url", "url": "https://a.test/g", "digest": "1".repeat(64)});
    check_rows(
        &sample("1.0.0"),
        &sample("1.1.0"),
        vec![
            ("/id", Set(json!("demo.other")), Breaking, "action demo.greet"),
            ("/type", Set(json!("skill_pack")), Breaking, "kind"),
            ("/description", Set(json!("Greets you.")), Cosmetic, "description"),
            ("/origin/signature", Remove, NeedsReview, "origin"),
            ("/origin/signature", Set(json!("t")), Cosmetic, "origin"),
            ("/origin/digest", Set(json!("1".repeat(64))), NeedsReview, "origin"),
            (
                "/origin/digest",
                Set(json!(format!("sha256:{}", "A".repeat(64)))),
                NeedsReview,
                "origin",
            ),
            ("/origin", Set(url), NeedsReview, "acquisition"),
            ("/permissions/network_allowlist/-", Set(json!("b.test")), NeedsReview, "host b.test"),
            (
                "/permissions/network_allowlist/-",
                Set(json!("x.a.test")),
                NeedsReview,
                "host x.a.test",
            ),
            ("/permissions/network_allowlist", Set(json!([])), Additive, "host a.test"),
            ("/permissions/filesystem", Set(json!("write")), NeedsReview, "filesystem"),
            ("/permissions/filesystem", Set(json!("none")), Additive, "filesystem"),
            ("/permissions/devices/-", Set(json!("microphone")), NeedsReview, "device microphone"),
            ("/permissions/devices", Set(json!([])), Additive, "device camera"),
            ("/runtime/sandbox", Set(json!("process")), NeedsReview, "sandbox"),
            ("/runtime/resources/cpu", Set(json!("2")), NeedsReview, "cpu"),
            ("/runtime/resources/memory", Set(json!("512MB")), Additive, "memory"),
            ("/runtime/resources/memory", Set(json!("1024Mi")), Cosmetic, "memory"),
            ("/runtime/timeout_seconds", Set(json!(1)), NeedsReview, "time limit"),
            ("/runtime/timeout_seconds", Remove, Additive, "time limit"),
            ("/trust_level", Set(json!("verified")), NeedsReview, "trust"),
            ("/trust_level", Set(json!("untrusted")), Additive, "trust"),
            ("/execution/channel", Set(json!("vdi_vpn")), Breaking, "channel"),
            ("/secrets/-", Set(secret), Breaking, "secret MORE"),
            ("/secrets/0/ref", Set(json!("vault://kv/b#token")), NeedsReview, "secret TOKEN"),
            (
                "/implementation/command/argv/-",
                Set(json!("-v")),
                NeedsReview,
                "implementation main",
            ),
            ("/enabled", Set(json!(false)), Breaking, "enabled"),
            ("/requires_oauth", Set(json!(true)), NeedsReview, "sign-in"),
            (
                "/interfaces/inputs/properties/name",
                Remove,
                NeedsReview,
                "input schema of demo.greet at /properties/name",
            ),
            (
                "/interfaces/inputs/additionalProperties",
                Set(json!(false)),
                Breaking,
                "input schema of demo.greet at /additionalProperties",
            ),
            (
                "/interfaces/outputs/properties/text",
                Remove,
                Breaking,
                "output schema of demo.greet at /properties/text",
            ),
        ],
    );
}

#[test]
fn what_was_held_back_and_is_let_go_needs_review() {
    let mut old = sample("1.0.0");
    old["enabled"] = json!(false);
    old["requires_oauth"] = json!(true);
    old["execution"]["channel"] = json!("vdi_vpn");
    let row = |pointer, value, class, subject| (pointer, Set(value), class, subject);
    let new = |pointer: &str| {
        let mut new = old.clone();
        new["version"] = json!("1.1.0");
        assert!(new.pointer(pointer).is_some());
        new
    };
    let rows = [
        row("/enabled", json!(true), NeedsReview, "enabled"),
        row("/requires_oauth", json!(false), Additive, "sign-in"),
        row("/execution/channel", json!("programmatic"), NeedsReview, "channel"),
    ];
    for row in rows {
        check_rows(&old, &new(row.0), vec![row]);
    }
}
