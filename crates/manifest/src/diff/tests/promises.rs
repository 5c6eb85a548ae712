use serde_json::json;

use super::Edit::{Remove, Set};
use super::check_rows;
use super::install_manifest::sample;
use crate::diff::Class::{Additive, Cosmetic, NeedsReview};

#[test]
fn what_shows_that_it_works_and_what_it_costs() {
    check_rows(
        &sample("1.0.0"),
        &sample("1.1.0"),
        vec![
            (
                "/smoke/success",
                Set(json!({"no_error_field": true, "json_pointer_exists": "/a"})),
                Additive,
                "smoke test",
            ),
            (
                "/smoke/success",
                Set(json!({"json_pointer_exists": "/a"})),
                NeedsReview,
                "smoke test",
            ),
            (
                "/smoke/arguments",
                Set(json!({"folder": "sent", "limit": 1})),
                NeedsReview,
                "smoke test",
            ),
            ("/smoke/timeout_seconds", Set(json!(20)), Cosmetic, "smoke test"),
            (
                "/kill_switch",
                Set(json!({"kind": "manual", "instructions": "Ask."})),
                NeedsReview,
                "kill switch",
            ),
            ("/kill_switch/url", Set(json!("https://b.test/revoke")), NeedsReview, "kill switch"),
            ("/verify", Remove, NeedsReview, "verification"),
            ("/verify/suite/pass_threshold", Set(json!(0.5)), NeedsReview, "verification"),
            ("/verify/suite/pass_threshold", Set(json!(1)), Additive, "verification"),
            ("/verify/sla/p95_latency_ms", Set(json!(2000)), NeedsReview, "verification"),
            ("/verify/schedule/cadence", Set(json!("manual")), NeedsReview, "verification"),
            ("/cost", Remove, NeedsReview, "cost"),
            ("/cost/install_fee_cents", Set(json!(1)), NeedsReview, "cost"),
            ("/cost/monthly_fee_cents", Set(json!(400)), Additive, "cost"),
            ("/cost/usage_model", Set(json!("per-token")), NeedsReview, "cost"),
            ("/cost/usage_model", Set(json!("none")), Additive, "cost"),
            ("/cost/estimate_url", Remove, Cosmetic, "cost"),
        ],
    );
}

#[test]
fn where_private_data_goes() {
    let sent = "data sent to api.acme.test";
    let transfer = json!({"to": "b.test", "fields": ["body"], "purpose": "p", "third_party_retention": "unknown"});
    check_rows(
        &sample("1.0.0"),
        &sample("1.1.0"),
        vec![
            (
                "/data_boundary/reads/0/sensitivity",
                Set(json!("high")),
                NeedsReview,
                "data read from gmail.messages",
            ),
            (
                "/data_boundary/reads/0/sensitivity",
                Set(json!("low")),
                Additive,
                "data read from gmail.messages",
            ),
            ("/data_boundary/transmits/-", Set(transfer), NeedsReview, "data sent to b.test"),
            ("/data_boundary/transmits", Set(json!([])), Additive, sent),
            ("/data_boundary/transmits/0/fields/-", Set(json!("body")), NeedsReview, sent),
            ("/data_boundary/transmits/0/purpose", Set(json!("To sell.")), NeedsReview, sent),
            (
                "/data_boundary/transmits/0/third_party_retention",
                Set(json!("unknown")),
                NeedsReview,
                sent,
            ),
            (
                "/data_boundary/transmits/0/third_party_retention",
                Set(json!("session-only")),
                Additive,
                sent,
            ),
            (
                "/data_boundary/persists/0/fields/-",
                Set(json!("body")),
                NeedsReview,
                "data kept in tool_local",
            ),
            (
                "/data_boundary/persists/0/where",
                Set(json!("tool_cloud")),
                NeedsReview,
                "data kept in tool_cloud",
            ),
            (
                "/data_boundary/retention/tool_local_days",
                Set(json!(8)),
                NeedsReview,
                "data retention",
            ),
            ("/data_boundary/retention/tool_local_days", Set(json!(6)), Additive, "data retention"),
            ("/data_boundary/retention", Remove, NeedsReview, "data retention"),
        ],
    );
}
