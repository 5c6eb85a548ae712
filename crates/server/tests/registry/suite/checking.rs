//! Looking for damage.

use axum::http::Method;
use bytes::Bytes;
use serde_json::json;
use server::care::check::{Checked, Finding, Kind, check};
use server::token::Role;

use super::files::{publish, put};
use super::packages::mcpkg;
use super::world::World;

pub(crate) async fn checked(world: &World) -> (Checked, Vec<Finding>) {
    let mut findings = Vec::new();
    let done = check(&world.registry.store, &world.blobs, |finding| findings.push(finding)).await;
    (done.unwrap(), findings)
}

/// Every damage is named, and hides no other.
pub(crate) async fn a_check_names_what_is_damaged(world: World) {
    let mut digests = Vec::new();
    let names = ["whole", "missing", "damaged", "describe", "entry", "found", "digest", "latest"];
    for name in names.into_iter().chain(["none", "low"]) {
        digests.push((name, publish(&world, &format!("acme.{name}"), name).await));
    }
    world.publish(mcpkg("acme.low", "1.10.0", "")).await;
    let digest = |name: &str| digests.iter().find(|(known, _)| *known == name).unwrap().1;
    let (first, findings) = checked(&world).await;
    assert_eq!((first.versions, first.files, first.damaged, findings.len()), (11, 11, 0, 0));
    assert!(first.bytes > 0);
    world.blobs.remove(digest("missing")).await.unwrap();
    world.blobs.remove(digest("damaged")).await.unwrap();
    world.blobs.put(digest("damaged"), Bytes::from_static(b"else")).await.unwrap();
    let unused = put(&world, "nobody's").await;
    world.sql("UPDATE versions SET describe = '{' WHERE package = 'tool:acme.describe'").await;
    world.sql("UPDATE versions SET entry = manifest WHERE package = 'tool:acme.entry'").await;
    world.sql("UPDATE versions SET found = describe WHERE package = 'tool:acme.found'").await;
    world.sql("UPDATE versions SET found = REPLACE(found, 'acme', 'other') WHERE package = 'tool:acme.found'").await;
    world.sql("UPDATE versions SET digest = 'none' WHERE package = 'tool:acme.digest'").await;
    world.sql("UPDATE packages SET latest = '9.9.9' WHERE id = 'tool:acme.latest'").await;
    world.sql("UPDATE packages SET latest = NULL WHERE id = 'tool:acme.none'").await;
    world.sql("UPDATE packages SET latest = '1.0.0' WHERE id = 'tool:acme.low'").await;
    let (second, findings) = checked(&world).await;
    let found = |kind: Kind, what: &str| {
        let is_it = |finding: &&Finding| finding.kind == kind && finding.what == what;
        assert!(findings.iter().any(|finding| is_it(&finding)), "{what}: {findings:#?}");
    };
    found(Kind::MissingFile, "tool:acme.missing@1.0.0");
    found(Kind::DamagedFile, "tool:acme.damaged@1.0.0");
    found(Kind::UnusedFile, &format!("sha256:{unused}"));
    for name in ["describe", "entry", "found", "digest"] {
        found(Kind::Row, &format!("tool:acme.{name}@1.0.0"));
    }
    for name in ["latest", "none", "low"] {
        found(Kind::Row, &format!("tool:acme.{name}"));
    }
    assert!(!findings.iter().any(|finding| finding.what.contains("whole")), "{findings:#?}");
    assert!(second.damaged >= 7, "{second:?}");
    // Nothing that is damaged goes out as if it were whole.
    for path in ["/v1/tools/acme.describe", "/v1/tools/acme.describe/versions/1.0.0"] {
        world.get(path).await.refuses(500, "INTERNAL_ERROR");
    }
    // What is whole is served all the while.
    assert_eq!(world.get("/v1/tools/acme.whole/versions/1.0.0/package").await.status, 200);
    // Files come back with the same bytes, and with no others.
    let other = Bytes::from_static(b"something else again");
    assert!(world.blobs.put(digest("damaged"), other).await.is_err());
    for name in ["missing", "damaged"] {
        let bytes = mcpkg(&format!("acme.{name}"), "1.0.0", name);
        assert_eq!(world.publish(bytes).await.status, 200);
        world.blobs.verify(digest(name)).await.unwrap();
    }
}

/// What each part has written is read, and what cannot be is named.
pub(crate) async fn a_check_reads_what_every_part_has_written(world: World) {
    let admin = world.token_for("*", Role::Admin, None).await;
    for name in [
        "channel",
        "provenance",
        "server",
        "listed",
        "capability",
        "ahead",
        "runtime",
        "signature",
        "signers",
        "name",
    ] {
        publish(&world, &format!("acme.{name}"), name).await;
    }
    let rule = json!({"issuer": "https://issuer.example", "audience": "registry",
        "namespace": "acme", "claims": {"repository": "acme/tools"}});
    world.send(Method::POST, "/v1/publishers", &admin, rule.to_string()).await;
    assert_eq!(checked(&world).await.0.damaged, 0);
    for damage in [
        "UPDATE versions SET channel = 'gold' WHERE package LIKE '%acme.channel'",
        "UPDATE versions SET provenance = '{}' WHERE package LIKE '%acme.provenance'",
        "UPDATE versions SET server = 'x' WHERE package LIKE '%acme.server'",
        "UPDATE versions SET listed = '[]' WHERE package LIKE '%acme.listed'",
        "UPDATE versions SET capability = '{' WHERE package LIKE '%acme.capability'",
        "UPDATE packages SET latest_beta = '9.0.0' WHERE id LIKE '%acme.ahead'",
        "UPDATE publishers SET rule = '{}'",
        "UPDATE versions SET runtime = 'gold' WHERE package LIKE '%acme.runtime'",
        "UPDATE versions SET signature = 'gold' WHERE package LIKE '%acme.signature'",
        "UPDATE versions SET signers = 'gold' WHERE package LIKE '%acme.signers'",
        "UPDATE packages SET name = 'gold' WHERE id LIKE '%acme.name'",
        "INSERT INTO reviews (package, version, number, channel, reason, reviewer, at) \
         VALUES ('nobody', '1.0.0', 99, 'beta', '', 'x', 1)",
    ] {
        world.sql(damage).await;
    }
    let (_, findings) = checked(&world).await;
    for (what, message) in [
        ("acme.channel@1.0.0", "its channel is none"),
        ("acme.provenance@1.0.0", "where it was built cannot be read"),
        ("acme.server@1.0.0", "its server.json cannot be read"),
        ("acme.listed@1.0.0", "its entry cannot be read"),
        ("acme.capability@1.0.0", "its capability cannot be read"),
        ("acme.ahead", "its highest beta version is not the one that it says"),
        ("publisher ", "it cannot be read"),
        ("acme.runtime@1.0.0", "its runtime is not the one that describes it"),
        ("acme.signature@1.0.0", "the state of its signature is not the one that describes it"),
        ("acme.signers@1.0.0", "the list of keys that signed it is not the one that describes it"),
        ("acme.name@1.0.0", "the name of its package is not the one that describes it"),
        ("nobody", "what was said of it is of no version"),
    ] {
        let is_it = |finding: &&Finding| {
            finding.kind == Kind::Row && finding.what.contains(what) && finding.message == message
        };
        assert_eq!(findings.iter().filter(is_it).count(), 1, "{what}: {findings:#?}");
    }
}
