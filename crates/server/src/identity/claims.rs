//! What an identity says, held against a rule.

use std::collections::BTreeMap;

use registry::Provenance;
use serde_json::{Map, Value};

/// The longest claim that is kept, in characters.
const LONGEST: usize = 500;

/// Whether an identity is for this audience.
pub(super) fn is_for(claims: &Map<String, Value>, audience: &str) -> bool {
    match claims.get("aud") {
        Some(Value::String(one)) => one == audience,
        Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(audience)),
        _ => false,
    }
}

/// Whether every pattern fits the claim of its name.
pub(super) fn fit(claims: &Map<String, Value>, patterns: &BTreeMap<String, String>) -> bool {
    let fits = |(name, pattern): (&String, &String)| match claims.get(name) {
        Some(Value::String(text)) => matches(pattern, text),
        Some(Value::Bool(value)) => matches(pattern, &value.to_string()),
        Some(Value::Number(value)) => matches(pattern, &value.to_string()),
        _ => false,
    };
    !patterns.is_empty() && patterns.iter().all(fits)
}

/// Whether a text is what a pattern says, letter for letter; `*` is any text, also none.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A moment in seconds since 1970, whole or not.
pub(super) fn seconds(value: &Value) -> Option<u64> {
    let is_moment = |seconds: &f64| seconds.is_finite() && (0.0..1e11).contains(seconds);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was found to be within bounds"
    )]
    value
        .as_u64()
        .filter(|seconds| *seconds < 100_000_000_000)
        .or_else(|| value.as_f64().filter(is_moment).map(|seconds| seconds as u64))
}

/// Who builds, and what, in the words of the services that most use.
pub(super) fn provenance(claims: &Map<String, Value>, issuer: &str) -> Provenance {
    let text = |names: &[&str]| {
        let found = names.iter().find_map(|name| claims.get(*name)?.as_str());
        found.filter(|text| !text.is_empty()).map(|text| text.chars().take(LONGEST).collect())
    };
    Provenance {
        issuer: issuer.to_owned(),
        subject: text(&["sub"]).unwrap_or_default(),
        repository: text(&["repository", "project_path"]),
        reference: text(&["ref"]),
        sha: text(&["sha"]),
        workflow: text(&["job_workflow_ref", "workflow_ref", "ci_config_ref_uri"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claims(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_pattern_is_letter_for_letter_but_for_stars() {
        for (pattern, text, fits) in [
            ("acme/tools", "acme/tools", true),
            ("acme/tools", "acme/tools2", false),
            ("acme/tools", "ACME/tools", false),
            ("acme/*", "acme/", true),
            ("acme/*", "acme/a/b", true),
            ("acme/*", "evil/acme/a", false),
            ("refs/*/v*", "refs/tags/v1", true),
            ("refs/*/v*", "refs/tags/1", false),
            ("*a*a", "a", false),
            ("*a*a", "ba-a", true),
            ("*", "", true),
            ("", "", true),
            ("", "x", false),
            ("a.c", "abc", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn every_claim_must_be_there_and_fit() {
        let said = claims(&json!({"repository": "acme/tools", "ref": "refs/heads/main",
            "ref_protected": true, "actor_id": 7, "list": ["x"], "none": null}));
        let rule = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        assert!(fit(&said, &rule(&[("repository", "acme/tools"), ("ref", "refs/heads/*")])));
        assert!(fit(&said, &rule(&[("ref_protected", "true"), ("actor_id", "7")])));
        for pairs in [
            &[("repository", "acme/tools"), ("ref", "refs/tags/*")][..],
            &[("missing", "*")],
            &[("list", "*")],
            &[("none", "*")],
            &[],
        ] {
            assert!(!fit(&said, &rule(pairs)), "{pairs:?}");
        }
    }

    #[test]
    fn an_audience_is_one_or_among_several() {
        assert!(is_for(&claims(&json!({"aud": "a"})), "a"));
        assert!(is_for(&claims(&json!({"aud": ["b", "a"]})), "a"));
        for other in [json!({}), json!({"aud": "ab"}), json!({"aud": []}), json!({"aud": {"a": 1}})]
        {
            assert!(!is_for(&claims(&other), "a"), "{other}");
        }
    }

    #[test]
    fn moments_are_numbers_within_reason() {
        assert_eq!(seconds(&json!(1_700_000_000)), Some(1_700_000_000));
        assert_eq!(seconds(&json!(1_700_000_000.9)), Some(1_700_000_000));
        for odd in [json!(-1), json!("1"), json!(1e300), json!(u64::MAX), json!(null)] {
            assert_eq!(seconds(&odd), None, "{odd}");
        }
    }
}
