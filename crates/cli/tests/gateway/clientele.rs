//! The official conformance suite, with us as the client: a person with `haft` (`peers/person.py`) is sent to each of its servers.
//! Every scenario that a revision requires passes, and the person ends where it has to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::common::{Desk, repository};
use crate::conformance::suite;

/// Scenarios that fail, each with the reason. No revision requires any of them; one that passes has to be taken out.
const FAILING: [(&str, &str); 6] = [
    ("auth/client-credentials-basic", "an extension: a person signs in, never a program alone"),
    ("auth/client-credentials-jwt", "an extension: a person signs in, never a program alone"),
    ("auth/dpop", "an extension: tokens are those of a bearer"),
    ("auth/dpop-nonce", "an extension: tokens are those of a bearer"),
    (
        "auth/enterprise-managed-authorization",
        "an extension: no identity of a company is exchanged",
    ),
    ("auth/wif-jwt-bearer", "an extension: no identity of a workload is exchanged"),
];

/// Scenarios whose server means no good, and what the person is told before they give up.
const REFUSED: [(&str, &str); 7] = [
    ("auth/iss-normalized", "what came back is of another authorization server"),
    ("auth/iss-supported-missing", "what came back is of another authorization server"),
    ("auth/iss-unexpected", "what came back is of another authorization server"),
    ("auth/iss-wrong-issuer", "what came back is of another authorization server"),
    ("auth/metadata-issuer-mismatch", "says that it is `https://attacker.example.com`"),
    ("auth/resource-mismatch", "is about another resource, `https://evil.example.com/mcp`"),
    ("auth/scope-retry-limit", "the server wants you to be granted more"),
];

/// Runs what a revision requires and what it does not, which are so many scenarios together.
fn passes(revision: &str, all: usize) {
    let Some((suite, node)) = suite() else { return };
    let desk = Desk::new();
    let results = desk.path("results");
    let person = repository().join("crates/cli/tests/gateway/peers/person.py");
    let ran = Command::new(node)
        .arg(suite)
        .args(["client", "--requirements", revision, "--timeout", "180000"])
        .args(["--command", &format!("python3 '{}'", person.display())])
        .arg("--output-dir")
        .arg(&results)
        .env("HAFT", assert_cmd::cargo::cargo_bin("haft"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(desk.0.path())
        .output()
        .unwrap();
    let said = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let said = said.concat();
    let summary = said.split("=== SUITE SUMMARY ===").nth(1).unwrap_or(&said);
    assert!(ran.status.success(), "{summary}");
    let outcomes: BTreeMap<_, _> = summary.lines().filter_map(outcome).collect();
    assert_eq!(outcomes.len(), all, "{summary}");
    let failed: BTreeSet<_> =
        outcomes.iter().filter(|(_, passed)| passed.is_none()).map(|(name, _)| *name).collect();
    assert_eq!(failed, FAILING.map(|(name, _)| name).into(), "{summary}");
    for (name, passed) in outcomes {
        // One in which nothing was looked at counts as passed to the suite.
        assert_ne!(passed, Some(0), "{name}");
        let end = end(&results, name);
        match REFUSED.iter().find(|(refused, _)| *refused == name) {
            Some((_, why)) => assert!(end.starts_with("gave up: ") && end.contains(why), "{end}"),
            None => assert!(passed.is_none() || end == "done", "{name}: {end}"),
        }
    }
}

/// A scenario of the summary, and how many checks it passed if it did.
fn outcome(line: &str) -> Option<(&str, Option<usize>)> {
    let (name, counts) = line.get(line.char_indices().nth(2)?.0..)?.split_once(": ")?;
    let passed = counts.split_once(" passed, ")?.0.parse().ok()?;
    match line.chars().next()? {
        '✓' => Some((name, Some(passed))),
        '✗' => Some((name, None)),
        _ => None,
    }
}

/// How the person ended in a scenario, in their words.
fn end(results: &Path, scenario: &str) -> String {
    let place = results.join(scenario);
    let begins = format!("{}-20", place.file_name().unwrap().to_str().unwrap());
    let folders = std::fs::read_dir(place.parent().unwrap()).unwrap().map(|entry| entry.unwrap());
    let mut ours =
        folders.filter(|folder| folder.file_name().to_str().unwrap().starts_with(&begins));
    let said = std::fs::read_to_string(ours.next().unwrap().path().join("stdout.txt")).unwrap();
    said.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn every_scenario_that_the_older_era_requires_passes() {
    passes("2025-11-25", 25);
}

#[test]
fn every_scenario_that_the_newer_era_requires_passes() {
    passes("2026-07-28", 39);
}
